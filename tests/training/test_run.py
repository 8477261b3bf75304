"""Whole training runs with a tiny bi-encoder: what they leave, resuming, several processes, and what stops them."""

from __future__ import annotations

import hashlib
import json
import re
import resource

import pytest
import torch
from huggingface_hub.repocard_data import model_index_to_eval_results
from safetensors.torch import load_file

from evenrank.files import EvenrankError
from evenrank.models.encoders import DotRanker
from evenrank.training import losses
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe
from evenrank.training.trainer import last_checkpoint
from training_runs import card_of, fair, logged, recipe, result_of, weights


def test_what_a_run_leaves(home, done):
    begun = recipe(home, done)
    # The folder of a plain encoder states nothing, so that every default is written.
    written = begun.model_copy(update={"ranker": begun.ranker.with_defaults()})
    assert load_recipe(done / "recipe.toml") == written != begun
    result, audit = result_of(done), json.loads((done / "audit.json").read_text(encoding="utf-8"))
    assert result["steps"] == 12
    assert result["depth"] in (2, 10)
    assert result["groups"] == {"queries": 16, "without_positive": 0, "without_negative": 0}
    validations = [line["eval_validation"] for line in logged(done) if "eval_validation" in line]
    assert len(validations) == 3
    assert result["value"] >= max(validations) - 1e-9
    best = load_file(done / "checkpoints" / result["best_checkpoint"] / "model.safetensors")
    for name, value in DotRanker.load(done / "model").state_dict().items():
        torch.testing.assert_close(value, best[name], rtol=0, atol=0)
    card = card_of(done)
    assert card.startswith(
        "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\nlicense: unknown\n"
    )
    (index,) = json.loads(card.partition("model-index: ")[2].partition("\n---\n")[0])
    name, metrics = model_index_to_eval_results([index])
    figures = {one.metric_type: one.metric_value for one in metrics}
    audited = audit["runs"]["tiny"]["measures"]["nDCG@10"]
    assert (name, figures["nDCG@10"], figures["nDCG@10/low"]) == ("tiny", audited["mean"], audited["ci95"][0])


def test_a_run_says_what_it_was_made_from(home, done):
    result, audit = (json.loads((done / name).read_text())["provenance"] for name in ("result.json", "audit.json"))
    assert result["files"] == audit["files"]
    assert result["command"] == "evenrank.train_recipe"
    assert result["versions"]["torch"] == torch.__version__

    def sha256(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    found = {file["role"]: file["sha256"] for file in result["files"]}
    read = {"collection": "c.tsv", "queries": "q.tsv", "qrels": "qrels", "run": "train.run"}
    read |= {"validation queries": "q.tsv", "validation qrels": "qrels", "validation run": "valid.run"}
    model = sorted(path for path in (home / "model").rglob("*") if path.is_file())
    lines = "".join(f"{sha256(path)}  {path.relative_to(home / 'model').as_posix()}\n" for path in model)
    of_model = hashlib.sha256(lines.encode()).hexdigest()
    assert found == {role: sha256(home / name) for role, name in read.items()} | {"model": of_model}
    assert [file["files"] for file in result["files"] if file["role"] == "model"] == [len(model)]
    assert f"run: {home / 'train.run'} (sha256 {found['run']})" in card_of(done)


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(home, tmp_path, monkeypatch):
    calls = iter(range(1, 9))
    monkeypatch.setitem(
        losses.LOSSES, "nll", lambda scores, *_: scores.sum() * (float("nan") if next(calls) == 6 else 1)
    )
    with pytest.raises(EvenrankError) as error:
        fair(home / "r.toml", tmp_path / "n")
    kept = tmp_path / "n" / "checkpoints"
    assert "step 6: the loss is nan (batch of the queries " in str(error.value)
    assert str(error.value).endswith(f"; the last checkpoint in {kept} is kept")
    assert [path.name for path in kept.iterdir()] == ["checkpoint-4"]
    assert (kept / "checkpoint-4" / "model.safetensors").is_file()


def test_a_loss_that_is_no_number_before_a_checkpoint_leaves_nothing(home, tmp_path, monkeypatch):
    monkeypatch.setitem(losses.LOSSES, "nll", lambda scores, *_: scores.sum() * float("nan"))
    with pytest.raises(EvenrankError, match=r"step 1: the loss is nan .*; there is no checkpoint yet$"):
        fair(home / "r.toml", tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_learning_rates_by_parameter_group(home, tmp_path):
    rates = "training.learning_rates={embeddings = 0.0, encoder = 0.01}"
    made = fair(home / "r.toml", tmp_path / "f", rates, "training.max_steps=2", "validation.depths=")
    before, after = load_file(home / "model" / "model.safetensors"), weights(made)
    frozen = [name for name in before if name in after and torch.equal(before[name], after[name])]
    changed = [name for name in before if name in after and name not in frozen]
    assert frozen
    assert all(".embeddings." in f".{name}" or "pooler" in name for name in frozen)
    assert any(".layer." in name for name in changed)


def test_resuming_needs_the_same_recipe(home, done, tmp_path):
    with pytest.raises(EvenrankError, match="there is no run to resume"):
        train_recipe(recipe(home, tmp_path / "none"), resume=True)
    with pytest.raises(EvenrankError, match=r"this run was started with another recipe \("):
        train_recipe(recipe(home, done, "training.batch=8"), resume=True)


def test_the_command(home, tmp_path, evenrank):
    ended = evenrank("train", home / "r.toml", "--set", f"out={tmp_path / 'r'}", "--set", "training.max_steps=4")
    assert ended.status == 0, ended.err
    assert ended.out == str(tmp_path / "r" / "model") + "\n"
    result = result_of(tmp_path / "r")
    figures = (
        f"nDCG@10: {result['value']:.4f} after re-ranking the first {result['depth']} passages,"
        f" {result['first_stage']:.4f} before; "
    )
    assert any(line.startswith(figures) for line in ended.err.splitlines())
    assert "16 training queries" in ended.err
    assert figures in card_of(tmp_path / "r")
    # Off a terminal there is no bar.
    assert "\r" not in ended.err
    (tmp_path / "empty").mkdir()
    for setting, message in (
        ("training.batches=4", "unknown key training.batches (allowed: epochs, "),
        (f"ranker.model={tmp_path / 'empty'}", "empty: the folder has no weights: expected model.safetensors\n"),
    ):
        ended = evenrank("train", home / "r.toml", "--set", setting, "--set", f"out={tmp_path / 'x'}")
        assert ended.status == 2
        assert message in ended.err
        assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("state", ["", "{", '{"epoch": 1'])
def test_half_a_checkpoint_is_not_resumed(tmp_path, state):
    for step, content in ((4, "{}"), (8, state), (12, None)):
        (tmp_path / "checkpoints" / f"checkpoint-{step}").mkdir(parents=True)
        if content is not None:
            (tmp_path / "checkpoints" / f"checkpoint-{step}" / "trainer_state.json").write_text(content)
    assert last_checkpoint(tmp_path).name == "checkpoint-4"


@pytest.mark.parametrize("bytes", [1 << 11, 1 << 13, 1 << 15])
def test_no_room_for_a_checkpoint(home, tmp_path, evenrank, bytes):
    """The first file that is longer than there is room for, whichever it is, is named in a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, hard))
    try:
        ended = evenrank("train", home / "r.toml", "--set", f'out="{tmp_path / "a"}"')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.status == 2
    said = "the file could not be written whole" if bytes == 1 << 15 else "File too large"
    assert re.fullmatch(rf"evenrank: {tmp_path}.*: cannot be written: {said}", ended.err.splitlines()[-1])
    left = [path for path in tmp_path.rglob("*") if path.name.startswith(".") or path.name == "checkpoint-4"]
    assert left == []
