"""What cannot be read on a page: at the width of a phone, a tablet and a desktop, and on a sheet of A4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTHS = (390, 768, 1280)
PAPER = 703
"""A4's 210 mm less the margins of 12 mm, in pixels."""

DRAWN = """() => [...document.querySelectorAll('.chart')].every(
    chart => chart.querySelector('svg.marks, .chart, .hint'))"""

ALL_COLUMNS = """() => document.querySelectorAll('.scroll + button[aria-expanded=false]:not([hidden])').forEach(
    button => button.click())"""

OPEN = "open => document.querySelectorAll('details').forEach(one => { one.open = open; })"

CHECK = Path(__file__).with_name("reaching.js").read_text(encoding="utf-8").strip()
"""What is wrong with the page as it is; with true, as it is printed."""


def unreachable(page: Any) -> list[str]:
    """The texts of an open page that cannot be read without scrolling sideways, each with the width it is so at."""
    page.evaluate(OPEN, True)
    page.wait_for_function(DRAWN)
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{width}: {problem}" for problem in _problems(page, False)]
    # What a reader has not opened is printed nevertheless.
    page.evaluate(OPEN, False)
    page.set_viewport_size({"width": PAPER, "height": 900})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    found += [f"print: {problem}" for problem in _problems(page, True)]
    page.emulate_media(media="screen")
    return found


def _problems(page: Any, printed: bool) -> list[str]:
    """Those that stay: charts are drawn, and columns left out, a moment after the width has changed."""
    found: list[str] = []
    for _ in range(20):
        if not printed:
            page.evaluate(ALL_COLUMNS)
        found = page.evaluate(CHECK, printed)
        if not found:
            break
        page.wait_for_timeout(100)
    return found
