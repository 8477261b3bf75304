"""Query groups: built from a run, judgements and texts, or read from a file; then read where they lie."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from as_they_stand import PACKED, Packing, Wrong, check_against, filled, lines_of_text, values
from evenrank.files import EvenrankError, Run
from evenrank.groups import Scoring, load_lexicon
from evenrank.mitigation.rotation import cut_of, mixed_seed, rotated
from evenrank.training import lists as module
from evenrank.training.lists import TrainingLists, as_lists, build_lists, read_list_file


def from_rows(rows: list[tuple[str, str, float]]) -> Run:
    return Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))


COLLECTION = pl.DataFrame({"doc_id": [f"d{i}" for i in range(8)], "text": [f"text {i}" for i in range(8)]})
QUERIES = pl.DataFrame({"query_id": ["0", "1", "2", "3"], "text": ["query 0", "query 1", "query 2", "query 3"]})
LISTED = {"0": "d0 d1 d2 d3", "1": "d4 d5 d6", "2": "d1 d2", "3": "d7"}
RUN = from_rows([(q, doc, -float(i)) for q, docs in LISTED.items() for i, doc in enumerate(docs.split())])
# Query 0 has two positives (one below the depth, one not in the run at all), query 1 one; 2 has none, 3 no negative.
QRELS = pl.DataFrame(
    {"query_id": ["0", "0", "1", "2", "3"], "doc_id": ["d1", "d7", "d6", "d1", "d7"], "relevance": [2, 1, 1, 0, 1]}
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 2)
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
    texts = pl.DataFrame({"doc_id": [str(i) for i in range(100)], "text": [f"t{i}" for i in range(100)]})
    qrels = pl.DataFrame({"query_id": ["0"], "doc_id": ["0"], "relevance": [1]})
    build_lists(from_rows([("0", str(i), -i) for i in range(100)]), qrels, texts, QUERIES, tmp_path)
    found = TrainingLists(tmp_path, negatives=5, seed=1)
    first = found[0].passages
    assert len(set(first)) == 6
    assert first[0] == "t0"
    found.set_epoch(1)
    assert found[0].passages != first
    found.set_epoch(0)
    assert found[0].passages == first
    assert TrainingLists(tmp_path, negatives=5, seed=2)[0].passages != first
    drawn = {text for epoch in range(60) for text in (found.set_epoch(epoch), found[0])[1].passages[1:]}
    assert len(drawn) > 80


TURNED = ["one two three four five", "She is here. He left. It rained", "six  seven\teight", "", " ", "nine"]


def test_texts_are_turned_round_anew_each_epoch(tmp_path):
    collection = pl.DataFrame({"doc_id": [str(i) for i in range(6)], "text": TURNED})
    qrels = pl.DataFrame({"query_id": ["0"], "doc_id": ["0"], "relevance": [1]})
    build_lists(from_rows([("0", str(i), -i) for i in range(6)]), qrels, collection, QUERIES, tmp_path)

    def seen(epoch, rotate="word", seed=0):
        lists = TrainingLists(tmp_path, negatives=9, sampling="first", seed=seed, rotate=rotate)
        lists.set_epoch(epoch)
        return lists[0].passages

    assert seen(0, None) == TURNED
    for epoch in range(12):
        assert seen(epoch) == [rotated(t, cut_of(t, str(i), mixed_seed(0, epoch))) for i, t in enumerate(TURNED)]
    assert {seen(epoch)[0].split()[0] for epoch in range(12)} > {"one", "two"}
    assert seen(1, seed=1) != seen(1)
    assert {seen(epoch, "sentence")[1] for epoch in range(20)} == {
        "She is here. He left. It rained",
        "He left. It rained She is here.",
        "It rained She is here. He left.",
    }


# --- as they stand or refused, against a slow, obvious reader ---------------------------------------------------------


def slow_groups(content: bytes) -> list[tuple[str, list[str], list[float]]]:
    rows = []
    for line in filled(lines_of_text(content)):
        group = json.loads(line)
        query, docs, labels = group["query_id"], group["doc_id"], group["label"]
        if type(query) not in (str, int) or not isinstance(docs, list) or not isinstance(labels, list):
            raise Wrong
        if any(type(doc) not in (str, int) for doc in docs) or any(type(label) not in (int, float) for label in labels):
            raise Wrong
        if len(docs) != len(labels) or not all(map(math.isfinite, labels)) or "\ud800" in str(query):
            raise Wrong
        if len(set(labels)) < 2 or max(labels) < 1:
            raise Wrong
        rows.append((str(query), [str(doc) for doc in docs], [float(label) for label in labels]))
    return rows


groups = st.lists(
    st.fixed_dictionaries(
        {
            "query_id": values,
            "doc_id": st.lists(st.sampled_from(["a", "b", 1, "é"]), min_size=1, max_size=3) | values,
            "label": st.lists(st.sampled_from([0, 1, 2, 0.5, -1]), min_size=1, max_size=3) | values,
        }
    )
    | st.builds(
        lambda query, labels: {"query_id": query, "doc_id": [f"d{i}" for i in range(len(labels))], "label": labels},
        st.integers(0, 9),
        st.lists(st.sampled_from([0, 1, 2, 0.5, -1, math.nan, math.inf, None]), max_size=4),
    ),
    max_size=3,
)


@given(groups, PACKED)
def test_groups_as_they_stand(place: Path, rows: list[Any], packing: Packing) -> None:
    lines = [json.dumps(row) for row in rows]
    check_against(slow_groups, lambda path: read_list_file(path).rows(), place / "groups", lines, packing)
