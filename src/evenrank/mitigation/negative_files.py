"""From a run file to a file of training data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from evenrank.engines.progress import progress
from evenrank.engines.streams import Form, TableWriter
from evenrank.groups import Lexicon, Tokens, check_labels, note_lexicon
from evenrank.io import (
    EvenrankError,
    Provenance,
    as_collection,
    as_qrels,
    as_queries,
    as_run,
    atomic_path,
    check_outputs,
)
from evenrank.io.atomic import json_text
from evenrank.io.errors import quoted

from .negative_documents import Asked, Labels, PathLike, documents_of
from .negative_formats import id_table, write_texts
from .negative_lists import SampledLists, Sampler
from .negative_manifest import manifest_of
from .negative_sampling import Beta, Settings, whole_queries
from .negative_texts import TextFile

Format = Literal["groups", "labeled-list", "labeled-pair", "n-tuple"]


# parameters, long: those of `evenrank negatives`, each described.
def write_negatives(
    run: object,
    out: PathLike,
    *,
    collection: object = None,
    queries: object = None,
    qrels: object,
    n: int = 20,
    share: float = 0.6,
    beta: Beta = "abs_tf",
    depth: int = 1000,
    gendered_only: bool = False,
    seed: int = 0,
    format: Format = "groups",
    scores: object = None,
    lexicon: PathLike | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    labels: object = None,
    neutral: Sequence[str] | None = None,
    group_column: str | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """Samples negatives for every query of a run, and writes training lists with the judged relevant documents.

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
    ``scores``: a group table, used instead of scoring the collection; only the last three formats then need its texts.
    These need ``queries`` too. ``labels``, with ``neutral`` and ``group_column``: the groups of documents instead of
    their words (see :func:`as_labels`); ``abs_tf`` is then the difference of their weights. A document without a label
    is unknown: it is never chosen for its bias, may be drawn at random, and the manifest counts it.

    Writes ``.manifest.json``, which is returned, and ``.manifest.parquet``, a row for each query, beside ``out``: all
    files or none.

    Raises InputError for bad files; EvenrankError for a setting out of range, documents that are not in the collection,
    queries without a text, labels beside ``scores`` or what counts words, labels that know no candidate, and if no
    query is left.
    """
    settings = Settings(n, share, gendered_only, seed, depth)
    form = _form(out)
    for name, value, allowed in (("beta", beta, get_args(Beta)), ("format", format, get_args(Format))):
        if value not in allowed:
            raise EvenrankError(f"`{name}`: expected one of {', '.join(allowed)}, found {quoted(value)}")
    check_labels(labels, neutral, group_column, scores=scores, lexicon=lexicon, tokens=tokens, threshold=threshold)
    given = {"run": run, "collection": collection, "queries": queries, "qrels": qrels, "scores": scores}
    given["labels"] = labels
    _check_given(given, format)
    outputs = [Path(out), Path(f"{os.fspath(out)}.manifest.json"), Path(f"{os.fspath(out)}.manifest.parquet")]
    check_outputs(outputs, (*given.values(), lexicon))
    made = Provenance("evenrank.mitigation.negatives.write_negatives")
    for role, source in given.items():
        made.add(role, source)
    note_lexicon(made, lexicon or (None if scores is not None or labels is not None else "gender-en"))
    made.ahead(True)
    judged = as_qrels(qrels)
    texts = None if queries is None else as_queries(queries)
    documents_in = None if collection is None else as_collection(collection)
    first_stage = as_run(run)
    asked: Asked = {"lexicon": lexicon, "poles": poles, "tokens": tokens, "threshold": threshold}
    by_label: Labels | None = None
    if labels is not None:
        by_label = {"labels": labels, "neutral": neutral or (), "group_column": group_column}
    documents = documents_of(documents_in, scores, beta, asked, quiet, by_label)
    sampler = Sampler(judged, documents, settings, texts, first_stage.described)
    # Each file's errors in its own context; no file gets its name before all are written.
    with atomic_path(outputs[0]) as data:
        with progress("queries", quiet=quiet) as advance, TableWriter(data, form) as writer:
            lists = _counted(map(sampler.lists, whole_queries(first_stage.table)), advance)
            if format == "groups":
                for chunk in lists:
                    writer.write(id_table(chunk, documents))
                sampler.check()
            else:
                assert texts is not None
                assert documents_in is not None
                # Their ids are not needed again.
                compact = [replace(chunk, doc_id=pl.Series(dtype=pl.String)) for chunk in lists]
                sampler.check()
                with TextFile(outputs[0].parent) as stored:
                    stored.fill([chunk.place for chunk in compact], documents.index, documents_in)
                    write_texts(compact, writer, format, n, stored, texts)
        if not writer.rows:
            raise EvenrankError(f"`format='n-tuple'`: no query has {n} negatives; `n` sets how many are drawn")
        settings_used = {
            "run": first_stage.name,
            "format": format,
            "beta": beta,
            **asdict(settings),
            **documents.settings,
        }
        manifest = manifest_of(sampler, settings_used, writer.rows) | {"provenance": made.to_dict()}
        with atomic_path(outputs[1]) as manifest_json:
            manifest_json.write_text(json_text(manifest) + "\n", encoding="utf-8")
            with atomic_path(outputs[2]) as manifest_table:
                sampler.per_query().write_parquet(manifest_table)
    return manifest


def _check_given(given: Mapping[str, object], format: str) -> None:
    """Raises EvenrankError if the texts, scores or labels that a format needs are missing."""
    if given["collection"] is None and format != "groups":
        raise EvenrankError(f"`format='{format}'`: the documents' texts are needed: give `collection`")
    if all(given[name] is None for name in ("collection", "scores", "labels")):
        raise EvenrankError(
            "the documents' texts, scores or labels are needed: give `collection`, `scores` or `labels`"
        )
    if given["queries"] is None and format != "groups":
        raise EvenrankError(f"`format='{format}'`: the queries' texts are needed: give `queries`")


def _form(out: PathLike) -> Form:
    suffix = Path(out).suffix
    if suffix == ".parquet":
        return "parquet"
    if suffix == ".jsonl":
        return "jsonl"
    raise EvenrankError(f"`out`: expected a name that ends in .parquet or .jsonl, found {quoted(os.fspath(out))}")


def _counted(lists: Iterable[SampledLists], advance: Callable[[int], None]) -> Iterator[SampledLists]:
    for chunk in lists:
        advance(len(chunk.query_id))
        yield chunk
