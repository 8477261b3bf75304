"""Stages whose documents are tied: what they add without the order that the ties happen to have."""

from __future__ import annotations

from itertools import permutations

import pytest

import evenrank
from slow_inference import slow_compare

LEAN = "ARaB(magnitude='bool')@3"
SIDE = {"m": 1, "f": -1, "n": 0}
COLLECTION = {
    f"{kind}{number}": f"{text} {number}"
    for kind, text in {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge"}.items()
    for number in range(3)
}
QUERIES = [f"q{number}" for number in range(18)]
# Ties are broken by descending document id: n before m before f.
TIED = {query: dict.fromkeys(["m0", "f0", "f1", "n0"], 1.0) for query in QUERIES}
SORTED = {query: {"f0": 4.0, "m0": 3.0, "f1": 2.0 + (int(query[1:]) > 8) * 3, "n0": 1.0} for query in QUERIES}


def lean(order: tuple[str, ...]) -> float:
    sides = [SIDE[doc[0]] for doc in order]
    return sum(sum(sides[:t]) / t for t in (1, 2, 3)) / 3


def test_an_order_of_ties_is_no_effect_of_a_stage() -> None:
    result = evenrank.audit(stages={"A": TIED, "B": SORTED}, collection=COLLECTION, measures=LEAN)
    assert result.stages is not None
    of = result.stages.measures[LEAN]
    orders = list(permutations(TIED["q0"]))
    on_average = sum(map(lean, orders)) / len(orders)
    written = lean(tuple(sorted(TIED["q0"], reverse=True)))
    after = [lean(tuple(sorted(one, key=lambda doc: -one[doc]))) for one in SORTED.values()]
    first, second = of.steps
    # A random order of the candidates is what all of them tied are: the first stage adds nothing.
    assert of.candidates == pytest.approx(on_average)
    assert first.added == pytest.approx(written - on_average)
    assert abs(first.added) > 0.2
    assert first.tied is not None
    assert first.tied.mean == pytest.approx(0, abs=1e-12)
    assert second.tied is not None
    assert second.tied.mean == pytest.approx(sum(after) / len(after) - on_average)
    assert second.tied.p == pytest.approx(slow_compare([value - on_average for value in after])[0], rel=1e-6)
    assert first.tie_sensitive
    assert next(one.subject for one in result.findings if one.key == "stage_by_ties") == "A"
    step = result.to_dict()["stages"]["measures"][LEAN]["steps"][0]  # type: ignore[index]
    assert step["tie_added"] == first.tied.mean
    assert "tie mean" in result.table(full=True)


def test_without_ties_nothing_is_said_of_them() -> None:
    turned = {query: {doc: -score for doc, score in one.items()} for query, one in SORTED.items()}
    result = evenrank.audit(stages={"A": SORTED, "B": turned}, collection=COLLECTION, measures=LEAN)
    assert result.stages is not None
    of = result.stages.measures[LEAN]
    for step in of.steps:
        assert step.tied is not None
        assert step.tied.mean == pytest.approx(step.added)
        assert not step.tie_sensitive
    assert "stage_by_ties" not in [one.key for one in result.findings]
