"""Reading the files of word2vec, GloVe and fastText."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import InputError
from evenrank.io.errors import quoted
from evenrank.io.files import Block, Headed, line_blocks, line_limit, read_bytes
from evenrank.io.tables import csv_drops

Floats = NDArray[np.float32]
Lines = NDArray[np.int64]
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r")
_BLOCK_BYTES = 1 << 24
_MOST_DIMENSIONS = 1 << 16


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are in word2vec's binary format: counts, then a word and floats."""
    first, _, rest = head.partition(b"\n")
    counts = _header(first)
    if counts is None:
        return False
    floats = rest.partition(b" ")[2][: 4 * counts[1]]
    if _CONTROL & set(floats):
        return True
    try:
        # The last character may be cut.
        floats[: len(floats) - 4].decode()
    except UnicodeDecodeError as error:
        return error.end < len(floats) - 4
    return False


def _header(line: bytes) -> tuple[int, int] | None:
    """The numbers of words and of dimensions if the first line consists of these two; else None."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 10 for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def read_lines(
    path: str | os.PathLike[str], stream: Headed, limit: int | None, keep: pl.Series | None
) -> tuple[pl.Series, Floats]:
    """Words [V] and vectors [V, D] of a text file: a word and D numbers per line, separated by single spaces."""
    header = None
    dimensions = rows = 0
    parts: list[tuple[pl.Series, Floats, Lines]] = []
    for block in line_blocks(path, block_bytes=_BLOCK_BYTES, stream=stream):
        if not dimensions:
            first, _, rest = block.data.partition(b"\n")
            header = _header(first)
            dimensions = header[1] if header else len(first.split()) - 1
            if dimensions < 1:
                raise InputError(path, f"expected a word and numbers, found {_cut(first)}", line=1)
            if dimensions > _MOST_DIMENSIONS:
                raise InputError(path, f"expected at most {_MOST_DIMENSIONS} numbers, found {dimensions}", line=1)
            if header:
                block = Block(rest, 2, block.lines - 1)
        words, matrix, lines = _parse(path, block, dimensions)
        rows += len(words)
        taken = None if limit is None else len(words) - max(0, rows - limit)
        if taken is not None:
            words, matrix, lines = words[:taken], matrix[:taken], lines[:taken]
        if keep is not None:
            kept = words.is_in(keep.implode()).to_numpy()
            words, matrix, lines = words.filter(kept), matrix[kept], lines[kept]
        parts.append((words, matrix, lines))
        if limit is not None and rows >= limit:
            break
    if header and rows != header[0] and (limit is None or rows < limit):
        raise InputError(path, f"expected {header[0]} words, as stated in the first line, found {rows}")
    words = pl.concat([part[0] for part in parts])
    lines = np.concatenate([part[2] for part in parts])
    repeated = words.is_duplicated().to_numpy() & ~words.is_first_distinct().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise InputError(path, f"the word {quoted(words[row])} is repeated", line=int(lines[row]))
    return words, np.concatenate([part[1] for part in parts])


def _parse(path: str | os.PathLike[str], block: Block, dimensions: int) -> tuple[pl.Series, Floats, Lines]:
    """Words, vectors and line numbers of a block."""
    # word2vec and fastText end each line with a space.
    data = block.data.replace(b" \n", b"\n")
    names = [f"{column}" for column in range(dimensions)]
    try:
        table = pl.read_csv(
            data,
            separator=" ",
            has_header=False,
            quote_char=None,
            empty_string_is_null=False,
            schema={"word": pl.String, **dict.fromkeys(names, pl.Float32)},
        )
        words = table["word"]
        matrix = np.ascontiguousarray(table.select(names).to_numpy(), dtype=np.float32)
        if (
            not csv_drops(data)
            and len(words) == block.lines
            and np.isfinite(matrix).all()
            and (words.str.len_bytes() > 0).all()
        ):
            return words, matrix, block.first_line + np.arange(len(words))
    except pl.exceptions.PolarsError:
        pass  # some line is malformed: the slow parser finds it
    return _parse_slowly(path, data, block.first_line, dimensions)


def _parse_slowly(
    path: str | os.PathLike[str], data: bytes, first_line: int, dimensions: int
) -> tuple[pl.Series, Floats, Lines]:
    """As ``_parse``, line by line: reports errors, skips empty lines, and reads words that contain spaces."""
    words, rows, lines = [], [], []
    for line, content in enumerate(data.decode().split("\n"), first_line):
        if not content:
            continue
        fields = content.split(" ")
        found = len(fields) - 1
        # Public vectors contain a few words with spaces (". . ."): the surplus fields then are not numbers.
        if found < dimensions or any(map(_is_number, fields[1 : found - dimensions + 1])):
            raise InputError(path, f"expected a word and {dimensions} numbers, found {found}", line=line)
        numbers = fields[found - dimensions + 1 :]
        bad = next((field for field in numbers if not _is_number(field)), None)
        if bad is not None:
            raise InputError(path, f"expected a finite number, found {quoted(bad)}", line=line)
        word = " ".join(fields[: found - dimensions + 1])
        if not word:
            raise InputError(path, "expected a word before the numbers, found none", line=line)
        words.append(word)
        rows.append(np.array(numbers, dtype=np.float32))
        lines.append(line)
    matrix = np.array(rows, dtype=np.float32).reshape(-1, dimensions)
    return pl.Series("word", words, dtype=pl.String), matrix, np.array(lines, dtype=np.int64)


def _is_number(field: str) -> bool:
    try:
        with np.errstate(over="ignore"):
            return (
                field.isascii()
                and field == field.strip()
                and "_" not in field
                and bool(np.isfinite(np.float32(float(field))))
            )
    except ValueError:
        return False


def read_binary(
    path: str | os.PathLike[str], stream: Headed, limit: int | None, keep: pl.Series | None
) -> tuple[pl.Series, Floats]:
    """Words [V] and vectors [V, D] of word2vec's binary format: each word, a space, D little-endian floats."""
    wanted = None if keep is None else frozenset(keep)
    words: list[str] = []
    parts: list[Floats] = []
    header = _header(stream.first_line())
    assert header is not None
    total, dimensions = header
    if dimensions > _MOST_DIMENSIONS:
        raise InputError(path, f"expected at most {_MOST_DIMENSIONS} numbers, found {dimensions}", line=1)
    wanted_total = total if limit is None else min(limit, total)
    read, rest = 0, b""
    while read < wanted_total:
        block = read_bytes(path, stream, _BLOCK_BYTES)
        if not block:
            raise InputError(path, f"expected {total} words, as stated in the first line, found {read}")
        rest += block
        starts: list[int] = []
        place = 0
        while read < wanted_total:
            space = rest.find(b" ", place)
            end = space + 1 + 4 * dimensions
            if space < 0 or end > len(rest):
                break
            read += 1
            word = _decode(path, rest[place:space].lstrip(b"\n"), read)
            if wanted is None or word in wanted:
                words.append(word)
                starts.append(space + 1)
            place = end
        if starts:
            windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(rest, np.uint8), 4 * dimensions)
            parts.append(windows[starts].view("<f4").astype(np.float32, copy=False))
        rest = rest[place:]
        if read < wanted_total and len(rest) > line_limit() + 4 * dimensions:
            raise InputError(path, f"word {read + 1}: expected a word and a space, found {_cut(rest)}")
    matrix = np.concatenate(parts) if parts else np.empty((0, dimensions), np.float32)
    series = pl.Series("word", words, dtype=pl.String)
    repeated = ~series.is_first_distinct().to_numpy() if len(series) else np.zeros(0, np.bool_)
    if repeated.any():
        raise InputError(path, f"the word {quoted(words[int(repeated.argmax())])} is repeated")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        word = words[int((~finite).argmax())]
        raise InputError(path, f"the vector of the word {quoted(word)} contains a number that is not finite")
    return series, matrix


def _decode(path: str | os.PathLike[str], word: bytes, number: int) -> str:
    try:
        text = word.decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise InputError(path, f"word {number}: expected a word in UTF-8, found {_cut(word)}")
    return text


def _cut(data: bytes) -> str:
    return quoted(data[:80].decode(errors="replace"))
