"""The table that the benchmarks make: ratios, spreads and lines, and that performance.md shows what was kept."""

from __future__ import annotations

from benchmarks import table
from benchmarks.__main__ import PAGE_NAMES
from benchmarks.measure import Row


def test_ratios_are_of_pairs_and_their_median_is_held_to_the_line() -> None:
    runs = [[Row("a", ours, "s", peer, least=3.0)] for ours, peer in ((1.0, 5.0), (2.0, 4.0), (1.0, 3.0))]
    (line,) = table.lines(runs)
    assert (line.ours, line.peer, line.ratio) == ((1.0, 1.0, 2.0), (3.0, 4.0, 5.0), (2.0, 3.0, 5.0))
    assert line.held
    assert table.markdown([line]).splitlines()[-1] == (
        "| a | 1.00 s (1.00–2.00) | 4.00 s (3.00–5.00) | 3.00 × (2.00–5.00) | ≥ 3.00: held |"
    )


def test_the_documented_table_is_the_kept_one() -> None:
    between = table.PAGE.read_text(encoding="utf-8").split(table.START)[1].split(table.END)[0]
    assert between.strip() == table.page(PAGE_NAMES)
