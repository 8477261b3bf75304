"""What is asked of a fairer order, and the method and strength that it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.groups import GroupTable
from evenrank.io.errors import EvenrankError
from evenrank.io.ranges import check_ranges
from evenrank.io.runs import Run
from evenrank.io.wording import are, counted, percent
from evenrank.mitigation.reordering import GroupedLists, Reordering

from .group_sources import GroupSource
from .order_figures import OrderFigures
from .rebalance_budget import Bound
from .rebalance_lists import Changes, Grouping, grouped_lists
from .rebalance_methods import Kept, MethodOptions, in_words, learnt
from .rebalance_search import STEPS, Tuning, chosen_step, least_biased, usual_bias
from .tuning_queries import TuningQueries


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a fairer order; see :func:`evenrank.rebalance`."""

    method: MethodOptions
    source: GroupSource
    strength: float | None
    meet: tuple[Bound, ...]
    keep: tuple[Bound, ...]
    depth: int
    queries: TuningQueries
    seed: int

    def check(self, judged: bool) -> None:
        """Raises EvenrankError for what contradicts itself, before anything long is read."""
        check_ranges(depth=self.depth, seed=self.seed, strength=self.strength)
        self.method.check()
        self.source.check()
        if (self.strength is None) == (not self.bounds):
            raise EvenrankError("expected `strength`, or `meet` and/or `keep`")
        if self.keep and not judged:
            raise EvenrankError("`keep` is about effectiveness: it needs `qrels`")
        if self.queries.given is not None and not self.tunes:
            raise EvenrankError(
                f"`tune_queries`: nothing is chosen, as `strength` is given and {self.method.name} learns nothing"
            )

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds."""
        return (*self.meet, *self.keep)

    @property
    def tunes(self) -> bool:
        """Whether something is chosen on queries that are then not reported on."""
        return bool(self.bounds) or self.method.learns

    def plan(
        self, grouping: Grouping, tuning: Run | None, qrels: pl.DataFrame | None, absent: pl.Series | None = None
    ) -> Plan:
        """The method with its direction, and the strength that meets the bounds; ``tuning``: the queries to tune on.

        ``absent``: judged queries to tune on that the run lacks.

        Raises UnmetError if no strength does.
        """
        table = grouping.table
        if tuning is None:
            return Plan(self.method.make(_no_lists(table), table), self.strength or 0.0, None, {})
        if not self.bounds:
            method = self.method.make(grouping.lists(tuning).lists, table)
            return Plan(method, self.strength or 0.0, None, learnt(method, table.groups))
        measures = list(dict.fromkeys([*(bound.measure for bound in self.bounds), usual_bias(table)]))
        figures = OrderFigures(tuning, grouping, qrels, measures, self.seed, absent)
        if self.keep and not figures.judged:
            raise EvenrankError(
                f"`keep`: the qrels judge none of the {counted(len(figures.queries), 'query')} to tune on"
            )
        method = self.method.make(figures.lists.lists, table)
        found = Tuning(method, figures)
        step = chosen_step(found, self.meet, self.keep, self.method.described, len(tuning.queries))
        if not self.meet:
            step = least_biased(found, self.keep, usual_bias(table), step)
        sizes = tuple(found.size(bound, step) for bound in self.bounds)
        return Plan(method, step / STEPS, sizes, learnt(method, table.groups))


@dataclass(frozen=True, slots=True)
class Plan:
    """A method and a strength. ``sizes``: the bounds' figures on the tuning queries; ``learnt``: the direction."""

    method: Reordering
    strength: float
    sizes: tuple[float, ...] | None
    learnt: dict[str, object]


def restricted(run: Run, chosen: pl.Series) -> Run:
    """The run of those of its queries that are ``chosen`` [Q] (bool)."""
    queries = run.queries.filter(chosen)
    return replace(run, table=run.table.filter(pl.col("query_id").is_in(queries.implode())))


def _no_lists(table: GroupTable) -> GroupedLists:
    empty = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.UInt32})
    return grouped_lists(Run("none", empty), table)


def notes_of(request: Request, plan: Plan, grouping: Grouping, changes: Changes, kept: Kept) -> Iterator[str]:
    """What is to be said of an order, beside its figures."""
    name = request.method.described
    if plan.learnt and request.method.learns:
        yield f"{name}: {in_words(plan.learnt, grouping.table.poles)} (learnt on the tuning queries)."
    if request.keep and not request.meet:
        yield (
            f"Of the strengths tried that keep what they must on the tuning queries, the one with the least bias there"
            f" ({usual_bias(grouping.table)}, in size) was chosen."
        )
    if plan.strength > 0 and not changes.moved:
        yield f"{name}: {_nothing_moved(request.method.name, grouping)}"
    yield from kept.notes(name)
    reach = f"the first {request.depth} ranks"
    if changes.tied:
        yield (
            f"{counted(changes.tied, 'document')} of {changes.total:,} in {reach}"
            f" ({_share(changes.tied, changes.total)}) {are(changes.tied)} tied with a neighbour in the run, which has"
            f" no order of its own there: {name} starts from falling document ids, and so do the figures of the"
            " run. The new run has no ties, so an audit of it cannot see this; its card says it."
        )
    if changes.lacking:
        what = "counted as neutral" if grouping.missing == "neutral" else "kept at their ranks"
        kind = "without a label" if grouping.table.labelled else "without text"
        yield (
            f"{counted(changes.lacking, 'document')} of {changes.total:,} in {reach}"
            f" ({_share(changes.lacking, changes.total)}) {are(changes.lacking)} {kind}: {what}, and the figures"
            f" {'count them so too' if grouping.missing == 'neutral' else 'leave them out'}."
        )
    if grouping.table.settings.get("poles_assumed") and grouping.table.poles is not None:
        first, second = grouping.table.poles
        yield f"The groups compared are assumed to be {first} and {second}."


def _nothing_moved(method: str, grouping: Grouping) -> str:
    """Why a method changed nothing."""
    if method == "neutral" and not (grouping.table.table["neutrality"] > 0).any():
        return "no document is neutral, so that neutral changes nothing: try fair, detconstsort or shift."
    if method in ("neutral", "shift"):
        return "no document moved: the strength is too small to put one before another."
    return "no document moved: the lists already have what is asked of them."


def _share(part: int, total: int) -> str:
    return percent(part / max(total, 1), 1)


def parsed(given: str | Sequence[str] | None, what: str) -> tuple[Bound, ...]:
    """One bound or several."""
    texts = [] if given is None else [given] if isinstance(given, str) else list(given)
    return tuple(Bound.parse(text, "meet" if what == "meet" else "keep") for text in texts)
