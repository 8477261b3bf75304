"""``evenrank retrieve``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options


def command(
    collection: Annotated[str, typer.Argument(help="TSV, JSONL, Parquet or irds:NAME.")],
    queries: Annotated[str, typer.Argument(help="TSV, JSONL, Parquet or irds:NAME.")],
    out: Annotated[str, typer.Option(help="The run to write.")],
    k: Annotated[int, typer.Option(help="Documents for each query.")] = 1000,
    k1: Annotated[float, typer.Option(help="How slowly a repeated word saturates (from 0).")] = 0.9,
    b: Annotated[float, typer.Option(help="How much long documents lose (0 to 1).")] = 0.4,
    stopwords: Annotated[str, typer.Option(metavar="NAME", help="english or none.")] = "english",
    stemmer: Annotated[
        str, typer.Option(metavar="NAME", help="english, another Snowball stemmer, or none.")
    ] = "english",
    quiet: _options.Quiet = False,
) -> None:
    """Rank a collection for each query with BM25 and write a TREC run."""
    from evenrank.io import check_writable, read_queries, write_run
    from evenrank.retrieval.bm25 import retrieve

    check_writable(out)
    run = retrieve(
        collection,
        read_queries(queries),
        k,
        k1=k1,
        b=b,
        stopwords=None if stopwords == "none" else stopwords,
        stemmer=None if stemmer == "none" else stemmer,
        quiet=quiet,
    )
    write_run(run, out)
    for note in run.notes:
        typer.echo(note, err=True)
