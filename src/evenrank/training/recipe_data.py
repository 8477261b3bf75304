"""The data that a recipe names: its training lists, its validation, and how texts are masked and labelled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evenrank.groups import Scoring, load_lexicon, note_lexicon
from evenrank.io import Provenance, read_qrels, read_queries, read_run
from evenrank.io.texts import scan_texts

from .fairness import scoring
from .lists import TrainingLists, build_from_file, build_lists
from .recipes import Recipe, named_as
from .validation import Validation


def write_lists(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Writes the recipe's training lists into a folder, unless they are there; returns their counts."""
    done = folder / "counts.json"
    if done.is_file():
        counts: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))
        return counts
    data = recipe.data
    queries = read_queries(data.queries)
    attributes, masked = list(_attributes(recipe).values()), _masked(recipe)
    if data.groups is not None:
        return build_from_file(data.groups, data.collection, queries, folder, attributes=attributes, masked=masked)
    assert data.run is not None
    assert data.qrels is not None
    run, qrels = read_run(data.run), read_qrels(data.qrels)
    return build_lists(
        run, qrels, data.collection, queries, folder, depth=data.depth, attributes=attributes, masked=masked
    )


def open_lists(recipe: Recipe, folder: Path) -> TrainingLists:
    """The training lists that :func:`write_lists` wrote, sampled and rotated as the recipe asks."""
    data = recipe.data
    return TrainingLists(
        folder, negatives=data.negatives, sampling=data.sampling, seed=recipe.training.seed, rotate=data.rotate
    )


def load_validation(recipe: Recipe) -> Validation:
    """The recipe's validation run, with the texts that rankers read."""
    wanted = recipe.validation
    run = read_run(wanted.run, "validation")
    validation = Validation.of(
        run,
        read_qrels(wanted.qrels),
        read_queries(wanted.queries),
        scan_texts(recipe.validated_collection, [run.table["doc_id"]]),
        measure=wanted.measure,
        depth=max((wanted.depth, *wanted.depths)),
        attributes=_attributes(recipe),
        sources=(f"the queries {wanted.queries}", f"the collection {recipe.validated_collection}"),
    )
    return replace(validation, masked=_masked(recipe))


def note_sources(recipe: Recipe) -> Provenance:
    """Everything that a training reads, noted before it is read."""
    made = Provenance("evenrank.train_recipe").add_model("model", recipe.ranker.model)
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


def _masked(recipe: Recipe) -> Scoring | None:
    if recipe.data.blind is None:
        return None
    with named_as(lexicon="data.blind"):
        return Scoring(load_lexicon(recipe.data.blind))


def _attributes(recipe: Recipe) -> dict[str, Scoring]:
    fairness = recipe.fairness
    return {attribute.name: scoring(attribute) for attribute in fairness.attributes} if fairness else {}
