"""A folder to work in that cannot be made, and processes that outlive their experiment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank.files import EvenrankError

pytest.importorskip("torch")


def test_a_folder_that_cannot_be_made_is_named_before_any_work(tmp_path):
    from evenrank.files.public import fetch
    from evenrank.papers import run_experiment

    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / "inside"
    for work in (
        lambda: run_experiment("sampling", scale="tiny", seeds=1, out=folder, jobs=1),
        lambda: fetch("xquad-en", to=folder),
    ):
        with pytest.raises(EvenrankError) as error:
            work()
        assert str(error.value) == f"{folder}: the folder cannot be made: Not a directory"


TRAINS_FOREVER = """
import os, signal, sys
from pathlib import Path
from evenrank.papers.work import Trainings

class Endless(Trainings):
    def step(self, number):
        os.write(1, b"begun\\n")
        signal.pause()

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    Endless(None, Path()).ahead([("step", (0,)), ("step", (1,))], 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_trainings_end_with_their_experiment(number: signal.Signals, tmp_path: Path) -> None:
    """They would keep both cores busy for minutes, and write into a folder that another run may use by then."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    script = tmp_path / "endless.py"
    script.write_text(TRAINS_FOREVER, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as experiment:
        assert experiment.stdout is not None
        assert [experiment.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
        experiment.send_signal(number)
        # The pipe ends when the last process that holds it does.
        experiment.communicate(timeout=60)
    assert experiment.returncode in (128 + number, -number)
