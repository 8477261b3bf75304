"""The table that the benchmarks make: ratios, spreads and lines, and that performance.md shows what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import measure, table
from benchmarks.__main__ import PAGE_NAMES
from benchmarks.measure import Row


@pytest.mark.parametrize(
    ("row", "ratio"),
    [
        (Row("a", 2.0, "s", 8.0), 4.0),
        (Row("a", 8.0, "docs/s", 2.0), 4.0),
        (Row("a", 2.0, "MB", 8.0, compare="share"), 0.25),
        (Row("a", 2.0, "s", 8.0, compare="share"), 0.25),
        (Row("a", 0.5, "nDCG@10", 0.25, compare="difference"), 0.25),
        (Row("a", 0.5, "s"), None),
    ],
)
def test_what_a_ratio_is(row, ratio):
    assert row.ratio == ratio


def test_ratios_are_of_pairs_and_their_median_is_held_to_the_line() -> None:
    runs = [[Row("a", ours, "s", peer, least=3.0)] for ours, peer in ((1.0, 5.0), (2.0, 4.0), (1.0, 3.0))]
    (line,) = table.lines(runs)
    assert (line.ours, line.peer, line.ratio) == ((1.0, 1.0, 2.0), (3.0, 4.0, 5.0), (2.0, 3.0, 5.0))
    assert line.held
    assert table.markdown([line]).splitlines()[-1] == (
        "| a | 1.00 s (1.00–2.00) | 4.00 s (3.00–5.00) | 3.00 × (2.00–5.00) | ≥ 3.00: held |"
    )


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Row("a", 0.7, "s", most=0.7), "| a | 0.7 s | – | – | ≤ 0.7: held |"),
        (Row("a", 0.71, "s", most=0.7), "| a | 0.71 s | – | – | ≤ 0.7: missed |"),
        (Row("a", 2.9, "s", least=3.0), "| a | 2.90 s | – | – | ≥ 3.00: missed |"),
        (Row("a", 2.9, "s"), "| a | 2.90 s | – | – | – |"),
    ],
)
def test_a_line_without_a_peer_is_about_ours(row, shown):
    assert table.markdown(table.lines([[row]])).splitlines()[-1] == shown


def test_runs_with_different_rows_are_refused():
    with pytest.raises(ValueError, match="a: the runs have different rows"):
        table.lines([[Row("a", 1.0, "s")], [Row("b", 1.0, "s")]])


def test_data_is_made_once(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        measure.once(tmp_path, made.append)
    assert made == [tmp_path]


def test_the_page_shows_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEPT", "PAGE"):
        monkeypatch.setattr(table, name, tmp_path / name)
    monkeypatch.setattr(table, "machine", lambda: "a machine")
    table.PAGE.write_text(f"before\n{table.START}\nold\n{table.END}\nafter\n", encoding="utf-8")
    table.keep("scoring", table.lines([[Row("one", 1.0, "s")]]))
    table.keep("startup", table.lines([[Row("two", 3.0, "s")], [Row("two", 2.0, "s")]]))
    table.keep("scoring", table.lines([[Row("three", 4.0, "s")]]))
    table.write_page(["startup", "scoring"])
    text = table.PAGE.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "a machine; medians of 1 run or 2 runs" in text
    assert "old" not in text
    assert "one" not in text
    assert text.index("| two | 2.50 s (2.00–3.00) |") < text.index("| three | 4.00 s |")


def test_the_documented_table_is_the_kept_one() -> None:
    between = table.PAGE.read_text(encoding="utf-8").split(table.START)[1].split(table.END)[0]
    assert between.strip() == table.page(PAGE_NAMES)
