"""What ``evenrank audit`` says to bad labels, and to options that do not go with them: one line, status 2."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Command = Callable[..., Any]
Case = tuple[list[str], str, dict[str, str | bytes | pl.DataFrame | None]]

FILES = {
    "run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n",
    "other": "q1 Q0 d3 1 3 t\nq2 Q0 d1 1 2 t\n",
    "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
    "labels": "doc_id,group\nd1,m\nd2,f\nd9,none\n",
    "collection": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
    "target": "group,share\nm,0.5\nf,0.5\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*runs: str, **changed: str | None) -> list[str]:
    options: dict[str, str | None] = {"labels": "labels", "neutral": "none", "qrels": "qrels", "json": "audit.json"}
    options |= changed
    given = [(f"--{name.replace('_', '-')}", value) for name, value in options.items() if value is not None]
    return ["audit", *(runs or ("run",)), *[part for pair in given for part in pair]]


def case(command: list[str], message: str, **files: str | bytes | pl.DataFrame | None) -> Case:
    return command, message, files


def wide(*rows: str) -> str:
    return "\n".join(["doc_id,m,f", "d1,1,0", *rows, ""])


NAN, INF = float("nan"), float("inf")
PLAIN = {"doc_id": ["d1", "d2"]}
CASES = {
    # weights
    "a weight below 0": case(
        audit(), "labels, line 3: expected a weight of 0 or more for f, found -0.5", labels=wide("d2,0,-0.5")
    ),
    "weights above 1": case(
        audit(), "labels, line 4: expected weights that sum to 1 at most, they sum to 1.1",
        labels=wide("", "d2,.6,.5"),
    ),
    "a weight that is nan": case(
        audit(), "labels, line 3: expected a weight of 0 or more for m, found nan", labels=wide("d2,nan,0")
    ),
    "a weight that is infinite": case(
        audit(), "labels, line 3: expected a weight of 0 or more for f, found inf", labels=wide("d2,0,1e999")
    ),
    "one weight of two": case(
        audit(), "labels, line 3: expected a weight for each group or for none, found none for m", labels=wide("d2,,1")
    ),
    "a weight that is no number": case(
        audit(),
        "labels: which column is the group? 'm' holds no weights, the columns are m, f (--group-column names it)",
        labels=wide("d2,much,0"),
    ),
    "a document twice": case(
        audit(),
        "labels, line 5: the document 'd1' is there twice, with other weights in line 2",
        labels=wide("d2,0,1", "d1,1,0", "d1,0.5,0"),
    ),
    "a document twice, among line breaks": case(
        audit(),
        "labels, line 6: the document 'd1' is there twice, with other weights in line 2",
        labels='doc_id,m,f\nd1,1,0\n\n"x\ny",1,0\n"d1",0,1\n',
    ),
    # groups
    "neutral and a group": case(
        audit(),
        "labels, line 2: the document 'd1' is in the group 'm', but neutral ('none') in line 5",
        labels=FILES["labels"] + "d1,none\n",
    ),
    "one group": case(
        audit(neutral=None),
        "labels: expected at least two groups, found m (--neutral names the values that mean no group)",
        labels="doc_id,group\nd1,m\nd2,m\n",
    ),
    "one group beside the neutral": case(
        audit(), "labels: expected at least two groups, found f", labels="doc_id,group\nd1,none\nd2,f\n"
    ),
    "a group named rest": case(
        audit(), "labels: no group may be named 'rest': it stands for all the others", labels="id,g\nd1,rest\nd2,f\n"
    ),
    "groups that collide": case(
        audit(),
        "labels: the groups 'x' and 'words_x' cannot be in one group table: both would have a column"
        " magnitude_tf_words_x",
        labels="doc_id,x,words_x\nd1,1,0\n",
    ),
    # columns
    "no ids": case(audit(), "labels, line 1: expected a column doc_id, found the columns a, b", labels="a,b\n1,2\n"),
    "ids alone": case(audit(), "labels: expected a column of groups beside doc_id, found none", labels="doc_id\nd1\n"),
    "several columns": case(
        audit(),
        "labels: which column is the group? 'title' holds no weights, the columns are title, gender"
        " (--group-column names it)",
        labels="doc_id,title,gender\nd1,x,m\nd2,y,f\n",
    ),
    "a column that is not there": case(
        audit(group_column="sex"), "labels: there is no column 'sex' (--group-column) beside doc_id: found group"
    ),
    "two columns of one name": case(
        audit(), "labels, line 1: two columns are named 'm'", labels="doc_id,m,m\nd1,1,0\n"
    ),
    "a row without an id": case(
        audit(), "labels, line 3: expected a doc_id, found none", labels="doc_id,group\nd1,m\n,f\n"
    ),
    # files
    "no labels": case(audit(), "labels: no such file", labels=None),
    "an empty file": case(audit(), "labels: the file is empty", labels=""),
    "blank lines": case(audit(), "labels: the file contains no rows", labels="\n\n"),
    "a header alone": case(
        audit(), "labels: contains no rows", labels="doc_id,group\n"
    ),
    "a wide header alone": case(
        audit(), "labels: contains no rows", labels="doc_id,m,f\n"
    ),
    "empty values alone": case(
        audit(), "labels: knows none of the documents: all their values are empty", labels="doc_id,m,f\nd1,,\nd2,,\n"
    ),
    "other documents": case(
        audit(),
        "labels: knows none of the documents: it has 'a', 'b', 'c', 'd', 'e', …; asked for '1', '2', '3', '4', '5', …",
        labels="doc_id,group\n" + "".join(f"{doc},{'mf'[i % 2]}\n" for i, doc in enumerate("abcdefg")),
        run="".join(f"q1 Q0 {i} {i} {-i} t\n" for i in range(1, 8)),
    ),
    "documents of another run": case(
        audit("run", "other"),
        "run other: none of its 2 documents is in the labels labels: the run has 'x', 'y'; the labels have 'd1', 'd2'",
        other="q1 Q0 x 1 2 t\nq2 Q0 y 1 2 t\n",
    ),
    "not UTF-8": case(
        audit(), "labels, line 3: expected UTF-8, found the byte 0xff", labels=b"doc_id,g\nd1,m\nd2,\xff\n"
    ),
    "a line too short": case(
        audit(), "labels, line 3: expected 2 values (doc_id, group), found 1: 'd2'", labels="doc_id,group\nd1,m\nd2\n"
    ),
    "a line too long": case(
        audit(),
        "labels, line 2: expected 2 values (doc_id, group), found 3: 'd1,m,f'",
        labels="doc_id,group\nd1,m,f\nd2,f\n",
    ),
    "a quote that does not end": case(
        audit(), "labels, line 2: no valid CSV: unexpected end of data", labels='doc_id,group\nd1,"m\nd2,f\nd3,m\n'
    ),
    "no JSON object": case(
        audit(), "labels, line 2: expected a JSON object, found '3'", labels='{"doc_id": "d1", "group": "m"}\n3\n'
    ),
    "half a surrogate pair": case(
        audit(),
        "labels, line 1: expected Unicode, found half a surrogate pair: '{\"doc_id\": 1, \"group\": \"\\\\ud800\"}'",
        labels='{"doc_id": 1, "group": "\\ud800"}\n',
    ),
    "deep JSON": case(
        audit(),
        f"labels, line 1: expected a JSON object, found '{{\"doc_id\": \"d1\", \"group\": {'[' * 33}…'",
        labels=f'{{"doc_id": "d1", "group": {"[" * 100_000}\n',
    ),
    "nested JSON": case(
        audit(),
        "labels: expected names of groups in the column group, found mixed or nested values",
        labels=f'{{"doc_id": "d1", "group": {"[" * 700}"m"{"]" * 700}}}\n{{"doc_id": "d2", "group": "f"}}\n',
    ),
    "damaged Parquet": case(
        audit(),
        "labels: damaged Parquet file (Parquet magic bytes not found in footer. Either the file is corrupted or this is"
        " not a parquet file.)",
        labels=b"PAR1" + b"x" * 100,
    ),
    "nan in Parquet": case(
        audit(),
        "labels: row 2: expected a weight of 0 or more for m, found nan",
        labels=pl.DataFrame({**PLAIN, "m": [1, NAN], "f": [0.0, 0]}, strict=False),
    ),
    "inf in Parquet": case(
        audit(),
        "labels: row 1: expected a weight of 0 or more for f, found inf",
        labels=pl.DataFrame({**PLAIN, "m": [0.0, 1], "f": [INF, 0]}, strict=False),
    ),
    "no id in Parquet": case(
        audit(),
        "labels: expected a string or a whole number as doc_id, found None",
        labels=pl.DataFrame({"doc_id": ["d1", None], "group": ["m", "f"]}),
    ),
    "nested Parquet": case(
        audit(),
        "labels: expected names of groups in the column group, found Struct",
        labels=pl.DataFrame({**PLAIN, "group": [{"m": 1}, {"m": 2}]}),
    ),
    # options
    **{
        f"labels and {name}": case(
            audit(**{name: value}), f"--labels or --{name}: groups are from labels or from words, not from both"
        )
        for name, value in {"scores": "s.parquet", "lexicon": "gender-en", "tokens": "word", "threshold": "1"}.items()
    },
    "neutral without labels": case(
        audit(labels=None, collection="collection"), "--neutral says how labels are read: it needs --labels"
    ),
    "a column without labels": case(
        audit(labels=None, neutral=None, group_column="g", collection="collection"),
        "--group-column says how labels are read: it needs --labels",
    ),
    "unknown without labels": case(
        audit(labels=None, neutral=None, collection="collection", unknown="skip"),
        "--unknown is about documents without a label: it needs --labels",
    ),
    "missing with labels": case(
        audit(missing="skip"), "--missing is about documents without text: of labels, --unknown says what to do"
    ),
    "a wrong word for unknown": case(
        audit(unknown="drop"), "--unknown: expected bounds, skip or neutral, found 'drop'"
    ),
    "poles of no group": case(
        audit(poles="m,x"), "--poles: expected two of f, m, rest (rest second), found 'm,x'"
    ),
    "a magnitude that labels lack": case(
        audit(measures="ARaB(magnitude='tf')@10"),
        "magnitude tf: labels have no words to take the logarithm of; `count` is their weight, `bool` whether it is"
        " above 0",
    ),
    "a group that labels lack": case(
        audit(measures="Share(group='x')@10"), "no group 'x' in the group table, which has f, m"
    ),
    "a signed measure without poles": case(
        audit(measures="ARaB@10"),
        "which groups to compare? the groups are a, b, c; --poles A,B says",
        labels="doc_id,group\nd1,a\nd2,b\nd3,c\n",
    ),
    # targets
    "a target of other groups": case(
        audit(target="target", measures="AWRF@10"),
        "target, line 3: no group 'w' in the labels, which have f, m",
        target="group,share\nm,0.5\nw,0.5\n",
    ),
    "a target that is not 1": case(
        audit(target="target"), "target, line 2: the shares sum to 0.9, expected 1", target="group,share\nm,.5\nf,.4\n"
    ),
    "a target that is not there": case(
        audit(target="none"), "--target: expected uniform, candidates, relevant or a file, found 'none'"
    ),
    "a relevant target without qrels": case(
        audit(target="relevant", qrels=None, measures="AWRF@10"), "--target relevant needs --qrels"
    ),
    # rankings
    "rankings of no run": case(
        audit(rankings="mine=other"), "--rankings: no run 'mine' (the runs are run)"
    ),
    "rankings without a name": case(
        audit(rankings="other"), "--rankings: expected NAME=RUN, found 'other'"
    ),
    "rankings that are no run": case(
        audit(rankings="run=labels"),
        "labels, line 1: expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run, found 1:"
        " 'doc_id,group'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_labels(folder: Path, evenrank: Command, name: str) -> None:
    command, message, files = CASES[name]
    for file, content in files.items():
        (folder / file).unlink()
        if isinstance(content, pl.DataFrame):
            content.write_parquet(folder / file)
        elif content is not None:
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ended = evenrank(*command)
    assert ended.err == f"evenrank: {message}\n"
    assert (ended.status, ended.out) == (2, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_good_labels(folder: Path, evenrank: Command) -> None:
    ended = evenrank(*audit("run", "other", baseline="run"))
    assert (ended.status, ended.err) == (0, "")
    assert "\nDocuments without a label: 25% of run, 50% of other in the first 10 ranks; only" in ended.out
    assert (folder / "audit.json").exists()
    # Two of the files that are named twice are read once for each use, and are no output.
    again = evenrank(*audit("run", "other", json="labels"))
    assert (again.status, again.out) == (2, "")
    assert "labels" in again.err
    assert (folder / "labels").read_text() == FILES["labels"]


def test_in_a_process_of_its_own(folder: Path) -> None:
    (folder / "labels").write_text("doc_id,group\nd1,m\nd2\n")
    program = "import sys; from evenrank.cli import main; sys.argv[0] = 'evenrank'; main()"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program, *audit()], capture_output=True, text=True)
    message = "labels, line 3: expected 2 values (doc_id, group), found 1: 'd2'"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"evenrank: {message}\n")
