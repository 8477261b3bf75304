"""Notes on ties: equal scores of different texts, and what rounded the scores."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank import Run
from evenrank.auditing.notes import TiedTexts, grid_of, pairs_of_ties, tied_documents
from evenrank.measures.ranked_lists import lists_of

LISTS = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from([f"d{i}" for i in range(14)]), st.sampled_from([0.5, 1.0, 2.0]), min_size=1),
    min_size=1,
)


def text(doc: str) -> str:
    """A text that other documents have too."""
    return f"text {int(doc[1:]) % 3}"


@given(LISTS)
def test_pairs_of_different_texts(lists: dict[str, dict[str, float]]) -> None:
    run = Run.from_table(lists)
    texts = pl.DataFrame({"doc_id": [f"d{i}" for i in range(14)]})
    texts = texts.with_columns(text=pl.Series([text(doc) for doc in texts["doc_id"]]))
    tied = TiedTexts([run])
    # In two batches, which pass unchanged.
    assert pl.concat(tied.watching([texts[:5], texts[5:]])).equals(texts)
    slow = [
        (a["doc_id"], b["doc_id"])
        for a, b in itertools.combinations(run.table.iter_rows(named=True), 2)
        if a["query_id"] == b["query_id"] and a["score"] == b["score"] and min(a["rank"], b["rank"]) <= 10
    ]
    different = sum(text(a) != text(b) for a, b in slow)
    hashes = tied.hashes
    if not slow:
        assert hashes is None or hashes.is_empty()
        return
    assert hashes is not None
    assert set(hashes["doc_id"]) == {doc for pair in slow for doc in pair}
    assert pairs_of_ties(tied_documents(run, lists_of(run)), hashes) == (different, len(slow))


TEXTS = {"d1": "he said", "d2": "she said", "d3": "he said", "d4": "a bridge"}
TIED = {"q1": {"d1": 1.0, "d2": 1.0, "d3": 1.0, "d4": 0.0}, "q2": {"d1": 2.0, "d2": 1.0}}


def notes(run: object, **settings: Any) -> list[str]:
    result = evenrank.audit({"A": run}, **{"collection": TEXTS, **settings})
    return [note for note in result.notes if note.startswith(("A: of ", "A: it"))]


def test_an_audit_counts_pairs_of_different_texts() -> None:
    assert notes(TIED) == [
        "A: of 3 pairs of tied documents that reach into the first 10 ranks, 2 are of different texts."
    ]
    assert notes({"q1": {"d1": 1.0, "d2": 0.5}}) == []
    # Nor if all tied texts are equal.
    assert notes({"q1": {"d1": 1.0, "d3": 1.0}}) == []


def test_without_texts_nothing_is_said_of_them(tmp_path: Path) -> None:
    scores, table = tmp_path / "s.parquet", pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    table.write_csv(tmp_path / "c.tsv", separator="\t", include_header=False)
    evenrank.groups.score_collection(tmp_path / "c.tsv", scores, evenrank.Scoring(evenrank.load_lexicon()), quiet=True)
    assert notes(TIED, collection=None, scores=scores) == []


def test_a_tie_at_the_cut_counts() -> None:
    texts = {f"d{i:02}": f"he walked {i} miles" for i in range(13)}
    scores = {doc: float(-i) for i, doc in enumerate(texts)}
    # Ranks 10 and 11; then 10 to 12: of three pairs, two have a document in the first 10.
    assert notes({"q": {**scores, "d10": -9.0}}, collection=texts) == [
        "A: of 1 pair of tied documents that reach into the first 10 ranks, 1 is of different texts."
    ]
    [note] = notes({"q": {**scores, "d10": -9.0, "d11": -9.0}}, collection=texts)
    assert note.startswith("A: of 2 pairs ")
    # Ranks 11 and 12.
    assert notes({"q": {**scores, "d11": -10.0}}, collection=texts) == []


def test_a_card_says_what_rounded() -> None:
    from dataclasses import replace

    run = replace(Run.from_table(TIED), card={"stage": "rerank", "ranker": {"kind": "x", "precision": "bfloat16"}})
    [note] = notes(run)
    assert note.endswith(
        "2 are of different texts; it was computed in bfloat16, which makes close scores equal (evenrank rerank"
        " --resolve-ties)."
    )
    # Ties of equal texts, and ties that were resolved already, need no advice.
    assert run.card is not None
    equal = replace(run, table=Run.from_table({"q1": {"d1": 1.0, "d3": 1.0}}).table)
    assert notes(equal) == []
    resolved = replace(run, card={**run.card, "resolved_ties": {"pairs": 3, "remaining": 2}})
    assert notes(resolved) == [
        "A: of 3 pairs of tied documents that reach into the first 10 ranks, 2 are of different texts."
    ]
    assert notes(replace(run, card={**run.card, "resolved_ties": None})) == [note]


def test_scores_on_a_grid() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=400) * 10
    assert grid_of(values) is None
    assert grid_of(values.astype(np.float32).astype(np.float64)) is None
    assert grid_of(np.round(values, 3)) == "have at most 3 decimals"
    assert grid_of(np.round(values, 1)) == "have at most 1 decimal"
    assert grid_of(np.rint(values)) is None
    assert grid_of(values.astype(np.float16).astype(np.float64)) == "are numbers of float16"
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    rounded = bits.view(np.float32).astype(np.float64)
    assert grid_of(rounded) == "are numbers of bfloat16"
    # Too few to tell.
    assert grid_of(np.round(values[:19], 2)) is None
    assert grid_of(np.append(values, 1e300)) is None


@pytest.mark.parametrize("decimals", [2, 9])
def test_an_audit_says_that_scores_are_rounded(decimals: int) -> None:
    rng = np.random.default_rng(1)
    run = {f"q{q}": {doc: round(float(rng.random()), decimals) for doc in TEXTS} for q in range(40)}
    for docs in run.values():
        docs["d1"] = docs["d2"]
    [note] = notes(run)
    assert ("its top scores have at most 2 decimals, so that close ones are equal" in note) == (decimals == 2)
