"""Query groups: built from a run, judgements and texts, or read from a file; then read where they lie."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from evenrank.files import EvenrankError, InputError, Run
from evenrank.groups import Scoring, load_lexicon
from evenrank.training import lists as module
from evenrank.training.lists import TrainingLists, as_lists, build_from_file, build_lists, collate

COLLECTION = pl.DataFrame({"doc_id": [f"d{i}" for i in range(8)], "text": [f"text {i}" for i in range(8)]})
QUERIES = pl.DataFrame({"query_id": ["0", "1", "2", "3"], "text": ["query 0", "query 1", "query 2", "query 3"]})
RUN = Run.from_table(
    pl.DataFrame(
        {
            "query_id": ["0"] * 4 + ["1"] * 3 + ["2"] * 2 + ["3"],
            "doc_id": ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d1", "d2", "d7"],
            "score": [4.0, 3, 2, 1, 3, 2, 1, 2, 1, 1],
        }
    )
)
# Query 0 has two positives (one below the depth, one not in the run at all), query 1 one; 2 has none, 3 no negative.
QRELS = pl.DataFrame(
    {"query_id": ["0", "0", "1", "2", "3"], "doc_id": ["d1", "d7", "d6", "d1", "d7"], "relevance": [2, 1, 1, 0, 1]}
)


@pytest.fixture
def folder(tmp_path):
    counts = build_lists(RUN, QRELS, COLLECTION, QUERIES, tmp_path, depth=3)
    assert counts == {"queries": 2, "without_positive": 1, "without_negative": 1}
    return tmp_path


def test_one_item_for_each_positive(folder):
    found = TrainingLists(folder, negatives=5, sampling="first")
    assert len(found) == 3
    items = [found[i] for i in range(3)]
    assert [item.query for item in items] == ["query 0", "query 0", "query 1"]
    assert items[0].passages == ["text 1", "text 0", "text 2"]
    assert items[0].relevance == [2.0, 0, 0]
    assert items[1].passages == ["text 7", "text 0", "text 2"]
    assert items[2].passages == ["text 6", "text 4", "text 5"]
    assert found.query_id(2) == "1"
    assert repr(found) == "TrainingLists(3 lists, 5 first negatives each)"
    with pytest.raises(
        EvenrankError, match=r"^`lists`: no passage has a side: pass `lexicon` or `labels` to training_lists$"
    ):
        as_lists(found, [Scoring(load_lexicon("gender-en"))])


def test_negatives_are_drawn_anew_each_epoch_and_the_same_again(tmp_path):
    run = Run.from_table(
        pl.DataFrame({"query_id": ["0"] * 100, "doc_id": [str(i) for i in range(100)], "score": range(100, 0, -1)})
    )
    texts = pl.DataFrame({"doc_id": [str(i) for i in range(100)], "text": [f"t{i}" for i in range(100)]})
    qrels = pl.DataFrame({"query_id": ["0"], "doc_id": ["0"], "relevance": [1]})
    build_lists(run, qrels, texts, QUERIES, tmp_path)
    found = TrainingLists(tmp_path, negatives=5, seed=1)
    first = found[0].passages
    assert first == TrainingLists(tmp_path, negatives=5, seed=1)[0].passages
    assert len(set(first)) == 6
    assert first[0] == "t0"
    found.set_epoch(1)
    assert found[0].passages != first
    found.set_epoch(0)
    assert found[0].passages == first
    assert TrainingLists(tmp_path, negatives=5, seed=2)[0].passages != first
    drawn = {text for epoch in range(60) for text in (found.set_epoch(epoch), found[0])[1].passages[1:]}
    assert len(drawn) > 80


def test_pieces_of_the_files_do_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 2)
    texts = pl.DataFrame({"doc_id": [f"d{i}" for i in range(9)], "text": [f"text {i}" for i in range(9)]})
    queries = [str(i) for i in range(5)]
    rows = [(q, f"d{d}", float(-d)) for q in queries for d in range(9)]
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    qrels = pl.DataFrame({"query_id": queries, "doc_id": [f"d{q}" for q in queries], "relevance": [1] * 5})
    names = pl.DataFrame({"query_id": queries, "text": [f"query {q}" for q in queries]})
    build_lists(run, qrels, texts, names, tmp_path)
    found = TrainingLists(tmp_path, negatives=20, sampling="first")
    for i in range(5):
        assert found[i].query == f"query {i}"
        assert found[i].passages == [f"text {i}", *[f"text {d}" for d in range(9) if d != i]]


def test_a_set_travels_to_a_data_loading_process(folder):
    found = TrainingLists(folder, negatives=2, seed=3)
    assert pickle.loads(pickle.dumps(found))[1] == found[1]


def test_ragged_items_as_a_batch(folder):
    found = TrainingLists(folder, negatives=1, sampling="first")
    long = TrainingLists(folder, negatives=2, sampling="first")
    batch = collate([found[0], long[2]])
    assert batch.relevance.tolist() == [[2, 0, 0], [1, 0, 0]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert [len(row) for row in batch.passages] == [2, 3]


def test_groups_from_a_file(tmp_path):
    table = pl.DataFrame(
        {"query_id": ["1", "0"], "doc_id": [["d1", "d2", "d3"], ["d4", "d5"]], "label": [[0.0, 1.0, 0.0], [1.0, 0.0]]}
    )
    table.write_parquet(tmp_path / "g.parquet")
    table.write_ndjson(tmp_path / "g.jsonl")
    for name in ("g.parquet", "g.jsonl"):
        build_from_file(tmp_path / name, COLLECTION, QUERIES, tmp_path / name[-3:])
        found = TrainingLists(tmp_path / name[-3:], negatives=9, sampling="first")
        assert [found[i].query for i in range(2)] == ["query 1", "query 0"]
        assert found[0].passages == ["text 2", "text 1", "text 3"]


@pytest.mark.parametrize(
    ("doc_id", "label", "message"),
    [
        (["d1", "d2"], [0.0, 0.5], "line 2: query '1': there is no positive"),
        (["d1", "d2"], [1.0, 1.0], "line 2: query '1': all labels are equal: there is nothing to learn"),
        (["d1", "d2"], [1.0], "line 2: query '1': the lists of doc_id and label differ in length"),
    ],
)
def test_a_group_that_teaches_nothing_is_named(tmp_path, doc_id, label, message):
    table = pl.DataFrame({"query_id": ["0", "1"], "doc_id": [["d4", "d5"], doc_id], "label": [[1.0, 0.0], label]})
    table.write_parquet(tmp_path / "g.parquet")
    with pytest.raises(InputError, match=r"g\.parquet") as error:
        build_from_file(tmp_path / "g.parquet", COLLECTION, QUERIES, tmp_path / "out")
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


def test_missing_texts_and_no_group_at_all(tmp_path):
    with pytest.raises(EvenrankError, match="1 training passage is not in the collection: 'd7'"):
        build_lists(RUN, QRELS, COLLECTION.filter(pl.col("doc_id") != "d7"), QUERIES, tmp_path, depth=3)
    with pytest.raises(EvenrankError, match="1 training query without a text: '1'"):
        build_lists(RUN, QRELS, COLLECTION, QUERIES.filter(pl.col("query_id") != "1"), tmp_path, depth=3)
    with pytest.raises(EvenrankError, match="no query has both a relevant passage and another one"):
        build_lists(RUN, QRELS.filter(pl.col("query_id") == "3"), COLLECTION, QUERIES, tmp_path)
    (tmp_path / "x").write_text("no parquet", encoding="utf-8")
    with pytest.raises(InputError, match="line 1: expected a JSON object with query_id"):
        build_from_file(tmp_path / "x", COLLECTION, QUERIES, tmp_path / "out")
