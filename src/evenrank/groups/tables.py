"""The group table of a collection, as a file: from words or from labels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Unpack, cast

import polars as pl

from evenrank import options as opt
from evenrank.engines.ray import cluster_of
from evenrank.engines.streams import TableWriter
from evenrank.io import EvenrankError, as_batches, atomic_path, check_apart, check_outputs
from evenrank.io.arguments import checked

from .formulas import Magnitude
from .scoring import DEFAULT_MAGNITUDES, score_collection
from .source import GroupSource
from .table import METADATA_KEY


@checked
def score(
    collection: Annotated[object, opt.Option(opt.TEXTS, metavar="COLLECTION", reads=True)] = None,
    *,
    out: Annotated[opt.File, opt.Option("The group table to write (Parquet; ray: a folder of parts).", panel="Output")],
    magnitudes: Annotated[
        str | Sequence[Magnitude] | None,
        opt.Option(
            "Some of count, bool, tf, tf_words, tf_literal. Default: tf bool tf_words.",
            typed=str,
            metavar="LIST",
            rare=True,
        ),
    ] = None,
    engine: opt.Engine = "local",
    workers: opt.Workers = None,
    cpus: opt.Cpus = 1,
    quiet: bool = True,
    **groups: Unpack[opt.GroupOptions],
) -> tuple[int, int]:
    """Count each group's words in every document, or take labels. Magnitudes and neutrality are written as a Parquet
    table.

    Args:
        collection: A path, ``irds:NAME``, ``{document: text}``, or a frame. Of labels, only its documents are kept.
        out: The file, which appears whole or not at all; with Ray a folder, where a second call resumes a stopped one.
        magnitudes: Some of ``count``, ``bool``, ``tf``, ``tf_words`` and ``tf_literal``; none of labels.
        engine: "local", one pass over all cores, or "ray", with ``workers`` of so many ``cpus``.
        **groups: As :func:`evenrank.audit` takes them, but for ``scores``.

    Returns:
        The number of documents written, of how many.

    Raises:
        EvenrankError: For what contradicts itself or cannot be read.
    """
    source = GroupSource(collection, **groups)
    source.check()
    if source.scores is not None:
        raise EvenrankError("`scores` are what this makes: give `collection` or `labels`")
    if engine == "local" and workers is not None:
        raise EvenrankError("`workers` needs `engine='ray'`: locally, all cores are used")
    cluster = cluster_of(engine, workers, cpus) if engine != "local" else None
    if source.labels is not None:
        if cluster is not None:
            raise EvenrankError(f"`labels` and `engine='{engine}'`: labels are read by this machine alone")
        if magnitudes is not None:
            raise EvenrankError("`labels` or `magnitudes`: groups are from labels or from words, not from both")
        return score_labels(source, out)
    if collection is None:
        raise EvenrankError("expected `collection` or `labels`, found neither")
    check_apart([out], [source.lexicon])
    scoring = source.scoring()
    if isinstance(magnitudes, str):
        magnitudes = cast(Sequence[Magnitude], magnitudes.split())
    scoring = replace(scoring, magnitudes=DEFAULT_MAGNITUDES if magnitudes is None else tuple(magnitudes))
    rows = score_collection(collection, out, scoring, cluster=cluster, quiet=quiet)
    return rows, rows


def score_labels(source: GroupSource, out: str | os.PathLike[str]) -> tuple[int, int]:
    """Writes labels (see :func:`as_labels`) as a score file; returns how many documents it has, of how many.

    With a collection, only its documents are kept, and those without a label are not in the file: they stay unknown.
    :func:`read_group_table` reads the same group table again. The file appears whole or not at all; the same labels
    make the same bytes. Raises EvenrankError for labels that cannot be used, or that know no document of it.
    """
    check_outputs([out], [source.labels, source.collection])
    ids = None if source.collection is None else [_ids_of(batch) for batch in as_batches(source.collection)]
    found = source.known(ids)
    metadata = {METADATA_KEY: json.dumps(found.settings).encode()}
    with atomic_path(out) as part, TableWriter(part, "parquet", metadata=metadata) as writer:
        writer.write(found.table)
    return writer.rows, writer.rows if ids is None else sum(map(len, ids))


def _ids_of(batch: pl.DataFrame) -> pl.Series:
    # A copy: a long id may keep the text beside it in memory.
    return pl.Series("doc_id", batch["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest()))
