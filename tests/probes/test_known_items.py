"""Known-item queries: against a slow reading of their definition."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank import EvenrankError, scan_queries
from evenrank.files.sentences import sentence_spans
from evenrank.probes.known_items import has_query

FILLER = {f"other{row}": "The was of and in." for row in range(40)}
"""Passages that make a word of one passage in ten a rare one."""


def of_passage(queries: pl.DataFrame, name: str = "p") -> pl.DataFrame:
    return queries.filter(pl.col("doc_id") == name)


def test_each_sentence_is_asked_as_it_stands_and_by_its_rarest_words() -> None:
    texts = {
        "p": "Ada Lovelace wrote notes on engines. The machine of\nBabbage was never built, said Menabrea in Turin.",
        **FILLER,
    }
    queries = of_passage(scan_queries(texts))
    # Of neighbours three would be a quotation; words that stand in many passages are not rare.
    assert queries["text"].to_list() == [
        "Ada Lovelace wrote notes on engines.",
        "Ada Lovelace notes on",
        "The machine of Babbage was never built, said Menabrea in Turin.",
        "machine Babbage never built Menabrea",
    ]
    assert queries["query_id"].to_list() == ["p@0-36", "p@0-36+words", "p@37-100", "p@37-100+words"]
    assert queries["whole"].to_list() == [True, False, True, False]
    assert queries.select("place", "word").rows() == [(0.0, 0)] * 2 + [(1.0, 6)] * 2


def test_words_that_stand_elsewhere_are_left_out_and_short_sentences_are_not_asked() -> None:
    texts = {"p": "Zebra walks Kenya early morning. Zebra drinks Kenya late evening. See below.", **FILLER}
    queries = of_passage(scan_queries(texts))
    assert queries.filter(~pl.col("whole"))["text"].to_list() == ["walks early morning", "drinks late evening"]
    assert queries["whole"].sum() == 2
    with pytest.raises(EvenrankError, match="no sentence of 2 passages has 3 words"):
        scan_queries({"p": "Zebra. Zebra.", "q": "See below."})


def test_the_sample_is_drawn_with_the_seed() -> None:
    texts = {f"p{row}": f"Alpha{row} beta{row} gamma{row} delta{row}." for row in range(60)}
    one, same, other = (scan_queries(texts, sample=20, seed=seed)["doc_id"].unique().sort() for seed in (1, 1, 2))
    assert (len(one), one.equals(same), one.equals(other)) == (20, True, False)


WORDS = st.sampled_from([f"Word{n}x" for n in range(30)] + ["The", "of"])
PASSAGES = st.lists(
    st.lists(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=9), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(PASSAGES, st.integers(0, 9))
def test_every_query_is_as_defined(passages: list[list[str]], seed: int) -> None:
    texts = {f"p{row}": ". ".join(own) + "." for row, own in enumerate(passages)} | FILLER
    words = {name: re.findall(r"\w+", text.lower()) for name, text in texts.items()}
    of_documents = Counter(word for own in words.values() for word in {*own})
    most = max(1, len(texts) // 10)
    queries = scan_queries(texts, seed=seed)
    for name, text in texts.items():
        asked = [text[start:end] for start, end in sentence_spans(text) if len(text[start:end].split()) >= 3]
        own = of_passage(queries, name)
        assert has_query(text) == bool(asked)
        whole = own.filter("whole")["text"].to_list()
        assert len(whole) == min(3, len(asked))
        if asked:
            assert (whole[0], whole[-1]) == (asked[0], asked[-1])
            assert asked.index(whole[len(whole) // 2]) in range(len(asked))
        expected = []
        times = Counter(words[name])
        for sentence in whole:
            parts = re.findall(r"\w+", sentence)
            low = [part.lower() for part in parts]
            chosen: list[int] = []
            for at in sorted(range(len(low)), key=lambda at: (of_documents[low[at]], at)):
                rare = times[low[at]] == 1 and of_documents[low[at]] <= most
                runs = any({at + shift + step for step in range(3)} <= {*chosen, at} for shift in (-2, -1, 0))
                if rare and not runs and len(chosen) < 5:
                    chosen.append(at)
            if len(chosen) >= 3:
                expected.append(" ".join(parts[at] for at in sorted(chosen)))
        assert own.filter(~pl.col("whole"))["text"].to_list() == expected
