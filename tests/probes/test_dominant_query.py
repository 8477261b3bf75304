"""The query that decides a figure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank
from evenrank.probes.dominant_query import Influence, influence, without_each
from evenrank.probes.effects import effect
from evenrank.probes.pair_values import Means, PairValues


def found_in(values, query, deviation=None):
    passage = np.arange(len(query))
    whole = Means.of(values, query, passage)
    names = [f"q{i}" for i in range(int(query.max()) + 1)]
    return whole, influence(
        values, whole, query, passage, np.ones(len(query)) if deviation is None else deviation, names
    )


VALUE = st.one_of(st.just(np.nan), st.floats(-3, 3))


@given(st.lists(st.tuples(VALUE, VALUE, st.integers(0, 3)), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_without_each_is_the_mean_of_the_others(rows):
    own, placebo, query = (np.array(column) for column in zip(*rows, strict=True))
    placebo = np.where(np.isnan(own), np.nan, placebo)
    found = without_each(PairValues(own, placebo), True, query)
    for one, mean in enumerate(found):
        rest = query != one
        if np.isnan(own[rest]).all() or np.isnan(placebo[rest]).all():
            assert np.isnan(mean)
        else:
            assert mean == pytest.approx(np.nanmean(own[rest]) - np.nanmean(placebo[rest]), abs=1e-9)


def one_of_thirty(size):
    """Thirty queries with two pairs each, of which the eighth has effects of ``size``."""
    query = np.repeat(np.arange(30), 2)
    own = 0.05 + 0.1 * np.random.default_rng(0).standard_normal(60)
    return np.where(query == 7, size, own), query


def test_a_query_far_from_the_others_decides():
    own, query = one_of_thirty(4.0)
    whole, one = found_in(PairValues(own), query, np.where(query == 7, 0.02, 0.5))
    left = effect(own[query != 7], query[query != 7], np.arange(58))
    assert one == Influence("q7", pytest.approx(left.mean), pytest.approx(0.04))
    # The error with it never says so: it is as wide as the change.
    assert whole.verdict.mean - left.mean < whole.verdict.se
    assert one.note("swap", whole) == (
        f"swap: without the query 'q7', whose scores hardly vary, the effect is {left.mean:+.3f} sd"
        f" (with it {whole.verdict.mean:+.3f})"
    )
    assert one.to_dict() == {"query_id": "q7", "mean": one.mean, "relative_sd": one.relative_sd}


def test_queries_like_the_others_do_not():
    for size in (0.05, 0.3):
        own, query = one_of_thirty(size)
        assert found_in(PairValues(own), query)[1] is None
    # Nor one that is unlike them by no chance, but of so many that its change is small.
    values = np.random.default_rng(2).standard_normal(200)
    values[7] = 8.0
    assert found_in(PairValues(values), np.arange(200))[1] is None
    # Nor where nothing varies, and where there is nothing to say.
    assert found_in(PairValues(np.full(6, 0.2)), np.arange(6))[1] is None
    assert found_in(PairValues(np.array([0.2, 9.0])), np.zeros(2, int))[1] is None


def test_the_placebo_of_a_query_decides_as_well():
    placebo, query = one_of_thirty(4.0)
    whole, one = found_in(PairValues(np.zeros(60), placebo), query)
    assert one.query_id == "q7"
    assert one.note("early", whole).startswith("early: without the query 'q7' the effect beyond the placebo is -0.0")


@pytest.mark.parametrize("queries", [3, 10, 60])
def test_one_in_a_hundred_normal_samples(queries):
    query = np.repeat(np.arange(queries), 4)
    count = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own = 0.1 * rng.standard_normal(queries)[query] + 0.3 * rng.standard_normal(len(query))
        count += found_in(PairValues(own), query)[1] is not None
    assert count <= 6


def test_the_result_says_it():
    """In the list of q4 scores vary by a hundredth of what they do elsewhere, and the variant adds as much as there."""
    texts = {f"d{i}": f"tea {i}" for i in range(4)}
    queries = {f"q{i}": f"number {i}" for i in range(12)}
    shift = {"d0": 0.02, "d1": -0.01, "d2": 0.015, "d3": 0.01}

    def model(query, passages):
        number = int(query.split()[1])
        scale = 0.01 if number == 4 else 1 + number / 50
        rows = [passage.split() for passage in passages]
        return [
            int(row[1]) * scale + (shift[f"d{row[1]}"] * (1 + number % 3) if row[0] == "milk" else 0.0) for row in rows
        ]

    found = evenrank.probe(
        model, {"mine": {doc: text.replace("tea", "milk") for doc, text in texts.items()}}, collection=texts,
        queries=queries, run={query: dict.fromkeys(texts, 1.0) for query in queries}, nulls=False,
    )  # fmt: skip
    one = found["mine"].influence
    assert (one.query_id, round(one.relative_sd, 3)) == ("q4", 0.009)
    assert found.to_dict()["variants"]["mine"]["influence"] == one.to_dict()
    assert one.note("mine", found["mine"].means) in found.notes
    assert "half of the lists have 4 passages or fewer: the standard deviation of so few scores is rough" in found.notes
