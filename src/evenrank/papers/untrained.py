"""A run reordered without training beside trained mitigations: measured, chosen on development queries, compared.

A method's strengths make a curve of effectiveness over bias. A trained mitigation is compared with the point of the
curve that has its own bias, between two strengths by linear interpolation: what showing one order to a share of the
queries and the other to the rest has on average.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenrank.decide.frontier import sweep
from evenrank.files import Run
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import GroupTable
from evenrank.measures.inference import Mixed, bootstrap_means, crossed_figures, mixed_test
from evenrank.mitigation.ibbr import best_weight
from evenrank.mitigation.reorderings import METHODS

from .paper_page import Claim, Row, Table, Value, Verdict, above, below, every, floored

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


STRENGTHS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
WITHIN = 0.02
"""What counts as equal, and what a reordering may lose: this share of the untouched run's effectiveness."""
KEY = "rebalance"
"""Of the claim."""
ONE_POINT = "the frontier is one point, the run itself: no strength is above 0"
MORE = "another strength"
UNTOUCHED = "the run itself"
"""In the place of a method where no reordering is needed."""


def system(method: str, strength: float) -> str:
    """The row of a method at a strength."""
    return f"{method} {strength:g}"


def positive(strengths: Sequence[float]) -> tuple[float, ...]:
    """The strengths that change something, in their order."""
    return tuple(sorted({one for one in strengths if one > 0}))


def curves_of(strengths: Sequence[float]) -> dict[str, dict[float, str]]:
    """The rows of each method by its strengths above 0."""
    return {name: {one: system(name, one) for one in positive(strengths)} for name in METHODS}


def reorderings(run: Run, table: GroupTable, strengths: Sequence[float], learn: Run) -> dict[str, Run]:
    """The run by every method at every strength, by row. ``learn``: the run of the development queries, which give the
    directions: the protected group, and the sign of the offsets."""
    made = sweep(run, table, tuple(METHODS), positive(strengths), learn=learn) if positive(strengths) else {}
    return {system(*key): one for key, one in made.items()}


@dataclass(frozen=True, slots=True)
class Axis:
    """A measure of bias: nearer 0 is better, or with ``rises`` higher is."""

    column: str
    heading: str
    rises: bool = False

    def sizes(self, values: Array, own: Array) -> tuple[Array, Array]:
        """How biased the points of a curve [K, D] and another ranking [D] are: less is better.

        The run is the curve's first point; where nearer 0 is better, what lies beyond 0 from it is below 0: at some
        mixture of strengths the curve has passed every bias between.
        """
        if self.rises:
            return -values, -own
        towards: Array = np.where(values[:1] < 0, -1.0, 1.0)
        return values * towards, np.abs(own)


def interpolated(bias: Array, useful: Array, target: Array) -> Array:
    """The effectiveness [D] with which curves first come down to a bias ``target`` [D]; NaN where they never do.

    ``bias`` and ``useful`` [K, D]: of the points of the curve in their order, the first of which is the run itself. A
    run that has no more than the target needs no other point.
    """
    reached = bias <= target
    here = reached.argmax(axis=0)[None]
    before = np.maximum(here - 1, 0)
    (high, low), (first, second) = (
        [np.take_along_axis(one, place, axis=0)[0] for place in (before, here)] for one in (bias, useful)
    )
    share = np.divide(high - target, high - low, out=np.ones(len(target)), where=high > low)
    found: Array = np.where(reached.any(axis=0), first + np.minimum(share, 1.0) * (second - first), np.nan)
    return found


@dataclass(frozen=True)
class Frontier:
    """A ranker's run and its reorderings beside trained mitigations.

    run: the row of the run itself, in all rows; ``curves``: for each method its rows by strength, without it;
    ``dev``: the first seed's development queries, on which everything is chosen; ``test``: those that are reported.
    """

    run: str
    curves: Mapping[str, Mapping[float, str]]
    dev: Rows
    test: Rows
    utility: str

    def ahead(self, method: str, trained: str, axis: Axis) -> Statistic:
        """The effectiveness of a method at the bias of a trained mitigation, minus that one's."""
        names = [self.run, *self.curves[method].values()]

        def statistic(figure: Figure) -> Array:
            bias, target = axis.sizes(np.stack([figure(n, axis.column) for n in names]), figure(trained, axis.column))
            useful = np.stack([figure(name, self.utility) for name in names])
            return interpolated(bias, useful, target) - figure(trained, self.utility)

        return statistic

    def method(self, trained: str, axis: Axis) -> str | None:
        """The method that is best at a trained mitigation's bias on the development queries; where none reaches it,
        the one that comes nearest. None without a strength above 0."""

        def nearest(method: str) -> float:
            names = [self.run, *self.curves[method].values()]
            sizes = self.dev.per_seed(
                lambda figure: axis.sizes(np.stack([figure(n, axis.column) for n in names]), np.zeros(1))[0].min(axis=0)
            )
            return -float(sizes[0])

        methods = [method for method, curve in self.curves.items() if curve]
        ahead = {method: float(self.dev.per_seed(self.ahead(method, trained, axis))[0]) for method in methods}
        reaching = [method for method in methods if not np.isnan(ahead[method])]
        return max(reaching, key=ahead.__getitem__) if reaching else max(methods, key=nearest, default=None)

    def untouched(self, trained: str, axis: Axis) -> bool:
        """Whether the run itself has no more bias than a trained mitigation, in every seed's test queries."""

        def already(figure: Figure) -> Array:
            bias, target = axis.sizes(figure(self.run, axis.column)[None], figure(trained, axis.column))
            return np.where(bias[0] <= target, 1.0, 0.0)

        return bool(self.test.per_seed(already).all())

    def best(self, axis: Axis) -> dict[str, float]:
        """The strength of each method that its development queries choose, by the rule of the trained terms' weights:
        least bias among those that keep 95% of the run's effectiveness. 0: none keeps it."""
        found = {}
        for method, curve in self.curves.items():
            bias = [self._on_development(name, axis.column) for name in curve.values()]
            sizes = [-one if axis.rises else abs(one) for one in bias]
            kept = [self._on_development(name, self.utility) for name in curve.values()]
            place = best_weight(kept, sizes, self._on_development(self.run, self.utility)) if curve else None
            found[method] = 0.0 if place is None else [*curve][place]
        return found

    def _on_development(self, row: str, column: str) -> float:
        return float(self.dev.per_seed(lambda figure: figure(row, column))[0])


@dataclass(frozen=True, slots=True)
class Line:
    """A trained mitigation, and how the best reordering compares at its bias.

    labels: which ranker and queries; ``method``: chosen on development queries; ``difference``: its effectiveness at
    the trained one's bias minus the trained one's; ``limit``: what it may lose; ``control``: the row is no mitigation
    of the paper, and the claim does not count it.
    """

    labels: tuple[str, ...]
    trained: str
    axis: Axis
    method: str | None
    difference: Value
    limit: float
    mark: str
    verdict: Verdict
    control: bool = False

    def __str__(self) -> str:
        said = " ".join(filter(None, (*self.labels, self.trained)))
        if self.method is None or self.difference.mean is None:
            return f"{said} at its {self.axis.heading}: {self.mark}"
        n = counted(self.difference.n, self.difference.unit.removesuffix("s").replace("querie", "query"))
        return f"{said} at its {self.axis.heading}: {self.method} {self.difference.signed()}, {n}: {self.mark}"


def compare(
    frontier: Frontier, trained: str, axis: Axis, labels: tuple[str, ...] = (), *, control: bool = False
) -> Line:
    """A trained mitigation against the method that development queries choose, on the test queries."""
    method = frontier.method(trained, axis)
    if method is None:
        verdict = Verdict(None, "a strength above 0")
        return Line(labels, trained, axis, None, Value(None), 0.0, ONE_POINT, verdict, control)
    statistic = frontier.ahead(method, trained, axis)
    reached = int((~np.isnan(frontier.test.per_seed(statistic))).sum())
    test = frontier.test.nested(statistic)
    seeds = len(frontier.test.seeds)
    base = frontier.test.value(frontier.run, frontier.utility).mean or 0.0
    mark, verdict = judged(test, WITHIN * base, reached, seeds, axis.heading)
    # A mean over some of the seeds would say nothing of the others.
    difference = Value.of_test(test) if reached == seeds else Value(None)
    shown = UNTOUCHED if frontier.untouched(trained, axis) else method
    return Line(labels, trained, axis, shown, difference, WITHIN * base, mark, verdict, control)


def judged(test: Mixed, limit: float, reached: int, seeds: int, bias: str) -> tuple[str, Verdict]:
    """In words and as a verdict, how a reordering compares: it must not be worse by ``limit`` or more.

    ``reached``: in how many of the seeds it comes down to the trained mitigation's bias. Equivalence and
    non-inferiority by one-sided tests at 5%, the rest by the 95% interval.
    """
    if not reached:
        return f"loses: it does not reach that {bias}", Verdict(False)
    if reached < seeds:
        return f"not decidable: it reaches that {bias} in {reached} of {seeds} seeds", Verdict(None, MORE)
    value, narrow = Value.of_test(test), Value.of_test(test, 0.90)
    kept = above(narrow, -limit)
    if kept.supported:
        if above(value).supported:
            return "beats", kept
        equal = below(narrow, limit).supported
        return (f"equal within {WITHIN:.0%}" if equal else f"not worse by {WITHIN:.0%}"), kept
    shown = value.ci95 is not None and value.ci95[1] < 0
    if kept.supported is False or shown:
        return f"loses {abs(value.mean or 0.0):.4f}", Verdict(False)
    return "not decidable", kept


def rebalance_claim(paper: str, lines: Sequence[Line], *floors: Verdict) -> Claim | None:
    """Whether reordering beats or equals every trained mitigation; None if there is none. ``floors``: as in
    :func:`floored`."""
    counts = [line for line in lines if not line.control]
    if not counts:
        return None
    if all(line.method is None for line in counts):
        return Claim.of(paper, KEY, counts[0].verdict, ONE_POINT)
    verdict = every(*(line.verdict for line in counts))
    return Claim.of(paper, KEY, floored(verdict, *floors), "; ".join(map(str, counts)))


Cells = Mapping[str, tuple[str, bool]]
"""For each column of a table the column of the rows, and whether its absolute value is shown."""


def frontier_rows(frontier: Frontier, cells: Cells, axis: Axis, labels: tuple[str, ...] = ()) -> list[Row]:
    """The run itself, and each method by strength; "(best)" marks the strength that development queries chose."""
    best = frontier.best(axis)
    named = [(frontier.run, "0", frontier.run)]
    for method, curve in frontier.curves.items():
        named += [(method, f"{s:g}{' (best)' if s == best[method] else ''}", row) for s, row in curve.items()]
    return [
        Row((*labels, method, strength), _measured(frontier, row, cells), control=row == frontier.run)
        for method, strength, row in named
    ]


def _measured(frontier: Frontier, row: str, cells: Cells) -> dict[str, Value]:
    found = {key: frontier.test.value(row, column, absolute=size) for key, (column, size) in cells.items()}
    return {key: value for key, value in found.items() if value.mean is not None}


def placed(frontier: Frontier, row: str, axis: Axis) -> tuple[Value, Value]:
    """Where a row stands in a plane: effectiveness, and bias."""
    bias = frontier.test.value(row, axis.column, absolute=not axis.rises)
    return frontier.test.value(row, frontier.utility), bias


def drawn(frontier: Frontier, axis: Axis) -> dict[str, list[tuple[str, Value, Value]]]:
    """The curve of each method from the run on, for a plane: name, effectiveness, and bias. It ends where it has lost a
    fifth of the effectiveness or doubled the bias: what lies beyond would leave no room for the rest."""

    def point(row: str) -> tuple[str, Value, Value]:
        return row, *placed(frontier, row, axis)

    own = point(frontier.run)
    found = {}
    for method, curve in frontier.curves.items():
        points = itertools.takewhile(lambda one: _near(one, own, axis), map(point, curve.values()))
        if curve:
            found[method] = [own, *points]
    return found


def _near(point: tuple[str, Value, Value], own: tuple[str, Value, Value], axis: Axis) -> bool:
    means = [value.mean for value in (*point[1:], *own[1:])]
    if None in means:
        return False
    useful, bias, before, least = (float(mean or 0.0) for mean in means)
    return useful >= 0.8 * before and (axis.rises or bias <= 2 * least)


def frontier_table(
    rows: Sequence[Row], headings: Mapping[str, str], labels: tuple[str, ...], run: str, digits: int = 3
) -> Table:
    """``run``: the name of the ranker whose runs are reordered."""
    notes = (
        "The protected group and the sign of the offsets are learnt on the development queries of each seed. (best):"
        " the strength with the least bias on those of the first seed that keeps 95% of the effectiveness there, the"
        " rule by which a trained term's weight is chosen. Intervals over seeds; with one seed, or where seeds share"
        " queries, bootstrap draws of the queries count too.",
    )
    title = f"Rebalance: {run}'s runs reordered, without training"
    return Table("Rebalance", title, (*labels, "method", "strength"), headings, tuple(rows), notes, digits)


def against_table(lines: Sequence[Line], labels: tuple[str, ...], utility: str, digits: int = 4) -> Table:
    """Each trained mitigation beside the reordering with the same bias."""
    rows = [
        Row(
            (*line.labels, line.trained, line.axis.heading, line.method or "none", line.mark),
            {} if line.difference.mean is None else {
                "difference": line.difference,
                "limit": Value(-line.limit, line.difference.n, line.difference.unit),
            },
            control=line.control,
        )
        for line in lines
    ]  # fmt: skip
    notes = (
        "Difference: what the reordering has at the trained mitigation's bias on the same queries, minus what that one"
        " has. The method is the best at that bias on the first seed's development queries; between two strengths by"
        " linear interpolation, which is what showing one order for a share of the queries has on average.",
        f"equal, not worse: by less than {WITHIN:.0%} of the untouched run's {utility}, by one-sided tests at 5%;"
        " beats: the 95% interval is above 0, too. It includes what chance does to the mitigation's own bias.",
    )
    headings = {"difference": f"{utility}: difference", "limit": "may lose"}
    title = "Trained mitigations against reordering at the same bias"
    return Table(
        "Rebalance against trained",
        title,
        (*labels, "trained", "bias", "method", "reordering"),
        headings,
        tuple(rows),
        notes,
        digits,
    )
