"""What commands say to bad input: one line, status 2, nothing left behind. What readers say, their own tests have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Command = Callable[..., Any]
Files = dict[str, str | bytes | pl.DataFrame | None]
Case = tuple[list[str], str, Files]

FILES = {
    "run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n",
    "other": "q1 Q0 d3 1 3 t\nq2 Q0 d1 1 2 t\n",
    "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
    "collection": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
    "queries": "q1\twho\nq2\twhere\n",
    "lexicon": "she,f\nher,f\nhe,m\n",
    "labels": "doc_id,group\nd1,m\nd2,f\nd9,none\n",
    "target": "group,share\nm,0.5\nf,0.5\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files lie and the command runs, so that messages name short paths."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(name: str, *arguments: str, **options: str | None) -> list[str]:
    given = [(f"--{option.replace('_', '-')}", value) for option, value in options.items() if value is not None]
    return [name, *arguments, *[part for pair in given for part in pair]]


def score(collection: str = "collection", **changed: str) -> list[str]:
    return command("score", collection, **{"out": "scores.parquet", "lexicon": "lexicon", **changed})


def audit(*runs: str, **changed: str | None) -> list[str]:
    files = {name: name for name in ("collection", "qrels", "queries", "lexicon")}
    return command("audit", *(runs or ("run",)), **{**files, "json": "a.json", "per_query": "a.csv", **changed})


def labels(*runs: str, **changed: str | None) -> list[str]:
    options = {"labels": "labels", "neutral": "none", "qrels": "qrels", "json": "a.json", **changed}
    return command("audit", *(runs or ("run",)), **options)


def case(command: list[str], message: str, **files: str | bytes | pl.DataFrame | None) -> Case:
    return command, message, files


def wide(*rows: str) -> str:
    return "\n".join(["doc_id,m,f", "d1,1,0", *rows, ""])


SIX = "expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run"
JUDGES_NONE = (
    "run other: none of its 1 query is judged in qrels: the run has '3'; the qrels have 'q1', 'q2'"
    " (ids in another column: --run-columns query=NAME; answers without names: --queries)"
)
CASES = {
    # files of lines: the place, and what stands there
    "a run": case(audit(), f"run, line 2: {SIX}, found 5: 'q1 Q0 d2 2 2'", run="q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2\n"),
    "the second run": case(audit("run", "other"), f"other, line 1: {SIX}, found 1: 'x'", other="x\n"),
    "the background": case(audit(background="other"), f"other, line 1: {SIX}, found 1: 'x'", other="x\n"),
    "a run twice": case(
        audit(),
        "run, line 5: the document 'd1' appears twice for the query 'q1' (first in line 1)",
        run=FILES["run"] + "q1 Q0 d1 3 1 t\n",
    ),
    "a run that is not UTF-8": case(
        audit(),
        "run, line 2: expected UTF-8, found the byte 0xe9 (save the file as UTF-8)",
        run=b"q1 Q0 d1 1 3 t\nq1 Q0 d\xe9 2 2 t\n",
    ),
    "an empty run": case(audit(), "run: the file is empty", run=""),
    "no run": case(audit("none.run"), "none.run: no such file"),
    "a folder as run": case(audit(".", json=None, per_query=None), ".: Is a directory"),
    "qrels": case(
        audit(), "qrels, line 2: expected a whole number as relevance, found '0.5'", qrels="q1 0 d1 1\nq2 0 d3 0.5\n"
    ),
    "qrels of no data set": case(audit(qrels="irds:no-such"), "irds:no-such: ir_datasets has no data set 'no-such'"),
    "a CSV of other names": case(
        audit(),
        "run, line 1: expected a TREC run, or columns query_id, doc_id, score"
        " (--run-columns query=…,document=…,score=… names others), found 'user,item,rating'",
        run="user,item,rating\nq1,d1,3\n",
    ),
    "a collection": case(
        score(),
        "collection, line 4: expected an id, a tab and a text, found 'd4 she' and no tab",
        collection=FILES["collection"] + "d4 she\n",
    ),
    "an id twice in a collection": case(
        score(),
        "collection, line 4: the id 'd1' appears twice (first in line 1)",
        collection=FILES["collection"] + "d1\tshe\n",
    ),
    "an id twice, in an audit": case(
        audit(),
        "collection, line 5: the id 'x' appears twice (first in line 4)",
        collection=FILES["collection"] + "x\ta\nx\ta\n",
    ),
    "queries": case(
        audit(), "queries, line 3: the id 'q1' appears twice (first in line 1)", queries=FILES["queries"] + "q1\twhy\n"
    ),
    "a lexicon": case(
        audit(), "lexicon, line 4: 'her' is in two groups, f (line 2) and m", lexicon=FILES["lexicon"] + "her,m\n"
    ),
    # what does not go together
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
    "a query without text": case(
        audit(),
        "queries: no text for 1 of the 2 queries of the run run: 'q2'; the texts have 'q02' (--only-queries leaves them"
        " out)",
        queries="q1\twho\nq02\twho\n",
    ),
    "a query that the background lacks": case(
        audit(background="other"),
        "run other, the background, has no documents for the query 'q2' (1 of 2 queries are missing): give a"
        " --background that has all of them",
        other="q1 Q0 d3 1 3 t\n",
    ),
    "qrels of other queries": case(audit("run", "other"), JUDGES_NONE, other="3 Q0 d1 1 3 t\n"),
    "qrels of other queries, drawn": case(
        audit("run", "other", qrels="q.csv"),
        JUDGES_NONE.replace("qrels:", "q.csv:").replace("'q1', 'q2'", "'q1'"),
        **{"other": "3 Q0 d1 1 3 t\n", "q.csv": "query_id,doc_id,grade,probability\nq1,d1,1,1\nq1,d2,0,1\n"},
    ),
    "qrels of other queries, in a gate": case(
        command("gate", "other", baseline="run", qrels="qrels", budget="budget"),
        JUDGES_NONE,
        other="3 Q0 d1 1 3 t\n",
        budget='[[rule]]\nmeasure = "nDCG@10"\nat_least = 0.1\n',
    ),
    "labels of other documents": case(
        labels("run", "other"),
        "run other: none of its 2 documents is in the labels labels: the run has 'x', 'y'; the labels have 'd1', 'd2'",
        other="q1 Q0 x 1 2 t\nq2 Q0 y 1 2 t\n",
    ),
    # labels: the place in a file of columns
    "a weight": case(
        labels(), "labels, line 3: expected a weight of 0 or more for f, found inf", labels=wide("d2,0,1e999")
    ),
    "weights above 1": case(
        labels(), "labels, line 4: expected weights that sum to 1 at most, they sum to 1.1", labels=wide("", "d2,.6,.5")
    ),
    "one weight of two": case(
        labels(), "labels, line 3: expected a weight for each group or for none, found none for m",
        labels=wide("d2,,1"),
    ),
    "a document twice, among line breaks": case(
        labels(),
        "labels, line 6: the document 'd1' is there twice, with other weights in line 2",
        labels='doc_id,m,f\nd1,1,0\n\n"x\ny",1,0\n"d1",0,1\n',
    ),
    "neutral and a group": case(
        labels(),
        "labels, line 2: the document 'd1' is in the group 'm', but neutral ('none') in line 5",
        labels=FILES["labels"] + "d1,none\n",
    ),
    "one group": case(
        labels(neutral=None),
        "labels: expected at least two groups, found m (--neutral names the values that mean no group)",
        labels="doc_id,group\nd1,m\nd2,m\n",
    ),
    "columns of groups without number": case(
        labels(),
        "labels: expected at most 1,000 columns of groups, found 1,001",
        labels=f"doc_id,{','.join(map(str, range(1001)))}\nd1{',1' * 1001}\n",
    ),
    "groups that collide": case(
        labels(),
        "labels: the groups 'x' and 'words_x' cannot be in one group table: both would have a column"
        " magnitude_tf_words_x",
        labels="doc_id,x,words_x\nd1,1,0\n",
    ),
    "several columns": case(
        labels(),
        "labels: which column is the group? 'title' holds no weights, the columns are title, gender"
        " (--group-column names it)",
        labels="doc_id,title,gender\nd1,x,m\nd2,y,f\n",
    ),
    "a column that is not there": case(
        labels(group_column="sex"), "labels: there is no column 'sex' (--group-column) beside doc_id: found group"
    ),
    "no column of ids of that name": case(
        labels(id_column="person"), "labels: there is no column 'person' (--id-column): found doc_id, group"
    ),
    "deep JSON": case(
        labels(),
        f"labels, line 1: expected a JSON object, found '{{\"doc_id\": \"d1\", \"group\": {'[' * 33}…'",
        labels=f'{{"doc_id": "d1", "group": {"[" * 100_000}\n',
    ),
    "nested JSON": case(
        labels(),
        "labels: expected names of groups in the column group, found mixed or nested values",
        labels=f'{{"doc_id": "d1", "group": {"[" * 700}"m"{"]" * 700}}}\n{{"doc_id": "d2", "group": "f"}}\n',
    ),
    "damaged Parquet": case(
        labels(),
        "labels: damaged Parquet file (parquet: File out of specification: The file must end with PAR1 or PARE)",
        labels=b"PAR1" + b"x" * 100,
    ),
    "nan in Parquet": case(
        labels(),
        "labels: row 2: expected a weight of 0 or more for m, found nan",
        labels=pl.DataFrame({"doc_id": ["d1", "d2"], "m": [1, float("nan")], "f": [0.0, 0]}, strict=False),
    ),
    # options
    "no texts": case(
        audit(collection=None),
        "an audit needs the documents' texts (--collection), a group table (--scores) or labels (--labels)",
    ),
    "a baseline that is no run": case(
        audit("run", "other", baseline="best"), "--baseline: no run 'best' (the runs are run, other)"
    ),
    "two runs of one name": case(audit("run", "run"), "two runs are named 'run': name them, as in NAME=run"),
    "a name that is kept": case(
        audit("random=run"), "the name 'random' is reserved for a reference ranking: rename the run"
    ),
    "a measure that needs judgements": case(audit(qrels=None, measures="nDCG@10"), "nDCG@10 needs --qrels"),
    "a number": case(audit(background_depth="0"), "--background-depth: expected 1 or more, found 0"),
    "a word": case(audit(missing="drop"), "--missing: expected error, skip or neutral, found 'drop'"),
    "labels and words": case(labels(tokens="word"), "--labels: not with --tokens"),
    "neutral without labels": case(labels(labels=None, collection="collection"), "--neutral needs --labels or --table"),
    "unknown without labels": case(
        labels(labels=None, neutral=None, collection="collection", unknown="skip"),
        "--unknown is about documents without a label: it needs --labels",
    ),
    "missing with labels": case(
        labels(missing="skip"), "--missing is about documents without text: of labels, --unknown says what to do"
    ),
    "poles of no group": case(labels(poles="m,x"), "--poles: expected two of f, m, rest (rest second), found 'm,x'"),
    "a signed measure without poles": case(
        labels(measures="ARaB@10"),
        "which groups to compare? the groups are a, b, c; --poles A,B says",
        labels="doc_id,group\nd1,a\nd2,b\nd3,c\n",
    ),
    "a group that labels lack": case(
        labels(measures="Share(group='x')@10"), "no group 'x' in the group table, which has f, m"
    ),
    "a target of other groups": case(
        labels(target="target", measures="AWRF@10"),
        "target, line 3: no group 'w' in the labels, which have f, m",
        target="group,share\nm,0.5\nw,0.5\n",
    ),
    "a target that is not there": case(
        labels(target="none"), "--target: expected uniform, candidates, relevant or a file, found 'none'"
    ),
    "a relevant target without qrels": case(
        labels(target="relevant", qrels=None, measures="AWRF@10"), "--target relevant needs --qrels"
    ),
    # places to write
    "a folder that is not there": case(
        score(out="none/scores.parquet"), "none/scores.parquet: cannot be written: No such file or directory"
    ),
    "a folder as the file to write": case(score(out="."), ".: cannot be written: Is a directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(folder: Path, evenrank: Command, name: str) -> None:
    command, message, files = CASES[name]
    for file, content in files.items():
        if isinstance(content, pl.DataFrame):
            content.write_parquet(folder / file)
        elif content is not None:
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ended = evenrank(*command)
    assert ended.err == f"evenrank: {message}\n"
    assert (ended.status, ended.out) == (2, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_good_input(folder: Path, evenrank: Command) -> None:
    ended = evenrank(*score())
    assert (ended.status, ended.out, ended.err) == (0, "", "3 documents scored: scores.parquet\n")
    ended = evenrank(*audit("run", "other", collection=None, scores="scores.parquet"))
    assert (ended.status, ended.err) == (0, "")
    assert "nDCG@10" in ended.out
    ended = evenrank(*labels("run", "other", baseline="run", json="b.json"))
    assert (ended.status, ended.err) == (0, "")
    assert "\nDocuments without a label: 25% of run, 50% of other in the first 10 ranks; only" in ended.out
    (folder / "people").write_text(FILES["labels"].replace("doc_id", "person"))
    assert evenrank(
        *labels("run", "other", baseline="run", json="b.json", labels="people", id_column="person")
    ).out == (ended.out)
    assert sorted(os.listdir(folder)) == sorted([*FILES, "people", "scores.parquet", "a.json", "a.csv", "b.json"])


@pytest.mark.parametrize("missing", ["skip", "neutral"])
def test_documents_without_text_can_be_let_through(folder: Path, evenrank: Command, missing: str) -> None:
    (folder / "collection").write_text("d1\tshe\nd2\the\n")
    ended = evenrank(*audit(missing=missing))
    assert (ended.status, ended.out) == (2, "")
    assert "run run: 1 of 4 documents in all lists (25%) is not in the collection collection: 'd3'" in ended.err
    ended = evenrank(*audit(missing=missing, missing_limit="0.25"))
    assert (ended.status, ended.err) == (0, "")
    above_the_table = " ".join(ended.out.split("\n\n")[0].split())
    assert "Documents without text: 1 of 4 documents in all lists of run (25%), " in above_the_table


def test_the_command_in_a_process_of_its_own(folder: Path) -> None:
    """Where warnings are errors."""
    (folder / "collection").write_text("d1\tshe\nd2\n")
    program = "import sys; from evenrank.cli import main; sys.argv[0] = 'evenrank'; main()"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program, *audit()], capture_output=True, text=True)
    message = "collection, line 2: expected an id, a tab and a text, found 'd2' and no tab"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"evenrank: {message}\n")
    assert sorted(os.listdir(folder)) == sorted(FILES)
