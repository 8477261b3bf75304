"""The pool of sentences: the same for any order of the passages, and never a passage's own."""

from __future__ import annotations

import random
from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.hashing import FNV_OFFSET, GOLDEN, MASK, fnv, fnv_array, mix
from evenrank.files.tables import text_bytes
from evenrank.mitigation.rotation import mixed_seed
from evenrank.probes.sentences import SentencePool, content_words, sentences_of

TEXTS = {f"d{i}": " ".join(f"Passage {i} says {'so ' * n}{n}th." for n in range(i % 4 + 1)) for i in range(40)}


def batches(ids: list[str], size: int) -> list[pl.DataFrame]:
    frame = pl.DataFrame({"doc_id": ids, "text": [TEXTS[one] for one in ids]})
    return list(frame.iter_slices(size))


def slow_pool(seed: int, size: int) -> list[tuple[int, str, str]]:
    """Words, document and sentence, by the definition."""
    start = FNV_OFFSET ^ mixed_seed(seed)
    keys = {doc: mix(fnv(doc.encode(), start)) for doc in TEXTS}
    kept = sorted(TEXTS, key=lambda doc: (keys[doc], doc))[:size]
    found = [
        (mix((keys[doc] + n * GOLDEN) & MASK), doc, n, sentence)
        for doc in kept
        for n, sentence in enumerate(sentences_of(TEXTS[doc]), 1)
    ]
    rows = [(len(sentence.split()), key, doc, sentence) for key, doc, _, sentence in sorted(found)[:size]]
    return [(words, doc, sentence) for words, _, doc, sentence in sorted(rows)]


@given(st.integers(0, 3), st.integers(1, 60), st.integers(1, 50), st.randoms(use_true_random=False))
def test_it_is_the_same_for_any_order_and_batches(seed: int, size: int, rows: int, chance: random.Random) -> None:
    ids = list(TEXTS)
    chance.shuffle(ids)
    found = SentencePool.sampled(batches(ids, rows), seed, size)
    assert list(zip(found.words, found.documents, found.sentences, strict=True)) == slow_pool(seed, size)


@given(st.lists(st.text(max_size=4), max_size=6), st.integers(0, 2**64 - 1))
def test_hashes_of_many_texts(given_texts: list[str], start: int) -> None:
    series = pl.Series([text.encode("utf-8", "ignore").decode() for text in given_texts], dtype=pl.String)
    assert fnv_array(*text_bytes(series), start).tolist() == [fnv(text.encode(), start) for text in series]


def test_a_sentence_in_several_passages_is_there_once() -> None:
    same = pl.DataFrame({"doc_id": ["a", "b"], "text": ["It is so. Yes.", "It is so. No."]})
    assert Counter(SentencePool.sampled([same], 0).sentences) == {"It is so.": 1, "Yes.": 1, "No.": 1}


@given(st.integers(0, 39), st.integers(0, 2**64 - 1), st.lists(st.integers(1, 12), max_size=9))
def test_chosen_are_others_of_about_the_length(number: int, key: int, lengths: list[int]) -> None:
    pool = SentencePool.sampled(batches(list(TEXTS), 9), 0)
    own = f"d{number}"
    choose = pool.chooser(own, TEXTS[own], key)
    others = [s for s, doc in zip(pool.sentences, pool.documents, strict=True) if doc != own]
    found: list[str] = []
    for words in lengths:
        one = choose(words)
        assert one is not None
        left = [sentence for sentence in others if sentence not in found]
        assert one in left
        nearest = min(abs(len(sentence.split()) - words) for sentence in left)
        assert abs(len(one.split()) - words) <= max(nearest, words // 4)
        found.append(one)


def test_nothing_is_left_to_choose() -> None:
    pool = SentencePool(("Aa.", "Bb cc."), ("a", "b"), (1, 2))
    choose = pool.chooser("a", "Aa.", 5)
    assert [choose(1), choose(1)] == ["Bb cc.", None]
    # The same sentence in another passage.
    assert pool.chooser("c", "Bb cc. Aa.", 5)(1) is None


def test_other_words_are_content_and_not_the_querys() -> None:
    pool = SentencePool(("The old Tower is high.", "Old towers!"), ("a", "b"), (5, 2))
    assert pool.other_words(1, "c", "Text.", "what is old", 0) == ["tower"]
    assert pool.other_words(3, "c", "Text.", "what is old", 0) == ["tower", "high", "towers"]
    assert pool.other_words(3, "c", "Text.", "what is old", 1) == ["towers", "tower", "high"]
    assert pool.other_words(2, "a", "Text.", "what is old", 0) is None
    assert pool.other_words(1, "c", "Old towers! The old Tower is high.", "what", 0) is None


def test_content_words() -> None:
    assert content_words("Who's the First of the first? Don't ask: THE mother's") == ["first", "ask", "mother"]
    assert content_words("who is it") == []
