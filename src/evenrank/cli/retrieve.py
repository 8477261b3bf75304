"""``evenrank retrieve``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="TSV, JSONL, Parquet or irds:NAME.")],
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="TSV, JSONL, Parquet or irds:NAME.")],
    out: Annotated[str, typer.Option(help="The run to write (-: standard output).")],
    k: Annotated[int, typer.Option(help="Documents for each query.")] = 1000,
    k1: Annotated[float, typer.Option(help="How slowly a repeated word saturates (from 0).")] = 0.9,
    b: Annotated[float, typer.Option(help="How much long documents lose (0 to 1).")] = 0.4,
    stopwords: Annotated[str, typer.Option(metavar="NAME", help=_options.STOP_WORDS)] = "english",
    stemmer: Annotated[
        str, typer.Option(metavar="NAME", help="english, another Snowball stemmer, or none.")
    ] = "english",
    rm3: Annotated[bool, typer.Option("--rm3", help="Enrich each query with words of its first documents.")] = False,
    fb_docs: Annotated[int, typer.Option(help="RM3: documents to take words from.")] = 10,
    fb_terms: Annotated[int, typer.Option(help="RM3: words to take.")] = 10,
    original_weight: Annotated[float, typer.Option(help="RM3: weight of the query's own words (0 to 1).")] = 0.5,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Words of the queries carry weights: nurse^0.3 ward^0.1.")
    ] = False,
    quiet: _options.Quiet = False,
) -> None:
    """Rank a collection for each query with BM25 and write a TREC run."""
    from evenrank.io import read_queries, write_run
    from evenrank.retrieval.bm25 import retrieve
    from evenrank.retrieval.rm3 import RM3

    _output.check(streams=(out,), inputs=(collection, queries))
    run = retrieve(
        collection,
        read_queries(queries),
        k,
        k1=k1,
        b=b,
        stopwords=None if stopwords == "none" else stopwords,
        stemmer=None if stemmer == "none" else stemmer,
        rm3=RM3(fb_docs, fb_terms, original_weight) if rm3 else None,
        weighted=weighted,
        name="rm3" if rm3 else "bm25",
        quiet=quiet,
    )
    with _output.target(out) as path:
        write_run(run, path)
    for note in run.notes:
        _output.say(note, err=True)
