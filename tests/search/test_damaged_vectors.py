"""Folders of vectors, damaged in any way."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from damage import damaged, told
from evenrank.search.embeddings import Vectors, read_vectors


@pytest.mark.parametrize("file", ["words.json", "vectors.safetensors"])
def test_any_damage_to_a_folder_of_vectors(tmp_path: Path, file: str) -> None:
    pytest.importorskip("safetensors")
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    Vectors(("she", "he", "é", "king"), matrix).save(tmp_path / "v")
    path = tmp_path / "v" / file
    whole = path.read_bytes()
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(read_vectors, tmp_path / "v")
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


def test_a_first_line_of_too_many_numbers(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("4 999999999\nshe 1 2\n")
    said = told(read_vectors, tmp_path / "vectors")[1]
    assert said.endswith("line 1: expected at most 65536 numbers, found 999999999")
