"""What the documents say: β and bias label of each, from its text or from a score file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenrank.groups import Lexicon, Scoring, load_lexicon, score_batches, scores_as_asked
from evenrank.io import EvenrankError, Scores, as_scores, bias_labels, scan_collection
from evenrank.io.progress import progress
from evenrank.io.tables import IdIndex

from .sampling import Array, Beta, beta

PathLike = str | os.PathLike[str]

_BATCH = 1 << 15
_LABELS: Any = "tf_words"


@dataclass(frozen=True, slots=True)
class Documents:
    """β [D] and bias labels [D] of documents, found by id."""

    index: IdIndex
    beta: Array
    sign: Array | None
    settings: dict[str, Any]
    source: str


def documents_of(
    collection: PathLike | pl.DataFrame | None,
    scores: Any,
    kind: Beta,
    asked: dict[str, Any],
    quiet: bool,
) -> Documents:
    """What is known of the documents of ``scores``, or else of ``collection``, which is scored as ``asked``.

    Raises EvenrankError where the scores were made otherwise.
    """
    if scores is not None:
        loaded = as_scores(scores)
        given = asked["lexicon"]
        if given is not None and not isinstance(given, Lexicon):
            given = load_lexicon(given)
        loaded = scores_as_asked(loaded, **{**asked, "lexicon": given and given.name})
        source = os.fspath(scores) if isinstance(scores, str | os.PathLike) else "the scores"
        return Documents(IdIndex([loaded.table["doc_id"]]), beta(loaded, kind), _sign(loaded), loaded.settings, source)
    assert collection is not None
    lexicon = asked["lexicon"] if asked["lexicon"] is not None else "gender-en"
    lexicon = (lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)).with_poles(asked["poles"])
    threshold = asked["threshold"] if asked["threshold"] is not None else 1
    scoring = Scoring(lexicon, asked["tokens"] or "word", (_LABELS,), threshold)
    ids, values, signs = [], [], []
    with progress("documents", quiet=quiet) as advance:
        for table in score_batches(texts_of(collection), scoring):
            part = Scores.of(table, scoring.describe())
            # A copy: a long id may keep the text beside it in memory.
            ids.append(pl.Series("doc_id", table["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest())))
            values.append(beta(part, kind))
            signs.append(_sign(part))
            advance(table.height)
    if not ids:
        raise EvenrankError("the collection is empty")
    sign = None if lexicon.poles is None else np.concatenate([part for part in signs if part is not None])
    source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
    return Documents(IdIndex(ids), np.concatenate(values), sign, scoring.describe(), source)


def _sign(scores: Scores) -> Array | None:
    """The bias label of each document, where the table says it."""
    has_words = all(f"magnitude_{_LABELS}_{group}" in scores.table.columns for group in scores.groups)
    return bias_labels(scores.signed_magnitude(_LABELS)) if scores.poles and has_words else None


def texts_of(collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents of a collection, in batches."""
    if isinstance(collection, pl.DataFrame):
        return collection.select(pl.col("doc_id", "text").cast(pl.String)).iter_slices(_BATCH)
    return scan_collection(collection)
