"""Where the bias comes from, on the page and in a notebook: the figures that its tables and charts hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenrank.auditing import AuditResult
from evenrank.auditing.audit_page import render_page
from evenrank.auditing.selected_measures import ideal_adds
from page_parts import cells, data, section
from small_audits import text_of
from small_origins import LEAN, NEUTRAL, excess, told, with_differences
from small_reports import labelled_audit, small_audit

NAN = float("nan")
EVIL = "<img src=x onerror=alert(1)>'\""
ADDED = excess([0.1, 0.2, 0.6], 0.05, (0.1, 0.6), 0.03)
# Beyond relevance in two queries alone: an ideal ranking adds (0.2 − 0.1 + 0.6 − 0.7) / 2 there.
BEYOND = excess([NAN, 0.1, 0.7], 0.2, (0.1, 0.7), 0.0001)


@pytest.fixture(scope="module")
def base() -> AuditResult:
    return small_audit()


def rows(page: str, name: str) -> list[list[str]]:
    """The cells of the table of a section, its headings first."""
    return cells(section(page, name))


def charts(page: str) -> Any:
    return data(page)["charts"]


def test_the_table_of_differences(base: AuditResult, snapshot: Any) -> None:
    nothing = excess([0.0] * 3, 0.5, None, None)
    page = render_page(with_differences(base, {"old": (ADDED, BEYOND), "new": (nothing, None)}))
    # A figure is over the queries of its difference, which here is not that of the table of figures.
    assert rows(page, "origins") == snapshot
    ((first, second),) = charts(page)["origins"].values()
    assert (first["run"], second["run"]) == ("old", "new")
    assert first["marks"] == [
        ["added", 0.3, 0.1, 0.6, 0.03],
        ["ideal", pytest.approx(0.0, abs=1e-12), None, None, None],
        ["beyond", 0.4, 0.1, 0.7, 0.0001],
    ]
    assert second["marks"] == [["added", 0.0, None, None, None]]
    assert f"Left out, as no weighted sum: {NEUTRAL}." in " ".join(text_of(section(page, "origins")).split())


def test_what_an_ideal_ranking_adds(base: AuditResult) -> None:
    found = with_differences(base, {"old": (ADDED, excess([0.0, NAN, 0.1], 0.1, None, None))})
    assert ideal_adds(found["old", LEAN]) == pytest.approx((0.1 + 0.5) / 2)
    assert ideal_adds(found["new", LEAN]) is None
    nothing = with_differences(base, {"old": (ADDED, excess([0.0, NAN, NAN], 0.1, None, None))})
    assert ideal_adds(nothing["old", LEAN]) == pytest.approx(0.1)


def test_a_difference_that_ties_decide_is_marked(base: AuditResult) -> None:
    tied = replace(ADDED, tied=told(0.0, None, 0.9))
    page = render_page(with_differences(base, {"old": (tied, BEYOND)}))
    line = rows(page, "origins")[1]
    assert (line[4], line[8]) == ("+0.3000~", "+0.4000 of 2 queries")
    assert "The order of tied documents decides." in section(page, "origins")


def test_where_nothing_or_a_part_can_be_shown(base: AuditResult) -> None:
    page = render_page(with_differences(base, {"old": (ADDED, None)}))
    assert "No query has both a judgement and a value" in section(page, "origins")
    page = render_page(with_differences(base, {}))
    assert "No measure of bias in this audit can be taken apart" in section(page, "origins")
    assert "origins-chart" not in page.split("<script")[0]
    page = render_page(labelled_audit())
    assert "Only bounds are known: where in them a figure lies" in section(page, "origins")
    assert charts(page)["origins"] == {}
    page = render_page(with_differences(small_audit(qrels=None, measures=f"{NEUTRAL} {LEAN}"), {"old": (ADDED, None)}))
    assert "Without qrels it is unknown what an ideal ranking" in section(page, "origins")
    page = render_page(small_audit(measures="nDCG@10", collection=None))
    assert section(page, "origins") == ""


def test_names_are_escaped() -> None:
    names = (EVIL, "</script><b>")
    audit = small_audit(names)
    page = render_page(with_differences(audit, dict.fromkeys(names, (ADDED, BEYOND))))
    assert "<img" not in page.split("<script>")[0]
    assert [line[1] for line in rows(page, "origins")[1:]] == [*names]
    assert "<img" not in audit._repr_html_()
