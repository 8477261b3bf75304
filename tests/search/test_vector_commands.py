"""Indexes of vectors, and searches in them, by the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from dense_indexes import QUERIES, bi_encoder, collection
from evenrank.files import read_run


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    from evenrank.cli import main

    monkeypatch.setattr(sys, "argv", ["evenrank", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    collection(tmp_path / "c.tsv")
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    model = bi_encoder(tmp_path / "tiny")
    index, run = tmp_path / "index", tmp_path / "out.run"
    capsys.readouterr()
    build = ["index", tmp_path / "c.tsv", "--out", index, "--model", model, "--batch-size", "4", "--quiet"]
    assert command(monkeypatch, *build, "--document-prompt", "passage : ") == 0
    assert capsys.readouterr().err == f"40 documents indexed: {index}\n"
    search = ["retrieve", index, tmp_path / "q.tsv", "--out", run, "--k", "5", "--quiet"]
    assert command(monkeypatch, *search, "--query-prompt", "query : ", "--device", "cpu") == 0
    assert capsys.readouterr().err.splitlines() == [
        "tiny: exact search, vectors of 32 numbers in float16",
        "tiny: each query is put after the prompt 'query : '",
        "tiny: each document was put after the prompt 'passage : '",
        f"4 queries ranked: {run}",
    ]
    assert read_run(run).table.height == 20
    for options, message in (
        (["--rm3"], f"`rm3`: only for BM25, and {index} is a dense index"),
        (["--precision", "half"], "expected auto, float32 or bfloat16, found 'half'"),
        (["--model", tmp_path / "none"], "no such folder"),
        (["--k1", "1"], "a setting of BM25"),
    ):
        run.unlink(missing_ok=True)
        assert command(monkeypatch, *search, *options) == 2
        assert message.replace("`rm3`", "--rm3") in capsys.readouterr().err
        assert not run.exists()
    assert command(monkeypatch, *build) == 2
    assert "is an index already" in capsys.readouterr().err
