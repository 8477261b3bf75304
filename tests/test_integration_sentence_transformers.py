"""Real training steps with the trainers of sentence-transformers, and an evaluator whose figures are the audit's."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from sentence_transformers import (  # noqa: E402
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.modules import Transformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Pooling  # noqa: E402

import evenrank  # noqa: E402
from evenrank.groups import load_lexicon  # noqa: E402
from evenrank.integrations.sentence_transformers import (  # noqa: E402
    BiasEvaluator,
    CrossEncoderIBBRLoss,
    IBBRLoss,
    KeepWeight,
    with_group_labels,
)
from evenrank.io import EvenrankError, Run  # noqa: E402
from evenrank.mitigation.ibbr import IBBR, AutoWeight, DualWeight  # noqa: E402
from evenrank.training.losses import LOSSES, nll  # noqa: E402
from tiny_models import tiny_bert  # noqa: E402

# transformers, accelerate and datasets warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

HIS, HERS, ITS = "he wrote software by night", "she is a nurse", "the doctor runs home early"
QUERIES = {
    str(i): query for i, query in enumerate(["software", "a nurse", "the doctor", "runs home", "by night", "is a"])
}
CORPUS = {
    f"{kind}{i}": f"{text} {tail}"
    for kind, text in (("m", HIS), ("f", HERS), ("n", ITS))
    for i, tail in enumerate(["", "early", "is a doctor", "the software"])
}
RELEVANT = {str(i): {f"{'mf'[i % 2]}{i % 4}": 1} for i in range(6)}
CANDIDATES = {query: [*list(CORPUS)[int(query) :], *list(CORPUS)[: int(query)]] for query in QUERIES}
ROWS = 6


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("plain") / "bert", hidden=16, layers=1))


def bi_encoder(checkpoint: str, similarity: str = "dot") -> SentenceTransformer:
    """Without dropout, so that a second forward pass gives the same."""
    encoder = Transformer(checkpoint, config_kwargs={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    pooling = Pooling(encoder.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[encoder, pooling], similarity_fn_name=similarity, device="cpu")


def cross_encoder(checkpoint: str) -> CrossEncoder:
    torch.manual_seed(0)
    options = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return CrossEncoder(checkpoint, num_labels=1, device="cpu", config_kwargs=options)


def tuples() -> Any:
    """Query, positive and two negatives; positives of either group in turn."""
    rows = range(ROWS)
    return datasets.Dataset.from_dict(
        {
            "query": [QUERIES[str(i)] for i in rows],
            "positive": [f"{(HIS, HERS)[i % 2]} {i}" for i in rows],
            "negative_1": [(HERS, ITS, HIS)[i % 3] for i in rows],
            "negative_2": [(ITS, HIS)[i % 2] for i in rows],
        }
    )


def lists() -> Any:
    """The same as lists, one of them shorter, the positive not always first."""
    table = tuples()
    docs = [[row["negative_1"], row["positive"], row["negative_2"]] for row in table]
    docs[3] = docs[3][:2]
    labels = [[0, 1, 0][: len(row)] for row in docs]
    return datasets.Dataset.from_dict({"query": table["query"], "docs": docs, "labels": labels})


def groups_of(passages: list[str]) -> list[int]:
    """Which side a passage is on: the obvious version."""
    return [text.split().count("he") - text.split().count("she") for text in passages]


def settings(kind: Any, folder: Path, **more: Any) -> Any:
    defaults: dict[str, Any] = {
        "per_device_train_batch_size": ROWS,
        "per_device_eval_batch_size": ROWS,
        "num_train_epochs": 2,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 0,
    }
    return kind(output_dir=str(folder), **{**defaults, **more})


def weights_of(model: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def train(
    model: Any, dataset: Any, loss: Any, folder: Path, evaluator: Any = None, callbacks: Any = None, **more: Any
) -> Any:
    bi = isinstance(model, SentenceTransformer)
    trainer = (SentenceTransformerTrainer if bi else CrossEncoderTrainer)(
        model=model,
        args=settings(SentenceTransformerTrainingArguments if bi else CrossEncoderTrainingArguments, folder, **more),
        train_dataset=dataset,
        loss=loss,
        evaluator=evaluator,
        callbacks=callbacks,
    )
    trainer.train()
    return trainer


def evaluator(**more: Any) -> BiasEvaluator:
    return BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, **more)


# --- losses: values ---------------------------------------------------------------------------------------------------


def bi_inputs(model: SentenceTransformer, dataset: Any) -> tuple[list[dict[str, Any]], Any]:
    columns = [name for name in dataset.column_names if name != "label"]
    return [model.preprocess(list(dataset[name])) for name in columns], torch.tensor(dataset["label"])


@pytest.mark.parametrize("term", ["ibbr-pd", "ibbr-ts"])
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_bi_encoder_loss_by_hand(checkpoint: str, term: Any, similarity: str) -> None:
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


def test_several_attributes(checkpoint: str, tmp_path: Path) -> None:
    """Each has its own part, equal to that of a loss with it alone; a batch's labels stand attribute by attribute."""
    (tmp_path / "place.csv").write_text("word,group\nhome,in\nnight,out\n")
    lexicons = {"gender": "gender-en", "place": load_lexicon(tmp_path / "place.csv", poles="in,out")}
    model = cross_encoder(checkpoint)
    data = lists()
    inputs = [list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]]
    parts = CrossEncoderIBBRLoss(model, 2, "ibbr-pd", lexicon=lexicons)(*inputs)
    assert list(parts) == ["rank", "fair_gender", "fair_place"]
    for name, lexicon in lexicons.items():
        alone = CrossEncoderIBBRLoss(model, 2, "ibbr-pd", lexicon=lexicon)(*inputs)
        torch.testing.assert_close(parts[f"fair_{name}"], alone["fair"])

    bi = bi_encoder(checkpoint)
    labelled = with_group_labels(tuples(), lexicons)
    assert np.shape(labelled["label"][:]) == (ROWS, 2, 3)
    several = IBBRLoss(bi, term="ibbr-pd", attributes=["gender", "place"])(*bi_inputs(bi, labelled))
    gender = IBBRLoss(bi, term="ibbr-pd")(*bi_inputs(bi, with_group_labels(tuples())))
    torch.testing.assert_close(several["fair_gender"], gender["fair"])


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


# --- losses: mistakes -------------------------------------------------------------------------------------------------


def test_mistakes_in_settings(checkpoint: str, tmp_path: Path) -> None:
    model, cross = bi_encoder(checkpoint), cross_encoder(checkpoint)
    for wrong, match in [
        ({"weight": -1}, "weight: expected 0 or more"),
        ({"weight": "best"}, "weight: expected 0 or more"),
        ({"weight": float("nan")}, "weight: expected 0 or more"),
        ({"term": "pd"}, "term: expected ibbr-pd, ibbr-ts"),
        ({"score": "tanh"}, "score: expected"),
        ({"rank_loss": "margin-mse"}, "rank_loss: expected nll"),
    ]:
        with pytest.raises(ValueError, match=match):
            IBBRLoss(model, **wrong)
        with pytest.raises(ValueError, match=match):
            CrossEncoderIBBRLoss(cross, **wrong)
    with pytest.raises(ValueError, match="scale: expected more than 0"):
        IBBRLoss(model, scale=0)
    with pytest.raises(ValueError, match="similarity: expected dot or cosine"):
        IBBRLoss(bi_encoder(checkpoint, "euclidean"))
    with pytest.raises(ValueError, match="two have the same name"):
        IBBRLoss(model, attributes=["a", "a"])
    with pytest.raises(ValueError, match="expected a model with one score a pair, found 3"):
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
        ((features, labels * 2), "expected \\+1, -1 and 0 alone"),
    ]:
        with pytest.raises(ValueError, match=match):
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
        ([["q"], [["a", "b"]], [[1, 3]]], one, "expected \\+1, -1 and 0 alone"),
    ]:
        with pytest.raises(ValueError, match=match):
            loss(inputs, labels)
    # Whatever else goes wrong inside.
    with pytest.raises(RuntimeError, match="CrossEncoderIBBRLoss: "):
        loss([["q"], [["a", "b"]]], one, prompt=3)


# --- training ---------------------------------------------------------------------------------------------------------


def test_bi_encoder_training(checkpoint: str, tmp_path: Path) -> None:
    """Parts and evaluator's figures in the log and in the model card; the figures are those of the audit."""
    model = bi_encoder(checkpoint)
    before = weights_of(model)
    check = evaluator(name="toy")
    data = with_group_labels(tuples())
    loss = IBBRLoss(model, 0.5)
    first = {name: float(value) for name, value in loss(*bi_inputs(model, data)).items()}
    trainer = train(model, data, loss, tmp_path / "out", check, eval_strategy="epoch")
    _check_log(trainer, first, check)
    assert any(not torch.equal(before[name], value) for name, value in model.state_dict().items())
    model.save_pretrained(str(tmp_path / "model"))
    _check_card(tmp_path / "model", check, model)
    _check_audit(model, check)


def test_cross_encoder_training(checkpoint: str, tmp_path: Path) -> None:
    """As above; with a list of another length in the batch."""
    model = cross_encoder(checkpoint)
    before = weights_of(model)
    check = evaluator(name="toy")
    data = lists()
    loss = CrossEncoderIBBRLoss(model, 0.5)
    labels = [torch.tensor(row) for row in data["labels"]]
    first = {name: float(value) for name, value in loss([list(data["query"]), list(data["docs"])], labels).items()}
    trainer = train(model, data, loss, tmp_path / "out", check, eval_strategy="epoch")
    _check_log(trainer, first, check)
    assert any(not torch.equal(before[name], value) for name, value in model.state_dict().items())
    model.save_pretrained(str(tmp_path / "model"))
    _check_card(tmp_path / "model", check, model)
    _check_audit(model, check)


MEASURES = ["nDCG@10", "NFaiRR@10", "ARaB@10", "AbsoluteDeltaAPRF"]


def _check_log(trainer: Any, first: dict[str, float], check: BiasEvaluator) -> None:
    steps = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(steps) == 2
    # The trainer rounds what it logs to four digits.
    assert {name: steps[0][name] for name in first} == pytest.approx(first, abs=1e-4)
    for entry in steps:
        assert entry["loss"] == pytest.approx(entry["rank"] + entry["fair"], abs=2e-4)
        assert entry["fair"] > 0
    evaluated = [entry for entry in trainer.state.log_history if "eval_toy_nDCG@10" in entry]
    assert len(evaluated) == 2
    assert evaluated[1].keys() >= {f"eval_toy_{name}" for name in MEASURES}
    assert check.primary_metric == "toy_nDCG@10"
    assert evaluated[1]["eval_toy_nDCG@10"] == pytest.approx(check(trainer.model)["toy_nDCG@10"])
    lines = (Path(trainer.args.output_dir) / "eval" / "BiasEvaluator_toy_results.csv").read_text().splitlines()
    assert lines[0] == "epoch,steps,nDCG@10,NFaiRR@10,ARaB@10,AbsoluteDeltaAPRF"
    assert [float(value) for value in lines[2].split(",")[:2]] == [2.0, 2.0]
    assert float(lines[2].split(",")[2]) == evaluated[1]["eval_toy_nDCG@10"]
    assert len(lines) == 3


def _check_card(folder: Path, check: BiasEvaluator, model: Any) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Effectiveness and Bias" in card
    metrics = check(model)
    for name in MEASURES:
        row = next(
            line
            for line in card.splitlines()
            if line.startswith("|") and name in line and str(round(metrics[f"toy_{name}"], 4)) in line
        )
        assert row.count("|") == 3
    assert "ibbr-ts" in card
    assert "li2022debiasing" in card


def _check_audit(model: Any, check: BiasEvaluator) -> None:
    """The same figures by the audit of the run that the model gives, scored one pair at a time."""
    rows = []
    for query, documents in CANDIDATES.items():
        for document in documents:
            if isinstance(model, SentenceTransformer):
                vectors = model.encode([QUERIES[query], CORPUS[document]])
                score = float(model.similarity(vectors[:1], vectors[1:])[0, 0])
            else:
                score = float(model.predict([(QUERIES[query], CORPUS[document])], activation_fn=torch.nn.Identity())[0])
            rows.append((query, document, score))
    columns = ["query_id", "doc_id", "score"]
    run = Run.from_table(pl.DataFrame(rows, columns, orient="row"), "model")
    first = Run.from_table(pl.DataFrame(rows, columns, orient="row"), "first", order="file")
    qrels = pl.DataFrame(
        [(q, d, g) for q, of in RELEVANT.items() for d, g in of.items()],
        ["query_id", "doc_id", "relevance"],
        orient="row",
    )
    measures = ["nDCG@10", "NFaiRR@10", "ARaB@10", "|DeltaAPRF|"]
    audited = evenrank.audit(
        {"first": first, "model": run},
        collection=pl.DataFrame({"doc_id": list(CORPUS), "text": list(CORPUS.values())}),
        qrels=qrels,
        baseline="first",
        measures=measures,
    )
    figures = {one.name: {key: one.figures[key].mean for key in measures} for one in audited.runs}
    found = check(model)
    assert [found[f"toy_{name}"] for name in MEASURES] == pytest.approx(list(figures["model"].values()), abs=1e-6)
    assert [check.first_stage[name] for name in MEASURES] == pytest.approx(list(figures["first"].values()), abs=1e-9)


@pytest.mark.parametrize("kind", ["bi", "cross"])
def test_weight_0_is_the_ranking_loss_alone(checkpoint: str, tmp_path: Path, kind: str) -> None:
    class RankAlone(torch.nn.Module):
        """The ranking loss of the balanced one."""

        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *inputs: Any, **more: Any) -> Any:
            return self.inner(*inputs, **more)["rank"]

    trained = []
    for alone in (False, True):
        model = bi_encoder(checkpoint) if kind == "bi" else cross_encoder(checkpoint)
        data = with_group_labels(tuples()) if kind == "bi" else lists()
        loss = (IBBRLoss if kind == "bi" else CrossEncoderIBBRLoss)(model, 0.0)
        train(model, data, RankAlone(loss) if alone else loss, tmp_path / str(alone), logging_strategy="no")
        trained.append(weights_of(model))
    for name, value in trained[0].items():
        torch.testing.assert_close(value, trained[1][name], rtol=1e-5, atol=1e-7)


def test_a_changing_weight_is_kept_in_checkpoints(checkpoint: str, tmp_path: Path) -> None:
    """Stopped and resumed, weight and model are those of an uninterrupted training; evaluating moves no weight."""
    data = with_group_labels(tuples())

    def go(folder: Path, resume: bool = False, keep: bool = True, **more: Any) -> tuple[Any, Any]:
        model = bi_encoder(checkpoint)
        loss = IBBRLoss(model, DualWeight(weight=0.2, rate=1.0))
        args = settings(
            SentenceTransformerTrainingArguments,
            folder,
            save_strategy="epoch",
            num_train_epochs=4,
            lr_scheduler_type="constant",
            **more,
        )
        trainer = SentenceTransformerTrainer(
            model,
            args,
            train_dataset=data,
            eval_dataset=data,
            loss=loss,
            callbacks=[KeepWeight(loss)] if keep else None,
        )
        trainer.train(resume_from_checkpoint=resume)
        return trainer, loss

    whole, of_whole = go(tmp_path / "whole", eval_strategy="epoch")
    assert {"eval_rank", "eval_fair"} <= whole.state.log_history[-2].keys() | whole.state.log_history[-3].keys()
    go(tmp_path / "parts", max_steps=2)
    (tmp_path / "bare").mkdir()
    state = json.loads((tmp_path / "parts" / "checkpoint-2" / "fair_weight.json").read_text())
    assert state["now"][0] > 0.2
    resumed, of_resumed = go(tmp_path / "parts", resume=True)
    assert resumed.state.global_step == 4
    assert of_resumed.weight.state() == of_whole.weight.state()
    for name, value in weights_of(whole.model).items():
        torch.testing.assert_close(value, resumed.model.state_dict()[name])
    go(tmp_path / "bare", keep=False, max_steps=1)
    with pytest.raises(EvenrankError, match=r"fair_weight\.json: no weight to go on with"):
        go(tmp_path / "bare", resume=True)


def test_auto_weight_moves_in_training_alone(checkpoint: str) -> None:
    model = cross_encoder(checkpoint)
    loss = CrossEncoderIBBRLoss(model, "auto")
    assert isinstance(loss.weight, AutoWeight)
    data = lists()
    inputs = [list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]]
    model.eval()
    with torch.no_grad():
        evaluated = loss(*inputs)
    assert loss.weight.state() == {"values": {}}
    model.train()
    trained = loss(*inputs)
    assert {name: float(value) for name, value in evaluated.items()} == pytest.approx(
        {name: float(value.detach()) for name, value in trained.items()}
    )
    assert set(loss.weight.state()["values"]) == {"rank", "0"}


PROCESS = """
import sys, json, torch
sys.path[:0] = [{tests!r}]
import test_integration_sentence_transformers as t
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
assert distributed.get_world_size() == 2
rank = distributed.get_rank()
model = t.cross_encoder({checkpoint!r})
loss = t.CrossEncoderIBBRLoss(model, "dual", "ibbr-pd", lexicon="gender-en")
loss.weight.weight = 3.0
data = t.lists()
# Of unequal sizes.
rows = [0, 1, 2, 3] if rank == 0 else [4, 5]
inner, wrapped = model, DistributedDataParallel(model, find_unused_parameters=False)
wrapped.preprocess = inner.preprocess
loss.model = wrapped
data = data.select(rows)
parts = loss([list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]])
parts["fair"].backward()
gradients = {{name: value.grad for name, value in inner.named_parameters() if value.grad is not None}}
torch.save(gradients, {out!r} + f"/{{rank}}.pt")
print(json.dumps([rank, float(parts["fair"]), loss.weight.state()["now"]]), flush=True)
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_have_the_gradient_of_the_whole_batch(checkpoint: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    tests = os.path.dirname(os.path.abspath(__file__))
    program.write_text(PROCESS.format(tests=tests, checkpoint=checkpoint, out=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert ended.returncode == 0, ended.stderr
    model = cross_encoder(checkpoint)
    loss = CrossEncoderIBBRLoss(model, DualWeight(3.0), "ibbr-pd")
    data = lists()
    parts = loss([list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]])
    parts["fair"].backward()
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]
    assert sorted(rank for rank, _, _ in said) == [0, 1]
    for _, value, now in said:
        assert value == pytest.approx(float(parts["fair"].detach()), rel=1e-5)
        assert now == pytest.approx(loss.weight.state()["now"])
    for rank in (0, 1):
        gradients = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-6)


# --- evaluator --------------------------------------------------------------------------------------------------------


def test_what_an_evaluator_takes(checkpoint: str) -> None:
    """Mappings and tables give the same; other queries are left out; the background is deeper than what is ranked."""
    model = bi_encoder(checkpoint)
    table = pl.DataFrame([(q, d) for q, of in CANDIDATES.items() for d in of], ["query_id", "doc_id"], orient="row")
    table = table.with_columns(score=-pl.int_range(pl.len()).cast(pl.Float64))
    as_tables = BiasEvaluator(
        pl.DataFrame({"query_id": list(QUERIES), "text": list(QUERIES.values())}),
        pl.DataFrame({"doc_id": list(CORPUS), "text": list(CORPUS.values())}),
        pl.DataFrame(
            [(q, d, 1) for q, of in RELEVANT.items() for d in of], ["query_id", "doc_id", "relevance"], orient="row"
        ),
        Run.from_table(table),
    )
    expected = evaluator()(model)
    assert as_tables(model) == pytest.approx(expected)
    assert list(expected) == MEASURES
    sets = BiasEvaluator(QUERIES, CORPUS, {q: set(of) for q, of in RELEVANT.items()}, CANDIDATES)
    assert sets(model) == pytest.approx(expected)

    few = BiasEvaluator(
        {q: QUERIES[q] for q in "01"}, CORPUS, RELEVANT, CANDIDATES, depth=4, measures="nDCG@10 P@4 |ARaB|@10 NFaiRR@4"
    )
    found = few(model)
    assert list(found) == ["nDCG@10", "P@4", "AbsoluteMeanARaB@10", "NFaiRR@4"]
    assert found["P@4"] == pytest.approx(np.mean([len({*CANDIDATES[q][:4]} & {*RELEVANT[q]}) / 4 for q in "01"]))
    # Four of twelve documents cannot be more neutral than the best four of all.
    assert found["NFaiRR@4"] <= 1


def test_mistakes_in_an_evaluator() -> None:
    with pytest.raises(EvenrankError, match="none is of effectiveness, and a ranking at random is fair"):
        evaluator(measures="ARaB@10 |DeltaAPRF|")
    with pytest.raises(EvenrankError, match="expected 1 or more"):
        evaluator(depth=0)
    with pytest.raises(EvenrankError, match="no measure 'NDCG10'"):
        evaluator(measures="NDCG10")
    some = dict(list(CORPUS.items())[:-2])
    with pytest.raises(EvenrankError, match="2 documents without a text, such as 'n2'"):
        BiasEvaluator(QUERIES, some, RELEVANT, CANDIDATES)
    with pytest.raises(EvenrankError, match="none of the queries has any"):
        BiasEvaluator({"other": "query"}, CORPUS, RELEVANT, CANDIDATES)


def test_an_evaluator_leaves_the_model_as_it_was(checkpoint: str) -> None:
    for model in (bi_encoder(checkpoint).train(), cross_encoder(checkpoint).eval()):
        training, activation = model.training, getattr(model, "activation_fn", None)
        evaluator()(model)
        assert model.training == training
        assert getattr(model, "activation_fn", None) is activation


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ibbr_sentence_transformer", "ibbr_cross_encoder"])
def test_the_examples_run(
    name: str, checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Path(__file__).resolve().parents[1] / "examples" / f"{name}.py"
    options = ["--model", checkpoint, "--out", str(tmp_path / "out"), "--passages", "200", "--max-length", "48"]
    monkeypatch.setattr(sys, "argv", [str(program), *options, "--steps", "2"])
    runpy.run_path(str(program), run_name="__main__")
    out = capsys.readouterr().out
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for measure in MEASURES:
        assert out.count(f"'{measure}'") == 1  # of the first stage
        assert out.count(f"'valid_{measure}'") >= 2
        assert measure in card
