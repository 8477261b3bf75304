"""β and side of each document, from its text or from a group table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import polars as pl

from evenrank.engines.progress import progress
from evenrank.groups import (
    GroupTable,
    Lexicon,
    Magnitude,
    Scoring,
    Tokens,
    as_group_table,
    load_lexicon,
    score_batches,
    scores_as_asked,
    sides,
)
from evenrank.io import EvenrankError, scan_collection
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .negative_sampling import Beta, beta

PathLike = str | os.PathLike[str]

_BATCH = 1 << 15
_LABELS: Magnitude = "tf_words"


class Asked(TypedDict):
    """How documents are to be scored; None: not asked for."""

    lexicon: PathLike | Lexicon | None
    poles: str | None
    tokens: Tokens | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Documents:
    """β [D] and sides [D] of documents, found by id."""

    index: IdIndex
    beta: Array
    sides: Array | None
    settings: dict[str, Any]
    source: str


def documents_of(
    collection: PathLike | pl.DataFrame | None,
    scores: object,
    measure: Beta,
    asked: Asked,
    quiet: bool,
) -> Documents:
    """The documents of ``scores`` (a group table), or else of ``collection``, which is scored as ``asked``.

    Raises EvenrankError if the group table was made with other settings.
    """
    if scores is not None:
        loaded = as_group_table(scores)
        given = asked["lexicon"]
        if given is not None and not isinstance(given, Lexicon):
            given = load_lexicon(given)
        named = given.name if given is not None else None
        known = scores_as_asked(
            loaded, lexicon=named, poles=asked["poles"], tokens=asked["tokens"], threshold=asked["threshold"]
        )
        source = os.fspath(scores) if isinstance(scores, str | os.PathLike) else "the scores"
        return Documents(IdIndex([known.table["doc_id"]]), beta(known, measure), _sides(known), known.settings, source)
    assert collection is not None
    lexicon = asked["lexicon"] if asked["lexicon"] is not None else "gender-en"
    lexicon = (lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)).with_poles(asked["poles"])
    threshold = asked["threshold"] if asked["threshold"] is not None else 1
    scoring = Scoring(lexicon, asked["tokens"] or "word", (_LABELS,), threshold)
    ids, values, sides = [], [], []
    with progress("documents", quiet=quiet) as advance:
        for table in score_batches(texts_of(collection), scoring):
            part = GroupTable.of(table, scoring.describe())
            # A copy: a long id may keep the text beside it in memory.
            ids.append(pl.Series("doc_id", table["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest())))
            values.append(beta(part, measure))
            sides.append(_sides(part))
            advance(table.height)
    if not ids:
        raise EvenrankError("the collection is empty")
    all_sides = None if lexicon.poles is None else np.concatenate([part for part in sides if part is not None])
    source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
    return Documents(IdIndex(ids), np.concatenate(values), all_sides, scoring.describe(), source)


def _sides(scores: GroupTable) -> Array | None:
    """The side of each document, if the table has what it depends on."""
    has_words = all(f"magnitude_{_LABELS}_{group}" in scores.table.columns for group in scores.groups)
    return sides(scores.signed_magnitude(_LABELS)) if scores.poles and has_words else None


def texts_of(collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents of a collection, in batches."""
    if isinstance(collection, pl.DataFrame):
        return collection.select(pl.col("doc_id", "text").cast(pl.String)).iter_slices(_BATCH)
    return scan_collection(collection)
