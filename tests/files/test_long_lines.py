"""Long lines, little memory, and lines that are read the same wherever a block ends."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError, read_qrels, read_run, reading
from evenrank.files import scan_collection as scan

Command = Callable[..., Any]


def texts(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan(path)))


# --- Long lines and little memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, packed: bool) -> None:
    monkeypatch.setenv(reading.LINE_LIMIT_VARIABLE, "20")
    path = tmp_path / "c"

    def read(content: bytes) -> list[bytes]:
        path.write_bytes(gzip.compress(content) if packed else content)
        return b"".join(part.data for part in reading.line_blocks(path, block_bytes=block)).split(b"\n")

    assert read(b"x" * 20 + b"\n" + b"y" * 20) == [b"x" * 20, b"y" * 20, b""]
    for content, line in ((b"a\nb\n" + b"x" * 21 + b"\nc\n", 3), (b"x" * 21, 1), (b"a\n" + b"x" * 500, 2)):
        with pytest.raises(InputError) as caught:
            read(content)
        assert str(caught.value) == (
            f"{path}, line {line}: expected lines of at most 20 bytes (EVENRANK_MAX_LINE_BYTES sets it), found a "
            "longer one"
        )


def test_the_limit_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reading.line_limit() == 64 << 20
    (tmp_path / "c").write_text("a\tb\n")
    for text in ("0", "-1", "many", ""):
        monkeypatch.setenv(reading.LINE_LIMIT_VARIABLE, text)
        with pytest.raises(EvenrankError, match="EVENRANK_MAX_LINE_BYTES: expected a number of bytes"):
            texts(tmp_path / "c")


def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip file of some hundred kilobytes that unpacks to one line of 64 megabytes."""
    monkeypatch.setenv(reading.LINE_LIMIT_VARIABLE, str(1 << 20))
    with gzip.open(tmp_path / "c.gz", "wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
    assert (tmp_path / "c.gz").stat().st_size < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"c\.gz, line 1: expected lines of at most 1048576 bytes"):
            list(reading.line_blocks(tmp_path / "c.gz", block_bytes=1 << 16))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("error", [MemoryError(), np.linalg.LinAlgError])
def test_too_little_memory_is_one_line(
    tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    if error is np.linalg.LinAlgError:
        error = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory\nof 3 GB")
    (tmp_path / "c").write_text("a\tshe\n")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("evenrank.groups.scoring.score_texts", fail)
    ended = evenrank("score", tmp_path / "c", "--out", tmp_path / "out")
    assert (ended.status, ended.err) == (2, "evenrank: not enough memory\n")
    assert os.listdir(tmp_path) == ["c"]


# --- What a line says depends on the line alone ----------------------------------------------------------------------

PIECES = ["a", "b", "\t", "\t", " ", "\u00a0", "\u3000", "\x1c", "\r", "\n", "\n", "\n", '"', "\u2028", "id\ttext\n"]


_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"


def slowly(content: str) -> list[tuple[str, str]] | int:
    """The documents of a TSV, or the number of the first line that is none."""
    rows = []
    # The last line needs no end.
    content = f"{content.removesuffix(chr(10))}\n".replace("\r\n", "\n")
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip(_WHITE):
            continue
        name, tab, text = line.partition("\t")
        if not tab or not name:
            return number
        rows.append((name, text))
    return rows[1:] if rows and rows[0] == ("id", "text") else rows


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map("".join), st.integers(1, 30))
@example("a\tb\n \t \na\tb\n", 4)
@example(" \t \n", 100)
@example("\u00a0\nid\ttext\na\tb\n", 3)
@example("\n\nid\ttext\na\tb\n", 1)
def test_a_line_is_read_the_same_wherever_a_block_ends(
    tmp_path_factory: pytest.TempPathFactory, content: str, size: int
) -> None:
    # One line with carriage returns is refused as a file without line feeds.
    assume("\n" in content.rstrip("\n") or "\r" not in content)
    # More names than two are a heading.
    first = [name.strip() for name in content.strip(_WHITE).partition("\n")[0].split("\t")]
    assume(len(first) < 3 or not {"id", "text"} <= {*first})
    path = tmp_path_factory.mktemp("c") / "c.tsv"
    path.write_bytes(content.encode())
    expected = slowly(content)
    found = []
    for block in (size, 1 << 24):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                reading.line_blocks, "__kwdefaults__", {**reading.line_blocks.__kwdefaults__, "block_bytes": block}
            )
            try:
                found.append(pl.concat(list(scan(path, unique=False))).rows())
            except InputError as error:
                found.append(error.line or [])
    assert found == [expected, expected]


def test_lines_of_runs_and_qrels_are_read_the_same_in_blocks(
    tmp_path: Path, block_bytes: Callable[[int], None]
) -> None:
    (tmp_path / "r").write_text("\u00a0\nq Q0 a 1 2 t\n \t \nq\tQ0\tb 2 1 t\n\n")
    (tmp_path / "l").write_text("\u3000\nq 0 a 1\n \t\nq\t0\tb 0\n")
    found = []
    for size in (1 << 24, 1, 9):
        block_bytes(size)
        found.append((read_run(tmp_path / "r").table.rows(), read_qrels(tmp_path / "l").rows()))
    assert found[0] == found[1] == found[2]
    assert [row[1] for row in found[0][0]] == ["a", "b"]
