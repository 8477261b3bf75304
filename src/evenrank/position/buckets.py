"""Effectiveness by the position of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.io import EvenrankError
from evenrank.measures.inference import cluster_parts, estimate

from .curves import UNIT, Floats, Interval, Ints

FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Edges of the buckets of relative positions."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Effectiveness by the position of the answer.

    ``n`` [B] queries, ``means`` [B] (NaN for an empty bucket), ``ci95`` [B] (None for fewer than two passages).

    The unit of intervals is the passage, since questions of one passage are not independent. Buckets of positions as in
    Hofstätter et al., ECIR 2021.

    When it misleads: this is a correlation. Passages with early and with late answers can differ in other ways, so a
    difference between buckets does not prove that position is the cause; ``evenrank position sensitivity``, which moves
    the answer's sentence within its passage, does. An answer beyond what a ranker reads is lost by truncation, which is
    not a preference for early text.

    Worked example: two queries with early answers have 1.0 and 0.8, two with late ones 0.6 and 0.3. The bucket means
    are 0.9 and 0.45.

    >>> import numpy as np
    >>> from evenrank.position.buckets import by_bucket
    >>> found = by_bucket(np.array([1.0, 0.8, 0.6, 0.3]), np.array([0.1, 0.2, 0.7, 0.9]), (0.0, 0.5), 1.0)
    >>> found.means.round(4).tolist()
    [0.9, 0.45]
    """

    n: Ints
    means: Floats
    ci95: tuple[Interval | None, ...]


def by_bucket(
    values: Floats,
    places: NDArray[np.float64] | Ints,
    starts: Sequence[float],
    end: float | None = None,
    *,
    clusters: Ints | None = None,
) -> Buckets:
    """Effectiveness ``values`` [Q] by the ``places`` [Q] of the queries' answers; NaN values are left out.

    ``starts`` [B]: the start of each half-open bucket, which ends at the next start; the last one ends at ``end``
    (None: it is open). ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own). Raises
    EvenrankError if a place is before the first bucket or not before ``end``, and if no value is defined.
    """
    known = ~np.isnan(values)
    values, places = values[known], places[known]
    if not len(values):
        raise EvenrankError("no query has both a located answer and a value")
    clusters = np.arange(len(values)) if clusters is None else clusters[known]
    if places.min() < starts[0] or (end is not None and places.max() >= end):
        outside = float(places.min() if places.min() < starts[0] else places.max())
        raise EvenrankError(f"places: expected {starts[0]} to below {end}, found {outside}")
    bucket = np.searchsorted(np.asarray(starts), places, side="right") - 1
    size = len(starts)
    number = np.bincount(bucket, minlength=size)
    total = np.bincount(bucket, values, minlength=size)
    inside = [bucket == b for b in range(size)]
    return Buckets(
        number,
        np.divide(total, number, out=np.full(size, np.nan), where=number > 0),
        tuple(_interval(values[one], clusters[one]) for one in inside),
    )


def _interval(values: Floats, clusters: Ints) -> Interval | None:
    """The interval of the mean of values [n] of passages [n]."""
    return estimate(cluster_parts(values, clusters), unit=UNIT).ci95 if len(values) else None
