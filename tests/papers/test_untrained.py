"""Reordering without training beside trained mitigations: found a second way, and wrong versions noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.types import Array
from evenrank.measures.inference import Mean, Mixed, mixed_test
from evenrank.papers import untrained
from evenrank.papers.paper_page import Verdict
from evenrank.papers.untrained import Axis, Frontier, Line, Rows, compare, drawn, interpolated, judged, rebalance_claim

SIGNED, RISING = Axis("bias", "|bias|"), Axis("fair", "fairness", rises=True)
QUERIES = 200
NOISE = np.random.default_rng(1).normal(0, 0.01, QUERIES)
"""The same in every row, so that differences between rows are exact."""
CURVES = {"a": {0.1: "a 0.1", 0.5: "a 0.5", 1.0: "a 1"}, "b": {0.5: "b 0.5"}}
TEST = {
    # Effectiveness and signed bias.
    "run": (0.90, 0.12), "a 0.1": (0.89, 0.08), "a 0.5": (0.86, 0.02), "a 1": (0.80, -0.06), "b 0.5": (0.88, 0.03),
    "TS": (0.85, 0.05), "far": (0.90, 0.12),
}  # fmt: skip
SECURE = Mixed(0.0, Mean(0.0, 0.001, 100.0), 1.0, 5, 500)


def seed_of(figures: Mapping[str, tuple[float, float]], sign: float = 1.0) -> dict[str, dict[str, Array]]:
    """Rows by hand: one part of effectiveness and of what is fair, two of what has a sign."""
    found = {}
    for row, (useful, bias) in figures.items():
        parts = np.stack([0.5 + sign * bias + NOISE, 0.5 + NOISE], axis=1)
        found[row] = {"useful": useful + NOISE[:, None], "bias": parts, "fair": 1 - abs(bias) + NOISE[:, None]}
    return found


def rows(*seeds: Mapping[str, tuple[float, float]], sign: float = 1.0) -> Rows:
    queries = [str(number) for number in range(QUERIES)]
    return Rows([seed_of(one, sign) for one in seeds], [queries for _ in seeds])


def frontier(
    dev: Mapping[str, tuple[float, float]] = TEST,
    test: Mapping[str, tuple[float, float]] = TEST,
    curves: Mapping[str, Mapping[float, str]] = CURVES,
    sign: float = 1.0,
) -> Frontier:
    return Frontier("run", curves, rows(dev, sign=sign), rows(test, sign=sign), "useful")


def test_a_trained_point_is_compared_at_its_bias() -> None:
    """Of a: halfway between .1 and .5 in bias, so halfway in effectiveness."""
    line = compare(frontier(curves={"a": CURVES["a"]}), "TS", SIGNED)
    assert line.difference.mean == pytest.approx((0.89 + 0.86) / 2 - 0.85)
    assert (line.method, line.mark, line.verdict.supported) == ("a", "beats", True)
    assert line.limit == pytest.approx(0.02 * 0.90, rel=0.01)
    # Of b from the run: 7/9 of the way.
    best = compare(frontier(), "TS", SIGNED)
    assert best.method == "b"
    assert best.difference.mean == pytest.approx(0.90 - 7 / 9 * 0.02 - 0.85)


def test_the_other_sign_changes_nothing() -> None:
    found = compare(frontier(sign=-1.0), "TS", SIGNED)
    assert found.difference.mean == pytest.approx(0.90 - 7 / 9 * 0.02 - 0.85)


def test_a_measure_that_rises_is_compared_at_its_height() -> None:
    found = compare(frontier(), "TS", RISING)
    assert found.difference.mean == pytest.approx(0.90 - 7 / 9 * 0.02 - 0.85)
    turned = compare(frontier(), "TS", replace(RISING, rises=False))
    assert turned.difference.mean != pytest.approx(found.difference.mean)


def test_a_point_with_the_bias_of_the_run_needs_no_reordering() -> None:
    found = compare(frontier(), "far", SIGNED)
    assert (found.difference.mean, found.mark) == (pytest.approx(0.0), "equal within 2%")
    assert found.method == "the run itself"
    assert compare(frontier(), "far", RISING).method == "the run itself"


def test_mutant_the_sign_of_the_bias_turned_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no strength goes below the run's bias, and the claim fails."""
    sizes = Axis.sizes

    def turned(self: Axis, values: Array, own: Array) -> tuple[Array, Array]:
        found, target = sizes(self, values, own)
        return -found, target

    monkeypatch.setattr(Axis, "sizes", turned)
    found = compare(frontier(), "TS", SIGNED)
    assert found.difference.mean != pytest.approx(0.90 - 7 / 9 * 0.02 - 0.85)


def test_methods_are_chosen_on_development_and_measured_on_test_queries() -> None:
    """a is better in development, b on the test: a is reported, with the test's figures."""
    better = {**TEST, "a 0.1": (0.90, 0.05), "b 0.5": (0.70, 0.03)}
    assert compare(frontier(dev=better), "TS", SIGNED).method == "a"
    assert compare(frontier(dev=better), "TS", SIGNED).difference.mean == pytest.approx(0.875 - 0.85)
    swapped = compare(frontier(dev=TEST, test=better), "TS", SIGNED)
    assert swapped.method == "b"
    assert swapped.difference.mean == pytest.approx(0.90 - 7 / 9 * 0.20 - 0.85)
    assert swapped.verdict.supported is False


def test_strengths_are_chosen_on_development_queries_as_weights_are() -> None:
    """Least bias among those that keep 95%: a at 1 keeps 89% only; on the test all would be kept."""
    kept = {**TEST, "a 1": (0.90, 0.0)}
    assert frontier(test=kept).best(SIGNED) == {"a": 0.5, "b": 0.5}
    assert frontier(dev=kept).best(SIGNED) == {"a": 1.0, "b": 0.5}
    assert frontier(dev=kept).best(RISING) == {"a": 1.0, "b": 0.5}
    ruined = {name: (0.1, bias) for name, (_, bias) in TEST.items()}
    assert frontier(dev={**ruined, "run": TEST["run"]}).best(SIGNED) == {"a": 0.0, "b": 0.0}


def test_without_a_strength_the_frontier_is_one_point_and_the_claim_says_so() -> None:
    assert untrained.positive((0.0, 0.0, 0.0)) == ()
    curves = untrained.curves_of((0.0, 0.0))
    assert set(curves) >= {"neutral", "fair", "detconstsort", "shift"}
    line = compare(frontier(curves=curves), "TS", SIGNED)
    assert (line.method, line.difference.mean, line.verdict.supported) == (None, None, None)
    claim = rebalance_claim("ibbr", [line])
    assert claim is not None
    assert (claim.verdict.supported, claim.detail) == (None, untrained.ONE_POINT)
    assert "a strength above 0 would decide" in str(claim)
    assert frontier(curves=curves).best(SIGNED) == dict.fromkeys(curves, 0.0)


def test_strengths_are_in_order_and_each_once() -> None:
    assert untrained.positive((0.5, 0.0, 0.1, 0.5)) == (0.1, 0.5)
    assert untrained.curves_of((1.0, 0.25))["fair"] == {0.25: "fair 0.25", 1.0: "fair 1"}


def test_a_bias_that_is_not_reached_is_a_loss() -> None:
    short = {"b": CURVES["b"]}
    fairest = {**TEST, "TS": (0.5, 0.0)}
    lost = compare(frontier(test=fairest, dev=fairest, curves=short), "TS", SIGNED)
    assert lost.mark == "loses: it does not reach that |bias|"
    assert (lost.difference.mean, lost.verdict.supported) == (None, False)
    two = Frontier("run", short, rows(TEST), rows(TEST, fairest), "useful")
    some = compare(two, "TS", SIGNED)
    assert (some.mark, some.verdict.supported) == ("not decidable: it reaches that |bias| in 1 of 2 seeds", None)


def test_the_nearest_method_is_taken_where_none_reaches() -> None:
    fairest = {**TEST, "TS": (0.5, 0.0), "a 1": (0.8, 0.01)}
    assert frontier(dev=fairest).method("TS", SIGNED) == "a"
    assert frontier(dev={**fairest, "b 0.5": (0.88, 0.005)}).method("TS", SIGNED) == "b"


def test_several_seeds_are_the_mean_of_theirs() -> None:
    figures = [{**TEST, "TS": (0.85 + change, 0.05)} for change in (-0.01, 0.0, 0.02)]
    found = Frontier("run", {"a": CURVES["a"]}, rows(TEST), rows(*figures), "useful")
    line = compare(found, "TS", SIGNED)
    values = np.array([0.025 + 0.01, 0.025, 0.025 - 0.02])
    expected = mixed_test([np.array([value]) for value in values])
    assert line.difference.mean == pytest.approx(values.mean())
    assert line.difference.ci95 == pytest.approx(expected.interval())
    assert (line.difference.n, line.difference.unit) == (3, "seeds")


def test_queries_nested_in_seeds_give_the_interval() -> None:
    """Of a difference of means it is the paired test on the queries' differences; of what is between strengths, the
    spread is that of the bootstrap."""
    own = np.random.default_rng(5)
    seeds = []
    for _ in range(3):
        one = seed_of(TEST)
        for row in one:
            for column in ("useful", "bias"):
                one[row][column] = one[row][column] + own.normal(0, 0.05, one[row][column].shape)
        seeds.append(one)
    queries = [[str(number) for number in range(QUERIES)] for _ in seeds]
    found = Rows(seeds, queries)
    test = found.nested(lambda figure: figure("a 1", "useful") - figure("TS", "useful"))
    expected = mixed_test([(one["a 1"]["useful"] - one["TS"]["useful"])[:, 0] for one in seeds])
    assert test.found is not None
    assert expected.found is not None
    assert (test.mean, test.found.error) == (pytest.approx(expected.mean), pytest.approx(expected.found.error))
    point = Frontier("run", {"a": CURVES["a"]}, found, found, "useful")
    for number, one in enumerate(seeds):
        alone = Rows([one], queries[:1]).over(point.ahead("a", "TS", SIGNED))
        each = found._each(number, point.ahead("a", "TS", SIGNED))
        assert alone.found is not None
        assert each.mean() == pytest.approx(alone.mean)
        assert each.std() / np.sqrt(QUERIES) == pytest.approx(alone.found.error, rel=0.1)


def test_seeds_that_share_queries_count_both() -> None:
    own = np.random.default_rng(2)
    seeds = []
    for _ in range(2):
        one = seed_of(TEST)
        one["TS"]["useful"] = one["TS"]["useful"] + own.normal(0, 0.1, (QUERIES, 1))
        seeds.append(one)
    queries = [[str(number) for number in range(QUERIES)], [str(number) for number in range(50, 50 + QUERIES)]]
    found = Rows(seeds, queries, same_queries=True)
    test = found.over(lambda figure: figure("TS", "useful"))
    assert (test.queries, test.seeds) == (250, 2)
    means = [one["TS"]["useful"].mean() for one in seeds]
    assert test.mean == pytest.approx(np.mean(means))
    assert test.found is not None
    assert test.found.error > np.std(means, ddof=1) / np.sqrt(2)


def test_one_seed_has_an_interval_over_queries() -> None:
    found = rows(TEST).value("TS", "bias", absolute=True)
    assert (found.n, found.unit) == (QUERIES, "queries")
    assert found.mean == pytest.approx(0.05)
    assert rows({**TEST, "TS": (0.85, -0.05)}).value("TS", "bias", absolute=True).mean == pytest.approx(0.05)
    assert rows({**TEST, "TS": (0.85, -0.05)}).value("TS", "bias").mean == pytest.approx(-0.05)


def test_undefined_queries_are_left_out() -> None:
    one = seed_of(TEST)
    one["TS"]["bias"] = one["TS"]["bias"].copy()
    one["TS"]["bias"][:50, 0] = np.nan
    one["none known"] = {"useful": np.full((QUERIES, 1), np.nan)}
    found = Rows([one], [[str(number) for number in range(QUERIES)]])
    expected = 0.55 + NOISE[50:].mean() - (0.5 + NOISE.mean())
    assert found.value("TS", "bias").mean == pytest.approx(expected)
    assert found.value("none known", "useful").mean is None


@pytest.mark.parametrize(
    ("mean", "error", "reached", "mark", "supported"),
    [
        (0.01, 0.002, 5, "beats", True),
        (0.0, 0.002, 5, "equal within 2%", True),
        (-0.005, 0.001, 5, "equal within 2%", True),
        (0.005, 0.01, 5, "not worse by 2%", True),
        (-0.02, 0.002, 5, "loses 0.0200", False),
        # Below 0, but whether by as much as the limit is open.
        (-0.016, 0.007, 5, "loses 0.0160", False),
        (-0.005, 0.02, 5, "not decidable", None),
        (0.0, 0.002, 4, "not decidable: it reaches that |b| in 4 of 5 seeds", None),
        (0.0, 0.002, 0, "loses: it does not reach that |b|", False),
    ],
)
def test_every_verdict(mean: float, error: float, reached: int, mark: str, supported: bool | None) -> None:
    found, verdict = judged(replace(SECURE, mean=mean, found=Mean(mean, error, 100.0)), 0.018, reached, 5, "|b|")
    assert (found, verdict.supported) == (mark, supported)
    assert bool(verdict.needs) == (supported is None)


def line_of(supported: bool | None, *, control: bool = False) -> Line:
    return replace(compare(frontier(), "TS", SIGNED), verdict=Verdict(supported), control=control)


def test_the_claim_needs_every_mitigation_and_a_ranker_above_bm25() -> None:
    def state(*lines: Line, floor: bool | None = True) -> str:
        claim = rebalance_claim("sampling", lines, Verdict(floor))
        assert claim is not None
        return claim.verdict.state

    assert state(line_of(True), line_of(True)) == "supported"
    assert state(line_of(True), line_of(False)) == "not supported"
    assert state(line_of(True), line_of(None)) == "not decidable"
    assert state(line_of(True), line_of(False, control=True)) == "supported"
    assert state(line_of(True), floor=False) == "not decidable"
    assert rebalance_claim("sampling", [line_of(True, control=True)]) is None
    claim = rebalance_claim("ibbr", [line_of(True)])
    assert claim is not None
    assert claim.detail.startswith("TS at its |bias|: b +0.0344")
    assert not claim.statement.where  # a line of evenrank's own


@given(st.data())
def test_interpolation_is_that_of_a_loop(data: Any) -> None:
    points = data.draw(st.integers(1, 5))
    figure = st.floats(-1, 1, allow_subnormal=False).map(lambda one: round(one, 3))
    bias, useful = (data.draw(st.lists(figure, min_size=points, max_size=points)) for _ in range(2))
    target = data.draw(figure)
    found = interpolated(np.array(bias)[:, None], np.array(useful)[:, None], np.array([target]))[0]
    expected = np.nan
    for place, one in enumerate(bias):
        if one <= target:
            expected = useful[place]
            if place:
                share = (bias[place - 1] - target) / (bias[place - 1] - one)
                expected = useful[place - 1] + share * (useful[place] - useful[place - 1])
            break
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_drawn_curve_ends_where_it_is_far_off() -> None:
    """a at 1 has lost 11% only; what has lost a fifth, or doubled the bias, ends the curve."""
    assert [one[0] for one in drawn(frontier(), SIGNED)["a"]] == ["run", "a 0.1", "a 0.5", "a 1"]
    lost = {**TEST, "a 0.5": (0.71, 0.02)}
    assert [one[0] for one in drawn(frontier(test=lost), SIGNED)["a"]] == ["run", "a 0.1"]
    doubled = {**TEST, "a 0.1": (0.89, -0.25)}
    assert [one[0] for one in drawn(frontier(test=doubled), SIGNED)["a"]] == ["run"]
    assert len(drawn(frontier(test=doubled), RISING)["a"]) == 4
    assert drawn(frontier(curves=untrained.curves_of((0.0,))), SIGNED) == {}
    _, useful, bias = drawn(frontier(test=doubled), RISING)["a"][1]
    assert (useful.mean, bias.mean) == (pytest.approx(0.89 + NOISE.mean()), pytest.approx(0.75 + NOISE.mean()))
