"""What the trainer reports while it trains: the log, lines of progress."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from evenrank.engines.progress import ProgressLines
from evenrank.io import InputError, write_text
from evenrank.io.atomic import json_text, why_unwritten

Logs = Mapping[str, float]
Line = dict[str, float | str | None]
CONCLUDED = "kept_step"
"""What only the line has that concludes a training."""


class Log(TrainerCallback):
    """Appends every logged value to a JSONL file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Logs | None = None,
        **_: object,
    ) -> None:
        """One line: the step, the epoch and the logged values."""
        # The duration of a call is not part of the training.
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        append_line(self.path, {"step": state.global_step, "epoch": state.epoch, **logs})

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Logs before each checkpoint, so that no mean is over steps of which a resumed training repeats some."""
        control.should_log |= control.should_evaluate or control.should_save


def append_line(path: Path, values: Mapping[str, object]) -> None:
    """Appends a line to a log. Raises InputError if it cannot be written."""
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json_text(values, lines=False) + "\n")
    except OSError as error:
        raise InputError(path, f"cannot be written: {why_unwritten(error)}") from None


def read_log(path: Path) -> list[Line]:
    """The lines of a log, up to the first that is incomplete: the last of a process that was killed."""
    found: list[Line] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            values = json.loads(line)
            if not isinstance(values, dict) or not isinstance(values["step"], int):
                break
        except (ValueError, LookupError):
            break
        found.append(values)
    return found


def cut_log(path: Path, step: int) -> None:
    """Removes what was logged after ``step``, and the conclusion: a training that resumes there logs it again."""
    if not path.is_file():
        return
    kept = itertools.takewhile(lambda line: int(line["step"] or 0) <= step and CONCLUDED not in line, read_log(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    write_text(path, "".join(f"{line}\n" for line, _ in zip(lines, kept, strict=False)))


class Progress(TrainerCallback):
    """Lines of progress now and then, if no one watches a bar. ``clock`` returns seconds; ``write`` takes a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] | None = None) -> None:
        self._clock, self._write = clock, write
        self._loss = ""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock."""
        done = state.global_step
        what = f"training steps after step {done:,}" if done else "training steps"
        self._lines = ProgressLines(what, state.max_steps - done, clock=self._clock, write=self._write)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Logs | None = None,
        **_: object,
    ) -> None:
        """Keeps the newest loss for the next line."""
        if logs and "loss" in logs:
            self._loss = f"loss {logs['loss']:.4g}"

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """One more step, in one line for all processes."""
        if state.is_world_process_zero:
            self._lines.advance(1, self._loss)


class BestCheckpoint(TrainerCallback):
    """Tells a resumed trainer where the best checkpoint so far is."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Sets the path."""
        state.best_model_checkpoint = None if self.path is None else str(self.path)
