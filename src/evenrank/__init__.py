"""evenrank measures bias in search rankings, together with effectiveness, and reduces it.

Names are imported on first use, so that ``import evenrank`` loads neither the table engine nor PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names
from evenrank._version import __version__

if TYPE_CHECKING:
    from evenrank import decide as decide
    from evenrank import files as files
    from evenrank import groups as groups
    from evenrank import measures as measures
    from evenrank import mitigation as mitigation
    from evenrank import models as models
    from evenrank import mteb as mteb
    from evenrank import probes as probes
    from evenrank import search as search
    from evenrank import testing as testing
    from evenrank import training as training
    from evenrank.auditing import AuditResult, audit, named_runs, run_name
    from evenrank.auditing.audit_sql import audit_sql
    from evenrank.auditing.data import MetricValue, RunAudit
    from evenrank.auditing.label_sample import LabelSample, sample_labels
    from evenrank.auditing.lexicon_check import LexiconCheck, check_lexicon
    from evenrank.auditing.people import ImpactRatios, impact_ratios
    from evenrank.auditing.sums import audit_sums
    from evenrank.decide.gate import gate
    from evenrank.decide.gate_result import GateResult
    from evenrank.decide.initial_budget import initial_budget
    from evenrank.decide.rebalance import rebalance
    from evenrank.decide.rebalance_result import Rebalanced
    from evenrank.files import EvenrankError, InputError, Run, read_qrels, read_queries, read_run, write_run
    from evenrank.files.passages import best_passages
    from evenrank.files.public import fetch, public_data
    from evenrank.files.squad_collection import write_squad_collection
    from evenrank.files.synthetic import SyntheticConfig, generate
    from evenrank.files.texts import TextFile, beir
    from evenrank.files.tokens import tokenize
    from evenrank.groups import (
        GroupTable,
        Lexicon,
        Scoring,
        as_labels,
        builtin_lexicons,
        load_lexicon,
        read_group_table,
        score,
    )
    from evenrank.groups.scoring import score_batch
    from evenrank.groups.sql import lexicon_sql
    from evenrank.mitigation.blind import mask_texts
    from evenrank.mitigation.ibbr import IBBR, FunctionTerm
    from evenrank.mitigation.negatives import write_negatives
    from evenrank.mitigation.rotation import rotate_collection
    from evenrank.models.batches import encode_batch, rerank_batch
    from evenrank.models.endpoints import Endpoint
    from evenrank.models.load import load_ranker
    from evenrank.models.passages import CutCollection, cut_passages
    from evenrank.models.rerank import rerank
    from evenrank.models.retrievers import retrieve_from
    from evenrank.models.vectors import read_vectors
    from evenrank.probes.answers import AnswersResult, position_answers
    from evenrank.probes.probe_result import ProbeResult
    from evenrank.probes.probing import probe
    from evenrank.probes.scan import ScanResult, scan, scan_queries
    from evenrank.probes.sensitivity import SensitivityResult, position_sensitivity
    from evenrank.probes.similarity import SimilarityResult, position_similarity
    from evenrank.probes.variants import variants
    from evenrank.results.finding import Finding
    from evenrank.results.terms import explain
    from evenrank.search.analysis import read_stop_words
    from evenrank.search.expansion import RM3, expand
    from evenrank.search.fusion import interpolate, tune
    from evenrank.search.index_folder import Encoding
    from evenrank.search.indexes import build_index, open_index, retrieve
    from evenrank.training.card import training_summary
    from evenrank.training.choice import Validation
    from evenrank.training.lists import training_lists
    from evenrank.training.recipes import RankerRecipe
    from evenrank.training.run import train_recipe
    from evenrank.training.train import TrainingResult, train
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "IBBR",
    "RM3",
    "AnswersResult",
    "AuditResult",
    "CutCollection",
    "Encoding",
    "Endpoint",
    "EvenrankError",
    "Finding",
    "FunctionTerm",
    "GateResult",
    "GroupTable",
    "ImpactRatios",
    "InputError",
    "LabelSample",
    "Lexicon",
    "LexiconCheck",
    "MetricValue",
    "ProbeResult",
    "RankerRecipe",
    "Rebalanced",
    "Run",
    "RunAudit",
    "ScanResult",
    "Scoring",
    "SensitivityResult",
    "SimilarityResult",
    "SyntheticConfig",
    "TextFile",
    "TrainingResult",
    "Validation",
    "__version__",
    "as_labels",
    "audit",
    "audit_sql",
    "audit_sums",
    "beir",
    "best_passages",
    "build_index",
    "builtin_lexicons",
    "check_lexicon",
    "cut_passages",
    "encode_batch",
    "expand",
    "explain",
    "fetch",
    "gate",
    "generate",
    "impact_ratios",
    "initial_budget",
    "interpolate",
    "lexicon_sql",
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
    "rerank_batch",
    "retrieve",
    "retrieve_from",
    "rotate_collection",
    "run_name",
    "sample_labels",
    "scan",
    "scan_queries",
    "score",
    "score_batch",
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
