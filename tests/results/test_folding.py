"""What a page's tables get so that they fold: labels, roles, and how wide they have to be."""

from __future__ import annotations

import re

import pytest

from evenrank.results.page import STEPS, make_foldable


def table(head: list[str], *rows: str) -> str:
    heads = "".join(f"<th>{one}</th>" for one in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def test_each_figure_says_its_heading() -> None:
    page = make_foldable(table(["Run", "b &amp; &#34;c&#34;"], '<th scope="row">old</th><td>1</td>'))
    assert '<th role="rowheader" scope="row">old</th>' in page
    assert '<td role="cell" data-label="b &amp; &quot;c&quot;">1</td>' in page
    assert page.count('role="columnheader"') == 2
    # A row that is named by a number says what it is a number of.
    page = make_foldable(table(["from", "n"], "<th>0.2</th><td>1</td>"))
    assert '<th role="rowheader" data-label="from">0.2</th>' in page


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [(["1.5"] * 2, STEPS[0]), (["1.5"] * 10, 30), (["[0.1234, 0.5678]"] * 4, 27), (["1.5"] * 40, None)],
)
def test_the_width_is_that_of_the_longest_words(cells: list[str], wanted: int | None) -> None:
    page = make_foldable(table(["x"] * len(cells), "".join(f"<td>{cell}</td>" for cell in cells)))
    name = re.findall(r'<table role="table" class="(\S+) plain">', page)
    assert name == [f"fold-{wanted}" if wanted else "fold"]
