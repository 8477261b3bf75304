"""BM25's index on disk finds what the one in memory finds, bit for bit, and says in a line how it is damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenrank import RM3, EvenrankError, InputError, build_index, open_index, retrieve
from evenrank.search import bm25
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import Counts, Index
from evenrank.search.index_folder import read_manifest

WORDS = ["cat", "dogs", "the", "running", "café", "ﬁsh", "𝄞𝄞", "zebra", "l'été", "x9"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12)
IDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=5)


def documents(*texts: str, letter: str = "d", column: str = "doc_id") -> pl.DataFrame:
    return pl.DataFrame({column: [f"{letter}{i}" for i in range(1, len(texts) + 1)], "text": list(texts)})


def asked(*texts: str) -> pl.DataFrame:
    return documents(*texts, letter="q", column="query_id")


COLLECTION = documents("The cat sat", "Cats and dogs, cat!", "A dog", "a running café")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build_index(COLLECTION, out=tmp_path / "index", rm3=True, quiet=True)
    return tmp_path / "index"


@settings(max_examples=30, deadline=None)
@given(
    *(TEXTS, TEXTS, st.lists(IDS, min_size=12, max_size=12, unique=True), st.integers(1, 15), st.booleans()),
    st.sampled_from([None, RM3(2, 3, 0.3)]),
)
def test_the_same_as_in_memory(tmp_path_factory, texts, queries, ids, k, weighted, rm3) -> None:
    collection = pl.DataFrame({"doc_id": ids[: len(texts)], "text": texts})
    out = tmp_path_factory.mktemp("of") / "index"
    build_index(collection.iter_slices(5), out=out, k1=1.2, b=0.7, stemmer="porter", rm3=True, quiet=True)
    given = asked(*(f"{text}^0.5" if weighted and text else text for text in queries))

    def found(source: object, **own: Any) -> object:
        try:
            run = retrieve(source, given, k=k, weighted=weighted, rm3=rm3, quiet=True, **own)
        except EvenrankError as error:
            return str(error)
        return run.name, run.notes, run.table.rows()

    in_memory = found(collection, k1=1.2, b=0.7, stemmer="porter")
    assert found(out) == found(open_index(out)) == in_memory


def test_large_enough_for_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few postings while it is built."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(50)]
    texts = [" ".join(rng.choice(words, rng.integers(0, 20))) for _ in range(500)]
    collection, queries = documents(*texts), asked(*texts[:40])
    monkeypatch.setattr(bm25, "_BLOCK", 300)
    build_index(collection.iter_slices(70), out=tmp_path / "index", quiet=True)
    run = retrieve(tmp_path / "index", queries, k=30, quiet=True)
    monkeypatch.undo()
    assert run.table.equals(retrieve(collection, queries, k=30, quiet=True).table)


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.booleans())
def test_postings_are_those_of_plain_loops(place: Path, batches: list[list[str]], on_disk: bool) -> None:
    analyzer = Analyzer()
    lists: list[list[int]] = []
    with Counts(place / "counts.part" if on_disk else None) as counts:
        for texts in batches:
            terms = analyzer.terms(pl.Series("text", texts), grow=True)
            counts.add(terms, len(texts))
            lists += [terms.filter(pl.col("text") == row)["term"].to_list() for row in range(len(texts))]
        scores, indices, _ = counts.scored(None, analyzer.size, 0.9, 0.4)
    mean = sum(map(len, lists)) / len(lists) or 1.0
    expected = []
    for term in range(analyzer.size):
        having = [number for number, terms in enumerate(lists) if term in terms]
        idf = np.log1p((len(lists) - len(having) + 0.5) / (len(having) + 0.5))
        for number in having:
            tf = lists[number].count(term)
            score = idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * len(lists[number]) / mean))
            expected.append((number, np.float32(score)))
    assert indices.tolist() == [number for number, _ in expected]
    assert scores.tolist() == pytest.approx([score for _, score in expected], rel=1e-6)


def test_what_the_run_says(index: Path) -> None:
    card: Any = retrieve(index, asked("dogs"), quiet=True).card["index"]
    assert (card["kind"], card["documents"], card["path"]) == ("bm25", 4, str(index))
    values = json.loads((index / "index.json").read_text())
    values["versions"]["PyStemmer"] = "0.1"
    (index / "index.json").write_text(json.dumps(values))
    note = retrieve(index, asked("dogs"), quiet=True).notes[-1]
    assert note.startswith("bm25: the index was made with PyStemmer 0.1 (now ")


def test_stop_words_are_kept_as_they_were(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("cat\n")
    build_index(COLLECTION, out=tmp_path / "index", stopwords=str(words), stemmer=None, quiet=True)
    words.unlink()
    run = retrieve(tmp_path / "index", asked("cat dog"), quiet=True)
    assert run.table["doc_id"].to_list() == ["d3"]
    assert run.notes[0].endswith(f"stop words {words} (1), no stemmer")
    words.write_text("dog\n")
    with pytest.raises(EvenrankError, match=rf"^`stopwords`: the index .* has {words}, found {words}; build another"):
        retrieve(tmp_path / "index", asked("cat"), stopwords=str(words))
    with pytest.raises(EvenrankError, match=rf"^`stopwords`: the index .* has {words}, found others; build another"):
        retrieve(tmp_path / "index", asked("cat"), stopwords=["dog"])


def replaced(at: int, value: int) -> Callable[[Any], Any]:
    return lambda values: np.concatenate([values[: at % len(values)], [value], values[at % len(values) + 1 :]])


DAMAGE: list[tuple[str, Callable[[Any], Any]]] = [
    ("documents.npy", lambda v: v + 4),
    ("turn.npy", lambda v: v + 2**30),
    ("by-turn.npy", lambda v: v - 2**30),
    ("starts.npy", replaced(1, 10**15)),
    ("starts.npy", replaced(-1, 3)),
    ("numbers.npy", lambda v: v + 100),
    ("terms-starts.npy", replaced(1, 10**12)),
    ("ids-starts.npy", replaced(2, 10**12)),
    ("ids.npy", lambda v: v | 128),
    ("forward-starts.npy", lambda v: v + 50),
    ("forward-terms.npy", lambda v: v + 50),
]


def unchecked(folder: Path) -> Index:
    """An index, of whose files the sizes alone were looked at."""
    return Index.open(read_manifest(folder))


@pytest.mark.parametrize(("file", "change"), DAMAGE)
def test_damaged_numbers_end_in_a_line(index: Path, file: str, change: Callable[[Any], Any]) -> None:
    values = np.load(index / file)
    np.save(index / file, change(values).astype(values.dtype))
    differs = f"the index is damaged: {file} differs from what was written"
    with pytest.raises(InputError) as caught:
        retrieve(unchecked(index), asked("cat dog sat running"), rm3=RM3(), quiet=True)
    unfit = f"the index is damaged: {file} does not fit the other files"
    assert str(caught.value).endswith(unfit if file == "starts.npy" else differs)
    with pytest.raises(InputError, match=rf"{differs}$"):
        open_index(index, check=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_bytes_of_any_file_crash(index: Path, data: st.DataObject) -> None:
    names = sorted(file.name for file in index.iterdir() if file.suffix == ".npy")
    path = index / data.draw(st.sampled_from(names))
    whole = path.read_bytes()
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    said, scores = "", pl.Series([0.0])
    try:
        scores = retrieve(unchecked(index), asked("cat dog sat running café"), rm3=RM3(), quiet=True).table["score"]
    except EvenrankError as error:
        said = str(error)
    path.write_bytes(whole)
    assert scores.is_finite().all()
    assert "\n" not in said
