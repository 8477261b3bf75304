"""A small encoder learns the vectors of a larger one: the loss, what a run leaves, resuming, and wrong recipes."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError
from evenrank.models.encoders import DotRanker
from evenrank.training import distil
from evenrank.training.distil import distillation_loss
from evenrank.training.recipes import differing_keys, load_recipe
from evenrank.training.run import train_recipe
from slow import slow_distillation
from tiny_models import texts, tiny_bert
from training_runs import assert_same, card_of, everything, fair, logged, result_of

SIZES = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 1000))


@given(SIZES, st.floats(0, 2), st.sampled_from([1.0, 20.0]))
def test_the_loss_is_that_of_the_slow_twin(sizes: tuple[int, int, int], weight: float, scale: float) -> None:
    n, d, seed = sizes
    student, teacher = np.random.default_rng(seed).normal(size=(2, n, d))
    found = distillation_loss(torch.tensor(student), torch.tensor(teacher), weight=weight, scale=scale)
    assert float(found) == pytest.approx(slow_distillation(student, teacher, weight, scale), abs=1e-9)


def test_by_hand() -> None:
    """Three texts on a circle: 1 − cos 60° of the second alone, and the softmaxes of the cosines with the others."""
    turned = [math.cos(math.pi / 3), math.sin(math.pi / 3)]
    teacher = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    student = torch.tensor([[1.0, 0.0], turned, [-1.0, 0.0]])

    def divergence(p: tuple[float, float], q: tuple[float, float]) -> float:
        shares = [[math.exp(one) / sum(map(math.exp, of)) for one in of] for of in (p, q)]
        return sum(a * math.log(a / b) for a, b in zip(*shares, strict=True))

    divergences = divergence((1, -1), (0.5, -1)), divergence((1, -1), (0.5, -0.5)), divergence((-1, -1), (-1, -0.5))
    expected = 0.5 / 3 + 0.2 * sum(divergences) / 3
    assert float(distillation_loss(student, teacher, scale=1)) == pytest.approx(expected, abs=1e-6)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe: a student of 16 dimensions and one layer, a teacher of 24 and two, 60 passages, 20 queries."""
    folder = tmp_path_factory.mktemp("distil")
    tiny_bert(folder / "small", hidden=16, layers=1)
    large = tiny_bert(folder / "large", hidden=24, layers=2, seed=1)
    DotRanker.from_pretrained(str(large), pooling="mean", similarity="cosine").save(folder / "teacher")
    for name, some in (("c", texts(60, 8, seed=1)), ("q", texts(20, 3, seed=2))):
        (folder / f"{name}.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(some)), encoding="utf-8")
    recipe = {
        "name": "small",
        "teacher": {"model": str(folder / "teacher"), "kept": str(folder / "kept")},
        "ranker": {"kind": "dot", "model": str(folder / "small"), "pooling": "mean", "similarity": "cosine"},
        "data": {"collection": str(folder / "c.tsv"), "queries": str(folder / "q.tsv"), "held_out": 0.2},
        "training": {"batch": 8, "max_steps": 24, "learning_rate": 0.01, "evaluate_every": 8},
    }
    (folder / "r.toml").write_text(tomli_w.dumps(recipe), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(task: Path) -> Path:
    return fair(task / "r.toml", task / "done")


def test_what_a_run_leaves(task: Path, done: Path) -> None:
    result = result_of(done)
    assert (result["measure"], result["steps"], result["texts"]) == ("cosine", 24, 61)
    assert result["value"] > result["before"] + 0.3
    validations = [line["eval_validation"] for line in logged(done) if "eval_validation" in line]
    assert len(validations) == 3
    assert result["value"] == pytest.approx(max(validations), abs=1e-6)
    files = {file["role"] for file in result["provenance"]["files"]}
    assert files == {"model", "teacher", "collection", "queries"}
    card = card_of(done)
    assert f"{result['value']:.4f} on average over 15 texts held out, {result['before']:.4f} before training" in card
    assert "was not audited" in card
    assert differing_keys(load_recipe(done / "recipe.toml"), load_recipe(task / "r.toml", [f'out="{done}"'])) == []


def test_it_goes_on_from_a_distilled_encoder_and_not_from_one_of_another_size(task: Path, done: Path) -> None:
    settings = [f'ranker.model="{done / "model"}"', "training.max_steps=1", "training.learning_rate=1e-12"]
    assert_same(done, fair(task / "r.toml", task / "further", *settings), tolerance=1e-6)
    DotRanker.from_pretrained(str(task / "small"), pooling="mean").save(task / "other")
    with pytest.raises(EvenrankError, match=r"^ranker\.model: expected vectors of 16 numbers, as the teacher's"):
        fair(task / "r.toml", task / "x", *settings, f'teacher.model="{task / "other"}"')
    assert not (task / "x").exists()


def test_a_run_stopped_at_any_checkpoint_resumes_to_the_same_end(
    task: Path, done: Path, tmp_path: Path, snapshots: Path
) -> None:
    recipe = load_recipe(task / "r.toml", [f'out="{tmp_path / "r"}"'])
    assert_same(done, train_recipe(recipe))
    shutil.rmtree(recipe.folder)
    shutil.copytree(snapshots / "16", recipe.folder)
    assert_same(done, train_recipe(recipe, resume=True))
    before = everything(recipe.folder)
    train_recipe(recipe, resume=True)
    assert everything(recipe.folder) == before
    with pytest.raises(EvenrankError, match=r"this run was started with another recipe \(training\)"):
        train_recipe(load_recipe(task / "r.toml", [f'out="{recipe.folder}"', "training.batch=4"]), resume=True)


def test_a_start_that_fails_leaves_nothing(task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distil, "distillation_loss", lambda student, teacher, **_: student.sum() * float("nan"))
    with pytest.raises(EvenrankError, match=r"step 1: the loss is nan.*there is no checkpoint yet"):
        fair(task / "r.toml", tmp_path / "n")
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.qrels=q", "unknown key data.qrels (allowed: collection, queries, held_out)"),
        ("fairness.weight=1", "unknown key fairness (allowed: name, out, source, ranker, teacher, data, training)"),
        ("teacher.model=", "the key teacher.model is missing"),
        ("ranker.kind=cat", "ranker.kind: expected dot, found cat"),
        ("ranker.dimensions=8", "ranker.dimensions: they are the teacher's"),
        ("ranker.freeze=encoder", "ranker.freeze: the whole encoder learns"),
        ("training.keep=fair", "training.keep: fair needs [fairness]"),
        ("data.held_out=1", "data.held_out: expected less than 1, found 1"),
    ],
)
def test_a_wrong_setting_names_the_key(task: Path, setting: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load_recipe(task / "r.toml", [setting])


def test_the_command(task: Path, tmp_path: Path, evenrank) -> None:
    ended = evenrank("train", task / "r.toml", "--set", f"out={tmp_path / 'r'}", "--set", "training.max_steps=8")
    assert ended.status == 0, ended.err
    assert ended.out == str(tmp_path / "r" / "model") + "\n"
    assert "61 texts to learn from, 15 held out" in ended.err
    assert f"cosine with the vectors of {task / 'teacher'}: " in ended.err


def test_the_gradient_is_that_of_the_slow_twin() -> None:
    student, teacher = np.random.default_rng(0).normal(size=(2, 4, 3))
    given_ = torch.tensor(student, requires_grad=True)
    distillation_loss(given_, torch.tensor(teacher), weight=0.5, scale=5).backward()
    for place in np.ndindex(student.shape):
        step = np.zeros_like(student)
        step[place] = 1e-6
        ends = [slow_distillation(student + sign * step, teacher, 0.5, 5) for sign in (1, -1)]
        assert float(given_.grad[place]) == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
