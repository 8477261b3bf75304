"""What search loses: rules in their order, each on what the ones before it have left.

Answers are sentences of passages that were drawn, asked for as they stand: the passage should come back. Places are the
first ten of the lists of other queries: who fills them. BM25 over the same passages is the control. A share is *low*
at its lower 99% limit, with standard errors clustered by passage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.files.types import Array
from evenrank.stats.distributions import ndtri
from evenrank.stats.shares import clustered_error, sign_p, wilson_lower

Unit = Literal["sentences", "first-ten places"]
SENTENCES: Unit = "sentences"
PLACES: Unit = "first-ten places"

Z99 = 2.576
POWER_Z = 3.416
"""Standard errors beyond the limit of what is seen in four of five samples: 2.576 + .84."""
LEAST, LEAST_GROUP, LEAST_OTHERWISE = 0.01, 0.03, 0.05
ALPHA = 0.005
FEWEST_PASSAGES = 40
"""With fewer passages only what is certain is named."""
FEWEST_PAIRS, FEWEST_MISSING, FEWEST_OF_VALUE, FEWEST_OF_GROUP, FEWEST_UNSEEN = 5, 4, 4, 15, 8
PROVEN, ELSEWHERE = 0.95, 0.2
HUB_Z, HUB_LEAST, HUB_MEANS, HUB_MOST, HUB_BM25 = 3.3, 0.02, 5, 0.5, 3
SHORT_BOUNDS, SHORT_ODDS, FEWEST_SHORT = (10, 25, 50), 2, 4
FIRST_TEN = 10


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss and its cause.

    Attributes:
        cause: Such as ``"not in the index"``.
        unit: Of what ``share`` is lost, with its 99% interval.
        named: Whether the rule says so; ``first``: whether it is the largest of those that are named.
        count: How many passages it is about (ids, of those that are no documents); ``documents``: their ids, the
            worst first.
        where: The folder, label, or bound of words that they are in.
        evidence: The figures that the rule has compared.
        command: What mends it; None where no command here does.
        detectable: The share that would have been named in four of five samples.
    """

    cause: str
    unit: Unit
    share: float
    ci99: tuple[float, float]
    named: bool
    count: int = 0
    documents: tuple[str, ...] = ()
    where: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    detectable: float | None = None
    first: bool = False
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a collection of N.

    Attributes:
        ids: Their ids [N], then those of ids in lists that are none of the collection's.
        lengths: Their words [N].
        group: The number of each one's group [N], below 0 for none, of ``groups``.
        alike: Whether the documents of two arrays of numbers [n] share nine tenths of the words of either [n].
        have_query: Whether the documents of an array of numbers [n] have a sentence that can be asked for [n].
        missing, zero: Those that an index at hand lacks, or has a vector of zeros of [N].
        in_lists: Those that are in any list [N].
    """

    ids: pl.Series
    lengths: Array
    group: Array
    groups: tuple[str, ...]
    alike: Callable[[Array, Array], Array]
    have_query: Callable[[Array], Array]
    missing: Array
    zero: Array
    in_lists: Array

    def __len__(self) -> int:
        return len(self.lengths)

    def names(self, numbers: Array) -> tuple[str, ...]:
        """The ids of some documents."""
        return tuple(self.ids.gather(np.asarray(numbers, np.int64)).to_list())

    def loss(
        self,
        cause: str,
        share: float,
        error: float,
        named: object,
        rows: Array,
        evidence: Mapping[str, Any],
        *,
        unit: Unit = SENTENCES,
        where: str | None = None,
        detectable: float | None = None,
    ) -> Loss:
        """The loss of a share, with its standard error, that is about the documents ``rows``; below 0 it is none."""
        limits, names = _interval(share, error), self.names(rows)
        return Loss(cause, unit, max(0.0, share), limits, bool(named), len(rows), names, where, evidence, detectable)


@dataclass(frozen=True, slots=True)
class Results:
    """Results of a retriever and of BM25 for Q queries of one kind.

    Attributes:
        own: The document that each query is of [Q]; −1 of a log.
        lists, bm25_lists: Numbers of documents by rank [Q, k], −1 behind the end of a list, from N on for ids that are
            none of the collection's.
        ranks, bm25_ranks: That of the query's own document, or of one that stands for it, as it is alike or holds the
            sentence [Q]; infinite if none does.
        copies, bm25_copies: Whether its own document, or one that is alike, is in the list at all [Q].
        place: Where the sentence stands [Q]: the words before it as a share of those that are not its own; NaN of an
            only sentence. ``word``: how many words precede it [Q].
        read: Whether the model reads the sentence to its end [Q]; None where that is unknown.
    """

    own: Array
    lists: Array
    bm25_lists: Array
    ranks: Array
    bm25_ranks: Array
    copies: Array
    bm25_copies: Array
    place: Array
    word: Array
    read: Array | None = None

    def part(self, inside: Array) -> Results:
        """Those of the queries that are ``inside`` [Q]."""
        arrays: dict[str, Any] = {column.name: getattr(self, column.name) for column in fields(self)}
        arrays |= {name: array[inside] for name, array in arrays.items() if array is not None}
        return Results(**arrays)

    @property
    def clusters(self) -> Array:
        """What queries are drawn by [Q]: their document, or of a log the query."""
        return np.where(self.own < 0, np.arange(len(self.own)), self.own)


def rank_to_find(documents: int) -> int:
    """The rank up to which a sentence's own passage counts as found.

    >>> rank_to_find(49), rank_to_find(300), rank_to_find(1809)
    (1, 3, 10)
    """
    return 1 if documents < 100 else 3 if documents < 1000 else FIRST_TEN


# --- shares and their errors ------------------------------------------------------------------------------------------


def _mean(values: Array) -> tuple[float, Array]:
    """A mean of values [n], and the influence of each on it."""
    mean = float(values.mean()) if len(values) else 0.0
    return mean, (values - mean) / max(1, len(values))


def _ratio(part: Array, whole: Array) -> tuple[float, Array]:
    """Σ part / Σ whole over queries [Q], and the influence of each query on it."""
    total = max(1.0, float(whole.sum()))
    share = float(part.sum()) / total
    return share, (part - share * whole) / total


def _gap(values: Array, some: Array, others: Array) -> tuple[float, Array]:
    """The mean of values [Q] over ``some`` less that over ``others`` [Q], and the influence of each query on it."""
    influence = np.zeros(len(values))
    gap = 0.0
    for inside, sign in ((some, 1), (others, -1)):
        mean, own = _mean(values[inside])
        influence[inside] += sign * own
        gap += sign * mean
    return gap, influence


def _interval(share: float, error: float) -> tuple[float, float]:
    if not math.isfinite(error):
        return 0.0, 1.0
    low, high = (min(1.0, max(0.0, share + side * Z99 * error)) for side in (-1, 1))
    return low, high


# --- answers ----------------------------------------------------------------------------------------------------------


def _by_document(values: Array, own: Array, size: int) -> Array:
    """The sum of values [Q] over the queries of each document [size]."""
    return np.bincount(own, values.astype(np.float64), size)


def another_id(documents: Documents, answers: Results, left: Array) -> tuple[Loss, Array]:
    """Passages whose sentences bring another id back: that loss, and the queries [Q] that it takes.

    One id d ≠ p is first for two or more and two thirds of p's sentences, p never, and BM25 does not have d first.
    Pairs whose d answers for two passages are dropped.
    """
    size = len(documents)
    table = pl.DataFrame(
        {
            "p": answers.own,
            "d": answers.lists[:, 0],
            "first": answers.ranks <= 1,
            "bm25": answers.bm25_lists[:, 0] == answers.lists[:, 0],
        }
    ).filter(pl.Series(left))
    passages = table.group_by("p").agg(number=pl.len(), never=~pl.col("first").any()).filter(pl.col("number") >= 2)
    never = passages.filter("never")
    votes = table.group_by("p", "d").agg(times=pl.len(), bm25=pl.col("bm25").any())
    pairs = votes.join(never, on="p").filter(
        (pl.col("d") >= 0)
        & (pl.col("d") != pl.col("p"))
        & ~pl.col("bm25")
        & (pl.col("times") >= 2)
        & (3 * pl.col("times") >= 2 * pl.col("number"))
    )
    pairs = pairs.filter(pl.len().over("d") == 1).sort("p")
    p, d = pairs["p"].to_numpy(), pairs["d"].to_numpy()
    # Ids of no document are as those that were drawn and are not first for their own sentences.
    in_place = table.group_by("p").agg(pl.col("first").any()).rename({"p": "d"})
    drawn = pairs.join(in_place, on="d", how="inner")["first"]
    known = len(drawn) + int((d >= size).sum())
    taken = left & np.isin(answers.own, p)
    share, influence = _mean((taken & (answers.ranks > 1)).astype(np.float64))
    named = len(p) >= FEWEST_PAIRS and 2 * int(drawn.sum()) <= known and 2 * len(p) >= never.height
    distances = pl.Series(d - p).filter(pl.Series(d < size)).value_counts(sort=True)
    distance = None
    if distances.height and 2 * distances["count"][0] >= len(p):
        distance = int(distances[distances.columns[0]][0])
    evidence = {
        "pairs": [(documents.ids[int(a)], documents.ids[int(b)]) for a, b in zip(p, d, strict=True)],
        "never_first": never.height,
        "of_no_document": int((d >= size).sum()),
        "distance": distance,
    }
    error = clustered_error(influence, answers.own)
    seen = max(FEWEST_PAIRS, never.height / 2) / max(1, passages.height)
    return documents.loss("another id", share, error, named, p, evidence, detectable=seen), taken


def not_in_the_index(documents: Documents, answers: Results, left: Array, t: int) -> tuple[Loss, Array]:
    """Passages that no sentence of theirs finds in the whole list, though BM25 finds one: that loss, and the queries
    [Q] that it takes.

    Those found by none (f0) are compared with those found by exactly one (f1): a retriever that is only weak has as
    many of either.
    """
    size = len(documents)
    own, there = answers.own[left], answers.copies[left]
    number = _by_document(np.ones(len(own)), own, size)
    hits = _by_document(there, own, size)
    tested = number > 0
    by_bm25 = _by_document(answers.bm25_copies[left], own, size)
    none = tested & (hits == 0) & (by_bm25 > 0)
    f0, f1 = (int((number[mask] >= 2).sum()) for mask in (none, tested & (hits == 1)))
    enough = size >= FEWEST_PASSAGES
    inferred = np.zeros(size, np.bool_)
    if enough and f0 >= FEWEST_MISSING and sign_p(f0, f1) < ALPHA:
        inferred = none
    of_values = []
    for value, name in enumerate(documents.groups):
        inside = documents.group == value
        # What neither finds shows nothing.
        if enough and _whole(none, tested & (hits + by_bm25 > 0), inside, documents):
            inferred = inferred | (none & inside)
            # A passage that others find is not missing.
            if not documents.in_lists[inside].any():
                of_values.append(name)
    cause, unseen = "not in the index", np.zeros(size, np.bool_)
    of_others = (answers.lists >= 0) & (answers.lists < size) & (answers.lists != answers.own[:, None])
    others = np.isin(np.arange(size), answers.lists[of_others])
    stray = inferred.any() and (inferred & others).sum() >= ELSEWHERE * inferred.sum()
    if stray or (documents.zero.any() and not documents.missing.any()):
        cause = "wrong vector"
    in_no_list = tested & ~documents.in_lists
    proven = int((in_no_list & inferred).sum())
    if proven and in_no_list.sum() >= FEWEST_UNSEEN and proven >= PROVEN * in_no_list.sum():
        unseen = ~tested & ~documents.in_lists
        unseen[unseen] = documents.have_query(np.flatnonzero(unseen))
    lacking = inferred | documents.missing | documents.zero
    taken = left & lacking[answers.own]
    share, influence = _mean((taken & (answers.ranks > t)).astype(np.float64))
    rows = np.flatnonzero(lacking | unseen)
    listed, drawn = (
        np.bincount(documents.group[mask & (documents.group >= 0)], minlength=len(documents.groups))
        for mask in (documents.in_lists, tested)
    )
    evidence = {
        "tested": int(tested.sum()),
        "missing": int((lacking & tested).sum()),
        "in_no_list": int((~documents.in_lists).sum()),
        "unseen": int(in_no_list.sum()),
        "proven": proven,
        "untested": int(unseen.sum()),
        "f0": f0,
        "f1": f1,
        "certain": int((documents.missing | documents.zero).sum()),
        "values": len(documents.groups),
        "unlisted_values": [documents.groups[k] for k in np.flatnonzero((drawn >= FEWEST_OF_VALUE) & (listed == 0))],
        "values_listed": bool((listed > 0).all()),
    }
    least = next(n for n in range(FEWEST_MISSING, size + 9 + 2 * f1) if sign_p(n, f1) < ALPHA)
    error, seen = clustered_error(influence, answers.own), least / max(1, int(tested.sum()))
    where = ", ".join(of_values) or None
    return documents.loss(cause, share, error, len(rows), rows, evidence, where=where, detectable=seen), taken


def _whole(none: Array, asked: Array, inside: Array, documents: Documents) -> bool:
    """Whether all tested documents of a group are missing, and more than as many others would be by chance."""
    tested, others = int((asked & inside).sum()), asked & ~inside
    if tested < FEWEST_OF_VALUE or not none[asked & inside].all():
        return False
    chance = ((none & others).sum() + 1) / (others.sum() + 2)
    return bool(len(documents.groups) * chance**tested < ALPHA)


def late(documents: Documents, answers: Results, places: Results, left: Array, t: int) -> tuple[Loss, Array]:
    """Sentences that are missed more the later they stand, beside BM25: that loss, and the queries [Q] it takes."""
    inside = left & ~np.isnan(answers.place)
    excess = (answers.ranks > t).astype(np.float64) - (answers.bm25_ranks > t)
    early = inside & (answers.place < 1 / 3)
    gap, influence = _gap(excess, inside, early)
    weight = float(inside.mean()) if len(inside) else 0.0
    error = weight * clustered_error(influence[inside], answers.own[inside])
    share = weight * gap if early.any() else 0.0
    named = share - Z99 * error > LEAST and len(documents) >= FEWEST_PASSAGES
    cause, edge = "late", None
    if answers.read is not None:
        cause = "late" if answers.read.all() else "cut off"
    else:
        tested = np.isin(places.own, answers.own[left])
        edge = edge_of((places.ranks[tested] <= t).astype(np.float64), places.word[tested])
        cause = "late" if edge is None else "cut off"
    behind = inside & ~early
    lost = behind & (answers.ranks > t) & (answers.bm25_ranks <= t)
    rows = np.unique(answers.own[lost])
    evidence = {
        "missed_first_third": _share(answers.ranks > t, early),
        "missed_rest": _share(answers.ranks > t, behind),
        "bm25_missed_first_third": _share(answers.bm25_ranks > t, early),
        "bm25_missed_rest": _share(answers.bm25_ranks > t, behind),
        "edge": edge,
        "read": None if answers.read is None else float(answers.read.mean()),
    }
    return documents.loss(cause, share, error, named, rows, evidence, detectable=_seen_from(error)), behind


def _seen_from(error: float) -> float | None:
    """The share that would be named in four of five samples, beyond the limit of 1%."""
    return LEAST + POWER_Z * error if math.isfinite(error) else None


def _share(values: Array, inside: Array) -> float | None:
    return float(values[inside].mean()) if inside.any() else None


def edge_of(values: Array, word: Array) -> int | None:
    """About which word the mean of values [Q] falls to less than half: the step that fits best, ``word`` [Q] being
    where each query's sentence begins. None where it falls by less."""
    if len(values) < 2:
        return None
    order = np.argsort(word, kind="stable")
    at, of = word[order], values[order]
    before = np.arange(1, len(of))
    so_far = np.cumsum(of)[:-1]
    gap = so_far / before - (of.sum() - so_far) / (len(of) - before)
    gain = np.where((np.diff(at) > 0) & (gap > 0), gap**2 * before * (len(of) - before), 0.0)
    step = int(gain.argmax())
    first, rest = of[: step + 1].mean(), of[step + 1 :].mean()
    return int(at[step] + at[step + 1]) // 2 if rest < first / 2 else None


def groups(documents: Documents, answers: Results, left: Array, t: int) -> tuple[list[Loss], Array]:
    """Groups whose passages are missed more than the others', beside BM25: those losses, and the queries they take."""
    excess = (answers.ranks > t).astype(np.float64) - (answers.bm25_ranks > t)
    of_query = documents.group[answers.own]
    drawn = documents.group[np.unique(answers.own[left])]
    sizes = np.bincount(drawn[drawn >= 0], minlength=len(documents.groups))
    tested = np.flatnonzero(np.minimum(sizes, len(drawn) - sizes) >= FEWEST_OF_GROUP).tolist()
    losses, taken = [], np.zeros(len(left), np.bool_)
    for number in tested:
        inside, outside = left & (of_query == number), left & (of_query != number)
        gap, influence = _gap(excess, inside, outside)
        error = clustered_error(influence[left], answers.own[left])
        weight = float(inside.sum()) / len(left)
        shown = gap > -ndtri(ALPHA / len(tested)) * error
        named = shown and gap - Z99 * error > LEAST_GROUP and len(documents) >= FEWEST_PASSAGES
        rows = np.unique(answers.own[inside & (answers.ranks > t) & (answers.bm25_ranks <= t)])
        evidence = {
            "missed": _share(answers.ranks > t, inside),
            "missed_elsewhere": _share(answers.ranks > t, outside),
            "bm25_missed": _share(answers.bm25_ranks > t, inside),
            "bm25_missed_elsewhere": _share(answers.bm25_ranks > t, outside),
        }
        seen, where = weight * (LEAST_GROUP + POWER_Z * error), documents.groups[number]
        loss = documents.loss("group", gap, error, named, rows, evidence, where=where, detectable=seen)
        # Of all sentences, not of the group's.
        losses.append(replace(loss, share=weight * loss.share, ci99=(weight * loss.ci99[0], weight * loss.ci99[1])))
        if named:
            taken |= inside
    return losses, taken


def otherwise(documents: Documents, answers: Results, left: Array, t: int, found: float, named: float) -> Loss:
    """What is missed for none of these causes: all that is neither ``found`` nor in losses of ``named`` in all."""
    missed = left & (answers.ranks > t)
    _, influence = _mean(missed.astype(np.float64))
    error = clustered_error(influence, answers.own)
    share = max(0.0, 1 - found - named)
    rows = np.unique(answers.own[missed])
    evidence = {"bm25_finds": _share(answers.bm25_ranks <= t, missed)}
    many = _interval(share, error)[0] > LEAST_OTHERWISE and len(documents) >= FEWEST_PASSAGES
    return documents.loss("not found otherwise", share, error, many, rows, evidence)


# --- places -----------------------------------------------------------------------------------------------------------


def place_losses(documents: Documents, places: Results, top: int, renamed: bool) -> list[Loss]:
    """Who fills the first places of lists: ids of no document, repeats, hubs, short passages; each place once.

    ``renamed``: whether ids of no document are those of passages whose loss has been named.
    """
    size, enough = len(documents), len(documents) >= FEWEST_PASSAGES
    lists, bm25 = places.lists[:, :top], places.bm25_lists[:, :top]
    filled, bm25_filled = (lists >= 0).sum(1), (bm25 >= 0).sum(1)
    clusters = places.clusters
    ghost = lists >= size
    above = repeats(lists, size, documents.alike)
    repeat = above >= 0

    def loss(
        cause: str, held: Array, base: Array | float, rows: Array, where: str | None = None, **more: object
    ) -> Loss:
        """A loss of the places ``held`` [Q, top] beyond ``base``: a share, or BM25's places [Q, top]."""
        share, influence = _ratio(held.sum(1), filled)
        if isinstance(base, np.ndarray):
            beside, theirs = _ratio(base.sum(1), bm25_filled)
            influence = influence - theirs
        else:
            beside = base
        error, lost = clustered_error(influence, clusters), share - beside
        named, evidence = lost - Z99 * error > LEAST and enough, {"places": share, "beside": beside, **more}
        settings: dict[str, Any] = {"unit": PLACES, "where": where, "detectable": _seen_from(error)}
        return documents.loss(cause, lost, error, named, rows, evidence, **settings)

    ghosts = loss("no documents", ghost, 0.0, _most(lists[ghost]))
    ghosts = replace(ghosts, named=ghosts.named and not renamed)
    copies = loss("repeats", repeat, 0.0, _most(lists[repeat]))
    pairs = dict(zip(documents.names(lists[repeat]), documents.names(above[repeat]), strict=True))
    copies = replace(copies, evidence={**copies.evidence, "above": list(pairs.items())})
    free = (lists >= 0) & ~ghost & ~repeat
    hubs = hubs_of(lists, free, bm25, size)
    short = _shortest(documents, lists, free, bm25, loss)
    short_hubs = hubs[documents.lengths[hubs] < short.evidence["bound"]]
    if short.named and len(short_hubs):
        # Hubs that are as short are told in its line, but a few that alone take these places are hubs.
        others = _shortest(documents, lists, free & ~np.isin(lists, short_hubs), bm25, loss)
        if others.named or len(short_hubs) >= FEWEST_SHORT:
            short = replace(short, evidence={**short.evidence, "hubs": documents.names(short_hubs)})
            hubs = np.setdiff1d(hubs, short_hubs)
        else:
            short = others
    is_hub = np.isin(lists, hubs) & free
    counts = np.bincount(lists[is_hub], minlength=size)
    rows = hubs[np.argsort(-counts[hubs], kind="stable")]
    largest = float(counts.max(initial=0) / max(1, len(lists)))
    hub_loss = loss("hubs", is_hub, np.isin(bm25, hubs), rows, largest=largest)
    hub_loss = replace(hub_loss, named=hub_loss.named and len(hubs) > 0)
    return [ghosts, copies, hub_loss, short]


def _most(numbers: Array) -> Array:
    """The distinct documents, those that are there most often first."""
    documents, counts = np.unique(numbers, return_counts=True)
    return documents[np.argsort(-counts, kind="stable")]


def repeats(lists: Array, size: int, alike: Callable[[Array, Array], Array]) -> Array:
    """The document above each rank [Q, top] that the one there is alike to; −1 for none."""
    originals = np.full(lists.shape, -1, np.int64)
    for rank in range(1, lists.shape[1]):
        for above in range(rank):
            both = np.flatnonzero((lists[:, rank] >= 0) & (lists[:, rank] < size) & (originals[:, rank] < 0))
            both = both[(lists[both, above] >= 0) & (lists[both, above] < size)]
            same = both[alike(lists[both, rank], lists[both, above])]
            originals[same, rank] = lists[same, above]
    return originals


def hubs_of(lists: Array, free: Array, bm25: Array, size: int) -> Array:
    """The documents that are in far more lists than the others, and than in BM25's."""
    number = max(1, len(lists))
    times = np.bincount(lists[free], minlength=size)
    theirs = np.bincount(bm25[bm25 >= 0], minlength=size)
    mean = times.sum() / number / size
    bound = max(HUB_LEAST, min(HUB_MEANS * mean, HUB_MOST))
    return np.flatnonzero((wilson_lower(times, number, HUB_Z) >= bound) & (times >= HUB_BM25 * theirs))


def _shortest(documents: Documents, lists: Array, free: Array, bm25: Array, loss: Callable[..., Loss]) -> Loss:
    """The loss to short documents of the bound below which most is lost for certain."""
    losses = [_short(documents, lists, free, bm25, loss, bound) for bound in SHORT_BOUNDS]
    return max(losses, key=lambda short: short.ci99[0] * short.named)


def _short(documents: Documents, lists: Array, free: Array, bm25: Array, loss: Callable[..., Loss], bound: int) -> Loss:
    """Documents of fewer words than a bound: their places beyond their share of the collection, or BM25's."""
    under = documents.lengths < bound
    own = free & under[np.where(free, lists, 0)]
    theirs = (bm25 >= 0) & under[np.maximum(bm25, 0)]
    of_collection = float(under.mean())
    base = theirs if theirs.sum() > of_collection * (bm25 >= 0).sum() else of_collection
    where = f"under {bound} words"
    short = loss("short", own, base, _most(lists[own]), bound=bound, collection=of_collection, where=where)
    # A cosine alone favours passages of half the words by √2.
    places, beside = short.evidence["places"], short.evidence["beside"]
    return replace(short, named=short.named and places * (1 - beside) >= SHORT_ODDS * beside * (1 - places))


# --- all rules --------------------------------------------------------------------------------------------------------


def find_losses(
    documents: Documents, answers: Results | None, places: Results, k: int
) -> tuple[tuple[Loss, ...], float | None]:
    """The losses in order of their share, and the share of sentences that are found (None without answers)."""
    t = min(rank_to_find(len(documents)), k)
    losses: list[Loss] = []
    share: float | None = None
    renamed = False
    if answers is not None:
        left = np.ones(len(answers.own), np.bool_)
        swapped, pairs = another_id(documents, answers, left)
        swapped = replace(swapped, named=swapped.named and len(documents) >= FEWEST_PASSAGES)
        if swapped.named:
            left &= ~pairs
            renamed = 2 * swapped.evidence["of_no_document"] >= swapped.count
        rules = [swapped]
        absent, taken = not_in_the_index(documents, answers, left, t)
        rules.append(absent)
        left &= ~taken
        after, taken = late(documents, answers, places, left, t)
        rules.append(after)
        rest, explained = left.copy(), np.zeros(len(left), np.bool_)
        if after.named:
            rest &= ~taken
            explained |= taken
        of_groups, taken = groups(documents, answers, rest, t)
        rules += of_groups
        # What BM25 misses too is of no named cause.
        left &= ~((explained | taken) & (answers.bm25_ranks <= t))
        share = float((answers.ranks <= np.where(pairs & swapped.named, 1, t)).mean())
        rules.append(otherwise(documents, answers, left, t, share, sum(loss.share for loss in rules if loss.named)))
        losses += rules
    losses += place_losses(documents, places, min(FIRST_TEN, k), renamed)
    losses.sort(key=lambda one: -one.share)
    # What has no cause is named only where it is the largest.
    largest = max((loss.share for loss in losses if loss.named), default=0.0)
    losses = [
        replace(loss, named=loss.named and loss.share >= largest) if loss.cause == "not found otherwise" else loss
        for loss in losses
    ]
    first = next((loss for loss in losses if loss.named), None)
    return tuple(replace(loss, first=loss is first) for loss in losses), share
