"""An audit of one query: no interval, but still whatever ties do to it."""

from __future__ import annotations

import evenrank

TEXTS = {"a": "he told his son", "b": "she told her daughter", "c": "nothing"}


def test_ties_of_a_single_query_are_noted() -> None:
    result = evenrank.audit({"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, collection=TEXTS, measures="ARaB@1")
    figure = result["run", "ARaB@1"]
    assert figure.ci95 is None
    assert figure.tie_range is not None
    assert figure.tie_range[0] < 0 < figure.tie_range[1]
    assert figure.tie_sensitive
    assert any("order of tied documents" in note for note in result.notes)


def test_a_single_query_without_ties_is_not_sensitive() -> None:
    result = evenrank.audit({"q": {"a": 3.0, "b": 2.0, "c": 0.5}}, collection=TEXTS, measures="ARaB@1")
    figure = result["run", "ARaB@1"]
    assert figure.ci95 is None
    assert not figure.tie_sensitive
