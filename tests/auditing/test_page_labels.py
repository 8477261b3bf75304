"""The report on labels: what is known, and between which bounds a figure is; several groups; nothing silent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evenrank.auditing import AuditResult
from evenrank.auditing.tradeoff_plot import audit_plot
from page_parts import cells, data, section
from small_audits import text_of
from small_reports import GROUPS, labelled_audit

SHARES = [f"Share(group='{group}')@10" for group in GROUPS[:2]]


@pytest.fixture(scope="module")
def skipped() -> AuditResult:
    return labelled_audit("skip")


@pytest.fixture(scope="module")
def bounds() -> AuditResult:
    return labelled_audit()


def test_columns_without_unknown_or_with_bounds_alone(bounds: AuditResult, snapshot: Any) -> None:
    alone = labelled_audit(qrels=None, measures=" ".join(SHARES))
    pages = [bounds.html(), alone.html(), labelled_audit("skip", known=2).html()]
    assert [cells(section(page, "figures"))[0] for page in pages] == snapshot


def test_labels_of_the_first_ranks(skipped: AuditResult) -> None:
    page = skipped.html()
    assert cells(section(page, "labels"))[:2] == [
        ["Run", *GROUPS, "No group", "Unknown", "Documents"],
        ["old", "6 (25.0%)", "6 (25.0%)", "3 (12.5%)", "3 (12.5%)", "6 (25.0%)", "24"],
    ]


def test_bounds_alone_have_no_queries(bounds: AuditResult) -> None:
    page = bounds.html()
    held = data(page)
    measures = held["audit"]["measures"]
    assert [measure["perQuery"] for measure in measures] == [True, False, False, False]
    assert held["values"]["values"][1] == [None] * 5
    # The plot starts with a measure that has bounds.
    assert measures[held["charts"]["lean"]]["name"] == SHARES[0]


def test_terms_are_explained(skipped: AuditResult) -> None:
    page = skipped.html()
    terms = re.findall(r"<dt>(.+?)</dt>", section(page, "terms"))
    assert {"candidates", "label", "known"} <= set(terms)
    # The groups are labels, so nothing is said of words.
    assert not re.search(r"\bwords?\b|lexicon", text_of(page), re.IGNORECASE)


def test_bounds_alone_are_lines_in_the_plot(bounds: AuditResult) -> None:
    plot = audit_plot(bounds)
    drawn: Any = plot().specification
    rows = drawn["layer"][0]["data"]["values"]
    assert [row["ranking"] for row in rows] == ["old", "new", "candidates", "ideal"]
    for row in rows:
        # The bounds, and no point at a mean that does not exist.
        assert (row["bias"], row["bound_low"], row["bound_high"]) == (None, 0.25, 0.5)
        assert row["bias_text"] == "bounds [0.2500, 0.5000]"
