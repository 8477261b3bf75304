"""Audits of whatever Python callers give."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.files import as_run
from given_data import QRELS, RUN, TEXTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"runs": []}, "an audit needs at least one run"),
        ({"runs": None}, "`runs`: expected a path, a Run, {query: {document: score}}, {query: doc"),
        ({"runs": {1: "r.run"}}, "`runs`: expected names, found 1: one run is {query: {document: score}}"),
        ({"runs": [as_run(RUN), as_run(RUN)]}, "two runs are named 'run': name them, as in {'other': run}"),
        ({"runs": ["r.run", None]}, "`runs`: expected paths or Runs in the list, found a NoneType"),
        ({"runs": {"mine": {"q": {"d": "x"}}}}, "run mine: expected a finite number as score, found 'x'"),
        ({"runs": {"mine": pl.DataFrame({"a": [1]})}}, "run mine: the table has no column query_id, doc_id, score"),
        ({"collection": {}}, "`collection`: expected at least one row, found none"),
        ({"collection": {"x": "none of them"}}, "run run: none of its 3 documents is in the collection"),
        ({"collection": 5}, "`collection`: expected a path, {document: text} or a table"),
        ({"qrels": pl.DataFrame({"query_id": ["q1"]})}, "`qrels`: the table has no column doc_id, relevance"),
        ({"queries": {"q1": 5}}, "`queries`: expected a string as text, found 5 (query 'q1')"),
        ({"scores": pl.DataFrame({"doc_id": ["d"]})}, "`scores`: no group table"),
        ({"background": 5}, "`background`: expected a path, a Run"),
    ],
)
def test_an_audit_of_what_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    given = {"runs": RUN, "collection": TEXTS, "qrels": QRELS, **arguments}
    with pytest.raises(EvenrankError) as caught:
        evenrank.audit(given.pop("runs"), **given)
    assert message in str(caught.value)
    assert "--" not in str(caught.value)
