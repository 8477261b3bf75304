"""Answers and passages of ir_datasets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseQueries, GenericDoc, TrecQrels, TsvDocs
from ir_datasets.util import LocalDownload

from evenrank.files import EvenrankError
from evenrank.files.squad import load_squad
from evenrank.files.squad_collection import squad_collection
from evenrank.probes.answers import load_answer_positions


class Asked(BaseQueries):
    """Queries as msmarco-qna has them."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers

    def queries_iter(self):
        class Query(NamedTuple):
            query_id: str
            text: str
            answers: tuple[str, ...]

            def default_text(self) -> str:
                return self.text

        class Plain(NamedTuple):
            query_id: str
            text: str

        rows = [("q1", "who flew", ("bee", "A Bee", "wasp")), ("q2", "why", ())]
        return (Query(*row) if self._answers else Plain(*row[:2]) for row in rows)

    def queries_cls(self):
        return GenericDoc

    def queries_namespace(self):
        return "evenrank-test"

    def queries_lang(self):
        return "en"


@pytest.mark.parametrize("answers", [True, False])
def test_answers_of_a_data_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: bool) -> None:
    monkeypatch.setattr(ir_datasets.registry, "_registered", dict(ir_datasets.registry._registered))
    (tmp_path / "d").write_text("d1\tSo a bee flew\nd2\tThe bee\n", encoding="utf-8")
    (tmp_path / "q").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 1\n", encoding="utf-8")
    ir_datasets.registry.register(
        "evenrank-test",
        Dataset(TsvDocs(LocalDownload(tmp_path / "d")), Asked(answers), TrecQrels(LocalDownload(tmp_path / "q"), {})),
    )
    if not answers:
        with pytest.raises(EvenrankError, match="the queries of this data set have no answers"):
            load_answer_positions("irds:evenrank-test")
        return
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    found = load_answer_positions("irds:evenrank-test")
    assert found.table.select("answer", "token", "tokens").rows() == [("a bee", 1, 4), ("bee", 2, 4)]
    assert found.unmatched.rows() == [("q1", "d1", "wasp")]
    made = squad_collection(["irds:evenrank-test"], shares=(1, 0, 0))
    assert made.queries.rows() == [("q1", "who flew", "train")]
    assert made.qrels.rows() == [("q1", "d1", 1)]
    assert (made.counts["unmatched_answers"], made.counts["documents"]) == (1, 1)
    made.write(tmp_path / "out")
    assert load_squad(tmp_path / "out" / "answers.json").answers().select("answer", "answer_start").rows() == [
        ("a bee", 3),
        ("bee", 5),
    ]
    with pytest.raises(EvenrankError, match="have no annotated spans"):
        load_answer_positions("irds:evenrank-test", annotated=True)


def test_a_data_set_that_lacks_a_package_says_so(evenrank: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Lacking(Asked):
        def queries_iter(self):
            raise ImportError("This dataset requires warc. Run 'pip install ir_datasets[warc]' to install it")

    monkeypatch.setattr(ir_datasets.registry, "_registered", dict(ir_datasets.registry._registered))
    ir_datasets.registry.register("evenrank-lacking", Dataset(Lacking(True)))
    done = evenrank("position", "answers", "irds:evenrank-lacking")
    said = "irds:evenrank-lacking: This dataset requires warc. Run 'pip install ir_datasets[warc]' to install it"
    assert (done.status, done.err) == (2, f"evenrank: {said}\n")


def test_msmarco_qna_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As ir_datasets makes it of the published files, from small ones of their form.
    from ir_datasets.datasets import msmarco_qna

    monkeypatch.setattr(ir_datasets.registry, "_registered", dict(ir_datasets.registry._registered))
    (tmp_path / "docs").write_text("7\tSo a bee flew\n8\tThe bee\n", encoding="utf-8")
    (tmp_path / "urls").write_text("D1\tA page\tu\n", encoding="utf-8")

    class Page(NamedTuple):
        doc_id: str
        text: str
        url: str

    documents = TsvDocs(LocalDownload(tmp_path / "docs")), TsvDocs(LocalDownload(tmp_path / "urls"), doc_cls=Page)
    for name, of in zip(("msmarco-passage", "msmarco-document"), documents, strict=True):
        ir_datasets.registry._registered.pop(name)
        ir_datasets.registry.register(name, Dataset(of))
    one = [{"is_selected": n, "passage_text": t, "url": "u"} for n, t in ((1, "So a bee flew"), (0, "The bee"))]
    parts = {
        "answers": {"0": ["bee"], "1": ["No Answer Present."]},
        "passages": {"0": one, "1": one},
        "query": {"0": "who flew", "1": "why"},
        "query_type": {"0": "ENTITY", "1": "ENTITY"},
        "query_id": {"0": 3, "1": 4},
    }
    for name in ("train", "dev", "eval"):
        left = parts if name != "eval" else {key: part for key, part in parts.items() if key != "answers"}
        (tmp_path / name).write_text(json.dumps(left), encoding="utf-8")
    (tmp_path / "home").mkdir()
    files = [LocalDownload(tmp_path / name) for name in ("train", "dev", "eval")]
    manager = msmarco_qna.MsMarcoQnAManager(*files, tmp_path / "home")
    documents = msmarco_qna.DocstoreBackedDocs(manager.docs_store, docs_cls=msmarco_qna.MsMarcoQnADoc)
    queries = msmarco_qna.TsvQueries(manager.file_ref("dev.queries.tsv"), query_cls=msmarco_qna.MsMarcoQnAQuery)
    qrels = TrecQrels(manager.file_ref("dev.qrels"), {})
    ir_datasets.registry.register("evenrank-qna/dev", Dataset(documents, queries, qrels))
    found = load_answer_positions("irds:evenrank-qna/dev")
    assert found.table.select("query_id", "doc_id", "token", "tokens").rows() == [("3", "7-0", 2, 4)]
