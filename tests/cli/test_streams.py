"""Files are written before anything is printed, and ``-`` is standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import evenrank as package

AUDIT = ["audit", "run", "--collection", "c.tsv", "--qrels", "qrels"]
FUSE = "fuse run other --tune nDCG@10 --folds 2 --qrels qrels --out fused"
SETS = "--definitional sets.json --equalize sets.json"
ANSWERS = [{"id": "q", "question": "?", "answers": [{"text": "two", "answer_start": 4}]}]


@pytest.fixture
def folder(given):
    return given({
        "run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n",
        "other": "q1 Q0 d2 1 3 t\nq2 Q0 d1 1 2 t\n",
        "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
        "c.tsv": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
        "q.tsv": "q1\tsaid he\nq2\tnothing\n",
        "v.txt": "6 2\nhe 1 0.1\nshe -1 0.1\nman 0.9 0.2\nwoman -0.9 0.2\nnurse -0.5 0.6\nboss 0.5 0.6\n",
        "sets.json": '[["he", "she"], ["man", "woman"]]',
        "squad.json": json.dumps({"data": [{"title": "t", "paragraphs": [{"context": "one two", "qas": ANSWERS}]}]}),
    })  # fmt: skip


def command(*arguments, unbuffered="", **streams):
    """The command as a process, its streams read unless they are given."""
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "PYTHONUNBUFFERED": unbuffered}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    line = [sys.executable, "-m", "evenrank", *arguments]
    return subprocess.run(line, text=True, env=environment, check=False, **streams)


def unread():
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full():
    """A device without room."""
    return os.open("/dev/full", os.O_WRONLY)


NO_ROOM = "evenrank: standard output: No space left on device\n"


@pytest.mark.parametrize(("stream", "other", "status", "error"), [(unread, "--report", 1, ""),
                                                                  (full, "--per-query", 2, NO_ROOM)])  # fmt: skip
def test_an_audit_whose_output_is_lost_leaves_its_files(folder, stream, other, status, error):
    output = stream()
    ended = command(*AUDIT, "--json", "j", other, "r", stdout=output)
    os.close(output)
    assert (ended.returncode, ended.stderr) == (status, error)
    assert json.loads((folder / "j").read_text())["runs"]["run"]["queries"] == 2
    assert (folder / "r").read_text().startswith(("<!doctype html>", "query_id,run,"))


def test_closed_streams():
    ended = command("--version", stdout=None, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, ended.stderr) == (2, "evenrank: standard output: Bad file descriptor\n")
    ended = command("nothing", stderr=None, preexec_fn=lambda: os.close(2))
    assert (ended.returncode, ended.stdout) == (2, "")


def values(text):
    """What a JSON says, but for the command that made it."""
    found = json.loads(text)
    assert found["provenance"].pop("command").startswith("evenrank ")
    return found


@pytest.mark.parametrize(
    "line",
    [
        "position answers squad.json",
        FUSE,
        f"embeddings debias v.txt --out w.txt {SETS}",
        f"embeddings audit v.txt {SETS} --most 1 --train 1 --splits 1",
    ],
)
def test_every_json_can_be_piped(folder, evenrank, line):
    written = evenrank(*line.split(), "--json", "j.json")
    assert written.status == 0, written.err
    printed = evenrank(*line.split(), "--json", "-")
    assert (printed.status, printed.err) == (0, written.err)
    assert values(printed.out) == values((folder / "j.json").read_text())
    assert printed.out.endswith("}\n")
    assert not (folder / "-").exists()
