"""A score as a function of the place of one sentence, and what can be told of it.

[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.files.types import EQUAL
from evenrank.stats.clusters import cluster_means
from evenrank.stats.compare import LEAST_SAMPLE, Comparison, compare, corrected, intersection_union, undecidable
from evenrank.stats.estimate import estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]
UNIT = "passages"
"""What an interval or a test of this folder counts: a passage, with all its queries."""
_NO_MIDDLE = 2
"""So many places are the ends alone."""


CONTRASTS = ("first_last", "ends_middle")


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the place of the same sentence in the same passage.

    ``places`` [P]: from 0 (first) to 1 (last); ``means`` [P] over passages, each of its own of the ``n`` queries, with
    ``ci95`` [P]. ``first_last``: first minus last place; ``ends_middle``: mean of these two minus the middle, shown
    only where each of them is by itself, on the same side (``ends``: first and last minus the middle): on a curve that
    only falls, the mean of the ends is not the middle either. All are contrasts within a query.

    The sentence with the answer is moved; for each place beside its own another sentence, the nearest in length, is
    moved there while the answer's stays where it is (the control: it parts neighbours just as well). The difference of
    the two curves is what the place does.

    Queries of one passage are averaged first, so that each passage counts alike. The contrasts are tested over passages
    (:func:`evenrank.stats.compare.compare`), with Holm's correction over the two.
    Of ``ends_middle`` p is the larger of the two ends' [BERGER82], 1 where they are on different sides.
    Contrasts and control are ours.

    When it misleads: no move holds fixed which sentences stand beside the answer's. A ranker that sees words across the
    end of a sentence can show an effect without looking at the place: on XQuAD ends − middle is -.24 standard
    deviations for one that counts the query's words in the best window of 64 words, as an answer at an end has fewer
    neighbours. An answer beyond what a ranker
    reads is lost by truncation, which is no preference: where less than 95 % of the words are read nothing is said of
    one.

    Worked example: two queries have .9, .5, .7 and .7, .3, .5 with the sentence first, in the middle and last. The
    means are .8, .4 and .6; first − last is .2 and ends − middle .3.

    >>> import numpy as np
    >>> from evenrank.probes.position_curve import position_curve
    >>> curve = position_curve(np.array([[0.9, 0.5, 0.7], [0.7, 0.3, 0.5]]))
    >>> [round(c.mean, 4) for c in (curve.first_last, curve.ends_middle)]
    [0.2, 0.3]
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    first_last: Comparison
    ends_middle: Comparison
    ends: tuple[Comparison, Comparison]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        rows = zip(self.places, self.means, self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": place, "mean": mean, "ci95": ends} for place, mean, ends in rows],
            **{name: getattr(self, name) for name in CONTRASTS},
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
    weights: Floats = nearest / nearest.sum(axis=1, keepdims=True)
    return weights


def contrast_weights(places: int) -> Floats:
    """The contrasts [4, places]: CONTRASTS, and each end minus the middle; they make means over queries from means over
    places."""
    first, last = np.eye(places)[[0, -1]]
    far = np.abs(2 * np.arange(places) - (places - 1))
    middle = (far == far.min()) / (far == far.min()).sum()
    return np.stack([first - last, (first + last) / 2 - middle, first - middle, last - middle])


def version_shapes(others: Ints, places: int) -> tuple[list[Ints], Ints, Floats]:
    """Which versions are needed for the places, by the number of other sentences [Q], and how they make places.

    The versions needed of each distinct number (a list [S]), the row of each query in it [Q], and the weights
    [S, places, K] of the needed versions, the first ones of K.
    """
    numbers, shape = np.unique(others, return_inverse=True)
    matrices = [place_weights(int(number), places) for number in numbers]
    needed = [np.flatnonzero(matrix.any(axis=0)) for matrix in matrices]
    weights = np.zeros((len(numbers), places, max(map(len, needed), default=0)))
    for row, (matrix, columns) in enumerate(zip(matrices, needed, strict=True)):
        weights[row, :, : len(columns)] = matrix[:, columns]
    return needed, shape, weights


def position_curve(at: Floats, *, clusters: Ints | None = None, why: str | None = None) -> PositionCurve:
    """The curve of the values ``at`` places [Q, P]; queries with an undefined value are left out.

    ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own). ``why``: a reason to tell
    nothing of the contrasts.
    """
    known = np.asarray(~np.isnan(at).any(axis=1))
    count = at.shape[1]
    rows, n = np.empty((0, count)), int(known.sum())
    if n:
        rows = cluster_means(at[known], np.arange(n) if clusters is None else clusters[known])
    first_last, middle, first, last = (_compared(rows @ weight) for weight in contrast_weights(count))
    # Shown where both ends are on the same side.
    both = intersection_union(first, last)
    contrasts = [first_last, replace(middle, p=both.p, mde=both.mde, reason=both.reason)]
    if count == _NO_MIDDLE:
        contrasts[1] = undecidable(None, first_last.n, "two places have no middle", UNIT)
    contrasts = corrected(contrasts)
    if why is not None:
        contrasts = [undecidable(c.mean, c.n, why, UNIT) for c in contrasts]
    means = rows.mean(axis=0) if n else np.full(count, np.nan)
    ends = tuple(estimate(column, unit=UNIT).ci95 for column in rows.T)
    return PositionCurve(np.linspace(0, 1, count), n, means, ends, contrasts[0], contrasts[1], (first, last))


def _compared(values: Floats) -> Comparison:
    """Whether the mean of values of passages differs from 0.

    Where there are 15 or more and all are 0 (no score changes), no difference is shown.
    """
    # What is left of equal scores is rounding.
    values = np.where(np.abs(values) <= EQUAL, 0.0, values)
    if not len(values):
        return undecidable(None, 0, "no value is defined", UNIT)
    if len(values) >= LEAST_SAMPLE and not values.any():
        return Comparison(0.0, None, len(values), UNIT, p=1.0, mde=0.0)
    return compare(values, unit=UNIT)
