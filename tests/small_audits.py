"""Small collections, runs and judgements to audit."""

from __future__ import annotations

import html
import re
from typing import TypeVar

import polars as pl

from evenrank.auditing import AuditResult

T = TypeVar("T")
TEXTS = {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge", "b": "the woman and the man"}


def collection(texts: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})


def run(lists: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(query, doc, float(len(docs) - place)) for query, docs in lists.items() for place, doc in enumerate(docs)]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


def many(of: dict[str, T], times: int = 15) -> dict[str, T]:
    """What queries have, for as many more queries: fewer than 15 are no test."""
    return {f"{query}.{number}": one for number in range(times) for query, one in of.items()}


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


def warnings(page: str) -> list[str]:
    """What a page warns of first."""
    return [part.split("</p>")[0] for part in page.split('<p class="warning" role="note">')[1:]]


def text_of(page: str) -> str:
    """What a reader of a page sees, without its scripts and styles."""
    shown = re.sub(r"<(script|style|title)\b.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", shown))
