"""Which utility measures are computed here, and how; any other goes to ir_measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ir_measures import Measure

from . import utility
from .lists import Array

OnHits = Callable[[utility.Hits], Array]

_BY_RELEVANCE = {
    "P": (utility.precision, utility.expected_precision),
    "R": (utility.recall, utility.expected_recall),
    "Success": (utility.success, utility.expected_success),
    "RR": (utility.reciprocal_rank, utility.expected_rr),
    "AP": (utility.average_precision, utility.expected_ap),
}
_BY_GRADE = {
    "nDCG": (utility.ndcg, utility.expected_ndcg),
    "ERR": (utility.expected_reciprocal_rank, utility.expected_err),
}


def in_run_order(measure: Measure) -> OnHits | None:
    """The measure's value of a run, with ir_measures' order of tied documents; None for a measure not computed here."""
    plain = of_order(measure)
    if plain is None or measure.NAME != "RR" or "cutoff" not in measure.params:
        return plain
    # ir_measures takes RR with a cutoff from MS MARCO's program, which puts tied documents in rising order of id,
    # where all else has falling order; the figure must be theirs.
    return lambda hits: plain(replace(hits, rank=2 * hits.before + hits.size + 1 - hits.rank))


def of_order(measure: Measure) -> OnHits | None:
    """The measure's value with the hits at the ranks that they have."""
    return _utility(measure, expected=False)


def expected(measure: Measure) -> OnHits | None:
    """The measure's expectation over the orders of tied documents."""
    return _utility(measure, expected=True)


def _utility(measure: Measure, *, expected: bool) -> OnHits | None:
    params = dict(measure.params)
    cutoff = params.pop("cutoff", None)
    if measure.NAME in _BY_RELEVANCE:
        relevance = params.pop("rel", 1)
        function = _BY_RELEVANCE[measure.NAME][expected]
        if params or (cutoff is None and measure.NAME in ("P", "R", "Success")) or relevance < 1:
            return None
        return lambda hits: function(hits.at_least(relevance), cutoff)
    if measure.NAME in _BY_GRADE:
        graded = _BY_GRADE[measure.NAME][expected]
        if params or (cutoff is None and measure.NAME == "ERR"):
            return None
        return lambda hits: graded(hits, cutoff)
    return None
