"""The steps of an experiment, each run once: trainings and re-ranked lists, kept in folders."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl

from evenrank.auditing import AuditResult, audit
from evenrank.files import (
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
from evenrank.files.work import changed
from evenrank.groups import Scoring, load_lexicon
from evenrank.models.load import load_ranker
from evenrank.models.stored import Precision
from evenrank.search.index_folder import Encoding
from evenrank.search.indexes import build_index, open_index
from evenrank.training.choice import Validation
from evenrank.training.recipes import Recipe, parse_recipe
from evenrank.training.run import largest_bias, train_recipe

from .corpora import Part

LEXICON = "gender-en"
S = TypeVar("S")
D = TypeVar("D")
PAIRS_AT_ONCE = 4_000_000
"""Passages with their texts that are held at once when lists are re-ranked."""
Step = tuple[str, tuple[object, ...]]
"""The name of a method of :class:`Trainings` and its arguments."""
Sections = Mapping[str, Mapping[str, object]]
"""The sections of a recipe."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training: its folder, and its results on the validation queries."""

    folder: Path
    kind: str
    result: Mapping[str, Any]
    blind: bool = False
    precision: Precision = "float32"
    """In which it scores: bfloat16 if it was trained in that."""

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
        """Validation |ΔA-PRF|, the largest over the attributes; NaN if it was not measured."""
        return largest_bias(self.result)


def development(trained: Trained) -> Run:
    """The lists of the queries that it was validated on, as it ranks them."""
    return read_run(trained.folder / "validation.run", name=trained.folder.name)


@dataclass
class Work:
    """Runs the steps in ``folder``; ``say`` reports each. ``source``: the paper that the recipes come from."""

    folder: Path
    collection: str
    source: str
    say: Callable[[str], None] = lambda _: None

    def train(self, name: str, recipe: Sections) -> Trained:
        """Trains a recipe in the folder ``name``; an interrupted training resumes, a finished one is loaded.

        Raises EvenrankError if the folder contains the run of another recipe.
        """
        target = self.folder / name
        values = {"source": self.source, **recipe, "name": target.name, "out": str(target)}
        parsed = parse_recipe(values, name)
        if not (target / "result.json").is_file():
            self.say(f"training {name}")
            train_recipe(parsed, resume=(target / "recipe.toml").is_file())
        return _finished(target, parsed)

    def rank(self, trained: Trained, name: str, part: Part, *, depth: int | None = None) -> Run:
        """The part's lists re-ranked by a model to ``depth`` (None: all of them), kept in the model's folder."""
        kept = trained.folder / f"{name}.run"
        if kept.is_file():
            return read_run(kept, name=trained.folder.name)
        run, qrels = read_run(part.run), read_qrels(part.qrels)
        masked = Scoring(load_lexicon(LEXICON)) if trained.blind else None
        ranker = load_ranker(trained.model, device=_device(), precision=trained.precision)
        longest = int(run.table["rank"].max() or 1)  # type: ignore[arg-type]
        judged = run.queries.filter(run.queries.is_in(qrels["query_id"].unique().implode()))
        if judged.is_empty():
            raise EvenrankError(f"{part.run}: no query of the run is judged in {part.qrels}")
        queries, tables = read_queries(part.queries), []
        # Not all at once: MS MARCO's test queries have 48 million pairs.
        for chunk in judged.to_frame().iter_slices(max(1, PAIRS_AT_ONCE // longest)):
            some = Run(run.name, run.table.join(chunk, on="query_id", how="semi", maintain_order="left"))
            held_out = Validation.of(
                some,
                qrels,
                queries,
                read_texts(self.collection, some.table["doc_id"].unique()),
                measure="RR",
                depth=depth or longest,
            )
            whole = replace(held_out, masked=masked)
            tables.append(whole.reranked(ranker.score(*whole.read, 64), whole.depth, run.name).table)
        ranked = Run(trained.folder.name, pl.concat(tables))
        write_run(ranked, kept)
        return ranked

    def retrieve(self, trained: Trained, name: str, part: Part, k: int) -> Run:
        """The first ``k`` documents of the collection for each of the part's queries, by a bi-encoder's vectors.

        The run is kept in the model's folder; the index is removed.
        """
        kept = trained.folder / f"{name}.retrieved.run"
        if kept.is_file():
            return read_run(kept, name=trained.folder.name)
        index = trained.folder / "index"
        self.say(f"encoding the collection with {trained.folder.name}")
        encoding = Encoding(device=_device(), precision=trained.precision)
        if not (index / "index.json").is_file():
            build_index(self.collection, out=index, model=trained.model, encoding=encoding, quiet=True)
        found = open_index(index).search(
            read_queries(part.queries), k, name=trained.folder.name, encoding=encoding, quiet=True
        )
        write_run(found, kept)
        shutil.rmtree(index)
        return found

    def audit(
        self, part: Part, runs: Mapping[str, Run], measures: str, first: str, scoring: Scoring | None = None
    ) -> AuditResult:
        """An audit of re-ranked lists with their first stage, which is named ``first``; ``scoring`` if not by ours."""
        back = read_run(part.run, name=first)
        found = {first: back, **runs}
        documents = pl.concat([run.table["doc_id"] for run in found.values()]).unique(maintain_order=True)
        texts = read_texts(self.collection, documents)
        judged = read_qrels(part.qrels).join(back.queries.to_frame(), on="query_id", how="semi")
        scoring = scoring or Scoring(load_lexicon(LEXICON))
        return audit(
            found,
            collection=texts,
            qrels=judged,
            background=back,
            measures=measures,
            lexicon=scoring.lexicon,
            tokens=scoring.tokens,
        )


class Trainings(Generic[S, D]):
    """The trainings of one run of an experiment, each run once, in folders under ``folder``."""

    source: str
    """The paper that the recipes come from."""

    def __init__(self, settings: S, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.settings, self.folder, self.say = settings, folder, say
        self._data: dict[Hashable, D] = {}

    def _once(self, key: Hashable, prepare: Callable[[], D]) -> D:
        """The data of a key, prepared on first use."""
        if key not in self._data:
            self._data[key] = prepare()
        return self._data[key]

    def _work(self, seed: int, collection: str) -> Work:
        return Work(self.folder / f"seed-{seed}", collection, self.source, self.say)

    def ahead(self, steps: Iterable[Step], jobs: int) -> None:
        """Runs independent steps in ``jobs`` processes of one thread each.

        Their results are kept in the folder, where the same method, called in this process, finds them. With one job,
        nothing is run ahead. Raises the EvenrankError of the first step that fails.
        """
        todo = list(dict.fromkeys(steps))
        if jobs < 2:
            return
        if len(todo) == 1:
            # What later steps, run in parallel, share.
            method, arguments = todo[0]
            getattr(self, method)(*arguments)
        if len(todo) < 2:
            return
        # Otherwise glibc returns the memory of every tensor to the system, which costs a quarter of the time.
        for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
            os.environ.setdefault(name, str(1 << 32))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            min(jobs, len(todo)), context, _start_worker, (type(self), self.settings, self.folder)
        ) as pool:
            waiting = [pool.submit(_run_step, *step) for step in todo]
            try:
                for future in waiting:
                    said, problem = future.result()
                    for text in said:
                        self.say(text)
                    if problem is not None:
                        raise EvenrankError(problem)
            except (KeyboardInterrupt, SystemExit):
                # Their trainings, which may take minutes more, resume from their checkpoints.
                for child in multiprocessing.active_children():
                    child.terminate()
                raise
            finally:
                pool.shutdown(cancel_futures=True)


_trainings: object
"""In a process of :meth:`Trainings.ahead`: the object whose methods are its steps."""


def _start_worker(kind: type[Trainings[S, D]], settings: S, folder: Path) -> None:
    import torch

    global _trainings
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _trainings = kind(settings, folder)
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
    assert isinstance(_trainings, Trainings)
    _trainings.say = said.append
    try:
        getattr(_trainings, method)(*arguments)
    except EvenrankError as error:
        return said, str(error)
    return said, None


def _finished(folder: Path, recipe: Recipe) -> Trained:
    from evenrank.training.recipes import load_recipe

    differing = changed(load_recipe(folder / "recipe.toml").model_dump(), recipe.model_dump())
    if differing:
        raise EvenrankError(
            f"{folder}: this training had another recipe ({', '.join(differing)});"
            " choose another `folder` to start over"
        )
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    precision: Precision = "bfloat16" if recipe.training.precision == "bfloat16" else "float32"
    return Trained(folder, recipe.ranker.kind, result, recipe.data.blind is not None, precision)


def cpu_precision() -> Precision:
    """bfloat16 if the processor computes in it, else float32, which is then faster; float32 on a GPU."""
    if importlib.util.find_spec("torch") is None:
        return "float32"
    import torch

    if torch.cuda.is_available():
        return "float32"
    able = torch.cpu.get_capabilities()
    return "bfloat16" if able.get("amx_bf16") or able.get("avx512_bf16") else "float32"


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def write_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Writes the settings of an experiment. Raises EvenrankError if the folder was begun with other settings."""
    make_folder(folder)
    file = folder / "settings.json"
    text = json.dumps(settings, indent=1, sort_keys=True, default=str)
    if file.is_file():
        differing = changed(json.loads(file.read_text(encoding="utf-8")), json.loads(text))
        if differing:
            raise EvenrankError(
                f"{folder}: begun with other settings ({', '.join(differing)}); choose another `folder`, or delete this"
                " one, to start over"
            )
        return
    write_text(file, text)


def write_tables(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes texts as files, by file name."""
    for name, text in texts.items():
        with atomic_path(folder / name) as part:
            part.write_text(text, encoding="utf-8")
