"""What a classifier recovers of the groups from vectors: held-out balanced accuracy of a linear and a non-linear one.

When it misleads: a probe that fails shows that these classifiers fail, with this many rows, not that nothing is there.
An eraser that was fitted on the rows that the probe is tested on pushes a linear probe below chance: it made the means
of all rows equal, so that what is left of a difference among the rows trained on is the opposite among the others. How
much an eraser does for rows that it has not seen is told by fitting it on the training rows alone. Texts that are there
twice, once for each group, push every probe that goes by neighbours below chance once the group is erased: they have to
be in the same fold (:func:`neighbourhoods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenrank.files.arguments import check_ranges
from evenrank.files.types import Array
from evenrank.measures.inference import (
    LEAST,
    SIGNIFICANT,
    Comparison,
    cluster_means,
    compare_parts,
    corrected,
    from_error,
    mean_of_samples,
)
from evenrank.models.vectors import Doubles, Flags, Integers

FOLDS = 5
_BLOCK = 1024
_SAME = 1e-9
_INNER = 3
"""Folds of the training rows on which a probe is tuned."""
_TUNED = 300
"""The most rows of a group that a probe is tuned on."""
_FITTED = 3000
"""The most rows that a machine is trained on: time grows with their cube."""
_RIDGES = np.array([1e-4, 1e-3, 1e-2, 1e-1, 1.0])
_LINEAR = (("linear", 1.0),)
_KERNELS = (("rbf", 0.25), ("rbf", 1.0), ("rbf", 4.0), ("squares", 1.0), ("quadratic", 1.0))
Kernel = tuple[str, float]
"""A name and a width."""


@dataclass(frozen=True, slots=True)
class Recovered(Comparison):
    """A probe's balanced accuracy, ``mean``: over groups, of the share of held-out rows that it gets right.

    What is tested is whether it is above ``chance``, 1 / the number of groups; ``noticeable`` is how far above. A probe
    that is below chance by more than its error tells nothing.
    """

    chance: float = 0.5

    @property
    def accuracy(self) -> float:
        """The balanced accuracy."""
        return float("nan") if self.mean is None else self.mean


@dataclass(frozen=True, slots=True)
class GroupProbe:
    """What a ``linear`` probe and a non-linear one, a tuned ``kernel``, recover; Holm-corrected over the two."""

    linear: Recovered
    kernel: Recovered

    @property
    def best(self) -> Recovered:
        """That of the better probe: one that is shown to be above chance, if either is, and of these the higher."""
        return max((self.kernel, self.linear), key=lambda one: (one.shown, one.why is None, one.accuracy))


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


def probe_groups(
    rows: Array | Sequence[Array],
    groups: Integers,
    folds: Integers,
    parts: Integers | None = None,
    *,
    unit: str = "rows",
    seed: int = 0,
) -> GroupProbe:
    """What least-squares support vector machines recover of the ``groups`` [N] from ``rows`` [N, D], each row held out
    once [Suykens & Vandewalle 1999].

    ``folds`` [N]: in which fold a row is held out. Where what was done to the rows was fitted on rows, there are as
    many ``rows`` as folds: those of each fold, fitted without the rows that are held out. ``parts`` [N]: rows that are
    in the same fold, and count as one, as :func:`neighbourhoods` finds them (None: each row is one). ``unit``: what
    rows are.

    The linear machine's cost, and the other one's kernel (RBF, or a polynomial of degree 2), width and cost are those
    with the best balanced accuracy over three folds of up to 300 rows of each group, of the training rows alone. Groups
    weigh alike, whatever their size; rows are moved by their mean and divided by their mean length (one number, so that
    linear stays linear). At most 3,000 rows are trained on, as many of each group.
    """
    check_ranges(seed=seed)
    parts = np.arange(len(groups)) if parts is None else parts
    count = len(np.unique(groups))
    families = {"linear": _LINEAR, "kernel": _KERNELS}
    right = {family: np.zeros(len(groups), np.bool_) for family in families}
    for place, fold in enumerate(np.unique(folds).tolist()):
        test = folds == fold
        used: Doubles = np.asarray(rows if isinstance(rows, np.ndarray) else rows[place], np.float64)
        used = _scaled(used, ~test)
        for family, correct in right.items():
            chosen, ridge = _tuned(used[~test], groups[~test], parts[~test], families[family], seed)
            fitted = np.flatnonzero(~test)[draw_rows(groups[~test], _FITTED // count, seed)]
            correct[test] = _predicted(chosen, ridge, used[fitted], groups[fitted], used[test]) == groups[test]
    found = [balanced(correct, groups, parts, unit) for correct in right.values()]
    linear, kernel = (replace(one, holm_p=after.holm_p) for one, after in zip(found, corrected(found), strict=True))
    return GroupProbe(linear, kernel)


def _scaled(rows: Doubles, train: Flags) -> Doubles:
    """The rows moved and divided so that those to train on have the mean 0 and the mean length 1."""
    moved: Doubles = rows - rows[train].mean(axis=0)
    length = float(np.sqrt((moved[train] ** 2).sum(axis=1).mean()))
    # Of equal rows what is left is rounding.
    return moved / length if length > _SAME else moved * 0.0


def _tuned(
    rows: Doubles, groups: Integers, parts: Integers, kernels: Sequence[Kernel], seed: int
) -> tuple[Kernel, float]:
    """The kernel and the ridge with the best balanced accuracy over folds of the rows [N, D]; of equals the first."""
    drawn = draw_rows(groups, _TUNED, seed)
    rows, groups, parts = rows[drawn], groups[drawn], np.unique(parts[drawn], return_inverse=True)[1]
    folds = deal_folds(parts, groups, _INNER, seed)
    accuracy = np.zeros((len(kernels), len(_RIDGES)))
    for number, kernel in enumerate(kernels):
        right = np.zeros((len(_RIDGES), len(groups)), np.bool_)
        for fold in range(_INNER):
            train = folds != fold
            if not train.all() and train.any():
                right[:, ~train] = _path(kernel, rows[train], groups[train], rows[~train]) == groups[~train]
        accuracy[number] = np.mean([right[:, groups == group].mean(axis=1) for group in np.unique(groups)], axis=0)
    best = np.unravel_index(int(accuracy.argmax()), accuracy.shape)
    return kernels[int(best[0])], float(_RIDGES[best[1]])


def _path(kernel: Kernel, rows: Doubles, groups: Integers, new: Doubles) -> Integers:
    """The groups of the ``new`` rows [M] by a machine trained on ``rows`` [N, D], with each of the ridges [R, M]."""
    names, roots, sides = _weighted(groups)
    values, vectors = np.linalg.eigh(roots[:, None] * _similar(kernel, rows, rows) * roots)
    left = (_similar(kernel, new, rows) * roots) @ vectors
    right = vectors.T @ (roots[:, None] * sides)
    shrunk = right / (values[:, None] + len(rows) * _RIDGES[:, None, None])
    found: Integers = names[(left @ shrunk).argmax(axis=2)]
    return found


def _predicted(kernel: Kernel, ridge: float, rows: Doubles, groups: Integers, new: Doubles) -> Integers:
    """The groups of the ``new`` rows [M] by a machine trained on ``rows`` [N, D] with one ridge."""
    names, roots, sides = _weighted(groups)
    matrix = roots[:, None] * _similar(kernel, rows, rows) * roots
    matrix[np.diag_indices(len(rows))] += len(rows) * ridge
    weights = roots[:, None] * np.linalg.solve(matrix, roots[:, None] * sides)
    found: Integers = names[(_similar(kernel, new, rows) @ weights).argmax(axis=1)]
    return found


def _weighted(groups: Integers) -> tuple[Integers, Doubles, Doubles]:
    """The groups' names [K], the roots of the rows' weights [N], the same sum for each group, and which group each row
    is of [N, K]."""
    names, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    sides = (place[:, None] == np.arange(len(names))) - 1 / len(names)
    return names, np.sqrt(len(groups) / len(names) / sizes[place]), sides


def _similar(kernel: Kernel, rows: Doubles, others: Doubles) -> Doubles:
    """The kernel [N, M] of rows [N, D] and others [M, D], of mean length 1, with a constant for what all share."""
    name, width = kernel
    products: Doubles = rows @ others.T
    if name == "linear":
        return 1 + products
    if name == "squares":
        return 1 + products**2
    if name == "quadratic":
        return 1 + (0.5 + 0.5 * products) ** 2
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * products
    found: Doubles = 1 + np.exp(-width * squares)
    return found


def balanced(correct: Flags, groups: Integers, parts: Integers | None = None, unit: str = "rows") -> Recovered:
    """The balanced accuracy of rows that are ``correct`` [N] or not, against chance.

    A group's share is the mean over its ``parts`` [N] (None: each row is one), so that rows that are alike count as
    one; fewer than 15 parts of a group tell nothing.
    """
    parts = np.arange(len(groups)) if parts is None else parts
    names = np.unique(groups)
    chance = 1 / len(names)
    shares = [cluster_means(correct[of] - chance, parts[of]) for of in (groups == name for name in names)]
    found = compare_parts(shares, [chance] * len(names), unit=unit)
    if found.p is None and found.ci95 is None and min(map(len, shares)) >= LEAST:
        # Each group is all right or all wrong: without an error.
        alike = replace(mean_of_samples(shares, [chance] * len(names)), freedom=min(map(len, shares)) - 1.0)
        found = from_error(alike, len(groups), unit)
    mean = None if found.mean is None else found.mean + chance
    ci95 = None if found.ci95 is None else (max(0.0, found.ci95[0] + chance), min(1.0, found.ci95[1] + chance))
    p, noticeable, why = found.p, found.noticeable, found.why
    if p is not None and p < SIGNIFICANT and found.mean is not None and found.mean < 0:
        p, noticeable, why = None, None, "the probe is right less often than by chance, misled by neighbours"
    return Recovered(mean, ci95, len(groups), unit, p, None, noticeable, found.method, why, chance)
