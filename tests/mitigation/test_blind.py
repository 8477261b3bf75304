"""Masking group words: by hand, and that counting finds none afterwards."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evenrank.groups import Scoring, load_lexicon, score_texts
from evenrank.mitigation.blind import blind, mask_texts

GENDER = Scoring(load_lexicon("gender-en"))


def one(text: str, scoring: Scoring = GENDER) -> str:
    return mask_texts(pl.Series([text]), scoring=scoring)[0]


def test_by_hand():
    assert one("She, the woman's friend: HE is\there.") == "[MASK], the [MASK]'s friend: [MASK] is\there."
    assert one("she'll call her") == "[MASK]'ll call [MASK]"
    assert one("nothing to hide") == "nothing to hide"
    assert one("he-man") == "[MASK]-[MASK]"
    assert one("") == ""


def test_phrases_are_one_mask_and_tokens_as_counted():
    age = Scoring(load_lexicon({"young": ["young people", "teen"], "old": ["old"]}))
    assert one("Young  people and old people, young and teen", age) == "[MASK] and [MASK] people, young and [MASK]"
    assert one("She is  here, she, HE", Scoring(GENDER.lexicon, tokens="whitespace")) == "[MASK] is  here, she, [MASK]"


def test_a_table_keeps_its_other_columns():
    table = pl.DataFrame({"doc_id": ["1", "2"], "text": ["he", "it"], "url": ["a", "b"]})
    assert blind(table, GENDER).rows() == [("1", "[MASK]", "a"), ("2", "it", "b")]


_WORDS = st.sampled_from(["he", "She", "WOMAN", "king", "it", "don't", "man's", "girl’s", "x", "Straße", "women"])
_BREAKS = st.sampled_from([" ", ", ", "-", "_", "'", "’", "\n", " 's ", "."])


@given(st.lists(st.tuples(_WORDS, _BREAKS), max_size=12), st.sampled_from(["word", "whitespace"]))
def test_nothing_is_counted_afterwards_and_masking_twice_is_masking_once(parts, tokens):
    scoring = Scoring(GENDER.lexicon, tokens=tokens)
    text = "".join(word + gap for word, gap in parts)
    masked = one(text, scoring)
    table = score_texts(pl.DataFrame({"doc_id": ["0"], "text": [masked]}), scoring)
    assert table["count_m"].item() == table["count_f"].item() == 0
    assert one(masked, scoring) == masked
    before = score_texts(pl.DataFrame({"doc_id": ["0"], "text": [text]}), scoring)
    assert masked.count("[MASK]") == before["count_m"].item() + before["count_f"].item()
