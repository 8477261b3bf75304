"""The evaluation of bias: each figure by hand and against a slow version, and planted bias that has to be found."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.files import EvenrankError
from evenrank.files.json_values import json_values
from evenrank.search.embeddings import (
    EvaluationSettings,
    Vectors,
    WordSets,
    analogy,
    evaluate_bias,
    hard_debias,
    most_biased,
    recovery,
)

SETTINGS = EvaluationSettings(count=90, train=36)


def vectors_of(rows: dict[str, list[float]]) -> Vectors:
    return Vectors(tuple(rows), np.array(list(rows.values()), np.float32))


def cos(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- the figures by hand ---------------------------------------------------------------------------------------------


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
    # The way back from a word that is nearer to another: no robust answer.
    lopsided = vectors_of({"a": [1, 0], "b": [0, 1], "c": [1, 0.1], "d": [0.1, 1], "e": [1, 0.05]})
    there = analogy(lopsided, "a", "b", "c")
    assert there.constrained == "d"
    assert there.robust == (analogy(lopsided, "b", "a", "d").constrained == "c")

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
    assert json_values(evaluate_bias(vectors, hard.vectors, sets, settings=SETTINGS)) == json_values(found)


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


@pytest.mark.parametrize(
    ("words", "first", "settings", "message"),
    [
        (slice(None, None, -1), 0, {}, "their order differs"),
        (slice(1, None), 0, {}, "'fa' is in one of them only"),
        (slice(None), 1, {}, "30 and 29 dimensions"),
        (slice(None), 0, {"count": 0}, "`count`: expected 1 or more, found 0"),
    ],
)
def test_before_and_after_have_to_fit(words, first, settings, message) -> None:
    vectors, sets = planted()
    other = Vectors(vectors.words[words], np.ascontiguousarray(vectors.matrix[words, first:]))
    with pytest.raises(EvenrankError, match=message):
        evaluate_bias(vectors, other, sets, settings=EvaluationSettings(**settings))
