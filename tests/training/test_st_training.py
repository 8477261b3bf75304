"""Real training steps with the trainers of sentence-transformers."""

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
import torch
from huggingface_hub import ModelCard
from sentence_transformers import (
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

import evenrank
import st_models
from evenrank.files import EvenrankError, Run
from evenrank.groups import load_lexicon
from evenrank.mitigation.ibbr import DualWeight
from evenrank.training.sentence_transformers import (
    BiasEvaluator,
    CrossEncoderIBBRLoss,
    IBBRLoss,
    KeepWeight,
    with_group_labels,
)
from st_models import (
    CANDIDATES,
    CORPUS,
    MEASURES,
    QUERIES,
    RELEVANT,
    ROWS,
    bi_encoder,
    bi_inputs,
    cross_encoder,
    evaluator,
    lists,
    tuples,
)


def settings(kind: Any, folder: Path, **more: Any) -> Any:
    defaults: dict[str, Any] = {
        "per_device_train_batch_size": ROWS, "per_device_eval_batch_size": ROWS, "num_train_epochs": 2,
        "learning_rate": 1e-3, "logging_steps": 1, "report_to": "none", "save_strategy": "no", "use_cpu": True,
        "disable_tqdm": True, "seed": 0,
    }  # fmt: skip
    return kind(output_dir=str(folder), **{**defaults, **more})


def weights_of(model: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def train(model: Any, dataset: Any, loss: Any, folder: Path, evaluator: Any = None, **more: Any) -> Any:
    trainer, kind = CrossEncoderTrainer, CrossEncoderTrainingArguments
    if isinstance(model, SentenceTransformer):
        trainer, kind = SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    callbacks, resume, held_out = (more.pop(name, None) for name in ("callbacks", "resume", "eval_dataset"))
    made = trainer(
        model=model, args=settings(kind, folder, **more), train_dataset=dataset, loss=loss, evaluator=evaluator,
        eval_dataset=held_out, callbacks=callbacks,
    )  # fmt: skip
    made.train(resume_from_checkpoint=resume)
    return made


def list_inputs(data: Any) -> tuple[list[list[Any]], list[Any]]:
    """A batch of lists as a cross-encoder's loss takes them."""
    return [list(data["query"]), list(data["docs"])], [torch.tensor(row) for row in data["labels"]]


def test_several_attributes(checkpoint: str, tmp_path: Path) -> None:
    """Each has its own part, equal to that of a loss with it alone; a batch's labels stand attribute by attribute."""
    (tmp_path / "place.csv").write_text("word,group\nhome,in\nnight,out\n")
    lexicons = {"gender": "gender-en", "place": load_lexicon(tmp_path / "place.csv", poles="in,out")}
    bi = bi_encoder(checkpoint)
    labelled = with_group_labels(tuples(), lexicons)
    assert np.shape(labelled["label"][:]) == (ROWS, 2, 3)
    several = IBBRLoss(bi, term="ibbr-pd", attributes=["gender", "place"])(*bi_inputs(bi, labelled))
    assert list(several) == ["rank", "fair_gender", "fair_place"]
    for name, lexicon in lexicons.items():
        alone = IBBRLoss(bi, term="ibbr-pd")(*bi_inputs(bi, with_group_labels(tuples(), lexicon)))
        torch.testing.assert_close(several[f"fair_{name}"], alone["fair"])


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder"])
def test_training(checkpoint: str, tmp_path: Path, kind: str) -> None:
    """Parts and evaluator's figures in the log and in the model card; the figures are those of the audit.

    A list of the cross-encoder's batch has another length.
    """
    if kind == "bi-encoder":
        model, data = bi_encoder(checkpoint), with_group_labels(tuples())
        loss, inputs = IBBRLoss(model, 0.5), bi_inputs(model, data)
    else:
        model, data = cross_encoder(checkpoint), lists()
        loss, inputs = CrossEncoderIBBRLoss(model, 0.5), list_inputs(data)
    before, check = weights_of(model), evaluator(name="toy")
    first = {name: float(value) for name, value in loss(*inputs).items()}
    trainer = train(model, data, loss, tmp_path / "out", check, eval_strategy="epoch")
    _check_log(trainer, first, check)
    assert any(not torch.equal(before[name], value) for name, value in model.state_dict().items())
    model.save_pretrained(str(tmp_path / "model"))
    _check_card(tmp_path / "model", check, model)
    _check_audit(model, check)


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
    for text in ("Effectiveness and Bias", "ibbr-ts", "li2022debiasing"):
        assert text in card
    rows = [line for line in card.splitlines() if line.startswith("|") and line.count("|") == 3]
    metrics = check(model)
    for name in MEASURES:
        assert any(name in row and str(round(metrics[f"toy_{name}"], 4)) in row for row in rows)
    # In the metadata too, where sentence-transformers makes titles of names: Arab@10.
    names = [(one.metric_name, one.metric_type) for one in ModelCard(card).data.eval_results]
    assert names == [(name, name) for name in MEASURES]


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
    table = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    judged = [(q, d, g) for q, of in RELEVANT.items() for d, g in of.items()]
    measures = ["nDCG@10", "NFaiRR@10", "ARaB@10", "|DeltaAPRF|"]
    audited = evenrank.audit(
        {"first": Run.from_table(table, "first", order="file"), "model": Run.from_table(table, "model")},
        collection=pl.DataFrame({"doc_id": list(CORPUS), "text": list(CORPUS.values())}),
        qrels=pl.DataFrame(judged, ["query_id", "doc_id", "relevance"], orient="row"),
        baseline="first",
        measures=measures,
    )
    first, own = ([audited[name][key].mean for key in measures] for name in ("first", "model"))
    found = check(model)
    assert [found[f"toy_{name}"] for name in MEASURES] == pytest.approx(own, abs=1e-6)
    assert [check.first_stage[name] for name in MEASURES] == pytest.approx(first, abs=1e-9)


def test_a_changing_weight_is_kept_in_checkpoints(checkpoint: str, tmp_path: Path) -> None:
    """Stopped and resumed, weight and model are those of an uninterrupted training; evaluating moves no weight."""
    data = with_group_labels(tuples())

    def go(folder: Path, keep: bool = True, **more: Any) -> tuple[Any, Any]:
        model = bi_encoder(checkpoint)
        loss = IBBRLoss(model, DualWeight(weight=0.2, rate=1.0))
        more = {"save_strategy": "epoch", "num_train_epochs": 4, "lr_scheduler_type": "constant", **more}
        callbacks = [KeepWeight(loss)] if keep else None
        return train(model, data, loss, folder, eval_dataset=data, callbacks=callbacks, **more), loss

    whole, of_whole = go(tmp_path / "whole", eval_strategy="epoch")
    assert {"eval_rank", "eval_fair"} <= whole.state.log_history[-2].keys() | whole.state.log_history[-3].keys()
    go(tmp_path / "parts", max_steps=2)
    state = json.loads((tmp_path / "parts" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["KeepWeight"]["attributes"]["now"][0] > 0.2
    resumed, of_resumed = go(tmp_path / "parts", resume=True)
    assert resumed.state.global_step == 4
    assert of_resumed.weight.state() == of_whole.weight.state()
    for name, value in weights_of(whole.model).items():
        torch.testing.assert_close(value, resumed.model.state_dict()[name])
    go(tmp_path / "bare", keep=False, max_steps=1)
    with pytest.raises(EvenrankError, match=r"checkpoint-.: no weight to continue with"):
        go(tmp_path / "bare", resume=True)


PROCESS = """
import sys, json, torch
sys.path[:0] = [{tests!r}]
import st_models as t
from evenrank.training.sentence_transformers import CrossEncoderIBBRLoss
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
assert distributed.get_world_size() == 2
rank = distributed.get_rank()
model = t.cross_encoder({checkpoint!r})
loss = CrossEncoderIBBRLoss(model, "dual", "ibbr-pd", lexicon="gender-en")
loss.weight.weight = 3.0
data = t.lists()
# Of unequal sizes.
rows = [0, 1, 2, 3] if rank == 0 else [4, 5]
inner, wrapped = model, DistributedDataParallel(model, find_unused_parameters=False)
wrapped.preprocess = inner.preprocess
loss.loss.model = wrapped
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
    program, tests = tmp_path / "program.py", str(Path(st_models.__file__).resolve().parent)
    program.write_text(PROCESS.format(tests=tests, checkpoint=checkpoint, out=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ended.returncode == 0, ended.stderr
    model = cross_encoder(checkpoint)
    loss = CrossEncoderIBBRLoss(model, DualWeight(3.0), "ibbr-pd")
    parts = loss(*list_inputs(lists()))
    parts["fair"].backward()
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]
    assert sorted(rank for rank, _, _ in said) == [0, 1]
    for rank, value, now in said:
        assert value == pytest.approx(float(parts["fair"].detach()), rel=1e-5)
        assert now == pytest.approx(loss.weight.state()["now"])
        gradients = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-6)


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ibbr_sentence_transformer", "ibbr_cross_encoder"])
def test_the_examples_run(
    name: str, checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
    options = ["--model", checkpoint, "--out", str(tmp_path / "out"), "--passages", "200", "--max-length", "48"]
    monkeypatch.setattr(sys, "argv", [str(program), *options, "--steps", "2"])
    runpy.run_path(str(program), run_name="__main__")
    out = capsys.readouterr().out
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for measure in MEASURES:
        assert out.count(f"'{measure}'") == 1  # of the first stage
        assert out.count(f"'valid_{measure}'") >= 2
        assert measure in card
