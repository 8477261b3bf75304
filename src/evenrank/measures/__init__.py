"""Arrays in, figures out, without PyTorch: bias, utility, ties, statistics, and a provider for ir_measures.

Importing this package makes our measures known to ir_measures' parser. Each is an attribute of this package, too:
``evenrank.measures.NFaiRR @ 10``, ``evenrank.measures.ARaB(magnitude="bool") @ 10``.
"""

from .base import CUTOFF, BiasMeasure, LinearMeasure, RunMeasure, TieFigures
from .exposure import ExposureMeasure
from .ir_provider import provider
from .joined import BACKGROUND_DEPTH, MISSING_LIMIT, Background, JoinedRun, Lacking, Missing, OfMissing
from .neutrality import NeutralityMeasure
from .pairwise import PairwiseMeasure, delta_aprf, nprf, prf
from .rank_bias import RankBiasMeasure
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
    is_estimable,
    is_linear,
    linear_form,
    not_estimable,
    parse_measure,
    parse_measures,
    resolve,
    signs,
    spelled,
)
from .targets import Target, as_target

__all__ = [
    "BACKGROUND_DEPTH",
    "CUTOFF",
    "MISSING_LIMIT",
    "Background",
    "BiasMeasure",
    "Evaluation",
    "ExposureMeasure",
    "JoinedRun",
    "Lacking",
    "LinearMeasure",
    "MeasuresLike",
    "Missing",
    "NeutralityMeasure",
    "OfMissing",
    "PairwiseMeasure",
    "RankBiasMeasure",
    "RankedLists",
    "RunMeasure",
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
    "is_estimable",
    "is_linear",
    "linear_form",
    "not_estimable",
    "nprf",
    "pairwise_wins",
    "parse_measure",
    "parse_measures",
    "prf",
    "provider",
    "resolve",
    "signs",
    "spelled",
]


def __getattr__(name: str) -> BiasMeasure:
    measure = next((measure for measure in bias_measures() if name == (measure.SPELLED or measure.NAME)), None)
    if measure is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return measure
