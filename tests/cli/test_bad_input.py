"""What the commands ``score`` and ``audit`` say to bad input: one line, status 2, nothing left behind."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Command = Callable[..., Any]

FILES = {
    "run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n",
    "other": "q1 Q0 d3 1 3 t\nq2 Q0 d1 1 2 t\n",
    "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
    "collection": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
    "queries": "q1\twho\nq2\twhere\n",
    "lexicon": "she,f\nher,f\nhe,m\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files lie and the command runs, so that messages name short paths."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def score(**changed: str) -> list[str]:
    options = {"collection": "collection", "--out": "scores.parquet", "--lexicon": "lexicon", **changed}
    return ["score", options.pop("collection"), *[part for pair in options.items() for part in pair]]


def audit(*runs: str, **changed: str | None) -> list[str]:
    options = {"--collection": "collection", "--qrels": "qrels", "--queries": "queries", "--lexicon": "lexicon"}
    options |= {"--json": "audit.json", "--per-query": "audit.csv", **changed}  # type: ignore[dict-item]
    return [
        "audit",
        *(runs or ("run",)),
        *[part for key, value in options.items() if value is not None for part in (key, value)],
    ]


def test_good_input(folder: Path, evenrank: Command) -> None:
    ended = evenrank(*score())
    assert (ended.status, ended.out, ended.err) == (0, "", "3 documents scored: scores.parquet\n")
    ended = evenrank(*audit("run", "other", **{"--collection": None, "--scores": "scores.parquet"}))
    assert (ended.status, ended.err) == (0, "")
    assert "nDCG@10" in ended.out
    assert sorted(os.listdir(folder)) == sorted([*FILES, "scores.parquet", "audit.json", "audit.csv"])


@dataclass(frozen=True)
class Case:
    """A command, the files that are changed for it (None: taken away), and its one line."""

    command: list[str]
    message: str
    files: dict[str, str | bytes | None]


def case(command: list[str], message: str, **files: str | bytes | None) -> Case:
    return Case(command, message, files)


SIX = "expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run"
CASES = {
    # runs
    "a run line with five fields": case(
        audit(), f"run, line 2: {SIX}, found 5: 'q1 Q0 d2 2 2'", run="q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2\n"
    ),
    "a score that is nan": case(
        audit(), "run, line 1: expected a finite number as score, found 'nan'", run="q1 Q0 d1 1 nan t\n"
    ),
    "a score that is no number": case(
        audit(), "run, line 3: expected a finite number as score, found 'high'", run="\n\nq1 Q0 d1 1 high t\n"
    ),
    "the same document twice for a query": case(
        audit(),
        "run, line 5: the document 'd1' appears twice for the query 'q1' (first in line 1)",
        run=FILES["run"] + "q1 Q0 d1 3 1 t\n",
    ),
    "a mistake in the second run": case(
        audit("run", "other"), f"other, line 1: {SIX}, found 1: 'x'", other="x\n"
    ),
    "a mistake in the background": case(
        audit(**{"--background": "other"}), f"other, line 1: {SIX}, found 1: 'x'", other="x\n"
    ),
    "a run that is not there": case(audit("none.run"), "none.run: no such file"),
    "a folder as run": case(audit(".", **{"--json": None, "--per-query": None}), ".: Is a directory"),
    "an empty run": case(audit(), "run: the file is empty", run=""),
    "a run of blank lines": case(audit(), "run: the file has no lines", run="\n\n"),
    "a run that is not UTF-8": case(
        audit(), "run, line 2: expected UTF-8, found the byte 0xe9", run=b"q1 Q0 d1 1 3 t\nq1 Q0 d\xe9 2 2 t\n"
    ),
    "a run cut off in its compression": case(
        audit(),
        "run: damaged gzip file (Compressed file ended before the end-of-stream marker was reached)",
        run=gzip.compress(FILES["run"].encode())[:-9],
    ),
    # qrels
    "a grade that is no whole number": case(
        audit(), "qrels, line 2: expected a whole number as relevance, found '0.5'", qrels="q1 0 d1 1\nq2 0 d3 0.5\n"
    ),
    "qrels with three fields": case(
        audit(),
        "qrels, line 1: expected 4 fields (query_id, iteration, doc_id, relevance) of TREC qrels, found 3: 'q1 d1 1'",
        qrels="q1 d1 1\n",
    ),
    "two grades for a document": case(
        audit(),
        "qrels, line 3: the document 'd1' is judged twice for the query 'q1', with different grades",
        qrels=FILES["qrels"] + "q1 0 d1 2\n",
    ),
    "empty qrels": case(audit(), "qrels: the file is empty", qrels=""),
    "qrels that are not there": case(audit(), "qrels: no such file", qrels=None),
    # collections
    "a repeated id": case(
        score(),
        "collection, line 4: the id 'd1' appears twice (first in line 1)",
        collection=FILES["collection"] + "d1\tshe\n",
    ),
    "a repeated id in an audit": case(
        audit(),
        "collection, line 5: the id 'x' appears twice (first in line 4)",
        collection=FILES["collection"] + "x\ta\nx\ta\n",
    ),
    "a line without a tab": case(
        score(),
        "collection, line 4: expected an id, a tab and a text, found 'd4 she' and no tab",
        collection=FILES["collection"] + "d4 she\n",
    ),
    "a line without an id": case(
        score(),
        "collection, line 4: expected an id before the tab, found none",
        collection=FILES["collection"] + "\tshe\n",
    ),
    "a collection that is not UTF-8": case(
        score(), "collection, line 2: expected UTF-8, found the byte 0xff", collection=b"d1\ta\nd2\t\xff\nd3\t\xff\n"
    ),
    "a broken line of JSON": case(
        score(),
        "collection, line 2: expected a JSON object, found '{\"id\": 2'",
        collection='{"id": 1, "text": "she"}\n{"id": 2\n',
    ),
    "JSON without a text": case(
        score(),
        "collection, line 1: expected a string under one of text, contents, body, passage, query, found '{\"id\": 1}'",
        collection='{"id": 1}\n',
    ),
    "an empty collection": case(score(), "collection: the file is empty", collection=""),
    "an empty collection in an audit": case(audit(), "collection: the file is empty", collection=""),
    "a collection with a header alone": case(
        score(), "collection: the file contains no texts", collection="id\ttext\n"
    ),
    "a collection that is not there": case(score(), "collection: no such file", collection=None),
    "a data set that is not there": case(
        score(collection="irds:no-such/set"), "irds:no-such/set: ir_datasets has no data set 'no-such/set'"
    ),
    "a data set of judgements that is not there": case(
        audit(**{"--qrels": "irds:no-such"}), "irds:no-such: ir_datasets has no data set 'no-such'"
    ),
    "documents without text": case(
        audit(),
        "run run: 2 of its 3 documents are not in the collection collection: 'd2', 'd3'"
        " (--missing skip or --missing neutral continues)",
        collection="d1\tshe\n",
    ),
    "more documents without text than are named": case(
        audit(),
        "run run: none of its 7 documents is in the collection collection: 'a', 'b', 'c', 'd', 'e', …"
        " (--missing skip or --missing neutral continues)",
        run="".join(f"q1 Q0 {doc} {rank} {-rank} t\n" for rank, doc in enumerate("abcdefg", start=1)),
    ),
    "scores that are not there": case(
        audit(**{"--collection": None, "--scores": "none.parquet"}), "none.parquet: no such file"
    ),
    # queries
    "a query without text": case(
        audit(),
        "queries: no text for 1 of the 2 queries of the run run: 'q2' (--only-queries leaves them out)",
        queries="q1\twho\n",
    ),
    "a repeated query": case(
        audit(), "queries, line 3: the id 'q1' appears twice (first in line 1)", queries=FILES["queries"] + "q1\twhy\n"
    ),
    "a query that the background lacks": case(
        audit(**{"--background": "other"}),
        "run other, the background, has no documents for the query 'q2' (1 of 2 queries are missing): give a"
        " --background that has all of them",
        other="q1 Q0 d3 1 3 t\n",
    ),
    # lexicons
    "a word in two groups": case(
        score(), "lexicon, line 4: 'She' is in two groups, f (line 1) and m", lexicon=FILES["lexicon"] + "She,m\n"
    ),
    "a word in two groups, in an audit": case(
        audit(), "lexicon, line 4: 'her' is in two groups, f (line 2) and m", lexicon=FILES["lexicon"] + "her,m\n"
    ),
    "a lexicon line without a group": case(
        score(), "lexicon, line 2: expected word,group, found 'he'", lexicon="she,f\nhe\n"
    ),
    "a lexicon of one group": case(
        score(), "lexicon: expected at least two groups, found f", lexicon="she,f\nher,f\n"
    ),
    "an empty lexicon": case(score(), "lexicon: the file is empty", lexicon=""),
    "a lexicon that is not UTF-8": case(
        score(), "lexicon, line 1: expected UTF-8, found the byte 0xe4", lexicon=b"\xe4,f\n"
    ),
    # options
    "no texts": case(
        audit(**{"--collection": None}),
        "an audit needs the documents' texts (--collection), a group table (--scores) or labels (--labels)",
    ),
    "a baseline that is no run": case(
        audit("run", "other", **{"--baseline": "best"}), "--baseline: no run 'best' (the runs are run, other)"
    ),
    "two runs of one name": case(audit("run", "run"), "two runs are named 'run': name them, as in NAME=run"),
    "a name that is kept": case(
        audit("random=run"), "the name 'random' is reserved for a reference ranking: rename the run"
    ),
    "a measure that needs judgements": case(
        audit(**{"--qrels": None, "--measures": "nDCG@10"}), "nDCG@10 needs --qrels"
    ),
    "a background of no depth": case(
        audit(**{"--background-depth": "0"}), "--background-depth: expected 1 or more, found 0"
    ),
    "a wrong word for missing": case(
        audit(**{"--missing": "drop"}), "--missing: expected error, skip or neutral, found 'drop'"
    ),
    "a wrong word for the order": case(
        audit(**{"--order": "rank"}), "--order: expected score or file, found 'rank'"
    ),
    # places to write
    "a folder that is not there": case(
        score(**{"--out": "none/scores.parquet"}), "none/scores.parquet: cannot be written: No such file or directory"
    ),
    "a folder as the file to write": case(score(**{"--out": "."}), ".: cannot be written: Is a directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(folder: Path, evenrank: Command, name: str) -> None:
    wrong = CASES[name]
    for file, content in wrong.files.items():
        (folder / file).unlink()
        if content is not None:
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ended = evenrank(*wrong.command)
    assert ended.err == f"evenrank: {wrong.message}\n"
    assert (ended.status, ended.out) == (2, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("missing", ["skip", "neutral"])
def test_documents_without_text_can_be_let_through(folder: Path, evenrank: Command, missing: str) -> None:
    (folder / "collection").write_text("d1\tshe\nd2\the\n")
    ended = evenrank(*audit(**{"--missing": missing}))
    assert (ended.status, ended.out) == (2, "")
    assert "run run: 1 of 4 documents in all lists (25%) is not in the collection collection: 'd3'" in ended.err
    ended = evenrank(*audit(**{"--missing": missing, "--missing-limit": "0.25"}))
    assert (ended.status, ended.err) == (0, "")
    above_the_table = " ".join(ended.out.split("\n\n")[0].split())
    assert "Documents without text: 1 of 4 documents in all lists of run (25%), " in above_the_table


def test_a_full_disk(no_room: tuple[Path, str], tmp_path: Path, evenrank: Command) -> None:
    room, reason = no_room
    many = pl.select(pl.format("a-long-query-number-{}", pl.int_range(400)).alias("q"))["q"]
    (tmp_path / "run").write_text("".join(f"{query} Q0 d{i} {i} {-i} t\n" for query in many for i in (1, 2)))
    (tmp_path / "collection").write_text("d1\tshe her\nd2\tshe he\n")
    out = room / "audit.csv"
    out.write_text("old")
    ended = evenrank("audit", tmp_path / "run", "--collection", tmp_path / "collection", "--per-query", out)
    assert ended.status == 2
    assert ended.err == f"evenrank: {out}: cannot be written: {reason}\n"
    assert os.listdir(room) == ["audit.csv"]
    assert out.read_text() == "old"


def test_an_interrupt(folder: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evenrank.groups.scoring.score_texts", interrupted)
    ended = evenrank(*score())
    assert ended.status == 130
    assert "Traceback" not in ended.err
    assert sorted(os.listdir(folder)) == sorted(FILES)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (score(), "collection, line 2: expected an id, a tab and a text, found 'd2' and no tab"),
        (audit(), "collection, line 2: expected an id, a tab and a text, found 'd2' and no tab"),
    ],
)
def test_the_command_in_a_process_of_its_own(folder: Path, command: list[str], message: str) -> None:
    (folder / "collection").write_text("d1\tshe\nd2\n")
    program = "import sys; from evenrank.cli import main; sys.argv[0] = 'evenrank'; main()"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program, *command], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"evenrank: {message}\n")
    assert sorted(os.listdir(folder)) == sorted(FILES)
