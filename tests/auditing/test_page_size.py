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


def audited(queries: int, runs: int) -> AuditResult:
    """Passages of 60 words, as frequent as those of a language; each query's pool is in another order in each run."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkq"))
    vocabulary = ["he", "she", "his", "her", "man", "woman"]
    vocabulary += ["".join(rng.choice(letters, size)) for size in rng.integers(2, 11, 20_000)]
    # Zipf's law: of rank r with a probability of 1 / r.
    drawn = np.exp(rng.random((queries * POOL, WORDS)) * np.log(len(vocabulary))).astype(np.int64) - 1
    texts = {f"d{place}": " ".join(vocabulary[word] for word in row) for place, row in enumerate(drawn)}
    names = np.array(list(texts)).reshape(queries, POOL)
    relevant = rng.random((queries, POOL)) < 0.1
    lists = {}
    for run in range(runs):
        scores = rng.normal(size=(queries, POOL)) + 0.5 * run * relevant
        first = np.argsort(-scores, axis=1)[:, :DEPTH]
        found = [np.take_along_axis(of, first, 1).ravel() for of in (names, scores)]
        queries_of = [f"q{query}" for query in np.repeat(np.arange(queries), DEPTH)]
        lists[f"run-{run}"] = pl.DataFrame(
            dict(zip(("query_id", "doc_id", "score"), (queries_of, *found), strict=True))
        )
    return evenrank.audit(
        lists,
        collection=texts,
        queries={f"q{query}": " ".join(texts[row[0]].split()[:6]) for query, row in enumerate(names)},
        qrels={f"q{query}": dict.fromkeys(row[relevant[query]], 1) for query, row in enumerate(names)},
        baseline="run-0",
    )


@pytest.mark.parametrize(
    ("queries", "runs", "largest"), [(60, 2, 1_000_000), pytest.param(1000, 10, 1_500_000, marks=pytest.mark.slow)]
)
def test_a_page_is_small(queries: int, runs: int, largest: int) -> None:
    """``largest``: bytes."""
    page = audited(queries, runs).html()
    assert len(page.encode()) <= largest
    held = data(page)
    entries = sum(len(ranking) for query in held["queries"]["queries"] for ranking in query["rankings"])
    assert 0.8 * min(ENTRY_CAP, queries * (runs + 1) * 10) <= entries <= ENTRY_CAP
    # Whole passages stand on it.
    assert all("length" not in document for document in held["queries"]["documents"])
