"""``evenrank data``: public data, and SQuAD files as collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

HELP = "Public word lists, query sets and runs; SQuAD files as collections."


def list_() -> None:
    """List the available data: name, files, bytes, licence, source."""
    from evenrank import public_data
    from evenrank.results.format import COUNT, Format
    from evenrank.results.table import Column, Table

    columns = (
        Column("name"),
        Column("files", COUNT, of=lambda data: len(data.files)),
        Column("bytes", Format(str, "count")),
        Column("licence"),
        Column("source"),
    )
    _output.say(Table("", columns, [*public_data().values()]).text())


def fetch(*, given: Annotated[Values, From("datasets.public", "fetch")]) -> None:
    import evenrank

    for path in evenrank.fetch(**given):
        _output.say(str(path))


def squad(
    *,
    given: Annotated[Values, From("datasets.squad_collection", "write_squad_collection")],
    shares: Annotated[
        str, opt.Option("One file: shares of training, validation and test; by article (few: by passage).")
    ] = "0.7 0.1 0.2",
) -> None:
    """Convert SQuAD files into a collection: passages, queries, qrels and answer spans."""
    from evenrank import EvenrankError, write_squad_collection
    from evenrank.io.errors import quoted

    try:
        first, second, third = map(float, shares.split())
    except ValueError:
        raise EvenrankError(f"`shares`: expected three numbers, found {quoted(shares)}") from None
    made = write_squad_collection(**given, shares=(first, second, third))
    for name, count in made.counts.items():
        _output.say(f"{count:>8}  {name.replace('_', ' ')}")
    for note in made.notes:
        _output.say(note, err=True)
    _output.say(str(Path(given["to"])), err=True)
