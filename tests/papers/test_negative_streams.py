"""Training lists drawn while the first stage searches: the same as from its run file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import read_run
from evenrank.files.synthetic import SyntheticConfig
from evenrank.mitigation.negatives import write_negatives
from evenrank.papers import sources
from evenrank.papers.sources import Lists, Text, built_in

DRAWN: Any = {"n": 5, "depth": 20, "seed": 3, "lexicon": "gender-en", "tokens": "word"}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    planted = SyntheticConfig(passages=800, queries=80, sentences=3, relevant=4, male_share=0.75)
    return built_in(tmp_path_factory.mktemp("built-in"), planted)


@pytest.fixture
def lists(text: Text, tmp_path: Path) -> Lists:
    return Lists(text.collection, tmp_path)


def test_the_files_are_those_from_a_run_file(
    monkeypatch: pytest.MonkeyPatch, text: Text, lists: Lists, tmp_path: Path
) -> None:
    part = lists.part("train", text.queries, text.qrels, depth=DRAWN["depth"])
    drawn = {tmp_path / f"{share}.parquet": share for share in (0.0, 0.6)}
    lists.negatives(part, drawn, **DRAWN)
    for file, share in drawn.items():
        old = tmp_path / "through-a-run" / file.name
        old.parent.mkdir(exist_ok=True)
        given = {"collection": text.collection, "qrels": part.qrels, "share": share, **DRAWN}
        # A run in memory is one piece, as the search is; of a file, the last query is a row group of its own.
        write_negatives(read_run(part.run), out=old, **given)
        assert file.read_bytes() == old.read_bytes()
        write_negatives(part.run, out=old, **given)
        assert pl.read_parquet(file).equals(pl.read_parquet(old))
        new, before = (json.loads(Path(f"{path}.manifest.json").read_text(encoding="utf-8")) for path in (file, old))
        assert {key: new[key] for key in ("queries", "biased", "random", "mean_beta", "left_out")} == {
            key: before[key] for key in ("queries", "biased", "random", "mean_beta", "left_out")
        }
    monkeypatch.setattr(sources, "_CHUNK", 7)
    parts = tmp_path / "parts.parquet"
    lists.negatives(part, {parts: 0.6}, **DRAWN)
    assert pl.read_parquet(parts).equals(pl.read_parquet(tmp_path / "0.6.parquet"))


def test_an_interrupted_draw_leaves_no_file_and_files_that_are_there_stay(
    monkeypatch: pytest.MonkeyPatch, text: Text, lists: Lists, tmp_path: Path
) -> None:
    part = lists.part("train", text.queries, text.qrels)
    files = {tmp_path / "a.parquet": 0.0, tmp_path / "b.parquet": 0.6}
    with monkeypatch.context() as patch:
        patch.setattr("evenrank.mitigation.negatives.manifest_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lists.negatives(part, files, **DRAWN)
    assert not list(tmp_path.glob("*.parquet"))
    lists.negatives(part, files, **DRAWN)
    monkeypatch.setattr(Lists, "searched", lambda *_: pytest.fail("searched again"))
    lists.negatives(part, files, **DRAWN)
    assert lists.part("train", text.queries, text.qrels) == part
