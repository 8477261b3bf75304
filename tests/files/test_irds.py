"""Collections, queries and qrels by an ir_datasets identifier, with data sets made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_datasets
import polars as pl
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import LocalDownload

from evenrank.files import EvenrankError, InputError, irds, read_qrels, read_queries, read_texts, scan_collection
from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection

Register = Callable[..., str]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Makes handlers known as a data set; its identifier comes back."""
    monkeypatch.setattr(ir_datasets.registry, "_registered", dict(ir_datasets.registry._registered))

    def make(*handlers: Any, name: str = "evenrank-test") -> str:
        ir_datasets.registry.register(name, Dataset(*handlers))
        return f"irds:{name}"

    return make


@pytest.fixture
def local(tmp_path: Path) -> Callable[[str], LocalDownload]:
    """A file of a data set with this content."""
    count = iter(range(10))

    def write(content: str) -> LocalDownload:
        path = tmp_path / f"file{next(count)}"
        path.write_text(content, encoding="utf-8")
        return LocalDownload(path)

    return write


Local = Callable[[str], LocalDownload]
DOCS = "d1\tShe is here\nd2\tthe end\n10\tHe, ünd she\n"


def test_documents(register: Register, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    identifier = register(TsvDocs(local(DOCS)))
    rows = [("d1", "She is here"), ("d2", "the end"), ("10", "He, ünd she")]
    for size in (1, 2, 3, 1 << 15):
        monkeypatch.setattr(irds, "_BATCH", size)
        batches = list(scan_collection(identifier))
        assert [batch.height for batch in batches] == [size] * (3 // size) + [3 % size] * (3 % size > 0)
        assert pl.concat(batches).schema == {"doc_id": pl.String, "text": pl.String}
        assert pl.concat(batches).rows() == rows


def test_only_the_texts_that_are_wanted(register: Register, local: Local) -> None:
    identifier = register(TsvDocs(local(DOCS)))
    table = read_texts(identifier, pl.Series(["10", "none", "d1", "10"]))
    assert sorted(table.rows()) == [("10", "He, ünd she"), ("d1", "She is here")]
    nothing = read_texts(identifier, pl.Series(["none"]))
    assert nothing.rows() == []
    assert nothing.schema == {"doc_id": pl.String, "text": pl.String}


def test_queries_and_qrels(register: Register, local: Local) -> None:
    identifier = register(
        TsvQueries(local("q1\twho\nq2\twhere\n")),
        TrecQrels(local("q1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\nq2 0 10 2\n"), {0: "not", 1: "somewhat", 2: "very"}),
    )
    assert read_queries(identifier).rows() == [("q1", "who"), ("q2", "where")]
    qrels = read_qrels(identifier)
    assert qrels.schema == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert qrels.rows() == [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "10", 2)]


def test_a_collection_is_scored(register: Register, local: Local, tmp_path: Path) -> None:
    identifier = register(TsvDocs(local(DOCS)))
    assert score_collection(identifier, tmp_path / "scores.parquet", Scoring(load_lexicon())) == 3
    table = read_group_table(tmp_path / "scores.parquet").table
    assert table.select("doc_id", "count_f", "count_m").rows() == [("d1", 1, 0), ("d2", 0, 0), ("10", 1, 1)]


def test_a_repeated_id(register: Register, local: Local) -> None:
    identifier = register(TsvQueries(local("1\ta\n2\tb\n1\tc\n")))
    with pytest.raises(InputError) as caught:
        read_queries(identifier)
    assert str(caught.value) == "irds:evenrank-test: the id '1' appears twice: texts 1 and 3"


def test_a_name_that_ir_datasets_does_not_know() -> None:
    for reader in (read_queries, read_qrels, lambda name: read_texts(name, pl.Series(["1"])), _scan):
        with pytest.raises(EvenrankError) as caught:
            reader("irds:no-such/set")
        assert str(caught.value) == "irds:no-such/set: ir_datasets has no data set 'no-such/set'"


def test_what_a_data_set_does_not_have(register: Register, local: Local) -> None:
    documents = register(TsvDocs(local(DOCS)), name="evenrank-documents")
    queries = register(TsvQueries(local("1\ta\n")), name="evenrank-queries")
    for reader, identifier, kind in (
        (read_qrels, documents, "qrels"),
        (read_queries, documents, "queries"),
        (_scan, queries, "docs"),
        (lambda name: read_texts(name, pl.Series(["1"])), queries, "docs"),
    ):
        with pytest.raises(EvenrankError) as caught:
            reader(identifier)
        assert str(caught.value) == f"{identifier}: this data set has no {kind}"


def test_a_broken_file_is_one_line(register: Register, local: Local) -> None:
    identifier = register(TsvQueries(local("1\ta\n2\n")))
    with pytest.raises(InputError) as caught:
        read_queries(identifier)
    assert str(caught.value) == f"{identifier}: cannot be downloaded or read: expected 2 fields, got 1"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("the server is away\nPlease put the file there:\n..."), "the server is away"),
        (RuntimeError("expected md5 hash x but got y"), "expected md5 hash x but got y"),
        (ConnectionError(), "ConnectionError"),
    ],
)
def test_a_failed_download_is_one_line(register: Register, local: Local, error: Exception, reason: str) -> None:
    class Away(TsvDocs):  # type: ignore[misc]
        def docs_iter(self) -> Iterator[Any]:
            raise error

    identifier = register(Away(local(DOCS)))
    for reader in (_scan, lambda name: read_texts(name, pl.Series(["d1"]))):
        with pytest.raises(InputError) as caught:
            reader(identifier)
        assert str(caught.value) == f"{identifier}: cannot be downloaded or read: {reason}"


def _scan(identifier: str) -> list[pl.DataFrame]:
    return list(scan_collection(identifier))
