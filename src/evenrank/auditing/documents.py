"""What an audit knows of the documents: their group table and, if there are texts, the words in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, as_batches
from evenrank.files.convert import PathLike, is_path
from evenrank.files.hashing import GOLDEN, MASK, mix, mix_array
from evenrank.files.tables import IdIndex
from evenrank.files.texts import select_texts
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import (
    GroupSource,
    GroupTable,
    Lexicon,
    Scoring,
    WordCounts,
    as_group_table,
    load_lexicon,
    read_group_table,
    score_in_memory,
    score_with_words,
)
from evenrank.groups.table import scan_ids
from evenrank.measures import is_bias, is_linear

from .data import NEUTRAL_FIRST
from .inputs import Inputs
from .words import count_words

_UNIT = 2.0**-53


def chances(hashes: Array, *key: int) -> Array:
    """A number in (0, 1) for each of the ids' hashes [N] uint64, uniform and independent over the integers ``key``."""
    salt = 0
    for number in key:
        salt = mix((salt + number + 1) * GOLDEN & MASK)
    mixed = mix_array(hashes ^ np.uint64(salt))
    numbers: Array = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * _UNIT
    return numbers


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of the runs.

    ``groups``: their group table, None if the audit needs none; ``words``: the words counted in them, None without
    texts; ``lexicon``: the lexicon that the group table was made with, None if it is not known; ``notes``: remarks
    for the audit's reader; ``scoring``: how texts were scored, None if they were not.
    """

    groups: GroupTable | None
    words: WordCounts | None
    lexicon: Lexicon | None
    notes: list[str]
    scoring: Scoring | None = None


def describe_documents(inputs: Inputs, source: GroupSource) -> Documents:
    """Scores the runs' documents from the collection, or takes labels or a group table as it is.

    Raises EvenrankError without both if a measure of bias needs them, and for a group table that was made otherwise
    than the options ask for.
    """
    source.check()
    ids = [*(run.table["doc_id"] for run in inputs.all_runs), *inputs.relevant_ids]
    if source.labels is not None:
        return Documents(source.known(ids), None, None, [])
    lexicon = load_lexicon(source.lexicon)
    if source.scores is None and inputs.collection is None and not any(map(is_bias, inputs.measures)):
        note = f"{NEUTRAL_FIRST} is left out: without texts or scores nothing is known of the documents."
        return Documents(None, None, None, [note])
    if source.scores is None:
        scoring = source.scoring()
        groups, words = _score_documents(inputs, scoring)
        return Documents(groups, words, _if_known(lexicon, groups), [], scoring)
    groups = source.known(ids)
    if groups.labelled:
        return Documents(groups, None, None, [])
    counted = _count_words(groups, inputs, lexicon)
    notes = [] if counted is not None else [_why_no_words(groups, inputs, lexicon)]
    return Documents(groups, counted, _if_known(lexicon, groups), notes)


def _if_known(lexicon: Lexicon, groups: GroupTable) -> Lexicon | None:
    return lexicon if lexicon.name == groups.settings.get("lexicon") else None


def _score_documents(inputs: Inputs, scoring: Scoring) -> tuple[GroupTable, WordCounts]:
    """The runs' documents scored, and the words in them, from the collection's texts as they are read."""
    collection = inputs.collection
    if collection is None:
        raise EvenrankError(
            "an audit needs the documents' texts (`collection`), a group table (`scores`) or labels (`labels`)"
        )
    source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
    groups, words = score_with_words(_texts(inputs, collection), scoring)
    return replace(groups, source=source), words


def _count_words(groups: GroupTable, inputs: Inputs, lexicon: Lexicon) -> WordCounts | None:
    """The words of documents that were scored before; None without a collection or if the lexicon is not known."""
    tokens = groups.settings.get("tokens")
    if inputs.collection is None or not _if_known(lexicon, groups) or tokens not in ("word", "whitespace"):
        return None
    return count_words(groups, _texts(inputs, inputs.collection), Scoring(lexicon, tokens))


def _texts(inputs: Inputs, collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    return select_texts(collection, [*(run.table["doc_id"] for run in inputs.all_runs), *inputs.relevant_ids])


def _why_no_words(groups: GroupTable, inputs: Inputs, lexicon: Lexicon) -> str:
    unknown = "Which words drive the figures is unknown"
    if inputs.collection is None:
        return f"{unknown}: scores contain no texts; give a collection to see words."
    if _if_known(lexicon, groups) is None:
        return f"{unknown}: give the lexicon that the scores were made with to see words."
    return f"{unknown}: the collection's texts are not the ones that the scores were made from."


MOST_DOCUMENTS = 100_000
_STREAM = 4
_UNKNOWN = "Stages: what the collection holds is not known"


def sample_collection(
    inputs: Inputs, documents: Documents, scores: object, seed: int
) -> tuple[GroupTable | None, list[str]]:
    """The scored documents of the collection, all of them or 100,000 drawn by seed, and a note on what they are.

    ``scores``: a group table in any form, which is of the collection if it has more documents than the runs; without
    one the collection's texts, read a second time for this, are scored as those of the runs were. None where the
    collection is not known, and where no measure is a weighted sum over ranks: others have no figure of it.
    """
    groups = documents.groups
    if groups is None or not any(is_bias(measure) and is_linear(measure) for measure in inputs.measures):
        return None, []
    if groups.labelled:
        return None, [f"{_UNKNOWN}: documents with a label are no sample of it."]
    if scores is None:
        assert inputs.collection is not None
        assert documents.scoring is not None
        texts, total = smallest(as_batches(inputs.collection), MOST_DOCUMENTS, seed)
        return score_in_memory(texts, documents.scoring), [_note(texts.height, total, "the collection")]
    table, total = _of_scores(scores, seed)
    if bool(IdIndex([run.table["doc_id"] for run in inputs.all_runs]).among(table.table["doc_id"]).all()):
        return None, [f"{_UNKNOWN}: the scores have no documents but those of the runs."]
    return replace(table, poles=groups.poles), [_note(table.table.height, total, "the scores")]


def _of_scores(scores: object, seed: int) -> tuple[GroupTable, int]:
    """The documents of a group table, or a sample of a file's, and how many it has."""
    if not is_path(scores):
        table = as_group_table(scores)
        return table, table.table.height
    ids, total = smallest(scan_ids(os.fspath(scores)), MOST_DOCUMENTS, seed)
    return read_group_table(scores, ids=[ids["doc_id"]]), total


def smallest(batches: Iterable[pl.DataFrame], most: int, seed: int) -> tuple[pl.DataFrame, int]:
    """The rows of the ``most`` documents whose ids have the smallest chances, and the number of all rows.

    A document's chance depends on its id and the seed alone, not on its place. Memory holds a few times ``most`` rows.
    """
    kept: list[pl.DataFrame] = []
    total, limit = 0, 1.0
    for batch in _with_chances(batches, seed):
        total += batch.height
        kept.append(batch.filter(pl.col("chance") <= limit))
        if sum(map(len, kept)) > 2 * most:
            kept = [pl.concat(kept).sort("chance").head(most)]
            limit = float(kept[0]["chance"][-1])
    found = pl.concat(kept)
    found = found.sort("chance").head(most) if found.height > most else found
    return found.drop("chance"), total


def _with_chances(batches: Iterable[pl.DataFrame], seed: int) -> Iterator[pl.DataFrame]:
    for batch in batches:
        yield batch.with_columns(pl.Series("chance", chances(batch["doc_id"].hash().to_numpy(), seed, _STREAM)))


def _note(documents: int, total: int, source: str) -> str:
    if documents == total:
        return f"Stages: the collection's figures are of {counted(total, 'document')}, all of {source}."
    return (
        f"Stages: the collection's figures are of {documents:,} of the {total:,} documents of {source}, drawn by seed;"
        " intervals leave out what another sample of documents would change."
    )
