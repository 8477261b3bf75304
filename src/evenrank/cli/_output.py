"""What several commands do with their results: files first, and only then what is printed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import typer

from evenrank import _command

if TYPE_CHECKING:
    from evenrank.audit import AuditResult
    from evenrank.audit.report.plain import PlainResult

STANDARD = "-"
"""The name that stands for standard output."""


def say(text: str, *, err: bool = False) -> None:
    """Prints lines that may hold ids, words and names of files: without what would steer a terminal."""
    from evenrank.io.errors import plain, readable

    typer.echo(readable("\n".join(map(plain, text.split("\n")))), err=err)


def will_write(*paths: str | None) -> None:
    """Lets digests of the input be made beside the reading, where a form that holds them was asked for."""
    _command.writes.set(any(path is not None for path in paths))


def check(*paths: str | None, streams: tuple[str | None, ...] = (), inputs: Iterable[Any] = ()) -> None:
    """Raises InputError where a file that was asked for could not be written, or only over one of the ``inputs`` or
    another output: before work that would be lost.

    ``streams``: outputs of which one may be ``-``, standard output.
    """
    from evenrank.io import EvenrankError, check_outputs

    if STANDARD in paths:
        raise EvenrankError("expected a file as output, found '-': this cannot go to standard output")
    if streams.count(STANDARD) > 1:
        raise EvenrankError("expected one output to be '-' (standard output), found several")
    check_outputs([path for path in (*paths, *streams) if path and path != STANDARD], inputs)


@contextmanager
def target(path: str | None) -> Iterator[str]:
    """Where to write what belongs into ``path``, "" for None. What belongs into ``-`` is printed in the end."""
    if path != STANDARD:
        yield path or ""
        return
    with tempfile.TemporaryDirectory() as folder:
        part = os.path.join(folder, "part")
        yield part
        with open(part, "rb") as written:
            last = b"\n"
            while block := written.read(1 << 20):
                typer.echo(block, nl=False)
                last = block
        if not last.endswith(b"\n"):
            typer.echo()


def give(
    result: PlainResult | AuditResult,
    json: str | None,
    report: str | None,
    *,
    shown: str | None = None,
    per_query: str | None = None,
) -> None:
    """Writes a result's files where they were asked for, then prints ``shown``, else its table.

    Where one of the files is standard output, nothing else goes there.
    """
    with target(json) as values, target(per_query) as rows:
        if values:
            result.to_json(values)
        if rows:
            cast("AuditResult", result).per_query(rows)
        if report is not None:
            result.report(report)
    if STANDARD not in (json, per_query):
        typer.echo(result.table() if shown is None else shown)
    if report is not None:
        say(f"report: {report}", err=True)
