"""Reading text in blocks of lines: long lines, little memory, pipes, names that are no text, errors of the system."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_datasets
import polars as pl
import pytest

from evenrank.files import InputError, atomic_path, irds, reading, scan_collection
from evenrank.files.reading import line_blocks
from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection

Command = Callable[..., Any]


def groups(path: Path) -> Any:
    pytest.importorskip("torch")
    from evenrank.training.lists import read_list_file

    return read_list_file(path)


def texts(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan_collection(path)))


# --- Long lines and little memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, packed: bool) -> None:
    monkeypatch.setattr(reading, "LINE_BYTES", 20)
    path = tmp_path / "c"

    def read(content: bytes) -> list[bytes]:
        path.write_bytes(gzip.compress(content) if packed else content)
        return b"".join(part.data for part in line_blocks(path, block_bytes=block)).split(b"\n")

    assert read(b"x" * 20 + b"\n" + b"y" * 20) == [b"x" * 20, b"y" * 20, b""]
    for content, line in ((b"a\nb\n" + b"x" * 21 + b"\nc\n", 3), (b"x" * 21, 1), (b"a\n" + b"x" * 500, 2)):
        with pytest.raises(InputError) as caught:
            read(content)
        assert str(caught.value) == f"{path}, line {line}: expected lines of at most 20 bytes, found a longer one"


def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip file of some hundred kilobytes that unpacks to one line of 64 megabytes."""
    monkeypatch.setattr(reading, "LINE_BYTES", 1 << 20)
    with gzip.open(tmp_path / "c.gz", "wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
    assert (tmp_path / "c.gz").stat().st_size < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"c\.gz, line 1: expected lines of at most 1048576 bytes"):
            list(line_blocks(tmp_path / "c.gz", block_bytes=1 << 16))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("error", [MemoryError(), type("OutOfMemoryError", (RuntimeError,), {})("CUDA: no\nmemory")])
def test_too_little_memory_is_one_line(
    tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    (tmp_path / "c").write_text("a\tshe\n")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("evenrank.groups.scoring.score_texts", fail)
    ended = evenrank("score", tmp_path / "c", "--out", tmp_path / "out")
    assert (ended.status, ended.err) == (2, "evenrank: not enough memory\n")
    assert os.listdir(tmp_path) == ["c"]


# --- What is no file that can be read --------------------------------------------------------------------------------


def test_what_cannot_be_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (texts, read_group_table, groups):
        with pytest.raises(InputError, match=f"{tmp_path}/pipe: expected a file, found a pipe"):
            read(tmp_path / "pipe")


def test_names_that_are_no_text(tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    monkeypatch.chdir(folder)
    names = {name: os.fsdecode(b"\xe9\xff" + name.encode()) for name in "cqrlv"}
    for name, text in {
        "c": "d1\tShe and her\nd2\tHe said\n",
        "q": "q1\tshe said\n",
        "r": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\n",
        "l": "she,f\nhe,m\n",
        "v": "she 1 0\nhe 0 1\nher 1 1\n",
    }.items():
        (folder / names[name]).write_text(text)
    (folder / "qrels").write_text("q1 0 d1 1\n")
    out = os.fsdecode(b"\xffout")
    for line in (
        "score {c} --out {o} --lexicon {l}",
        "audit {r} --scores {o} --qrels qrels --queries {q} --json {o}.json --report {o}.html --per-query {o}.csv",
        "retrieve {c} {q} --out {o}.run",
        "fuse {r} {o}.run --weight 0.5 --out {o}.fused",
        "negatives {r} --collection {c} --qrels qrels --n 1 --out {o}.parquet",
        "rotate {c} --out {o}.parquet2",
        "expand {q} --vectors {v} --k 1 --stopwords none --out {o}.q",
    ):
        ended = evenrank(*line.format(**names, o=out).split())
        assert ended.status == 0, (line, ended.err)
    made = {path.name for path in folder.iterdir()}
    endings = ("", ".run", ".fused", ".parquet", ".parquet2", ".q", ".json", ".html", ".csv")
    assert {out + end for end in endings} <= made
    assert not any(name.endswith(".part") for name in made)
    assert read_group_table(folder / out).table.height == 2
    assert next(iter(json.loads((folder / f"{out}.json").read_text())["runs"])) == "\\udce9\\udcffr"
    ended = evenrank("score", "none" + out, "--out", out)
    assert (ended.status, ended.err) == (2, "evenrank: none\\udcffout: no such file\n")


def test_an_input_that_cannot_be_read_is_blamed(tmp_path: Path) -> None:
    scoring = Scoring(load_lexicon())
    loop = tmp_path / "c"
    loop.mkdir()
    (loop / "loop").symlink_to("loop")
    memory = Path("/proc/self/mem")
    for path, message in (
        (loop / "loop", "Too many levels of symbolic links"),
        (loop, "contains no files|Too many levels of symbolic links"),
        *([(memory, "cannot be read: Input/output error")] if memory.exists() else []),
    ):
        with pytest.raises(InputError, match=rf"^{path}.*: .*({message})$"):
            score_collection(path, tmp_path / "out", scoring)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["load", "store"])
def test_a_home_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def full(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    class Set:
        docs_store = full

        def has_docs(self) -> bool:
            return True

    monkeypatch.setattr(ir_datasets, "load", full if where == "load" else lambda _: Set())
    with pytest.raises(InputError, match=r"^irds:x: cannot be downloaded or read: .*No space left on device"):
        irds.texts("irds:x", pl.Series("doc_id", ["a"]))


def test_an_error_of_another_file_names_it(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_path(tmp_path / "out"):
            (tmp_path / "none" / "cache").open("w")

    with pytest.raises(InputError) as caught:
        write()
    assert str(caught.value) == f"{tmp_path}/none/cache: No such file or directory"
