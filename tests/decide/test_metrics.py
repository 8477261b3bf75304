"""Figures by name, as trackers of experiments take them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import SyntheticConfig, generate
from evenrank.auditing import AuditResult
from gate_audits import OLD, audit, rule

MADE = generate(SyntheticConfig(passages=300))
RUN = MADE.qrels.with_columns(score=pl.lit(1.0)).select("query_id", "doc_id", "score")


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    runs = {"old/v1": RUN, "new": RUN}
    return evenrank.audit(
        runs, collection=MADE.collection, qrels=MADE.qrels, measures="nDCG@10 ARaB(magnitude='bool')@10"
    )


def test_metrics_of_an_audit(audited: AuditResult) -> None:
    metrics = audited["new"].metrics()
    figure = audited["new", "ARaB(magnitude='bool')@10"]
    name = "ARaB(magnitude='bool')@10"
    assert figure.ci95 is not None
    assert [metrics[f"{name}{end}"] for end in ("", "/low", "/high")] == [figure.mean, *figure.ci95]
    # Every value of nDCG is 1: an interval without width is none.
    assert sorted(metrics) == sorted(["nDCG@10", name, f"{name}/low", f"{name}/high"])
    of_both = audited.metrics()
    assert set(of_both) == {f"{run}/{name}" for run in ("old/v1", "new") for name in metrics}
    assert of_both[f"new/{name}"] == figure.mean


def test_metrics_of_a_gate() -> None:
    values = {"nDCG@10": OLD}
    result = evenrank.gate(audit({"nDCG@10": OLD - 0.2}, values), budget=rule(against="baseline", at_least="-2%"))
    (ruling,) = result.rules
    assert ruling.limits is not None
    low, high = ruling.limits
    expected = {"nDCG@10 vs old": ruling.value, "nDCG@10 vs old/low": low, "nDCG@10 vs old/high": high, "status": 1.0}
    assert result.metrics() == expected


def test_what_is_undefined_is_left_out() -> None:
    run = RUN.with_columns(query_id=pl.lit("one"))[:2]
    metrics = evenrank.audit({"r": run}, collection=MADE.collection, measures="ARaB@10").metrics()
    assert list(metrics) == ["ARaB@10"]
    assert np.isfinite(metrics["ARaB@10"])
