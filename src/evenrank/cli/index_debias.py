"""``evenrank index debias``: a dense index whose vectors the groups are erased from, and what probes still recover."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output
from .index import Precision, QueryPrompt


@_options.in_range
def command(
    index: Annotated[str, typer.Argument(metavar="INDEX", help="An index of a model's vectors (evenrank index).")],
    out: Annotated[str, typer.Option(help="The folder of the debiased index, new or empty.")],
    method: Annotated[
        str, typer.Option(help="leace, fitted on the passages, or hard: the directions of the lexicon's pairs.")
    ] = "leace",
    components: Annotated[int, typer.Option(help="hard: directions to project out.")] = 1,
    collection: _options.MaybeCollection = None,
    lexicon: _options.OwnLexicon = None,
    scores: _options.GroupTable = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--groups",
            metavar="GROUP",
            help="A group of --labels to erase though it has fewer than 20 passages; repeatable.",
        ),
    ] = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    queries: Annotated[
        str | None,
        typer.Option("--queries", help="Queries to rank before and after: TSV, JSONL, Parquet or irds:NAME."),
    ] = None,
    qrels: Annotated[
        str | None, typer.Option("--qrels", help="TREC qrels or irds:NAME; without, effectiveness is unknown.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Documents per query.")] = 200,
    sample: Annotated[int, typer.Option(help="The most passages of each group that the probes see.")] = 1000,
    model: Annotated[
        str | None, typer.Option(help="Where the index's model is now, if not where it was (the same files).")
    ] = None,
    batch_size: _options.BatchSize = 32,
    device: _options.Device = None,
    precision: Precision = None,
    query_prompt: QueryPrompt = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the probes and the intervals.")] = 0,
    quiet: _options.Quiet = False,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """Erase the groups from a dense index and from the queries that search it, and show what is still recovered."""
    from evenrank import Encoding, debias_index

    _output.refuse_standard(out)
    _output.check(report, streams=(json,), inputs=(index, collection, lexicon, scores, labels, queries, qrels))
    _output.will_write(json, report)
    encoding = Encoding(batch_size=batch_size, device=device, precision=precision, query_prompt=query_prompt)
    result = debias_index(
        index,
        out,
        method=method,
        components=components,
        collection=collection,
        lexicon=lexicon,
        scores=scores,
        labels=labels,
        neutral=neutral or (),
        group_column=group_column,
        groups=groups,
        poles=poles,
        tokens=tokens,
        threshold=threshold,
        queries=queries,
        qrels=qrels,
        depth=depth,
        sample=sample,
        model=model,
        encoding=encoding,
        seed=seed,
        quiet=quiet,
    )
    _output.emit(result, json, report)
    _output.say(f"{result.manifest.documents:,} documents debiased: {out}", err=True)
