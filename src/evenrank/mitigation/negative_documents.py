"""β and side of each document, from its text, from its labels or from a group table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import polars as pl

from evenrank.engines.progress import progress
from evenrank.groups import (
    GroupTable,
    Lexicon,
    Magnitude,
    Tokens,
    as_group_table,
    as_labels,
    score_batches,
    scores_as_asked,
    scoring_of,
    sides,
)
from evenrank.io import EvenrankError, scan_collection
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .negative_sampling import Beta, beta

PathLike = str | os.PathLike[str]

_BATCH = 1 << 15
_LABELS: Magnitude = "tf_words"


class Labels(TypedDict):
    """Labels as they are given; see :func:`as_labels`."""

    labels: object
    neutral: Sequence[str]
    group_column: str | None


class Asked(TypedDict):
    """How documents are to be scored; None: not asked for."""

    lexicon: PathLike | Lexicon | None
    poles: str | None
    tokens: Tokens | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Documents:
    """β [D] and sides [D] of documents, found by id.

    ``labelled``: β and sides are from labels. The documents that labels do not know have NaN and 0; if labels are all
    that is known (``whole`` is False), documents may be missing from the index, and these are unknown too.
    """

    index: IdIndex
    beta: Array
    sides: Array | None
    settings: dict[str, Any]
    source: str
    labelled: bool = False
    whole: bool = True

    def bias(self, places: Array) -> Array:
        """β [N] of the documents at ``places`` of the index, NaN where it is unknown (at place −1 too)."""
        if self.whole:
            return self.beta[places]
        return np.where(places >= 0, self.beta[places], np.nan)


def documents_of(
    collection: PathLike | pl.DataFrame | None,
    scores: object,
    measure: Beta,
    asked: Asked,
    quiet: bool,
    labels: Labels | None = None,
) -> Documents:
    """The documents of ``scores`` (a group table) or of ``labels``, or of ``collection``, which is scored as ``asked``.

    Of labels, all documents of the collection if there is one. Raises EvenrankError if the group table was made with
    other settings.
    """
    if labels is not None:
        given, neutral, column = labels["labels"], labels["neutral"], labels["group_column"]
        known = as_labels(given, neutral=neutral, group_column=column, poles=asked["poles"])
        return _labelled(known, measure, collection)
    if scores is not None:
        known = scores_as_asked(as_group_table(scores), **asked)
        if known.labelled:
            return _labelled(known, measure, collection)
        source = os.fspath(scores) if isinstance(scores, str | os.PathLike) else "the scores"
        return Documents(IdIndex([known.table["doc_id"]]), beta(known, measure), _sides(known), known.settings, source)
    assert collection is not None
    scoring = replace(scoring_of(**asked), magnitudes=(_LABELS,))
    names, values, sides = [], [], []
    with progress("documents", quiet=quiet) as advance:
        for table in score_batches(texts_of(collection), scoring):
            part = GroupTable.of(table, scoring.describe())
            names.append(_ids(table))
            values.append(beta(part, measure))
            sides.append(_sides(part))
            advance(table.height)
    if not names:
        raise EvenrankError("the collection is empty")
    all_sides = None if scoring.lexicon.poles is None else np.concatenate([part for part in sides if part is not None])
    return Documents(IdIndex(names), np.concatenate(values), all_sides, scoring.describe(), _named(collection))


def _labelled(labels: GroupTable, measure: Beta, collection: PathLike | pl.DataFrame | None) -> Documents:
    """The documents of the collection with their labels, or without one those that the labels know."""
    index, values, settings = IdIndex([labels.table["doc_id"]]), beta(labels, measure), labels.settings
    found = None if labels.poles is None else sides(labels.signed_magnitude(labels.usual_kind))
    if measure == "abs_tf":
        settings = {**settings, "magnitude": labels.usual_kind}
    if collection is None:
        return Documents(index, values, found, settings, labels.source, labelled=True, whole=False)
    ids = list(map(_ids, texts_of(collection)))
    row = np.concatenate([index.places(part) for part in ids]) if ids else np.zeros(0, np.int64)
    return Documents(
        IdIndex(ids),
        np.where(row >= 0, values[row], np.nan),
        None if found is None else np.where(row >= 0, found[row], 0).astype(np.int8),
        settings,
        _named(collection),
        labelled=True,
    )


def _named(collection: PathLike | pl.DataFrame) -> str:
    return "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)


def _ids(batch: pl.DataFrame) -> pl.Series:
    # A copy: a long id may keep the text beside it in memory.
    return pl.Series("doc_id", batch["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest()))


def _sides(scores: GroupTable) -> Array | None:
    """The side of each document, if the table has what it depends on."""
    has_words = all(f"magnitude_{_LABELS}_{group}" in scores.table.columns for group in scores.groups)
    return sides(scores.signed_magnitude(_LABELS)) if scores.poles and has_words else None


def texts_of(collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents of a collection, in batches."""
    if isinstance(collection, pl.DataFrame):
        return collection.select(pl.col("doc_id", "text").cast(pl.String)).iter_slices(_BATCH)
    return scan_collection(collection)
