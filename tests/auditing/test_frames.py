"""An audit's figures as data frames and dicts, from runs in every form."""

from __future__ import annotations

import sys
from typing import Any

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
    assert table.columns == snapshot
    assert table.height == 5 * 3
    for row in table.iter_rows(named=True):
        figure = audit[row["run"], row["measure"]]
        assert (row["mean"], row["n"], row["undefined"]) == (figure.mean, figure.n, figure.undefined)
        assert (row["low"], row["high"]) == (figure.ci95 or (None, None))
        assert (row["tie_low"], row["tie_high"]) == (figure.tie_range or (None, None))
        effects = {"vs_random_order": figure.vs_random_order, "vs_ideal_order": figure.vs_ideal_order}
        for name, of in effects.items():
            assert row[name] == (None if of is None else of.mean)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == ((of and of.ci95) or (None, None))
            assert row[f"{name}_p"] == (None if of is None else of.test.p)
            assert row[f"{name}_tie_mean"] == (None if of is None else of.tie_mean)
        compared = figure.vs_baseline
        for name in ("difference", "better", "worse", "holm_p", "p"):
            assert row[name] == (None if compared is None else getattr(compared, name))
        ends = (compared and compared.ci95) or (None, None)
        assert (row["difference_low"], row["difference_high"]) == ends
    assert table["known"].null_count() == table["bound_low"].null_count() == table.height


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
