"""What variants refuse, each in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("a\tShe ran. He did not.\nb\tIt rained.\n")
    Path("l.csv").write_text("word,group\nshe,f\nhe,m\n")
    Path("rain.tsv").write_text("b\tIt rained.\n")
    Path("empty.tsv").write_text("")
    Path("lines.jsonl").write_text('{"id": "a", "text": "She ran.\\nHe did not."}\n')
    Path("tab.jsonl").write_text('{"id": "a\\tb", "text": "She ran."}\n')
    return tmp_path


CASES = [
    ("--kind swop", "--kind: expected swap, neutral, rotate or placebo, found 'swop'"),
    ("--kind placebo --of rotate", "--of: expected swap or neutral, found 'rotate'"),
    ("--kind placebo --form word", "--form: expected synonym, name, spacing or any, found 'word'"),
    ("--kind swap --form any", "--form needs --kind placebo"),
    ("--kind swap --of swap", "--of needs --kind placebo"),
    ("--kind swap --mode word", "--mode needs --kind rotate"),
    ("--kind rotate --mode letter", "--mode: expected word or sentence, found 'letter'"),
    ("--kind swap --seed -1", "--seed: expected 0 to 18446744073709551615, found -1"),
    ("--kind swap --lexicon l.csv", "--lexicon: l has no [pairs], the counterparts of its words"),
    ("--kind neutral --lexicon l.csv", "--lexicon: l has no [neutral], the neutral counterparts of its words"),
    ("--kind swap --lexicon none.toml", "--lexicon: no file and no built-in lexicon 'none.toml'"),
    ("--kind swap --out v.jsonl.gz", "v.jsonl.gz: expected a TSV, .jsonl or .parquet to write, found .gz"),
    ("--kind swap --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("--kind swap --out no/v.tsv", "no/v.tsv: cannot be written: No such file or directory"),
    ("--kind swap --out -", "expected a file as output, found '-'"),
    ("rain.tsv --kind swap", "no passage could be changed, so there is no variant"),
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


def test_what_is_printed(folder: Path, evenrank: Run) -> None:
    done = evenrank("variants", "c.tsv", "--kind", "swap", "--out", "v.tsv")
    assert (done.status, done.out) == (0, "")
    assert done.err == "2 documents: 1 changed (2 edits), 1 unchanged: v.tsv\n"
    assert Path("v.tsv").read_text() == "a\tHe ran. She did not.\nb\tIt rained.\n"
    assert Path("v.tsv.edits.tsv").read_text() == "a\t2\nb\t0\n"
