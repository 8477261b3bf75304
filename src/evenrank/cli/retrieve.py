"""``evenrank retrieve``: first-stage retrieval with BM25, or with an index of evenrank index."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# BM25, straight from the texts.
evenrank retrieve docs.tsv queries.tsv --out bm25.run
# From a search engine.
evenrank retrieve queries.tsv --from http://localhost:9200 --index docs \
    --out os.run
# From an index that evenrank index made: BM25 or vectors.
evenrank retrieve dense.index queries.tsv --out dense.run
"""


_OF_SEARCH = ("passages", "k1", "b", "stopwords", "stemmer", "weighted", "model", "check", "rm3")
_OF_QUERIES = ("batch_size", "device", "precision", "query_prompt")
Source = Annotated[
    str | None,
    opt.Option(
        "Ask another retriever: a URL with {query} (and {k}) that answers JSON, or a server and --index.",
        flag="--from",
        metavar="URL",
        excludes=(*_OF_SEARCH, *_OF_QUERIES),
        panel="Input",
    ),
]


def command(
    *,
    out: Annotated[str, opt.Option("The run to write (-: standard output).", panel="Output")],
    given: Annotated[Values, From("search.indexes", "retrieve")],
    asked: Annotated[Values, From("models.retrievers", "retrieve_from", without=("queries", "k"))],
    source: Source = None,
    feedback: Annotated[Values, From("search.expansion", "RM3")],
    encoded: Annotated[
        Values,
        From("search.index_folder", "Encoding", only=("batch_size", "device", "precision", "query_prompt")),
    ],
    rm3: Annotated[bool, opt.Option("Expand each query with words of its top documents.")] = False,
    quiet: opt.Quiet = False,
) -> None:
    """Rank a collection for each query, with BM25 or an index. Or ask another retriever (--from). Writes a run.

    With --check all files of an index are read and compared with their digests; without it their sizes are.
    """
    from evenrank import RM3, Encoding, EvenrankError, read_queries, retrieve, retrieve_from, write_run
    from evenrank.files import Provenance
    from evenrank.files.provenance import card_path, write_card
    from evenrank.files.reading import INDEX, is_index
    from evenrank.files.wording import counted

    collection, queries = given["collection"], given["queries"]
    elsewhere = source is not None
    if elsewhere:
        if queries is not None:
            raise EvenrankError(f"{arg.collection}: not with {arg.source}")
        # The one argument is the queries.
        collection, queries = None, collection
    if queries is None:
        raise EvenrankError(f"expected {arg.queries}")
    card = None if out == _output.STANDARD else card_path(out)
    _output.check(streams=(out, card), inputs=(*given.read, *asked.read))
    # An index's own description has the digests of its files.
    first = ("index", f"{collection}/{INDEX}") if is_index(collection) else ("collection", collection)
    provenance = Provenance("evenrank.retrieve").add(*first).add("queries", queries)
    provenance.add("passages", given["passages"])
    provenance.ahead(card is not None)
    table = read_queries(queries)
    if elsewhere:
        run = retrieve_from(source, table, **asked, k=given["k"], quiet=quiet)
    else:
        run = retrieve(
            **{**given, "queries": table},
            rm3=RM3(**feedback) if rm3 else None,
            name="rm3" if rm3 else None,
            encoding=Encoding(**encoded),
            quiet=quiet,
        )
    with _output.target(out) as path:
        write_run(run, path)
    if card is not None:
        write_card(run.card or {}, out, provenance)
    for note in run.notes:
        _output.say(note, err=True)
    if out != _output.STANDARD:
        _output.say(f"{counted(run.queries.len(), 'query')} ranked: {out}", err=True)
