"""All that is found out about one variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import polars as pl

from .effects import Effect, Flags, Floats, effect
from .pair_values import Means, PairValues
from .probed_list import ProbedList
from .rank_shifts import rank_shifts
from .replaced_runs import RunFigure
from .version_scores import Versions

DEPTH = 10
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """Pairs of a list, by what a variant does to them.

    ``pairs`` in all: ``changed``, ``unchanged`` or ``absent`` (the variant has nothing for them). Of those changed,
    ``still`` are of queries whose scores do not vary, ``unoriented`` others keep their magnitude where the sign of its
    change gives the direction, and ``compared`` are left, of which the placebo changes ``placebo`` (None: there is
    no placebo).
    """

    pairs: int
    changed: int
    unchanged: int
    absent: int
    still: int
    unoriented: int
    compared: int
    placebo: int | None


@dataclass(frozen=True, slots=True)
class Example:
    """A pair with a large change of its score: ``delta``, in standard deviations and oriented."""

    query_id: str
    doc_id: str
    query: str
    original: str
    variant: str
    delta: float


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """The figures of a variant; see :func:`evenrank.probe` for what they are.

    ``kind``: None for one of the user's own; ``placebo``: the name of its placebo, None without one; ``poles``: between
    which groups its effect is oriented, None where above 0 is "the variant". ``shift``: places up, oriented as the
    effect; ``enters``, ``leaves``: the share of the compared pairs that would enter or leave the first 10 ranks, in
    lists of more than 10 (None: there is none). ``replaced``: figures of the run with every passage replaced.
    ``holm_p``: the verdict's p, corrected over the variants.
    """

    name: str
    kind: str | None
    placebo: str | None
    poles: tuple[str, str] | None
    counts: Counts
    means: Means
    shift: Effect
    enters: float | None
    leaves: float | None
    replaced: Mapping[str, RunFigure]
    examples: tuple[Example, ...] = field(repr=False)
    holm_p: float | None = None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "kind": self.kind,
            "placebo_name": self.placebo,
            "poles": None if self.poles is None else list(self.poles),
            "counts": asdict(self.counts),
            **self.means.to_dict(),
            "verdict": "difference" if self.means.beyond_placebo else "effect",
            "holm_p": self.holm_p,
            "rank_shift": self.shift.to_dict(),
            "enters": self.enters,
            "leaves": self.leaves,
            "replaced": {measure: found.to_dict() for measure, found in self.replaced.items()},
            "examples": [asdict(one) for one in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """What a variant does to each pair [N] of a list.

    ``changed``: whether it has another text; ``signs``: the orientation (None: as it is); ``values``; ``scores`` of the
    originals and ``replaced`` of the variant, which are those of the original where it has no other text.
    """

    name: str
    changed: Flags
    absent: Flags
    signs: Floats | None
    values: PairValues
    scores: Floats
    replaced: Floats
    deviation: Floats

    def counts(self) -> Counts:
        """How many pairs are what."""
        still = self.changed & np.isnan(self.deviation)
        lost = np.zeros_like(still) if self.signs is None else np.isnan(self.signs)
        unoriented = self.changed & ~still & lost
        return Counts(
            len(self.changed),
            int(self.changed.sum()),
            int((~self.changed & ~self.absent).sum()),
            int(self.absent.sum()),
            int(still.sum()),
            int(unoriented.sum()),
            int(self.compared.sum()),
            None if self.values.placebo is None else int((~np.isnan(self.values.placebo)).sum()),
        )

    @property
    def compared(self) -> Flags:
        """Pairs with a value."""
        return ~np.isnan(self.values.effect)


def rank_figures(found: Compared, listed: ProbedList) -> tuple[Effect, float | None, float | None]:
    """Places up, oriented as the effect; and the shares that enter and leave the first ranks, of the compared pairs in
    lists that have more: who is in a shorter one can do neither."""
    compared = found.compared
    shifts = rank_shifts(found.scores, listed.query, np.where(compared, found.replaced, np.nan), DEPTH)
    oriented = shifts.shifts if found.signs is None else shifts.shifts * found.signs
    mean = effect(oriented, listed.query, listed.passage)
    can = compared & (np.bincount(listed.query)[listed.query] > DEPTH)
    if not can.any():
        return mean, None, None
    return mean, float(shifts.enters[can].mean()), float(shifts.leaves[can].mean())


def examples(found: Compared, listed: ProbedList, versions: Versions) -> tuple[Example, ...]:
    """The pairs of different passages whose score changes most; equal changes in the list's order."""
    size = np.where(found.compared, np.abs(found.values.effect), -1.0)
    chosen: list[int] = []
    for row in np.argsort(-size, kind="stable").tolist():
        if len(chosen) == _EXAMPLES or size[row] < 0:
            break
        if listed.passage[row] not in listed.passage[chosen]:
            chosen.append(row)
    ids = listed.table.select("query_id", "doc_id")
    return tuple(
        Example(
            str(ids["query_id"][row]),
            str(ids["doc_id"][row]),
            str(listed.pairs.queries[int(listed.query[row])]),
            str(versions.texts[int(versions.original[row])]),
            str(versions.texts[int(versions.variants[found.name][row])]),
            float(found.values.effect[row]),
        )
        for row in chosen
    )


def replaced_passages(listed: ProbedList, texts: pl.Series) -> pl.DataFrame:
    """The passages of a variant by passage (``texts`` [N] of the pairs): ``doc_id``, ``text``."""
    table = listed.table.select("doc_id").with_columns(texts.alias("text"))
    return table.unique("doc_id", keep="first", maintain_order=True)
