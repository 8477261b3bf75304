"""How commands write their results: files first, then what is printed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from evenrank.results.result import Result

SCREEN = 80
"""Characters of a line of a screen."""
STANDARD = "-"
"""The file name that means standard output."""


def say(text: str, *, err: bool = False) -> None:
    """Prints lines that may contain ids, words and file names, without what would control a terminal."""
    from evenrank.files.errors import plain, readable

    typer.echo(readable("\n".join(map(plain, text.split("\n")))), err=err)


def refuse_standard(*paths: str | None) -> None:
    """Raises EvenrankError for ``-`` as an output that has to be a file."""
    from evenrank.files import EvenrankError

    if STANDARD in paths:
        raise EvenrankError("expected a file as output, found '-': this cannot go to standard output")


def check(
    *paths: str | None,
    report: str | None = None,
    streams: tuple[str | None, ...] = (),
    inputs: Iterable[object] = (),
) -> None:
    """Checks outputs that the command itself writes, before any work: see :func:`evenrank.files.check_outputs`.

    ``paths`` have to be files, as has the page ``report``; one of ``streams`` may be ``-``, standard output.
    """
    from evenrank.files import EvenrankError, check_outputs
    from evenrank.files.errors import require_report

    if report is not None:
        require_report()
    paths = (*paths, report)
    refuse_standard(*paths)
    if streams.count(STANDARD) > 1:
        raise EvenrankError("expected one output to be '-' (standard output), found several")
    check_outputs([path for path in (*paths, *streams) if path and path != STANDARD], inputs)


@contextmanager
def target(path: str | None) -> Iterator[str]:
    """Where to write what belongs in ``path``; "" for None. What belongs in ``-`` is printed at the end."""
    if path != STANDARD:
        yield path or ""
        return
    import tempfile

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


def emit(
    result: Result,
    json: str | None,
    report: str | None,
    *,
    full: bool = False,
    per_query: str | None = None,
    to_csv: Callable[[str], object] | None = None,
    to_json: Callable[[str], object] | None = None,
    text: str | None = None,
    err: bool = False,
) -> None:
    """Writes the files that were asked for, then prints the result's screen, or with ``full`` all of it.

    ``text``: what is printed instead; ``err``: on standard error.

    If one of the files is standard output, nothing else goes there. ``to_json``: how JSON is written, if not as usual;
    ``to_csv``: how the values ``per_query`` are.
    """
    with target(json) as values, target(per_query) as rows:
        if values:
            (to_json or result.to_json)(values)
        if rows and to_csv is not None:
            to_csv(rows)
        if report is not None:
            result.report(report)
    if text is not None and STANDARD not in (json, per_query):
        say(text)
    elif STANDARD not in (json, per_query):
        show(result, full=full, more=() if report is not None else ("--report FILE",), err=err)
    if report is not None:
        say(f"report: {report}", err=True)


def show(result: Result, *, full: bool = False, more: tuple[str, ...] = (), err: bool = False) -> None:
    """Prints a result's screen, and where there is more; ``full``: all of it, as wide as the terminal."""
    width = max(100, shutil.get_terminal_size((120, 24)).columns) if full else SCREEN
    screen = result.table(full=full, width=width)
    if not full:
        following = ", ".join(f"{command} ({what})" for command, what in result.page().next)
        screen += f"\nMore: {', '.join(('--full', *more))}" + (f"\nNext: {following}" if following else "")
    say(screen, err=err)
