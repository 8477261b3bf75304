"""What an audit is given: runs, scores, measures and options, loaded and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from ir_measures import Measure

from evenrank.groups import Lexicon, Scoring, WordCounts, note_lexicon, score_with_words
from evenrank.io import (
    EvenrankError,
    InputError,
    Order,
    Provenance,
    Run,
    Scores,
    as_queries,
    as_run,
    read_run,
    scan_texts,
)
from evenrank.io.convert import is_run
from evenrank.io.errors import readable, shown
from evenrank.io.ranges import check_ranges
from evenrank.io.tables import IdIndex
from evenrank.measures import DELTA, is_bias, parse_measure, parse_measures

from .findings import REFERENCES

PathLike = str | os.PathLike[str]
UTILITY = "nDCG@10 RR@10 R@1000"
BIAS = "NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10"
PAIRWISE = "DeltaAPRF"


def as_named(runs: Any, order: Order) -> Mapping[str, Any]:
    """The runs by name; a run alone, in any form, under its own name, else as ``run``.

    Raises EvenrankError where a name stands twice.
    """
    if isinstance(runs, Mapping) and not is_run(runs):
        return runs
    if isinstance(runs, str | os.PathLike):
        return named_runs([runs])
    if isinstance(runs, Sequence) and (not runs or isinstance(runs[0], Run | str | os.PathLike)):
        return named_runs(runs)
    one = as_run(runs, order=order, what="`runs`")
    return {one.name: one}


def note_sources(
    made: Provenance,
    runs: Mapping[str, Any],
    background: Any,
    collection: Any,
    scores: Any,
    qrels: Any,
    queries: Any,
    lexicon: PathLike | Lexicon | None,
) -> None:
    """Notes all that an audit is given, before it is read."""
    for name, run in runs.items():
        made.add(f"run {name}", run)
    if not (isinstance(background, str) and background in runs):
        made.add("background", background)
    sources = {"collection": collection, "scores": scores, "qrels": qrels, "queries": queries}
    for role, source in sources.items():
        made.add(role, source)
    note_lexicon(made, lexicon or (None if scores is not None else "gender-en"))


def load_runs(named: Mapping[str, Any], order: Order) -> list[Run]:
    """The runs to audit. Raises EvenrankError where there is none, InputError for a bad file."""
    if not named:
        raise EvenrankError("an audit needs at least one run")
    odd = next((name for name in named if not isinstance(name, str)), None)
    if odd is not None:
        raise EvenrankError(f"`runs`: expected names, found {odd!r}: one run is {{query: {{document: score}}}}")
    return [load_run(run, name, order) for name, run in named.items()]


def only_queries_of(run: Run, queries: pl.Series) -> Run:
    """The run's lists for ``queries``. Raises EvenrankError where it has none."""
    table = run.table.filter(pl.col("query_id").is_in(queries.implode()))
    if not table.height:
        raise EvenrankError(f"{run.described}: `only_queries` leaves none of its {len(run.queries)} queries")
    return replace(run, table=table)


def run_name(path: PathLike) -> str:
    """The name that a run file gives its run: its own, without ``.gz``, ``.run``, ``.txt``, ``.tsv`` or ``.trec``."""
    name = readable(os.path.basename(os.fspath(path))).removesuffix(".gz")
    stem, suffix = os.path.splitext(name)
    return stem if suffix in (".run", ".txt", ".tsv", ".trec") and stem else name


def named_runs(arguments: Sequence[PathLike | Run]) -> dict[str, PathLike | Run]:
    """Runs by name from ``NAME=RUN`` or ``RUN``, which takes its file's name, or a :class:`Run`, which has one.

    Raises EvenrankError for a name that stands twice.
    """
    named: dict[str, PathLike | Run] = {}
    for argument in arguments:
        run: PathLike | Run
        if isinstance(argument, Run):
            name, run = argument.name, argument
        elif isinstance(argument, str | os.PathLike):
            text = os.fspath(argument)
            name, equals, path = text.partition("=")
            named_so = equals and name and not os.path.exists(text)
            name, run = (name, path) if named_so else (run_name(text), text)
            name = readable(name)
        else:
            raise EvenrankError(f"`runs`: expected paths or Runs in the list, found a {type(argument).__name__}")
        if name in named:
            example = "{'other': run}" if isinstance(run, Run) else f"NAME={run}"
            raise EvenrankError(f"two runs are named {shown(name)}: name them, as in {example}")
        named[name] = run
    return named


def load_run(run: Any, name: str, order: Order) -> Run:
    """One run under its name, from whatever :func:`evenrank.io.as_run` takes."""
    return as_run(run, name, order=order, what=f"run {name}")


def check_options(
    names: list[str], baseline: str | None, depth: int, missing: str, missing_limit: float, order: str, seed: int
) -> None:
    """Raises EvenrankError, naming the option, for a value that is not allowed."""
    reserved = [name for name in names if name in REFERENCES]
    if reserved:
        raise EvenrankError(f"the name {shown(reserved[0])} is kept for a reference ranking: name the run otherwise")
    if baseline is not None and baseline not in names:
        raise EvenrankError(f"`baseline`: no run {shown(baseline)} (the runs are {', '.join(names)})")
    check_ranges(background_depth=depth, seed=seed, missing_limit=missing_limit)
    if missing not in ("error", "skip", "neutral"):
        raise EvenrankError(f"`missing`: expected error, skip or neutral, found {shown(missing)}")
    if order not in ("score", "file"):
        raise EvenrankError(f"`order`: expected score or file, found {shown(order)}")


def choose_measures(measures: str | Sequence[str | Measure] | None, judged: bool) -> tuple[list[Measure], list[str]]:
    """The measures, utility first, and what to say about the choice."""
    notes = []
    if measures is None:
        chosen = parse_measures(f"{UTILITY} {BIAS} {PAIRWISE}" if judged else BIAS)
    elif isinstance(measures, str):
        chosen = parse_measures(measures)
    elif isinstance(measures, Iterable):
        chosen = list(dict.fromkeys(map(parse_measure, measures)))
    else:
        raise EvenrankError(f"`measures`: expected a text or a list of measures, found {shown(measures)}")
    needing = [m for m in chosen if not is_bias(m) or m.NAME in ("APRF", *DELTA)]
    if needing and not judged:
        raise EvenrankError(f"{needing[0]} needs `qrels`")
    if judged and all(is_bias(measure) for measure in chosen):
        chosen.append(parse_measure("nDCG@10"))
        notes.append("nDCG@10 was added: bias is not shown without effectiveness.")
    return sorted(chosen, key=is_bias), notes


def load_background(background: Any, runs: list[Run], baseline: str | None, order: Order) -> Run:
    """The run that normalises NFaiRR: the one given, else the baseline, else the first."""
    if background is None:
        return next((run for run in runs if run.name == baseline), runs[0])
    if not isinstance(background, str | os.PathLike):
        return as_run(background, order=order, what="`background`")
    return next((run for run in runs if run.name == background), None) or read_run(
        background, run_name(background), order=order
    )


def query_ids(queries: PathLike | pl.DataFrame) -> pl.Series:
    """The ids of the queries given."""
    return as_queries(queries)["query_id"]


def check_queries(queries: PathLike | pl.DataFrame, known: pl.Series, runs: list[Run]) -> None:
    """Raises InputError where a query of a run is not among those ``known``, and so has no text."""
    for run in runs:
        lacking = run.queries.filter(~run.queries.is_in(known.implode()))
        if len(lacking):
            message = (
                f"no text for {len(lacking)} of the {len(run.queries)} queries of the {run.described}:"
                f" {', '.join(map(shown, lacking[:5]))}{', …' if len(lacking) > 5 else ''}"
                " (`only_queries` leaves them out)"
            )
            raise InputError("the queries" if isinstance(queries, pl.DataFrame) else queries, message)


def score_documents(
    runs: list[Run], collection: PathLike | pl.DataFrame | None, scoring: Scoring
) -> tuple[Scores, WordCounts]:
    """Scores of the runs' documents and the words in them, from the collection's texts as they are read."""
    if collection is None:
        raise EvenrankError("an audit needs the documents' texts or scores: give `collection` or `scores`")
    source = "the collection" if isinstance(collection, pl.DataFrame) else f"the collection {os.fspath(collection)}"
    scored, counts = score_with_words(texts_of(runs, collection), scoring)
    return replace(scored, source=source), counts


def texts_of(runs: list[Run], collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents of the runs in a collection, in batches."""
    ids = [run.table["doc_id"] for run in runs]
    if isinstance(collection, pl.DataFrame):
        return iter(collection.filter(IdIndex(ids).among(collection["doc_id"])).iter_slices(1 << 15))
    return scan_texts(collection, ids)
