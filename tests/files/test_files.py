"""Reading text in blocks of lines, and writing whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import InputError, Run, atomic_path, read_run, scan_collection, write_run, write_text
from evenrank.files.json_values import json_text
from evenrank.files.reading import line_blocks
from evenrank.groups import Scoring, load_lexicon, score_collection

# --- lines ---------------------------------------------------------------------------------------------------------


def read(path: Path, size: int = 1 << 24) -> list[str]:
    """A file's lines, with each block's own account of its lines checked."""
    lines: list[str] = []
    for block in line_blocks(path, block_bytes=size):
        assert block.data.endswith(b"\n")
        assert block.first_line == len(lines) + 1
        assert block.lines == block.data.count(b"\n")
        lines += block.data.decode().split("\n")[:-1]
    return lines


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\ntwo\r", ["one", "two"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        (b"\n\none\n\n", ["", "", "one", ""]),
        ("ä→𝔘\nß\n".encode(), ["ä→𝔘", "ß"]),
    ],
)
def test_lines(tmp_path: Path, size: int, pack: Callable[[bytes], bytes], content: bytes, lines: list[str]) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(pack(content))
    assert read(path, size) == lines


@given(st.lists(st.text(alphabet="ab é𝔘\t", max_size=8), min_size=1, max_size=20), st.integers(1, 40), st.booleans())
def test_any_lines_in_any_blocks(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int, ended: bool
) -> None:
    text = "\n".join(lines) + "\n" * ended
    path = tmp_path_factory.getbasetemp() / "any-lines.txt"
    path.write_text(text, encoding="utf-8")
    # A last empty line that no newline ends is no line.
    expected = lines if ended or lines[-1] else lines[:-1]
    if text:
        assert read(path, size) == expected


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = gzip.compress(b"q Q0 d 1 0.5 t\n")
    writer = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    writer.start()
    assert read_run(path).table["score"].to_list() == [0.5]
    writer.join()


def test_texts_are_not_read_from_a_pipe(tmp_path: Path) -> None:
    # Half of it would be gone after the look at its first bytes.
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match="expected a file, found a pipe"):
        list(scan_collection(path))


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"", "the file is empty", None),
        (gzip.compress(b"", mtime=0), "the file is empty", None),
        (b"1\tgood\n2\tbad \xe4 byte\n", "expected UTF-8, found the byte 0xe4", 2),
        (b"1\ta\n2\tb\n3\tc\n4\tcut \xc3", "expected UTF-8, found the byte 0xc3", 4),
        (b"1\ta\xff\n2\tb\xfe\n", "expected UTF-8, found the byte 0xff", 1),
        (gzip.compress(b"a line\n" * 1000, mtime=0)[:-12], "damaged gzip file (Compressed file ended", None),
        (gzip.compress(b"a line\n", mtime=0)[:11], "damaged gzip file (Compressed file ended", None),
        (b"\x1f\x8bno gzip at all", "damaged gzip file (Unknown compression method)", None),
        (gzip.compress(b"a line\n", mtime=0)[:-8] + b"12345678", "damaged gzip file (CRC check failed", None),
    ],
    ids=lambda value: repr(value)[:24],
)
@pytest.mark.parametrize("reader", [line_blocks, scan_collection])
def test_files_that_cannot_be_read(
    tmp_path: Path, reader: Callable[[Path], object], content: bytes, message: str, line: int | None
) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(reader(path))  # type: ignore[call-overload]
    place = str(path) if line is None else f"{path}, line {line}"
    assert str(caught.value).startswith(f"{place}: {message}")
    assert "\n" not in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize("size", [1, 4, 1 << 20])
def test_a_bad_byte_has_the_same_line_in_any_block(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes("ö\n".encode() * 9 + b"bad \xff\nand again \xff\n")
    with pytest.raises(InputError, match="line 10: expected UTF-8, found the byte 0xff"):
        read(path, size)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path / 'none'}: no such file"
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert str(caught.value) == f"{tmp_path}: Is a directory"


# --- writing -------------------------------------------------------------------------------------------------------


class Boom(Exception):
    pass


@pytest.mark.parametrize("error", [Boom, KeyboardInterrupt, SystemExit, OSError("cut off")])
def test_an_error_leaves_nothing_and_the_old_file(tmp_path: Path, error: BaseException | type[BaseException]) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    expected = InputError if isinstance(error, OSError) else error

    def fail() -> None:
        with atomic_path(target) as part:
            part.write_text("half of the ne")
            raise error

    with pytest.raises(expected):  # type: ignore[arg-type]
        fail()
    assert os.listdir(tmp_path) == ["out.txt"]
    assert target.read_text() == "old"


def test_the_new_file_stands_beside_until_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with atomic_path(target) as part:
        part.write_text("new")
        assert part.parent == tmp_path
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_result_has_the_rights_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "out.txt", "text")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "out.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "out.txt").read_text() == "new"


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        write_text(pipe, "text")
        assert read.result() == "text"
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [("none/out.txt", "No such file or directory"), ("file/out.txt", "Not a directory"), ("folder", "Is a directory")],
)
def test_a_place_that_cannot_be_written(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as caught:
        write_text(tmp_path / path, "text")
    assert str(caught.value) == f"{tmp_path / path}: cannot be written: {reason}"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def ids(count: int) -> list[str]:
    """Ids that no compression makes small."""
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("collection") / "c.tsv"
    path.write_text("".join(f"{name}\tshe\n" for name in ids(3000)))
    return path


def write_a_run(source: Path, target: Path) -> None:
    many = ids(2000)
    write_run(Run.from_table(pl.DataFrame({"query_id": ["1"] * 2000, "doc_id": many, "score": [1.0] * 2000})), target)


def write_scores(source: Path, target: Path) -> None:
    score_collection(source, target, Scoring(load_lexicon()))


def write_some_text(source: Path, target: Path) -> None:
    write_text(target, "x" * 100_000)


@pytest.mark.parametrize("write", [write_a_run, write_scores, write_some_text])
def test_a_full_disk(collection: Path, no_room: tuple[Path, str], write: Callable[[Path, Path], None]) -> None:
    folder, reason = no_room
    target = folder / "out"
    target.write_text("old")
    with pytest.raises(InputError) as caught:
        write(collection, target)
    assert str(caught.value) == f"{target}: cannot be written: {reason}"
    assert target.read_text() == "old"
    assert os.listdir(folder) == ["out"]


def test_json_of_figures() -> None:
    value = {"a": float("nan"), "b": np.float32("inf"), "c": (1, np.int64(2), [None, "é"]), "d": {"e": 0.5}}
    assert json_text(value, lines=False) == '{"a": null, "b": null, "c": [1, 2, [null, "é"]], "d": {"e": 0.5}}'
    assert json.loads(json_text(value)) == json.loads(json_text(value, lines=False))
    assert json_text([1]) == "[\n 1\n]"
