"""An audit's figures as data frames and dicts, from runs in every form."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from small_audits import TEXTS, collection, judged, run

QUERIES = [str(number) for number in range(18)]
RUNS = {
    "old": run({q: ["m", "f", "n", "b"] for q in QUERIES}),
    "new": run({q: ["n", "m", "b", "f"] if int(q) % 2 else ["f", "n", "m", "b"] for q in QUERIES}),
}
QRELS = judged({q: "m" if int(q) % 3 else "f" for q in QUERIES})


@pytest.fixture(scope="module")
def audit() -> evenrank.AuditResult:
    measures = "nDCG@10 ARaB@10 DeltaAPRF"
    return evenrank.audit(RUNS, collection=collection(TEXTS), qrels=QRELS, baseline="old", measures=measures)


def test_the_long_form(audit: evenrank.AuditResult, snapshot: Any) -> None:
    table = audit.to_polars()
    assert table.with_columns(pl.selectors.float().round(6)).write_csv() == snapshot
    row = table.row(by_predicate=(pl.col("run") == "new") & (pl.col("measure") == "nDCG@10"), named=True)
    figure = audit["new", "nDCG@10"]
    assert (row["mean"], row["low"], row["high"], row["n"]) == (figure.mean, *figure.ci95, figure.n)


def test_a_pandas_frame(audit: evenrank.AuditResult) -> None:
    pandas = pytest.importorskip("pandas")
    frame = audit.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == audit.to_polars().columns
    assert frame["mean"].tolist() == audit.to_polars()["mean"].to_list()


def test_without_pandas_the_error_says_what_to_do(audit: evenrank.AuditResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(EvenrankError, match=r"^to_pandas needs pandas, which is not installed: pip install pandas"):
        audit.to_pandas()


def test_metrics(audit: evenrank.AuditResult) -> None:
    metrics = audit["new"].metrics()
    means = {name: audit["new", name].mean for name in ("nDCG@10", "ARaB@10", "DeltaAPRF")}
    # An interval that is not known is none.
    assert audit["new", "ARaB@10"].ci95 is None
    assert metrics == means | dict(zip(("nDCG@10/low", "nDCG@10/high"), audit["new", "nDCG@10"].ci95, strict=True))
    assert set(audit.metrics()) == {f"{run}/{name}" for run in RUNS for name in metrics}
    assert audit.metrics()["new/ARaB@10"] == means["ARaB@10"]
