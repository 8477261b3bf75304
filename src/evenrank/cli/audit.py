"""``evenrank audit``: group bias of rankings, together with effectiveness."""

from __future__ import annotations

import functools
from typing import Annotated

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# One run: how good it is, how biased, and where that comes from.
evenrank audit bm25.run --collection docs.tsv --qrels qrels.txt
# A new ranker against the one in use, with a page to pass on.
evenrank audit old=bm25.run new=bert.run --baseline old \
    --collection docs.tsv --qrels qrels.txt --report audit.html
# Groups from metadata instead of words: no texts are needed.
evenrank audit bm25.run --labels sellers.csv --qrels qrels.txt
"""


_OF_GROUPS = ("labels", "group_column", "intersect", "neutral")
"""Where the groups of people in a table are, as those of labels are."""
_OF_SQL = ("measures", "lexicon", "group_column", "poles")
"""What the query for a warehouse depends on."""


def command(
    *,
    given: Annotated[Values, From("auditing.compute", "audit")],
    table: Annotated[
        str | None,
        opt.Option("Rows of people, with --score or --selected and --group-column.", reads=True),
    ] = None,
    people: Annotated[Values, From("auditing.people", "impact_ratios", without=("table", *_OF_GROUPS))],
    dialect: Annotated[
        str | None,
        opt.Option(
            "Print the query that makes --sums of a log; of labels, by --group-column.",
            flag="--sql",
            metavar="DIALECT",
            panel="Input",
        ),
    ] = None,
    sums: Annotated[
        list[str] | None,
        opt.Option("Sums of a log, by the query of --sql.", typed=list, metavar="[NAME=]FILE", reads=True),
    ] = None,
    full: opt.Full = False,
    json: opt.Json = None,
    values: Annotated[
        bool, opt.Option("With --json: also each query's values (for gate).", needs=("json",), panel="Output")
    ] = False,
    report: opt.Report = None,
    per_query: Annotated[str | None, opt.Option("Also write the values for each query (CSV).", panel="Output")] = None,
    tables: Annotated[
        str | None,
        opt.Option(
            "impact: print the table that an audit of selection publishes.",
            metavar="NAME",
            panel="Output",
        ),
    ] = None,
) -> None:
    from evenrank import EvenrankError, audit, audit_sql, audit_sums, impact_ratios, named_runs
    from evenrank.files.errors import quoted
    from evenrank.files.outputs import check_csv
    from evenrank.files.provenance import files_beside

    if tables not in (None, "impact"):
        raise EvenrankError(f"{arg.tables}: expected impact, found {quoted(tables)}")
    others = {"table": (table, _OF_GROUPS), "dialect": (dialect, _OF_SQL), "sums": (sums, ())}
    instead = next((name for name, (value, _) in others.items() if value is not None), None)
    if instead is not None:
        beside = [name for name in given.changed if name not in others[instead][1]]
        beside += [name for name, (value, _) in others.items() if value is not None and name != instead]
        if beside or values:
            other = [*beside, "values"][0]
            raise EvenrankError(
                f"{arg(instead)} or {arg(other)}: an audit is of runs, of people in a table, or of sums"
            )
    if sums is not None and len(sums) > 1:
        raise EvenrankError(f"{arg.sums}: expected one file, found {len(sums)}: sums compare no runs")
    if dialect is not None:
        outputs = {"full": full, "json": json, "report": report, "per_query": per_query, "tables": tables}
        unused = next((name for name, value in outputs.items() if value), None)
        if unused is not None:
            raise EvenrankError(f"{arg.dialect} or {arg(unused)}: a query has no figures")
        _output.say(audit_sql(dialect, **{name: given[name] for name in _OF_SQL}))  # type: ignore[arg-type]
        return
    if table is not None:
        _output.check(report=report, streams=(json, per_query), inputs=(table, given["labels"]))
        check_csv(per_query)
        ratios = impact_ratios(table, **people, **{name: given[name] for name in _OF_GROUPS})
        shown = ratios.impact_text() if tables else None
        _output.emit(ratios, json, report, full=full, per_query=per_query, to_csv=ratios.per_query, text=shown)
        return
    runs = named_runs(sums if sums is not None else given["runs"] or [])
    inputs = (*runs.values(), *files_beside(*runs.values()), *given.read)
    _output.check(report=report, streams=(json, per_query), inputs=inputs)
    check_csv(per_query)
    result = audit(**{**given, "runs": runs}) if sums is None else audit_sums(sums[0])
    to_json = functools.partial(result.to_json, values=values)
    shown = result.impact_text() if tables else None
    _output.emit(
        result, json, report, full=full, per_query=per_query, to_csv=result.per_query, to_json=to_json, text=shown
    )
