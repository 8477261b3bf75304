"""A budget to begin with: what it asks for can be shown with these queries, and no more than that."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank import EvenrankError, gate, initial_budget
from evenrank.decide.budget import as_budget
from evenrank.decide.initial_budget import MARGINS, SIZES
from evenrank.measures import facts, parse_measure
from evenrank.stats.planning import queries_to_hold
from gate_audits import audit
from small_audits import DOCS, QRELS, random_run

RNG = np.random.default_rng(3)
QUERIES = 300
BASE = {
    "nDCG@10": RNG.uniform(0.2, 0.9, QUERIES),
    "NFaiRR@10": RNG.beta(8, 2, QUERIES),
    "ARaB@10": RNG.normal(0.05, 0.1, QUERIES),
}


def known(data: dict[str, Any]) -> dict[str, Any]:
    """With what the audit says of its measures, which tells those of effectiveness from others."""
    names = next(iter(data["runs"].values()))["measures"]
    return {**data, "measures": {name: facts(parse_measure(name)) for name in names}}


def copies(*measures: str, queries: int = QUERIES, **more: Any) -> dict[str, Any]:
    """An audit of a run and its copy, with these measures of :data:`BASE`, or others, of the first queries."""
    values = {name: BASE[name][:queries] for name in measures or BASE} | more
    return known(audit(values, values))


DATA = copies()


def tighter(rule: dict[str, Any]) -> dict[str, Any] | None:
    """The rule with the next limit that is tighter; None of the tightest."""
    if "at_most" in rule:
        place = SIZES.index(rule["at_most"])
        return {**rule, "at_most": SIZES[place - 1]} if place else None
    place = MARGINS.index(-int(rule["at_least"].rstrip("%")))
    return {**rule, "at_least": f"-{MARGINS[place - 1]}%"} if place else None


@pytest.mark.parametrize("queries", [60, 150, QUERIES])
def test_each_rule_is_the_tightest_that_holds_of_a_copy_of_the_baseline(queries: int) -> None:
    data = copies(queries=queries)
    rules = tomllib.loads(initial_budget(data))["rule"]
    assert "nDCG@10" in [rule["measure"] for rule in rules]
    assert {ruling.outcome for ruling in gate(data, budget={"rule": rules}).rules} == {"holds"}
    closer = [one for one in map(tighter, rules) if one is not None]
    assert closer
    assert all(gate(data, budget={"rule": [rule]}).outcome != "holds" for rule in closer)


def test_it_is_a_budget_of_its_measures_with_what_tighter_limits_take() -> None:
    text = initial_budget(DATA)
    budget = as_budget(tomllib.loads(text))
    assert [rule.measure for rule in budget.rules] == list(BASE)
    assert [rule.against for rule in budget.rules] == ["baseline", "baseline", None]
    # A comment says how many queries the next tighter limit takes.
    said = re.search(rf"# -(\d)% cannot be shown with {QUERIES} queries: it takes at least about ([\d,]+) .*"
        r"\(identical runs\), typically about ([\d,]+) queries\.", text)  # fmt: skip
    assert said is not None
    margin, identical, typical = (int(one.replace(",", "")) for one in said.groups())
    # Identical runs have z = m · base; typically the differences have half the deviation of the baseline too.
    base, m = BASE["nDCG@10"], margin / 100
    sds = (m * base.std(ddof=1), np.hypot(0.5, m) * base.std(ddof=1))
    assert [identical, typical] == [queries_to_hold(m * base.mean(), sd, 1 - m) for sd in sds]
    assert identical < typical


def test_a_signed_measure_has_a_limit_on_its_size_and_a_share_of_groups_none() -> None:
    labels = {doc: "abc"[place % 3] for place, doc in enumerate(DOCS)}
    runs = {"old": random_run(0, good=2.0), "new": random_run(1, good=2.0)}
    made = evenrank.audit(runs, labels=labels, poles="a,b", qrels=QRELS, baseline="old")
    rules = {rule["measure"]: rule for rule in tomllib.loads(initial_budget(made))["rule"]}
    assert any(measure.startswith("Share") for measure in map(str, made.measures))
    assert not any(measure.startswith("Share") for measure in rules)
    assert set(rules["ARaB@10"]) == {"measure", "at_most"}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (copies("nDCG@10", queries=10), {}, "^no rule can be checked with 10 queries: more are needed$"),
        (
            {**DATA, "baseline": None},
            {},
            "^expected a `baseline`: a budget says what a run may lose against it$",
        ),
        (DATA, {"run": "x"}, "no run 'x'"),
    ],
)
def test_what_has_no_budget(data: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        initial_budget(data, **options)


def test_missing_labels_and_unequal_depth_are_not_called_too_few_queries() -> None:
    data = copies(**{"NDKL@10": np.zeros(QUERIES)})
    for run in data["runs"].values():
        run["measures"]["NFaiRR@10"] |= {"known": {"rows": 1, "of": 2}}
    data["runs"]["new"]["lengths"] = [5] * QUERIES
    text = initial_budget(data)
    assert initial_budget({**data, "baseline": None}, baseline="old") == text
    assert "# No rule for NFaiRR@10: documents without a label could change it.\n" in text
    assert "# No rule for NDKL@10: a share of NDKL@10 of 0 means nothing: expected a number.\n" in text
    assert "differ in length, which may decide nDCG@10; more queries would not change that.\n" in text
    for run in data["runs"].values():
        run["measures"] = {"NFaiRR@10": run["measures"]["NFaiRR@10"]}
    with pytest.raises(EvenrankError, match=r"^no rule can be checked: NFaiRR@10: documents without a label"):
        initial_budget({**data, "measures": {"NFaiRR@10": data["measures"]["NFaiRR@10"]}})


def test_measures_of_fewer_queries_are_told() -> None:
    values = {**BASE, "nDCG@10": np.where(np.arange(QUERIES) < 100, np.nan, BASE["nDCG@10"])}
    text = initial_budget(copies(**values))
    assert text.startswith(
        "# A budget that 300 queries can check against old, made by evenrank gate --init.\n# nDCG@10: 200 queries with"
    )


def test_how_queries_count_is_told() -> None:
    data = copies(**BASE)
    # 300² / (20² + 280), and 300² / (150² + 150).
    unlike = {**data, "query_cluster": [max(0, query - 19) for query in range(QUERIES)]}
    counts = "300 queries in 281 clusters, worth 132 of equal size"
    assert initial_budget(unlike).startswith(f"# A budget that {counts} can check against old")
    with pytest.raises(EvenrankError, match=r"300 queries in 151 clusters, worth 4\.0 of equal size: more are needed"):
        initial_budget({**data, "query_cluster": [max(0, query - 149) for query in range(QUERIES)]})
    alone = initial_budget({**data, "settings": {"query_clusters": "none"}})
    assert "\n# Each query counts by itself: a gate needs `query_clusters` none as well.\n" in alone
    named = initial_budget({**unlike, "settings": {"query_clusters": "query clusters: topics.csv"}})
    assert (
        "\n# Queries count by clusters (query clusters: topics.csv): a gate needs `query_clusters` as well.\n" in named
    )
    # Clusters are those of all queries: of some with a value they are not counted.
    values = {name: np.where(np.arange(QUERIES) < 100, np.nan, column) for name, column in BASE.items()}
    fewer = {**copies(**values), "query_cluster": [max(0, query - 5) for query in range(QUERIES)]}
    assert initial_budget(fewer).startswith("# A budget that 200 queries can check against old")


def test_names_that_end_a_comment_or_a_string_are_none_of_the_budgets_lines() -> None:
    # There are quotes in a measure's parameters too.
    share = "AWRF(target='candidates')@10"
    data = copies(**{share: BASE["NFaiRR@10"]})
    evil = 'old\n[[rule]]\nmeasure = "AP"'
    data["runs"][evil] = data["runs"].pop("old")
    text = initial_budget(data, baseline=evil)
    assert [rule["measure"] for rule in tomllib.loads(text)["rule"]] == [*BASE, share]
