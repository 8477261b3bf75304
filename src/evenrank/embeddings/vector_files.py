"""Word vectors written in the format that the file name implies."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, atomic_path
from evenrank.io.errors import quoted

from .vectors import FILES, Vectors

_BLOCK = 1 << 14
# White space, which separates words in the formats of word2vec.
_SPACE = r"[\s\x00\x1c-\x1f\x85]"


def format_of(path: str | os.PathLike[str]) -> str:
    """``binary`` (``.bin``), ``text`` (``.txt``, ``.vec``) or ``folder`` (no suffix); else EvenrankError."""
    suffix = Path(path).suffix.lower()
    formats = {".bin": "binary", ".txt": "text", ".vec": "text", "": "folder"}
    if suffix not in formats:
        raise EvenrankError(
            f"{os.fspath(path)}: expected .bin (word2vec, binary), .txt or .vec (word2vec, text), or a folder's name "
            f"without a suffix (safetensors), found {quoted(suffix)}"
        )
    if formats[suffix] == "folder" and Path(path).exists() and not Path(path).is_dir():
        raise EvenrankError(f"{os.fspath(path)}: expected a folder, found a file")
    return formats[suffix]


def vector_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files that :func:`write_vectors` writes. Raises EvenrankError for another suffix."""
    return [Path(path) / name for name in FILES] if format_of(path) == "folder" else [Path(path)]


def write_vectors(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Writes word2vec's binary (``.bin``) or text format (``.txt``, ``.vec``), else the folder of :meth:`Vectors.save`.

    Numbers in text are the shortest that round to the same float32. Raises EvenrankError for another suffix, and for a
    word with white space, which word2vec's formats do not allow; InputError if the file cannot be written.
    """
    form = format_of(path)
    if form == "folder":
        vectors.save(path)
        return
    words = pl.Series("word", vectors.words, dtype=pl.String)
    bad = words.filter(words.str.contains(_SPACE) | (words == ""))
    if len(bad):
        raise EvenrankError(
            f"{os.fspath(path)}: the word {quoted(bad[0])} contains white space, which word2vec's formats do not allow:"
            " write a folder (a name without a suffix)"
        )
    with atomic_path(path) as part, part.open("wb") as stream:
        stream.write(f"{len(words)} {vectors.dimensions}\n".encode())
        for start in range(0, len(words), _BLOCK):
            rows = vectors.matrix[start : start + _BLOCK]
            if form == "binary":
                of = vectors.words[start : start + _BLOCK]
                data = np.ascontiguousarray(rows, "<f4")
                stream.write(
                    b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(of, data, strict=True))
                )
            else:
                table = pl.from_numpy(rows, [f"{d}" for d in range(vectors.dimensions)])
                table.insert_column(0, words[start : start + _BLOCK]).write_csv(
                    stream, include_header=False, separator=" ", quote_style="never"
                )
