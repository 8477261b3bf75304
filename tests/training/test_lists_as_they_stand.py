"""Query groups are read as they stand or refused, against a slow, obvious reader."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from as_they_stand import PACKED, Packing, Wrong, check_against, filled, lines_of_text, values
from evenrank.training.lists import read_list_file


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
