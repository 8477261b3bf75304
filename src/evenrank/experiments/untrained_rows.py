"""Rankings of the same queries in several seeds, by what their figures are made of, and statistics of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenrank.io.types import Array
from evenrank.measures.nested import Mixed, crossed_figures, mixed_test
from evenrank.measures.statistics import bootstrap_means

from .paper_tables import Value

_STEP = 1e-6
"""By which a figure is moved to see what follows from it."""
Figure = Callable[[str, str], Array]
"""A row's figure in a column [D]: as measured (D = 1), or for each bootstrap draw of the queries."""
Statistic = Callable[[Figure], Array]
"""What is made of such figures [D]."""


@dataclass
class Rows:
    """Rankings of the same queries: for each seed, by row and column, what the figure is made of [Q, P].

    The figure is the mean of the only part, or the first part's mean minus the second's. ``queries``: of each seed;
    ``same_queries``: seeds share them, all or some.
    """

    seeds: list[Mapping[str, Mapping[str, Array]]] = field(default_factory=list)
    queries: list[Sequence[str]] = field(default_factory=list)
    same_queries: bool = False

    def over(self, statistic: Statistic) -> Mixed:
        """A statistic's mean over seeds; of one seed, or where seeds share queries, with draws of the queries."""
        values = self.per_seed(statistic)
        if len(self.seeds) > 1 and not self.same_queries:
            return mixed_test([np.array([value]) for value in values])
        draws = np.stack([statistic(self._drawn(number)) for number in range(len(self.seeds))])
        known = ~np.isnan(values)
        return crossed_figures(values[known], draws[known], len(self._places))

    def nested(self, statistic: Statistic) -> Mixed:
        """As :meth:`over`; of several seeds with queries of their own by the test of queries nested in seeds."""
        if len(self.seeds) < 2 or self.same_queries:
            return self.over(statistic)
        return mixed_test([self._each(number, statistic) for number in range(len(self.seeds))])

    def _each(self, number: int, statistic: Statistic) -> Array:
        """A value for each query [Q], whose mean is a seed's statistic, and whose spread is that of the statistic to
        first order (the delta method): how it moves with the mean of each part, times what the query is off that."""
        measured, used = self._measured(number), dict[tuple[str, str], None]()

        def seen(row: str, column: str) -> Array:
            used[row, column] = None
            return measured(row, column)

        value = float(statistic(seen)[0])
        found = np.full(len(self.queries[number]), value)
        for key in used:
            for sign, part in zip((_STEP, -_STEP), self.seeds[number][key[0]][key[1]].T, strict=False):
                moved = float(statistic(_moved(measured, key, sign))[0])
                known = ~np.isnan(part)
                off = np.where(known, part - part[known].mean(), 0.0) * len(part) / max(int(known.sum()), 1)
                found += (moved - value) / _STEP * off
        return found

    def per_seed(self, statistic: Statistic) -> Array:
        """The statistic of each seed [S]; NaN where it is undefined."""
        return np.array([statistic(self._measured(number))[0] for number in range(len(self.seeds))], np.float64)

    def value(self, row: str, column: str, *, absolute: bool = False) -> Value:
        """A figure of a row."""
        size = abs if absolute else np.asarray
        return Value.of_test(self.over(lambda figure: size(figure(row, column))))

    def _measured(self, number: int) -> Figure:
        rows = self.seeds[number]
        return lambda row, column: _figure(_means(rows[row][column]))

    def _drawn(self, number: int) -> Figure:
        draws, places = self._draws[number]
        return lambda row, column: _figure(draws[:, places[row, column]])

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {query: place for place, query in enumerate(dict.fromkeys(q for one in self.queries for q in one))}

    @functools.cached_property
    def _draws(self) -> list[tuple[Array, dict[tuple[str, str], slice]]]:
        """Of each seed, the means of all parts for draws of all seeds' queries [D, ·], the same draws for all."""
        found = []
        for rows, queries in zip(self.seeds, self.queries, strict=True):
            own = [self._places[query] for query in queries]
            columns, places, width = [], {}, 0
            for row, parts in rows.items():
                for column, values in parts.items():
                    placed = np.full((len(self._places), values.shape[1]), np.nan)
                    placed[own] = values
                    columns.append(placed)
                    places[row, column] = slice(width, width + values.shape[1])
                    width += values.shape[1]
            found.append((bootstrap_means(np.concatenate(columns, axis=1), 0), places))
        return found


def _moved(figure: Figure, key: tuple[str, str], by: float) -> Figure:
    """The figures, one of which is moved."""
    return lambda row, column: figure(row, column) + (by if (row, column) == key else 0.0)


def _means(parts: Array) -> Array:
    """The means of the known values of parts [Q, P], as one draw [1, P]."""
    known = ~np.isnan(parts)
    number = known.sum(axis=0)
    total = np.where(known, parts, 0.0).sum(axis=0)
    means: Array = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return means[None]


def _figure(means: Array) -> Array:
    """Figures [D] from the means of their parts [D, P]."""
    found: Array = means[:, 0] - means[:, 1] if means.shape[1] == 2 else means[:, 0]
    return found
