"""The rules of losses on lists made by hand, and their figures against loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.types import Array
from evenrank.probes.losses import (
    Documents,
    Loss,
    Results,
    another_id,
    edge_of,
    find_losses,
    groups,
    hubs_of,
    late,
    not_in_the_index,
    place_losses,
    rank_to_find,
    repeats,
)
from evenrank.stats.shares import clustered_error, wilson_lower

N, K = 100, 20


def collection(size: int = N, **more: Any) -> Documents:
    given: dict[str, Any] = {
        "ids": pl.Series([f"d{row}" for row in range(size + 50)]),
        "lengths": np.full(size, 100),
        "group": np.full(size, -1),
        "groups": (),
        "alike": lambda some, _: np.zeros(len(some), np.bool_),
        "have_query": lambda numbers: np.ones(len(numbers), np.bool_),
        "missing": np.zeros(size, np.bool_),
        "zero": np.zeros(size, np.bool_),
        "in_lists": np.ones(size, np.bool_),
    }
    return Documents(**{**given, **more})


def answers(first: Array | None = None, size: int = N) -> Results:
    """Three sentences of every document, each of which finds it in the first place, and BM25 too.

    ``first`` [Q]: what is first instead; the document itself is then not in the list.
    """
    own = np.repeat(np.arange(size), 3)
    perfect = np.full((len(own), K), -1)
    perfect[:, 0] = own
    lists = perfect.copy()
    if first is not None:
        lists[:, 0] = first
    there = lists[:, 0] == own
    ranks, ones = np.where(there, 1.0, np.inf), np.ones(len(own))
    place = np.tile(np.linspace(0, 1, 3), size)
    word = (place * 90).astype(int)
    return Results(own, lists, perfect, ranks, ones, there, ones > 0, place=place, word=word)


EVERY = np.ones(3 * N, np.bool_)


def changed(found: Results, missed: Array) -> Results:
    """The same where some queries [Q] miss their document, which is still somewhere in the list."""
    return replace(found, ranks=np.where(missed, 15.0, found.ranks))


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_by_hand() -> None:
    assert [rank_to_find(size) for size in (99, 100, 999, 1000)] == [1, 3, 3, 10]
    # Wilson's lower limit of 30 of 100 at z = 2: (.3 + .02 − 2·√(.0021 + .0001)) / 1.04.
    expected = (0.3 + 0.02 - 2 * np.sqrt(0.3 * 0.7 / 100 + 4 / 40000)) / 1.04
    assert wilson_lower(np.array([30]), 100, 2.0)[0] == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=6, max_size=40))
def test_the_error_is_that_of_a_loop(rows: list[tuple[int, bool]]) -> None:
    clusters, hits = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], float)
    found = clustered_error((hits - hits.mean()) / len(hits), clusters)
    names = sorted({*clusters.tolist()})
    if len(names) < 2:
        assert found == np.inf
        return
    total = 0.0
    for name in names:
        total += sum(hit - hits.mean() for at, hit in zip(clusters, hits, strict=True) if at == name) ** 2
    assert found == pytest.approx(np.sqrt(len(names) / (len(names) - 1) * total) / len(hits))


def test_the_edge_is_the_step_that_fits_best() -> None:
    rng = np.random.default_rng(1)
    word = np.sort(rng.integers(0, 300, 500))
    values = np.where(word < 120, 0.9, 0.1) + 0.05 * rng.standard_normal(500)
    assert edge_of(values, word) == (word[word < 120].max() + word[word >= 120].min()) // 2
    # A slope has none, nor has what rises.
    assert edge_of(0.9 - word / 600, word) is None
    assert edge_of(1 - values, word) is None


# --- another id -------------------------------------------------------------------------------------------------------


def test_ids_that_are_shifted() -> None:
    found = answers(np.repeat((np.arange(N) + 1) % N, 3))
    loss, taken = another_id(collection(), found, EVERY)
    assert (loss.named, loss.share, loss.count, taken.all()) == (True, 1.0, N, True)
    assert loss.evidence["pairs"][:2] == [("d0", "d1"), ("d1", "d2")]
    assert loss.evidence["distance"] == 1
    # What BM25 brings first is no other id.
    assert another_id(collection(), replace(found, bm25_lists=found.lists), EVERY)[0].count == 0


@pytest.mark.parametrize(
    ("pairs", "in_place", "others", "named"),
    [
        # Ten exchanged in pairs; four are too few; where d is first for its own it is only a neighbour; and ten are not
        # half of 30 that are never first.
        (10, False, 0, True),
        (4, False, 0, False),
        (10, True, 0, False),
        (10, False, 20, False),
    ],
)
def test_pairs_that_are_enough(pairs: int, in_place: bool, others: int, named: bool) -> None:
    first = np.repeat(np.arange(N), 3)
    for p in range(pairs):
        d = p + 50 if in_place else (p + 1) % pairs
        first[3 * p : 3 * p + 3] = d
    # Each sentence of these finds something else.
    for p in range(60, 60 + others):
        first[3 * p : 3 * p + 3] = 90, 91, 92
    loss, _ = another_id(collection(), answers(first), EVERY)
    assert (loss.named, loss.count) == (named, pairs)


# --- not in the index -------------------------------------------------------------------------------------------------


def missing(count: int, once: int = 0) -> tuple[Documents, Results]:
    """``count`` documents that are in no list, and ``once`` that one of their three sentences finds."""
    first = np.repeat(np.arange(N), 3)
    first[: 3 * count] = -1
    for p in range(50, 50 + once):
        first[3 * p + 1 : 3 * p + 3] = -1
    return collection(in_lists=np.arange(N) >= count), answers(first)


@pytest.mark.parametrize(
    ("none", "once", "named"),
    # P(Bin(n, ½) = n) is .004 at 8 and .008 at 7; 20 and 8: P(Bin(28, ½) ≥ 20) = .018; 20 and 5: .002.
    [(8, 0, True), (7, 0, False), (20, 8, False), (20, 5, True), (3, 0, False)],
)
def test_more_found_by_none_than_by_one(none: int, once: int, named: bool) -> None:
    documents, found = missing(none, once)
    loss, taken = not_in_the_index(documents, found, EVERY, 10)
    assert (loss.evidence["f0"], loss.evidence["f1"], loss.named) == (none, once, named)
    if named:
        assert loss.cause == "not in the index"
        assert loss.share == pytest.approx(none / N)
        assert loss.documents == tuple(f"d{row}" for row in range(none))
        assert taken.sum() == 3 * none


def test_a_folder_of_four_is_missing_as_a_whole() -> None:
    documents, found = missing(4)
    groups_of = replace(documents, group=np.arange(N) // 4, groups=tuple(f"g{row}" for row in range(25)))
    loss, _ = not_in_the_index(groups_of, found, EVERY, 10)
    assert (loss.named, loss.where, loss.count) == (True, "g0", 4)
    # One that BM25 does not find either shows nothing; one that is found shows that the folder is there.
    documents, found = missing(5)
    fives = replace(documents, group=np.arange(N) // 5, groups=tuple(f"g{row}" for row in range(20)))
    found.bm25_copies[:3] = False
    loss, _ = not_in_the_index(fives, found, EVERY, 10)
    assert (loss.named, loss.where, loss.count, loss.evidence["unlisted_values"]) == (True, "g0", 4, ["g0"])
    found.copies[0] = True
    loss, _ = not_in_the_index(replace(fives, in_lists=np.arange(N) != 1), found, EVERY, 10)
    assert (loss.where, loss.evidence["unlisted_values"], loss.evidence["values_listed"]) == (None, [], True)
    # Nor is a folder missing of which others find a passage, though its own sentences find none.
    documents, found = missing(5)
    others = replace(fives, in_lists=(np.arange(N) >= 5) | (np.arange(N) == 0))
    assert not_in_the_index(others, found, EVERY, 10)[0].where is None
    # Not if as many of the others are found by none, and as many by one: 25 · (31/98)^4 = .25.
    first = missing(4)[1].lists[:, 0].copy()
    first[3 * 10 : 3 * 40] = -1
    first[3 * 40 : 3 * 70] = np.where(np.arange(90) % 3, -1, first[3 * 40 : 3 * 70])
    weak, _ = not_in_the_index(groups_of, answers(first), EVERY, 10)
    assert (weak.evidence["f0"], weak.evidence["f1"], weak.named) == (34, 30, False)


def test_a_wrong_vector_and_an_index_at_hand() -> None:
    documents, found = missing(12)
    lists = found.lists.copy()
    # It stands in other lists.
    lists[60:63, 1] = [0, 1, 2]
    assert not_in_the_index(documents, replace(found, lists=lists), EVERY, 10)[0].cause == "wrong vector"
    lists[62, 1] = -1
    assert not_in_the_index(documents, replace(found, lists=lists), EVERY, 10)[0].cause == "not in the index"
    # An index at hand makes it certain.
    documents, found = missing(1)
    loss, _ = not_in_the_index(replace(documents, missing=np.arange(N) == 0), found, EVERY, 10)
    assert (loss.named, loss.count, loss.evidence["certain"]) == (True, 1, 1)
    zero = replace(documents, zero=np.arange(N) == 0)
    assert not_in_the_index(zero, found, EVERY, 10)[0].cause == "wrong vector"


def test_documents_that_were_not_drawn_are_named_with_those_that_were() -> None:
    documents, found = missing(10)
    drawn = np.repeat(np.arange(N) % 5 != 0, 3)
    loss, _ = not_in_the_index(documents, found.part(drawn), np.ones(drawn.sum(), np.bool_), 10)
    assert (loss.evidence["missing"], loss.evidence["untested"], loss.count) == (8, 2, 10)
    # One that has no query is in no list as nobody asks for it.
    without = replace(documents, have_query=lambda numbers: numbers != 5)
    loss, _ = not_in_the_index(without, found.part(drawn), np.ones(drawn.sum(), np.bool_), 10)
    assert "d5" not in loss.documents
    assert loss.evidence["untested"] == 1


# --- late and groups --------------------------------------------------------------------------------------------------


def test_late_is_what_is_missed_more_than_in_the_first_third() -> None:
    rng = np.random.default_rng(0)
    found = answers()
    missed = (found.place > 0.4) & (rng.random(3 * N) < 0.5)
    loss, taken = late(collection(), changed(found, missed), found, EVERY, 10)
    assert (loss.cause, loss.named) == ("late", True)
    # Of all sentences, as none of the first third is missed.
    assert loss.share == pytest.approx(missed.mean())
    assert loss.evidence["missed_rest"] == pytest.approx(missed[found.place >= 1 / 3].mean())
    assert taken.sum() == 2 * N
    # As BM25 misses them too, nothing is late.
    both = replace(changed(found, missed), bm25_ranks=np.where(missed, np.inf, 1.0))
    loss, _ = late(collection(), both, found, EVERY, 10)
    assert (loss.named, loss.share) == (False, 0.0)
    # Cut off where the model says so, or queries of words find half as much.
    missed = found.place > 0.4
    cut = changed(found, missed)
    known = replace(cut, read=found.place < 0.4)
    loss, _ = late(collection(), known, found, EVERY, 10)
    assert (loss.cause, loss.named, loss.evidence["edge"]) == ("cut off", True, None)
    words = replace(found, ranks=np.where(missed, np.inf, 1.0))
    loss, _ = late(collection(), cut, words, EVERY, 10)
    # Sentences begin at words 0, 45 and 90.
    assert (loss.cause, loss.evidence["edge"]) == ("cut off", 22)
    assert late(collection(), cut, found, EVERY, 10)[0].cause == "late"


def test_a_group_is_compared_with_all_others_beside_bm25() -> None:
    rng = np.random.default_rng(4)
    of = np.arange(N) % 4
    documents = collection(group=of, groups=("a", "b", "c", "d"))
    found = answers()
    missed = (np.repeat(of == 2, 3)) & (rng.random(3 * N) < 0.4)
    losses, taken = groups(documents, changed(found, missed), EVERY, 10)
    [own] = [loss for loss in losses if loss.named]
    assert own.where == "c"
    assert own.share == pytest.approx(missed[np.repeat(of == 2, 3)].mean() / 4)
    assert taken.sum() == 75
    both = replace(changed(found, missed), bm25_ranks=np.where(missed, np.inf, 1.0))
    assert not any(loss.named for loss in groups(documents, both, EVERY, 10)[0])
    # A group of fewer than 15 is not compared.
    few = collection(group=np.where(np.arange(N) < 14, 0, 1), groups=("few", "rest"))
    assert groups(few, found, EVERY, 10)[0] == []


# --- places -----------------------------------------------------------------------------------------------------------


def places_of(lists: Array, bm25: Array | None = None) -> Results:
    none = np.full(len(lists), -1)
    nan = np.full(len(lists), np.nan)
    return Results(none, lists, lists if bm25 is None else bm25, nan, nan, nan, nan, place=nan, word=none)


def spread(queries: int = 400) -> Array:
    """Lists of ten in which every document is as often as any other."""
    return np.arange(queries)[:, None] * 10 % N + np.arange(10) % N


def by_cause(documents: Documents, places: Results) -> dict[str, Loss]:
    return {loss.cause: loss for loss in place_losses(documents, places, 10, False)}


def test_each_place_is_counted_once() -> None:
    lists = spread()
    lists[::2, 0] = N + 3

    # Documents 8 and 9 are alike, and stand in 40 of the other lists too.
    def alike(some: Array, others: Array) -> Array:
        return (np.minimum(some, others) == 8) & (np.maximum(some, others) == 9)

    lists[1::2, 1:3] = 8, 9
    losses = by_cause(collection(alike=alike), places_of(lists, spread()))
    assert losses["no documents"].share == pytest.approx(0.05)
    assert losses["repeats"].share == pytest.approx((200 + 40) / 4000)
    assert losses["repeats"].evidence["above"] == [("d9", "d8")]
    for cause, document in (("no documents", "d103"), ("repeats", "d9"), ("hubs", "d8")):
        assert (losses[cause].named, losses[cause].documents) == (True, (document,))
    # Repeats name the document above.
    lists = np.array([[4, 5, 6], [6, 5, 4], [4, -1, -1], [7, 107, 4]])
    found = repeats(lists, N, lambda some, others: some % 2 == others % 2)
    assert found.tolist() == [[-1, -1, 4], [-1, -1, 6], [-1, -1, -1], [-1, -1, -1]]


@pytest.mark.parametrize(
    ("lists_with", "bm25_with", "hub"),
    # 40 of 400: Wilson's lower limit .060 is beyond neither 5 means (.5) nor 50%.
    [(40, 0, False), (240, 0, True), (240, 79, True), (240, 81, False)],
)
def test_a_hub_is_in_far_more_lists_than_the_others(lists_with: int, bm25_with: int, hub: bool) -> None:
    others = spread() % 90 + 10
    lists, bm25 = others.copy(), others.copy()
    lists[:lists_with, 0], bm25[:bm25_with, 0] = 7, 7
    assert hubs_of(lists, lists >= 0, bm25, N).tolist() == [7] * hub


def test_short_documents_take_places_that_are_not_theirs() -> None:
    lengths = np.where(np.arange(N) < 20, 8, 100)
    lists = spread()
    lists[:, :4] = np.arange(400)[:, None] % 20
    losses = by_cause(collection(lengths=lengths), places_of(lists, spread()))
    short = losses["short"]
    assert (short.named, short.where, short.evidence["collection"]) == (True, "under 10 words", 0.2)
    assert short.share == pytest.approx((lists < 20).mean() - 0.2)
    assert not losses["hubs"].named
    # Three that hold the places of all are hubs, whatever their length.
    few = spread()
    few[:, :3] = [0, 1, 2]
    losses = by_cause(collection(lengths=lengths), places_of(few, spread()))
    assert (losses["short"].named, losses["hubs"].named, losses["hubs"].count) == (False, True, 3)
    # Beside others that are short they are told with these, and their places are counted.
    few[:, 3:6] = np.arange(400)[:, None] % 17 + 3
    losses = by_cause(collection(lengths=lengths), places_of(few, spread()))
    assert (losses["short"].named, losses["hubs"].named) == (True, False)
    assert losses["short"].evidence["hubs"] == ("d0", "d1", "d2")
    assert losses["short"].evidence["places"] == pytest.approx((few < 20).mean())
    # BM25 does the same: it is the queries' own.
    assert not by_cause(collection(lengths=lengths), places_of(lists, lists))["short"].named
    # One place in ten more than their share is what a cosine alone gives them: odds of .28 are 1.6 times those of .2.
    mild = spread()
    mild[:, 0] = np.arange(400) % 20
    short = by_cause(collection(lengths=lengths), places_of(mild, spread()))["short"]
    assert (short.named, short.share) == (False, pytest.approx((mild < 20).mean() - 0.2))


# --- all rules --------------------------------------------------------------------------------------------------------


def named(losses: Any) -> list[str]:
    return [loss.cause for loss in losses if loss.named]


def test_losses_stand_in_order_of_share_and_the_rest_is_told() -> None:
    documents, found = missing(20)
    lists = spread()
    lists[:, 0] = N + 1
    missed = np.zeros(3 * N, np.bool_)
    missed[290:] = True
    losses, share = find_losses(documents, changed(found, missed), places_of(lists, spread()), K)
    assert [loss.first for loss in losses if loss.named] == [True, False]
    assert named(losses) == ["not in the index", "no documents"]
    assert share == pytest.approx(1 - 0.2 - 10 / 300)
    rest = next(loss for loss in losses if loss.cause == "not found otherwise")
    assert rest.share == pytest.approx(10 / 300)
    assert rest.evidence["bm25_finds"] == 1.0


def test_what_has_no_cause_is_named_only_if_it_is_the_largest() -> None:
    rng = np.random.default_rng(8)
    missed = rng.random(3 * N) < 0.2
    losses, _ = find_losses(collection(), changed(answers(), missed), places_of(spread()), K)
    assert named(losses) == ["not found otherwise"]
    lists = spread()
    lists[:, :5] = N + np.arange(5)
    losses, _ = find_losses(collection(), changed(answers(), missed), places_of(lists, spread()), K)
    assert named(losses) == ["no documents"]


def test_below_forty_passages_only_what_is_certain_is_named() -> None:
    size = 30
    first = np.where(np.arange(3 * size) < 45, -1, np.repeat(np.arange(size), 3))
    found = answers(first, size)
    small = collection(size)
    losses, _ = find_losses(small, found, places_of(np.arange(size)[:, None] + np.zeros((1, 10), int)), K)
    assert named(losses) == []
    certain = replace(small, missing=np.arange(size) < 15)
    losses, _ = find_losses(certain, found, places_of(np.arange(size)[:, None]), K)
    assert [(loss.cause, loss.count) for loss in losses if loss.named] == [("not in the index", 15)]
