"""The steps of an experiment, each done once: trainings and re-ranked lists in folders of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from evenrank.audit import AuditResult, audit
from evenrank.groups import Scoring, load_lexicon
from evenrank.io import (
    EvenrankError,
    Run,
    atomic_path,
    make_folder,
    read_qrels,
    read_queries,
    read_run,
    read_texts,
    write_run,
    write_text,
)
from evenrank.rankers.protocol import ranker_class
from evenrank.training.recipes import Recipe, parse_recipe
from evenrank.training.run import largest_bias, train
from evenrank.training.validation import Validation

from .data import Part
from .tables import Value

LEXICON = "gender-en"
S = TypeVar("S")
D = TypeVar("D")
Step = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training: its folder, and what it found on the validation queries."""

    folder: Path
    kind: str
    result: Mapping[str, Any]
    blind: bool = False

    @property
    def model(self) -> str:
        """The folder of the model."""
        return str(self.folder / "model")

    @property
    def value(self) -> float:
        """The validation measure."""
        return float(self.result["value"])

    @property
    def bias(self) -> float:
        """Validation |ΔA-PRF|, the largest over the attributes; NaN where it was not watched."""
        return largest_bias(self.result)


@dataclass
class Work:
    """Runs the steps in ``folder``; ``say`` is told of each."""

    folder: Path
    collection: str
    say: Callable[[str], None] = lambda _: None

    def train(self, name: str, recipe: Mapping[str, Any]) -> Trained:
        """The training of a recipe in the folder ``name``: finished, gone on with, or begun.

        Raises EvenrankError where the folder holds the run of another recipe.
        """
        target = self.folder / name
        values = {**recipe, "name": target.name, "out": str(target)}
        parsed = parse_recipe(values, name)
        if not (target / "result.json").is_file():
            self.say(f"training {name}")
            train(parsed, resume=(target / "recipe.toml").is_file())
        return _finished(target, parsed)

    def rank(self, trained: Trained, name: str, part: Part) -> Run:
        """The part's lists as a model ranks them, kept beside the model."""
        kept = trained.folder / f"{name}.run"
        if kept.is_file():
            return read_run(kept, trained.folder.name)
        run = read_run(part.run)
        masked = Scoring(load_lexicon(LEXICON)) if trained.blind else None
        whole = Validation.of(
            run,
            read_qrels(part.qrels),
            read_queries(part.queries),
            read_texts(self.collection, run.table["doc_id"].unique()),
            measure="RR",
            depth=int(run.table["rank"].max()),  # type: ignore[arg-type]
            masked=masked,
        )
        ranker = ranker_class(trained.kind).load(trained.model).to(_device()).eval()
        ranked = whole.reranked(whole.scores(ranker), whole.run.table["rank"].max(), trained.folder.name)  # type: ignore[arg-type]
        write_run(ranked, kept)
        return ranked

    def audit(self, part: Part, runs: Mapping[str, Run], measures: str, first: str) -> AuditResult:
        """An audit of re-ranked lists, whose candidates are those of the first stage ``first``."""
        back = read_run(part.run, first)
        texts = read_texts(self.collection, back.table["doc_id"].unique())
        found = {first: back, **runs}
        judged = read_qrels(part.qrels).join(back.queries.to_frame(), on="query_id", how="semi")
        return audit(found, collection=texts, qrels=judged, background=back, measures=measures)


class Trainings(Generic[S, D]):
    """The trainings of one run of an experiment, each done once, in folders under ``folder``."""

    def __init__(self, settings: S, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.settings, self.folder, self.say = settings, folder, say
        self._data: dict[Any, D] = {}

    def _once(self, key: Any, prepare: Callable[[], D]) -> D:
        """The data of a key, prepared when first asked for."""
        if key not in self._data:
            self._data[key] = prepare()
        return self._data[key]

    def _work(self, seed: int, collection: str) -> Work:
        return Work(self.folder / f"seed-{seed}", collection, self.say)

    def ahead(self, steps: Iterable[Step], jobs: int) -> None:
        """Does steps that need nothing of each other in ``jobs`` processes of one thread each.

        A step is a method's name and its arguments. What it leaves in the folder is found when the method is called
        here. One job: nothing is done ahead. Raises EvenrankError for the first step that raised it.
        """
        todo = list(dict.fromkeys(steps))
        if jobs < 2 or len(todo) < 2:
            return
        # Tensors come and go: without this a quarter of the time is the system handing out their memory anew (glibc).
        for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
            os.environ.setdefault(name, str(1 << 32))
        spawned, here = multiprocessing.get_context("spawn"), (type(self), self.settings, self.folder)
        with ProcessPoolExecutor(min(jobs, len(todo)), spawned, _begin, here) as pool:
            waiting = [pool.submit(_step, *step) for step in todo]
            try:
                for future in waiting:
                    said, problem = future.result()
                    for text in said:
                        self.say(text)
                    if problem is not None:
                        raise EvenrankError(problem)
            finally:
                pool.shutdown(cancel_futures=True)


_here: Trainings[Any, Any]
"""In a process of :meth:`Trainings.ahead`, what its steps are methods of."""


def _begin(form: type[Trainings[Any, Any]], settings: Any, folder: Path) -> None:
    import torch

    global _here
    _here = form(settings, folder)
    torch.set_num_threads(1)
    # The bars of several processes would write over each other.
    os.environ["TQDM_DISABLE"] = "1"


def _step(method: str, arguments: tuple[Any, ...]) -> tuple[list[str], str | None]:
    """A step in a process of its own: what it said, and what went wrong in words."""
    said: list[str] = []
    _here.say = said.append
    try:
        getattr(_here, method)(*arguments)
    except EvenrankError as error:
        return said, str(error)
    return said, None


def _finished(folder: Path, recipe: Recipe) -> Trained:
    from evenrank.training.recipes import load_recipe

    if load_recipe(folder / "recipe.toml") != recipe:
        raise EvenrankError(f"{folder}: this training had another recipe; `folder` says where to start anew")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return Trained(folder, recipe.ranker.kind, result, recipe.data.blind is not None)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


Figures = dict[str, dict[str, list[Value]]]
"""For every system and measure the figure of each seed."""


def collect(figures: Figures, result: AuditResult) -> None:
    """Adds one seed's audit."""
    for run in result.runs:
        for key, figure in run.figures.items():
            value = Value(figure.mean, figure.n, "queries", figure.ci95)
            figures.setdefault(run.name, {}).setdefault(key, []).append(value)


def summary(values: Sequence[Value]) -> Value:
    """Over seeds; the figure with its interval over queries where there is but one."""
    return values[0] if len(values) == 1 else Value.over_seeds([value.mean for value in values])


def row_values(figures: Figures, system: str, columns: Mapping[str, str]) -> dict[str, Value]:
    """A system's figures under the columns' keys, given as key → measure."""
    found = figures.get(system, {})
    return {key: summary(found[measure]) for key, measure in columns.items() if measure in found}


def per_seed(figures: Figures, system: str, measure: str) -> list[float]:
    """The figure of each seed, NaN where it is undefined."""
    return [np.nan if value.mean is None else value.mean for value in figures[system][measure]]


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Keeps what an experiment was started with. Raises EvenrankError where the folder was started with other settings
    (the number of seeds apart)."""
    make_folder(folder)
    file = folder / "settings.json"
    text = json.dumps(settings, indent=1, sort_keys=True, default=str)
    if file.is_file():
        if file.read_text(encoding="utf-8") != text:
            raise EvenrankError(f"{folder}: begun with other settings; `folder` says where to start anew")
        return
    write_text(file, text)


def write_tables(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes texts under their names."""
    for name, text in texts.items():
        with atomic_path(folder / name) as part:
            part.write_text(text, encoding="utf-8")


def differences(result: AuditResult, first: str, second: str, measure: str) -> pl.DataFrame:
    """``query_id`` and ``difference`` of two runs, query by query, falling; undefined ones are left out."""
    runs = {run.name: run.figures[measure].values for run in result.runs}
    table = pl.DataFrame({"query_id": result.queries, "difference": runs[first] - runs[second]})
    return table.filter(pl.col("difference").is_not_nan()).sort("difference", descending=True, maintain_order=True)
