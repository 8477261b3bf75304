"""All pairs of runs, and the groups' shares against the candidates', each computed again from the queries' values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import evenrank
from evenrank.auditing import AuditResult
from evenrank.measures.inference import compare
from small_audits import DOCS, QRELS, random_run

LABELS = {doc: "abc"[place % 3] for place, doc in enumerate(DOCS)}


def slow_holm(p_values: list[float]) -> list[float]:
    """Each p times the number of those that are no smaller, and at least what a smaller one became."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


@pytest.fixture(scope="module")
def found() -> AuditResult:
    runs = {name: random_run(seed, lean=0.5 * seed, good=seed) for seed, name in enumerate("wxyz")}
    return evenrank.audit(runs, collection=DOCS, qrels=QRELS, baseline="w", measures="nDCG@10 ARaB@10 DeltaAPRF")


def test_pairs_are_all_compared_and_corrected_by_measure(found: AuditResult) -> None:
    # DeltaAPRF is one figure of the whole run.
    assert {one.measure for one in found.pairs} == {"nDCG@10", "ARaB@10"}
    for measure in ("nDCG@10", "ARaB@10"):
        of_measure = [one for one in found.pairs if one.measure == measure]
        assert [(one.first, one.second) for one in of_measure] == list(itertools.combinations("wxyz", 2))
        slow = []
        for one in of_measure:
            own, other = (np.array(found[name, measure].values) for name in (one.first, one.second))
            slow.append(compare(own - other))
            assert one.test.mean == pytest.approx(np.mean(own - other))
        wanted = slow_holm([float(one.p) for one in slow if one.p is not None])
        for one, alone, holm in zip(of_measure, slow, wanted, strict=True):
            assert (one.test.p, one.test.holm_p) == (alone.p, pytest.approx(holm))
            assert one.test.shown == (holm < 0.05)
    assert {one.test.shown for one in found.pairs} == {True, False}


@pytest.mark.parametrize(("count", "baseline", "pairs"), [(1, None, 0), (2, "a", 0), (2, None, 1), (3, "a", 3)])
def test_fewer_than_three_runs_have_pairs_only_without_a_baseline(count: int, baseline: str | None, pairs: int) -> None:
    runs = {"abc"[seed]: random_run(seed) for seed in range(count)}
    made = evenrank.audit(runs, collection=DOCS, baseline=baseline, measures="ARaB@10")
    assert len(made.pairs) == pairs


def test_lists_of_unequal_depth_are_no_pair() -> None:
    short = {query: dict(itertools.islice(docs.items(), 5)) for query, docs in random_run(2).items()}
    runs = {"a": random_run(0), "b": random_run(1), "short": short}
    made = evenrank.audit(runs, collection=DOCS, qrels=QRELS, measures="nDCG@10 ARaB@3")
    by_pair = {(one.measure, one.first, one.second): one.test for one in made.pairs}
    assert by_pair["nDCG@10", "a", "b"].why is None
    assert by_pair["nDCG@10", "a", "short"].why == "the lists differ in length"
    assert by_pair["nDCG@10", "a", "short"].verdict == "cannot be told"
    # The first three ranks are all there.
    assert by_pair["ARaB@3", "a", "short"].why is None


def test_values_that_labels_decide_are_no_pair() -> None:
    runs = {name: random_run(seed) for seed, name in enumerate("xyz")}
    labels = {doc: group for doc, group in LABELS.items() if doc != "d0"}
    made = evenrank.audit(runs, labels=labels, measures="Share(group='a')@10")
    assert {one.test.verdict for one in made.pairs} == {"cannot be told"}


def test_shares_are_compared_with_those_of_the_candidates() -> None:
    runs = {"a": random_run(6), "b": random_run(7, lean=3.0)}
    labels = {doc: "m" if place % 4 == 0 else "xyz"[place % 3] for place, doc in enumerate(DOCS)}
    made = evenrank.audit(runs, labels=labels, qrels=QRELS, baseline="a")
    assert [(one.run, one.group) for one in made.shares] == list(itertools.product("ab", "mxyz"))
    slow = []
    for one in made.shares:
        shares = [
            (
                np.mean([labels[doc] == one.group for doc in sorted(docs, key=lambda doc, of=docs: -of[doc])[:10]]),
                np.mean([labels[doc] == one.group for doc in docs]),
            )
            for docs in runs[one.run].values()
        ]
        own, held = np.array(shares).T
        assert (one.share, one.held) == (pytest.approx(own.mean()), pytest.approx(held.mean()))
        assert one.test.mean == pytest.approx((own - held).mean())
        slow.append(compare(own - held))
    wanted = slow_holm([float(one.p) for one in slow if one.p is not None])
    assert [one.test.holm_p for one in made.shares] == pytest.approx(wanted)
    shown = [(one.run, one.group) for one in made.shares if one.test.shown]
    assert ("b", "m") in shown
    assert not [run for run, _ in shown if run == "a"]
