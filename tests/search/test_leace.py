"""LEACE: one mean for every group, the authors' package, and no linear classifier beats chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.search.embeddings import Vectors, fit_leace
from evenrank.search.leace import leace


def random_vectors(words: list[str], dimensions: int, seed: int) -> Vectors:
    return Vectors(tuple(words), np.random.default_rng(seed).normal(size=(len(words), dimensions)).astype(np.float32))


NAMES = ["aa", "Aa", "AA", "bb", "Bb", "BB", "cc", "Cc", "dd", "ee", "ff", "gg", "hh", "nurse", "boss", "work"]


@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([3, 8, 60]))
def test_erased_groups_have_one_mean(seed: int, groups: int, dimensions: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.arange(40) % groups
    rows = rng.normal(size=(40, dimensions)) + 2 * rng.normal(size=(groups, dimensions))[labels]
    erased = fit_leace(rows, labels)(rows)
    means = np.array([erased[labels == group].mean(axis=0) for group in range(groups)])
    np.testing.assert_allclose(means, np.broadcast_to(means[0], means.shape), atol=1e-9)
    np.testing.assert_allclose(erased.mean(axis=0), rows.mean(axis=0), atol=1e-9)


def test_the_authors_package_says_the_same() -> None:
    concept_erasure = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    rows = rng.normal(size=(300, 12)) @ rng.normal(size=(12, 12)) + rng.normal(size=(3, 12))[labels]
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-9, "dtype": torch.float64}
    fitter = concept_erasure.LeaceFitter(12, 3, **options)
    fitter.update(torch.from_numpy(rows), torch.nn.functional.one_hot(torch.from_numpy(labels)))
    theirs = fitter.eraser(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(fit_leace(rows, labels)(rows), theirs, atol=1e-9)


def test_no_linear_classifier_beats_chance_after_leace() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(400)]
    labels = (np.arange(400) < 250).astype(int)
    matrix = rng.normal(size=(400, 20)).astype(np.float32)
    matrix[:250, :3] += 1.5
    vectors = Vectors(tuple(words), matrix)

    def accuracy(rows: np.ndarray) -> float:
        return linear.LogisticRegression(C=1e6, max_iter=10_000).fit(rows, labels).score(rows, labels)

    assert accuracy(matrix) > 0.9
    neutral = np.ones(400, np.bool_)
    neutral[399] = False
    found = leace(vectors, [words[:250], [*words[250:399], "nobody"]], neutral)
    assert found.missing == ("nobody",)
    erased = found.vectors.matrix[:399].astype(np.float64)
    labels = labels[:399]
    # The best constant: 250 of 399.
    assert accuracy(erased) == pytest.approx(250 / 399)
    # Least squares predicts one value for all. A direction is gone, but for rounding: not to be taken for one.
    columns = np.c_[erased, np.ones(399)]
    predicted = columns @ np.linalg.lstsq(columns, labels.astype(float), rcond=1e-5)[0]
    np.testing.assert_allclose(predicted, 250 / 399, atol=1e-5)
    assert found.gap[0] > 0.3
    assert found.gap[1] < 1e-7
    np.testing.assert_allclose(found.vectors.matrix[399], matrix[399] / np.linalg.norm(matrix[399]), rtol=1e-6)
    in_place = leace(vectors, [words[:250], words[250:399]], neutral, in_place=True)
    np.testing.assert_array_equal(vectors.matrix, found.vectors.matrix)
    assert in_place.vectors.matrix is vectors.matrix


def test_leace_needs_two_groups() -> None:
    vectors = random_vectors(NAMES, 6, 0)
    neutral = np.ones(len(NAMES), np.bool_)
    with pytest.raises(EvenrankError, match="aa is in two groups, 1 and 2"):
        leace(vectors, [["aa"], ["bb", "aa"]], neutral)
    with pytest.raises(EvenrankError, match="expected words of two groups or more, found 1"):
        leace(vectors, [["aa", "bb"], ["nobody"]], neutral)
