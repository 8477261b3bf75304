"""Values over the positions to which the same answer is moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.measures.statistics import bootstrap_means, interval

from .resampling import PERMUTATIONS, Floats, Interval, Ints, chunks, cluster_ids, json_number, p_of, slopes


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the position of the same answer in the same passage.

    ``places`` [P]: positions from 0 (first) to 1 (last possible); ``means`` [P] over ``n`` queries, with ``ci95`` [P].
    ``slope``: mean of the queries' slopes, the change from the first to the last position, with its interval;
    ``slope_p``: of the hypothesis that it is 0, by flipping the signs of the slopes of whole passages. ``spread``: the
    largest mean minus the smallest, which also detects curves that fall and rise again; ``spread_p``: by shuffling the
    positions of whole passages. The unit of all is the passage.
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    slope: float
    slope_ci95: Interval | None
    slope_p: float | None
    spread: float
    spread_p: float | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        rows = zip(self.places.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": p, "mean": json_number(m), "ci95": list(ci) if ci else None} for p, m, ci in rows],
            "slope": json_number(self.slope),
            "slope_ci95": list(self.slope_ci95) if self.slope_ci95 else None,
            "slope_p": self.slope_p,
            "spread": json_number(self.spread),
            "spread_p": self.spread_p,
        }


def position_curve(values: Floats, places: Floats, *, clusters: Ints | None = None, seed: int = 0) -> PositionCurve:
    """The curve of ``values`` [Q, P] over ``places`` [P]; queries with an undefined value are left out.

    ``clusters`` [Q]: as in :func:`evenrank.position.buckets.by_bucket`.
    """
    known = np.asarray(~np.isnan(values).any(axis=1))
    values = values[known]
    if not len(values):
        nothing = np.full(len(places), np.nan)
        return PositionCurve(places, 0, nothing, (None,) * len(places), float("nan"), None, None, float("nan"), None)
    clusters = cluster_ids(clusters, known)
    query_slopes = slopes(values, np.broadcast_to(places, values.shape))
    draws = bootstrap_means(np.column_stack([values, query_slopes]), seed, clusters=clusters)
    one = clusters.max() == 0
    ends = tuple(None if one else interval(draws[:, column]) for column in range(draws.shape[1]))
    slope = float(query_slopes.mean())
    means = values.mean(axis=0)
    spread = float(np.ptp(means))
    slope_p = spread_p = None
    if not one:
        rng = np.random.default_rng(seed)
        sums = np.bincount(clusters, query_slopes)
        signs = rng.integers(0, 2, (PERMUTATIONS, len(sums))) * 2.0 - 1
        slope_p = p_of(np.abs(signs @ sums) / len(values), abs(slope))
        spread_p = p_of(_null_spreads(values, clusters, rng), spread)
    return PositionCurve(places, len(values), means, ends[:-1], slope, ends[-1], slope_p, spread, spread_p)


def _null_spreads(values: Floats, clusters: Ints, rng: np.random.Generator) -> Floats:
    """Spreads [PERMUTATIONS] of values [Q, P] with shuffled positions, all queries of a cluster alike."""
    sums = np.stack([np.bincount(clusters, column) for column in values.T], axis=1)
    found = []
    for count in chunks(sums.size):
        shape = (count, *sums.shape)
        found.append(np.ptp(rng.permuted(np.broadcast_to(sums, shape), axis=2).sum(axis=1), axis=1) / len(values))
    return np.concatenate(found)
