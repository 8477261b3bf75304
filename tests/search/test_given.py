"""The first stage and fusion of whatever Python callers give."""

from __future__ import annotations

from typing import Any

import pytest

from evenrank import EvenrankError
from evenrank.files import as_run, as_runs
from given_data import FRAMES, JUDGED, ROWS, RUN, TEXTS, frame


@FRAMES
def test_the_first_stage_and_fusion(make: Any) -> None:
    from evenrank.search.fusion import interpolate, tune
    from evenrank.search.indexes import retrieve

    asked = {"q1": "she", "q2": "nothing he"}
    found = retrieve(TEXTS, asked, k=5, stopwords=None, quiet=True)
    assert found.table["doc_id"].to_list() == ["d1", "d2", "d3"]
    collection = frame(list(TEXTS.items()), "docno text", make)
    queries = frame(list(asked.items()), "qid query", make)
    assert retrieve(collection, queries, k=5, stopwords=None, quiet=True).table.equals(found.table)
    with pytest.raises(EvenrankError, match=r"^`queries`: the table has no column query_id, text"):
        retrieve(TEXTS, frame([(1,)], "a", make), quiet=True)
    rows = frame(ROWS, "qid docno score", make)
    fused = interpolate([as_run(found, "bm25"), RUN], weights=[0.5, 0.5])
    assert interpolate({"bm25": found, "b": rows}, weights=[0.5, 0.5]).table.equals(fused.table)
    judged = frame(JUDGED, "qid docno label", make)
    assert tune([found, rows], qrels=judged, folds=2).names == ("bm25", "run 2")
    with pytest.raises(EvenrankError, match=r"^`runs`, number 2: the table has no column score"):
        as_runs([RUN, frame(JUDGED, "qid docno label", make)])
