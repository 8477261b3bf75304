"""``evenrank rebalance``: a fairer order of a run, without training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenrank import options as opt

from . import _output, _words
from ._signatures import From, Values
from .audit import named_once

if TYPE_CHECKING:
    from evenrank.decide.frontier import Frontier
    from evenrank.decide.rebalance import Rebalanced

EXAMPLES = r"""
# Half the way to a fairer order.
evenrank rebalance new.run --collection docs.tsv --strength 0.5 --out fair.run
# As little as makes the lean small, with its price.
evenrank rebalance new.run --collection docs.tsv --qrels qrels.txt \
    --meet "ARaB@10 <= 0.02" --out fair.run
# Every method at every strength, to choose from.
evenrank rebalance new.run --collection docs.tsv --qrels qrels.txt \
    --frontier frontier.html
"""

_OF_THE_RUN = ("method", "strength", "meet", "keep")
"""What the frontier has all of."""


def command(
    *,
    given: Annotated[Values, From("decide.rebalance", "rebalance")],
    frontier: Annotated[
        str | None,
        opt.Option("Also every method at every strength, on one HTML page.", metavar="F.html", panel="Output"),
    ] = None,
    drawing: Annotated[Values, From("decide.frontier", "frontier", only=("beside", "utility", "bias"))],
    full: opt.Full = False,
    json: opt.Json = None,
) -> None:
    import evenrank
    from evenrank import EvenrankError, run_name
    from evenrank.decide.rebalance import UnmetError
    from evenrank.decide.rebalance_lists import MethodOptions
    from evenrank.files.provenance import card_path, files_beside

    out, run = given["out"], given["run"]
    if out is None and frontier is None:
        raise EvenrankError("expected `out`, `frontier` or both")
    for name in ("utility", "bias") if frontier is None else ():
        if drawing[name] is not None:
            raise EvenrankError(f"`{name}` is of `frontier`: it needs one")
    if drawing["beside"] and frontier is None:
        raise EvenrankError("`beside` is drawn on the page of `frontier`: it needs one")
    if out is None and set(_OF_THE_RUN[1:]) & set(given.changed):
        raise EvenrankError("`strength`, `meet` and `keep` are of the run to write: they need `out`")
    MethodOptions(*(given[name] for name in ("method", "protected", "alpha", "per", "top"))).check()
    if frontier is not None and given["qrels"] is None:
        raise EvenrankError("`frontier` sets effectiveness against bias: it needs `qrels`")
    others = named_once(drawing["beside"] or [], "beside")
    card = None if out in (None, _output.STANDARD) else card_path(out)
    beside = files_beside(run, *others.values())
    _output.check(frontier, card, streams=(out, json), inputs=(*given.read, *others.values(), *beside))
    _output.will_write(json, frontier, card)
    made = drawn = None
    if out is not None:
        named = run_name(out) if out != _output.STANDARD else "rebalanced"
        try:
            with _output.target(out) as path:
                made = evenrank.rebalance(**{**given, "out": path}, name=named)
        except UnmetError as error:
            _output.say(f"evenrank: {_words.said(str(error))}", err=True)
            raise typer.Exit(1) from None
    if frontier is not None:
        same = {name: value for name, value in given.items() if name not in ("out", *_OF_THE_RUN)}
        drawn = evenrank.frontier(**same, **{**drawing, "beside": others})
    _emit(made, drawn, json, frontier, full=full, quiet=out == _output.STANDARD)


def _emit(
    report: Rebalanced | None, drawn: Frontier | None, json: str | None, page: str | None, *, full: bool, quiet: bool
) -> None:
    """Writes the files that were asked for, then prints the tables; ``quiet``: the run is on standard output."""
    from evenrank.files import write_text
    from evenrank.files.json_values import json_text
    from evenrank.results.result import envelope

    found = [one for one in (report, drawn) if one is not None]
    beside = {} if report is None or drawn is None else {"frontier": drawn.to_dict()}
    with _output.target(json) as path:
        if path:
            write_text(path, json_text(envelope(found[0].to_dict() | beside, found[-1].provenance)) + "\n")
        if drawn is not None and page is not None:
            drawn.report(page)
    if json != _output.STANDARD:
        # With the run on standard output, the rest goes where it is not in the way.
        _output.show(*found, full=full, err=quiet)
    if page is not None:
        _output.say(f"frontier: {page}", err=True)
