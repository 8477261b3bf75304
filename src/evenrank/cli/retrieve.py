"""``evenrank retrieve``: first-stage retrieval with BM25."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(  # parameters: the options
    collection: _options.CollectionArgument,
    queries: _options.QueriesArgument,
    out: Annotated[str, typer.Option(help="The run to write (-: standard output).")],
    k: Annotated[int, typer.Option(help="Documents per query.")] = 1000,
    k1: Annotated[float, typer.Option(help="BM25: term frequency saturation (from 0).")] = 0.9,
    b: Annotated[float, typer.Option(help="BM25: document length normalisation (0 to 1).")] = 0.4,
    stopwords: Annotated[str, typer.Option(metavar="NAME", help=_options.STOP_WORDS)] = "english",
    stemmer: Annotated[
        str, typer.Option(metavar="NAME", help="english, another Snowball stemmer, or none.")
    ] = "english",
    rm3: Annotated[bool, typer.Option("--rm3", help="Expand each query with words of its top documents.")] = False,
    fb_docs: Annotated[int, typer.Option(help="RM3: number of feedback documents.")] = 10,
    fb_terms: Annotated[int, typer.Option(help="RM3: number of feedback terms.")] = 10,
    original_weight: Annotated[float, typer.Option(help="RM3: weight of the original query (0 to 1).")] = 0.5,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="The queries' words have weights: nurse^0.3 ward^0.1.")
    ] = False,
    quiet: _options.Quiet = False,
) -> None:
    """Rank a collection for each query with BM25 and write a TREC run."""
    from evenrank import RM3, read_queries, retrieve, write_run
    from evenrank.io.wording import counted

    _output.check(streams=(out,), inputs=(collection, queries))
    run = retrieve(
        collection,
        read_queries(queries),
        k,
        k1=k1,
        b=b,
        stopwords=stopwords,
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
    if out != _output.STANDARD:
        _output.say(f"{counted(run.queries.len(), 'query')} ranked: {out}", err=True)
