"""Scan: which parts of a collection's passages search does not bring back, without a judgement.

For sentences of passages, a query of their rarest words (:mod:`evenrank.probes.known_items`): the passage should come
back. How often it does, by where the sentence stands, by length, by group and by whether the model reads so far; beside
it BM25, which cannot see places.

[BA10] Bache & Azzopardi (2010). Improving access to large patent corpora. TLDKS II.
[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Unpack, cast

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, Run, as_qrels, as_queries
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.files.errors import arg, quoted
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.reading import is_index
from evenrank.files.squad import load_squad
from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import are, counted
from evenrank.groups.scoring import GroupSource
from evenrank.groups.table import largest_groups
from evenrank.measures.retrievability import gini, lorenz, retrievability
from evenrank.models.endpoints import Endpoint, shown_address
from evenrank.results.page import Page
from evenrank.results.result import Result
from evenrank.search.bm25 import Index
from evenrank.search.index_folder import Encoding
from evenrank.stats.clusters import cluster_means, linearized_means
from evenrank.stats.compare import (
    LEAST_SAMPLE,
    Comparison,
    compare_groups,
    corrected,
    intersection_union,
    undecidable,
)
from evenrank.stats.estimate import SIGNIFICANT, Estimate, estimate
from evenrank.stats.ratios import proportion

from .known_items import KnownItems, placed
from .retrieving import BM25, Lists, Passages, Searching
from .sensitivity import compare_passages, words_read

__all__ = ["ScanResult", "scan", "scan_queries"]

UNIT = "passages"
AT = 10
"""The rank up to which a passage counts as found, in tests and sentences."""
SAME = 0.9
"""Passages that share so many of the words of either stand for each other."""
TENTHS = 10
LENGTHS = (50, 100, 200, 400, 800)
"""The greatest numbers of words of passages whose figures stand together; a last row has the longer ones."""
HUBS = 10
_TERMS = 4_000_000
"""Terms of pairs of passages that are compared at once."""
NONE = "neutral"
"""The row of passages that no group's words are in, or several groups' as often."""


@dataclass(frozen=True, slots=True)
class Part:
    """How often the queries of some sentences find their own passage.

    Attributes:
        by: ``depth`` (a tenth of the passage), ``length`` (words of the passage), ``group``, or ``read`` (whether the
            model reads the sentence to its end); ``part``: which.
        queries: How many there are, of ``at10.n`` passages.
        at1, at10, at_k: The share whose passage is among the first 1, 10, and k; intervals by passage.
        rr: The mean of 1 / rank; 0 beyond k.
    """

    by: str
    part: str
    queries: int
    at1: Estimate
    at10: Estimate
    at_k: Estimate
    rr: Estimate


@dataclass(frozen=True, slots=True)
class Exposure:
    """How often all passages are shown over all queries: r(d) = Σ 1 / ln(1 + rank), up to k [BA10].

    Attributes:
        gini: Its Gini coefficient: 0 if all passages are shown alike; ``lorenz``: the share of the exposure that each
            percent of the passages has, those with the least first.
        unseen: How many of the ``passages`` are in no list; ``hubs``: the ten that are shown most, with r(d).
    """

    gini: float | None
    unseen: int
    passages: int
    hubs: tuple[tuple[str, float], ...]
    lorenz: tuple[float, ...] = field(metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Found:
    """What a retriever finds.

    Attributes:
        whole: Over all queries; ``parts``: by depth, length, group and what is read.
        lost: The passages that none of their sentences finds among the first 10, as a share of those with queries.
        exposure: Of every passage of the collection.
        unlisted: Queries that it has no list of, which count as not found.
        read: The share of the words of the passages drawn that the model reads (None: unknown or all), of ``reads``
            tokens a passage.
    """

    name: str
    whole: Part
    parts: tuple[Part, ...]
    lost: Estimate
    exposure: Exposure
    unlisted: int
    read: float | None = None
    reads: int | None = None


@dataclass(frozen=True, slots=True)
class Contrast:
    """Whether one part is found less often than another, by the share among the first 10.

    Attributes:
        name: The retriever; ``by``: depth, read or group, or ``retriever`` for the two that are compared.
        first, last: What is compared, with its share (``of_first``, ``of_last``) and BM25's (``bm25``; None of itself).
        found: The first's share minus the last's, Holm-corrected over all contrasts of the scan. It is shown where it
            is there and exceeds BM25's own on the same queries (both tests, [BERGER82]).
        alone: Whether it is there, whatever BM25 does: not corrected.
    """

    name: str
    by: str
    first: str
    last: str
    of_first: float | None
    of_last: float | None
    bm25: tuple[float, float] | None
    found: Comparison
    alone: Comparison = field(metadata=LEFT_OUT)

    @property
    def verdict(self) -> str:
        """That of ``found``."""
        return self.found.verdict


@dataclass(frozen=True, slots=True)
class LostSentence:
    """What was asked for, the characters and the text of the sentence, and BM25's rank (None: beyond k)."""

    query: str
    start: int
    end: int
    text: str
    bm25: int | None


@dataclass(frozen=True, slots=True)
class LostPassage:
    """A passage that none of its sentences finds, with its ``words`` and ``group`` (None: none, or several)."""

    doc_id: str
    words: int
    group: str | None
    sentences: tuple[LostSentence, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ScanResult(Result):
    """The result of :func:`evenrank.scan`.

    Attributes:
        retrievers: The one that was scanned, then the one ``against`` which, then BM25.
        contrasts: First − last tenth, read − cut off, and groups of the same length and depth; with ``against`` also
            the one retriever minus the other.
        lost: Passages that none of their sentences finds. ``gone``: those that the other retriever finds by one and
            this by none; ``won``: the reverse.
        edge: Where the share that is found falls the most, in words from the beginning, where it falls by depth.
        passages: How many were drawn, of ``documents``; ``queries``: of their sentences, or real questions;
            ``wordless``: of ``of_sentences``, those left out, as they have no three rare words of their own.
        same: Queries for which a passage with the same words stood for their own.
        questions: Whether they are real; ``unjudged``: left out, as no passage of the collection is relevant for them.
        grouped: Whether groups were asked for, which by default are those of ``gender-en``.
    """

    retrievers: tuple[Found, ...]
    contrasts: tuple[Contrast, ...]
    lost: tuple[LostPassage, ...]
    documents: int
    passages: int
    queries: int
    wordless: int
    same: int
    k: int
    edge: int | None = None
    gone: tuple[str, ...] = ()
    won: tuple[str, ...] = ()
    questions: bool = False
    unjudged: int = 0
    of_sentences: int = 0
    grouped: bool = field(default=False, metadata=LEFT_OUT)
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sentences: pl.DataFrame | None = field(default=None, metadata=LEFT_OUT, compare=False)
    """The queries with the rank of each retriever: ``rank_NAME``, null beyond k."""

    @property
    def name(self) -> str:
        """The retriever that was scanned."""
        return self.retrievers[0].name

    def page(self) -> Page:
        """What was found, its figures and its charts."""
        from .scan_page import scan_page

        return scan_page(self)


# --- figures ----------------------------------------------------------------------------------------------------------


def own_ranks(run: Run, items: pl.DataFrame, passages: Passages, relevant: pl.DataFrame | None) -> tuple[Array, Array]:
    """The rank of each query's passage [Q], or of one that holds its sentence or shares nine tenths of its words;
    infinite beyond the list.

    And whether it is another than the passage itself [Q]. ``relevant``: ``query_id``, ``doc_id`` of real questions, of
    which no other passage holds the sentence.
    """
    number = pl.DataFrame({"doc_id": passages.ids}).with_row_index("document")
    asked = items.select("query_id", pl.col("doc_id").alias("own")).with_row_index("query")
    lists = run.table.select("query_id", "doc_id", "rank").join(asked, on="query_id", how="inner")
    lists = lists.join(number, on="doc_id", how="left")
    unknown = lists.filter(pl.col("document").is_null())
    if unknown.height:
        others = unknown["doc_id"].n_unique()
        raise EvenrankError(
            f"run {run.name}: {counted(others, 'document')} of its lists {are(others)} not in the collection:"
            f" {quoted(unknown['doc_id'][0])}"
        )
    ranks = np.full(items.height, np.inf)
    wanted = asked.select("query_id", pl.col("own").alias("doc_id")) if relevant is None else relevant
    own = lists.join(wanted, on=["query_id", "doc_id"], how="semi").group_by("query").agg(pl.col("rank").min())
    ranks[own["query"].to_numpy()] = own["rank"].to_numpy()
    before = lists.filter(pl.col("rank") < pl.Series(ranks)[lists["query"].to_numpy()]) if lists.height else lists
    before = before.join(number.rename({"doc_id": "own", "document": "mine"}), on="own", how="left")
    stands = _same_words(passages.index, before["mine"].to_numpy(), before["document"].to_numpy())
    if relevant is None:
        stands |= _holding(passages, items, before)
    alike = before.filter(pl.Series(stands, dtype=pl.Boolean))
    first = alike.group_by("query").agg(pl.col("rank").min())
    other = np.zeros(items.height, np.bool_)
    ranks[first["query"].to_numpy()] = first["rank"].to_numpy()
    other[first["query"].to_numpy()] = True
    return ranks, other


def _holding(passages: Passages, items: pl.DataFrame, rows: pl.DataFrame) -> Array:
    """Whether the document of each row holds the sentence that its query is of, as passages that overlap do."""
    texts = passages.texts(pl.concat([rows["doc_id"], items["doc_id"]]).unique())
    by_id = dict(texts.iter_rows())
    places = items.select("doc_id", "start", "end").rows()
    sentences = [by_id[doc_id][start:end] for doc_id, start, end in places]
    pairs = rows.select("query", "doc_id").iter_rows()
    return np.array([sentences[query] in by_id[doc_id] for query, doc_id in pairs], np.bool_)


def _same_words(index: Index, mine: Array, others: Array) -> Array:
    """Whether passages ``others`` [n] and ``mine`` [n] share nine tenths of the distinct words of either."""
    from scipy.sparse import csr_array

    forward = index.forward
    size = len(forward.starts) - 1, index.analyzer.size
    words = csr_array((np.ones(len(forward.terms), np.int32), forward.terms, forward.starts), shape=size)
    sizes = np.diff(forward.starts)
    found = np.zeros(len(mine), np.bool_)
    # Long passages a few at a time.
    part = np.cumsum(sizes[mine] + sizes[others]) // _TERMS
    for rows in np.split(np.arange(len(mine)), np.flatnonzero(np.diff(part)) + 1):
        common = (words[mine[rows]] * words[others[rows]]).sum(axis=1)
        larger = np.maximum(sizes[mine[rows]], sizes[others[rows]])
        found[rows] = (common >= SAME * larger) & (larger > 0)
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """Each query's passage as a number [Q], and the parts that it is in.

    ``tenth`` [Q]: from 0; −1 for the only sentence. ``length`` [Q]: the row of LENGTHS. ``group`` [Q]: a number,
    −1 for none, −2 for unknown, of ``groups``.
    """

    passage: Array
    tenth: Array
    length: Array
    group: Array
    groups: tuple[str, ...]

    @classmethod
    def of(cls, queries: pl.DataFrame, group: Array, groups: tuple[str, ...]) -> Asked:
        """Those of :class:`KnownItems`' ``queries``; ``group`` [P]: of each passage, in order of appearance."""
        ids = queries["doc_id"].unique(maintain_order=True)
        rows = pl.DataFrame({"doc_id": ids}).with_row_index("row")
        passage = queries.select("doc_id").join(rows, on="doc_id", how="left", maintain_order="left")["row"]
        number = passage.to_numpy().astype(np.int64)
        place = queries["place"].to_numpy().astype(np.float64)
        tenth = np.where(np.isnan(place), -1, np.minimum(np.nan_to_num(place) * TENTHS, TENTHS - 1)).astype(np.int64)
        return cls(
            number, tenth, np.searchsorted(np.array(LENGTHS), queries["words"].to_numpy()), group[number], groups
        )

    def parts(self, read: Array | None) -> Iterator[tuple[str, str, Array]]:
        """What figures are said of: by what, which, and which queries [Q]."""
        for tenth in range(TENTHS):
            yield "depth", TENTH_NAMES[tenth], self.tenth == tenth
        for row in range(len(LENGTHS) + 1):
            yield "length", _length(row), self.length == row
        for number, group in enumerate(self.groups):
            yield "group", group, self.group == number
        if self.groups:
            yield "group", NONE, self.group == -1
        if read is not None and not read.all():
            yield "read", "read", read
            yield "read", "cut off", ~read


TENTH_NAMES = ("first tenth", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "last tenth")


def _length(row: int) -> str:
    if row == len(LENGTHS):
        return f"over {LENGTHS[-1]:,} words"
    return f"{LENGTHS[row - 1] + 1 if row else 1}–{LENGTHS[row]} words"


def _share(values: Array, passage: Array) -> Estimate:
    """The mean of values [Q] from 0 to 1, its interval over passages within 0 and 1; of fewer than 15 none.

    Where all are 0 or all are 1, the interval is Wilson's of as many passages.
    """
    found = estimate(linearized_means(values, passage), unit=UNIT)
    mean, ci95 = found.mean or 0.0, found.ci95
    if found.n < LEAST_SAMPLE:
        ci95 = None
    elif ci95 is not None:
        ci95 = max(0.0, ci95[0]), min(1.0, ci95[1])
    elif mean in (0.0, 1.0):
        ci95 = proportion(round(mean * found.n), found.n)
    return replace(found, ci95=ci95)


def _part(by: str, part: str, ranks: Array, passage: Array, k: int) -> Part:
    values = [(ranks <= most).astype(np.float64) for most in (1, AT, k)] + [1 / ranks]
    return Part(by, part, len(ranks), *(_share(value, passage) for value in values))


def _found(searched: Lists, ranks: Array, asked: Asked, read: Array | None, passages: Passages, k: int) -> Found:
    parts = tuple(
        _part(by, part, ranks[inside], asked.passage[inside], k)
        for by, part, inside in asked.parts(read)
        if inside.any()
    )
    nothing = 1.0 - (np.minimum.reduceat(_by_passage(ranks, asked.passage), _starts(asked.passage)) <= AT)
    rows = searched.run.table.join(pl.DataFrame({"doc_id": passages.ids}).with_row_index("document"), on="doc_id")
    shown = retrievability(rows["document"].to_numpy().astype(np.int64), rows["rank"].to_numpy(), len(passages.ids))
    most = np.lexsort((np.arange(len(shown)), -shown))[:HUBS]
    hubs = tuple((passages.ids[int(row)], float(shown[row])) for row in most if shown[row])
    exposure = Exposure(gini(shown), int((shown == 0).sum()), len(shown), hubs, tuple(lorenz(shown).tolist()))
    whole = _part("whole", "all", ranks, asked.passage, k)
    lost, unlisted = _share(nothing, np.arange(len(nothing))), len(ranks) - rows["query_id"].n_unique()
    return Found(searched.run.name, whole, parts, lost, exposure, unlisted)


def _by_passage(values: Array, passage: Array) -> Array:
    return values[np.argsort(passage, kind="stable")]


def _starts(passage: Array) -> Array:
    sizes = np.bincount(passage)
    sizes = sizes[sizes > 0]
    return np.cumsum(sizes) - sizes


def within(values: Array, passage: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """The mean of values [Q] over the queries ``first`` [Q], and over ``last``, of each passage with both: [P] each.

    >>> within(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1]), np.array([1, 0, 1]) > 0, np.array([0, 1, 0]) > 0)
    (array([1.]), array([0.]))
    """
    size = int(passage.max(initial=-1)) + 1
    counts = [np.bincount(passage[one], minlength=size) for one in (first, last)]
    known = (counts[0] > 0) & (counts[1] > 0)
    of_first, of_last = (
        np.bincount(passage[one], values[one], size)[known] / count[known]
        for one, count in zip((first, last), counts, strict=True)
    )
    return of_first, of_last


def matched(values: Array, passage: Array, inside: Array, others: Array, strata: Array) -> tuple[Array, Array]:
    """One value a passage of a group, and of the others, whose means are those of their queries [Q] within the same
    strata [Q].

    Σ_s w_s ā_s / Σ w_s and Σ_s w_s b̄_s / Σ w_s with w_s = n_a n_b / (n_a + n_b), over the strata that have both. What
    is made of each query is its difference from the mean of its stratum, so that a stratum with a single query of the
    group varies too. Passages without a query in such strata have no value.
    """
    size = int(strata.max(initial=-1)) + 1
    of_group, of_others = (np.bincount(strata[one], minlength=size).astype(np.float64) for one in (inside, others))
    both_there = of_group + of_others
    weight = np.divide(of_group * of_others, both_there, out=np.zeros(size), where=both_there > 0)
    either = inside | others
    total = np.bincount(strata[either], values[either], size)
    mean = np.divide(total, both_there, out=np.zeros(size), where=both_there > 0)
    found = []
    for one, count in ((inside, of_group), (others, of_others)):
        used = one & (weight[strata] > 0)
        share = weight[strata[used]] / count[strata[used]] / max(weight.sum(), 1e-300)
        _, place = np.unique(passage[used], return_inverse=True)
        parts = np.bincount(place, share * (values[used] - mean[strata[used]]))
        level = float(weight @ mean) / max(weight.sum(), 1e-300)
        found.append(level + parts * len(parts))
    return found[0], found[1]


def _beyond(alone: Comparison, gap: Comparison) -> Comparison:
    """The difference ``alone``, shown where it is there and the ``gap`` to BM25's own is on the same side.

    One that is not there is not shown, whatever can be told of the gap.
    """
    if alone.p is not None and alone.p >= SIGNIFICANT and gap.p is None:
        return alone
    return intersection_union(alone, gap)


def _compare_within(first: Array, last: Array) -> Comparison:
    """Whether the shares [P] of two parts of the same passages differ."""
    found = compare_passages(first - last, np.arange(len(first)))
    differ = int((np.abs(first - last) > EQUAL).sum())
    if found.p is None and found.n:
        there = counted(found.n, "passage")
        what = (
            f"there are only {there} with both"
            if found.n < LEAST_SAMPLE
            else f"the two differ in only {differ} of {there}"
        )
        return replace(found, reason=f"{what}, where {LEAST_SAMPLE} are needed")
    return found


def _within_contrast(
    of: tuple[str, str, str, str], values: Array, control: Array | None, asked: Asked, first: Array, last: Array
) -> Contrast:
    """First − last, in the passages that have both."""
    own = within(values, asked.passage, first, last)
    if not len(own[0]):
        none = undecidable(None, 0, "no passage has both", UNIT)
        return Contrast(*of, None, None, None, none, none)
    shares = float(own[0].mean()), float(own[1].mean())
    alone = _compare_within(*own)
    if control is None:
        return Contrast(*of, *shares, None, alone, alone)
    theirs = within(control, asked.passage, first, last)
    gap = _compare_within(own[0] - theirs[0], own[1] - theirs[1])
    beside = float(theirs[0].mean()), float(theirs[1].mean())
    return Contrast(*of, *shares, beside, _beyond(alone, gap), alone)


def _group_contrast(
    of: tuple[str, str, str, str], values: Array, control: Array | None, asked: Asked, inside: Array, others: Array
) -> Contrast:
    """A group − others, of the same length and depth."""
    strata = asked.length * (TENTHS + 1) + asked.tenth + 1
    own = matched(values, asked.passage, inside, others, strata)
    for there, what in (
        ([len(np.unique(asked.passage[part])) for part in (inside, others)], "have queries"),
        ([len(one) for one in own], "have their like in length and depth"),
    ):
        if min(there) < LEAST_SAMPLE:
            fewest = of[2 + int(there[1] < there[0])]
            why = f"only {counted(min(there), 'passage')} of {fewest} {what}, where {LEAST_SAMPLE} are needed"
            none = undecidable(None, there[0], why, UNIT)
            return Contrast(*of, None, None, None, none, none)
    shares = _mean(own[0]), _mean(own[1])
    alone = _compare_matched(*own)
    if control is None:
        return Contrast(*of, *shares, None, alone, alone)
    theirs = matched(control, asked.passage, inside, others, strata)
    gap = _compare_matched(*matched(values - control, asked.passage, inside, others, strata))
    beside = _mean(theirs[0]), _mean(theirs[1])
    return Contrast(*of, *shares, beside, _beyond(alone, gap), alone)


def _mean(shares: Array) -> float:
    """The mean of shares; what rounding leaves beyond 0 and 1 goes."""
    return min(1.0, max(0.0, float(shares.mean())))


def _compare_matched(inside: Array, others: Array) -> Comparison:
    """Whether a group's values differ from the others'; constants differ, or no difference is shown."""
    if np.ptp(inside) < EQUAL and np.ptp(others) < EQUAL:
        gap = float(inside.mean() - others.mean())
        same = abs(gap) < EQUAL
        return Comparison(0.0 if same else gap, None, len(inside), UNIT, p=float(same), mde=0.0)
    return compare_groups(inside, others, unit=UNIT)


def contrasts_of(
    names: Sequence[str], values: Sequence[Array], control: Array | None, asked: Asked, reads: Sequence[Array | None]
) -> tuple[Contrast, ...]:
    """The contrasts of one or two retrievers ``names``, with Holm's correction over all.

    ``values``: of each whether it finds each query's passage [Q]; ``control``: whether BM25 does [Q], None if it is
    BM25; ``reads``: whether each reads the query's sentence to its end [Q], None where that is unknown.
    """
    found = [
        contrast
        for name, value, read in zip(names, values, reads, strict=False)
        for contrast in _contrasts(name, value, control, asked, read)
    ]
    if len(names) > 1:
        ours, theirs = (cluster_means(one, asked.passage) for one in values[:2])
        change = compare_passages(ours - theirs, np.arange(len(ours)))
        shares = float(ours.mean()), float(theirs.mean())
        found.append(Contrast(names[0], "retriever", names[0], names[1], *shares, None, change, change))
    after = corrected([one.found for one in found])
    return tuple(replace(one, found=kept) for one, kept in zip(found, after, strict=True))


def _contrasts(name: str, values: Array, control: Array | None, asked: Asked, read: Array | None) -> Iterator[Contrast]:
    of = (name, "depth", "first tenth", "last tenth")
    yield _within_contrast(of, values, control, asked, asked.tenth == 0, asked.tenth == TENTHS - 1)
    if read is not None and not read.all():
        yield _within_contrast((name, "read", "read", "cut off"), values, control, asked, read, ~read)
    # Of two groups the one minus the other; of more each minus all others.
    two = len(asked.groups) == 2
    for number, group in enumerate(asked.groups[:1] if two else asked.groups):
        others = asked.group == 1 if two else (asked.group >= 0) & (asked.group != number)
        of = (name, "group", group, asked.groups[1] if two else "others")
        yield _group_contrast(of, values, control, asked, asked.group == number, others)


def edge_of(values: Array, word: Array) -> int | None:
    """About which word the mean of values [Q] falls to less than half: the step that fits best, ``word`` [Q] being
    where each query's sentence begins. None where it falls by less."""
    order = np.argsort(word, kind="stable")
    at, of = word[order], values[order]
    before = np.arange(1, len(of))
    so_far = np.cumsum(of)[:-1]
    gap = so_far / before - (of.sum() - so_far) / (len(of) - before)
    gain = np.where((np.diff(at) > 0) & (gap > 0), gap**2 * before * (len(of) - before), 0.0)
    step = int(gain.argmax())
    left, right = of[: step + 1].mean(), of[step + 1 :].mean()
    return int(at[step] + at[step + 1]) // 2 if right < left / 2 else None


def _groups(source: GroupSource, ids: pl.Series) -> tuple[Array, tuple[str, ...]]:
    """The group of each passage [P], as in :class:`Asked`, and the groups."""
    table = source.table([ids])
    rows = pl.DataFrame({"doc_id": ids}).join(
        table.table.select("doc_id").with_row_index("row"), on="doc_id", how="left", maintain_order="left"
    )["row"]
    known = rows.is_not_null().to_numpy()
    found = np.full(len(ids), -2, np.int64)
    found[known] = largest_groups(table, rows.drop_nulls().to_numpy())
    groups = table.groups
    if table.poles is not None and table.poles[1] in groups:
        # The first pole minus the second.
        order = [*table.poles, *(group for group in groups if group not in table.poles)]
        turn = np.array([order.index(group) for group in groups])
        found[found >= 0] = turn[found[found >= 0]]
        groups = tuple(order)
    return found, groups


# --- the call ---------------------------------------------------------------------------------------------------------


@checked
def scan_queries(
    collection: object,
    *,
    sample: Annotated[int, opt.COUNT] = 2000,
    sentences: Annotated[int, opt.Range(1, 1000)] = 5,
    seed: Annotated[int, opt.SEED] = 0,
    quiet: bool = True,
) -> pl.DataFrame:
    """The known-item queries of a scan: ``query_id``, ``text``, ``doc_id``, ``start``, ``end``, ``place``, ``word`` and
    ``words``; see :func:`evenrank.scan`.

    For a search that is not here: ask them there, and scan the ``run`` that it gives, with the same settings.

    Raises EvenrankError for a setting out of range, and if no sentence has a query.
    """
    return Passages.of(collection, quiet).items(sample, sentences, seed).queries


def _questions(queries: pl.DataFrame, qrels: pl.DataFrame, answers: object, passages: Passages) -> KnownItems:
    """Real questions, each with the relevant passage that its first answer is in, or its first relevant one.

    Those without a relevant passage in the collection are left out.
    """
    relevant = qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    asked = queries.join(relevant, on="query_id", how="inner", maintain_order="left_right")
    asked = asked.filter(pl.col("doc_id").is_in(passages.ids.implode()))
    if not asked.height:
        raise EvenrankError("no query has a relevant passage of the collection")
    spans = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "start": pl.Int64, "end": pl.Int64})
    if answers is not None:
        found = answers if isinstance(answers, pl.DataFrame) else load_squad(cast("str", answers)).answers()
        spans = found.select(
            "query_id", "doc_id", pl.col("answer_start").alias("start"), pl.col("answer_end").alias("end")
        )
    located = asked.join(spans, on=["query_id", "doc_id"], how="left", maintain_order="left")
    located = located.sort(pl.col("start").is_null(), maintain_order=True).unique(
        "query_id", keep="first", maintain_order=True
    )
    located = queries.select("query_id").join(located, on="query_id", how="inner", maintain_order="left")
    texts = passages.texts(located["doc_id"].unique(maintain_order=True))
    return KnownItems(placed(located, texts), texts.height, queries.height - located.height)


@checked
def scan(
    collection: opt.TheCollection,
    *,
    model: Annotated[
        object,
        opt.Option(
            "As for evenrank index or rerank, or bm25.",
            metavar="MODEL",
            unless=("index", "run", "url", "save_queries"),
            panel="Model",
        ),
    ] = None,
    index: Annotated[
        object,
        opt.Option(
            "An index of the collection (evenrank index); with --model, made there.",
            metavar="DIR",
            reads=True,
            panel="Input",
        ),
    ] = None,
    run: Annotated[
        object,
        opt.Option(
            "What another search found for --save-queries.",
            reads=True,
            excludes=("model", "index", "url"),
            panel="Input",
        ),
    ] = None,
    questions: Annotated[
        object,
        opt.Option(
            "Real questions instead, with --qrels.",
            metavar="FILE",
            reads=True,
            needs=("qrels",),
            panel="Input",
            rare=True,
        ),
    ] = None,
    qrels: Annotated[
        object,
        opt.Option("Which passages they should find.", reads=True, needs=("questions",), panel="Input", rare=True),
    ] = None,
    answers: Annotated[
        object,
        opt.Option(
            "Where their answers are.", metavar="SQUAD.json", reads=True, needs=("questions",), panel="Input", rare=True
        ),
    ] = None,
    against: Annotated[
        object,
        opt.Option("Another model, index or run: what is lost, won.", metavar="OTHER", reads=True, panel="Input"),
    ] = None,
    k: Annotated[int, opt.Option("Passages per query.", range=opt.COUNT, rare=True)] = 100,
    sample: Annotated[
        int,
        opt.Option(
            "Passages to draw, whose sentences are asked for.", range=opt.COUNT, metavar="N", panel="Statistics"
        ),
    ] = 2000,
    sentences: Annotated[
        int,
        opt.Option("Sentences of each, at most.", range=opt.Range(1, 1000), metavar="N", panel="Statistics", rare=True),
    ] = 5,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    batch_size: opt.BatchSize = 32,
    device: opt.Device = None,
    seed: Annotated[int, opt.Option("Seed of the sample.", range=opt.SEED, panel="Statistics", rare=True)] = 0,
    quiet: bool = True,
    **groups: Unpack[opt.GroupOptions],
) -> ScanResult:
    """Find what a retriever can't find. Which parts of the passages, and whose: it needs no judgements.

    Of ``sample`` passages, up to five sentences each: a query of the sentence's rarest words, which should bring the
    passage back. A word that stands elsewhere in the passage is not used, so that this part alone can. A passage that
    holds the sentence, or shares nine tenths of the words, counts as well. How often the passage is among the first 1,
    10 and ``k``, by the tenth of the passage where the sentence stands (0 the first sentence, 1 the last, as in
    position sensitivity), by length, by group and by whether the model reads so far; and how often each passage of the
    collection is shown at all.

    BM25 over the same passages stands beside it: it cannot see places, so what falls as its curve does is the queries'
    own. A contrast is *shown* where it differs from 0 and from BM25's own, by tests over passages, with Holm's
    correction over all of them. That of groups is within the same length and depth. When it misleads: words of a
    sentence are not a question, and a model of meaning is worse with rare words than with questions; compare parts and
    models, not the level.

    Args:
        collection: As for :func:`evenrank.retrieve`.
        model: A folder, a name on the hub, a loaded model, or ``"bm25"``. A model that cannot search (a cross-encoder,
            an ``Endpoint``, a function) ranks BM25's first ``k``.
        index: An index of the collection, open or by its folder, in place of a model; with ``model``, the folder of its
            index, which is made if it is not there: an interrupted scan goes on, a later one finds the vectors.
        run: What another search found, in place of both, for the queries of :func:`evenrank.scan_queries` with the same
            ``sample``, ``sentences`` and ``seed``.
        questions: Real questions instead.
        qrels: Which passages they should find.
        answers: Where their answers are: a SQuAD file, or a frame as of :func:`evenrank.position_sensitivity`. A
            question's depth is that of its answer in a relevant passage.
        against: Another model, index or run, for the same queries.
        groups: Of the passages, as :func:`evenrank.audit` takes them: words of ``gender-en`` without any.

    Raises:
        EvenrankError: For a setting out of range; for none or several of ``model``, ``index`` and ``run``; if no
            sentence has a query; for a run or an index that is of another collection.
    """
    given = {name: one for name, one in (("model", model), ("index", index), ("run", run)) if one is not None}
    if isinstance(against, str) and against == BM25:
        raise EvenrankError(f"{arg.against}: BM25 stands beside in any case")
    if k < AT:
        raise EvenrankError(f"{arg.k}: expected {AT} or more, found {k}")
    source = GroupSource(collection, **groups)
    made = Provenance("evenrank.scan")
    role, retriever = next(iter(given.items()))
    for name, one in ((role, retriever), ("against", against)):
        _note(made, name, one)
    for name, one in (("questions", questions), ("qrels", qrels)):
        made.add(name, one)
    if not isinstance(answers, pl.DataFrame):
        made.add("answers", answers)
    source.note(made)
    made.ahead()
    passages = Passages.of(collection, quiet)
    if len(passages.ids) <= AT:
        raise EvenrankError(f"{arg.collection}: expected more than {AT} passages, found {len(passages.ids)}")
    relevant = None
    if questions is None:
        items = passages.items(sample, sentences, seed)
    else:
        judged = as_qrels(qrels)
        relevant = judged.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
        items = _questions(as_queries(questions, arg.questions), judged, answers, passages)
    encoding = Encoding(
        batch_size=batch_size, device=device, query_prompt=query_prompt, document_prompt=document_prompt
    )
    asked = items.queries.select("query_id", "text")
    search = Searching(passages, asked, questions is None, k, encoding, kind, quiet)
    folder = cast("str | None", index) if len(given) > 1 else None
    searched = [search.of_model(model, folder) if folder is not None else search.with_any(retriever, role)]
    if against is not None:
        searched.append(search.with_any(against, "against"))
    of_words = isinstance(retriever, str) and retriever == BM25
    named = {"collection": collection if is_path(collection) else None, **given, "against": against}
    settings: dict[str, object] = {
        name: os.fspath(one) if is_path(one) else type(one).__name__ for name, one in named.items() if one is not None
    }
    settings |= {"k": k} if questions is not None else {"sample": sample, "sentences": sentences, "seed": seed, "k": k}
    if not of_words:
        searched.append(search.bm25())
    # Longer lists would show more than those of a run that are cut.
    k = min([k, *(max(AT, one.depth) for one in searched if one.depth is not None)])
    return _result(
        [one.first(k) for one in searched],
        of_words,
        items,
        passages,
        source,
        relevant,
        made,
        k,
        settings,
    )


def _note(made: Provenance, role: str, given: object) -> None:
    """Records a retriever among the inputs."""
    if given is None:
        return
    if isinstance(given, Endpoint) or not (is_path(given) or isinstance(given, Run | pl.DataFrame | Mapping)):
        address = shown_address(given)
        made.name(role, address or type(given).__name__, "asked over HTTP" if address else "in memory")
    elif is_path(given) and not os.path.isfile(given) and not is_index(given):
        if given == BM25:
            return
        made.add_model(role, given)
    else:
        made.add(role, given, tree=is_path(given) and is_index(given))


def _result(
    searched: Sequence[Lists],
    of_words: bool,
    items: KnownItems,
    passages: Passages,
    source: GroupSource,
    relevant: pl.DataFrame | None,
    made: Provenance,
    k: int,
    settings: dict[str, object],
) -> ScanResult:
    """The result of lists: the retriever's, perhaps another's, and BM25's last (if the retriever is not BM25)."""
    searched = _renamed(searched)
    queries = items.queries
    ids = queries["doc_id"].unique(maintain_order=True)
    texts = passages.texts(ids)
    of_passage, names = _groups(source, ids)
    asked = Asked.of(queries, of_passage, names)
    passage, ends = asked.passage, queries["end"].to_numpy()
    found, values, ranks, reads = [], [], [], []
    others: list[int] = []
    for one in searched:
        of, other = own_ranks(one.run, queries, passages, relevant)
        read_to = one.reads_to(texts["text"].to_list())
        # Without answers it is unknown where the part is that a question asks for.
        placeless = relevant is not None and queries["place"].is_null().all()
        read = None if read_to is None or placeless else ends <= read_to[passage]
        kept = _found(one, of, asked, read, passages, k)
        share = None if read_to is None else words_read(texts["text"], read_to)
        found.append(replace(kept, read=share, reads=one.reads if isinstance(one.reads, int) else None))
        values.append((of <= AT).astype(np.float64))
        ranks.append(of)
        reads.append(read)
        others.append(int(other.sum()))
    control = None if of_words else values[-1]
    tested = found if of_words else found[:-1]
    contrasts = contrasts_of([one.name for one in tested], values, control, asked, reads)
    gone: tuple[str, ...] = ()
    won: tuple[str, ...] = ()
    if len(tested) > 1:
        here, there = (np.maximum.reduceat(_by_passage(value, passage), _starts(passage)) > 0 for value in values[:2])
        gone, won = (tuple(ids.filter(pl.Series(one)).to_list()) for one in (there & ~here, here & ~there))
    falls = any(
        contrast.verdict == "shown" and contrast.by == "depth" and (contrast.found.mean or 0) > 0
        for contrast in contrasts[:1]
    )
    word = queries["word"].to_numpy()
    columns = [
        pl.Series(f"rank_{of.name}", [None if np.isinf(one) else int(one) for one in rank], pl.Int64)
        for of, rank in zip(found, ranks, strict=True)
    ]
    return ScanResult(
        tuple(found),
        contrasts,
        _lost(queries, texts, asked, ranks[0], ranks[-1]),
        len(passages.ids),
        items.passages,
        queries.height,
        items.left_out if relevant is None else 0,
        others[0],
        k,
        edge_of(values[0], word) if falls else None,
        gone,
        won,
        relevant is not None,
        items.left_out if relevant is not None else 0,
        items.sentences,
        any(one is not None for one in (source.scores, source.labels, source.lexicon, source.poles)),
        settings,
        tuple(note for one in searched for note in one.notes),
        queries.with_columns(columns),
        provenance=made,
    )


def _renamed(searched: Sequence[Lists]) -> list[Lists]:
    """The lists, each under a name of its own; BM25's, the last, keep theirs."""
    taken: set[str] = set()
    found: list[Lists] = []
    for one in reversed(searched):
        name = one.run.name
        while name in taken:
            name += "′"
        taken.add(name)
        found.insert(0, replace(one, run=replace(one.run, name=name)))
    return found


def _lost(
    queries: pl.DataFrame,
    texts: pl.DataFrame,
    asked: Asked,
    ranks: Array,
    beside: Array,
) -> tuple[LostPassage, ...]:
    """The passages that none of their sentences finds, those that BM25 finds best first."""
    order, starts = np.argsort(asked.passage, kind="stable"), _starts(asked.passage)
    best = np.minimum.reduceat(ranks[order], starts)
    columns = queries.select("text", "start", "end", "words").rows()
    lost: list[LostPassage] = []
    for row in np.flatnonzero(best > AT):
        own = order[starts[row] : starts[row + 1] if row + 1 < len(starts) else len(order)]
        text = texts["text"][int(row)]
        sentences = []
        for at in own.tolist():
            query, start, end, _ = columns[at]
            rank = None if np.isinf(beside[at]) else int(beside[at])
            sentences.append(LostSentence(query, start, end, text[start:end], rank))
        group = asked.group[own[0]]
        name = asked.groups[group] if group >= 0 else None
        lost.append(LostPassage(texts["doc_id"][int(row)], columns[own[0]][3], name, tuple(sentences)))
    return tuple(sorted(lost, key=lambda one: min(s.bm25 or np.inf for s in one.sentences)))
