"""In-batch balancing regularization: hand-worked, against slow versions, scipy and finite differences."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from hypothesis import given
from hypothesis import strategies as st

import slow
from evenrank.files import EvenrankError
from evenrank.mitigation.ibbr import (
    IBBR,
    AutoWeight,
    DualWeight,
    FixedWeight,
    FunctionTerm,
    Pairwise,
    _values,
    best_weight,
    delta_aprf,
    pairwise_difference,
    t_statistics,
)


def random_batch(seed: int, b: int = 9, k: int = 7):
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=(b, k)), dtype=torch.float64)
    labels = torch.tensor((rng.random((b, k)) < 0.35) * rng.integers(1, 3, (b, k)))
    groups = torch.tensor(rng.integers(-1, 2, (b, k)), dtype=torch.int8)
    mask = torch.arange(k) < torch.tensor(rng.integers(1, k + 1, b))[:, None]
    return scores, labels, groups, mask


def test_nprf_by_hand():
    # Clicked: 2.0 (m) and 0.0 (f); others 1.0, 0.0. The first beats both, the second ties with one: both count.
    scores = torch.tensor([[2.0, 0.0, 1.0, 0.0]])
    labels = torch.tensor([[1, 1, 0, 0]])
    groups = torch.tensor([[1, -1, 1, 0]])
    mask = torch.ones_like(labels, dtype=torch.bool)
    found = Pairwise.of(scores, labels, groups, mask, "identity")
    assert found.nprf[:, 0].tolist() == [2.0, 0.0]
    assert found.prf[:, 0].tolist() == [1.0, 0.5]
    found = Pairwise.of(scores, labels, groups, mask, "sigmoid")
    assert found.nprf[:, 0].tolist() == pytest.approx([1 / (1 + math.exp(-2)), 0.5 * math.sqrt(0.5)])
    total = math.exp(2) + 1 + math.e + 1
    found = Pairwise.of(scores, labels, groups, mask, "softmax")
    assert found.nprf[:, 0].tolist() == pytest.approx([math.exp(2) / total, math.sqrt(0.5) / total])


@given(st.integers(0, 10_000))
def test_nprf_equals_the_slow_version(seed):
    scores, labels, groups, mask = random_batch(seed)
    scores = scores.round(decimals=0)  # with ties
    found = Pairwise.of(scores, labels, groups, mask, "identity")
    for b in range(len(scores)):
        there = mask[b]
        values = scores[b][there].tolist()
        clicked = (labels[b][there] >= 1).tolist()
        for pole, sign in enumerate((1, -1)):
            inside = (groups[b][there] == sign).tolist()
            expected = slow.nprf(values, clicked, inside)
            assert bool(found.defined[pole, b]) == (expected is not None)
            assert found.nprf[pole, b].item() == pytest.approx(expected or 0.0)
            assert found.prf[pole, b].item() == pytest.approx(slow.prf(values, clicked, inside) or 0.0)


def test_scores_that_saturate_do_not_become_ties():
    # sigmoid(40) = sigmoid(50) = 1 in float32, and the softmax of the rest is 0.
    scores = torch.tensor([[40.0, 50.0, -200.0]])
    labels = torch.tensor([[1, 0, 0]])
    groups = torch.tensor([[1, 0, 0]])
    for score in ("sigmoid", "softmax", "identity"):
        assert Pairwise.of(scores, labels, groups, torch.ones(1, 3, dtype=torch.bool), score).prf[0].item() == 0.5


def test_pd_and_ts_by_hand():
    first, second = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0, 3.0])
    # Pairs: 1,1,4 from 1.0 and 9,9,0 from 3.0.
    assert pairwise_difference(first, second).item() == pytest.approx(24 / 6)
    # Means 2 and 1, variances 1 and 2: (2 − 1)² / (1/2 + 2/3).
    assert t_statistics(first, second).item() == pytest.approx(1 / (7 / 6))
    assert t_statistics(first * 2, second * 2).item() == pytest.approx(1 / (7 / 6))
    assert t_statistics(first * 2, second * 2, "printed").item() == pytest.approx(4**2 / (4 * 7 / 6))
    # Too few values.
    assert t_statistics(first[:1], second).item() == pairwise_difference(first[:0], second).item() == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_pd_equals_its_pairwise_form(first, second):
    pairs = [(c - d) ** 2 for c in first for d in second]
    found = pairwise_difference(torch.tensor(first, dtype=torch.float64), torch.tensor(second, dtype=torch.float64))
    assert found.item() == pytest.approx(np.mean(pairs), abs=1e-12)


@given(st.integers(0, 1000), st.integers(2, 9), st.integers(2, 9))
def test_ts_is_the_squared_welch_statistic_with_biased_variances(seed, n, m):
    rng = np.random.default_rng(seed)
    first, second = rng.random(n), rng.random(m)
    found = t_statistics(torch.tensor(first), torch.tensor(second)).item()
    welch = stats.ttest_ind_from_stats(
        # scipy divides its standard deviations' squares by n, so biased ones give the biased form.
        first.mean(), first.std(), n, second.mean(), second.std(), m, equal_var=False,
    ).statistic  # fmt: skip
    spread = first.var() / n + second.var() / m
    epsilon = 1e-8 * (first.mean() + second.mean()) ** 2 + 1e-12
    assert found == pytest.approx(welch**2 * spread / (spread + epsilon), rel=1e-9)


def ids(term):
    return f"{term.term}-{term.form}-{term.score}"


TERMS = [
    IBBR(term, form, score)
    for term, form in (("ibbr-pd", "squared"), ("ibbr-ts", "squared"), ("ibbr-ts", "printed"))
    for score in ("softmax", "sigmoid", "identity")
]


def in_float64(term, scores, labels, groups, mask):
    """The term as calling it gives it, but in the precision of the scores."""
    return term.loss(term.summarize(scores, labels, groups, mask))


@pytest.mark.parametrize("term", TERMS, ids=ids)
def test_the_gradient_equals_finite_differences(term):
    scores, labels, groups, mask = random_batch(3, b=12)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: in_float64(term, s, labels, groups, mask), scores, eps=1e-7, atol=1e-5, rtol=1e-4
    )
    term(scores, labels, groups, mask).backward()
    assert scores.grad.abs().sum() > 0
    assert not scores.grad[~mask].any()


@given(st.integers(0, 10_000), st.sampled_from(TERMS))
def test_the_term_is_that_of_the_slow_nprf(seed, term):
    scores, labels, groups, mask = random_batch(seed)
    found = {1: [], -1: []}
    for row in zip(
        _values(scores, mask, term.score).tolist(), *(one.tolist() for one in (labels, groups, mask)), strict=True
    ):
        values, grades, sides, _ = zip(*(one for one in zip(*row, strict=True) if one[3]), strict=True)
        for side, of in found.items():
            value = slow.nprf(list(values), [grade >= 1 for grade in grades], [one == side for one in sides])
            of.extend([] if value is None else [value])
    first, second = (torch.tensor(of, dtype=torch.float64) for of in found.values())
    expected = pairwise_difference(first, second) if term.term == "ibbr-pd" else t_statistics(first, second, term.form)
    assert in_float64(term, scores, labels, groups, mask).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("term", TERMS, ids=ids)
def test_gradients_where_a_query_wins_nothing_or_too_few_are_there(term):
    scores = torch.tensor([[0.0, 1.0]] * 4, requires_grad=True)
    labels = torch.tensor([[1, 0]] * 4)
    groups = torch.tensor([[1, 0], [1, 0], [-1, 0], [-1, 0]])
    term(scores, labels, groups).backward()
    assert torch.isfinite(scores.grad).all()
    scores.grad = None
    # No query of the second pole.
    loss = term(scores, labels, groups.abs())
    loss.backward()
    assert (loss.item(), scores.grad.abs().sum().item()) == (0, 0)
    assert not term.applies(term.summarize(scores, labels, groups.abs(), torch.ones(4, 2, dtype=torch.bool)))


@pytest.mark.parametrize("pairs", [False, True])
def test_a_function_acts_where_it_says(pairs: bool) -> None:
    """On any queries, if it needs no clicked passages of both poles."""
    term = FunctionTerm(lambda scores, relevance, sides, mask: scores.sum(), pairs=pairs)
    labels, mask = torch.eye(4), torch.ones(4, 4, dtype=torch.bool)
    assert term.applies(term.summarize(torch.randn(4, 4), labels, torch.ones(4, 4), mask)) is not pairs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: IBBR("ts"), "`term`: expected ibbr-pd or ibbr-ts, found 'ts'"),
        (lambda: IBBR("ibbr-ts", score="relu"), "`score`: expected softmax, sigmoid or identity, found 'relu'"),
        (lambda: Pairwise.of(*random_batch(0), "relu"), "`score`: expected softmax, sigmoid or identity, found 'relu'"),
        (lambda: t_statistics(torch.ones(2), torch.ones(2), "welch"), "`form`: expected squared or printed"),
    ],
    ids=["term", "score", "pairwise", "form"],
)
def test_refused(wrong, message):
    with pytest.raises(EvenrankError, match=message):
        wrong()


def test_delta_aprf_of_a_batch():
    prf = torch.tensor([[1.0, 0.5, 0.0], [0.0, 0.25, 0.0]])
    defined = torch.tensor([[True, True, False], [False, True, False]])
    assert delta_aprf(prf, defined) == pytest.approx(0.75 - 0.25)
    assert math.isnan(delta_aprf(prf, torch.zeros_like(defined)))


def test_uncertainty_weighting_finds_its_minimum():
    # L e^{−b} + b is least at b = ln L, where the weight is 1/L.
    weight = AutoWeight(rate=0.05)
    assert weight.weights(2) == (1.0, [1.0, 1.0])
    for _ in range(2000):
        weight.update(0.5, [4.0, None], [0.0, 0.0])
    rank, fair = weight.weights(2)
    assert rank == pytest.approx(2.0, rel=1e-3)
    # The second attribute's groups were never there.
    assert fair == pytest.approx([0.25, 1.0], rel=1e-3)
    assert weight.offset() == pytest.approx(math.log(0.5) + math.log(4), rel=1e-3)
    for _ in range(2000):
        weight.update(0.5, [1e-9, 1e9], [0.0, 0.0])
    assert weight.weights(2)[1] == pytest.approx([math.exp(5), math.exp(-5)])


def test_the_first_step_of_uncertainty_weighting_by_hand_and_a_fixed_weight():
    weight = AutoWeight(rate=0.01)
    weight.update(3.0, [0.5], [0.0])
    # Adam's first step is the rate against the gradient's sign: 1 − 3 < 0 raises a, 1 − 0.5 > 0 lowers b.
    assert weight.weights(1)[0] == pytest.approx(math.exp(-0.01))
    assert weight.weights(1)[1] == pytest.approx([math.exp(0.01)])
    fixed = FixedWeight(0.5)
    fixed.update(1.0, [2.0, None], [0.1, 0.2])
    assert (fixed.weights(2), fixed.offset()) == ((1.0, [0.5, 0.5]), 0.0)


def test_dual_ascent_by_hand():
    weight = DualWeight(target=0.1, rate=0.5, memory=0.5)
    assert weight.weights(2) == (1.0, [0.0, 0.0])
    weight.update(1.0, [1.0, None], [-0.3, math.nan])
    # |−0.3| − 0.1 = 0.2.
    assert weight.weights(2)[1] == pytest.approx([0.1, 0.0])
    weight.update(1.0, [1.0, None], [0.3, math.nan])
    # The mean of −0.3 (counted half) and 0.3 is 0.1: just what is allowed.
    assert weight.weights(2)[1] == pytest.approx([0.1, 0.0])
    for _ in range(20):
        weight.update(1.0, [1.0, None], [0.0, math.nan])
    assert weight.weights(2)[1] == [0.0, 0.0]


@pytest.mark.parametrize("kind", [AutoWeight, DualWeight])
def test_weights_go_on_from_their_state(kind):
    first, second = kind(), kind()
    first.weights(2)
    for step in range(5):
        first.update(1.0 + step, [2.0, 0.3], [0.2, -0.4])
    second.restore(json.loads(json.dumps(first.state())))
    for weight in (first, second):
        weight.update(1.0, [2.0, 0.3], [0.2, -0.4])
    assert first.weights(2) == second.weights(2)
    assert first.state() == second.state()


def test_the_best_weight_of_a_grid():
    bias = [0.20, 0.05, 0.01, 0.04]
    assert best_weight([0.40, 0.39, 0.10, 0.385], bias, without=0.40) == 3
    assert best_weight([0.40, 0.39, 0.10, 0.379], bias, without=0.40) == 1
    assert best_weight([0.1, 0.1], [0.0, 0.0], without=0.40) is None
    assert best_weight([0.4] * 3, [math.nan, 0.3, 0.3], without=0.40) == 1
