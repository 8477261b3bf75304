"""A whole training run: from a recipe to a folder with the model, its log and its card."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import torch
from accelerate import PartialState

from evenrank.io import Provenance, check_apart, write_text
from evenrank.io.atomic import json_text
from evenrank.io.wording import counted
from evenrank.mitigation.ibbr import best_weight
from evenrank.rankers.protocol import Ranker

from .build import build_ranker, continues
from .callbacks import cut_log
from .choice import largest_gap
from .fairness import FairTerm
from .passage_groups import label_lines
from .recipe_data import label_files, load_validation, note_sources, open_lists, write_lists
from .recipes import Recipe, load_recipe
from .results import base_value, finish, known_by_labels, with_adversary
from .run_folder import check_folder, is_finished, last_checkpoint, run_folder
from .trainer import Objective, RankingTrainer
from .validation import Validation

_FILES = ("recipe.toml", "versions.json", "log.jsonl", "validation.run", "audit.json", "result.json", "grid.json")
_MODEL = "model/README.md"
"""Stands for the model's folder."""


def train_recipe(
    recipe: Recipe | str | os.PathLike[str],
    settings: Sequence[str] = (),
    *,
    resume: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Trains as described by a recipe and returns the run's folder.

    ``recipe``: a TOML file, the name of a shipped recipe (both with ``settings`` as in :func:`load_recipe`), or a
    :class:`Recipe`. ``say`` is called with lines of progress.

    The folder contains ``recipe.toml`` (with every default), ``versions.json``, ``log.jsonl``, ``checkpoints/``,
    ``model/`` (of the checkpoint that ``training.keep`` chooses), ``validation.run``, ``result.json`` and
    ``model/README.md``, the model card with an audit of the validation run. ``resume`` continues an interrupted run
    from its last checkpoint, to the same result; a finished run is left unchanged. A run that fails before its first
    checkpoint leaves nothing.

    With several numbers as ``fairness.weight``, each is trained in its own folder, and one ``without``; the best by
    :func:`best_weight` (on the validation measure and the largest |ΔA-PRF|) becomes the run's model; ``grid.json`` has
    the figures of all.

    Raises EvenrankError for a recipe that is wrong, and for a run that exists already or was made by another recipe;
    InputError for a damaged checkpoint.
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe, settings)
    if not resume:
        data, validation = recipe.data, recipe.validation
        read = (data.collection, data.queries, data.qrels, data.run, data.groups)
        judged = (validation.collection, validation.queries, validation.qrels, validation.run, validation.answers)
        began = (recipe.ranker.model, recipe.ranker.vectors)
        given = (*read, *judged, *began, *label_files(recipe))
        check_apart((recipe.folder / name for name in (*_FILES, _MODEL)), given)
    if recipe.fairness is not None and isinstance(recipe.fairness.weight, tuple):
        return _train_grid(recipe, recipe.fairness.weight, resume=resume, say=say)
    return _train_one(recipe, resume=resume, say=say)


def largest_bias(result: Mapping[str, Mapping[str, float | None]]) -> float:
    """The largest validation |ΔA-PRF| over the attributes of a ``result.json``; NaN if one is unknown."""
    return largest_gap(result.get("delta_aprf", {}))


def _train_grid(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> Path:
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    check_folder(recipe, resume)
    if resume and is_finished(folder):
        return folder
    # No process makes the folder before all have checked it.
    state.wait_for_everyone()
    with run_folder(recipe, resume=resume, main=state.is_main_process):
        _train_weights(recipe, weights, resume=resume, say=say)
    # No process reports success before the model is there.
    state.wait_for_everyone()
    return folder


class _Row(TypedDict):
    name: str
    weight: float
    value: float
    abs_delta_aprf: float


def _train_weights(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> None:
    assert recipe.fairness is not None
    folder = recipe.folder
    rows: list[_Row] = []
    for weight in (0.0, *weights):
        name = f"weight-{weight:g}" if weight else "without"
        fairness = recipe.fairness.model_copy(update={"weight": weight})
        one = recipe.model_copy(update={"name": name, "out": str(folder / name), "fairness": fairness})
        if not weight and recipe.training.keep == "fair":
            # What the utility of the others is compared with is the best without the term.
            one = one.model_copy(update={"training": recipe.training.model_copy(update={"keep": "best"})})
        say(f"{recipe.name}: {name}")
        if not is_finished(one.folder):
            _train_one(one, resume=resume and (one.folder / "recipe.toml").is_file(), say=say)
        result = json.loads((one.folder / "result.json").read_text(encoding="utf-8"))
        bias = largest_bias(result)
        rows.append(_Row(name=name, weight=weight, value=result["value"], abs_delta_aprf=bias))
    best = best_weight(
        [row["value"] for row in rows[1:]], [row["abs_delta_aprf"] for row in rows[1:]], rows[0]["value"]
    )
    chosen = rows[0] if best is None else rows[best + 1]
    say(f"{recipe.name}: validation chose {chosen['name']} ({', '.join(row['name'] for row in rows)} were trained)")
    if PartialState().is_main_process:
        for file in ("model", "validation.run", "audit.json"):
            _copy(folder / chosen["name"] / file, folder / file)
        result = json.loads((folder / chosen["name"] / "result.json").read_text(encoding="utf-8"))
        write_text(folder / "grid.json", json_text({"best": chosen["name"], "weights": rows}))
        write_text(folder / "result.json", json_text(result | {"best": chosen["name"]}))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def _train_one(recipe: Recipe, *, resume: bool, say: Callable[[str], None]) -> Path:
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    check_folder(recipe, resume)
    if resume and is_finished(folder):
        return folder
    made = note_sources(recipe).ahead(state.is_main_process)
    # First what needs no folder: most mistakes are found before there is one.
    ranker = build_ranker(recipe.ranker, recipe.data, recipe.training.seed)
    validation = load_validation(recipe)
    # No process makes the folder before all have checked it.
    state.wait_for_everyone()
    with run_folder(recipe, resume=resume, main=state.is_main_process):
        if state.is_main_process:
            write_lists(recipe, folder / "groups")
        # One of several processes writes the lists, and the others read them.
        state.wait_for_everyone()
        counts = write_lists(recipe, folder / "groups")
        _train_in(recipe, ranker, validation, counts, made, resume=resume, say=say)
    # No process reports success before the model is there.
    state.wait_for_everyone()
    return folder


def _train_in(
    recipe: Recipe,
    ranker: Ranker,
    validation: Validation,
    counts: dict[str, int],
    made: Provenance,
    *,
    resume: bool,
    say: Callable[[str], None],
) -> None:
    folder, main = recipe.folder, PartialState().is_main_process
    if main:
        left = counts["without_positive"]
        without = f" ({left} without a relevant passage left out)" if left else ""
        say(counted(counts["queries"], "training query") + without)
        for line in label_lines(known_by_labels(counts, validation)):
            say(line)
    lists = open_lists(recipe, folder / "groups")
    ranker, leakage = with_adversary(recipe, ranker, validation, main)
    fair = None if recipe.fairness is None else FairTerm.of_recipe(recipe.fairness)
    adversary_weight = 0.0 if recipe.adversary is None else recipe.adversary.weight
    objective = Objective(recipe.loss.name, fair, adversary_weight)
    trainer = RankingTrainer(
        ranker, lists, objective, recipe.training, folder, validation, depth=recipe.validation.depth
    )
    base: dict[str, object] = {}
    if main and continues(recipe.ranker) and (fair is not None or recipe.adversary is not None):
        base = {"base": base_value(trainer, recipe)}
    last = last_checkpoint(folder) if resume else None
    # The progress bar writes the log beside itself, on standard output.
    with contextlib.redirect_stdout(sys.stderr):
        if last is not None:
            trainer.resume(last)
        else:
            if main:
                cut_log(folder / "log.jsonl", 0)
            trainer.train()
    choice = trainer.conclude()
    if trainer.is_world_process_zero():
        say(f"{recipe.name}: kept the checkpoint of {choice.why}")
        finish(trainer, recipe, {"groups": counts, "checkpoint": choice.as_json()} | base | leakage, made)
