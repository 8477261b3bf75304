"""The trainer: transformers' Trainer on training lists, with its several GPUs, mixed precision, resuming, …"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PrinterCallback

from evenrank.io import EvenrankError, InputError, write_text
from evenrank.io.atomic import why_unwritten
from evenrank.mitigation.ibbr_weights import FixedWeight
from evenrank.rankers.cached import RandomState, cached_backward, cached_scores
from evenrank.rankers.losses import Loss, loss_of
from evenrank.rankers.protocol import Inputs, Ranker

from .arguments import METRIC, training_arguments
from .batches import Collator, EpochSampler, ranker_inputs
from .callbacks import CONCLUDED, BestCheckpoint, Log, Progress, append_line, cut_log
from .checkpoints import FAIR_WEIGHT, MODEL, STATE, ResumableTrainer, checkpoint_state, readable_part, remove_others
from .choice import CheckpointChooser, Choice, largest_gap, rule_of
from .fairness import FairTerm
from .lists import ListDataset
from .recipes import TrainingRecipe
from .validation import Validation


class TrainingError(EvenrankError):
    """Training that cannot continue: the loss is not a number. Checkpoints written before are good."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised: a ranking loss, and beside it a fairness term or an adversary's loss times its weight."""

    loss: str | Loss = "nll"
    fair: FairTerm | None = None
    adversary_weight: float = 1.0


class RankingTrainer(ResumableTrainer):
    """Trains a ranker on training lists, and validates by re-ranking a run to ``depth``.

    ``folder`` gets ``log.jsonl`` and ``checkpoints/``. ``settings.keep`` says which checkpoint is kept
    (:func:`rule_of`); without a validation it is the last.
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
        self.ranker = ranker
        self.lists = lists
        self.adversary_weight = objective.adversary_weight
        self.settings = settings
        self.validation = validation
        self.depth = depth
        self.folder = folder
        self.fair = objective.fair
        self.loss, self._averaged_over = loss_of(objective.loss)
        rule, why = rule_of(
            settings.keep,
            validation,
            term=self.fair is not None and self.fair.batch.weight != FixedWeight(0.0),
            adversary="adversary" in ranker.parameter_groups(),
        )
        self.chooser = CheckpointChooser(rule, why, "" if validation is None else validation.measure, settings.patience)
        _freeze(ranker, settings.learning_rates)
        ranker.keep_tokens()
        super().__init__(
            model=ranker,
            args=training_arguments(settings, len(lists), folder, rule=None if validation is None else rule),
            data_collator=Collator(ranker),
            train_dataset=lists,
            eval_dataset=[],
            callbacks=[
                self.chooser,
                Log(folder / "log.jsonl"),
                *([] if sys.stderr.isatty() else [Progress()]),
            ],
        )
        # Results go to standard output, progress to standard error: this callback prints to the former.
        self.remove_callback(PrinterCallback)
        # The loss is already a mean over the batch, whatever the number of passages.
        self.model_accepts_loss_kwargs = False
        self._parts: list[tuple[float, float]] = []
        self._pieces: list[Inputs] = []
        self._shares: list[tuple[float, float]] = []
        self._states: list[RandomState] = []

    def _get_train_sampler(self, train_dataset: object = None) -> torch.utils.data.Sampler[int]:
        world = self.args.world_size
        return EpochSampler(self.lists, self.settings.seed, self._train_batch_size * world if world > 1 else 1)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Inputs,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The loss of a batch. Raises TrainingError if it is not a number."""
        scores = model(**ranker_inputs(inputs))
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

    def _loss(self, scores: Tensor, inputs: Inputs) -> Tensor:
        """The ranking loss, and the fairness term of the whole step if there is one."""
        rank = self.loss(scores.float(), inputs["relevance"], inputs["counted"])
        if self._shares:
            rank = self._shares.pop(0)[0] * rank
        return rank if self.fair is None else self.fair.total(rank, scores, inputs)

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
        elements = [self._averaged_over(one["relevance"], one["counted"]).sum() for one in pieces]
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
                found.append(self.fair.summarize(self._scores(inputs), inputs))
        torch.clear_autocast_cache()
        self._pieces = []
        self.fair.begin(found)

    def _scores(self, inputs: Inputs) -> Tensor:
        chunk = self.settings.cached
        if chunk is None:
            scores: Tensor = self.ranker(**ranker_inputs(inputs))
            return scores
        from evenrank.rankers.dot import DotRanker

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
            value = cached_backward(model, ranker_inputs(inputs), loss, chunk=chunk, backward=self.accelerator.backward)
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
        if self.fair is not None:
            with readable_part(checkpoint, FAIR_WEIGHT):
                self.fair.batch.weight.restore(json.loads((checkpoint / FAIR_WEIGHT).read_text(encoding="utf-8")))
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
        queries = ", ".join(self.lists.query_id(int(index)) for index in inputs["index"][:5] if index >= 0)
        kept = any(Path(self.args.output_dir or ".").glob("checkpoint-*"))
        raise TrainingError(
            f"step {self.state.global_step + 1}: the loss is {loss.item()} (batch of the queries {queries}, …);"
            + (f" the last checkpoint in {self.args.output_dir} is kept" if kept else " there is no checkpoint yet")
        )

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Re-ranks the validation run; the measure and the bias are logged, and choose the checkpoint."""
        validation = self.validation
        assert validation is not None
        run = validation.reranked(validation.scores(self.ranker), self.depth, "validation")
        metrics = {METRIC: validation.value(run)}
        bias = validation.delta_aprf(run)
        metrics |= {f"eval_delta_aprf_{name}": value for name, value in bias.items()}
        self.chooser.note(self.state.global_step, metrics[METRIC], largest_gap(bias))
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
            append_line(self.folder / "log.jsonl", {**found.as_json(), **now})
        return found

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Adam or AdamW, with a learning rate for each of the ranker's parameter groups."""
        if self.optimizer is None:
            training = self.settings
            parts = [
                {"params": parameters, "lr": training.learning_rates.get(name, training.learning_rate)}
                for name, parameters in self.ranker.parameter_groups().items()
                if training.learning_rates.get(name) != 0
            ]
            kind = torch.optim.AdamW if training.optimizer == "adamw" else torch.optim.Adam
            self.optimizer = kind(
                parts, lr=training.learning_rate, eps=training.epsilon, weight_decay=training.weight_decay
            )
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer


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
