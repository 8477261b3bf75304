"""Lists of a run that can be put into another order, and the run in its new order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.decide.order_figures import OrderFigures
from evenrank.decide.rebalance_lists import Grouping
from evenrank.decide.rebalance_method import MethodOptions, applied
from evenrank.files import EvenrankError, Run
from evenrank.groups import as_labels
from evenrank.measures import as_target, parse_measure
from evenrank.mitigation.reorderings import METHODS
from small_rebalance import drawn, run, table

GROUPS = {"a": "m", "b": "f", "c": "", "d": "m", "e": "m"}
ONE = {"q": [("a", 9.0), ("b", 5.0), ("c", 3.0), ("d", 3.0), ("e", 1.0)]}


def test_what_a_method_is_given() -> None:
    lists = Grouping(table(GROUPS), depth=4).lists(run({**ONE, "p": [("b", 2.0), ("c", 2.0)]})).lists
    assert lists.offsets.tolist() == [0, 4, 6]
    # Scaled over the whole list, of which the fifth document has the least; ties by falling id; a constant list.
    assert lists.scores.tolist() == [1, 0.5, 0.25, 0.25, 0.5, 0.5]
    assert lists.signed.round(4).tolist() == [1.0986, -1.0986, 1.0986, 0, 0, -1.0986]
    assert lists.neutrality.tolist() == [0, 0, 0, 1, 1, 0]
    assert lists.groups == ("m", "f")
    assert lists.group.tolist() == [0, 1, 0, -1, -1, 1]
    assert lists.targets.tolist() == [[0.375, 0.375, 0.25], [0.25, 0.25, 0.5]]


@pytest.mark.parametrize(
    ("target", "shares", "expected"),
    [
        ("candidates", None, [0.5, 0.25, 0.25]),
        ({"m": 0.2, "f": 0.8}, None, [0.15, 0.6, 0.25]),
        # By default the shares of the lexicon.
        (None, (0.7, 0.3), [0.525, 0.225, 0.25]),
    ],
)
def test_targets(target: object, shares: tuple[float, ...] | None, expected: list[float]) -> None:
    groups = table(GROUPS) if shares is None else replace(table(GROUPS), shares=shares)
    asked = {} if target is None else {"target": as_target(target, ("m", "f"))}
    lists = Grouping(groups, depth=4, **asked).lists(run(ONE)).lists  # type: ignore[arg-type]
    assert lists.targets.round(9).tolist() == [expected]


def test_target_of_what_is_relevant_is_refused() -> None:
    with pytest.raises(EvenrankError, match="`target`: expected uniform, candidates or a file"):
        Grouping(table(GROUPS), target=as_target("relevant", ("m", "f")))


def test_group_is_that_of_the_largest_weight() -> None:
    weights = {"a": (0.7, 0.2), "b": (0.5, 0.5), "c": (0.0, 0.1), "d": (0.5, 0.5 - 1e-12)}
    labels = as_labels({doc: {"m": m, "f": f} for doc, (m, f) in weights.items()})
    lists = Grouping(labels).lists(run({"q": [(doc, -place) for place, doc in enumerate("abcd")]})).lists
    assert [lists.groups[number] if number >= 0 else None for number in lists.group] == ["m", None, "f", None]


def test_run_in_a_new_order() -> None:
    given = run(ONE)
    lists = Grouping(table(GROUPS), depth=3).lists(given)
    made = lists.reordered(np.array([2, 0, 1]))
    assert made.table.rows() == [
        ("q", "d", 5.0, 1), ("q", "a", 4.0, 2), ("q", "b", 3.0, 3), ("q", "c", 2.0, 4), ("q", "e", 1.0, 5),
    ]  # fmt: skip
    assert (lists.total, lists.tied, lists.lacking) == (3, 1, 0)
    changes = lists.changes(np.array([2, 0, 1]))
    assert (changes.first, changes.moved, changes.distance, changes.kept) == (1, 3, 4 / 3, 1)
    # Of the first ten, eight are kept.
    twelve = run({"q": [(f"d{i:02}", 20.0 - i) for i in range(12)]})
    lists = Grouping(table({f"d{i:02}": "m" for i in range(12)})).lists(twelve)
    assert lists.changes(np.array([10, 11, *range(10)])).kept == pytest.approx(0.8)


def test_unknown_documents_keep_their_rank_or_are_neutral() -> None:
    known = {name: group for name, group in GROUPS.items() if name not in ("b", "e")}
    with pytest.raises(EvenrankError, match="run run: 2 of its 5 documents are not in"):
        Grouping(table(known)).lists(run(ONE))
    # Nothing below the depth is looked up.
    assert Grouping(table(known), depth=1).lists(run(ONE)).lacking == 0
    skipped = Grouping(table(known), missing="skip").lists(run(ONE))
    assert (skipped.lacking, skipped.total, skipped.lists.offsets.tolist()) == (2, 5, [0, 3])
    assert skipped.reordered(np.array([2, 1, 0])).table["doc_id"].to_list() == ["c", "b", "d", "a", "e"]
    neutral = Grouping(table(known), missing="neutral").lists(run(ONE))
    assert neutral.lists.neutrality.tolist() == [0, 1, 0, 1, 1]
    assert (neutral.lists.group.tolist(), neutral.lacking) == ([0, -1, 0, -1, -1], 2)


@given(
    st.integers(1, 6), st.integers(1, 30), st.integers(0, 10**6), st.booleans(), st.sampled_from(sorted(METHODS)),
    st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 40),
)  # fmt: skip
def test_ids_and_length_stay(
    queries: int, length: int, seed: int, ties: bool, name: str, strength: float, depth: int
) -> None:
    before, groups, _ = drawn(queries, length, seed, ties=ties)
    lists = Grouping(groups, depth).lists(before)
    method = MethodOptions(name).make(lists.lists, groups)
    after = lists.reordered(applied(method, lists.lists, strength)[0])
    assert after.table["query_id"].equals(before.table["query_id"])
    assert after.table["rank"].equals(before.table["rank"])
    for query in before.queries:
        old, new = (one.table.filter(pl.col("query_id") == query) for one in (before, after))
        assert sorted(old["doc_id"].to_list()) == sorted(new["doc_id"].to_list())
        assert new["score"].to_list() == list(range(length, 0, -1))
        assert old["doc_id"].to_list()[depth:] == new["doc_id"].to_list()[depth:]
    if strength == 0:
        assert after.table["doc_id"].equals(before.table["doc_id"])


def test_values_of_other_queries_are_refused() -> None:
    run, groups, qrels = drawn(6, 14, 5)
    figures = OrderFigures(run, Grouping(groups), qrels, [parse_measure("ARaB@10")])
    other = run.table.with_columns(query_id=pl.lit("x") + pl.col("query_id"))
    with pytest.raises(AssertionError, match="other queries"):
        figures.values(Run.from_table(other.drop("rank")))
