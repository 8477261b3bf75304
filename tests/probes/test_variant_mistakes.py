"""What variants refuse, each in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import EvenrankError
from evenrank.probes.variants import variants

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("a\tShe ran. He did not.\nb\tIt rained.\n")
    Path("q.tsv").write_text("q1\twho ran\n")
    Path("r.run").write_text("q1 Q0 a 1 2.0 t\n")
    Path("l.csv").write_text("word,group\nshe,f\nhe,m\n")
    Path("rain.tsv").write_text("b\tIt rained.\n")
    Path("empty.tsv").write_text("")
    Path("lines.jsonl").write_text('{"id": "a", "text": "She ran.\\nHe did not."}\n')
    Path("tab.jsonl").write_text('{"id": "a\\tb", "text": "She ran."}\n')
    for name, doc in (("a", "a"), ("other", "z")):
        answers = [{"text": "She", "answer_start": 0}]
        paragraph = {"doc_id": doc, "context": "She ran. He did not.", "qas": [{"id": "q1", "answers": answers}]}
        Path(f"{name}.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    return tmp_path


CASES = [
    ("--kind swop", "--kind: expected swap, neutral, rotate, padded, brief, early, late, foil, repeated or placebo,"),
    ("--kind placebo --of brief", "--of: expected swap, neutral, early, late, foil or repeated, found 'brief'"),
    ("--kind placebo --form word", "--form: expected synonym, name, spacing or any, found 'word'"),
    ("--kind placebo --of late --form any", "--form: only with --kind placebo, of swap or neutral"),
    ("--kind swap --form any", "--form: only with --kind placebo, of swap or neutral"),
    ("--kind swap --of swap", "--of: only with --kind placebo"),
    ("--kind swap --mode word", "--mode: only with --kind rotate"),
    ("--kind rotate --mode letter", "--mode: expected word or sentence, found 'letter'"),
    ("--kind swap --seed -1", "--seed: expected 0 to 18446744073709551615, found -1"),
    ("--kind repeated --depth 0", "--depth: expected 1 or more, found 0"),
    ("--kind swap --lexicon l.csv", "--lexicon: l has no [pairs], the counterparts of its words"),
    ("--kind neutral --lexicon l.csv", "--lexicon: l has no [neutral], the neutral counterparts of its words"),
    ("--kind swap --lexicon none.toml", "--lexicon: no file and no built-in lexicon 'none.toml'"),
    ("--kind brief", "--answers: the kind 'brief' needs answers and their places in the passages"),
    ("--kind placebo --of late", "--answers: the kind 'late' needs answers and their places in the passages"),
    ("--kind repeated --run r.run", "--queries: the kind 'repeated' needs the queries"),
    ("--kind repeated --queries q.tsv", "--run: the kind 'repeated' needs a run, or else --qrels, for its pairs"),
    ("--kind brief --answers other.json", "1 passage with answers is not in the collection c.tsv: 'z'"),
    ("--kind brief --answers c.tsv", "c.tsv: invalid JSON"),
    ("--kind brief --answers a.json --out v.tsv", "v.tsv: a TSV cannot hold a text per query and document: write"),
    ("--kind swap --out v.jsonl.gz", "v.jsonl.gz: expected a TSV, .jsonl or .parquet to write, found .gz"),
    ("--kind swap --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("--kind brief --answers a.json --out a.json", "a.json: a TSV cannot hold"),
    ("--kind swap --out no/v.tsv", "no/v.tsv: cannot be written: No such file or directory"),
    ("--kind swap --out -", "expected a file as output, found '-'"),
    ("rain.tsv --kind swap", "no passage could be changed, so there is no variant"),
    ("rain.tsv --kind padded", "no passage could be changed, so there is no variant"),
    ("empty.tsv --kind swap", "empty.tsv: the file is empty"),
    ("none.tsv --kind swap", "none.tsv: no such file"),
    ("lines.jsonl --kind swap --out v.tsv", "v.tsv: a TSV cannot hold the text of 'a', which has several lines: write"),
    ("tab.jsonl --kind swap --out v.tsv", "v.tsv: a TSV cannot hold the id 'a\\tb': write .jsonl or .parquet"),
]


@pytest.mark.parametrize(("options", "message"), CASES)
def test_a_mistake_is_one_line_and_writes_nothing(folder: Path, evenrank: Run, options: str, message: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = options.split()
    collection = [] if words[0].endswith(("tsv", "jsonl")) else ["c.tsv"]
    done = evenrank("variants", *collection, *words, *(() if "--out" in words else ("--out", "v.jsonl")))
    assert done.status == 2
    assert done.err.startswith(f"evenrank: {message}"), done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_absent_pair_names_its_run(folder: Path, evenrank: Run) -> None:
    Path("other.run").write_text("q1 Q0 z 1 2.0 t\n")
    done = evenrank(
        "variants", "c.tsv", "--kind", "repeated", "--queries", "q.tsv", "--run", "other.run", "--out", "v.jsonl"
    )
    assert done.err == "evenrank: run other.run: 1 of its documents are not in the collection c.tsv: 'z'\n"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            7,
            "`answers`: expected a SQuAD file or a table with query_id, .* and answer_end, found a int",
        ),
        ({"query_id": ["q"], "doc_id": ["a"], "answer_start": [0]}, "`answers`: the table has no column answer_end"),
        (
            {"query_id": ["q"], "doc_id": ["a"], "answer_start": ["0"], "answer_end": [3]},
            "whole numbers as",
        ),
        ({"query_id": ["q"], "doc_id": ["a"], "answer_start": [0], "answer_end": [0]}, "query 'q': the answer's span"),
        ({"query_id": ["q"], "doc_id": ["a"], "answer_start": [0], "answer_end": [99]}, "query 'q': the answer's span"),
        ({"query_id": [], "doc_id": [], "answer_start": [], "answer_end": []}, "`answers`: expected at least one row"),
    ],
)
def test_answers_that_are_none(answers: object, message: str) -> None:
    given = pl.DataFrame(answers) if isinstance(answers, dict) else answers
    with pytest.raises(EvenrankError, match=message):
        variants({"a": "She ran. He did not."}, kind="brief", answers=given)


def test_what_is_printed(folder: Path, evenrank: Run) -> None:
    done = evenrank("variants", "c.tsv", "--kind", "swap", "--out", "v.tsv")
    assert (done.status, done.out) == (0, "")
    assert done.err == "2 documents: 1 changed (2 edits), 1 unchanged: v.tsv\n"
    assert Path("v.tsv").read_text() == "a\tHe ran. She did not.\nb\tIt rained.\n"
    assert Path("v.tsv.edits.tsv").read_text() == "a\t2\nb\t0\n"
    done = evenrank("variants", "c.tsv", "--kind", "late", "--answers", "a.json", "--out", "v.jsonl")
    assert done.err == "1 pair: 1 changed (1 edit), 0 unchanged: v.jsonl\n"
