"""Which queries an audit is over, and what its background and lexicon say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from small_audits import TEXTS, collection, head, judged, run

# --- the queries that were given -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {
        "c.tsv": "".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()),
        "labels.tsv": "m\the\nf\tshe\nn\tstone\nb\tman\n",
        "one.run": "".join(f"{q} Q0 {doc} {i} {-i} t\n" for q in range(4) for i, doc in enumerate("mfnb")),
        "qrels": "".join(f"{q} 0 m 1\n" for q in range(10)),
        "four.tsv": "".join(f"{q}\twho\n" for q in range(4)),
        "two.tsv": "".join(f"{q}\twho\n" for q in range(2)),
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_queries_given_can_be_the_only_ones(folder: Path, evenrank: Callable[..., Any], snapshot: Any) -> None:
    command = ("audit", "one.run", "--collection", "c.tsv", "--qrels", "qrels", "--measures", "RR@10 NFaiRR@2")
    command += ("--full", "--queries", "four.tsv", "--json", "a.json")
    ended = evenrank(*command)
    assert (ended.status, ended.err) == (0, "")
    assert "n = 10 queries, 6 of them not in the run and counted as 0" in " ".join(ended.out.split())
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert (data["runs"]["one"]["absent"], data["runs"]["one"]["measures"]["RR@10"]["mean"]) == (6, 0.4)
    assert data["notes"] == snapshot

    ended = evenrank(*command, "--only-queries", "--per-query", "v.csv")
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    figure = data["runs"]["one"]["measures"]["RR@10"]
    assert (figure["mean"], figure["n"], data["runs"]["one"]["absent"]) == (1.0, 4, 0)
    assert data["settings"]["only_queries"] is True
    assert "--only-queries: the audit is restricted to the 4 queries given." in ended.out
    assert pl.read_csv("v.csv")["query_id"].unique().sort().to_list() == [0, 1, 2, 3]


def test_queries_of_the_run_that_were_not_given(folder: Path, evenrank: Callable[..., Any]) -> None:
    command = ("audit", "one.run", "--collection", "c.tsv", "--qrels", "qrels", "--queries")
    ended = evenrank(*command, "two.tsv")
    assert ended.status == 2
    assert "two.tsv: no text for 2 of the 4 queries of the run one (one.run): '2', '3' (" in ended.err
    assert evenrank(*command, "two.tsv", "--only-queries", "--json", "a.json").status == 0
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["runs"]["one"]["queries"] == 2
    Path("none.tsv").write_text("99\twho\n")
    ended = evenrank(*command, "none.tsv", "--only-queries")
    assert ended.status == 2
    assert "leaves none of its 4 queries" in ended.err


def test_only_queries_needs_queries() -> None:
    with pytest.raises(EvenrankError, match="`only_queries` needs `queries`"):
        evenrank.audit({"r": run({"1": ["m"]})}, collection=collection(TEXTS), only_queries=True)
    table, asked = run({"1": ["m", "n"]}), pl.DataFrame({"query_id": ["1"], "text": ["who"]})
    with pytest.raises(EvenrankError, match="`only_queries`: the qrels judge none of the queries given"):
        evenrank.audit(
            {"r": table}, collection=collection(TEXTS), queries=asked, qrels=judged({"2": "m"}), only_queries=True
        )


# --- a background that is neutral throughout -------------------------------------------------------------------------


def test_labels_of_one_word_are_explained(folder: Path, evenrank: Callable[..., Any]) -> None:
    command = ("audit", "one.run", "--collection", "labels.tsv", "--measures", "NFaiRR@2", "--full")
    warning = (
        "Neutrality is meaningless here: no document of the background (one) has more than 1 group word, which is too"
        " few to count (one-word texts that are labels need --threshold 0), so NFaiRR is 1 in any order."
    )
    assert warning in " ".join(evenrank(*command).out.split()).partition(" NFaiRR@2 one ")[0]
    assert "is meaningless" not in evenrank(*command, "--threshold", "0").out


def test_why_a_background_is_neutral() -> None:
    table = run({"1": ["x", "b"]})
    other = evenrank.audit({"r": table}, collection=collection({"x": "el rey", "b": "un puente"}), measures="NFaiRR@2")
    assert "no document of the background (r) contains a word of the lexicon gender-en, so" in head(other)
    even = evenrank.audit({"r": table}, collection=collection({"x": "he or she", "b": TEXTS["b"]}), measures="NFaiRR@2")
    assert "every document of the background (r) mentions the groups in their target shares, so" in head(even)
    # No measure of neutrality, nothing to warn of.
    lean = evenrank.audit({"r": table}, collection=collection({"x": "he", "b": "she"}), measures="RaB@1")
    assert len(lean.warnings) == 1


# --- effectiveness alone, and lexicons of two groups -----------------------------------------------------------------


def test_effectiveness_alone_needs_no_texts(folder: Path, evenrank: Callable[..., Any]) -> None:
    ended = evenrank("audit", "one.run", "--qrels", "qrels", "--measures", "nDCG@10 RR@10", "--json", "a.json")
    assert (ended.status, ended.err) == (0, "")
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert list(data["runs"]) == ["one", "random", "relevance-first"]
    assert "lexicon" not in data["settings"]
    assert "neutral-first is left out: without texts or scores nothing is known of the documents." in data["notes"]
