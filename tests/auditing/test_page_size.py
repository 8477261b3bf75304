"""How large a page is: it can be sent by mail, whatever the audit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.page_data import ENTRY_CAP
from page_parts import data

POOL, DEPTH, WORDS = 40, 20, 60
LARGEST = 1_500_000
"""Bytes."""


def audited(queries: int, runs: int) -> AuditResult:
    """Passages of 60 words, as frequent as those of a language; each query's pool is in another order in each run."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkq"))
    vocabulary = ["he", "she", "his", "her", "man", "woman"]
    vocabulary += ["".join(rng.choice(letters, size)) for size in rng.integers(2, 11, 20_000)]
    # Zipf's law: of rank r with a probability of 1 / r.
    drawn = np.exp(rng.random((queries * POOL, WORDS)) * np.log(len(vocabulary))).astype(np.int64) - 1
    documents = [f"d{number}" for number in range(queries * POOL)]
    texts = [" ".join(vocabulary[word] for word in row) for row in drawn]
    relevance = (rng.random(queries * POOL) < 0.1).astype(np.int64)
    pool = np.arange(queries * POOL).reshape(queries, POOL)
    lists = {}
    for run in range(runs):
        scores = rng.normal(size=(queries, POOL)) + 0.5 * run * relevance.reshape(queries, POOL)
        first = np.argsort(-scores, axis=1)[:, :DEPTH]
        found = np.take_along_axis(pool, first, 1).ravel()
        lists[f"run-{run}"] = pl.DataFrame(
            {
                "query_id": [f"q{query}" for query in np.repeat(np.arange(queries), DEPTH)],
                "doc_id": [documents[place] for place in found],
                "score": np.take_along_axis(scores, first, 1).ravel(),
            }
        )
    judged = pl.DataFrame(
        {
            "query_id": [f"q{place // POOL}" for place in range(len(documents))],
            "doc_id": documents,
            "relevance": relevance,
        }
    )
    asked = [" ".join(text.split()[:6]) for text in texts[::POOL]]
    return evenrank.audit(
        lists,
        collection=pl.DataFrame({"doc_id": documents, "text": texts}),
        queries=pl.DataFrame({"query_id": [f"q{query}" for query in range(queries)], "text": asked}),
        qrels=judged.filter(pl.col("relevance") > 0),
        baseline="run-0",
    )


@pytest.mark.parametrize(("queries", "runs", "largest"), [(60, 2, 1_000_000), (1000, 10, LARGEST)])
def test_a_page_is_small(queries: int, runs: int, largest: int) -> None:
    page = audited(queries, runs).html()
    assert len(page.encode()) <= largest
    held = data(page)
    entries = sum(len(ranking) for query in held["queries"]["queries"] for ranking in query["rankings"])
    assert 0.8 * min(ENTRY_CAP, queries * (runs + 1) * 10) <= entries <= ENTRY_CAP
    # Whole passages stand on it.
    assert all("length" not in document for document in held["queries"]["documents"])
