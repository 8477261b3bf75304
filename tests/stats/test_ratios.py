"""Proportions and impact ratios: by hand, against a slow version, and against statsmodels and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, norm, t
from scipy.stats.contingency import relative_risk
from statsmodels.api import OLS
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint
from statsmodels.stats.proportion import test_proportions_2indep as proportions_test

from evenrank.files.types import Array
from evenrank.stats import ratios
from evenrank.stats.ratios import RateRatio, Selection, corrected_ratios, rate_ratios

seeds = st.integers(0, 10_000)


def test_wilson_interval_of_statsmodels() -> None:
    for part, n in ((0, 5), (3, 7), (10, 10), (120, 400)):
        assert ratios.proportion(part, n) == pytest.approx(proportion_confint(part, n, method="wilson"))
    assert ratios.proportion(0, 0) is None


def of_counts(selected: list[float], candidates: list[int]) -> list[RateRatio]:
    """One list of people of several groups, of each of whom so many are selected, the last one in part."""
    weights = np.repeat(np.eye(len(candidates)), candidates, axis=0)
    taken = np.concatenate([np.clip(x - np.arange(n), 0, 1) for x, n in zip(selected, candidates, strict=True)])
    return rate_ratios(Selection.of_rows(taken, weights))


# --- nobody twice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "n", "y", "m"),
    [(30, 100, 60, 100), (3, 50, 30, 200), (0, 40, 25, 100), (17, 60, 30, 60), (5, 10, 9, 10)],
)
def test_score_test_of_statsmodels(x: int, n: int, y: int, m: int) -> None:
    ratio, most = of_counts([x, y], [n, m])
    assert (most.mean, most.p, most.reason) == (1.0, None, "selected most")
    assert (ratio.mean, ratio.n, ratio.within_lists) == (pytest.approx(x / n / (y / m)), n, None)
    expected = confint_proportions_2indep(x, n, y, m, compare="ratio", method="score", correction=True)
    assert ratio.ci95 == pytest.approx(expected, abs=1e-6)
    for p, value in ((ratio.p, 0.8), (ratio.p_equal, 1.0)):
        test = proportions_test(x, n, y, m, value=value, compare="ratio", method="score", correction=True)
        assert p == pytest.approx(test.pvalue)


@given(st.integers(20, 200), st.integers(20, 200), st.floats(0, 1), st.floats(0, 1))
def test_ratio_and_z_of_contingency_tables(n: int, m: int, p: float, q: float) -> None:
    x, y = round(p * n), round(q * m)
    ratio = of_counts([x, y], [n, m])[0]
    if x / n >= y / m or ratio.reason is not None:
        return
    assert ratio.mean == pytest.approx(relative_risk(x, n, y, m).relative_risk)
    chi2 = chi2_contingency([[x, n - x], [y, m - y]], correction=False)
    assert ratio.z is not None
    assert ratio.z < 0
    assert ratio.z**2 == pytest.approx(chi2.statistic)
    assert ratio.z_p == pytest.approx(chi2.pvalue, rel=1e-5, abs=1e-12)


def test_a_ratio_of_four_fifths_is_not_below_it() -> None:
    for selected, shown, p in ((4000, False, 1.0), (3950, False, None), (3700, True, None), (4500, False, 1.0)):
        ((ratio, _),) = corrected_ratios([of_counts([selected, 5000], [10_000, 10_000])])
        assert (ratio.shown, ratio.below) == (shown, selected < 4000)
        assert p is None or ratio.p == p
        assert ratio.ci95 is not None
        assert (ratio.ci95[1] < 0.8) == shown
        assert ratio.to_equal_rates().shown
    # Exposure has no z of counts.
    selection = Selection.of_rows(np.repeat([0.3, 0.5], 100), np.repeat(np.eye(2), 100, axis=0))
    exposure = rate_ratios(Selection(selection.selected, selection.candidates, None, selection.by_list, counts=False))
    assert (exposure[0].z, exposure[0].mean) == (None, pytest.approx(0.6))


def test_small_groups_have_a_ratio_and_nobody_is_compared_with_them() -> None:
    # One of one is selected, and 9 of 9: neither of them is the group to compare with.
    ratios = of_counts([1, 9, 40, 100], [1, 9, 100, 200])
    few, small = "fewer than 10 people", "fewer than 2% of the candidates"
    assert [ratio.reason for ratio in ratios] == [small, few, None, "selected most"]
    assert [ratio.mean for ratio in ratios] == [2.0, 2.0, 0.8, 1.0]
    # 10 people and 2% are enough.
    assert [ratio.reason for ratio in of_counts([1, 400], [10, 490])] == [None, "selected most"]
    assert [ratio.reason for ratio in of_counts([1, 400], [10, 491])] == [small, "selected most"]
    # Of 20 among 1,620 people there is no verdict, but the interval that they have among 820.
    alone, among = of_counts([5, 400], [20, 800])[0], of_counts([5, 400, 350], [20, 800, 800])[0]
    assert (alone.reason, among.reason, among.p, among.ci95) == (None, small, None, alone.ci95)
    assert [(ratio.mean, ratio.reason) for ratio in of_counts([0, 0], [50, 50])] == [(None, "nobody is selected")] * 2
    assert of_counts([0, 9], [0, 30])[0].reason == "no candidates"
    none = "no group has 10 people and 2% of the candidates"
    assert [(ratio.reason, ratio.below) for ratio in of_counts([3, 5], [6, 6])] == [(none, False)] * 2
    # Few people are few, however often they apply.
    weights, person = np.repeat(np.eye(2), [90, 300], axis=0), np.append(np.arange(90) % 9, np.arange(9, 309))
    ratio = rate_ratios(Selection.of_rows(np.tile([1.0, 0.0], 195), weights, person))[0]
    assert (ratio.n, ratio.reason) == (9, few)


def test_smallest_detectable_ratio_is_shown_in_four_of_five_samples() -> None:
    ratio = of_counts([130, 150], [300, 300])[0]
    assert ratio.mde is not None
    own, other = np.random.default_rng(2).binomial(300, [[(0.8 - ratio.mde) * 0.5], [0.5]], (2, 1000))
    tests = [of_counts([x, y], [300, 300])[0] for x, y in zip(own, other, strict=True)]
    assert np.mean([test.p is not None and test.p < 0.05 for test in tests]) == pytest.approx(0.8, abs=0.04)
    # Of 10 people even none at all can be chance.
    assert of_counts([1, 30], [10, 100])[0].mde is None


def test_correction() -> None:
    first, second = of_counts([40, 50, 80], [100, 100, 100]), of_counts([30, 60], [100, 100])
    (a, b, most), (c, _) = corrected_ratios([first, second])
    assert first[0].p < second[0].p < first[1].p
    assert (a.holm_p, c.holm_p) == (pytest.approx(3 * first[0].p), pytest.approx(2 * second[0].p))
    assert (b.holm_p, most.holm_p) == (pytest.approx(first[1].p), None)
    # Of three rates the largest is chosen: a p of equal rates counts 3/2 times. The last is no smaller than b's.
    assert (a.holm_p_equal, c.holm_p_equal) == (
        pytest.approx(3 * 1.5 * first[0].p_equal),
        pytest.approx(2 * 1.5 * first[1].p_equal),
    )
    assert a.mde > first[0].mde


# --- people in several lists -----------------------------------------------------------------------------------------

# Ten people of each group in one or two lists: of the first group a selected row in 3 of 15, of the second in 10 of 15.
PERSON = np.array([*range(10), *range(5), *range(10, 20), *range(10, 15)])
LIST = np.array([*[0] * 10, *[1] * 5, *[0] * 10, *[1] * 5])
GROUP = np.repeat([0, 1], 15)
TAKEN = np.zeros(30)
TAKEN[[0, 10, 5]] = 1  # person 0 twice, person 5 once
TAKEN[[15, 16, 17, 20, 21, 22, 23, 25, 26, 27]] = 1  # persons 10 to 12 twice, 15 to 18 once


def test_repeated_people_by_hand() -> None:
    ratio = rate_ratios(Selection.of_rows(TAKEN, np.eye(2)[GROUP], PERSON, LIST))[0]
    assert (ratio.n, ratio.mean) == (10, pytest.approx(0.3))
    assert ratio.within_lists == pytest.approx((2 * 10 / 20 + 1 * 5 / 10) / (7 * 10 / 20 + 3 * 5 / 10))
    # s_i − .2 n_i: of person 0 1.6, of 1 to 4 −.4, of 5 .8, of the other four −.2.
    own = 1.6**2 + 4 * 0.4**2 + 0.8**2 + 4 * 0.2**2
    # t_i − 2/3 m_i: of 10 to 12 2/3, of 13 and 14 −4/3, of 15 to 18 1/3, of 19 −2/3.
    other = 3 * (2 / 3) ** 2 + 2 * (4 / 3) ** 2 + 4 * (1 / 3) ** 2 + (2 / 3) ** 2
    effect = 20 / 19 * (own + other) / (15 * 0.2 * 0.8 + 15 * 2 / 9)
    score = proportions_test(3, 15, 10, 15, value=0.8, compare="ratio", method="score", correction=True)
    sandwich = 20 / 19 * (own + 0.64 * other) / 15**2
    variance = max(effect * ((0.2 - 0.8 * 2 / 3) / score.statistic) ** 2, sandwich)
    # Two thirds of each group compete in a list of 20, one third in one of 10, where all 30 are one list's.
    variance *= (2 / 3 * 20 / 19 + 1 / 3 * 10 / 9) * 29 / 30
    # 15²/(5 · 4 + 5) − 1 = 8 degrees of freedom.
    assert ratio.p == pytest.approx(2 * t.sf(abs(0.2 - 0.8 * 2 / 3) / math.sqrt(variance), 8))


def random_rows(seed: int) -> tuple[Array, Array, Array, Array]:
    """Selected, group, person and list of rows: 10 to 40 people of each of two groups in up to six lists."""
    rng = np.random.default_rng(seed)
    people = rng.integers(10, 40, 2)
    inside = rng.random((people.sum(), 6)) < rng.choice([0.2, 0.5, 1.0])
    inside[:, 0] = True
    person, list_of = np.nonzero(inside)
    rate = rng.random(people.sum()) * rng.choice([0.1, 0.5, 1.0])
    taken = (rng.random(len(person)) < rate[person]).astype(float)
    return taken, (np.arange(people.sum()) >= people[0])[person].astype(np.int64), person, list_of


def slow_p(taken: Array, group: Array, person: Array, list_of: Array, theta: float) -> float:
    """The two-sided p of a ratio of θ of the first group's rate to the second's, person by person."""
    (x, n), (y, m) = ((taken[group == g].sum(), (group == g).sum()) for g in (0, 1))
    p, r = x / n, y / m
    u, squares = [], 0.0
    for i in set(person.tolist()):
        own, g = person == i, group[person == i][0]
        deviation = taken[own].sum() - (p, r)[g] * own.sum()
        squares += deviation**2
        u.append(deviation / n if g == 0 else -theta * deviation / m)
    more = len(u) / (len(u) - 1)
    effect = max(1.0, more * squares / (n * p * (1 - p) + m * r * (1 - r))) if 0 < x + y < n + m else 1.0
    test = proportions_test(x, n, y, m, value=theta, compare="ratio", method="score", correction=True)
    score = ((p - theta * r) / test.statistic) ** 2 if test.statistic else 0.0
    variance = max(effect * score, more * sum(one**2 for one in u))
    size = np.unique(list_of, return_counts=True)[1][np.unique(list_of, return_inverse=True)[1]]
    weight = np.where(group == 0, 1 / n**2, 1 / m**2)
    variance *= max(1.0, np.average(size / np.maximum(size - 1, 1), weights=weight) * (n + m - 1) / (n + m))
    sizes = [np.unique(person[group == g], return_counts=True)[1] for g in (0, 1)]
    df = min(of.sum() ** 2 / (of**2).sum() for of in sizes) - 1
    distance = abs(p - theta * r) / math.sqrt(variance)
    return 2 * float(norm.sf(distance) if max(of.max() for of in sizes) == 1 else t.sf(distance, df))


@given(seeds)
def test_repeated_people_against_a_slow_version(seed: int) -> None:
    taken, group, person, list_of = random_rows(seed)
    first, second = rate_ratios(Selection.of_rows(taken, np.eye(2)[group], person, list_of))
    if first.reason == "selected most":
        group, first = 1 - group, second
    if first.p is None or first.mean in (0.8, 1.0):
        return
    assert first.p == pytest.approx(slow_p(taken, group, person, list_of, 0.8) if first.mean < 0.8 else 1.0)
    assert first.p_equal == pytest.approx(slow_p(taken, group, person, list_of, 1.0))
    # The interval excludes just what the test rejects.
    assert first.ci95 is not None
    for end in first.ci95:
        assert end < 1e-6 or slow_p(taken, group, person, list_of, end) == pytest.approx(0.05, abs=1e-4)


def test_sandwich_of_statsmodels() -> None:
    """Where the variance is that over people it is the cluster-robust one of a regression on the groups."""
    rng = np.random.default_rng(1)
    group, person = np.repeat([0, 1], 400), np.repeat(np.arange(80), 10)
    taken = (rng.random(80) < 0.5)[person].astype(float) * (rng.random(800) < np.where(group, 0.9, 0.4))
    ratio = rate_ratios(Selection.of_rows(taken, np.eye(2)[group], person))[0]
    options = {"groups": person, "use_correction": False}
    fit = OLS(taken, np.eye(2)[group]).fit(cov_type="cluster", cov_kwds=options)
    difference = np.array([1.0, -1.0])
    variance = 80 / 79 * difference @ fit.cov_params() @ difference
    assert ratio.p_equal >= 2 * t.sf(abs(difference @ fit.params) / math.sqrt(variance), 39) * (1 - 1e-9)
    assert ratio.p_equal == pytest.approx(slow_p(taken, group, person, np.zeros(800, dtype=np.int64), 1.0))


def test_the_same_people_are_no_more_people() -> None:
    """The same rows ten times over tell what they tell once, but for the quantile and N/(N − 1)."""
    weights, person = np.repeat(np.eye(2), 50, axis=0), np.arange(100)
    for x in (20, 0):
        taken = np.concatenate([np.arange(50) < x, np.arange(50) < x + 8]).astype(float)
        once = rate_ratios(Selection.of_rows(taken, weights))[0]
        rows = np.tile(taken, 10), np.tile(weights, (10, 1))
        people = (np.tile(person, 10), np.arange(1000), np.arange(1000)[::-1])
        repeated, others, alike = (rate_ratios(Selection.of_rows(*rows, each))[0] for each in people)
        assert (repeated.n, others.n, others) == (50, 500, alike)
        assert repeated.p == pytest.approx(once.p, abs=0.01)
        assert others.p_equal < repeated.p_equal / 100


def test_a_rate_that_is_hardly_known_gives_no_interval() -> None:
    # All that is selected of the second group is one of 15 people, in each of 40 lists.
    person = np.append(np.arange(15), np.tile(np.arange(15, 30), 40))
    weights, taken = np.repeat(np.eye(2), [15, 600], axis=0), (person == 15).astype(float)
    ratio = rate_ratios(Selection.of_rows(taken, weights, person))[0]
    assert (ratio.mean, ratio.ci95, ratio.p) == (0.0, None, None)
    assert ratio.reason == "too few are selected of the group selected most"


@given(seeds)
def test_ratio_within_lists_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates = rng.integers(1, 30, (4, 2)).astype(float)
    selected = np.maximum(1, np.floor(candidates * rng.random((4, 2))))
    tables = [np.stack([x, n - x], axis=1) for x, n in zip(selected, candidates, strict=True)]
    assert ratios.mantel_haenszel_ratio(selected, candidates) == pytest.approx(StratifiedTable(tables).riskratio_pooled)
    assert ratios.mantel_haenszel_ratio(selected[:1], candidates[:1]) is None


@given(seeds, st.integers(2, 4), st.booleans())
def test_intervals_hold_the_ratio_and_agree_with_what_is_said(seed: int, groups: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    weights = rng.dirichlet(np.full(groups, 0.3), n) if not whole else np.eye(groups)[rng.integers(0, groups, n)]
    person = rng.integers(0, rng.integers(1, 200), n)
    taken = (rng.random(n) < rng.random()) * (1.0 if whole else rng.random(n))
    for ratio in rate_ratios(Selection.of_rows(taken, weights, person, rng.integers(0, 5, n))):
        figures = (ratio.mean, ratio.p, ratio.mde, ratio.z, ratio.p_equal, ratio.within_lists, *(ratio.ci95 or ()))
        assert all(value is None or math.isfinite(value) for value in figures)
        assert (ratio.ci95 is None) == (ratio.p is None) == (ratio.reason is not None)
        if ratio.ci95 is not None:
            assert ratio.ci95[0] - 1e-6 <= ratio.mean <= ratio.ci95[1] + 1e-6
            assert (ratio.p < 0.05) == (ratio.ci95[1] < 0.8) or abs(ratio.p - 0.05) < 1e-4
