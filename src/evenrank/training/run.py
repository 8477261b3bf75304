"""A whole training run: from a recipe to a folder with the model, its log and its card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import torch
from accelerate import PartialState

from evenrank import options as opt
from evenrank._command import spelled
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
from evenrank.groups import Scoring, load_lexicon, note_lexicon
from evenrank.mitigation.attributes import rows_of
from evenrank.mitigation.ibbr import best_weight
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.load import (
    ENCODERS,
    UnclearKindError,
    find_model,
    load_kernel_ranker,
    states_settings,
)
from evenrank.models.protocol import Ranker, config_file, ranker_class
from evenrank.models.sparse import SparseRanker

from .adversarial import AdversarialRanker, attack, gendered_by_label
from .card import Origin, audit_validation, write_card
from .choice import Choice, Validation, largest_gap
from .distil import MEASURE, DistilTrainer, agreement, taught_texts
from .fairness import FairTerm, acted_steps, attribute_of, read_recipe_labels
from .lists import ADVERSARY, PassageGroups, TrainingLists, build_from_file, build_lists, label_lines
from .recipes import (
    PASSAGE_LENGTH,
    QUERY_LENGTH,
    AnyRecipe,
    DataRecipe,
    DistilRecipe,
    FairnessRecipe,
    GroupsRecipe,
    RankerRecipe,
    Recipe,
    RunRecipe,
    differing_keys,
    load_recipe,
    to_toml,
)
from .trainer import STATE, CheckpointTrainer, Objective, RankingTrainer, kept_random_state, read_log


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


def load_validation(recipe: Recipe) -> Validation:
    """The recipe's validation run, with the texts that rankers read."""
    wanted, groups = recipe.validation, _groups(recipe)
    run = read_run(wanted.run, name="validation")
    validation = Validation.of(
        run,
        read_qrels(wanted.qrels),
        read_queries(wanted.queries),
        scan_texts(recipe.validated_collection, [run.table["doc_id"]]),
        measure=wanted.measure,
        depth=max((wanted.depth, *wanted.depths)),
        attributes=groups.attributes,
        sources=(f"the queries {wanted.queries}", f"the collection {recipe.validated_collection}"),
    )
    if groups.target is not None:
        # Labels that know no passage of the validation are refused.
        rows_of(groups.target, validation.run.table["doc_id"].unique(maintain_order=True), "validated passage")
    return replace(validation, masked=_masked(recipe), target=groups.target)


def sources_of(recipe: AnyRecipe) -> list[tuple[str, str | None]]:
    """The files, folders and models that a training reads, each after its role; not its lexicons."""
    ranker = recipe.ranker
    vectors = None if ranker.vectors == "train" else ranker.vectors
    if isinstance(recipe, DistilRecipe):
        teacher, texts = recipe.teacher.model, recipe.data
        read = [("model", ranker.model), ("teacher", teacher), ("collection", texts.collection)]
        return [*read, ("queries", texts.queries)]
    data, validation = recipe.data, recipe.validation
    return [
        ("model", ranker.model),
        *((role, getattr(data, role)) for role in ("collection", "queries", "qrels", "run", "groups")),
        *((f"validation {role}", getattr(validation, role)) for role in ("collection", "queries", "qrels", "run")),
        ("vectors", vectors),
        *(("labels", part.labels) for part in _parts(recipe)),
    ]


def note_sources(recipe: AnyRecipe) -> Provenance:
    """Everything that a training reads, noted before it is read."""
    provenance = Provenance("evenrank.train_recipe")
    for role, path in sources_of(recipe):
        if role in ("model", "teacher"):
            provenance.add_model(role, path)
        else:
            provenance.add(role, path, tree=role == "vectors")
    if isinstance(recipe, Recipe):
        lexicons = [part.lexicon for part in _parts(recipe)] + [recipe.data.blind]
        for lexicon in dict.fromkeys(lexicons):
            note_lexicon(provenance, lexicon)
    return provenance


def _masked(recipe: Recipe) -> Scoring | None:
    if recipe.data.blind is None:
        return None
    with spelled({"lexicon": "data.blind"}):
        return Scoring(load_lexicon(recipe.data.blind))


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
        with spelled({name: f"ranker.{name}" for name in ("freeze", "map", "dimensions")}):
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
        model_folder = find_model(model)
    except UnclearKindError as error:
        new = 'a new ranker on it is RankerRecipe(kind="dot", model=…), or kind="cat"'
        raise InputError(error.path, f"no ranker that was trained before: {new}") from None
    if model_folder.architecture == "kernel":
        return load_kernel_ranker(model_folder)
    kind = next((kind for kind, architecture in ENCODERS.items() if architecture == model_folder.architecture), None)
    if kind is None:
        raise InputError(model_folder.path, "cannot be trained further: expected a cross-, bi- or sparse encoder")
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


_BEFORE_A_CHECKPOINT = ("recipe.toml", "log.jsonl", "groups", "checkpoints")
"""What a run writes before its first checkpoint."""


def check_folder(recipe: RunRecipe, resume: bool) -> None:
    """Raises EvenrankError if a run cannot start, or cannot be resumed, in the recipe's folder."""
    folder = recipe.folder
    path = folder / "recipe.toml"
    if resume:
        if not path.is_file():
            raise EvenrankError(f"{folder}: there is no run to resume")
        differing = differing_keys(load_recipe(path), recipe)
        if differing:
            raise EvenrankError(
                f"{folder}: this run was started with another recipe ({', '.join(differing)}); resume with {path}"
            )
    elif any((folder / name).exists() for name in _BEFORE_A_CHECKPOINT):
        raise EvenrankError(
            f"{folder}: there is a run already ({arg('resume', True)} continues it;"
            f" {arg('settings', 'out=…')} starts another)"
        )


def is_finished(folder: Path) -> bool:
    """Whether a run has ended: the result is written last. A run whose model was removed can write it again."""
    return (folder / "result.json").is_file() and (folder / "model").is_dir()


@contextmanager
def run_folder(recipe: RunRecipe, *, resume: bool) -> Iterator[None]:
    """A run's folder, made and locked while the block runs.

    Its files are removed if the block fails before its first checkpoint, so that a corrected command can start. Raises
    EvenrankError if another process of this machine trains in the folder.
    """
    folder = recipe.folder
    with alone(folder):
        try:
            write_text(folder / "recipe.toml", origin_of(recipe).settings)
            yield
        except BaseException:
            if not resume and not any(folder.rglob(STATE)):
                for path in (folder / name for name in _BEFORE_A_CHECKPOINT):
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
            raise


def finish(
    trainer: CheckpointTrainer,
    choice: Choice,
    origin: Origin,
    known: Mapping[str, Any],
    made: Provenance,
    *,
    depths: Sequence[int] = (),
    collection: str | None = None,
) -> None:
    """Writes what a finished training leaves: the model with its card, ``result.json``, the validation run, its audit.

    ``choice``: which checkpoint the model is of; ``known``: what is already known of its result; ``depths``: re-ranking
    depths to choose from; ``collection``: that of the validation.
    """
    folder, ranker, validation = trainer.folder, trainer.ranker, trainer.validation
    ranker.save(folder / "model")
    audited = None
    result: dict[str, Any] = {
        "steps": trainer.state.global_step,
        "best_checkpoint": Path(trainer.state.best_model_checkpoint or "").name,
        "checkpoint": asdict(choice),
        **known,
    }
    trained = ranker.ranker if isinstance(ranker, AdversarialRanker) else ranker
    # What it reads, and what of its folder its settings have replaced.
    result |= {name: text for name in ("reads", "replaced") if (text := getattr(trained, name, ""))}
    if trainer.fair is not None:
        result["fair_steps"] = acted_steps(read_log(trainer.log_path), trainer.fair.names)
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
        audited = audit_validation(origin.name, validation, run, made, folder, collection)
    labelled = validation is not None and any(table.labelled for table in validation.tables)
    write_card(origin, folder, result, made, audited, labelled=labelled)
    # Last: it marks the run as finished.
    write_text(folder / "result.json", json_text(result | {"provenance": made.to_dict()}))


def origin_of(recipe: RunRecipe) -> Origin:
    """What the card of a recipe's model says that it was made from; its settings are those of ``recipe.toml``."""
    written = to_toml(recipe.model_copy(update={"ranker": settled(recipe.ranker)}))
    return Origin(recipe.name, recipe.ranker.kind, recipe.ranker.model, written)


def known_by_labels(counts: Mapping[str, int] | None, validation: Validation) -> dict[str, dict[str, int]]:
    """For each attribute with labels, how many passages of the lists and documents of the validation have one."""
    if counts is None:
        return {}
    tables = dict(validation.attributes)
    if validation.target is not None:
        tables[ADVERSARY] = validation.target
    documents = validation.run.table["doc_id"].unique()
    coverage = {}
    for name, labels in tables.items():
        if labels.labelled:
            coverage[name] = {
                "passages": counts["passages"],
                "known": counts[f"known_{name}"],
                "relevant": counts["relevant"],
                "known_relevant": counts[f"known_relevant_{name}"],
                "validated": len(documents),
                "known_validated": int(documents.is_in(labels.table["doc_id"].implode()).sum()),
            }
    return coverage


def with_adversary(
    recipe: Recipe, ranker: Ranker, validation: Validation, main: bool
) -> tuple[Ranker, dict[str, object]]:
    """The ranker with the adversary that its recipe asks for, and what a fresh one finds before training."""
    wanted = recipe.adversary
    if wanted is None:
        return ranker, {}
    scoring = None
    if wanted.lexicon is not None:
        with spelled({"lexicon": "adversary.lexicon"}):
            scoring = Scoring(load_lexicon(wanted.lexicon))
    both = AdversarialRanker(
        ranker, scoring, label=wanted.label, vector=wanted.vector, factor=wanted.factor, seed=recipe.training.seed
    )
    before = {"before": leakage(both, validation, recipe.training.seed)} if wanted.attack and main else {}
    return both, {"leakage": before} if before else {}


def leakage(ranker: Ranker, validation: Validation, seed: int) -> dict[str, object]:
    """How well a fresh adversary tells gendered pairs of the validation run."""
    assert isinstance(ranker, AdversarialRanker)
    known: Scoring | Array | None = ranker.scoring
    if known is None:
        assert validation.target is not None
        known = gendered_by_label(validation.pairs["doc_id"], validation.target, ranker.label)
    result = attack(
        ranker.ranker,
        *validation.read,
        known,
        label=ranker.label,
        vector=ranker.vector,
        seed=seed,
    )
    return {**asdict(result)}


_FILES = ("recipe.toml", "log.jsonl", "validation.run", "audit.json", "result.json", "grid.json")
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

    The folder contains ``recipe.toml`` (with every default), ``log.jsonl``, ``checkpoints/``, ``model/`` (of the
    checkpoint that ``training.keep`` chooses), ``validation.run``, ``result.json`` and ``model/README.md``, the model
    card with an audit of the validation run. ``resume`` continues an interrupted run from its last checkpoint, to the
    same result; a finished run is left unchanged. A run that fails before its first checkpoint leaves nothing.

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
        check_apart((recipe.folder / name for name in (*_FILES, _MODEL)), [path for _, path in sources_of(recipe)])
    return _run(recipe, resume=resume, say=say)


def _run(recipe: AnyRecipe, *, resume: bool, say: Callable[[str], None]) -> Path:
    """The folder of a run, which trains in it unless it has ended."""
    folder, state = recipe.folder, PartialState(cpu=not torch.cuda.is_available())
    check_folder(recipe, resume)
    if resume and is_finished(folder):
        return folder
    # No process makes the folder before all have checked it.
    state.wait_for_everyone()
    with kept_random_state(), run_folder(recipe, resume=resume) if state.is_main_process else nullcontext():
        if isinstance(recipe, DistilRecipe):
            _distil(recipe, resume=resume, say=say)
        elif recipe.fairness is not None and isinstance(recipe.fairness.weight, tuple):
            _train_weights(recipe, recipe.fairness, recipe.fairness.weight, resume=resume, say=say)
        else:
            _train(recipe, resume=resume, say=say)
    # No process reports success before the model is there.
    state.wait_for_everyone()
    return folder


def _train_weights(
    recipe: Recipe,
    fairness: FairnessRecipe,
    weights: tuple[float, ...],
    *,
    resume: bool,
    say: Callable[[str], None],
) -> None:
    folder = recipe.folder
    rows: list[dict[str, Any]] = []
    for weight in (0.0, *weights):
        name = f"weight-{weight:g}" if weight else "without"
        term = fairness.model_copy(update={"weight": weight})
        trial = recipe.model_copy(update={"name": name, "out": str(folder / name), "fairness": term})
        if not weight and recipe.training.keep == "fair":
            # What the utility of the others is compared with is the best without the term.
            trial = trial.model_copy(update={"training": recipe.training.model_copy(update={"keep": "best"})})
        say(f"{recipe.name}: {name}")
        if not is_finished(trial.folder):
            _run(trial, resume=resume and (trial.folder / "recipe.toml").is_file(), say=say)
        result = json.loads((trial.folder / "result.json").read_text(encoding="utf-8"))
        bias = largest_gap(result.get("delta_aprf", {}))
        rows.append({"name": name, "weight": weight, "value": result["value"], "abs_delta_aprf": bias})
    best = best_weight(
        [row["value"] for row in rows[1:]], [row["abs_delta_aprf"] for row in rows[1:]], rows[0]["value"]
    )
    chosen = rows[0] if best is None else rows[best + 1]
    say(f"{recipe.name}: validation chose {chosen['name']} ({', '.join(row['name'] for row in rows)} were trained)")
    if PartialState().is_main_process:
        best_folder = folder / chosen["name"]
        shutil.copytree(best_folder / "model", folder / "model", dirs_exist_ok=True)
        for file in ("validation.run", "audit.json"):
            shutil.copyfile(best_folder / file, folder / file)
        result = json.loads((best_folder / "result.json").read_text(encoding="utf-8"))
        write_text(folder / "grid.json", json_text({"best": chosen["name"], "weights": rows}))
        write_text(folder / "result.json", json_text(result | {"best": chosen["name"]}))


def _train(recipe: Recipe, *, resume: bool, say: Callable[[str], None]) -> None:
    folder, state = recipe.folder, PartialState()
    main = state.is_main_process
    provenance = note_sources(recipe).ahead(main)
    ranker = build_ranker(recipe.ranker, recipe.data, recipe.training.seed)
    validation = load_validation(recipe)
    with state.main_process_first():
        counts = write_lists(recipe, folder / "groups")
    if main:
        left = counts["without_positive"]
        without = f" ({left} without a relevant passage left out)" if left else ""
        say(counted(counts["queries"], "training query") + without)
        for line in label_lines(known_by_labels(counts, validation)):
            say(line)
    data = recipe.data
    lists = TrainingLists(
        folder / "groups",
        negatives=data.negatives,
        sampling=data.sampling,
        seed=recipe.training.seed,
        rotate=data.rotate,
    )
    ranker, leakage = with_adversary(recipe, ranker, validation, main)
    fair = None if recipe.fairness is None else FairTerm.of_recipe(recipe.fairness)
    adversary_weight = 0.0 if recipe.adversary is None else recipe.adversary.weight
    objective = Objective(recipe.loss.name, fair, adversary_weight, recipe.loss.scale, recipe.loss.in_batch)
    trainer = RankingTrainer(
        ranker, lists, objective, recipe.training, folder, validation, depth=recipe.validation.depth
    )
    known: dict[str, object] = {"groups": counts, **leakage}
    depths = recipe.validation.depths or (recipe.validation.depth,)
    if main and continues(recipe.ranker) and (fair is not None or recipe.adversary is not None):
        # Found as the value of the trained ranker will be.
        known["base"] = validation.best_depth(validation.scores(ranker), depths)[1]
    choice = trainer.fit(resume=resume)
    if main:
        say(f"{recipe.name}: kept the checkpoint of {choice.why}")
        finish(
            trainer,
            choice,
            origin_of(recipe),
            known,
            provenance,
            depths=depths,
            collection=recipe.validated_collection,
        )


def _distil(recipe: DistilRecipe, *, resume: bool, say: Callable[[str], None]) -> None:
    main = PartialState().is_main_process
    provenance = note_sources(recipe).ahead(main)
    documents = pl.concat([batch["text"] for batch in scan_collection(recipe.data.collection)])
    queries = None if recipe.data.queries is None else read_queries(recipe.data.queries)["text"]
    taught = taught_texts(recipe.teacher, documents, queries)
    size = taught.vectors.shape[1]
    # A ranker that was trained before has its layer already.
    layer = {} if continues(recipe.ranker) else {"dimensions": size}
    ranker = build_ranker(recipe.ranker.model_copy(update=layer), seed=recipe.training.seed)
    assert isinstance(ranker, DotRanker)
    dimensions = ranker.model.get_embedding_dimension()
    if dimensions != size:
        raise EvenrankError(f"ranker.model: expected vectors of {size} numbers, as the teacher's, found {dimensions}")
    learned, held_out = taught.split(recipe.data.held_out, recipe.training.seed)
    before = agreement(ranker, held_out)
    trainer = DistilTrainer(ranker, learned, held_out, recipe.teacher, recipe.training, recipe.folder)
    if main:
        say(f"{counted(len(learned), 'text')} to learn from, {len(held_out):,} held out")
    choice = trainer.fit(resume=resume)
    if main:
        say(f"{recipe.name}: kept the checkpoint of {choice.why}")
        known = {
            "teacher": recipe.teacher.model,
            "measure": MEASURE,
            "value": agreement(ranker, held_out),
            "before": before,
            "texts": len(learned),
            "held_out": len(held_out),
        }
        finish(trainer, choice, origin_of(recipe), known, provenance)
