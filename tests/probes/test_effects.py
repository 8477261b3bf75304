"""What a probe finds: a mean, a difference from a placebo, and the preference behind a swap."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from evenrank.probes import effects as module
from evenrank.probes import variant_figures
from evenrank.probes.effects import ALIKE, Changes, beyond, preference, size
from evenrank.probes.two_way_clusters import clustered
from evenrank.probes.variant_figures import Means, rank_shifts
from evenrank.stats.compare import compare_estimate
from evenrank.stats.estimate import confidence_interval

SOME = np.array([0.5, np.nan, np.nan, 1.5, np.nan, np.nan])

QUERY, PASSAGE = np.array([0, 0, 1, 1, 2, 2]), np.arange(6)

OWN = np.array([1.0, 2.0, 3.0, 6.0, 4.0, np.nan])


@pytest.mark.parametrize("documented", [module, variant_figures], ids=lambda one: one.__name__)
def test_worked_examples(documented):
    result = doctest.testmod(documented)
    assert result.attempted > 1
    assert result.failed == 0


def drawn(seed, passages=60, *, each=2, preference=0.0, towards=0.4, length=-0.05, damage=0.3, covered=1.0, tied=0.0):
    """Pairs of passages in two lists each, whose scores edits damage; the directions of the swap."""
    rng = np.random.default_rng(seed)
    passage = np.repeat(np.arange(passages), each)
    query = np.concatenate([rng.choice(30, each, replace=False) for _ in range(passages)])
    own = np.where(np.arange(passages) < round(towards * passages), 1.0, -1.0)
    signs, n = own[passage], len(passage)
    lengths = [rng.integers(-2, 3, (passages, 2)).astype(float) for _ in range(2)]
    lengths[0][:, 1] += 10 * tied * own
    weights = rng.gamma(4, 0.25, passages)[passage]
    added = [length * longer[passage].sum(axis=1) + 0.1 * rng.standard_normal(n) for longer in lengths]
    changes = [one - damage * weights for one in added]
    changes[0] += signs * preference
    changes[1] = np.where((rng.random(passages) < covered)[passage], changes[1], np.nan)
    made = Changes(query, passage, changes[0], changes[1], lengths[0][passage], lengths[1][passage])
    return made, signs


# --- a swap -----------------------------------------------------------------------------------------------------------


def slow_estimate(rows):
    """Of rows (change, version, sign, words, pieces), a₊, a₋, c₊ and c₋: the means without what length does by the
    slopes of each direction's placebo."""
    found = {}
    for sign in (1.0, -1.0):
        own, other = ([row for row in rows if row[2] == sign and row[1] == version] for version in (0, 1))
        design = [[1.0, words, pieces] for *_, words, pieces in other]
        of_placebo, by_word, by_piece = np.linalg.lstsq(np.array(design), [row[0] for row in other], rcond=None)[0]
        rest = [change - by_word * words - by_piece * pieces for change, _, _, words, pieces in own]
        found[sign] = sum(rest) / len(rest), of_placebo
    (a_plus, c_plus), (a_minus, c_minus) = found[1.0], found[-1.0]
    return np.array([a_plus, a_minus, c_plus, c_minus])


def slow_preference(changes, signs):
    """The estimate, κ, and the largest of the errors of leaving out passages, queries, and by both."""
    rows, query, passage = [], [], []
    both = (changes.own, changes.lengths), (changes.placebo, changes.placebo_lengths)
    for version, (values, lengths) in enumerate(both):
        for i, value in enumerate(values):
            if not np.isnan(value):
                rows.append((value, version, signs[i], *lengths[i]))
                query.append(changes.query[i])
                passage.append(changes.passage[i])
    whole = slow_estimate(rows)
    a_plus, a_minus, c_plus, c_minus = whole
    kappa = (a_plus + a_minus) / (c_plus + c_minus)
    value = 0.5 * ((a_plus - a_minus) - kappa * (c_plus - c_minus))
    # The derivatives of the estimate.
    part = 0.5 * (c_plus - c_minus) / (c_plus + c_minus)
    slope = np.array([0.5 - part, -0.5 - part, -0.5 * kappa + kappa * part, 0.5 * kappa + kappa * part])

    def variance(units):
        total = 0.0
        for name in set(units):
            kept = [row for row, unit in zip(rows, units, strict=True) if unit != name]
            total += (slope @ (slow_estimate(kept) - whole)) ** 2
        return total

    by_query, by_passage, by_pair = map(variance, (query, passage, list(zip(query, passage, strict=True))))
    return value, kappa, max(by_query, by_passage, by_query + by_passage - by_pair) ** 0.5


@given(st.integers(0, 10**6))
def test_a_preference_is_its_definition(seed):
    changes, signs = drawn(seed, 40, covered=0.8, preference=0.1)
    swap = preference(changes, signs)
    # Where the placebo's damage does not show, κ is 1 or none: that has a test of its own.
    assume(swap.ratio not in (None, 1.0))
    # Where the placebo's lengths do not reach the variant's mean, slopes are those of both: the loop knows one way.
    for sign in (1, -1):
        mean = changes.lengths[signs == sign].mean(axis=0)
        other = changes.placebo_lengths[(signs == sign) & ~np.isnan(changes.placebo)]
        assume(((other.min(axis=0) <= mean) & (mean <= other.max(axis=0))).all())
    value, kappa, error = slow_preference(changes, signs)
    assert swap.ratio == pytest.approx(kappa, rel=1e-9)
    assert swap.finding.mean == pytest.approx(value, rel=1e-9)
    # The interval is Student's and Hall's together: no narrower than the former's with many degrees of freedom.
    low, high = swap.finding.ci95
    assert low < value < high
    assert high - low > 2 * 1.96 * error
    assert swap.finding.mde > 2.8 * error


def test_length_and_damage_are_no_preference():
    """A swap that lengthens one wording, damages more, and that in one direction; and one that changes no score."""
    changes, signs = drawn(2, 200, tied=0.1, length=0.2)
    uneven = replace(changes, own=changes.own - 0.3 * (signs < 0), placebo=changes.placebo - 0.3 * (signs < 0))
    assert size(uneven.own, uneven.query, uneven.passage, signs).ci95[0] > 0.05
    found = preference(uneven, signs).finding
    assert found.verdict == "no difference shown"
    assert abs(found.mean) < 0.05
    found = preference(replace(changes, own=np.zeros(len(signs))), signs).finding
    assert (found.mean, found.p, found.mde, found.verdict) == (0.0, 1.0, 0.0, "no difference shown")


def without_placebo(changes, where):
    return replace(changes, placebo=np.where(where, np.nan, changes.placebo))


def untold():
    """Changes of a swap and their directions, and why no preference can be told of them."""
    yield drawn(5, 30, towards=0.3), "only 9 passages are swapped in one direction, where 10 are needed"
    changes, signs = drawn(5, 30, towards=1.0)
    yield (changes, signs), "the swap changes passages in one direction only"
    yield (changes, np.full(len(signs), np.nan)), "no pair is left to compare"
    changes, signs = drawn(6, 60)
    few = "the placebo changes only 4 of the passages swapped in one direction, where 5 are needed"
    yield (without_placebo(changes, (signs > 0) & (changes.passage > 3)), signs), few
    yield (without_placebo(changes, signs > 0), signs), "the placebo changes only 0 of the passages"
    changes, signs = drawn(7)
    few = "only 14 queries differ from 0, where 15 are needed"
    yield (replace(changes, query=changes.query % 14), signs), few
    changes, signs = drawn(8)
    yield (replace(changes, placebo=changes.placebo + 0.3), signs), "the swap damages and its placebo does not"
    changes, signs = drawn(9, 400)
    for more, times in ((0.6, "2.9"), (-0.2, "0.3")):
        yield (replace(changes, own=changes.own - more), signs), f"the swap damages {times}"
    yield drawn(10, tied=1.0), ALIKE


def test_what_cannot_be_told_of_a_swap():
    for (changes, signs), reason in untold():
        finding = preference(changes, signs).finding
        assert finding.verdict == "cannot be told"
        assert finding.reason.startswith(reason)
        assert finding.reason.endswith("times as much as its placebo") == reason.endswith(("2.9", "0.3"))


# --- a swap without a placebo -----------------------------------------------------------------------------------------


def test_without_a_placebo_a_preference_has_to_outweigh_the_damage():
    def found(planted, **options):
        changes, signs = drawn(11, preference=planted, **options)
        return preference(replace(changes, placebo=None, placebo_lengths=None), signs)

    assert found(0.6).finding.shown
    assert found(-0.6).finding.mean < 0
    weak = found(0.2)
    assert (weak.finding.verdict, weak.finding.mde, weak.placebo) == ("no difference shown", None, None)
    assert found(0.6, tied=1.0).finding.reason == ALIKE


# --- other edits ------------------------------------------------------------------------------------------------------


def test_an_edit_is_compared_with_its_placebo_at_equal_length():
    changes, _ = drawn(12, 100, length=-0.2)
    longer = replace(changes, lengths=changes.lengths + 1, own=changes.own - 0.4)
    assert beyond(Changes(longer.query, longer.passage, longer.own - longer.placebo)).shown
    assert beyond(longer).verdict == "no difference shown"
    assert beyond(replace(longer, own=longer.own + 0.2)).shown
    apart = replace(changes, lengths=changes.lengths + 9)
    assert (beyond(apart).reason or "").startswith("the variant and its placebo differ in length; ")


# --- least squares over pairs that share queries and passages, against leaving each out in a loop -------------------


def slow_variance(values, columns, weights, units):
    """Σ (estimate without a unit − estimate)²."""
    whole = weights @ np.linalg.lstsq(columns, values, rcond=None)[0]
    names = sorted(set(units))
    total = 0.0
    for name in names:
        kept = np.array([unit != name for unit in units])
        total += (weights @ np.linalg.lstsq(columns[kept], values[kept], rcond=None)[0] - whole) ** 2
    return total


@given(st.integers(0, 10**6))
def test_the_error_is_the_largest_of_three(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 40))
    first, second = rng.integers(0, 6, n), rng.integers(0, 9, n)
    columns = np.stack([np.ones(n), rng.standard_normal(n)], axis=1)
    values, weights = rng.standard_normal(n) + 0.5 * rng.standard_normal(6)[first], np.array([1.0, 0.3])
    found = clustered(values, first, second, columns).mean(weights)
    pairs = list(zip(first, second, strict=True))
    by_first, by_second, both = (slow_variance(values, columns, weights, list(u)) for u in (first, second, pairs))
    assert found.se**2 == pytest.approx(max(by_first, by_second, by_first + by_second - both), rel=1e-6)
    assert found.value == pytest.approx(weights @ np.linalg.lstsq(columns, values, rcond=None)[0])

    def worth(units):
        sizes = np.unique(units, return_counts=True)[1]
        return max(sizes.sum() ** 2 / (sizes**2).sum() - 1, 1)

    wanted = worth(second) if found.se**2 <= by_second * (1 + 1e-9) else min(worth(first), worth(second))
    assert found.df == pytest.approx(wanted)


def test_each_value_of_its_own_is_the_t_test():
    values, own = np.random.default_rng(3).standard_normal(40), np.arange(40)
    found = clustered(values, own, own).mean(np.ones(1))
    # G/(G − 1) for caution.
    assert (found.se, found.df) == pytest.approx((stats.sem(values) * (40 / 39) ** 0.5, 39))
    # The skewness that Hall's transformation takes out.
    apart = values - values.mean()
    skew = (1 + 6 / 40) * (apart**3).mean() / (apart**2).mean() ** 1.5 / np.sqrt(40)
    assert found.skewness == pytest.approx(skew)
    assert compare_estimate(found, 40, "pairs").ci95 == confidence_interval(found)


# --- where a passage would rank if its variant stood in for it ------------------------------------------------------


def slow_place(score, others):
    """The mean rank over the orders of ties, and the chance of each rank from 1."""
    above, tied = sum(other > score for other in others), sum(other == score for other in others)
    ranks = range(above + 1, above + tied + 2)
    return sum(ranks) / len(ranks), {rank: 1 / len(ranks) for rank in ranks}


def slow_shifts(scores, query, replaced, k):
    rows = []
    for row, new in enumerate(replaced):
        others = [s for at, (s, q) in enumerate(zip(scores, query, strict=True)) if q == query[row] and at != row]
        if np.isnan(new):
            rows.append((np.nan, np.nan, np.nan))
            continue
        (rank, chances), (new_rank, new_chances) = slow_place(scores[row], others), slow_place(new, others)
        before, after = (sum(one for at, one in c.items() if at <= k) for c in (chances, new_chances))
        rows.append((rank - new_rank, max(after - before, 0), max(before - after, 0)))
    return np.array(rows).reshape(-1, 3).T


SCORES = st.sampled_from([-1.0, 0.0, 0.5, 0.75, 2.0])


@given(
    st.lists(st.tuples(SCORES, st.integers(-1, 2), st.one_of(SCORES, st.just(np.nan))), max_size=20),
    st.integers(1, 4),
)
def test_shifts_are_the_definition(rows, k):
    scores, query, replaced = np.array(rows).reshape(-1, 3).T
    found = rank_shifts(scores, query.astype(int), replaced, k)
    np.testing.assert_allclose(np.array(found), slow_shifts(scores, query, replaced, k), atol=1e-12)


def test_no_preference_is_shown():
    """Where no score changes, whatever the placebo does, and where the placebo alone damages."""
    changes, signs = drawn(3)
    found = preference(replace(changes, own=np.zeros(len(signs))), signs).finding
    assert (found.mean, found.p, found.mde, found.verdict) == (0.0, 1.0, 0.0, "no difference shown")
    changes, signs = drawn(4, 100)
    still = replace(changes, own=changes.own + 0.3, placebo=changes.placebo - 0.4 * (signs < 0))
    swap = preference(still, signs)
    assert abs(swap.ratio) < 0.3
    assert swap.finding.verdict == "no difference shown"


def test_a_preference_of_either_side_is_found():
    for planted in (0.2, -0.2):
        found = preference(*drawn(1, preference=planted)).finding
        assert found.shown
        assert found.mean == pytest.approx(planted, abs=0.08)
    none = preference(*drawn(1)).finding
    assert none.verdict == "no difference shown"


def test_what_the_verdict_is_of():
    found = Means.of(Changes(QUERY, PASSAGE, OWN, SOME), None)
    assert (found.effect.mean, found.placebo.mean, found.finding.mean) == pytest.approx((3.2, 1.0, 2.2))
    assert (found.effect.n, found.placebo.n, found.finding.n) == (5, 2, 5)
    assert (found.beyond_placebo, found.swap) == (True, None)
    # Without any placebo it is the effect.
    for changes in (Changes(QUERY, PASSAGE, OWN), Changes(QUERY, PASSAGE, OWN, np.full(6, np.nan))):
        found = Means.of(changes, None)
        assert (found.finding, found.beyond_placebo) == (beyond(Changes(QUERY, PASSAGE, OWN)), False)
    # A swap weighs its directions alike.
    found = Means.of(Changes(QUERY, PASSAGE, OWN), np.array([1.0, 1.0, 1.0, -1.0, np.nan, 1.0]))
    assert found.effect.mean == pytest.approx((2 - 6) / 2)
    assert (found.swap.direction, found.swap.passages) == ((2.0, 6.0), (3, 1))


def test_two_samples_are_welchs_test():
    rng = np.random.default_rng(4)
    values, own = rng.standard_normal(40) * np.repeat([1, 3], 20), np.arange(40)
    part = np.repeat([0, 1], 20)
    columns = np.stack([part == 0, part == 1], axis=1).astype(float)
    found = clustered(values, own, own, columns, part=part).mean(np.array([1.0, -1.0]))
    welch = stats.ttest_ind(values[:20], values[20:], equal_var=False)
    assert found.value / found.se == pytest.approx(welch.statistic * (19 / 20) ** 0.5)
    assert found.df == pytest.approx(welch.df)
