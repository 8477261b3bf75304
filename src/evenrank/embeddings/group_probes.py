"""What a classifier recovers of the groups from vectors: held-out balanced accuracy, linear and with an RBF kernel.

When it misleads: a probe that fails shows that these two classifiers fail, with this many rows, not that nothing is
there. An eraser that was fitted on the rows that the probe is tested on pushes a linear probe below chance: it made the
means of all rows equal, so that what is left of a difference among the rows trained on is the opposite among the
others. How much an eraser does for rows that it has not seen is told by fitting it on the training rows alone. Texts
that are there twice, once for each group, push every probe that goes by neighbours below chance once the group is
erased: they have to be in the same fold (:func:`neighbourhoods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from evenrank.io.errors import require
from evenrank.io.ranges import check_ranges, seed_32
from evenrank.io.types import Array

from ._rows import Doubles, Integers

FOLDS = 5
_DRAWS = 2000
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Recovered:
    """A probe's balanced accuracy, the mean over groups of the share of held-out rows that it gets right; and the 95 %
    interval, by bootstrap over the rows of each group."""

    accuracy: float
    ci95: tuple[float, float]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class GroupProbe:
    """What a ``linear`` and an ``rbf`` probe recover."""

    linear: Recovered
    rbf: Recovered

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"linear": self.linear.to_dict(), "rbf": self.rbf.to_dict()}


def require_probes() -> None:
    """Raises MissingExtraError if the library of the classifiers is not installed."""
    require("recovering the groups", "embeddings", "sklearn")


def draw_rows(groups: Integers, per_group: int, seed: int = 0) -> Integers:
    """The rows to probe, ascending: of each group from 0 up to ``per_group`` at random; −1 and below are left out."""
    rng = np.random.default_rng(seed)
    drawn = [
        rng.permutation(np.flatnonzero(groups == group))[:per_group]
        for group in np.unique(groups[groups >= 0]).tolist()
    ]
    return np.sort(np.concatenate([np.empty(0, np.int64), *drawn]))


def neighbourhoods(rows: Array) -> Integers:
    """The number, from 0, of each row's neighbourhood [N]: a row is in that of the row nearest to it."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    found = np.asarray(rows, np.float32)
    squares = (found**2).sum(axis=1)
    nearest = np.zeros(len(found), np.int64)
    for start in range(0, len(found), _BLOCK):
        part = slice(start, start + _BLOCK)
        distances = squares - 2 * found[part] @ found.T
        own = np.arange(len(distances))
        distances[own, own + start] = np.inf
        nearest[part] = distances.argmin(axis=1)
    links = coo_matrix((np.ones(len(found)), (np.arange(len(found)), nearest)), (len(found), len(found)))
    numbers: Integers = connected_components(links, directed=False)[1].astype(np.int64)
    return numbers


def deal_folds(parts: Integers, groups: Integers, folds: int = FOLDS, seed: int = 0) -> Integers:
    """The fold of each row [N], from 0: rows of one of the ``parts`` [N] together, parts at random, groups even.

    ``groups`` [N] from 0. A part goes where, after it, the groups are shared most evenly.
    """
    rng = np.random.default_rng(seed)
    counts = np.zeros((int(parts.max()) + 1, int(groups.max()) + 1))
    np.add.at(counts, (parts, groups), 1 / np.maximum(np.bincount(groups), 1)[groups])
    filled, fold_of = np.zeros((folds, counts.shape[1])), np.empty(len(counts), np.int64)
    for part in rng.permutation(len(counts)).tolist():
        # What the sum of squares grows by.
        fold_of[part] = (filled @ counts[part]).argmin()
        filled[fold_of[part]] += counts[part]
    found: Integers = fold_of[parts]
    return found


def probe_groups(rows: Array | Sequence[Array], groups: Integers, folds: Integers, *, seed: int = 0) -> GroupProbe:
    """What support vector machines recover of the ``groups`` [N] from ``rows`` [N, D], each row held out once.

    ``folds`` [N]: in which fold a row is held out. Where what was done to the rows was fitted on rows, there are as
    many ``rows`` as folds: those of each fold, fitted without the rows that are held out.

    C = 1; for the RBF kernel scikit-learn's γ "scale"; groups weigh alike, whatever their size; rows are divided by
    their mean length (one number, so that linear stays linear). Chance is 1 / the number of groups. Raises
    MissingExtraError without scikit-learn.
    """
    check_ranges(seed=seed)
    require_probes()
    from sklearn.svm import SVC

    right = {kernel: np.zeros(len(groups), np.bool_) for kernel in ("linear", "rbf")}
    for place, fold in enumerate(np.unique(folds).tolist()):
        test = folds == fold
        used: Doubles = np.asarray(rows if isinstance(rows, np.ndarray) else rows[place], np.float64)
        length = np.sqrt((used[~test] ** 2).sum(axis=1).mean())
        used = used / (length if length > 0 else 1.0)
        for kernel, correct in right.items():
            svm = SVC(kernel=kernel, C=1.0, gamma="scale", class_weight="balanced", random_state=seed_32(seed))
            svm.fit(used[~test], groups[~test])
            correct[test] = svm.predict(used[test]) == groups[test]
    return GroupProbe(*(balanced(correct, groups, seed) for correct in right.values()))


def balanced(correct: Array, groups: Integers, seed: int = 0) -> Recovered:
    """Balanced accuracy of rows that are ``correct`` [N] or not; the draws of each group are binomial."""
    rng = np.random.default_rng(seed)
    numbers = [(int(correct[groups == group].sum()), int((groups == group).sum())) for group in np.unique(groups)]
    draws = np.mean([rng.binomial(of, right / of, _DRAWS) / of for right, of in numbers], axis=0)
    low, high = np.percentile(draws, [2.5, 97.5])
    return Recovered(float(np.mean([right / of for right, of in numbers])), (float(low), float(high)))
