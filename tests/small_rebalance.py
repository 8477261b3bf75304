"""Runs, group tables and judgements that can be put into a fairer order."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.files import Run
from evenrank.files.types import Array
from evenrank.groups import GroupTable


def table(groups: dict[str, str]) -> GroupTable:
    """A group table of documents that have one group word twice, or none ("")."""
    frame = pl.DataFrame(
        {
            "doc_id": list(groups),
            "count_m": [2 * (group == "m") for group in groups.values()],
            "count_f": [2 * (group == "f") for group in groups.values()],
            "neutrality": [0.0 if group else 1.0 for group in groups.values()],
        }
    )
    return GroupTable.of(frame)


def run(lists: dict[str, list[tuple[str, float]]], name: str = "run") -> Run:
    return Run.from_table({query: dict(docs) for query, docs in lists.items()}, name)


def drawn(queries: int, length: int, seed: int, *, ties: bool = False) -> tuple[Run, GroupTable, pl.DataFrame]:
    """A run that prefers m, its group table, and judgements: two relevant documents a query, near the top."""
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(4 * length)]
    groups = rng.choice(["m", "f", ""], len(documents), p=[0.4, 0.3, 0.3])
    rows, judged = [], []
    for query in range(queries):
        chosen = rng.choice(len(documents), length, replace=False)
        score = rng.normal(size=length) + 0.8 * (groups[chosen] == "m")
        score = np.round(score, 0 if ties else 6)
        rows += [(f"q{query}", documents[d], float(s)) for d, s in zip(chosen, score, strict=True)]
        best = chosen[np.argsort(-score)[:4]]
        judged += [(f"q{query}", documents[d], 1) for d in rng.choice(best, min(2, length), replace=False)]
    frame = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    qrels = pl.DataFrame(judged, ["query_id", "doc_id", "relevance"], orient="row")
    return Run.from_table(frame, "drawn"), table(dict(zip(documents, groups.tolist(), strict=True))), qrels


def mean_signed(made: Run, groups: GroupTable, queries: list[str]) -> float:
    """ARaB@10 the slow way: the mean over the first ranks x of the mean of m − f over the first x, over queries."""
    magnitude = np.log1p(groups.table["count_m"].to_numpy()) - np.log1p(groups.table["count_f"].to_numpy())
    of = dict(zip(groups.table["doc_id"].to_list(), magnitude.tolist(), strict=True))
    values = []
    for query in queries:
        own: Array = np.array([of[doc] for doc in made.table.filter(query_id=query)["doc_id"].to_list()[:10]])
        values.append(np.mean([own[:x].mean() for x in range(1, len(own) + 1)]))
    return float(np.mean(values))
