"""Arrays in, figures out, without PyTorch: bias, utility, ties, statistics, and a provider for ir_measures.

Importing this package makes our measures known to ir_measures' parser.
"""

from .base import CUTOFF, BiasMeasure, LinearMeasure, RunMeasure, TieFigures
from .exposure import AWRF, EED, EEL, EER, NDKL, Exposure, ExposureGap, ExposureMeasure, Share
from .ir_provider import provider
from .joined import BACKGROUND_DEPTH, MISSING_LIMIT, Background, JoinedRun, Lacking, Missing, OfMissing
from .neutrality import FaiRR, NeutralityMeasure, NFaiRR, ranker_agnostic_fairr, ranker_agnostic_nfairr
from .pairwise import APRF, AbsoluteDeltaAPRF, DeltaAPRF, PairwiseMeasure, delta_aprf, nprf, prf
from .rank_bias import AbsARaB, AbsoluteMeanARaB, ARaB, RaB, RankBiasMeasure
from .ranked_lists import RankedLists, pairwise_wins
from .registry import (
    Evaluation,
    MeasuresLike,
    add_measure,
    bias_measures,
    describe,
    facts,
    greatest_value,
    is_bias,
    is_linear,
    parse_measure,
    parse_measures,
    resolve,
    signs,
    spelled,
)
from .targets import Target, as_target

__all__ = [
    "APRF",
    "AWRF",
    "BACKGROUND_DEPTH",
    "CUTOFF",
    "EED",
    "EEL",
    "EER",
    "MISSING_LIMIT",
    "NDKL",
    "ARaB",
    "AbsARaB",
    "AbsoluteDeltaAPRF",
    "AbsoluteMeanARaB",
    "Background",
    "BiasMeasure",
    "DeltaAPRF",
    "Evaluation",
    "Exposure",
    "ExposureGap",
    "ExposureMeasure",
    "FaiRR",
    "JoinedRun",
    "Lacking",
    "LinearMeasure",
    "MeasuresLike",
    "Missing",
    "NFaiRR",
    "NeutralityMeasure",
    "OfMissing",
    "PairwiseMeasure",
    "RaB",
    "RankBiasMeasure",
    "RankedLists",
    "RunMeasure",
    "Share",
    "Target",
    "TieFigures",
    "add_measure",
    "as_target",
    "bias_measures",
    "delta_aprf",
    "describe",
    "facts",
    "greatest_value",
    "is_bias",
    "is_linear",
    "nprf",
    "pairwise_wins",
    "parse_measure",
    "parse_measures",
    "prf",
    "provider",
    "ranker_agnostic_fairr",
    "ranker_agnostic_nfairr",
    "resolve",
    "signs",
    "spelled",
]
