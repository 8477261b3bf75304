"""Collections of several files, URLs, and files read in parts."""

from __future__ import annotations

import gzip
import json
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError, read_queries, scan_collection
from evenrank.files import ray as ray_engine
from evenrank.files.outputs import atomic_path
from evenrank.files.ray import Cluster
from evenrank.files.reading import UNFINISHED, files_of
from evenrank.files.streams import shard_batches, shards_of
from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection


def whole(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan_collection(path)))


def in_parts(path: Path | str, size: int) -> pl.DataFrame:
    return pl.concat([batch for shard in shards_of(path, size) for batch in shard_batches(shard)])


def write(folder: Path, form: str, rows: list[tuple[str, str]]) -> Path:
    path = folder / f"c.{form}"
    if form == "tsv":
        path.write_text("\ufeffid\ttext\r\n" + "".join(f"{i}\t{text}\n" for i, text in rows), encoding="utf-8")
    elif form == "jsonl":
        path.write_text("\n\n".join(json.dumps({"id": i, "text": text}) for i, text in rows), encoding="utf-8")
    elif form == "gz":
        path.write_bytes(gzip.compress("".join(f"{i}\t{text}\n" for i, text in rows).encode()))
    else:
        pl.DataFrame(rows, ["doc_id", "text"], orient="row").write_parquet(path, row_group_size=3)
    return path


@pytest.mark.parametrize("form", ["tsv", "jsonl", "gz", "parquet"])
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=30), min_size=1),
    st.integers(1, 90),
)
def test_parts_of_a_file_are_the_file(
    tmp_path_factory: pytest.TempPathFactory, form: str, texts: list[str], size: int
) -> None:
    folder = tmp_path_factory.mktemp("c")
    path = write(folder, form, [(f"d{i}", text) for i, text in enumerate(texts)])
    assert in_parts(path, size).equals(whole(path))


def test_a_mistake_is_told_with_its_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("".join(f"{i}\ttext\n" for i in range(50)) + "no tab\n50\ttext\n")
    shards = shards_of(path, 100)
    assert len(shards) == 4
    with pytest.raises(InputError) as caught:
        in_parts(path, 100)
    with pytest.raises(InputError) as of_file:
        whole(path)
    assert str(caught.value) == str(of_file.value)
    assert caught.value.line == 51


def test_a_folder_and_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "part-1.tsv").write_text("b\tx\n")
    (tmp_path / "part-0.jsonl").write_text('{"id": "a", "text": "y"}\n')
    (tmp_path / "_log").write_text("no collection")
    (tmp_path / "part.manifest.json").write_text("{}")
    assert whole(tmp_path).rows() == [("a", "y"), ("b", "x")]
    assert whole(str(tmp_path / "*.tsv")).rows() == [("b", "x")]
    assert whole(f"file://{tmp_path}").rows() == [("a", "y"), ("b", "x")]
    assert whole(f"file://{tmp_path}/part-*").rows() == [("a", "y"), ("b", "x")]
    assert read_queries(f"file://{tmp_path}/part-1.tsv").rows() == [("b", "x")]
    (tmp_path / "part-2.tsv").write_text("a\tz\n")
    with pytest.raises(InputError, match="the id 'a' appears twice: texts 1 and 3"):
        whole(tmp_path)
    (tmp_path / UNFINISHED).write_text("{}")
    with pytest.raises(InputError, match="unfinished: run the command that writes it again"):
        whole(tmp_path)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "run[1].tsv"
    path.write_text("a\tx\n")
    assert files_of(path) == [str(path)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "contains no files"),
        ("*.none", "contains no files"),
        ("none.tsv", "no such file"),
        ("file:///none/at/all.tsv", "no such file"),
        ("nowhere://bucket/file", "Protocol not known"),
    ],
)
def test_what_is_not_there(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    path = name if "://" in name else str(tmp_path / name)
    with pytest.raises(InputError, match=message):
        whole(path)
    with pytest.raises(EvenrankError, match=message):
        shards_of(path)


def test_scores_in_a_folder_and_at_a_url(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("a\tshe ran\nb\the ran\n")
    scoring = Scoring(load_lexicon("gender-en"))
    folder = tmp_path / "scores"
    folder.mkdir()
    assert score_collection(tmp_path / "c.tsv", f"file://{folder}/part-0.parquet", scoring) == 2
    (tmp_path / "d.tsv").write_text("c\tthey ran\n")
    score_collection(tmp_path / "d.tsv", folder / "part-1.parquet", scoring)
    read = read_group_table(folder)
    assert read.table["doc_id"].to_list() == ["a", "b", "c"]
    assert read.settings == scoring.describe()
    score_collection(tmp_path / "d.tsv", folder / "part-2.parquet", Scoring(load_lexicon("gender-en"), threshold=2))
    with pytest.raises(InputError, match="its files were scored with different settings"):
        read_group_table(folder)


def test_nothing_is_put_at_a_url_on_an_error(tmp_path: Path) -> None:
    def write_half() -> None:
        with atomic_path(f"file://{tmp_path}/x") as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_of_ir_datasets_has_no_parts() -> None:
    with pytest.raises(EvenrankError, match="`engine='ray'` reads files"):
        shards_of("irds:msmarco-passage")


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a cluster, done here."""

    def here(numbers: Any, task: Any, *_: Any) -> Any:
        return ((number, task(number)) for number in numbers)

    monkeypatch.setattr(ray_engine, "map_parts", here)


@pytest.mark.usefixtures("on_this_machine")
@pytest.mark.parametrize("where", ["", "file://"])
def test_a_part_without_a_document_is_none(where: str, tmp_path: Path) -> None:
    source, out = tmp_path / "c", f"{where}{tmp_path}/out"
    source.mkdir()
    (source / "a.tsv").write_text("a\tshe ran home\n")
    (source / "b.tsv").write_text("id\ttext\n")
    assert score_collection(source, out, Scoring(load_lexicon()), cluster=Cluster()) == 1
    assert read_group_table(out).table["doc_id"].to_list() == ["a"]


def test_an_address_of_ipv6_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(socket, "create_connection", lambda place, timeout: asked.append(place) or nullcontext())
    for address in ("[::1]:6379", "ray://head:10001", "10.0.0.1:6379", "auto", "local", ""):
        ray_engine._check_reachable(address)
    assert asked == [("::1", 6379), ("head", 10001), ("10.0.0.1", 6379)]
