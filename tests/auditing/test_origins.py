"""What a run's order adds to its own candidates, and what it has beyond an ideal ranking of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from ir_measures import Measure
from scipy import stats

import evenrank
from evenrank import AuditResult
from evenrank.auditing.data import OrderEffect
from evenrank.files import Run
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.measures import Evaluation, LinearMeasure, parse_measure, resolve
from slow_stats import order_variance, slow_compare
from small_audits import TEXTS, collection, run

LEAN = "ARaB(magnitude='bool')@2"
DOCUMENTS = {f"{kind}{number}": text for kind, text in TEXTS.items() for number in (1, 2, 3)}
LISTS = {"1": ["m1", "f1", "n1"], "2": ["f1", "m1", "m2"]}
GRADES = {"1": {"f1": 1}, "2": {"m1": 2}}


def audit(runs: Any, qrels: Any = GRADES, measures: str = LEAN, **settings: Any) -> AuditResult:
    return evenrank.audit(runs, collection=collection(DOCUMENTS), qrels=qrels, measures=measures, **settings)


def excesses(result: AuditResult, name: str = "a", measure: str = LEAN) -> tuple[OrderEffect, OrderEffect]:
    figure = result[name, measure]
    return figure.vs_random_order, figure.vs_ideal_order


def test_two_queries_by_hand() -> None:
    """With two ranks the first weighs ¾ and the second ¼.

    Query 1: m1, f1 are ¾ − ¼ = ½; at random 0; f1 first, then the mean of m1 and n1: −¾ + ⅛ = −⅝.
    Query 2: f1, m1 are −½; at random ⅓; m1 first, then the mean of f1 and m2: ¾.
    """
    result = audit({"a": run(LISTS)})
    assert result["random", LEAN].values == pytest.approx([0, 1 / 3])
    assert result["relevance-first", LEAN].values == pytest.approx([-5 / 8, 3 / 4])
    added, beyond = excesses(result)
    assert added.values == pytest.approx([1 / 2, -5 / 6])
    assert beyond.values == pytest.approx([9 / 8, -5 / 4])
    assert (added.mean, beyond.mean) == pytest.approx((-1 / 6, -1 / 16))
    assert (added.reference, beyond.reference) == pytest.approx((1 / 6, 1 / 16))
    assert (added.n, beyond.n) == (2, 2)
    assert (added.tie_mean, beyond.tie_mean) == pytest.approx((added.mean, beyond.mean))
    for of in (added, beyond):
        assert (of.test.p, of.test.reason) == (None, "only 2 queries differ from 0, where 10 are needed")
        assert of.ci95 == pytest.approx(slow_compare(of.values, "drop")[1:])


def test_the_reference_is_of_the_runs_own_candidates() -> None:
    """The rows of the table are of the background's candidates; the differences are not."""
    other = {"1": ["f1", "f2", "f3"], "2": ["f2", "f3", "n1"]}
    alone = audit({"b": run(LISTS)})
    both = audit({"a": run(other), "b": run(LISTS)}, background=run(other))
    assert both["random", LEAN].values == pytest.approx([-1, -2 / 3])
    for own, with_others in zip(excesses(alone, "b"), excesses(both, "b"), strict=True):
        assert with_others.values == pytest.approx(own.values)
        assert with_others.reference == pytest.approx(own.reference)
    # A list of one group leaves nothing to its order.
    added, _ = excesses(both, "a")
    assert added.values[0] == 0


def variances(own: Evaluation, measure: Measure) -> list[float]:
    """The variance of each query's value over random orders, from all covariances."""
    how, lists, table = resolve(measure), own.lists, own.required_table
    assert isinstance(how, LinearMeasure)
    found = []
    for query, (start, end) in enumerate(itertools.pairwise(lists.offsets.tolist())):
        weights = how.weights(np.array([end - start]), min(measure["cutoff"], end - start))[0] * how.scale(own)[query]
        values = how.documents(table, np.asarray(own.document[start:end]))
        padded = [*weights.tolist(), *[0.0] * (end - start - len(weights))]
        found.append(order_variance(padded, values.tolist()))
    return found


def test_every_query_against_plain_evaluations() -> None:
    rng = np.random.default_rng(0)
    names = sorted(DOCUMENTS)
    rows = [(str(q), str(doc), float(rng.integers(4))) for q in range(30) for doc in rng.permutation(names)[:8]]
    table = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    qrels = {str(q): {str(doc): int(rng.integers(-1, 4)) for doc in rng.permutation(names)[:6]} for q in range(30)}
    measures = "ARaB@5 NFaiRR@5 RaB@3 Share(group='f')@4"
    result = audit({"a": table, "b": table.with_columns(-pl.col("score"))}, qrels, measures, query_clusters="none")
    scores = score_in_memory(collection(DOCUMENTS), Scoring(load_lexicon("gender-en")))
    judged = pl.DataFrame(
        [(q, doc, grade) for q, of in qrels.items() for doc, grade in of.items()],
        ["query_id", "doc_id", "relevance"], orient="row",
    )  # fmt: skip
    own = Evaluation(Run.from_table(table), scores, judged)
    own.background = own.as_background("a")
    for text in measures.split():
        measure = parse_measure(text)
        value, ties, random = own.values(measure), *(resolve(measure).expected(own, random=of) for of in (False, True))
        added, beyond = excesses(result, "a", text)
        z = abs((value - random).sum()) / math.sqrt(sum(variances(own, measure)))
        of_orders = 2 * stats.norm.sf(z)
        for of, reference in ((added, random), (beyond, resolve(measure).by_relevance(own))):
            least = of_orders if of is added else 0.0
            assert of.values == pytest.approx(value - reference)
            assert of.mean == pytest.approx((value - reference).mean())
            assert of.tie_mean == pytest.approx((ties - reference).mean())
            p = max(slow_compare(value - reference, "drop")[0], least)
            if of.test.reason == "it depends on the order of tied documents":
                assert (p < 0.05, of.tied.shown) == (True, False)
            else:
                assert of.test.p == pytest.approx(p, rel=1e-6)
            assert of.leans.p == pytest.approx(slow_compare(reference, "drop")[0], rel=1e-6, abs=1e-12)
        # What both runs hold is the same, since their candidates are.
        other, _ = excesses(result, "b", text)
        assert other.reference == pytest.approx(added.reference)


@pytest.mark.parametrize("grade", [0, -2])
def test_without_a_relevant_document_every_order_is_perfect(grade: int) -> None:
    result = audit({"a": run(LISTS)}, {"1": {"f1": grade}, "2": {"m1": grade}})
    assert result["relevance-first", LEAN].mean == result["random", LEAN].mean
    added, beyond = excesses(result)
    assert beyond.values == pytest.approx(added.values)


def test_unjudged_queries_count_and_absent_ones_do_not() -> None:
    result = audit({"a": run(LISTS), "b": run({"1": LISTS["1"]})}, {"1": {"f1": 1}, "3": {"m1": 1}})
    added, beyond = excesses(result)
    # Query 2 is not judged: all of its documents are alike.
    assert beyond.values[1] == pytest.approx(added.values[1])
    assert (len(added.values), math.isnan(added.values[2]), added.n) == (3, True, 2)
    of_one, _ = excesses(result, "b")
    assert (of_one.n, of_one.ci95, of_one.mean) == (1, None, pytest.approx(1 / 2))


# --- text and JSON ----------------------------------------------------------------------------------------------------
