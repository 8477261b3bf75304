"""Bias-aware negative sampling: negatives that mention a group, so that a ranker learns not to prefer them.

Bigdeli et al., the paper cited as [BAS]: of the N negatives of a query, a share λ are the unjudged documents of its
first-stage list with the largest bias β, the others are drawn at random from the rest.

When it misleads: β has no side: if the first stage finds mostly passages of one group, mostly that group is pushed
down, which can reverse a lean rather than remove it. An unjudged document may well be relevant; choosing it for its
words teaches the ranker that it is not. If a list has too few gendered documents, they do not fill the share (the
manifest counts such queries; ``gendered_only`` then draws the rest at random).

Worked example: of four unjudged documents with β 0, ln 3, 0 and ln 2, two negatives are taken, half of them by bias:
the one with ln 3, and one of the other three, by the seed.

>>> import polars as pl
>>> from evenrank.mitigation.negatives import sample
>>> table = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "beta": [0.0, 1.0986, 0.0, 0.6931]})
>>> drawn = sample(table, n=2, share=0.5)
>>> drawn.filter("biased")["doc_id"].to_list(), drawn.height
(['b'], 2)
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import (
    EvenrankError,
    Provenance,
    as_collection,
    as_qrels,
    as_queries,
    as_run,
    atomic_path,
    check_outputs,
    read_texts,
    write_text,
)
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, require_fast
from evenrank.files.json_values import json_text
from evenrank.files.progress import progress
from evenrank.files.streams import TableWriter, form_of
from evenrank.files.tables import IdIndex
from evenrank.files.tokens import Tokens
from evenrank.groups import GroupSource, Lexicon

from .negative_lists import Documents, PathLike, Sampler, documents_of, manifest_of, source_of
from .negative_sampling import Beta, NegativeSettings, beta, candidates, sample, whole_queries

__all__ = ["Beta", "Format", "NegativeSettings", "beta", "candidates", "sample", "stream_negatives", "write_negatives"]


_TEXTS = 1 << 15


def id_table(lists: pl.DataFrame, documents: Documents) -> pl.DataFrame:
    """The format ``groups``; the group of a document without a label is null."""
    place = lists["place"].to_numpy()
    columns = [pl.col("doc_id"), pl.col("relevance").alias("label")]
    if documents.sides is not None:
        sides = pl.Series("group", documents.sides[place].astype(np.int8, copy=False))
        if documents.labelled:
            sides = sides.set(pl.Series(np.isnan(documents.bias(place))), None)
        columns.append(pl.lit(sides))
    return lists.select("query_id", *columns).group_by("query_id", maintain_order=True).agg(pl.all())


def write_texts(
    lists: list[pl.DataFrame],
    writer: TableWriter,
    format: str,
    n: int,
    collection: PathLike | pl.DataFrame,
    queries: pl.DataFrame,
) -> None:
    """The formats that contain texts, all read at once. Raises EvenrankError if the collection lacks a document."""
    wanted = pl.concat([chunk["doc_id"] for chunk in lists]).unique()
    if isinstance(collection, pl.DataFrame):
        docs = collection.filter(pl.col("doc_id").is_in(wanted.implode()))
    else:
        docs = read_texts(collection, wanted)
    if docs.height < len(wanted):
        raise EvenrankError(f"{len(wanted) - docs.height} of the scored documents are not in {source_of(collection)}")
    documents, known = IdIndex([docs["doc_id"]]), IdIndex([queries["query_id"].cast(pl.String)])
    for part in itertools.chain.from_iterable(whole_queries(chunk, _TEXTS) for chunk in lists):
        table = part.select(
            "query_id",
            "relevance",
            query=queries["text"].gather(known.places(part["query_id"])),
            text=docs["text"].gather(documents.places(part["doc_id"])),
        )
        if format == "labeled-pair":
            relevant = (pl.col("relevance") >= 1).cast(pl.Float32)
            writer.write(table.select("query", passage="text", label=relevant))
            continue
        of_query = table.group_by("query_id", maintain_order=True)
        if format == "labeled-list":
            lists_of = of_query.agg(pl.col("query").first(), docs="text", labels="relevance")
            writer.write(lists_of.drop("query_id"))
        else:
            negative = pl.col("relevance") < 1
            texts = {"positive": pl.col("text").filter(~negative), "negatives": pl.col("text").filter(negative)}
            enough = of_query.agg(pl.col("query").first(), **texts).filter(pl.col("negatives").list.len() == n)
            columns = {f"negative_{i + 1}": pl.col("negatives").list.get(i) for i in range(n)}
            writer.write(enough.explode("positive").select(pl.col("query").alias("anchor"), "positive", **columns))


Format = Literal["groups", "labeled-list", "labeled-pair", "n-tuple"]


@checked
def write_negatives(
    run: Annotated[
        object,
        opt.Option("The first-stage run, with each query's lines together.", metavar="RUN", reads=True),
    ],
    *,
    qrels: Annotated[object, opt.Option("Qrels or irds:NAME.", reads=True)],
    out: Annotated[PathLike, opt.Option("The file to write: .parquet or .jsonl.", panel="Output")],
    collection: opt.MaybeCollection = None,
    queries: opt.MaybeQueries = None,
    n: Annotated[int, opt.Option("Negatives per query.", range=opt.COUNT)] = 20,
    share: Annotated[float, opt.Option("Share of them chosen by bias; 0: all at random.", range=opt.SHARE)] = 0.6,
    beta: Annotated[
        Literal["abs_tf", "count", "one_minus_neutrality"],
        opt.Option("How bias is measured.", metavar="HOW", rare=True),
    ] = "abs_tf",
    depth: Annotated[int, opt.Option("Documents of each query to sample from.", range=opt.COUNT, rare=True)] = 1000,
    gendered_only: Annotated[
        bool, opt.Option("Choose no document without bias as a biased negative.", rare=True)
    ] = False,
    seed: Annotated[int, opt.Option("Seed of the random negatives.", range=opt.SEED, rare=True)] = 0,
    format: Annotated[
        Literal["groups", "labeled-list", "labeled-pair", "n-tuple"],
        opt.Option(
            "groups: for evenrank train; the others: for sentence-transformers.", metavar="FORM", panel="Output"
        ),
    ] = "groups",
    quiet: bool = True,
    **groups: Unpack[opt.GroupOptions],
) -> dict[str, Any]:
    """Sample negatives by their bias and at random. OUT.manifest.json and .parquet count them.

    The training lists have the judged relevant documents first.

    ``out`` ends in ``.parquet`` or ``.jsonl``. ``format``:

    - ``groups``: ``query_id``, ``doc_id`` (list), ``label`` (list), which ``evenrank train`` takes as ``data.groups``;
      and ``group`` (list), the side of each document (+1, −1, 0) by ``tf_words``, if poles and ``tf_words`` are known,
      or by its label (null without one);
    - ``labeled-list``: ``query``, ``docs`` (list), ``labels`` (list): :func:`evenrank.train`, LambdaLoss and the other
      list losses of sentence-transformers' CrossEncoderTrainer;
    - ``labeled-pair``: ``query``, ``passage``, ``label`` (1 or 0): its BinaryCrossEntropyLoss;
    - ``n-tuple``: ``anchor``, ``positive``, ``negative_1`` … ``negative_n``, a row for each relevant document:
      MultipleNegativesRankingLoss; queries with fewer than ``n`` negatives are left out.

    Positives come first, labelled by their grade, then the biased part, then the random part (see :func:`sample`).
    ``groups``: as :func:`evenrank.audit` takes them (:class:`evenrank.options.GroupOptions`). With a group table, only
    the last three formats need the collection's texts; they need ``queries`` too. Of labels, ``abs_tf`` is the
    difference of their weights; a document without a label is unknown: it is never chosen for its bias, may be drawn at
    random, and the manifest counts it.

    Writes ``.manifest.json``, which is returned, and ``.manifest.parquet``, a row for each query, beside ``out``: all
    files or none.

    Raises InputError for bad files; EvenrankError for a setting out of range, documents that are not in the collection,
    queries without a text, labels beside ``scores`` or what counts words, labels that know no candidate, and if no
    query is left.
    """
    require_fast("a sample of negatives")
    settings = NegativeSettings(n, share, gendered_only, seed, depth)
    form = form_of(out)
    if form == "tsv":
        name = quoted(os.fspath(out))
        raise EvenrankError(f"{arg.out}: expected a name that ends in .parquet or .jsonl, found {name}")
    source = GroupSource(collection, **groups)
    _check_given(source, queries, format)
    outputs = [Path(out), Path(f"{os.fspath(out)}.manifest.json"), Path(f"{os.fspath(out)}.manifest.parquet")]
    check_outputs(outputs, (run, queries, qrels, collection, source.scores, source.labels, source.lexicon))
    provenance = Provenance("evenrank.mitigation.negatives.write_negatives")
    provenance.add("run", run).add("queries", queries).add("qrels", qrels)
    source.note(provenance)
    provenance.ahead(True)
    judged = as_qrels(qrels)
    texts = None if queries is None else as_queries(queries)
    documents_in = None if collection is None else as_collection(collection)
    source = replace(source, collection=documents_in)
    first_stage = as_run(run)
    documents = documents_of(source, beta, quiet)
    sampler = Sampler(judged, documents, settings, texts, first_stage.described)
    # Each file's errors in its own context; no file gets its name before all are written.
    with atomic_path(outputs[0]) as data:
        with progress("queries", quiet=quiet) as advance, TableWriter(data, form) as writer:
            every = []
            for part in whole_queries(first_stage.table):
                chunk = sampler.lists(part)
                advance(chunk["query_id"].n_unique())
                if format == "groups":
                    writer.write(id_table(chunk, documents))
                else:
                    every.append(chunk)
            sampler.check()
            if format != "groups":
                assert texts is not None
                assert documents_in is not None
                write_texts(every, writer, format, n, documents_in, texts)
        if not writer.rows:
            raise EvenrankError(
                f"{arg('format', 'n-tuple')}: no query has {n} negatives; {arg.n} sets how many are drawn"
            )
        manifest = manifest_of(sampler, first_stage.name, format, beta, writer.rows)
        manifest["provenance"] = provenance.to_dict()
        with atomic_path(outputs[1]) as manifest_json:
            manifest_json.write_text(json_text(manifest) + "\n", encoding="utf-8")
            with atomic_path(outputs[2]) as manifest_table:
                sampler.per_query().write_parquet(manifest_table)
    return manifest


def _check_given(source: GroupSource, queries: object, format: str) -> None:
    """Raises EvenrankError if the texts, scores or labels that a format needs are missing."""
    if source.collection is None and format != "groups":
        raise EvenrankError(f"{arg('format', format)}: the documents' texts are needed: give {arg.collection}")
    if source.collection is None and not source.described:
        raise EvenrankError(
            f"the documents' texts, scores or labels are needed: give {arg.collection}, {arg.scores} or {arg.labels}"
        )
    if queries is None and format != "groups":
        raise EvenrankError(f"{arg('format', format)}: the queries' texts are needed: give {arg.queries}")


def stream_negatives(
    chunks: Iterable[pl.DataFrame],
    samples: Mapping[Path, NegativeSettings],
    *,
    collection: str,
    qrels: pl.DataFrame,
    name: str = "bm25",
    lexicon: Lexicon | None = None,
    tokens: Tokens | None = None,
) -> None:
    """Writes a file of training lists (Parquet, format ``groups``) for each of ``samples``, by its settings.

    ``chunks``: the table of a run in parts of whole queries; the files are those that :func:`write_negatives` makes of
    that run, with ``lexicon`` and ``tokens``. ``name``: that of the run.

    Raises EvenrankError for documents that are not in the collection, and if no query is left.
    """
    require_fast("a sample of negatives")
    documents = documents_of(GroupSource(collection, lexicon=lexicon, tokens=tokens), "abs_tf", True)
    # The files get their names when all are whole.
    with ExitStack() as files:
        open_: list[tuple[Path, Sampler, TableWriter]] = []
        for out, settings in samples.items():
            writer = files.enter_context(TableWriter(files.enter_context(atomic_path(out)), "parquet"))
            open_.append((out, Sampler(qrels, documents, settings, None, name), writer))
        for chunk in chunks:
            for _, sampler, writer in open_:
                writer.write(id_table(sampler.lists(chunk), documents))
        for out, sampler, writer in open_:
            sampler.check()
            manifest = manifest_of(sampler, name, "groups", "abs_tf", writer.rows)
            write_text(Path(f"{out}.manifest.json"), json_text(manifest) + "\n")
