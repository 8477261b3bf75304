"""``evenrank scan``: what a retriever can't find."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _models, _output
from ._signatures import From, Values

EXAMPLES = r"""
# What can a model not find in these passages?
evenrank scan docs.tsv --model sentence-transformers/all-MiniLM-L6-v2
# Before and after a change of model.
evenrank scan docs.tsv --model models/new --against models/old
# The queries for another search, whose run --run takes then.
evenrank scan docs.tsv --save-queries known.tsv
"""


def command(
    *,
    given: Annotated[Values, From("probes.scan", "scan")],
    save_queries: Annotated[
        str | None,
        opt.Option(
            "Write the queries (TSV), for a search elsewhere.", metavar="FILE", excludes=("questions",), panel="Output"
        ),
    ] = None,
    url: _models.Endpoint = None,
    api: _models.Api = None,
    key_env: _models.KeyEnv = None,
    concurrency: _models.Concurrency = None,
    timeout: _models.Timeout = None,
    endpoint_answers: _models.EndpointAnswers = None,
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
    quiet: opt.Quiet = False,
) -> None:
    import evenrank
    from evenrank.files import write_text

    _output.check(save_queries, report=report, streams=(json,), inputs=given.read)
    _output.will_write(save_queries, json, report)
    model = given.pop("model")
    if save_queries is not None:
        names = ("collection", "sample", "sentences", "seed")
        queries = evenrank.scan_queries(**{name: given[name] for name in names}, quiet=quiet)
        table = queries.select("query_id", "text")
        write_text(save_queries, table.write_csv(separator="\t", include_header=False, quote_style="never"))
        if model is None and url is None and not any(given[name] for name in ("index", "run")):
            said = f"{save_queries}: {queries.height:,} queries; search with them, then scan what was found (--run)"
            _output.say(said)
            return
    beside = json if json != _output.STANDARD and json else report
    settings = {"key_env": key_env, "concurrency": concurrency, "timeout": timeout}
    chosen = _models.chosen(model, url, api, beside=beside, endpoint_answers=endpoint_answers, **settings)
    _output.check(_models.answers_of(chosen))
    _output.emit(evenrank.scan(model=chosen, **given, quiet=quiet), json, report, full=full)
