"""The papers' own figures, as printed."""

from __future__ import annotations

import csv
from importlib import resources


def published(name: str) -> list[dict[str, str]]:
    """The rows of a published table such as ``ibbr_table1``; values are strings, empty if the paper has none."""
    file = resources.files(__package__) / "published" / f"{name}.csv"
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def numbers(row: dict[str, str], columns: list[str]) -> dict[str, float]:
    """The figures of a row in ``columns``, as far as the paper has them."""
    return {column: float(row[column]) for column in columns if row.get(column)}


def fact(paper: str, name: str) -> float:
    """A figure from the text of a paper."""
    found = {(row["paper"], row["fact"]): row["value"] for row in published("facts")}
    return float(found[paper, name])
