"""What a page's tables get so that they fold: labels, roles, and how wide they have to be."""

from __future__ import annotations

from evenrank.results.page import make_foldable


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
