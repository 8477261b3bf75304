"""Groups of queries and weights of queries, in audits and gates."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as hst
from scipy import stats

import evenrank
from evenrank import EvenrankError
from evenrank.measures import inference as st
from slow_inference import slow_weighted
from small_audits import DOCS, QRELS, collection, random_run

MEASURES = "nDCG@10 ARaB@10 NFaiRR@10"
TEXTS = collection(DOCS)
RUNS = {"old": random_run(1, good=1.0), "new": random_run(2, good=1.5, ties=True)}
QUERIES = list(QRELS)
GROUPS = {query: "women" if place % 3 else "men" for place, query in enumerate(QUERIES)}
WEIGHTS = {query: 1.0 + place % 5 for place, query in enumerate(QUERIES)}
_POSITIVE = hst.floats(0.01, 100)


def audit(**options: Any) -> evenrank.AuditResult:
    given: dict[str, Any] = {"collection": TEXTS, "qrels": QRELS, "baseline": "old", "measures": MEASURES}
    return evenrank.audit(RUNS, **given | options)


def figures(found: evenrank.AuditResult) -> object:
    return json.loads(found.to_json())["runs"]


# --- weights ---------------------------------------------------------------------------------------------------------


@given(hst.lists(hst.tuples(hst.floats(-1, 1), _POSITIVE), min_size=2, max_size=30))
def test_weighted_values_against_sums(pairs: list[tuple[float, float]]) -> None:
    values, weights = np.array(pairs).T
    total = math.fsum(weights)
    mean = math.fsum(x * w for x, w in pairs) / total
    assert st.average(values, weights) == pytest.approx(mean, abs=1e-9)
    assert st.worth(values, weights) == pytest.approx(total**2 / math.fsum(w * w for w in weights))
    assert st.typical(weights) == pytest.approx(total / st.worth(values, weights))
    # What leaving out each query does to the mean, one after the other.
    left = [(math.fsum(x * w for x, w in pairs) - x * w) / (total - w) - mean for x, w in pairs]
    own = st.linear(values, weights)
    assert own.mean() == pytest.approx(mean, abs=1e-9)
    n = len(pairs)
    expected = np.array([-(n - 1) * one for one in left])
    assert own - own.mean() == pytest.approx(expected - expected.mean(), abs=1e-6)


@given(hst.integers(0, 2**32 - 1), hst.sampled_from([40, 150, 600]))
def test_a_weighted_mean_is_tested_as_it_is_written(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = np.where(rng.random(n) < 0.2, 0.0, rng.exponential(1, n) - 0.9), rng.lognormal(0, 0.5, n)
    found = st.compare(values, weights)
    assert found.p is None or found.p == pytest.approx(slow_weighted(values.tolist(), weights.tolist()), rel=1e-9)
    assert found.n == math.floor(weights.sum() ** 2 / (weights @ weights))
    low, high = found.ci95 or (0.0, 0.0)
    assert found.p is None or (found.p < 0.05) == (not low <= 0 <= high)


def test_groups_are_compared_as_by_welch() -> None:
    rng = np.random.default_rng(3)
    values, inside = rng.normal(0, 1, 800), np.arange(800) < 250
    values[inside] = 2 * values[inside] + 0.4
    found = st.compare_groups(np.where(inside, values, np.nan), np.where(inside, np.nan, values))
    t, hall = stats.ttest_ind(values[inside], values[~inside], equal_var=False), found.p or 0.0
    assert hall >= t.pvalue
    assert hall == pytest.approx(t.pvalue, rel=0.2)
    assert found.mean == pytest.approx(values[inside].mean() - values[~inside].mean())
    assert found.ci95 == pytest.approx(tuple(t.confidence_interval()), abs=0.02)
    # A group of fewer than 15 tells nothing, one of fewer than 200 needs one value more.
    few = st.compare_groups(values[:14], values[250:])
    assert few.why == "the group has only 14 queries, where 15 are needed"
    small = st.compare_groups(values[:50], values[250:])
    assert (small.p or 0.0) > stats.ttest_ind(values[:50], values[250:], equal_var=False).pvalue


@given(hst.lists(hst.floats(-1, 1), min_size=2, max_size=60), hst.sampled_from([1.0, 7.0, 0.5]))
def test_equal_weights_change_nothing(values: list[float], weight: float) -> None:
    found, weights = np.array(values), np.full(len(values), weight)
    for plain, equal in (
        (st.compare(found), st.compare(found, weights)),
        (st.compare_groups(found[::2], found[1::2]), None),
    ):
        if equal is not None:
            assert (equal.n, equal.verdict, equal.why) == (plain.n, plain.verdict, plain.why)
            assert equal.mean == pytest.approx(plain.mean, abs=1e-12)
    assert st.linear(found, weights) == pytest.approx(found, abs=1e-12)
    loss, weighted = st.no_loss(found + 2, found + 2), st.no_loss(found + 2, found + 2, weights=weights)
    assert loss is not None
    assert weighted is not None
    assert weighted.p_holds() == pytest.approx(loss.p_holds(), abs=1e-9)
    size, of = st.bound_of_size([found], None, 0.1, 2.0), st.bound_of_size([found], None, 0.1, 2.0, weights=[weights])
    assert of.p_holds() == pytest.approx(size.p_holds(), abs=1e-9)


def test_an_audit_whose_queries_weigh_the_same() -> None:
    plain = figures(audit())
    for weight in (1, 7):
        assert figures(audit(query_weights=dict.fromkeys(QUERIES, weight))) == plain


def test_whole_weights_are_repeated_queries() -> None:
    """Figures of every kind: of utility and bias, references, ties, differences, what the order adds."""
    times = {query: int(weight) for query, weight in WEIGHTS.items()}

    def repeated(of: dict[str, Any]) -> dict[str, Any]:
        return {f"{query}.{number}": of[query] for query in QUERIES for number in range(times[query])}

    weighted = audit(query_weights=WEIGHTS)
    again = evenrank.audit(
        {name: repeated(run) for name, run in RUNS.items()},
        collection=TEXTS,
        qrels=repeated(QRELS),
        baseline="old",
        measures=MEASURES,
    )
    for run in again.runs:
        assert weighted[run.name].by_depth.equals(run.by_depth) or np.allclose(
            weighted[run.name].by_depth.to_numpy(), run.by_depth.to_numpy()
        )
        for measure, figure in run.figures.items():
            found = weighted[run.name, measure]
            assert found.mean == pytest.approx(figure.mean, abs=1e-12)
            assert found.tie_mean == pytest.approx(figure.tie_mean, abs=1e-12)
            assert (found.tie_range is None) == (figure.tie_range is None)
            assert found.tie_range is None or found.tie_range == pytest.approx(figure.tie_range, abs=1e-12)
            assert found.n == math.floor(sum(times.values()) ** 2 / sum(t * t for t in times.values()))
            for field in ("added", "beyond_relevance"):
                ours, theirs = getattr(found, field), getattr(figure, field)
                assert (ours is None) == (theirs is None)
                assert ours is None or (ours.mean, ours.reference, ours.tie_mean) == pytest.approx(
                    (theirs.mean, theirs.reference, theirs.tie_mean), abs=1e-12
                )
            if figure.vs_baseline is not None:
                assert found.vs_baseline is not None
                assert found.vs_baseline.difference == pytest.approx(figure.vs_baseline.difference, abs=1e-12)
                assert found.vs_baseline.relative == pytest.approx(figure.vs_baseline.relative, abs=1e-12)
                assert found.vs_baseline.t_p is None
    assert weighted["old", "nDCG@10"].mean != pytest.approx(audit()["old", "nDCG@10"].mean)


def test_weights_of_a_figure_with_two_parts() -> None:
    """ΔA-PRF has a mean for each pole; what ties do to it is not known with weights."""
    found = audit(query_weights=WEIGHTS, measures="DeltaAPRF")
    for run in RUNS:
        figure = found[run, "DeltaAPRF"]
        means = [
            math.fsum(v * WEIGHTS[q] for q, v in zip(found.queries, part, strict=True) if not np.isnan(v))
            / math.fsum(WEIGHTS[q] for q, v in zip(found.queries, part, strict=True) if not np.isnan(v))
            for part in figure.parts
        ]
        assert figure.mean == pytest.approx(means[0] - means[1])
        assert figure.tie_mean is None
    compared = found["new", "DeltaAPRF"].vs_baseline
    assert compared is not None
    assert compared.difference == pytest.approx((compared.mean or 0.0) - (compared.baseline_mean or 0.0))


def test_a_query_has_its_own_weight() -> None:
    """The order of the file says nothing; weights of other queries make another figure."""
    turned = dict(reversed(WEIGHTS.items()))
    assert figures(audit(query_weights=turned)) == figures(audit(query_weights=WEIGHTS))
    values = dict(zip(audit().queries, audit()["old", "nDCG@10"].values, strict=True))
    mean = math.fsum(values[query] * WEIGHTS[query] for query in QUERIES) / sum(WEIGHTS.values())
    assert audit(query_weights=WEIGHTS)["old", "nDCG@10"].mean == pytest.approx(mean)
    exchanged = dict(zip(QUERIES, reversed(WEIGHTS.values()), strict=True))
    assert audit(query_weights=exchanged)["old", "nDCG@10"].mean != pytest.approx(mean)


def test_few_queries_with_most_of_the_traffic_tell_nothing() -> None:
    found = audit(query_weights={query: 1000.0 if place < 3 else 1.0 for place, query in enumerate(QUERIES)})
    lean = found["old", "ARaB@10"].lean
    assert lean is not None
    assert lean.why == "the 40 queries that differ from 0 have the weight of 3 equal ones, where 15 are needed"
    assert found["old", "nDCG@10"].n == 3
    assert "weighted (n = 3)" in found.table()
    assert any("the 40 queries tell as much as 3 queries of equal weight (Kish)" in note for note in found.notes)


def test_weights_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "traffic.csv"
    path.write_text("query_id,weight\nq0,3\nq1,0\n")
    with pytest.raises(EvenrankError, match=r"traffic\.csv, line 3: expected a weight above 0, found '0'"):
        audit(query_weights=path)
    path.write_text("query_id,weight\n" + "".join(f"q{place},{place + 1}\n" for place in range(33)))
    with pytest.raises(EvenrankError, match=r"no weight for 7 of the 40 queries: 'q33', 'q34', 'q35', 'q36', 'q37', …"):
        audit(query_weights=path)
    with pytest.raises(EvenrankError, match="the query 'q0' is there twice, first in row 1"):
        audit(query_weights=pl.DataFrame({"query_id": ["q0", "q0"], "weight": [1, 2]}))
    with pytest.raises(
        EvenrankError, match=r"`query_weights`: \|ARaB\|@10 has no weights, as ties .*: expected ARaB@10"
    ):
        audit(query_weights=WEIGHTS, measures="|ARaB|@10")
    with pytest.raises(EvenrankError, match="`guaranteed` is a bound of queries that weigh the same"):
        audit(query_weights=WEIGHTS, guaranteed=True)


# --- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_groups_figures_make_that_of_all(weights: dict[str, float] | None) -> None:
    found = audit(query_groups=GROUPS, query_weights=weights)
    own = WEIGHTS if weights else dict.fromkeys(QUERIES, 1.0)
    totals = {name: sum(own[query] for query in QUERIES if GROUPS[query] == name) for name in ("men", "women")}
    for run in RUNS:
        for measure in MEASURES.split():
            rows = [one for one in found.query_groups if (one.run, one.measure) == (run, measure)]
            assert [one.group for one in rows] == ["women", "men"]
            mean = math.fsum(totals[one.group] * (one.figure.mean or 0.0) for one in rows) / sum(totals.values())
            assert mean == pytest.approx(found[run, measure].mean)
            women, men = rows
            difference = (women.figure.mean or 0.0) - (men.figure.mean or 0.0)
            assert (women.test.mean, men.test.mean) == pytest.approx((difference, -difference))
            values = {
                q: v for q, v in zip(found.queries, found[run, measure].values, strict=True) if GROUPS[q] == "men"
            }
            slow = math.fsum(own[q] * v for q, v in values.items()) / totals["men"]
            assert men.figure.mean == pytest.approx(slow)


def test_who_is_served_worse_is_said() -> None:
    """A run that knows the answers of women's queries only, and is worse than the old one for men."""
    good, bad = random_run(3, good=4.0), random_run(4, good=-2.0)
    old = random_run(5, good=1.2)
    groups = {query: "women" if place % 2 else "men" for place, query in enumerate(QUERIES)}
    new = {query: good[query] if groups[query] == "women" else bad[query] for query in QUERIES}
    some = {**groups, "q39": None, "q38": ""}
    found = evenrank.audit(
        {"old": old, "new": new},
        collection=TEXTS,
        qrels=QRELS,
        baseline="old",
        measures=MEASURES,
        query_groups=pl.DataFrame({"query_id": list(some), "group": list(some.values())}),
    )
    said = {one.key: one.text for one in found.findings}
    assert said["group_worst"].startswith("new serves queries of men worse than others: nDCG@10 −.98")
    assert said["groups_better_and_worse"] == (
        "new is better than old for queries of women, but worse for those of men (nDCG@10)."
    )
    assert "Query groups: 2 of 40 queries have none, and are left out: 'q38', 'q39'." in found.notes
    # Groups that are exchanged say the opposite.
    other = {"men": "women", "women": "men"}
    turned = evenrank.audit(
        {"old": old, "new": new}, qrels=QRELS, measures="nDCG@10", query_groups={q: other[g] for q, g in groups.items()}
    )
    assert any(one.text.startswith("new serves queries of women worse") for one in turned.findings)
    table = found.frames()["query_groups"]
    assert table.columns[:5] == ["measure", "run", "group", "n", "mean"]
    assert table.height == 2 * 3 * 2
    assert json.loads(found.to_json())["query_groups"][0]["test"]["verdict"] == "no difference shown"
    assert "Groups of queries" in found.table(full=True)
    assert "<h2>Query groups</h2>" in found.html()


def test_groups_that_do_not_differ() -> None:
    found = audit(query_groups={query: "abc"[place % 3] for place, query in enumerate(QUERIES)})
    (said,) = [one for one in found.findings if one.key.startswith("query_groups")]
    assert said.key == "query_groups_untold"
    assert (
        said.text == "Whether query groups differ cannot be told: the group has only 14 queries, where 15 are needed."
    )
    (said,) = [one for one in audit(query_groups=GROUPS).findings if one.key.startswith("query_groups")]
    assert said.text.startswith("Whether query groups differ cannot be told: there are only 14 other queries")


def test_groups_that_cannot_be_used() -> None:
    with pytest.raises(EvenrankError, match="`query_groups`: expected from 2 to 100 groups of the 40 queries, found 1"):
        audit(query_groups=dict.fromkeys(QUERIES, "all"))
    with pytest.raises(EvenrankError, match="`query_groups`: expected a column query_id, found the columns a, b"):
        audit(query_groups=pl.DataFrame({"a": ["q0"], "b": ["x"]}))
    with pytest.raises(EvenrankError, match=r"`query_groups`: expected a path, .* found 3"):
        audit(query_groups=3)


def test_every_value_has_its_group_and_weight(tmp_path: Path) -> None:
    found = audit(query_groups=GROUPS, query_weights=WEIGHTS)
    table = found.per_query(tmp_path / "values.csv")
    # Queries of the background alone, and judged ones that no run has, are among them, in whatever order.
    runs = {"a": dict(reversed(RUNS["old"].items())), "b": {q: of for q, of in RUNS["new"].items() if q > "q2"}}
    other = evenrank.audit(
        runs, qrels={**QRELS, "late": {"d1": 1}}, query_groups=GROUPS, measures="nDCG@10"
    ).per_query()
    assert all(GROUPS.get(row[0]) == row[2] for row in other.iter_rows())
    assert table.columns[:4] == ["query_id", "run", "query_group", "query_weight"]
    assert all(GROUPS[row[0]] == row[2] and WEIGHTS[row[0]] == row[3] for row in table.iter_rows())
    assert found.settings["query_groups"] == "in memory"
    assert "query_group" not in json.loads(audit().to_json(values=True))


# --- the gate --------------------------------------------------------------------------------------------------------


def test_a_rule_about_a_group_of_queries() -> None:
    found = audit(query_groups=GROUPS, query_weights=WEIGHTS)
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": "-50%"}
    (of_men, of_all) = evenrank.gate(found, budget={"rule": [{**rule, "queries": "men"}, rule]}).rulings
    rows = {one.run: one.figure for one in found.query_groups if (one.measure, one.group) == ("nDCG@10", "men")}
    assert (of_men.mean, of_men.other_mean) == pytest.approx((rows["new"].mean, rows["old"].mean))
    assert (of_all.mean, of_all.n) == (pytest.approx(found["new", "nDCG@10"].mean), found["new", "nDCG@10"].n)
    assert of_men.n == rows["new"].n
    assert of_men.name == "nDCG@10 of men vs old"
    with pytest.raises(EvenrankError, match="rule 1: queries: no query group 'boys' \\(the groups are men, women\\)"):
        evenrank.gate(found, budget={"rule": [{**rule, "queries": "boys"}]})
    with pytest.raises(EvenrankError, match="rule 1: queries = 'men': no groups of queries were given"):
        evenrank.gate(audit(), budget={"rule": [{**rule, "queries": "men"}]})
    with pytest.raises(EvenrankError, match="guaranteed is a bound of queries that weigh the same"):
        evenrank.gate(found, budget={"rule": [rule], "guaranteed": True})


def test_a_gate_of_queries_that_weigh_the_same() -> None:
    budget = {"rule": [{"measure": "nDCG@10", "against": "baseline", "at_least": "-5%"}]}
    plain = evenrank.gate(audit(), budget=budget).rulings
    assert evenrank.gate(audit(query_weights=dict.fromkeys(QUERIES, 7)), budget=budget).rulings == plain


def test_the_query_that_is_added_to_a_bound_by_hand() -> None:
    # Weights 1, 1, 1 and 5: that of a random request's query is 28/8; (8 · .1 − 3.5 · 1)/(8 + 3.5).
    test = st.bound_of_mean([np.full(4, 0.1)], 1.0, weights=[np.array([1.0, 1, 1, 5])])
    assert test.held.mean == pytest.approx((0.8 - 3.5) / 11.5)
