"""The ``evenrank`` command: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from evenrank import _command

from . import (
    _options,
    _streams,
    _words,
    audit,
    data,
    demo,
    embeddings,
    expand,
    experiment,
    fuse,
    negatives,
    position,
    rerank,
    retrieve,
    rotate,
    score,
    train,
)

# typer brings a click of its own along, or needs one: what it raises for wrong arguments is found by way of a name of
# both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="evenrank",
    help="Measures bias in search rankings, beside effectiveness, and removes it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _evenrank(version: _options.Version = False) -> None:
    pass


app.command("score")(score.command)
app.command("audit")(audit.command)
app.command("retrieve")(retrieve.command)
app.command("rerank")(rerank.command)
app.command("expand")(expand.command)
app.command("fuse")(fuse.command)
app.command("train")(train.command)
app.command("rotate")(rotate.command)
app.command("negatives")(negatives.command)
app.add_typer(position.app, name="position")
app.add_typer(embeddings.app, name="embeddings")
app.add_typer(data.app, name="data")
app.command("experiment")(experiment.command)
app.command("demo")(demo.command)


_ENDED = {129: "hung up", 130: "interrupted", 143: "terminated"}


def main() -> None:
    """Runs the command line; a mistake in the input ends in one line on standard error and status 2.

    A signal to end does so in one line too, with the status that a shell gives it, and leaves nothing half-written.
    """
    # Names of files may hold what is no text, and where it is printed may not hold every character.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    status: Any = 2
    try:
        with _streams.guarded(), _command.running(sys.argv[1:]), _signals():
            status = _run()
    except _streams.OutputLostError as lost:
        # Who reads the output may have seen enough.
        if lost.reason is None:
            sys.exit(1)
        _complain(f"evenrank: standard output: {lost.reason}")
    except SystemExit as end:
        status = end.code
    if status in _ENDED:
        _complain(f"evenrank: {_ENDED[status]}")
    sys.exit(status)


def _run() -> int:
    """Runs the command that the arguments name; the status to end with."""
    try:
        # Commands return nothing; --help and an interrupt give a status.
        return int(typer.main.get_command(app).main(prog_name="evenrank", standalone_mode=False) or 0)
    except typer.Abort:
        _complain("evenrank: aborted")
        return 1
    except _UsageError as error:
        return _usage(error)
    except Exception as error:
        # Imported late: evenrank.io brings the table engine along, which --help must not wait for.
        from evenrank.io.errors import EvenrankError

        if _lacks_memory(error):
            _complain("evenrank: there is too little memory for this")
            return 2
        if not isinstance(error, EvenrankError):
            raise
        _complain("evenrank: " + " ".join(_words.said(str(error)).split("\n")))
        return 2


def _usage(error: Any) -> int:
    """Says in one line what is wrong with the arguments of the command; the status to end with."""
    if type(error).__name__ != "NoArgsIsHelpError":
        from evenrank.io.errors import EvenrankError

        path, _ = _words.chosen(typer.main.get_command(app), sys.argv[1:])
        # Choices stand on lines of their own. As an error its text is printable.
        message = str(EvenrankError(" ".join(error.format_message().split()).removesuffix(".")))
        _complain(f"{path}: {message[:1].lower()}{message[1:]} (see {path} --help)")
    return int(error.exit_code)


def _complain(line: str) -> None:
    typer.echo(line, err=True)


def _lacks_memory(error: Exception) -> bool:
    # PyTorch has an error of its own, which is no MemoryError.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


@contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the program as an interrupt does: by an exception, so that temporary files go."""

    def stop(number: int, _: FrameType | None) -> None:
        # A second one ends at once.
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    here = threading.current_thread() is threading.main_thread()
    # One that is ignored (nohup), or that another program handles, stays so.
    set_here = [number for number in wanted if here and signal.getsignal(number) == signal.SIG_DFL]
    for number in set_here:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in set_here:
            signal.signal(number, signal.SIG_DFL)
