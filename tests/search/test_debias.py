"""Hard debiasing: the formulas, a per-word loop, the properties it promises, what bad input gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError
from evenrank.search import (
    EvaluationSettings,
    Vectors,
    WordSets,
    analogy,
    check_equality,
    evaluate_bias,
    hard_debias,
    load_word_sets,
    most_biased,
    read_sets,
    read_word_list,
    recovery,
    specific_words,
)
from evenrank.search.debias import case_forms


def vectors_of(rows: dict[str, list[float]]) -> Vectors:
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32))


def random_vectors(words: list[str], dimensions: int, seed: int) -> Vectors:
    return Vectors(tuple(words), np.random.default_rng(seed).normal(size=(len(words), dimensions)).astype(np.float32))


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
    assert found.check.pairs == sum(len(of) * (len(of) - 1) // 2 for of in found.equalized)
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
    words = ("he", "He", "MEN", "mens", "x")
    np.testing.assert_array_equal(specific_words(words, ["HE", "men"]), [True, True, True, False, False])
    # Pairs are equalised as written too.
    vectors = random_vectors(["she", "he", "Catholic_priest", "nun", "NUN", "CATHOLIC_PRIEST", "Nurse"], 6, 1)
    found = hard_debias(vectors, [["she", "he"]], [priest], [])
    assert (found.equalized, found.missing["equalize"]) == (((2, 3), (5, 4)), ())
    # Without a vector for the word as written, the form that has one counts.
    lower = random_vectors(["she", "he", "catholic_priest", "nun", "Nurse"], 6, 1)
    assert hard_debias(lower, [["she", "he"]], [priest], []).equalized == ((2, 3),)


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


def test_few_sets_and_missing_words_are_told() -> None:
    vectors = random_vectors(NAMES, 10, 0)
    pairs = [NAMES[start : start + 2] for start in (0, 2, 4)]
    for sets, used in (([*pairs[:2], ["no", "none"]], (2, 3)), (pairs[:1], (1, 1)), (pairs, (3, 3))):
        subspace = hard_debias(vectors, sets, [], []).subspace
        assert (subspace.few_sets, subspace.sets) == (used[0] < 3, used)
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


@pytest.mark.parametrize(("pairs", "dimensions"), [(5, 50), (45, 50), (90, 2)])
def test_the_check_of_any_vectors(pairs, dimensions, monkeypatch) -> None:
    monkeypatch.setattr("evenrank.search.debias._WORDS", 7)
    words = [f"w{i}" for i in range(2 * pairs + 60)]
    vectors = random_vectors(words, dimensions, pairs)
    sets = [(2 * i, 2 * i + 1) for i in range(pairs)]
    neutral = np.arange(len(words)) >= 2 * pairs
    check = check_equality(vectors, neutral, sets)
    # Where the differences fill more than 32 directions, and where they do not.
    assert (check.dot, check.distance) == pytest.approx(slow_gaps(vectors, neutral, sets), rel=1e-5)
    assert (check.words, check.pairs, check.holds()) == (60, pairs, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": 0}, "`components`: expected 1 or more, found 0"),
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


SETTINGS = EvaluationSettings(count=90, train=36)


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_analogies_by_hand() -> None:
    rows = {"man": [1, 0, 3], "woman": [-1, 0, 3], "king": [1, 5, 3], "queen": [-1, 5, 3], "cat": [0, -9, 0.5]}
    vectors = vectors_of(rows)
    found = analogy(vectors, "man", "woman", "king")
    # The vectors' answer itself is king: unit vectors of 3 dimensions, so little is the gender's share.
    u = {word: np.array(row) / np.linalg.norm(row) for word, row in rows.items()}
    point = u["woman"] - u["man"] + u["king"]
    order = sorted(rows, key=lambda word: -cos(u[word], point))
    assert (found.free, found.constrained, found.robust) == (order[0], "queen", True)
    unknown = analogy(vectors, "man", "woman", "nobody")
    assert (unknown.free, unknown.constrained, unknown.robust) == (None, None, None)
    # No word is left.
    for words in ("x", "xyz"):
        left = Vectors(tuple(words), np.eye(3, dtype=np.float32)[: len(words)])
        assert analogy(left, words[0], words[-1], words[len(words) // 2]).constrained is None


def test_the_most_biased_words() -> None:
    rows = {"he": [9, 0], "a": [5, 1], "b": [3, 4], "B": [4, 0], "c3": [4, 0], "d": [-1, 2], "e": [-7, 1], "f": [0, 1]}
    rows |= {"g" * 21: [6, 0], "late": [8, 0]}
    vectors = vectors_of(rows)
    neutral = np.array([word != "he" for word in rows])
    direction = np.array([1.0, 0.0])

    def words(count: int) -> list[list[str]]:
        return [[vectors.words[i] for i in side] for side in most_biased(vectors, direction, neutral, count, 9)]

    assert words(1) == [["a"], ["e"]]
    assert words(500) == [["a", "b"], ["e", "d"]]


def test_recovery_of_what_is_there_and_what_is_not() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(400, 20)).astype(np.float32)
    words = tuple(f"w{i}" for i in range(400))
    sides = np.arange(200), np.arange(200, 400)
    found = recovery(Vectors(words, matrix), sides, train=80)
    assert found.kmeans < 0.62
    assert 0.4 < found.linear < 0.6
    assert 0.4 < found.rbf < 0.6
    matrix[:200, 0] += 8
    found = recovery(Vectors(words, matrix), sides, train=80)
    assert min(found.kmeans, found.linear, found.rbf) > 0.95
    assert found == recovery(Vectors(words, matrix), sides, train=80)
    assert found.of_word["kmeans"].mean() == found.kmeans
    # Every word is tested in six of ten splits or thereabouts.
    assert found.of_word["rbf"].mean() == pytest.approx(found.rbf, abs=0.02)
    # A ring around a ball: no line, no two clusters, but a radial kernel tells them apart.
    angle = rng.uniform(0, 2 * np.pi, 200)
    ring = np.c_[np.cos(angle), np.sin(angle), np.zeros(200)]
    ball = np.c_[0.2 * rng.normal(size=(200, 2)), np.ones(200)]
    ball[::2, 2] = -1
    found = recovery(Vectors(words, np.concatenate([ring, ball]).astype(np.float32)), sides, train=80)
    assert found.rbf > 0.95
    assert found.linear < 0.75
    with pytest.raises(EvenrankError, match="5 words or more of each side, found 4"):
        recovery(Vectors(words, matrix), (np.arange(4), np.arange(100)))


def planted(seed: int = 0) -> tuple[Vectors, WordSets]:
    """Female and male words, and neutral ones that lean to a side in one dimension and, as strongly, in another."""
    rng = np.random.default_rng(seed)
    letters = "abcdefghij"
    rows: dict[str, np.ndarray] = {}
    for i in range(5):
        base = 0.3 * rng.normal(size=30)
        for group, sign in (("f", 1), ("m", -1)):
            rows[group + letters[i]] = base + sign * 3 * np.eye(30)[0]
    for side, sign in (("x", 1), ("y", -1)):
        for i in range(100):
            word = side + letters[i // 10] + letters[i % 10]
            rows[word] = rng.normal(size=30) + sign * (2 * np.eye(30)[0] + 4 * np.eye(30)[1])
    pairs = tuple((f"f{c}", f"m{c}") for c in "abcde")
    specific = tuple(word for pair in pairs for word in pair)
    analogies = (("fa", "xaa", "ma"), ("fa", "none", "ma"))
    sets = WordSets("planted", pairs, pairs, specific, ("xaa", "yaa"), analogies)
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32)), sets


def test_hard_debiasing_hides_the_bias_of_words() -> None:
    pytest.importorskip("sklearn")
    vectors, sets = planted()
    hard = hard_debias(vectors, sets.definitional, sets.equalize, sets.specific)
    found = evaluate_bias(vectors, hard.vectors, sets, settings=SETTINGS)
    after = found.after
    assert found.before.recovery is not None
    assert found.settings["most_biased"] == 90
    assert {word[0] for word in found.most[0]} == {"x"}
    assert {word[0] for word in found.most[1]} == {"y"}
    # The lean of the second dimension is all still there.
    assert min(after.recovery.kmeans, after.recovery.linear, after.recovery.rbf) > 0.9
    assert [three.a for three in after.analogies] == ["fa"]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_sets, '{"a": 1}', "expected a list of lists of words, found"),
        (read_sets, "[]", "found an empty list"),
        (read_sets, '[["a", "b"], ["c"]]', "set 2: expected two words or more, found 1"),
        (read_sets, '["ab", "cd"]', "set 1: expected a list of words"),
        (read_sets, '[["a", "a"]]', "set 1: a word is repeated"),
        (read_word_list, '["a", ["b"]]', "entry 2: expected a word"),
        (read_word_list, "", "the file is empty"),
    ],
)
def test_bad_word_files(read: Callable[[Path], object], content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(InputError) as error:
        read(tmp_path / "f.json")
    assert str(error.value).startswith(str(tmp_path / "f.json"))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_pairs_take_the_order_of_the_definitional_sets(tmp_path: Path) -> None:
    """Which group a list names first, it says by the pairs that are definitional too."""
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps([["she", "he"], ["a", "b", "ç"]]))
    assert read_sets(file) == (("she", "he"), ("a", "b", "ç"))
    file.write_text(json.dumps([["Man", "Woman"], ["monk", "nun"], ["a", "b", "c"]]), encoding="utf-8")
    assert load_word_sets(equalize=file).equalize == (("Woman", "Man"), ("nun", "monk"), ("a", "b", "c"))
    file.write_text(json.dumps([["woman", "man"], ["nun", "monk"]]), encoding="utf-8")
    assert load_word_sets(equalize=file).equalize == (("woman", "man"), ("nun", "monk"))
    file.write_text(json.dumps([["woman", "man"], ["he", "she"]]), encoding="utf-8")
    with pytest.raises(InputError, match="the same group first in every pair, found 'woman, man' and 'he, she'"):
        load_word_sets(equalize=file)
