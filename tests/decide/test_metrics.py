"""Figures by name, as trackers of experiments take them."""

from __future__ import annotations

import polars as pl

import evenrank
from evenrank import SyntheticConfig, generate
from gate_audits import OLD, audit, rule

MADE = generate(SyntheticConfig(passages=300))
RUN = MADE.qrels.with_columns(score=pl.lit(1.0)).select("query_id", "doc_id", "score")


def test_metrics_of_an_audit() -> None:
    name = "ARaB(magnitude='bool')@10"
    settings = {"collection": MADE.collection, "qrels": MADE.qrels, "measures": f"nDCG@10 {name}"}
    audited = evenrank.audit({"old/v1": RUN, "new": RUN}, **settings)
    metrics, figure = audited["new"].metrics(), audited["new", name]
    assert figure.ci95 is not None
    # Every value of nDCG is 1: an interval without width is none.
    low, high = figure.ci95
    assert metrics == {"nDCG@10": 1.0, name: figure.mean, f"{name}/low": low, f"{name}/high": high}
    assert set(audited.metrics()) == {f"{run}/{name}" for run in ("old/v1", "new") for name in metrics}
    assert audited.metrics()[f"new/{name}"] == figure.mean


def test_metrics_of_a_gate() -> None:
    values = {"nDCG@10": OLD}
    result = evenrank.gate(audit({"nDCG@10": OLD - 0.2}, values), budget=rule(against="baseline", at_least="-2%"))
    (ruling,) = result.rules
    assert ruling.limits is not None
    low, high = ruling.limits
    expected = {"nDCG@10 vs old": ruling.value, "nDCG@10 vs old/low": low, "nDCG@10 vs old/high": high, "status": 1.0}
    assert result.metrics() == expected
