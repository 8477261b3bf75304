"""``evenrank rebalance``: what it writes and says, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank import read_run, write_run
from page_parts import unpacked
from small_audits import text_of
from small_rebalance import drawn

Command = Callable[..., Any]
RUN, GROUPS, QRELS = drawn(20, 15, 4, ties=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_run(RUN, tmp_path / "r.run")
    GROUPS.table.write_parquet(tmp_path / "s.parquet")
    lines = [f"{query} 0 {doc} {grade}\n" for query, doc, grade in QRELS.rows()]
    (tmp_path / "qrels").write_text("".join(lines))
    words = {"m": "he his", "f": "she her", "": "stone"}
    kinds = GROUPS.table.select(
        "doc_id", kind=pl.when(pl.col("count_m") > 0).then(pl.lit("m")).when(pl.col("count_f") > 0).then(pl.lit("f"))
        .otherwise(pl.lit(""))
    ).rows()  # fmt: skip
    (tmp_path / "c.tsv").write_text("".join(f"{doc}\t{words[kind]}\n" for doc, kind in kinds))
    (tmp_path / "l.csv").write_text("doc_id,group\n" + "".join(f"{doc},{kind or 'none'}\n" for doc, kind in kinds))
    (tmp_path / "ids").write_text("q1\nq2\n\nq3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_strength(folder: Path, evenrank: Command) -> None:
    done = evenrank("rebalance", "r.run", "--scores", "s.parquet", "--strength", "0.5", "--out", "new.run")
    assert done.status == 0, done.err
    assert "Effectiveness is unknown" in done.out.split("\n\n")[0]
    made = read_run("new.run")
    assert made.table["score"].to_list()[:3] == [15, 14, 13]
    card = json.loads(Path("new.run.card.json").read_text())["made_by"]
    assert (card["stage"], card["method"], card["strength"], card["depth"]) == ("rebalance", "neutral", 0.5, 100)
    assert card["tied"]["rows"] > 0
    assert card["tied"]["of"] == 300
    audit = evenrank("audit", "new.run", "--scores", "s.parquet", "--full")
    assert (
        f"new: rebalanced by neutral at strength 0.5; {card['tied']['rows']} of 300 rows were tied before" in audit.out
    )
    # Lexicon, labels and scores that say the same make the same run.
    for name, given in {"c": ["--collection", "c.tsv"], "l": ["--labels", "l.csv", "--neutral", "none"]}.items():
        assert evenrank("rebalance", "r.run", *given, "--strength", "0.5", "--out", f"{name}.run").status == 0
        assert read_run(f"{name}.run").table.equals(made.table)
    streamed = evenrank("rebalance", "r.run", "--scores", "s.parquet", "--strength", "0.5", "--out", "-", "--full")
    assert streamed.out == Path("new.run").read_text().replace(" new\n", " rebalanced\n")
    assert "neutral at strength 0.5" in streamed.err
    assert "tied with a neighbour in the run" in streamed.err


def test_a_bound(folder: Path, evenrank: Command) -> None:
    given = ["rebalance", "r.run", "--scores", "s.parquet", "--qrels", "qrels", "--method", "shift"]
    done = evenrank(*given, "--max-bias", "ARaB@10 <= 50%", "--out", "new.run", "--json", "new.json")
    assert done.status == 0, done.err
    values = json.loads(Path("new.json").read_text())
    assert 0 < values["strength"] < 1
    assert values["bounds"][0]["bound"] == "ARaB@10 <= 50%"
    assert {"nDCG@10", "ARaB@10"} <= values["figures"].keys()
    assert values["provenance"]["files"][0]["path"] == "r.run"
    assert values["offsets"].keys() == {"m", "f"}
    assert [(one["key"], one["subject"]) for one in values["findings"]] == [
        ("moved", "new"), ("changed", "new"), ("no_lean", "ARaB@10"), ("not_shown", "ARaB@10 <= 50%"),
    ]  # fmt: skip
    ids = evenrank(
        *given, "--min-utility", "nDCG@10 >= 90%", "--validation-queries", "ids", "--out", "i.run", "--json", "-"
    )
    assert json.loads(ids.out)["changes"]["queries"] == 17
    assert "3 queries (those given)" in " ".join(json.loads(ids.out)["notes"])


def test_the_page_draws_the_strengths(folder: Path, evenrank: Command) -> None:
    given = ["rebalance", "r.run", "--scores", "s.parquet", "--qrels", "qrels", "--max-bias", "ARaB@10 <= 50%"]
    done = evenrank(*given, "--out", "b&<b>.run", "--json", "f.json", "--report", "f.html")
    assert done.status == 0, done.err
    assert "report: f.html" in done.err
    page, values = Path("f.html").read_text(), json.loads(Path("f.json").read_text())
    assert [values["strengths"][name] for name in ("utility", "bias")] == ["nDCG@10", "ARaB@10"]
    plot = json.loads(unpacked(page, "plot-data"))
    rows = {row["name"]: row for layer in plot["layer"] for row in layer["data"]["values"] if "name" in row}
    for point in values["strengths"]["points"]:
        name = f"neutral {point['strength']:g}" if point["strength"] else "r.run"
        assert (rows[name]["utility"], rows[name]["bias"]) == (point["utility"], point["bias"])
        assert f"{point['utility']:.4f}" in text_of(page)
    assert "b&<b>" in rows
    assert "<b>.run" not in page


def test_a_bound_that_nothing_meets(folder: Path, evenrank: Command) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = evenrank(
        "rebalance", "r.run", "--scores", "s.parquet", "--max-bias", "NFaiRR@10 >= 2", "--out", "new.run", "--json", "j"
    )
    assert done.status == 1
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert "no strength of neutral reaches NFaiRR@10 >= 2" in done.err
    assert "nearest tried is NFaiRR@10" in done.err
    assert sorted(path.name for path in folder.iterdir()) == before


BAD = {
    "nothing to write": (["--strength", "0.5"], "expected --out: where to write the new run"),
    "no strength": (["--out", "o"], "expected --strength, --max-bias or --min-utility"),
    "an option of another method": (
        ["--strength", "1", "--out", "o", "--protected", "f"], "--protected needs --method fair"
    ),
    "keep without qrels": (["--min-utility", "nDCG@10 >= 9%", "--out", "o"], "--min-utility needs --qrels"),
    "an output that is an input": (["--strength", "1", "--out", "r.run"], "cannot be written: it is an input"),
    "a page that is an input": (
        ["--strength", "1", "--out", "o", "--report", "s.parquet"], "cannot be written: it is an input"
    ),
    "no queries in the file": (
        ["--max-bias", "ARaB@10 <= 1", "--out", "o", "--validation-queries", "blank"], "blank: expected ids of queries"
    ),
    "an unknown method": (["--method", "best", "--strength", "1", "--out", "o"], "--method: expected neutral, fair"),
    "a target that is no file": (["--strength", "1", "--out", "o", "--target", "nothing"], "--target: expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(folder: Path, evenrank: Command, name: str) -> None:
    arguments, message = BAD[name]
    (folder / "blank").write_text("\n \n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = evenrank("rebalance", "r.run", "--scores", "s.parquet", *arguments)
    assert done.status == 2, done.out
    assert message in done.err
    assert done.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
