"""The papers' own figures, as the tables print them."""

from __future__ import annotations

import csv
from importlib import resources


def published(name: str) -> list[dict[str, str]]:
    """The rows of a published table, as ``ibbr_table1``; every value is a text, empty where the paper has none."""
    file = resources.files(__package__) / "published" / f"{name}.csv"
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def numbers(row: dict[str, str], columns: list[str]) -> dict[str, float]:
    """The figures of a row under ``columns``, those that the paper has."""
    return {column: float(row[column]) for column in columns if row.get(column)}


def fact(paper: str, name: str) -> float:
    """A figure that stands in a paper's text."""
    found = {(row["paper"], row["fact"]): row["value"] for row in published("facts")}
    return float(found[paper, name])
