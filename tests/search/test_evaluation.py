"""The evaluation of bias: each figure by hand and against a slow version, and planted bias that has to be found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.files.json_values import json_values
from evenrank.search.embeddings import (
    AssociationTest,
    EvaluationSettings,
    Vectors,
    WordSets,
    analogy,
    association,
    direct_bias,
    evaluate_bias,
    hard_debias,
    most_biased,
    nearest,
    recovery,
)
from evenrank.search.embeddings_audit import cosines, permutation_p


def vectors_of(rows: dict[str, list[float]]) -> Vectors:
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32))


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- the figures by hand ---------------------------------------------------------------------------------------------


def test_direct_bias_by_hand() -> None:
    rows = np.array([[3, 4], [-6, 8], [0, 2]], np.float32)
    g = np.array([1.0, 0.0])
    assert direct_bias(rows, g) == pytest.approx((0.6 + 0.6 + 0) / 3)
    assert direct_bias(rows, g, 2) == pytest.approx(0.24)
    assert np.isnan(direct_bias(rows[:0], g))


def test_association_by_hand() -> None:
    # s = cos(w, a) − cos(w, b): x1 0.8 − 0.6, x2 1 − 0, y1 0 − 1, y2 0.6 − 0.8.
    vectors = vectors_of({"a": [1, 0], "b": [0, 1], "x1": [4, 3], "x2": [2, 0], "y1": [0, 5], "y2": [3, 4]})
    test = AssociationTest("t", ("x1", "x2"), ("y1", "y2", "none"), ("a",), ("b",))
    found = association(vectors, test)
    s = np.array([0.2, 1, -1, -0.2])
    assert found.effect == pytest.approx((0.6 + 0.6) / s.std(ddof=1), rel=1e-6)
    # Of the 6 pairs none but {x1, x2} sums to 1.2.
    assert (found.p, found.partitions, found.exact) == (pytest.approx(1 / 6), 6, True)
    assert found.missing == ("none",)
    assert association(vectors, AssociationTest("t", ("y1", "y2"), ("x1", "x2"), ("a",), ("b",))).p == 1
    too_few = association(vectors, AssociationTest("t", ("x1", "q"), ("y1", "y2"), ("a",), ("b",)))
    assert (too_few.effect, too_few.p) == (None, None)
    alike = association(vectors, AssociationTest("t", ("x1", "x2"), ("y1", "y2"), ("a",), ("a",)))
    assert (alike.effect, alike.p) == (None, 1)


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=9), st.integers(2, 4))
def test_permutations_one_by_one(values: list[int], of_x: int) -> None:
    s = np.array(values, np.float64) / 7
    of_x = min(of_x, len(s) - 1)

    def statistic(chosen: tuple[int, ...]) -> float:
        return sum(values[i] for i in chosen) - sum(values[i] for i in range(len(s)) if i not in chosen)

    observed = statistic(tuple(range(of_x)))
    every = [statistic(chosen) for chosen in combinations(range(len(s)), of_x)]
    p, partitions, exact = permutation_p(s, of_x, 10, 0)
    assert exact
    assert partitions == len(every)
    assert p == pytest.approx(sum(value >= observed for value in every) / len(every))


def test_a_sample_of_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    s = np.random.default_rng(3).normal(size=12)
    exact = permutation_p(s, 6, 1, 0)[0]
    monkeypatch.setattr("evenrank.search.embeddings_audit.EXACT", 10)
    p, partitions, whole = permutation_p(s, 6, 20_000, 0)
    assert (partitions, whole) == (20_001, False)
    # Five standard errors.
    assert p == pytest.approx(exact, abs=5 * (exact * (1 - exact) / 20_000) ** 0.5)
    assert permutation_p(s, 6, 20_000, 0)[0] == p
    assert permutation_p(s, 6, 20_000, 1)[0] != p


@given(st.integers(0, 1000))
def test_nearest_words(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(12, 5)).astype(np.float32)
    vectors = Vectors(tuple("abcdefghijkl"), matrix)
    by_hand = sorted(((cos(matrix[0], matrix[i]), vectors.words[i]) for i in range(1, 12)), reverse=True)
    found = nearest(vectors, "a", 4)
    assert found is not None
    assert [word for word, _ in found] == [word for _, word in by_hand[:4]]
    assert [value for _, value in found] == pytest.approx([value for value, _ in by_hand[:4]], abs=1e-6)
    assert len(nearest(vectors, "a", 50) or ()) == 11
    assert nearest(vectors, "nobody") is None
    np.testing.assert_allclose(cosines(vectors, matrix[3]), [cos(matrix[3], row) for row in matrix], atol=1e-6)


def test_analogies_by_hand() -> None:
    rows = {"man": [1, 0, 3], "woman": [-1, 0, 3], "king": [1, 5, 3], "queen": [-1, 5, 3], "cat": [0, -9, 0.5]}
    vectors = vectors_of(rows)
    found = analogy(vectors, "man", "woman", "king")
    # The vectors' answer itself is king: unit vectors of 3 dimensions, so little is the gender's share.
    u = {word: np.array(row) / np.linalg.norm(row) for word, row in rows.items()}
    point = u["woman"] - u["man"] + u["king"]
    order = sorted(rows, key=lambda word: -cos(u[word], point))
    assert found.free == order[0]
    assert found.constrained == "queen"
    assert found.robust is True
    unknown = analogy(vectors, "man", "woman", "nobody")
    assert (unknown.free, unknown.constrained, unknown.robust) == (None, None, None)
    # The way back from a word that is nearer to another: no robust answer.
    lopsided = vectors_of({"a": [1, 0], "b": [0, 1], "c": [1, 0.1], "d": [0.1, 1], "e": [1, 0.05]})
    there = analogy(lopsided, "a", "b", "c")
    assert there.constrained == "d"
    assert there.robust == (analogy(lopsided, "b", "a", "d").constrained == "c")


@pytest.mark.parametrize("words", [("x",), ("x", "y", "z")])
def test_no_word_is_left_for_an_analogy(words: tuple[str, ...]) -> None:
    vectors = Vectors(words, np.eye(3, dtype=np.float32)[: len(words)])
    assert analogy(vectors, words[0], words[-1], words[len(words) // 2]).constrained is None


def test_the_most_biased_words() -> None:
    rows = {"he": [9, 0], "a": [5, 1], "b": [3, 4], "B": [4, 0], "c3": [4, 0], "d": [-1, 2], "e": [-7, 1], "f": [0, 1]}
    rows |= {"g" * 21: [6, 0], "late": [8, 0]}
    vectors = vectors_of(rows)
    neutral = np.array([word != "he" for word in rows])
    direction = np.array([1.0, 0.0])

    def words(count: int) -> list[list[str]]:
        return [[vectors.words[i] for i in side] for side in most_biased(vectors, direction, neutral, count, 9)]

    assert words(1) == [["a"], ["e"]]
    assert words(2) == [["a", "b"], ["e", "d"]]
    assert words(500) == words(2)


# --- recovery --------------------------------------------------------------------------------------------------------


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


# --- all together ----------------------------------------------------------------------------------------------------


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
    test = AssociationTest("t", tuple(f"xa{c}" for c in letters), tuple(f"ya{c}" for c in letters), ("fa",), ("ma",))
    specific = tuple(word for pair in pairs for word in pair)
    sets = WordSets(
        "planted",
        pairs,
        pairs,
        specific,
        ("xaa", "yaa"),
        (("fa", "xaa", "ma"), ("fa", "none", "ma")),
        ("xaa", "none"),
        (test,),
    )
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32)), sets


def test_hard_debiasing_hides_the_bias_of_words() -> None:
    pytest.importorskip("sklearn")
    vectors, sets = planted()
    hard = hard_debias(vectors, sets.definitional, sets.equalize, sets.specific)
    found = evaluate_bias(vectors, hard.vectors, sets, settings=EvaluationSettings(count=90, train=36))
    before, after = found.before, found.after
    assert after is not None
    assert before.recovery is not None
    assert after.recovery is not None
    assert found.settings["most_biased"] == 90
    assert {word[0] for word in found.most[0]} == {"x"}
    assert {word[0] for word in found.most[1]} == {"y"}
    assert before.direct_bias > 0.2
    assert after.direct_bias < 1e-6
    assert after.direct_bias_occupations is not None
    assert after.direct_bias_occupations < 1e-6
    # The lean of the second dimension is all still there.
    assert min(after.recovery.kmeans, after.recovery.linear, after.recovery.rbf) > 0.9
    assert before.associations[0].effect is not None
    assert before.associations[0].effect > 1
    assert before.associations[0].p is not None
    assert before.associations[0].p < 0.001
    assert list(after.neighbours) == ["xaa"]
    assert [three.a for three in after.analogies] == ["fa"]
    assert np.all(found.cosines[0] > 0)
    assert np.all(found.cosines[1] < 0)
    again = evaluate_bias(vectors, hard.vectors, sets, settings=EvaluationSettings(count=90, train=36))
    assert json_values(again) == json_values(found)
    np.testing.assert_array_equal(again.points[1], found.points[1])


def test_few_words_are_said() -> None:
    pytest.importorskip("sklearn")
    vectors, sets = planted()
    found = evaluate_bias(vectors, None, sets)
    assert found.after is None
    assert found.settings["most_biased"] < 500
    assert found.settings["train"] == found.settings["most_biased"] * 2 // 5
    assert any("not 500" in note for note in found.notes)
    tiny = vectors.keep(["fa", "ma", "xaa"])
    few = evaluate_bias(tiny, None, sets)
    assert few.before.recovery is None
    assert any("fb" in note for note in few.notes)


def test_before_and_after_have_to_fit() -> None:
    vectors, sets = planted()
    order = Vectors(vectors.words[::-1], vectors.matrix)
    with pytest.raises(EvenrankError, match="their order differs"):
        evaluate_bias(vectors, order, sets)
    with pytest.raises(EvenrankError, match="'fa' is in one of them only"):
        evaluate_bias(vectors, Vectors(vectors.words[1:], vectors.matrix[1:]), sets)
    with pytest.raises(EvenrankError, match="30 and 29 dimensions"):
        evaluate_bias(vectors, Vectors(vectors.words, np.ascontiguousarray(vectors.matrix[:, 1:])), sets)
    with pytest.raises(EvenrankError, match="`count`: expected 1 or more, found 0"):
        evaluate_bias(vectors, None, sets, settings=EvaluationSettings(count=0))
