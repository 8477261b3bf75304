"""What an audit knows of the documents: their group table and, if there are texts, the words in them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import polars as pl

from evenrank.files import EvenrankError, arg
from evenrank.files.convert import PathLike, is_path
from evenrank.files.texts import select_texts
from evenrank.groups import (
    GroupSource,
    GroupTable,
    Lexicon,
    Scoring,
    WordCounts,
    load_lexicon,
    score_with_words,
)
from evenrank.measures import is_bias

from .data import NEUTRAL_FIRST
from .inputs import Inputs


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of the runs.

    ``groups``: their group table, None if the audit needs none; ``words``: the words counted in them, None where they
    were not scored here; ``lexicon``: the lexicon that the group table was made with, None if it is not known;
    ``notes``: remarks for the audit's reader.
    """

    groups: GroupTable | None
    words: WordCounts | None
    lexicon: Lexicon | None
    notes: list[str]


def describe_documents(inputs: Inputs, source: GroupSource) -> Documents:
    """Scores the runs' documents from the collection, or takes labels or a group table as it is.

    Raises EvenrankError without both if a measure of bias needs them, and for a group table that was made otherwise
    than the options ask for.
    """
    ids = [*(run.table["doc_id"] for run in inputs.all_runs), *inputs.relevant_ids]
    if source.labels is not None:
        return Documents(source.known(ids), None, None, [])
    lexicon = load_lexicon(source.lexicon)
    if source.scores is None and inputs.collection is None and not any(map(is_bias, inputs.measures)):
        note = f"{NEUTRAL_FIRST} is left out: without texts or scores nothing is known of the documents."
        return Documents(None, None, None, [note])
    if source.scores is None:
        groups, words = _score_documents(inputs.collection, ids, source.scoring())
        return Documents(groups, words, _if_known(lexicon, groups), [])
    groups = source.known(ids)
    if groups.labelled:
        return Documents(groups, None, None, [])
    unknown = "Which words drive the figures is unknown: scores contain no texts; give a collection alone to see words."
    return Documents(groups, None, _if_known(lexicon, groups), [unknown])


def _if_known(lexicon: Lexicon, groups: GroupTable) -> Lexicon | None:
    return lexicon if lexicon.name == groups.settings.get("lexicon") else None


def _score_documents(
    collection: PathLike | pl.DataFrame | None, ids: list[pl.Series], scoring: Scoring
) -> tuple[GroupTable, WordCounts]:
    """The documents ``ids`` scored, and the words in them, from the collection's texts as they are read."""
    if collection is None:
        raise EvenrankError(
            f"an audit needs the documents' texts ({arg.collection}), a group table ({arg.scores}) or labels"
            f" ({arg.labels})"
        )
    source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
    groups, words = score_with_words(select_texts(collection, ids), scoring)
    return replace(groups, source=source, partial=True), words
