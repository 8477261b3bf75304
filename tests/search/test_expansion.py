"""Query expansion with word vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.search import Vectors, expansion
from evenrank.search.analysis import NLTK, read_stop_words, stop_list
from evenrank.search.expansion import expand, query_words


def queries(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": list(texts)})


def made(**vectors: list[float]) -> Vectors:
    return Vectors(tuple(vectors), np.array(list(vectors.values()), dtype=np.float32))


SMALL = made(nurse=[1, 0], Nurse=[0.9, 0.1], ward=[0, 2], big_hospital=[3, 3], sea=[-1, 0], calm=[0, 0])


def found(given_queries: pl.DataFrame, vectors: Vectors, k: int = 5, form: str = "cosine") -> dict[str, list[str]]:
    words = expand(given_queries, vectors=vectors, k=k, form=form).words  # type: ignore[arg-type]
    return dict(words.group_by("query_id", maintain_order=True).agg("word").iter_rows())


def test_stop_words(tmp_path: Path) -> None:
    assert len(stop_list(NLTK)) == 179
    assert {"i", "he", "she's", "wouldn't", "now"} <= stop_list(NLTK)
    assert query_words("What’s the Nurse's role—don't (she) post-war?") == ["what's", "nurse's", "role", "post", "war"]
    (tmp_path / "stop.txt").write_text("Nurse\n\nOF\n")
    assert query_words("the nurse of", read_stop_words(str(tmp_path / "stop.txt"))) == ["the"]
    assert query_words("the nurse of", read_stop_words("none")) == ["the", "nurse", "of"]
    assert read_stop_words("nltk", nltk=True) == stop_list(NLTK)
    # The nurse counts for nothing, so she can be found.
    assert "Nurse" in expand(queries("nurse ward"), vectors=SMALL, k=3, stopwords={"ward"}).words["word"].to_list()


def test_by_hand() -> None:
    # The mean of the unit vectors of nurse (1, 0) and ward (0, 1) lies on the diagonal: big_hospital, cosine 1; Nurse,
    # (.9 + .1) / (√2 · √.82) = .781; calm 0; sea −.707. The query's own words are left out.
    result = expand(queries("The NURSE of a ward"), vectors=SMALL, k=4)
    assert result.words["word"].to_list() == ["big_hospital", "Nurse", "calm", "sea"]
    assert result.words["score"].to_list() == pytest.approx([1, 0.7809, 0, -0.7071], abs=1e-4)
    assert expand(queries("nurse ward"), vectors=SMALL, k=2).expanded().rows() == [("0", "big hospital Nurse")]
    # Dot: U Uᵀ q with q = nurse + ward = (1, 2): big_hospital 9, Nurse 1.1, calm 0, sea −1.
    dot = expand(queries("nurse ward"), vectors=SMALL, k=4, form="dot").words
    assert dot["score"].to_list() == pytest.approx([9, 1.1, 0, -1])


def test_the_language_model_form() -> None:
    # p_q: nurse 1/2, ward 1/2; p_exp: big_hospital 1/1.7809, Nurse .7809/1.7809; λ .4; a word's parts share its weight.
    text = expand(queries("nurse ward"), vectors=SMALL, k=2).language_model(0.4)["text"][0]
    weights = {word: float(weight) for word, weight in (part.split("^") for part in text.split())}
    assert weights == pytest.approx(
        {"nurse": 0.2, "ward": 0.2, "big": 0.16845, "hospital": 0.16845, "Nurse": 0.2631}, abs=1e-4
    )
    assert sum(weights.values()) == pytest.approx(1, abs=1e-5)
    # No score above 0: equal shares.
    text = expand(queries("nurse"), vectors=made(nurse=[1, 0], a=[-1, 0], b=[0, 1]), k=2).language_model(0.5)["text"][0]
    assert text == "nurse^0.5 b^0.25 a^0.25"


def test_words_without_a_vector_are_told() -> None:
    result = expand(queries("zebra nurse", "zebra the", "gnu zebra"), vectors=SMALL)
    assert result.missing.rows() == [("zebra", 3), ("gnu", 1)]
    assert result.unexpanded.to_list() == ["1", "2"]
    for made_of in (result.expanded(), result.language_model(0.5)):
        assert made_of["text"].to_list()[1:] == ["zebra the", "gnu zebra"]


def slow(text: str, vectors: Vectors, k: int, form: str) -> list[str]:
    rows = {word: vector.astype(float) for word, vector in zip(vectors.words, vectors.matrix, strict=True)}
    own = [word for word in query_words(text) if word in rows]
    if not own:
        return []

    def unit(vector: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(vector)
        return vector / length if length else vector

    if form == "dot":
        point = np.sum([rows[word] for word in own], axis=0)
        scores = {word: float(vector @ point) for word, vector in rows.items()}
    else:
        point = unit(np.mean([unit(rows[word]) for word in own], axis=0))
        scores = {word: float(unit(vector) @ point) for word, vector in rows.items()}
    order = {word: i for i, word in enumerate(vectors.words)}
    ranked = sorted((w for w in scores if w not in own), key=lambda word: (-round(scores[word], 5), order[word]))
    return ranked[:k]


words = st.sampled_from([f"w{i}" for i in range(14)] + ["zz"])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4),
    *(st.integers(1, 6), st.sampled_from(["cosine", "dot"]), st.integers(0, 9), st.sampled_from([3, 5, 1 << 15])),
)
def test_against_the_slow_version(texts: list[str], k: int, form: str, seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = Vectors(tuple(f"w{i}" for i in range(14)), rng.normal(size=(14, 4)).astype(np.float32))
    assume(any(word in vectors.words for text in texts for word in text.split()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansion, "_BLOCK", block)
        patch.setattr(expansion, "_QUERIES", k)
        got = found(queries(*texts), vectors, k, form)
    expected = {str(i): slow(text, vectors, k, form) for i, text in enumerate(texts)}
    assert got == {query: of for query, of in expected.items() if of}


def test_equal_scores_stand_in_the_vocabularys_order() -> None:
    vectors = made(q=[1.0, 0.0], b=[0.0, 1.0], a=[0.0, 2.0], c=[0.0, 3.0])
    assert found(queries("q"), vectors, 2) == {"0": ["b", "a"]}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expand(queries("nurse"), vectors=SMALL, form="l2"), "`form`: expected cosine or dot"),  # type: ignore[arg-type]
        (lambda: expand(queries("zebra"), vectors=SMALL), "no word of any query has a vector"),
        (lambda: expand(queries("nurse"), vectors=SMALL).language_model(1.5), "`weight`: expected a number from 0 to"),
        (lambda: read_stop_words("absent"), "no such file"),
    ],
)
def test_bad_settings(call: Callable[[], object], message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        call()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot, evenrank) -> None:
    monkeypatch.chdir(tmp_path)
    asked, out = Path("q.tsv"), Path("o.tsv")
    asked.write_text("0\tnurse ward\n7\tzebra\n", encoding="utf-8")
    rows = [f"{w} {' '.join(map(str, v))}" for w, v in zip(SMALL.words, SMALL.matrix.tolist(), strict=True)]
    Path("v.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    Path("w.txt").write_text("\n".join(rows[:3] + rows[4:]) + "\n", encoding="utf-8")
    given_ = ["expand", asked, "--vectors", "v.txt", "--out", out]
    assert "--changes needs --compare" in evenrank(*given_, "--changes", "x").err
    assert not out.exists()
    done = evenrank(*given_, "--k", 1, "--compare", "w.txt", "--changes", "changes.jsonl")
    assert out.read_text(encoding="utf-8") == "0\tbig hospital\n7\tzebra\n"
    assert done.err.splitlines() == snapshot
    changes = [json.loads(line) for line in Path("changes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert changes == [{"query_id": "0", "before": ["big_hospital"], "after": ["Nurse"]}]
    assert evenrank(*given_, "--k", 1, "--language-model", 0.5).status == 0
    assert out.read_text(encoding="utf-8").startswith("0\tnurse^0.25 ward^0.25 big^0.25 hospital^0.25\n")
