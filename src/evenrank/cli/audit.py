"""``evenrank audit``: group bias of rankings, together with effectiveness."""

from __future__ import annotations

import functools
import shutil
from dataclasses import replace
from typing import Annotated, Literal

import typer

from . import _options, _output, _words

Runs = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME=]RUN…", help="TREC run files, with or without a name.")
]
Stage = Annotated[
    list[str] | None,
    typer.Option(
        "--stage",
        metavar="NAME=RUN",
        help="A stage of a pipeline, audited as a run; repeated in order, to say what each adds to the bias of the"
        " first one's candidates.",
    ),
]
Qrels = Annotated[
    str | None, typer.Option("--qrels", help="TREC qrels or irds:NAME; without, effectiveness is unknown.")
]
Queries = Annotated[str | None, typer.Option("--queries", help="Query texts, for the report.")]
OnlyQueries = Annotated[bool, typer.Option("--only-queries", help="Audit only the queries in --queries.")]
Guaranteed = Annotated[
    bool,
    typer.Option(
        "--guaranteed", help='Say "no loss" by a bound that holds for any values, after any number of queries.'
    ),
]
Baseline = Annotated[str | None, typer.Option("--baseline", help="The run to compare the others with.")]
Background = Annotated[
    str | None,
    typer.Option("--background", help="The run that normalises NFaiRR (default: the baseline, else the first run)."),
]
BackgroundDepth = Annotated[
    int, typer.Option("--background-depth", help="How many of its documents to use for each query.")
]
Missing = Annotated[
    Literal["error", "skip", "neutral"],
    typer.Option("--missing", parser=_options.text, help="What to do with documents without text."),
]
MissingLimit = Annotated[
    float, typer.Option("--missing-limit", help="Stop if a larger share of documents has no text (0 to 1).")
]
Unknown = Annotated[
    Literal["bounds", "skip", "neutral"] | None,
    typer.Option(
        "--unknown",
        parser=_options.text,
        help="What to do about documents without a label (default: bounds).",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The groups' shares of exposure that AWRF, NDKL, EER and EEL compare with: uniform (default), candidates,"
        " relevant, or a file of group,share or query_id,group,share.",
    ),
]
MoreRankings = Annotated[
    list[str] | None,
    typer.Option(
        "--rankings",
        metavar="NAME=RUN",
        help="Another ranking of the run NAME, for EED, EER and EEL of a system that answers in several orders;"
        " repeatable.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the orders that are drawn.")]
Order = Annotated[
    Literal["score", "file"],
    typer.Option(
        "--order", parser=_options.text, help="score (ties by descending document id), or file (the order of the file)."
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measures",
        help="Default: NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10 (of labels Share of each group for the last); with"
        " --qrels also nDCG@10 RR@10 R@1000 DeltaAPRF.",
    ),
]
Values = Annotated[
    bool, typer.Option("--values", help="With --json: also the value of each query in each figure (gate reads them).")
]
PerQuery = Annotated[str | None, typer.Option("--per-query", help="Also write the values for each query (CSV).")]


def _by_name(arguments: list[str], option: str) -> dict[str, list[str]]:
    """The runs of ``NAME=RUN`` arguments by name. Raises EvenrankError for one without a name."""
    from evenrank import EvenrankError

    found: dict[str, list[str]] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise EvenrankError(f"`{option}`: expected NAME=RUN, found {argument!r}")
        found.setdefault(name, []).append(path)
    return found


def _stages(arguments: list[str]) -> dict[str, str] | None:
    """The runs of ``--stage`` by name, in order. Raises EvenrankError for a name that is repeated."""
    from evenrank import EvenrankError

    found = _by_name(arguments, "stages")
    several = next((name for name, paths in found.items() if len(paths) > 1), None)
    if several is not None:
        raise EvenrankError(f"`stages`: expected one run named {several!r}, found several")
    return {name: path for name, [path] in found.items()} or None


@_options.in_range
def command(
    runs: Runs = None,
    stages: Stage = None,
    collection: _options.MaybeCollection = None,
    scores: _options.GroupTable = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    unknown: Unknown = None,
    target: Target = None,
    rankings: MoreRankings = None,
    qrels: Qrels = None,
    queries: Queries = None,
    only_queries: OnlyQueries = False,
    guaranteed: Guaranteed = False,
    baseline: Baseline = None,
    background: Background = None,
    background_depth: BackgroundDepth = 200,
    missing: Missing = "error",
    missing_limit: MissingLimit = 0.1,
    seed: Seed = 0,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    order: Order = "score",
    measures: Measures = None,
    json: _options.Json = None,
    values: Values = False,
    report: _options.Report = None,
    per_query: PerQuery = None,
) -> None:
    """Measure the group bias of one or more rankings, together with their effectiveness."""
    from evenrank import EvenrankError, audit, named_runs
    from evenrank.io.run_cards import files_beside

    if values and json is None:
        raise EvenrankError("`values` are part of the JSON: it needs `json`")
    named = named_runs(runs or [])
    more = _by_name(rankings or [], "rankings")
    pipeline = _stages(stages or [])
    read = (
        *named.values(),
        *(pipeline or {}).values(),
        *files_beside(*named.values(), *(pipeline or {}).values()),
        *(path for paths in more.values() for path in paths),
        collection,
        scores,
        labels,
        target,
        qrels,
        queries,
        background,
        lexicon,
    )
    _output.check(report, streams=(json, per_query), inputs=read)
    _output.will_write(json, report)
    result = audit(
        named,
        stages=pipeline,
        collection=collection,
        scores=scores,
        labels=labels,
        neutral=neutral or (),
        group_column=group_column,
        unknown=unknown,
        target=target,
        rankings=more,
        qrels=qrels,
        queries=queries,
        baseline=baseline,
        background=background,
        background_depth=background_depth,
        missing=missing,
        missing_limit=missing_limit,
        only_queries=only_queries,
        guaranteed=guaranteed,
        seed=seed,
        lexicon=lexicon,
        poles=poles,
        tokens=tokens,
        threshold=threshold,
        order=order,
        measures=measures,
    )
    # Notes name arguments; here these are options.
    notes, warnings = (tuple(map(_words.said, found)) for found in (result.notes, result.warnings))
    result = replace(result, notes=notes, warnings=warnings)
    table = result.table(max(100, shutil.get_terminal_size((120, 24)).columns))
    to_json = functools.partial(result.to_json, values=values)
    _output.emit(result, json, report, text=table, per_query=(result, per_query), to_json=to_json)
