"""What an audit says of which figures: the finding's template, its level, and its words where they matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.comparison import unless_tied
from evenrank.auditing.data import OrderEffect
from evenrank.auditing.findings import _in_order, bias_change
from evenrank.measures import parse_measure
from evenrank.results.finding import Finding
from evenrank.stats.bounds import MeanBound, no_loss
from small_audits import run
from small_origins import LEAN, NEUTRAL, excess, told, with_differences
from small_reports import small_audit

UP = excess([0.05, 0.06, 0.07], 0.05, (0.01, 0.11), 0.01)
DOWN = excess([-0.05, -0.06, -0.07], 0.2, (-0.11, -0.01), 0.01)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


def changed(result: AuditResult, name: str, measure: str, **changes: Any) -> AuditResult:
    """The audit with other values in one figure; ``vs`` changes its comparison."""
    vs = changes.pop("vs", None)
    figure = replace(result[name].measures[measure], **changes)
    if vs is not None:
        figure = replace(figure, vs_baseline=replace(figure.vs_baseline, **vs))
    runs = [
        replace(one, measures={**one.measures, measure: figure}) if one.name == name else one for one in result.runs
    ]
    return replace(result, runs=tuple(runs))


def of(result: AuditResult, subject: str, *, place: str = "finding") -> list[Finding]:
    return [one for one in result.findings if one.subject == subject and one.place == place]


def keys(result: AuditResult, *places: str) -> list[str]:
    return [one.key for one in result.findings if one.place in places]


# --- is it better, is it biased --------------------------------------------------------------------------------------


def said(found: AuditResult, subject: str | None = None) -> str:
    """All that is said of an audit, or of one of its runs."""
    findings = [one for one in found.findings if subject in (None, one.subject)]
    return "\n".join(f"{one.place} {one.key} of {one.subject} ({one.level}): {one.text}" for one in findings)


def apart(mean: float, p: float | None, holm_p: float | None = None, **more: Any) -> dict[str, Any]:
    """A comparison with this difference and p."""
    test = replace(told(mean, (-0.3, 0.1), p), holm_p=p if holm_p is None else holm_p)
    return {"difference": None if p is None else mean, "test": test, "tied": None, **more}


@pytest.mark.parametrize(
    ("vs", "key", "level"),
    [
        (apart(-0.2, 0.001), "worse", "shown"),
        (apart(0.2, 0.001), "better", "shown"),
        (apart(-0.01, 0.3), "not_significant", "no difference shown"),
        (apart(0.2, 0.03, 0.06), "not_significant_corrected", "no difference shown"),
        (apart(0.0, None), "better_untold", "cannot be told"),
        (apart(0.2, 0.001, unequal_depth=True), "depth", "cannot be told"),
    ],
)
def test_what_is_said_of_a_difference_in_effectiveness(
    result: AuditResult, vs: dict[str, Any], key: str, level: str, snapshot: Any
) -> None:
    found = changed(result, "new", "nDCG@10", vs=vs)
    assert (found.findings[0].key, found.findings[0].level) == (key, level)
    assert said(found) == snapshot


HELD, LOST = no_loss(np.full(400, 0.5), np.full(400, 0.5)), no_loss(np.full(400, 0.3), np.full(400, 0.5))


@pytest.mark.parametrize(
    ("losses", "vs", "key"),
    [
        ((HELD,), {}, "no_loss"),
        ((LOST,), apart(-0.2, 0.001), "loss"),
        # Not of a difference that is not shown.
        ((LOST,), {}, "loss_possible"),
        ((HELD,), {"unequal_depth": True}, "loss_possible"),
        # What is shown over all orders of ties as well is said, else neither.
        ((HELD, LOST), {}, "loss_possible"),
        ((LOST, HELD), {}, "loss_possible"),
        ((), {}, None),
    ],
)
def test_a_loss_is_ruled_out_only_where_it_is_tested(
    result: AuditResult, losses: tuple[MeanBound, ...], vs: dict[str, Any], key: str | None
) -> None:
    asked = changed(result, "new", "nDCG@10", vs={**vs, "losses": losses})
    of_loss = {"no_loss", "loss", "loss_possible"}
    assert of_loss & set(keys(replace(asked, settings={**result.settings, "margin": 0.05}), "answer")) == {key} - {None}
    # Nobody asked.
    assert not of_loss & set(keys(result, "answer"))


@pytest.mark.parametrize(("queries", "key"), [(50, "loss_possible"), (95, "no_loss")])
def test_no_loss_is_said_from_so_many_queries_on(queries: int, key: str) -> None:
    """Two runs whose nDCG is 1 or .6309, which exchange it in two queries: 50 are too few and 95 enough."""
    lists = {str(q): {"a": 2.0, "b": 1.0} for q in range(queries)}
    qrels = {query: {"ab"[int(query) % 2]: 1} for query in lists}
    other = {**lists, **{query: {"a": 1.0, "b": 2.0} for query in "01"}}
    settings: dict[str, Any] = {"qrels": qrels, "query_clusters": "none", "baseline": "old", "measures": "nDCG@10"}
    assert evenrank.audit({"old": lists, "new": other}, margin=0.05, **settings).findings[1].key == key
    same = evenrank.audit({"old": lists, "new": lists}, **settings).findings[0]
    assert (same.key, same.text) == ("equally_good", "new and old have the same nDCG@10 in every query.")


def test_measures_that_disagree_are_named() -> None:
    """The relevant document moves to the third rank, of 40 queries from the fourth and of 40 from the second."""

    def one(rank: int) -> dict[str, float]:
        return {("r" if place == rank else f"d{place}"): 10.0 - place for place in range(1, 7)}

    runs = {"old": {f"q{q}": one(4 if q < 40 else 2) for q in range(80)}, "new": {f"q{q}": one(3) for q in range(80)}}
    qrels = {query: {"r": 1} for query in runs["old"]}
    audit = evenrank.audit(runs, qrels=qrels, query_clusters="none", baseline="old", measures="RR@10 R@3")
    assert keys(audit, "answer") == ["worse", "also_better"]
    assert audit.findings[1].text.startswith("R@3: +.500 [")


def test_what_missing_queries_decide_is_not_said() -> None:
    """The runs differ in those queries alone that one of them lacks."""
    lists = {f"q{q}": {"r": 2.0, "d": 1.0} for q in range(60)}
    runs = {"old": {query: docs for query, docs in lists.items() if int(query[1:]) < 30}, "new": lists}
    settings: dict[str, Any] = {"query_clusters": "none", "baseline": "old", "measures": "nDCG@10"}
    audit = evenrank.audit(runs, qrels={query: {"r": 1} for query in lists}, **settings)
    assert keys(audit, "answer") == ["better_untold"]


def test_runs_are_put_in_the_order_of_their_common_queries() -> None:
    """Of the first 40 queries b leans less than a; it lacks the others, where nothing leans."""
    a = run({f"q{q}": ["m", "n"] if q < 40 else ["n"] for q in range(80)})
    b = run({f"q{q}": ["n", "m"] for q in range(40)})
    c = run({f"q{q}": ["m", "n"] if q % 2 else ["n", "m"] for q in range(80)})
    audit = evenrank.audit({"a": a, "b": b, "c": c}, labels={"m": "m", "n": "f"}, measures="ARaB@1 ARaB@2")
    (text,) = [one.text for one in audit.findings if one.place == "warning"]
    assert text == "The runs are compared on the 40 of 80 queries that every run has."
    (order,) = [one.text for one in audit.findings if one.place == "answer" and one.text.startswith("ARaB@1")]
    assert order == "ARaB@1, from most female to most male: b < c = a (=: not shown to differ)."


def test_how_many_queries_would_rule_a_loss_out(result: AuditResult) -> None:
    """Where it is possible: 1 of 1/(.05 · .5) = 40 queries that loses everything is a loss of 5%."""
    base = np.full(40, 0.5)
    vs = {"test": told(-0.01, None, 0.3), "losses": (no_loss(base, base),), "baseline_mean": 0.5, "n": 40}
    audit = changed(changed(result, "old", "nDCG@10", values=base), "new", "nDCG@10", values=base, vs=vs)
    (note,) = of(replace(audit, settings={**audit.settings, "margin": 0.05}), "new", place="note")
    assert note.key == "to_rule_out"
    needed = next(n for n in range(2, 999) if no_loss(np.full(n, 0.5), np.full(n, 0.5)).p_holds() <= 0.05)
    assert f"takes about {needed} queries" in note.text
    assert note.text.endswith("there are 40.")


def of_bias(difference: float, p: float | None, size: float = -1.0, size_p: float | None = -1.0) -> dict[str, Any]:
    return apart(difference, p, sizes=told(size, None, p if size_p == -1.0 else size_p)) | {"difference": difference}


NOTHING, LESS = of_bias(0.1, 0.4), of_bias(-0.3, 0.01)


@pytest.mark.parametrize(
    ("lean", "neutral", "expected"),
    [
        (NOTHING, NOTHING, ["lean_alike"]),
        (LESS, NOTHING, ["leans_less_than"]),
        (LESS, of_bias(0.3, 0.01), ["more_neutral", "leans_less_than"]),
        (of_bias(-0.3, 0.01, 0.2), NOTHING, ["leans_more_than"]),
        # What is shown stands first.
        (NOTHING, of_bias(-0.3, 0.01), ["less_neutral", "lean_alike"]),
        # Two leans to either side: which is larger is not shown.
        (of_bias(-0.3, 0.01, -0.01, 0.4), NOTHING, ["lean_differs"]),
        (LESS | {"unequal_depth": True}, NOTHING, []),
        (of_bias(0.1, None), of_bias(0.1, None), ["difference_untold"]),
    ],
)
def test_a_difference_in_bias_is_said_in_the_words_of_the_measure(
    result: AuditResult, lean: dict[str, Any], neutral: dict[str, Any], expected: list[str], snapshot: Any
) -> None:
    """Leans by the sizes of signed measures, others by their sign; what is not shown, of the first measure alone."""
    both = changed(changed(result, "new", LEAN, vs=lean), "new", NEUTRAL, vs=neutral)
    assert [one.key for one in of(both, "new")][1:] == expected
    assert said(both, "new") == snapshot


def test_a_better_side_is_each_measures_own(result: AuditResult) -> None:
    compared = result["new", NEUTRAL].vs_baseline
    shown = replace(compared, difference=-0.1, test=replace(told(-0.1, None, 0.01), holm_p=0.01), tied=None)
    assert bias_change(parse_measure("NFaiRR@10"), shown) == "more"
    assert bias_change(parse_measure("NDKL@10"), shown) == "less"


# --- several runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        ([], ("none_apart", "")),
        ([("a", "c"), ("b", "c")], ("ranked_with_equals", "a = b < c")),
        ([("a", "b"), ("a", "c"), ("b", "c")], ("ranked", "a < b < c")),
        # a and c differ, but neither from b: no order says that.
        ([("a", "c")], ("ranked_in_part", "a < c")),
        ([("a", "b"), ("a", "c")], ("ranked_with_equals", "a < b = c")),
    ],
)
def test_an_order_says_no_more_than_its_pairs(apart: list[tuple[str, str]], expected: tuple[str, str]) -> None:
    both = {*apart, *((b, a) for a, b in apart)}
    assert _in_order(["a", "b", "c"], both, {name: name for name in "abc"}) == expected


def test_what_ties_decide_is_not_shown_anywhere() -> None:
    test = replace(told(0.2, None, 0.001), holm_p=0.003)
    assert unless_tied(test, None) == unless_tied(test, told(0.1, None, 0.01)) == test
    for tied in (told(0.0, None, 0.8), told(-0.2, None, 0.001)):
        found = unless_tied(test, tied)
        assert (found.verdict, found.p, found.reason) == (
            "cannot be told",
            None,
            "it depends on the order of tied documents",
        )
    # What is not shown in this order cannot be shown by ties.
    none = told(0.1, None, 0.4)
    assert unless_tied(none, told(0.2, None, 0.001)) == none


# --- whose lean it is ------------------------------------------------------------------------------------------------


def lean(base: AuditResult, mean: float, p: float | None, added: OrderEffect | None, leans: float | None) -> Finding:
    """What is said of a lean with this p, where the candidates' lean has the p ``leans``."""
    if added is not None:
        added = replace(added, leans=told(added.reference, None, leans))
    audit = with_differences(base, {} if added is None else {"old": (added, None)})
    audit = changed(audit, "old", LEAN, mean=mean, lean=told(mean, (mean - 0.1, mean + 0.1), p))
    return of(audit, "old")[0]


@pytest.mark.parametrize(
    ("mean", "p", "added", "leans", "key"),
    [
        (0.11, 0.01, UP, 0.01, "leans_more"),
        (0.14, 0.01, DOWN, 0.01, "leans_less"),
        (0.11, 0.01, replace(UP, test=told(0.06, None, 0.4)), 0.01, "leans_as_candidates"),
        (0.11, 0.01, UP, 0.4, "leans_by_order"),
        (0.11, 0.01, replace(UP, test=told(0.06, None, 0.4)), 0.4, "leans_whose"),
        (-0.04, 0.01, replace(DOWN, reference=0.02), 0.01, "leans_turned"),
        (0.11, 0.01, None, None, "leans_alone"),
        (0.02, 0.7, UP, 0.01, "no_lean_but_candidates"),
        (0.02, 0.7, UP, 0.4, "no_lean_by_order"),
        (0.02, 0.7, replace(UP, test=told(0.06, None, 0.4)), 0.01, "no_lean_as_candidates"),
        (0.02, 0.7, replace(UP, test=told(0.06, None, 0.4)), 0.4, "no_lean"),
        (0.02, None, UP, 0.4, "lean_untold"),
    ],
)
def test_whose_lean_it_is(
    result: AuditResult,
    mean: float,
    p: float | None,
    added: OrderEffect | None,
    leans: float | None,
    key: str,
    snapshot: Any,
) -> None:
    found = lean(result, mean, p, added, leans)
    assert (found.key, found.text) == (key, snapshot)
    assert found.level == ("cannot be told" if p is None else "shown" if p < 0.05 else "no difference shown")


@pytest.mark.parametrize(
    ("beyond", "expected"),
    [
        (UP, [("lean_beyond", "shown")]),
        (DOWN, [("lean_by_relevance", "no difference shown")]),
        (replace(UP, test=told(0.06, None, None)), [("lean_by_relevance", "cannot be told")]),
        # It may lean to the other side: a lean of .11 against one of −.2.
        (excess([0.3, 0.31, 0.32], -0.2, (0.2, 0.4), 0.01), [("lean_beyond", "shown")]),
    ],
)
def test_whether_an_ideal_ranking_leans_as_far(
    result: AuditResult, beyond: OrderEffect, expected: list[tuple[str, str]], snapshot: Any
) -> None:
    added = replace(UP, leans=told(UP.reference, None, 0.01))
    audit = with_differences(result, {"old": (added, beyond)})
    audit = changed(audit, "old", LEAN, mean=0.11, lean=told(0.11, (0.01, 0.21), 0.01))
    assert [(one.key, one.level) for one in of(audit, "old")] == [("leans_more", "shown"), *expected]
    assert said(audit, "old") == snapshot


# --- several groups --------------------------------------------------------------------------------------------------


_GROUPS = {f"d{place}": group for place, group in enumerate("aaaaabbbbbcccccddddd")}


def listing(order: list[str] | str) -> dict[str, dict[str, float]]:
    """Forty lists of the documents, those of the groups in this order; or of these documents, then of the others."""
    of_groups = [doc for group in order for doc, of in _GROUPS.items() if of == group]
    ranked = of_groups or [*order, *(doc for doc in _GROUPS if doc not in order)]
    return {f"q{q}": {doc: 20.0 - place for place, doc in enumerate(ranked)} for q in range(40)}


def test_two_runs_that_show_other_groups() -> None:
    """Their AWRF against the candidates is the same, their groups are not."""
    measures = "AWRF(target='candidates')@10 " + " ".join(f"Share(group='{group}')@10" for group in "abcd")
    runs = {"one": listing("abcd"), "two": listing("cdab")}
    found = evenrank.audit(runs, labels=_GROUPS, baseline="one", measures=measures)
    (said,) = [one for one in found.findings if one.key == "more_and_fewer_than_baseline"]
    assert said.text == "It shows more of c and d, and less of a and b, than one."
    against = {(one.run, one.group): one.vs_baseline for one in found.shares}
    assert against["one", "a"] is None
    assert against["two", "a"].mean == pytest.approx(-0.5)


@pytest.mark.parametrize(("without_c", "counts"), [(False, (2, 2, 0)), (True, (0, 0, 1))])
def test_a_lean_by_relevance_and_a_group_beyond_it(without_c: bool, counts: tuple[int, int, int]) -> None:
    """An ideal ranking has all five of a first, these runs four; but it has no more of c than of b or d."""
    lists = listing([f"d{place}" for place in (0, 1, 2, 3, 10, 11, 12, 13, 15, 16, 4)])
    settings: dict[str, Any] = {"poles": "a,b", "query_clusters": "none"}
    settings["qrels"] = {query: dict.fromkeys((f"d{n}" for n in range(5)), 1) for query in lists}
    shares = "" if without_c else " ".join(f" Share(group='{group}')@10" for group in "abcd")
    labels = {doc: "b" if group == "c" and without_c else group for doc, group in _GROUPS.items()}
    found = evenrank.audit({"one": lists, "two": lists}, labels=labels, measures=f"ARaB@10{shares}", **settings)
    found_keys = [one.key for one in found.findings]
    assert tuple(map(found_keys.count, ("lean_by_relevance", "groups_beyond", "none_beyond"))) == counts
