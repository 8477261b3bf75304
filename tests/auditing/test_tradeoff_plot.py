"""The plot of effectiveness against bias, on pages and in notebooks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import evenrank
from evenrank.auditing.tradeoff_plot import Placed, RankingPoint, audit_plot, tradeoff_plot
from evenrank.measures import parse_measure
from small_audits import TEXTS, collection, judged, run

QUERIES = [str(number) for number in range(8)]
EVIL = "<script>alert('x')</script>&\"\x1b[2J"


@pytest.fixture(scope="module")
def audit() -> evenrank.AuditResult:
    orders = {"one": ["m", "n", "f", "b"], EVIL: ["n", "f", "m", "b"]}
    runs = {name: run({q: docs[int(q) % 2 :] for q in QUERIES}) for name, docs in orders.items()}
    qrels = judged(dict.fromkeys(QUERIES, "n"))
    return evenrank.audit(runs, collection=collection(TEXTS), qrels=qrels, measures="nDCG@10 ARaB@10")


def specification(audit: evenrank.AuditResult) -> dict[str, Any]:
    plot = audit_plot(audit)
    return plot().specification


def test_points_and_intervals_are_the_figures(audit: evenrank.AuditResult) -> None:
    drawn = specification(audit)
    (rows,) = [layer["data"]["values"] for layer in drawn["layer"] if "tooltip" in layer["encoding"]]
    shown = [audit[name] for name in ("one", EVIL, "random", "relevance-first")]
    for row, ranking in zip(rows, shown, strict=True):
        utility, bias = ranking["nDCG@10"], ranking["ARaB@10"]
        assert (row["utility"], row["bias"]) == (utility.mean, bias.mean)
        assert (row["utility_low"], row["utility_high"]) == (utility.ci95 or (None, None))
        assert (row["bias_low"], row["bias_high"]) == (bias.ci95 or (None, None))
        assert row["name"].endswith("(reference ranking)") == ranking.reference
    titles = [layer["encoding"].get(axis, {}).get("title") for layer in drawn["layer"] for axis in "xy"]
    assert "nDCG@10 (higher is better)" in titles
    assert ["ARaB@10", "(nearer 0 is better)"] in titles


def test_a_notebook_shows_it_without_a_script(audit: evenrank.AuditResult) -> None:
    assert "\x1b" not in json.dumps(specification(audit), ensure_ascii=False)
    page = audit._repr_html_()
    assert "<svg" in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"href=|src=|url\(|@import|\son\w+=", page)
    assert {"#000", "black"} & set(re.findall(r'(?:fill|stroke)="([^"]*)"', page)) == set()


def test_long_names_stay_apart() -> None:
    names = ["bm25", "msmarco-bm25-minilm-k10-dev", "msmarco-bm25-roberta-k10-dev"]
    points = [RankingPoint(name, Placed(0.1), Placed(0.2)) for name in names]
    drawn: Any = tradeoff_plot((parse_measure("nDCG@10"), parse_measure("ARaB@10")), points).specification
    rows = drawn["layer"][-1]["data"]["values"]
    assert [row["ranking"] for row in rows] == ["bm25", "2 msmarco…10-dev", "3 msmarco…10-dev"]
    assert [row["name"] for row in rows] == names
