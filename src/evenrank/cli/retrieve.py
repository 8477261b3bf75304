"""``evenrank retrieve``: first-stage retrieval with BM25, or with an index of evenrank index."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output
from .index import Precision, QueryPrompt


@_options.in_range
def command(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="TSV, JSONL, Parquet, irds:NAME, or an index (evenrank index).")
    ],
    queries: _options.QueriesArgument,
    out: Annotated[str, typer.Option(help="The run to write (-: standard output).")],
    k: Annotated[int, typer.Option(help="Documents per query.")] = 1000,
    k1: Annotated[
        float | None, typer.Option(help="BM25: term frequency saturation, from 0 (default: 0.9, or the index's).")
    ] = None,
    b: Annotated[
        float | None,
        typer.Option(help="BM25: document length normalisation, 0 to 1 (default: 0.4, or the index's)."),
    ] = None,
    stopwords: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help=f"{_options.STOP_WORDS} Default: english, or the index's."
        ),
    ] = "default",
    stemmer: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="english, another Snowball stemmer, or none. Default: english, or the index's.",
        ),
    ] = "default",
    rm3: Annotated[bool, typer.Option("--rm3", help="Expand each query with words of its top documents.")] = False,
    fb_docs: Annotated[int, typer.Option(help="RM3: number of feedback documents.")] = 10,
    fb_terms: Annotated[int, typer.Option(help="RM3: number of feedback terms.")] = 10,
    original_weight: Annotated[float, typer.Option(help="RM3: weight of the original query (0 to 1).")] = 0.5,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="The queries' words have weights: nurse^0.3 ward^0.1.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Where an index's model is now, if not where it was (the same files).")
    ] = None,
    batch_size: _options.BatchSize = 32,
    device: _options.Device = None,
    precision: Precision = None,
    query_prompt: QueryPrompt = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare an index's files with their digests each time, not once after they have changed."
        ),
    ] = False,
    quiet: _options.Quiet = False,
) -> None:
    """Rank a collection for each query, with BM25 or with its index, and write a TREC run.

    The first search of an index reads all of its files and compares them with their digests; later ones do so if a
    file's size or time has changed (INDEX/checked.json), or with --check.
    """
    from evenrank import RM3, Encoding, read_queries, retrieve, write_run
    from evenrank.io import Provenance
    from evenrank.io.files import INDEX, is_index
    from evenrank.io.run_cards import card_path, write_card
    from evenrank.io.wording import counted

    card = None if out == _output.STANDARD else card_path(out)
    _output.check(streams=(out, card), inputs=(collection, queries))
    encoding = Encoding(batch_size=batch_size, device=device, precision=precision, query_prompt=query_prompt)
    # An index's own description has the digests of its files.
    source = ("index", f"{collection}/{INDEX}") if is_index(collection) else ("collection", collection)
    provenance = Provenance("evenrank.retrieve").add(*source).add("queries", queries)
    provenance.ahead(card is not None)
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
        name="rm3" if rm3 else None,
        quiet=quiet,
        model=model,
        encoding=encoding,
        check=check,
    )
    with _output.target(out) as path:
        write_run(run, path)
    if card is not None:
        write_card(run.card or {}, out, provenance)
    for note in run.notes:
        _output.say(note, err=True)
    if out != _output.STANDARD:
        _output.say(f"{counted(run.queries.len(), 'query')} ranked: {out}", err=True)
