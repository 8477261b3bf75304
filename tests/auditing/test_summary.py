"""The audit in sentences: what may be said of which figures."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank.auditing import AuditResult, Comparison
from evenrank.auditing.summary import summarise
from evenrank.groups import Lexicon
from small_reports import run, small_audit


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


def changed(result: AuditResult, name: str, measure: str, **changes: Any) -> AuditResult:
    """The audit with other values in one figure; ``vs`` changes its comparison."""
    vs = changes.pop("vs", None)
    figure = dataclasses.replace(result[name].figures[measure], **changes)
    if vs is not None:
        figure = dataclasses.replace(
            figure, vs_baseline=dataclasses.replace(figure.vs_baseline or Comparison(0.0), **vs)
        )
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
    audit = changed(result, "old", "ARaB@10", mean=0.12, ci95=(0.05, 0.2))
    text = sentence(audit, "ranks of old lean")
    assert text.startswith("The first 10 ranks of old lean towards male-worded passages (ARaB@10 0.120, 95% interval")
    assert (
        "0.050 to 0.200). The ranker adds to the lean of its candidates. Its own candidates in random order have 0.347;"
        in text
    )
    audit = changed(result, "old", "ARaB@10", mean=-0.12, ci95=(-0.2, -0.05))
    assert "towards female-worded passages" in sentence(audit, "ranks of old lean")


def test_no_clear_lean(result: AuditResult) -> None:
    text = sentence(changed(result, "old", "ARaB@10", mean=0.02, ci95=(-0.1, 0.14)), "no clear lean")
    assert "ranks of old show no clear lean between male-worded and female-worded passages" in text
    assert "lean in opposite directions cancel out in ARaB@10" in text


def test_difference_significant_or_not(result: AuditResult) -> None:
    audit = changed(result, "new", "ARaB@10", vs={"holm_p": 0.003})
    text = sentence(audit, "ranks of new lean")
    assert (
        "Its difference from old in ARaB@10 (-0.347) is significant (Holm p = 0.003): its mean is nearer to 0." in text
    )
    text = sentence(changed(result, "new", "ARaB@10", vs={"holm_p": 0.4}), "ranks of new lean")
    assert "is not significant (Holm p = 0.400)." in text
    text = sentence(changed(result, "new", "ARaB@10", vs={"holm_p": None}), "ranks of new lean")
    assert "could not be tested" in text


def test_loss_is_ruled_out_only_by_non_inferiority(result: AuditResult) -> None:
    def words(**vs: Any) -> str:
        return " ".join(summarise(changed(result, "new", "nDCG@10", vs=vs)))

    assert "no loss shown, within 5% of old or better: nDCG@10" in words(holm_p=0.3, non_inferior=True)
    for unproven in (False, None):
        text = words(difference=-0.01, holm_p=0.3, non_inferior=unproven)
        assert "a loss compared with old cannot be ruled out: nDCG@10" in text
        assert "no loss" not in text
    worse = words(difference=-0.2, holm_p=0.001, non_inferior=False)
    assert "new is less effective than old" in worse
    assert "within 5%" not in worse
    assert "but within 5%" in words(difference=-0.01, holm_p=0.001, non_inferior=True)
    assert "new is more effective than old" in words(difference=0.2, holm_p=0.001, non_inferior=True)
    assert "cannot be compared with old" in words(difference=None, holm_p=None)


def test_effectiveness_unknown_and_untested() -> None:
    assert summarise(small_audit(qrels=None, measures="ARaB@10"))[0].startswith("Effectiveness is unknown")
    assert "no difference is tested" in summarise(small_audit(baseline=None))[0]


def test_neutrality_beside_the_references(result: AuditResult) -> None:
    text = sentence(result, "Neutrality of the first 10 ranks of new")
    assert "; the most neutral order of old's candidates has 1.000." in text
    assert "Its own candidates in random order have" in text


def test_other_groups_by_name() -> None:
    lexicon = Lexicon("pets", ("cat", "dog"), (("cat", "cat"), ("dog", "dog")), (0.5, 0.5), ("dog", "cat"))
    table = run(["a", "b"])
    audit = evenrank.audit(
        {"r": table},
        collection=pl.DataFrame({"doc_id": table["doc_id"], "text": ["dog dog", "no pet"] * 3}),
        lexicon=lexicon,
        measures="ARaB@10",
    )
    assert "lean towards passages of group dog" in " ".join(summarise(audit))
