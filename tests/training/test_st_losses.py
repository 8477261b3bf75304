"""Losses for the trainers of sentence-transformers: by hand, labels, and what bad batches get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from sentence_transformers import (
    CrossEncoder,
)

from evenrank.files import EvenrankError
from evenrank.mitigation.ibbr import IBBR
from evenrank.training.losses import LOSSES, nll
from evenrank.training.sentence_transformers import CrossEncoderIBBRLoss, IBBRLoss, with_group_labels
from st_models import HERS, HIS, ITS, ROWS, bi_encoder, bi_inputs, cross_encoder, lists, tuples

# transformers, accelerate and datasets warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def groups_of(passages: list[str]) -> list[int]:
    """Which side a passage is on: the obvious version."""
    return [text.split().count("he") - text.split().count("she") for text in passages]


@pytest.mark.parametrize(("similarity", "term"), [("dot", "ibbr-pd"), ("cosine", "ibbr-ts")])
def test_bi_encoder_loss_by_hand(checkpoint: str, similarity: str, term: Any) -> None:
    model = bi_encoder(checkpoint, similarity)
    data = with_group_labels(tuples())
    loss = IBBRLoss(model, 0.7, term, rank_loss="hinge")
    parts = loss(*bi_inputs(model, data))
    texts = [list(data[name]) for name in ("query", "positive", "negative_1", "negative_2")]
    query, *passages = (model.encode(column, convert_to_tensor=True) for column in texts)
    scores = torch.stack([model.similarity_pairwise(query, one) for one in passages], 1) * loss.scale
    assert loss.scale == (1 if similarity == "dot" else 20)
    labels = torch.tensor([[1.0, 0.0, 0.0]] * ROWS)
    groups = torch.tensor([groups_of(list(row)) for row in zip(*texts[1:], strict=True)])
    assert data["label"][:] == groups.tolist()
    assert float(parts["fair"]) == pytest.approx(0.7 * float(IBBR(term)(scores, labels, groups)), rel=1e-4)
    everything = torch.ones(ROWS, 3, dtype=torch.bool)
    assert float(parts["rank"]) == pytest.approx(float(LOSSES["hinge"](scores, labels, everything)), rel=1e-4)
    assert float(parts["fair"]) > 1e-6


def graph_scores(model: CrossEncoder, dataset: Any) -> tuple[Any, Any, Any, Any]:
    """Scores with a graph, labels, groups and mask of ragged lists, laid out one by one."""
    longest = max(len(row) for row in dataset["docs"])
    scores = torch.zeros(len(dataset), longest)
    labels, groups = torch.zeros_like(scores), torch.zeros_like(scores)
    mask = torch.zeros_like(scores, dtype=torch.bool)
    for i, row in enumerate(dataset):
        count = len(row["docs"])
        pairs = [(row["query"], text) for text in row["docs"]]
        scores[i, :count] = model(model.preprocess(pairs))["scores"].view(-1)
        labels[i, :count] = torch.tensor(row["labels"])
        groups[i, :count] = torch.tensor(groups_of(row["docs"]))
        mask[i, :count] = True
    return scores, labels, groups, mask


@pytest.mark.parametrize("given", [False, True])
def test_cross_encoder_loss_by_hand(checkpoint: str, given: bool) -> None:
    """Value and gradient, the groups from the lexicon or from a column of their own."""
    model = cross_encoder(checkpoint)
    data = lists()
    columns = [list(data["query"]), list(data["docs"])]
    if given:
        columns.append([groups_of(row) for row in data["docs"]])
    loss = CrossEncoderIBBRLoss(model, 0.3)
    parts = loss(columns, [torch.tensor(row) for row in data["labels"]])
    parameters = list(model.parameters())
    found = torch.autograd.grad(sum(parts.values()), parameters, allow_unused=True)
    scores, labels, groups, mask = graph_scores(model, data)
    rank, fair = nll(scores, labels, mask), 0.3 * IBBR()(scores, labels, groups, mask)
    assert float(parts["rank"]) == pytest.approx(float(rank), rel=1e-5)
    assert float(parts["fair"]) == pytest.approx(float(fair), rel=1e-4)
    expected = torch.autograd.grad(rank + fair, parameters, allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_a_batch_that_lacks_a_group(checkpoint: str) -> None:
    """Nothing to balance, and no weight that moves by it; the ranking loss goes on."""
    model = cross_encoder(checkpoint).train()
    loss = CrossEncoderIBBRLoss(model, "auto")
    docs = [[HIS, ITS], [HIS, HERS, ITS]]
    parts = loss([["software", "a nurse"], docs], [torch.tensor([1, 0]), torch.tensor([1, 0, 0])])
    assert float(parts["fair"].detach()) == 0
    parts["fair"].backward(retain_graph=True)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())
    parts["rank"].backward()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())
    assert set(loss.weight.state()["values"]) == {"rank"}


def test_group_labels_of_every_kind_of_dataset() -> None:
    data = tuples()
    expected = with_group_labels(data)["label"][:]
    both = with_group_labels(datasets.DatasetDict(train=data, test=data))
    assert both["test"]["label"][:] == expected
    streamed = with_group_labels(data.to_iterable_dataset())
    assert [row["label"] for row in streamed] == expected
    with pytest.raises(EvenrankError, match="has a column label, which"):
        with_group_labels(both["train"])
    with pytest.raises(
        EvenrankError, match="expected the columns query, positive and negatives, found query, positive"
    ):
        with_group_labels(data.select_columns(["query", "positive"]))


def test_mistakes_in_settings(checkpoint: str, tmp_path: Path) -> None:
    model, cross = bi_encoder(checkpoint), cross_encoder(checkpoint)
    for wrong, match in [
        ({"weight": -1}, "`weight`: expected 0 or more"),
        ({"weight": "best"}, "`weight`: expected a number, auto, dual or a FixedWeight, found 'best'"),
        ({"weight": float("nan")}, "`weight`: expected 0 or more"),
        ({"term": "pd"}, "`term`: expected ibbr-pd or ibbr-ts"),
        ({"score": "tanh"}, "`score`: expected"),
        ({"rank_loss": "margin-mse"}, "`rank_loss`: expected nll"),
    ]:
        with pytest.raises(EvenrankError, match=match):
            IBBRLoss(model, **wrong)
        with pytest.raises(EvenrankError, match=match):
            CrossEncoderIBBRLoss(cross, **wrong)
    with pytest.raises(EvenrankError, match="`scale`: expected more than 0"):
        IBBRLoss(model, scale=0)
    with pytest.raises(EvenrankError, match="`similarity`: expected dot or cosine"):
        IBBRLoss(bi_encoder(checkpoint, "euclidean"))
    with pytest.raises(EvenrankError, match="two have the same name"):
        IBBRLoss(model, attributes=["a", "a"])
    with pytest.raises(EvenrankError, match="expected a model with one score a pair, found 3"):
        CrossEncoderIBBRLoss(CrossEncoder(checkpoint, num_labels=3, device="cpu"))
    (tmp_path / "words.csv").write_text("word,group\na,x\nb,y\nc,z\n")
    with pytest.raises(EvenrankError, match="the lexicon words has the groups x, y, z"):
        CrossEncoderIBBRLoss(cross, lexicon=tmp_path / "words.csv")


def test_mistakes_in_a_bi_encoders_batch(checkpoint: str) -> None:
    model = bi_encoder(checkpoint)
    loss = IBBRLoss(model)
    features, labels = bi_inputs(model, with_group_labels(tuples()))
    for wrong, match in [
        ((features[:2], labels[:, :1]), "needs the columns query, positive and negatives, found 2"),
        ((features, None), "needs the column label"),
        ((features, labels[:, 0]), r"expected \(3,\) group labels a query, found \(\)"),
        ((features, labels[:, :2]), r"expected \(3,\) group labels a query, found \(2,\)"),
        ((features, labels * 2), "expected only \\+1, -1 and 0"),
    ]:
        with pytest.raises(EvenrankError, match=match):
            loss(*wrong)


def test_mistakes_in_a_cross_encoders_batch(checkpoint: str) -> None:
    """None of them is a TypeError, which the trainer would swallow."""
    loss = CrossEncoderIBBRLoss(cross_encoder(checkpoint))
    one = [torch.tensor([1, 0])]
    for inputs, labels, match in [
        ([["q"]], one, "expected the columns query and docs"),
        ([["q"], [["a", "b"]]], None, "expected the column labels"),
        ([["q"], [["a", "b"]]], torch.tensor([1]), "expected the column labels"),
        ([[None], [["a", "b"]]], one, "the first column"),
        ([["q"], ["ab"]], one, "the second column: expected a list"),
        ([["q"], [["a", None]]], one, "the second column: expected a list"),
        ([["q"], [["a"]]], one, "as many grades as there are passages"),
        ([["q"], [[]]], [torch.tensor([])], "no query of the batch has a passage"),
        ([["q"], [["a", "b"]], [[1]]], one, "a group label for each passage"),
        ([["q"], [["a", "b"]], [[1, 3]]], one, "expected only \\+1, -1 and 0"),
    ]:
        with pytest.raises(EvenrankError, match=match):
            loss(inputs, labels)
    # Whatever else goes wrong inside.
    with pytest.raises(RuntimeError, match="CrossEncoderIBBRLoss: "):
        loss([["q"], [["a", "b"]]], one, prompt=3)
