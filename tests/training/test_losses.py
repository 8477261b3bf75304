"""Ranking losses: hand-worked, against slow versions, and what they do with masks."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenrank.training.losses import AVERAGED_OVER, LOSSES, against_batch, bce, hinge, margin_mse, nll, ranknet


def batch(*rows: list[tuple[float, float]]):
    """Scores, labels and mask from (score, label) lists of any length."""
    longest = max(map(len, rows))
    scores = torch.tensor([[s for s, _ in row] + [99.0] * (longest - len(row)) for row in rows], requires_grad=True)
    labels = torch.tensor([[label for _, label in row] + [1.0] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
    return scores, labels, mask


def slow(name: str, rows: list[list[tuple[float, float]]]) -> float:
    values = []
    for row in rows:
        for i, (s, y) in enumerate(row):
            if name == "bce":
                p = 1 / (1 + math.exp(-s))
                values.append(-math.log(p) if y >= 1 else -math.log(1 - p))
            if name == "nll" and y >= 1:
                negatives = [math.exp(t) for t, z in row if z < 1]
                values.append(-math.log(math.exp(s) / (math.exp(s) + sum(negatives))))
            for j, (t, z) in enumerate(row):
                if name == "hinge" and y >= 1 and z < 1:
                    values.append(max(0.0, 1 - s + t))
                if name == "ranknet" and y > z:
                    values.append(math.log(1 + math.exp(-(s - t))))
                if name == "margin-mse" and i != j and y > z:
                    values.append(((s - t) - (y - z)) ** 2)
    return sum(values) / len(values) if values else 0.0


def test_hand_worked():
    scores, labels, mask = batch([(2.0, 1), (1.0, 0), (0.0, 0)])
    e = math.e
    assert nll(scores, labels, mask).item() == pytest.approx(-math.log(e**2 / (e**2 + e + 1)))
    # Pairs 2-1 and 2-0: margins 1 and 2.
    assert hinge(scores, labels, mask).item() == pytest.approx(0.0)
    assert ranknet(scores, labels, mask).item() == pytest.approx((math.log(1 + 1 / e) + math.log(1 + 1 / e**2)) / 2)
    sigmoid = [1 / (1 + math.exp(-s)) for s in (2, 1, 0)]
    expected = -(math.log(sigmoid[0]) + math.log(1 - sigmoid[1]) + math.log(1 - sigmoid[2])) / 3
    assert bce(scores, labels, mask).item() == pytest.approx(expected)
    # The teacher's margins are 1 and 1, the student's 1 and 2.
    assert margin_mse(scores, labels, mask).item() == pytest.approx(0.5)


pairs = st.tuples(st.floats(-4, 4), st.sampled_from([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("name", LOSSES)
@given(rows=st.lists(st.lists(pairs, min_size=1, max_size=5), min_size=1, max_size=4))
def test_equal_to_the_slow_version_and_blind_to_padding(name, rows):
    scores, labels, mask = batch(*rows)
    loss = LOSSES[name](scores, labels, mask)
    assert loss.item() == pytest.approx(slow(name, rows), abs=1e-4)
    loss.backward()
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[~mask] == 0).all()


def in_batch_nll(products, labels, mask, counted):
    return nll(products, *against_batch(labels, mask, counted))


def test_in_batch_negatives_hand_worked():
    # Two lists, (positive, negative) and (positive): of the scores of all three passages for each query the first is
    # log(e² + e + 1) − 2, the second log(e⁰ + e¹ + e³) − 3.
    products = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    labels, mask = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[True, True], [True, False]])
    e = math.e
    expected = (math.log(e**2 + e + 1) - 2 + math.log(1 + e + e**3) - 3) / 2
    assert in_batch_nll(products, labels, mask, mask).item() == pytest.approx(expected)
    # A list that only fills the batch has no loss, and its passages are nobody's negatives.
    first = mask & torch.tensor([[True], [False]])
    assert in_batch_nll(products, labels, mask, first).item() == pytest.approx(math.log(1 + 1 / e))


lists_of_labels = st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=4), min_size=1, max_size=4)


@given(rows=lists_of_labels, seed=st.integers(0, 99))
def test_in_batch_negatives_equal_the_slow_version(rows, seed):
    passages = [(number, label) for number, row in enumerate(rows) for label in row]
    products = torch.randn(len(rows), len(passages), generator=torch.Generator().manual_seed(seed))
    _, labels, mask = batch(*[[(0.0, label) for label in row] for row in rows])
    values = []
    for number, scores in enumerate(products.tolist()):
        others = [s for s, (of, label) in zip(scores, passages, strict=True) if of != number or label < 1]
        for s, (of, label) in zip(scores, passages, strict=True):
            if of == number and label >= 1:
                values.append(math.log(math.exp(s) + sum(map(math.exp, others))) - s)
    expected = sum(values) / len(values) if values else 0.0
    assert in_batch_nll(products, labels, mask, mask).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_pieces_weighed_by_their_terms_have_the_loss_of_the_whole(name):
    # Ragged lists: one positive, three, one without a negative, one passage alone that is none.
    scores, labels, mask = batch(
        [(2.0, 1), (1.0, 0), (0.0, 0), (0.5, 0)], [(0.3, 2), (1.5, 1), (0.1, 1), (0.2, 0)], [(0.7, 1)], [(0.9, 0)]
    )
    pieces = list(zip(*(value.split((1, 2, 1)) for value in (scores, labels, mask)), strict=True))
    counts = torch.stack([AVERAGED_OVER[name](labels, mask).sum() for _, labels, mask in pieces]).double()
    found = torch.stack([LOSSES[name](*piece) for piece in pieces]).double()
    assert (found * counts).sum().item() / counts.sum().item() == pytest.approx(
        LOSSES[name](scores, labels, mask).item(), abs=1e-6
    )


def test_in_batch_negatives_are_those_of_sentence_transformers():
    losses = pytest.importorskip(
        "sentence_transformers.sentence_transformer.losses", reason="sentence-transformers is not installed"
    )
    columns = torch.nn.functional.normalize(torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0)), dim=2)

    class Given(torch.nn.Module):
        def forward(self, features):
            return {"sentence_embedding": columns[features["column"]]}

    expected = losses.MultipleNegativesRankingLoss(Given(), scale=20.0)([{"column": c} for c in range(4)], None)
    # [6, 3]: of each query the positive and two negatives.
    passages = columns[1:].transpose(0, 1).reshape(18, 8)
    labels, mask = torch.tensor([[1.0, 0.0, 0.0]] * 6), torch.ones(6, 3, dtype=torch.bool)
    found = in_batch_nll(20 * columns[0] @ passages.T, labels, mask, mask)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_equals_finite_differences(name):
    torch.manual_seed(0)
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 1], [1, 0, 0, 0]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda s: LOSSES[name](s, labels, mask), (scores,))
