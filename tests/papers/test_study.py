"""What studies share: steps in other processes, settings and trainings that are kept, and what ends with a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import evenrank
from evenrank.files import EvenrankError
from evenrank.files.public import fetch
from evenrank.papers import run_experiment
from evenrank.papers.checks import Options
from evenrank.training.recipes import Recipe, to_toml
from stub_study import BrokenStudy, StubStudy

pytest.importorskip("torch", reason="PyTorch is not installed")
SETTINGS = StubStudy.settings_of("made", Options())


@pytest.mark.slow
def test_steps_that_are_given_together_are_done_in_other_processes_and_speak_here(tmp_path: Path) -> None:
    said: list[str] = []
    StubStudy(SETTINGS, tmp_path, said.append).run(2)
    assert said == ["made alone", "made a", "made b"]
    found = {name: (tmp_path / name).read_text() for name in ("alone", "a", "b")}
    assert found["alone"] == str(os.getpid())
    assert str(os.getpid()) not in {found["a"], found["b"]}
    with pytest.raises(EvenrankError, match=r"qrels\.txt, line 3: no such file"):
        BrokenStudy(SETTINGS, tmp_path, said.append).run(2)
    assert said[3:] == ["made alone", "made c"]


def test_a_training_resumes_is_loaded_and_is_of_one_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resumed: list[bool] = []

    def train(recipe: Recipe, *, resume: bool) -> None:
        resumed.append(resume)
        folder = Path(recipe.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "recipe.toml").write_text(to_toml(recipe), encoding="utf-8")
        if resume:
            (folder / "result.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(evenrank, "train_recipe", train)
    study = StubStudy(SETTINGS, tmp_path)
    data = {"collection": "c.tsv", "queries": "q.tsv", "qrels": "qrels.txt", "run": "first.run"}
    recipe = {
        "ranker": {"kind": "knrm"},
        "data": data,
        "validation": {**data, "measure": "RR"},
        "loss": {"name": "nll"},
        "training": {"seed": 0},
    }
    for _ in range(3):
        assert study.trained(0, "KNRM", recipe) == str(tmp_path / "seed-0/KNRM/model")
    assert resumed == [False, True]
    assert study.result(0, "KNRM") == {}
    with pytest.raises(EvenrankError, match=r"this training had another recipe \(training\); choose another"):
        study.trained(0, "KNRM", {**recipe, "training": {"seed": 1}})


def test_a_folder_that_cannot_be_made_is_named_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / "inside"
    for work in (
        lambda: run_experiment("sampling", scale="tiny", seeds=1, out=folder, jobs=1),
        lambda: fetch("xquad-en", out=folder),
    ):
        with pytest.raises(EvenrankError) as error:
            work()
        assert str(error.value) == f"{folder}: the folder cannot be made: Not a directory"


ENDLESS = """
import os, signal, sys
from pathlib import Path
from evenrank.papers.study import Settings, Study

class Endless(Study):
    def steps(self):
        yield [("step", (0,)), ("step", (1,))]

    def step(self, number):
        os.write(1, b"begun\\n")
        signal.pause()

if __name__ == "__main__":
    # As it is in a terminal; a process in the background of a script ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    Endless(Settings(scale="made", seeds=(0,), models={}, same_queries=True), Path(sys.argv[1])).run(2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_trainings_end_with_their_experiment(number: signal.Signals, tmp_path: Path) -> None:
    """They would keep both cores busy for minutes, and write into a folder that another run may use by then."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as experiment:
        assert experiment.stdout is not None
        assert [experiment.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
        experiment.send_signal(number)
        # The pipe ends when the last process that holds it does.
        experiment.communicate(timeout=60)
    assert experiment.returncode in (128 + number, -number)
