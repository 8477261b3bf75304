"""Groups of queries, in audits and gates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from small_audits import DOCS, QRELS, collection, random_run

MEASURES = "nDCG@10 ARaB@10 NFaiRR@10"
TEXTS = collection(DOCS)
RUNS = {"old": random_run(1, good=1.0), "new": random_run(2, good=1.5, ties=True)}
QUERIES = list(QRELS)
GROUPS = {query: "women" if place % 3 else "men" for place, query in enumerate(QUERIES)}


def audit(**options: Any) -> evenrank.AuditResult:
    given: dict[str, Any] = {"collection": TEXTS, "qrels": QRELS, "baseline": "old", "measures": MEASURES}
    return evenrank.audit(RUNS, **given | options)


def test_the_groups_figures_make_that_of_all() -> None:
    found = audit(query_groups=GROUPS)
    men = np.array([GROUPS[query] == "men" for query in found.queries])
    for run in RUNS:
        for measure in MEASURES.split():
            rows = {one.group: one for one in found.query_groups if (one.run, one.measure) == (run, measure)}
            values = found[run, measure].values
            means = values[~men].mean(), values[men].mean()
            assert [rows[name].figure.mean for name in ("women", "men")] == pytest.approx(means)
            assert rows["women"].test.mean == pytest.approx(means[0] - means[1])
            assert rows["men"].test.mean == pytest.approx(means[1] - means[0])


def test_who_is_served_worse_is_said(snapshot: Any) -> None:
    """A run that knows the answers of women's queries only, and is worse than the old one for men."""
    good, bad = random_run(3, good=4.0), random_run(4, good=-2.0)
    groups = {query: "women" if place % 2 else "men" for place, query in enumerate(QUERIES)}
    new = {query: good[query] if groups[query] == "women" else bad[query] for query in QUERIES}
    some = {**groups, "q39": None, "q38": ""}
    frame = pl.DataFrame({"query_id": list(some), "group": list(some.values())})
    settings: dict[str, Any] = {"collection": TEXTS, "qrels": QRELS, "baseline": "old", "measures": MEASURES}
    found = evenrank.audit({"old": random_run(5, good=1.2), "new": new}, query_groups=frame, **settings)
    said = {one.key: one.text for one in found.findings}
    assert said["group_worst"].startswith("new serves queries of men worse than others: nDCG@10 −.7")
    assert "Query groups: 2 of 40 queries have none, and are left out: 'q38', 'q39'." in found.notes
    table = found.frames()["query_groups"]
    assert (table.columns[:5], table.height) == (["measure", "run", "group", "n", "mean"], 2 * 3 * 2)
    assert json.loads(found.to_json())["query_groups"][0]["test"]["verdict"] == "no difference shown"
    assert found.table(full=True, width=120) == snapshot
    assert "<h2>Query groups</h2>" in found.html()


def test_groups_that_do_not_differ() -> None:
    three = {query: "abc"[place % 3] for place, query in enumerate(QUERIES)}
    for groups, why in (
        (three, "the group has only 14 queries, where 15"),
        (GROUPS, "there are only 14 other queries"),
    ):
        (said,) = [one for one in audit(query_groups=groups).findings if one.key.startswith("query_groups")]
        assert said.key == "query_groups_untold"
        assert said.text.startswith(f"Whether query groups differ cannot be told: {why}")


def test_groups_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("query_id,group\nq0,a\nq0,b\n")
    with pytest.raises(EvenrankError, match=r"groups\.csv, line 3: the query 'q0' is there twice, first in line 2"):
        audit(query_groups=path)
    with pytest.raises(EvenrankError, match="`query_groups`: expected from 2 to 100 groups of the 40 queries, found 1"):
        audit(query_groups=dict.fromkeys(QUERIES, "all"))
    with pytest.raises(EvenrankError, match="`query_groups`: expected a column query_id, found the columns a, b"):
        audit(query_groups=pl.DataFrame({"a": ["q0"], "b": ["x"]}))
    with pytest.raises(EvenrankError, match=r"`query_groups`: expected a path, .* found 3"):
        audit(query_groups=3)


def test_every_value_has_its_group() -> None:
    # Queries of the background alone, and judged ones that no run has, are among them, in whatever order.
    runs = {"a": dict(reversed(RUNS["old"].items())), "b": {q: of for q, of in RUNS["new"].items() if q > "q2"}}
    found = evenrank.audit(runs, qrels={**QRELS, "late": {"d1": 1}}, query_groups=GROUPS, measures="nDCG@10")
    table = found.per_query()
    assert table.columns[:3] == ["query_id", "run", "query_group"]
    assert all(GROUPS.get(row[0]) == row[2] for row in table.iter_rows())
    assert "query_group" not in json.loads(audit().to_json(values=True))


# --- the gate --------------------------------------------------------------------------------------------------------


def test_a_rule_about_a_group_of_queries() -> None:
    found = audit(query_groups=GROUPS)
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": "-50%"}
    (of_men, of_all) = evenrank.gate(found, budget={"rule": [{**rule, "queries": "men"}, rule]}).rules
    rows = {one.run: one.figure for one in found.query_groups if (one.measure, one.group) == ("nDCG@10", "men")}
    assert (of_men.mean, of_men.other_mean) == pytest.approx((rows["new"].mean, rows["old"].mean))
    assert (of_all.mean, of_all.n) == (pytest.approx(found["new", "nDCG@10"].mean), found["new", "nDCG@10"].n)
    assert of_men.n == rows["new"].n
    assert of_men.name == "nDCG@10 of men vs old"
    with pytest.raises(EvenrankError, match="rule 1: queries: no query group 'boys' \\(the groups are men, women\\)"):
        evenrank.gate(found, budget={"rule": [{**rule, "queries": "boys"}]})
    with pytest.raises(EvenrankError, match="rule 1: queries = 'men': no groups of queries were given"):
        evenrank.gate(audit(), budget={"rule": [{**rule, "queries": "men"}]})
