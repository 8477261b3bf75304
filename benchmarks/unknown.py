"""Whether intervals over partly known labels hold the figure of all labels: Grep-BiasIR with most labels hidden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.groups import as_labels
from evenrank.io import Run, read_run
from evenrank.measures import Evaluation, RunMeasure, parse_measure, resolve
from evenrank.measures import statistics as st
from evenrank.measures.base import mean_of
from evenrank.measures.imputation import IMPUTATIONS

from .measure import Row

RUNS = 1
"""The seeds are fixed: each run would find the same."""

DATA = Path(__file__).parents[2] / "shared" / "data" / "grepbiasir"
MEASURES = (
    "ARaB@10",
    "RaB@10",
    "FaiRR@10",
    "NFaiRR@10",
    "Share(group='F')@10",
    "Exposure(group='F')@10",
    "ExposureGap@10",
    "ARaB@20",
)
SHARE = 0.1
SEEDS = range(2000, 2200)


@dataclass(frozen=True)
class Hidden:
    """A run with the labels of all its documents, and the figures that they give."""

    run: Run
    labels: pl.DataFrame
    measures: tuple[RunMeasure, ...]
    figures: tuple[float, ...]

    @classmethod
    def of(cls, folder: Path, measures: Sequence[str]) -> Hidden:
        """Grep-BiasIR's BM25 run; documents of both groups are half in each."""
        run = read_run(folder / "bm25.run")
        table = pl.read_csv(folder / "documents.csv", infer_schema=False)
        both = pl.col("content_gender").replace({"both": "F,M", "botrh": "F,M"}).str.split(",")
        labels = table.select("doc_id", group=both)
        whole = Evaluation(run, as_labels(labels, neutral=["N"]))
        whole.background = whole.as_background("run")
        found = tuple(resolve(parse_measure(name)) for name in measures)
        return cls(run, labels, found, tuple(how.figure(how.parts(whole)) for how in found))

    def covered(self, seeds: Iterable[int], share: float = SHARE) -> tuple[list[int], list[int | None]]:
        """How often, with a ``share`` of the labels, the interval and the bounds hold the figure of all labels.

        For each measure; None for one without bounds.
        """
        inside, bounded = [0] * len(self.measures), [0] * len(self.measures)
        has_bounds = [True] * len(self.measures)
        for seed in seeds:
            chosen = np.random.default_rng(seed).permutation(self.labels.height)[: int(share * self.labels.height)]
            labels = as_labels(self.labels[np.sort(chosen)], neutral=["N"])
            found = Evaluation(self.run, labels, missing="estimate", seed=seed)
            found.background = found.as_background("run")
            draws: list[list[np.ndarray]] = [[] for _ in self.measures]
            for draw in range(IMPUTATIONS):
                completed = found.completed(draw)
                for how, values in zip(self.measures, draws, strict=True):
                    values.append(how.values(completed))
            sources = found.imputation.sources if found.imputation is not None else np.inf
            for number, (how, figure) in enumerate(zip(self.measures, self.figures, strict=True)):
                pooled = st.pool(*st.mean_and_variance(np.array(draws[number])), sources)
                assert pooled is not None
                assert pooled.interval is not None
                low, high = pooled.interval
                inside[number] += low <= figure <= high
                ends = how.label_bounds(found)
                has_bounds[number] = ends is not None
                if ends is not None:
                    least, most = map(mean_of, ends)
                    bounded[number] += (least or 0) - 1e-9 <= figure <= (most or 0) + 1e-9
        return inside, [count if has else None for count, has in zip(bounded, has_bounds, strict=True)]


def rows(_: Path) -> list[Row]:
    """Two lines for each measure: the share of intervals that hold, and of bounds where there are any."""
    if not DATA.exists():
        return []
    hidden = Hidden.of(DATA, MEASURES)
    inside, bounded = hidden.covered(SEEDS)
    held_of, count = f"that hold the figure of all labels, {1 - SHARE:.0%} hidden {len(SEEDS)} times", len(SEEDS)
    found = []
    for name, held, bounds in zip(MEASURES, inside, bounded, strict=True):
        found.append(Row(f"{name}: intervals {held_of}", 100 * held / count, "%", least=93))
        if bounds is not None:
            found.append(Row(f"{name}: bounds {held_of}", 100 * bounds / count, "%", least=100))
    return found
