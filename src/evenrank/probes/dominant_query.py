"""Whether one query decides a variant's figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from evenrank.io.errors import quoted

from .effects import Effect, Floats, Ints
from .pair_values import Means, PairValues
from .probe_sentences import signed

CHANCE = 0.01
"""How often a query is to be found where the queries' effects are normal, and none decides."""
STILL = 0.5
"""A standard deviation of less than this share of the median query's is small."""


@dataclass(frozen=True, slots=True)
class Influence:
    """A query without which a figure is another: its ``query_id``, the ``mean`` without it, and ``relative_sd``, the
    standard deviation of its scores in relation to the median query's."""

    query_id: str
    mean: float
    relative_sd: float

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)

    def note(self, variant: str, whole: Means) -> str:
        """In a sentence on the ``variant`` whose figure with the query is that of ``whole``."""
        still = ", whose scores hardly vary," if self.relative_sd < STILL else ""
        beyond = " beyond the placebo" if whole.beyond_placebo else ""
        means = f"{signed(self.mean)} sd (with it {signed(whole.verdict.mean)})"
        return f"{variant}: without the query {quoted(self.query_id)}{still} the effect{beyond} is {means}"


def without_each(values: PairValues, beyond: bool, query: Ints) -> Floats:
    """The verdict's mean without each of the queries [Q], numbered from 0; NaN where nothing is left.

    >>> values = PairValues(np.array([1.0, 2.0, 6.0]), np.array([0.5, np.nan, 1.0]))
    >>> without_each(values, True, np.array([0, 0, 1])).tolist()
    [5.0, 1.0]
    """
    means = _without(values.effect, query)
    return means - _without(values.placebo, query) if beyond and values.placebo is not None else means


def _without(values: Floats, query: Ints) -> Floats:
    known = ~np.isnan(values)
    number = int(query.max()) + 1
    left = known.sum() - np.bincount(query[known], minlength=number)
    sums = values[known].sum() - np.bincount(query[known], values[known], number)
    means: Floats = np.full(number, np.nan)
    np.divide(sums, left, out=means, where=left > 0)
    return means


# parameters: the values, their pairs, and the queries' facts
def influence(
    values: PairValues, whole: Means, query: Ints, passage: Ints, deviation: Floats, query_ids: list[str]
) -> Influence | None:
    """The query whose removal changes the verdict's mean most, if that is much; None where no query decides.

    ``values`` of the pairs (``query[i]``, ``passage[i]``), whose means over all are ``whole``; ``deviation`` [N] of
    each pair's query, ``query_ids`` [Q]. Much is a change by more than a standard error of the other queries' mean, and
    by more than the query most unlike the rest shows by chance in one of a hundred samples of normal effects. The error
    is that without the query, as one far from the rest widens it.
    """
    verdict = whole.verdict
    if verdict.p is None:
        return None
    means = without_each(values, whole.beyond_placebo, query)
    changes = np.abs(means - verdict.mean)
    if np.isnan(changes).all():
        return None
    most = int(np.nanargmax(changes))
    rest = Means.of(values, query, passage, query != most)
    left = rest.verdict
    if not _much(float(changes[most]), left, verdict.queries):
        return None
    spreads = np.full(len(query_ids), np.nan)
    spreads[query] = deviation
    return Influence(query_ids[most], float(means[most]), float(spreads[most] / np.nanmedian(spreads)))


def _much(change: float, left: Effect, queries: int) -> bool:
    from scipy.special import stdtrit

    if left.se is None or queries < 3:
        return False
    # A query's distance from the others' mean is `queries` times its change; the errors of both make it Student's t.
    chance = float(stdtrit(queries - 2, 1 - CHANCE / 2 / queries)) / np.sqrt(queries)
    return bool(change > 1e-9 and change > left.se * max(1.0, chance))
