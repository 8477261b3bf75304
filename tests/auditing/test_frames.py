"""An audit's figures as data frames and dicts, from runs in every form."""

from __future__ import annotations

import json
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


def test_the_long_form(audit: evenrank.AuditResult) -> None:
    table = audit.to_polars()
    assert table.columns == [
        "run", "measure", "mean", "n", "undefined", "low", "high", "these_low", "these_high", "guess_alone", "known",
        "known_of", "bound_low", "bound_high",
        "tie_mean", "tie_low", "tie_high",
        "difference", "relative", "better", "equal", "worse", "holm_p", "p",
        "difference_low", "difference_high",
        "vs_random_order", "vs_random_order_low", "vs_random_order_high", "vs_random_order_p",
            "vs_random_order_tie_mean",
        "vs_ideal_order", "vs_ideal_order_low", "vs_ideal_order_high", "vs_ideal_order_p",
        "vs_ideal_order_tie_mean",
    ]  # fmt: skip
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
            assert (row[f"{name}_low"], row[f"{name}_high"]) == (
                (None, None) if of is None or of.ci95 is None else of.ci95
            )
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


def test_the_values_of_the_json(audit: evenrank.AuditResult) -> None:
    written = json.loads(audit.to_json())
    assert list(written)[:2] == ["evenrank", "schema"]
    assert audit.to_dict() == {name: value for name, value in written.items() if name in audit.to_dict()}
    assert set(audit.to_dict()) == {
        "settings",
        "baseline",
        "runs",
        "measures",
        "warnings",
        "notes",
        "words",
        "findings",
    }
    assert set(written) - set(audit.to_dict()) == {"evenrank", "schema", "provenance"}


def test_one_figure_by_name(audit: evenrank.AuditResult) -> None:
    assert audit["new", "ARaB@10"].mean == audit.to_dict()["runs"]["new"]["measures"]["ARaB@10"]["mean"]  # type: ignore[index]


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
    for result in found.runs:
        for figure in result.measures.values():
            assert figure.ci95 is None
            if figure.vs_baseline is not None:
                assert figure.vs_baseline.ci95 is None
                assert not figure.vs_baseline.no_loss
                assert figure.vs_baseline.p is None
    measures = found.to_dict()["runs"]["new"]["measures"]  # type: ignore[index]
    assert measures["nDCG@10"]["mean"] is not None
    assert measures["nDCG@10"]["ci95"] is None
    assert found.to_polars()["low"].null_count() == found.to_polars().height
    line = next(line for line in found.table(full=True, width=120).splitlines() if line.startswith("  new"))
    assert line.split()[2] == "–"
    assert "[" not in line.split("–")[0]
    assert "keeps" not in [one.key for one in found.findings]


def test_two_queries_have_one() -> None:
    two = RUNS["new"].filter(pl.col("query_id").is_in(["0", "1"]))
    qrels = QRELS.filter(pl.col("query_id").is_in(["0", "1"]))
    found = evenrank.audit(two, collection=TEXTS, qrels=qrels, measures="ARaB@10 DeltaAPRF")
    assert found["run", "ARaB@10"].ci95 is not None
    # One query of each pole: the difference between poles has none.
    assert found["run", "DeltaAPRF"].n == 2
    assert found["run", "DeltaAPRF"].ci95 is None
