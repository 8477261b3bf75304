"""Folders of vectors and transformers, damaged in any way."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from damage import damaged, told
from evenrank.search.embeddings import Vectors, read_vectors


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("file", ["words.json", "vectors.safetensors"])
def test_any_damage_to_a_folder_of_vectors(tmp_path: Path, file: str, mmap: bool) -> None:
    pytest.importorskip("safetensors")
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    Vectors(("she", "he", "é", "king"), matrix).save(tmp_path / "v")
    path = tmp_path / "v" / file
    whole = path.read_bytes()
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(lambda folder: read_vectors(folder, mmap=mmap), tmp_path / "v")
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_any_damage_to_a_transformer(tmp_path: Path, file: str) -> None:
    torch_file = pytest.importorskip("safetensors.torch")
    torch = pytest.importorskip("torch")
    vocabulary = {"[PAD]": 0, "she": 1, "##s": 2, "he": 3}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}))
    torch_file.save_file({"word_embeddings.weight": torch.arange(8.0).reshape(4, 2)}, tmp_path / "model.safetensors")
    path = tmp_path / file
    whole = path.read_bytes()
    assert read_vectors(tmp_path).words == ("she", "he")
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(read_vectors, tmp_path)
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


def test_a_first_line_of_too_many_numbers(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("4 999999999\nshe 1 2\n")
    said = told(read_vectors, tmp_path / "vectors")[1]
    assert said.endswith("line 1: expected at most 65536 numbers, found 999999999")
