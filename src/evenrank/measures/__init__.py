"""Arrays in, figures out, without PyTorch: bias, utility, ties, statistics, and the ir_measures provider.

Importing this package makes our measures known to ir_measures.
"""

from .background import BACKGROUND_DEPTH, Background
from .evaluate import DELTA, MISSING_LIMIT, Evaluation, Lacking, Missing
from .lists import RankedLists
from .neutrality import ranker_agnostic_fairr, ranker_agnostic_nfairr
from .pairwise import delta_aprf, nprf, pairwise_wins, prf
from .provider import add_measure, set_scores, using_scores
from .registry import (
    APRF,
    BIAS_MEASURES,
    CUTOFF,
    AbsARaB,
    AbsoluteDeltaAPRF,
    AbsoluteMeanARaB,
    ARaB,
    BiasMeasure,
    DeltaAPRF,
    FaiRR,
    LinearMeasure,
    NFaiRR,
    RaB,
    describe,
    is_bias,
    parse_measure,
    parse_measures,
)

__all__ = [
    "APRF",
    "BACKGROUND_DEPTH",
    "BIAS_MEASURES",
    "CUTOFF",
    "DELTA",
    "MISSING_LIMIT",
    "ARaB",
    "AbsARaB",
    "AbsoluteDeltaAPRF",
    "AbsoluteMeanARaB",
    "Background",
    "BiasMeasure",
    "DeltaAPRF",
    "Evaluation",
    "FaiRR",
    "Lacking",
    "LinearMeasure",
    "Missing",
    "NFaiRR",
    "RaB",
    "RankedLists",
    "add_measure",
    "delta_aprf",
    "describe",
    "is_bias",
    "nprf",
    "pairwise_wins",
    "parse_measure",
    "parse_measures",
    "prf",
    "ranker_agnostic_fairr",
    "ranker_agnostic_nfairr",
    "set_scores",
    "using_scores",
]
