"""The figures of a study: for each system and seed a value per query, and every comparison of two of them.

A figure of a whole run enters as values whose mean it is, so that one test serves all: see :func:`influence`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.files import Array, atomic_path, make_folder
from evenrank.stats import (
    LEAST_SEEDS,
    Estimate,
    MeanEstimate,
    RandomEffects,
    combined_estimate,
    of_trainings,
    p_two_sided,
    random_effects_test,
    size_test,
)


def influence(first: Array, second: Array) -> Array:
    """Values [Q] whose mean is mean(first) − mean(second), each mean over the queries that have it (NaN: has not).

    Each query enters with its influence on the difference, so that the error of their mean is that of the difference
    of two means over overlapping queries: x_q = d + Q (1[a_q] (a_q − ā) / n_a − 1[b_q] (b_q − b̄) / n_b), d = ā − b̄.
    NaN for every query if one of the two has no value.

    >>> influence(np.array([0.5, np.nan, 0.7]), np.array([0.2, 0.4, np.nan])).mean().round(12)
    0.3
    """
    known = [~np.isnan(values) for values in (first, second)]
    if not all(mask.any() for mask in known):
        return np.full(len(first), np.nan)
    means = [values[there].mean() for values, there in zip((first, second), known, strict=True)]
    influences = np.full(len(first), means[0] - means[1])
    for values, there, mean, sign in zip((first, second), known, means, (1, -1), strict=True):
        influences[there] += sign * len(first) * (values[there] - mean) / there.sum()
    return influences


def ratio_values(first: Array, second: Array) -> Array:
    """Values [Q] whose mean is the ratio of two means of the same queries, r = mean(first)/mean(second): r and a
    query's influence on it, r + (a_q − r b_q) / mean(second), so that the error of their mean is that of the ratio.

    >>> ratio_values(np.array([0.2, 0.4]), np.array([0.5, 0.7])).mean().round(12)
    0.5
    """
    ratio = first.mean() / second.mean()
    values: Array = ratio + (first - ratio * second) / second.mean()
    return values


EXACT = "counts"
_COLUMNS = {
    "figure": pl.String,
    "system": pl.String,
    "seed": pl.Int64,
    "id": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
}


@dataclass
class Figures:
    """Values by figure, system, seed and query.

    ``same_queries``: seeds share their queries, all of them or some, so that a query counts once; otherwise each seed
    has queries of its own, whatever their ids.
    """

    same_queries: bool
    values: dict[tuple[str, str], dict[int, dict[str, float]]] = field(default_factory=lambda: defaultdict(dict))
    units: dict[str, str] = field(default_factory=dict)
    """What a figure has a value for, in the plural, where that is not queries; EXACT: counted, without an error."""

    def add(
        self, figure: str, system: str, seed: int, ids: Sequence[str], values: Array, unit: str = "queries"
    ) -> None:
        """Adds a value for each of ``ids``, beside those of other queries; NaN where there is none."""
        self.values[figure, system].setdefault(seed, {}).update(zip(ids, values.tolist(), strict=True))
        self.units[figure] = unit

    def take(self, other: Figures, seed: int) -> None:
        """Adds all values of another one as those of a seed."""
        for (figure, system), seeds in other.values.items():
            for values in seeds.values():
                self.add(figure, system, seed, [*values], np.array([*values.values()]), other.units[figure])

    def write(self, file: Path) -> None:
        """Writes them as Parquet, a row a value: ``figure``, ``system``, ``seed``, ``id``, ``value``, ``unit``."""
        rows = [
            (figure, system, seed, name, value, self.units.get(figure, "queries"))
            for (figure, system), seeds in self.values.items()
            for seed, values in seeds.items()
            for name, value in values.items()
        ]
        make_folder(file.parent)
        with atomic_path(file) as part:
            pl.DataFrame(rows, _COLUMNS, orient="row").write_parquet(
                part, compression_level=19, metadata={"same_queries": str(self.same_queries)}
            )

    @classmethod
    def read(cls, file: Path) -> Figures:
        """The figures of such a file."""
        figures = cls(pl.read_parquet_metadata(file)["same_queries"] == "True")
        names = ["figure", "system", "seed", "unit"]
        for (figure, system, seed, unit), rows in pl.read_parquet(file).group_by(names, maintain_order=True):
            figures.add(
                str(figure), str(system), int(str(seed)), rows["id"].to_list(), rows["value"].to_numpy(), str(unit)
            )
        return figures

    def only(self, wanted: Collection[tuple[str, str]]) -> Figures:
        """Those of the wanted figures of systems."""
        subset = {name: values for name, values in self.values.items() if name in wanted}
        return Figures(self.same_queries, subset, {figure: self.units.get(figure, "queries") for figure, _ in subset})

    def has(self, figure: str, system: str) -> bool:
        """Whether there is a value."""
        return any(
            not np.isnan(value) for by_id in self.values.get((figure, system), {}).values() for value in by_id.values()
        )

    def systems(self, figure: str) -> list[str]:
        """The systems that have the figure, in the order in which they were added."""
        return [system for name, system in self.values if name == figure]

    def aligned(self, figure: str, *systems: str) -> Iterator[tuple[int, list[str], list[Array]]]:
        """Of each seed of the first system the ids that all systems have, and the values [ids] of each; nothing if one
        has no values."""
        first, *others = (self.values.get((figure, system), {}) for system in systems)
        for seed, values in first.items():
            if all(seed in other for other in others):
                ids = [name for name in values if all(name in other[seed] for other in others)]
                yield seed, ids, [np.array([by_seed[seed][name] for name in ids]) for by_seed in (first, *others)]

    def mean(self, figure: str, system: str) -> float:
        """The mean over seeds of the mean over queries."""
        return float(np.nanmean([np.nanmean([*value.values()]) for value in self.values[figure, system].values()]))

    def row(self, name: str, system: str) -> Estimate | None:
        """A system's figure with its interval over seeds and queries, between bars without its sign; None: it has
        none."""
        figure = name.strip("|")
        if not self.has(figure, system):
            return None
        return self.as_estimate(self.test(figure, {system: 1.0}, size=name.startswith("|")), figure)

    def as_estimate(self, test: RandomEffects, figure: str) -> Estimate:
        """A test's mean with its 95% interval; its n is that of what limits it, seeds or queries."""
        unit = self.units.get(figure, "queries") if test.limit == "queries" else "seeds"
        return Estimate(test.mean, test.interval(), test.n, unit)

    def test(
        self, figure: str, weights: Mapping[str, float], constant: float = 0.0, *, size: bool = False
    ) -> RandomEffects:
        """The sum of ``weights`` × the systems' figures + ``constant``, by :func:`random_effects_test`.

        Systems are paired within a query; where they share none, each has its own error (Welch). ``size``: of the
        absolute figure |mean| of a system, less that of another one or a constant, by :func:`size_test`.
        """
        if self.units.get(figure) == EXACT:
            total = constant + sum(weight * self.mean(figure, system) for system, weight in weights.items())
            return RandomEffects(total, MeanEstimate(total, 0.0, 1.0), None, 0, 1)
        known = {system: self.values[figure, system] for system in weights}
        seeds = [seed for seed in next(iter(known.values())) if all(seed in by_seed for by_seed in known.values())]
        ids = {system: {key for seed in seeds for key in known[system][seed]} for system in weights}
        if len(weights) > 1 and not set.intersection(*ids.values()):
            return self._apart(known, weights, constant, seeds)
        every = sorted(set.union(*ids.values())) if self.same_queries else None
        columns = {system: list[Array]() for system in weights}
        for seed in seeds:
            names = every if every is not None else list(next(iter(known.values()))[seed])
            for system, column in columns.items():
                column.append(np.array([known[system][seed].get(name, np.nan) for name in names]))
        if size:
            first, *second = columns.values()
            other = second[0] if second else [np.full(len(values), -constant) for values in first]
            factor = -weights[list(columns)[1]] if second else 1.0
            return size_test(first, other, factor, same_queries=self.same_queries)
        totals = [
            sum((weights[system] * column[place] for system, column in columns.items()), np.full(len(some), constant))
            for place, some in enumerate(next(iter(columns.values())))
        ]
        return random_effects_test(totals, same_queries=self.same_queries)

    @staticmethod
    def _apart(
        known: Mapping[str, Mapping[int, Mapping[str, float]]],
        weights: Mapping[str, float],
        constant: float,
        seeds: Sequence[int],
    ) -> RandomEffects:
        """Of systems with other queries each: a query's mean over seeds is one value; from five on with V_seeds."""
        samples = []
        for by_seed in known.values():
            of_query = defaultdict[str, list[float]](list)
            for values in by_seed.values():
                for query, value in values.items():
                    if not np.isnan(value):
                        of_query[query].append(value)
            samples.append(np.array([np.mean(values) for values in of_query.values()]))
        mean = combined_estimate(samples, list(weights.values()))
        mean = replace(mean, value=mean.value + constant)
        queries = sum(map(len, samples))
        if len(seeds) >= LEAST_SEEDS:
            means = [sum(w * np.nanmean([*known[s][seed].values()]) for s, w in weights.items()) for seed in seeds]
            return of_trainings(mean.value, np.array(means), mean.se**2, queries)
        return RandomEffects(mean.value, mean, p_two_sided(mean) if mean.se else None, len(seeds), queries)
