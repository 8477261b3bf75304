"""The one group that a document is of."""

from __future__ import annotations

import polars as pl

from evenrank.groups import GroupTable, Scoring, as_labels, load_lexicon, score_in_memory
from evenrank.groups.table import largest_groups


def test_of_labels() -> None:
    labels = as_labels({"d1": {"a": 0.6, "b": 0.4}, "d2": {"b": 0.2}, "d3": {"a": 0.5, "b": 0.5}, "d4": {"a": 0.0}})
    assert labels.groups == ("a", "b")
    assert largest_groups(labels).tolist() == [0, 1, -1, -1]


def test_of_rounded_weights() -> None:
    """A third three times, of which one is a little larger than the others by rounding."""
    table = pl.DataFrame({"doc_id": ["d"], "count_a": [1 / 3], "count_b": [1 / 3 + 1e-16], "neutrality": [1.0]})
    assert largest_groups(GroupTable.of(table, {"labels": "x"})).tolist() == [-1]


def test_of_words() -> None:
    """At most one group word is none (the threshold); as many of each is none."""
    texts = {"d1": "she and her son", "d2": "he", "d3": "he and she", "d4": "he, him and she", "d5": "rain"}
    frame = pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})
    scores = score_in_memory(frame, Scoring(load_lexicon("gender-en")))
    named = [scores.groups[number] if number >= 0 else None for number in largest_groups(scores).tolist()]
    assert named == ["f", None, None, "m", None]
