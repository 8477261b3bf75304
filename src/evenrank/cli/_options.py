"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, ParamSpec, TypeVar

import typer

from evenrank import __version__

P = ParamSpec("P")
T = TypeVar("T")


def in_range(command: Callable[P, T]) -> Callable[P, T]:
    """A command whose numbers are checked before it does anything: see :mod:`evenrank.io.ranges`."""

    @functools.wraps(command)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        numbers = {name: value for name, value in kwargs.items() if type(value) in (int, float)}
        if numbers:
            from evenrank.io.ranges import check_ranges

            check_ranges(**numbers)
        return command(*args, **kwargs)

    return checked


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenrank {__version__}")
        raise typer.Exit


STOP_WORDS = (
    "none, a file of words, or english, danish, dutch, french, german, italian, norwegian, portuguese, russian, "
    "spanish, swedish, turkish."
)
Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
]
Collection = Annotated[str, typer.Option("--collection", help="TSV, JSONL, Parquet or irds:NAME.")]
Queries = Annotated[str, typer.Option("--queries", help="TSV, JSONL, Parquet or irds:NAME.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]
Engine = Annotated[
    str, typer.Option("--engine", help="local: all cores of this machine; ray: a Ray cluster (RAY_ADDRESS).")
]
Workers = Annotated[
    str | None, typer.Option("--workers", help="Workers at a time (default: as many as fit); ray: 2:16 grows.")
]
Cpus = Annotated[float, typer.Option("--cpus", help="ray: cores of a worker.")]
Gpus = Annotated[float, typer.Option("--gpus", help="ray: GPUs of a worker; 0.5: two share one.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, … (default: the fastest there is).")]
Lexicon = Annotated[str, typer.Option("--lexicon", help="A built-in lexicon, or a file: word,group lines or TOML.")]
Poles = Annotated[
    str | None, typer.Option("--poles", help="The two groups to compare, A,B: bias is A minus B; B may be rest.")
]
Tokens = Annotated[str, typer.Option("--tokens", help="word, or whitespace as the public programs do.")]
Threshold = Annotated[
    float, typer.Option("--threshold", help="Up to so many group words a document counts as neutral.")
]
Documents = Annotated[str | None, typer.Option("--collection", help="The documents: TSV, JSONL, Parquet or irds:NAME.")]
Scores = Annotated[str | None, typer.Option("--scores", help="Documents scored by evenrank score.")]
# Without one of these, scores keep what they were made with.
OwnLexicon = Annotated[
    str | None, typer.Option("--lexicon", help="A built-in lexicon (gender-en), or a file: word,group lines or TOML.")
]
OwnTokens = Annotated[
    str | None, typer.Option("--tokens", help="word (the default), or whitespace as the public programs do.")
]
OwnThreshold = Annotated[
    float | None, typer.Option("--threshold", help="Up to so many group words a document counts as neutral (1).")
]
Json = Annotated[
    str | None, typer.Option("--json", help="Also write the figures as JSON; -: print them instead of the table.")
]
Report = Annotated[str | None, typer.Option("--report", help="Also write a report (one HTML page).")]
