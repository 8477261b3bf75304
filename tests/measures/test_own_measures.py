"""Measures of a user's own: ties, reference rankings and the audit follow from weights and values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank.files import EvenrankError, Run
from evenrank.groups import GroupTable
from evenrank.measures import CUTOFF, Evaluation, LinearMeasure, add_measure, is_bias, parse_measure, provider
from slow import over_orders, random_case, rankings


class _SignedExposure(LinearMeasure):
    """Σ_{i ≤ k} sign(mag(d_i)) / log2(1 + i), over Σ 1 / log2(1 + i)."""

    __name__ = NAME = "SignedExposure"
    PRETTY_NAME = "Signed exposure"
    SUPPORTED_PARAMS = {"cutoff": CUTOFF}  # noqa: RUF012 - as ir_measures has it

    def weights(self, lengths: Any, depth: int) -> Any:
        ranks = np.arange(1, depth + 1)
        discount = np.where(ranks <= lengths[:, None], 1 / np.log2(1 + ranks), 0.0)
        return discount / np.maximum(discount.sum(axis=1, keepdims=True), 1e-12)

    def documents(self, table: GroupTable, rows: Any) -> Any:
        return np.sign(table.signed_magnitude("tf", rows=rows))


def slow(signs: list[float], k: int) -> float:
    discounts = [1 / math.log2(1 + rank) for rank in range(1, min(k, len(signs)) + 1)]
    return sum(d * s for d, s in zip(discounts, signs, strict=False)) / sum(discounts)


@pytest.fixture(scope="module", autouse=True)
def measure() -> Iterator[Any]:
    yield add_measure(_SignedExposure())
    # Other tests go through all measures there are.
    del ir_measures.measures.registry["SignedExposure"]


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_values_and_ties_are_those_over_all_orders(seed: int, k: int) -> None:
    run, scores, _ = random_case(seed)
    measure = _SignedExposure() @ k
    table = scores.table.select("doc_id", pl.col("count_m").sub(pl.col("count_f")).sign())
    sign = {doc: float(value) for doc, value in table.iter_rows()}
    evaluation = Evaluation(Run.from_table(run), scores)
    lists = rankings(evaluation.run)
    value = [slow([sign[doc] for doc, _ in lists[query]], k) for query in evaluation.queries]
    orders = [over_orders(lists[q], lambda docs: slow([sign[d] for d in docs], k)) for q in evaluation.queries]
    np.testing.assert_allclose(evaluation.values(measure), value, atol=1e-12)
    np.testing.assert_allclose(evaluation.tie_values(measure), [mean for mean, _, _ in orders], atol=1e-12)
    low, high = evaluation.tie_bounds(measure)
    np.testing.assert_allclose(low, [least for _, least, _ in orders], atol=1e-12)
    np.testing.assert_allclose(high, [most for _, _, most in orders], atol=1e-12)


def test_known_by_name_to_the_audit_and_to_ir_measures() -> None:
    assert is_bias(parse_measure("SignedExposure@2"))
    texts = {"a": "He met his brother.", "b": "It rained.", "c": "She met her sister."}
    collection = pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})
    run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [2.0, 1.0, 1.0]})
    result = evenrank.audit({"mine": run}, collection=collection, measures="SignedExposure@2")
    figure = result["mine"].figures["SignedExposure@2"]
    # Ties by falling id: a, c; or a, b.
    second = 1 / math.log2(3)
    assert figure.mean == pytest.approx((1 - second) / (1 + second))
    assert figure.tie_range == pytest.approx(((1 - second) / (1 + second), 1 / (1 + second)))
    assert result["random"].figures["SignedExposure@2"].mean == pytest.approx(0)
    from evenrank.groups import score_in_memory

    bound = provider(score_in_memory(collection, evenrank.Scoring(evenrank.load_lexicon())))
    measures = [parse_measure("SignedExposure@2")]
    found = bound.calc_aggregate(measures, {}, {"q": {"a": 2.0, "b": 1.0, "c": 1.0}})
    assert found[measures[0]] == pytest.approx(figure.mean)


def test_a_document_without_scores_counts_as_unknown() -> None:
    run = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "lost"], "score": [2.0, 1.0]})
    scores = GroupTable.of(pl.DataFrame({"doc_id": ["a"], "count_f": [0], "count_m": [2], "neutrality": [0.0]}))
    evaluation = Evaluation(Run.from_table(run), scores, missing="neutral")
    expected = 1 / (1 + 1 / math.log2(3))
    assert evaluation.values(_SignedExposure() @ 2).tolist() == pytest.approx([expected])


def test_a_name_that_is_taken() -> None:
    with pytest.raises(EvenrankError, match="a measure named SignedExposure already"):
        add_measure(_SignedExposure())
