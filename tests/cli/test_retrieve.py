"""``evenrank retrieve``: its output, its notes and what bad input gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenrank.cli import main


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "c.tsv").write_text("d1\tThe cat sat\nd2\tCats and dogs, cat!\nd3\tA dog\n")
    (tmp_path / "q.tsv").write_text("q1\tdogs\nq2\tthe\n")
    return str(tmp_path / "c.tsv"), str(tmp_path / "q.tsv")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_writes_a_run_and_its_notes(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bm25.run"
    assert run(monkeypatch, "retrieve", *files, "--out", str(out)) == 0
    rows = [line.split(" ") for line in out.read_text().splitlines()]
    assert [[*row[:4], row[5]] for row in rows] == [["q1", "Q0", "d3", "1", "bm25"], ["q1", "Q0", "d2", "2", "bm25"]]
    # ln 1.6 · 1 / (1 + 0.9 (0.6 + 0.4 · |d| / 2)), |d| = 1 and 3
    assert [float(row[4]) for row in rows] == pytest.approx([0.4700036 / 1.72, 0.4700036 / 2.08], rel=1e-6)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "bm25: BM25 (Lucene's form), k1 0.9, b 0.4, stop words english (33), stemmer english\n"
        "bm25: 1 query has no word left after stop words and no documents\n"
        f"1 query ranked: {out}\n"
    )


def test_options_reach_the_ranking(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bm25.run"
    options = ["--k", "1", "--k1", "0", "--b", "0.5", "--stopwords", "none", "--stemmer", "none"]
    assert run(monkeypatch, "retrieve", *files, "--out", str(out), *options) == 0
    # Without stems only d2 says "dogs"; without stop words only d1 says "the"; k1 = 0 leaves the idf.
    rows = [line.split(" ") for line in out.read_text().splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("q1", "d2"), ("q2", "d1")]
    assert [float(row[4]) for row in rows] == pytest.approx([0.9808293] * 2, rel=1e-6)
    made = "bm25: BM25 (Lucene's form), k1 0, b 0.5, no stop words, no stemmer\n"
    assert capsys.readouterr().err == f"{made}2 queries ranked: {out}\n"
    # Standard output names no file.
    assert run(monkeypatch, "retrieve", *files, "--out", "-", *options) == 0
    assert capsys.readouterr().err == made


def test_bad_settings_give_status_2(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--out", str(tmp_path / "bm25.run"), "--stopwords", "dutsh")
    assert run(monkeypatch, "retrieve", *files, *options) == 2
    line = capsys.readouterr().err
    assert line.startswith("evenrank: ")
    assert line.count("\n") == 1
    assert "no such file and no list 'dutsh' (the lists are english, danish, dutch, french, " in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.tsv", "q.tsv"]


def test_bad_files_give_status_2(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, queries = files
    nowhere = str(tmp_path / "nowhere" / "x.run")
    assert run(monkeypatch, "retrieve", collection, queries, "--out", nowhere, "--quiet") == 2
    assert capsys.readouterr().err == f"evenrank: {nowhere}: cannot be written: No such file or directory\n"
    # A run has no place for an id with a space.
    Path(collection).write_text("d 1\ta dog\n")
    out = str(tmp_path / "x.run")
    assert run(monkeypatch, "retrieve", collection, queries, "--out", out, "--quiet") == 2
    message = f"evenrank: {out}: cannot be written: 'd 1' as doc_id is empty or contains white space\n"
    assert capsys.readouterr().err == message
    assert not Path(out).exists()


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from evenrank.cli import main; sys.argv = ['evenrank', 'rerank', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'bm25s', 'numba', 'sentence_transformers', 'transformers', 'Stemmer', 'urllib.request'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


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
