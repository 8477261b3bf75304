"""Originals and variants ranked together."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.measures.statistics import bootstrap_means, interval
from evenrank.probes.effects import effect
from evenrank.probes.matched import overlaps
from evenrank.probes.mixed_pool import mixed_pool


def orders(texts):
    """Every order of texts (score, …) by falling score."""
    levels = sorted({text[0] for text in texts}, reverse=True)
    blocks = [list(itertools.permutations([text for text in texts if text[0] == level])) for level in levels]
    for choice in itertools.product(*blocks):
        yield [text for block in choice for text in block]


def slow_query(rows, k):
    """Over every order of one query's ties: the expected variants and versions in the first k, and both nDCG."""
    texts, grades = [], []
    counts = []
    for score, variant, grade in rows:
        if np.isnan(variant):
            texts.append((score, "alone", 0))
        else:
            texts += [(score, "original", grade), (variant, "variant", grade)]
            grades.append(grade)
    best = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted((max(g, 0) for g in grades), reverse=True)[:k]))
    values = {"original": [], "variant": []}
    for order in orders(texts):
        versions = [text[1] for text in order[:k] if text[1] != "alone"]
        counts.append((versions.count("variant"), len(versions)))
        for one, found in values.items():
            gains = (max(g, 0) / math.log2(r + 2) for r, (_, what, g) in enumerate(order[:k]) if what == one)
            found.append(sum(gains) / best if best else np.nan)
    return *np.mean(counts, axis=0), *(np.mean(values[one]) for one in ("original", "variant"))


LEVELS = st.sampled_from([0.0, 1.0, 2.0, 2.5])
LIST = st.lists(st.tuples(LEVELS, st.one_of(LEVELS, st.just(np.nan)), st.integers(-1, 3)), min_size=1, max_size=4)


@given(st.lists(LIST, min_size=1, max_size=3), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_expectations_are_means_over_all_orders_of_ties(lists, k):
    rows = [(query, *row) for query, one in enumerate(lists) for row in one]
    query, scores, variants, grades = (np.array(column) for column in zip(*rows, strict=True))
    found = mixed_pool(scores, variants, query, np.arange(len(rows)), grades.astype(int), k=k)
    firsts, versions, originals, of_variants = np.array([slow_query(one, k) for one in lists]).T
    # In lists of no more than k texts all versions are among the first k.
    short = [sum(1 if np.isnan(variant) else 2 for _, variant, _ in one) <= k for one in lists]
    firsts[short] = versions[short] = 0
    assert found.queries == (versions > 0).sum()
    assert found.judged == (~np.isnan(originals)).sum()
    assert found.share == (pytest.approx(firsts.sum() / versions.sum()) if versions.any() else None)
    for value, slow in ((found.ndcg_originals, originals), (found.ndcg_variants, of_variants)):
        assert value == (None if np.isnan(slow).all() else pytest.approx(np.nanmean(slow)))
    if found.judged and found.ndcg_originals + found.ndcg_variants > 0:
        a, b = found.ndcg_originals, found.ndcg_variants
        assert found.relative == pytest.approx(200 * (a - b) / (a + b))


def lists_of(queries, each, rng):
    query = np.repeat(np.arange(queries), each)
    return query, rng.standard_normal(len(query)), (rng.random(len(query)) < 0.2).astype(int)


def test_the_better_version_comes_first():
    query, scores, grades = lists_of(40, 20, np.random.default_rng(0))
    found = mixed_pool(scores, scores + 5, query, np.arange(800), grades)
    assert found.share == 1.0
    assert found.share_ci95 == pytest.approx((1.0, 1.0))
    assert found.share_p == 2**-39
    assert found.relative < -90
    back = mixed_pool(scores + 5, scores, query, np.arange(800), grades)
    assert back.share == 0.0
    assert back.relative == pytest.approx(-found.relative)
    assert back.relative_ci95 == pytest.approx((-found.relative_ci95[1], -found.relative_ci95[0]), abs=1e-9)


def test_versions_that_are_always_tied():
    query, scores, grades = lists_of(10, 15, np.random.default_rng(0))
    found = mixed_pool(scores, scores, query, np.arange(150), grades, k=5)
    assert found.share == pytest.approx(0.5)
    assert found.share_p == 1.0
    assert found.relative == pytest.approx(0.0, abs=1e-9)


def test_the_relative_differences_interval_is_the_bootstraps():
    query, scores, _ = lists_of(12, 6, np.random.default_rng(4))
    grades = np.ones(len(query), int)
    variants = np.random.default_rng(5).standard_normal(len(scores))
    found = mixed_pool(scores, variants, query, np.arange(72), grades, k=3, seed=7)
    values = []
    for one in range(12):
        own = query == one
        values.append(slow_query(list(zip(scores[own], variants[own], grades[own], strict=True)), 3)[2:])
    draws = bootstrap_means(np.array(values), 7)
    relative = 200 * (draws[:, 0] - draws[:, 1]) / (draws[:, 0] + draws[:, 1])
    assert found.relative_ci95 == pytest.approx(interval(relative))


def test_the_shares_error_is_the_jackknifes():
    # One pair a query, and a passage each: the two-way error is the ratio's usual one.
    rng = np.random.default_rng(8)
    query = np.repeat(np.arange(300), 4)
    scores, variants = rng.standard_normal(1200), rng.standard_normal(1200) + 0.3
    found = mixed_pool(scores, variants, query, np.arange(1200), k=3)
    counts = np.array(
        [
            slow_query([(s, v, 0) for s, v in zip(scores[q == query], variants[q == query], strict=True)], 3)[:2]
            for q in range(300)
        ]
    )
    without = (counts.sum(axis=0) - counts).T
    shares = without[0] / without[1]
    error = (299 / 300 * ((shares - shares.mean()) ** 2).sum()) ** 0.5
    assert (found.share_ci95[1] - found.share_ci95[0]) / 2 / 1.968 == pytest.approx(error, rel=0.02)


def test_nothing_to_compare():
    found = mixed_pool(np.array([1.0, 2.0]), np.full(2, np.nan), np.array([0, 1]), np.array([0, 1]), np.array([1, 1]))
    assert found.to_dict() == {
        "k": 10, "queries": 0, "share": None, "share_ci95": None, "share_p": None, "judged": 0,
        "ndcg_originals": None, "ndcg_variants": None, "relative": None, "relative_ci95": None, "of": None,
    }  # fmt: skip
    one = mixed_pool(np.array([1.0]), np.array([2.0]), np.array([7]), np.array([5]), k=1)
    assert (one.share, one.share_ci95, one.judged) == (1.0, None, 0)
    assert mixed_pool(np.array([1.0]), np.array([2.0]), np.array([7]), np.array([5]), k=2).share is None
    assert mixed_pool(*np.empty((2, 0)), *np.empty((2, 0), int)).share is None


def shuffled_rejections(scores, variants, query, passage, shuffles):
    """The share of shuffles, in which each passage's versions are exchanged or not, with p < .05: of the effect, and of
    the mixed pool's share."""
    found = np.zeros(2)
    for seed in range(shuffles):
        exchanged = np.random.default_rng(seed).random(int(passage.max()) + 1) < 0.5
        first = np.where(exchanged[passage], variants, scores)
        second = np.where(exchanged[passage], scores, variants)
        pool = mixed_pool(first, second, query, passage)
        found += [effect(second - first, query, passage).p < 0.05, pool.share_p < 0.05]
    return found / shuffles


def test_shuffled_labels_show_no_effect():
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(80), 6)
    passage = rng.integers(0, 300, len(query))
    # One version is much better: only its label is shuffled.
    scores = rng.standard_normal(len(query))
    variants = scores + 0.3 * rng.standard_normal(300)[passage] + 0.5 + 0.1 * rng.standard_normal(len(query))
    assert effect(variants - scores, query, passage).p < 1e-9
    assert mixed_pool(scores, variants, query, passage).share_p < 1e-3
    found = shuffled_rejections(scores, variants, query, passage, 1000)
    assert (found >= 0.03).all()
    assert (found <= 0.07).all()


def test_shuffled_labels_of_peoples_and_a_language_models_text(shared_data):
    folder = shared_data / "nq_utd"
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    query, passage = (np.unique([row[side] for row in rows], return_inverse=True) for side in (0, 1))

    def texts(name, ids):
        by_id = {row["_id"]: row["text"] for row in map(json.loads, (folder / name).read_text().splitlines())}
        return [by_id[one] for one in ids]

    queries = texts("queries.jsonl", query[0])
    # A ranker by shared words, in deviations of the query's list.
    scores, variants = (
        overlaps(queries, texts(name, passage[0]), query[1], passage[1]) for name in ("human.jsonl", "llama2.jsonl")
    )
    deviation = np.array([scores[query[1] == one].std() for one in range(80)])[query[1]]
    known = deviation > 0
    columns = (
        side[known] for side in (scores / np.where(known, deviation, 1), variants / np.where(known, deviation, 1))
    )
    found = shuffled_rejections(*columns, query[1][known], passage[1][known], 200)
    # 5 % of 200, and two standard errors more.
    assert (found <= 0.08).all()
