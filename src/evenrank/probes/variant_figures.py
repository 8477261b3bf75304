"""All that is found out about one variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import polars as pl

from .dominant_query import Influence
from .effects import Effect, Flags, Floats, effect
from .list_subsets import Part
from .matched import lengths, matched, overlaps
from .mixed_pool import DEPTH, MixedPool, mixed_pool
from .pair_values import Means, PairValues
from .probed_list import ProbedList
from .rank_shifts import rank_shifts
from .replaced_runs import RunFigure
from .version_scores import Versions

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
class Subset:
    """The means among the pairs whose ``column`` has this ``value``."""

    column: str
    value: str
    means: Means


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
    lists of more than 10 (None: there is none). ``matched``: the verdict's mean among pairs alike in length and
    overlap. ``replaced``: figures of the run with every passage replaced. ``nulls``: the verdict's mean for rankers
    that cannot know. ``influence``: the query that decides the verdict's mean, None where there is none. ``holm_p``:
    the verdict's p, corrected over the variants.
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
    mixed: MixedPool
    matched: Effect
    subsets: tuple[Subset, ...]
    replaced: Mapping[str, RunFigure]
    nulls: Mapping[str, Effect]
    examples: tuple[Example, ...] = field(repr=False)
    influence: Influence | None = None
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
            "influence": None if self.influence is None else self.influence.to_dict(),
            "holm_p": self.holm_p,
            "rank_shift": self.shift.to_dict(),
            "enters": self.enters,
            "leaves": self.leaves,
            "mixed_pool": self.mixed.to_dict(),
            "matched": self.matched.to_dict(),
            "subsets": [{"column": one.column, "value": one.value, **one.means.to_dict()} for one in self.subsets],
            "replaced": {measure: found.to_dict() for measure, found in self.replaced.items()},
            "nulls": {name: found.to_dict() for name, found in self.nulls.items()},
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


def pool_figures(found: Compared, listed: ProbedList, seed: int, poles: tuple[str, str] | None) -> MixedPool:
    """Both versions of each changed passage, ranked together.

    Where changes have a direction between ``poles``, the version nearer to the first stands as the variant, whichever
    of the two is the original; passages without a direction stay once, as they are.
    """
    grades = None if listed.qrels is None else listed.table["relevance"].fill_null(0).to_numpy()
    scores, variants = found.scores, np.where(found.changed, found.replaced, np.nan)
    if found.signs is not None:
        back = found.changed & (found.signs < 0)
        variants = np.where(np.isnan(found.signs), np.nan, variants)
        scores, variants = np.where(back, variants, scores), np.where(back, scores, variants)
    pool = mixed_pool(scores, variants, listed.query, listed.passage, grades, k=DEPTH, seed=seed)
    return pool if found.signs is None else replace(pool, of=poles)


def matched_effect(found: Compared, listed: ProbedList, versions: Versions) -> Effect:
    """The verdict's mean among the compared pairs whose versions are alike in length and in query overlap."""
    rows = np.flatnonzero(found.compared)
    queries = listed.pairs.queries.to_list()
    sides = []
    for numbers in (versions.original[rows], versions.variants[found.name][rows]):
        used, text = np.unique(numbers, return_inverse=True)
        texts = versions.texts.gather(used).to_list()
        sides.append((lengths(texts)[text], overlaps(queries, texts, listed.query[rows], text)))
    (words, shared), (words_then, shared_then) = sides
    alike = np.zeros(listed.size, bool)
    alike[rows[matched(words, words_then, shared, shared_then)]] = True
    return Means.of(found.values, listed.query, listed.passage, alike).verdict


def subset_figures(found: Compared, listed: ProbedList, parts: list[Part]) -> tuple[Subset, ...]:
    """The means of each part that has a compared pair."""
    return tuple(
        Subset(part.column, part.value, Means.of(found.values, listed.query, listed.passage, part.among))
        for part in parts
        if (part.among & found.compared).any()
    )


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
