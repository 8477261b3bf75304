"""Hard debiasing: the formulas, a per-word loop, the properties it promises, what bad input gets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.search.debias import case_forms
from evenrank.search.embeddings import Vectors, bias_subspace, check_equality, hard_debias, specific_words


def vectors_of(rows: dict[str, list[float]]) -> Vectors:
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32))


def random_vectors(words: list[str], dimensions: int, seed: int) -> Vectors:
    return Vectors(tuple(words), np.random.default_rng(seed).normal(size=(len(words), dimensions)).astype(np.float32))


# --- a slow, obvious version -----------------------------------------------------------------------------------------


def slow(vectors: Vectors, definitional, equalize, specific, k: int) -> np.ndarray:
    """Section 6 word by word, in float64."""
    of = {w: row / np.linalg.norm(row) for w, row in zip(vectors.words, vectors.matrix.astype(np.float64), strict=True)}
    scatter = np.zeros((vectors.dimensions, vectors.dimensions))
    for words in definitional:
        known = [of[w] for w in words if w in of]
        for row in known if len(known) > 1 else ():
            apart = row - sum(known) / len(known)
            scatter += np.outer(apart, apart) / len(known)
    values, axes = np.linalg.eigh(scatter)
    basis = [axes[:, -1 - c] for c in range(k) if values[-1 - c] > 1e-9 * values[-1]]
    inside = lambda row: sum(row @ axis * axis for axis in basis)  # noqa: E731
    forms = {tuple(form(w) for w in words) for words in equalize for form in (str.lower, str.title, str.upper)}
    sets = [[w for w in form if w in of] for form in forms]
    sets = [words for words in sets if len(words) > 1]
    exempt = {w for words in sets for w in words}
    kept = {w.lower() for w in specific}
    found = {}
    for word, row in of.items():
        if word not in exempt and word.lower() not in kept:
            rest = row - inside(row)
            row = rest / np.linalg.norm(rest)
        found[word] = row
    for words in sets:
        mean = sum(of[w] for w in words) / len(words)
        nu = mean - inside(mean)
        for w in words:
            apart = inside(of[w]) - inside(mean)
            found[w] = nu + np.sqrt(1 - nu @ nu) * apart / np.linalg.norm(apart)
    return np.array([found[w] for w in vectors.words])


def slow_gaps(vectors: Vectors, neutral, sets) -> tuple[float, float]:
    rows = vectors.matrix.astype(np.float64)
    dot = distance = 0.0
    for w in rows[neutral]:
        for a, b in (pair for of in sets for pair in combinations(of, 2)):
            dot = max(dot, abs(w @ rows[a] - w @ rows[b]))
            distance = max(distance, abs(np.linalg.norm(w - rows[a]) - np.linalg.norm(w - rows[b])))
    return dot, distance


NAMES = ["aa", "Aa", "AA", "bb", "Bb", "BB", "cc", "Cc", "dd", "ee", "ff", "gg", "hh", "nurse", "boss", "work"]


DEFINITIONAL = [
    [["aa", "bb"]],
    [["aa", "bb"], ["cc", "dd"], ["none", "ee"]],
    [["aa", "bb", "cc"], ["dd", "ee", "ff"], ["gg", "hh"]],
    [["aa", "bb"], ["aa", "none", "cc"]],
]
EQUALIZE = [[], [["aa", "bb"]], [["aa", "bb"], ["BB", "AA"], ["cc", "dd"]], [["aa", "bb", "cc"], ["dd", "none", "ee"]]]
SPECIFIC = [[], ["gg"], ["gg", "AA", "BB", "nothing", "Hh"]]
SETS = st.tuples(st.sampled_from(DEFINITIONAL), st.sampled_from(EQUALIZE), st.sampled_from(SPECIFIC))


@given(SETS, st.integers(6, 12), st.integers(0, 10_000), st.integers(1, 4))
def test_a_loop_over_words_says_the_same(sets, dimensions, seed, k):
    vectors = random_vectors(NAMES, dimensions, seed)
    found = hard_debias(vectors, *sets, components=k)
    np.testing.assert_allclose(found.vectors.matrix, slow(vectors, *sets, k), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.vectors.matrix, axis=1), 1, atol=1e-6)
    gaps = slow_gaps(found.vectors, found.neutral, found.equalized)
    assert (found.check.dot, found.check.distance) == pytest.approx(gaps, abs=1e-12)
    assert found.check.holds()
    assert max(gaps) < 1e-6
    # What is neutral has nothing left in the subspace.
    assert np.abs(found.vectors.matrix[found.neutral].astype(np.float64) @ found.subspace.basis.T).max() < 1e-6
    given_back = hard_debias(vectors, *sets, components=k, in_place=True)
    assert given_back.vectors.matrix is vectors.matrix
    np.testing.assert_array_equal(vectors.matrix, found.vectors.matrix)


def test_letter_cases() -> None:
    assert case_forms(("he", "she")) == [("he", "she"), ("He", "She"), ("HE", "SHE")]
    # One word in two spellings is no pair.
    assert case_forms(("ß", "SS")) == [("ß", "ss")]
    priest = ("Catholic_priest", "nun")
    forms = [priest, ("Catholic_Priest", "Nun"), ("CATHOLIC_PRIEST", "NUN")]
    assert case_forms(priest, {"Catholic_priest", "nun"}) == forms
    words = ("he", "He", "MEN", "mens", "x")
    np.testing.assert_array_equal(specific_words(words, ["HE", "men"]), [True, True, True, False, False])
    # Pairs are equalised as written too.
    vectors = random_vectors(["she", "he", "Catholic_priest", "nun", "NUN", "CATHOLIC_PRIEST", "Nurse"], 6, 1)
    found = hard_debias(vectors, [["she", "he"]], [priest], [])
    assert (found.equalized, found.missing["equalize"]) == (((2, 3), (5, 4)), ())
    rows = found.vectors.matrix.astype(np.float64)
    for first, second in found.equalized:
        assert rows[6] @ rows[first] == pytest.approx(rows[6] @ rows[second], abs=1e-6)
    # Without a vector for the word as written, the form that has one counts.
    lower = random_vectors(["she", "he", "catholic_priest", "nun", "Nurse"], 6, 1)
    assert hard_debias(lower, [["she", "he"]], [priest], []).equalized == ((2, 3),)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    # she − he = (0, 2c): g = (0, 1); nurse (3, 4) / 5 loses the 4.
    vectors = vectors_of({"she": [3, 4], "he": [3, -4], "nurse": [6, 8], "her": [0, 2], "They": [-1, 1]})
    found = hard_debias(vectors, [["she", "he"]], [["she", "he"]], ["HER"])
    np.testing.assert_allclose(found.subspace.basis, [[0, 1]], atol=1e-12)
    np.testing.assert_allclose(found.subspace.explained, [1])
    # μ = ν = (0.6, 0), z = √(1 − 0.36) = 0.8: they stay where they are.
    np.testing.assert_allclose(found.vectors.matrix, [[0.6, 0.8], [0.6, -0.8], [1, 0], [0, 1], [-1, 0]], atol=1e-7)
    np.testing.assert_array_equal(found.neutral, [False, False, True, False, True])
    assert found.equalized == ((0, 1),)
    assert found.missing == {"definitional": (), "equalize": (), "specific": ()}
    assert (found.check.words, found.check.pairs) == (2, 1)


def test_equalising_by_hand() -> None:
    # g = (0, 0, 1). a = (1, 0, 0), b = (0, 0.6, -0.8): μ = (0.5, 0.3, −0.4), ν = (0.5, 0.3, 0), z = √0.66, and a is the
    # one further along g.
    vectors = vectors_of({"f": [0, 0, 1], "m": [0, 0, -2], "a": [2, 0, 0], "b": [0, 3, -4]})
    found = hard_debias(vectors, [["f", "m"]], [["b", "a"]], [])
    z = 0.66**0.5
    np.testing.assert_allclose(found.vectors.matrix[2:], [[0.5, 0.3, z], [0.5, 0.3, -z]], atol=1e-7)
    # A pair alike in the subspace is told apart.
    vectors = vectors_of({"f": [0, 0, 1], "m": [0, 0, -1], "a": [1, 0, 0], "b": [0, 1, 0], "w": [1, 2, 3]})
    found = hard_debias(vectors, [["f", "m"]], [["a", "b"]], [])
    z = 0.5**0.5
    np.testing.assert_allclose(found.vectors.matrix[2:4], [[0.5, 0.5, z], [0.5, 0.5, -z]], atol=1e-7)
    assert found.check.holds()


def test_fewer_pairs_than_components() -> None:
    vectors = random_vectors(NAMES, 10, 0)
    assert bias_subspace(vectors, [["aa", "bb"], ["cc", "dd"]], 9).basis.shape == (2, 10)
    # The first word of a pair lies on the positive side.
    for pair in (["aa", "bb"], ["bb", "aa"]):
        first, second = (vectors.matrix[NAMES.index(word)] for word in pair)
        basis = bias_subspace(vectors, [pair]).basis[0]
        assert basis @ (first / np.linalg.norm(first)) > basis @ (second / np.linalg.norm(second))


def test_few_sets_and_missing_words_are_told() -> None:
    vectors = random_vectors(NAMES, 10, 0)
    pairs = [NAMES[start : start + 2] for start in (0, 2, 4)]
    assert "Warning" not in hard_debias(vectors, pairs, [], []).text()
    for sets, expected in (
        ([*pairs[:2], ["no", "none"]], "rests on 2 definitional sets of 3 (the others lack vectors)"),
        (pairs[:1], "rests on one definitional set of 1"),
    ):
        line = hard_debias(vectors, sets, [], []).text().splitlines()[1]
        assert line == f"Warning: the bias subspace {expected} and may not be that of the groups."
    vectors = random_vectors(["she", "he", "Aunt", "HIS", "nurse"], 6, 0)
    equalize, specific = [["she", "he"], ["aunt", "uncle"]], ["his", "hers", "she"]
    found = hard_debias(vectors, [["she", "he"], ["mary", "john"]], equalize, specific)
    assert found.missing == {"definitional": ("mary", "john"), "equalize": ("uncle",), "specific": ("hers",)}
    assert found.equalized == ((0, 1),)
    np.testing.assert_array_equal(found.neutral, [False, False, True, False, True])


def test_words_within_the_subspace_and_empty_vectors() -> None:
    vectors = vectors_of({"f": [0, 1, 0], "m": [0, -1, 0], "g": [0, 3, 0], "nothing": [0, 0, 0], "w": [1, 1, 0]})
    found = hard_debias(vectors, [["f", "m"]], [["f", "m"]], [])
    np.testing.assert_allclose(found.vectors.matrix[2:], [[0, 0, 0], [0, 0, 0], [1, 0, 0]], atol=1e-7)
    assert found.zeroed == 1
    # What is almost within it is still orthogonal.
    rng = np.random.default_rng(0)
    direction = rng.normal(size=50)
    direction /= np.linalg.norm(direction)
    rows = {"f": direction, "m": -direction, "w": direction + 1e-4 * rng.normal(size=50)}
    found = hard_debias(vectors_of({word: list(row) for word, row in rows.items()}), [["f", "m"]], [], [])
    left = found.vectors.matrix[2].astype(np.float64)
    assert abs(left @ found.subspace.basis[0]) < 1e-7
    assert np.linalg.norm(left) == pytest.approx(1, abs=1e-6)


def test_the_check_finds_what_is_wrong() -> None:
    vectors = vectors_of({"a": [1, 0], "b": [0, 1], "w": [1, 0.001], "v": [0.6, 0.8]})
    check = check_equality(vectors, np.array([False, False, True, True]), [(0, 1)])
    assert check.dot == pytest.approx(0.999, abs=1e-6)
    # w lies next to a: ‖w − a‖ = 0.001.
    assert check.distance == pytest.approx((1 + 0.999**2) ** 0.5 - 0.001, abs=1e-6)
    assert not check.holds()
    nothing = check_equality(vectors, np.zeros(4, np.bool_), [(0, 1)])
    assert (nothing.dot, nothing.words, nothing.pairs) == (0, 0, 1)


@pytest.mark.parametrize(("pairs", "dimensions"), [(1, 3), (5, 50), (45, 50), (200, 2)])
@pytest.mark.parametrize("block", [7, 2048])
def test_the_check_of_any_vectors(pairs, dimensions, block, monkeypatch) -> None:
    monkeypatch.setattr("evenrank.search.debias._WORDS", block)
    words = [f"w{i}" for i in range(2 * pairs + 60)]
    vectors = random_vectors(words, dimensions, pairs)
    sets = [(2 * i, 2 * i + 1) for i in range(pairs)]
    neutral = np.arange(len(words)) >= 2 * pairs
    check = check_equality(vectors, neutral, sets)
    # Where the differences fill more than 32 directions, and where they do not.
    assert (check.dot, check.distance) == pytest.approx(slow_gaps(vectors, neutral, sets), rel=1e-5)
    assert (check.words, check.pairs) == (60, pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": 0}, "`components`: expected 1 or more, found 0"),
        ({"components": 6}, r"`components`: expected 1 to 5 \(vectors of 6 dimensions\), found 6"),
        ({"definitional": [["xx", "yy"]]}, r"definitional sets: none has two words with a vector \(xx, yy\)"),
        ({"definitional": [["cc", "same"]]}, "the words of each set have the same vector"),
        ({"equalize": [["aa", "bb"], ["AA", "cc"]]}, "equalize: aa is in two sets, aa / bb and aa / cc"),
    ],
)
def test_what_cannot_be_done(change: dict, message: str) -> None:
    rng = np.random.default_rng(0)
    rows = {word: list(rng.normal(size=6)) for word in ("aa", "bb", "cc")}
    vectors = vectors_of({**rows, "same": [2 * x for x in rows["cc"]]})
    settings = {"definitional": [["aa", "bb"]], "equalize": [], "specific": [], **change}
    with pytest.raises(EvenrankError, match=message):
        hard_debias(vectors, **settings)
    vectors.matrix.flags.writeable = False
    with pytest.raises(EvenrankError, match="read-only matrix cannot be debiased in place"):
        hard_debias(vectors, [["aa", "bb"]], [], [], in_place=True)
