"""``evenrank expand``: query expansion with word vectors."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import _options, _output


@_options.in_range
def command(
    queries: _options.QueriesArgument,
    vectors: Annotated[str, typer.Option(help=_options.VECTORS)],
    out: Annotated[str, typer.Option(help="The queries to write (TSV; -: standard output).")],
    k: Annotated[int, typer.Option(help="Words per query.")] = 5,
    form: Annotated[
        Literal["cosine", "dot"], typer.Option(parser=_options.text, help="cosine, or dot (Diaz et al.).")
    ] = "cosine",
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
        str | None, typer.Option(metavar="VECTORS", help="Report which queries other vectors expand differently.")
    ] = None,
    changes: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --compare: write these queries as JSONL.")
    ] = None,
) -> None:
    """Replace each query with its nearest words in a vector space."""
    from evenrank import EvenrankError, expand, read_queries, read_stop_words, read_vectors
    from evenrank.io import atomic_path
    from evenrank.io.wording import counted

    if changes is not None and compare is None:
        raise EvenrankError("`changes` needs `compare`")
    _output.check(streams=(out, changes), inputs=(queries, vectors, stopwords, compare))
    table, stop = read_queries(queries), read_stop_words(stopwords, nltk=True)
    expansion = expand(table, read_vectors(vectors), k, form, stop)
    written = expansion.expanded() if language_model is None else expansion.language_model(language_model)
    changed = None
    if compare is not None:
        changed = expansion.changes(expand(table, read_vectors(compare), k, form, stop))
    with _output.target(out) as expansions, _output.target(changes) as differences:
        with atomic_path(expansions) as part:
            written.write_csv(part, include_header=False, separator="\t", quote_style="never")
        if changed is not None and differences:
            with atomic_path(differences) as part:
                changed.write_ndjson(part)
    missing, unexpanded = expansion.missing["word"].to_list(), expansion.unexpanded.to_list()
    lines = [f"{table.height - len(unexpanded)} of {table.height} queries expanded: {out}"]
    if missing:
        lines.append(f"{counted(len(missing), 'word')} without a vector: {_some(missing)}")
    if unexpanded:
        lines.append(f"{counted(len(unexpanded), 'query')} left unchanged: {_some(unexpanded)}")
    if changed is not None:
        lines.append(f"{changed.height} of {table.height} queries are expanded differently with {compare}")
    for line in lines:
        _output.say(line, err=True)


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
