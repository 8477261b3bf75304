"""A small case of negatives, as files."""

from __future__ import annotations

TEXTS = {"d1": "He and he and he", "d2": "she", "d3": "a cat", "d4": "he or she", "d5": "the answer", "d6": "a dog"}
LISTS = {"q1": ["d5", "d3", "d2", "d1", "d4", "d6"], "q2": ["d1", "d6", "d5"], "q3": ["d1"], "q4": ["d2"]}
QRELS = ["q1 0 d5 2", "q1 0 d6 0", "q2 0 d6 1", "q2 0 d2 1", "q4 0 d2 1"]


def run_text(lists: dict[str, list[str]]) -> str:
    """A run with these documents in this order."""
    return "".join(
        f"{query} Q0 {doc} {rank} {-rank} x\n" for query, docs in lists.items() for rank, doc in enumerate(docs, 1)
    )


OPTIONS = ("--collection", "c.tsv", "--queries", "q.tsv", "--qrels", "qrels.txt")
