"""``evenrank gate``: whether a run keeps to a budget, for pipelines."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import _options, _output, _words, audit

if TYPE_CHECKING:
    from evenrank import GateResult

Audited = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAME=]RUN…|AUDIT.json",
        help="The TREC run to gate, then runs that rules name; or the JSON of evenrank audit --values.",
    ),
]
BudgetFile = Annotated[str, typer.Option("--budget", help="The rules (TOML).")]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="[NAME=]RUN", help="The run that rules call the baseline; a file, or a name."),
]
RunName = Annotated[
    str | None,
    typer.Option("--run", help="Which run to gate (default: the first; of AUDIT.json the only other one)."),
]
Correction = Annotated[
    Literal["holm", "none"],
    typer.Option(
        "--correction", parser=_options.text, help="For the number of rules, of those that are broken: holm or none."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="What is not shown fails as well (exit status 1, not 3).")]
Junit = Annotated[str | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")]
Markdown = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE", help="Also write a Markdown table; -: print it instead of the text."),
]
Github = Annotated[bool, typer.Option("--github", help="Also print annotations of GitHub Actions.")]

_OWN = ("runs", "budget", "baseline", "run", "correction", "strict", "json", "junit", "markdown", "github")
"""The parameters of the gate itself; all others are those of the audit of runs."""


@_options.in_range
def command(
    runs: Audited,
    budget: BudgetFile,
    baseline: Baseline = None,
    run: RunName = None,
    collection: _options.MaybeCollection = None,
    scores: _options.GroupTable = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    unknown: audit.Unknown = None,
    target: audit.Target = None,
    qrels: audit.Qrels = None,
    queries: audit.Queries = None,
    only_queries: audit.OnlyQueries = False,
    background: audit.Background = None,
    background_depth: audit.BackgroundDepth = 200,
    missing: audit.Missing = "error",
    missing_limit: audit.MissingLimit = 0.1,
    seed: audit.Seed = 0,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    order: audit.Order = "score",
    correction: Correction = "holm",
    strict: Strict = False,
    json: _options.Json = None,
    junit: Junit = None,
    markdown: Markdown = None,
    github: Github = False,
) -> None:
    """Decide whether a run keeps to a budget: every rule holds, is broken, or is not shown."""
    given = dict(locals())
    import evenrank

    _check_named(runs)
    audited = runs[0] if len(runs) == 1 and runs[0].lower().endswith(".json") else None
    named = {} if audited else evenrank.named_runs(runs)
    first = next(iter(named), None)
    base = baseline
    if baseline is not None and baseline not in named and audited is None:
        more = evenrank.named_runs([baseline])
        base = next(iter(more))
        if base in named:
            raise evenrank.EvenrankError(f"`baseline`: expected a name of its own, found {base!r} twice")
        named |= more
    texts = (collection, scores, labels, target, qrels, queries, background, lexicon)
    inputs = (audited, budget, *_files(named.values()), *texts)
    _output.check(junit, streams=(json, markdown), inputs=inputs)
    _output.will_write(json)
    if audited is not None:
        _refuse(given)
        result = evenrank.gate(audited, budget, run=run, baseline=base, correction=correction)
    else:
        from evenrank.decisions.budget import as_budget

        rules = as_budget(budget)
        if qrels is None:
            rules.check_unjudged()
        measured = evenrank.audit(
            named,
            collection=collection,
            scores=scores,
            labels=labels,
            neutral=neutral or (),
            group_column=group_column,
            unknown=unknown,
            target=target,
            qrels=qrels,
            queries=queries,
            baseline=base,
            background=background,
            background_depth=background_depth,
            missing=missing,
            missing_limit=missing_limit,
            only_queries=only_queries,
            seed=seed,
            lexicon=lexicon,
            poles=poles,
            tokens=tokens,
            threshold=threshold,
            order=order,
            measures=rules.measures,
        )
        result = evenrank.gate(measured, rules, run=first if run is None else run, correction=correction)
    result = replace(result, warnings=tuple(map(_words.said, result.warnings)))
    _write(result, json, junit, markdown, strict)
    if github:
        _output.say(result.annotations(strict=strict), err=_output.STANDARD in (json, markdown))
    raise typer.Exit(result.status(strict=strict))


def _files(runs: Collection[object]) -> tuple[object, ...]:
    """The runs and the files beside them; without runs the readers of runs are not loaded."""
    if not runs:
        return ()
    from evenrank.io.run_cards import files_beside

    return (*runs, *files_beside(*runs))


def _check_named(runs: Collection[str]) -> None:
    """Raises EvenrankError for a file among the runs that is none: a budget, or an audit beside others."""
    from evenrank import EvenrankError

    for run in runs:
        kind = PurePath(run).suffix.lower()
        if kind == ".toml":
            raise EvenrankError(f"{run}: not a run; a budget is named by `budget`")
        if kind == ".json" and (len(runs) > 1 or "=" in run):
            raise EvenrankError(f"{run}: an audit's JSON stands alone, without runs beside it and without a name")


def _refuse(given: Mapping[str, object]) -> None:
    """Raises EvenrankError for an option of audits that is not its default, beside the JSON of one."""
    from evenrank import EvenrankError

    for name, parameter in inspect.signature(command).parameters.items():
        if name not in _OWN and given[name] not in (parameter.default, []):
            raise EvenrankError(f"`{name}` belongs to an audit of runs; the JSON is of one that was made")


def _write(result: GateResult, json: str | None, junit: str | None, markdown: str | None, strict: bool) -> None:
    """Writes the files that were asked for, and then prints the rules."""
    from evenrank.io import write_text

    with _output.target(json) as values, _output.target(markdown) as table:
        if values:
            result.to_json(values)
        if table:
            write_text(table, result.markdown())
        if junit is not None:
            write_text(junit, result.junit(strict=strict))
    if _output.STANDARD not in (json, markdown):
        _output.say(result.table())
