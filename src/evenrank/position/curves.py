"""Values of the same passages over the places that the same sentence is moved to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.measures.statistics import bootstrap_means, interval

from .resampling import (
    Floats,
    Interval,
    Ints,
    chunks,
    cluster_ids,
    errors,
    json_number,
    lowest_to_highest,
    p_of,
    ratios,
    signs,
    tested,
)

CONTRASTS = ("first_last", "ends_middle")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A contrast of the places, its mean over queries, with interval and p (None with one passage)."""

    mean: float
    ci95: Interval | None
    p: float | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        return {"mean": json_number(self.mean), "ci95": list(self.ci95) if self.ci95 else None, "p": self.p}


@dataclass(frozen=True, slots=True)
class SensitivityIndex:
    """The Position Sensitivity Index, 1 − min/max of the means over places [PSI].

    ``null``: its mean under no effect, which is above 0 by noise alone; ``p``: how often it is then as large.
    """

    value: float
    ci95: Interval | None
    null: float
    p: float | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        ends = list(self.ci95) if self.ci95 else None
        return {"value": json_number(self.value), "ci95": ends, "null": json_number(self.null), "p": self.p}


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the place of the same sentence in the same passage.

    ``places`` [P]: from 0 (first) to 1 (last); ``means`` [P] over ``n`` queries, with ``ci95`` [P]. ``first_last``:
    first minus last place; ``ends_middle``: mean of these two minus the middle. Both are contrasts within a query.
    ``index``: the Position Sensitivity Index of the means [PSI], which needs values from 0 up.

    The sentence with the answer is moved; beside it another one, the nearest in length, is moved to the same places
    (the control: it parts neighbours just as well), and the difference of the two curves is what the place does.

    p of the contrasts shuffles the places within passages, those of all queries of a passage alike; what is compared is
    the contrast divided by its standard error over passages, so that effects that differ by passage but are 0 on
    average are not taken for one. The interval is made from the same shuffles and leaves out 0 exactly where p < .05. p
    of the index draws the sign of each passage's departures from its own mean. Contrasts, control and tests are ours.

    When it misleads: no move holds fixed which sentences stand beside the answer's. A ranker that sees words across the
    end of a sentence can show an effect without looking at the place: on XQuAD ends − middle is -.08 standard
    deviations for one that counts the query's words in the best window of 64 words. Moving the control moves the
    answer's sentence by one at most, which in passages of three or four sentences is much: the difference then includes
    some of the effect twice. An answer beyond what a ranker reads is lost by truncation, which is no preference; such
    answers are counted.

    Worked example: two queries have .9, .5, .7 and .7, .3, .5 with the sentence first, in the middle and last. The
    means are .8, .4 and .6; first − last is .2, ends − middle .3 and the index 1 − .4/.8.

    >>> import numpy as np
    >>> from evenrank.position.curves import Versions, position_curve
    >>> values = np.array([[0.9, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> found = position_curve(Versions(values, np.zeros(2, np.int64), np.eye(3)[None]), level=0.0)
    >>> [round(one.mean, 4) for one in (found.first_last, found.ends_middle)], round(found.index.value, 4)
    ([0.2, 0.3], 0.5)
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    first_last: Contrast
    ends_middle: Contrast
    index: SensitivityIndex | None = None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        rows = zip(self.places.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": p, "mean": json_number(m), "ci95": list(ci) if ci else None} for p, m, ci in rows],
            **{name: getattr(self, name).to_dict() for name in CONTRASTS},
            **({} if self.index is None else {"index": self.index.to_dict()}),
        }


def place_weights(others: int, places: int) -> Floats:
    """Which versions make up each place [places, others + 1]: the nearest one, the mean of two that are equally near.

    Version j has the sentence after j of the ``others``; place x of 0 … 1 is nearest to version x · others.

    >>> place_weights(3, 3)
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    # In whole numbers, as rounding decides between one version and two.
    at = np.arange(places)[:, None] * others * 2
    distance = np.abs(at - 2 * (places - 1) * np.arange(others + 1))
    nearest = (distance == distance.min(axis=1, keepdims=True)).astype(np.float64)
    found: Floats = nearest / nearest.sum(axis=1, keepdims=True)
    return found


def contrast_weights(places: int) -> Floats:
    """The contrasts [2, places], as CONTRASTS names them; they make means over queries from means over places."""
    ends = np.zeros(places)
    ends[[0, -1]] = 1, -1
    far = np.abs(2 * np.arange(places) - (places - 1))
    middle = far == far.min()
    return np.stack([ends, np.abs(ends) / 2 - middle / middle.sum()])


def version_shapes(others: Ints, places: int) -> tuple[list[Ints], Ints, Floats]:
    """Which versions are needed for the places, by the number of other sentences [Q], and how they make places.

    The versions needed of each distinct number (a list [S]), the row of each query in it [Q], and the weights
    [S, places, K] of the needed versions, the first ones of K.
    """
    numbers, shape = np.unique(others, return_inverse=True)
    whole = [place_weights(int(number), places) for number in numbers]
    needed = [np.flatnonzero(one.any(axis=0)) for one in whole]
    weights = np.zeros((len(numbers), places, max(map(len, needed), default=0)))
    for row, (one, columns) in enumerate(zip(whole, needed, strict=True)):
        weights[row, :, : len(columns)] = one[:, columns]
    return needed, shape, weights


@dataclass(frozen=True, slots=True)
class Versions:
    """Values of the versions of passages: ``values`` [Q, K], NaN where a passage has fewer; ``shape`` [Q]: the row of
    ``weights`` [S, P, K] that makes places of them."""

    values: Floats
    shape: Ints
    weights: Floats

    def at_places(self) -> Floats:
        """The values at the places [Q, P]; NaN for a query with an undefined value."""
        filled = np.where(self.weights[self.shape].any(axis=1), self.values, 0.0)
        found: Floats = np.einsum("qk,qpk->qp", filled, self.weights[self.shape])
        return found

    def of(self, values: Floats, kept: Ints | slice = slice(None)) -> Versions:
        """Other values of the same versions, of the queries ``kept``."""
        return Versions(values[kept], self.shape[kept], self.weights)


def position_curve(
    versions: Versions, *, level: float | None = None, clusters: Ints | None = None, seed: int = 0
) -> PositionCurve:
    """The curve of the values over places; queries with an undefined value are left out.

    ``clusters`` [Q]: as in :func:`evenrank.position.buckets.by_bucket`. ``level``: what is added to the means before
    the index is computed; None: no index.
    """
    at = versions.at_places()
    known = np.asarray(~np.isnan(at).any(axis=1))
    count = at.shape[1]
    places = np.linspace(0, 1, count)
    if not known.any():
        none = Contrast(float("nan"), None, None)
        nothing = np.full(count, np.nan)
        index = None if level is None else SensitivityIndex(float("nan"), None, float("nan"), None)
        return PositionCurve(places, 0, nothing, (None,) * count, none, none, index)
    at, versions = at[known], versions.of(versions.values, np.flatnonzero(known))
    passages = cluster_ids(clusters, known)
    means, weights = at.mean(axis=0), contrast_weights(count)
    figures = weights @ means
    if not passages.any():
        alone = [Contrast(float(figure), None, None) for figure in figures]
        index = None
        if level is not None:
            index = SensitivityIndex(float(lowest_to_highest((means + level)[None])[0]), None, float("nan"), None)
        return PositionCurve(places, len(at), means, (None,) * count, alone[0], alone[1], index)
    draws = bootstrap_means(at, seed, clusters=passages)
    rng = np.random.default_rng(seed)
    null = _null_ratios(versions, passages, weights, rng)
    own = _ratios_of(_by_passage(at, passages)[None], np.bincount(passages), weights)
    found = [
        Contrast(float(figure), *tested(float(figure), float(own[1][0, c]), null[:, c]))
        for c, figure in enumerate(figures)
    ]
    index = None if level is None else _index(at, passages, draws, level, rng)
    ends = tuple(interval(draws[:, place]) for place in range(count))
    return PositionCurve(places, len(at), means, ends, found[0], found[1], index)


def _by_passage(rows: Floats, passages: Ints) -> Floats:
    """Sums [G, ·] of rows [Q, ·] over passages."""
    return np.stack([np.bincount(passages, column) for column in rows.T], axis=1)


def _ratios_of(sums: Floats, sizes: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Ratios and standard errors [R, C] of contrasts ``weights`` [C, P], from sums of places [R, G, P]."""
    of_passages = sums @ weights.T
    queries = int(sizes.sum())
    means = of_passages.sum(axis=1) / queries
    residuals = of_passages - sizes[:, None] * means[:, None]
    error = np.stack([errors(residuals[..., c], queries) for c in range(len(weights))], axis=1)
    return ratios(means, error), error


def _null_ratios(versions: Versions, passages: Ints, weights: Floats, rng: np.random.Generator) -> Floats:
    """Ratios [PERMUTATIONS, C] of the contrasts with the versions of each passage shuffled.

    All queries of a passage are shuffled alike, so those whose answers have the same places can be added up first.
    """
    shapes = len(versions.weights)
    units, row = np.unique(passages * shapes + versions.shape, return_inverse=True)
    passage, table = units // shapes, versions.weights[units % shapes]
    there = table.any(axis=1)
    sums = _by_passage(np.where(there[row], versions.values, 0.0), row)
    sizes = np.bincount(passages)
    # Places of a passage whose answers have different numbers of places: rows that belong together.
    first = np.searchsorted(passage, np.arange(len(sizes)))
    found = []
    for count in chunks(table.size):
        keys = rng.random((count, len(sizes), sums.shape[1]))[:, passage]
        order = np.argsort(np.where(there, keys, 2.0), axis=2)
        shuffled = np.take_along_axis(np.broadcast_to(sums, order.shape), order, axis=2)
        at = np.einsum("rgk,gpk->rgp", shuffled, table)
        found.append(_ratios_of(np.add.reduceat(at, first, axis=1), sizes, weights)[0])
    return np.concatenate(found)


def _index(at: Floats, passages: Ints, draws: Floats, level: float, rng: np.random.Generator) -> SensitivityIndex:
    """The index of values at places [Q, P]; under no effect the departures of a passage's curve from its mean are as
    likely to be the other way round: their signs are drawn, passage by passage."""
    means = at.mean(axis=0)
    value = float(lowest_to_highest((means + level)[None])[0])
    departures = _by_passage(at - at.mean(axis=1, keepdims=True), passages) / len(at)
    drawn = [signs(len(departures), count, rng) @ departures for count in chunks(len(departures))]
    null = lowest_to_highest(np.concatenate(drawn) + means.mean() + level)
    return SensitivityIndex(
        value,
        interval(lowest_to_highest(draws + level)),
        float(np.nanmean(null)) if not np.isnan(null).all() else float("nan"),
        p_of(null, value),
    )
