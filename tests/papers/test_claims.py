"""Claims that can fail: supported, not supported, or not decidable with this n."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.measures.inference import over_seeds
from evenrank.papers.paper_page import PAPERS, UNDECIDED, Value, Verdict, above, below, every, statements, within


def test_an_interval_on_one_side_decides() -> None:
    value = Value(0.3, 5, "seeds", (0.1, 0.5))
    assert above(value) == Verdict(True)
    assert above(value, 0.5) == Verdict(False)
    assert below(value) == Verdict(False)
    assert below(value, 0.6) == Verdict(True)
    assert within(value, 0.0, 0.6) == Verdict(True)
    assert within(value, 0.0, 0.05) == Verdict(False)


def test_an_undecided_claim_names_the_n_that_would_decide() -> None:
    # The half width, 0.2, has to shrink to the distance, 0.1: four times as many.
    assert above(Value(0.3, 5, "seeds", (0.1, 0.5)), 0.2) == Verdict(None, "about 20 seeds")
    assert below(Value(0.3, 50, "queries", (0.1, 0.5)), 0.4) == Verdict(None, "about 200 queries")
    assert above(Value(0.2, 5, "seeds", (0.1, 0.3)), 0.2).needs == "more seeds than can be run"
    assert above(Value(0.2, 1, "seeds")) == Verdict(None, "more than 1 seed")
    assert above(Value(None)) == UNDECIDED
    assert above(Value(None, 1, "analogies")).needs == "more than 1 analogy"
    assert above(Value(None, 2, "words")).needs == "more than 2 words"


def test_several_conditions() -> None:
    assert every(Verdict(True), Verdict(True)) == Verdict(True)
    assert every(Verdict(True), Verdict(None, "about 20 seeds")) == Verdict(None, "about 20 seeds")
    assert every(Verdict(False), Verdict(None, "about 20 seeds")) == Verdict(False)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12), st.floats(-3, 3))
def test_a_sign_flips_the_verdict(values: list[float], threshold: float) -> None:
    value = Value.over_seeds(values)
    flipped = Value.over_seeds([-one for one in values])
    assert above(value, threshold).supported == below(flipped, -threshold).supported


def test_the_n_named_decides_where_the_spread_stays() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.1, 1.0, 40)
    mean, low_high = float(values.mean()), over_seeds(values).ci95
    found = above(Value(mean, 40, "queries", low_high))
    assert found.supported is None
    needed = int(found.needs.split()[1].replace(",", ""))
    assert low_high is not None
    half = (low_high[1] - low_high[0]) / 2
    assert half * np.sqrt(40 / needed) <= abs(mean) < half * np.sqrt(40 / (needed - 1))


@pytest.mark.parametrize("paper", PAPERS)
def test_the_statements_of_a_paper(paper: str) -> None:
    found = statements(paper)
    assert found
    for one in found.values():
        assert one.text == one.text.strip()
        assert not one.text.endswith(".")
    assert len({one.text for one in found.values()}) == len(found)
