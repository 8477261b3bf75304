"""ImpactRatio: hand-worked tables, a slow version over random input, contingency tables, the interval's likelihood."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, chi2_contingency
from scipy.stats.contingency import relative_risk

import evenrank
import slow
import slow_exposure as plain
from evenrank.files import EvenrankError, Run
from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.measures.impact import pooled_terms
from evenrank.stats.compare import corrected
from evenrank.stats.ratios import RateRatio, large_enough, rate_ratios

seeds = st.integers(0, 10_000)


def ratio(text: str, *lists: str) -> float:
    """Lists of people of the groups f, m and n (none), written in their order."""
    known = {"f": (1, 0), "m": (0, 1), "n": (0, 0)}
    rows = [(f"q{q}", f"{group}{q}{place}", -place) for q, docs in enumerate(lists) for place, group in enumerate(docs)]
    run = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    table = plain.labels({doc: known[doc[0]] for _, doc, _ in rows}, "fm")
    found = Evaluation(Run.from_table(run), table)
    return found.figure(parse_measure(text))


# Of 4 f 2 are among the first 3, of 4 m 1: the rates are .5 and .25.
LIST = "ffmffmmmnn"
FIRST, SECOND, THIRD = (1 / math.log2(1 + rank) for rank in (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "lists", "value"),
    [
        ("ImpactRatio(group='m')@3", [LIST], 0.5),
        ("ImpactRatio(group='f')@3", [LIST], 1.0),
        ("ImpactRatio(group='m',pooled=True)@3", [LIST], 0.5),
        # Exposure of two first ranks against that of the third.
        ("ImpactRatio(group='m',discount='dcg')@3", [LIST], THIRD / (FIRST + SECOND)),
        # A second list, in which the only f is not the first and all four m are not either: f 2/5, m 2/8.
        ("ImpactRatio(group='m',pooled=True)@3", [LIST, "nnmmmmf"], (2 / 8) / (2 / 5)),
        ("ImpactRatio(group='m')@3", [LIST, "nnmmmmf"], (0.5 + 1.0) / 2),
        ("ImpactRatio(group='f')@3", [LIST, "nnmmmmf"], (1.0 + 0.0) / 2),
        # Nobody of any group is selected: that list has no value.
        ("ImpactRatio(group='m')@2", ["nnfm", "fm"], 1.0),
        ("ImpactRatio(group='f')@2", ["mm", "fm"], 1.0),
    ],
)
def test_hand_worked(text: str, lists: list[str], value: float) -> None:
    assert ratio(text, *lists) == pytest.approx(value)


def slow_ratio(selected: list[list[float]], people: list[list[float]], group: int) -> float:
    """The pooled ratio straight from its definition."""
    chosen = [sum(column) for column in zip(*selected, strict=True)]
    of = [sum(column) for column in zip(*people, strict=True)]
    large = [n >= 10 - 1e-9 and n >= 0.02 * sum(of) - 1e-9 for n in of]
    rates = [s / n if n else -1.0 for s, n in zip(chosen, of, strict=True)]
    most = max(rate for rate, enough in zip(rates, large, strict=True) if enough or not any(large))
    return rates[group] / most if most > 0 and of[group] else math.nan


@given(seeds, st.sampled_from([1, 2, 4]), st.sampled_from(["", "discount='dcg',"]), st.integers(1, 12))
@example(3662, 1, "", 7)  # ten people, but for rounding
def test_against_a_slow_version(seed: int, k: int, discount: str, queries: int) -> None:
    run, table, _ = slow.random_case(seed, queries=queries, longest=8, levels=3)
    found = Evaluation(Run.from_table(run), table)
    weight = {g: dict(zip(table.table["doc_id"], table.weight(g).tolist(), strict=True)) for g in table.groups}
    lists = [[[weight[g][doc] for g in table.groups] for doc, _ in docs] for docs in slow.rankings(found.run).values()]
    selected = []
    for docs in lists:
        own = [0.0] * len(table.groups)
        for rank, weights in enumerate(docs[:k], 1):
            for g, of in enumerate(weights):
                own[g] += of / math.log2(1 + rank) if discount else of
        selected.append(own)
    people = [[sum(column) for column in zip(*docs, strict=True)] for docs in lists]
    for g, name in enumerate(table.groups):
        pooled = resolve(parse_measure(f"ImpactRatio(group='{name}',{discount}pooled=True)@{k}"))
        expected = slow_ratio(selected, people, g)
        np.testing.assert_allclose(pooled.figure(pooled.parts(found)), expected, atol=1e-9)
        single = resolve(parse_measure(f"ImpactRatio(group='{name}',{discount})@{k}"))
        for value, s, n in zip(single.values(found), selected, people, strict=True):
            rates = [one / of for one, of in zip(s, n, strict=True) if of > 0]
            if not n[g] or max(rates) <= 0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(s[g] / n[g] / max(rates))


def test_terms_are_what_leaving_a_query_out_changes() -> None:
    rng = np.random.default_rng(3)
    people = rng.integers(5, 20, (200, 2)).astype(float)
    selected = np.floor(people * rng.random((200, 2)) * [0.5, 0.9])
    terms = pooled_terms(selected, people, 0)
    whole = slow_ratio(selected.tolist(), people.tolist(), 0)
    assert terms.mean() == pytest.approx(whole)
    for q in (0, 57, 199):
        rest = slow_ratio(np.delete(selected, q, 0).tolist(), np.delete(people, q, 0).tolist(), 0)
        assert 200 * whole - 199 * rest == pytest.approx(terms[q], abs=0.02)


def counted(x: float, n: float, y: float, m: float) -> RateRatio:
    return rate_ratios(np.array([[x, y]], float), np.array([[n, m]], float))[0]


@given(st.integers(20, 200), st.integers(20, 200), st.floats(0, 1), st.floats(0, 1))
def test_pooled_figures_are_those_of_contingency_tables(n: int, m: int, p: float, q: float) -> None:
    x, y = sorted((round(p * n) / n, round(q * m) / m))
    x, y = round(x * n), round(y * m)
    found = counted(x, n, y, m)
    if x / n >= y / m or found.reason is not None:
        return
    assert found.mean == pytest.approx(relative_risk(x, n, y, m).relative_risk)
    chi2 = chi2_contingency([[x, n - x], [y, m - y]], correction=False)
    assert found.z is not None
    assert found.z < 0
    assert found.z**2 == pytest.approx(chi2.statistic)
    assert found.z_p == pytest.approx(chi2.pvalue, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "n", "y", "m"), [(30, 100, 60, 100), (3, 50, 30, 200), (0, 40, 25, 100), (17, 60, 9, 30)]
)
def test_the_interval_is_that_of_the_score_test(x: int, n: int, y: int, m: int) -> None:
    """At its ends, with rates that maximise the likelihood numerically, |z| is 1.96."""
    found = counted(x, n, y, m)
    assert found.ci95 is not None
    for end in filter(None, found.ci95):
        best = minimize_scalar(
            lambda rate, of=end: -binom.logpmf(x, n, of * rate) - binom.logpmf(y, m, rate),
            bounds=(1e-9, min(1.0, 1 / end) - 1e-9),
            method="bounded",
            options={"xatol": 1e-12},
        ).x
        variance = end * best * (1 - end * best) / n + end**2 * best * (1 - best) / m
        z = (x / n - end * y / m) / math.sqrt(variance * (n + m) / (n + m - 1))
        assert abs(z) == pytest.approx(1.96, abs=1e-3)
    assert (found.ci95[0] > 0) == (x > 0)


def test_lists_that_agree_or_differ_make_the_interval() -> None:
    people = np.tile([20.0, 20.0], (30, 1))
    alike = rate_ratios(np.tile([5.0, 10.0], (30, 1)), people)[0]
    apart = rate_ratios(np.tile([[0.0, 10.0], [10.0, 10.0], [5.0, 10.0]], (10, 1)), people)[0]
    one = rate_ratios(np.array([[150.0, 300.0]]), np.array([[600.0, 600.0]]))[0]
    assert alike.mean == apart.mean == one.mean == 0.5
    # Lists that do not differ have the error of their people, with Student's t of 29 degrees for the normal.
    assert alike.ci95 == pytest.approx(one.ci95, abs=0.005)
    assert apart.ci95[1] - apart.ci95[0] > 1.5 * (alike.ci95[1] - alike.ci95[0])
    assert alike.p < apart.p < 0.05
    # Rates that rise together have a steadier ratio than those of which one rises where the other falls.
    together = rate_ratios(np.tile([[2.0, 4.0], [8.0, 16.0]], (15, 1)), people)[0]
    opposed = rate_ratios(np.tile([[2.0, 16.0], [8.0, 4.0]], (15, 1)), people)[0]
    assert together.mean == opposed.mean == 0.5
    assert together.ci95[1] - together.ci95[0] < 0.6 * (opposed.ci95[1] - opposed.ci95[0])
    # 600 people in two lists are not 600 lists.
    two = rate_ratios(np.tile([75.0, 150.0], (2, 1)), np.tile([300.0, 300.0], (2, 1)))[0]
    assert two.verdict == "no difference shown"


def test_small_groups_are_named_and_nobody_is_compared_with_them() -> None:
    # One of one is selected, and 9 of 9: neither of them is the group to compare with.
    selected = np.array([[1.0, 9.0, 40.0, 100.0]])
    found = rate_ratios(selected, np.array([[1.0, 9.0, 100.0, 200.0]]))
    assert [one.reason for one in found] == [
        "fewer than 2% of the candidates",
        "fewer than 10 people",
        None,
        "selected most",
    ]
    assert [one.mean for one in found] == [2.0, 2.0, 0.8, 1.0]
    assert found[2].p == 1.0
    # 10 people and 2% are enough.
    assert large_enough(np.array([10.0, 490.0])).tolist() == [True, True]
    assert large_enough(np.array([10.0, 491.0])).tolist() == [False, True]
    nobody = rate_ratios(np.zeros((1, 2)), np.array([[50.0, 50.0]]))
    assert [(one.mean, one.reason) for one in nobody] == [(None, "nobody is selected")] * 2
    assert rate_ratios(np.array([[0.0, 9.0]]), np.array([[0.0, 30.0]]))[0].reason == "no candidates"


def test_a_ratio_of_four_fifths_is_not_below_it() -> None:
    people = np.array([[10_000.0, 10_000.0]])
    for selected, shown in (([4000.0, 5000.0], False), ([3700.0, 5000.0], True), ([4500.0, 5000.0], False)):
        (found, _) = corrected(rate_ratios(np.array([selected]), people))
        assert found.shown == shown
        assert found.ci95 is not None
        assert (found.ci95[1] < 0.8) == shown
    # Exposure has no z of counts.
    assert rate_ratios(np.array([[30.0, 50.0]]), np.array([[100.0, 100.0]]), counts=False)[0].z is None


def test_written_and_parsed_alike() -> None:
    for text in ("ImpactRatio(group='f × yes',pooled=True)@10", "ImpactRatio(discount='dcg',group='f')@5"):
        assert str(parse_measure(text)) == text
    for text in ("ImpactRatio@10", "ImpactRatio(group='f')", "ImpactRatio(group='f',discount='rbp')@3"):
        with pytest.raises(EvenrankError, match="ImpactRatio"):
            parse_measure(text)


def test_ties_move_a_pooled_ratio() -> None:
    # One of two tied people is the first of each list: f twice, m twice, or one each.
    run = {f"q{n}": {f"f{n}": 1.0, f"m{n}": 1.0} for n in range(2)}
    labels = {doc: doc[0] for docs in run.values() for doc in docs}
    found: Any = evenrank.audit({"r": run}, labels=labels, measures="ImpactRatio(group='f',pooled=True)@1")
    figure = found["r", "ImpactRatio(group='f',pooled=True)@1"]
    assert figure.tie_range == pytest.approx((0.0, 1.0))
    assert figure.tie_mean == pytest.approx((0 + 1 + 1 + 1) / 4, abs=0.1)


def test_unknown_people_leave_bounds() -> None:
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    for text in ("ImpactRatio(group='f',pooled=True)@1", "ImpactRatio(group='f')@1"):
        figure = evenrank.audit({"r": run}, labels={"a": "f", "b": "m"}, measures=text)["r", text]
        assert (figure.mean, figure.bounds) == (None, (0.0, 1.0))


@given(seeds, st.integers(1, 4), st.integers(2, 4), st.booleans())
def test_intervals_hold_the_ratio_and_agree_with_what_is_said(
    seed: int, queries: int, groups: int, whole: bool
) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(0, 30, (queries, groups)).astype(float)
    selected = np.floor(people * rng.choice([0.0, 0.3, 1.0, rng.random()], (queries, groups)))
    for found in rate_ratios(selected if whole else selected * rng.random(), people):
        figures = (found.mean, found.p, found.mde, found.z, *(found.ci95 or ()))
        assert all(value is None or math.isfinite(value) for value in figures)
        if found.ci95 is not None and found.p is not None:
            assert found.ci95[0] - 1e-6 <= found.mean <= found.ci95[1] + 1e-6
            assert (found.p < 0.05) == (found.ci95[1] < 0.8) or abs(found.p - 0.05) < 1e-4
