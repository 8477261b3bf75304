"""A ranker that looks at the place of a word, and position sensitivity with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from evenrank.files.squad import answer_table
from evenrank.models.scorers import Rows, Scorer, Scores, TextPairs

WORDS = [f"W{i}." for i in range(9)]
"""Sentences of one word."""


def command(*arguments: object):
    from evenrank.cli import app

    return CliRunner().invoke(app, ["position", *map(str, arguments)])


class Early(Scorer):
    """A ranker whose score falls with the place of the word "The", or does not depend on it."""

    def __init__(self, slope: float, reads: int = 10_000) -> None:
        super().__init__("early")
        self.slope, self.reads = slope, reads

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        for rows in windows:
            yield np.array([5 - self.slope * text.split().index("The") for text in pairs.texts(rows)[1]])

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        return [min(self.reads, len(passage)) for passage in passages]


def sensitivity(home: Path, ranker: Early, **options: object):
    from evenrank.files.squad_collection import squad_collection
    from evenrank.probes.sensitivity import position_sensitivity

    made = squad_collection([home / "squad.json"])
    return position_sensitivity(
        ranker,
        queries=made.queries.select("query_id", "text"),
        qrels=made.qrels,
        **{"collection": made.collection, "answers": answer_table(made.squad), "run": home / "run", **options},  # type: ignore[arg-type]
    )


def collection_of(folder: Path) -> Path:
    from tiny_models import texts

    lines = [f"{i}\t{text}" for i, text in enumerate(texts(12, 9))]
    (folder / "c.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "c.tsv"
