"""``evenrank gate``: whether a run keeps to a budget, for pipelines."""

from __future__ import annotations

from contextlib import suppress
from json import loads
from os.path import isfile
from typing import Annotated

import typer

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# May the new run take the old one's place?
evenrank gate new=bert.run --baseline old=bm25.run --budget budget.toml \
    --collection docs.tsv --qrels qrels.txt
# A budget to begin with: what these queries can check.
evenrank gate new=bert.run --baseline old=bm25.run --init budget.toml \
    --collection docs.tsv --qrels qrels.txt
# In a pipeline, of an audit made with --values: what is not shown fails too.
evenrank gate audit.json --budget budget.toml --strict --junit gate.xml
"""

_AUDIT = From("auditing.compute", "audit", without=("runs", "baseline", "margin", "measures"))
"""The options of an audit that a gate has too: its budget says what is measured."""


def command(
    runs: Annotated[
        list[str],
        opt.Option(
            "The TREC run to gate, then runs that rules name; or the JSON of evenrank audit --values.",
            metavar="[NAME=]RUN…|AUDIT.json",
            typed=list,
        ),
    ],
    *,
    budget: Annotated[
        str | None, opt.Option("The rules (TOML).", reads=True, excludes=("init",), unless=("init", "check"))
    ] = None,
    init: Annotated[
        str | None, opt.Option("Write a budget that these queries can check.", metavar="FILE", panel="Output")
    ] = None,
    check: Annotated[bool, opt.Option("Only read budgets, given as runs are.", panel="Input", rare=True)] = False,
    own: Annotated[Values, From("decide.gate", "gate", without=("budget",))],
    audited: Annotated[Values, _AUDIT],
    strict: Annotated[
        bool, opt.Option("What is not shown fails as well (exit status 1, not 3).", panel="Statistics")
    ] = False,
    full: opt.Full = False,
    json: opt.Json = None,
    junit: Annotated[str | None, opt.Option("Also write JUnit XML.", metavar="FILE", panel="Output")] = None,
    markdown: Annotated[
        str | None,
        opt.Option("Also write a Markdown table; -: print it instead of the text.", metavar="FILE", panel="Output"),
    ] = None,
    github: Annotated[bool, opt.Option("Also print annotations of GitHub Actions.", panel="Output")] = False,
) -> None:
    import evenrank
    from evenrank.decide.budget import as_budget
    from evenrank.files import write_text
    from evenrank.files.provenance import files_beside

    if check:
        for path in runs:
            as_budget(path)
        return
    made = next(filter(_is_audit, runs), None)
    if made is not None and len(runs) > 1:
        raise evenrank.EvenrankError(f"{made}: an audit's JSON stands alone, without runs beside it and without a name")
    named = {} if made else evenrank.named_runs(runs)
    base = own["baseline"]
    first = next((name for name in named if name != base), None)
    if base is not None and base not in named and made is None:
        more = evenrank.named_runs([base])
        base = next(iter(more))
        if base in named:
            raise evenrank.EvenrankError(f"{arg.baseline}: expected a name of its own, found {base!r} twice")
        named |= more
    inputs = (made, budget, *own.read, *named.values(), *files_beside(*named.values()), *audited.read)
    _output.check(junit, streams=(json, markdown, init), inputs=inputs)
    if made is not None:
        for name in audited.changed:
            raise evenrank.EvenrankError(f"{arg(name)} belongs to an audit of runs; the JSON is of one that was made")
    if init is not None:
        source = made or evenrank.audit(named, **audited, baseline=base)
        from evenrank.decide.initial_budget import checkable_budget

        made_of = checkable_budget(source, baseline=base, run=own["run"] or first)
        with _output.target(init) as path:
            write_text(path, made_of.text)
        if init != _output.STANDARD:
            _output.say(made_of.summary(init))
        return
    if made is not None:
        result = evenrank.gate(made, **{**own, "budget": budget, "baseline": base})
    else:
        rules = as_budget(budget)  # type: ignore[arg-type]
        if audited["qrels"] is None:
            rules.check_unjudged()
        measured = evenrank.audit(named, **audited, baseline=base, measures=rules.measures)
        run = first if own["run"] is None else own["run"]
        result = evenrank.gate(measured, budget=rules, run=run, correction=own["correction"])
    with _output.target(json) as values, _output.target(markdown) as table:
        if values:
            result.to_json(values)
        if table:
            write_text(table, result.markdown())
        if junit is not None:
            write_text(junit, result.junit(strict=strict))
    if _output.STANDARD not in (json, markdown):
        _output.say(result.table(full=full, width=120 if full else _output.SCREEN))
    if github:
        _output.say(result.annotations(strict=strict), err=_output.STANDARD in (json, markdown))
    raise typer.Exit(result.status(strict=strict))


def _is_audit(path: str) -> bool:
    """Whether a file is an audit's JSON, by its keys: a run may be JSON, too; by its name if it is not there."""
    if not isfile(path):
        return path.lower().endswith(".json") and "=" not in path
    with suppress(OSError, ValueError, RecursionError), open(path, encoding="utf-8") as file:
        head = file.read(1000)
        content = loads(head + file.read()) if head.lstrip().startswith("{") else None
        return isinstance(content, dict) and not content.keys().isdisjoint(("evenrank", "runs"))
    return False
