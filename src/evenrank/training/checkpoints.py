"""Reading checkpoints: every part is there, readable and of the same step, or the error names the file."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from transformers import Trainer
from transformers.trainer_callback import TrainerState

from evenrank.io import EvenrankError, InputError

FAIR_WEIGHT, MODEL, STATE = "fair_weight.json", "model.safetensors", "trainer_state.json"


def checkpoint_state(checkpoint: Path) -> TrainerState:
    """The trainer's state in a checkpoint. Raises InputError if it is damaged or that of another step."""
    step = int(checkpoint.name.rpartition("-")[2])
    with readable_part(checkpoint, STATE):
        state: TrainerState = TrainerState.load_from_json(str(checkpoint / STATE))
        numbers = state.global_step, state.max_steps, state.best_global_step or 0
        if any(type(number) is not int for number in numbers):
            raise TypeError("no number of steps")
    check_step(checkpoint / STATE, state.global_step, step)
    return state


def check_step(path: Path, found: int, step: int) -> None:
    """Raises InputError unless the state is that after ``step``."""
    if found != step:
        raise InputError(path, f"expected the state after step {step}, found that after step {found}")


@contextmanager
def readable_part(folder: Path, name: str) -> Iterator[None]:
    """Raises InputError if a checkpoint's file is missing, or cannot be read or used inside the block."""
    if not (folder / name).is_file():
        raise InputError(folder / name, "the file is missing: the training cannot resume from this checkpoint")
    try:
        yield
    except (EvenrankError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        message = f"the file is damaged: the training cannot resume from this checkpoint ({type(error).__name__})"
        raise InputError(folder / name, message) from None


def remove_others(folder: Path, newest: int, needed: Container[int]) -> None:
    """Removes checkpoints but the newest; of those whose steps are ``needed`` the weights stay, and nothing else."""
    for path in folder.glob("checkpoint-*"):
        step = int(path.name.rpartition("-")[2])
        if step == newest:
            continue
        if step not in needed:
            shutil.rmtree(path, ignore_errors=True)
            continue
        # Without its state nothing resumes from it, whatever else is there.
        (path / STATE).unlink(missing_ok=True)
        for file in path.iterdir():
            if file.name != MODEL:
                file.unlink()


class ResumableTrainer(Trainer):
    """A trainer that reads every part of a checkpoint, or names the file that is missing or damaged.

    transformers' own starts afresh if a part is missing.
    """

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        with readable_part(Path(resume_from_checkpoint), MODEL):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        folder = Path(checkpoint)
        assert self.optimizer is not None
        with readable_part(folder, "scheduler.pt"):
            planned = int(torch.load(folder / "scheduler.pt", weights_only=True)["last_epoch"])
        with readable_part(folder, "optimizer.pt"):
            super()._load_optimizer_and_scheduler(checkpoint)
            steps = [int(one["step"]) for one in self.optimizer.state_dict()["state"].values()]
        check_step(folder / "scheduler.pt", planned, self.state.global_step)
        check_step(folder / "optimizer.pt", max(steps, default=0), self.state.global_step)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        folder, world = Path(checkpoint), self.args.world_size
        processes = len(list(folder.glob("rng_state_*.pth"))) or 1
        if processes != world:
            raise InputError(folder, f"saved by {processes} processes, and cannot be resumed by {world}")
        name = f"rng_state_{self.args.process_index}.pth" if world > 1 else "rng_state.pth"
        with readable_part(folder, name):
            super()._load_rng_state(checkpoint)
