"""BM25 as a scorer: the scores of the first stage for its own documents, and of other texts by the formula."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, read_queries, read_texts
from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.models.scorers import TextPairs
from evenrank.search.bm25 import BM25Scorer
from evenrank.search.indexes import retrieve


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


def test_scores_by_hand() -> None:
    # Two documents of 2 and 4 terms, average 3; "mouse" is in none of them, and a text of 3 terms has it twice.
    scorer = BM25Scorer(collection_of("the cat sat", "cats, cats and dogs; a cat"))
    cat = math.log(1 + (2 - 2 + 0.5) / (2 + 0.5))
    mouse = math.log(1 + (2 - 0 + 0.5) / (0 + 0.5))
    scores = scorer.score(["cats", "cat cat", "mouse", "the", "fish"], ["cat", *["mouse, a mouse: cat"] * 4])
    one, three = (0.9 * (1 - 0.4 + 0.4 * length / 3) for length in (1, 3))
    expected = [cat / (1 + one), 2 * cat / (1 + three), mouse * 2 / (2 + three), 0, 0]
    assert scores == pytest.approx(expected, rel=1e-12)
    # A collection without words.
    assert BM25Scorer(collection_of("", "the")).score(["cat"], ["cat"]).tolist() == [pytest.approx(math.log(6) / 1.9)]


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee"]), max_size=6)
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=5), PAIRS, st.floats(0, 3), st.floats(0, 1))
def test_equals_the_slow_loop(collection, pairs, k1, b) -> None:
    scorer = BM25Scorer(collection_of(*map(" ".join, collection)), k1=k1, b=b, stopwords=None, stemmer=None)
    scores = scorer.score([" ".join(query) for query, _ in pairs], [" ".join(text) for _, text in pairs])
    assert scores == pytest.approx([by_loops(query, text, collection, k1, b) for query, text in pairs], rel=1e-12)


def agrees(folder: Path, **settings: float) -> int:
    """Compares the scores with the first stage's, and returns how many there are."""
    collection, queries = folder / "collection.tsv", read_queries(folder / "queries.tsv")
    table = retrieve(collection, queries, k=50, **settings, quiet=True).table  # type: ignore[arg-type]
    pairs = TextPairs.of_run("bm25", table, collection, queries)
    scores = BM25Scorer(collection, **settings).bind(pairs, 32)(np.arange(pairs.size))  # type: ignore[arg-type]
    # Those of the first stage are kept in single precision.
    np.testing.assert_allclose(scores, table["score"], rtol=1e-6)
    return len(scores)


def test_the_first_stages_scores(tmp_path: Path) -> None:
    generate(SyntheticConfig(passages=200, queries=20)).write(tmp_path)
    assert agrees(tmp_path, k1=1.6, b=0.9) > 500


def test_the_first_stages_scores_of_grep_biasir(shared_data: Path) -> None:
    assert agrees(shared_data / "grepbiasir") == 5268


def test_batches_and_files_give_the_same(tmp_path: Path) -> None:
    texts = {f"d{i}": " ".join(f"w{j}" for j in range(i % 7, 12)) for i in range(40)}
    frame = pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})
    path = tmp_path / "c.tsv"
    frame.write_csv(path, separator="\t", include_header=False)
    passages = read_texts(path, frame["doc_id"])["text"].to_list()
    whole = BM25Scorer(texts)
    for other in (BM25Scorer(frame.iter_slices(7)), BM25Scorer(path)):
        np.testing.assert_array_equal(
            whole.score(["w3 w11 w0"] * 40, passages), other.score(["w3 w11 w0"] * 40, passages)
        )
        assert whole.facts() == other.facts()


def test_facts_and_what_it_reads() -> None:
    scorer = BM25Scorer(collection_of("the cat", "dog dog dog"), k1=1.2)
    analysis = "stop words english (33), stemmer english"
    assert scorer.facts() == {"kind": "bm25", "model": "bm25", "k1": 1.2, "b": 0.4, "analysis": analysis,
                              "documents": 2, "average_length": 2.0}  # fmt: skip
    assert scorer.reads_to(["a", "b"], ["four", ""]) == [4, 0]


@pytest.mark.parametrize(
    ("collection", "settings", "message"),
    [
        ({}, {}, "expected at least one row, found none"),
        ({"d1": "a"}, {"k1": -1}, "`k1`: expected a number from 0 to 1000000, found -1"),
        ({"d1": "a"}, {"b": 1.5}, "`b`: expected a number from 0 to 1, found 1.5"),
        ({"d1": "a"}, {"stemmer": "klingon"}, "`stemmer`: expected one of"),
    ],
)
def test_settings_out_of_range(collection, settings, message) -> None:
    with pytest.raises(EvenrankError, match=re.escape(message)):
        BM25Scorer(collection, **settings)
