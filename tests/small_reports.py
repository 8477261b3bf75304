"""Small results whose figures are known by hand, to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

import evenrank
from evenrank.auditing import AuditResult
from evenrank.papers.claims import Claim, Decided, Effect, Verdict
from evenrank.papers.report import ExperimentPage, Layout, Row
from evenrank.results.page import Drawing
from evenrank.stats.estimate import Estimate

QUERIES = ["q1", "q2", "q3"]


# One man's word gives the magnitude ln 2; its passage first, ARaB is (ln 2 + ln 2 / 2) / 2, second, half of ln 2 / 2.
FIRST, SECOND = 0.75 * math.log(2), 0.25 * math.log(2)


def run(order: list[str], score: float = 2.0) -> pl.DataFrame:
    rows = [(query, f"{query}{doc}", score - place) for query in QUERIES for place, doc in enumerate(order)]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


GROUPS = ("<b>", "b", "c")


def labelled_audit(unknown: str = "bounds", known: int = 3, **options: Any) -> AuditResult:
    """Six queries with documents 0 to 3, of the groups <b>, b and (even queries) c or none, and without a label.

    ``known``: how many of each query's documents have a label. The run ``new`` has them in reverse.
    """
    queries = [f"q{number}" for number in range(6)]
    docs = {query: [f"{query}-{place}" for place in range(4)] for query in queries}
    labels = {doc: [*GROUPS[:2], "N" if n % 2 else "c"][i] for n, q in enumerate(queries) for i, doc in
              enumerate(docs[q][:known])}  # fmt: skip
    labels |= {"other-0": "<b>", "other-1": "b", "other-2": "c"}
    old = {query: {doc: 4.0 - i for i, doc in enumerate(found)} for query, found in docs.items()}
    new = {query: {doc: 1.0 + i for i, doc in enumerate(found)} for query, found in docs.items()}
    settings: dict[str, Any] = {
        "qrels": {query: {f"{query}-{n % 4}": 1} for n, query in enumerate(queries)},
        "collection": {doc: f"He said {doc}." for found in docs.values() for doc in found},
        "baseline": "old",
        "measures": "nDCG@10 Share(group='<b>')@10 Share(group='b')@10 AWRF@10",
    }
    settings |= {"labels": labels, "neutral": "N", "unknown": unknown}
    return evenrank.audit({"old": old, "new": new}, **{**settings, **options})


def small_audit(names: tuple[str, str] = ("old", "new"), **options: Any) -> AuditResult:
    """Three equal queries, each with a passage of one man's word, and one relevant without; two runs, both orders."""
    texts = [(f"{query}he", "He runs.") for query in QUERIES] + [(f"{query}it", "It runs.") for query in QUERIES]
    settings: dict[str, Any] = {
        "collection": pl.DataFrame(texts, schema=["doc_id", "text"], orient="row"),
        "qrels": pl.DataFrame({"query_id": QUERIES, "doc_id": [f"{q}it" for q in QUERIES], "relevance": [1, 1, 1]}),
        "queries": pl.DataFrame({"query_id": QUERIES, "text": ["who runs", "what runs", "where"]}),
        "baseline": names[0],
        "threshold": 0,
        "measures": "nDCG@10 NFaiRR@10 ARaB@10",
    }
    runs = {names[0]: run(["he", "it"]), names[1]: run(["it", "he"])}
    return evenrank.audit(runs, **{**settings, **options})


def small_experiment(text: str = "MRR", drawings: Sequence[Drawing] = (), *, name: str = "ibbr") -> ExperimentPage:
    """A page with one claim, undecided, and one table of two systems, the first of them destroyed.

    ``text``: stands wherever a text of the page may come from a file.
    """
    value = Estimate(0.25, (0.2, 0.3), 5, "seeds")
    claim = Decided(Claim("ibbr", "key", text, text, text), Verdict("undecided", (text,)), (Effect(text, value),))
    layout = Layout("Table 1", text, (text, "|bias|"), notes=(text,))
    rows = (
        Row(text, text, {text: value}, {text: 0.164}, {text: (-0.1, 0.03)}, text),
        Row("blind", "", {"|bias|": Estimate(0.1, None, 117)}, {}),
    )
    return ExperimentPage(
        name, text, text, "tiny", (0, 1), {text: text}, {}, (claim,), ((layout, rows),), (), tuple(drawings), (text,)
    )
