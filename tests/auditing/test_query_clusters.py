"""Which queries are about the same thing, and what that makes of an audit."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank.auditing.query_clusters import query_clusters
from evenrank.files import EvenrankError
from small_audits import DOCS, QRELS, random_run


def ids(count: int) -> pl.Series:
    return pl.Series("query_id", [f"q{n}" for n in range(count)])


def judged(sets: list[set[int]]) -> pl.DataFrame:
    rows = [(f"q{q}", f"d{d}", 1) for q, of in enumerate(sets) for d in of]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")


def texts(of: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{n}" for n in range(len(of))], "text": of})


def groups(numbers: np.ndarray | None, count: int) -> set[frozenset[int]]:
    """The clusters as sets of queries."""
    numbers = np.arange(count) if numbers is None else numbers
    return {frozenset(np.flatnonzero(numbers == n).tolist()) for n in set(numbers.tolist())}


@given(st.lists(st.sets(st.integers(0, 7), max_size=5), min_size=1, max_size=12))
def test_queries_with_like_answers_are_linked(sets: list[set[int]]) -> None:
    found = query_clusters(None, ids(len(sets)), None, judged(sets))
    clusters = {frozenset([q]) for q in range(len(sets))}
    for a, b in combinations(range(len(sets)), 2):
        if sets[a] & sets[b] and len(sets[a] & sets[b]) >= 0.5 * len(sets[a] | sets[b]):
            linked = {one for one in clusters if a in one or b in one}
            clusters = (clusters - linked) | {frozenset().union(*linked)}
    assert groups(found.numbers, len(sets)) == clusters
    assert (found.numbers is None) == (len(clusters) == len(sets))


def test_the_same_words_in_any_order_and_case() -> None:
    of = ["Who shot Liberty Valance?", "who liberty SHOT, valance", "who shot her", "", "  ?", "Straße", "STRASSE"]
    found = query_clusters(None, ids(7), texts(of), None)
    assert groups(found.numbers, 7) == {frozenset([0, 1]), frozenset([5, 6]), *(frozenset([n]) for n in (2, 3, 4))}
    assert found.reason == "same words"


def test_words_and_answers_link_together_and_what_is_not_relevant_does_not() -> None:
    qrels = judged([{1}, {2}, {2}, {3}])
    none = pl.DataFrame([("q0", "d9", 0), ("q3", "d9", -1)], qrels.schema, orient="row")
    found = query_clusters(None, ids(4), texts(["a b", "b a", "c", "d"]), pl.concat([qrels, none]))
    assert groups(found.numbers, 4) == {frozenset([0, 1, 2]), frozenset([3])}
    assert found.reason == "same relevant documents or same words"


def test_given_clusters(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("query_id,cluster\nq0,7\nq2,7\nq9,7\n")
    for given_as in (tmp_path / "c.csv", {"q0": "x", "q2": "x"}, {"q0": 1, "q2": 1}):
        found = query_clusters(given_as, ids(4), texts(["a", "a", "b", "c"]), None)
        assert groups(found.numbers, 4) == {frozenset([0, 2]), frozenset([1]), frozenset([3])}
    assert (
        query_clusters(tmp_path / "c.csv", ids(4), None, None).reason == "query clusters: c.csv, which lacks 2 queries"
    )
    with pytest.raises(EvenrankError, match=r"none of the 4 queries is in it: 'q0'"):
        query_clusters({"Q0": 1, "Q1": 1}, ids(4), None, None)
    assert query_clusters("none", ids(2), texts(["a", "a"]), None).numbers is None
    assert query_clusters({"q0": "a", "q1": "b"}, ids(2), None, None).numbers is None
    with pytest.raises(EvenrankError, match="`query_clusters`: expected a path"):
        query_clusters(3, ids(2), None, None)


def test_an_audit_says_its_clusters_and_counts_them_once() -> None:
    """Every query three times, with other words: the same mean, and no more evidence."""
    runs = {"old": random_run(1), "new": random_run(2, good=0.6)}
    thrice = {name: {f"{q}.{n}": docs for q, docs in run.items() for n in range(3)} for name, run in runs.items()}
    qrels = {f"{query}.{n}": docs for query, docs in QRELS.items() for n in range(3)}
    settings = {"collection": DOCS, "baseline": "old", "measures": "nDCG@10 ARaB@10"}
    once = evenrank.audit(runs, qrels=QRELS, **settings)
    found = evenrank.audit(thrice, qrels=qrels, **settings)
    apart = evenrank.audit(thrice, qrels=qrels, query_clusters="none", **settings)
    for key in ("nDCG@10", "ARaB@10"):
        one, all_three, separate = (result["new", key].vs_baseline for result in (once, found, apart))
        assert (all_three.difference, all_three.p) == pytest.approx((one.difference, one.p))
        assert separate.p < one.p
        assert found["new", key].ci95 == pytest.approx(once["new", key].ci95)
    (note,) = [one.text for one in found.findings if one.key == "clusters"]
    assert note == ("120 queries in 40 clusters (same relevant documents).")
    # A gate of the result counts them once as well.
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": "-20%"}
    limits = [evenrank.gate(result, budget={"rule": [rule]}).rules[0].limits for result in (once, found, apart)]
    assert limits[0] == pytest.approx(limits[1])
    assert limits[2] != pytest.approx(limits[0])


def test_a_document_that_answers_everything_links_nothing_and_costs_nothing() -> None:
    """20,000 queries with a document of their own and one that all share: no pair of them is looked at."""
    found = query_clusters(None, ids(20_000), None, judged([{n, 20_000} for n in range(20_000)]))
    assert found.numbers is None
