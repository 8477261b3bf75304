"""``evenrank index debias``: a dense index whose vectors the groups are erased from, and what probes still recover."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Erase gender, and see what probes still recover.
evenrank index debias dense.index --collection docs.tsv --out fair.index
# Also show what it does to rankings, on a page.
evenrank index debias dense.index --collection docs.tsv --out fair.index \
    --queries queries.tsv --qrels qrels.txt --report debias.html
# The groups of labels instead of words.
evenrank index debias dense.index --labels sellers.csv --out fair.index
"""

SEARCH = From("search.index_folder", "Encoding", only=("batch_size", "device", "precision", "query_prompt"))
"""How queries are encoded."""


def command(
    *,
    given: Annotated[Values, From("decide.debiased_index", "debias_index")],
    encoded: Annotated[Values, SEARCH],
    quiet: opt.Quiet = False,
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
) -> None:
    from evenrank import Encoding, debias_index

    _output.refuse_standard(given["out"])
    _output.check(report=report, streams=(json,), inputs=given.read)
    _output.will_write(json, report)
    result = debias_index(**given, encoding=Encoding(**encoded), quiet=quiet)
    _output.emit(result, json, report, full=full)
    _output.say(f"{result.manifest.documents:,} documents debiased: {given['out']}", err=True)
