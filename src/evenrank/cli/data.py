"""``evenrank data``: public data, and SQuAD files as collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options, _output

app = typer.Typer(help="Public word lists, query sets and runs; SQuAD files as collections.", no_args_is_help=True)


@app.command("list")
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


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `evenrank data list`.")],
    to: Annotated[str, typer.Option(metavar="DIR", help="The folder for the files.")],
) -> None:
    """Download a data set from its repository and verify its SHA-256 digest."""
    import evenrank

    for path in evenrank.fetch(name, to):
        _output.say(str(path))


@app.command("squad")
@_options.in_range
def squad(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="SQuAD files, or irds:NAME; of several, the last one is the test set."),
    ],
    to: Annotated[str, typer.Option(metavar="DIR", help="The folder for the collection.")],
    validation: Annotated[
        int, typer.Option("--validation", help="Several files: number of training questions, by article, to validate.")
    ] = 5000,
    shares: Annotated[
        str,
        typer.Option(
            "--shares", help="One file: shares of training, validation and test; by article (few: by passage)."
        ),
    ] = "0.7 0.1 0.2",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the splits.")] = 0,
) -> None:
    """Convert SQuAD files into a collection: passages, queries, qrels and answer spans."""
    from evenrank import EvenrankError, write_squad_collection
    from evenrank.io.errors import quoted

    try:
        first, second, third = map(float, shares.split())
    except ValueError:
        raise EvenrankError(f"`shares`: expected three numbers, found {quoted(shares)}") from None
    made = write_squad_collection(files, to, validation=validation, shares=(first, second, third), seed=seed)
    for name, count in made.counts.items():
        _output.say(f"{count:>8}  {name.replace('_', ' ')}")
    for note in made.notes:
        _output.say(note, err=True)
    _output.say(str(Path(to)), err=True)
