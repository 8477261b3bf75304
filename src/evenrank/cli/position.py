"""``evenrank position``: where answers stand, and what that does to a ranker."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Position bias: where answers stand, and what that does to a ranker.", no_args_is_help=True)


@app.callback()
def _position() -> None:
    # Named, so that one command alone still is a command of its own.
    pass


@app.command("answers")
def answers(
    squad: Annotated[
        str, typer.Argument(metavar="SQUAD.json", help="Answers in SQuAD's form, or irds:NAME (irds:msmarco-qna/dev).")
    ],
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", help="Look the passages up here instead: TSV, JSONL, Parquet or irds:NAME."),
    ] = None,
    annotated: Annotated[
        bool, typer.Option("--annotated", help="Count the annotated place alone, not every match of the answer.")
    ] = False,
    json: Annotated[str | None, typer.Option("--json", help="Also write the figures as JSON.")] = None,
    report: Annotated[str | None, typer.Option("--report", help="Also write a report (one HTML page).")] = None,
) -> None:
    """Where in their passages the answers stand: mean, first third, distance to uniform."""
    from pathlib import Path

    from evenrank import __version__
    from evenrank.audit.answers import answers_page
    from evenrank.io import check_writable, write_text
    from evenrank.measures.answers import positions_of

    for path in filter(None, (json, report)):
        check_writable(path)
    found = positions_of(squad, collection or (), annotated=annotated)
    page = answers_page(found, squad if squad.startswith("irds:") else Path(squad).name, annotated=annotated)
    typer.echo(page.text())
    if json is not None:
        from json import dumps

        settings = {"answers": squad, "collections": collection or [], "annotated": annotated}
        values = {"evenrank": __version__, "settings": settings, **found.to_dict()}
        write_text(json, dumps(values, indent=1, ensure_ascii=False))
    if report is not None:
        page.write(report)
        typer.echo(f"report: {report}", err=True)
