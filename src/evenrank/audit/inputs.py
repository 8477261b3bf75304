"""What an audit is given: runs, scores, measures and options, loaded and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
from ir_measures import Measure

from evenrank.groups import Scoring, score_batches
from evenrank.io import EvenrankError, InputError, Order, Run, Scores, read_queries, read_run, scan_texts
from evenrank.io.errors import shown
from evenrank.io.tables import IdIndex
from evenrank.measures import DELTA, is_bias, parse_measure, parse_measures

from .findings import REFERENCES

PathLike = str | os.PathLike[str]
UTILITY = "nDCG@10 RR@10 R@1000"
BIAS = "NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10"
PAIRWISE = "DeltaAPRF"


def load_runs(runs: Mapping[str, PathLike | Run | pl.DataFrame] | Sequence[PathLike], order: Order) -> list[Run]:
    """The runs to audit. Raises EvenrankError where there is none or a name stands twice, InputError for a bad file."""
    if not isinstance(runs, Mapping):
        runs = named_runs([runs] if isinstance(runs, str | os.PathLike) else runs)
    if not runs:
        raise EvenrankError("an audit needs at least one run")
    return [load_run(run, name, order) for name, run in runs.items()]


def run_name(path: PathLike) -> str:
    """The name that a run file gives its run: its own, without ``.gz``, ``.run``, ``.txt``, ``.tsv`` or ``.trec``."""
    name = os.path.basename(os.fspath(path)).removesuffix(".gz")
    stem, suffix = os.path.splitext(name)
    return stem if suffix in (".run", ".txt", ".tsv", ".trec") and stem else name


def named_runs(arguments: Sequence[PathLike]) -> dict[str, PathLike | Run | pl.DataFrame]:
    """Runs by name from ``NAME=RUN`` or ``RUN``, which takes its file's name. Raises EvenrankError for a name twice."""
    named: dict[str, PathLike | Run | pl.DataFrame] = {}
    for argument in arguments:
        text = os.fspath(argument)
        name, equals, path = text.partition("=")
        if not equals or not name or os.path.exists(text):
            name, path = run_name(text), text
        if name in named:
            raise EvenrankError(f"two runs are named {shown(name)}: name them, as in NAME={path}")
        named[name] = path
    return named


def load_run(run: PathLike | Run | pl.DataFrame, name: str, order: Order) -> Run:
    """One run from a file, a table or a :class:`Run`, under its name."""
    if isinstance(run, pl.DataFrame):
        return Run.from_table(run, name, order=order)
    if isinstance(run, Run):
        return replace(run, name=name)
    return read_run(run, name, order=order)


def check_options(names: list[str], baseline: str | None, depth: int, missing: str, order: str, seed: int) -> None:
    """Raises EvenrankError, naming the option, for a value that is not allowed."""
    reserved = [name for name in names if name in REFERENCES]
    if reserved:
        raise EvenrankError(f"the name {shown(reserved[0])} is kept for a reference ranking: name the run otherwise")
    if baseline is not None and baseline not in names:
        raise EvenrankError(f"--baseline: no run {shown(baseline)} (the runs are {', '.join(names)})")
    if depth < 1:
        raise EvenrankError(f"--background-depth: expected 1 or more, found {depth}")
    if seed < 0:
        raise EvenrankError(f"--seed: expected 0 or more, found {seed}")
    if missing not in ("error", "skip", "neutral"):
        raise EvenrankError(f"--missing: expected error, skip or neutral, found {shown(missing)}")
    if order not in ("score", "file"):
        raise EvenrankError(f"--order: expected score or file, found {shown(order)}")


def choose_measures(measures: str | Sequence[str | Measure] | None, judged: bool) -> tuple[list[Measure], list[str]]:
    """The measures, utility first, and what to say about the choice."""
    notes = []
    if not judged:
        notes.append("Effectiveness is unknown: there are no qrels. A ranking of nonsense can be perfectly fair.")
    if measures is None:
        chosen = parse_measures(f"{UTILITY} {BIAS} {PAIRWISE}" if judged else BIAS)
    elif isinstance(measures, str):
        chosen = parse_measures(measures)
    else:
        chosen = list(dict.fromkeys(parse_measure(measure) for measure in measures))
    needing = [m for m in chosen if not is_bias(m) or m.NAME in ("APRF", *DELTA)]
    if needing and not judged:
        raise EvenrankError(f"{needing[0]} needs --qrels")
    if judged and all(is_bias(measure) for measure in chosen):
        chosen.append(parse_measure("nDCG@10"))
        notes.append("nDCG@10 was added: bias is not shown without effectiveness.")
    return sorted(chosen, key=is_bias), notes


def load_background(background: PathLike | Run | None, runs: list[Run], baseline: str | None, order: Order) -> Run:
    """The run that normalises NFaiRR: the one given, else the baseline, else the first."""
    if background is None:
        return next((run for run in runs if run.name == baseline), runs[0])
    if isinstance(background, Run):
        return background
    return next((run for run in runs if run.name == background), None) or read_run(
        background, run_name(background), order=order
    )


def check_queries(queries: PathLike | pl.DataFrame, runs: list[Run]) -> None:
    """Raises InputError where a query of a run has no text."""
    known = queries if isinstance(queries, pl.DataFrame) else read_queries(queries)
    for run in runs:
        lacking = run.queries.filter(~run.queries.is_in(known["query_id"].implode()))
        if len(lacking):
            message = (
                f"no text for {len(lacking)} of the queries of the run {run.name}: {', '.join(map(shown, lacking[:5]))}"
            )
            raise InputError("the queries" if isinstance(queries, pl.DataFrame) else queries, message)


def score_documents(runs: list[Run], collection: PathLike | pl.DataFrame | None, scoring: Scoring) -> Scores:
    """Scores of the runs' documents, from the collection's texts as they are read."""
    if collection is None:
        raise EvenrankError("an audit needs the documents' texts or scores: give --collection or --scores")
    ids = [run.table["doc_id"] for run in runs]
    if isinstance(collection, pl.DataFrame):
        texts = iter(collection.filter(IdIndex(ids).among(collection["doc_id"])).iter_slices(1 << 15))
    else:
        texts = scan_texts(collection, ids)
    return Scores.of(pl.concat(list(score_batches(texts, scoring))), scoring.describe())
