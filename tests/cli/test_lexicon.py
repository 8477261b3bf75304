"""``evenrank lexicon``: the list, the check and its options, and one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenrank.groups import builtin_lexicons, load_lexicon

Command = Callable[..., Any]
NEEDS_LABELS = "the reader of labels is not there"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "c.tsv").write_text("d1\tShe and her queen\nd2\tHe said\nd3\tnothing\nd4\tshe\n")
    (tmp_path / "labels.csv").write_text("doc_id,group\nd1,F\nd2,M\nd3,N\nd9,F\n")
    (tmp_path / "words.csv").write_text("she,f\nhe,m\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list(evenrank: Command) -> None:
    ended = evenrank("lexicon", "list")
    assert (ended.status, ended.err) == (0, "")
    for name in builtin_lexicons():
        lexicon = load_lexicon(name)
        assert f"{name}  ({lexicon.language})  " in ended.out
        assert f"  Cannot see: {lexicon.misses}\n" in ended.out
    assert "gender-en  (en)  255 f, 231 m; poles m,f; counterparts of 344 words, neutral of 426\n" in ended.out
    assert "33 sikh; no poles\n" in ended.out


def test_check(folder: Path, evenrank: Command) -> None:
    ended = evenrank("lexicon", "check", "gender-en", "--collection", "c.tsv", "--json", "o.json", "--report", "o.html")
    assert (ended.status, ended.err) == (0, "report: o.html\n")
    assert ended.out.startswith("75% of 4 documents have a word of gender-en, ")
    values = json.loads((folder / "o.json").read_text())
    assert [one["key"] for one in values["findings"]] == ["coverage", "misses"]
    assert values["coverage"]["groups"]["f"] == {"documents": 2, "share": 0.5, "occurrences": 4}
    assert values["provenance"]["files"][0] == {"role": "lexicon", "path": "gender-en", "note": "built in"}
    assert (folder / "o.html").read_text().startswith("<!")
    ended = evenrank("lexicon", "check", "words.csv", "--collection", "c.tsv", "--json", "-", "--tokens", "whitespace")
    assert (ended.status, ended.err) == (0, "")
    values = json.loads(ended.out)
    assert values["settings"]["lexicon"] == "words"
    assert values["settings"]["tokens"] == "whitespace"
    assert {one["word"]: one["occurrences"] for one in values["words"]} == {"she": 2, "he": 1}


def test_check_with_labels(folder: Path, evenrank: Command) -> None:
    pytest.importorskip("evenrank.groups.labels", reason=NEEDS_LABELS)
    check = ("lexicon", "check", "gender-en", "--collection", "c.tsv", "--labels", "labels.csv")
    ended = evenrank(*check, "--neutral", "N", "--json", "-")
    assert (ended.status, ended.err) == (0, "")
    labels = json.loads(ended.out)["labels"]
    assert (labels["documents"], labels["unlabelled"], labels["absent"]) == (3, 1, 1)
    assert labels["groups"]["m"]["precision"]["value"] == 1
    (folder / "labels.csv").write_text("id,kind,doc_id\n1,f,d1\n2,m,d2\n")
    ended = evenrank(*check, "--group-column", "kind", "--json", "-")
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out)["labels"]["groups"]["m"]["recall"]["n"] == 1


def test_labels_of_other_documents(folder: Path, evenrank: Command) -> None:
    pytest.importorskip("evenrank.groups.labels", reason=NEEDS_LABELS)
    (folder / "labels.csv").write_text("doc_id,group\n" + "".join(f"x{i},{'fm'[i % 2]}\n" for i in range(8)))
    ended = evenrank("lexicon", "check", "gender-en", "--collection", "c.tsv", "--labels", "labels.csv")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "evenrank: --labels: no document of the collection has one; labels are of 'x0', 'x1', 'x2', 'x3', 'x4', "
        "documents are 'd1', 'd2', 'd3', 'd4'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "nothing --collection c.tsv",
            "LEXICON: no file and no built-in lexicon 'nothing' (built in: age-en, gender-de, ",
        ),
        ("bad.csv --collection c.tsv", "bad.csv, line 2: 'SHE' is in two groups, f (line 1) and m"),
        ("gender-en --collection c.tsv --neutral N", "--neutral needs --labels"),
        ("gender-en --collection c.tsv --json c.tsv", "c.tsv: cannot be written: it is an input"),
    ],
)
def test_bad_input(folder: Path, evenrank: Command, arguments: str, message: str) -> None:
    (folder / "bad.csv").write_text("she,f\nSHE,m\n")
    before = sorted(path.name for path in folder.iterdir())
    ended = evenrank("lexicon", "check", *arguments.split())
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"evenrank: {message}"), ended.err
    assert ended.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before
