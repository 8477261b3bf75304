"""Least-squares concept erasure (LEACE) [Belrose et al. 2023]: every group gets the same mean.

When it misleads: the guarantee covers the words it was fitted on and linear classifiers: other words keep part of their
bias, and a classifier with a kernel may recover it from the fitted ones. The words that represent the groups decide
what is erased, and meaning that is correlated with the group is erased too.

Worked example: two words of one group at 1, two of the other at −1 on the first axis; afterwards both means are 0.

>>> import numpy as np
>>> from evenrank.search.embeddings import fit_leace
>>> rows, groups = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0]]), np.array([0, 0, 1, 1])
>>> (fit_leace(rows, groups)(rows).round(6) + 0.0).tolist()
[[0.0, 2.0], [0.0, -2.0], [0.0, 2.0], [0.0, -2.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.models.vectors import Doubles, Flags, Integers, Vectors, first_words, row_numbers, unit_rows

BLOCK = 4096
"""Rows in float64 at once."""


class GroupMeans:
    """The number of rows of each of G groups, ``counts`` [G], and their ``means`` [G, D], in float64."""

    def __init__(self, groups: int, dimensions: int) -> None:
        self.counts: Integers = np.zeros(groups, np.int64)
        self.means: Doubles = np.zeros((groups, dimensions))

    def add(self, rows: Array, groups: Integers) -> None:
        """Adds a block of rows [N, D] of these groups [N], from 0 to G − 1."""
        found = np.asarray(rows, dtype=np.float64)
        for group in np.unique(groups).tolist():
            own = found[groups == group]
            self.counts[group] += len(own)
            self.means[group] += (own.mean(axis=0) - self.means[group]) * (len(own) / self.counts[group])

    @property
    def mean(self) -> Doubles:
        """The mean of all rows [D]."""
        found: Doubles = self.counts @ self.means / self.counts.sum()
        return found

    def gap(self, groups: int | None = None) -> float:
        """The largest distance between the means of two of the first ``groups`` (None: all) with rows; 0 of one."""
        means = self.means[:groups][self.counts[:groups] > 0]
        return max((float(np.linalg.norm(a - b)) for a in means for b in means), default=0.0)


class Moments(GroupMeans):
    """The same, with the covariance of all rows.

    Blocks are merged as in Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", eq. 2.1: sums
    of squares about the means, so that no digits are lost where the mean is large.
    """

    def __init__(self, groups: int, dimensions: int) -> None:
        super().__init__(groups, dimensions)
        self._scatter: Doubles = np.zeros((dimensions, dimensions))

    def add(self, rows: Array, groups: Integers) -> None:
        """See :meth:`GroupMeans.add`."""
        found = np.asarray(rows, dtype=np.float64)
        if not len(found):
            return
        before, own = int(self.counts.sum()), found.mean(axis=0)
        centred = found - own
        self._scatter += centred.T @ centred
        if before:
            apart = own - self.mean
            self._scatter += np.outer(apart, apart) * (before * len(found) / (before + len(found)))
        super().add(found, groups)

    @property
    def covariance(self) -> Doubles:
        """The covariance of all rows [D, D], divided by their number."""
        found: Doubles = self._scatter / self.counts.sum()
        return found

    @property
    def cross(self) -> Doubles:
        """The covariance of the rows with one column per group, 1 for its own rows, else 0 [D, G]."""
        shares = self.counts / self.counts.sum()
        found: Doubles = (shares[:, None] * (self.means - self.mean)).T
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Eraser:
    """x ↦ x − ``left`` ``right`` (x − ``mean``), with ``left`` [D, k], ``right`` [k, D], ``mean`` [D], all float64."""

    left: Doubles
    right: Doubles
    mean: Doubles

    def __call__(self, rows: Array) -> Doubles:
        """Rows [N, D] after erasure."""
        found = np.asarray(rows, dtype=np.float64)
        erased: Doubles = found - ((found - self.mean) @ self.right.T) @ self.left.T
        return erased


def fit_leace(rows: Array, groups: Integers) -> Eraser:
    """The least change, in squared distance over the ``rows`` [N, D], after which every group has the same mean.

    With equal means no linear classifier does better than a constant, for any convex loss (Belrose et al. 2023, theorem
    3.1); the change is that of theorem 4.3: x − W⁺ P W (x − μ), with the whitening W = Σxx^(−1/2), the orthogonal
    projection P on the columns of W Σxz, and one column of z per group. ``groups`` [N]: a number for each row. Computed
    in float64, without the shrinkage of the covariance and the bound on its trace that the authors' package applies by
    default: the bound, when active, voids the guarantee.

    Raises EvenrankError for fewer than two groups.
    """
    found = np.asarray(rows, dtype=np.float64)
    names, number = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise EvenrankError(f"LEACE: expected words of two groups or more, found {len(names)}")
    moments = Moments(len(names), found.shape[1])
    moments.add(found, number)
    return eraser_of(moments)


def eraser_of(moments: Moments) -> Eraser:
    """The eraser of :func:`fit_leace` from the moments of the rows; groups without rows do not matter."""
    values, axes = np.linalg.eigh(moments.covariance)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps * 10
    root = np.sqrt(values[kept])
    white, back = (axes[:, kept] / root) @ axes[:, kept].T, (axes[:, kept] * root) @ axes[:, kept].T
    u, s, _ = np.linalg.svd(white @ moments.cross, full_matrices=False)
    u = u[:, s > 1e-9 * s[0]] if s[0] > 0 else u[:, :0]
    return Eraser(back @ u, u.T @ white, moments.mean)


@dataclass(frozen=True, slots=True, eq=False)
class Erased:
    """Vectors after erasure from the ``neutral`` words [V]; all others are scaled to length 1.

    ``rows`` and ``groups`` [N]: the words that the eraser was fitted on. ``gap``: the largest distance between the
    means of two groups there, before and after, in float32 as stored. ``missing``: words of a group without a vector.
    """

    vectors: Vectors
    eraser: Eraser
    neutral: Flags
    rows: Integers
    groups: Integers
    gap: tuple[float, float]
    missing: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Erased({self.vectors!r})\n{self.text('the words given')}"

    def text(self, what: str) -> str:
        """A summary in lines; ``what`` describes the words of the groups."""
        groups, erased = len(np.unique(self.groups)), self.eraser.left.shape[1]
        lines = [
            f"LEACE fitted on {counted(len(self.rows), 'word')} of {counted(groups, 'group')} ({what}),"
            f" {counted(erased, 'direction')} erased",
            f"largest distance between the means of two groups: {self.gap[0]:.1e} before, {self.gap[1]:.1e} after",
            f"neutral words: {int(self.neutral.sum())}",
        ]
        if self.missing:
            lines.append(f"words of the groups without a vector: {len(self.missing)}: {first_words(self.missing, 20)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "neutral": int(self.neutral.sum()),
            "fitted_on": len(self.rows),
            "directions": int(self.eraser.left.shape[1]),
            "gap": {"before": self.gap[0], "after": self.gap[1]},
            "missing": list(self.missing),
        }


@checked
def leace(vectors: Vectors, groups: Sequence[Sequence[str]], neutral: Flags, *, in_place: bool = False) -> Erased:
    """Erases the group from the vectors of the ``neutral`` words [V], fitted on the words of the ``groups``.

    Fitted on and applied to vectors of length 1, which are not rescaled afterwards: that would void the guarantee.
    Words of the groups that are not neutral are used for the fit only. ``in_place``: overwrite the matrix. Raises
    EvenrankError if a word is in two groups, if fewer than two groups have a word with a vector, and for ``in_place``
    with a read-only matrix.
    """
    if in_place and not vectors.matrix.flags.writeable:
        raise EvenrankError("vectors: a read-only matrix cannot be debiased in place")
    seen: dict[str, int] = {}
    for number, words in enumerate(groups):
        for word in words:
            if seen.setdefault(word, number) != number:
                raise EvenrankError(f"LEACE: {word} is in two groups, {seen[word] + 1} and {number + 1}")
    row_of = row_numbers(vectors.words, seen)
    rows = np.array(sorted(row_of.values()), dtype=np.int64)
    numbers = np.array([seen[vectors.words[row]] for row in rows], dtype=np.int64)
    fitted = unit_rows(vectors.matrix[rows])
    eraser = fit_leace(fitted, numbers)
    gap = _gap(fitted, numbers), _gap(eraser(fitted).astype(np.float32).astype(np.float64), numbers)
    matrix = vectors.matrix if in_place else np.empty_like(vectors.matrix, order="C")
    for start in range(0, len(matrix), BLOCK):
        part = slice(start, start + BLOCK)
        block = unit_rows(vectors.matrix[part])
        matrix[part] = np.where(neutral[part, None], eraser(block), block)
    found = Vectors(vectors.words, matrix)
    missing = tuple(word for word in seen if word not in row_of)
    return Erased(found, eraser, neutral, rows, numbers, gap, missing)


def _gap(rows: Doubles, groups: Integers) -> float:
    means = GroupMeans(int(groups.max()) + 1, rows.shape[1])
    means.add(rows, groups)
    return means.gap()
