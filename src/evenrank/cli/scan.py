"""``evenrank scan``: what search loses of a collection."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _models, _output
from ._signatures import From, Values

EXAMPLES = r"""
# What does a model lose of a folder of Markdown?
evenrank scan docs/ --model sentence-transformers/all-MiniLM-L6-v2
# An engine of one's own (without --run, the queries for it).
evenrank scan docs.tsv --run engine.run --lost lost.txt
# Before and after a change of model.
evenrank scan docs.tsv --model models/new --against models/old
"""
QUERIES = "scan-queries.tsv"


def command(
    *,
    given: Annotated[Values, From("probes.scan", "scan")],
    save_queries: Annotated[
        str | None,
        opt.Option("Write the queries (TSV), for a search elsewhere.", metavar="FILE", panel="Output"),
    ] = None,
    lost: Annotated[
        str | None,
        opt.Option("Write every document of a loss: cause, tab, id.", metavar="FILE", panel="Output"),
    ] = None,
    endpoint: Annotated[Values, From("cli._models", "EndpointOptions", without=("answers",))],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
    quiet: opt.Quiet = False,
) -> None:
    import evenrank
    from evenrank.files import write_text

    model = given.pop("model")
    asks = model is not None or endpoint["url"] is not None or any(given[name] is not None for name in ("index", "run"))
    queries_to = save_queries if asks or save_queries is not None else QUERIES
    _output.check(queries_to, lost, report=report, streams=(json,), inputs=given.read)
    if queries_to is not None:
        from evenrank.probes.scan import describe_collection

        names = ("collection", "sample", "seed")
        queries, described = describe_collection(**{name: given[name] for name in names}, out=queries_to)
        table = queries.select("query_id", "text")
        write_text(queries_to, table.write_csv(separator="\t", include_header=False, quote_style="never"))
        if not asks:
            _output.say(described)
            return
    beside = json if json != _output.STANDARD and json else report
    chosen = _models.chosen(model, endpoint, beside=beside)
    _output.check(_models.answers_of(chosen))
    result = evenrank.scan(model=chosen, **given, quiet=quiet)
    if lost is not None:
        rows = result.lost_ids()
        write_text(lost, rows.write_csv(separator="\t", include_header=False, quote_style="never"))
    _output.emit(result, json, report, full=full)
