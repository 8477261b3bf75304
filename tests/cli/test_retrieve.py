"""``evenrank retrieve``: its output, its notes and what bad input gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Files = tuple[str, str]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "c.tsv").write_text("d1\tThe cat sat\nd2\tCats and dogs, cat!\nd3\tA dog\n")
    (tmp_path / "q.tsv").write_text("q1\tdogs\nq2\tthe\n")
    return str(tmp_path / "c.tsv"), str(tmp_path / "q.tsv")


def test_writes_a_run_and_its_notes(files: Files, tmp_path: Path, evenrank: Command) -> None:
    out = tmp_path / "bm25.run"
    ended = evenrank("retrieve", *files, "--out", str(out))
    assert ended.status == 0
    rows = [line.split(" ") for line in out.read_text().splitlines()]
    assert [[*row[:4], row[5]] for row in rows] == [["q1", "Q0", "d3", "1", "bm25"], ["q1", "Q0", "d2", "2", "bm25"]]
    # ln 1.6 · 1 / (1 + 0.9 (0.6 + 0.4 · |d| / 2)), |d| = 1 and 3
    assert [float(row[4]) for row in rows] == pytest.approx([0.4700036 / 1.72, 0.4700036 / 2.08], rel=1e-6)
    assert ended.out == ""
    assert ended.err == (
        "bm25: BM25 (Lucene's form), k1 0.9, b 0.4, stop words english (33), stemmer english\n"
        "bm25: 1 query has no word left after stop words and no documents\n"
        f"1 query ranked: {out}\n"
    )


def test_options_reach_the_ranking(files: Files, tmp_path: Path, evenrank: Command) -> None:
    out = tmp_path / "bm25.run"
    options = ["--k", "1", "--k1", "0", "--b", "0.5", "--stopwords", "none", "--stemmer", "none"]
    ended = evenrank("retrieve", *files, "--out", str(out), *options)
    assert ended.status == 0
    # Without stems only d2 says "dogs"; without stop words only d1 says "the"; k1 = 0 leaves the idf.
    rows = [line.split(" ") for line in out.read_text().splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("q1", "d2"), ("q2", "d1")]
    assert [float(row[4]) for row in rows] == pytest.approx([0.9808293] * 2, rel=1e-6)
    made = "bm25: BM25 (Lucene's form), k1 0, b 0.5, no stop words, no stemmer\n"
    assert ended.err == f"{made}2 queries ranked: {out}\n"
    # Standard output names no file.
    ended = evenrank("retrieve", *files, "--out", "-", *options)
    assert ended.status == 0
    assert ended.err == made


def test_bad_settings_give_status_2(files: Files, tmp_path: Path, evenrank: Command) -> None:
    options = ("--out", str(tmp_path / "bm25.run"), "--stopwords", "dutsh")
    ended = evenrank("retrieve", *files, *options)
    assert ended.status == 2
    line = ended.err
    assert line.startswith("evenrank: ")
    assert line.count("\n") == 1
    assert "no such file and no list 'dutsh' (the lists are english, danish, dutch, french, " in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.tsv", "q.tsv"]


def test_bad_files_give_status_2(files: Files, tmp_path: Path, evenrank: Command) -> None:
    collection, queries = files
    nowhere = str(tmp_path / "nowhere" / "x.run")
    ended = evenrank("retrieve", collection, queries, "--out", nowhere, "--quiet")
    assert ended.status == 2
    assert ended.err == f"evenrank: {nowhere}: cannot be written: No such file or directory\n"
    # A run has no place for an id with a space.
    Path(collection).write_text("d 1\ta dog\n")
    out = str(tmp_path / "x.run")
    ended = evenrank("retrieve", collection, queries, "--out", out, "--quiet")
    assert ended.status == 2
    message = f"evenrank: {out}: cannot be written: 'd 1' as doc_id is empty or contains white space\n"
    assert ended.err == message
    assert not Path(out).exists()


def test_an_output_that_cannot_be_written_is_said_before_the_work(tmp_path, evenrank):
    out = tmp_path / "no" / "k.run"
    for arguments in (
        ("retrieve", tmp_path / "absent.tsv", tmp_path / "absent.tsv", "--out", out),
        ("score", tmp_path / "absent.tsv", "--out", out),
        ("rerank", tmp_path / "absent.run", "--model", "m", "--collection", "c", "--queries", "q", "--out", out),
    ):
        ended = evenrank(*arguments)
        assert ended.status == 2
        assert ended.err == f"evenrank: {out}: cannot be written: No such file or directory\n"
