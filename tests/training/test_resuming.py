"""Training that goes on from a checkpoint, and checkpoints that it does not go on from."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
from pathlib import Path

import pytest
import torch

from evenrank.files import EvenrankError, InputError
from evenrank.training import trainer
from evenrank.training.choice import Validation
from evenrank.training.recipes import Recipe, load_recipe
from evenrank.training.run import train_recipe as train
from forked import in_forks
from training_runs import assert_same, everything, fair, result_of

WAYS = {name: [f"fairness.weight={name}", "training.batch=8", "fairness.rate=0.1"] for name in ("auto", "dual")}

KILLED = """
import os, signal, sys
from evenrank.training import trainer
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train

plain = trainer.RankingTrainer.training_step
steps = iter(range(1, 99))

def step(self, *arguments, **named):
    if next(steps) == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, *arguments, **named)

trainer.RankingTrainer.training_step = step
train(load_recipe(sys.argv[1], sys.argv[2:]))
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def killed(home: Path, gendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that were killed in step 10 of 12: one of the plain recipe, and one for each weight that changes."""
    place = tmp_path_factory.mktemp("killed")
    programs: list[tuple[str, list[object]]] = [(KILLED, [home / "r.toml", f'out="{place / "plain"}"'])]
    programs += [(KILLED, [gendered, f'out="{place / name}"', *settings]) for name, settings in WAYS.items()]
    assert in_forks(["evenrank.training.run"], programs) == [-signal.SIGKILL] * 3
    return place


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        # Validation finds all equally good and fair: the first is the best, and patience ends at step 8 of 14.
        (["training.patience=3", "training.evaluate_every=2", "training.max_steps=14"], ["2", "4", "6", "8"]),
        # Steps that no validation follows, in the middle of an epoch, whose texts are turned round anew in each.
        (['data.rotate="word"', "training.evaluate_every=25", "training.max_steps=30"], ["25", "30"]),
    ],
    ids=["best", "last"],
)
def test_a_run_stopped_at_any_checkpoint_resumes_to_the_same_end(
    home, gendered, tmp_path, snapshots, monkeypatch, settings, stops
):
    monkeypatch.setattr(Validation, "value", lambda self, run: 0.5)
    monkeypatch.setattr(Validation, "delta_aprf", lambda self, run: {"gender": 0.1})
    # With dropout, whose draws must go on where they were.
    settings = [f'out="{tmp_path / "r"}"', f'ranker.model="{home / "model"}"', "fairness.weight=auto", *settings]
    recipe = load_recipe(gendered, settings)
    folder = train(recipe)

    def files() -> dict[str, bytes]:
        return {name: content for name, (content, _) in everything(folder).items() if "checkpoint" not in name}

    whole = files()
    assert [path.name for path in sorted(snapshots.iterdir(), key=lambda path: int(path.name))] == stops
    assert result_of(folder)["steps"] == int(stops[-1])
    for stop in stops[-2:]:
        shutil.rmtree(folder)
        shutil.copytree(snapshots / stop, folder)
        assert not (folder / "result.json").exists()
        # What it logged after the checkpoint before it was killed.
        with (folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(f'{{"step": {int(stop) + 1}, "epoch": 0.1, "loss": 99}}\n{{"step": {int(stop) + 2}, "ep')
        train(recipe, resume=True)
        assert files() == whole, stop
    before = everything(folder)
    train(recipe, resume=True)
    assert everything(folder) == before


@pytest.fixture(scope="module")
def interrupted(gendered: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path]:
    """A run that was stopped after its first checkpoint, at step 1 of 3, and a copy of its folder."""
    place = tmp_path_factory.mktemp("stopped")
    settings = [f'out="{place / "r"}"', "training.max_steps=3", "training.evaluate_every=1", "fairness.weight=auto"]
    recipe = load_recipe(gendered, settings)
    plain, steps = trainer.RankingTrainer.training_step, iter(range(9))

    def step(self, *arguments, **named):
        if next(steps) == 1:
            raise KeyboardInterrupt
        return plain(self, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.RankingTrainer, "training_step", step)
        with pytest.raises(KeyboardInterrupt):
            train(recipe)
    shutil.copytree(place / "r", place / "kept")
    return recipe, place / "kept"


@pytest.fixture
def stopped(interrupted: tuple[Recipe, Path]) -> tuple[Recipe, Path]:
    """Its recipe, and its checkpoint as it was left."""
    recipe, kept = interrupted
    shutil.rmtree(recipe.folder, ignore_errors=True)
    shutil.copytree(kept, recipe.folder)
    return recipe, recipe.folder / "checkpoints" / "checkpoint-1"


class Attack:
    """What runs a command where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("optimizer.pt", damage) for damage in ("cut", "attack", "other")),
        *((name, damage) for name in ("scheduler.pt", "rng_state.pth") for damage in ("missing", "attack")),
        *(("model.safetensors", damage) for damage in ("missing", "cut")),
        ("trainer_state.json", "other"),
        *((name, "step") for name in ("trainer_state.json", "optimizer.pt", "scheduler.pt")),
    ],
)
def test_a_damaged_checkpoint_is_named_and_not_gone_on_with(stopped, tmp_path, name, damage):
    recipe, checkpoint = stopped
    path = checkpoint / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "attack":
        path.write_bytes(pickle.dumps(Attack(tmp_path / "ran")))
    elif path.suffix == ".json":
        state = json.loads(content)
        path.write_text(json.dumps({**state, "global_step": 2} if damage == "step" else [1]), encoding="utf-8")
    elif damage == "other":
        torch.save({"other": 1}, path)
    else:
        state = torch.load(path, weights_only=True)
        for one in state["state"].values() if name == "optimizer.pt" else ():
            one["step"] += 1
        if name == "scheduler.pt":
            state["last_epoch"] += 1
        torch.save(state, path)
    with pytest.raises(InputError) as error:
        train(recipe, resume=True)
    said = {"missing": "the file is missing", "step": "expected the state after step 1, found that after step 2"}
    message = said.get(damage, "the file is damaged")
    if (name, damage) == ("model.safetensors", "missing"):  # it is the best one, too
        message = "the best checkpoint so far is missing"
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "ran").exists()
    assert (recipe.folder / "recipe.toml").is_file()
    assert not (recipe.folder / "result.json").exists()


def test_a_checkpoint_of_other_processes_or_without_its_best_is_not_gone_on_with(stopped):
    recipe, checkpoint = stopped
    for number in (0, 1):
        shutil.copyfile(checkpoint / "rng_state.pth", checkpoint / f"rng_state_{number}.pth")
    with pytest.raises(InputError, match=r"checkpoint-1: saved by 2 processes, and cannot be resumed by 1$"):
        train(recipe, resume=True)
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    (checkpoint / "trainer_state.json").write_text(json.dumps({**state, "best_global_step": 7}), encoding="utf-8")
    with pytest.raises(InputError, match=r"checkpoint-7/model\.safetensors: the best checkpoint so far is missing$"):
        train(recipe, resume=True)


@needs_fork
@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_weights(home, done, killed):
    folder = killed / "plain"
    assert not (folder / "model").exists()
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-8"]
    with pytest.raises(EvenrankError, match="there is a run already"):
        fair(home / "r.toml", folder)
    assert_same(done, train(load_recipe(home / "r.toml", [f'out="{folder}"']), resume=True))
