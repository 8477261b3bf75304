"""The gate: outcomes, what is counted and warned of, and what each format shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import evenrank
from evenrank import EvenrankError, GateResult, gate
from evenrank.decide.rule_result import reason
from evenrank.results.finding import Finding
from evenrank.stats.compare import compare
from evenrank.stats.planning import queries_to_hold
from gate_audits import LEAN, NOISE, OLD, QUERIES, audit, one, rule

# --- outcomes ---------------------------------------------------------------------------------------------------------


def test_a_relative_margin_is_tested_without_a_ratio() -> None:
    data = audit({"nDCG@10": OLD - 0.02 + NOISE}, {"nDCG@10": OLD})
    found = one(data, rule(against="baseline", at_least="-2%"))
    new = OLD - 0.02 + NOISE
    kept = new - 0.98 * OLD
    assert found.value == pytest.approx(-0.02 + kept.mean() / OLD.mean())
    assert found.value == pytest.approx(new.mean() / OLD.mean() - 1)
    # Towards the margin with one query more that loses all, away from it by t (the values are hardly skewed).
    held = np.append(kept, -0.98)
    low = held.mean() - stats.t.ppf(0.97, QUERIES) * held.std(ddof=1) / (QUERIES + 1) ** 0.5
    half = stats.t.ppf(0.975, QUERIES - 1) * kept.std(ddof=1) / QUERIES**0.5
    assert found.limits[0] == pytest.approx(-0.02 + low / OLD.mean())
    assert found.limits[1] == pytest.approx(found.value + half / OLD.mean(), abs=0.1 * half)
    # 1 / (.02 · mean), and the numbers that show that equal runs and identical ones keep to the margin.
    equal, identical = ((NOISE + 0.02 * OLD).std(ddof=1), 0.02 * OLD.std(ddof=1))
    assert found.n_if_equal == queries_to_hold(0.02 * OLD.mean(), equal, 0.98)
    assert found.n_identical == queries_to_hold(0.02 * OLD.mean(), identical, 0.98)
    assert (found.against, found.n, found.left_out, found.outcome) == ("old", QUERIES, 0, "not shown")
    assert found.limits[0] < -0.02 < found.limits[1]
    assert found.queries_to_decide > QUERIES
    # The difference of one rule has the interval of the audit.
    compared = compare(NOISE - 0.02, zeros="keep")
    assert (found.difference.mean, *found.difference.ci95) == pytest.approx((compared.mean, *compared.ci95))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_budget_of_a_signed_measure_is_of_its_absolute_value(sign: int) -> None:
    values = {"ARaB@10": sign * (0.3 + LEAN), "DeltaAPRF": LEAN}
    found = gate(
        audit(values, values), budget={"rule": [{"measure": "ARaB@10", "at_most": bound} for bound in (0.2, 0.3, 0.4)]}
    )
    assert [ruling.outcome for ruling in found.rules] == ["violated", "not shown", "holds"]
    assert found.rules[0].value == pytest.approx(abs((0.3 + LEAN).mean()))
    assert found.rules[0].mean == pytest.approx(sign * (0.3 + LEAN).mean())
    assert found.rules[1].detectable > 0.3
    assert found.rules[1].power(found.rules[1].detectable) == pytest.approx(0.8, abs=0.01)
    # A lean to the other side is as good as none to the same.
    other = audit({"ARaB@10": -sign * (0.3 + LEAN)}, {"ARaB@10": sign * (0.3 + LEAN)})
    against = one(other, rule("ARaB@10", against="old", at_most=0.05))
    assert (against.outcome, against.detectable) == ("holds", None)
    # With its sign it is a shift of .6, which no limit on one to the other side stops.
    side, others = ("at_least", "at_most") if sign > 0 else ("at_most", "at_least")
    shift = one(other, rule("ARaB@10", against="old", signed=True, **{side: -sign * 0.5}))
    assert (shift.outcome, shift.value) == ("violated", pytest.approx(-sign * 0.6, abs=0.06))
    assert one(other, rule("ARaB@10", against="old", signed=True, **{others: sign * 0.1})).outcome == "holds"


def test_equal_values_decide_with_one_query_more_at_the_far_end() -> None:
    same = audit({"nDCG@10": OLD}, {"nDCG@10": OLD})
    # No number of queries shows that none is lost at all.
    assert one(same, rule(against="old", at_least=0)).outcome == "not shown"
    assert one(same, rule(against="old", at_least=-0.1)).outcome == "holds"
    # 60 queries .1 below it, and one as far above as can be, 1 − .1: t = (60 · .1 − .9)/(.1 + .9) = 5.1.
    of_ten = one(same, rule(against="old", at_least=0.1))
    assert (of_ten.outcome, of_ten.p_violated) == ("violated", pytest.approx(2 * stats.t.sf(5.1, 60)))
    signed = audit({"ARaB@10": LEAN}, {"ARaB@10": LEAN})
    assert one(signed, rule("ARaB@10", against="old", at_most=0.05)).outcome == "holds"
    assert one(signed, rule("ARaB@10", against="old", at_most=-0.01)).outcome == "violated"
    flat = audit({"RR@10": np.full(30, 0.5)})
    assert [one(flat, rule("RR@10", at_least=b)).outcome for b in (0.4, 0.5, 0.6)] == ["holds", "not shown", "violated"]


def test_parts_are_independent_samples() -> None:
    first, second = OLD[:20], OLD[20:] - 0.3
    parts = [[*first, *[None] * 40], [*[None] * 20, *second]]
    data = audit({"DeltaAPRF": OLD})
    data["runs"]["new"]["measures"]["DeltaAPRF"]["parts"] = parts
    found = one(data, rule("DeltaAPRF", at_most=0.1))
    assert found.value == pytest.approx(first.mean() - second.mean())
    assert (found.n, found.outcome) == (60, "violated")
    error = (first.var(ddof=1) / 20 + second.var(ddof=1) / 40) ** 0.5
    assert found.test.se == pytest.approx(error)


def test_several_violated_rules_are_corrected_and_what_holds_is_not() -> None:
    barely = OLD + NOISE - NOISE.mean() - 2.2 * NOISE.std(ddof=1) / QUERIES**0.5
    same = OLD + NOISE - NOISE.mean()
    data = audit(
        {"nDCG@10": barely, "RR@10": same, "NFaiRR@10": same}, dict.fromkeys(("nDCG@10", "RR@10", "NFaiRR@10"), OLD)
    )
    rules = [{"measure": m, "against": "old", "at_least": 0} for m in ("nDCG@10", "RR@10", "NFaiRR@10")]
    alone, corrected = (gate(data, budget={"rule": rules}, correction=c).rules[0] for c in ("none", "holm"))
    assert alone.p_violated == corrected.p_violated
    assert 0.05 / 3 < corrected.p_violated < 0.05
    assert corrected.holm_p == pytest.approx(3 * corrected.p_violated)
    assert (alone.outcome, corrected.outcome) == ("violated", "not shown")
    said = gate(data, budget={"rule": rules}).findings[1].text
    assert said.endswith("; it would be violated but for the correction for several rules.")
    assert corrected.detectable < alone.detectable


# --- what is named, and what is refused ------------------------------------------------------------------------------


LEANS = {"measure": "ARaB@10", "at_most": 0.2}
KEEPS = {"measure": "nDCG@10", "against": "old", "at_least": "-20%"}
EQUAL = audit({"nDCG@10": OLD[:20]}, {"nDCG@10": OLD[:20]})
EFFECTIVE = audit({"nDCG@10": OLD + NOISE, "ARaB@10": 0.3 + LEAN}, {"nDCG@10": OLD})


def apart(measure: str, new: Any, *, length: int = 10, known: int = 2) -> dict[str, Any]:
    """An audit whose old run has the values :data:`OLD`; lists of this length in the new one; 1 of 2 labels known."""
    data = audit({measure: new}, {measure: OLD})
    data["runs"]["new"]["lengths"] = [length] * QUERIES
    data["runs"]["old"]["measures"][measure]["known"] = {"rows": known, "of": 2}
    return data


def misleading() -> dict[str, Any]:
    warning = "Bias is meaningless here: no word."
    data = audit({"ARaB@10": LEAN}, {"ARaB@10": LEAN + 0.01}, warnings=[warning], notes=[warning, "Note."])
    data["runs"]["old"]["lengths"] = [9] * QUERIES
    return data


WIDE = OLD + 5 * NOISE - 0.01
SAID: dict[str, tuple[str, dict[str, Any], Any]] = {
    "equal files": ("not shown", EQUAL, rule(against="old", at_least="-3%")),
    "a share": ("not shown", apart("nDCG@10", OLD + NOISE), rule(against="old", at_least="-8%")),
    "a number": ("holds", apart("nDCG@10", OLD + NOISE), rule(against="old", at_least=-0.08)),
    "half": ("violated", apart("nDCG@10", OLD / 2), rule(against="old", at_least="-8%")),
    "a share of bias": ("not shown", apart("NDKL@10", OLD + NOISE), rule("NDKL@10", against="old", at_most="+1%")),
    "alone": ("holds", audit({"RR@10": OLD}), rule("RR@10", at_least=0.3)),
    "misleading": ("holds", misleading(), {"rule": [LEANS | {"against": "old", "at_most": 0.1}, LEANS]}),
    "too few": ("not shown", apart("nDCG@10", WIDE), rule(against="old", at_least="-3%")),
    "other lengths": ("not shown", apart("nDCG@10", WIDE, length=5), rule(against="old", at_least="-3%")),
    "partly labelled": ("not shown", apart("nDCG@10", WIDE, known=1), rule(at_least=0, against="old")),
    "effective": ("not shown", EFFECTIVE, {"rule": [KEEPS, LEANS | {"at_most": 0.3}]}),
    "nothing shown": ("not shown", EFFECTIVE, {"rule": [KEEPS | {"at_least": "-3%"}, LEANS | {"at_most": 0.3}]}),
    "all hold": ("holds", EFFECTIVE, {"rule": [KEEPS, LEANS | {"at_most": 0.4}], "alpha": 0.025}),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str, snapshot: Any) -> None:
    outcome, data, budget = SAID[name]
    result = gate(data, budget=budget)
    assert result.outcome == outcome
    findings = [f"{one.place} {one.key} of {one.subject} ({one.level}): {one.text}" for one in result.findings]
    assert "\n".join([result.table(full=True), *findings]) == snapshot
    # Where depth or labels are why, more queries would not help.
    assert "too few" not in result.table() or name not in ("other lengths", "partly labelled")


@pytest.mark.parametrize(
    ("budget", "options", "said"),
    [
        (rule("RR@10", at_least=0), {}, "rule 1: RR@10 is not in the audit, which has nDCG@10; effectiveness needs"),
        (rule("ARaB@10", at_most=0), {}, "rule 1: ARaB@10 is not in the audit, which has nDCG@10$"),
        (rule(at_least=0, against="x"), {}, "rule 1: against: no run 'x' .the runs are baseline, old, new"),
        (rule(at_least=0, against="new"), {}, "rule 1: against: 'new' is the run that is gated"),
        (rule(at_least=0), {"run": "x"}, "no run 'x' .the runs are old, new"),
        (rule(at_least=0), {"baseline": "x"}, "no run 'x' to be the `baseline`"),
        (rule(at_least=0), {"correction": "bonferroni"}, "`correction`: expected holm or none, found 'bonferroni'"),
    ],
)
def test_what_a_gate_cannot_decide_is_an_error(budget: dict[str, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(EvenrankError, match=said):
        gate(audit({"nDCG@10": OLD}, {"nDCG@10": OLD}), budget=budget, **options)


GOOD = audit({"nDCG@10": OLD}, {"nDCG@10": OLD})


def with_values(values: Any) -> dict[str, Any]:
    new = {"lengths": [10] * QUERIES, "measures": {"nDCG@10": {"values": values}}}
    return {**GOOD, "runs": {"old": GOOD["runs"]["old"], "new": new}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({k: v for k, v in GOOD.items() if k != "queries"}, "no values of the queries: `evenrank audit"),
        ([], "not as `evenrank audit … --json F --values` writes it"),
        (GOOD | {"baseline": None}, "`run`: expected the one to gate of old, new"),
        (GOOD | {"queries": ["1"]}, "--values` writes it"),
        (with_values(None), "no values of the queries"),
        (with_values(["x"] * QUERIES), "--values` writes it"),
    ],
)
def test_audits_that_cannot_be_used(tmp_path: Path, data: Any, said: str) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(EvenrankError, match=re.escape(said)) as caught:
        gate(path, budget=rule(at_least=0))
    assert str(path) in str(caught.value)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(EvenrankError, match="no valid JSON"):
        gate(path, budget=rule(at_least=0))


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(EvenrankError, match="rule 1: a share of RR@10 of 0 means nothing"):
        gate(audit({"RR@10": OLD}, {"RR@10": 0 * OLD}), budget=rule("RR@10", against="old", at_least="-1%"))


def test_values_of_a_real_audit() -> None:
    run = {"1": {"a": 3.0, "b": 2.0}, "2": {"a": 1.0, "b": 2.0}, "3": {"b": 2.0, "a": 1.0}}
    texts = {"a": "He and his father met his uncle.", "b": "She and her mother."}
    qrels = {"1": {"a": 1}, "2": {"a": 1}, "3": {"b": 1}}
    found = evenrank.audit({"new": run, "old": {q: {"a": 1.0, "b": 2.0} for q in run}}, collection=texts, qrels=qrels,
        baseline="old", measures="RR@10 ARaB@10 DeltaAPRF")  # fmt: skip
    result = gate(found, budget={"rule": [
        {"measure": "RR@10", "against": "baseline", "at_least": -0.5},
        {"measure": "ARaB@10", "at_most": 9, "quantity": "vs_random_order"},
        {"measure": "ARaB@10", "against": "random", "at_most": 9},
        {"measure": "ARaB@10", "at_most": 9, "quantity": "vs_ideal_order"},
        {"measure": "DeltaAPRF", "at_most": 1},
    ]})  # fmt: skip
    rr, added, *_ = result.rules
    assert (result.run, result.baseline, rr.n) == ("new", "old", 3)
    assert rr.value == pytest.approx(found["new", "RR@10"].mean - found["old", "RR@10"].mean)
    excess = found["new", "ARaB@10"].vs_random_order
    assert excess is not None
    assert added.mean == pytest.approx(excess.mean)
    assert json.loads(result.to_json())["audit"]["command"]


# --- formats ----------------------------------------------------------------------------------------------------------

EVIL = "a|<b>&\"'*_`(@me) o/r#1 http://x.y WWW.x.y ::x%,y"


@pytest.fixture
def result() -> GateResult:
    data = audit({"nDCG@10": OLD + NOISE, "RR@10": OLD - 0.2 + NOISE, "NFaiRR@10": OLD + NOISE},
        {"nDCG@10": OLD, "RR@10": OLD, "NFaiRR@10": OLD})  # fmt: skip
    return gate(data, budget={"rule": [
        {"measure": "nDCG@10", "against": "old", "at_least": "-20%", "name": EVIL},
        {"measure": "RR@10", "against": "old", "at_least": 0},
        {"measure": "NFaiRR@10", "against": "old", "at_least": float(NOISE.mean()) + 1e-3},
    ]})  # fmt: skip


def test_what_three_rules_have_in_every_form(result: GateResult, snapshot: Any) -> None:
    """Names are only names; a rule that is not shown fails if ``strict``."""
    assert [ruling.outcome for ruling in result.rules] == ["holds", "violated", "not shown"]
    assert (result.outcome, result.status(), result.status(strict=True)) == ("violated", 1, 1)
    open_, shut = (GateResult("new", None, rulings, 0.05, "holm") for rulings in (result.rules[2:], result.rules[:1]))
    assert (open_.status(), open_.status(strict=True), shut.status(strict=True)) == (3, 1, 0)
    assert max(map(len, result.table().splitlines())) <= 80
    forms = [result.table(), result.markdown()]
    forms += [form(strict=strict) for form in (result.junit, result.annotations) for strict in (False, True)]
    assert "\n".join(forms) == snapshot
    # Links and mentions are found after entities are decoded: letters stand between.
    assert not re.search(r"@me|#1|://|WWW\.|&#", result.markdown().splitlines()[4])


def test_a_name_with_line_ends_begins_no_line_of_junit(result: GateResult) -> None:
    named = replace(
        result,
        run="new\n::error::no\x1b[31m",
        misleading=(Finding("audit", "", "cannot be told", None, "a\n::error::b"),),
    )
    text = named.junit()
    assert not [line for line in text.splitlines() if line.strip().startswith("::")]
    assert "\x1b" not in text
    [suite] = ElementTree.fromstring(text)
    assert suite.get("name") == "evenrank gate new�::error::no�[31m"


@pytest.mark.parametrize(("shift", "outcome"), [(0.0, "holds"), (-0.05, "not shown"), (-0.15, "violated")])
def test_three_outcomes(shift: float, outcome: str) -> None:
    found = one(audit({"nDCG@10": OLD + shift + NOISE}, {"nDCG@10": OLD}), rule(against="old", at_least=-0.05))
    assert found.outcome == outcome
    assert (found.queries_to_decide is None) == (outcome != "not shown")
    # What would be caught lies beyond the budget, and is caught in 8 of 10.
    assert found.detectable < -0.05
    assert found.power(found.detectable) == pytest.approx(0.8, abs=0.01)
    assert found.power(-0.05) <= 0.1
    assert found.power(-1.0) == 1


def test_20_queries_of_two_equal_files_show_no_margin() -> None:
    same = audit({"nDCG@10": OLD[:20]}, {"nDCG@10": OLD[:20]})
    found = one(same, rule(against="old", at_least="-3%"))
    assert (found.outcome, found.value) == ("not shown", pytest.approx(0.0))
    assert found.n_if_equal > 100
    # One ruined query in 20 queries would be more than the margin; a few more of them break it.
    ruined = audit({"nDCG@10": np.where(np.arange(20) < 18, 0.0, OLD[:20])}, {"nDCG@10": OLD[:20]})
    assert one(ruined, rule(against="old", at_least="-3%")).outcome == "violated"


@pytest.mark.parametrize(("n", "tries"), [(103, 1), (150, 2), (260, 3)])
def test_how_often_equally_good_runs_would_pass(n: int, tries: int) -> None:
    rng = np.random.default_rng(n)
    base, noise = rng.uniform(0.2, 0.8, n), rng.normal(0, 0.12, n)
    found = one(audit({"nDCG@10": base + noise - noise.mean()}, {"nDCG@10": base}), rule(against="old", at_least="-5%"))
    text = f"{n} queries are too few: two equally good runs would pass in about {tries} of 5 tries; with about"
    assert reason(found).startswith(f"{text} {found.n_if_equal}")
    assert found.n_if_equal > n


def test_metrics() -> None:
    result = gate(audit({"nDCG@10": OLD - 0.2}, {"nDCG@10": OLD}), budget=rule(against="baseline", at_least="-2%"))
    (ruling,) = result.rules
    assert ruling.limits is not None
    low, high = ruling.limits
    expected = {"nDCG@10 vs old": ruling.value, "nDCG@10 vs old/low": low, "nDCG@10 vs old/high": high, "status": 1.0}
    assert result.metrics() == expected
