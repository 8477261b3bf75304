"""The data that a recipe names: its training lists, its validation, and how texts are masked and labelled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evenrank.groups import GroupTable, Scoring, load_lexicon, note_lexicon
from evenrank.io import Provenance, read_qrels, read_queries, read_run
from evenrank.io.texts import scan_texts
from evenrank.mitigation.attributes import rows_of

from .fairness import attribute_of, read_recipe_labels
from .lists import TrainingLists, build_from_file, build_lists
from .passage_groups import PassageGroups
from .recipes import GroupsRecipe, Recipe, named_as
from .validation import Validation


def write_lists(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Writes the recipe's training lists into a folder, unless they are there; returns their counts."""
    done = folder / "counts.json"
    if done.is_file():
        counts: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))
        return counts
    data = recipe.data
    queries = read_queries(data.queries)
    groups, masked = _groups(recipe), _masked(recipe)
    if data.groups is not None:
        return build_from_file(data.groups, data.collection, queries, folder, groups=groups, masked=masked)
    assert data.run is not None
    assert data.qrels is not None
    run, qrels = read_run(data.run), read_qrels(data.qrels)
    return build_lists(run, qrels, data.collection, queries, folder, depth=data.depth, groups=groups, masked=masked)


def open_lists(recipe: Recipe, folder: Path) -> TrainingLists:
    """The training lists that :func:`write_lists` wrote, sampled and rotated as the recipe asks."""
    data = recipe.data
    return TrainingLists(
        folder, negatives=data.negatives, sampling=data.sampling, seed=recipe.training.seed, rotate=data.rotate
    )


def load_validation(recipe: Recipe) -> Validation:
    """The recipe's validation run, with the texts that rankers read."""
    wanted = recipe.validation
    run = read_run(wanted.run, name="validation")
    validation = Validation.of(
        run,
        read_qrels(wanted.qrels),
        read_queries(wanted.queries),
        scan_texts(recipe.validated_collection, [run.table["doc_id"]]),
        measure=wanted.measure,
        depth=max((wanted.depth, *wanted.depths)),
        attributes=_groups(recipe).attributes,
        sources=(f"the queries {wanted.queries}", f"the collection {recipe.validated_collection}"),
    )
    return replace(validation, masked=_masked(recipe), target=_target(recipe, validation))


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
    for part in _parts(recipe):
        made.add("labels", part.labels)
    lexicons = [part.lexicon for part in _parts(recipe)] + [data.blind]
    for lexicon in dict.fromkeys(lexicons):
        note_lexicon(made, lexicon)
    return made


def _masked(recipe: Recipe) -> Scoring | None:
    if recipe.data.blind is None:
        return None
    with named_as(lexicon="data.blind"):
        return Scoring(load_lexicon(recipe.data.blind))


def label_files(recipe: Recipe) -> list[str]:
    """The files of labels that a recipe names."""
    return [part.labels for part in _parts(recipe) if part.labels is not None]


def _parts(recipe: Recipe) -> list[GroupsRecipe]:
    """The parts of a recipe that name a lexicon or labels."""
    attributes = recipe.fairness.attributes if recipe.fairness else ()
    return [*attributes, *([recipe.adversary] if recipe.adversary else [])]


def _groups(recipe: Recipe) -> PassageGroups:
    attributes = recipe.fairness.attributes if recipe.fairness else ()
    adversary = recipe.adversary
    balanced = {one.name: attribute_of(one) for one in attributes}
    if adversary is None or adversary.labels is None:
        return PassageGroups(balanced)
    return PassageGroups(balanced, read_recipe_labels(adversary, "adversary"), adversary.label)


def _target(recipe: Recipe, validation: Validation) -> GroupTable | None:
    """The labels of an adversary's target. Raises EvenrankError if they know no passage of the validation."""
    target = _groups(recipe).target
    if target is not None:
        rows_of(target, validation.run.table["doc_id"].unique(maintain_order=True), "validated passage")
    return target
