"""Published figures, tables, claims and pages of experiments, the command, and steps in other processes."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from evenrank.files import EvenrankError, InputError
from evenrank.papers import ibbr_paper, paper_page, run_experiment, work
from evenrank.papers.paper_page import Claim, ExperimentPage, Row, Statement, Table, Value, Verdict, bars, paired, plane

# --- what was published ----------------------------------------------------------------------------------------------


def test_published_figures_are_those_of_the_papers() -> None:
    row = paper_page.published("ibbr_table1")[3]
    assert (row["ibbr"], row["lambda"]) == ("TS", "best")
    assert paper_page.numbers(row, ["mrr", "delta_aprf_abs"]) == {"mrr": 0.17, "delta_aprf_abs": 0.001}
    bm25 = paper_page.published("ibbr_table2")[0]
    assert paper_page.numbers(bm25, ["mrr", "rab_5"]) == {"mrr": 0.107}
    assert paper_page.fact("sampling", "share_of_queries_fairer_than_AdvBert_mini") == 0.69


# --- tables ----------------------------------------------------------------------------------------------------------


def test_intervals_over_seeds_are_students_t() -> None:
    # Mean 2, standard deviation 1, t(.975, 2) = 4.3027: 4.3027 / sqrt 3 = 2.4842.
    value = Value.over_seeds([1.0, 2.0, 3.0])
    assert value.mean == 2.0
    assert value.ci95 == pytest.approx((2 - 2.4842, 2 + 2.4842), abs=1e-4)
    assert Value.over_seeds([0.4]).ci95 is None
    assert Value.over_seeds([None, float("nan")]).mean is None
    assert paired([2.0, 3.0], [1.0, 2.0]).ci95 == (1.0, 1.0)


def made_table() -> Table:
    rows = (
        Row(("<b>A</b>", "x"), {"mrr": Value(0.25, 5, "seeds", (0.2, 0.3))}, {"mrr": 0.164}),
        Row(("blind", ""), {"mrr": Value(None)}, control=True),
    )
    return Table("Table 1", "An <i>example</i>", ("model", "term"), {"mrr": "MRR"}, rows, ("A note.",))


def test_a_table_shows_measured_interval_published_and_n(tmp_path: Path) -> None:
    lines = made_table().text().splitlines()
    assert lines[2].split() == ["model", "term", "MRR", "n"]
    assert lines[4].split() == ["<b>A</b>", "x", "measured", "0.250", "5", "seeds"]
    assert lines[5].split() == ["95%", "[0.200,", "0.300]"]
    assert lines[6].split() == ["published", "0.164"]
    assert lines[7].split() == ["blind", "measured", "–", "–"]
    made_table().figures().csv(tmp_path / "t.csv")
    assert next(csv.DictReader((tmp_path / "t.csv").read_text().splitlines())) == {
        "model": "<b>A</b>", "term": "x", "column": "mrr", "mean": "0.25", "n": "5", "unit": "seeds",
        "low": "0.2", "high": "0.3", "published": "0.164",
    }  # fmt: skip


def test_the_page_escapes_and_loads_nothing() -> None:
    evil = "</script><script>alert(1)</script>"
    points = {evil: (Value(0.1), Value(0.2)), "none": (Value(0.3), Value(0.1)), "blind": (Value(0.2), Value(0.0))}
    drawing = plane("Plane", evil, points, "MRR", "bias", ("none", "blind"))
    differences = bars(
        "Figure 2", "t", pl.DataFrame({"query_id": [evil], "difference": [0.1]}), "difference", signs=("a", "b")
    )
    claim = Claim(Statement("ibbr", evil, evil, evil, evil), Verdict(False), evil)
    page = ExperimentPage(
        "ibbr", evil, evil, ((evil, evil),), (claim,), (made_table(),),
        (drawing, differences), (evil,),
    )  # fmt: skip
    text = page.html()
    assert evil not in text
    assert "<script>alert" not in text
    assert "An &lt;i&gt;example" in text
    assert 'content="default-src &#39;none&#39;; script-src ' in text
    assert "http://" not in text.split("data-charts")[0]
    assert "The dashed line from none to blind" in text
    assert "Not supported: " in text


class Steps(work.Trainings[str, int]):
    """Steps that leave their process's number in a file."""

    def leave(self, name: str) -> None:
        self.say(f"{self.settings} {name}")
        (self.folder / name).write_text(str(os.getpid()))

    def fail(self) -> None:
        raise InputError("qrels.txt", "no such file", line=3)


@pytest.mark.slow
def test_steps_ahead_are_done_in_other_processes_and_speak_here(tmp_path: Path) -> None:
    said: list[str] = []
    steps = Steps("made", tmp_path, said.append)
    with pytest.raises(EvenrankError, match=r"qrels\.txt, line 3: no such file"):
        steps.ahead([("leave", ("a",)), ("leave", ("b",)), ("leave", ("a",)), ("fail", ())], 2)
    assert said == ["made a", "made b"]
    assert str(os.getpid()) not in {(tmp_path / name).read_text() for name in "ab"}
    steps.ahead([("leave", ("d",)), ("leave", ("e",))], 1)
    assert not (tmp_path / "d").exists()


def test_a_destroyed_ranker_is_named_first() -> None:
    row = Row(("AdvBert", "TS"), {"mrr": Value(0.1, 5)}, warning="MRR 0.1 is below the first stage's 0.4")
    table = Table("Table 1", "t", ("model", "term"), {"mrr": "MRR"}, (row, row))
    page = ExperimentPage("ibbr", "The title", "s", (("seeds", "0, 1"),), (), (table,), (), ())
    warning = "AdvBert TS †: MRR 0.1 is below the first stage's 0.4."
    assert [one.text for one in page.findings if one.place == "warning"] == [warning]
    assert page.table().splitlines()[1] == warning
    full = page.table(full=True).splitlines()
    assert "The title" in full
    assert "seeds: 0, 1" in full
    assert any(line.startswith("AdvBert † ") for line in full)
    assert page.to_dict()["warnings"] == [warning]
    assert page.html().index("is below the first stage") < page.html().index('id="claims"')


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenrank.cli import app

    page = ExperimentPage("ibbr", "t", "s", (), (), (made_table(),), (), ())
    monkeypatch.setattr(ibbr_paper, "run", lambda settings, folder, say, jobs: page)
    done = CliRunner().invoke(app, ["experiment", "ibbr", "--seeds", "2", "--full", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "published" in done.output
    assert {file.name for file in tmp_path.iterdir()} == {"results.json", "table_1.csv", "report.html"}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [("x", {}, "expected one of"), ("ibbr", {"scale": "big"}, "`scale`"), ("ibbr", {"seeds": 0}, "`seeds`")],
)
def test_mistakes_are_told(name: str, settings: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=message):
        run_experiment(name, out=tmp_path, **settings)  # type: ignore[arg-type]


def test_what_the_figures_of_a_row_are_over() -> None:
    seeds, queries = Value(0.5, 5, "seeds"), Value(0.5, 117, "queries")
    assert Row(("a",), {"x": seeds, "y": queries, "z": Value(None)}).n == "5 seeds, 117 queries"
    assert Row(("a",), {"x": queries, "y": Value(0.5, 12, "queries")}).n == "12–117 queries"
    assert Row(("a",), {"x": Value(0.5, 1, "queries")}).n == "1 query"
    assert Row(("a",), {"x": Value(None)}).n == "–"
