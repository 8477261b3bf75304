"""The figures of the IBBR experiment by loops over every pair."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenrank.files import Run


def slow_figures(run: Run, relevant: set[tuple[str, str]], side: Mapping[str, int]) -> tuple[float, float]:
    """MRR and |ΔA-PRF|, by loops over every pair."""
    lists: dict[str, list[tuple[float, str]]] = {}
    for query, doc, score in run.table.select("query_id", "doc_id", "score").iter_rows():
        lists.setdefault(query, []).append((score, doc))
    reciprocal: list[float] = []
    shares: dict[int, list[float]] = {1: [], -1: []}
    for query, rows in lists.items():
        ranked = sorted(rows, key=lambda row: -row[0])
        places = [place for place, (_, doc) in enumerate(ranked, 1) if (query, doc) in relevant]
        reciprocal.append(1 / places[0] if places else 0.0)
        others = [score for score, doc in ranked if (query, doc) not in relevant]
        for group, found in shares.items():
            wins = [
                float(score >= other)
                for score, doc in ranked
                if (query, doc) in relevant and side[doc] == group
                for other in others
            ]
            if wins:
                found.append(sum(wins) / len(wins))
    return float(np.mean(reciprocal)), abs(float(np.mean(shares[1]) - np.mean(shares[-1])))
