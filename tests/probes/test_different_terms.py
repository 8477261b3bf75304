"""The level of different terms, against a slow version over all pairs."""

from __future__ import annotations

import itertools

import numpy as np

from evenrank.probes.similarity import different_terms


def test_the_sampled_level_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    size = 60
    vectors = rng.normal(size=(size, 4)).astype(np.float32) + 1
    terms, places, passages = rng.integers(-1, 8, size), rng.integers(0, 4, size), rng.integers(0, 9, size)
    sums: dict[int, list[float]] = {}
    for i, j in itertools.combinations(range(size), 2):
        if min(terms[i], terms[j]) < 0 or terms[i] == terms[j] or passages[i] == passages[j]:
            continue
        one, other = vectors[i].astype(float), vectors[j].astype(float)
        cosine = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        sums.setdefault(abs(int(places[i] - places[j])), []).append(cosine)
    found = different_terms(vectors, terms, places, passages)
    assert len(found) == max(sums) + 1
    for distance, values in sums.items():
        assert abs(found[distance] - np.mean(values)) < 0.01


def test_collapsed_vectors_have_a_level_of_one() -> None:
    vectors = np.ones((50, 3), np.float32)
    found = different_terms(vectors, np.arange(50) % 5, np.arange(50) % 7, np.arange(50) % 10)
    assert np.nanmin(found) > 0.999


def test_no_words_no_level() -> None:
    nothing = np.empty(0, np.int64)
    assert np.isnan(different_terms(np.empty((0, 3), np.float32), nothing, nothing, nothing)).all()
