"""Bias-aware negative sampling: by hand, against a slow version, and what a draw depends on."""

from __future__ import annotations

import itertools
import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from evenrank.files import EvenrankError, Run
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.mitigation.negatives import beta, candidates, sample
from negative_files import TEXTS

MASK = (1 << 64) - 1


def mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def hashed(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return mix(value)


def random_key(seed: int, query: str, doc: str) -> int:
    return mix(mix(mix((seed + 0x9E3779B97F4A7C15) & MASK) ^ hashed(query)) ^ hashed(doc))


def slow(query, docs, bias, n, share, gendered_only, seed):
    """[(document, biased)]: S_q by sorting, then the others by their random key."""
    chosen = sorted(docs, key=lambda doc: (-bias[doc], docs.index(doc)))[:n][: math.floor(share * n + 1e-9)]
    if gendered_only:
        chosen = [doc for doc in chosen if bias[doc] > 0]
    rest = sorted((doc for doc in docs if doc not in chosen), key=lambda doc: random_key(seed, query, doc))
    return [(doc, True) for doc in chosen] + [(doc, False) for doc in rest[: n - len(chosen)]]


def table_of(lists, bias) -> pl.DataFrame:
    rows = [(query, doc, bias[doc]) for query, docs in lists.items() for doc in docs]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "beta": pl.Float64}, orient="row")


IDS = st.text("ab1é ", max_size=20)


CASES = st.fixed_dictionaries(
    {
        "lists": st.dictionaries(IDS, st.lists(IDS, min_size=1, max_size=12, unique=True), max_size=4),
        "biases": st.lists(st.sampled_from([0.0, 0.0, 0.5, 0.5, 1.0, 2.0]), min_size=40, max_size=40),
        "n": st.integers(1, 14),
        "share": st.sampled_from([0, 0.2, 0.4, 0.6, 0.8, 1, 0.35]),
        "gendered_only": st.booleans(),
        "seed": st.integers(0, MASK),
    }
)


@given(CASES)
def test_the_slow_version_says_the_same(case):
    docs = list(dict.fromkeys(itertools.chain(*case["lists"].values())))
    bias = dict(zip(docs, itertools.cycle(case["biases"]), strict=False))
    settings = {name: case[name] for name in ("n", "share", "gendered_only", "seed")}
    drawn = sample(table_of(case["lists"], bias), **settings)
    expected = {query: slow(query, docs, bias, **settings) for query, docs in case["lists"].items()}
    rows = [(query, doc, biased) for query, doc, _, biased in drawn.iter_rows()]
    assert rows == [(query, *of) for query, found in expected.items() for of in found]


def scored(**settings):
    texts = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    return score_in_memory(texts, Scoring(load_lexicon(), **settings))


def test_beta_by_hand():
    scores = scored()
    # d1: three words of one group; d2: one; d4: one of each.
    assert beta(scores).tolist() == pytest.approx([math.log(4), math.log(2), 0, 0, 0, 0], abs=1e-9)
    assert beta(scores, "count").tolist() == [3, 1, 0, 2, 0, 0]
    # One word is neutral up to the threshold of 1, and so are balanced words.
    assert beta(scores, "one_minus_neutrality").tolist() == [1, 0, 0, 0, 0, 0]
    assert beta(scored(threshold=0), "one_minus_neutrality").tolist() == [1, 1, 0, 0, 0, 0]
    with pytest.raises(EvenrankError, match="`beta`: expected one of abs_tf, count"):
        beta(scores, "tf")  # type: ignore[arg-type]


def test_equal_biases_are_equal_whatever_their_counts():
    # ln 6 − ln 3 and ln 2 − ln 1 differ in the last place.
    assert math.log1p(5) - math.log1p(2) != math.log1p(1)
    texts = pl.DataFrame({"doc_id": ["a", "b"], "text": ["he " * 5 + "she " * 2, "he"]})
    first, second = beta(score_in_memory(texts, Scoring(load_lexicon())))
    assert first == second > 0


def test_candidates_are_the_unjudged_of_the_first_depth():
    run = Run.from_table(
        pl.DataFrame({"query_id": ["q", "q", "q", "q", "r"], "doc_id": list("abcda"), "score": [4.0, 3, 2, 1, 1]})
    )
    qrels = pl.DataFrame({"query_id": ["q", "q", "s"], "doc_id": ["b", "d", "a"], "relevance": [0, 1, 1]})
    assert candidates(run.table, qrels, 3).select("query_id", "doc_id").rows() == [("q", "a"), ("q", "c"), ("r", "a")]


def test_by_hand():
    table = table_of({"q": ["d3", "d2", "d1", "d4", "d6"]}, dict(zip(TEXTS, beta(scored()).tolist(), strict=True)))

    def docs(biased=None, **settings):
        drawn = sample(table, **settings)
        return [row[1] for row in drawn.iter_rows() if biased is None or row[3] == biased]

    # Two of the largest bias; then the first of those without.
    assert docs(n=3, share=1) == ["d1", "d2", "d3"]
    assert docs(True, n=5, share=0.6) == ["d1", "d2", "d3"]
    assert docs(True, n=3, share=1, gendered_only=True) == ["d1", "d2"]
    assert docs(True, n=20) == ["d1", "d2", "d3", "d4", "d6"]
    # A share times n is not cut by rounding.
    assert 0.29 * 100 < 29
    many = table_of({"q": [str(i) for i in range(300)]}, {str(i): 1.0 for i in range(300)})
    assert [sample(many, n=n, share=share)["biased"].sum() for n, share in ((100, 0.29), (10, 0.3))] == [29, 3]


def test_the_random_part_is_uniform_over_seeds_and_over_queries():
    docs = ["a", "b", "c", "d", "e", "f"]
    bias = dict.fromkeys(docs, 0.0)
    one = [sample(table_of({"q": docs}, bias), n=1, share=0, seed=seed)["doc_id"][0] for seed in range(300)]
    many = sample(table_of({str(query): docs for query in range(6000)}, bias), n=1, share=0, seed=7)["doc_id"]
    for found in (one, many.to_list()):
        assert chisquare([found.count(doc) for doc in docs]).pvalue > 1e-3


@pytest.mark.parametrize(
    ("given_beta", "settings", "message"),
    [
        (1.0, {"n": 0}, "`n`: expected 1 or more, found 0"),
        (1.0, {"share": -0.1}, "`share`: expected a number from 0 to 1, found -0.1"),
        (1.0, {"seed": 1 << 64}, "`seed`: expected 0 to 18446744073709551615, found 18446744073709551616"),
        (-1.0, {}, "expected finite numbers from 0 as beta"),
        (math.nan, {}, "expected finite numbers from 0 as beta"),
    ],
)
def test_refused(given_beta, settings, message):
    with pytest.raises(EvenrankError, match=message):
        sample(table_of({"q": ["d"]}, {"d": given_beta}), **settings)


def test_rows_of_a_query_stand_together():
    table = pl.concat([table_of({"q": ["d"], "r": ["d"]}, {"d": 1.0}), table_of({"q": ["e"]}, {"e": 1.0})])
    with pytest.raises(EvenrankError, match="rows of a query are not together"):
        sample(table)
