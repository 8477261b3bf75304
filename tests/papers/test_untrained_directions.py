"""What a reordering pushes is learnt on development queries: planted queries that lean the other way show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenrank.files import Run, read_run
from evenrank.groups import Scoring, load_lexicon
from evenrank.papers import ibbr_paper, sampling_paper
from evenrank.papers.sampling_paper import ORIGINAL, Lists
from evenrank.papers.untrained import Frontier

SCORING = Scoring(load_lexicon())
TEXTS = {"m": "he he man man", "f": "she she woman woman"}
GROUPS = {"dev": "mmffmf", "test": "ffmmfm"}
"""Of the documents of each list, by rank: m leads in development, f on the test."""
QUERIES = 4


@pytest.fixture
def home(tmp_path: Path) -> Path:
    collection = []
    for part, groups in GROUPS.items():
        run, qrels = [], []
        for query in range(QUERIES):
            for rank, group in enumerate(groups, start=1):
                doc = f"{part}-{query}-{rank}"
                collection.append(f"{doc}\t{TEXTS[group]}\n")
                run.append(f"{part}{query} Q0 {doc} {rank} {1 / rank} x\n")
            # The first document of either group.
            qrels += [f"{part}{query} 0 {part}-{query}-{rank} 1\n" for rank in (1, 3)]
        (tmp_path / f"{part}.run").write_text("".join(run))
        (tmp_path / f"{part}.qrels").write_text("".join(qrels))
    (tmp_path / "collection.tsv").write_text("".join(collection))
    (tmp_path / "trained").mkdir()
    (tmp_path / "validation.run").symlink_to(tmp_path / "dev.run")
    return tmp_path


class Planted:
    """One seed, whose only training ranks as the planted runs do."""

    def __init__(self, home: Path) -> None:
        part = {name: SimpleNamespace(run=str(home / f"{name}.run"), qrels=home / f"{name}.qrels") for name in GROUPS}
        parts = {**part, "valid": part["dev"]}
        self.data = SimpleNamespace(collection=str(home / "collection.tsv"), parts=parts)
        self.settings = SimpleNamespace(seeds=(0,), strengths=(1.0,), planted=None)
        self.trained = SimpleNamespace(folder=home)

    def of(self, seed: int) -> Any:
        return self.data

    def rows(self, *_: object) -> dict[str, Any]:
        return {ibbr_paper.RUN: self.trained}

    def test(self, *_: object) -> Run:
        return read_run(self.data.parts["test"].run)

    rank = test

    def lists(self, seed: int, part: str) -> Lists:
        return Lists.of(self.data.parts[part], self.data.collection, SCORING)


def frontiers(home: Path) -> Iterator[tuple[Frontier, str]]:
    planted: Any = Planted(home)
    yield ibbr_paper._frontier(planted, "encoder", {}, SCORING), "delta_aprf_signed"
    measure = sampling_paper._UntrainedMeasure(planted, planted.lists)
    systems = {ORIGINAL: planted.trained}
    yield measure.frontier("test", (0,), lambda _: systems), "arab_tf_10"


def test_directions_are_learnt_on_development_queries(home: Path) -> None:
    """m leads there, so f is pushed: to the top in development, and on the test, where it leads already, farther."""
    for frontier, column in frontiers(home):
        for rows, before in ((frontier.dev, 1), (frontier.test, -1)):
            own, shifted = (rows.value(row, column).mean for row in (frontier.run, "shift 1"))
            assert own is not None
            assert shifted is not None
            assert np.sign(own) == before
            assert shifted < -abs(own)
