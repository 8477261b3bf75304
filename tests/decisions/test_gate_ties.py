"""The gate's warning where the order of tied documents decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenrank import EvenrankError, gate
from gate_audits import LEAN, NOISE, OLD, audit, one, rule


def tied(data: dict[str, Any], run: str, measure: str, **values: Any) -> dict[str, Any]:
    data["runs"][run]["measures"][measure] |= values
    return data


def said(data: dict[str, Any], budget: dict[str, Any]) -> list[str]:
    return [warning for warning in gate(data, budget).warnings if "tied documents" in warning]


def centred(values: np.ndarray, mean: float) -> np.ndarray:
    return values - values.mean() + mean


def test_a_difference_of_sizes_looks_at_the_ties_of_both_runs() -> None:
    # |new| − |old| is −0.035, but +0.003 averaged over the orders of the old run's ties.
    data = audit({"ARaB@10": centred(LEAN, 0.05)}, {"ARaB@10": centred(LEAN, -0.085)})
    budget = rule("ARaB@10", against="old", at_most=0)
    assert said(data, budget) == []
    tied(data, "old", "ARaB@10", tie_mean=-0.047, tie_range=[-0.09, -0.045])
    [found] = said(data, budget)
    assert "(averaged over their orders, the value is +0.0030)" in found


def test_a_share_and_a_difference_look_at_the_ties_of_both_runs() -> None:
    data = audit({"nDCG@10": centred(OLD + NOISE, 0.5)}, {"nDCG@10": centred(OLD, 0.5)})
    for bound in ("-10%", -0.05):
        budget = rule(against="old", at_least=bound)
        for run, ends in (("old", [0.45, 0.56]), ("new", [0.44, 0.55])):
            assert len(said(tied(data, run, "nDCG@10", tie_range=ends), budget)) == 1
            assert said(tied(data, run, "nDCG@10", tie_range=[0.48, 0.52]), budget) == []


def test_what_an_order_adds_has_its_own_ties() -> None:
    data = audit({"ARaB@10": LEAN, "RR@10": OLD})
    added = {"values": centred(0.1 * LEAN, 0.037).tolist(), "mean": 0.037, "tie_mean": 0.002, "tie_p": 0.7}
    # The figure's ties are not those of what the order adds.
    tied(data, "new", "ARaB@10", tie_range=[-9.0, 9.0], added=added)
    budget = rule("ARaB@10", quantity="added", at_most=0.02)
    assert one(data, budget).outcome == "broken"
    [found] = said(data, budget)
    assert "the value is 0.0020)" in found
    tied(data, "new", "ARaB@10", added=added | {"tie_mean": 0.036})
    assert said(data, budget) == []


def test_both_ends_of_the_ties_count() -> None:
    data = tied(audit({"ARaB@10": centred(LEAN, 0.1)}), "new", "ARaB@10", tie_range=[-0.15, 0.05])
    for sign in (1, -1):
        tied(data, "new", "ARaB@10", mean=sign * 0.1, tie_range=sorted([sign * 0.05, sign * 0.15]))
        data["runs"]["new"]["measures"]["ARaB@10"]["values"] = (sign * centred(LEAN, 0.1)).tolist()
        counts = [len(said(data, rule("ARaB@10", at_most=bound))) for bound in (0.04, 0.06, 0.14, 0.16)]
        assert counts == [0, 1, 1, 0]


def test_an_outcome_that_averaged_ties_would_not_give_is_warned_of() -> None:
    data = audit({"RR@10": centred(OLD, 0.5)})
    found = one(data, rule("RR@10", at_least=0.3))
    width = found.value - found.limits[0]
    bound = 0.5 - 1.1 * width
    assert one(data, rule("RR@10", at_least=bound)).outcome == "holds"
    assert said(tied(data, "new", "RR@10", tie_mean=0.5 - 0.05 * width), rule("RR@10", at_least=bound)) == []
    assert len(said(tied(data, "new", "RR@10", tie_mean=0.5 - 0.2 * width), rule("RR@10", at_least=bound))) == 1


def test_a_measure_in_bars_is_tested_with_its_sign() -> None:
    data = audit({"|ARaB|@10": centred(LEAN, -0.3)})
    tied(data, "new", "|ARaB|@10", mean=0.3, tie_mean=0.3, tie_range=[0.29, 0.31])
    assert [one(data, rule("|ARaB|@10", at_most=bound)).outcome for bound in (0.1, 0.5)] == ["broken", "holds"]
    assert [len(said(data, rule("|ARaB|@10", at_most=bound))) for bound in (0.28, 0.305, 0.4)] == [0, 1, 0]


@pytest.mark.parametrize("ends", [[None, 2], [1], "ab", [0.1, "x"], [0, float("inf")], [0, 10**400], [True, 1]])
def test_ties_that_are_no_range_are_refused(ends: Any) -> None:
    with pytest.raises(EvenrankError, match="no audit's JSON: tie_range: expected"):
        gate(tied(audit({"RR@10": OLD}), "new", "RR@10", tie_range=ends), rule("RR@10", at_least=0))
