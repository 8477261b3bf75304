"""What an audit knows of the documents: their group table and, if there are texts, the words in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from .word_attribution import count_words


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of the runs.

    ``groups``: their group table, None if the audit needs none; ``words``: the words counted in them, None without
    texts; ``lexicon``: the lexicon that the group table was made with, None if it is not known; ``notes``: remarks
    for the audit's reader.
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
        groups, words = _score_documents(inputs, source.scoring())
        return Documents(groups, words, _if_known(lexicon, groups), [])
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
            f"an audit needs the documents' texts ({arg.collection}), a group table ({arg.scores}) or labels"
            f" ({arg.labels})"
        )
    source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
    groups, words = score_with_words(_texts(inputs, collection), scoring)
    return replace(groups, source=source, partial=True), words


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
