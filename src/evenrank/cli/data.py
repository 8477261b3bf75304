"""``evenrank data``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from . import _options, _output

app = typer.Typer(help="Public word lists, query sets and runs; SQuAD files as collections.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """What can be fetched: name, files, bytes, licence, source."""
    from evenrank.io.public_data import public_data

    rows = [("name", "files", "bytes", "licence", "source")]
    rows += [
        (data.name, str(len(data.files)), str(data.bytes), data.licence, data.source) for data in public_data().values()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _output.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `evenrank data list` gives.")],
    to: Annotated[str, typer.Option(metavar="DIR", help="The folder for the files.")],
) -> None:
    """Fetch one data set from its repository, checked by SHA-256."""
    from evenrank.io.public_data import fetch as fetch_data

    for path in fetch_data(name, to):
        _output.say(str(path))


@app.command("squad")
@_options.in_range
def squad(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="SQuAD files, or irds:NAME; of several, the last is the test.")
    ],
    to: Annotated[str, typer.Option(metavar="DIR", help="The folder for the collection.")],
    validation: Annotated[
        int, typer.Option("--validation", help="Several files: so many training questions, by article, validate.")
    ] = 5000,
    shares: Annotated[
        str,
        typer.Option("--shares", help="One file: shares of training, validation, test; by article (few: by passage)."),
    ] = "0.7 0.1 0.2",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the splits.")] = 0,
) -> None:
    """Turn SQuAD files into a collection: passages, queries, qrels, answer spans."""
    from evenrank.io.collection_folder import FILES
    from evenrank.io.errors import EvenrankError, shown
    from evenrank.io.squad_collection import squad_collection
    from evenrank.io.written import check_apart

    try:
        first, second, third = map(float, shares.split())
    except ValueError:
        raise EvenrankError(f"`shares`: expected three numbers, found {shown(shares)}") from None
    names = (*FILES, "qrels.txt", "answers.json", "counts.json")
    check_apart((os.path.join(to, name) for name in names), files)
    made = squad_collection(files, validation=validation, shares=(first, second, third), seed=seed)
    folder = made.write(to)
    for name, count in made.counts.items():
        _output.say(f"{count:>8}  {name.replace('_', ' ')}")
    for note in made.notes:
        _output.say(note, err=True)
    _output.say(str(folder), err=True)
