"""Every method at every strength, beside other runs and references: what a team decides on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import floor, log10
from typing import Annotated, Any, ClassVar, NamedTuple, Unpack, cast

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.auditing.data import NEUTRAL_FIRST, RANDOM, RELEVANCE_FIRST, shown_name
from evenrank.auditing.plane import Placed, PlanePoint, draw_plane
from evenrank.files import EvenrankError, Order, Provenance, Run, as_qrels, as_run
from evenrank.files.arguments import check_ranges, checked
from evenrank.files.convert import strings
from evenrank.files.errors import quoted
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.types import Array
from evenrank.files.wording import counted, percent
from evenrank.groups import GroupTable
from evenrank.measures import OfMissing, Target, greatest_value, is_bias, parse_measure, resolve
from evenrank.measures import inference as st
from evenrank.measures.base import mean_of
from evenrank.measures.inference import Comparison
from evenrank.mitigation.reorderings import METHODS, Reordering
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.finding import Level as Sure
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import Column, Interval, P, Table, digits, mark, short_intervals, shorts, with_interval

from .rebalance import (
    TuningQueries,
    absence_findings,
    absent_queries,
    note_inputs,
    only_ids,
    only_those,
    restricted,
    unknown_findings,
    usual_bias,
)
from .rebalance_lists import (
    DEPTH,
    OWNERS,
    Grouping,
    ListGroups,
    MethodOptions,
    OrderFigures,
    RunLists,
    check_top,
    in_words,
    learnt,
)

__all__ = ["STRENGTHS", "Frontier", "Point", "frontier", "sweep"]

BLIND = "blind"
LEVELS = (0.5, 0.25)
"""The shares of the run's bias at which the methods are compared."""
_JUMP = 0.1
"""From which share of the run's bias on two neighbouring strengths are called a jump."""


class Level(NamedTuple):
    """A mean with its interval."""

    mean: float | None
    ci95: Interval | None


@dataclass(frozen=True, slots=True)
class Point:
    """One ranking in the plane of effectiveness against bias.

    Attributes:
        name: The method and its strength, or the name of a run or a reference.
        method, strength: None for a run that was given and for a reference.
        utility, bias: The mean over queries and its 95% interval; a mean of None is undefined.
        utility_difference, bias_difference: The figures minus the run's; None for the run itself.
        beyond: Effectiveness minus that of the straight line from the run to ``blind`` at the same bias; None without
            such a run, and for a point whose bias is not between theirs.
        reference: Whether it is a reference ranking of the run's documents.
    """

    name: str
    method: str | None
    strength: float | None
    utility: Level
    bias: Level
    utility_difference: Comparison | None = None
    bias_difference: Comparison | None = None
    beyond: Comparison | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class EqualBias:
    """What a method costs at a given bias, between the two strengths that are nearest.

    Attributes:
        share: The bias, as a share of the run's distance to none (or to the best of the methods).
        bias: The figure itself.
        method: The method; ``strength``: interpolated.
        between: The two strengths; ``biases``: their figures; ``jump``: whether these are so far apart that no strength
            that was tried has this bias.
        utility: The mean over queries, interpolated as each query's value is; the weights are taken as given.
        cost: Effectiveness minus the run's, corrected over the methods at this bias.
        behind: Effectiveness minus that of the method that costs least, corrected over all pairs of methods at this
            bias, as which one costs least is found on the same queries; None for that one.
        no_loss: Whether it is shown to lose no more than 5% of the run's effectiveness; None without a test.
    """

    share: float
    bias: float
    method: str
    strength: float
    utility: float
    cost: Comparison
    behind: Comparison | None
    no_loss: bool | None = None
    between: tuple[float, float] = (0.0, 0.0)
    biases: tuple[float, float] = (0.0, 0.0)
    jump: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """The values of a ranking: effectiveness and bias of each query [Q], NaN where undefined."""

    name: str
    utility: Array
    bias: Array
    method: str | None = None
    strength: float | None = None
    reference: bool = False


def _estimated(values: Array, *, signed: bool = False) -> Level:
    found = st.compare(values) if signed else st.estimate(values)
    return Level(found.mean, found.ci95)


class Plane:
    """Rankings of the same queries; the first one is the run that all others are compared with."""

    def __init__(self, rankings: Sequence[Ranking], bias: Measure, greatest: float | None = 1.0) -> None:
        self.rankings, self.greatest = tuple(rankings), greatest
        self.run = self.rankings[0]
        mean = mean_of(self.run.bias) or 0.0
        how = resolve(bias)
        self._sign = -1.0 if how.better == "higher" or (how.signed and mean < 0) else 1.0
        self._to_zero, self._signed = how.better != "higher", how.signed

    def gap(self, ranking: Ranking) -> float:
        """How biased a ranking is: 0 or less is not at all, or, of a measure where more is better, minus its figure."""
        mean = mean_of(ranking.bias)
        return np.nan if mean is None else self._sign * mean

    def points(self) -> tuple[Point, ...]:
        """All rankings with intervals; those of differences are paired."""
        run = self.run
        blind = next((one for one in self.rankings if one.name == BLIND and one.method is None), None)
        lines = [None if blind is None else self._line(run, blind, one) for one in self.rankings]
        others = [(one, line) for one, line in zip(self.rankings, lines, strict=True) if one is not run]
        # Corrected over all points: each of them is looked at.
        utility = iter(st.corrected([st.compare(one.utility - run.utility) for one, _ in others]))
        bias = iter(st.corrected([st.compare(one.bias - run.bias) for one, _ in others]))
        beyond = iter(st.corrected([st.compare(one.utility - line) for one, line in others if line is not None]))
        return tuple(
            Point(
                one.name,
                one.method,
                one.strength,
                _estimated(one.utility),
                _estimated(one.bias, signed=self._signed),
                None if one is run else next(utility),
                None if one is run else next(bias),
                None if one is run or line is None else next(beyond),
                reference=one.reference,
            )
            for one, line in zip(self.rankings, lines, strict=True)
        )

    def _line(self, run: Ranking, blind: Ranking, one: Ranking) -> Array | None:
        """Effectiveness [Q] on the straight line from the run to ``blind``, at the bias of a ranking."""
        if one is run or one is blind or one.reference:
            return None
        start, end, own = self.gap(run), self.gap(blind), self.gap(one)
        if not end < start or not end <= own <= start:
            return None
        part = (start - own) / (start - end)
        line: Array = (1 - part) * run.utility + part * blind.utility
        return line

    @property
    def methods(self) -> dict[str, list[Ranking]]:
        """The path of each method: the run, then the rankings by rising strength."""
        names = dict.fromkeys(one.method for one in self.rankings if one.method is not None)
        return {
            name: [
                replace(self.run, strength=0.0),
                *sorted((one for one in self.rankings if one.method == name), key=lambda one: one.strength or 0.0),
            ]
            for name in names
        }

    def levels(self) -> dict[float, float]:
        """The biases, as :meth:`gap` has them, at which methods are compared, by their shares; none without bias."""
        start = self.gap(self.run)
        best = 0.0 if self._to_zero else min(self.gap(one) for path in self.methods.values() for one in path)
        if not start > best + st.NEAR_ZERO:
            return {}
        return {share: best + share * (start - best) for share in LEVELS}

    def equal(self, levels: Mapping[float, float] | None = None) -> tuple[EqualBias, ...]:
        """The methods at the same bias, the one that costs least first; ``levels``: by default :meth:`levels`."""
        methods = self.methods
        levels = self.levels() if levels is None else levels
        return tuple(one for share, level in levels.items() for one in self._at(share, level, methods))

    def between(self, method: str, level: float) -> tuple[float, float] | None:
        """The strengths between which a method first comes down to a bias; None if it does not."""
        found = self._ends(self.methods[method], level)
        return None if found is None else (found[0].strength or 0.0, found[1].strength or 0.0)

    def _ends(self, path: list[Ranking], level: float) -> tuple[Ranking, Ranking] | None:
        """The neighbours on a method's path between which it first comes down to a bias."""
        pairs = itertools.pairwise(path)
        return next(((one, other) for one, other in pairs if self.gap(one) > level >= self.gap(other)), None)

    def _at(self, share: float, level: float, methods: Mapping[str, list[Ranking]]) -> Iterator[EqualBias]:
        found = {method: ends for method, path in methods.items() if (ends := self._ends(path, level)) is not None}
        if not found:
            return
        parts = {method: self._part(ends, level) for method, ends in found.items()}
        reached = {
            method: (1 - parts[method]) * before.utility + parts[method] * after.utility
            for method, (before, after) in found.items()
        }
        names = sorted(reached, key=lambda name: -(mean_of(reached[name]) or 0.0))
        pairs = itertools.combinations([reached[name] for name in names], 2)
        # Those with the best come first. It is the best of these queries, so that any pair could have been one.
        behind = [None, *st.corrected([st.compare(second - first) for first, second in pairs])]
        costs = st.corrected([st.compare(reached[name] - self.run.utility) for name in names])
        for method, cost, apart in zip(names, costs, behind, strict=False):
            values, part, (before, after) = reached[method], parts[method], found[method]
            strengths = before.strength or 0.0, after.strength or 0.0
            yield EqualBias(
                share,
                self._sign * level,
                method,
                (1 - part) * strengths[0] + part * strengths[1],
                mean_of(values) or 0.0,
                cost,
                apart,
                self._no_loss(values, len(names)),
                strengths,
                (self._sign * self.gap(before), self._sign * self.gap(after)),
                self._is_jump(before, after, level),
            )

    def _no_loss(self, values: Array, methods: int) -> bool | None:
        """Whether values [Q] are shown to lose no more than 5% of the run's; None without a test.

        Corrected for the number of ``methods``, of which the best one is looked at.
        """
        test = st.no_loss(values, self.run.utility, greatest=self.greatest)
        return None if test is None else test.p_holds() <= st.SIGNIFICANT / methods

    def _part(self, ends: tuple[Ranking, Ranking], level: float) -> float:
        """How far a bias is on the way from one ranking to another."""
        high, low = map(self.gap, ends)
        return (high - level) / (high - low)

    def _is_jump(self, before: Ranking, after: Ranking, level: float) -> bool:
        """Whether two rankings are far apart, beside the way from the run to this bias, and neither has it."""
        high, low, way = self.gap(before), self.gap(after), self.gap(self.run) - level
        return high - low > _JUMP * way and level - low > _JUMP / 2 * way and high - level > _JUMP / 2 * way


@dataclass(frozen=True, repr=False)
class Frontier(Result):
    """What :func:`evenrank.frontier` returns.

    Attributes:
        name: The run's name.
        points: The run, every method at every strength, the runs beside it, and the references.
        equal: The methods at the same bias, the one that costs least first.
        measures: Of effectiveness and of bias.
        queries: Number of queries that are reported; ``absent``: of these, judged ones that the run lacks.
        settings, notes, provenance: How it was made.
        lacks: What is said of judged queries that the run lacks, and of documents without a label or text;
            ``warnings``: the sentences.
    """

    also: ClassVar = ("warnings",)
    name: str = field(metadata=named("run"))
    points: tuple[Point, ...]
    equal: tuple[EqualBias, ...] = field(metadata=named("equal_bias"))
    measures: tuple[Measure, Measure] = field(metadata=LEFT_OUT)
    queries: int
    settings: dict[str, object]
    notes: tuple[str, ...]
    absent: int = 0
    lacks: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is said first: of judged queries that the run lacks, and of documents without a label or text."""
        return tuple(one.text for one in self.lacks)

    def __getitem__(self, name: str) -> Point:
        """The point of that name."""
        return next(point for point in self.points if point.name == name)

    def page(self) -> Page:
        """The figures as a page."""
        return frontier_page(self)

    def _beside(self) -> Mapping[str, object]:
        return dict(zip(("utility", "bias"), self.measures, strict=True))


def method_names(found: Frontier) -> list[str]:
    """The methods, in the order of the points."""
    return list(dict.fromkeys(point.method for point in found.points if point.method is not None))


def _reached(found: Frontier, named: dict[str, Any]) -> Finding:
    """That no method comes down to the first level, and which comes nearest; or that there is nothing to take away."""
    run = found.points[0].bias[0] or 0.0
    points = [(abs(one.bias[0]), one) for one in found.points if one.method is not None and one.bias[0] is not None]
    if abs(run) <= st.NEAR_ZERO or not points:
        return _SAYS.find("nothing_to_take", found.name, "cannot be told", None, "answer", **named)
    _, least = min(points, key=lambda of: of[0])
    values = named | {"before": run, "after": least.bias[0], "method": least.method, "share": LEVELS[0]}
    cost = least.utility_difference
    return _SAYS.find("none_reaches", found.name, "shown", cost, "answer", cost=cost, **values)


def frontier_findings(found: Frontier) -> Iterator[Finding]:
    """What the figures at equal bias show, at the level nearest to the run first."""
    utility, bias = found.measures
    named: dict[str, Any] = {"bias": shown_name(bias), "utility": shown_name(utility)}
    if found.points[0].bias[0] is None:
        yield _SAYS.find("undefined", found.name, "cannot be told", None, "answer", **named)
    elif not found.equal:
        yield _reached(found, named)
    best_is_high = resolve(bias).better == "higher"
    for number_, (share, group) in enumerate(groupby(found.equal, key=lambda one: one.share)):
        levels = list(group)
        least, others = levels[0], levels[1:]
        of = (
            f"the distance from the run's {shown_name(bias)} to the best"
            if best_is_high
            else f"the run's {shown_name(bias)}"
        )
        at: dict[str, Any] = named | {"figure": least.bias, "of": of, "method": least.method, "why": least.cost.why}
        place: Place = "answer" if not number_ else "finding"
        subject = f"At {percent(share)}"
        yield _SAYS.find(_cost(least), subject, least.cost.verdict, least.cost, place, cost=least.cost, **at)
        for one in others[:1]:
            if one.behind is not None:
                key = "next_worse" if one.behind.shown else "next_alike" if one.behind.why is None else "next_untold"
                values = named | {"method": one.method, "behind": one.behind, "why": one.behind.why}
                yield _SAYS.find(key, subject, one.behind.verdict, one.behind, **values)
        lacking = [name for name in method_names(found) if name not in [one.method for one in levels]]
        if lacking:
            yield _SAYS.find("not_reached", subject, "shown", methods=lacking)
    jumps = {one.method: one for one in reversed(found.equal) if one.jump}
    yield from (_jump(one, named) for one in jumps.values())
    beyond = [point for point in found.points if point.method is not None and point.beyond is not None]
    if beyond:
        shown = sorted({str(one.method) for one in beyond if _above(one.beyond)})
        key, level = ("beyond", "shown") if shown else ("none_beyond", "no difference shown")
        yield _SAYS.find(key, BLIND, cast("Sure", level), methods=shown)


def _cost(one: EqualBias) -> str:
    """What a method costs beside the run; nothing only where a loss of more than the margin is ruled out."""
    if one.cost.shown and one.cost.mean is not None and one.cost.mean > 0:
        return "gains"
    if one.no_loss:
        return "within"
    return "least" if one.cost.why is None else "cost_untold"


def _jump(one: EqualBias, named: Mapping[str, Any]) -> Finding:
    low, high = map(strength_text, one.between)
    before, after = one.biases
    values = {"method": one.method, "figure": one.bias, "low": low, "high": high, "before": before, "after": after}
    return _SAYS.find("jump", one.method, "shown", None, "note", **named, **values)


def strength_text(value: float) -> str:
    """A strength with three digits, or as many as tell it from 0 and 1."""
    near = min(value, 1 - value)
    return f"{value:g}" if near <= 0 else f"{value:.{max(3, 1 - floor(log10(near)))}f}"


def _above(apart: Comparison | None) -> bool:
    return apart is not None and apart.mean is not None and apart.mean > 0 and apart.shown


def notes_on(
    lists: RunLists, grouping: Grouping, methods: Mapping[str, Reordering], others: Mapping[str, Run]
) -> Iterator[str]:
    """What a reader of a frontier of these lists should know; ``others``: the runs beside."""
    yield (
        "random, neutral-first and relevance-first are orders of the run's own candidates: relevance-first by falling"
        " grade, unjudged documents as grade 0, equal grades in expectation."
    )
    if "neutral" in methods and not lists.lists.neutrality.any():
        yield "neutral changes nothing: none of the documents is neutral."
    if lists.tied:
        yield (
            f"{counted(lists.tied, 'document')} of {lists.total:,} in the first {grouping.depth} ranks are tied with a"
            " neighbour in the run: the methods start from falling document ids there, and so do all figures."
        )
    if "blind" not in others:
        yield "No run named blind was given: there is no straight line that a method should be beyond."


_SAYS = phrases("rebalance")
STRENGTHS = tuple(step / 10 for step in range(1, 11))
NEAR_ZERO = (0.002, 0.005, 0.01, 0.02, 0.05)
"""More strengths of ``shift``, which is often far past an equal share of exposure at 0.1."""
_HALVINGS, _NEAR = 6, 0.002
"""How often the range of strengths around a bias is halved, and how narrow it may get."""


def sweep(
    run: Run,
    table: GroupTable,
    methods: Sequence[str] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    *,
    depth: int = DEPTH,
    learn: Run | None = None,
    target: Target | None = None,
    missing: OfMissing = "error",
) -> dict[tuple[str, float], Run]:
    """The run by every method at every strength, as ``{(method, strength): run}``.

    ``methods``: by default all that the groups allow; ``learn``: the run of the queries that directions are learnt on,
    which should not be those that are reported; by default the run itself.
    """
    grouping = Grouping(table, depth, target, missing)
    lists = grouping.lists(run)
    on = lists if learn is None else grouping.lists(learn)
    options = _methods(methods, table, {})
    return {(one.name, strength): made for one, strength, made in _swept(options, strengths, lists, on, table)}


def _swept(
    methods: Sequence[MethodOptions], strengths: Sequence[float], lists: RunLists, learn: RunLists, table: GroupTable
) -> Iterator[tuple[MethodOptions, float, Run]]:
    for options in methods:
        method = options.make(learn.lists, table)
        for strength in strengths:
            yield options, strength, lists.reordered(method.order(lists.lists, strength))


def _methods(names: Sequence[str] | None, table: GroupTable, given: Mapping[str, object]) -> list[MethodOptions]:
    """The methods of these names, for None all, with those of the options ``given`` that they have."""
    asked = list(dict.fromkeys(METHODS if names is None else strings(names)))
    given = {option: value for option, value in given.items() if value is not None}
    for option in given:
        if not set(OWNERS[option]) & set(asked):
            raise EvenrankError(
                f"`{option}`: the method {' or '.join(OWNERS[option])} is not one of {', '.join(asked)}"
            )
    own = {name: {option: value for option, value in given.items() if name in OWNERS[option]} for name in asked}
    chosen = [MethodOptions(name, **own[name]) for name in asked]  # type: ignore[arg-type]  # it checks
    for one in chosen:
        one.check()
    return chosen


@checked
def frontier(
    run: object,
    *,
    qrels: object,
    methods: Sequence[str] | None = None,
    strengths: Sequence[float] | None = None,
    beside: Annotated[
        Mapping[str, object] | None,
        opt.Option(
            "A run to draw on that page too, as blind=RUN; repeatable.",
            metavar="NAME=RUN",
            typed=list,
            panel="Output",
            rare=True,
        ),
    ] = None,
    utility: Annotated[
        str | None,
        opt.Option(
            "Of the frontier: of effectiveness (default: nDCG@10).", metavar="MEASURE", panel="Output", rare=True
        ),
    ] = None,
    bias: Annotated[
        str | None,
        opt.Option(
            "Of the frontier: of bias (default: that of the audit).",
            metavar="MEASURE",
            panel="Output",
            rare=True,
        ),
    ] = None,
    depth: int = DEPTH,
    collection: object = None,
    target: object = None,
    missing: OfMissing | None = None,
    queries: object = None,
    only_queries: bool = False,
    tune_queries: object = None,
    protected: str | None = None,
    alpha: float | None = None,
    per: str | None = None,
    top: int | None = None,
    seed: int = 0,
    order: Order = "score",
    provenance: Provenance | None = None,
    **groups: Unpack[opt.GroupOptions],
) -> Frontier:
    """Put a run into order by every method at every strength, and set effectiveness against bias.

    Directions (the group that ``fair`` protects, the offsets of ``shift``) are learnt on the tuning queries; all
    figures are of the others. Beside them stand the run's candidates in random order, neutral-first and
    relevance-first.

    Args:
        run: The run, as :func:`evenrank.rebalance` takes it; so are the arguments that are not listed here.
        qrels: Judgements; without effectiveness there is nothing to set bias against.
        methods: Some of the methods; by default all that the groups allow.
        strengths: From 0 to 1; by default tenths, of ``shift`` also smaller ones. More are tried around the biases at
            which methods are compared.
        beside: More runs of the same queries, by name. The straight line from the run to one named ``blind`` is a
            yardstick: a method is worth its name where it is beyond it.
        utility: The measure of effectiveness, by default nDCG@10.
        bias: The measure of bias, by default ARaB@10, without poles NFaiRR@10, of labels AWRF@10 against the
            candidates.
        protected: As there, of ``fair``.
        alpha: As there, of ``fair``.
        per: As there, of ``shift``.
        top: As there, of ``fair`` and ``detconstsort``.

    Returns:
        All points with intervals, and the methods compared at equal bias; see :class:`Frontier`.

    Raises:
        EvenrankError: For input that cannot be used.
    """
    check_top(top, depth)
    levels = None if strengths is None else _strengths(strengths)
    source = ListGroups(collection, **groups, target=target, missing=missing)
    source.check()
    only = only_ids(queries, only_queries=only_queries)
    if qrels is None:
        raise EvenrankError("`frontier` sets effectiveness against bias: it needs `qrels`")
    if provenance is None:
        provenance = Provenance("evenrank.frontier")
        note_inputs(provenance, run, source, qrels, tune_queries, queries)
        for name, other in (beside or {}).items():
            provenance.add(f"run {name}", other)
    provenance.ahead()
    given, judged, restriction = only_those(as_run(run, order=order), as_qrels(qrels), only)
    others = {name: as_run(other, name, order=order, what=f"run {name}") for name, other in (beside or {}).items()}
    grouping = source.grouping([one.table["doc_id"] for one in (given, *others.values())], depth)
    if grouping.drawn is not None:
        raise EvenrankError(
            "a frontier is of many orders, whose documents could not all be drawn: audit two runs with labels drawn for"
            " both (`evenrank labels sample`)"
        )
    chosen = _methods(methods, grouping.table, {"protected": protected, "alpha": alpha, "per": per, "top": top})
    measures = _measures(utility or "nDCG@10", bias, grouping.table)
    _check_names(given.name, others, [one.name for one in chosen])
    tuning = TuningQueries.of(tune_queries, seed)
    on, reported, notes = _divided(given, tuning, any(one.learns for one in chosen))
    notes += restriction
    absent = absent_queries(given.queries, judged)
    lacks = absence_findings(given.name, absent, judged)
    if on is not None:
        absent = absent.filter(~tuning.chosen(absent))
    figures = OrderFigures(reported, grouping, judged, measures, seed, absent)
    if figures.judged == 0:
        raise EvenrankError(f"the qrels judge none of the {counted(len(reported.queries), 'query')} that are reported")
    learn = grouping.lists(on) if on is not None else figures.lists
    rankings = [_ranking(given.name, figures.values(reported))]
    if np.isnan(rankings[0].bias).all():
        raise EvenrankError(
            f"`bias`: no list of the {counted(len(reported.queries), 'query')} that are reported has a value of"
            f" {measures[1]}: give another measure"
        )
    made = {one.name: one.make(learn.lists, grouping.table) for one in chosen}
    tried = {one.name: _default_strengths(one.name) if levels is None else levels for one in chosen}
    compared = _Paths(figures, made, measures[1], rankings[0], tried)
    rankings += compared.rankings()
    for name, other in others.items():
        rankings.append(_ranking(name, figures.values(_same_queries(other, reported.queries))))
    rankings += _references(reported, figures)
    plane = Plane(rankings, measures[1], greatest_value(measures[0]))
    settings = {
        **grouping.table.settings,
        "methods": [one.name for one in chosen],
        "strengths": {name: list(strengths) for name, strengths in tried.items()},
        "given_or_learnt": {name: learnt(method, grouping.table.groups) for name, method in made.items()},
        "utility": str(measures[0]),
        "bias": str(measures[1]),
        "depth": depth,
        **({} if top is None else {"top": top}),
        "target": "the shares of the lexicon or the labels" if grouping.target is None else grouping.target.described,
        "missing": grouping.missing,
        "seed": seed,
    }
    return Frontier(
        given.name,
        plane.points(),
        plane.equal(compared.levels),
        (measures[0], measures[1]),
        len(figures.queries),
        settings,
        (*notes, *_used(made, grouping.table), *notes_on(figures.lists, grouping, made, others)),
        len(absent),
        (*lacks, *unknown_findings(given.name, figures.lists, grouping)),
        provenance=provenance,
    )


class _Paths:
    """Each method at all its strengths, and at those around the biases at which methods are compared.

    These biases, ``levels``, are found once, from what all methods reach at the strengths that are asked for: of a
    measure where more is better they depend on the best of the methods. Between two strengths that are far apart a
    mixture of their rankings costs more than the method does.
    """

    def __init__(
        self,
        figures: OrderFigures,
        methods: Mapping[str, Reordering],
        bias: Measure,
        run: Ranking,
        strengths: Mapping[str, Sequence[float]],
    ) -> None:
        self._figures, self._methods, self._bias, self._run = figures, methods, bias, run
        self._coarse = {name: [self._at(name, strength) for strength in strengths[name]] for name in methods}
        every = [one for path in self._coarse.values() for one in path]
        self.levels = Plane([run, *every], bias).levels()

    def _at(self, name: str, strength: float) -> Ranking:
        lists = self._figures.lists
        made = lists.reordered(self._methods[name].order(lists.lists, strength))
        return _ranking(f"{name} {strength:g}", self._figures.values(made), name, strength)

    def rankings(self) -> Iterator[Ranking]:
        """The methods' rankings, by method and rising strength."""
        for name, coarse in self._coarse.items():
            path = list(coarse)
            for _ in range(_HALVINGS):
                plane = Plane([self._run, *path], self._bias)
                ends = {plane.between(name, level) for level in self.levels.values()}
                middles = {round((low + high) / 2, 4) for low, high in filter(None, ends) if high - low > _NEAR}
                path += [self._at(name, strength) for strength in sorted(middles)]
            yield from sorted(path, key=lambda one: one.strength or 0.0)


def _used(methods: Mapping[str, Reordering], table: GroupTable) -> Iterator[str]:
    """What each method was given or learnt."""
    for name, method in methods.items():
        found = learnt(method, table.groups)
        if found:
            yield f"{name}: {in_words(found, table.poles)}."


def _default_strengths(method: str) -> tuple[float, ...]:
    return (*NEAR_ZERO, *STRENGTHS) if method == "shift" else STRENGTHS


def _strengths(given: Sequence[float]) -> tuple[float, ...]:
    """The strengths. Raises EvenrankError for none, and for what is not from 0 to 1."""
    for strength in given:
        check_ranges(strength=strength)
    if not given:
        raise EvenrankError("`strengths`: expected at least one")
    # At 0 every method leaves the run as it is.
    return tuple(sorted({float(strength) for strength in given if strength > 0}))


def _measures(utility: str, bias: str | None, table: GroupTable) -> tuple[Measure, Measure]:
    first = parse_measure(utility)
    second = usual_bias(table) if bias is None else parse_measure(bias)
    if is_bias(first):
        raise EvenrankError(f"`utility`: expected a measure of effectiveness, found {first}")
    how = resolve(second)
    if not is_bias(second) or how.whole_run or how.undirected or how.part_count > 1:
        raise EvenrankError(f"`bias`: expected a measure of bias that is a mean over queries, found {second}")
    return first, second


def _check_names(run: str, others: Mapping[str, Run], methods: Sequence[str]) -> None:
    taken = [run, *methods, RANDOM, NEUTRAL_FIRST, RELEVANCE_FIRST]
    twice = next((name for name in others if name in taken), None)
    if twice is not None:
        raise EvenrankError(f"`beside`: the name {quoted(twice)} is that of another point: name the run otherwise")


def _divided(run: Run, tuning: TuningQueries, learns: bool) -> tuple[Run | None, Run, list[str]]:
    """The run on the tuning queries (None if nothing is learnt), on those that are reported, and a note."""
    if not learns and tuning.given is None:
        return None, run, []
    chosen = tuning.chosen(run.queries)
    count = int(chosen.sum())
    tuning.check(count, len(chosen) - count)
    return restricted(run, chosen), restricted(run, ~chosen), [tuning.note(count, len(chosen) - count)]


def _same_queries(run: Run, queries: pl.Series) -> Run:
    """A run beside, of the reported queries. Raises EvenrankError if it lacks one."""
    lacking = queries.filter(~queries.is_in(run.queries.implode()))
    if len(lacking):
        raise EvenrankError(
            f"`beside`: the {run.described} has no documents for the query {quoted(lacking[0])}"
            f" ({len(lacking)} of {len(queries)} queries are missing)"
        )
    return restricted(run, run.queries.is_in(queries.implode()))


def _ranking(
    name: str, values: tuple[np.ndarray, ...], method: str | None = None, strength: float | None = None
) -> Ranking:
    return Ranking(name, values[0], values[1], method, strength)


def _references(run: Run, figures: OrderFigures) -> Iterator[Ranking]:
    """The run's candidates in random order, neutral-first and relevance-first."""
    whole = figures.evaluation(run)
    for name, values in (
        (RANDOM, figures.values_of(whole, how="random")),
        (NEUTRAL_FIRST, figures.values_of(whole.neutral_first())),
        (RELEVANCE_FIRST, figures.values_of(whole, how="relevance")),
    ):
        yield Ranking(name, values[0], values[1], reference=True)


_ROOM = 1.2
_SOURCE = "Every method at every strength: effectiveness against bias, on queries that nothing was chosen on"


def frontier_page(found: Frontier) -> Page:
    """All points and what the methods cost at equal bias."""
    facts = (
        ("queries", f"{found.queries:,}" + (f" ({found.absent:,} not in the run)" if found.absent else "")),
        ("methods", f"{len(method_names(found))}"),
        ("points", f"{len(found.points)}"),
    )
    sections = [Section("At equal bias", (_equal(found),))] if found.equal else []
    sections.append(Section("All points", (_all(found),)))
    return Page(
        "frontier",
        f"Frontier of {found.name}: {found.measures[0]} against {found.measures[1]}",
        (*frontier_findings(found), *found.lacks),
        _short(found) if found.equal else None,
        ("● differs from the run (p < .05, corrected)",),
        counted(found.equal[0].cost.n if found.equal else found.queries, "query"),
        plane=_plane(found),
        sections=tuple(sections),
        facts=facts,
        source=_SOURCE,
        notes=found.notes,
        provenance=found.provenance,
    )


def _short(found: Frontier) -> Table:
    """Each method at equal bias: what it costs."""
    utility, bias = map(shown_name, found.measures)
    columns = (
        Column("method", heading=""),
        Column("bias", shorts(3), bias),
        Column("strength", of=_strengths_of),
        Column("utility", shorts(3), utility),
        Column("cost", shorts(3, sign=True), "minus the run", "cost.mean", mark=lambda of: mark(of.cost.shown)),
        Column(("cost_low", "cost_high"), short_intervals(3, sign=True), "", "cost.ci95"),
    )
    return Table("At equal bias", columns, found.equal)


def _plane(found: Frontier) -> str:
    """The plane, of the methods' rankings with those that are about as biased as the run or less."""
    run = found.points[0]
    points = [
        PlanePoint(point.name, Placed(*point.utility), Placed(*point.bias), point.reference, point.method)
        for point in found.points
        if point.method is None or _is_near(point, run, found)
    ]
    return draw_plane(found.measures, points)


def _is_near(point: Point, run: Point, found: Frontier) -> bool:
    """Whether a point has at most the run's bias, of measures whose best is 0 with some room."""
    own, base = point.bias[0], run.bias[0]
    if own is None or base is None:
        return False
    return own >= base if resolve(found.measures[1]).better == "higher" else abs(own) <= _ROOM * abs(base)


# --- tables -----------------------------------------------------------------------------------------------------------


def _equal(found: Frontier) -> Table:
    utility, bias = map(shown_name, found.measures)
    columns = (
        Column("bias", digits(4), bias),
        Column("method"),
        Column("strength", of=_strengths_of),
        Column("utility", digits(4), utility),
        *with_interval("cost", "cost", 4, "minus the run"),
        Column("p", P, of="cost.p"),
        *with_interval("behind", "behind", 4, "minus the best"),
        Column("holm_p", P, "Holm p", "behind.holm_p"),
    )
    notes: tuple[str, ...] = (
        "Between the two nearest strengths, each query's value is interpolated; intervals and tests are paired by query"
        " and take the strength as given. The best: the method with the highest figure at that bias. Holm p: corrected"
        " over all pairs of methods at the same bias, as the best is found on the same queries; the intervals are not.",
    )
    if any(one.jump for one in found.equal):
        notes += (
            "Two strengths: no strength that was tried has this bias, since the measure jumps between them; the figures"
            " are those of mixing the two rankings at random.",
        )
    return Table("At equal bias", columns, found.equal, notes)


def _strengths_of(one: EqualBias) -> str:
    return " to ".join(map(strength_text, one.between)) if one.jump else strength_text(one.strength)


def _level(name: str, heading: str) -> tuple[Column, ...]:
    """The columns of a measure: the figure, what it is minus the run's, and whether there is a difference."""
    apart = f"{name}_difference"
    figures = *with_interval(name, name, 4, heading), *with_interval(apart, apart, 4, "minus the run")
    return *figures, Column(f"{name}_p", P, "p", f"{apart}.p")


def _all(found: Frontier) -> Table:
    lines = any(point.beyond is not None for point in found.points)
    utility, bias = map(shown_name, found.measures)
    labels = {id(point): label for label, point in _folded(found.points)}
    columns = (
        Column("ranking", of=lambda point: labels[id(point)] + (" †" if point.reference else "")),
        *_level("utility", utility),
        *_level("bias", bias),
        *(with_interval("beyond", "beyond", 4, "beyond the line") if lines else ()),
    )
    notes = [
        "†: a reference ranking of the run's documents. p: t and Hall's t, not corrected; what is said is. A row for"
        " several strengths: all figures are equal."
    ]
    if lines:
        notes.append(f"Beyond the line: {utility} minus that of a mixture of the run and {BLIND} of the same {bias}.")
    return Table("All points", columns, [point for _, point in _folded(found.points)], tuple(notes))


def _folded(points: Sequence[Point]) -> Iterator[tuple[str, Point]]:
    """The points with a label; neighbouring strengths of a method with equal figures are one, the first of them."""
    for method, group in groupby(points, key=lambda point: point.method):
        of_method = list(group)
        if method is None:
            yield from ((point.name, point) for point in of_method)
            continue
        for _, same in groupby(of_method, key=_figures_of):
            alike = list(same)
            first, last = alike[0], alike[-1]
            if len(alike) == len(of_method) and _unchanged(first):
                yield f"{method}: changes nothing up to strength {last.strength:g}", first
            else:
                yield first.name if first is last else f"{first.name} to {last.strength:g}", first


def _unchanged(point: Point) -> bool:
    """Whether no query's figure differs from the run's."""
    apart = (point.utility_difference, point.bias_difference)
    return all(one is not None and one.mean == 0 and one.p is None and one.ci95 is None for one in apart)


def _figures_of(point: Point) -> tuple[str, ...]:
    """The figures as they are shown: those of equal rankings may differ by rounding."""
    columns = (*_level("utility", ""), *_level("bias", ""), *with_interval("beyond", "beyond", 4))
    return tuple(column.read(column.value(point, 0)) for column in columns)
