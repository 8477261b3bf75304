"""Word vectors: the files of word2vec, GloVe and fastText, transformers, training, and what bad files get."""

from __future__ import annotations

import gzip
import pickle
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import damaged, told
from evenrank.files import EvenrankError, InputError
from evenrank.search import Vectors, from_keyed_vectors, read_vectors, train_vectors, write_vectors

WORDS = ("the", "é", '"', "NA", "1,5")
MATRIX = np.array([[0.5, -1.25, 3e-5], [1, 2, 3], [4, 5, 6], [-0.0, 1e-20, 1e20], [7, 8, 0.1]], np.float32)


def lines(separator: str = " ", end: str = "\n") -> str:
    return "".join(
        separator.join([word, *(repr(float(x)) for x in row)]) + end for word, row in zip(WORDS, MATRIX, strict=True)
    )


def binary(newline: bytes = b"\n") -> bytes:
    rows = [word.encode() + b" " + struct.pack("<3f", *row) for word, row in zip(WORDS, MATRIX, strict=True)]
    return b"5 3\n" + newline.join(rows) + newline


FORMS = {
    "glove": lines().encode(),
    "word2vec": b"5 3\n" + lines().encode(),
    "fasttext": b"5 3\n" + lines(end=" \n").encode(),
    "windows": b"5 3\r\n" + lines(end="\r\n").encode(),
    "no-end": lines().encode().rstrip(),
    "empty-lines": lines().encode() + b"\n\n",
    "gzip": gzip.compress(lines().encode()),
    "binary": binary(),
    "binary-without-newlines": binary(b""),
    "binary-gzip": gzip.compress(binary()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [1 << 24, 16])
def test_forms(form: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.models.vectors._BLOCK_BYTES", block)
    file = tmp_path / "vectors"
    file.write_bytes(FORMS[form])
    vectors = read_vectors(file)
    assert vectors.words == WORDS
    assert (vectors.dimensions, vectors.matrix.dtype, vectors.matrix.flags.c_contiguous) == (3, np.float32, True)
    np.testing.assert_array_equal(vectors.matrix, MATRIX)
    assert read_vectors(file, limit=2).words == WORDS[:2]
    assert read_vectors(file, limit=9).words == WORDS
    kept = read_vectors(file, keep=["NA", "the", "nobody"])
    assert kept.words == ("the", "NA")
    np.testing.assert_array_equal(kept.matrix, MATRIX[[0, 3]])
    with pytest.raises(InputError, match="contains none of the words requested"):
        read_vectors(file, keep=["nobody"])


BAD = {
    "short": ("a 1 2\nb 1\n", "line 2: expected a word and 2 numbers, found 1"),
    "long": ("a 1 2\nb 1 2 3\n", "line 2: expected a word and 2 numbers, found 3"),
    "not-finite": ("2 2\na 1 2\nb 1 nan\n", "line 3: expected a finite number, found 'nan'"),
    "repeated": ("2 1\n\na 1\na 2\n", "line 4: the word 'a' is repeated"),
    "no-word": ("a 1 2\n 1 2\n", "line 2: expected a word before the numbers, found none"),
    "alone": ("a\n", "line 1: expected a word and numbers, found 'a'"),
    "too-few-lines": ("3 1\na 1\nb 2\n", "expected 3 words, as stated in the first line, found 2"),
    "header-alone": ("0 3\n", "the file contains no vectors"),
    "no-utf8": (b"a 1 2\n\xff 1 2\n", "line 2: expected UTF-8, found the byte 0xff (save the file as UTF-8)"),
    "empty": ("", "the file is empty"),
    "first-line": ("4 999999999\nshe 1 2\n", "line 1: expected at most 65536 numbers, found 999999999"),
    "pickle": (pickle.dumps({"a": 1}), "is a pickle, which is not opened as it can run code"),
    "fasttext": (b"\xba\x16\x4f\x2f\x0c\x00\x00\x00", "fastText's .bin is not supported"),
    "binary-cut": (binary()[:-8], "expected 5 words, as stated in the first line, found 4"),
    "binary-utf8": (binary().replace("é".encode(), b"\xff"), "word 2: expected a word in UTF-8"),
    "binary-nan": (binary()[:-5] + struct.pack("<f", float("nan")), "vector of the word '1,5' contains a number"),
    "gzip-cut": (gzip.compress(lines().encode())[:-12], "damaged gzip file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    content, reason = BAD[name]
    file = tmp_path / "bad"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        read_vectors(file)
    assert str(error.value).startswith(str(file))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "kv").write_bytes(pickle.dumps(Trap(), protocol))
        with pytest.raises(InputError, match="can run code" if protocol > 1 else "line 1"):
            read_vectors(tmp_path / "kv")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "matrix", "message"),
    [
        (("a",), np.ones((2, 2), np.float32), "expected"),
        ((), np.ones((0, 2), np.float32), "expected"),
        (("a",), np.ones((1, 2)), "expected"),
        (("a", ""), np.ones((2, 1), np.float32), "word 2 is empty$"),
        (("b", "a"), np.array([[0], [-np.inf]], np.float32), "the vector of the word 'a' contains a number that is n"),
    ],
)
def test_vectors_that_do_not_fit(words, matrix, message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.models.vectors._BLOCK", 1)
    with pytest.raises(EvenrankError, match=f"^vectors: {message}"):
        Vectors(words, matrix)


@pytest.mark.parametrize("file", ["words.json", "vectors.safetensors"])
def test_any_damage_to_a_folder_of_vectors(tmp_path: Path, file: str) -> None:
    pytest.importorskip("safetensors")
    Vectors(WORDS, MATRIX).save(tmp_path / "v")
    path = tmp_path / "v" / file
    whole = path.read_bytes()
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(read_vectors, tmp_path / "v")
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


def collection(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    subjects = [("nurse", "hospital"), ("pilot", "airport")]
    sentences = [f"the {a} works at the {b} today" for a, b in (subjects[i] for i in rng.integers(0, 2, rows))]
    return pl.DataFrame({"doc_id": [str(i) for i in range(rows)], "text": sentences})


def test_training_on_a_collection(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    table = collection()
    trained = [train_vectors(table, tokenize=str.split, dimensions=8, seed=seed) for seed in (1, 2)]
    assert set(trained[0].words) == {"the", "nurse", "works", "at", "hospital", "pilot", "airport", "today"}
    assert (trained[0].words[0], trained[0].matrix.dtype) == ("the", np.float32)
    assert not np.array_equal(trained[0].matrix, trained[1].matrix)
    table.write_csv(tmp_path / "c.tsv", separator="\t", include_header=False)
    from_file = train_vectors(tmp_path / "c.tsv", tokenize=str.split, dimensions=8, seed=1)
    np.testing.assert_array_equal(from_file.matrix, trained[0].matrix)
    with pytest.raises(EvenrankError, match="no word occurs 1000 times"):
        train_vectors(table, tokenize=str.split, min_count=1000)
    # A long text is trained on as a whole.
    long = pl.DataFrame({"text": ["a b " * 6000 + "c d " * 6]})
    assert set(train_vectors(long, tokenize=str.split, dimensions=2, epochs=1).words) == set("abcd")


def test_vectors_of_gensim() -> None:
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(3)
    keyed.add_vectors(list(WORDS), MATRIX)
    vectors = from_keyed_vectors(keyed)
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)
    # A copy: what is done to one leaves the other.
    assert not np.shares_memory(vectors.matrix, keyed.vectors)
    keyed.vectors = np.full((5, 3), np.inf)
    with pytest.raises(EvenrankError, match="the vector of the word 'the' contains a number that is not finite"):
        from_keyed_vectors(keyed)


@pytest.mark.parametrize("name", ["v.bin", "v.vec", "v.TXT", "folder"])
def test_written_and_read_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.models.vectors._BLOCK", 2)
    write_vectors(Vectors(WORDS, MATRIX), tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.matrix, MATRIX)
    assert read_vectors(tmp_path / name, limit=3, keep=["NA", "é"]).words == ("é",)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    first = [path.read_bytes() for path in files]
    write_vectors(found, tmp_path / name)
    assert [path.read_bytes() for path in files] == first


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_text_gives_the_same_numbers_again(numbers: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        matrix = np.array([numbers, numbers[::-1]], np.float32)
        write_vectors(Vectors(("a", "b"), matrix), Path(folder) / "v.txt")
        np.testing.assert_array_equal(read_vectors(Path(folder) / "v.txt").matrix, matrix)


def test_gensim_reads_them(tmp_path: Path) -> None:
    models = pytest.importorskip("gensim.models")
    for name in ("v.bin", "v.txt"):
        write_vectors(Vectors(WORDS, MATRIX), tmp_path / name)
        keyed = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=name == "v.bin")
        assert tuple(keyed.index_to_key) == WORDS
        np.testing.assert_array_equal(keyed.vectors, MATRIX)


SPACED = ("a b", "a\tb", "a\nb", "a\u00a0b", "a\u2028b")
FINITE, INFINITE = MATRIX[:2], np.array([[1, 2], [np.inf, 2]], np.float32)
REFUSED = [
    *((name, word, FINITE, "contains white space") for name in ("v.bin", "v.txt") for word in SPACED),
    *((name, "y", INFINITE, "the word 'y' contains a number that is") for name in ("v", "v.txt", "v.bin")),
    ("v", "", FINITE, "word 2 is empty"),
]


@pytest.mark.parametrize(("name", "word", "matrix", "message"), REFUSED)
def test_nothing_is_written_that_could_not_be_read(name, word, matrix, message, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(EvenrankError, match=message) as error:
        write_vectors(Vectors(("x", word), matrix), tmp_path / name)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    if word in SPACED:
        write_vectors(Vectors(("x", word), matrix), tmp_path / "v")
        assert read_vectors(tmp_path / "v").words == ("x", word)
