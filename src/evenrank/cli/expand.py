"""``evenrank expand``: queries expanded with word vectors."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from evenrank._wording import counted

from . import _options, _output


@_options.in_range
def command(
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="TSV, JSONL, Parquet or irds:NAME.")],
    vectors: Annotated[
        str, typer.Option(help="word2vec, GloVe or fastText file, saved vectors, or a transformer's folder.")
    ],
    out: Annotated[str, typer.Option(help="The queries to write (TSV; -: standard output).")],
    k: Annotated[int, typer.Option(help="Words for each query.")] = 5,
    form: Annotated[str, typer.Option(help="cosine, or dot (Diaz et al.).")] = "cosine",
    stopwords: Annotated[
        str, typer.Option(metavar="NAME|FILE", help=f"nltk (English), or as for retrieve: {_options.STOP_WORDS}")
    ] = "nltk",
    language_model: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT", help="Mix with the query's own words, which get WEIGHT: for retrieve --weighted."
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="VECTORS", help="Say which queries other vectors expand differently.")
    ] = None,
    changes: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --compare: write these queries as JSONL.")
    ] = None,
) -> None:
    """Replace each query by the words nearest to it in a vector space."""
    from evenrank.embeddings import read_vectors
    from evenrank.io import EvenrankError, atomic_path, read_queries
    from evenrank.retrieval.expansion import expand, read_stop_words

    if changes is not None and compare is None:
        raise EvenrankError("--changes needs --compare")
    _output.check(streams=(out, changes), inputs=(queries, vectors, stopwords, compare))
    table, stop = read_queries(queries), read_stop_words(stopwords)
    found = expand(table, read_vectors(vectors), k, cast(Any, form), stop)
    written = found.expanded() if language_model is None else found.language_model(language_model)
    changed = None
    if compare is not None:
        changed = found.changes(expand(table, read_vectors(compare), k, cast(Any, form), stop))
    with _output.target(out) as expansions, _output.target(changes) as differences:
        with atomic_path(expansions) as part:
            written.write_csv(part, include_header=False, separator="\t", quote_style="never")
        if changed is not None and differences:
            with atomic_path(differences) as part:
                changed.write_ndjson(part)
    expanded = table.height - len(found.unexpanded)
    _output.say(f"{expanded} of {table.height} queries expanded: {out}", err=True)
    missing = found.missing
    if missing.height:
        some = ", ".join(missing["word"].head(20)) + (", …" if missing.height > 20 else "")
        _output.say(f"{counted(missing.height, 'word')} without a vector: {some}", err=True)
    if len(found.unexpanded):
        some = ", ".join(found.unexpanded.head(20)) + (", …" if len(found.unexpanded) > 20 else "")
        _output.say(f"{counted(len(found.unexpanded), 'query')} left as written: {some}", err=True)
    if changed is not None:
        _output.say(f"{changed.height} of {table.height} queries are expanded differently with {compare}", err=True)
