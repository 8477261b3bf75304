"""``evenrank position``: where answers stand, and what that does to a ranker."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options

app = typer.Typer(help="Position bias: where answers stand, and what that does to a ranker.", no_args_is_help=True)


@app.callback()
def _position() -> None:
    # Named, so that one command alone still is a command of its own.
    pass


@app.command("answers")
def answers(
    squad: Annotated[str, typer.Argument(metavar="SQUAD.json", help="Questions with answers, in SQuAD's form.")],
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            help="The passages' texts, where they are not the file's own: TSV, JSONL, Parquet or irds:NAME.",
        ),
    ] = None,
    json: Annotated[str | None, typer.Option("--json", help="Also write the figures as JSON.")] = None,
    report: Annotated[str | None, typer.Option("--report", help="Also write a report (one HTML page).")] = None,
    quiet: _options.Quiet = False,
) -> None:
    """Where in their passages the answers stand: histogram, mean, distance to uniform."""
    raise NotImplementedError
