"""Blind: every group word masked, in queries and passages, in training and in scoring.

The cheapest mitigation, and the baseline of the others: a method is worth its cost if it lies beyond the straight line
from none to blind in the plane of effectiveness and bias.

When it misleads: an audit counts the very words that are masked, but other words that go with a group (a sport, a name,
an occupation) stay visible to the ranker. So does the mask itself: it hides which group a passage mentions, not that it
mentions one, and if clicked passages mostly do, a ranker learns to prefer masks. A query about a group loses the word
that names it.

Worked example:

>>> import polars as pl
>>> from evenrank.groups import Scoring, load_lexicon
>>> from evenrank.mitigation.blind import mask_texts
>>> texts = pl.Series(["Her brother painted it.", "It was painted."])
>>> mask_texts(texts, scoring=Scoring(load_lexicon("gender-en"))).to_list()
['[MASK] [MASK] painted it.', 'It was painted.']
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files.arguments import checked
from evenrank.files.tokens import tokenize
from evenrank.groups import Scoring, gendered_spans, score_texts

MASK = "[MASK]"
"""A special token to BERT's tokenizers, and to other rankers one word for all that is masked."""


@checked
def mask_texts(texts: pl.Series, *, scoring: Scoring) -> pl.Series:
    """The texts [N] with ``[MASK]`` in place of each lexicon entry that counting finds; everything else is unchanged.

    An entry of several words becomes one mask. A text without an entry is returned unchanged, so masking twice equals
    masking once.
    """
    rows = with_entries(texts, scoring)
    if not len(rows):
        return texts
    # scatter works in place.
    return texts.clone().scatter(rows, [_masked(text, scoring) for text in texts.gather(rows)])


def with_entries(texts: pl.Series, scoring: Scoring) -> NDArray[np.int64]:
    """The numbers of the texts in which counting finds an entry: the others need not be read word by word."""
    table = pl.DataFrame({"doc_id": pl.int_range(len(texts), eager=True).cast(pl.String), "text": texts})
    scores = score_texts(table, scoring)
    matches = scores.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in scoring.lexicon.groups)).to_series()
    return np.flatnonzero(matches.to_numpy() > 0)


def blind(table: pl.DataFrame, scoring: Scoring) -> pl.DataFrame:
    """A table of queries or passages with its column ``text`` masked (see :func:`mask_texts`)."""
    return table.with_columns(mask_texts(table["text"], scoring=scoring).alias("text"))


def _masked(text: str, scoring: Scoring) -> str:
    if scoring.tokens == "whitespace":
        entries = scoring.lexicon.entries("whitespace")
        return " ".join(MASK if tuple(tokenize(word, "whitespace")) in entries else word for word in text.split(" "))
    parts, end = [], 0
    for start, stop, _ in gendered_spans(text, scoring.lexicon):
        parts += [text[end:start], MASK]
        end = stop
    return "".join([*parts, text[end:]])
