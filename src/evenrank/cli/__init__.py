"""The ``evenrank`` command: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Annotated, Any

import typer

from evenrank import _command
from evenrank._version import __version__

from . import _help, _streams
from ._signatures import about, made

_PANELS = {
    "Measure": ("audit", "scan", "probe", "position", "experiment", "demo", "explain"),
    "Decide": ("gate",),
    "Reduce": ("rebalance", "negatives", "train", "rotate", "embeddings"),
    "Prepare": (
        "score",
        "passages",
        "index",
        "retrieve",
        "rerank",
        "expand",
        "fuse",
        "variants",
        "lexicon",
        "labels",
        "data",
    ),
}
"""The commands under their headings in the help; the file of each has its name and in it ``command``."""
_COMMANDS = {name: panel for panel, names in _PANELS.items() for name in names}
_GROUPS = {
    "position": ("answers", "similarity", "sensitivity"),
    "embeddings": ("debias", "audit", "train"),
    "data": ("list_", "fetch", "squad"),
    "lexicon": ("list_", "check", "sql"),
    "labels": ("sample", "ask"),
}
"""Those that are groups of commands, whose functions their file has."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenrank {__version__}")
        raise typer.Exit


def _evenrank(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, metavar="", help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def _app() -> typer.Typer:
    """The command line, without a command."""
    app = typer.Typer(
        name="evenrank",
        cls=_help.Group,
        help="Measures bias in search rankings, together with effectiveness, and reduces it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_evenrank)
    return app


def _app_of(names: Iterable[str]) -> typer.Typer:
    """The command line of some commands."""
    app = _app()
    for name in names:
        module = importlib.import_module(f"{__name__}.{name}")
        panel = _COMMANDS[name]
        if name in _GROUPS:
            first = "\n".join(example.strip().partition("\n# ")[0] for example in module.EXAMPLES.values())
            group = typer.Typer(cls=_help.Group, help=module.HELP, epilog=first, no_args_is_help=True)
            for function in _GROUPS[name]:
                _add(group, function.rstrip("_"), getattr(module, function), module.EXAMPLES[function])
            app.add_typer(group, name=name, rich_help_panel=panel)
        else:
            _add(app, name, module.command, module.EXAMPLES, panel)
    return app


def _add(app: typer.Typer, name: str, function: Callable[..., None], examples: str, panel: str | None = None) -> None:
    command, summary = made(function), _first_sentence(about(function))
    app.command(name, cls=_help.Command, short_help=summary, epilog=examples.strip(), rich_help_panel=panel)(command)


def _first_sentence(text: str) -> str:
    return text.partition("\n\n")[0].partition(". ")[0].rstrip(".") + "."


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = _app_of(_COMMANDS)
    return found


def commands() -> Any:
    """The group of all commands."""
    return _commands(tuple(_COMMANDS))


def running() -> Any:
    """The group of the command that the arguments name; without one, of all, listed but not made."""
    # A shell that completes a command says nothing in the arguments.
    if "_EVENRANK_COMPLETE" in os.environ:
        return commands()
    name = _chosen()[1:2]
    return _commands(tuple(name)) if name else _listed()


def _chosen() -> list[str]:
    """The words that name the command in the arguments: ``evenrank``, and perhaps a command or one of a group."""
    # Options before a command's name never have values.
    words = [argument for argument in sys.argv[1:] if not argument.startswith("-")][:2]
    inner = [function.rstrip("_") for function in _GROUPS.get(words[0], ())] if words else []
    return ["evenrank", *(word for word, known in zip(words, (_COMMANDS, inner), strict=False) if word in known)]


@cache
def _listed() -> Any:
    """The group of all commands with what each is for: to make them takes longer than the help of all."""
    app = _app()
    for name, panel in _COMMANDS.items():
        module = importlib.import_module(f"{__name__}.{name}")
        summary = _first_sentence(module.HELP if name in _GROUPS else about(module.command))
        app.command(name, short_help=summary, rich_help_panel=panel)(lambda: None)
    return typer.main.get_command(app)


@cache
def _commands(names: tuple[str, ...]) -> Any:
    return typer.main.get_command(_app_of(names))


_UNEXPECTED = 70
"""The status of a gate that ended without an outcome, for another reason than its input."""


def main() -> None:
    """Runs the command line. An error in the input is one line on standard error and exit status 2.

    A signal also prints one line, which names the outputs that are written already, exits with the status that shells
    use, and leaves no partial files.
    """
    _streams.guard()
    status: str | int | None = 2
    outputs: dict[str, object] = {}
    try:
        with _signals(), _command.running(sys.argv[1:]) as outputs:
            status = _run()
            sys.stdout.flush()
    except _streams.OutputLostError as lost:
        # The reader closed the pipe, perhaps because it has seen enough.
        if lost.reason is None:
            sys.exit(_UNEXPECTED if _gates() else 1)
        _complain(f"evenrank: standard output: {lost.reason}")
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        status = 130
    if isinstance(status, int) and status in _command.SIGNALLED:
        _complain(f"evenrank: {_command.SIGNALLED[status]}{_already(outputs)}")
    sys.exit(status)


def _already(outputs: dict[str, object]) -> str:
    """Which outputs were written before a signal or an error."""
    names = _command.written(outputs)
    if not names:
        return ""
    from evenrank.files.errors import plain, readable

    return f" (already written: {', '.join(plain(readable(name)) for name in names)})"


def _run() -> int:
    """Runs the command that the arguments name; returns the exit status."""
    try:
        # Commands return None; --help and interrupts return a status.
        return int(running().main(prog_name="evenrank", standalone_mode=False) or 0)
    except typer.Abort:
        _complain("evenrank: aborted")
        return _UNEXPECTED if _gates() else 1
    except typer.TyperException as error:
        return _usage(error)
    except Exception as error:
        # Imported late: evenrank.files imports the table engine, which would slow down --help.
        from evenrank.files.errors import EvenrankError

        if _is_out_of_memory(error):
            _complain("evenrank: not enough memory")
            return 2
        if not isinstance(error, EvenrankError):
            if not _gates() or isinstance(error, _streams.OutputLostError):
                raise
            # Python's own status, 1, would say that the budget is violated.
            traceback.print_exc()
            return _UNEXPECTED
        *before, last = str(error).split("\n")
        for line in (*before, f"{last}{_already(_command.outputs.get() or {})}"):
            _complain(f"evenrank: {line}")
        return 2


def _gates() -> bool:
    """Whether the command is the gate, whose status is its outcome."""
    return _chosen() == ["evenrank", "gate"]


def _usage(error: typer.TyperException) -> int:
    """Reports wrong arguments in one line; returns the exit status."""
    if type(error).__name__ != "NoArgsIsHelpError":
        from evenrank.files.errors import EvenrankError

        path = " ".join(_chosen())
        # Choices are listed on separate lines. The text of an EvenrankError is always printable.
        text = " ".join(error.format_message().split()).removesuffix(".").replace("Value error, ", "")
        message = str(EvenrankError(text))
        _complain(f"{path}: {message[:1].lower()}{message[1:]} (see {path} --help)")
    return error.exit_code


def _complain(line: str) -> None:
    typer.echo(line, err=True)


def _is_out_of_memory(error: Exception) -> bool:
    # PyTorch's error is not a MemoryError.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


@contextmanager
def _signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise an exception, as an interrupt does, so that temporary files are removed.

    Takes over from :func:`evenrank._command.end_at_signals`.
    """

    def stop(number: int, _: FrameType | None) -> None:
        # A second signal ends the program at once.
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    # Signals that are ignored (nohup) or already handled are left alone.
    default = (signal.SIG_DFL, _command.end)
    handled = [number for number in _command.SIGNALS if in_main_thread and signal.getsignal(number) in default]
    for number in handled:
        signal.signal(number, stop)
    if in_main_thread and signal.getsignal(signal.SIGINT) == _command.end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
