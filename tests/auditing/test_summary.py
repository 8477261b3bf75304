"""The audit in sentences: what may be said of which figures."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.about import summarise
from evenrank.groups import Lexicon
from evenrank.measures.inference import MeanBound, no_loss
from small_origins import told
from small_reports import QUERIES, run, small_audit

NO_GROUP = {f"{query}{doc}": "a bridge" for query in QUERIES for doc in "ab"}
MEN = {f"{query}{doc}": "a man" for query in QUERIES for doc in "ab"}


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


def changed(result: AuditResult, name: str, measure: str, **changes: Any) -> AuditResult:
    """The audit with other values in one figure; ``vs`` changes its comparison."""
    vs = changes.pop("vs", None)
    figure = dataclasses.replace(result[name].figures[measure], **changes)
    if vs is not None:
        assert figure.vs_baseline is not None
        figure = dataclasses.replace(figure, vs_baseline=dataclasses.replace(figure.vs_baseline, **vs))
    runs = [
        dataclasses.replace(run, figures={**run.figures, measure: figure}) if run.name == name else run
        for run in result.runs
    ]
    return dataclasses.replace(result, runs=tuple(runs))


def sentence(result: AuditResult, words: str) -> str:
    found = [text for text in summarise(result) if words in text]
    assert len(found) == 1, summarise(result)
    return found[0]


def test_lean_towards_a_group(result: AuditResult) -> None:
    audit = changed(result, "old", "ARaB@10", mean=0.12, ci95=(0.05, 0.2), lean=told(0.12, None, 0.01))
    text = sentence(audit, "ranks of old lean")
    assert text.startswith("The first 10 ranks of old lean towards male-worded passages (ARaB@10 0.120, 95% interval")
    assert "0.050 to 0.200). Its own candidates in random order have 0.347;" in text
    audit = changed(result, "old", "ARaB@10", mean=-0.12, lean=told(-0.12, None, 0.01))
    assert "towards female-worded passages" in sentence(audit, "ranks of old lean")


def test_no_clear_lean(result: AuditResult) -> None:
    audit = changed(result, "old", "ARaB@10", mean=0.02, ci95=(-0.1, 0.14), lean=told(0.02, None, 0.7))
    text = sentence(audit, "no clear lean")
    assert "ranks of old show no clear lean between male-worded and female-worded passages" in text
    assert "0.140); a lean of 0.100 would have been noticed in 8 of 10 such samples." in text
    assert "lean in opposite directions cancel out in ARaB@10" in text


def test_what_few_queries_or_none_say(result: AuditResult) -> None:
    """The figures as they are, of three queries; those of none that lean; and those of a single one."""
    few = "It cannot be told whether the first 10 ranks of old lean: only 3 queries say anything, where 15 are needed ("
    assert f"{few}ARaB@10 0.520, no interval). Queries" in sentence(result, "ranks of old lean")
    none = evenrank.audit(run(["a", "b"]), collection=NO_GROUP, measures="ARaB@10")
    text = sentence(none, "ranks of run lean")
    assert text.startswith("The first 10 ranks of run lean in no query (ARaB@10 0.000, no interval). Its own")
    assert "cannot be told" not in text
    assert "its order is not shown to add anything (0.000, no query differs)." in text
    single = evenrank.audit(
        run(["a", "b"]).filter(query_id="q1"), collection=MEN, threshold=0, measures="ARaB@10 NFaiRR@10"
    )
    text = sentence(single, "ranks of run lean")
    assert text.startswith("It cannot be told whether the first 10 ranks of run lean: there is only one query (ARaB@10")
    assert sentence(single, "NFaiRR") == (
        "NFaiRR@10 of run is undefined for every query, as no document of the background is neutral."
    )


def test_difference_significant_or_not(result: AuditResult) -> None:
    def of_p(p: float | None) -> dict[str, Any]:
        tested = dataclasses.replace(told(-0.347, None, p), holm_p=p)
        return {"test": tested, "sizes": tested}

    audit = changed(result, "new", "ARaB@10", vs=of_p(0.003))
    text = sentence(audit, "ranks of new lean")
    assert (
        "Its difference from old in ARaB@10 (-0.347) is significant (Holm p = 0.003): its mean is nearer to 0." in text
    )
    # The difference of two leans to either side says nothing of which is larger.
    turned = changed(result, "new", "ARaB@10", vs=of_p(0.003) | {"sizes": told(-0.01, None, 0.4)})
    text = sentence(turned, "ranks of new lean")
    assert "in ARaB@10 (-0.347) is significant (Holm p = 0.003)." in text
    text = sentence(changed(result, "new", "ARaB@10", vs=of_p(0.4)), "ranks of new lean")
    noticed = "a difference of 0.100 would have been noticed in 8 of 10 such samples"
    assert f"is not significant (Holm p = 0.400; {noticed})." in text
    text = sentence(changed(result, "new", "ARaB@10", vs=of_p(None)), "ranks of new lean")
    assert "could not be tested (only 3 queries say anything, where 15 are needed)." in text


def test_loss_is_ruled_out_only_where_it_is_tested(result: AuditResult) -> None:
    held, base = no_loss(np.full(400, 0.5), np.full(400, 0.5)), np.full(40, 0.5)
    assert held is not None
    assert held.p_holds() <= 0.05

    def words(difference: float | None, p: float | None, bound: MeanBound | None) -> str:
        test = dataclasses.replace(told(difference or 0.0, None, p), holm_p=p)
        vs = {"difference": difference, "test": test, "loss": bound, "baseline_mean": 0.5}
        return " ".join(summarise(changed(result, "new", "nDCG@10", vs=vs)))

    assert "no loss shown, within 5% of old or better: nDCG@10" in words(0.0, 0.3, held)
    # Equal runs are no proof: one query that loses 1 of 1/(.05 · .5) = 40 is a loss of 5%.
    for unproven in (no_loss(base, base), None):
        text = words(-0.01, 0.3, unproven)
        assert "a loss compared with old cannot be ruled out: nDCG@10" in text
        assert "no loss" not in text
        assert ("Holm p = 0.300; one query in 40 that loses everything would be a loss of 5%" in text) == (
            unproven is not None
        )
    worse = words(-0.2, 0.001, no_loss(base, base))
    assert "new is less effective than old" in worse
    assert "within 5%" not in worse
    assert "but within 5%" in words(-0.01, 0.001, held)
    assert "new is more effective than old" in words(0.2, 0.001, held)
    assert "cannot be compared with old" in words(None, None, None)


@pytest.mark.parametrize(("queries", "held"), [(50, False), (95, True)])
def test_no_loss_is_said_from_so_many_queries_on(queries: int, held: bool) -> None:
    """Two equal runs whose nDCG is 1 or .6309, of which 50 queries are too few and 95 enough."""
    of = {str(q): {"a": 2.0, "b": 1.0} for q in range(queries)}
    qrels = {query: {"ab"[int(query) % 2]: 1} for query in of}
    audit = evenrank.audit({"old": of, "new": of}, qrels=qrels, baseline="old", measures="nDCG@10")
    base = np.array([1.0, 1 / np.log2(3)] * queries)[:queries]
    z = np.append(0.05 * base, -0.95)
    low = z.mean() - stats.t.ppf(0.97, queries) * z.std(ddof=1) / np.sqrt(queries + 1)
    assert (low > 0) == held
    said = summarise(audit)[1]
    assert said.startswith(
        "new: no loss shown, within 5% of old or better" if held else "new: a loss compared with old"
    )
    few = round(1 / (0.05 * base.mean()))
    assert (f"(no query differs; one query in {few} that loses everything would be a loss of 5%" in said) == (not held)


def test_effectiveness_unknown_and_untested() -> None:
    assert summarise(small_audit(qrels=None, measures="ARaB@10"))[0].startswith("Effectiveness is unknown")
    assert "no difference is tested" in summarise(small_audit(baseline=None))[0]


def test_neutrality_beside_the_references(result: AuditResult) -> None:
    text = sentence(result, "Neutrality of the first 10 ranks of new")
    assert "; the most neutral order of old's candidates has 1.000." in text
    assert "Its own candidates in random order have" in text


def test_other_groups_by_name() -> None:
    lexicon = Lexicon("pets", ("cat", "dog"), (("cat", "cat"), ("dog", "dog")), (0.5, 0.5), ("dog", "cat"))
    audit = evenrank.audit(
        {"r": {f"q{n}": {"a": 2.0, "b": 1.0} for n in range(15)}},
        collection={"a": "dog dog", "b": "no pet"},
        lexicon=lexicon,
        measures="ARaB@10",
    )
    assert "lean towards passages of group dog" in " ".join(summarise(audit))
