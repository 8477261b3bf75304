"""What is erased from a dense index: the map of its vectors, fitted on them, kept in its files, applied to queries.

When it misleads: LEACE makes the means of the groups equal, so that no linear classifier of the passages that it was
fitted on can tell them apart; a classifier with a kernel still can, and so can a linear one of passages that come later
where few were fitted on. An index is searched by inner products of whole vectors, which no theorem is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.files import EvenrankError, InputError
from evenrank.files.wording import counted

from .exact_search import Floats, Halves
from .index_folder import IndexWriter, Manifest
from .leace import BLOCK, Eraser, GroupMeans, Moments, eraser_of
from .mapped import Mapped, write_array

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
NO_GROUP, UNKNOWN = -1, -2
"""In the place of a passage's group: of none, or of several alike; nothing is known of the passage."""
FILES = {"left": "erasure-left.bin", "right": "erasure-right.bin", "mean": "erasure-mean.bin"}
METHODS = ("leace", "hard")
_NOTHING = 1e-6
"""Of a vector of length 1, what is shorter after erasure was erased whole."""
_UNIT = 5e-3
"""How far from 1 the length of a vector of float16 may be that had length 1."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is done to each vector of an index, and to each query: the ``eraser``; and with ``unit``, scaling to length
    1, as a model whose similarity is the cosine has them. ``method``: leace or hard."""

    eraser: Eraser
    unit: bool
    method: str

    def __call__(self, rows: Floats | Halves | Doubles) -> Floats:
        """Rows [N, D] after erasure; with ``unit``, one of which nothing is left is 0."""
        erased = self.eraser(rows)
        if self.unit:
            length = np.linalg.norm(erased, axis=1, keepdims=True)
            gone = length < _NOTHING
            erased = np.where(gone, 0.0, erased / np.where(gone, 1.0, length))
        found: Floats = erased.astype(np.float32)
        return found

    @property
    def directions(self) -> int:
        """How many directions are erased."""
        return int(self.eraser.left.shape[1])

    def note(self) -> str:
        """What a run of the index says of it."""
        erased = f"{counted(self.directions, 'direction')} erased from passages and queries ({self.method})"
        return f"{erased}, which were then scaled to length 1" if self.unit else erased

    def write(self, writer: IndexWriter) -> None:
        """Writes the numbers of the eraser as data files of an index."""
        for name, file in FILES.items():
            write_array(writer.file(file), getattr(self.eraser, name), np.float64)


def read_erasure(manifest: Manifest, width: int) -> Erasure | None:
    """The erasure of an index of vectors [N, ``width``]; None of one from which nothing was erased.

    Its files are small and read whole: their digests are compared too. Raises InputError for what is damaged.
    """
    said = manifest.settings.get("erasure")
    if said is None:
        return None
    damaged = InputError(manifest.path, "the index is damaged: its erasure cannot be used")
    if not isinstance(said, Mapping) or said.get("method") not in METHODS or type(said.get("unit")) is not bool:
        raise damaged
    parts: dict[str, Doubles] = {}
    for name, file in FILES.items():
        array = Mapped(manifest, file, np.float64).array
        if hashlib.sha256(array.tobytes()).hexdigest() != manifest.files[file]["sha256"]:
            raise InputError(manifest.path, f"the index is damaged: {file} differs from what was written")
        if not np.isfinite(array).all():
            raise damaged
        parts[name] = array.astype(np.float64)
    directions, rest = divmod(len(parts["left"]), width)
    if rest or len(parts["right"]) != len(parts["left"]) or len(parts["mean"]) != width:
        raise damaged
    eraser = Eraser(parts["left"].reshape(width, directions), parts["right"].reshape(directions, width), parts["mean"])
    return Erasure(eraser, bool(said["unit"]), str(said["method"]))


def blocks(vectors: Halves, block: int = BLOCK) -> Iterator[tuple[slice, Doubles]]:
    """The rows of mapped vectors in float64, some at once, each with its place."""
    for start in range(0, len(vectors), block):
        rows = vectors[start : start + block]
        yield slice(start, start + len(rows)), rows.astype(np.float64)


def fit_leace_blocks(vectors: Halves, groups: Integers, count: int, *, block: int = BLOCK) -> Eraser:
    """:func:`evenrank.search.leace.fit_leace` of mapped vectors [N, D], of which only a block is in float64 at once.

    ``groups`` [N]: the number of each row's group, from 0 to ``count`` − 1; −1: of none, which is a group of its own;
    −2: unknown, not fitted on. Raises EvenrankError where fewer than two of the groups have a row.
    """
    if len(np.unique(groups[groups >= 0])) < 2:
        found = "one" if (groups >= 0).any() else "none"
        raise EvenrankError(f"LEACE: expected passages of two groups or more, found those of {found}")
    moments = Moments(count + 1, vectors.shape[1])
    _add(moments, vectors, groups, count, block)
    return eraser_of(moments)


def group_means(vectors: Halves, groups: Integers, count: int, *, block: int = BLOCK) -> GroupMeans:
    """The mean of each group's vectors, and last that of passages of none."""
    means = GroupMeans(count + 1, vectors.shape[1])
    _add(means, vectors, groups, count, block)
    return means


def _add(means: GroupMeans, vectors: Halves, groups: Integers, count: int, block: int) -> None:
    for place, rows in blocks(vectors, block):
        own = groups[place]
        known = own != UNKNOWN
        means.add(rows[known], np.where(own[known] == NO_GROUP, count, own[known]))


def projection(basis: Doubles) -> Eraser:
    """Hard debiasing: x ↦ x − Bᵀ B x, for an orthonormal ``basis`` B [k, D]."""
    return Eraser(np.ascontiguousarray(basis.T), basis, np.zeros(basis.shape[1]))


def of_length_one(vectors: Halves) -> bool:
    """Whether every vector has length 1, as those of a model have whose similarity is the cosine; 0 is allowed."""
    some = False
    for _, rows in blocks(vectors):
        length = np.linalg.norm(rows, axis=1)
        present = length > 0
        some = some or bool(present.any())
        if (np.abs(length[present] - 1) > _UNIT).any():
            return False
    return some
