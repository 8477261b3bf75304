"""Negatives: what bad input gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from negative_files import OPTIONS, run_text

# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"r.run": "q1 Q0 d1 1 2\n"}, (), "r.run, line 1: expected 6 fields (query_id, Q0, doc_id, rank, score, tag)"),
        (
            {"r.run": run_text({"q1": ["x", "d1", "y"], "q2": ["x", "d5"]})},
            (),
            "2 documents of the run r.run are not in c.tsv: 'x', 'y'",
        ),
        ({"qrels.txt": "q1 0 z 1\n"}, (), "1 judged relevant documents are not in c.tsv: 'z'"),
        ({"qrels.txt": "q1 0 d5 0\n"}, (), "run r.run: no query has both a judged relevant document and an unjudged"),
        ({"q.tsv": "q1\ttext\n"}, (), "3 queries of the run r.run have no text: 'q2', 'q3', 'q4'"),
        ({}, ("--beta", "tf"), "expected abs_tf, count or one_minus_neutrality, found 'tf'"),
        ({}, ("--format", "triplet"), "--format: expected groups, labeled-list, labeled-pair or n-tuple, found"),
        ({}, ("--format", "n-tuple", "--n", 9), "--format n-tuple: no query has 9 negatives"),
        ({}, ("--tokens", "bytes"), "--tokens: expected word or whitespace, found 'bytes'"),
        ({}, ("--lexicon", "none.toml"), "--lexicon: no file and no built-in lexicon 'none.toml'"),
        ({}, ("--scores", "c.tsv"), "c.tsv: no Parquet file that can be read"),
        ({}, ("--out", "set.csv"), "--out: expected a name that ends in .parquet or .jsonl, found 'set.csv'"),
    ],
)
def test_bad_input(changed, options, message, files, evenrank):
    for name, content in changed.items():
        Path(name).write_text(content)
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", *options)
    assert ended.status == 2
    assert ended.err.startswith("evenrank: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert sorted(os.listdir()) == ["c.tsv", "q.tsv", "qrels.txt", "r.run"]


def test_what_is_lacking(files, evenrank):
    qrels = ("--qrels", "qrels.txt", "--out", "set.jsonl")
    ended = evenrank("negatives", "r.run", *qrels)
    assert ended.err == (
        "evenrank: the documents' texts, scores or labels are needed: give --collection, --scores or --labels\n"
    )
    ended = evenrank("negatives", "r.run", *qrels, "--collection", "c.tsv", "--format", "labeled-list")
    assert ended.err == "evenrank: --format labeled-list: the queries' texts are needed: give --queries\n"
    assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
    ended = evenrank("negatives", "r.run", *qrels, "--scores", "s.parquet", "--tokens", "whitespace")
    assert ended.err == ("evenrank: --tokens: whitespace was asked for, but the scores were made with tokens word\n")
    Path("c.tsv").write_text("d1\ttext\n")
    ended = evenrank("negatives", "r.run", *OPTIONS[:4], *qrels, "--scores", "s.parquet", "--format", "labeled-pair")
    assert ended.status == 2
    assert ended.err.endswith("of the scored documents are not in c.tsv\n")
    assert not Path("set.jsonl").exists()
