"""BM25: the formula, the analysis, ties, and what a run's notes say."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, Run
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import BM25Scorer, Index
from evenrank.search.expansion import RM3
from evenrank.search.indexes import retrieve


def documents(*texts: str, ids: list[str] | None = None) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": ids or [f"d{i}" for i in range(1, len(texts) + 1)], "text": list(texts)})


def questions(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{i}" for i in range(1, len(texts) + 1)], "text": list(texts)})


def search(collection: pl.DataFrame, *texts: str, **settings: object) -> Run:
    return retrieve(collection, questions(*texts), **settings)  # type: ignore[arg-type]


def random_texts(rng: np.random.Generator, count: int, words: int, most: int) -> list[str]:
    names = np.array([f"w{i:03d}" for i in range(words)])
    weights = 1 / np.arange(1, words + 1)
    return [" ".join(rng.choice(names, rng.integers(0, most), p=weights / weights.sum())) for _ in range(count)]


def test_scores_by_hand() -> None:
    # After the analysis: d1 = cat sat (2), d2 = cat dog cat (3), d3 = dog (1); average length 2.
    collection = documents("The cat sat", "Cats and dogs, cat!", "A dog")
    table = search(collection, "cats", "dog cat cat", k1=0.9, b=0.4).table
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    cat_d1 = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 2 / 2))
    cat_d2 = idf * 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * 3 / 2))
    dog_d2 = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 3 / 2))
    dog_d3 = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 1 / 2))
    assert table["query_id"].to_list() == ["q1"] * 2 + ["q2"] * 3
    assert table["doc_id"].to_list() == ["d2", "d1", "d2", "d1", "d3"]
    assert table["rank"].to_list() == [1, 2, 1, 2, 3]
    expected = [cat_d2, cat_d1, dog_d2 + 2 * cat_d2, 2 * cat_d1, dog_d3]
    assert table["score"].to_list() == pytest.approx(expected, rel=1e-6)
    # k1 = 0 ignores how often, b = 0 how long.
    collection = documents("cat cat", "cat cat cat cat mouse")
    assert search(collection, "cat", k1=0).table["score"].to_list() == pytest.approx([math.log(1.2)] * 2, rel=1e-6)
    flat = search(collection, "cat", b=0).table["score"].to_list()
    assert flat == pytest.approx([math.log(1.2) * 4 / 4.9, math.log(1.2) * 2 / 2.9], rel=1e-6)


def test_agrees_with_bm25s() -> None:
    """The same tokens, scores and rankings as bm25s gives on its own, index and all."""
    import bm25s
    import Stemmer

    rng = np.random.default_rng(1)
    texts = [
        text + " The running, RUNNERS' café don't" * (i % 3) for i, text in enumerate(random_texts(rng, 300, 80, 40))
    ]
    asked = ["runner w001 w003", "the w070 w005 w005", "cafés w012"]
    stemmer = Stemmer.Stemmer("english")
    engine = bm25s.BM25(k1=1.1, b=0.6, method="lucene", backend="numpy")
    engine.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    split = bm25s.tokenize(asked, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
    run = search(documents(*texts), *asked, k1=1.1, b=0.6)
    for i, tokens in enumerate(split):
        scores = engine.get_scores(tokens)
        mine = run.table.filter(pl.col("query_id") == f"q{i + 1}")
        assert mine.height == int((scores > 0).sum()) > 50
        rows = mine["doc_id"].str.slice(1).cast(pl.Int64).to_numpy() - 1
        np.testing.assert_allclose(mine["score"].to_numpy(), scores[rows], rtol=2e-6)


GERMAN = documents("die Krankenschwestern auf der Station", "der Pilot und die Flüge", "das ist nicht so")
CATS = documents("the cats ran", "a running cat")


@pytest.mark.parametrize(
    ("collection", "query", "settings", "ids", "note"),
    [
        (CATS, "The cat", {"stopwords": ["CAT", "cats"], "stemmer": "porter"}, ["d1"], "given (2), stemmer porter"),
        # Only the noun counts, in the singular too.
        (GERMAN, "Wer ist die Krankenschwester?", {"stopwords": "german", "stemmer": "german"}, ["d1"], "german"),
        (documents("kissa ja koira", "kissa"), "kissa koira", {"stopwords": "words.txt"}, ["d1"], "txt (2), stemmer"),
    ],
)
def test_analysis_can_be_set(collection, query, settings, ids, note, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("Kissa\n\nJA\n", encoding="utf-8")
    found = search(collection, query, **settings)
    assert found.table["doc_id"].to_list() == ids
    assert note in found.notes[0]


def test_weights_at_the_ends_of_their_range() -> None:
    # A word of such weight counts for nothing, or its documents have a score of 0; each is found once in any case.
    collection = documents(*["cat dog bird"] * 3, "fish")
    tiny = "cat^1e-19 dog^1e-19 bird^1e-19 cat^1e-19 dog^1e-19"
    for rm3 in (None, RM3()):
        found = search(collection, tiny, k1=1e6, weighted=True, rm3=rm3).table
        assert sorted(found["doc_id"]) == ["d1", "d2", "d3"]
        assert found["score"].is_finite().all()
    heavy = search(documents("cat", "dog"), "cat^1e9 dog^1", weighted=True).table
    assert heavy["doc_id"].to_list() == ["d1", "d2"]
    assert heavy["score"].is_finite().all()
    index = Index.build([documents("cat", "dog")], Analyzer())
    index._postings = replace(index._postings, data=np.full(2, 3e38, np.float32))
    with pytest.raises(EvenrankError, match=r"^the scores of a query are not finite: the weights of its words are too"):
        index.search(questions("cat^1e9"), weighted=True)


WEIGHT = "query q1: expected a weight from 0 to 1000000000 after ^, found"


@pytest.mark.parametrize(
    ("collection", "query", "settings", "message"),
    [
        (documents("a cat"), "zebra", {}, "none of the 1 queries has a word of the collection"),
        # Too light to count.
        (documents("a man"), "man^1e-25", {"weighted": True}, "none of the 1 queries has a word of the collection"),
        ([], "cat", {}, "the collection has no document"),
        ("none.tsv", "cat", {"k": 0}, "`k`: expected 1 or more, found 0"),
        ("none.tsv", "cat", {"k1": -0.1}, "`k1`: expected a number from 0 to 1000000, found -0.1"),
        (Index.build([documents("cat")], Analyzer()), "cat", {"k1": 1.2}, "`k1`: an index in memory has its own; "),
        *(
            (documents("cat"), f"cat^{weight}", {"weighted": True}, WEIGHT)
            for weight in ("x", "", "1.0000001e9", "inf", "nan", "-1")
        ),
    ],
)
def test_mistakes_are_told(collection, query, settings, message) -> None:
    with pytest.raises(EvenrankError, match=f"^{re.escape(message)}"):
        search(collection, query, **settings)


def collection_of(*texts: str) -> dict[str, str]:
    return {f"d{i}": text for i, text in enumerate(texts)}


def by_loops(query: list[str], text: list[str], collection: list[list[str]], k1: float, b: float) -> float:
    """The formula, word by word."""
    average = sum(map(len, collection)) / len(collection)
    often = Counter(text)
    score = 0.0
    for word in query:
        frequency = sum(word in document for document in collection)
        idf = math.log(1 + (len(collection) - frequency + 0.5) / (frequency + 0.5))
        if often[word]:
            score += idf * often[word] / (often[word] + k1 * (1 - b + b * len(text) / (average or 1)))
    return score


def test_scores_of_any_texts_by_hand() -> None:
    # Two documents of 2 and 4 terms, average 3; "mouse" is in none of them, and a text of 3 terms has it twice.
    scorer = BM25Scorer(collection_of("the cat sat", "cats, cats and dogs; a cat"))
    cat = math.log(1 + (2 - 2 + 0.5) / (2 + 0.5))
    mouse = math.log(1 + (2 - 0 + 0.5) / (0 + 0.5))
    scores = scorer.score(["cats", "cat cat", "mouse", "the", "fish"], ["cat", *["mouse, the mouse: cat"] * 4])
    one, three = (0.9 * (1 - 0.4 + 0.4 * length / 3) for length in (1, 3))
    expected = [cat / (1 + one), 2 * cat / (1 + three), mouse * 2 / (2 + three), 0, 0]
    assert scores == pytest.approx(expected, rel=1e-12)
    assert (scorer.facts()["documents"], scorer.facts()["average_length"]) == (2, 3)
    # A collection without words.
    assert BM25Scorer(collection_of("", "the")).score(["cat"], ["cat"]).tolist() == [pytest.approx(math.log(6) / 1.9)]


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee"]), max_size=6)
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=5), PAIRS, st.floats(0, 3), st.floats(0, 1))
def test_equals_the_slow_loop(collection, pairs, k1, b) -> None:
    scorer = BM25Scorer(collection_of(*map(" ".join, collection)), k1=k1, b=b, stopwords=None, stemmer=None)
    scores = scorer.score([" ".join(query) for query, _ in pairs], [" ".join(text) for _, text in pairs])
    assert scores == pytest.approx([by_loops(query, text, collection, k1, b) for query, text in pairs], rel=1e-12)


def test_bad_settings_of_a_scorer() -> None:
    with pytest.raises(EvenrankError, match="expected at least one row, found none"):
        BM25Scorer({})
    for settings in ({"k1": -1}, {"b": 1.5}, {"stemmer": "klingon"}):
        with pytest.raises(EvenrankError, match=f"^`{next(iter(settings))}`: expected"):
            BM25Scorer({"d1": "a"}, **settings)  # type: ignore[arg-type]
