"""A recipe's training settings as those of transformers."""

from __future__ import annotations

import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import TrainingArguments

from .choice import Rule
from .recipes import TrainingRecipe

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
