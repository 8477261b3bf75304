"""Least-squares concept erasure (LEACE) [Belrose et al. 2023]: no linear classifier tells the groups apart.

When it misleads: the guarantee is for the words that it was fitted on and for linear classifiers: other words keep part
of their side, and a classifier with a kernel may find it in the fitted ones. Which words stand for the groups decides
what is erased, and meaning that goes with the group goes too.

Worked example: two words of a group at 1, two of the other at −1 on the first axis: after it both means are 0 there.

>>> import numpy as np
>>> from evenrank.embeddings import fit_leace
>>> rows, groups = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0]]), np.array([0, 0, 1, 1])
>>> (fit_leace(rows, groups)(rows).round(6) + 0.0).tolist()
[[0.0, 2.0], [0.0, -2.0], [0.0, 2.0], [0.0, -2.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank._wording import counted
from evenrank.io import EvenrankError

from .debias import Flags, rows_of, some, unit
from .vectors import Vectors

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]
_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Eraser:
    """x ↦ x − ``left`` ``right`` (x − ``mean``), with ``left`` [D, k], ``right`` [k, D], ``mean`` [D], all float64."""

    left: Doubles
    right: Doubles
    mean: Doubles

    def __call__(self, rows: np.ndarray[Any, Any]) -> Doubles:
        """Rows [N, D] after erasure."""
        found = np.asarray(rows, dtype=np.float64)
        erased: Doubles = found - ((found - self.mean) @ self.right.T) @ self.left.T
        return erased


def fit_leace(rows: np.ndarray[Any, Any], groups: Integers) -> Eraser:
    """The least change, in squared distance over the ``rows`` [N, D], after which every group has the same mean.

    Equal means are what keeps every linear classifier, on every convex loss, from doing better than a constant
    (Belrose et al. 2023, theorem 3.1); the change is theorem 4.3: x − W⁺ P W (x − μ), W the whitening Σxx^(−1/2), P the
    orthogonal projection on the columns of W Σxz, z one column a group. ``groups`` [N]: a number for each row.
    In float64, without the shrinkage of the covariance and the bound on its trace that the authors' package has by
    default: the second takes the guarantee away where it acts.

    Raises EvenrankError for fewer than two groups.
    """
    found = np.asarray(rows, dtype=np.float64)
    names, number = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise EvenrankError(f"LEACE: expected words of two groups or more, found {len(names)}")
    mean = found.mean(axis=0)
    centred = found - mean
    z = np.eye(len(names))[number]
    cross = centred.T @ (z - z.mean(axis=0)) / len(found)
    values, axes = np.linalg.eigh(centred.T @ centred / len(found))
    kept = values > values[-1] * len(mean) * np.finfo(np.float64).eps * 10
    root = np.sqrt(values[kept])
    white, back = (axes[:, kept] / root) @ axes[:, kept].T, (axes[:, kept] * root) @ axes[:, kept].T
    u, s, _ = np.linalg.svd(white @ cross, full_matrices=False)
    u = u[:, s > 1e-9 * s[0]] if s[0] > 0 else u[:, :0]
    return Eraser(back @ u, u.T @ white, mean)


@dataclass(frozen=True, slots=True, eq=False)
class Erased:
    """Vectors after erasure: those of ``neutral`` words [V] changed, all others of length 1.

    ``rows`` and ``groups`` [N]: the words that the eraser was fitted on. ``gap``: the largest distance between the
    means of two groups there, before and after, in float32 as kept. ``missing``: words of a group that have no vector.
    """

    vectors: Vectors
    eraser: Eraser
    neutral: Flags
    rows: Integers
    groups: Integers
    gap: tuple[float, float]
    missing: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Erased({self.vectors!r})\n{self.text('its words')}"

    def text(self, what: str) -> str:
        """What was done, in lines; ``what``: which words the groups hold."""
        groups, erased = len(np.unique(self.groups)), self.eraser.left.shape[1]
        lines = [
            f"LEACE fitted on {counted(len(self.rows), 'word')} of {counted(groups, 'group')} ({what}),"
            f" {counted(erased, 'direction')} erased",
            f"largest distance between the means of two groups: {self.gap[0]:.1e}, after it {self.gap[1]:.1e}",
            f"neutral words: {int(self.neutral.sum())}",
        ]
        if self.missing:
            lines.append(f"words of the groups without a vector: {len(self.missing)}: {some(self.missing, 20)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "neutral": int(self.neutral.sum()),
            "fitted_on": len(self.rows),
            "directions": int(self.eraser.left.shape[1]),
            "gap": {"before": self.gap[0], "after": self.gap[1]},
            "missing": list(self.missing),
        }


def leace(vectors: Vectors, groups: Sequence[Sequence[str]], neutral: Flags, *, in_place: bool = False) -> Erased:
    """Erases which group a word is of from every ``neutral`` word [V]; the eraser is fitted on the ``groups``' words.

    Fitted and applied on vectors of length 1; they are not brought to length 1 again, which would undo the guarantee.
    Words that are given but not neutral count for the fit and stay as they are. Raises EvenrankError where a word
    stands in two groups or fewer than two groups have a word with a vector, and where ``in_place`` is asked of a matrix
    that cannot be written.
    """
    if in_place and not vectors.matrix.flags.writeable:
        raise EvenrankError("vectors: this matrix cannot be written, so it cannot be debiased in place")
    seen: dict[str, int] = {}
    for number, words in enumerate(groups):
        for word in words:
            if seen.setdefault(word, number) != number:
                raise EvenrankError(f"LEACE: {word} stands in two groups, {seen[word] + 1} and {number + 1}")
    row_of = rows_of(vectors.words, seen)
    rows = np.array(sorted(row_of.values()), dtype=np.int64)
    labels = np.array([seen[vectors.words[row]] for row in rows], dtype=np.int64)
    fitted = unit(vectors.matrix[rows])
    eraser = fit_leace(fitted, labels)
    gap = _gap(fitted, labels), _gap(eraser(fitted).astype(np.float32).astype(np.float64), labels)
    matrix = vectors.matrix if in_place else np.empty_like(vectors.matrix, order="C")
    for start in range(0, len(matrix), _BLOCK):
        part = slice(start, start + _BLOCK)
        block = unit(vectors.matrix[part])
        matrix[part] = np.where(neutral[part, None], eraser(block), block)
    found = Vectors(vectors.words, matrix)
    missing = tuple(word for word in seen if word not in row_of)
    return Erased(found, eraser, neutral, rows, labels, gap, missing)


def _gap(rows: Doubles, groups: Integers) -> float:
    means = [rows[groups == group].mean(axis=0) for group in np.unique(groups)]
    return max((float(np.linalg.norm(a - b)) for a in means for b in means), default=0.0)
