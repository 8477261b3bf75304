"""Erasure: groups that vectors do not know of, and one that they know of by a quadratic form alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenrank.search.erasure import UNKNOWN, Erasure, fit_leace_blocks
from evenrank.search.group_probes import GroupProbe, deal_folds, neighbourhoods, probe_groups

from .cell import Cell

WIDTH = 16
DRAWS = 300
"""Each draw is some 300 trainings."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows [N, D] and their groups [N]."""

    rows: np.ndarray
    groups: np.ndarray


def random_groups(n: int, share: float, copies: bool) -> Callable[[np.random.Generator], Labelled]:
    """Rows and groups that have nothing to do with each other; with ``copies`` half are near copies of others."""

    def draw(rng: np.random.Generator) -> Labelled:
        rows = rng.normal(size=(n, WIDTH))
        if copies:
            rows[n // 2 :] = rows[: n - n // 2] + 0.01 * rng.normal(size=(n - n // 2, WIDTH))
        return Labelled(rows, rng.permutation((np.arange(n) < round(share * n)).astype(np.int64)))

    return draw


def quadratic_groups(n: int) -> Callable[[np.random.Generator], Labelled]:
    """Groups by the sign of a quadratic form of four of the numbers."""

    def draw(rng: np.random.Generator) -> Labelled:
        rows = rng.normal(size=(n, WIDTH))
        return Labelled(rows, (rows[:, 0] * rows[:, 1] + rows[:, 2] * rows[:, 3] > 0).astype(np.int64))

    return draw


def probed(sample: Labelled) -> GroupProbe:
    """What is recovered of a sample."""
    parts = neighbourhoods(sample.rows)
    return probe_groups(sample.rows, sample.groups, deal_folds(parts, sample.groups), parts)


def recovered(sample: Labelled) -> bool:
    """Whether it is said that the group is recovered above chance."""
    return probed(sample).best.shown


def recovered_after_erasure(sample: Labelled) -> bool:
    """The same of rows from which LEACE, fitted on all but those held out, has erased the group."""
    parts = neighbourhoods(sample.rows)
    folds = deal_folds(parts, sample.groups)
    erased = []
    for fold in np.unique(folds).tolist():
        known = np.where(folds == fold, UNKNOWN, sample.groups)
        erased.append(Erasure(fit_leace_blocks(sample.rows.astype(np.float32), known, 2), False, "leace")(sample.rows))
    return probe_groups(erased, sample.groups, folds, parts).best.shown


def recovered_by_command(sample: Labelled) -> bool:
    """The same by ``evenrank index debias``, of a method that leaves the vectors alone: what was there before."""
    from evenrank.decide.debiased_index import probe_indexes
    from evenrank.search.erased_index import PassageNumbers

    class Vectors:
        """As much of an index as the probes look at."""

        vectors = sample.rows
        erasure = None

    numbers = PassageNumbers(("a", "b"), sample.groups, {})
    found = probe_indexes(Vectors(), Vectors(), numbers).after  # type: ignore[arg-type]
    return found is not None and found.best.shown


def _cells() -> tuple[Cell, ...]:
    found = []
    for n in (100, 300):
        for share, name in ((0.5, "50/50"), (0.2, "80/20"), (0.05, "95/5")):
            for copies, kind in ((False, "random"), (True, "near copies")):
                said = random_groups(n, share, copies), recovered
                found.append(
                    Cell("erasure", f"{kind}, {name}", n, *said, draws=DRAWS if n == 100 else DRAWS // 3, quick=3)
                )
        found.append(Cell("erasure", "quadratic", n, quadratic_groups(n), recovered, kind="power", draws=50, quick=2))
    for share, name in ((0.5, "50/50"), (0.2, "80/20")):
        said = random_groups(300, share, True), recovered_after_erasure
        found.append(Cell("erasure", f"near copies, erased, {name}", 300, *said, draws=DRAWS // 3, quick=2))
    said = random_groups(100, 0.5, True), recovered, recovered_by_command
    found.append(Cell("erasure", "near copies, by the command", 100, *said, draws=100, quick=2))
    return tuple(found)


CELLS: tuple[Cell, ...] = _cells()
