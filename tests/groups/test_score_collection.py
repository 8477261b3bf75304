"""A whole collection scored into a file, and the score file read again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank as package
from evenrank.files import EvenrankError, InputError
from evenrank.groups import (
    MAGNITUDES,
    GroupTable,
    Scoring,
    as_group_table,
    builtin_lexicons,
    load_lexicon,
    read_group_table,
    score_batches,
    score_collection,
)
from given_data import FRAMES, TEXTS, frame

BUILT_IN = ", ".join(builtin_lexicons())
LINES = "9\tShe and he.\n10\tThe woman's her own, she said; she!\na\tnothing\nb\t\n0\tHe, his\n"
GENDER = Scoring(load_lexicon())


def written(tmp_path: Path, content: str | bytes, name: str = "c.tsv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@FRAMES
def test_texts_in_memory(tmp_path: Path, make: Any) -> None:
    for number, given in enumerate((TEXTS, frame(list(TEXTS.items()), "docno text", make))):
        assert score_collection(given, tmp_path / str(number), GENDER) == 3
    scored = read_group_table(tmp_path / "0").table
    assert scored.equals(read_group_table(tmp_path / "1").table)
    assert scored["doc_id"].to_list() == ["d1", "d2", "d3"]
    as_frame = make({name: scored[name].to_list() for name in scored.columns})
    assert as_group_table(as_frame).table.drop("tokens").equals(scored.drop("tokens"))
    with pytest.raises(EvenrankError, match=r"^`engine='ray'` reads files"):
        package.score(TEXTS, out=tmp_path / "2", engine="ray")


def test_the_reader_does_not_run_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    read = 0

    def batches() -> Iterator[pl.DataFrame]:
        nonlocal read
        for read in range(1, 21):
            yield pl.DataFrame({"doc_id": [str(read)], "text": ["she"]})

    scored = score_batches(batches(), GENDER)
    for count, table in enumerate(scored, start=1):
        assert table["doc_id"].to_list() == [str(count)]
        assert read <= count + 2
    assert read == 20


@pytest.mark.parametrize("old", [None, "old"])
def test_a_mistake_leaves_nothing(tmp_path: Path, block_bytes: Callable[[int], None], old: str | None) -> None:
    block_bytes(4)
    path, out = written(tmp_path, "1\tshe\n2\the\n1\tagain\n"), tmp_path / "out" / "scores.parquet"
    out.parent.mkdir()
    if old:
        out.write_text(old)
    with pytest.raises(InputError, match=r"line 3: the id '1' appears twice \(first in line 1\)"):
        score_collection(path, out, GENDER)
    assert os.listdir(out.parent) == ["scores.parquet"] * bool(old)
    assert old is None or out.read_text() == old


def test_a_score_file_made_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    table = pl.DataFrame({"doc_id": [1, 2], "count_m": [3, 0], "count_f": [1, 0], "neutrality": [0.5, 1.0]})
    table.write_parquet(path)
    scores = read_group_table(path)
    assert (scores.groups, scores.shares, scores.poles) == (("m", "f"), (0.5, 0.5), ("m", "f"))
    assert scores.table["doc_id"].to_list() == ["1", "2"]
    assert scores.signed_magnitude("count").tolist() == [2, 0]
    assert scores.signed_magnitude("tf").tolist() == pytest.approx([math.log(4) - math.log(2), 0])
    with pytest.raises(EvenrankError, match="no column magnitude_tf_words_f: score the collection with the magnitude"):
        scores.signed_magnitude("tf_words")
    other = GroupTable.of(table.rename({"count_m": "count_a"}))
    # Two groups whose poles nobody named: their order decides, and the settings say so.
    assert (other.groups, other.poles, other.settings["poles_assumed"]) == (("a", "f"), ("a", "f"), True)
    assert other.signed_magnitude("count").tolist() == [2, 0]
    three = GroupTable.of(table.rename({"count_m": "count_a"}).with_columns(count_x=0))
    with pytest.raises(EvenrankError, match=r"which groups to compare\? the groups are a, f, x; "):
        three.signed_magnitude("count")
    with pytest.raises(EvenrankError, match="no group 'm' in the group table, which has a, f"):
        other.signed_magnitude("count", ("m", "f"))


TABLE: dict[str, list[Any]] = {"doc_id": [*"ab"], "count_f": [1, 0], "count_m": [0, 1], "neutrality": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"doc_id": ["1"], "neutrality": [1.0]}, "no group table: it has no column count_<group>"),
        ({"doc_id": ["1"], "count_f": [1]}, "no group table: it has no column neutrality"),
        ({"id": ["1"], "count_f": [1], "neutrality": [1.0]}, "no group table: it has no column doc_id"),
        ({"doc_id": [], "count_f": [], "neutrality": []}, "no group table: it has no rows"),
        (TABLE | {"doc_id": ["a", "a"]}, "the document 'a' is repeated"),
        (TABLE | {"neutrality": [math.nan, 1.0]}, "the document 'a' has no finite number in neutrality"),
        (TABLE | {"count_f": [1, None]}, "the document 'b' has no finite number in count_f"),
        (TABLE | {"count_m": ["one", "two"]}, "expected numbers in count_m, found String"),
        (TABLE | {"doc_id": [None, "b"]}, "row 1: the doc_id is missing"),
    ],
)
def test_tables_that_are_no_scores(tmp_path: Path, columns: dict[str, list[Any]], message: str) -> None:
    path = tmp_path / "scores.parquet"
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(InputError) as caught:
        read_group_table(path)
    assert str(caught.value) == f"{path}: {message}"


def test_files_that_are_no_scores(tmp_path: Path) -> None:
    for content in (b"", b"doc_id\tscore\n", b"PAR1"):
        path = written(tmp_path, content, "scores.parquet")
        with pytest.raises(InputError) as caught:
            read_group_table(path)
        assert str(caught.value).startswith(f"{path}: no Parquet file that can be read (")
    with pytest.raises(InputError, match=r"none\.parquet: no such file"):
        read_group_table(tmp_path / "none.parquet")
    for settings in ("{", "[1]"):
        pl.DataFrame(TABLE).write_parquet(path, metadata={"evenrank": settings})
        with pytest.raises(InputError, match="damaged: its settings do not fit its groups"):
            read_group_table(path)


def test_the_command(tmp_path: Path, evenrank: Callable[..., Any]) -> None:
    path, out = written(tmp_path, LINES), tmp_path / "scores.parquet"
    ended = evenrank("score", path, "--out", out, "--magnitudes", " ".join(MAGNITUDES), "--threshold", "2")
    assert (ended.status, ended.out, ended.err) == (0, "", f"5 documents scored: {out}\n")
    table = read_group_table(out).table
    expected = {"doc_id": pl.String, "tokens": pl.Int32, "count_f": pl.Int32, "count_m": pl.Int32}
    expected |= {f"magnitude_{kind}_{group}": pl.Float64 for kind in MAGNITUDES for group in "fm"}
    assert table.schema == expected | {"neutrality": pl.Float64}
    assert table.select("doc_id", "tokens", "count_f", "count_m", "neutrality").rows() == [
        ("9", 3, 1, 1, 1), ("10", 7, 4, 0, 0), ("a", 1, 0, 0, 1), ("b", 0, 0, 0, 1), ("0", 2, 0, 2, 1),
    ]  # fmt: skip
    lexicon = written(tmp_path, "Nothing,none\nhe,m\nwoman's,f\n", "words.csv")
    of_ones_own = ("--lexicon", lexicon, "--tokens", "whitespace", "--poles", "none,rest")
    assert evenrank("score", path, "--out", out, *of_ones_own).status == 0
    scores = read_group_table(out)
    assert (scores.groups, scores.poles) == (("f", "m", "none"), ("none", "rest"))
    counts = scores.table.select("tokens", "count_f", "count_m", "count_none").rows()
    assert counts == [(3, 0, 0, 0), (7, 1, 0, 0), (1, 0, 0, 1), (0, 0, 0, 0), (2, 0, 0, 0)]


KINDS = "count, bool, tf, tf_words, tf_literal"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--magnitudes", "tf log", f"expected some of {KINDS}, found ('tf', 'log')"),
        ("--threshold", "-1", "expected a number from 0, found -1.0"),
        ("--tokens", "letters", "expected word or whitespace, found 'letters'"),
        *(
            ("--poles", poles, f"expected two of f, m, rest (rest second), found '{poles}'")
            for poles in ("m", "m,x", "m,m", "rest,m")
        ),
        ("--lexicon", "gender-xx", f"no file and no built-in lexicon 'gender-xx' (built in: {BUILT_IN})"),
    ],
)
def test_options_that_do_not_exist(tmp_path: Path, evenrank: Any, option: str, value: str, message: str) -> None:
    ended = evenrank("score", written(tmp_path, LINES), "--out", tmp_path / "scores.parquet", option, value)
    assert (ended.status, ended.out, ended.err) == (2, "", f"evenrank: {option}: {message}\n")
    assert os.listdir(tmp_path) == ["c.tsv"]


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evenrank.groups.scoring.score_texts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        score_collection(written(tmp_path, LINES), tmp_path / "scores.parquet", GENDER)
    assert os.listdir(tmp_path) == ["c.tsv"]
