"""A run reordered without training beside trained mitigations: measured, chosen on development queries, compared.

A method's strengths make a curve of effectiveness over bias. A trained mitigation is compared with the point of the
curve that has its own bias, between two strengths by linear interpolation: what showing one order to a share of the
queries and the other to the rest has on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.decisions.frontier import sweep
from evenrank.groups import GroupTable
from evenrank.io import Run
from evenrank.io.types import Array
from evenrank.io.wording import counted
from evenrank.measures.nested import Mixed
from evenrank.mitigation.ibbr_weights import best_weight
from evenrank.mitigation.reorderings import METHODS

from .paper_claims import Claim, Verdict, above, below, every, floored
from .paper_tables import Value
from .untrained_rows import Figure, Rows, Statistic

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
