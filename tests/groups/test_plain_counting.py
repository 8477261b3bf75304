"""The plain counting loop against the compiled one: equal to the last bit, whichever counts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.files import provenance
from evenrank.groups import Lexicon, Scoring, Tokens, load_lexicon, score_texts
from evenrank.groups import scoring as scoring_module
from evenrank.groups._plain_counting import Room, count_entries
from slow_groups import GAPS, PIECES, TEXTS, lexicon_of

ENTRIES = ["she", "her", "Don't", "woman s", "she woman", "she woman she", "İ", "ﬁ", "Σ", "9", "東 é"]
WORDS = st.lists(st.sampled_from([*ENTRIES, *PIECES, *GAPS, "She", "woman's", "he"]), max_size=30).map(" ".join)


def both_ways(
    texts: pl.Series, lexicon: Lexicon, tokens: Tokens, by_entry: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    assert Room.left < 0
    compiled = scoring_module._count(texts, Scoring(lexicon, tokens), by_entry)
    return list(zip(count_entries(texts, lexicon, tokens, by_entry), compiled, strict=True))


@given(
    st.lists(st.one_of(TEXTS, WORDS, st.none()), max_size=4),
    st.lists(st.sampled_from(ENTRIES), min_size=2, max_size=6, unique=True),
    st.sampled_from(["word", "whitespace"]),
    st.booleans(),
)
@example(["she woman she her"], ["she", "she woman", "she woman she", "her"], "word", True)
def test_any_texts(texts: list[str | None], entries: list[str], tokens: Tokens, by_entry: bool) -> None:
    lexicon = lexicon_of({entry: "fm"[place % 2] for place, entry in enumerate(entries)})
    for plain, compiled in both_ways(pl.Series(texts, dtype=pl.String), lexicon, tokens, by_entry):
        assert (plain.dtype, plain.shape) == (compiled.dtype, compiled.shape)
        assert plain.tobytes() == compiled.tobytes()


def test_little_by_little_the_compiled_loop_is_worth_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Room, "left", 20)
    assert Room.has(pl.Series(["she", "é", None, ""]))
    assert not Room.has(pl.Series(["a" * 16]))
    assert Room.has(pl.Series(["a" * 15]))
    assert not Room.has(pl.Series(["a"]))
    assert Room.has(pl.Series([], dtype=pl.String))


def test_which_loop_counted_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "spared", set())
    table = pl.DataFrame({"doc_id": ["1", "2"], "text": ["She, she; he.", None]})
    compiled = score_texts(table, Scoring(load_lexicon()))
    monkeypatch.setattr(Room, "left", 100)
    assert score_texts(table, Scoring(load_lexicon())).equals(compiled)
    assert provenance.spared == {"numba", "pyarrow", "scipy"}
