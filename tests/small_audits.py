"""Small collections, runs and judgements to audit."""

from __future__ import annotations

import html
import re

import numpy as np
import polars as pl

from evenrank.auditing import AuditResult

TEXTS = {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge", "b": "the woman and the man"}


def collection(texts: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})


def run(lists: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(query, doc, float(len(docs) - place)) for query, docs in lists.items() for place, doc in enumerate(docs)]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


DOCS = {f"d{number}": f"{list(TEXTS.values())[number % 4]} w{number}" for number in range(24)}
QRELS = {f"q{query}": {f"d{query % 24}": 1} for query in range(24)}
QRELS |= {f"q{query}": {f"d{(query + further) % 24}": 1 for further in (0, 7, 11)} for query in range(24, 40)}
"""The first 24 queries have one relevant document, the others three: no two the same, which would be a cluster."""


def random_run(
    seed: int, *, queries: int = 40, lean: float = 0.0, good: float = 0.0, ties: bool = False
) -> dict[str, dict[str, float]]:
    """Twelve of :data:`DOCS` a query, at random but for a ``lean`` towards m and what is ``good`` by :data:`QRELS`."""
    rng = np.random.default_rng(seed)
    names, male = list(DOCS), np.arange(len(DOCS)) % 4 == 0
    found = {}
    for query in range(queries):
        scores = rng.normal(size=len(names)) + lean * male + good * (np.arange(len(names)) == query % 24)
        scores = scores.round() if ties else scores
        found[f"q{query}"] = {names[row]: float(scores[row]) for row in np.argsort(-scores, kind="stable")[:12]}
    return found


def judged(relevant: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"query_id": list(relevant), "doc_id": list(relevant.values()), "relevance": [1] * len(relevant)}
    )


def head(result: AuditResult) -> str:
    """What stands above the table."""
    return " ".join(result.table().split("\n\n")[0].split())


def words(result: AuditResult) -> str:
    """What is said of an audit."""
    return " ".join(finding.text for finding in result.findings)


def text_of(page: str) -> str:
    """What a reader of a page sees, without its scripts and styles."""
    shown = re.sub(r"<(script|style|title)\b.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", shown))
