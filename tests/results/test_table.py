"""Tables, against a slow and obvious renderer, and by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evenrank.results.table import (
    COUNT,
    TEXT,
    Column,
    Format,
    P,
    Table,
    differences,
    digits,
    intervals,
    percents,
    with_interval,
)
from page_parts import cells as cells_of

NAMES = st.text(st.characters(exclude_categories=("C", "Z", "M"), exclude_characters="−"), max_size=12)
NUMBERS = st.none() | st.floats(-1e6, 1e6)
ROWS = st.lists(st.tuples(NAMES, NUMBERS, st.none() | st.integers(0, 10**6), NAMES), min_size=1, max_size=6)
COLUMNS = (Column("name"), Column("mean", digits(3), "Mean"), Column("n", COUNT), Column("last", TEXT, "表"))


def slow_text(title: str, heads: list[str], rows: list[list[str]], left: set[int]) -> str:
    """Every cell beside the others, padded by single spaces until it is as wide as the widest of its column."""
    lines = [list(heads), *map(list, rows)]
    for column in range(len(heads)):
        while len({cell_len(line[column]) for line in lines}) > 1:
            widest = max(cell_len(line[column]) for line in lines)
            for line in lines:
                if cell_len(line[column]) < widest:
                    line[column] = f"{line[column]} " if column in left else f" {line[column]}"
    shown = ["  ".join(line) for line in lines]
    rule = "─" * cell_len(shown[0])
    return "\n".join([title, rule, shown[0].rstrip(), rule, *(line.rstrip() for line in shown[1:]), rule])


def slow_cells(row: tuple[object, ...]) -> list[str]:
    name, mean, n, last = row
    return [str(name), "–" if mean is None else digits(3).read(mean), "–" if n is None else f"{n:,}", str(last)]


@given(ROWS)
def test_text_html_and_frame_say_the_same(rows: list[tuple[object, ...]]) -> None:
    table = Table("Title", COLUMNS, rows)
    cells = [slow_cells(row) for row in rows]
    assert table.text() == slow_text("Title", ["name", "Mean", "n", "表"], cells, {0, 3})
    shown = cells_of(table.html())
    assert shown[0] == ["name", "Mean", "n", "表"]
    for found, wanted in zip(shown[1:], cells, strict=True):
        assert found == [wanted[0], wanted[1].replace("-", "−").replace("e−", "e-"), *wanted[2:]]
    assert table.frame().rows() == rows
    assert [tuple(record.values()) for record in table.records()] == rows


@given(ROWS, st.integers(40, 90))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[object, ...]], width: int) -> None:
    table = Table("", COLUMNS[:3], rows, group=lambda row: "A heading of several words, which is broken into lines")
    if table.fits(width):
        assert max(map(cell_len, table.text(width).splitlines())) <= width


@dataclass(frozen=True)
class Mean:
    mean: float
    ci95: tuple[float, float] | None
    p: float | None = None


@dataclass(frozen=True)
class Run:
    name: str
    of: Mean | None


RUNS = (Run("a", Mean(-0.25, (-0.5, 0.125), 0.0001)), Run("b", Mean(0.5, None)), Run("c", None))


def test_formats_and_paths_by_hand(tmp_path: Path) -> None:
    columns = (
        Column("name"),
        *with_interval("mean", "of", 2, "Mean", sign=True),
        Column("p", P, of="of.p", mark=lambda run: "*" if run.of and run.of.p else ""),
        Column("share", percents(1), of=lambda run: 0.5 if run.of else "none"),
        Column("secret", differences(1), of="of.mean"),
    )
    table = Table("", columns, RUNS)
    assert table.only("name", "mean", "mean_low", "p", "share").text().splitlines() == [
        "name   Mean            95%       p   share",
        "a     -0.25  [-0.50, 0.12]  <0.001*    50%",
        "b     +0.50              –       –     50%",
        "c         –              –       –    none",
    ]
    # A value too small for its digits is not 0.
    assert [digits(3).read(value) for value in (0.0004, 0.00003, 1e-10)] == ["0.0004", "3e-05", "0.000"]
    frame = table.frame()
    assert frame.columns == ["name", "mean", "mean_low", "mean_high", "p", "share", "secret"]
    assert frame.rows()[0] == ("a", -0.25, -0.5, 0.125, 0.0001, 0.5, -0.25)
    assert frame.rows()[2] == ("c", None, None, None, None, None, None)
    only = table.only("secret", "name").text().splitlines()
    assert only == ["secret  name", "  -0.2  a", "  +0.5  b", "     –  c"]
    table.csv(tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv").rows() == frame.rows()
    # A formula is a text.
    Table("", (Column("name"), Column("n", COUNT)), [("=1+1", 2)]).csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "name,n\n'=1+1,2\n"


def test_html_is_escaped_and_says_what_the_script_sorts_by() -> None:
    wide = Column(("low", "high"), intervals(1, wide=True), "<i>", mark=lambda row: "<", tag=lambda row: "-1 <b>")
    table = Table("<t>", (Column("name", note='"n"'), wide), [("<script>", (1.0, 4.0)), ("b", None)])
    page = table.html(sorts=True)
    assert 'data-sort="3.0"' in page
    assert '<td align="right" data-sort="">–' in page
    assert '<th scope="row" class="left" data-sort="&lt;script&gt;">&lt;script&gt;</th>' in page
    assert '<small class="tag">−1 &lt;b&gt;</small>' in page
    assert "<caption>&lt;t&gt;</caption>" in page
    assert 'title="&quot;n&quot;"' in page
    assert not any(evil in page for evil in ("<script>", "<i>", "<t>", "-1 <b>"))
    lines = Table("", (Column("name", Format(lambda value: f"{value}\n[x]", "count"), of=lambda row: 1),), [0]).html()
    assert "1<br><small>[x]</small>" in lines


def test_a_wrong_path_and_a_key_of_two_columns_are_mistakes() -> None:
    with pytest.raises(ValueError, match="two columns have one key: name, name"):
        Table("", (Column("name"), Column("name")), RUNS).frame()
    with pytest.raises(AttributeError):
        Table("", (Column("name"), Column("x", of="of.meen")), RUNS).text()
