"""Pipes, names that are no text, and errors of the system: each is told of the right file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import InputError, irds
from evenrank.files import scan_collection as scan
from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection

Command = Callable[..., Any]


def groups(path: Path) -> Any:
    pytest.importorskip("torch")
    from evenrank.training.lists import read_list_file

    return read_list_file(path)


def texts(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan(path)))


def test_what_cannot_be_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (texts, read_group_table, groups):
        with pytest.raises(InputError, match=f"{tmp_path}/pipe: expected a file, found a pipe"):
            read(tmp_path / "pipe")


def test_names_that_are_no_text(tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    monkeypatch.chdir(folder)
    names = {name: os.fsdecode(b"\xe9\xff" + name.encode()) for name in ("c", "q", "r", "s", "l", "v", "a")}
    (folder / names["c"]).write_text("d1\tShe and her\nd2\tHe said\n")
    (folder / names["q"]).write_text("q1\tshe said\n")
    (folder / names["r"]).write_text("q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\n")
    (folder / "qrels").write_text("q1 0 d1 1\n")
    (folder / names["l"]).write_text("she,f\nhe,m\n")
    (folder / names["v"]).write_text("she 1 0\nhe 0 1\nher 1 1\n")
    out = os.fsdecode(b"\xffout")
    c, q, r, lexicon = (names[name] for name in "cqrl")
    commands = {
        "score": [c, "--out", out, "--lexicon", lexicon],
        "audit": [r, "--scores", out, "--qrels", "qrels", "--queries", q, "--json", f"{out}.json"],
        "retrieve": [c, q, "--out", f"{out}.run"],
        "fuse": [r, f"{out}.run", "--weight", "0.5", "--out", f"{out}.fused"],
        "negatives": [r, "--collection", c, "--qrels", "qrels", "--n", "1", "--out", f"{out}.parquet"],
        "rotate": [c, "--out", f"{out}.parquet2"],
        "expand": [q, "--vectors", names["v"], "--k", "1", "--stopwords", "none", "--out", f"{out}.q"],
    }
    commands["audit"] += ["--report", f"{out}.html", "--per-query", f"{out}.csv"]
    for name, arguments in commands.items():
        ended = evenrank(name, *arguments)
        assert ended.status == 0, (name, ended.err)
    made = {path.name for path in folder.iterdir()}
    assert {
        out,
        *(out + end for end in (".run", ".fused", ".parquet", ".parquet2", ".q", ".json", ".html", ".csv")),
    } <= made
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
    memory = "/proc/self/mem"
    for path, message in (
        (loop / "loop", "Too many levels of symbolic links"),
        (loop, "contains no files|Too many levels of symbolic links"),
        (memory, "cannot be read: Input/output error"),
    ):
        if path == memory and not os.path.exists(memory):
            continue
        with pytest.raises(InputError, match=rf"^{path}.*: .*({message})$"):
            score_collection(path, tmp_path / "out", scoring)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["load", "store"])
def test_a_home_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    import ir_datasets

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
    from evenrank.files import atomic_path

    def write() -> None:
        with atomic_path(tmp_path / "out"):
            (tmp_path / "none" / "cache").open("w")

    with pytest.raises(InputError) as caught:
        write()
    assert str(caught.value) == f"{tmp_path}/none/cache: No such file or directory"
