"""The verdicts of a summary: with the orders of tied documents, and the direction of differences."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

import evenrank
from evenrank.measures import ARaB
from small_audits import TEXTS, collection, run, words
from small_origins import told


def test_ties_are_a_but_only_if_they_change_the_verdict() -> None:
    key = "ARaB(magnitude='count')@2"
    lists = run({str(query): ["m", "n", "f", "b"] for query in range(18)})
    runs = {"tied": lists.with_columns(score=pl.lit(1.0)), "male": lists}
    found = evenrank.audit(runs, collection=collection(TEXTS), baseline="male", measures=key)

    def sentences(difference: float, p: float, tie_difference: float, tie_p: float) -> str:
        one = found["tied"]
        assert one[key].vs_baseline is not None
        test, tied = replace(told(difference, None, p), holm_p=p), told(tie_difference, None, tie_p)
        compared = replace(one[key].vs_baseline, difference=difference, test=test, tied=tied)
        figures = {key: replace(one[key], vs_baseline=compared)}
        return words(replace(found, runs=(replace(one, figures=figures), *found.runs[1:])))

    averaged = "averaged over the orders of tied documents in tied"
    same = sentences(-0.2, 0.004, -0.1, 0.03)
    assert f", and remains significant {averaged} (-0.100, p = 0.030, uncorrected)." in same
    assert "but it depends" not in same
    neither = sentences(-0.2, 0.4, 0.1, 0.3)
    assert f", and remains not significant {averaged} (0.100, p = 0.300, uncorrected)." in neither
    for changed, verdict in (
        (sentences(-0.2, 0.4, -0.1, 0.03), "-0.100 and significant (p = 0.030, uncorrected)."),
        (sentences(-0.2, 0.004, -0.1, 0.3), "-0.100 and not significant (p = 0.300, uncorrected)."),
        (sentences(-0.2, 0.004, 0.1, 0.03), "0.100 and significant (p = 0.030, uncorrected)."),
    ):
        assert "but it depends on the order of tied documents in tied. Averaged over those orders, the" in changed
        assert f"the difference is {verdict}" in changed


def test_differences_in_neutrality_have_a_direction() -> None:
    runs = {"one": run({"1": ["m", "n"], "2": ["m", "n"]}), "two": run({"1": ["n", "m"], "2": ["n", "m"]})}
    found = evenrank.audit(runs, collection=collection(TEXTS), baseline="one", measures="NFaiRR@1")
    few = "could not be tested (only 2 queries say anything, where 15 are needed)."
    assert f"Its difference from one in NFaiRR@1 (1.000, more neutral) {few}" in words(found)
    found = evenrank.audit(runs, collection=collection(TEXTS), baseline="two", measures="NFaiRR@1")
    assert f"Its difference from two in NFaiRR@1 (-1.000, less neutral) {few}" in words(found)


def test_what_ties_alone_add_is_not_shown() -> None:
    """Every query's order is that of its ties: the same in all, and on average over the ties nothing."""
    tied = run({str(query): ["m", "n", "f", "b"] for query in range(18)}).with_columns(score=pl.lit(1.0))
    key = "ARaB(magnitude='count')@2"
    found = evenrank.audit({"tied": tied}, collection=collection(TEXTS), measures=key)
    added = found["tied", key].added
    assert added is not None
    assert (added.shown(), added.shown(tied=True), added.tie_sensitive) == (True, False, True)
    assert "Averaged over the orders of its tied documents, it adds 0.000, which is not shown." in words(found)


def test_a_measure_is_a_choice_of_measures() -> None:
    found = evenrank.audit(run({"1": ["m", "n"]}), collection=collection(TEXTS), measures=ARaB @ 2)
    assert [str(measure) for measure in found.measures] == ["ARaB@2"]
