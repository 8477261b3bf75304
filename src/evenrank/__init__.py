"""evenrank measures bias in search rankings, together with effectiveness, and reduces it.

Names are imported on first use, so that ``import evenrank`` loads neither the table engine nor PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from evenrank._version import __version__

if TYPE_CHECKING:
    from evenrank.auditing import AuditResult, audit, named_runs, run_name
    from evenrank.auditing.lexicon_check import LexiconCheck, check_lexicon
    from evenrank.datasets.public import fetch, public_data
    from evenrank.datasets.squad_collection import write_squad_collection
    from evenrank.datasets.synthetic import SyntheticConfig, generate
    from evenrank.decisions.debiased_index import debias_index
    from evenrank.decisions.frontier import Frontier, frontier
    from evenrank.decisions.gate import GateResult, gate
    from evenrank.decisions.initial_budget import initial_budget
    from evenrank.decisions.rebalance import Rebalanced, rebalance
    from evenrank.embeddings import read_vectors
    from evenrank.experiments import ExperimentOptions, check_experiment, run_experiment
    from evenrank.groups import (
        GroupTable,
        Lexicon,
        Scoring,
        as_labels,
        builtin_lexicons,
        load_lexicon,
        read_group_table,
        score,
        tokenize,
    )
    from evenrank.io import EvenrankError, InputError, Run, read_qrels, read_queries, read_run, write_run
    from evenrank.mitigation.blind import mask_texts
    from evenrank.mitigation.ibbr import IBBR
    from evenrank.mitigation.negatives import write_negatives
    from evenrank.mitigation.rotation import rotate_collection
    from evenrank.position.answers import AnswersResult, position_answers
    from evenrank.position.sensitivity import SensitivityResult, position_sensitivity
    from evenrank.position.similarity import SimilarityResult, position_similarity
    from evenrank.probes.probe_result import ProbeResult
    from evenrank.probes.probing import probe
    from evenrank.probes.variants import variants
    from evenrank.rankers.endpoints import Endpoint
    from evenrank.rankers.load import load_ranker
    from evenrank.rankers.rerank import rerank
    from evenrank.retrieval.analysis import read_stop_words
    from evenrank.retrieval.bm25 import retrieve
    from evenrank.retrieval.expansion import expand
    from evenrank.retrieval.fusion import interpolate, tune
    from evenrank.retrieval.index_folder import Encoding
    from evenrank.retrieval.indexes import build_index, open_index
    from evenrank.retrieval.rm3 import RM3
    from evenrank.training.card import training_summary
    from evenrank.training.lists import training_lists
    from evenrank.training.run import train_recipe
    from evenrank.training.train import train

_HOMES = {
    "auditing": ("AuditResult", "audit", "named_runs", "run_name"),
    "auditing.lexicon_check": ("LexiconCheck", "check_lexicon"),
    "datasets.public": ("fetch", "public_data"),
    "datasets.squad_collection": ("write_squad_collection",),
    "datasets.synthetic": ("SyntheticConfig", "generate"),
    "decisions.debiased_index": ("debias_index",),
    "decisions.frontier": ("Frontier", "frontier"),
    "decisions.rebalance": ("Rebalanced", "rebalance"),
    "decisions.gate": ("GateResult", "gate"),
    "decisions.initial_budget": ("initial_budget",),
    "embeddings": ("read_vectors",),
    "experiments": ("ExperimentOptions", "check_experiment", "run_experiment"),
    "groups": (
        "GroupTable",
        "Lexicon",
        "Scoring",
        "as_labels",
        "builtin_lexicons",
        "load_lexicon",
        "read_group_table",
        "score",
        "tokenize",
    ),
    "io": ("EvenrankError", "InputError", "Run", "read_qrels", "read_queries", "read_run", "write_run"),
    "mitigation.blind": ("mask_texts",),
    "mitigation.ibbr": ("IBBR",),
    "mitigation.negatives": ("write_negatives",),
    "mitigation.rotation": ("rotate_collection",),
    "position.answers": ("AnswersResult", "position_answers"),
    "position.sensitivity": ("SensitivityResult", "position_sensitivity"),
    "position.similarity": ("SimilarityResult", "position_similarity"),
    "probes.probe_result": ("ProbeResult",),
    "probes.probing": ("probe",),
    "probes.variants": ("variants",),
    "rankers.endpoints": ("Endpoint",),
    "rankers.load": ("load_ranker",),
    "rankers.rerank": ("rerank",),
    "retrieval.bm25": ("retrieve",),
    "retrieval.index_folder": ("Encoding",),
    "retrieval.expansion": ("expand",),
    "retrieval.fusion": ("interpolate", "tune"),
    "retrieval.indexes": ("build_index", "open_index"),
    "retrieval.rm3": ("RM3",),
    "retrieval.analysis": ("read_stop_words",),
    "training.card": ("training_summary",),
    "training.lists": ("training_lists",),
    "training.run": ("train_recipe",),
    "training.train": ("train",),
}
"""The public names by the module that defines them."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_FOLDERS = (
    "datasets", "embeddings", "groups", "integrations", "io", "measures", "mitigation", "position", "probes",
    "rankers", "retrieval",
)  # fmt: skip
"""Folders that ``evenrank.measures.provider(...)`` and the like reach without an import of their own."""

__all__ = [
    "IBBR",
    "RM3",
    "AnswersResult",
    "AuditResult",
    "Encoding",
    "Endpoint",
    "EvenrankError",
    "ExperimentOptions",
    "Frontier",
    "GateResult",
    "GroupTable",
    "InputError",
    "Lexicon",
    "LexiconCheck",
    "ProbeResult",
    "Rebalanced",
    "Run",
    "Scoring",
    "SensitivityResult",
    "SimilarityResult",
    "SyntheticConfig",
    "__version__",
    "as_labels",
    "audit",
    "build_index",
    "builtin_lexicons",
    "check_experiment",
    "check_lexicon",
    "debias_index",
    "expand",
    "fetch",
    "frontier",
    "gate",
    "generate",
    "initial_budget",
    "interpolate",
    "load_lexicon",
    "load_ranker",
    "mask_texts",
    "named_runs",
    "open_index",
    "position_answers",
    "position_sensitivity",
    "position_similarity",
    "probe",
    "public_data",
    "read_group_table",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_stop_words",
    "read_vectors",
    "rebalance",
    "rerank",
    "retrieve",
    "rotate_collection",
    "run_experiment",
    "run_name",
    "score",
    "tokenize",
    "train",
    "train_recipe",
    "training_lists",
    "training_summary",
    "tune",
    "variants",
    "write_negatives",
    "write_run",
    "write_squad_collection",
]


def __getattr__(name: str) -> object:
    if name in _FOLDERS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_HOME_OF[name]}")
    except ModuleNotFoundError:
        from evenrank.io.errors import require_neural

        require_neural(f"evenrank.{name}")
        raise
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
