"""The trainer: transformers' Trainer on training lists, with its several GPUs, mixed precision and checkpoints.

Cached gradients are the exact gradient of a large batch in the memory of a small one: Gao et al. 2021, "Scaling deep
contrastive learning batch size under memory limited setup" (GradCache), eq. 3–5.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerControl, TrainingArguments
from transformers.trainer_callback import TrainerState

from evenrank.files import EvenrankError, InputError, write_text
from evenrank.files.errors import arg
from evenrank.files.json_values import json_text
from evenrank.files.outputs import why_unwritten
from evenrank.files.progress import ProgressLines
from evenrank.mitigation.ibbr import FixedWeight
from evenrank.models.encoders import DotRanker
from evenrank.models.protocol import Inputs, Ranker

from .choice import CheckpointChooser, Choice, Rule, Validation, largest_gap, rule_of
from .fairness import FairTerm
from .lists import ListDataset, TrainingList, collate
from .losses import Loss, against_batch, loss_of, nll
from .recipes import TrainingRecipe

Rows = Tensor | None
_SIDES = ("query_", "passage_")


def cached_backward(
    ranker: nn.Module,
    inputs: Inputs,
    loss_fn: Callable[[Tensor], Tensor],
    *,
    chunk: int = 256,
    backward: Callable[[Tensor], object] = torch.autograd.backward,
    in_batch: bool = False,
) -> Tensor:
    """Adds the gradient of ``loss_fn(scores [B, K])`` to the parameters' ``.grad``; returns the loss, detached.

    1. All texts are encoded in chunks of ``chunk`` texts, without a graph.
    2. ``backward(loss)`` computes the gradients of the vectors and of the parameters of ``loss_fn``, if any. The
       default is for one process; ``accelerator.backward`` divides by the accumulation steps and scales the loss.
    3. Each chunk is encoded again with a graph and the same random numbers (dropout), and the gradient of its vectors
       is propagated. A graph never has more than ``chunk`` texts of queries or of passages.

    ``ranker``: a :class:`DotRanker`, or a wrapper that keeps it as ``module`` and passes calls on (DDP). Under DDP only
    the last chunk, which has both queries and passages, synchronises the gradients of all chunks, once. ``loss_fn`` is
    called once, so it may gather across processes. ``in_batch``: its scores are those of all N passages for each query
    [B, N]. ``inputs``: as from :meth:`DotRanker.encode`, on the ranker's device. Call it under autocast as a forward
    pass.

    Raises ValueError for a chunk below 1 and TypeError for a ranker that has no vectors to cache.
    """
    if chunk < 1:
        raise ValueError(f"chunk: expected 1 or more, found {chunk}")
    inner = getattr(ranker, "module", ranker)
    if not isinstance(inner, DotRanker):
        raise TypeError(f"expected a DotRanker, found {type(inner).__name__}: its gradients cannot be cached")
    pieces = _pieces(inputs, chunk)
    vectors, states = _encode(inner, inputs, pieces)
    leaves = [part.requires_grad_() for part in vectors]

    with torch.enable_grad(), _unsynchronised(ranker):
        queries, passages = (_in_order(leaves, pieces, side) for side in (0, 1))
        scores = queries @ passages.T if in_batch else inner.scores(queries, passages, inputs["mask"])
        loss = loss_fn(scores)
        if loss.requires_grad:
            backward(loss)

    for number, (piece, state, leaf) in enumerate(zip(pieces, states, leaves, strict=True)):
        last = number == len(pieces) - 1
        with torch.enable_grad(), nullcontext() if last else _unsynchronised(ranker), state.replayed():
            again = ranker(**_texts(inputs, piece))
            gradient = torch.zeros_like(again) if leaf.grad is None else leaf.grad.to(again.dtype)
            torch.autograd.backward(again, gradient)
        torch.clear_autocast_cache()
    return loss.detach()


def cached_scores(ranker: DotRanker, inputs: Inputs, *, chunk: int = 256) -> Tensor:
    """Scores [B, K] without a graph, in chunks; draws the random numbers that :func:`cached_backward` would draw."""
    pieces = _pieces(inputs, chunk)
    vectors, _ = _encode(ranker, inputs, pieces)
    queries, passages = (_in_order(vectors, pieces, side) for side in (0, 1))
    return ranker.scores(queries, passages, inputs["mask"])


def _encode(
    ranker: DotRanker, inputs: Inputs, pieces: list[tuple[Rows, Rows]]
) -> tuple[list[Tensor], list[RandomState]]:
    """The vectors of each piece without a graph, and the random state before it."""
    vectors: list[Tensor] = []
    states = []
    with torch.no_grad():
        for piece in pieces:
            states.append(RandomState(inputs["mask"].device))
            vectors.append(ranker(**_texts(inputs, piece)))
    # Weights that autocast has cast without a graph would be reused, without a gradient.
    torch.clear_autocast_cache()
    return vectors, states


def _pieces(inputs: Inputs, chunk: int) -> list[tuple[Rows, Rows]]:
    """The rows of queries and of passages of each chunk, sorted by length; only the last has both."""
    split = []
    for side in _SIDES:
        lengths = inputs[side + "attention_mask"].sum(1)
        split.append(torch.split(lengths.argsort(descending=True, stable=True), chunk))
    queries, passages = split
    return [
        *((rows, None) for rows in queries[:-1]),
        *((None, rows) for rows in passages[:-1]),
        (queries[-1], passages[-1]),
    ]


def _texts(inputs: Inputs, piece: tuple[Rows, Rows]) -> Inputs:
    return {
        name: value[rows]
        for side, rows in zip(_SIDES, piece, strict=True)
        if rows is not None
        for name, value in inputs.items()
        if name.startswith(side)
    }


def _in_order(vectors: list[Tensor], pieces: list[tuple[Rows, Rows]], side: int) -> Tensor:
    """The vectors of one side's texts in the order of the inputs; in a chunk, queries precede passages."""
    parts, places = [], []
    for part, piece in zip(vectors, pieces, strict=True):
        rows = piece[side]
        if rows is not None:
            parts.append(part[: len(rows)] if side == 0 else part[len(part) - len(rows) :])
            places.append(rows)
    return torch.cat(parts)[torch.cat(places).argsort()]


class RandomState:
    """The state of the random numbers of the CPU and of a device, to draw the same numbers again."""

    def __init__(self, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        self._cpu = torch.get_rng_state()
        self._device = [torch.cuda.get_rng_state(device) for device in self._devices]

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Draws the same numbers inside, and restores the current state afterwards."""
        with torch.random.fork_rng(devices=self._devices):
            torch.set_rng_state(self._cpu)
            for device, state in zip(self._devices, self._device, strict=True):
                torch.cuda.set_rng_state(state, device)
            yield


def _unsynchronised(ranker: nn.Module) -> AbstractContextManager[object]:
    """Without synchronising gradients between processes, if ``ranker`` does so."""
    no_sync = getattr(ranker, "no_sync", None)
    return nullcontext() if no_sync is None else no_sync()


METRIC = "eval_validation"


def training_arguments(training: TrainingRecipe, items: int, folder: Path, *, rule: Rule | None) -> TrainingArguments:
    """The arguments of a training with so many ``items``, whose checkpoints go to ``folder``.

    ``rule`` chooses among them; None: there is no validation, and no checkpoint.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    steps_an_epoch = max(1, math.ceil(items / (training.batch * world * training.accumulation)))
    steps = training.max_steps if training.max_steps > 0 else math.ceil(steps_an_epoch * training.epochs)
    every = min(training.evaluate_every, steps)
    on_gpu = torch.cuda.is_available()
    bf16 = training.precision == "bfloat16" or (
        training.precision == "auto" and on_gpu and torch.cuda.is_bf16_supported()
    )
    return TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        per_device_train_batch_size=training.batch,
        gradient_accumulation_steps=training.accumulation,
        num_train_epochs=training.epochs,
        max_steps=training.max_steps,
        learning_rate=training.learning_rate,
        lr_scheduler_type=training.schedule if training.schedule == "linear" else "constant_with_warmup",
        warmup_steps=round(training.warmup * steps),
        max_grad_norm=training.clip,
        eval_strategy="no" if rule is None else "steps",
        eval_steps=every,
        save_strategy="no" if rule is None else "steps",
        save_steps=every,
        # The joint rule removes checkpoints itself: several may still be chosen.
        save_total_limit=None if rule == "joint" else 2,
        load_best_model_at_end=rule in ("utility", "joint"),
        metric_for_best_model=METRIC,
        greater_is_better=True,
        logging_steps=max(1, every // 10),
        seed=training.seed,
        data_seed=training.seed,
        bf16=bf16,
        use_cpu=not on_gpu,
        remove_unused_columns=False,
        label_names=["relevance"],
        dataloader_num_workers=training.workers,
        dataloader_pin_memory=on_gpu,
        report_to=["tensorboard"] if _has_tensorboard() else [],
        disable_tqdm=not sys.stderr.isatty(),
    )


def _has_tensorboard() -> bool:
    return find_spec("tensorboard") is not None


_OURS = ("relevance", "sides", "values", "index", "counted")


class Collator:
    """Items → the ranker's tensors, with ``relevance`` [B, K], ``sides`` [A, B, K] and the ``index`` of each item [B].

    ``values`` [B, K], if the lists have them.

    ``counted`` [B, K] bool: the passages that enter the loss; those of items that only pad a batch do not. With an
    adversary ``gendered`` [pairs], −1 for what its loss leaves out.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def __call__(self, items: Sequence[TrainingList]) -> Inputs:
        lists = collate(items)
        assert lists.relevance is not None
        inputs = {**self.ranker.encode(lists), "relevance": lists.relevance}
        if lists.sides is not None:
            inputs["sides"] = lists.sides
        if lists.values is not None:
            inputs["values"] = lists.values
        index = torch.tensor([item.index for item in items])
        counted = lists.mask & (index >= 0)[:, None]
        if "gendered" in inputs:
            inputs["gendered"] = inputs["gendered"].to(torch.int8).masked_fill(~counted[lists.mask], -1)
        return {**inputs, "index": index, "counted": counted}


def ranker_inputs(inputs: Mapping[str, Tensor]) -> Inputs:
    """The part of a batch that the ranker reads."""
    return {name: value for name, value in inputs.items() if name not in _OURS}


class Items(Protocol):
    """What a training reads: items by number, of which −1 − i is item i as padding of a batch."""

    def __len__(self) -> int: ...

    def set_epoch(self, epoch: int) -> None: ...

    def query_id(self, index: int) -> str: ...


class EpochSampler(torch.utils.data.Sampler[int]):
    """A new order of the items each epoch, from seed and epoch alone: the same for any number of processes.

    Passes the epoch on to the data set, whose negatives depend on it. The number of items is padded to a multiple of
    ``multiple`` with items −1 − i, so that several processes have equally many and none counts twice.
    """

    def __init__(self, items: Items, seed: int, multiple: int = 1) -> None:
        self.items = items
        self.seed = seed
        self.multiple = multiple
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer when an epoch starts."""
        self.epoch = epoch
        self.items.set_epoch(epoch)

    def __len__(self) -> int:
        return -(-len(self.items) // self.multiple) * self.multiple

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.items))
        return iter([*order.tolist(), *(-1 - np.resize(order, len(self) - len(order))).tolist()])


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


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Puts the process's random state back after the block: training seeds Python, NumPy and PyTorch."""
    python, arrays = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


class TrainingError(EvenrankError):
    """Training that cannot continue: the loss is not a number. Checkpoints written before are good."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised: a ranking loss, and beside it a fairness term or an adversary's loss times its weight."""

    loss: str | Loss = "nll"
    fair: FairTerm | None = None
    adversary_weight: float = 1.0
    scale: float | None = None
    """What scores are multiplied by before both losses; None: as the ranker says."""
    in_batch: bool = False
    """Whether the passages of the batch's other lists are negatives of the ranking loss too."""


class CheckpointTrainer(ResumableTrainer):
    """Trains a ranker by the settings of a recipe, and chooses among its checkpoints by what :meth:`validate` finds.

    ``folder`` gets ``log.jsonl`` and ``checkpoints/``. A subclass defines the loss of a batch, which has the ``index``
    of each item, and :meth:`validate`. ``validated``: whether there is a validation; without one the last is kept.
    """

    def __init__(
        self,
        ranker: Ranker,
        items: Items,
        collator: Callable[[Any], Inputs],
        settings: TrainingRecipe,
        folder: Path,
        chooser: CheckpointChooser,
        *,
        validated: bool,
    ) -> None:
        self.ranker = ranker
        self.items = items
        self.settings = settings
        self.folder = folder
        self.chooser = chooser
        _freeze(ranker, settings.learning_rates)
        super().__init__(
            model=ranker,
            args=training_arguments(settings, len(items), folder, rule=chooser.rule if validated else None),
            data_collator=collator,
            train_dataset=items,
            eval_dataset=[],
            callbacks=[chooser, Log(folder / "log.jsonl"), *([] if sys.stderr.isatty() else [Progress()])],
        )
        # Results go to standard output, progress to standard error: this callback prints to the former.
        self.remove_callback(PrinterCallback)
        # The loss is already a mean over the batch, whatever the number of passages.
        self.model_accepts_loss_kwargs = False

    def validate(self) -> tuple[dict[str, float], float]:
        """The figures of a validation, the utility as METRIC among them, and the bias (NaN: not measured)."""
        raise NotImplementedError

    def _get_train_sampler(self, train_dataset: object = None) -> torch.utils.data.Sampler[int]:
        world = self.args.world_size
        return EpochSampler(self.items, self.settings.seed, self._train_batch_size * world if world > 1 else 1)

    def _save_checkpoint(self, model: nn.Module, trial: object) -> None:
        try:
            super()._save_checkpoint(model, trial)
        except Exception as error:
            reason = why_unwritten(error)
            if reason is None:
                raise
            # Half a checkpoint is useless, and its space may be needed.
            folder = Path(self.args.output_dir or ".") / f"checkpoint-{self.state.global_step}"
            shutil.rmtree(folder, ignore_errors=True)
            raise InputError(folder, f"cannot be written: {reason}") from None
        if self.chooser.rule == "joint" and self.args.should_save:
            remove_others(Path(self.args.output_dir or "."), self.state.global_step, self.chooser.needed)

    def resume(self, checkpoint: Path) -> None:
        """Resumes from a checkpoint and trains to the end, as if there had been no interruption.

        Raises InputError, naming the file, if a part of the checkpoint is missing or damaged.
        """
        state = checkpoint_state(checkpoint)
        with readable_part(checkpoint, STATE):
            self.chooser.restore(state.stateful_callbacks[type(self.chooser).__name__])  # type: ignore[call-overload,index]
        best = checkpoint.parent / f"checkpoint-{state.best_global_step}"
        if state.best_global_step and not (best / MODEL).is_file():
            raise InputError(best / MODEL, "the best checkpoint so far is missing")
        for step in sorted(self.chooser.needed):
            kept = checkpoint.parent / f"checkpoint-{step}" / MODEL
            if not kept.is_file():
                raise InputError(kept, "a checkpoint that may yet be chosen is missing")
        if self.is_world_process_zero():
            cut_log(self.folder / "log.jsonl", state.global_step)
        if state.global_step >= state.max_steps or self.chooser.is_over:
            # The trainer would make a further step.
            self.state = state
            self.state.best_model_checkpoint = str(best) if state.best_global_step else None
            self._load_from_checkpoint(str(best if state.best_global_step else checkpoint))
            return
        # The folder may have moved since the checkpoint was saved.
        self.add_callback(BestCheckpoint(best if state.best_global_step else None))
        self.train(resume_from_checkpoint=str(checkpoint))

    def _check(self, loss: Tensor, inputs: Inputs) -> None:
        if torch.isfinite(loss):
            return
        queries = ", ".join(self.items.query_id(int(index)) for index in inputs["index"][:5] if index >= 0)
        kept = any(Path(self.args.output_dir or ".").glob("checkpoint-*"))
        raise TrainingError(
            f"step {self.state.global_step + 1}: the loss is {loss.item()} (batch of the queries {queries}, …);"
            + (f" the last checkpoint in {self.args.output_dir} is kept" if kept else " there is no checkpoint yet")
        )

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Validates; the figures are logged, and choose the checkpoint."""
        metrics, bias = self.validate()
        self.chooser.note(self.state.global_step, metrics[METRIC], bias)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        self.control.should_training_stop |= self.chooser.is_over
        return metrics

    def _determine_best_metric(self, metrics: dict[str, float], trial: object) -> bool:
        """Sets the checkpoint that is chosen so far, which a further validation may change to an earlier one."""
        now = self.chooser.now
        if now is None:
            return False
        self.state.best_metric, self.state.best_global_step = now.utility, now.step
        return now.step == self.state.global_step

    def conclude(self) -> Choice:
        """Which checkpoint the finished training has kept, and why; also in the log's last line."""
        found = self.chooser.choice(self.state.global_step)
        if self.is_world_process_zero():
            now = {"step": self.state.global_step, "epoch": self.state.epoch, CONCLUDED: found.step}
            append_line(self.folder / "log.jsonl", {**asdict(found), **now})
        return found

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Adam or AdamW, with a learning rate for each of the ranker's parameter groups."""
        if self.optimizer is None:
            training = self.settings
            parts = [
                {"params": trained, "lr": training.learning_rates.get(name, training.learning_rate)}
                for name, parameters in self.ranker.parameter_groups().items()
                if training.learning_rates.get(name) != 0
                and (trained := [parameter for parameter in parameters if parameter.requires_grad])
            ]
            kind = torch.optim.AdamW if training.optimizer == "adamw" else torch.optim.Adam
            self.optimizer = kind(
                parts, lr=training.learning_rate, eps=training.epsilon, weight_decay=training.weight_decay
            )
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer


class RankingTrainer(CheckpointTrainer):
    """Trains a ranker on training lists, and validates by re-ranking a run to ``depth``.

    ``settings.keep`` says which checkpoint is kept (:func:`rule_of`).
    """

    def __init__(
        self,
        ranker: Ranker,
        lists: ListDataset,
        objective: Objective,
        settings: TrainingRecipe,
        folder: Path,
        validation: Validation | None = None,
        depth: int = 100,
    ) -> None:
        self.adversary_weight = objective.adversary_weight
        self.validation = validation
        self.depth = depth
        self.fair = objective.fair
        self.loss, self._averaged_over = loss_of(objective.loss)
        self.scale = ranker.loss_scale if objective.scale is None else objective.scale
        self.in_batch = objective.in_batch
        if self.in_batch and (not isinstance(ranker, DotRanker) or objective.loss not in ("nll", nll)):
            raise EvenrankError(f"{arg.in_batch}: expected a dot ranker and the loss nll")
        if ranker.keeps_vectors:
            if settings.cached is not None:
                raise EvenrankError("`cached`: not with a frozen encoder, which needs no gradients")
            # A data-loading process would encode for itself.
            settings = settings.model_copy(update={"workers": 0})
        rule, why = rule_of(
            settings.keep,
            validation,
            term=self.fair is not None and self.fair.batch.weight != FixedWeight(0.0),
            adversary="adversary" in ranker.parameter_groups(),
        )
        measure = "" if validation is None else validation.measure
        chooser = CheckpointChooser(rule, why, measure, settings.patience)
        super().__init__(ranker, lists, Collator(ranker), settings, folder, chooser, validated=validation is not None)
        self._parts: list[tuple[float, float]] = []
        self._pieces: list[Inputs] = []
        self._shares: list[tuple[float, float]] = []
        self._states: list[RandomState] = []

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Inputs,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The loss of a batch. Raises TrainingError if it is not a number."""
        scores = self._products(model, inputs) if self.in_batch else model(**ranker_inputs(inputs))
        if isinstance(scores, tuple):
            # An AdversarialRanker adds its adversary's loss.
            scores, adversary = scores
            share = self._shares[0][1] if self._shares else 1.0
            rank, adversary = self._loss(scores, inputs), share * adversary
            loss = rank + self.adversary_weight * adversary
            self._parts.append((float(rank.detach()), float(adversary.detach())))
        else:
            loss = self._loss(scores, inputs)
        self._check(loss, inputs)
        return (loss, scores) if return_outputs else loss

    @staticmethod
    def _products(model: nn.Module, inputs: Inputs) -> Tensor:
        """The scores [B, N] of every query and every passage of the batch."""
        texts = ranker_inputs(inputs)
        queries = len(texts.pop("mask"))
        vectors = model(**texts)
        products: Tensor = vectors[:queries] @ vectors[queries:].T
        return products

    def _loss(self, scores: Tensor, inputs: Inputs) -> Tensor:
        """The ranking loss, and the fairness term of the whole step if there is one, of the scaled scores."""
        scores, relevance, counted = self._scaled(scores), inputs["relevance"], inputs["counted"]
        if self.in_batch:
            mask = inputs["mask"]
            rank = self.loss(scores.float(), *against_batch(relevance, mask, counted))
            own = scores.T[torch.arange(scores.shape[1]), mask.nonzero()[:, 0]]
            scores = torch.zeros(mask.shape, device=mask.device, dtype=own.dtype).masked_scatter(mask, own)
        else:
            rank = self.loss(scores.float(), relevance, counted)
        if self._shares:
            rank = self._shares.pop(0)[0] * rank
        return rank if self.fair is None else self.fair.total(rank, scores, inputs)

    def _scaled(self, scores: Tensor) -> Tensor:
        return scores if self.scale == 1 else self.scale * scores

    def get_batch_samples(self, epoch_iterator: Iterator[Inputs], num_batches: int, device: torch.device) -> Any:
        """The pieces of a step's batch; the fairness term needs all of them before the first backward pass."""
        found = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._pieces = list(found[0]) if self.fair is not None and len(found[0]) > 1 else []
        self._shares = self._weights(found[0])
        return found

    def _weights(self, pieces: Sequence[Inputs]) -> list[tuple[float, float]]:
        """The weights of each piece's ranking loss and adversary's loss that make the step's mean that of its batch.

        The trainer weights all pieces of all processes equally, but they differ in how many elements their losses
        average: the last are short, and lists ragged.
        """
        world = self.accelerator.num_processes
        if not pieces or len(pieces) * world == 1:
            return []
        elements = [self._averaged_over(piece["relevance"], piece["counted"]).sum() for piece in pieces]
        counts = torch.stack(
            [torch.stack([count, _adversarys(one).sum()]) for count, one in zip(elements, pieces, strict=True)]
        ).to(self.args.device)
        total = counts.sum(0)
        if world > 1:
            total = self.accelerator.reduce(total, reduction="sum")
        # Not on the device, which may lack double precision.
        shares = (len(pieces) * world * counts.cpu().double() / total.cpu().clamp(min=1)).tolist()
        return [(rank, adversary) for rank, adversary in shares]

    def _begin_step(self) -> None:
        """Scores all pieces without a graph for the fairness term; keeps the random states to repeat them."""
        assert self.fair is not None
        found = []
        for piece in self._pieces:
            inputs = self._prepare_inputs(piece)
            self._states.append(RandomState(inputs["mask"].device))
            with torch.no_grad(), self.compute_loss_context_manager():
                found.append(self.fair.summarize(self._scaled(self._scores(inputs)), inputs))
        torch.clear_autocast_cache()
        self._pieces = []
        self.fair.begin(found)

    def _scores(self, inputs: Inputs) -> Tensor:
        chunk = self.settings.cached
        if chunk is None:
            scores: Tensor = self.ranker(**ranker_inputs(inputs))
            return scores
        from evenrank.models.encoders import DotRanker

        assert isinstance(self.ranker, DotRanker)
        return cached_scores(self.ranker, ranker_inputs(inputs), chunk=chunk)

    def training_step(self, model: nn.Module, inputs: Inputs, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """A step, with cached gradients if the settings ask for them."""
        model.train()
        if self._pieces:
            self._begin_step()
        with self._states.pop(0).replayed() if self._states else nullcontext():
            if self.settings.cached is not None:
                return self._cached_step(model, inputs, self.settings.cached)
            step: Tensor = super().training_step(model, inputs, num_items_in_batch)
            return step

    def _cached_step(self, model: nn.Module, inputs: Inputs, chunk: int) -> Tensor:
        inputs = self._prepare_inputs(inputs)
        share = self.current_gradient_accumulation_steps

        def loss(scores: Tensor) -> Tensor:
            return self._loss(scores, inputs) / share

        with self.compute_loss_context_manager():
            value = cached_backward(
                model,
                ranker_inputs(inputs),
                loss,
                chunk=chunk,
                backward=self.accelerator.backward,
                in_batch=self.in_batch,
            )
        self._check(value, inputs)
        return value.detach()

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs the parts of the loss separately."""
        if self.fair is not None and "loss" in logs:
            logs = {**logs, **self.fair.report()}
        if self._parts and "loss" in logs:
            rank, adversary = np.mean(self._parts, axis=0).tolist()
            logs = {**logs, "rank_loss": rank, "adversary_loss": adversary}
            self._parts = []
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, model: nn.Module, trial: object) -> None:
        if self.fair is not None and self.is_world_process_zero():
            # Before the trainer's own state, whose file marks a checkpoint as complete.
            folder = Path(self.args.output_dir or ".") / f"checkpoint-{self.state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / FAIR_WEIGHT, json.dumps(self.fair.batch.weight.state()))
        super()._save_checkpoint(model, trial)

    def resume(self, checkpoint: Path) -> None:
        """As :meth:`CheckpointTrainer.resume`, with the weight of the fairness term."""
        if self.fair is not None:
            with readable_part(checkpoint, FAIR_WEIGHT):
                self.fair.batch.weight.restore(json.loads((checkpoint / FAIR_WEIGHT).read_text(encoding="utf-8")))
        super().resume(checkpoint)

    def validate(self) -> tuple[dict[str, float], float]:
        """Re-ranks the validation run: its measure, and ΔA-PRF of each attribute."""
        validation = self.validation
        assert validation is not None
        run = validation.reranked(validation.scores(self.ranker), self.depth, "validation")
        bias = validation.delta_aprf(run)
        deltas = {f"eval_delta_aprf_{name}": value for name, value in bias.items()}
        return {METRIC: validation.value(run), **deltas}, largest_gap(bias)


def _adversarys(piece: Inputs) -> Tensor:
    """The pairs that the adversary's loss averages: not those of which nothing is known."""
    return piece["gendered"] >= 0 if "gendered" in piece else piece["counted"]


def _freeze(ranker: Ranker, rates: dict[str, float]) -> None:
    """Freezes parameter groups with a learning rate of 0. Raises EvenrankError for an unknown parameter group."""
    groups = ranker.parameter_groups()
    for name, rate in rates.items():
        if name not in groups:
            raise EvenrankError(
                f"training.learning_rates: no parameter group {name} (this ranker has {', '.join(groups)})"
            )
        if rate == 0:
            for parameter in groups[name]:
                parameter.requires_grad_(False)
