"""Word vectors that are not finite, words that are empty, and vectors from a pipe."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.files import EvenrankError, InputError
from evenrank.models.vectors import from_keyed_vectors
from evenrank.search.embeddings import Vectors, read_vectors


def by_hand(folder: Path, words: list[str], matrix: Any) -> None:
    """A folder of vectors that this library would not write."""
    from safetensors.numpy import save_file

    folder.mkdir()
    (folder / "words.json").write_text(json.dumps(words))
    save_file({"vectors": matrix}, folder / "vectors.safetensors")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite(tmp_path: Path, value: float) -> None:
    pytest.importorskip("safetensors")
    matrix = np.ones((40_000, 2), np.float32)
    matrix[30_000, 1] = value
    by_hand(tmp_path / "v", [f"w{i}" for i in range(40_000)], matrix)
    with pytest.raises(InputError) as caught:
        read_vectors(tmp_path / "v")
    assert str(caught.value) == f"{tmp_path}/v: the vector of the word 'w30000' contains a number that is not finite"


def test_a_word_that_is_empty(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    by_hand(tmp_path / "v", ["a", ""], np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match=f"{tmp_path}/v: word 2 is empty"):
        read_vectors(tmp_path / "v")


def test_vectors_of_others_that_are_not_finite(tmp_path: Path) -> None:
    class Keyed:
        index_to_key = ("she",)
        vectors = np.array([[np.inf]])

    with pytest.raises(EvenrankError, match="the vector of the word 'she' contains a number that is not finite"):
        from_keyed_vectors(Keyed())


def fed(path: Path, content: bytes) -> threading.Thread:
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb") as stream:
            stream.write(content)

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    return feeding


@pytest.mark.parametrize("form", ["text", "binary", "gzip"])
def test_vectors_from_a_pipe(tmp_path: Path, form: str) -> None:
    """More than is read to tell the form."""
    from evenrank.search.embeddings import write_vectors

    rng = np.random.default_rng(0)
    whole = Vectors(tuple(f"w{i}" for i in range(5012)), rng.standard_normal((5012, 6)).astype(np.float32))
    file = tmp_path / ("v.bin" if form == "binary" else "v.txt")
    write_vectors(whole, file)
    content = file.read_bytes()
    assert len(content) > 1 << 17
    feeding = fed(tmp_path / "pipe", gzip.compress(content) if form == "gzip" else content)
    found = read_vectors(tmp_path / "pipe")
    feeding.join()
    assert found.words == whole.words
    assert np.array_equal(found.matrix, whole.matrix)
