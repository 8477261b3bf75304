"""The candidates by falling grade: expectations over the orders of equal grades.

Those of linear measures are held to all orders one by one where their values are (``slow.check_over_orders``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slow
from evenrank.files import Run
from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.measures.base import relevance_first

Docs = list[str]


def case(seed: int, longest: int = 6) -> tuple[Evaluation, dict[str, dict[str, int]], dict[str, float]]:
    """An evaluation, each query's grades (some below 0, one query judged alone), each document's signed magnitude."""
    table, scores, qrels = slow.random_case(seed, longest=longest)
    grades = qrels.with_columns(pl.col("relevance") - 1)
    found = Evaluation(Run.from_table(table), scores, grades)
    found.background = found.as_background("run", 5)
    magnitude = dict(zip(scores.table["doc_id"].to_list(), scores.signed_magnitude("tf").tolist(), strict=True))
    return found, slow.graded(found), magnitude


def expected(run: Evaluation, judged: dict[str, dict[str, int]], value: Callable[[str, Docs], float]) -> list[float]:
    """The mean of a value over every order of each list by falling grade; grades below 0 and none are 0."""
    lists = slow.rankings(run.run)
    means = []
    for query in run.queries:
        graded = [(doc, float(max(0, judged.get(query, {}).get(doc, 0)))) for doc, _ in lists[query]]
        means.append(slow.over_orders(graded, functools.partial(value, query))[0])
    return means


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_the_sorted_lists_give_the_same(seed: int, k: int) -> None:
    run, _, _ = case(seed)
    for name in ("RaB", "ARaB", "FaiRR"):
        how = resolve(parse_measure(f"{name}@{k}"))
        np.testing.assert_allclose(how.expected(relevance_first(run)), how.by_relevance(run), atol=1e-12)
    # NFaiRR is FaiRR over what the candidates allow, in any order.
    (fairr, of_fairr), (nfairr, of_nfairr) = (
        (resolve(m).by_relevance(run), resolve(m).expected(run, random=True))
        for m in map(parse_measure, (f"FaiRR@{k}", f"NFaiRR@{k}"))
    )
    np.testing.assert_allclose(nfairr * of_fairr, fairr * of_nfairr)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_the_sorted_lists_keep_the_candidates(seed: int) -> None:
    run, judged, _ = case(seed, longest=9)
    sorted_ = relevance_first(run)
    before = run.run.table.group_by("query_id", maintain_order=True).agg(pl.col("doc_id").sort())
    after = sorted_.first(20).group_by("query_id", maintain_order=True).agg(pl.col("doc_id"), pl.col("score"))
    assert after["doc_id"].list.sort().to_list() == before["doc_id"].to_list()
    for query, docs, scores in after.iter_rows():
        grades = [max(0, judged.get(query, {}).get(doc, 0)) for doc in docs]
        assert grades == sorted(grades, reverse=True) == scores
    assert relevance_first(run) is sorted_


@pytest.mark.parametrize("seed", range(2))
def test_measures_that_are_not_linear(seed: int) -> None:
    run, judged, magnitude = case(seed)
    found = resolve(parse_measure("AbsARaB@4")).by_relevance(run)
    wanted = expected(run, judged, lambda _, docs: abs(slow.arab([magnitude[doc] for doc in docs], 4)))
    # 200 draws.
    assert found.tolist() == pytest.approx(wanted, abs=0.2)
    # By falling grade every clicked document wins all of its pairs.
    parts = resolve(parse_measure("DeltaAPRF")).parts_by_relevance(run)
    assert all(set(part[~np.isnan(part)]) <= {1.0} for part in parts)
    shares = resolve(parse_measure("APRF(group='m')")).by_relevance(run)
    assert (np.isnan(shares) == np.isnan(run.values(parse_measure("APRF(group='m')")))).all()
    assert set(shares[~np.isnan(shares)]) <= {1.0}


def test_measures_of_ir_measures_alone() -> None:
    run, judged, _ = case(3)
    measured = dict(zip(run.judged, resolve(parse_measure("Judged@2")).by_relevance(run).tolist(), strict=True))
    # trec_eval's cutoff, whatever the length of the list.
    shares = expected(run, judged, lambda query, docs: sum(doc in judged.get(query, {}) for doc in docs[:2]) / 2)
    lists = slow.rankings(run.run)
    for query, value in zip(run.queries, shares, strict=True):
        if query in measured and len(lists[query]) > 1:
            assert measured[query] == pytest.approx(value, abs=0.15)
