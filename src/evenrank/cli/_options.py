"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, ParamSpec, TypeVar

import typer

from evenrank._version import __version__

if TYPE_CHECKING:
    from evenrank.engines.ray import Cluster

P = ParamSpec("P")
T = TypeVar("T")


def in_range(command: Callable[P, T]) -> Callable[P, T]:
    """A command that checks its numbers before it does anything: see :mod:`evenrank.io.ranges`."""

    @functools.wraps(command)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        numbers = {name: value for name, value in kwargs.items() if type(value) in (int, float)}
        if numbers:
            from evenrank.io.ranges import check_ranges

            check_ranges(**numbers)
        return command(*args, **kwargs)

    return checked


def cluster(engine: str, workers: str | None, cpus: float, gpus: float) -> Cluster:
    """The cluster that the options ask for. Raises EvenrankError for one without Ray."""
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io import EvenrankError

    if engine == "local" and (workers is not None or gpus):
        raise EvenrankError("`workers` and `gpus` need `engine='ray'`")
    return Cluster(parse_workers(workers), cpus, gpus)


def text(value: str) -> str:
    """The parser of options whose values the library checks, so that Python users get the same messages."""
    return value


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenrank {__version__}")
        raise typer.Exit


_TEXTS = "TSV, JSONL, Parquet or irds:NAME."
LEXICON = "A built-in lexicon (evenrank lexicon list), or a file of word,group lines or TOML."
_TOKENS = "word, or whitespace (as the reference implementations)."
_THRESHOLD = "A document with at most this many group words is neutral."
STOP_WORDS = (
    "none, a file with one word per line, or english, danish, dutch, french, german, italian, norwegian, portuguese, "
    "russian, spanish, swedish, turkish."
)
VECTORS = "word2vec, GloVe or fastText file, saved vectors, or a transformer's folder."

Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
MaybeCollectionArgument = Annotated[str | None, typer.Argument(metavar="COLLECTION", help=_TEXTS)]
CollectionArgument = Annotated[str, typer.Argument(metavar="COLLECTION", help=_TEXTS)]
QueriesArgument = Annotated[str, typer.Argument(metavar="QUERIES", help=_TEXTS)]
Collection = Annotated[str, typer.Option("--collection", help=_TEXTS)]
Queries = Annotated[str, typer.Option("--queries", help=_TEXTS)]
MaybeCollection = Annotated[str | None, typer.Option("--collection", help=f"The documents: {_TEXTS}")]
MaybeQueries = Annotated[str | None, typer.Option("--queries", help=f"The queries: {_TEXTS}")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress on standard error.")]

EngineName = Literal["local", "ray"]
Engine = Annotated[
    EngineName,
    typer.Option("--engine", parser=text, help="local: all cores of this machine; ray: a Ray cluster (RAY_ADDRESS)."),
]
Workers = Annotated[
    str | None, typer.Option("--workers", help="Parallel workers (default: as many as fit); ray: 2:16 scales.")
]
Cpus = Annotated[float, typer.Option("--cpus", help="ray: cores per worker.")]
Gpus = Annotated[float, typer.Option("--gpus", help="ray: GPUs per worker; 0.5: two workers share one.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, … (default: the fastest available).")]
Kind = Annotated[
    Literal["cross", "bi", "sparse", "late"] | None,
    typer.Option("--kind", help="cross, bi, sparse or late, if the model's files do not tell."),
]
QueryPrompt = Annotated[
    str | None,
    typer.Option(
        "--query-prompt", help="Put before queries instead of the model's own; a cross-encoder's instruction."
    ),
]
DocumentPrompt = Annotated[
    str | None, typer.Option("--document-prompt", help="Put before passages instead of the model's own.")
]
BatchSize = Annotated[int, typer.Option("--batch-size", help="Texts per batch.")]

TokensName = Literal["word", "whitespace"]
Lexicon = Annotated[str, typer.Option("--lexicon", help=LEXICON)]
Poles = Annotated[
    str | None, typer.Option("--poles", help="The two groups to compare, A,B: bias is A minus B; B may be rest.")
]
Tokens = Annotated[TokensName, typer.Option("--tokens", parser=text, help=_TOKENS)]
Threshold = Annotated[float, typer.Option("--threshold", help=_THRESHOLD)]

# With --scores, these default to the settings that the table was made with.
GroupTable = Annotated[str | None, typer.Option("--scores", help="A group table made by evenrank score.")]
OwnLexicon = Annotated[str | None, typer.Option("--lexicon", help=f"{LEXICON} Default: gender-en.")]
OwnTokens = Annotated[TokensName | None, typer.Option("--tokens", parser=text, help=f"{_TOKENS} Default: word.")]
OwnThreshold = Annotated[float | None, typer.Option("--threshold", help=f"{_THRESHOLD} Default: 1.")]

Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Groups of documents instead of words: doc_id,group or doc_id and each group's weight (CSV, TSV, JSONL or"
        " Parquet).",
    ),
]
Neutral = Annotated[
    list[str] | None, typer.Option("--neutral", help="A value of the labels that means no group; repeatable.")
]
GroupColumn = Annotated[str | None, typer.Option("--group-column", help="The column of groups, if there are several.")]

Json = Annotated[
    str | None, typer.Option("--json", help="Also write the figures as JSON; -: print them instead of the table.")
]
Report = Annotated[str | None, typer.Option("--report", help="Also write a report (one HTML page).")]
