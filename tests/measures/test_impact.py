"""ImpactRatio: hand-worked tables and a slow version over random input. Its interval: tests/stats/test_ratios.py."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slow
import slow_exposure as plain
from evenrank.files import Run
from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.measures.impact import pooled_terms
from evenrank.stats.ratios import Selection, rate_ratios

seeds = st.integers(0, 10_000)


def evaluation(*lists: list[str]) -> Evaluation:
    """Lists of people of the groups f, m and n (none), which is the first letter of each."""
    known = {"f": (1, 0), "m": (0, 1), "n": (0, 0)}
    rows = [(f"q{q}", doc, -float(rank)) for q, docs in enumerate(lists) for rank, doc in enumerate(docs)]
    run = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    return Evaluation(Run.from_table(run), plain.labels({doc: known[doc[0]] for _, doc, _ in rows}, "fm"))


# Of 4 f 2 are among the first 3, of 4 m 1: the rates are .5 and .25.
LIST = "ffmffmmmnn"
FIRST, SECOND, THIRD = (1 / math.log2(1 + rank) for rank in (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "lists", "value"),
    [
        ("ImpactRatio(group='m')@3", [LIST], 0.5),
        ("ImpactRatio(group='f')@3", [LIST], 1.0),
        ("ImpactRatio(group='m',pooled=True)@3", [LIST], 0.5),
        # Exposure of two first ranks against that of the third.
        ("ImpactRatio(group='m',discount='dcg')@3", [LIST], THIRD / (FIRST + SECOND)),
        # A second list, in which the only f is not the first and all four m are not either: f 2/5, m 2/8.
        ("ImpactRatio(group='m',pooled=True)@3", [LIST, "nnmmmmf"], (2 / 8) / (2 / 5)),
        ("ImpactRatio(group='m')@3", [LIST, "nnmmmmf"], (0.5 + 1.0) / 2),
        ("ImpactRatio(group='f')@3", [LIST, "nnmmmmf"], (1.0 + 0.0) / 2),
        # Nobody of any group is selected: that list has no value.
        ("ImpactRatio(group='m')@2", ["nnfm", "fm"], 1.0),
        ("ImpactRatio(group='f')@2", ["mm", "fm"], 1.0),
        ("ImpactRatio(group='f',pooled=True)@2", ["nnfm"], math.nan),
    ],
)
def test_hand_worked(text: str, lists: list[str], value: float) -> None:
    people = [[f"{group}{q}{rank}" for rank, group in enumerate(docs)] for q, docs in enumerate(lists)]
    assert evaluation(*people).figure(parse_measure(text)) == pytest.approx(value, nan_ok=True)


def slow_ratio(selected: list[list[float]], rows: list[list[float]], people: list[float], group: int) -> float:
    """The pooled ratio straight from its definition; ``people``: of each group."""
    chosen = [sum(column) for column in zip(*selected, strict=True)]
    of = [sum(column) for column in zip(*rows, strict=True)]
    large = [own >= 10 - 1e-9 and n >= 0.02 * sum(of) - 1e-9 for n, own in zip(of, people, strict=True)]
    rates = [s / n if n else -1.0 for s, n in zip(chosen, of, strict=True)]
    most = max(rate for rate, enough in zip(rates, large, strict=True) if enough or not any(large))
    return rates[group] / most if most > 0 and of[group] else math.nan


@given(seeds, st.sampled_from([1, 2, 4]), st.sampled_from(["", "discount='dcg',"]), st.integers(1, 12))
@example(3662, 1, "", 7)  # ten people, but for rounding
def test_against_a_slow_version(seed: int, k: int, discount: str, queries: int) -> None:
    run, table, _ = slow.random_case(seed, queries=queries, longest=8, levels=3)
    found = Evaluation(Run.from_table(run), table)
    weight = {g: dict(zip(table.table["doc_id"], table.weight(g).tolist(), strict=True)) for g in table.groups}
    lists = [[[weight[g][doc] for g in table.groups] for doc, _ in docs] for docs in slow.rankings(found.run).values()]
    selected = []
    for docs in lists:
        own = [0.0] * len(table.groups)
        for rank, weights in enumerate(docs[:k], 1):
            for g, of in enumerate(weights):
                own[g] += of / math.log2(1 + rank) if discount else of
        selected.append(own)
    rows = [[sum(column) for column in zip(*docs, strict=True)] for docs in lists]
    everyone = {doc for docs in slow.rankings(found.run).values() for doc, _ in docs}
    people = [sum(weight[g][doc] for doc in everyone) for g in table.groups]
    for g, name in enumerate(table.groups):
        pooled = resolve(parse_measure(f"ImpactRatio(group='{name}',{discount}pooled=True)@{k}"))
        expected = slow_ratio(selected, rows, people, g)
        np.testing.assert_allclose(pooled.figure(pooled.parts(found)), expected, atol=1e-9)
        single = resolve(parse_measure(f"ImpactRatio(group='{name}',{discount})@{k}"))
        for value, s, n in zip(single.values(found), selected, rows, strict=True):
            rates = [one / of for one, of in zip(s, n, strict=True) if of > 0]
            if not n[g] or max(rates) <= 0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(s[g] / n[g] / max(rates))


def test_terms_are_what_leaving_a_query_out_changes() -> None:
    rng = np.random.default_rng(3)
    people = rng.integers(5, 20, (200, 2)).astype(float)
    selected = np.floor(people * rng.random((200, 2)) * [0.5, 0.9])
    terms = pooled_terms(Selection(selected, people, None, (selected, people)), 0)
    whole = slow_ratio(selected.tolist(), people.tolist(), [100, 100], 0)
    assert terms.mean() == pytest.approx(whole)
    for q in (0, 57, 199):
        rest = slow_ratio(np.delete(selected, q, 0).tolist(), np.delete(people, q, 0).tolist(), [100, 100], 0)
        assert 200 * whole - 199 * rest == pytest.approx(terms[q], abs=0.02)


def test_documents_are_the_people_of_a_run() -> None:
    rng = np.random.default_rng(4)
    docs = [f"{group}{number}" for group in "fm" for number in range(30)]
    lists = [rng.permutation(docs)[: rng.integers(10, 60)].tolist() for _ in range(8)]
    found = evaluation(*lists)
    rows = [(rank < 5, doc, q) for q, own in enumerate(lists) for rank, doc in enumerate(own)]
    taken, of, query = (np.array(column) for column in zip(*rows, strict=True))
    person = np.array([docs.index(doc) for doc in of])
    by_rows = rate_ratios(Selection.of_rows(taken.astype(float), np.eye(2)[person // 30], person, query))
    for group, ratio in zip("fm", by_rows, strict=True):
        measure = resolve(parse_measure(f"ImpactRatio(group='{group}',pooled=True)@5"))
        assert measure.figure(measure.parts(found)) == pytest.approx(ratio.mean)
        assert measure.interval(found) == (ratio.ci95 and pytest.approx(ratio.ci95))
    # Eight lists of the same people are no 8 · 60 people.
    assert {ratio.n for ratio in by_rows} == {30}
