"""Word vectors written in each form and read again, memory-mapped where the form allows it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.search.embeddings import Vectors, read_vectors, write_vectors

WORDS = ("the", "é", '"', "NA", "1,5")
MATRIX = np.array([[0.5, -1.25, 3e-5], [1, 2, 3], [4, 5, 6], [-0.0, 1e-20, 1e20], [7, 8, 0.1]], np.float32)


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.vec", "v.TXT", "folder"])
@pytest.mark.parametrize("block", [1 << 14, 2])
def test_written_and_read_again(name: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.models.vectors._BLOCK", block)
    write_vectors(Vectors(WORDS, MATRIX), tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.matrix, MATRIX)
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
    ("v.npy", "y", FINITE, "expected .bin"),
    ("file", "y", FINITE, "expected a folder, found a file"),
    ("nowhere/v.bin", "y", FINITE, "cannot be written"),
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
