"""Whose lean it is, in one sentence, and what the order does to it: adds, reduces, turns, or makes more neutral."""

from __future__ import annotations

from dataclasses import replace

import pytest

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.data import Excess
from evenrank.auditing.about import origin_sentences, origins_title
from evenrank.measures import parse_measure
from small_audits import run
from small_origins import LEAN, NEUTRAL, excess, told, with_differences
from small_reports import small_audit

UP = excess([0.05, 0.06, 0.07], 0.05, (0.01, 0.11), 0.01)
DOWN = excess([-0.05, -0.06, -0.07], 0.1, (-0.11, -0.01), 0.01)


@pytest.fixture(scope="module")
def base() -> AuditResult:
    return small_audit()


def words(base: AuditResult, added: Excess) -> list[str]:
    return origin_sentences(with_differences(base, {"old": (added, None)})["old"], parse_measure(LEAN))


def unclear(of: Excess) -> Excess:
    return replace(of, test=told(of.mean, (-0.1, 0.2), 0.4))


def candidates(of: Excess, leans: bool) -> Excess:
    """The difference of candidates that are shown to lean, or not."""
    return replace(of, leans=told(of.reference, None, 0.01 if leans else 0.4))


@pytest.mark.parametrize(
    ("added", "leans", "expected"),
    [
        (UP, True, "The ranker adds to the lean of its candidates."),
        (DOWN, True, "The candidates lean; the ranker reduces it."),
        (replace(DOWN, reference=0.02), True, "The candidates lean; the ranker turns it to the other side."),
        (unclear(UP), True, "The candidates lean; the ranker is not shown to add to it."),
        (UP, False, "Its candidates are not shown to lean; the ranker adds a lean."),
        (DOWN, False, "Its candidates are not shown to lean, and its order leans less than they do."),
        (
            replace(UP, tied=told(0.0, None, 0.9)),
            True,
            "The candidates lean; what its ranker does to that depends on the",
        ),
        (replace(UP, tied=told(0.5, None, 0.01)), True, "The ranker adds to the lean of its candidates."),
    ],
)
def test_whose_lean_it_is(base: AuditResult, added: Excess, leans: bool, expected: str) -> None:
    assert words(base, candidates(added, leans))[0].startswith(expected)


def test_neither_is_shown(base: AuditResult) -> None:
    result = with_differences(base, {"old": (candidates(unclear(UP), leans=False), None)})["old"]
    for p, expected in (
        (0.4, "Neither its candidates nor its order are shown to lean."),
        (
            0.01,
            "Whose lean that is, is not shown: neither that its candidates lean nor that its order adds to it.",
        ),
    ):
        figures = {LEAN: replace(result.figures[LEAN], lean=told(0.11, None, p))}
        assert origin_sentences(replace(result, figures=figures), parse_measure(LEAN))[0] == expected
    assert words(base, UP)[0].startswith("Its own candidates")


def test_what_the_order_does(base: AuditResult) -> None:
    assert "its order adds +0.060 [+0.010, +0.110] (p = 0.010)." in words(base, UP)[0]
    assert "its order reduces the lean of its candidates by 0.060 [0.010, 0.110] (p = 0.010)." in words(base, DOWN)[0]
    other = replace(UP, reference=-0.1)
    assert "its order reduces the lean of its candidates by 0.060 [0.010, 0.110]" in words(base, other)[0]
    turned = words(base, candidates(replace(DOWN, reference=0.02), leans=True))[1]
    assert "its order turns their lean to the other side: -0.060 [-0.110, -0.010]" in turned
    # Candidates that are not shown to lean have no side.
    assert "its order adds -0.060" in words(base, candidates(replace(DOWN, reference=0.02), leans=False))[1]


def test_more_and_less_neutral(base: AuditResult) -> None:
    own = base["old"]
    for added, expected in (
        (UP, "is more neutral than its candidates by 0.060 [0.010, 0.110] (p = 0.010)."),
        (DOWN, "is less neutral than its candidates by 0.060 [0.010, 0.110] (p = 0.010)."),
        (unclear(UP), "is not shown to be more or less neutral (+0.060 [-0.100, +0.200], p = 0.400)."),
    ):
        figures = {NEUTRAL: replace(own.figures[NEUTRAL], added=added, beyond_relevance=None)}
        said = origin_sentences(replace(own, figures=figures), parse_measure(NEUTRAL))
        assert len(said) == 1
        assert said[0].endswith(f"its order {expected}")


def test_the_mark_of_ties_is_explained(base: AuditResult) -> None:
    assert "~" not in origins_title(with_differences(base, {"old": (UP, None)}))
    tied = with_differences(base, {"old": (replace(UP, tied=told(0.5, None, None)), None)})
    assert "~ here: ties decide" in origins_title(tied)


def test_known_labels_show_the_counts_of_queries() -> None:
    lists = {str(q): ["m1", "f1", "n1"] for q in range(3)}
    turned = {query: docs[::-1] for query, docs in lists.items()}
    labels = {"m1": "m", "f1": "f", "n1": "none"}
    options = {"baseline": "a", "measures": "ARaB@2"}
    runs = {"a": run(lists), "b": run(turned)}
    known = evenrank.audit(runs, labels=labels, neutral="none", poles="m,f", **options).table(width=160)  # type: ignore[arg-type]
    assert "b/e/w" in known
    assert "with its interval" not in known
