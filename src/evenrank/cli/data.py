"""``evenrank data``."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Public word lists, query sets and runs.", no_args_is_help=True)


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
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="A name that `evenrank data list` gives.")],
    to: Annotated[str, typer.Option(metavar="DIR", help="The folder for the files.")],
) -> None:
    """Fetch one data set from its repository, checked by SHA-256."""
    from evenrank.io.public_data import fetch as fetch_data

    for path in fetch_data(name, to):
        typer.echo(str(path))
