"""From a run file to a file of training data."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

import evenrank
from evenrank.groups import Lexicon, Tokens, note_lexicon
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
from evenrank.io.errors import shown
from evenrank.io.progress import progress
from evenrank.io.run_chunks import run_chunks
from evenrank.io.runs import described
from evenrank.io.streams import Form, TableWriter
from evenrank.io.written import json_text

from .documents import PathLike, documents_of
from .formats import group_table, write_texts
from .groups import Groups, Sampler
from .sampling import Beta, Settings

Format = Literal["groups", "labeled-list", "labeled-pair", "n-tuple"]


def write_negatives(
    run: Any,
    out: PathLike,
    *,
    collection: Any = None,
    queries: Any = None,
    qrels: Any,
    n: int = 20,
    share: float = 0.6,
    beta: Beta = "abs_tf",
    depth: int = 1000,
    gendered_only: bool = False,
    seed: int = 0,
    format: Format = "groups",
    scores: Any = None,
    lexicon: PathLike | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """Samples negatives for every query of a run, and writes training data with the judged relevant documents.

    ``out`` ends in ``.parquet`` or ``.jsonl``. ``format``:

    - ``groups``: ``query_id``, ``doc_id`` (list), ``label`` (list), which ``evenrank train`` takes as ``data.groups``;
      and ``group`` (list), each document's bias label (+1, −1, 0) by ``tf_words``, where poles and it are known;
    - ``labeled-list``: ``query``, ``docs`` (list), ``labels`` (list): LambdaLoss and the other list losses of
      sentence-transformers' CrossEncoderTrainer;
    - ``labeled-pair``: ``query``, ``passage``, ``label`` (1 or 0): its BinaryCrossEntropyLoss;
    - ``n-tuple``: ``anchor``, ``positive``, ``negative_1`` … ``negative_n``, a row for each relevant document:
      MultipleNegativesRankingLoss; queries with fewer than ``n`` negatives are left out.

    Positives stand first, labelled by their grade, then the biased part, then the random part (see :func:`sample`).
    ``scores`` stand for scoring the collection, whose texts only the last three formats need then; these need
    ``queries`` too. Beside ``out`` stand ``.manifest.json``, which this returns, and ``.manifest.parquet``, a row a
    query. A run file is read as a stream: memory depends on the size of the collection and of the sample, not of the
    run; the lines of a query must stand together. Nothing is written unless all is.

    Raises InputError for bad files; EvenrankError for a setting out of range, documents that are not in the collection,
    queries without a text, and where no query is left.
    """
    settings = Settings(n, share, gendered_only, seed, depth)
    form = _form(out)
    for name, value, allowed in (("beta", beta, get_args(Beta)), ("format", format, get_args(Format))):
        if value not in allowed:
            raise EvenrankError(f"`{name}`: expected one of {', '.join(allowed)}, found {shown(value)}")
    if collection is None and format != "groups":
        raise EvenrankError(f"`format='{format}'`: the documents' texts are needed: give `collection`")
    if collection is None and scores is None:
        raise EvenrankError("the documents' texts or scores are needed: give `collection` or `scores`")
    if queries is None and format != "groups":
        raise EvenrankError(f"`format='{format}'`: the queries' texts are needed: give `queries`")
    outputs = [Path(out), Path(f"{os.fspath(out)}.manifest.json"), Path(f"{os.fspath(out)}.manifest.parquet")]
    check_outputs(outputs, (run, collection, queries, qrels, scores, lexicon))

    made = Provenance("evenrank.mitigation.negatives.write_negatives")
    sources = {"run": run, "collection": collection, "queries": queries, "qrels": qrels, "scores": scores}
    for role, source in sources.items():
        made.add(role, source)
    note_lexicon(made, lexicon or (None if scores is not None else "gender-en"))
    made.ahead(True)
    judged = as_qrels(qrels)
    texts = None if queries is None else as_queries(queries)
    collection = None if collection is None else as_collection(collection)
    run = run if isinstance(run, str | os.PathLike) else as_run(run)
    chunks, name = run_chunks(run)
    asked = {"lexicon": lexicon, "poles": poles, "tokens": tokens, "threshold": threshold}
    documents = documents_of(collection, scores, beta, asked, quiet)
    source = os.fspath(run) if isinstance(run, str | os.PathLike) else getattr(run, "source", None)
    sampler = Sampler(judged, documents, settings, texts, described(name, source))
    # Each file's errors in its own context, and none gets its name before all are written.
    with atomic_path(outputs[0]) as data:
        with progress("queries", quiet=quiet) as advance, TableWriter(data, form) as writer:
            groups = _counted(map(sampler.groups, chunks), advance)
            if format == "groups":
                for chunk in groups:
                    writer.write(group_table(chunk, documents.sign))
                sampler.check()
            else:
                assert texts is not None
                assert collection is not None
                # Their ids are not needed again.
                compact = [replace(chunk, doc_id=pl.Series(dtype=pl.String)) for chunk in groups]
                sampler.check()
                write_texts(compact, writer, format, n, documents.index, collection, texts, outputs[0].parent)
        table = sampler.per_query()
        if not writer.rows:
            raise EvenrankError(f"`format='n-tuple'`: no query has {n} negatives; `n` says how many to draw")
        left_out = dict(sampler.left_out)
        if format == "n-tuple":
            left_out["too_few_for_n_tuple"] = int((table["short"] > 0).sum())
        asked_for = {"run": name, "format": format, "beta": beta, **asdict(settings), **documents.settings}
        manifest = {
            "evenrank": evenrank.__version__,
            "versions": {"python": platform.python_version(), "polars": pl.__version__, "numpy": np.__version__},
            "settings": asked_for,
            **_totals(table, settings),
            "left_out": left_out,
            "rows": writer.rows,
            "provenance": made.to_dict(),
        }
        with atomic_path(outputs[1]) as manifest_json:
            manifest_json.write_text(json_text(manifest) + "\n", encoding="utf-8")
            with atomic_path(outputs[2]) as manifest_table:
                table.write_parquet(manifest_table)
    return manifest


def _form(out: PathLike) -> Form:
    suffix = Path(out).suffix
    if suffix == ".parquet":
        return "parquet"
    if suffix == ".jsonl":
        return "jsonl"
    raise EvenrankError(f"`out`: expected a name that ends in .parquet or .jsonl, found {shown(os.fspath(out))}")


def _counted(groups: Iterable[Groups], advance: Callable[[int], None]) -> Iterator[Groups]:
    for chunk in groups:
        advance(len(chunk.query_id))
        yield chunk


def _totals(table: pl.DataFrame, settings: Settings) -> dict[str, Any]:
    """The sums over queries; the mean β of all documents of each kind (None where there is none)."""

    def mean(column: str, count: str) -> float | None:
        number = int(table[count].sum())
        # Summed as one array: a sum by parts may differ in the last place.
        return float(np.nansum(table[column].to_numpy() * table[count].to_numpy())) / number if number else None

    biased, random = int(table["biased"].sum()), int(table["random"].sum())
    lacking = (settings.quota - table["gendered"].cast(pl.Int64)).clip(lower_bound=0)
    return {
        "queries": table.height,
        "negatives": biased + random,
        "biased": biased,
        "random": random,
        "short": {"queries": int((table["short"] > 0).sum()), "negatives": int(table["short"].sum())},
        "short_of_gendered": {"queries": int((lacking > 0).sum()), "negatives": int(lacking.sum())},
        "mean_beta": {
            "biased": mean("beta_biased", "biased"),
            "random": mean("beta_random", "random"),
            "candidates": mean("beta_candidates", "candidates"),
        },
    }
