"""A whole training run: from a recipe to a folder with the model, its log and its card."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from accelerate import PartialState

from evenrank import __version__
from evenrank.groups import Scoring, load_lexicon
from evenrank.io import EvenrankError, read_qrels, read_queries, read_run, read_texts, write_run, write_text
from evenrank.io.written import json_text
from evenrank.mitigation.ibbr import best_weight
from evenrank.rankers.protocol import Ranker

from .build import build_ranker
from .fairness import scoring
from .groups import QueryGroupSet, build_from_file, build_groups
from .recipes import Recipe, load_recipe, to_toml
from .trainer import RankingTrainer
from .validation import Validation

_LIBRARIES = ("torch", "transformers", "sentence-transformers", "accelerate", "safetensors", "polars", "numpy")


def train(recipe: Recipe, *, resume: bool = False, say: Callable[[str], None] = lambda _: None) -> Path:
    """Trains as a recipe says and returns the run's folder.

    The folder holds ``recipe.toml`` (every default written out), ``versions.json``, ``log.jsonl``, ``checkpoints/``,
    ``model/`` (the best one by validation), ``validation.run``, ``result.json`` and ``model/README.md``, the model card
    with an audit of the validation run. ``resume`` goes on from the last checkpoint of an interrupted run.
    Raises EvenrankError for a run that is there already, or that another recipe made.

    With several numbers as ``fairness.weight``, each is trained in a folder of its own, beside one ``without``, and the
    best by :func:`best_weight` (on the validation measure and the largest |ΔA-PRF|) becomes the run's model;
    ``grid.json`` holds the figures of all.
    """
    if recipe.fairness is not None and isinstance(recipe.fairness.weight, tuple):
        return _train_grid(recipe, recipe.fairness.weight, resume=resume, say=say)
    return _train_one(recipe, resume=resume, say=say)


def largest_bias(result: Mapping[str, Any]) -> float:
    """The largest validation |ΔA-PRF| over the attributes of a ``result.json``; NaN where one is not known."""
    values = [math.nan if value is None else abs(value) for value in result.get("delta_aprf", {}).values()]
    return float(np.max(values)) if values else math.nan


def _train_grid(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> Path:
    assert recipe.fairness is not None
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    _check_folder(recipe, folder, resume)
    # No process makes the folder before all have looked.
    state.wait_for_everyone()
    if state.is_main_process:
        _prepare(recipe, folder)
    rows: list[dict[str, Any]] = []
    for weight in (0.0, *weights):
        name = f"weight-{weight:g}" if weight else "without"
        fairness = recipe.fairness.model_copy(update={"weight": weight})
        one = recipe.model_copy(update={"name": name, "out": str(folder / name), "fairness": fairness})
        say(f"{recipe.name}: {name}")
        if not (one.folder / "result.json").is_file():
            _train_one(one, resume=resume and (one.folder / "recipe.toml").is_file(), say=say)
        result = json.loads((one.folder / "result.json").read_text(encoding="utf-8"))
        bias = largest_bias(result)
        rows.append({"name": name, "weight": weight, "value": result["value"], "abs_delta_aprf": bias})
    best = best_weight(
        [row["value"] for row in rows[1:]], [row["abs_delta_aprf"] for row in rows[1:]], rows[0]["value"]
    )
    chosen = rows[0] if best is None else rows[best + 1]
    say(f"{recipe.name}: best is {chosen['name']} of {', '.join(row['name'] for row in rows)}")
    if state.is_main_process:
        for file in ("model", "validation.run", "audit.json"):
            _copy(folder / chosen["name"] / file, folder / file)
        result = json.loads((folder / chosen["name"] / "result.json").read_text(encoding="utf-8"))
        write_text(folder / "grid.json", json_text({"best": chosen["name"], "weights": rows}))
        write_text(folder / "result.json", json_text(result | {"best": chosen["name"]}))
    state.wait_for_everyone()
    return folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def _train_one(recipe: Recipe, *, resume: bool, say: Callable[[str], None]) -> Path:
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    _check_folder(recipe, folder, resume)
    # The ranker before the folder: a model that cannot be used leaves none behind.
    ranker = build_ranker(recipe)
    # No process makes the folder before all have looked.
    state.wait_for_everyone()
    if state.is_main_process:
        _prepare(recipe, folder)
        _groups(recipe, folder / "groups")
    # With several processes one makes the folder, and the others read it.
    state.wait_for_everyone()
    counts = _groups(recipe, folder / "groups")
    if state.is_main_process:
        say(f"{counts['queries']} queries ({counts['without_positive']} without a relevant passage left out)")
    groups = QueryGroupSet(
        folder / "groups",
        negatives=recipe.data.negatives,
        sampling=recipe.data.sampling,
        seed=recipe.training.seed,
        rotate=recipe.data.rotate,
    )
    validation = _validation(recipe)
    ranker, leakage = _with_adversary(recipe, ranker, validation, state.is_main_process)
    trainer = RankingTrainer(ranker, recipe, groups, validation)
    last = _last_checkpoint(folder) if resume else None
    if last is not None:
        trainer.restore(last)
    # The progress bar writes the log beside itself, on standard output.
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    if trainer.is_world_process_zero():
        _finish(recipe, folder, ranker, validation, trainer, {"groups": counts} | leakage)
    # No process says that it is done before the model is there.
    state.wait_for_everyone()
    return folder


def _check_folder(recipe: Recipe, folder: Path, resume: bool) -> None:
    kept = folder / "recipe.toml"
    if resume:
        if not kept.is_file():
            raise EvenrankError(f"{folder}: there is no run to resume")
        if load_recipe(kept) != recipe:
            raise EvenrankError(f"{folder}: this run was started with another recipe; resume with {kept}")
        return
    if kept.is_file():
        raise EvenrankError(f"{folder}: there is a run already (--resume goes on with it; --set out=… starts another)")


def _prepare(recipe: Recipe, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "recipe.toml", to_toml(recipe))
    versions = {"evenrank": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _LIBRARIES}
    write_text(folder / "versions.json", json_text(versions))


def _groups(recipe: Recipe, folder: Path) -> dict[str, int]:
    done = folder / "counts.json"
    if done.is_file():
        counts: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))
        return counts
    data = recipe.data
    queries = read_queries(data.queries)
    attributes = list(_attributes(recipe).values())
    if data.groups is not None:
        return build_from_file(
            data.groups, data.collection, queries, folder, attributes=attributes, masked=_masked(recipe)
        )
    assert data.run is not None
    assert data.qrels is not None
    return build_groups(
        read_run(data.run),
        read_qrels(data.qrels),
        data.collection,
        queries,
        folder,
        depth=data.depth,
        attributes=attributes,
        masked=_masked(recipe),
    )


def _validation(recipe: Recipe) -> Validation:
    wanted = recipe.validation
    run = read_run(wanted.run, "validation")
    depth = max((wanted.depth, *wanted.depths))
    shown = run.table.filter(pl.col("rank") <= depth)["doc_id"]
    texts = read_texts(wanted.collection or recipe.data.collection, shown)
    return Validation.of(
        run,
        read_qrels(wanted.qrels),
        read_queries(wanted.queries),
        texts,
        measure=wanted.measure,
        depth=depth,
        attributes=_attributes(recipe),
        masked=_masked(recipe),
    )


def _masked(recipe: Recipe) -> Scoring | None:
    return None if recipe.data.blind is None else Scoring(load_lexicon(recipe.data.blind))


def _attributes(recipe: Recipe) -> dict[str, Scoring]:
    fairness = recipe.fairness
    return {attribute.name: scoring(attribute) for attribute in fairness.attributes} if fairness else {}


def _last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint (the trainer's state is written last)."""
    found = [path for path in (folder / "checkpoints").glob("checkpoint-*") if _is_whole(path / "trainer_state.json")]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _is_whole(state: Path) -> bool:
    try:
        json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _finish(
    recipe: Recipe, folder: Path, ranker: Ranker, validation: Validation, trainer: Any, known: dict[str, Any]
) -> None:
    from .card import write_card

    ranker.eval()
    scores = validation.scores(ranker)
    depth, value = validation.best_depth(scores, recipe.validation.depths or (recipe.validation.depth,))
    before = validation.value(validation.run)
    run = validation.reranked(scores, depth, recipe.name)
    ranker.save(folder / "model")
    write_run(run, folder / "validation.run")
    result: dict[str, Any] = {
        "measure": validation.measure,
        "first_stage": before,
        "value": value,
        "depth": depth,
        "steps": trainer.state.global_step,
        "best_checkpoint": Path(trainer.state.best_model_checkpoint or "").name,
        **known,
    }
    if recipe.fairness is not None:
        result["delta_aprf"] = validation.delta_aprf(run)
        result["delta_aprf_first_stage"] = validation.delta_aprf(validation.run)
    if "leakage" in result:
        result["leakage"]["after"] = _leakage(recipe, ranker, validation)
    result["cut"] = _cut(recipe, ranker, validation)
    write_text(folder / "result.json", json_text(result))
    write_card(recipe, folder, result, validation, run)


def _with_adversary(
    recipe: Recipe, ranker: Ranker, validation: Validation, main: bool
) -> tuple[Ranker, dict[str, Any]]:
    """The ranker with the adversary that its recipe asks for, and what one finds before training."""
    wanted = recipe.adversary
    if wanted is None:
        return ranker, {}
    from evenrank.mitigation.adversarial import AdversarialRanker

    scoring = Scoring(load_lexicon(wanted.lexicon))
    both = AdversarialRanker(ranker, scoring, label=wanted.label, factor=wanted.factor, seed=recipe.training.seed)
    return both, {"leakage": {"before": _leakage(recipe, both, validation)}} if wanted.attack and main else {}


def _leakage(recipe: Recipe, ranker: Ranker, validation: Validation) -> dict[str, Any]:
    from evenrank.mitigation.adversarial import AdversarialRanker, attack

    assert isinstance(ranker, AdversarialRanker)
    found = attack(ranker.ranker, *validation.read, ranker.scoring, label=ranker.label, seed=recipe.training.seed)
    return found.as_json()


def _cut(recipe: Recipe, ranker: Ranker, validation: Validation) -> dict[str, int]:
    """How many of the validation passages are longer than the ranker reads, and how many answers it loses by that."""
    queries, passages = validation.read
    read = ranker.reads_to(queries, passages)
    counts = {"pairs": len(passages), "passages": sum(r < len(t.rstrip()) for r, t in zip(read, passages, strict=True))}
    if recipe.validation.answers is not None:
        from evenrank.io.squad import read_answers

        spans = validation.pairs.join(read_answers(recipe.validation.answers), on=["query_id", "doc_id"], how="inner")
        counts["answers"] = spans.height
        counts["answers_lost"] = ranker.lost_spans(
            spans["query"].to_list(), spans["text"].to_list(), spans["answer_end"].to_list()
        )
    return counts
