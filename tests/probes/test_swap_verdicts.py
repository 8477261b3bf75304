"""What the probe says of a swap on a collection four fifths of whose gendered passages are male-worded."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import evenrank
from evenrank.results.finding import Finding
from evenrank.search.bm25 import BM25Scorer

MALE = {"he", "his", "him", "himself", "man", "father", "brother", "son", "husband", "boy", "king", "uncle"}


@pytest.fixture(scope="module")
def probed() -> Callable[[str], Finding]:
    made = evenrank.generate(evenrank.SyntheticConfig(passages=400, queries=40, male_share=0.8))
    run = evenrank.retrieve(made.collection, made.queries, k=20, quiet=True)
    bm25 = BM25Scorer(made.collection)

    def planted(query: str, passages: list[str]) -> list[float]:
        scores = bm25.score([query] * len(passages), passages)
        male = [not MALE.isdisjoint(re.findall(r"\w+", text.lower())) for text in passages]
        return [float(score) + 0.5 * own for score, own in zip(scores, male, strict=True)]

    models = {"bm25": bm25, "male": planted, "short": lambda _, passages: [-float(len(text)) for text in passages]}
    given = {"collection": made.collection, "queries": made.queries, "run": run, "depth": 20}

    def said(name: str) -> Finding:
        found = evenrank.probe(models[name], variants="swap", **given)
        return next(one for one in found.findings if one.place == "answer")

    return said


def test_a_preference_is_found_where_one_is_planted(probed: Callable[[str], Finding]) -> None:
    """Whose wording most passages have, and what the placebo does to them, is none of the ranker's doing."""
    found = probed("bm25")
    assert (found.key, found.subject, found.level) == ("unchanged", "swap", "no difference shown")
    assert found.estimate.n == 385
    # A taste for short texts is no preference either, and a planted one is found.
    assert (probed("short").key, probed("short").level) == ("no_preference", "no difference shown")
    found = probed("male")
    assert (found.key, found.level) == ("prefers", "shown")
    assert " prefers the male wording: +." in found.text
