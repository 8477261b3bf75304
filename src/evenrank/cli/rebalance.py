"""``evenrank rebalance``: a fairer order of a run, without training."""

from __future__ import annotations

from typing import Annotated

import typer

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Half the way to a fairer order.
evenrank rebalance new.run --collection docs.tsv --strength 0.5 --out fair.run
# As little as makes the lean small, with its price.
evenrank rebalance new.run --collection docs.tsv --qrels qrels.txt \
    --max-bias "ARaB@10 <= 0.02" --out fair.run
# The fairest that keeps effectiveness, and a page of what was tried.
evenrank rebalance new.run --collection docs.tsv --qrels qrels.txt \
    --min-utility "nDCG@10 >= 98%" --out fair.run --report strengths.html
"""


def command(
    *,
    given: Annotated[Values, From("decide.rebalance", "rebalance")],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
) -> None:
    import evenrank
    from evenrank import EvenrankError, run_name
    from evenrank.decide.strength import UnmetError
    from evenrank.files.provenance import card_path, files_beside

    out = given["out"]
    if out is None:
        raise EvenrankError(f"expected {arg.out}: where to write the new run")
    card = None if out == _output.STANDARD else card_path(out)
    _output.check(report, card, streams=(out, json), inputs=(*given.read, *files_beside(given["run"])))
    named = run_name(out) if out != _output.STANDARD else "rebalanced"
    try:
        with _output.target(out) as path:
            made = evenrank.rebalance(**{**given, "out": path}, name=named)
    except UnmetError as error:
        _output.say(f"evenrank: {error}", err=True)
        raise typer.Exit(1) from None
    # With the run on standard output, the rest goes where it is not in the way.
    _output.emit(made, json, report, full=full, err=out == _output.STANDARD)
