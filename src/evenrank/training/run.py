"""A whole training run: from a recipe to a folder with the model, its log and its card."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

import polars as pl
import torch
from accelerate import PartialState

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    EvenrankError,
    InputError,
    Provenance,
    arg,
    check_apart,
    read_qrels,
    read_queries,
    read_run,
    scan_collection,
    write_run,
    write_text,
)
from evenrank.files.arguments import checked
from evenrank.files.json_values import json_text
from evenrank.files.texts import scan_texts
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.files.work import alone
from evenrank.groups import GroupTable, Scoring, load_lexicon, note_lexicon
from evenrank.mitigation.attributes import rows_of
from evenrank.mitigation.ibbr import best_weight
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.protocol import Ranker, config_file, ranker_class
from evenrank.models.sparse import SparseRanker
from evenrank.models.stored import (
    ENCODERS,
    UnclearKindError,
    find_model,
    load_kernel_ranker,
    states_settings,
)

from .card import Origin, audit_validation, write_card
from .choice import Choice, Validation, largest_gap
from .distil import MEASURE, DistilTrainer, TaughtTexts, Teacher, agreement, taught_texts
from .fairness import FairTerm, acted_steps, attribute_of, read_recipe_labels
from .lists import ADVERSARY, PassageGroups, TrainingLists, build_from_file, build_lists, label_lines
from .recipes import (
    PASSAGE_LENGTH,
    QUERY_LENGTH,
    AnyRecipe,
    DataRecipe,
    DistilRecipe,
    GroupsRecipe,
    RankerRecipe,
    Recipe,
    RunRecipe,
    differing_keys,
    load_recipe,
    named_as,
    to_toml,
)
from .trainer import CheckpointTrainer, Objective, RankingTrainer, cut_log, kept_random_state, read_log


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


def note_sources(recipe: AnyRecipe) -> Provenance:
    """Everything that a training reads, noted before it is read."""
    made = Provenance("evenrank.train_recipe").add_model("model", recipe.ranker.model)
    if isinstance(recipe, DistilRecipe):
        made.add_model("teacher", recipe.teacher.model)
        return made.add("collection", recipe.data.collection).add("queries", recipe.data.queries)
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
    balanced = {attribute.name: attribute_of(attribute) for attribute in attributes}
    if adversary is None or adversary.labels is None:
        return PassageGroups(balanced)
    return PassageGroups(balanced, read_recipe_labels(adversary, "adversary"), adversary.label)


def _target(recipe: Recipe, validation: Validation) -> GroupTable | None:
    """The labels of an adversary's target. Raises EvenrankError if they know no passage of the validation."""
    target = _groups(recipe).target
    if target is not None:
        rows_of(target, validation.run.table["doc_id"].unique(maintain_order=True), "validated passage")
    return target


def build_ranker(
    wanted: RankerRecipe, data: DataRecipe | None = None, seed: int = 0, *, texts: object = None
) -> Ranker:
    """The ranker that a recipe starts from; the same seed gives the same weights.

    ``cat``, ``dot`` and ``sparse`` start from the model's encoder; what its folder states, and the recipe leaves open,
    is taken from there, so that a ranker trained before is trained further (transfer). Kernel rankers start from word
    vectors: those in a file of the words of ``texts`` (a collection or a frame of one; those of ``data`` if there are
    none), or vectors trained on them. With ``map`` a ranker scores as its encoder until it is trained; with ``freeze``
    its vectors are kept in memory, and in the folder ``kept`` if there is one.

    Raises InputError for a folder without weights, and for one that cannot keep vectors; EvenrankError for ``freeze``
    with neither a map nor a projection to train.
    """
    if wanted.kind not in ENCODERS:
        if wanted.model is None:
            return _from_vectors(wanted, data, seed, texts)
        if not config_file(wanted.model).is_file():
            raise EvenrankError(f"ranker.model: {wanted.model} contains no {wanted.kind} ranker of evenrank")
        return ranker_class(wanted.kind).load(wanted.model)
    assert wanted.model is not None
    taken = settled(wanted)
    query, passage = taken.query_length, taken.passage_length
    if wanted.kind == "sparse":
        return SparseRanker.from_pretrained(wanted.model, query_length=query, passage_length=passage)
    if wanted.kind == "cat":
        length = None if query is passage is None else (query or QUERY_LENGTH) + (passage or PASSAGE_LENGTH)
        return CatRanker.from_pretrained(wanted.model, layers=wanted.layers, max_length=length, seed=seed)
    ranker = DotRanker.from_pretrained(
        wanted.model,
        shared=wanted.towers == "shared",
        pooling=taken.pooling,
        projection=wanted.dimensions,
        similarity=taken.similarity,
        layers=wanted.layers,
        seed=seed,
        map=wanted.map,
        query_length=query,
        passage_length=passage,
    )
    if wanted.freeze is not None:
        with named_as(freeze="ranker.freeze", map="ranker.map", dimensions="ranker.dimensions"):
            ranker.freeze_encoder()
        ranker.keep_vectors(wanted.kept)
    return ranker


def _states(wanted: RankerRecipe) -> bool:
    """Whether the folder of a recipe's model states settings of its own; a SPLADE model's always says what it reads."""
    if wanted.model is None or wanted.kind not in ENCODERS:
        return False
    return wanted.kind == "sparse" or states_settings(wanted.model, ENCODERS[wanted.kind])


def settled(wanted: RankerRecipe) -> RankerRecipe:
    """A recipe with every default, but for what the folder of its model states."""
    return wanted if _states(wanted) else wanted.with_defaults()


def continues(wanted: RankerRecipe) -> bool:
    """Whether a recipe continues the training of a ranker, rather than that of an encoder or of nothing."""
    if wanted.model is None or wanted.kind not in ENCODERS:
        return wanted.model is not None
    return (Path(wanted.model).parent / "result.json").is_file() and _states(wanted)


def ranker_at(model: str) -> Ranker:
    """A ranker trained before: its folder, or a folder or hub name that sentence-transformers loads.

    Raises InputError or EvenrankError for a model that cannot be used.
    """
    try:
        found = find_model(model)
    except UnclearKindError as error:
        new = 'a new ranker on it is RankerRecipe(kind="dot", model=…), or kind="cat"'
        raise InputError(error.path, f"no ranker that was trained before: {new}") from None
    if found.architecture == "kernel":
        return load_kernel_ranker(found)
    kind = next((kind for kind, architecture in ENCODERS.items() if architecture == found.architecture), None)
    if kind is None:
        raise InputError(found.path, "cannot be trained further: expected a cross-, bi- or sparse encoder")
    return ranker_class(kind).load(model)


def _from_vectors(wanted: RankerRecipe, data: DataRecipe | None, seed: int, texts: object) -> Ranker:
    from evenrank.models.vocabulary import collection_vectors, file_vectors
    from evenrank.models.word_rankers import WordRanker

    if texts is None and data is None:
        raise EvenrankError(f"`ranker`: a {wanted.kind} ranker needs a model (a folder of one)")
    if wanted.vectors == "train":
        collection = data.collection if texts is None and data is not None else texts
        vectors = collection_vectors(collection, dimensions=wanted.vector_size, seed=seed)
    else:
        words = (data.collection, read_queries(data.queries)) if texts is None and data is not None else (texts,)
        vectors = file_vectors(wanted.vectors, *words)
    kind = ranker_class(wanted.kind)
    if not issubclass(kind, WordRanker):
        raise EvenrankError(f"ranker.model: a {wanted.kind} ranker needs one (a folder)")
    known = wanted.with_defaults().model_dump(include={"query_length", "passage_length"})
    settings = known | wanted.settings
    return kind.from_vectors(vectors, settings, seed)


_LIBRARIES = ("torch", "transformers", "sentence-transformers", "accelerate", "safetensors", "polars", "numpy")
_BEFORE_A_CHECKPOINT = ("recipe.toml", "versions.json", "log.jsonl", "groups", "checkpoints")
"""What a run writes before its first checkpoint."""
_OURS = ".evenrank-run"
"""Marks a folder that a training began to write: nothing is removed from any other."""
_WEIGHTS = ("without", "weight-*")


def check_folder(recipe: RunRecipe, resume: bool) -> None:
    """Raises EvenrankError if a run cannot start, or cannot be resumed, in the recipe's folder."""
    folder = recipe.folder
    kept = folder / "recipe.toml"
    if resume:
        if not kept.is_file():
            raise EvenrankError(f"{folder}: there is no run to resume")
        differing = differing_keys(load_recipe(kept), recipe)
        if differing:
            raise EvenrankError(
                f"{folder}: this run was started with another recipe ({', '.join(differing)}); resume with {kept}"
            )
    elif kept.is_file() and _has_begun(folder):
        raise EvenrankError(
            f"{folder}: there is a run already ({arg('resume', True)} continues it;"
            f" {arg('settings', 'out=…')} starts another)"
        )


def is_finished(folder: Path) -> bool:
    """Whether a run has ended: the result is written last. A run whose model was removed can write it again."""
    return (folder / "result.json").is_file() and (folder / "model").is_dir()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint (the trainer's state is written last)."""
    found = [path for path in (folder / "checkpoints").glob("checkpoint-*") if _is_whole(path / "trainer_state.json")]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


@contextmanager
def run_folder(recipe: RunRecipe, *, resume: bool, main: bool) -> Iterator[None]:
    """A run's folder, made and locked by the ``main`` process while the block runs.

    Files of a killed run without a checkpoint are removed first; those of this run are removed if the block fails
    before its first checkpoint, so that a corrected command can start. Raises EvenrankError if another process of this
    machine trains in the folder, or if it contains files with a run's names that no training wrote.
    """
    if not main:
        yield
        return
    folder = recipe.folder
    with alone(folder):
        check_folder(recipe, resume)
        if not resume:
            _make_room(folder)
        try:
            write_text(folder / _OURS, "")
            write_text(folder / "recipe.toml", origin_of(recipe).settings)
            versions = {"evenrank": __version__, "python": platform.python_version()}
            versions |= {name: version(name) for name in _LIBRARIES}
            write_text(folder / "versions.json", json_text(versions))
            yield
        except BaseException:
            if not resume and not _has_begun(folder):
                _clear(folder)
            raise


def _has_begun(folder: Path) -> bool:
    """Whether there is something to resume, in the folder or, for several weights, in one of theirs."""
    there = (folder / "result.json").is_file() or last_checkpoint(folder) is not None
    return there or any(map(_has_begun, _trainings_within(folder)))


def _trainings_within(folder: Path) -> list[Path]:
    return [path.parent for name in _WEIGHTS for path in folder.glob(f"{name}/recipe.toml")]


def _make_room(folder: Path) -> None:
    """Removes what a killed run left. Raises EvenrankError for files with a run's names that no training wrote."""
    if (folder / _OURS).is_file():
        _clear(folder)
        return
    foreign = next((name for name in _BEFORE_A_CHECKPOINT if (folder / name).exists()), None)
    if foreign is not None:
        raise EvenrankError(
            f"{folder}: there is a {foreign} that no training wrote; {arg('settings', 'out=…')} chooses another folder"
        )


def _clear(folder: Path) -> None:
    for within in _trainings_within(folder):
        if (within / _OURS).is_file():
            _clear(within)
            with suppress(OSError):
                within.rmdir()
    for path in (folder / name for name in (*_BEFORE_A_CHECKPOINT, _OURS)):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_whole(state: Path) -> bool:
    try:
        json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def finish(
    trainer: RankingTrainer,
    origin: Origin,
    known: Mapping[str, Any],
    made: Provenance,
    *,
    depths: Sequence[int] = (),
    collection: str | None = None,
    answers: str | None = None,
) -> None:
    """Writes what a finished training leaves: the model with its card, ``result.json``, the validation run, its audit.

    ``known``: what is already known of its result; ``depths``: re-ranking depths to choose from; ``collection``,
    ``answers``: those of the validation.
    """
    folder, ranker, validation = trainer.folder, trainer.ranker, trainer.validation
    ranker.eval()
    ranker.save(folder / "model")
    audited = None
    result: dict[str, Any] = {
        "steps": trainer.state.global_step,
        "best_checkpoint": Path(trainer.state.best_model_checkpoint or "").name,
        **known,
    }
    if trainer.fair is not None:
        result["fair_steps"] = acted_steps(read_log(folder / "log.jsonl"), trainer.fair.names)
    if validation is not None:
        scores = validation.scores(ranker)
        depth, value = validation.best_depth(scores, depths or (trainer.depth,))
        run = validation.reranked(scores, depth, origin.name)
        write_run(run, folder / "validation.run")
        queries, p = validation.tested(run)
        figures = {"measure": validation.measure, "first_stage": validation.value(validation.run), "value": value}
        result = figures | {"depth": depth, "queries": queries, "p": p} | result
        if trainer.fair is not None:
            result["delta_aprf"] = validation.delta_aprf(run)
            result["delta_aprf_first_stage"] = validation.delta_aprf(validation.run)
        if labels := known_by_labels(known.get("groups"), validation):
            result["labels"] = labels
        if "leakage" in known:
            after = leakage(ranker, validation, trainer.settings.seed)
            result["leakage"] = {**known["leakage"], "after": after}
        result["cut"] = _cut(ranker, validation, answers)
        audited = audit_validation(origin.name, validation, run, made, folder, collection)
    labelled = validation is not None and any(one.labelled for one in validation.tables)
    write_card(origin, folder, result, made, audited, labelled=labelled)
    # Last: it marks the run as finished.
    write_text(folder / "result.json", json_text(result | {"provenance": made.to_dict()}))


def origin_of(recipe: RunRecipe) -> Origin:
    """What the card of a recipe's model says that it was made from; its settings are those of ``recipe.toml``."""
    written = to_toml(recipe.model_copy(update={"ranker": settled(recipe.ranker)}))
    return Origin(recipe.name, recipe.ranker.kind, recipe.ranker.model, written)


def settings_of(ranker: Ranker) -> dict[str, str]:
    """What a ranker reads, and what of its folder its settings have replaced, for the result; nothing if unknown."""
    return {name: text for name in ("reads", "replaced") if (text := getattr(ranker, name, ""))}


def known_by_labels(counts: Mapping[str, int] | None, validation: Validation) -> dict[str, dict[str, int]]:
    """For each attribute with labels, how many passages of the lists and documents of the validation have one."""
    if counts is None:
        return {}
    tables = dict(validation.attributes)
    if validation.target is not None:
        tables[ADVERSARY] = validation.target
    documents = validation.run.table["doc_id"].unique()
    found = {}
    for name, labels in tables.items():
        if labels.labelled:
            found[name] = {
                "passages": counts["passages"],
                "known": counts[f"known_{name}"],
                "relevant": counts["relevant"],
                "known_relevant": counts[f"known_relevant_{name}"],
                "validated": len(documents),
                "known_validated": int(documents.is_in(labels.table["doc_id"].implode()).sum()),
            }
    return found


def base_value(trainer: RankingTrainer, depths: Sequence[int]) -> float:
    """The validation measure of the ranker that a training is to continue from, found as that of the trained one is."""
    validation = trainer.validation
    assert validation is not None
    scores = validation.scores(trainer.ranker)
    return validation.best_depth(scores, depths or (trainer.depth,))[1]


def with_adversary(
    recipe: Recipe, ranker: Ranker, validation: Validation, main: bool
) -> tuple[Ranker, dict[str, object]]:
    """The ranker with the adversary that its recipe asks for, and what a fresh one finds before training."""
    wanted = recipe.adversary
    if wanted is None:
        return ranker, {}
    from .adversarial import AdversarialRanker

    scoring = None
    if wanted.lexicon is not None:
        with named_as(lexicon="adversary.lexicon"):
            scoring = Scoring(load_lexicon(wanted.lexicon))
    both = AdversarialRanker(
        ranker, scoring, label=wanted.label, vector=wanted.vector, factor=wanted.factor, seed=recipe.training.seed
    )
    before = {"before": leakage(both, validation, recipe.training.seed)} if wanted.attack and main else {}
    return both, {"leakage": before} if before else {}


def leakage(ranker: Ranker, validation: Validation, seed: int) -> dict[str, object]:
    """How well a fresh adversary tells gendered pairs of the validation run."""
    from .adversarial import AdversarialRanker, attack, gendered_by_label

    assert isinstance(ranker, AdversarialRanker)
    known: Scoring | Array | None = ranker.scoring
    if known is None:
        assert validation.target is not None
        known = gendered_by_label(validation.pairs["doc_id"], validation.target, ranker.label)
    found = attack(
        ranker.ranker,
        *validation.read,
        known,
        label=ranker.label,
        vector=ranker.vector,
        seed=seed,
    )
    return {**asdict(found)}


def _cut(ranker: Ranker, validation: Validation, answers: str | None) -> dict[str, int]:
    """How many validation passages are longer than the ranker reads, and how many answers are lost by that."""
    queries, passages = validation.read
    read = ranker.reads_to(queries, passages)
    counts = {"pairs": len(passages), "passages": sum(r < len(t.rstrip()) for r, t in zip(read, passages, strict=True))}
    if answers is not None:
        from evenrank.files.squad import load_squad

        found = load_squad(answers)
        spans = validation.pairs.join(found.answers(), on=["query_id", "doc_id"], how="inner")
        counts["answers"] = spans.height
        counts["answers_realigned"] = found.alignment.realigned
        counts["answers_left_out"] = len(found.alignment.left_out)
        counts["answers_lost"] = ranker.lost_spans(
            spans["query"].to_list(), spans["text"].to_list(), spans["answer_end"].to_list()
        )
    return counts


_FILES = ("recipe.toml", "versions.json", "log.jsonl", "validation.run", "audit.json", "result.json", "grid.json")
_MODEL = "model/README.md"
"""Stands for the model's folder."""


@checked
def train_recipe(
    recipe: Annotated[
        AnyRecipe | opt.File, opt.Option("A TOML file, or the name of a built-in recipe.", metavar="RECIPE")
    ],
    *,
    settings: Annotated[
        Sequence[str],
        opt.Option(
            "Override the recipe: training.batch=16; data.run= removes a key.",
            flag="--set",
            metavar="KEY=VALUE",
            typed=list,
        ),
    ] = (),
    resume: Annotated[bool, opt.Option("Resume an interrupted run.")] = False,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Train a ranker from a recipe. The run's folder contains the model, its log and its model card.

    Returns the folder.

    ``recipe``: a TOML file, the name of a shipped recipe (both with ``settings`` as in :func:`load_recipe`), or a
    :class:`Recipe` or :class:`DistilRecipe`. ``say`` is called with lines of progress.

    The folder contains ``recipe.toml`` (with every default), ``versions.json``, ``log.jsonl``, ``checkpoints/``,
    ``model/`` (of the checkpoint that ``training.keep`` chooses), ``validation.run``, ``result.json`` and
    ``model/README.md``, the model card with an audit of the validation run. ``resume`` continues an interrupted run
    from its last checkpoint, to the same result; a finished run is left unchanged. A run that fails before its first
    checkpoint leaves nothing.

    With several numbers as ``fairness.weight``, each is trained in its own folder, and one ``without``; the best by
    :func:`best_weight` (on the validation measure and the largest |ΔA-PRF|) becomes the run's model; ``grid.json`` has
    the figures of all.

    With a ``teacher`` the ranker learns the vectors of a larger encoder on texts without labels; there is no
    ``validation.run`` and no audit then.

    Raises EvenrankError for a recipe that is wrong, and for a run that exists already or was made by another recipe;
    InputError for a damaged checkpoint.
    """
    if not isinstance(recipe, RunRecipe):
        recipe = load_recipe(recipe, settings)
    if not resume:
        check_apart((recipe.folder / name for name in (*_FILES, _MODEL)), _read_files(recipe))
    if isinstance(recipe, DistilRecipe):
        return _distil(recipe, resume=resume, say=say)
    if recipe.fairness is not None and isinstance(recipe.fairness.weight, tuple):
        return _train_grid(recipe, recipe.fairness.weight, resume=resume, say=say)
    return _train_one(recipe, resume=resume, say=say)


def _read_files(recipe: AnyRecipe) -> list[str | None]:
    """The files and folders that a training reads, which it must not write over."""
    began = [recipe.ranker.model, recipe.ranker.vectors]
    if isinstance(recipe, DistilRecipe):
        return [*began, recipe.teacher.model, recipe.data.collection, recipe.data.queries]
    data, validation = recipe.data, recipe.validation
    read = (data.collection, data.queries, data.qrels, data.run, data.groups)
    judged = (validation.collection, validation.queries, validation.qrels, validation.run, validation.answers)
    return [*read, *judged, *began, *label_files(recipe)]


def largest_bias(result: Mapping[str, Mapping[str, float | None]]) -> float:
    """The largest validation |ΔA-PRF| over the attributes of a ``result.json``; NaN if one is unknown."""
    return largest_gap(result.get("delta_aprf", {}))


def _in_folder(recipe: RunRecipe, resume: bool, prepare: Callable[[], Callable[[], None]]) -> Path:
    """The folder of a run, in which what ``prepare`` returns trains, unless it has ended.

    ``prepare`` needs no folder: most mistakes are found before there is one.
    """
    folder = recipe.folder
    state = PartialState(cpu=not torch.cuda.is_available())
    check_folder(recipe, resume)
    if resume and is_finished(folder):
        return folder
    train = prepare()
    # No process makes the folder before all have checked it.
    state.wait_for_everyone()
    with kept_random_state(), run_folder(recipe, resume=resume, main=state.is_main_process):
        train()
    # No process reports success before the model is there.
    state.wait_for_everyone()
    return folder


def _train_grid(recipe: Recipe, weights: tuple[float, ...], *, resume: bool, say: Callable[[str], None]) -> Path:
    train = partial(_train_weights, recipe, weights, resume=resume, say=say)
    return _in_folder(recipe, resume, lambda: train)


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
    def prepare() -> Callable[[], None]:
        state = PartialState()
        made = note_sources(recipe).ahead(state.is_main_process)
        ranker = build_ranker(recipe.ranker, recipe.data, recipe.training.seed)
        validation = load_validation(recipe)

        def train() -> None:
            lists = recipe.folder / "groups"
            if state.is_main_process:
                write_lists(recipe, lists)
            # One of several processes writes the lists, and the others read them.
            state.wait_for_everyone()
            _train_in(recipe, ranker, validation, write_lists(recipe, lists), made, resume=resume, say=say)

        return train

    return _in_folder(recipe, resume, prepare)


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
    replaced = settings_of(ranker)
    ranker, leakage = with_adversary(recipe, ranker, validation, main)
    fair = None if recipe.fairness is None else FairTerm.of_recipe(recipe.fairness)
    adversary_weight = 0.0 if recipe.adversary is None else recipe.adversary.weight
    objective = Objective(recipe.loss.name, fair, adversary_weight, recipe.loss.scale, recipe.loss.in_batch)
    trainer = RankingTrainer(
        ranker, lists, objective, recipe.training, folder, validation, depth=recipe.validation.depth
    )
    base: dict[str, object] = {}
    if main and continues(recipe.ranker) and (fair is not None or recipe.adversary is not None):
        base = {"base": base_value(trainer, recipe.validation.depths)}
    choice = _trained(trainer, recipe, resume=resume, say=say)
    if main:
        finish(
            trainer,
            origin_of(recipe),
            {"groups": counts, "checkpoint": asdict(choice)} | base | leakage | replaced,
            made,
            depths=recipe.validation.depths,
            collection=recipe.validated_collection,
            answers=recipe.validation.answers,
        )


def _trained(trainer: CheckpointTrainer, recipe: RunRecipe, *, resume: bool, say: Callable[[str], None]) -> Choice:
    """Trains from the last checkpoint or from the start; which checkpoint is kept."""
    last = last_checkpoint(recipe.folder) if resume else None
    # The progress bar writes the log beside itself, on standard output.
    with contextlib.redirect_stdout(sys.stderr):
        if last is not None:
            trainer.resume(last)
        else:
            if trainer.is_world_process_zero():
                cut_log(recipe.folder / "log.jsonl", 0)
            trainer.train()
    choice = trainer.conclude()
    if trainer.is_world_process_zero():
        say(f"{recipe.name}: kept the checkpoint of {choice.why}")
    return choice


def _distil(recipe: DistilRecipe, *, resume: bool, say: Callable[[str], None]) -> Path:
    def prepare() -> Callable[[], None]:
        made = note_sources(recipe).ahead(PartialState().is_main_process)
        taught = _taught(recipe)
        # A ranker that was trained before has its layer already.
        layer = {} if continues(recipe.ranker) else {"dimensions": taught.vectors.shape[1]}
        ranker = build_ranker(recipe.ranker.model_copy(update=layer), seed=recipe.training.seed)
        assert isinstance(ranker, DotRanker)
        found = ranker.model.get_embedding_dimension()
        if found != taught.vectors.shape[1]:
            raise EvenrankError(
                f"ranker.model: expected vectors of {taught.vectors.shape[1]} numbers, as the teacher's, found {found}"
            )
        return partial(_distil_in, recipe, ranker, taught, made, resume=resume, say=say)

    return _in_folder(recipe, resume, prepare)


def _taught(recipe: DistilRecipe) -> TaughtTexts:
    """The texts of a recipe with their teacher's vectors."""
    documents = pl.concat([batch["text"] for batch in scan_collection(recipe.data.collection)])
    queries = None if recipe.data.queries is None else read_queries(recipe.data.queries)["text"]
    return taught_texts(Teacher(recipe.teacher), documents, queries)


def _distil_in(
    recipe: DistilRecipe,
    ranker: DotRanker,
    taught: TaughtTexts,
    made: Provenance,
    *,
    resume: bool,
    say: Callable[[str], None],
) -> None:
    folder = recipe.folder
    learned, held_out = taught.split(recipe.data.held_out, recipe.training.seed)
    before = agreement(ranker, held_out)
    trainer = DistilTrainer(ranker, learned, held_out, recipe.teacher, recipe.training, folder)
    if trainer.is_world_process_zero():
        say(f"{counted(len(learned), 'text')} to learn from, {len(held_out):,} held out")
    choice = _trained(trainer, recipe, resume=resume, say=say)
    if not trainer.is_world_process_zero():
        return
    ranker.eval()
    ranker.save(folder / "model")
    result: dict[str, object] = {
        "teacher": recipe.teacher.model,
        "measure": MEASURE,
        "value": agreement(ranker, held_out),
        "before": before,
        "texts": len(learned),
        "held_out": len(held_out),
        "steps": trainer.state.global_step,
        "best_checkpoint": Path(trainer.state.best_model_checkpoint or "").name,
        "checkpoint": asdict(choice),
    } | settings_of(ranker)
    write_card(origin_of(recipe), folder, result, made)
    # Last: it marks the run as finished.
    write_text(folder / "result.json", json_text(result | {"provenance": made.to_dict()}))
