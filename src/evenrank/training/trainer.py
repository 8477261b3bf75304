"""The trainer: transformers' Trainer on query groups, with all that it can (several GPUs, resuming, …)."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerState

from evenrank.io import EvenrankError, InputError, write_text
from evenrank.io.progress import ProgressLines
from evenrank.io.written import json_text, why_unwritten
from evenrank.rankers.cached import RandomState, cached_backward, cached_scores
from evenrank.rankers.protocol import Ranker

from .fairness import FairTerm
from .groups import Group, QueryGroupSet, collate
from .losses import LOSSES, TERMS
from .recipes import Recipe
from .validation import Validation

METRIC = "eval_validation"
_WEIGHT = "fair_weight.json"
_WEIGHTS, _STATE = "model.safetensors", "trainer_state.json"
_OWN = ("labels", "groups", "index", "counted")


class TrainingError(EvenrankError):
    """Training that cannot go on: a loss that is no number. A checkpoint that is there is good."""


class Collator:
    """Items → the ranker's tensors, with ``labels`` [B, K], ``groups`` [A, B, K] and each item's ``index`` [B].

    ``counted`` [B, K] bool: the passages that the loss is about; those of items that only fill a batch are not.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def __call__(self, items: Sequence[Group]) -> dict[str, Tensor]:
        groups = collate(items)
        assert groups.labels is not None
        inputs = {**self.ranker.encode(groups), "labels": groups.labels}
        if groups.groups is not None:
            inputs["groups"] = groups.groups
        index = torch.tensor([item.index for item in items])
        counted = groups.mask & (index >= 0)[:, None]
        if "gendered" in inputs:
            inputs["gendered"] = inputs["gendered"].to(torch.int8).masked_fill(~counted[groups.mask], -1)
        return {**inputs, "index": index, "counted": counted}


class RankingTrainer(Trainer):
    """Trains a ranker on query groups with a ranking loss; validates by re-ranking a run."""

    def __init__(
        self, ranker: Ranker, recipe: Recipe, groups: QueryGroupSet, validation: Validation, **kwargs: Any
    ) -> None:
        self.recipe = recipe
        self.ranker = ranker
        self.groups = groups
        self.validation = validation
        self.loss = LOSSES[recipe.loss.name]
        self._stopping = EarlyStoppingCallback(recipe.training.patience) if recipe.training.keep == "best" else None
        _freeze(ranker, recipe.training.learning_rates)
        ranker.keep_tokens()
        super().__init__(
            model=ranker,
            args=_arguments(recipe, len(groups)),
            data_collator=Collator(ranker),
            train_dataset=groups,
            eval_dataset=[],
            callbacks=[
                *([] if self._stopping is None else [self._stopping]),
                Log(recipe.folder / "log.jsonl"),
                *([] if sys.stderr.isatty() else [Progress()]),
            ],
            **kwargs,
        )
        # Results go to standard output, progress to standard error: not this one's prints.
        self.remove_callback(PrinterCallback)
        # The loss is a mean over the batch already, whatever the number of passages.
        self.model_accepts_loss_kwargs = False
        self.fair = None if recipe.fairness is None else FairTerm(recipe.fairness, self.accelerator)
        self._adversary_weight = 0.0 if recipe.adversary is None else recipe.adversary.weight
        self._parts: list[tuple[float, float]] = []
        self._pieces: list[dict[str, Any]] = []
        self._shares: list[tuple[float, float]] = []
        self._states: list[RandomState] = []

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler[int]:
        world = self.args.world_size
        return EpochSampler(self.groups, self.recipe.training.seed, self._train_batch_size * world if world > 1 else 1)

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch. Raises TrainingError where it is no number."""
        scores = model(**_texts(inputs))
        if isinstance(scores, tuple):
            # An AdversarialRanker adds its adversary's loss.
            scores, adversary = scores
            share = self._shares[0][1] if self._shares else 1.0
            rank, adversary = self._loss(scores, inputs), share * adversary
            loss = rank + self._adversary_weight * adversary
            self._parts.append((float(rank.detach()), float(adversary.detach())))
        else:
            loss = self._loss(scores, inputs)
        self._check(loss, inputs)
        return (loss, scores) if return_outputs else loss

    def _loss(self, scores: Tensor, inputs: dict[str, Any]) -> Tensor:
        """The ranking loss, and the fair term of the whole step where the recipe has one."""
        rank = self.loss(scores.float(), inputs["labels"], inputs["counted"])
        if self._shares:
            rank = self._shares.pop(0)[0] * rank
        return rank if self.fair is None else self.fair.total(rank, scores, inputs)

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> Any:
        """The pieces of a step's batch; the fair term needs all of them before the first is learnt from."""
        found = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._pieces = list(found[0]) if self.fair is not None and len(found[0]) > 1 else []
        self._shares = self._weighed(found[0])
        return found

    def _weighed(self, pieces: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
        """What the ranking loss and the adversary's of each piece count, for the mean over the whole step's batch.

        The trainer gives all pieces of all processes the same weight, but they differ in what their losses are means
        of: the last are short, and lists ragged.
        """
        world = self.accelerator.num_processes
        if not pieces or len(pieces) * world == 1:
            return []
        terms = TERMS[self.recipe.loss.name]
        counts = torch.stack(
            [torch.stack([terms(one["labels"], one["counted"]).sum(), one["counted"].sum()]) for one in pieces]
        ).to(self.args.device)
        total = counts.sum(0)
        if world > 1:
            total = self.accelerator.reduce(total, reduction="sum")
        # Not on the device, which may have no numbers as exact.
        shares = (len(pieces) * world * counts.cpu().double() / total.cpu().clamp(min=1)).tolist()
        return [(rank, adversary) for rank, adversary in shares]

    def _begin_step(self) -> None:
        """Scores all pieces without a graph for the fair term, and keeps the random states to score them so again."""
        assert self.fair is not None
        found = []
        for piece in self._pieces:
            inputs = self._prepare_inputs(piece)
            self._states.append(RandomState(inputs["mask"].device))
            with torch.no_grad(), self.compute_loss_context_manager():
                found.append(self.fair.pairwise(self._scores(inputs), inputs))
        torch.clear_autocast_cache()
        self._pieces = []
        self.fair.begin(found)

    def _scores(self, inputs: dict[str, Any]) -> Tensor:
        chunk = self.recipe.training.cached
        if chunk is None:
            scores: Tensor = self.ranker(**_texts(inputs))
            return scores
        from evenrank.rankers.dot import DotRanker

        assert isinstance(self.ranker, DotRanker)
        return cached_scores(self.ranker, _texts(inputs), chunk=chunk)

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """A step, with cached gradients where the recipe asks for them."""
        model.train()
        if self._pieces:
            self._begin_step()
        with self._states.pop(0).replayed() if self._states else nullcontext():
            if self.recipe.training.cached is not None:
                return self._cached_step(model, inputs, self.recipe.training.cached)
            step: Tensor = super().training_step(model, inputs, num_items_in_batch)
            return step

    def _cached_step(self, model: nn.Module, inputs: dict[str, Any], chunk: int) -> Tensor:
        inputs = self._prepare_inputs(inputs)
        share = self.current_gradient_accumulation_steps

        def loss(scores: Tensor) -> Tensor:
            return self._loss(scores, inputs) / share

        with self.compute_loss_context_manager():
            value = cached_backward(model, _texts(inputs), loss, chunk=chunk, backward=self.accelerator.backward)
        self._check(value, inputs)
        return value.detach()

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs the parts of the loss apart."""
        if self.fair is not None and "loss" in logs:
            logs = {**logs, **self.fair.report()}
        if self._parts and "loss" in logs:
            rank, adversary = np.mean(self._parts, axis=0).tolist()
            logs = {**logs, "rank_loss": rank, "adversary_loss": adversary}
            self._parts = []
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        if self.fair is not None and self.is_world_process_zero():
            # Before the trainer's own state, whose file says that the checkpoint is whole.
            folder = Path(self.args.output_dir or ".") / f"checkpoint-{self.state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / _WEIGHT, json.dumps(self.fair.weight.state()))
        try:
            super()._save_checkpoint(model, trial)
        except Exception as error:
            reason = why_unwritten(error)
            if reason is None:
                raise
            # Half a checkpoint is of no use, and its room may be needed.
            folder = Path(self.args.output_dir or ".") / f"checkpoint-{self.state.global_step}"
            shutil.rmtree(folder, ignore_errors=True)
            raise InputError(folder, f"cannot be written: {reason}") from None

    def resume(self, checkpoint: Path) -> None:
        """Goes on from a checkpoint to the end of the training, as if it had never been stopped.

        Raises InputError, naming the file, where a part of the checkpoint is missing or damaged.
        """
        state = _state_of(checkpoint)
        best = checkpoint.parent / f"checkpoint-{state.best_global_step}"
        if state.best_global_step and not (best / _WEIGHTS).is_file():
            raise InputError(best / _WEIGHTS, "the best checkpoint so far is missing")
        if self.fair is not None:
            with _readable(checkpoint, _WEIGHT):
                self.fair.weight.restore(json.loads((checkpoint / _WEIGHT).read_text(encoding="utf-8")))
        over = state.global_step >= state.max_steps
        if self._stopping is not None:
            with _readable(checkpoint, _STATE):
                kept = state.stateful_callbacks[type(self._stopping).__name__]["attributes"]  # type: ignore[call-overload,index]
                self._stopping.early_stopping_patience_counter = int(kept["early_stopping_patience_counter"])
            over |= self._stopping.early_stopping_patience_counter >= self._stopping.early_stopping_patience
        if self.is_world_process_zero():
            cut_log(self.recipe.folder / "log.jsonl", state.global_step)
        if over:
            # The trainer would make a further step.
            self.state = state
            chosen = best if self._stopping is not None and state.best_global_step else checkpoint
            self.state.best_model_checkpoint = str(best) if state.best_global_step else None
            self._load_from_checkpoint(str(chosen))
            return
        # The folder may have another place, or another way to it, than when it was saved.
        self.add_callback(_BestCheckpoint(best if state.best_global_step else None))
        self.train(resume_from_checkpoint=str(checkpoint))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        with _readable(Path(resume_from_checkpoint), _WEIGHTS):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        # The trainer would begin anew where one is missing.
        folder = Path(checkpoint)
        assert self.optimizer is not None
        with _readable(folder, "scheduler.pt"):
            planned = int(torch.load(folder / "scheduler.pt", weights_only=True)["last_epoch"])
        with _readable(folder, "optimizer.pt"):
            super()._load_optimizer_and_scheduler(checkpoint)
            steps = [int(one["step"]) for one in self.optimizer.state_dict()["state"].values()]
        _check_step(folder / "scheduler.pt", planned, self.state.global_step)
        _check_step(folder / "optimizer.pt", max(steps, default=0), self.state.global_step)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        folder, world = Path(checkpoint), self.args.world_size
        processes = len(list(folder.glob("rng_state_*.pth"))) or 1
        if processes != world:
            raise InputError(folder, f"saved by {processes} processes, and cannot be gone on with by {world}")
        name = f"rng_state_{self.args.process_index}.pth" if world > 1 else "rng_state.pth"
        with _readable(folder, name):
            super()._load_rng_state(checkpoint)

    def _check(self, loss: Tensor, inputs: dict[str, Any]) -> None:
        if torch.isfinite(loss):
            return
        queries = ", ".join(self.groups.query_id(int(index)) for index in inputs["index"][:5] if index >= 0)
        kept = any(Path(self.args.output_dir or ".").glob("checkpoint-*"))
        raise TrainingError(
            f"step {self.state.global_step + 1}: the loss is {loss.item()} (batch of the queries {queries}, …);"
            + (f" the last checkpoint in {self.args.output_dir} is kept" if kept else " there is no checkpoint yet")
        )

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Re-ranks the validation run; the measure is logged, and chooses the checkpoint."""
        scores = self.validation.scores(self.ranker)
        run = self.validation.reranked(scores, self.recipe.validation.depth, "validation")
        metrics = {METRIC: self.validation.value(run)}
        metrics |= {f"eval_delta_aprf_{name}": value for name, value in self.validation.delta_aprf(run).items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Adam or AdamW with a learning rate for each of the ranker's parameter groups."""
        if self.optimizer is None:
            training = self.recipe.training
            parts = [
                {"params": parameters, "lr": training.learning_rates.get(name, training.learning_rate)}
                for name, parameters in self.ranker.parameter_groups().items()
                if training.learning_rates.get(name) != 0
            ]
            form = torch.optim.AdamW if training.optimizer == "adamw" else torch.optim.Adam
            self.optimizer = form(
                parts, lr=training.learning_rate, eps=training.epsilon, weight_decay=training.weight_decay
            )
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer


def _freeze(ranker: Ranker, rates: dict[str, float]) -> None:
    """Parameter groups with a learning rate of 0 have no gradient. Raises EvenrankError for an unknown group."""
    groups = ranker.parameter_groups()
    for name, rate in rates.items():
        if name not in groups:
            raise EvenrankError(
                f"training.learning_rates: no parameter group {name} (this ranker has {', '.join(groups)})"
            )
        if rate == 0:
            for parameter in groups[name]:
                parameter.requires_grad_(False)


def _texts(inputs: dict[str, Any]) -> dict[str, Any]:
    """The ranker's own part of a batch."""
    return {name: value for name, value in inputs.items() if name not in _OWN}


class EpochSampler(torch.utils.data.Sampler[int]):
    """A new order of the items each epoch, from seed and epoch alone: the same for any number of processes.

    Passes the epoch on to the data set, whose negatives depend on it. ``multiple``: what the number of items is filled
    up to, with items −1 − i, so that several processes have as many and none counts twice.
    """

    def __init__(self, groups: QueryGroupSet, seed: int, multiple: int = 1) -> None:
        self.groups = groups
        self.seed = seed
        self.multiple = multiple
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer when an epoch starts."""
        self.epoch = epoch
        self.groups.set_epoch(epoch)

    def __len__(self) -> int:
        return -(-len(self.groups) // self.multiple) * self.multiple

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.groups))
        return iter([*order.tolist(), *(-1 - np.resize(order, len(self) - len(order))).tolist()])


class Log(TrainerCallback):
    """Writes every logged value as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """One line: the step, the epoch and what was logged."""
        # How long a call took is no part of what the training did.
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json_text({"step": state.global_step, "epoch": state.epoch, **logs}, lines=False) + "\n")
        except OSError as error:
            raise InputError(self.path, f"cannot be written: {why_unwritten(error)}") from None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A line before each checkpoint: no mean goes over steps of which a resumed training makes a part."""
        control.should_log |= control.should_evaluate or control.should_save


def cut_log(path: Path, step: int) -> None:
    """Takes away what was logged after ``step``: a training that goes on from there logs it again."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] > step:
                break
        except (ValueError, LookupError, TypeError):
            # The last line of a process that was killed.
            break
        kept.append(line + "\n")
    write_text(path, "".join(kept))


class Progress(TrainerCallback):
    """Lines of progress now and then, where nobody watches a bar. ``clock`` gives seconds; ``write`` is told a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] | None = None) -> None:
        self._clock, self._write = clock, write
        self._loss = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The time counts from here."""
        done = state.global_step
        what = f"training steps after step {done:,}" if done else "training steps"
        self._lines = ProgressLines(what, state.max_steps - done, clock=self._clock, write=self._write)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """The newest loss is shown."""
        if logs and "loss" in logs:
            self._loss = f"loss {logs['loss']:.4g}"

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """One more step, in one line for all processes."""
        if state.is_world_process_zero:
            self._lines.advance(1, self._loss)


class _BestCheckpoint(TrainerCallback):
    """Tells a resumed trainer where the best checkpoint so far is."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        state.best_model_checkpoint = None if self.path is None else str(self.path)


def _state_of(checkpoint: Path) -> TrainerState:
    """A checkpoint's state. Raises InputError for one that is not that of its step."""
    step = int(checkpoint.name.rpartition("-")[2])
    with _readable(checkpoint, _STATE):
        state: TrainerState = TrainerState.load_from_json(str(checkpoint / _STATE))
        numbers = state.global_step, state.max_steps, state.best_global_step or 0
        if any(type(number) is not int for number in numbers):
            raise TypeError("no number of steps")
    _check_step(checkpoint / _STATE, state.global_step, step)
    return state


def _check_step(path: Path, found: int, step: int) -> None:
    if found != step:
        raise InputError(path, f"expected the state after step {step}, found that after step {found}")


@contextmanager
def _readable(folder: Path, name: str) -> Iterator[None]:
    """Raises InputError where a checkpoint's file is missing, or cannot be read or used inside the block."""
    if not (folder / name).is_file():
        raise InputError(folder / name, "the file is missing: the training cannot go on from this checkpoint")
    try:
        yield
    except (EvenrankError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        message = f"the file is damaged: the training cannot go on from this checkpoint ({type(error).__name__})"
        raise InputError(folder / name, message) from None


def _arguments(recipe: Recipe, items: int) -> TrainingArguments:
    training = recipe.training
    world = int(os.environ.get("WORLD_SIZE", "1"))
    steps_an_epoch = max(1, math.ceil(items / (training.batch * world * training.accumulation)))
    steps = training.max_steps if training.max_steps > 0 else math.ceil(steps_an_epoch * training.epochs)
    every = min(training.evaluate_every, steps)
    on_gpu = torch.cuda.is_available()
    bf16 = training.precision == "bfloat16" or (
        training.precision == "auto" and on_gpu and torch.cuda.is_bf16_supported()
    )
    return TrainingArguments(
        output_dir=str(recipe.folder / "checkpoints"),
        per_device_train_batch_size=training.batch,
        gradient_accumulation_steps=training.accumulation,
        num_train_epochs=training.epochs,
        max_steps=training.max_steps,
        learning_rate=training.learning_rate,
        lr_scheduler_type=training.schedule if training.schedule == "linear" else "constant_with_warmup",
        warmup_steps=round(training.warmup * steps),
        max_grad_norm=training.clip,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=training.keep == "best",
        metric_for_best_model=METRIC,
        greater_is_better=True,
        logging_steps=max(1, every // 10),
        seed=training.seed,
        data_seed=training.seed,
        bf16=bf16,
        use_cpu=not on_gpu,
        remove_unused_columns=False,
        label_names=["labels"],
        dataloader_num_workers=training.workers,
        dataloader_pin_memory=on_gpu,
        report_to=["tensorboard"] if _has_tensorboard() else [],
        disable_tqdm=not sys.stderr.isatty(),
    )


def _has_tensorboard() -> bool:
    from importlib.util import find_spec

    return find_spec("tensorboard") is not None
