"""``evenrank expand``: query expansion with word vectors."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Each query becomes its five nearest words.
evenrank expand queries.tsv --vectors vectors --out expanded.tsv
# Mix them with the query's words, for evenrank retrieve --weighted.
evenrank expand queries.tsv --vectors vectors --language-model 0.5 \
    --out weighted.tsv
# Which queries do debiased vectors expand differently?
evenrank expand queries.tsv --vectors vectors --compare debiased \
    --changes changes.jsonl --out expanded.tsv
"""


def command(
    *,
    out: Annotated[str, opt.Option("The queries to write (TSV; -: standard output).", panel="Output")],
    given: Annotated[Values, From("search.expansion", "expand")],
    language_model: Annotated[
        float | None,
        opt.Option(
            "Mix with the query's own words, which get WEIGHT: for retrieve --weighted.",
            range=opt.SHARE,
            metavar="WEIGHT",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        opt.Option("Report which queries other vectors expand differently.", metavar="VECTORS", panel="Input"),
    ] = None,
    changes: Annotated[
        str | None,
        opt.Option("With --compare: write these queries as JSONL.", metavar="FILE", needs=("compare",), panel="Output"),
    ] = None,
) -> None:
    from evenrank import expand, read_queries
    from evenrank.files import atomic_path
    from evenrank.files.wording import counted

    _output.check(streams=(out, changes), inputs=(*given.read, compare))
    table = read_queries(given["queries"])
    expansion = expand(**{**given, "queries": table})
    written = expansion.expanded() if language_model is None else expansion.language_model(language_model)
    changed = None
    if compare is not None:
        changed = expansion.changes(expand(**{**given, "queries": table, "vectors": compare}))
    with _output.target(out) as expansions, _output.target(changes) as differences:
        with atomic_path(expansions) as part:
            written.write_csv(part, include_header=False, separator="\t", quote_style="never")
        if changed is not None and differences:
            with atomic_path(differences) as part:
                changed.write_ndjson(part)
    missing, unexpanded = expansion.missing["word"].to_list(), expansion.unexpanded.to_list()
    lines = [f"{table.height - len(unexpanded)} of {table.height} queries expanded: {out}"]
    if missing:
        lines.append(f"{counted(len(missing), 'word')} without a vector: {_some(missing)}")
    if unexpanded:
        lines.append(f"{counted(len(unexpanded), 'query')} left unchanged: {_some(unexpanded)}")
    if changed is not None:
        lines.append(f"{changed.height} of {table.height} queries are expanded differently with {compare}")
    for line in lines:
        _output.say(line, err=True)


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
