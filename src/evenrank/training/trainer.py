"""The trainer: transformers' Trainer on training lists, with its several GPUs, mixed precision and checkpoints.

Cached gradients are the exact gradient of a large batch in the memory of a small one: Gao et al. 2021, "Scaling deep
contrastive learning batch size under memory limited setup" (GradCache), eq. 3–5.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import safe_open
from sentence_transformers.base.losses.gradcache import RandContext
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerControl, TrainingArguments
from transformers.trainer_callback import TrainerState
from transformers.trainer_pt_utils import safe_globals

from evenrank.files import EvenrankError, InputError, write_text
from evenrank.files.errors import arg
from evenrank.files.json_values import json_text
from evenrank.files.outputs import why_unwritten
from evenrank.files.progress import ProgressLines
from evenrank.mitigation.ibbr import FixedWeight
from evenrank.models.encoders import DotRanker
from evenrank.models.protocol import Inputs, Ranker

from .choice import CheckpointChooser, Choice, Rule, Validation, largest_gap, rule_of
from .fairness import FairTerm, KeepWeight
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
        with torch.enable_grad(), nullcontext() if last else _unsynchronised(ranker), state:
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
) -> tuple[list[Tensor], list[RandContext]]:
    """The vectors of each piece without a graph, and the random state before it."""
    vectors: list[Tensor] = []
    states = []
    with torch.no_grad():
        for piece in pieces:
            states.append(RandContext(inputs["mask"]))
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
        dataloader_pin_memory=on_gpu,
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
    )


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


MODEL, STATE = "model.safetensors", "trainer_state.json"


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of a training's folder (the trainer's state is written last)."""
    checkpoints = [path for path in (folder / "checkpoints").glob("checkpoint-*") if _is_whole(path / STATE)]
    return max(checkpoints, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _is_whole(state: Path) -> bool:
    try:
        json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def check_parts(checkpoint: Path, processes: int, process: int) -> None:
    """Raises InputError, naming the file, for a part that is missing, damaged, or of another step.

    transformers' own resuming starts afresh where a part is missing.
    """
    saved_by = len(list(checkpoint.glob("rng_state_*.pth"))) or 1
    if saved_by != processes:
        raise InputError(checkpoint, f"saved by {saved_by} processes, and cannot be resumed by {processes}")
    with readable_part(checkpoint, MODEL) as path, safe_open(path, "pt"):
        pass
    with readable_part(checkpoint, "scheduler.pt") as path:
        planned = int(torch.load(path, map_location="cpu", weights_only=True)["last_epoch"])
    check_step(path, planned)
    with readable_part(checkpoint, "optimizer.pt") as path:
        steps = [int(s["step"]) for s in torch.load(path, map_location="cpu", weights_only=True)["state"].values()]
    check_step(path, max(steps, default=0))
    name = f"rng_state_{process}.pth" if processes > 1 else "rng_state.pth"
    with readable_part(checkpoint, name) as path, safe_globals():  # type: ignore[no-untyped-call]
        torch.load(path, map_location="cpu", weights_only=True)


def check_step(part: Path, found: int) -> None:
    """Raises InputError unless a part of a checkpoint is of the step after which its folder is named."""
    step = int(part.parent.name.rpartition("-")[2])
    if found != step:
        raise InputError(part, f"expected the state after step {step}, found that after step {found}")


@contextmanager
def readable_part(checkpoint: Path, name: str) -> Iterator[Path]:
    """The path of a checkpoint's file. Raises InputError if it is missing, or cannot be read inside the block."""
    path = checkpoint / name
    if not path.is_file():
        raise InputError(path, "the file is missing: the training cannot resume from this checkpoint")
    try:
        yield path
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        message = f"the file is damaged: the training cannot resume from this checkpoint ({type(error).__name__})"
        raise InputError(path, message) from None


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


Logs = Mapping[str, float]
Line = dict[str, float | str | None]


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
    lines: list[Line] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            values = json.loads(line)
            if not isinstance(values, dict) or not isinstance(values["step"], int):
                break
        except (ValueError, LookupError):
            break
        lines.append(values)
    return lines


def cut_log(path: Path, lines: int) -> None:
    """Removes all but the first so many lines of a log: a training that resumes there logs the others again."""
    if path.is_file():
        head = path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
        write_text(path, "".join(head))


class Progress(TrainerCallback):
    """Lines of progress now and then, if no one watches a bar."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock."""
        done = state.global_step
        what = f"training steps after step {done:,}" if done else "training steps"
        self._lines = ProgressLines(what, state.max_steps - done)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """One more step, in one line for all processes."""
        if state.is_world_process_zero:
            logged = (f"loss {line['loss']:.4g}" for line in reversed(state.log_history) if "loss" in line)
            self._lines.advance(1, next(logged, ""))


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


class CheckpointTrainer(Trainer):
    """Trains a ranker by the settings of a recipe, and chooses among its checkpoints by what :meth:`validate` finds.

    ``folder`` gets ``log.jsonl`` and ``checkpoints/``. A subclass defines the loss of a batch, which has the ``index``
    of each item, and :meth:`validate`. ``validated``: whether there is a validation; without one the last is kept.
    """

    validation: Validation | None = None
    depth = 1
    fair: FairTerm | None = None

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
        self.log_path = folder / "log.jsonl"
        self.chooser = chooser
        _freeze(ranker, settings.learning_rates)
        super().__init__(
            model=ranker,
            args=training_arguments(settings, len(items), folder, rule=chooser.rule if validated else None),
            data_collator=collator,
            train_dataset=items,
            eval_dataset=[],
            callbacks=[chooser, Log(self.log_path), *([] if sys.stderr.isatty() else [Progress()])],
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

    def fit(self, *, resume: bool = False) -> Choice:
        """Trains from the start, or (``resume``) from the last checkpoint as if there had been no interruption.

        Returns which checkpoint the ranker is of, and why, which is also the log's last line. Raises InputError, naming
        the file, if a part of the checkpoint is missing or damaged.
        """
        last = last_checkpoint(self.folder) if resume else None
        # The progress bar writes the log beside itself, on standard output.
        with redirect_stdout(sys.stderr):
            if last is not None:
                self._resume(last)
            else:
                if self.is_world_process_zero():
                    self.log_path.unlink(missing_ok=True)
                self.train()
        self.ranker.eval()
        choice = self.chooser.choice(self.state.global_step)
        if self.is_world_process_zero():
            now = {"step": self.state.global_step, "epoch": self.state.epoch, "kept_step": choice.step}
            append_line(self.log_path, {**asdict(choice), **now})
        return choice

    def _resume(self, checkpoint: Path) -> None:
        with readable_part(checkpoint, STATE) as path:
            state: TrainerState = TrainerState.load_from_json(str(path))
            self.chooser.restore(state.stateful_callbacks[type(self.chooser).__name__])  # type: ignore[call-overload,index]
        check_step(path, state.global_step)
        best = checkpoint.parent / f"checkpoint-{state.best_global_step}"
        if state.best_global_step and not (best / MODEL).is_file():
            raise InputError(best / MODEL, "the best checkpoint so far is missing")
        for step in sorted(self.chooser.needed):
            model_path = checkpoint.parent / f"checkpoint-{step}" / MODEL
            if not model_path.is_file():
                raise InputError(model_path, "a checkpoint that may yet be chosen is missing")
        check_parts(checkpoint, self.args.world_size, self.args.process_index)
        if self.is_world_process_zero():
            cut_log(self.log_path, len(state.log_history))
        if state.global_step >= state.max_steps or self.chooser.is_over:
            # The trainer would make a further step.
            self.state = state
            self.state.best_model_checkpoint = str(best) if state.best_global_step else None
            self._load_from_checkpoint(str(best if state.best_global_step else checkpoint))
            return
        self.train(resume_from_checkpoint=str(checkpoint))

    def _check(self, loss: Tensor, inputs: Inputs) -> None:
        if torch.isfinite(loss):
            return
        queries = ", ".join(self.items.query_id(int(index)) for index in inputs["index"][:5] if index >= 0)
        is_saved = any(Path(self.args.output_dir or ".").glob("checkpoint-*"))
        raise TrainingError(
            f"step {self.state.global_step + 1}: the loss is {loss.item()} (batch of the queries {queries}, …);"
            + (f" the last checkpoint in {self.args.output_dir} is kept" if is_saved else " there is no checkpoint yet")
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
        if settings.cached is not None and not isinstance(ranker, DotRanker):
            raise EvenrankError("`cached`: expected a dot ranker, whose vectors have the gradients")
        if ranker.keeps_vectors and settings.cached is not None:
            raise EvenrankError("`cached`: not with a frozen encoder, which needs no gradients")
        rule, why = rule_of(
            settings.keep,
            validation,
            term=self.fair is not None and self.fair.batch.weight != FixedWeight(0.0),
            adversary="adversary" in ranker.parameter_groups(),
        )
        measure = "" if validation is None else validation.measure
        chooser = CheckpointChooser(rule, why, measure, settings.patience)
        super().__init__(ranker, lists, Collator(ranker), settings, folder, chooser, validated=validation is not None)
        if self.fair is not None:
            self.add_callback(KeepWeight(self.fair.batch.weight))
        self._parts: list[tuple[float, float]] = []
        self._pieces: list[Inputs] = []
        self._shares: list[tuple[float, float]] = []
        self._states: list[RandContext] = []

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
        samples = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._pieces = list(samples[0]) if self.fair is not None and len(samples[0]) > 1 else []
        self._shares = self._weights(samples[0])
        return samples

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
            [torch.stack([count, _adversarys(piece).sum()]) for count, piece in zip(elements, pieces, strict=True)]
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
        summaries = []
        for piece in self._pieces:
            inputs = self._prepare_inputs(piece)
            self._states.append(RandContext(inputs["mask"]))
            with torch.no_grad(), self.compute_loss_context_manager():
                summaries.append(self.fair.summarize(self._scaled(self._scores(inputs)), inputs))
        torch.clear_autocast_cache()
        self._pieces = []
        self.fair.begin(summaries)

    def _scores(self, inputs: Inputs) -> Tensor:
        chunk = self.settings.cached
        if chunk is None:
            scores: Tensor = self.ranker(**ranker_inputs(inputs))
            return scores
        assert isinstance(self.ranker, DotRanker)
        return cached_scores(self.ranker, ranker_inputs(inputs), chunk=chunk)

    def training_step(self, model: nn.Module, inputs: Inputs, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """A step, with cached gradients if the settings ask for them."""
        model.train()
        if self._pieces:
            self._begin_step()
        with self._states.pop(0) if self._states else nullcontext():
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
