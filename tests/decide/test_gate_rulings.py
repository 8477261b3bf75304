"""What makes a ruling: corrections, the number of queries that would decide, parts, ties, what is shown of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenrank import EvenrankError, GateResult, gate
from evenrank import audit as audit_of
from evenrank.stats.planning import queries_to_hold
from gate_audits import LEAN, NOISE, OLD, QUERIES, audit, one, rule

ERROR = float(NOISE.std(ddof=1)) / QUERIES**0.5
NAMES = ("nDCG@10", "RR@10", "AP")


def shifted(*shifts: float) -> dict[str, Any]:
    """An audit where each of three differences is so many standard errors from 0."""
    apart = [OLD + NOISE - NOISE.mean() + shift * ERROR for shift in shifts]
    return audit(dict(zip(NAMES, apart, strict=True)), dict.fromkeys(NAMES, OLD))


def rulings(data: dict[str, Any], at: float = 0, **options: Any) -> Any:
    return gate(
        data, budget={"rule": [{"measure": name, "against": "old", "at_least": at} for name in NAMES]}, **options
    ).rules


@pytest.mark.parametrize(("correction", "level"), [("holm", 0.05 / 3), ("none", 0.05)])
def test_the_number_of_queries_that_would_decide(correction: Any, level: float) -> None:
    # One standard error within the budget, with one query more that loses all; and one beyond it: (z of the level that
    # decides + z.8)² times as many.
    within, beyond, _ = rulings(shifted(1, -1, 0.5), correction=correction)
    assert {within.outcome, beyond.outcome} == {"not shown"}
    assert within.queries_to_decide == queries_to_hold(ERROR, ERROR * QUERIES**0.5, 1.0)
    z = stats.norm.ppf
    assert beyond.queries_to_decide == math.ceil(QUERIES * (z(1 - level / 2) + z(0.8)) ** 2)
    # What holds is not corrected.
    first, *_ = rulings(shifted(-3, -9, -9), at=-0.07, correction=correction)
    assert 0.05 / 3 < first.p_holds < 0.05
    assert first.outcome == "holds"


def test_an_audit_that_does_not_tell_how_large_a_value_can_be_holds_nothing() -> None:
    data = audit({"ARaB@10": LEAN}, {"ARaB@10": LEAN})
    assert one(data, rule("ARaB@10", at_most=0.5)).outcome == "holds"
    data["runs"]["new"]["measures"]["ARaB@10"]["greatest"] = None
    found = gate(data, budget=rule("ARaB@10", at_most=0.5))
    assert found.outcome == "not shown"
    assert found.findings[-1].text.endswith(
        "; how far a document of the collection can lean is not known: score the whole collection"
        " (`evenrank score`), or write `greatest = …` into the rule."
    )
    assert one(data, rule("ARaB@10", at_most=0.5, greatest=1.0)).outcome == "holds"
    assert one(data, rule("ARaB@10", at_most=0.5, greatest=40)).outcome == "not shown"
    with pytest.raises(EvenrankError, match=r"rule 1: greatest: a query has a value of 0\.\d+, beyond 0.01$"):
        gate(audit({"ARaB@10": LEAN}), budget=rule("ARaB@10", at_most=0.5, greatest=0.01))


def test_what_an_order_adds_can_lose_twice_the_range() -> None:
    rng = np.random.default_rng(0)
    measure, held = "Share(group='f')@10", 0
    for _ in range(60):
        values = np.where(rng.random(200) < 0.05, -0.6, 0.005)
        data = audit({measure: values})
        data["runs"]["new"]["measures"][measure]["vs_random_order"] = data["runs"]["new"]["measures"][measure]
        held += one(data, rule(measure, quantity="vs_random_order", at_least=-0.02)).outcome == "holds"
    assert held <= 3


def test_a_gate_fails_two_seeds_in_at_most_one_of_twenty() -> None:
    rng = np.random.default_rng(5)
    budget = {
        "rule": [
            {"measure": "nDCG@10", "against": "old", "at_least": "0%"},
            {"measure": "ARaB@10", "against": "old", "at_most": 0},
        ]
    }
    broken = uncorrected = 0
    for _ in range(200):
        shared, leans = rng.beta(1, 1.5, 50), rng.laplace(0.4, 0.3, 50)
        old, new = (
            {"nDCG@10": shared + rng.normal(0, 0.1, 50), "ARaB@10": leans + rng.laplace(0, 0.2, 50)} for _ in range(2)
        )
        found = gate(audit(new, old), budget=budget)
        broken += found.outcome == "violated"
        uncorrected += any(ruling.p_violated <= 0.05 for ruling in found.rules)
    assert broken / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    # Uncorrected, two rules fail more often than one.
    assert uncorrected > 1.4 * broken > 0


def parted() -> dict[str, Any]:
    """Two runs with 20 queries of the first pole and 40 of the second."""
    data = audit({"DeltaAPRF": OLD}, {"DeltaAPRF": OLD})
    for run, lean in (("new", 0.3), ("old", 0.1)):
        own = OLD + (NOISE if run == "new" else 0)
        parts = [[*own[:20], *[None] * 40], [*[None] * 20, *(own[20:] - lean)]]
        data["runs"][run]["measures"]["DeltaAPRF"]["parts"] = parts
    return data


def test_parts_against_a_run_are_paired_by_pole() -> None:
    budget, data = rule("DeltaAPRF", against="old", at_most=0.05), parted()
    found = one(data, budget)
    new, old = OLD + NOISE, OLD
    own = new[:20].mean() - (new[20:] - 0.3).mean()
    other = old[:20].mean() - (old[20:] - 0.1).mean()
    assert (found.n, found.left_out, found.outcome) == (60, 0, "violated")
    assert (found.mean, found.other_mean) == (pytest.approx(own), pytest.approx(other))
    assert found.value == pytest.approx(abs(own) - abs(other))
    # A query with a value in one part of one run is left out.
    data["runs"]["old"]["measures"]["DeltaAPRF"]["parts"][1][30] = None
    found = one(data, budget)
    assert (found.n, found.left_out) == (59, 1)


# --- what is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "value", "shown"),
    [
        (rule("RR@10", at_least=0.4), 0.5, "RR@10  .500"),
        (rule("RR@10", against="old", at_least="-5%"), 0.25, "RR@10 vs old  +25.0%"),
        (rule("ARaB@10", at_most=0.4), 0.2, "|ARaB@10|  .200"),
    ],
)
@pytest.mark.parametrize("undefined", [0, 2])
def test_one_query_has_a_value_that_decides_nothing(budget: Any, value: float, shown: str, undefined: int) -> None:
    new, old, bias = (np.array([np.nan] * undefined + [value]) for value in (0.5, 0.4, -0.2))
    data = audit({"RR@10": new, "ARaB@10": bias}, {"RR@10": old})
    found = gate(data, budget=budget)
    (ruling,) = found.rules
    assert ruling.value == pytest.approx(value)
    assert (ruling.outcome, ruling.n, ruling.limits, ruling.queries_to_decide) == ("not shown", 1, None, None)
    assert shown in found.table()
    assert found.findings[-1].text.endswith("; fewer than two queries show nothing.")
    assert found.findings[-1].estimate.ci95 is None
    assert "notice" not in found.table()
    with pytest.raises(EvenrankError, match=r"fewer than two queries show nothing|no power is stated"):
        ruling.power(0.0)


@pytest.mark.parametrize("name", ["::add-mask::x", "a\n::error::b", " ::stop-commands::x", "##[error]x"])
def test_no_line_is_a_command_of_a_pipeline(name: str) -> None:
    data = audit({"ARaB@10": LEAN})
    data["runs"][name] = data["runs"].pop("new")
    data["warnings"] = [f"{name}: a warning", "::error::no", "x\n::add-mask::y"]
    budget = rule("ARaB@10", at_most=0.9)
    budget["rule"][0]["name"] = "::error::x"
    result = gate(data, budget=budget, run=name)
    for full in (False, True):
        lines = result.table(full=full).splitlines()
        assert [line for line in lines if "a warning" in line]
        assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


# --- clusters of queries ---------------------------------------------------------------------------------------------


def test_repeated_queries_do_not_make_a_rule_hold() -> None:
    # 20 queries, each ten times: the limit is that of 20 clusters of ten, with one of ten queries that lose all.
    values = 0.3 + 0.05 * np.cos(np.arange(20))
    repeated, cluster = np.repeat(values, 10), np.repeat(np.arange(20), 10)
    data = audit({"RR@10": repeated})
    assert one(data, rule("RR@10", at_least=0.26)).outcome == "holds"
    found = one({**data, "query_cluster": cluster.tolist()}, rule("RR@10", at_least=0.26))
    held = np.append(values - 0.26, -0.26)
    low = held.mean() - stats.t.ppf(0.97, 20) * held.std(ddof=1) / 21**0.5
    assert found.limits[0] == pytest.approx(0.26 + low)
    assert (low < 0, found.outcome) == (True, "not shown")
    # Clusters of one query each are none; of fewer than six, nothing is told.
    alone = one({**data, "query_cluster": list(range(200))}, rule("RR@10", at_least=0.26))
    assert alone.limits == one(data, rule("RR@10", at_least=0.26)).limits
    few = gate({**data, "query_cluster": (cluster // 4).tolist()}, budget=rule("RR@10", at_least=0.26))
    assert few.findings[-1].text.endswith(
        "; the queries are worth fewer than 6 clusters of like queries, which do not decide it."
    )
    with pytest.raises(EvenrankError, match="--values` writes it"):
        gate({**data, "query_cluster": [0.0]}, budget=rule("RR@10", at_least=0.26))


# --- ties and missing queries -----------------------------------------------------------------------------------------

TIED = [f"q{n}" for n in range(60)]
WITHIN = {"measure": "nDCG@10", "against": "baseline", "at_least": "-5%"}


def gated(old: dict[str, dict[str, float]], new: dict[str, dict[str, float]], relevant: str) -> GateResult:
    qrels = {query: {relevant: 1} for query in TIED}
    audit = audit_of({"old": old, "new": new}, qrels=qrels, baseline="old", measures="nDCG@10", query_clusters="none")
    result = gate(audit, budget={"rule": [WITHIN]})
    assert gate(audit.to_dict(values=True), budget={"rule": [WITHIN]}).outcome == result.outcome
    return result


@pytest.mark.parametrize(("relevant", "alone"), [("z", "holds"), ("a", "violated")])
def test_the_names_of_tied_documents_decide_nothing(relevant: str, alone: str) -> None:
    """The new run gives ten documents one score: ties are broken by falling id, so z is first and a last."""
    docs = "abcdefghiz"
    third = {query: {doc: float(doc == relevant) - 0.1 * place for place, doc in enumerate(docs)} for query in TIED}
    old = {query: {**scores, "x": 2.0, "y": 3.0} for query, scores in third.items()}
    tied = {query: dict.fromkeys(docs, 1.0) for query in TIED}
    result = gated(old, tied, relevant)
    assert (result.outcome, result.status()) == ("not shown", 3)
    assert result.findings[1].text == "It depends on the order of tied documents."
    # The same order without ties is decided.
    apart = {query: {doc: float(place) for place, doc in enumerate(docs)} for query in TIED}
    assert gated(old, apart, relevant).outcome == alone


def test_queries_that_a_run_lacks_decide_nothing() -> None:
    old = {query: {"r": 2.0, "d": 1.0} for query in TIED}
    new = {query: old[query] for query in TIED[:42]}
    result = gated(old, new, "r")
    assert result.outcome == "not shown"
    assert result.findings[1].text == "It depends on the queries that one of the runs lacks."
