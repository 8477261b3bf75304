"""Pages of experiments: tables, charts, what is said first, and the command that writes them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from evenrank.papers.figures import Figures
from evenrank.papers.report import Chart, Layout
from small_reports import small_experiment
from stub_study import StubStudy, in_place_of_ibbr


def test_a_table_shows_measured_interval_change_and_published(tmp_path: Path) -> None:
    ((layout, rows),) = small_experiment("MRR").layouts
    table = layout.table(rows)
    assert [column.title for column in table.columns] == ["system", "here", "", "MRR", "|bias|", "n"]
    assert table.rows == [
        ("MRR †", "MRR", "measured", "0.250", "–", "5 seeds"),
        ("", "", "95%", "[0.200, 0.300]", "–", ""),
        ("", "", "change", "-10.0%*", "–", ""),
        ("", "", "published", "0.164", "–", ""),
        ("blind", "", "measured", "–", "0.100", "117 queries"),
    ]
    assert table.notes == ("MRR †: MRR", "MRR")
    layout.figures_table(rows).csv(tmp_path / "t.csv")
    lines = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(lines) == 4
    assert lines[0] == {
        "system": "MRR", "here": "MRR", "figure": "MRR", "mean": "0.25", "low": "0.2", "high": "0.3", "n": "5",
        "unit": "seeds", "change": "-0.1", "holm_p": "0.03", "published": "0.164",
    }  # fmt: skip


def test_a_change_is_tested_against_its_baseline() -> None:
    rng, ids = np.random.default_rng(1), [f"q{query}" for query in range(12)]
    values = {"MRR": (base := rng.normal(0.4, 0.1, 12), base + rng.normal(0.03, 0.05, 12))}
    values["bias"] = rng.normal(-0.3, 0.1, 12), rng.normal(0.25, 0.1, 12)
    figures = Figures(True)
    for figure, of in values.items():
        for system, column in zip(("x base", "x new"), of, strict=True):
            figures.add(figure, system, 0, ids, column)
    changes = Layout("1", "", ("MRR", "|bias|"), against={" new": " base"})._changes(figures, "x new")
    (first, second), (negative, positive) = values.values()
    # Holm's correction doubles the lower p.
    p = 2 * stats.ttest_rel(first, second).pvalue
    assert changes["MRR"] == pytest.approx((second.mean() / first.mean() - 1, p))
    assert changes["|bias|"][0] == pytest.approx(-positive.mean() / negative.mean() - 1)
    assert changes["|bias|"][1] == pytest.approx(stats.ttest_rel(positive, -negative).pvalue, abs=0.02)


# --- charts ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def figures() -> Figures:
    found = Figures(True)
    for share in (0, 0.5, 1):
        for figure, mean in (("MRR", 0.5 - share / 10), ("bias", -share)):
            found.add(figure, f"BERT share {share:g}", 0, ["a", "b", "c"], mean + np.array([-0.01, 0.02, -0.01]))
    return found


def points(specification: Any) -> list[dict[str, Any]]:
    """The data of a chart, wherever they stand."""
    if isinstance(specification, dict):
        own = specification.get("values", []) if isinstance(specification.get("values"), list) else []
        return own + [one for value in specification.values() for one in points(value)]
    return [one for value in specification for one in points(value)] if isinstance(specification, list) else []


def test_a_plane_has_the_systems_that_its_patterns_name(figures: Figures) -> None:
    figures.add("MRR", "BM25", 0, ["a"], np.array([0.3]))
    (drawn,) = Chart("Plane", ("{model} share *", "BM25"), "MRR", "|bias|").drawings(figures, ["BERT"])
    assert drawn.title == "Plane, BERT"
    found = {one["system"]: one for one in points(drawn.specification)}
    # BM25 has no bias.
    assert list(found) == ["BERT share 0", "BERT share 0.5", "BERT share 1"]
    one = found["BERT share 1"]
    assert (one["x"], one["y"]) == pytest.approx((0.4, 1.0))
    assert one["xLow"] < 0.4 < one["xHigh"]
    assert not list(Chart("Plane", ("TK",), "MRR", "bias").drawings(figures, ["BERT"]))


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_json_tables_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.cli import app

    in_place_of_ibbr(monkeypatch, StubStudy)
    arguments = ["experiment", "ibbr", "--seeds", "1", "--jobs", "1", "--full", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "BERT-L2 none †: " in done.output
    assert "published" in done.output
    written = {"results.json", "report.html", "settings.json"}
    assert {file.name for file in tmp_path.iterdir() if file.suffix in (".json", ".html")} == written
    with (tmp_path / "table_1.csv").open(encoding="utf-8") as file:
        lines = {(line["system"], line["figure"]): line for line in csv.DictReader(file)}
    best = lines["BERT-L2 TS best", "MRR"]
    assert (float(best["mean"]), best["n"], best["published"]) == (0.5, "40", "0.17")
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (found["experiment"], found["scale"], found["seeds"]) == ("ibbr", "tiny", [0])
    assert [file["role"] for file in found["provenance"]["files"]][:1] == ["settings"]
    quiet = CliRunner().invoke(app, [*arguments, "--quiet"])
    assert "tiny alone" in done.output
    assert "tiny alone" not in quiet.output
