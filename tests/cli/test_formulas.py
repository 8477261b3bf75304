"""Ids that a spreadsheet takes for formulas, and ids that steer a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files.outputs import for_spreadsheets

Command = Callable[..., Any]


def test_cells_that_a_spreadsheet_takes_for_formulas() -> None:
    cells = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "\uff1da", "-1", "+1.5", "-1e3", "a=1", "", None, "-1+cmd"]
    made = for_spreadsheets(pl.DataFrame({"id": cells, "n": [-1] * len(cells)}))
    neutral = [
        "'=1+1",
        "'+a",
        "'-a",
        "'@a",
        "'\ta",
        "'\ra",
        "'\uff1da",
        "-1",
        "+1.5",
        "-1e3",
        "a=1",
        "",
        None,
        "'-1+cmd",
    ]
    assert made["id"].to_list() == neutral
    assert made["n"].to_list() == [-1] * len(cells)


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ids that are formulas, and that steer a terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").write_text("d1\tshe\nd2\the\n")
    (tmp_path / "q").write_text("=1+1\tshe\n\x1b[31mq\twhere\n")
    (tmp_path / "r").write_text("=1+1 Q0 d1 1 2 t\n=1+1 Q0 d2 2 1 t\n\x1b[31mq Q0 d1 2 1 t\n\x1b[31mq Q0 d2 1 2 t\n")
    (tmp_path / "v").write_text("she 1 0\nhe 0 1\n")
    return tmp_path


def test_formulas_in_the_values_of_queries(odd: Path, evenrank: Command) -> None:
    assert evenrank("audit", "@2=r", "r", "--collection", "c", "--per-query", "x.csv").status == 0
    assert "\x1b" not in (odd / "x.csv").read_text()
    cells = [line.split(",")[:2] for line in (odd / "x.csv").read_text().splitlines()[1:]]
    assert ["'=1+1", "'@2"] in cells
    assert ["'=1+1", "r"] in cells
    assert ["'=1+1", "=1+1"] not in cells
    assert not any(cell.startswith(("=", "+", "@")) for row in cells for cell in row)


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "\x1b[31mr=r", "--collection", "c"],
        ["expand", "q", "--vectors", "v", "--stopwords", "none", "--out", "x"],
        ["rerank", "\x1b[31mr", "--model", "none", "--collection", "c", "--queries", "q", "--out", "x"],
    ],
)
def test_no_id_steers_the_terminal(odd: Path, evenrank: Command, command: list[str]) -> None:
    ended = evenrank(*command)
    assert "[31m" in ended.out + ended.err
    assert "\x1b" not in ended.out + ended.err
