"""Losses for the trainers of sentence-transformers: by hand, labels, and what bad batches get."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from sentence_transformers import CrossEncoder

from evenrank.files import EvenrankError
from evenrank.groups import as_labels
from evenrank.mitigation.ibbr import IBBR
from evenrank.training.losses import LOSSES, nll
from evenrank.training.sentence_transformers import CrossEncoderIBBRLoss, IBBRLoss, with_group_labels
from st_models import HERS, HIS, ITS, ROWS, bi_encoder, bi_inputs, cross_encoder, lists, tuples


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
    labels = as_labels(LABELS, neutral=["none"])
    missing = "expected the columns query, positive and negatives, found query, positive"
    by_document = r"^`id_columns`: labels are by document: expected 3 columns with the ids of"
    no_column = r"^`id_columns`: the dataset has no column 'id' \(it has query, positive, n"
    for given, more, message in (
        (both["train"], {}, "has a column label, which"),
        (data.select_columns(["query", "positive"]), {}, missing),
        (data, {"labels": labels}, by_document),
        (data, {"labels": labels, "id_columns": ["id"]}, no_column),
        (identified(), {"lexicon": "gender-en", "labels": labels, "id_columns": IDS}, r"^`labels`: not with `lexicon`"),
        (
            identified(),
            {"labels": {"x": "m", "y": "f"}, "id_columns": IDS},
            "know none of 4 passages",
        ),
    ):
        with pytest.raises(EvenrankError, match=message):
            with_group_labels(given, **more)


IDS = ["positive_id", "negative_1_id", "negative_2_id"]
LABELS = {"a": "m", "b": "f", "c": "none"}


def identified() -> Any:
    """The tuples with an id for each passage; nothing is known of d."""
    data = tuples()
    ids = {name: [("abcd", "bcda", "dabc")[column][i % 4] for i in range(len(data))] for column, name in enumerate(IDS)}
    for name, values in ids.items():
        data = data.add_column(name, values)
    return data


def test_sides_of_passages_by_their_ids() -> None:
    labels = as_labels(LABELS, neutral=["none"])
    with pytest.warns(UserWarning, match="^the labels know 3 of 4 passages: the others are on no side$"):
        found = with_group_labels(identified(), labels=labels, id_columns=IDS)
    assert found.column_names == ["query", "positive", "negative_1", "negative_2", "label"]
    # a is m, b is f, c neutral, d unknown.
    side = {"a": 1, "b": -1, "c": 0, "d": 0}
    rows = [[side[row[name]] for name in IDS] for row in identified()]
    assert rows[:4] == [[1, -1, 0], [-1, 0, 1], [0, 0, -1], [0, 1, 0]]
    assert found["label"][:] == rows
    # A stream, whose batches may know none; a dict; what as_labels takes; swapped poles.
    with warnings.catch_warnings(action="error"):
        streamed = with_group_labels(identified().to_iterable_dataset(), labels=labels, id_columns=IDS)
        assert [row["label"] for row in streamed] == rows
        known = as_labels({**LABELS, "d": "none"}, neutral=["none"])
        assert with_group_labels(identified(), labels=known, id_columns=IDS)["label"][:] == rows
    assert set(next(iter(streamed))) == set(found.column_names)
    swapped = with_group_labels(identified(), labels.with_poles("f,m"), id_columns=IDS)
    several = with_group_labels(identified(), {"label": labels, "words": "gender-en"}, id_columns=IDS)
    assert swapped["label"][:] == [[-side for side in row] for row in rows]
    by_words = with_group_labels(tuples())["label"][:]
    assert several["label"][:] == [list(pair) for pair in zip(rows, by_words, strict=True)]


def test_mistakes_in_settings(checkpoint: str, tmp_path: Path) -> None:
    model, cross = bi_encoder(checkpoint), cross_encoder(checkpoint)
    (tmp_path / "words.csv").write_text("word,group\na,x\nb,y\nc,z\n")
    both: tuple[Any, ...] = (IBBRLoss, model), (CrossEncoderIBBRLoss, cross)
    three = CrossEncoder(checkpoint, num_labels=3, device="cpu")
    by_id = as_labels(LABELS, neutral=["none"])
    for kinds, wrong, match in [
        (both, {"weight": -1}, "`weight`: expected 0 or more"),
        (both, {"weight": "best"}, "`weight`: expected a number, auto, dual or a FixedWeight, found 'best'"),
        (both, {"weight": float("nan")}, "`weight`: expected 0 or more"),
        (both, {"term": "pd"}, "`term`: expected ibbr-pd or ibbr-ts"),
        (both, {"score": "tanh"}, "`score`: expected"),
        (both, {"rank_loss": "margin-mse"}, "`rank_loss`: expected nll"),
        (both[:1], {"scale": 0}, "`scale`: expected more than 0"),
        (both[:1], {"attributes": ["a", "a"]}, "two have the same name"),
        ([(IBBRLoss, bi_encoder(checkpoint, "euclidean"))], {}, "`similarity`: expected dot or cosine"),
        ([(CrossEncoderIBBRLoss, three)], {}, "expected a model with one score a pair, found 3"),
        (both[1:], {"lexicon": tmp_path / "words.csv"}, "the lexicon words has the groups x, y, z"),
        (both[1:], {"lexicon": by_id}, "by document, and these passages have no ids: give their sides"),
    ]:
        for kind, of in kinds:
            with pytest.raises(EvenrankError, match=match):
                kind(of, **wrong)


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
