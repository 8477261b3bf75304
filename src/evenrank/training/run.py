"""A whole training run: from a recipe to a folder with the model, its log and its card."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState

from evenrank._wording import counted
from evenrank.groups import Scoring, load_lexicon, note_lexicon
from evenrank.io import Provenance, check_apart, read_qrels, read_queries, read_run, write_run, write_text
from evenrank.io.texts import scan_texts
from evenrank.io.written import json_text
from evenrank.mitigation.ibbr import best_weight
from evenrank.rankers.protocol import Ranker

from .build import build_ranker
from .fairness import scoring
from .groups import QueryGroupSet, build_from_file, build_groups
from .recipes import Recipe, named_as
from .run_folder import check_folder, is_finished, last_checkpoint, run_folder
from .trainer import RankingTrainer, cut_log
from .validation import Validation

_FILES = ("recipe.toml", "versions.json", "log.jsonl", "validation.run", "audit.json", "result.json", "grid.json")
_MODEL = "model/README.md"
"""Of the model's folder, for what lies in it."""


def train(recipe: Recipe, *, resume: bool = False, say: Callable[[str], None] = lambda _: None) -> Path:
    """Trains as a recipe says and returns the run's folder.

    The folder holds ``recipe.toml`` (every default written out), ``versions.json``, ``log.jsonl``, ``checkpoints/``,
    ``model/`` (the best one by validation), ``validation.run``, ``result.json`` and ``model/README.md``, the model card
    with an audit of the validation run. ``resume`` goes on from the last checkpoint of an interrupted run, to the same
    end; a finished one stays as it is. A run that fails before its first checkpoint leaves nothing.
    Raises EvenrankError for a run that is there already, or that another recipe made, and InputError for a checkpoint
    that is damaged.

    With several numbers as ``fairness.weight``, each is trained in a folder of its own, beside one ``without``, and the
    best by :func:`best_weight` (on the validation measure and the largest |ΔA-PRF|) becomes the run's model;
    ``grid.json`` holds the figures of all.
    """
    if not resume:
        data, validation = recipe.data, recipe.validation
        read = (data.collection, data.queries, data.qrels, data.run, data.groups)
        judged = (validation.collection, validation.queries, validation.qrels, validation.run, validation.answers)
        began = (recipe.ranker.model, recipe.ranker.vectors)
        check_apart((recipe.folder / name for name in (*_FILES, _MODEL)), (*read, *judged, *began))
    if recipe.fairness is not None and isinstance(recipe.fairness.weight, tuple):
        return _train_grid(recipe, recipe.fairness.weight, resume=resume, say=say)
    return _train_one(recipe, resume=resume, say=say)


def largest_bias(result: Mapping[str, Any]) -> float:
    """The largest validation |ΔA-PRF| over the attributes of a ``result.json``; NaN where one is not known."""
    values = [math.nan if value is None else abs(value) for value in result.get("delta_aprf", {}).values()]
    return float(np.max(values)) if values else math.nan


def _train_grid(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> Path:
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    check_folder(recipe, resume)
    if resume and is_finished(folder):
        return folder
    # No process makes the folder before all have looked.
    state.wait_for_everyone()
    with run_folder(recipe, resume=resume, main=state.is_main_process):
        _train_weights(recipe, weights, resume=resume, say=say)
    # No process says that it is done before the model is there.
    state.wait_for_everyone()
    return folder


def _train_weights(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> None:
    assert recipe.fairness is not None
    folder = recipe.folder
    rows: list[dict[str, Any]] = []
    for weight in (0.0, *weights):
        name = f"weight-{weight:g}" if weight else "without"
        fairness = recipe.fairness.model_copy(update={"weight": weight})
        one = recipe.model_copy(update={"name": name, "out": str(folder / name), "fairness": fairness})
        say(f"{recipe.name}: {name}")
        if not is_finished(one.folder):
            _train_one(one, resume=resume and (one.folder / "recipe.toml").is_file(), say=say)
        result = json.loads((one.folder / "result.json").read_text(encoding="utf-8"))
        bias = largest_bias(result)
        rows.append({"name": name, "weight": weight, "value": result["value"], "abs_delta_aprf": bias})
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
    made = _sources(recipe).ahead(state.is_main_process)
    # What needs no folder first: most mistakes are found before there is one.
    ranker = build_ranker(recipe)
    validation = _validation(recipe)
    # No process makes the folder before all have looked.
    state.wait_for_everyone()
    with run_folder(recipe, resume=resume, main=state.is_main_process):
        if state.is_main_process:
            _groups(recipe, folder / "groups")
        # With several processes one makes the groups, and the others read them.
        state.wait_for_everyone()
        counts = _groups(recipe, folder / "groups")
        _train_in(recipe, ranker, validation, counts, made, resume=resume, say=say)
    # No process says that it is done before the model is there.
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
        say(counted(counts["queries"], "query") + without)
    groups = QueryGroupSet(
        folder / "groups",
        negatives=recipe.data.negatives,
        sampling=recipe.data.sampling,
        seed=recipe.training.seed,
        rotate=recipe.data.rotate,
    )
    ranker, leakage = _with_adversary(recipe, ranker, validation, main)
    trainer = RankingTrainer(ranker, recipe, groups, validation)
    last = last_checkpoint(folder) if resume else None
    # The progress bar writes the log beside itself, on standard output.
    with contextlib.redirect_stdout(sys.stderr):
        if last is not None:
            trainer.resume(last)
        else:
            if main:
                cut_log(folder / "log.jsonl", 0)
            trainer.train()
    if trainer.is_world_process_zero():
        _finish(recipe, folder, ranker, validation, trainer, {"groups": counts} | leakage, made)


def _sources(recipe: Recipe) -> Provenance:
    """All that a training reads, noted before it does."""
    made = Provenance("evenrank.training.run.train").add_model("model", recipe.ranker.model)
    data, validation = recipe.data, recipe.validation
    for role in ("collection", "queries", "qrels", "run", "groups"):
        made.add(role, getattr(data, role))
    for role in ("collection", "queries", "qrels", "run", "answers"):
        made.add(f"validation {role}", getattr(validation, role))
    if recipe.ranker.vectors != "train":
        made.add("vectors", recipe.ranker.vectors, tree=True)
    lexicons = [attribute.lexicon for attribute in recipe.fairness.attributes] if recipe.fairness else []
    lexicons += [recipe.adversary.lexicon] if recipe.adversary else []
    for lexicon in dict.fromkeys([*lexicons, *([data.blind] if data.blind else [])]):
        note_lexicon(made, lexicon)
    return made


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
    return Validation.of(
        run,
        read_qrels(wanted.qrels),
        read_queries(wanted.queries),
        scan_texts(recipe.validated_collection, [run.table["doc_id"]]),
        measure=wanted.measure,
        depth=max((wanted.depth, *wanted.depths)),
        attributes=_attributes(recipe),
        masked=_masked(recipe),
        sources=(f"the queries {wanted.queries}", f"the collection {recipe.validated_collection}"),
    )


def _masked(recipe: Recipe) -> Scoring | None:
    if recipe.data.blind is None:
        return None
    with named_as(lexicon="data.blind"):
        return Scoring(load_lexicon(recipe.data.blind))


def _attributes(recipe: Recipe) -> dict[str, Scoring]:
    fairness = recipe.fairness
    return {attribute.name: scoring(attribute) for attribute in fairness.attributes} if fairness else {}


def _finish(
    recipe: Recipe,
    folder: Path,
    ranker: Ranker,
    validation: Validation,
    trainer: Any,
    known: dict[str, Any],
    made: Provenance,
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
    write_card(recipe, folder, result, validation, run, made)
    # Last: it says that the run is finished.
    write_text(folder / "result.json", json_text(result | {"provenance": made.to_dict()}))


def _with_adversary(
    recipe: Recipe, ranker: Ranker, validation: Validation, main: bool
) -> tuple[Ranker, dict[str, Any]]:
    """The ranker with the adversary that its recipe asks for, and what one finds before training."""
    wanted = recipe.adversary
    if wanted is None:
        return ranker, {}
    from evenrank.mitigation.adversarial import AdversarialRanker

    with named_as(lexicon="adversary.lexicon"):
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
        from evenrank.io.squad import load_squad

        found = load_squad(recipe.validation.answers)
        spans = validation.pairs.join(found.answers(), on=["query_id", "doc_id"], how="inner")
        counts["answers"] = spans.height
        counts["answers_realigned"] = found.placed.moved + found.placed.unplaced
        counts["answers_left_out"] = len(found.placed.left_out)
        counts["answers_lost"] = ranker.lost_spans(
            spans["query"].to_list(), spans["text"].to_list(), spans["answer_end"].to_list()
        )
    return counts
