"""A fairer order of a run file of any length, a few queries at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import polars as pl

from evenrank.io import Provenance, Run, as_qrels, read_run, write_run
from evenrank.io.atomic import is_stream
from evenrank.io.errors import readable
from evenrank.io.run_cards import write_card
from evenrank.io.run_chunks import run_chunks
from evenrank.io.runs import write_tables

from .rebalance import UNKNOWN_EFFECTIVENESS, bias_alone, rebalanced, settings_of, shown
from .rebalance_lists import SHOWN, Changes, Grouping
from .rebalance_methods import Kept, applied
from .rebalance_plan import Plan, Request, notes_of, restricted
from .rebalance_result import RebalanceReport

PathLike = str | os.PathLike[str]


def write_rebalanced(
    request: Request,
    run: PathLike,
    out: PathLike,
    *,
    qrels: object = None,
    name: str = "rebalanced",
    provenance: Provenance,
    card: bool = True,
) -> RebalanceReport:
    """Writes a run's fairer order to ``out``, with its ``card``; the bytes are those of the run in memory.

    Without ``qrels`` and bounds there are figures of bias in the first documents alone, and the file is read in chunks
    of whole queries, twice: first for the ids of the documents that can move, and, where a direction is learnt, the
    first ``depth`` rows of the queries to learn it on; memory holds these, the first 10 rows of each query, what is
    known of the documents, and one chunk. Raises EvenrankError as :func:`evenrank.rebalance`.
    """
    if qrels is not None or request.bounds or is_stream(run):
        judged = None if qrels is None else as_qrels(qrels)
        made = rebalanced(request, read_run(run, named_after(run)), judged, name, provenance)
        write_run(made.run, out)
        report: RebalanceReport = made
    else:
        report = _streamed(request, run, out, name, provenance)
    if card:
        write_card(_made_by(report), out, provenance)
    return report


def named_after(run: PathLike) -> str:
    """The name of a run file's run."""
    return readable(os.path.basename(os.fspath(run)))


def _streamed(request: Request, path: PathLike, out: PathLike, name: str, provenance: Provenance) -> RebalanceReport:
    grouping, plan, notes = _planned(request, path)
    state = _Sums()
    before: list[pl.DataFrame] = []
    after: list[pl.DataFrame] = []

    def tables() -> Iterator[pl.DataFrame]:
        for chunk in run_chunks(path)[0]:
            run = Run(named_after(path), chunk)
            lists = grouping.lists(run)
            order, kept = applied(plan.method, lists.lists, plan.strength)
            tuning = request.queries.chosen(run.queries) if request.tunes else None
            state.changes += lists.changes(order, None if tuning is None else (~tuning).to_numpy())
            state.kept += kept
            made = lists.reordered(order)
            reported = pl.Series([True] * len(run.queries)) if tuning is None else ~tuning
            for kept_of, one in ((before, run), (after, made)):
                kept_of.append(shown(restricted(one, reported)).table)
            yield made.table

    name = name if name != named_after(path) else f"{name} (rebalanced)"
    write_tables(tables(), name, out)
    notes += notes_of(request, plan, grouping, state.changes, state.kept)
    return RebalanceReport(
        name,
        request.method.name,
        plan.strength,
        plan.learnt,
        state.changes,
        (),
        bias_alone(request, grouping, Run(named_after(path), pl.concat(before)), Run(name, pl.concat(after))),
        None,
        settings_of(request, grouping),
        tuple(notes),
        provenance,
    )


class _Sums:
    """What is summed over chunks."""

    def __init__(self) -> None:
        self.changes, self.kept = Changes(), Kept()


def _planned(request: Request, path: PathLike) -> tuple[Grouping, Plan, list[str]]:
    """What the first pass finds: what is known of the documents, and the method with its direction."""
    ids: list[pl.Series] = []
    tuning: list[pl.DataFrame] = []
    others = 0
    for chunk in run_chunks(path)[0]:
        ids.append(chunk["doc_id"].filter(chunk["rank"] <= max(request.depth, SHOWN)).unique())
        if request.tunes:
            queries = chunk["query_id"].filter(chunk["rank"] == 1)
            chosen = queries.filter(request.queries.chosen(queries))
            others += len(queries) - len(chosen)
            own = chunk.filter(pl.col("query_id").is_in(chosen.implode()))
            # Scores are scaled over the whole list, whose last row has the lowest.
            last = own["rank"].shift(-1).fill_null(1) == 1
            tuning.append(own.filter((own["rank"] <= request.depth) | last))
    grouping = request.source.grouping([pl.concat(ids).unique()], request.depth)
    notes = [UNKNOWN_EFFECTIVENESS]
    on = Run(named_after(path), pl.concat(tuning)) if tuning else None
    if on is not None:
        request.queries.check(len(on.queries), others)
        notes.append(request.queries.note(len(on.queries), others))
    return grouping, request.plan(grouping, on, None), notes


def _made_by(report: RebalanceReport) -> dict[str, object]:
    """The card's values: among them, how many of the rows that were put into order were tied."""
    return {
        "stage": "rebalance",
        "method": report.method,
        "strength": report.strength,
        **report.learnt,
        "depth": report.settings["depth"],
        "tied": {"rows": report.changes.tied, "of": report.changes.total},
        "unknown": {"rows": report.changes.lacking, "of": report.changes.total},
        "bounds": [found.to_dict() for found in report.outcomes],
        "settings": report.settings,
    }
