"""What the studies share: settings, steps that are kept, rankers that are trained and runs that are measured.

A study is a module with a subclass of :class:`Study`, a file of claims, tables and charts (``claims/PAPER.toml``) and
one of published figures (``published/PAPER.csv``). Its steps are methods that leave a file each, so that an interrupted
run goes on where it was; what they leave becomes :class:`Figures`, and all else follows from these.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import polars as pl

import evenrank
from evenrank.files import EvenrankError, Run, make_folder, read_qrels, read_run, write_run, write_text
from evenrank.files.types import Array
from evenrank.files.work import changed
from evenrank.mitigation.ibbr import AutoWeight
from evenrank.models.stored import Precision
from evenrank.results.page import Drawing
from evenrank.results.table import Table

from .checks import Cost, Need, Options
from .figures import Figures, influence
from .sources import Part

if TYPE_CHECKING:
    from evenrank.training.recipes import RankerRecipe

LEXICON = "gender-en"
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
        development: The seeds that the settings were chosen on.
        same_queries: Whether all seeds have the same queries, and not a collection each.
        first_stage: Settings of BM25.
    """

    scale: str
    seeds: tuple[int, ...]
    development: tuple[int, ...] = ()
    models: Mapping[str, str]
    same_queries: bool
    first_stage: Mapping[str, float] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


S = TypeVar("S", bound=Settings)


class Study(Generic[S]):
    """One paper's experiment in ``folder``; ``say`` reports what is being done."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    papers: ClassVar[tuple[str, ...]]
    """The files of claims."""
    utility: ClassVar[str]
    """The figure by which a ranker is called destroyed."""

    def __init__(self, settings: S, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.settings, self.folder, self.say = settings, folder, say

    # --- what a study states -------------------------------------------------------------------------------------

    @classmethod
    def settings_of(cls, scale: str, options: Options) -> S:
        """The settings of a scale."""
        raise NotImplementedError

    def needs(self) -> list[Need]:
        """Everything that a run reads and does not make itself."""
        raise NotImplementedError

    def cost(self) -> Cost:
        """What a run takes."""
        raise NotImplementedError

    def steps(self) -> Iterator[Iterable[Step]]:
        """The steps in order; those that are given together do not need each other."""
        raise NotImplementedError

    def figures(self) -> Figures:
        """What was measured."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """How a run differs from the paper, and what a reader has to know of it."""
        return []

    def drawings(self) -> list[Drawing]:
        """Charts beside those of the file of claims."""
        return []

    def tables(self, figures: Figures) -> list[Table]:
        """Tables beside those of the file of claims: such as have a row per query."""
        return []

    def destroyed_below(self, system: str) -> str:
        """The system that another one is compared with, to say whether it is destroyed; "" for none."""
        return ""

    # --- running ------------------------------------------------------------------------------------------------

    def run(self, jobs: int) -> Figures:
        """Runs all steps, ``jobs`` at a time, and returns the figures.

        Raises EvenrankError for a folder that was begun with other settings, and that of the first step that fails.
        """
        self._keep_settings()
        with ExitStack() as stack:
            pool = None
            if jobs > 1:
                # Otherwise glibc returns the memory of every tensor to the system, which costs a quarter of the time.
                for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
                    os.environ.setdefault(name, str(1 << 32))
                context = multiprocessing.get_context("spawn")
                arguments = (type(self), self.settings, self.folder)
                pool = stack.enter_context(_ending(ProcessPoolExecutor(jobs, context, _start_worker, arguments)))
            for steps in self.steps():
                self._take(list(dict.fromkeys(steps)), pool)
        return self.figures()

    def _take(self, steps: Sequence[Step], pool: ProcessPoolExecutor | None) -> None:
        if pool is None or len(steps) == 1:
            for method, arguments in steps:
                getattr(self, method)(*arguments)
            return
        for waiting in [pool.submit(_run_step, *step) for step in steps]:
            said, problem = waiting.result()
            for text in said:
                self.say(text)
            if problem is not None:
                raise EvenrankError(problem)

    def _keep_settings(self) -> None:
        make_folder(self.folder)
        file = self.folder / "settings.json"
        values = {one.name: getattr(self.settings, one.name) for one in fields(self.settings)}
        text = json.dumps(values, indent=1, sort_keys=True, default=str)
        if not file.is_file():
            write_text(file, text)
        elif differing := changed(json.loads(file.read_text(encoding="utf-8")), json.loads(text)):
            raise EvenrankError(
                f"{self.folder}: begun with other settings ({', '.join(differing)}); choose another `folder`, or delete"
                " this one, to start over"
            )

    # --- rankers and runs -----------------------------------------------------------------------------------------

    def home(self, seed: int) -> Path:
        """The folder of a seed."""
        return self.folder / f"seed-{seed}"

    def ranked(self, seed: int, name: str, recipe: Sections, parts: Mapping[str, Part]) -> dict[str, Run]:
        """Trains a ranker, and re-ranks the lists of ``parts`` with it; the runs are kept under ``name``.

        A ranker whose encoder is frozen trains in seconds and in memory, from vectors that all seeds share; any other
        leaves its folder, and resumes from its checkpoints.
        """
        frozen = bool(recipe["ranker"].get("freeze"))
        precision: Precision = (
            "bfloat16" if recipe["training"].get("precision") == "bfloat16" and not frozen else "float32"
        )

        def train() -> object:
            return self._in_memory(recipe) if frozen else self.trained(seed, name, recipe)

        return self.kept_runs(seed, name, train, parts, precision)

    def kept_runs(
        self,
        seed: int,
        name: str,
        make: Callable[[], object],
        parts: Mapping[str, Part],
        precision: Precision = "float32",
    ) -> dict[str, Run]:
        """The lists of ``parts`` as the ranker that ``make`` returns orders them; the runs are kept under ``name``."""
        folder = self.home(seed) / name
        files = {part: folder / f"{part}.run" for part in parts}
        if not all(file.is_file() for file in files.values()):
            ranker = make()
            make_folder(folder)
            for part, file in files.items():
                write_run(self.reranked(ranker, parts[part], name, precision), file)
        return {part: read_run(file, name=name) for part, file in files.items()}

    def untrained(self, ranker: Mapping[str, object]) -> object:
        """The ranker that a training starts from: a model in a folder, or a frozen encoder with its identity map."""
        return self._new(ranker) if ranker.get("freeze") else str(ranker["model"])

    def _recipe_of(self, ranker: Mapping[str, object]) -> RankerRecipe:
        from evenrank.training.recipes import RankerRecipe

        return RankerRecipe.model_validate({"kept": str(self.folder / "vectors"), **ranker})

    def _new(self, ranker: Mapping[str, object]) -> object:
        from evenrank.training.run import build_ranker

        return build_ranker(self._recipe_of(ranker))

    def _in_memory(self, recipe: Sections) -> object:
        data: dict[str, Any] = dict(recipe["data"])
        training = dict(recipe["training"])
        fairness = recipe.get("fairness")
        lists = evenrank.training_lists(
            data.get("run"),
            qrels=data.get("qrels"),
            collection=data["collection"],
            queries=data["queries"],
            groups=data.get("groups"),
            depth=data.get("depth", 1000),
            negatives=data.get("negatives", 20),
            lexicon=LEXICON if fairness else None,
        )
        term = None
        if fairness:
            given = dict(fairness)
            rate = given.pop("rate", None)
            if given["weight"] == "auto":
                given["weight"] = AutoWeight(rate=float(str(rate)))
            term = evenrank.IBBR(term=given.pop("name"), **given)  # type: ignore[arg-type]
        return evenrank.train(self._recipe_of(recipe["ranker"]), lists, fairness=term, **training).ranker  # type: ignore[arg-type]

    def trained(self, seed: int, name: str, recipe: Sections) -> str:
        """Trains a recipe in the folder ``name``; an interrupted training resumes, a finished one is loaded.

        Returns the folder of the model. Raises EvenrankError if the folder contains the training of another recipe.
        """
        from evenrank.training.recipes import load_recipe, parse_recipe

        folder = self.home(seed) / name
        parsed = parse_recipe({"source": self.source, **recipe, "name": folder.name, "out": str(folder)}, name)
        if (folder / "result.json").is_file():
            if differing := changed(load_recipe(folder / "recipe.toml").model_dump(), parsed.model_dump()):
                raise EvenrankError(
                    f"{folder}: this training had another recipe ({', '.join(differing)}); choose another `folder` to"
                    " start over"
                )
        else:
            self.say(f"training {self.home(seed).name}/{name}")
            evenrank.train_recipe(parsed, resume=(folder / "recipe.toml").is_file())
        return str(folder / "model")

    def result(self, seed: int, name: str) -> Mapping[str, Any]:
        """What a training that left a folder says of itself (``result.json``)."""
        found: dict[str, Any] = json.loads((self.home(seed) / name / "result.json").read_text(encoding="utf-8"))
        return found

    def reranked(self, ranker: object, part: Part, name: str, precision: Precision = "float32") -> Run:
        """The judged lists of a part, re-ranked by a ranker or the model in a folder."""
        run = read_run(part.run)
        judged = read_qrels(part.qrels).select("query_id").unique()
        run = Run.from_table(run.table.join(judged, on="query_id", how="semi", maintain_order="left"), run.name)
        # A ranker in memory has its own.
        given: dict[str, Any] = {"precision": precision} if isinstance(ranker, str) else {}
        return evenrank.rerank(
            run, model=ranker, collection=part.collection, queries=part.queries, tag=name,
            depth=1000, quiet=True, **given,
        )  # fmt: skip

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
        wanted = [measure for name, measure in measures.items() if name != DELTA]
        if DELTA in measures:
            wanted += APRF
        first = read_run(part.run, name=FIRST)
        judged = read_qrels(part.qrels).join(first.queries.to_frame(), on="query_id", how="semi")
        # One of them is judged only if every run has it: a figure's queries are those that all systems have.
        first = Run.from_table(first.table.join(judged, on="query_id", how="semi", maintain_order="left"), FIRST)
        given = {"lexicon": LEXICON, **groups}
        result = evenrank.audit(
            {FIRST: first, **runs},  # type: ignore[dict-item]
            collection=part.collection,
            qrels=judged,
            background=first,
            measures=" ".join(wanted),
            **given,  # type: ignore[arg-type]
        )
        table = result.per_query()
        for system in (FIRST, *runs, *REFERENCES):
            rows = table.filter(pl.col("run") == system)
            if rows.is_empty():
                continue
            ids = rows["query_id"].to_list()

            def values(measure: str, rows: pl.DataFrame = rows) -> Array:
                return rows[measure].fill_null(float("nan")).to_numpy()

            for name, measure in measures.items():
                found = influence(*map(values, APRF)) if name == DELTA else values(measure)
                into.add(name + suffix, system, seed, ids, found)


DELTA = "ΔA-PRF"
APRF = ("APRF(group='m')", "APRF(group='f')")


def matching(systems: Sequence[str], pattern: str) -> list[str]:
    """The systems that a pattern with ``*`` names, in their order."""
    return [one for one in systems if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), one)]


class _ending:
    """A pool whose processes end with it: their trainings, which may take minutes more, resume from checkpoints."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool = pool

    def __enter__(self) -> ProcessPoolExecutor:
        return self.pool

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            for child in multiprocessing.active_children():
                child.terminate()
        self.pool.shutdown(cancel_futures=True)


_study: Any = None
"""In a process of a pool: the study whose methods are its steps."""


def _start_worker(kind: type[Study[Any]], settings: Any, folder: Path) -> None:
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
    said: list[str] = []
    _study.say = said.append
    try:
        getattr(_study, method)(*arguments)
    except EvenrankError as error:
        return said, str(error)
    return said, None
