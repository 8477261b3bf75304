"""``evenrank audit``: group bias of rankings, beside effectiveness."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Annotated, Any, cast

import typer

from . import _options, _output, _words


@_options.in_range
def command(
    runs: Annotated[list[str], typer.Argument(metavar="[NAME=]RUN…", help="TREC run files, with or without a name.")],
    collection: _options.Documents = None,
    scores: _options.Scores = None,
    qrels: Annotated[str | None, typer.Option("--qrels", help="TREC qrels or irds:NAME; without, no utility.")] = None,
    queries: Annotated[str | None, typer.Option("--queries", help="Query texts, for the report.")] = None,
    only_queries: Annotated[
        bool, typer.Option("--only-queries", help="Audit the queries of --queries alone, whatever else is judged.")
    ] = False,
    baseline: Annotated[str | None, typer.Option("--baseline", help="The run to compare with.")] = None,
    background: Annotated[
        str | None, typer.Option("--background", help="Run that normalises NFaiRR (the baseline, else the first).")
    ] = None,
    background_depth: Annotated[
        int, typer.Option("--background-depth", help="How many of its documents a query.")
    ] = 200,
    missing: Annotated[
        str, typer.Option("--missing", help="Documents without text: error, skip or neutral.")
    ] = "error",
    missing_limit: Annotated[
        float, typer.Option("--missing-limit", help="Refuse a larger share of documents without text (0 to 1).")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of intervals and permutation tests.")] = 0,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    order: Annotated[
        str, typer.Option("--order", help="score (ties by falling document id) or file (the file's order).")
    ] = "score",
    measures: Annotated[
        str | None, typer.Option("--measures", help="For example \"nDCG@10 NFaiRR@10 ARaB(magnitude='bool')@10\".")
    ] = None,
    json: _options.Json = None,
    report: _options.Report = None,
    per_query: Annotated[str | None, typer.Option("--per-query", help="Also write every query's values (CSV).")] = None,
) -> None:
    """Measure the group bias of one or more rankings, beside their effectiveness."""
    from evenrank.audit import audit, named_runs

    named = named_runs(runs)
    read = (*named.values(), collection, scores, qrels, queries, background, lexicon)
    _output.check(report, streams=(json, per_query), inputs=read)
    _output.will_write(json, report)
    result = audit(
        named,
        collection=collection,
        scores=scores,
        qrels=qrels,
        queries=queries,
        baseline=baseline,
        background=background,
        background_depth=background_depth,
        missing=cast(Any, missing),
        missing_limit=missing_limit,
        only_queries=only_queries,
        seed=seed,
        lexicon=lexicon,
        poles=poles,
        tokens=cast(Any, tokens),
        threshold=threshold,
        order=cast(Any, order),
        measures=measures,
    )
    # Notes name arguments; here they are options.
    said = [tuple(map(_words.said, notes)) for notes in (result.notes, result.warnings)]
    result = replace(result, notes=said[0], warnings=said[1])
    table = result.table(max(100, shutil.get_terminal_size((120, 24)).columns))
    _output.give(result, json, report, shown=table, per_query=per_query)
