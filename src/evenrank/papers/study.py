"""What the studies share: settings, steps that are kept, rankers that are trained and runs that are measured.

A study is a module with a subclass of :class:`Study`, a file of claims, tables and charts (``claims/PAPER.toml``) and
one of published figures (``published/PAPER.csv``). Its steps are methods that leave a file each, so that an interrupted
run goes on where it was; what they leave becomes :class:`Figures`, and all else follows from these.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import polars as pl

import evenrank
from evenrank.files import (
    EvenrankError,
    Run,
    arg,
    changed,
    make_folder,
    quoted,
    read_qrels,
    read_run,
    scan_collection,
    write_run,
    write_text,
)
from evenrank.mitigation import AutoWeight
from evenrank.models import Precision
from evenrank.results import Drawing, Table
from evenrank.training import differing_keys, load_recipe, parse_recipe, ranking_recipe

from .checks import Need, Options, need_irds, need_model, need_public, unused
from .claims import of_paper
from .encoder import SmallBert
from .figures import Figures, influence
from .sources import (
    Lists,
    Part,
    bert_tiny,
    counsel_chat,
    grepbiasir,
    installed,
    masked,
    real_needs,
    write_queries,
)

LEXICON = "gender-en"
VALUES = "values.parquet"
"""The file of every figure's values, from which alone the verdicts are made."""
FIRST = "BM25"
REFERENCES = ("random", "neutral-first")
"""Rankings of the same candidates that every audit has beside the runs."""
Step = tuple[str, tuple[object, ...]]
"""The name of a method of a study and its arguments."""
Sections = Mapping[str, Mapping[str, object]]
"""The sections of a recipe."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What differs between the scales; the steps are the same.

    Attributes:
        models: For each ranker of the paper what stands for it here, in words.
        stand_ins: For each collection of the paper what stands for it here.
        development: The seeds that the settings were chosen on.
        same_queries: Whether all seeds have the same queries, and not a collection each.
        first_stage: Settings of BM25.
        rankers: By model its recipe, or the section [ranker] of it.
        student: The encoder of rankers that name none, which is distilled to the vectors of ``teacher``;
            ``distillation``: [training] over the recipe's.
    """

    scale: str
    seeds: tuple[int, ...]
    development: tuple[int, ...] = ()
    models: Mapping[str, str]
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    same_queries: bool
    first_stage: Mapping[str, float] = field(default_factory=dict)
    rankers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    student: str = ""
    teacher: str = ""
    distillation: Mapping[str, object] = field(default_factory=dict)
    options: Options = field(default_factory=Options)

    def here(self, system: str) -> str:
        """What stands for the ranker, or else the collection, that a system is a row of; "" for none."""
        for known in (self.models, self.stand_ins):
            if named := [name for name in known if system.startswith(name)]:
                return known[max(named, key=len)]
        return ""

    def of_models(self, names: Collection[str]) -> dict[str, Any]:
        """The fields by model, or that list models, with these models alone."""
        values = dict[str, Any]()
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, Mapping) and value and set(value) <= {*self.models}:
                values[attribute.name] = {name: value[name] for name in value if name in names}
            elif isinstance(value, tuple) and value and set(value) <= {*self.models}:
                values[attribute.name] = tuple(name for name in value if name in names)
        return values


def stated(paper: str, scale: str, options: Options) -> dict[str, Any]:
    """The settings of a scale in ``settings/PAPER.toml``: those of all, and over them its own; lists are tuples.

    Models, and files of word vectors, are those of the options where these name some; a ranker is called by its model
    where the file has no other word for it. ``student`` and ``teacher`` are named there as rankers.
    """
    data = of_paper("settings", paper)
    settings = _filled({**data.get("all", {}), **_of_scale(data, scale, options)}, options)
    named = _of_scale(data["about"], scale, options).get("model")
    rankers = {name: recipe.get("ranker", recipe) for name, recipe in settings.get("rankers", {}).items()}
    for name, ranker in rankers.items():
        if "model" in ranker:
            ranker["model"] = options.ranker(named or name, installed(ranker["model"]))
    if "student" in settings:
        settings["student"] = options.ranker(settings["student"], bert_tiny())
        settings["teacher"] = rankers[settings["teacher"]]["model"]
    models = {name: ranker.get("model", name) for name, ranker in rankers.items()}
    return {"models": models, **settings, "scale": scale, "options": options}


def _of_scale(tables: Mapping[str, Any], scale: str, options: Options) -> dict[str, Any]:
    """The table of a scale, on a device that has one of its own."""
    table: dict[str, Any] = tables.get(f"{scale}-{options.device}", tables[scale])
    return table


def _filled(value: Any, options: Options) -> Any:
    """Tables with the options' vectors, over the section of a recipe (``recipe = "ibbr-dot.training"``)."""
    if not isinstance(value, dict):
        return value
    table = {name: _filled(v, options) for name, v in value.items()}
    if "vectors" in table:
        table["vectors"] = options.vectors or table["vectors"]
    name, _, section = table.pop("recipe", "").partition(".")
    return {**_section(name, section), **table} if name else table


def _section(recipe: str, name: str) -> dict[str, Any]:
    """A section of a recipe; that of the training states what is off, too."""
    section: dict[str, Any] = getattr(ranking_recipe(recipe), name).model_dump(exclude_none=name != "training")
    return section


@dataclass(frozen=True, slots=True)
class Data:
    """One division of a seed's queries, and what lists them.

    ``encoder``: one that was made for the text; ``groups``: the lexicon and tokens of terms, negatives and measures;
    ``runs``: published ones.
    """

    parts: Mapping[str, Part]
    lists: Lists
    encoder: str = ""
    groups: Mapping[str, Any] = field(default_factory=lambda: {"lexicon": LEXICON})
    runs: tuple[Path, ...] = ()

    def seen(self, blind: bool) -> dict[str, Part]:
        """The parts as a ranker sees them: a blind one without group words."""
        return {name: masked(part, LEXICON) if blind else part for name, part in self.parts.items()}


S = TypeVar("S", bound=Settings)
D = TypeVar("D")


class Study(Generic[S, D]):
    """One paper's experiment in ``folder``; ``say`` reports what is being done. D: its data of a seed and division."""

    name: ClassVar[str]
    settings_type: ClassVar[Any]

    def __init__(self, settings: S, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.settings, self.folder, self.say = settings, folder, say
        self._whole = settings
        self._made: dict[tuple[object, ...], D] = {}

    def narrow(self, only: Sequence[str]) -> None:
        """From now on runs a piece: the steps of one table (``about.pieces``), of some models, or of these in that.

        The folder stays that of the whole, which goes on from what its pieces have left. Raises EvenrankError for any
        other name, and for two tables.
        """
        pieces, models = self.about.get("pieces", {}), self.settings.models
        tables = [name for name in only if name in pieces]
        wrong = next((name for name in only if name not in pieces and name not in models), None)
        if wrong is not None or len(tables) > 1:
            known = ", ".join([*pieces, *models])
            entries = quoted(wrong) if wrong is not None else ", ".join(tables)
            raise EvenrankError(f"{arg.only}: expected one table or some rankers of {known}, found {entries}")
        piece = dict(pieces[tables[0]]) if tables else {}
        for named in (piece.pop("rankers", ()), only):
            if names := [name for name in self.settings.models if name in named]:
                self.settings = replace(self.settings, **self.settings.of_models(names))
        self.settings = replace(self.settings, **piece)

    # --- what a study states -------------------------------------------------------------------------------------

    @classmethod
    def settings_of(cls, scale: str, options: Options) -> S:
        """The settings of a scale."""
        values = stated(cls.name, scale, options)
        kinds = {"planted": evenrank.SyntheticConfig, "small_bert": SmallBert}
        values |= {name: kind(**values[name]) for name, kind in kinds.items() if name in values}
        settings: S = cls.settings_type(**values)
        return settings

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """What ``settings/PAPER.toml`` says of the study at its scale: its title, source, cost, needs and notes."""
        about = of_paper("settings", self.name)["about"]
        own = _of_scale(about, self.settings.scale, self.settings.options)
        return {**about, **own, "notes": about["notes"] + own["notes"]}

    def needs(self) -> list[Need]:
        """Everything that a run reads and does not make itself."""
        about, options = self.about, self.settings.options
        # Of rankers with the same weights the first is named.
        named = {model: ranker for ranker, model in reversed(self.weights().items())}
        texts = about.get("texts", ())
        return [
            *(need_irds(name, purpose) for name, purpose in about.get("irds", {}).items()),
            *real_needs(options, self.folder, *texts),
            *(need_public(name, purpose) for name, purpose in about.get("public", {}).items()),
            *self.own_needs(),
            *(need_model(model, ranker) for model, ranker in named.items()),
            *unused(options, *about.get("options", ()), texts=texts, models=[*self.weights(self._whole)]),
        ]

    def weights(self, settings: S | None = None) -> dict[str, str]:
        """By ranker, as the option calls it, the folder or name of the model that a run loads, with other settings if
        there are any."""
        settings = settings or self.settings
        rankers = {name: recipe.get("ranker", recipe) for name, recipe in settings.rankers.items()}
        models = {name: ranker.get("model", settings.student) for name, ranker in rankers.items()}
        return {self.about.get("model", name): model for name, model in models.items() if model}

    def own_needs(self) -> list[Need]:
        """What a run needs besides texts and weights."""
        return []

    def trainings(self) -> int:
        """How many rankers or vectors a run trains."""
        raise NotImplementedError

    def steps(self) -> Iterator[Iterable[Step]]:
        """The steps in order; those that are given together do not need each other."""
        raise NotImplementedError

    def figures(self) -> Figures:
        """What was measured."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """How a run differs from the paper, and what a reader has to know of it."""
        values = {"settings": self.settings, "option": arg, **self.noted()}
        return [note.format(**values) for note in self.about["notes"]]

    def noted(self) -> Mapping[str, object]:
        """What the notes name in braces, besides settings and options."""
        return {}

    def drawings(self) -> list[Drawing]:
        """Charts beside those of the file of claims."""
        return []

    def tables(self, figures: Figures) -> list[Table]:
        """Tables beside those of the file of claims: such as have a row per query."""
        return []

    # --- running ------------------------------------------------------------------------------------------------

    def run(self, jobs: int) -> Figures:
        """Runs all steps, ``jobs`` at a time, and returns the figures, as ``values.parquet`` has them.

        Raises EvenrankError for a folder that was begun with other settings, and that of the first step that fails.
        """
        self._keep_settings()
        with _workers(self, jobs) as pool:
            for steps in self.steps():
                self._take(list(dict.fromkeys(steps)), pool)
        file = self.folder / VALUES
        self.figures().write(file)
        return Figures.read(file)

    def _take(self, steps: Sequence[Step], pool: ProcessPoolExecutor | None) -> None:
        if pool is None or len(steps) == 1:
            for method, arguments in steps:
                getattr(self, method)(*arguments)
            return
        for waiting in [pool.submit(_run_step, *step) for step in steps]:
            messages, problem = waiting.result()
            for text in messages:
                self.say(text)
            if problem is not None:
                raise EvenrankError(problem)

    def _keep_settings(self) -> None:
        make_folder(self.folder)
        file = self.folder / "settings.json"
        values = {f.name: getattr(self._whole, f.name) for f in fields(self._whole)}
        text = json.dumps(values, indent=1, sort_keys=True, default=str)
        if not file.is_file():
            write_text(file, text)
        elif differing := changed(json.loads(file.read_text(encoding="utf-8")), json.loads(text)):
            raise EvenrankError(
                f"{self.folder}: begun with other settings ({', '.join(differing)}); choose another {arg.out}, or"
                " delete this one, to start over"
            )

    # --- data -----------------------------------------------------------------------------------------------------

    @property
    def divisions(self) -> range:
        """At ``real`` each half of a text tests what the other half has trained."""
        return range(2 if self.settings.scale == "real" else 1)

    def data(self, seed: int, *collection: str, division: int = 0) -> D:
        """The data of a seed, made once, by the study's method for the scale: ``_planted``, ``_halves`` or
        ``_published``, which is the same for all seeds. ``collection``: which, where there are several."""
        key = (seed if self.settings.scale != "full" else 0, *collection, division)
        if key not in self._made:
            name = {"tiny": "_planted", "real": "_halves", "full": "_published"}[self.settings.scale]
            self._made[key] = getattr(self, name)(*key)
        return self._made[key]

    def prepare(self, seed: int, *collection: str) -> None:
        """:meth:`data` as a step."""
        for division in self.divisions:
            self.data(seed, *collection, division=division)

    def prepared(self, *collections: tuple[str, ...]) -> Iterator[Iterable[Step]]:
        """The first steps: the distilled encoder, if a ranker has it, and the data of every seed."""
        settings, (first, *others) = self.settings, self.settings.seeds
        if settings.student and any("model" not in r.get("ranker", r) for r in settings.rankers.values()):
            yield [("distilled", ())]
        # The first seed alone: it makes what all share.
        yield from ([("prepare", (first, *c))] for c in collections)
        yield [("prepare", (seed, *c)) for seed in others for c in collections]

    # --- rankers and runs -----------------------------------------------------------------------------------------

    def home(self, seed: int) -> Path:
        """The folder of a seed."""
        return self.folder / f"seed-{seed}"

    def named(self, *parts: str, division: int) -> str:
        """The name of what is trained on a division."""
        several = [str(division)] if len(self.divisions) > 1 else []
        return "-".join([*parts, *several]).replace(", ", "-").replace(" ", "-")

    def recipe(
        self, seed: int, wanted: Sections, data: Mapping[str, object], validation: Mapping[str, object] | None = None
    ) -> dict[str, dict[str, object]]:
        """A recipe of the sections that are wanted: [data] over ``data``, [loss] nll if there is none."""
        recipe: dict[str, dict[str, object]] = {
            "ranker": dict(wanted["ranker"]),
            "data": {**data, **wanted.get("data", {})},
            "loss": dict(wanted.get("loss", {"name": "nll"})),
            "training": {**wanted["training"], "seed": seed},
        }
        return recipe if validation is None else {**recipe, "validation": dict(validation)}

    def ranked(self, seed: int, name: str, recipe: Sections, parts: Mapping[str, Part]) -> dict[str, Run]:
        """Trains a ranker, and re-ranks the lists of ``parts`` with it; the runs are kept under ``name``.

        A ranker whose encoder is frozen trains from vectors that all seeds share, and in memory, as a sparse one; any
        other leaves its folder, and resumes from its checkpoints.
        """
        frozen = in_memory(recipe["ranker"])
        precision: Precision = (
            "bfloat16" if recipe["training"].get("precision") == "bfloat16" and not frozen else "float32"
        )

        def train() -> object:
            return self._in_memory(recipe) if frozen else self.trained(seed, name, recipe)

        return self.kept_runs(seed, name, train, parts, precision, tuned=not frozen)

    def kept_runs(
        self,
        seed: int,
        name: str,
        make: Callable[[], object],
        parts: Mapping[str, Part],
        precision: Precision = "float32",
        *,
        tuned: bool = False,
    ) -> dict[str, Run]:
        """The lists of ``parts`` as the ranker that ``make`` returns orders them; the runs are kept under ``name``.

        ``tuned``: only the documents down to the depth that the validation of its training chose.
        """
        folder = self.home(seed) / name
        files = {part: folder / f"{part}.run" for part in parts}
        if not all(file.is_file() for file in files.values()):
            ranker = make()
            make_folder(folder)
            depth = int(self.result(seed, name)["depth"]) if tuned else None
            for part, file in files.items():
                write_run(self.reranked(ranker, parts[part], name, precision, depth), file)
        return {part: read_run(file, name=name) for part, file in files.items()}

    def distilled(self) -> str:
        """The folder of the student after it has learned the vectors of the teacher from the passages and the questions
        of counsel-chat and Grep-BiasIR, without labels."""
        settings, folder = self.settings, self.folder
        passages, questions = (folder / name for name in ("passages.tsv", "questions.tsv"))
        if not questions.is_file():
            read = {"counsel-chat": counsel_chat, "grepbiasir": grepbiasir}
            texts = [make(settings.options, folder / name) for name, make in read.items()]
            batches = [batch.select("text") for text in texts for batch in scan_collection(text.collection)]
            write_queries(passages, pl.concat(batches).with_row_index("query_id"))
            queries = pl.concat([text.queries.select("text") for text in texts]).unique(maintain_order=True)
            write_queries(questions, queries.with_row_index("query_id"))
        recipe = load_recipe("distil").model_dump(exclude_none=True)
        return self.trained_in(
            folder / "distilled",
            {
                "teacher": {**recipe["teacher"], "model": settings.teacher, "kept": str(folder / "vectors")},
                "ranker": {**recipe["ranker"], "model": settings.student},
                "data": {"collection": str(passages), "queries": str(questions)},
                "training": {**recipe["training"], **settings.distillation},
            },
        )

    def untrained(self, ranker: Mapping[str, object]) -> object:
        """The ranker that a training starts from: a model in a folder, or what trains in memory."""
        from evenrank.training import build_ranker

        return build_ranker(self._recipe_of(ranker)) if in_memory(ranker) else str(ranker["model"])

    def _recipe_of(self, ranker: Mapping[str, object]) -> evenrank.RankerRecipe:
        defaults = {"kept": str(self.folder / "vectors")} if ranker.get("freeze") else {}
        return evenrank.RankerRecipe.model_validate({**defaults, **ranker})

    def _in_memory(self, recipe: Sections) -> object:
        """A ranker that trains in memory, trained."""
        data, training, fairness = (
            dict[str, Any](recipe.get(section, {})) for section in ("data", "training", "fairness")
        )
        run, lexicon = data.pop("run", None), LEXICON if fairness else None
        lists = evenrank.training_lists(run, **data, lexicon=lexicon)
        if "rate" in fairness:
            fairness["weight"] = AutoWeight(rate=fairness.pop("rate"))
        term = evenrank.IBBR(term=fairness.pop("name"), **fairness) if fairness else None
        return evenrank.train(self._recipe_of(recipe["ranker"]), lists, fairness=term, **training).ranker

    def trained(self, seed: int, name: str, recipe: Sections) -> str:
        """:meth:`trained_in` the folder ``name`` of a seed."""
        return self.trained_in(self.home(seed) / name, recipe)

    def trained_in(self, folder: Path, recipe: Sections) -> str:
        """Trains a recipe in a folder; an interrupted training resumes, a finished one is loaded.

        Returns the folder of the model. Raises EvenrankError if the folder contains the training of another recipe.
        """
        parsed = parse_recipe(
            {"source": self.about["source"], **recipe, "name": folder.name, "out": str(folder)}, folder.name
        )
        if (folder / "result.json").is_file():
            if differing := differing_keys(load_recipe(folder / "recipe.toml"), parsed):
                raise EvenrankError(
                    f"{folder}: this training had another recipe ({', '.join(differing)}); choose another {arg.out} to"
                    " start over"
                )
        else:
            self.say(f"training {folder.relative_to(self.folder)}")
            evenrank.train_recipe(parsed, resume=(folder / "recipe.toml").is_file())
        return str(folder / "model")

    def result(self, seed: int, name: str) -> Mapping[str, Any]:
        """What a training that left a folder says of itself (``result.json``)."""
        result: dict[str, Any] = json.loads((self.home(seed) / name / "result.json").read_text(encoding="utf-8"))
        return result

    def reranked(
        self, ranker: object, part: Part, name: str, precision: Precision = "float32", depth: int | None = None
    ) -> Run:
        """The judged lists of a part, re-ranked by a ranker or the model in a folder; below ``depth`` as they are."""
        run = read_run(part.run)
        judged = read_qrels(part.qrels).select("query_id").unique()
        run = Run.from_table(run.table.join(judged, on="query_id", how="semi", maintain_order="left"), run.name)
        # A ranker in memory has its own.
        options: dict[str, Any] = {"precision": precision} if isinstance(ranker, str) else {}
        top = evenrank.rerank(
            run, model=ranker, collection=part.collection, queries=part.queries, tag=name,
            depth=depth or 1000, quiet=True, **options,
        )  # fmt: skip
        below = run.table.join(top.table, on=["query_id", "doc_id"], how="anti", maintain_order="left")
        if below.is_empty():
            return top
        least = top.table.group_by("query_id").agg(pl.col("score").min().alias("least"))
        rest = below.join(least, on="query_id", how="left", maintain_order="left").select(
            "query_id", "doc_id", score=pl.col("least") - pl.int_range(1, pl.len() + 1).over("query_id")
        )
        return Run.from_table(pl.concat([top.table.select(rest.columns), rest], how="vertical_relaxed"), name)

    # --- figures --------------------------------------------------------------------------------------------------

    def measure(
        self,
        into: Figures,
        seed: int,
        part: Part,
        runs: Mapping[str, object],
        measures: Mapping[str, str],
        suffix: str = "",
        **groups: object,
    ) -> None:
        """Adds the figures of ``runs`` and of the first stage on a part, per query (:func:`evenrank.audit`).

        ``measures``: by the names of the figures; ``ΔA-PRF`` is made of the APRF of both groups. ``suffix``: what is
        added to a figure's name, such as ``" on QS1"``.
        """
        first = read_run(part.run, name=FIRST)
        judged = read_qrels(part.qrels).join(first.queries.to_frame(), on="query_id", how="semi")
        # One of them is judged only if every run has it: a figure's queries are those that all systems have.
        first = Run.from_table(first.table.join(judged, on="query_id", how="semi", maintain_order="left"), FIRST)
        options: dict[str, Any] = {"lexicon": LEXICON, **groups, "background": first}
        every = {FIRST: first, **runs}
        add_audit(into, seed, every, measures, suffix, collection=part.collection, qrels=judged, **options)


def add_audit(
    into: Figures,
    seed: int,
    runs: Mapping[str, object],
    measures: Mapping[str, str],
    suffix: str = "",
    references: Sequence[str] = REFERENCES,
    **given: Any,
) -> None:
    """Adds the figures of runs, and of ``references`` beside them, that an audit of what is ``given`` has per query."""
    wanted = [measure for name, measure in measures.items() if name != DELTA] + [*APRF] * (DELTA in measures)
    table = evenrank.audit(runs, measures=" ".join(wanted), **given).per_query()
    for system in (*runs, *references):
        rows = table.filter(pl.col("run") == system)
        if rows.is_empty():
            continue
        values = {measure: rows[measure].fill_null(float("nan")).to_numpy() for measure in wanted}
        for name, measure in measures.items():
            per_query = influence(*(values[m] for m in APRF)) if name == DELTA else values[measure]
            into.add(name + suffix, system, seed, rows["query_id"].to_list(), per_query)


DELTA = "ΔA-PRF"
APRF = ("APRF(group='m')", "APRF(group='f')")


def in_memory(ranker: Mapping[str, object]) -> bool:
    """Whether a ranker trains in seconds, in memory: behind a frozen encoder, or with its queries encoded once."""
    return bool(ranker.get("freeze")) or ranker["kind"] == "sparse"


def cpu_precision() -> Precision:
    """bfloat16 if the processor computes in it, else float32, which is then faster; float32 on a GPU."""
    import torch

    if torch.cuda.is_available():
        return "float32"
    able = torch.cpu.get_capabilities()
    return "bfloat16" if able.get("amx_bf16") or able.get("avx512_bf16") else "float32"


@contextmanager
def _workers(study: Study[Any, Any], jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """A pool for the steps of a study; None for one job.

    Its processes end with it: their trainings, which may take minutes more, resume from checkpoints.
    """
    if jobs == 1:
        yield None
        return
    # Otherwise glibc returns the memory of every tensor to the system, which costs a quarter of the time.
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        os.environ.setdefault(name, str(1 << 32))
    context, arguments = multiprocessing.get_context("spawn"), (type(study), study.settings, study.folder)
    pool = ProcessPoolExecutor(jobs, context, _start_worker, arguments)
    try:
        yield pool
    except (KeyboardInterrupt, SystemExit):
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_study: Any = None
"""In a process of a pool: the study whose methods are its steps."""


def _start_worker(kind: type[Study[Any, Any]], settings: Any, folder: Path) -> None:
    import torch

    global _study
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _study = kind(settings, folder)
    torch.set_num_threads(1)
    # Progress bars of several processes would overwrite each other.
    os.environ["TQDM_DISABLE"] = "1"


def _end_with_parent() -> None:
    """Ends this process when the experiment is killed, which would otherwise keep training for no one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_step(method: str, arguments: tuple[object, ...]) -> tuple[list[str], str | None]:
    """Runs a step in a worker process; returns its messages and the error message, if any."""
    messages: list[str] = []
    _study.say = messages.append
    try:
        getattr(_study, method)(*arguments)
    except EvenrankError as error:
        return messages, str(error)
    return messages, None
