"""First stages: retrieval by BM25 or by an index of any kind; building an index in a folder, and opening it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, cast

import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Run, as_queries, check_apart
from evenrank.files.arguments import checked
from evenrank.files.errors import FAST, arg, require
from evenrank.files.passages import as_passages, folded
from evenrank.files.reading import is_index

from .analysis import Analyzer, stop_word_set, words_digest
from .bm25 import Index, build
from .expansion import RM3
from .index_folder import Encoding, FirstStage, Manifest, read_manifest, refuse_model, verify


@checked
def build_index(
    collection: opt.TheCollection,
    *,
    out: Annotated[opt.File, opt.Option("The folder of the index, new or empty.", metavar="DIR", panel="Output")],
    k1: opt.Saturation = None,
    b: opt.LengthNormalisation = None,
    stopwords: opt.StopWords = "default",
    stemmer: opt.Stemmer = "default",
    rm3: Annotated[bool, opt.Option("BM25: keep each passage's words, for searches with RM3.")] = False,
    model: Annotated[
        object,
        opt.Option(
            "Index the vectors of this model (a folder or a hub name) instead of BM25.",
            metavar="MODEL",
            excludes=("k1", "b", "stopwords", "stemmer", "rm3"),
            panel="Model",
        ),
    ] = None,
    encoding: Encoding | None = None,
    quiet: bool = True,
) -> Manifest:
    """Builds an index of a collection in the folder ``out``, and returns its manifest.

    ``collection``: as for :func:`evenrank.retrieve`. Without a ``model`` the index is BM25's, with the settings and
    defaults of :func:`evenrank.retrieve`; ``rm3``: it keeps each document's words too, for searches with RM3. With a
    model, its vectors are kept, encoded as ``encoding`` says.

    A build that was interrupted leaves a folder that cannot be searched; the same call again continues an encoding,
    and starts BM25 again. Raises EvenrankError for a folder that contains anything else, for settings out of range, and
    for BM25's settings beside a model; InputError for a collection that cannot be read and a disk that is full.
    """
    require("an index", "search", *FAST)
    check_apart([out], [collection])
    if is_index(collection):
        raise EvenrankError(f"{collection}: is an index; expected a collection")
    if model is None:
        refuse_model(None, encoding)
        k1, b = 0.9 if k1 is None else k1, 0.4 if b is None else b
        return build(collection, out, _analyzer(stopwords, stemmer), k1=k1, b=b, forward=rm3, quiet=quiet)
    from .vector_index import build_vector_index

    return build_vector_index(collection, out, model, encoding or Encoding(), quiet=quiet)


def _analyzer(stopwords: str | Collection[str] | None, stemmer: str | None) -> Analyzer:
    """BM25's analysis; by default English."""
    stemmer = "english" if stemmer == "default" else None if stemmer == "none" else stemmer
    return Analyzer("english" if stopwords == "default" else stopwords, stemmer)


@checked
def open_index(path: str | os.PathLike[str], *, check: bool = False) -> FirstStage:
    """An index that :func:`build_index` built, to be searched: its files are mapped.

    ``check``: the digest of every file is compared with the manifest, which reads them all; their sizes are compared
    in any case. Raises InputError, in one line, for a folder that is no index, and for one that is unfinished, damaged
    or in another format.
    """
    require("an index", "search", *FAST)
    manifest = read_manifest(path)
    if check:
        verify(manifest)
    if manifest.kind == "bm25":
        return Index.open(manifest)
    from .vector_index import DenseIndex, SparseIndex

    return DenseIndex(manifest) if manifest.kind == "dense" else SparseIndex(manifest)


@checked
def retrieve(
    collection: Annotated[
        object,
        opt.Option(
            "TSV, CSV, JSONL, Parquet, irds:NAME, or an index (evenrank index).", metavar="COLLECTION", reads=True
        ),
    ],
    queries: opt.TheQueries,
    *,
    k: Annotated[int, opt.Option("Documents per query.", range=opt.COUNT)] = 1000,
    passages: opt.Passages = None,
    k1: opt.Saturation = None,
    b: opt.LengthNormalisation = None,
    stopwords: opt.StopWords = "default",
    stemmer: opt.Stemmer = "default",
    rm3: RM3 | None = None,
    weighted: Annotated[bool, opt.Option("The queries' words have weights: nurse^0.3 ward^0.1.")] = False,
    name: str | None = None,
    quiet: bool = True,
    model: Annotated[
        object,
        opt.Option(
            "Where an index's model is now, if not where it was (the same files).",
            metavar="MODEL",
            panel="Model",
            rare=True,
        ),
    ] = None,
    encoding: Encoding | None = None,
    check: Annotated[
        bool,
        opt.Option(
            "Compare an index's files with their digests.",
            panel="Input",
            rare=True,
        ),
    ] = False,
) -> Run:
    """The first ``k`` documents of each query, as a run: by BM25, or by an index of any kind.

    ``collection``: a path, ``{document: text}``, a frame of polars or pandas with ``doc_id`` and ``text``, records, or
    an iterable of polars frames; or an index, open (:func:`evenrank.open_index`) or by its folder. ``queries``: a path,
    ``{query: text}``, a frame with ``query_id`` and ``text``, or records. ``k1`` (None: 0.9), ``b`` (None: 0.4),
    ``stopwords``, ``stemmer`` (default: English): as for :class:`Analyzer`; an index has its own. ``rm3``: expand each
    query with words of its first documents, and search again. ``weighted``: words of queries carry weights,
    ``word^0.3`` (default 1); score = Σ_t weight_t · BM25(t, d). ``name``: of the run (default ``bm25``). For
    an index of a model's vectors, ``model``: where the model is now, if not where it was; ``encoding``: how queries are
    encoded. ``check``: compare every file of an index's folder with its digest.

    ``passages``: the table of a cut collection (``documents.csv`` of :func:`evenrank.cut_passages`, a frame with
    ``passage_id`` and ``doc_id``, or ``{passage: document}``), where ``collection`` has the passages: the first ``k``
    documents, each with the score of its best passage (MaxP; Dai & Callan 2019). Passages are searched twice as deep
    as before for as long as one further down could change these, so that they are those of a search of all passages.

    Documents without a term of the query are left out, so a list can have fewer than ``k``. Ties are broken by
    descending document id, also at rank ``k``. The run's notes list the settings and count the queries without results.

    Raises EvenrankError for a setting or a weight out of range, for a setting that is not the index's, and if no query
    has a result; InputError for a collection that cannot be read and an index that is unfinished or damaged.
    """
    require("a search", "search", *FAST)
    if is_index(collection):
        collection = open_index(cast("str | os.PathLike[str]", collection), check=check)
    elif check:
        raise EvenrankError(f"{arg.check}: only for an index by its folder")
    of_passages = None if passages is None else as_passages(passages)
    if isinstance(collection, FirstStage):
        index = collection
        stemmer = None if stemmer == "none" else stemmer
        check_settings(index, k1=k1, b=b, stopwords=stopwords, stemmer=stemmer)
    else:
        refuse_model(model, encoding)
        k1, b = 0.9 if k1 is None else k1, 0.4 if b is None else b
        analyzer = _analyzer(stopwords, stemmer)
        index = Index.build(collection, analyzer, k1=k1, b=b, forward=rm3 is not None, quiet=quiet)
    search: Callable[[object, int], Run] = partial(
        index.search, rm3=rm3, weighted=weighted, name=name, quiet=quiet, model=model, encoding=encoding
    )
    return search(queries, k) if of_passages is None else _documents(search, queries, k, of_passages)


def _documents(search: Callable[[object, int], Run], queries: object, k: int, passages: pl.DataFrame) -> Run:
    """The first ``k`` documents of each query by their best passages, of those that ``search`` finds.

    ``search``: from queries and a depth to their first passages; ``passages``: as
    :func:`evenrank.files.passages.as_passages` returns them. A query is done when it has ``k`` documents and the last
    passage found has a lower score than the last document, or when no more passages are found; only others are searched
    again. (A model encodes these in other batches then, which may change the last digits of their scores.)
    """
    pending, depth = as_queries(queries), 2 * k
    first: Run | None = None
    done: list[pl.DataFrame] = []
    while first is None or pending.height:
        depth = min(depth, passages.height + 1)
        results = search(pending, depth)
        run = folded(results, passages)
        first = first or run
        best = run.table.filter(pl.col("rank") <= k)
        ends = results.table.group_by("query_id").agg(pl.len().alias("passages"), pl.col("score").min().alias("last"))
        own = best.group_by("query_id").agg(pl.len().alias("documents"), pl.col("score").min())
        open_ = (pl.col("documents") < k) | (pl.col("last") >= pl.col("score"))
        more = ends.join(own, on="query_id").filter((pl.col("passages") == depth) & open_)["query_id"].implode()
        done.append(best.filter(~pl.col("query_id").is_in(more)))
        pending, depth = pending.filter(pl.col("query_id").is_in(more)), 2 * depth
    order = pl.DataFrame({"query_id": first.queries})
    table = order.join(pl.concat(done), on="query_id", how="left", maintain_order="left_right")
    return replace(first, table=table, card={**(first.card or {}), "depth": k})


def check_settings(index: FirstStage, **given: object) -> None:
    """Raises EvenrankError for a setting of a search that differs from that of the index.

    ``given``: ``k1``, ``b`` (None: not given), ``stopwords``, ``stemmer`` (``"default"``: not given).
    """
    manifest = index.manifest
    for name, value in given.items():
        if value == "default" or (value is None and name in ("k1", "b")):
            continue
        if manifest is None:
            if value == getattr(index, name, None):
                continue
            raise EvenrankError(f"{arg(name)}: an index in memory has its own; build another")
        own = manifest.settings.get(name)
        if manifest.kind != "bm25":
            raise EvenrankError(f"{arg(name)}: a setting of BM25, and {manifest.path} is an index of another kind")
        same = value == own
        if name == "stopwords":
            words = stop_word_set(value if isinstance(value, str) else cast("Sequence[str] | None", value))
            same = words_digest(words) == manifest.settings.get("stopwords_sha256")
            value = value if isinstance(value, str | None) else "others"
        if not same:
            raise EvenrankError(
                f"{arg(name)}: the index {manifest.path} has {_named(own)}, found {_named(value)}; build another index"
            )


def _named(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
