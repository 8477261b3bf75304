"""Collections, queries, qrels and answers by an ir_datasets identifier, with data sets made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import polars as pl
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseQueries, GenericDoc, TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import LocalDownload

from evenrank.files import EvenrankError, InputError, read_qrels, read_queries, read_texts, scan_collection
from evenrank.probes.answers import load_answer_positions

Register = Callable[..., str]
Local = Callable[[str], LocalDownload]
DOCS = "d1\tShe is here\nd2\tthe end\n10\tHe, ünd she\n"


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
    count = iter(range(20))

    def write(content: str) -> LocalDownload:
        path = tmp_path / f"file{next(count)}"
        path.write_text(content, encoding="utf-8")
        return LocalDownload(path)

    return write


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


def scan(identifier: str) -> list[pl.DataFrame]:
    return list(scan_collection(identifier))


def one_text(identifier: str) -> pl.DataFrame:
    return read_texts(identifier, pl.Series(["d1"]))


@pytest.mark.parametrize("reader", [read_queries, read_qrels, one_text, scan])
def test_what_is_not_there(register: Register, local: Local, reader: Callable[[str], object]) -> None:
    """A data set that ir_datasets does not know, and what one does not have."""
    documents = register(TsvDocs(local(DOCS)), name="evenrank-documents")
    queries = register(TsvQueries(local("1\ta\n")), name="evenrank-queries")
    kind = {read_queries: "queries", read_qrels: "qrels"}.get(reader, "docs")
    for identifier, message in (
        ("irds:no-such/set", "ir_datasets has no data set 'no-such/set'"),
        (queries if kind == "docs" else documents, f"this data set has no {kind}"),
    ):
        with pytest.raises(EvenrankError) as caught:
            reader(identifier)
        assert str(caught.value) == f"{identifier}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n2\tb\n1\tc\n", "the id '1' appears twice: texts 1 and 3"),
        ("1\ta\n2\n", "cannot be downloaded or read: expected 2 fields, got 1"),
    ],
)
def test_bad_queries(register: Register, local: Local, content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_queries(register(TsvQueries(local(content))))
    assert str(caught.value) == f"irds:evenrank-test: {message}"


# --- answers ---------------------------------------------------------------------------------------------------------


class Query(NamedTuple):
    query_id: str
    text: str
    answers: tuple[str, ...]

    def default_text(self) -> str:
        return self.text


class Plain(NamedTuple):
    query_id: str
    text: str


class Asked(BaseQueries):  # type: ignore[misc]
    """Queries as msmarco-qna has them."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers

    def queries_iter(self) -> Iterator[Any]:
        rows = [("q1", "who flew", ("bee", "A Bee", "wasp")), ("q2", "why", ())]
        return (Query(*row) if self._answers else Plain(*row[:2]) for row in rows)

    def queries_cls(self) -> Any:
        return GenericDoc

    def queries_namespace(self) -> str:
        return "evenrank-test"

    def queries_lang(self) -> str:
        return "en"


def test_answers_of_a_data_set(
    register: Register, local: Local, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docs = TsvDocs(local("d1\tSo a bee flew\nd2\tThe bee\n"))
    qrels = TrecQrels(local("q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 1\n"), {})
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    with pytest.raises(EvenrankError, match="the queries of this data set have no answers"):
        load_answer_positions(register(docs, Asked(False), qrels, name="evenrank-plain"))
    identifier = register(docs, Asked(True), qrels)
    found = load_answer_positions(identifier)
    assert found.table.select("answer", "token", "tokens").rows() == [("a bee", 1, 4), ("bee", 2, 4)]
    assert found.unmatched.rows() == [("q1", "d1", "wasp")]
    with pytest.raises(EvenrankError, match="have no annotated spans"):
        load_answer_positions(identifier, annotated=True)


def test_a_data_set_that_lacks_a_package_says_so(evenrank: Callable[..., Any], register: Register) -> None:
    said = "This dataset requires warc. Run 'pip install ir_datasets[warc]' to install it"

    class Lacking(Asked):
        def queries_iter(self) -> Iterator[Any]:
            raise ImportError(said)

    done = evenrank("position", "answers", register(Lacking(True)))
    assert (done.status, done.err) == (2, f"evenrank: irds:evenrank-test: {said}\n")
