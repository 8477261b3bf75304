"""evenrank measures bias in search rankings, beside effectiveness, and removes it.

Names are imported when they are first used, so that ``import evenrank`` loads no table engine and no PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evenrank.audit import AuditResult, audit
    from evenrank.audit.answers import AnswersResult, position_answers
    from evenrank.audit.sensitivity import SensitivityResult, position_sensitivity
    from evenrank.audit.similarity import SimilarityResult, position_similarity
    from evenrank.groups import Lexicon, Scoring, load_lexicon, score_collection
    from evenrank.io import (
        EvenrankError,
        InputError,
        Run,
        Scores,
        read_qrels,
        read_queries,
        read_run,
        read_scores,
        write_run,
    )

_HOMES = {
    "AuditResult": "audit",
    "audit": "audit",
    "SensitivityResult": "audit.sensitivity",
    "position_sensitivity": "audit.sensitivity",
    "SimilarityResult": "audit.similarity",
    "position_similarity": "audit.similarity",
    "AnswersResult": "audit.answers",
    "position_answers": "audit.answers",
    "Lexicon": "groups",
    "Scoring": "groups",
    "load_lexicon": "groups",
    "score_collection": "groups",
    "EvenrankError": "io",
    "InputError": "io",
    "Run": "io",
    "Scores": "io",
    "read_qrels": "io",
    "read_queries": "io",
    "read_run": "io",
    "read_scores": "io",
    "write_run": "io",
}

__all__ = [
    "AnswersResult",
    "AuditResult",
    "EvenrankError",
    "InputError",
    "Lexicon",
    "Run",
    "Scores",
    "Scoring",
    "SensitivityResult",
    "SimilarityResult",
    "__version__",
    "audit",
    "load_lexicon",
    "position_answers",
    "position_sensitivity",
    "position_similarity",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_scores",
    "score_collection",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    # evenrank.audit is both a folder and a function: the folder can be called.
    value = module if name == _HOMES[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
