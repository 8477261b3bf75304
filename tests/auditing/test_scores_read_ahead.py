"""A group table that is read while long runs are: what comes of it, and what is said, is the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenrank
from evenrank.auditing import documents
from evenrank.groups import Scoring, load_lexicon, score_collection
from evenrank.io import EvenrankError, runs

TEXTS = ["she said", "he said", "no one", "his mother", "her father and he"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("".join(f"d{number}\t{text}\n" for number, text in enumerate(TEXTS)))
    score_collection("c.tsv", "s.parquet", Scoring(load_lexicon()))
    # Lines longer than those of real runs, as the guess at their number has it.
    lines = [f"query-{q} Q0 d{(q + r) % 5} {r + 1} {9 - r}.5 {'tag' * 20}\n" for q in range(4) for r in range(4)]
    Path("a.run").write_text("".join(lines))
    return tmp_path


def figures(scores: str) -> dict[str, float]:
    run = evenrank.audit({"a": "a.run"}, scores=scores, measures="ARaB@3 NFaiRR@3")["a"]
    return {name: figure.mean for name, figure in run.figures.items()}


@pytest.mark.parametrize("most", ["all", "few"])
def test_same_figures(folder: Path, most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if most == "few":
        # More documents than the run has lines: of these, none is kept.
        more = pl.read_parquet("s.parquet")
        others = [more.with_columns(pl.col("doc_id") + f"-{number}") for number in range(9)]
        pl.concat([more, *others]).write_parquet("s.parquet")
    expected = figures("s.parquet")
    monkeypatch.setattr(runs, "_LONG", 1)
    started = documents.read_ahead("s.parquet", {"a": "a.run"})
    assert started is not None
    assert (started.result() is None) == (most == "few")
    assert figures("s.parquet") == expected
    monkeypatch.setattr(documents, "_BYTES_OF_LINE", 1)
    assert figures("s.parquet") == expected


@pytest.mark.parametrize("content", [b"", b"no Parquet"])
def test_same_error(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s.parquet").write_bytes(content)
    said = []
    for _ in range(2):
        with pytest.raises(EvenrankError) as error:
            figures("s.parquet")
        said.append(str(error.value))
        monkeypatch.setattr(runs, "_LONG", 1)
    assert said[0] == said[1]


def test_what_is_not_read_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert documents.read_ahead("s.parquet", {"a": "a.run"}) is None
    monkeypatch.setattr(runs, "_LONG", 1)
    assert documents.read_ahead("s.parquet", {"a": pl.DataFrame()}) is None
    assert documents.read_ahead("nosuch.parquet", {"a": "a.run"}) is None
    assert documents.read_ahead(pl.DataFrame(), {"a": "a.run"}) is None
