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
from evenrank.probes.known_items import placed

FILLER = {f"other{row}": "The was of and in." for row in range(40)}
"""Passages that make a word of one passage in ten a rare one."""


def test_a_query_is_the_rarest_words_of_a_sentence() -> None:
    texts = {
        "p": "Ada Lovelace wrote notes on engines. The machine of Babbage was never built, said Menabrea in Turin.",
        **FILLER,
    }
    queries = scan_queries(texts)
    # "wrote" and "said" would make three neighbours, which is a quotation; the others are stop words.
    assert queries["text"].to_list() == ["Ada Lovelace notes engines", "machine Babbage never built Menabrea"]
    assert queries["query_id"].to_list() == ["p@0-36", "p@37-100"]
    assert queries.select("place", "word", "words").rows() == [(0.0, 0, 17), (1.0, 6, 17)]


def test_words_that_stand_elsewhere_are_left_out() -> None:
    texts = {"p": "Zebra walks Kenya early morning. Zebra drinks Kenya late evening. Zebra sleeps.", **FILLER}
    queries = scan_queries(texts)
    assert queries["text"].to_list() == ["walks early morning", "drinks late evening"]
    with pytest.raises(EvenrankError, match="no sentence has three words that stand nowhere else"):
        scan_queries({"p": "Zebra. Zebra.", **FILLER})


WORDS = st.sampled_from([f"Word{n}x" for n in range(30)] + ["The", "of"])
PASSAGES = st.lists(
    st.lists(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=9), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(PASSAGES, st.integers(1, 6), st.integers(0, 9))
def test_every_query_is_as_defined(passages: list[list[str]], sentences: int, seed: int) -> None:
    texts = {f"p{row}": ". ".join(one) + "." for row, one in enumerate(passages)} | FILLER
    words = {name: re.findall(r"\w+", text.lower()) for name, text in texts.items()}
    of_documents = Counter(word for own in words.values() for word in {*own})
    most = max(1, len(texts) // 10)
    stops = {"the", "of", "was", "and", "in"}
    try:
        queries = scan_queries(texts, sentences=sentences, seed=seed)
    except EvenrankError:
        queries = pl.DataFrame(schema={"query_id": pl.String, "text": pl.String, "doc_id": pl.String})
    made = {(doc, text) for doc, text in queries.select("doc_id", "text").iter_rows()}
    for name, text in texts.items():
        expected = []
        times = Counter(words[name])
        for start, end in sentence_spans(text):
            own = [one.lower() for one in re.findall(r"\w+", text[start:end])]
            order = sorted(range(len(own)), key=lambda at: (of_documents[own[at]], at))
            chosen: list[int] = []
            for at in order:
                rare = own[at] not in stops and times[own[at]] == 1 and of_documents[own[at]] <= most
                runs = any({at + shift + step for step in range(3)} <= {*chosen, at} for shift in (-2, -1, 0))
                if rare and not runs and len(chosen) < 5:
                    chosen.append(at)
            if len(chosen) >= 3:
                whole = re.findall(r"\w+", text[start:end])
                expected.append(" ".join(whole[at] for at in sorted(chosen)))
        found = [query for doc, query in queries.select("doc_id", "text").iter_rows() if doc == name]
        assert len(found) == min(sentences, len(expected))
        assert [one for one in expected if (name, one) in made and one in found] == found
        if len(expected) > 1 and sentences > 1:
            assert (found[0], found[-1]) == (expected[0], expected[-1])


def test_an_answers_sentence_is_its_place() -> None:
    texts = pl.DataFrame({"doc_id": ["p"], "text": ["One two three. Four five six seven. Eight nine."]})
    asked = pl.DataFrame(
        {"query_id": ["q", "r"], "text": ["?", "?"], "doc_id": ["p", "p"], "start": [20, None], "end": [24, None]},
        schema_overrides={"start": pl.Int64, "end": pl.Int64},
    )
    found = placed(asked, texts)
    assert found.select("start", "end", "place", "word", "words").rows() == [(15, 35, 3 / 5, 3, 9), (0, 0, None, 0, 9)]
