"""Measures of a user's own: ties, bounds, references, tests and the audit follow from values, or from weights."""

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
from evenrank.groups import GroupTable, score_in_memory
from evenrank.measures import (
    CUTOFF,
    BiasMeasure,
    Evaluation,
    JoinedRun,
    LinearMeasure,
    add_measure,
    bias_measures,
    is_bias,
    parse_measure,
    provider,
    resolve,
    spelled,
)
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


class _FirstGap(BiasMeasure):
    """Reciprocal rank of the first document of the first pole, minus that of the second; 0 for a group without one."""

    __name__ = NAME = "FirstGap"
    PRETTY_NAME = "Gap between the groups' first documents"
    SUPPORTED_PARAMS = {"cutoff": CUTOFF}  # noqa: RUF012 - as ir_measures has it
    signed, least, most = True, -1.0, 1.0

    def values(self, run: JoinedRun) -> Any:
        side = np.sign(run.magnitude().first(run.scored_lists, self["cutoff"]))
        ranks = np.arange(1, side.shape[1] + 1)
        first, second = (np.where(side == pole, 1 / ranks, 0).max(axis=1) for pole in (1, -1))
        return first - second


def first_gap(signs: list[float], k: int) -> float:
    return sum(pole / (signs.index(pole) + 1) for pole in (1.0, -1.0) if pole in signs[:k])


@pytest.fixture(scope="module", autouse=True)
def measure() -> Iterator[Any]:
    yield add_measure(_SignedExposure()), add_measure(_FirstGap())
    # Other tests go through all measures there are.
    del ir_measures.measures.registry["SignedExposure"], ir_measures.measures.registry["FirstGap"]


def case(seed: int, longest: int = 6) -> tuple[Evaluation, dict[str, float]]:
    """An evaluation, and which pole has more words in each document: 1, −1 or 0."""
    run, scores, _ = random_case(seed, longest=longest)
    signs = scores.table.select("doc_id", (pl.col("count_m") - pl.col("count_f")).sign().cast(pl.Float64))
    return Evaluation(Run.from_table(run), scores), dict(signs.iter_rows())


TEXTS = {"a": "He met his brother.", "b": "It rained.", "c": "She met her sister."}


def test_known_by_name_to_the_audit_and_to_ir_measures() -> None:
    measure = parse_measure("SignedExposure@2")
    assert is_bias(measure)
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}}
    result = evenrank.audit({"mine": run}, collection=TEXTS, measures="SignedExposure@2")
    figure = result["mine"].measures["SignedExposure@2"]
    # Ties by falling id: a, c; or a, b.
    second = 1 / math.log2(3)
    assert figure.mean == pytest.approx((1 - second) / (1 + second))
    assert figure.tie_range == pytest.approx(((1 - second) / (1 + second), 1 / (1 + second)))
    assert result["random"].measures["SignedExposure@2"].mean == pytest.approx(0)
    collection = pl.DataFrame({"doc_id": [*TEXTS], "text": [*TEXTS.values()]})
    bound = provider(score_in_memory(collection, evenrank.Scoring(evenrank.load_lexicon())))
    assert bound.calc_aggregate([measure], {}, run)[measure] == pytest.approx(figure.mean)
    with pytest.raises(EvenrankError, match="a measure named SignedExposure already"):
        add_measure(_SignedExposure())


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_values_alone_say_what_ties_and_random_orders_do(seed: int, k: int) -> None:
    evaluation, sign = case(seed, 4)
    measure, lists = _FirstGap() @ k, rankings(evaluation.run)

    def gap(docs: Any) -> float:
        return first_gap([sign[doc] for doc in docs], k)

    value = [gap([doc for doc, _ in lists[query]]) for query in evaluation.queries]
    np.testing.assert_allclose(evaluation.values(measure), value, atol=1e-12)
    orders = [over_orders(lists[query], gap) for query in evaluation.queries]
    anyhow = [over_orders([(doc, 0.0) for doc, _ in lists[query]], gap) for query in evaluation.queries]
    low, high = resolve(measure).bounds(evaluation)
    # An order of four documents is missed by 200 draws once in 5,000; its value is within their ends.
    expected = (resolve(measure).expected(evaluation, random=random) for random in (False, True))
    for drawn, random, least, most, own, of_any in zip(*expected, low, high, orders, anyhow, strict=True):
        assert own[1] - 1e-12 <= least <= drawn <= most <= own[2] + 1e-12
        assert drawn == pytest.approx(own[0], abs=0.35)
        assert random == pytest.approx(of_any[0], abs=0.35)


@pytest.mark.parametrize("name", [spelled(one) for one in bias_measures() if one.part_count == 1])
def test_drawn_orders_are_a_second_way_to_every_expectation(name: str) -> None:
    takes = getattr(evenrank.measures, name).SUPPORTED_PARAMS
    measure = parse_measure(name + "(group='m')" * ("group" in takes) + "@3" * ("cutoff" in takes))
    how = resolve(measure)
    assert isinstance(how, BiasMeasure)
    run, scores, qrels = random_case(5, queries=40, longest=6, levels=2)
    found = Evaluation(Run.from_table(run), scores, qrels)
    found.background = found.as_background("run")
    for random in (False, True):
        mean, _, _ = BiasMeasure.over_orders(how, found, random=random)
        found.over_orders.clear()
        expected = how.expected(found, random=random)
        np.testing.assert_array_equal(np.isnan(mean), np.isnan(expected))
        spread = np.nanmax(np.abs(expected)) or 1.0
        assert abs(float(np.nanmean(mean - expected))) < 0.05 * spread
