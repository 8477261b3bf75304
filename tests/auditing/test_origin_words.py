"""Where the bias comes from, in sentences: the run's own candidates, and what ties have to do with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.data import Excess, same_verdict
from evenrank.auditing.about import origin_sentences, summarise
from evenrank.measures import parse_measure
from evenrank.measures.inference import compare
from small_audits import collection, run
from small_origins import LEAN, excess, told, with_differences
from small_reports import small_audit

ADDED = excess([0.1, 0.2, 0.6], 0.05, (0.1, 0.6), 0.0001)
BEYOND = excess([0.0, 0.1, 0.5], 0.15, (0.05, 0.5), 0.03)
TIES = "Averaged over the orders of its tied documents, "


@pytest.fixture(scope="module")
def base() -> AuditResult:
    return small_audit()


def words(base: AuditResult, added: Excess, beyond: Excess | None) -> list[str]:
    return origin_sentences(with_differences(base, {"old": (added, beyond)})["old"], parse_measure(LEAN))


def test_what_is_shown(base: AuditResult) -> None:
    start = "Its own candidates in random order have 0.050; its order "
    adds = "adds +0.300 [+0.100, +0.600] (p < 0.001)"
    would = ", where a perfect ranking would add +0.100; "
    assert words(base, ADDED, None) == [f"{start}{adds}."]
    assert words(base, ADDED, BEYOND) == [
        f"{start}{adds}{would}the difference, +0.200 [+0.050, +0.500] (p = 0.030), is beyond relevance."
    ]
    unclear = replace(BEYOND, test=told(0.2, (-0.1, 0.5), 0.2))
    assert words(base, ADDED, unclear) == [
        f"{start}{adds}{would}nothing is shown to be beyond relevance (+0.200 [-0.100, +0.500], p = 0.200)."
    ]
    alone = replace(ADDED, test=told(0.3, None, None))
    assert words(base, alone, None) == [f"{start}is not shown to add anything (+0.300, too few queries for a test)."]
    nothing = replace(ADDED, mean=0.0, test=compare(np.zeros(20)))
    assert words(base, nothing, None) == [f"{start}is not shown to add anything (0.000, no query differs)."]


@pytest.mark.parametrize(
    ("added", "beyond", "expected"),
    [
        ((0.01, 0.8), (0.02, 0.9), "neither is shown: it adds +0.010 (p = 0.800), and +0.020 (p = 0.900) is beyond"),
        ((0.9, 0.001), (0.8, 0.002), "both are still shown: it adds +0.900 (p = 0.001), and +0.800 (p = 0.002) is"),
        ((0.01, 0.8), None, "it adds +0.010 (p = 0.800), which is not shown."),
        (None, (0.9, 0.002), "+0.900 (p = 0.002) is beyond relevance, which is still shown."),
        ((0.01, 0.8), (0.9, 0.002), "it adds +0.010 (p = 0.800), which is not shown; +0.900 (p = 0.002) is beyond"),
        ((-0.2, 0.001), None, "it adds -0.200 (p = 0.001), which is shown, but the other way round."),
        ((0.9, None), None, "it adds +0.900, which has no test."),
        (None, None, ""),
    ],
)
def test_one_sentence_on_ties(
    base: AuditResult,
    added: tuple[float, float | None] | None,
    beyond: tuple[float, float | None] | None,
    expected: str,
) -> None:
    changed = [
        of if tied is None else replace(of, tied=told(tied[0], None, tied[1]))
        for of, tied in ((ADDED, added), (BEYOND, beyond))
    ]
    sentences = words(base, *changed)[1:]
    assert len(sentences) == (1 if expected else 0)
    assert all(text.startswith(TIES + expected) for text in sentences)


def test_what_only_ties_show(base: AuditResult) -> None:
    unclear = replace(ADDED, test=told(0.3, (-0.1, 0.6), 0.2))
    assert words(base, replace(unclear, tied=told(0.2, None, 0.01)), None)[1:] == [
        f"{TIES}it adds +0.200 (p = 0.010), which is shown."
    ]
    assert words(base, replace(unclear, tied=told(0.9, None, 0.3)), None)[1:] == [
        f"{TIES}it adds +0.900 (p = 0.300), which is still not shown."
    ]


def test_the_same_verdict() -> None:
    assert same_verdict(0.2, 0.1, shown=True, tied_shown=True)
    assert not same_verdict(0.2, -0.1, shown=True, tied_shown=True)
    assert same_verdict(0.2, -0.1, shown=False, tied_shown=False)
    assert not same_verdict(0.2, 0.1, shown=True, tied_shown=False)
    assert not same_verdict(0.2, 0.1, shown=False, tied_shown=True)


def test_a_run_that_is_not_the_background() -> None:
    """Its candidates are its own: m1, m2 are m alone, where those of the background are half f."""
    texts = {"m1": "he and his father", "m2": "a man", "f1": "she and her mother", "f2": "a woman"}
    audit = evenrank.audit(
        {"a": run({"1": ["m1", "f1"], "2": ["m2", "f2"]}), "b": run({"1": ["m1", "m2"], "2": ["m2", "m1"]})},
        collection=collection(texts),
        measures="ARaB(magnitude='bool')@2 NFaiRR@2",
        background=run({"1": ["m1", "f1"], "2": ["m2", "f2"]}),
    )
    assert audit["random", "ARaB(magnitude='bool')@2"].mean == pytest.approx(0)
    lean = next(text for text in summarise(audit) if "ranks of b lean" in text)
    assert "Its own candidates in random order have 1.000; its order is not shown to add anything (0.000" in lean
    assert "a random order" not in lean
