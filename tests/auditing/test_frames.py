"""An audit's figures as data frames and dicts, from runs in every form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ir_measures
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
    assert table.columns == snapshot
    assert table.height == 5 * 3
    for row in table.iter_rows(named=True):
        figure = audit[row["run"], row["measure"]]
        assert (row["mean"], row["n"], row["undefined"]) == (figure.mean, figure.n, figure.undefined)
        assert (row["low"], row["high"]) == (figure.ci95 or (None, None))
        assert (row["tie_low"], row["tie_high"]) == (figure.tie_range or (None, None))
        effects = {"vs_random_order": figure.vs_random_order, "vs_ideal_order": figure.vs_ideal_order}
        for name, of in effects.items():
            assert (of is not None) == (row["measure"] == "ARaB@10" and row["run"] in RUNS)
            assert row[name] == (None if of is None else of.mean)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == ((of and of.ci95) or (None, None))
            assert row[f"{name}_p"] == (None if of is None else of.test.p)
            assert row[f"{name}_tie_mean"] == (None if of is None else of.tie_mean)
        compared = figure.vs_baseline
        for name in ("difference", "better", "worse", "holm_p", "p"):
            assert row[name] == (None if compared is None else getattr(compared, name))
    whole = table.row(by_predicate=(pl.col("run") == "new") & (pl.col("measure") == "DeltaAPRF"), named=True)
    compared = audit["new", "DeltaAPRF"].vs_baseline
    assert compared is not None
    assert (whole["difference_low"], whole["difference_high"]) == (compared.ci95 or (None, None))
    assert table.filter(run="old")["difference"].null_count() == 3
    assert table["known"].null_count() == table["bound_low"].null_count() == table.height


def test_without_a_baseline_the_columns_stay() -> None:
    found = evenrank.audit(RUNS["old"], collection=collection(TEXTS), measures="ARaB@10").to_polars()
    assert found.schema["better"] == pl.Int64
    assert found.schema["difference"] == pl.Float64
    assert found["difference"].null_count() == found.height == 3


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


def test_runs_judgements_and_texts_in_every_form(tmp_path: Path) -> None:
    table = RUNS["new"]
    rows = list(table.iter_rows())
    nested: dict[str, dict[str, float]] = {}
    for query, document, score in rows:
        nested.setdefault(query, {})[document] = score
    evenrank.write_run(evenrank.Run.from_table(table), tmp_path / "run.run")
    runs: list[Any] = [
        tmp_path / "run.run", str(tmp_path / "run.run"), evenrank.Run.from_table(table), nested, table, table.lazy(),
        table.to_arrow(), [ir_measures.ScoredDoc(*row) for row in rows],
        (ir_measures.ScoredDoc(*row) for row in rows), iter([ir_measures.ScoredDoc(*row) for row in rows]),
    ]  # fmt: skip
    grades = {query: {document: grade} for query, document, grade in QRELS.iter_rows()}
    qrels: list[Any] = [QRELS, grades, [ir_measures.Qrel(*row) for row in QRELS.iter_rows()],
                        (ir_measures.Qrel(*row) for row in QRELS.iter_rows())]  # fmt: skip
    texts: list[Any] = [TEXTS, collection(TEXTS), collection(TEXTS).lazy()]
    same = evenrank.audit(table, collection=TEXTS, qrels=QRELS).to_polars()
    for given in runs:
        assert evenrank.audit(given, collection=TEXTS, qrels=QRELS).to_polars().equals(same)
    for given in qrels:
        assert evenrank.audit(table, collection=TEXTS, qrels=given).to_polars().equals(same)
    for given in texts:
        assert evenrank.audit(table, collection=given, qrels=QRELS, queries={query: f"who {query}" for query in QUERIES}
                              ).to_polars().equals(same)  # fmt: skip


def test_one_query_has_no_interval() -> None:
    one = {name: table.filter(query_id="0") for name, table in RUNS.items()}
    found = evenrank.audit(one, collection=TEXTS, qrels=QRELS.filter(query_id="0"), baseline="old")
    for figure in (figure for result in found.runs for figure in result.measures.values()):
        assert figure.ci95 is None
        compared = figure.vs_baseline
        assert compared is None or (compared.ci95, compared.no_loss, compared.p) == (None, None, None)
    assert found["new", "nDCG@10"].mean is not None
    assert found.to_polars()["low"].null_count() == found.to_polars().height
    line = next(line for line in found.table(full=True, width=120).splitlines() if line.startswith("  new"))
    assert line.split()[2] == "–"
    # What ties do to it is noted all the same.
    for tie, sensitive in ((1.0, True), (0.5, False)):
        tied = evenrank.audit({"q": {"m": 1.0, "f": tie, "n": 0.2}}, collection=TEXTS, measures="ARaB@1")
        assert tied["run", "ARaB@1"].tie_sensitive == sensitive
        assert any("order of tied documents" in note for note in tied.notes) == sensitive


def test_two_queries_have_one() -> None:
    two = RUNS["new"].filter(pl.col("query_id").is_in(["0", "1"]))
    qrels = QRELS.filter(pl.col("query_id").is_in(["0", "1"]))
    found = evenrank.audit(two, collection=TEXTS, qrels=qrels, measures="ARaB@10 DeltaAPRF")
    assert found["run", "ARaB@10"].ci95 is not None
    # One query of each pole: the difference between poles has none.
    assert found["run", "DeltaAPRF"].n == 2
    assert found["run", "DeltaAPRF"].ci95 is None
