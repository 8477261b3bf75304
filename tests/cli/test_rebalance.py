"""``evenrank rebalance``: what it writes and says, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenrank import read_run, write_run
from page_parts import unpacked
from small_audits import text_of
from small_rebalance import drawn

RUN, GROUPS, QRELS = drawn(20, 15, 4, ties=True)
REBALANCE = ("rebalance", "r.run", "--scores", "s.parquet")


@pytest.fixture
def folder(given):
    place = given({
        "qrels": "".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in QRELS.rows()),
        "ids": "q1\nq2\n\nq3\n",
    })  # fmt: skip
    write_run(RUN, place / "r.run")
    GROUPS.table.write_parquet(place / "s.parquet")
    return place


def test_a_strength(folder, evenrank):
    done = evenrank(*REBALANCE, "--strength", "0.5", "--out", "new.run")
    assert done.status == 0, done.err
    assert "(not shown to differ). Effectiveness is unknown: " in " ".join(done.out.split("\n\n")[0].split())
    made = read_run("new.run")
    assert made.table["score"].to_list()[:3] == [15, 14, 13]
    card = json.loads(Path("new.run.card.json").read_text())["made_by"]
    assert (card["stage"], card["method"], card["strength"], card["depth"]) == ("rebalance", "neutral", 0.5, 100)
    assert card["tied"]["rows"] > 0
    assert card["tied"]["of"] == 300
    audit = evenrank("audit", "new.run", "--scores", "s.parquet", "--full")
    said = f"new: rebalanced by neutral at strength 0.5; {card['tied']['rows']} of 300 rows were tied before"
    assert said in audit.out
    streamed = evenrank(*REBALANCE, "--strength", "0.5", "--out", "-", "--full")
    assert streamed.out == Path("new.run").read_text().replace(" new\n", " rebalanced\n")
    assert "neutral at strength 0.5" in streamed.err
    assert "tied with a neighbour in the run" in streamed.err


def test_a_bound(folder, evenrank):
    given = [*REBALANCE, "--qrels", "qrels", "--method", "shift"]
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
    given += ["--min-utility", "nDCG@10 >= 90%", "--validation-queries", "ids", "--out", "i.run", "--json", "-"]
    values = json.loads(evenrank(*given).out)
    assert values["changes"]["queries"] == 17
    assert "3 queries (those given)" in " ".join(values["notes"])


def test_the_page_draws_the_strengths(folder, evenrank):
    given = [*REBALANCE, "--qrels", "qrels", "--max-bias", "ARaB@10 <= 50%", "--out", "b&<b>.run"]
    done = evenrank(*given, "--json", "f.json", "--report", "f.html")
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


def test_a_bound_that_nothing_meets(folder, evenrank):
    before = sorted(path.name for path in folder.iterdir())
    done = evenrank(*REBALANCE, "--max-bias", "NFaiRR@10 >= 2", "--out", "new.run", "--json", "j")
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert "no strength of neutral reaches NFaiRR@10 >= 2" in done.err
    assert "nearest tried is NFaiRR@10" in done.err
    assert sorted(path.name for path in folder.iterdir()) == before
