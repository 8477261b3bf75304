"""What a ranker makes of variants: versions scored, values of pairs, effects, shifts of ranks and examples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, Run
from evenrank.files.errors import quoted
from evenrank.files.json_values import INLINE, named
from evenrank.groups import GroupTable, Lexicon, Scoring, score_texts
from evenrank.models.rerank import ScoredPairs, score_pairs
from evenrank.models.scorers import Scorer, TextPairs
from evenrank.stats.compare import Comparison, corrected
from evenrank.stats.estimate import Estimate

from .effects import Changes, Flags, Floats, Ints, Swap, beyond, preference, size
from .variant_files import Pairing, ProbedList, spread


@dataclass(frozen=True, slots=True)
class ScoredVersions:
    """The N pairs of a list, as they are and in their variants, scored.

    ``texts``: the distinct ones; ``rows`` [N] of them and ``scores`` [N] of each variant by name, and of the originals
    under ``""``; ``deviation`` [N]: of the scores of each pair's query, NaN where they do not vary.
    """

    listed: ProbedList
    texts: pl.Series
    rows: Mapping[str, Ints]
    scores: Mapping[str, Floats]
    deviation: Floats

    def changed(self, name: str) -> Flags:
        """Whether [N] a variant has another text than the original."""
        mask: Flags = self.rows[name] != self.rows[""]
        return mask

    def change(self, name: str) -> Floats:
        """What a variant does to the scores [N], in standard deviations; NaN where it has no other text."""
        return np.where(self.changed(name), self.scores[name] - self.scores[""], np.nan) / self.deviation


def score_versions(
    listed: ProbedList,
    variants: Mapping[str, pl.Series],
    ranker: Scorer,
    batch_size: int,
    keep: str | os.PathLike[str] | None,
    quiet: bool,
) -> tuple[ScoredVersions, ScoredPairs]:
    """The scores of a list and of variants by name, each with a text for each pair [N]; and how they were made.

    Raises EvenrankError, which names version, passage and query, for a score that is not finite.
    """
    columns = {"": listed.texts, **variants}
    numbers, texts = _distinct(pl.concat([column.rename("text") for column in columns.values()]))
    rows = dict(zip(columns, np.split(numbers, len(columns)), strict=True))
    query_numbers, queries = _distinct(listed.pairs.queries)
    wanted = {name: query_numbers[listed.query] * len(texts) + text for name, text in rows.items()}
    keys = np.unique(np.concatenate(list(wanted.values())))
    used, document = np.unique(keys % len(texts), return_inverse=True)
    pairs = TextPairs(keys // len(texts), document, queries, texts.gather(used))
    result = score_pairs(ranker, pairs, batch_size, out=keep, quiet=quiet, what=f"probing {ranker.name}")
    scores = {name: result.scores[np.searchsorted(keys, key)] for name, key in wanted.items()}
    for name, own in scores.items():
        bad = np.flatnonzero(~np.isfinite(own))
        if len(bad):
            query, doc = listed.table.select("query_id", "doc_id").row(int(bad[0]))
            version = f"in the variant {name}" if name else "as it is"
            more = "" if len(bad) == 1 else f", and {len(bad) - 1:,} more"
            which = f"the score of the passage {quoted(doc)} for the query {quoted(query)}, {version},"
            raise EvenrankError(f"{ranker.name}: {which} is not finite{more}")
    deviation = spread(scores[""], listed.query)[listed.query]
    return ScoredVersions(listed, texts, rows, scores, deviation), result


def _distinct(texts: pl.Series) -> tuple[Ints, pl.Series]:
    """The number of each text among the distinct ones, and these, in order of first appearance."""
    table = texts.rename("text").to_frame()
    distinct = table.unique(maintain_order=True).with_row_index("row")
    numbers = table.join(distinct, on="text", how="left", maintain_order="left")["row"]
    return numbers.cast(pl.Int64).to_numpy(), distinct["text"]


@dataclass(frozen=True, slots=True)
class Means:
    """The mean effect of a variant, that of its placebo, and what is found.

    ``effect``, ``placebo`` (None without one): in a swap, both directions weigh alike. ``finding``: what the verdict
    speaks of, beyond the placebo where there is one (``beyond_placebo``); ``swap``: how it was found of a swap.
    """

    effect: Estimate
    placebo: Estimate | None
    finding: Comparison
    beyond_placebo: bool
    swap: Swap | None = None

    @classmethod
    def of(cls, changes: Changes, signs: Floats | None, tests: int = 1) -> Means:
        """Over all pairs; ``signs`` [N]: the direction of a swap; ``tests``: as one of so many variants."""
        own, other = changes.own, changes.placebo
        known = ~np.isnan(own) if signs is None else ~np.isnan(own) & ~np.isnan(signs)
        placebo = None if other is None else np.where(known, other, np.nan)
        pairs = changes.query, changes.passage, signs
        beside = placebo is not None and not np.isnan(placebo).all()
        swap = None if signs is None else preference(changes, signs, tests)
        return cls(
            size(own, *pairs),
            None if placebo is None else size(placebo, *pairs),
            beyond(changes, tests) if swap is None else swap.finding,
            beside,
            swap,
        )


class RankShifts(NamedTuple):
    """What would happen to each of N passages in its query's list; NaN for those without a variant.

    ``shifts`` [N]: places up (+) or down (−). ``enters``, ``leaves`` [N]: the chance that it comes among the first k,
    or drops out of them; 0 or 1 without ties.
    """

    shifts: Floats
    enters: Floats
    leaves: Floats


def rank_shifts(scores: Floats, query: Ints, replaced: Floats, k: int = 10) -> RankShifts:
    """The places that each passage would rise or fall with the score ``replaced`` [N] in place of ``scores`` [N].

    All other passages of its query (``query`` [N], any numbers) keep their scores. Tied passages are in random order:
    each of the others counts as half a place, and who is tied at the cut is among the first k with the chance that a
    place there is its own; a passage enters with the growth of that chance, or leaves with its loss.

    Worked example: four passages of one query score 4, 3, 2 and 1. With 3.5 the last would be second: two places up,
    and into the first two. With 3 the third would be tied with the second, half a place up; a place among the first
    two would be its own in one order of two.

    >>> import numpy as np
    >>> found = rank_shifts(np.array([4.0, 3.0, 2.0, 1.0]), np.zeros(4, int), np.array([np.nan, 0.5, 3.0, 3.5]), k=2)
    >>> found.shifts.tolist(), found.enters.tolist(), found.leaves.tolist()
    ([nan, -2.0, 0.5, 2.0], [nan, 0.0, 0.5, 1.0], [nan, 1.0, 0.0, 0.0])
    """
    compared = ~np.isnan(replaced)
    after = np.where(compared, replaced, scores)
    numbers = np.unique(query, return_inverse=True)[1]
    levels, level = np.unique(np.concatenate([scores, after]), return_inverse=True)
    # By query and score, as one number each.
    keys, new = (numbers * len(levels) + part for part in np.split(level, 2))
    order = np.sort(keys)
    ends = np.cumsum(np.bincount(numbers))[numbers]
    above, tied = _others(order, ends, keys, keys)
    new_above, new_tied = _others(order, ends, new, keys)
    shifts = above + tied / 2 - new_above - new_tied / 2
    growth = _chance(new_above, new_tied, k) - _chance(above, tied, k)
    return RankShifts(
        *(np.where(compared, value, np.nan) for value in (shifts, np.maximum(growth, 0.0), np.maximum(-growth, 0.0)))
    )


def _others(order: Ints, ends: Ints, keys: Ints, own: Ints) -> tuple[Ints, Ints]:
    """How many others of a list are above each of ``keys`` [N] and tied with it; ``own`` [N] is not another."""
    left, right = (np.searchsorted(order, keys, side=side) for side in ("left", "right"))
    return ends - right - (own > keys), right - left - (own == keys)


def _chance(above: Ints, tied: Ints, k: int) -> Floats:
    """The chance to be among the first k."""
    chances: Floats = np.clip((k - above) / (tied + 1), 0.0, 1.0)
    return chances


UTILITY = "nDCG@10"
BIAS = ("NFaiRR@10", "ARaB@10")


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A measure's mean over queries, with its 95% interval; None where it is not defined."""

    mean: float | None
    ci95: tuple[float, float] | None


def run_figures(
    run: Run, passages: pl.DataFrame, qrels: pl.DataFrame | None, lexicon: Lexicon | None, seed: int
) -> Mapping[str, RunFigure]:
    """nDCG@10 of the run's queries where there are judgements; NFaiRR@10 and ARaB@10 of the ``passages`` (``doc_id``,
    ``text``) where there is a lexicon."""
    from evenrank.auditing import audit

    if qrels is not None:
        # What the list was not made for is no fault of the ranker.
        qrels = qrels.join(run.table, on="query_id", how="semi", maintain_order="left")
        qrels = qrels if qrels.height else None

    measures = [*([] if qrels is None else [UTILITY]), *(() if lexicon is None else BIAS)]
    if not measures:
        return {}
    texts = None if lexicon is None else passages
    audited = audit({"run": run}, collection=texts, lexicon=lexicon, qrels=qrels, measures=measures, seed=seed)
    metrics = audited.runs[0]
    return {measure: RunFigure(metrics[measure].mean, metrics[measure].ci95) for measure in measures}


DEPTH = 10
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """Pairs of a list, by what a variant does to them.

    ``pairs`` in all: ``changed`` or ``unchanged``. Of those changed, ``still`` are of queries whose scores do not vary,
    ``unoriented`` others keep their magnitude where the sign of its change gives the direction, and ``compared`` are
    left, of so many ``queries`` and ``passages``, of which the placebo changes ``placebo`` (None: there is no placebo).
    """

    pairs: int
    changed: int
    unchanged: int
    still: int
    unoriented: int
    compared: int
    queries: int
    passages: int
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
    """

    name: str
    kind: str | None
    placebo: str | None = field(metadata=named("placebo_name"))
    poles: tuple[str, str] | None
    counts: Counts
    means: Means = field(metadata=INLINE)
    shift: Estimate = field(metadata=named("rank_shift"))
    enters: float | None
    leaves: float | None
    replaced: Mapping[str, RunFigure]
    examples: tuple[Example, ...] = field(repr=False)

    @property
    def finding(self) -> Comparison:
        """What the verdict speaks of."""
        return self.means.finding


@dataclass(frozen=True, slots=True)
class Compared:
    """What the variant ``name`` does to the scores of each pair [N].

    ``changes`` of the scores; ``signs`` [N]: 1 where the text moves towards the first pole, −1 where away from it, NaN
    where neither (None: the changes stand as they are).
    """

    versions: ScoredVersions
    name: str
    changes: Changes
    signs: Floats | None

    @property
    def oriented(self) -> Floats:
        """The changes [N], above 0 for the first pole or else for the variant; NaN where not compared."""
        return self.changes.own if self.signs is None else self.changes.own * self.signs

    @property
    def compared(self) -> Flags:
        """Pairs with a value."""
        return ~np.isnan(self.oriented)

    def counts(self) -> Counts:
        """How many pairs are what."""
        changed = self.versions.changed(self.name)
        still = changed & np.isnan(self.versions.deviation)
        compared, placebo = self.compared, self.changes.placebo
        return Counts(
            len(changed),
            int(changed.sum()),
            int((~changed).sum()),
            int(still.sum()),
            int((changed & ~still & ~compared).sum()),
            int(compared.sum()),
            len(np.unique(self.changes.query[compared])),
            len(np.unique(self.changes.passage[compared])),
            None if placebo is None else int((compared & ~np.isnan(placebo)).sum()),
        )

    def ranks(self) -> tuple[Estimate, float | None, float | None]:
        """Places up, oriented as the effect; and the shares that enter and leave the first ranks, of the compared pairs
        in lists that have more: who is in a shorter one can do neither."""
        listed, scores, compared = self.versions.listed, self.versions.scores, self.compared
        shifts = rank_shifts(scores[""], listed.query, np.where(compared, scores[self.name], np.nan), DEPTH)
        mean = size(shifts.shifts, listed.query, listed.passage, self.signs)
        can = compared & (np.bincount(listed.query)[listed.query] > DEPTH)
        if not can.any():
            return mean, None, None
        return mean, float(shifts.enters[can].mean()), float(shifts.leaves[can].mean())

    def examples(self) -> tuple[Example, ...]:
        """The pairs of different passages whose score changes most; equal changes in the list's order."""
        listed, texts, rows = self.versions.listed, self.versions.texts, self.versions.rows
        oriented = self.oriented
        chosen: list[int] = []
        for row in np.argsort(-np.nan_to_num(np.abs(oriented), nan=-1.0), kind="stable").tolist():
            if len(chosen) == _EXAMPLES or np.isnan(oriented[row]):
                break
            if listed.passage[row] not in listed.passage[chosen]:
                chosen.append(row)
        return tuple(
            Example(
                listed.table["query_id"][row],
                listed.table["doc_id"][row],
                listed.pairs.queries[int(listed.query[row])],
                texts[int(rows[""][row])],
                texts[int(rows[self.name][row])],
                float(oriented[row]),
            )
            for row in chosen
        )


def compare(
    versions: ScoredVersions, pairing: Pairing, lexicon: Lexicon | None, lengths: Floats, seed: int
) -> tuple[VariantFigures, ...]:
    """The figures of all variants. ``lengths`` [texts, 2]: in words and in word pieces."""
    listed, tests = versions.listed, len(pairing.variants)
    poles = None if lexicon is None else lexicon.poles
    magnitudes = None if lexicon is None or poles is None else _magnitudes(versions.texts, lexicon)
    figures = []
    for variant, placebo in pairing.variants:
        changes, signs = Changes(listed.query, listed.passage, versions.change(variant.name)), None
        original, own = versions.rows[""], versions.rows[variant.name]
        if placebo is not None:
            changes = replace(
                changes,
                placebo=versions.change(placebo.name),
                lengths=lengths[own] - lengths[original],
                placebo_lengths=lengths[versions.rows[placebo.name]] - lengths[original],
            )
        if variant.kind == "swap" and magnitudes is not None:
            signs = np.sign(magnitudes[own] - magnitudes[original])
            signs = np.where(signs != 0, signs, np.nan)
        comparison = Compared(versions, variant.name, changes, signs)
        run = listed.ranked(versions.scores[variant.name], variant.name)
        passages = listed.table.select("doc_id", variant.texts.alias("text")).unique("doc_id", maintain_order=True)
        figures.append(
            VariantFigures(
                variant.name,
                variant.kind,
                None if placebo is None else placebo.name,
                None if signs is None else poles,
                comparison.counts(),
                Means.of(changes, signs, tests),
                *comparison.ranks(),
                run_figures(run, passages, listed.qrels, lexicon, seed),
                comparison.examples(),
            )
        )
    findings = corrected([f.finding for f in figures])
    return tuple(
        replace(f, means=replace(f.means, finding=finding)) for f, finding in zip(figures, findings, strict=True)
    )


def _magnitudes(texts: pl.Series, lexicon: Lexicon) -> Floats:
    """The signed magnitude (tf) of texts [n] between the lexicon's poles."""
    scoring = Scoring(lexicon, magnitudes=("tf",))
    table = texts.rename("text").to_frame().with_row_index("doc_id").with_columns(pl.col("doc_id").cast(pl.String))
    return GroupTable.of(score_texts(table, scoring), scoring.describe()).signed_magnitude("tf")
