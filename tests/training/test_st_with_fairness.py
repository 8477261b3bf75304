"""A fairness term beside any loss of sentence-transformers: values and gradients by hand, and the loss left alone."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder import losses as cross
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.modules import Pooling

from evenrank.files import EvenrankError
from evenrank.mitigation.ibbr import IBBR
from evenrank.training.sentence_transformers import CrossEncoderWithFairness, WithFairness, with_group_labels
from st_models import ROWS, bi_encoder, bi_inputs, cross_encoder, lists, tuples

LABELS = [[0.9, 0.1 * row, 0.2] for row in range(ROWS)]
"""A teacher's scores."""
BI: dict[str, Any] = {
    "cached": lambda model: losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2),
    "nested": lambda model: losses.MatryoshkaLoss(model, losses.MultipleNegativesRankingLoss(model), [16, 4]),
    "with labels": losses.MarginMSELoss,
    "several parts": lambda model: Parts(model),
}
CROSS: dict[str, Any] = {
    "lambda": cross.LambdaLoss,
    "mini-batches": lambda model: cross.ListNetLoss(model, mini_batch_size=4),
    "likelihood": cross.PListMLELoss,
}


class Parts(torch.nn.Module):
    """Returns a dict."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Any, labels: Any) -> dict[str, Any]:
        first, second, third, _ = (self.model(column)["sentence_embedding"] for column in features)
        return {"near": (first - second).square().mean(), "far": third.square().mean()}


def whole(parts: Any) -> Any:
    return torch.stack(list(parts.values())).sum() if isinstance(parts, dict) else parts


def gradients(value: Any, model: Any) -> list[Any]:
    return list(torch.autograd.grad(value, list(model.parameters()), allow_unused=True))


def assert_sum(model: Any, parts: dict[str, Any], base: Any, fair: Any) -> None:
    """The value and the gradient are those of the loss and of the term, added."""
    assert float(parts["fair"].detach()) == pytest.approx(float(fair.detach()), rel=1e-4)
    assert abs(float(fair.detach())) > 1e-6
    assert float(whole(parts).detach()) == pytest.approx(float((whole(base) + fair).detach()), rel=1e-5)
    found = gradients(whole(parts), model)
    for one, rank, term in zip(found, gradients(whole(base), model), gradients(fair, model), strict=True):
        if one is not None:
            added = sum(part for part in (rank, term) if part is not None)
            torch.testing.assert_close(one, added, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", BI)
def test_a_bi_encoders_loss_and_the_term(checkpoint: str, name: str) -> None:
    model = bi_encoder(checkpoint, "cosine").train()
    data, teacher = tuples(), None
    if name == "with labels":
        data, teacher = data.add_column("label", LABELS), torch.tensor(LABELS)
    labelled = with_group_labels(data, label=None if teacher is None else "label")
    loss = WithFairness(BI[name](model), IBBR("ibbr-pd", weight=0.7))
    parts = loss(*bi_inputs(model, labelled))
    assert list(parts) == (["near", "far", "fair"] if name == "several parts" else ["rank", "fair"])
    features, sides = bi_inputs(model, with_group_labels(tuples()))
    base = BI[name](model)([dict(column) for column in features], teacher)
    query, *passages = (model(dict(column))["sentence_embedding"] for column in features)
    scores = 20 * torch.stack([torch.cosine_similarity(query, one) for one in passages], 1)
    relevance = torch.tensor([[1.0, 0.0, 0.0]] * ROWS)
    assert_sum(model, parts, base, 0.7 * IBBR("ibbr-pd")(scores, relevance, sides))


@pytest.mark.parametrize("name", CROSS)
def test_a_cross_encoders_loss_and_the_term(checkpoint: str, name: str) -> None:
    model = cross_encoder(checkpoint).train()
    data = lists()
    columns, labels = [list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]]
    parts = CrossEncoderWithFairness(CROSS[name](model), IBBR("ibbr-pd", weight=0.3))(columns, labels)
    base = CROSS[name](model)(columns, labels)
    scores, relevance, sides = (torch.zeros(ROWS, 3) for _ in range(3))
    mask = torch.zeros(ROWS, 3, dtype=torch.bool)
    for row, (query, docs) in enumerate(zip(*columns, strict=True)):
        for place, text in enumerate(docs):
            scores[row, place] = model(model.preprocess([(query, text)]))["scores"].view(())
            relevance[row, place], mask[row, place] = labels[row][place], True
            sides[row, place] = text.split().count("he") - text.split().count("she")
    assert_sum(model, parts, base, 0.3 * IBBR("ibbr-pd")(scores, relevance, sides, mask))


def test_the_example() -> None:
    found = doctest.DocTestFinder(recurse=False).find(WithFairness, module=sys.modules[WithFairness.__module__])
    result = doctest.DocTestRunner().run(found[0])
    assert result.attempted > 9
    assert result.failed == 0


def test_mistakes(checkpoint: str) -> None:
    model = bi_encoder(checkpoint)
    with pytest.raises(EvenrankError, match=r"^`loss`: expected a loss of sentence-transformers, found a Linear$"):
        WithFairness(torch.nn.Linear(1, 1), IBBR())
    with pytest.raises(EvenrankError, match=r"^the loss and the term have parts of the same name: fair_far$"):
        WithFairness(Parts(model), IBBR(), attributes=["far"]).weighted(
            {"fair_far": torch.zeros(())}, *torch.zeros(2, 1, 2), torch.zeros(1, 1, 2), torch.ones(1, 2)
        )
    for label, lexicon in (("score", None), ("label", {"a": "gender-en", "b": "gender-en"})):
        with pytest.raises(
            EvenrankError, match=r"^`label`: expected a column of the dataset, and one attribute, found"
        ):
            with_group_labels(tuples().add_column("label", LABELS), lexicon, label=label)


def test_with_weight_0_a_training_is_that_of_the_loss(checkpoint: str, tmp_path: Path) -> None:
    """Bit for bit, with dropout."""
    trained = []
    for alone in (False, True):
        encoder = Transformer(checkpoint)
        model = SentenceTransformer(modules=[encoder, Pooling(encoder.get_embedding_dimension())], device="cpu")
        base = BI["cached"](model)
        settings = {"per_device_train_batch_size": 3, "learning_rate": 1e-3, "report_to": "none", "use_cpu": True}
        arguments = SentenceTransformerTrainingArguments(
            str(tmp_path / str(alone)), num_train_epochs=2, save_strategy="no", disable_tqdm=True, **settings
        )
        loss = base if alone else WithFairness(base, IBBR("ibbr-pd", weight=0.0))
        data = tuples() if alone else with_group_labels(tuples())
        before = [value.clone() for value in model.parameters()]
        SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss).train()
        trained.append(list(model.parameters()))
        assert not all(map(torch.equal, before, trained[-1]))
    assert all(map(torch.equal, *trained))
