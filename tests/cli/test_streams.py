"""Files are written before anything is printed, and ``-`` is standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenrank as package

Command = Callable[..., Any]
AUDIT = ["audit", "run", "--collection", "c.tsv", "--qrels", "qrels"]
VECTORS = "6 2\nhe 1 0.1\nshe -1 0.1\nman 0.9 0.2\nwoman -0.9 0.2\nnurse -0.5 0.6\nboss 0.5 0.6\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run").write_text("q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n")
    (tmp_path / "other").write_text("q1 Q0 d2 1 3 t\nq2 Q0 d1 1 2 t\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d3 1\n")
    (tmp_path / "c.tsv").write_text("d1\tShe and her\nd2\tHe said\nd3\tnothing\n")
    (tmp_path / "q.tsv").write_text("q1\tsaid he\nq2\tnothing\n")
    (tmp_path / "v.txt").write_text(VECTORS)
    (tmp_path / "sets.json").write_text('[["he", "she"], ["man", "woman"]]')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str, unbuffered: str = "", **streams: Any) -> subprocess.CompletedProcess[str]:
    """The command as a process, its streams read unless they are given."""
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "PYTHONUNBUFFERED": unbuffered}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    line = [sys.executable, "-m", "evenrank", *arguments]
    return subprocess.run(line, text=True, env=environment, check=False, **streams)


def unread() -> int:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full() -> int:
    """A device without room."""
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(
    ("stream", "asked", "status", "error"),
    [
        (unread, ["--json", "j", "--report", "r"], 1, ""),
        (full, ["--json", "j", "--per-query", "r"], 2, "evenrank: standard output: No space left on device\n"),
    ],
)
def test_an_audit_whose_output_is_lost_leaves_its_files(
    folder: Path, stream: Callable[[], int], asked: list[str], status: int, error: str
) -> None:
    output = stream()
    ended = command(*AUDIT, *asked, stdout=output)
    os.close(output)
    assert (ended.returncode, ended.stderr) == (status, error)
    assert json.loads((folder / "j").read_text())["runs"]["run"]["queries"] == 2
    assert (folder / "r").read_text().startswith(("<!doctype html>", "query_id,run,"))


def test_lost_messages_stop_no_work(folder: Path) -> None:
    messages = unread()
    ended = command("fuse", "run", "other", "--tune", "nDCG@10", "--qrels", "qrels", "--folds", "2", "--out", "fused",
                    "--json", "j", stderr=messages)  # fmt: skip
    os.close(messages)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert (folder / "fused").read_text().count("\n") == 5
    assert json.loads((folder / "j").read_text())["measure"] == "nDCG@10"


@pytest.mark.parametrize(("asked", "unbuffered"), [("--help", ""), ("--version", "1")])
def test_help_that_goes_nowhere(asked: str, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        ended = command(asked, unbuffered=unbuffered, stdout=full)
    assert (ended.returncode, ended.stderr) == (2, "evenrank: standard output: No space left on device\n")


def test_closed_streams() -> None:
    ended = command("--version", stdout=None, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, ended.stderr) == (2, "evenrank: standard output: Bad file descriptor\n")
    ended = command("nothing", stderr=None, preexec_fn=lambda: os.close(2))
    assert (ended.returncode, ended.stdout) == (2, "")


def values(text: str) -> Any:
    """What a JSON says, but for the command that made it."""
    found = json.loads(text)
    assert found["provenance"].pop("command").startswith("evenrank ")
    return found


def test_json_alone_on_standard_output(folder: Path, evenrank: Command) -> None:
    written = evenrank(*AUDIT, "--json", "j.json", "--per-query", "p.csv")
    assert (written.status, written.out[:8]) == (0, "run has ")
    printed = evenrank(*AUDIT, "--json", "-", "--per-query", "p2.csv")
    assert (printed.status, printed.err) == (0, "")
    assert values(printed.out) == values((folder / "j.json").read_text())
    assert (folder / "p2.csv").read_text() == (folder / "p.csv").read_text()
    rows = evenrank(*AUDIT, "--per-query", "-", "--report", "r.html")
    assert (rows.status, rows.out, rows.err) == (0, (folder / "p.csv").read_text(), "report: r.html\n")
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["position", "answers", "squad.json"],
        ["fuse", "run", "other", "--tune", "nDCG@10", "--folds", "2", "--qrels", "qrels", "--out", "fused"],
        ["embeddings", "debias", "v.txt", "--out", "w.txt", "--definitional", "sets.json", "--equalize", "sets.json"],
        ["embeddings", "audit", "v.txt", "--definitional", "sets.json", "--equalize", "sets.json", "--most", "1",
         "--train", "1", "--splits", "1"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)  # fmt: skip
def test_every_json_can_be_piped(folder: Path, evenrank: Command, arguments: list[str]) -> None:
    answers = [{"id": "q", "question": "?", "answers": [{"text": "two", "answer_start": 4}]}]
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "one two", "qas": answers}]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    written = evenrank(*arguments, "--json", "j.json")
    assert written.status == 0, written.err
    printed = evenrank(*arguments, "--json", "-")
    assert (printed.status, printed.err) == (0, written.err)
    assert values(printed.out) == values((folder / "j.json").read_text())
    assert printed.out.endswith("}\n")
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["retrieve", "c.tsv", "q.tsv", "--quiet"],
        ["fuse", "run", "other", "--weight", "0.5"],
        ["expand", "q.tsv", "--vectors", "v.txt", "--k", "1", "--stopwords", "none"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_texts_can_be_piped(folder: Path, evenrank: Command, arguments: list[str]) -> None:
    written = evenrank(*arguments, "--out", "fused")
    assert (written.status, written.out) == (0, "")
    printed = evenrank(*arguments, "--out", "-")
    said = written.err.replace("2 queries ranked: fused\n", "")
    assert (printed.status, printed.err.replace(": -\n", ": fused\n")) == (0, said)
    assert printed.out == (folder / "fused").read_text()
    assert printed.out.count("\n") >= 2
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [*AUDIT, "--report", "-"],
        ["score", "c.tsv", "--out", "-"],
        ["rotate", "c.tsv", "--out", "-"],
        ["negatives", "run", "--qrels", "qrels", "--out", "-"],
        ["rerank", "run", "--model", "m", "--collection", "c.tsv", "--queries", "q.tsv", "--out", "-"],
        ["embeddings", "train", "c.tsv", "--out", "-"],
        ["embeddings", "debias", "v.txt", "--out", "-"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_cannot_be_piped(folder: Path, evenrank: Command, arguments: list[str]) -> None:
    before = sorted(os.listdir(folder))
    ended = evenrank(*arguments)
    said = "evenrank: expected a file as output, found '-': this cannot go to standard output\n"
    assert (ended.status, ended.out, ended.err) == (2, "", said)
    assert sorted(os.listdir(folder)) == before


def test_one_output_is_standard_output(folder: Path, evenrank: Command) -> None:
    ended = evenrank(*AUDIT, "--json", "-", "--per-query", "-")
    said = "evenrank: expected one output to be '-' (standard output), found several\n"
    assert (ended.status, ended.out, ended.err) == (2, "", said)
