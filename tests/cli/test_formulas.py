"""Ids that a spreadsheet takes for formulas, and ids that steer a terminal."""

from __future__ import annotations

import polars as pl
import pytest

from evenrank.files.outputs import for_spreadsheets

ODD = {
    "c": "d1\tshe\nd2\the\n",
    "q": "=1+1\tshe\n\x1b[31mq\twhere\n",
    "r": "=1+1 Q0 d1 1 2 t\n=1+1 Q0 d2 2 1 t\n\x1b[31mq Q0 d1 2 1 t\n\x1b[31mq Q0 d2 1 2 t\n",
    "v": "she 1 0\nhe 0 1\n",
}


def test_cells_that_a_spreadsheet_takes_for_formulas():
    formulas = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "\uff1da", "-1+cmd"]
    others = ["-1", "+1.5", "-1e3", "a=1", "", None]
    made = for_spreadsheets(pl.DataFrame({"id": formulas + others, "n": [-1] * 14}))
    assert made["id"].to_list() == [f"'{cell}" for cell in formulas] + others
    assert made["n"].to_list() == [-1] * 14


def test_formulas_in_the_values_of_queries(given, evenrank):
    folder = given(ODD)
    assert evenrank("audit", "@2=r", "r", "--collection", "c", "--per-query", "x.csv").status == 0
    assert "\x1b" not in (folder / "x.csv").read_text()
    cells = [line.split(",")[:2] for line in (folder / "x.csv").read_text().splitlines()[1:]]
    assert ["'=1+1", "'@2"] in cells
    assert ["'=1+1", "r"] in cells
    assert not any(cell.startswith(("=", "+", "@")) for row in cells for cell in row)


@pytest.mark.parametrize(
    "command",
    [
        "audit \x1b[31mr=r --collection c",
        "expand q --vectors v --stopwords none --out x",
        "rerank \x1b[31mr --model none --collection c --queries q --out x",
    ],
)
def test_no_id_steers_the_terminal(given, evenrank, command):
    given(ODD)
    ended = evenrank(*command.split())
    assert "[31m" in ended.out + ended.err
    assert "\x1b" not in ended.out + ended.err
