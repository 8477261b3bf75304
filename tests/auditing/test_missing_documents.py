"""Audits of documents without text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.groups import GroupTable
from evenrank.measures import NFaiRR, provider
from small_audits import TEXTS, collection, head, judged, run


def test_a_known_tail_does_not_hide_unknown_first_ranks() -> None:
    tail = {f"d{i}": "he and his father" for i in range(90)}
    lost = run({"1": [*(f"z{i}" for i in range(10)), *tail]})
    options: dict[str, Any] = {"collection": collection(tail), "missing": "neutral"}
    with pytest.raises(EvenrankError, match=r"10 of 10 documents in the first 10 ranks \(100%\).*tolerates 10%"):
        evenrank.audit({"lost": lost}, measures="NFaiRR@10 ARaB@100", **options)
    # 10 of 100 is no more than a tenth, where a measure looks no nearer than that.
    found = evenrank.audit({"lost": lost}, measures="ARaB@100", **options)
    assert json.loads(found.to_json())["runs"]["lost"]["missing"] == {
        "documents": 10, "total": 100, "share": 0.1, "depth": None, "queries": 0,
    }  # fmt: skip
    line = "Documents without text: 10 of 100 documents in all lists of lost (10%), counted as neutral."
    assert line in head(found)


def test_a_query_left_empty_has_no_most_neutral_order() -> None:
    lists = {str(q): ["m", "f", "n", "b"] for q in range(5)}
    table = run({**lists, "5": ["x", "y"], "6": ["m", "x", "n"]})
    qrels = judged({**dict.fromkeys(lists, "m"), "5": "x", "6": "x"})
    found = evenrank.audit(
        {"r": table}, collection=collection(TEXTS), qrels=qrels, missing="skip", missing_limit=0.3,
        measures="RR@10 infAP NFaiRR@2",
    )  # fmt: skip
    ideal = found["neutral-first"].measures["RR@10"]
    # n, b, m, f: the man's passage third. Query 6: n, m, then the document without text. Query 5: no order is known.
    assert np.allclose(ideal.values, [1 / 3] * 5 + [np.nan, 1 / 3], equal_nan=True)
    assert (ideal.n, ideal.undefined, ideal.mean) == (6, 1, pytest.approx(1 / 3))
    assert ideal.tie_mean == pytest.approx(1 / 3)
    assert np.isnan(found["neutral-first"].measures["infAP"].values[5])
    # The run's own effectiveness needs no text.
    assert found["r"].measures["RR@10"].values.tolist() == [1.0] * 5 + [1.0, 0.5]
    assert found["r"].measures["NFaiRR@2"].undefined == 1
    assert "left out of the bias measures; bias is undefined for 1 query, as no document has a text." in head(found)
    assert json.loads(found.to_json())["runs"]["r"]["missing"]["queries"] == 1


def test_ir_measures_are_refused_documents_that_nobody_has() -> None:
    scores = GroupTable.of(pl.DataFrame({"doc_id": ["a"], "count_f": [0], "count_m": [3], "neutrality": [0.0]}))
    qrels, table = {"1": {"a": 1}}, {"1": {"x": 3.0, "y": 2.0, "a": 1.0}}
    with pytest.raises(EvenrankError, match=r"2 of 2 documents in the first 2 ranks \(100%\)"):
        provider(scores, missing="neutral").calc_aggregate([NFaiRR @ 2], qrels, table)
    bound = provider(scores, missing="neutral", missing_limit=1)
    assert bound.calc_aggregate([NFaiRR @ 2], qrels, table) == {NFaiRR @ 2: 1.0}
