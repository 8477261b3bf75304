"""The runs of the sampling experiment's rankers with random negatives, reordered without training, beside the shares of
biased negatives and AdvBert."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.io import Run

from .paper_claims import Claim, Verdict, above
from .paper_page import Drawing, plane
from .paper_tables import Table, Value
from .sampling_claims import PAPER
from .sampling_data import QUERY_SETS
from .sampling_measures import FIRST, HEADINGS, NEUTRAL, RANDOM, Lists, Values
from .sampling_setup import Experiment
from .sampling_tables import ADVERSARIAL, AWARE, BLIND, ORIGINAL
from .untrained import Axis, Frontier, Line, compare, curves_of, rebalance_claim, reorderings
from .untrained_rows import Rows
from .untrained_tables import against_table, drawn, frontier_rows, frontier_table, placed
from .work import Trained, development

UTILITY = "mrr_10"
AXES = (Axis("arab_tf_10", "|ARaB tf@10|"), Axis("nfairr_10", "NFaiRR@10", rises=True))
CELLS = {key: (key, False) for key in HEADINGS}
LABELS = ("queries", "ranker")
VALID = "valid"
"""The development queries."""
_ONCE = "QS2"
"""The queries of AdvBert and of the shares, on the first seed alone."""


@dataclass(frozen=True)
class Untrained:
    """The frontier of each query set and ranker over all seeds, and how each trained mitigation compares."""

    frontiers: Mapping[tuple[str, str], Frontier]
    lines: tuple[Line, ...]
    alive: tuple[Verdict, ...]
    """Whether the rankers whose runs are reordered are above BM25."""

    def tables(self) -> list[Table]:
        """The frontier, and the trained mitigations beside it."""
        rows = [row for key, one in self.frontiers.items() for row in frontier_rows(one, CELLS, AXES[0], key)]
        return [
            frontier_table(rows, HEADINGS, LABELS, ORIGINAL, 4),
            against_table(self.lines, LABELS, HEADINGS[UTILITY]),
        ]

    def drawings(self) -> list[Drawing]:
        """MRR against each measure of bias, for each query set and ranker."""
        made = []
        for (part, ranker), frontier in self.frontiers.items():
            for axis in AXES:
                points = {row: placed(frontier, row, axis) for row in (ORIGINAL, AWARE, BLIND)}
                name = f"Rebalance {part} {ranker} {HEADINGS[axis.column]}"
                good = "higher is better" if axis.rises else "nearer 0 is better"
                made.append(
                    plane(
                        name,
                        f"Reordering without training: {part}, {ranker}",
                        points,
                        f"{HEADINGS[UTILITY]} (higher is better)",
                        f"{axis.heading} ({good})",
                        (ORIGINAL, BLIND),
                        drawn(frontier, axis),
                    )
                )
        return made

    def claim(self) -> Claim | None:
        """Whether reordering beats or equals every trained mitigation, of rankers above BM25."""
        return rebalance_claim(PAPER, self.lines, *self.alive)


Of = Callable[[int, str], Lists]
"""What rankings of a seed's query set are measured with."""
Systems = Callable[[int], Mapping[str, Trained]]
"""The trainings of a seed, by row; the first is the ranker whose runs are reordered."""


def untrained(experiment: Experiment, lists: Of) -> Untrained:
    """Measures and compares: bias-aware negatives over all seeds; of the first seed the other shares and AdvBert."""
    settings, first, measure = experiment.settings, experiment.settings.seeds[0], _Measure(experiment, lists)
    frontiers, lines = {}, []
    for part in QUERY_SETS:
        for name in settings.rankers:

            def main(seed: int, name: str = name) -> Mapping[str, Trained]:
                return {
                    ORIGINAL: experiment.ranker(seed, name, 0.0),
                    AWARE: experiment.ranker(seed, name, settings.share),
                    BLIND: experiment.blind(seed, name),
                }

            found = frontiers[part, name] = measure.frontier(part, settings.seeds, main)
            lines += _compared(found, (AWARE, BLIND), (part, name))
    for name, rows in _of_first(experiment).items():
        found = measure.frontier(_ONCE, (first,), functools.partial(_the_same, rows))
        lines += _compared(found, tuple(rows)[1:], (f"{_ONCE}, one seed", name))
    return Untrained(frontiers, tuple(lines), tuple(measure.alive))


def _of_first(experiment: Experiment) -> dict[str, dict[str, Trained]]:
    """The mitigations that only the first seed has, with the ranker that each is compared with, by ranker."""
    settings, first, main = experiment.settings, experiment.settings.seeds[0], next(iter(experiment.settings.rankers))
    shares = {
        f"share {share:g}": experiment.ranker(first, main, share)
        for share in settings.shares
        if share not in (0.0, settings.share)
    }
    found = {main: {ORIGINAL: experiment.ranker(first, main, 0.0), **shares}} if shares else {}
    for name in settings.small_rankers:
        rows = {ORIGINAL: experiment.ranker(first, name, 0.0), ADVERSARIAL: experiment.adversarial(first, name)}
        found[name] = {**found.get(name, {}), **rows}
    return found


def _the_same(systems: Mapping[str, Trained], seed: int) -> Mapping[str, Trained]:
    return systems


def _compared(frontier: Frontier, rows: Sequence[str], labels: tuple[str, ...]) -> list[Line]:
    return [compare(frontier, row, axis, labels, control=row == BLIND) for row in rows for axis in AXES]


class _Measure:
    """Measures runs and their reorderings; the reorderings of a run are measured once."""

    def __init__(self, experiment: Experiment, lists: Of) -> None:
        self.experiment, self.lists = experiment, lists
        self.alive: list[Verdict] = []
        """Of each run that is reordered, whether it is above BM25."""
        self._kept: dict[tuple[str, str], Values] = {}

    def frontier(self, part: str, seeds: Sequence[int], systems: Systems) -> Frontier:
        """The rows of all ``seeds`` on a query set, and of the first on its development queries."""
        shared = self.experiment.settings.planted is None
        dev, test = Rows(same_queries=shared), Rows(same_queries=shared)
        for seed in seeds:
            self._add(test, seed, part, systems(seed))
        self._add(dev, seeds[0], VALID, systems(seeds[0]))
        ahead = test.over(lambda figure: figure(ORIGINAL, UTILITY) - figure(FIRST, UTILITY))
        self.alive.append(above(Value.of_test(ahead)))
        return Frontier(ORIGINAL, curves_of(self.experiment.settings.strengths), dev, test, UTILITY)

    def _add(self, into: Rows, seed: int, part: str, systems: Mapping[str, Trained]) -> None:
        lists = self.lists(seed, part)
        runs = {row: self._run(one, seed, part) for row, one in systems.items()}
        values = lists.values(runs) | self._reordered(seed, part, systems[ORIGINAL], runs[ORIGINAL])
        wanted = {row: one for row, one in values.items() if row not in (RANDOM, NEUTRAL)}
        into.seeds.append({row: {key: one[:, None] for key, one in found.items()} for row, found in wanted.items()})
        into.queries.append(lists.queries.to_list())

    def _run(self, trained: Trained, seed: int, part: str) -> Run:
        return development(trained) if part == VALID else self.experiment.rank(trained, seed, part)

    def _reordered(self, seed: int, part: str, trained: Trained, run: Run) -> Values:
        where = self.experiment.of(seed).parts[part].run
        if (where, str(trained.folder)) not in self._kept:
            lists, valid = self.lists(seed, part), self.lists(seed, VALID)
            both = pl.concat([lists.scores.table, valid.scores.table]).unique("doc_id", maintain_order=True)
            table = replace(lists.scores, table=both.rechunk())
            made = reorderings(run, table, self.experiment.settings.strengths, development(trained))
            found = lists.values(made)
            self._kept[where, str(trained.folder)] = {row: found[row] for row in made}
        return self._kept[where, str(trained.folder)]
