"""What several commands do with their result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from evenrank.audit import AuditResult
    from evenrank.audit.report.plain import PlainResult


def check(*paths: str | None) -> None:
    """Raises InputError where a file that was asked for could not be written, before work that would be lost."""
    from evenrank.io import check_writable

    for path in filter(None, paths):
        check_writable(path)


def give(result: PlainResult | AuditResult, json: str | None, report: str | None, *, width: int | None = None) -> None:
    """Prints a result's table, and writes its JSON and its report where they were asked for."""
    typer.echo(result.table() if width is None else result.table(width))  # type: ignore[call-arg]
    if json is not None:
        result.to_json(json)
    if report is not None:
        result.report(report)
        typer.echo(f"report: {report}", err=True)
