"""All pairs of runs, and the groups' shares against the candidates', each computed again from the queries' values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import evenrank
from evenrank.auditing import AuditResult
from evenrank.auditing.comparison import corrected_by_kind
from evenrank.measures import parse_measure
from evenrank.stats.compare import Comparison, compare, corrected
from slow_stats import order_variance
from small_audits import DOCS, QRELS, random_run

UTILITY, BIAS = ("nDCG@10", "RR@10"), ("ARaB@10", "NFaiRR@10", "DeltaAPRF")


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
    return evenrank.audit(runs, collection=DOCS, qrels=QRELS, baseline="w", measures=" ".join([*UTILITY, *BIAS]))


def test_pairs_are_all_compared_and_corrected_by_kind_of_measure(found: AuditResult) -> None:
    # DeltaAPRF is one figure of the whole run.
    for measures in (UTILITY, BIAS[:2]):
        pairs = [one for one in found.pairs if one.measure in measures]
        assert [(one.measure, one.first, one.second) for one in pairs] == [
            (measure, *two) for measure in measures for two in itertools.combinations("wxyz", 2)
        ]
        slow = []
        for one in pairs:
            own, other = (np.array(found[name, one.measure].values) for name in (one.first, one.second))
            slow.append(compare(own - other, zeros="keep" if one.measure in UTILITY else "drop", reach=2.0))
            assert one.test.mean == pytest.approx(np.mean(own - other))
        wanted = slow_holm([float(one.p) for one in slow if one.p is not None])
        for one, alone, holm in zip(pairs, slow, wanted, strict=True):
            assert (one.test.p, one.test.holm_p) == (alone.p, pytest.approx(holm))
            assert one.test.shown == (holm < 0.05)
    assert len(found.pairs) == 6 * 4
    assert {one.test.shown for one in found.pairs} == {True, False}


def test_differences_from_the_baseline_are_corrected_by_kind_of_measure(found: AuditResult) -> None:
    for measures in (UTILITY, BIAS[:2]):
        compared = [one for name in "xyz" for m in measures if (one := found[name, m].vs_baseline) is not None]
        wanted = slow_holm([float(one.p) for one in compared if one.p is not None])
        assert len(wanted) == 6
        assert [one.holm_p for one in compared] == pytest.approx(wanted)
    sizes = [one.sizes for name in "xyz" if (one := found[name, "ARaB@10"].vs_baseline) and one.sizes]
    wanted = slow_holm([float(one.p) for one in sizes if one.p is not None])
    assert [one.holm_p for one in sizes] == pytest.approx(wanted)
    # What is said of a run by itself does not depend on the others.
    leans = [one for name in "wxyz" if (one := found[name, "ARaB@10"].lean) is not None]
    assert [one.holm_p for one in leans] == [None] * 4


def test_corrections_by_hand() -> None:
    """Two runs on each measure. Of four tests the smallest p is multiplied by 4, the next ones by 3, 2 and 1."""

    def of(**measured: tuple[float, float]) -> list[float | None]:
        names = {"a": "Share(group='a')@10", "b": "Share(group='b')@10", "exposure": "Exposure(group='a')@10"}
        tests = [(parse_measure(names.get(name, f"{name}@10")), p) for name, ps in measured.items() for p in ps]
        return [
            one.holm_p for one in corrected_by_kind([(measure, Comparison(0.1, None, 20, p=p)) for measure, p in tests])
        ]

    assert of(nDCG=(0.01, 0.04), RR=(0.03, 0.02)) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert of(nDCG=(0.01, 0.04), ARaB=(0.03, 0.02)) == pytest.approx([0.02, 0.04, 0.04, 0.04])
    assert of(ARaB=(0.01, 0.04), NFaiRR=(0.03, 0.02)) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    # Shares are corrected as one, and beside other bias each has half of the level: twice the p.
    assert of(a=(0.01, 0.04), b=(0.03, 0.02)) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert of(ARaB=(0.01, 0.3), a=(0.01, 0.04), b=(0.03, 0.02)) == pytest.approx([0.04, 0.6, 0.08, 0.12, 0.12, 0.12])
    assert of(ARaB=(0.01, 0.3), exposure=(0.01, 0.3)) == pytest.approx([0.02, 0.3, 0.02, 0.3])


def test_what_a_part_of_the_level_notices() -> None:
    """As one of two families a single test notices what each of two tests does."""
    one = Comparison(0.1, None, 20, p=0.02, mde=0.1)
    assert corrected([one], 2)[0].mde == corrected([one, one])[0].mde


def test_lists_of_unequal_depth_are_no_pair() -> None:
    short = {query: dict(itertools.islice(docs.items(), 5)) for query, docs in random_run(2).items()}
    runs = {"a": random_run(0), "b": random_run(1), "short": short}
    made = evenrank.audit(runs, collection=DOCS, qrels=QRELS, measures="nDCG@10 ARaB@3")
    by_pair = {(one.measure, one.first, one.second): one.test for one in made.pairs}
    assert by_pair["nDCG@10", "a", "b"].reason is None
    assert by_pair["nDCG@10", "a", "short"].reason == "the lists differ in length"
    assert by_pair["nDCG@10", "a", "short"].verdict == "cannot be told"
    # The first three ranks are all there.
    assert by_pair["ARaB@3", "a", "short"].reason is None


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
        assert (one.share, one.candidates) == (pytest.approx(own.mean()), pytest.approx(held.mean()))
        assert one.test.mean == pytest.approx((own - held).mean())
        groups = [[labels[doc] == one.group for doc in docs] for docs in runs[one.run].values()]
        sd = math.sqrt(sum(order_variance([0.1] * 10 + [0.0] * (len(of) - 10), of) for of in groups))
        p = compare(own - held, reach=1.0).p
        slow.append(max(float(p or 0.0), 2 * stats.norm.sf(abs((own - held).sum()) / sd)))
        if p is None:
            slow[-1] = math.nan
    # Holm by run: what is said of one does not depend on the other.
    for run in "ab":
        tests = [(one.test.holm_p, p) for one, p in zip(made.shares, slow, strict=True) if one.run == run]
        wanted = slow_holm([p for _, p in tests if not math.isnan(p)])
        assert [holm_p for holm_p, p in tests if not math.isnan(p)] == pytest.approx(wanted)
    shown = [(one.run, one.group) for one in made.shares if one.test.shown]
    assert ("b", "m") in shown
    assert not [run for run, _ in shown if run == "a"]
    # Those of the baseline, beside AWRF@10, have half of the level.
    against = [one.vs_baseline for one in made.shares if one.vs_baseline is not None]
    wanted = [min(1.0, 2 * p) for p in slow_holm([float(one.p) for one in against if one.p is not None])]
    assert len(wanted) == 4
    assert [one.holm_p for one in against] == pytest.approx(wanted)
