"""``evenrank index``: a first stage that is kept, in a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output

Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME", help="auto (bfloat16 on a GPU that supports it), float32 or bfloat16."),
]
QueryPrompt = Annotated[
    str | None, typer.Option("--query-prompt", help="Before each query, in place of the model's own.")
]


@_options.in_range
def command(
    collection: _options.CollectionArgument,
    out: Annotated[str, typer.Option(help="The folder of the index, new or empty.")],
    k1: Annotated[float | None, typer.Option(help="BM25: term frequency saturation, from 0 (default: 0.9).")] = None,
    b: Annotated[float | None, typer.Option(help="BM25: document length normalisation, 0 to 1 (default: 0.4).")] = None,
    stopwords: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help=f"BM25: {_options.STOP_WORDS} Default: english.")
    ] = "default",
    stemmer: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="BM25: english, another Snowball stemmer, or none. Default: english.",
        ),
    ] = "default",
    rm3: Annotated[bool, typer.Option("--rm3", help="BM25: keep each passage's words, for searches with RM3.")] = False,
    model: Annotated[
        str | None, typer.Option(help="Index the vectors of this model (a folder or a hub name) instead of BM25.")
    ] = None,
    batch_size: _options.BatchSize = 32,
    device: _options.Device = None,
    kind: Annotated[str | None, typer.Option("--kind", help="bi or sparse, if the model's files do not tell.")] = None,
    precision: Precision = None,
    query_prompt: QueryPrompt = None,
    document_prompt: Annotated[
        str | None, typer.Option("--document-prompt", help="Before each document, in place of the model's own.")
    ] = None,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    gpus: _options.Gpus = 0,
    quiet: _options.Quiet = False,
) -> None:
    """Index a collection once, to search it often with evenrank retrieve INDEX QUERIES.

    The same command continues an encoding that was interrupted. See also evenrank index debias INDEX, which erases
    groups from the vectors of an index (a collection of that name: ./debias).
    """
    from evenrank import Encoding, build_index
    from evenrank.io.wording import counted

    _output.refuse_standard(out)
    encoding = Encoding(
        kind=kind,
        batch_size=batch_size,
        device=device,
        precision=precision,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        engine=engine,
        cluster=_options.cluster(engine, workers, cpus, gpus),
    )
    manifest = build_index(
        collection,
        out,
        k1=k1,
        b=b,
        stopwords=stopwords,
        stemmer=None if stemmer == "none" else stemmer,
        rm3=rm3,
        model=model,
        encoding=encoding,
        quiet=quiet,
    )
    _output.say(f"{counted(manifest.documents, 'document')} indexed: {out}", err=True)
