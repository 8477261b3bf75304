"""A fairer order of the first documents of a run, without training: chosen on some queries, reported on others."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.auditing import AuditResult, Figure, audit
from evenrank.auditing.data import shown_name
from evenrank.auditing.inputs import only_judged, usual_measures
from evenrank.auditing.inputs import only_queries as restricted_to
from evenrank.auditing.notes import absence_warning
from evenrank.auditing.plane import Placed, PlanePoint, draw_plane
from evenrank.auditing.query_clusters import query_clusters
from evenrank.files import InputError, Order, Provenance, as_qrels, as_queries, as_run, check_outputs, write_run
from evenrank.files.arguments import check_ranges, checked
from evenrank.files.convert import Strings, strings
from evenrank.files.errors import EvenrankError, quoted
from evenrank.files.json_values import IF_KNOWN, INLINE, LEFT_OUT, fields_of, named
from evenrank.files.provenance import card_path, write_card
from evenrank.files.reading import line_blocks
from evenrank.files.runs import Run
from evenrank.files.tables import is_parquet, lines_of
from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import are, counted, percent
from evenrank.groups import GroupTable
from evenrank.measures import facts, is_bias, parse_measure, resolve
from evenrank.mitigation.reorderings import GroupedLists, Reordering
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import (
    Column,
    Interval,
    P,
    Table,
    digits,
    mark,
    number,
    short_intervals,
    shorts,
    with_interval,
)
from evenrank.stats.bounds import BoundTest, bound_mean, limit_absolute, margin_absolute
from evenrank.stats.bounds import outcome as outcome_of
from evenrank.stats.compare import ALL_ZERO, Comparison, Zeros
from evenrank.stats.estimate import Estimate, known_clusters

from .budget import ALPHA
from .rebalance_lists import (
    SHOWN,
    Changes,
    Grouping,
    Kept,
    ListGroups,
    MethodOptions,
    OrderFigures,
    applied,
    check_top,
    grouped_lists,
    in_words,
    learnt,
    untied,
)

__all__ = ["Rebalanced", "rebalance"]

_FORM = re.compile(r"\s*(?P<measure>.+?)\s*(?P<sign><=|>=|≤|≥)\s*(?P<value>[^%\s]+)\s*(?P<percent>%?)\s*")
Verdict = Literal["holds", "violated", "not shown"]


@dataclass(frozen=True, slots=True)
class Bound:
    """``measure`` at most or at least ``value``; ``relative``: a share of the run's own figure.

    The size of a signed measure's mean is compared.
    """

    text: str
    measure: Measure
    at_most: bool
    value: float
    relative: bool

    @classmethod
    def parse(cls, text: str, what: Literal["meet", "keep"]) -> Bound:
        """A bound as users write it; ``meet`` is of bias, ``keep`` of effectiveness."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        example = '"ARaB@10 <= 0.02"' if what == "meet" else '"nDCG@10 >= 98%"'
        if found is None:
            raise EvenrankError(f"`{what}`: expected a bound such as {example}, found {quoted(text)}")
        try:
            value = float(found["value"])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise EvenrankError(f"`{what}`: expected a number in {quoted(text)}, found {quoted(found['value'])}")
        measure = parse_measure(found["measure"])
        how = resolve(measure)
        if is_bias(measure) != (what == "meet"):
            kind = "bias" if what == "meet" else "effectiveness"
            raise EvenrankError(f"`{what}`: expected a measure of {kind}, as in {example}, found {measure}")
        if how.part_count > 1:
            raise EvenrankError(f"`{what}`: expected a measure that is a mean over queries, found {measure}")
        at_most = found["sign"] in ("<=", "≤")
        if how.signed and not at_most:
            raise EvenrankError(
                f"`{what}`: {measure} is better nearer 0: expected at most a number, found {quoted(text)}"
            )
        percent = bool(found["percent"])
        return cls(" ".join(text.split()), measure, at_most, value / 100 if percent else value, percent)

    def figure(self, means: Array) -> Array:
        """The figures, with their signs, from means over queries [...]."""
        return resolve(self.measure).combine([means])

    def size(self, means: Array) -> Array:
        """The figures that are compared, from means over queries [...]."""
        figures = self.figure(means)
        return np.abs(figures) if resolve(self.measure).signed else figures

    def slack(self, means: Array, of_run: Array) -> Array:
        """How far figures are within the bound [...], below 0 where they are not; ``of_run``: the run's own means."""
        limit = self.value * self.size(of_run) if self.relative else self.value
        slack: Array = (limit - self.size(means)) if self.at_most else (self.size(means) - limit)
        return slack

    def test(self, values: Array, of_run: Array, greatest: float, clusters: Array | None = None) -> BoundTest:
        """The test of the bound on values [n] and those of the run [n], two or more; ``clusters`` [n]: of the queries.

        Of a ``relative`` bound, the test's values are less that share of the run's figure.
        """
        sign, how = -1 if self.at_most else 1, resolve(self.measure)
        within = None if clusters is None else [clusters]
        share, limit = (self.value, 0.0) if self.relative else (0.0, self.value)
        if how.signed:
            if not self.relative:
                return limit_absolute([values], limit, greatest, clusters=within)
            return margin_absolute([values], [share * of_run], limit, greatest, clusters=within)
        known = facts(self.measure)["least"]
        least = known if isinstance(known, float) else -greatest
        # What is lost goes down to the least value for a floor, up to the greatest for a ceiling.
        loss = limit + share * greatest - least if not self.at_most else greatest - limit - share * least
        zeros: Zeros = "drop" if is_bias(self.measure) else "keep"
        gain = greatest - limit - share * least if not self.at_most else limit + share * greatest - least
        z = sign * (values - share * of_run - limit)
        known_gain = gain if math.isfinite(gain) else None
        return bound_mean([z], loss, gain=known_gain, zeros=zeros, bound=limit, sign=sign, clusters=within)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A bound on the queries that a strength was chosen on, and on the others.

    ``tuning``, ``others``: the figure that is compared; ``limits``: its one-sided limits on the others, by which the
    ``verdict`` there is decided as a gate decides it: the bound holds even with one query more that loses all it can,
    is violated, or neither is shown. ``n``: the others that have a value.
    """

    bound: Bound = field(metadata=LEFT_OUT)
    tuning: float
    others: float | None
    limits: Interval | None
    met: bool | None
    verdict: Verdict
    n: int = 0

    def to_dict(self) -> dict[str, object]:
        """The outcome as JSON values."""
        return {"bound": self.bound.text, **fields_of(self)}


def outcome(
    bound: Bound,
    tuning: float,
    values: Array,
    of_run: Array,
    greatest: float,
    bounds: int = 1,
    clusters: Array | None = None,
) -> Outcome:
    """How a bound fares on queries that it was not chosen on: ``values`` [Q], and those of the run [Q].

    ``greatest``: the size of the greatest value that the measure can take; ``bounds``: of how many this is one, for
    which "violated" is corrected; ``clusters`` [Q]: the queries' clusters.
    """
    both = ~np.isnan(values - of_run)
    new, base = values[both], of_run[both]
    n = len(new)
    if not n:
        return Outcome(bound, tuning, None, None, None, "not shown")
    mean, mean_of_run = np.array(new.mean()), np.array(base.mean())
    size, met = float(bound.size(mean)), bool(bound.slack(mean, mean_of_run) >= -EQUAL)
    if n < 2:
        return Outcome(bound, tuning, size, None, met, "not shown", n)
    test = bound.test(new, base, greatest, known_clusters(clusters, both))
    violated = test.p_violated()
    corrected = None if violated is None else min(1.0, bounds * violated)
    verdict: Verdict = outcome_of(test, corrected, ALPHA)
    of_share = bound.value * float(bound.size(mean_of_run)) if bound.relative else 0.0
    low, high = (end + of_share for end in test.limits(ALPHA))
    return Outcome(bound, tuning, size, (low, high), met, verdict, n)


_SAYS = phrases("rebalance")
STEPS = 1000
GRID = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 39, *range(50, STEPS + 1, 50))
"""Strengths are thousandths; these are tried first, close together near 0, where a small ``shift`` goes a long way."""
_ROUNDING = 1e-12


class UnmetError(EvenrankError):
    """No strength meets the bounds: nothing is written, which is an answer rather than an error in the input."""


@dataclass(frozen=True, slots=True)
class StrengthPoint:
    """A strength, from 0, the run as it is, to 1, with its figures of effectiveness and of bias; None: undefined."""

    strength: float
    utility: float | None
    bias: float | None


@dataclass(frozen=True, slots=True)
class Strengths:
    """A method's strengths on the tuning queries, from the least: those of :data:`GRID` and the chosen one.

    ``utility``: the measure of effectiveness, that of the first bound on it, else nDCG@10; None without judgements.
    ``bias``: that of the first bound on bias, else the measure by which a strength is chosen.
    """

    utility: Measure | None
    bias: Measure
    points: tuple[StrengthPoint, ...]


class Tuning:
    """A method's figures on the queries that a strength is chosen on; each strength is computed once."""

    def __init__(self, method: Reordering, figures: OrderFigures) -> None:
        self._method, self._figures = method, figures
        self._means: dict[int, tuple[float, ...]] = {}
        self._of_run = figures.means(figures.lists.run)

    def slack(self, bound: Bound, step: int) -> float:
        """How far the figure at a strength of ``step`` thousandths is within the bound; below 0 where it is not."""
        place = self._figures.measures.index(bound.measure)
        return float(bound.slack(_array(self._at(step)[place]), _array(self._of_run[place])))

    def figure(self, bound: Bound, step: int) -> float:
        """The figure, with its sign."""
        return self._figure(bound.measure, step)

    def size(self, bound: Bound, step: int) -> float:
        """The figure that is compared."""
        return float(bound.size(_array(self._at(step)[self._figures.measures.index(bound.measure)])))

    def bias(self, measure: Measure, step: int) -> float:
        """How biased the order is: less is better; infinite where no query has a value."""
        figure = self._figure(measure, step)
        return math.inf if math.isnan(figure) else abs(figure) if resolve(measure).signed else -figure

    def strengths(self, chosen: int, utility: Measure | None, bias: Measure) -> Strengths:
        """The strengths of :data:`GRID` and the ``chosen`` one, with the figures of two of the measures."""

        def figure(measure: Measure | None, step: int) -> float | None:
            value = math.nan if measure is None else self._figure(measure, step)
            return None if math.isnan(value) else value

        steps = sorted({*GRID, chosen})
        rows = (StrengthPoint(step / STEPS, figure(utility, step), figure(bias, step)) for step in steps)
        return Strengths(utility, bias, tuple(rows))

    def _figure(self, measure: Measure, step: int) -> float:
        return float(resolve(measure).combine([_array(self._at(step)[self._figures.measures.index(measure)])]))

    def _at(self, step: int) -> tuple[float, ...]:
        if step not in self._means:
            lists = self._figures.lists
            order = self._method.order(lists.lists, step / STEPS)
            self._means[step] = self._figures.means(lists.reordered(order))
        return self._means[step]


def chosen_step(tuning: Tuning, meet: Sequence[Bound], keep: Sequence[Bound], name: str, queries: int) -> int:
    """The least strength, in thousandths, that meets ``meet`` and keeps ``keep``; without ``meet`` the greatest.

    Figures need not rise or fall with the strength. Between two strengths of :data:`GRID` that are not allowed, those
    that are looked for where a figure moves as far as it is from its bound, with its sign: a lean that turns to the
    other side passes what is allowed in between. Where one is found, every thousandth before it is tried.
    Raises UnmetError, with the nearest figures, if none of those tried is allowed.
    """
    search = _Search(tuning, (*meet, *keep))
    on = f"on the {queries:,} queries to tune on"
    step = search.first(GRID if meet else GRID[::-1])
    if step is None:
        nearest = search.nearest()
        raise UnmetError(
            f"no strength of {name} reaches {_said(search.bounds)} {on}: {_nearest(tuning, search.bounds, nearest)}"
        )
    return step


def least_biased(tuning: Tuning, keep: Sequence[Bound], measure: Measure, greatest: int) -> int:
    """Of the strengths up to the ``greatest`` that keeps ``keep``, one that keeps it with the least bias.

    Those of :data:`GRID` are tried, then ever nearer ones around the best. Of equal ones, the least.
    """
    search = _Search(tuning, keep)
    steps = sorted({step for step in GRID if step < greatest and search.allowed(step)} | {greatest})

    def bias(step: int) -> tuple[float, int]:
        return tuning.bias(measure, step), step

    best = min(steps, key=bias)
    width = max((after - before for before, after in pairwise(steps) if best in (before, after)), default=0)
    while width > 1:
        width = (width + 1) // 2
        near = [step for step in (best - width, best + width) if 0 <= step <= greatest and search.allowed(step)]
        best = min([best, *near], key=bias)
    return best if math.isfinite(bias(best)[0]) else greatest


def usual_bias(table: GroupTable) -> Measure:
    """The measure of bias where none is named: of labels without poles, nearness to the candidates' shares."""
    if table.poles is not None:
        return parse_measure("ARaB@10")
    return parse_measure("AWRF(target='candidates')@10" if table.labelled else "NFaiRR@10")


class _Search:
    """The first strength, in either direction, at which all ``bounds`` are kept."""

    def __init__(self, tuning: Tuning, bounds: Sequence[Bound]) -> None:
        self.tuning, self.bounds = tuning, bounds
        self._tried: dict[int, bool] = {}

    def first(self, grid: Sequence[int]) -> int | None:
        """The first allowed step in the direction of ``grid``, which rises or falls."""
        if self.allowed(grid[0]):
            return grid[0]
        for before, after in pairwise(grid):
            found = self._between(before, after)
            if found is not None:
                onward = 1 if after > before else -1
                return next(step for step in range(before + onward, found + onward, onward) if self.allowed(step))
        return None

    def nearest(self) -> int:
        """The least of the steps tried that come nearest to the bounds."""
        return max(sorted(self._tried), key=lambda step: min(map(_finite, self._slacks(step))))

    def _between(self, before: int, after: int) -> int | None:
        """An allowed step from ``before``, which is not allowed, to ``after``; None if none is found."""
        if not self.allowed(after) and not self._may_pass(before, after):
            return None
        if abs(after - before) == 1:
            return after if self.allowed(after) else None
        middle = (before + after) // 2
        found = self._between(before, middle)
        return found if found is not None or self.allowed(middle) else self._between(middle, after)

    def _may_pass(self, before: int, after: int) -> bool:
        """Whether each bound's figure moves as far between two steps as the nearer one is from the bound."""
        for bound in self.bounds:
            apart = abs(self.tuning.figure(bound, after) - self.tuning.figure(bound, before))
            if -max(self.tuning.slack(bound, before), self.tuning.slack(bound, after)) > apart:
                return False
        return True

    def allowed(self, step: int) -> bool:
        """Whether a strength of ``step`` thousandths keeps all bounds."""
        if step not in self._tried:
            self._tried[step] = all(slack >= -_ROUNDING for slack in self._slacks(step))
        return self._tried[step]

    def _slacks(self, step: int) -> list[float]:
        return [self.tuning.slack(bound, step) for bound in self.bounds]


def _finite(slack: float) -> float:
    """A slack to compare: one of a figure that is undefined is the least."""
    return -math.inf if math.isnan(slack) else slack


def _said(bounds: Sequence[Bound]) -> str:
    return " and ".join(bound.text for bound in bounds)


def _nearest(tuning: Tuning, bounds: Sequence[Bound], step: int) -> str:
    figures = ", ".join(f"{bound.measure} {number(tuning.size(bound, step), 4)}" for bound in bounds)
    return f"the nearest tried is {figures} at strength {step / STEPS:g}"


def _array(value: float) -> Array:
    return np.array(value)


@dataclass(frozen=True, slots=True)
class TuningQueries:
    """The queries that a strength and a direction are chosen on: those ``given``, or by a hash of ``seed`` and id.

    Whether a query is one of them depends on no other query of the run but those of its cluster.
    """

    given: frozenset[str] | None
    seed: int

    @classmethod
    def of(cls, given: object, seed: int) -> TuningQueries:
        """From a file of ids, a file of queries, ids in a list, or queries as a dict or a table; None: by the seed."""
        return cls(None if given is None else frozenset(_ids(given)), seed)

    def chosen(self, queries: pl.Series, qrels: pl.DataFrame | None) -> pl.Series:
        """Whether each of ``queries`` is one of them; those with the same relevant documents together."""
        if self.given is not None:
            return queries.is_in(pl.Series(sorted(self.given), dtype=pl.String).implode())
        clusters = query_clusters(None, queries, None, qrels).numbers
        names = queries.to_list()
        if clusters is not None:
            least: dict[int, str] = {}
            for number, name in zip(clusters.tolist(), names, strict=True):
                least[number] = min(name, least.get(number, name))
            names = [least[number] for number in clusters.tolist()]
        return pl.Series([_is_tuning(name, self.seed) for name in names], dtype=pl.Boolean)

    def check(self, tuning: int, others: int) -> None:
        """Raises EvenrankError if the run has no query to choose on, or none to report on."""
        if not tuning and self.given is not None:
            raise EvenrankError(f"`tune_queries`: the run has none of these {counted(len(self.given), 'query')}")
        if self.given is None and tuning + others == 1:
            raise EvenrankError(
                "one query cannot be divided into some to choose on and some to report on: give more queries, or a"
                " `strength` and a `method` that learns nothing on queries"
            )
        if self.given is None and not (tuning and others):
            raise EvenrankError(
                f"the run's {counted(tuning + others, 'query')} all fall into the same half: divide them by"
                " `tune_queries` or another `seed`"
            )
        if not tuning or not others:
            missing = "to tune on" if not tuning else "to report on"
            raise EvenrankError(
                f"none of the run's {counted(tuning + others, 'query')} is left {missing}: `tune_queries` names some"
                " of them, but not all"
            )

    def note(self, tuning: int, others: int) -> str:
        """How the queries were divided."""
        how = "those given" if self.given is not None else f"a half by a hash of their ids and the seed {self.seed}"
        return (
            f"Strength and direction were chosen on {counted(tuning, 'query')} ({how}); figures are of the other"
            f" {others:,}."
        )


def absent_queries(queries: pl.Series, qrels: pl.DataFrame | None) -> pl.Series:
    """The judged queries that a run with ``queries`` lacks, which count 0 in effectiveness as in an audit."""
    judged = queries.clear() if qrels is None else qrels["query_id"].unique(maintain_order=True)
    return judged.filter(~judged.is_in(queries.implode()))


def absence_findings(name: str, absent: pl.Series, qrels: pl.DataFrame | None) -> tuple[Finding, ...]:
    """What is said first of the judged queries that a run lacks, if there are any."""
    if qrels is None or not len(absent):
        return ()
    said = absence_warning({name: len(absent)}, qrels["query_id"].n_unique())
    return (Finding("absent", name, "cannot be told", None, said, "warning"),)


def _is_tuning(query: str, seed: int) -> bool:
    digest = hashlib.blake2b(f"{seed}\n{query}".encode(errors="surrogatepass"), digest_size=8).digest()
    return digest[0] < 128


def _ids(given: object) -> list[str]:
    if isinstance(given, str) and given.startswith("irds:"):
        return as_queries(given)["query_id"].to_list()
    if isinstance(given, str | os.PathLike):
        return _read(given)
    if isinstance(given, pl.Series):
        given = given.to_list()
    if isinstance(given, Iterable) and not isinstance(given, Mapping | pl.DataFrame):
        listed = list(given)
        if all(isinstance(query, str | int) for query in listed):
            return [str(query) for query in listed]
        given = listed
    return as_queries(given, "`tune_queries`")["query_id"].to_list()


def _read(path: str | os.PathLike[str]) -> list[str]:
    """The ids in a file: a line each, alone or before a tab and a text; or a file of queries."""
    if not os.path.isdir(path) and not is_parquet(path):
        lines = pl.concat([lines_of(block) for block in line_blocks(path)])["content"]
        if not len(lines):
            raise InputError(path, "expected ids of queries, a line each, found none")
        if not _is_object(lines[0]):
            return lines.str.split("\t").list.first().str.strip_chars().to_list()
    return as_queries(path)["query_id"].to_list()


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a fairer order; see :func:`evenrank.rebalance`. ``only``: the ids of the only queries."""

    method: MethodOptions
    source: ListGroups
    strength: float | None
    meet: tuple[Bound, ...]
    keep: tuple[Bound, ...]
    depth: int
    queries: TuningQueries
    seed: int
    only: pl.Series | None = None

    def check(self, judged: bool) -> None:
        """Raises EvenrankError for what contradicts itself, before anything long is read."""
        check_ranges(depth=self.depth, seed=self.seed, strength=self.strength)
        self.method.check()
        check_top(self.method.top, self.depth)
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
            return Plan(self.method.make(_no_lists(table), table), self.strength or 0.0, None, {}, None)
        if not self.bounds:
            method = self.method.make(grouping.lists(tuning).lists, table)
            return Plan(method, self.strength or 0.0, None, learnt(method, table.groups), None)
        bias = self.meet[0].measure if self.meet else usual_bias(table)
        usual = None if qrels is None else parse_measure("nDCG@10")
        utility = self.keep[0].measure if self.keep else usual
        asked = [*(bound.measure for bound in self.bounds), bias, *([] if utility is None else [utility])]
        measures = list(dict.fromkeys(asked))
        figures = OrderFigures(tuning, grouping, qrels, measures, self.seed, absent)
        if self.keep and not figures.judged:
            raise EvenrankError(
                f"`keep`: the qrels judge none of the {counted(len(figures.queries), 'query')} to tune on"
            )
        method = self.method.make(figures.lists.lists, table)
        found = Tuning(method, figures)
        step = chosen_step(found, self.meet, self.keep, self.method.described, len(tuning.queries))
        if not self.meet:
            step = least_biased(found, self.keep, bias, step)
        sizes = tuple(found.size(bound, step) for bound in self.bounds)
        strengths = found.strengths(step, utility, bias)
        return Plan(method, step / STEPS, sizes, learnt(method, table.groups), strengths)


@dataclass(frozen=True, slots=True)
class Plan:
    """A method and a strength.

    ``sizes``: the bounds' figures on the tuning queries; ``learnt``: the direction; ``strengths``: their table.
    """

    method: Reordering
    strength: float
    sizes: tuple[float, ...] | None
    learnt: dict[str, object]
    strengths: Strengths | None


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
    yield from kept.notes(name, request.method.top)
    reach = f"the first {request.depth} ranks"
    if changes.tied:
        yield (
            f"{counted(changes.tied, 'document')} of {changes.total:,} in {reach}"
            f" ({_share(changes.tied, changes.total)}) {are(changes.tied)} tied with a neighbour in the run, which has"
            f" no order of its own there: {name} starts from falling document ids, and so do the figures of the"
            " run. The new run has no ties, so an audit of it cannot see this; its card says it."
        )
    if grouping.table.settings.get("poles_assumed") and grouping.table.poles is not None:
        first, second = grouping.table.poles
        yield f"The groups compared are assumed to be {first} and {second}."


def unknown_findings(name: str, of: Changes, grouping: Grouping) -> tuple[Finding, ...]:
    """What is said first of documents of a run that have no label or no text, if there are any."""
    if not of.lacking:
        return ()
    values: dict[str, Any] = {"documents": counted(of.lacking, "document"), "total": of.total}
    values |= {"depth": grouping.depth, "share": percent(of.lacking / of.total, 1)}
    values["what"] = "a label" if grouping.table.labelled else "text"
    key = "unknown_neutral" if grouping.missing == "neutral" else "unknown_skip"
    return (_SAYS.find(key, name, "cannot be told", place="warning", **values),)


def _nothing_moved(method: str, grouping: Grouping, kept: Kept) -> str:
    """The template of why a method changed nothing."""
    if method == "neutral" and not (grouping.table.table["neutrality"] > 0).any():
        return "none_neutral"
    if method in ("neutral", "shift"):
        return "too_weak"
    return "none_moved" if kept.unmet else "all_there"


def _share(part: int, total: int) -> str:
    return percent(part / max(total, 1), 1)


def parsed(given: Strings | None, what: Literal["meet", "keep"]) -> tuple[Bound, ...]:
    """One bound or several."""
    return tuple(Bound.parse(text, what) for text in strings(given))


_SOURCE = "A fairer order of the first documents of each query; their ids and the length of lists are those of the run"


@dataclass(frozen=True, repr=False)
class Rebalanced(Result):
    """What :func:`evenrank.rebalance` returns: the run in its new order, and what came of it.

    Attributes:
        run: The run in its new order.
        method: The method's name; ``strength``: how strong, from 0 to 1; ``learnt``: the direction that it was given or
            learnt on the tuning queries.
        changes: How far documents moved, on the queries that are reported.
        outcomes: The bounds of ``meet`` and ``keep``, on the tuning queries and on the others.
        audit: The run and its new order, named ``name``, on the other queries (on all if nothing was tuned); None if no
            figures were asked for. ``tuning``: likewise on the tuning queries.
        strengths: The method's strengths on the tuning queries; None if the strength was given.
        settings, notes, provenance: How it was made; ``lacks``: what is said of judged queries that the run lacks, and
            of documents without a label or text.
    """

    also: ClassVar = ("warnings",)
    name: str = field(metadata=named("run"))
    method: str
    strength: float
    learnt: dict[str, object] = field(metadata=INLINE)
    changes: Changes
    outcomes: tuple[Outcome, ...] = field(metadata=named("bounds"))
    audit: AuditResult | None = field(metadata=LEFT_OUT)
    tuning: AuditResult | None = field(metadata=LEFT_OUT)
    settings: dict[str, object]
    notes: tuple[str, ...]
    strengths: Strengths | None = field(default=None, kw_only=True, metadata=IF_KNOWN)
    run: Run = field(kw_only=True, metadata=LEFT_OUT)
    lacks: tuple[Finding, ...] = field(default=(), kw_only=True, metadata=LEFT_OUT)

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return self.audit is not None and any(not is_bias(measure) for measure in self.audit.measures)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Judged queries that the run lacks; documents without a label or text; measures of bias that are shown to be
        further from none than they were.
        """
        return tuple(one.text for one in (*self.lacks, *self._further()))

    def _further(self) -> Iterator[Finding]:
        """The measures of bias that are shown to be further from none than they were."""
        name = "" if self.audit is None else self.audit.runs[0].name
        for measure, before, after, test in [] if self.audit is None else _rows(self.audit, self.name):
            if (key := _worse(before, after)) is not None:
                named: dict[str, Any] = {"measure": measure, "before": before.mean, "after": after.mean}
                yield _SAYS.find(key, measure, "shown", test, "warning", **named)
            if before.lean is not None and not before.lean.shown:
                estimate = Estimate(before.mean, before.ci95, before.n)
                yield _SAYS.find("no_lean", measure, before.lean.verdict, estimate, "warning", run=name)

    def _answer(self) -> Finding:
        """What became of the bias, and at what price."""
        unchanged = self.strength == 0 and bool(self.outcomes)
        if unchanged:
            key = "met_already" if self.settings["meet"] else "nothing_lessened"
            return _SAYS.find(key, self.name, "shown", None, "answer", method=self.method)
        found = [] if self.audit is None else _rows(self.audit, self.name)
        biased = next((row for row in found if is_bias(row[1].measure)), None)
        if biased is None:
            return _SAYS.find("not_measured", self.name, "cannot be told", None, "answer")
        _, before, after, _ = biased
        named: dict[str, Any] = {"bias": shown_name(before.measure), "before": before.mean, "after": after.mean}
        cost = next((row for row in found if not is_bias(row[1].measure)), None)
        if cost is None:
            return _SAYS.find("changed_unjudged", self.name, "cannot be told", None, "answer", **named)
        test = cost[3]
        key = "changed" if self.tuning is not None else "changed_untuned"
        if test.reason == ALL_ZERO:
            key = f"{key}_freely"
        elif test.reason is not None and test.mean != 0:
            key = "changed_untold"
        named |= {"utility": cost[0], "cost": test, "why": test.reason}
        return _SAYS.find(key, self.name, test.verdict, test, "answer", **named)

    def _bounds(self) -> Iterator[Finding]:
        """How each bound fares on the queries that it was not chosen on."""
        for one in self.outcomes:
            estimate = Estimate(one.others, one.limits, one.n)
            values: dict[str, Any] = {"others": one.others, "limits": one.limits, "tuning": one.tuning}
            key = one.verdict.replace(" ", "_")
            yield _SAYS.find(key, one.bound.text, one.verdict, estimate, **values)

    @property
    def _which(self) -> str:
        """Which documents are counted: those without text or label are not, where they keep their rank."""
        if not self.changes.lacking or self.settings["missing"] == "neutral":
            return "documents"
        return "documents with a known group"

    def page(self) -> Page:
        """The figures as a page."""
        facts = (
            ("queries", f"{self.changes.queries:,}"),
            (f"{self._which} in the first {self.settings['depth']} ranks", f"{self.changes.documents:,}"),
        )
        table = sections = None
        queries = self.changes.queries
        if self.audit is not None:
            queries = min(row[3].n for row in _rows(self.audit, self.name))
        if self.audit is not None and self.strength > 0:
            table = _short(self.audit, self.name)
        if self.audit is not None:
            sections = [Section("All figures", (_figures(self.audit, self.name, "Figures"),))]
        if self.tuning is not None and sections is not None:
            title = "Figures on the tuning queries (chosen on these: no evidence)"
            sections.append(Section("On the tuning queries", (_figures(self.tuning, self.name, title),)))
        if self.strengths is not None and sections is not None:
            sections.append(Section("Strengths", (_strengths(self.strengths, self.strength),)))
        return Page(
            "rebalance",
            f"{self.name}: {self.method} at strength {self.strength:g}",
            (self._answer(), *self.lacks, *self._further(), *self._bounds()),
            table,
            ("● differs (p < .05, corrected)",),
            counted(queries, "query"),
            (("evenrank gate", "limits for pipelines"),),
            plane=self._plane(),
            sections=tuple(sections or ()),
            facts=facts,
            source=_SOURCE,
            notes=(f"{self.method} at strength {self.strength:g}. {self.changes.sentence()}", *self.notes),
            provenance=self.provenance,
        )

    def _plane(self) -> str:
        """The strengths, effectiveness against bias; "" without both."""
        strengths = self.strengths
        if self.audit is None or strengths is None or strengths.utility is None:
            return ""
        points = [
            PlanePoint(
                f"{self.method} {point.strength:g}" if point.strength else self.audit.runs[0].name,
                Placed(point.utility, None),
                Placed(point.bias, None),
                method=self.method if point.strength else None,
            )
            for point in strengths.points
        ]
        chosen = next(point for point in strengths.points if point.strength == self.strength)
        points.append(PlanePoint(self.name, Placed(chosen.utility, None), Placed(chosen.bias, None)))
        return draw_plane((strengths.utility, strengths.bias), points)

    def _beside(self) -> Mapping[str, object]:
        return {"figures": _values(self.audit, self.name), "tuning_figures": _values(self.tuning, self.name)}


def _rows(audit: AuditResult, name: str) -> list[tuple[str, Figure, Figure, Comparison]]:
    """Each measure with the run's figure, that of the new order, and the difference."""
    before = audit.runs[0].name
    rows = []
    for measure in map(str, audit.measures):
        first, second = audit[before, measure], audit[name, measure]
        assert second.vs_baseline is not None
        rows.append((measure, first, second, second.vs_baseline.test))
    return rows


def _worse(before: Figure, after: Figure) -> str | None:
    """The template of a signed measure that is shown to be further from 0 than it was; None of others."""
    sizes = None if after.vs_baseline is None else after.vs_baseline.sizes
    if sizes is None or not sizes.shown or before.mean is None or after.mean is None:
        return None
    if (sizes.mean or 0.0) < 0:
        return None
    return "other_side" if before.mean * after.mean < 0 else "further"


def _short(audit: AuditResult, name: str) -> Table:
    """Before, after, and the difference."""
    columns = (
        Column("measure", heading="", of=lambda row: shown_name(row[1].measure)),
        Column("run", shorts(3), "before", "1.mean"),
        Column("rebalanced", shorts(3), "after", "2.mean"),
        Column("difference", shorts(3, sign=True), of="3.mean", mark=lambda row: mark(row[3].shown)),
        Column(("difference_low", "difference_high"), short_intervals(3, sign=True), "", "3.ci95"),
    )
    return Table("Before and after", columns, _rows(audit, name))


def _figures(audit: AuditResult, name: str, title: str) -> Table:
    columns = (
        Column("measure"),
        *with_interval("run", "1", 4),
        *with_interval("rebalanced", "2", 4),
        *with_interval("difference", "3", 4),
        Column("p", P, of="3.p"),
    )
    note = "Difference: paired by query; p: t and Hall's t, not corrected."
    return Table(title, columns, _rows(audit, name), (note,))


def _strengths(strengths: Strengths, chosen: float) -> Table:
    measures = ("utility", strengths.utility), ("bias", strengths.bias)
    columns = (
        Column("strength", digits(3), mark=lambda row: "◂" if row.strength == chosen else ""),
        *(Column(name, digits(4), shown_name(measure)) for name, measure in measures if measure is not None),
    )
    note = "◂ chosen, on the tuning queries, of which the figures are: no evidence."
    return Table("Strengths", columns, strengths.points, (note,))


def _values(audit: AuditResult | None, name: str) -> dict[str, object] | None:
    if audit is None:
        return None
    return {
        measure: {
            "run": {"mean": first.mean, "n": first.n, "ci95": first.ci95},
            "rebalanced": {"mean": second.mean, "n": second.n, "ci95": second.ci95},
            "difference": apart,
        }
        for measure, first, second, apart in _rows(audit, name)
    }


UNKNOWN_EFFECTIVENESS = (
    "Effectiveness is unknown, as there are no qrels: how far the order has moved is all that is known of its cost."
)


@checked
def rebalance(
    run: Annotated[object, opt.Option("A run.", metavar="RUN", reads=True)],
    *,
    out: Annotated[opt.File | None, opt.Option("The run to write (-: standard output).", panel="Output")] = None,
    method: Annotated[
        Literal["neutral", "fair", "detconstsort", "shift"],
        opt.Option("neutral, fair (FA*IR), detconstsort or shift.", metavar="NAME"),
    ] = "neutral",
    strength: Annotated[float | None, opt.Option("From 0, the run as it is, to 1, as far as the method goes.")] = None,
    meet: Annotated[
        str | Sequence[str] | None,
        opt.Option('The least strength that meets it: "ARaB@10 <= 0.02"; repeatable.', metavar="BOUND", typed=list),
    ] = None,
    keep: Annotated[
        str | Sequence[str] | None,
        opt.Option(
            'The least biased strength that keeps it: "nDCG@10 >= 98%"; with --meet, the least with both; repeatable.',
            metavar="BOUND",
            typed=list,
        ),
    ] = None,
    depth: Annotated[int, opt.Option("The pool: how many documents of each query move.")] = 100,
    top: Annotated[
        int | None,
        opt.Option(
            "fair, detconstsort: how many first ranks have the promise, chosen from the first --depth (default: all of"
            " these).",
            rare=True,
        ),
    ] = None,
    collection: opt.MaybeCollection = None,
    target: Annotated[
        object,
        opt.Option(
            "The groups' shares in a fair list: uniform, candidates, or a file of group,share or query_id,group,share"
            " (default: those of the lexicon, equal ones of labels).",
            reads=True,
            panel="Groups",
            rare=True,
        ),
    ] = None,
    missing: Annotated[
        Literal["error", "skip", "neutral"] | None,
        opt.Option(
            "What to do with documents without text or label: error, skip (they keep their rank) or neutral (default:"
            " error; of labels skip).",
            panel="Input",
            rare=True,
        ),
    ] = None,
    qrels: opt.Qrels = None,
    queries: opt.QueriesAlone = None,
    only_queries: opt.OnlyQueries = False,
    tune_queries: Annotated[
        object,
        opt.Option(
            "Ids of the queries to choose on, or queries; figures are of the others (default: a half, by --seed).",
            metavar="FILE",
            reads=True,
            panel="Statistics",
            rare=True,
        ),
    ] = None,
    protected: Annotated[
        str | None,
        opt.Option(
            "fair: the group that needs a minimum (default: the one furthest below its target).",
            metavar="GROUP",
            rare=True,
        ),
    ] = None,
    alpha: Annotated[float | None, opt.Option("fair: the significance (default: 0.1).", rare=True)] = None,
    per: Annotated[
        Literal["group", "magnitude"] | None, opt.Option("shift: what has an offset (default: group).", rare=True)
    ] = None,
    seed: Annotated[
        int, opt.Option("Seed of the division of queries and of intervals.", panel="Statistics", rare=True)
    ] = 0,
    order: Order = "score",
    name: str = "rebalanced",
    provenance: Provenance | None = None,
    **groups: Unpack[opt.GroupOptions],
) -> Rebalanced:
    """Put a run into a fairer order, without training. What moves are the first documents of each query.

    Ids and the length of lists stay; scores are rewritten, n, n − 1, …, 1 over the n documents of a query.

    Args:
        run: The run, as :func:`evenrank.audit` takes one.
        out: Where to write the new run too, with what it was made from beside it (``OUT.card.json``).
        method: "neutral", "fair" (FA*IR), "detconstsort" or "shift"; see the guide.
        strength: From 0, the run as it is, to 1, as far as the method goes.
        meet: Instead of a strength, a bound on bias, or several: ``"ARaB@10 <= 0.02"``; the least strength that meets
            it is chosen. Of signed measures the size of the mean is compared; ``"… <= 50%"`` is of the run's own.
        keep: A bound on effectiveness, ``"nDCG@10 >= 98%"`` (of the run's own): alone, of the strengths
            that keep it the one with the least bias (ARaB@10, without poles NFaiRR@10, of labels AWRF@10 against the
            candidates) is chosen; beside ``meet``, the least that meets and keeps all.
        depth: How many documents of each query are put into a new order, the pool that all ranks are filled from; the
            others keep their ranks.
        collection: The documents' texts, which say with ``lexicon`` which groups they are of; see
            :func:`evenrank.audit`.
        target: What share of the documents that have a group each group should have: "uniform", "candidates" (as in the
            list), a file or a dict as in an audit; by default the lexicon's own shares, or equal ones of labels.
        missing: What to do about documents without text or label: "error", "skip" (they keep their rank) or "neutral";
            by default an error, of labels ``skip``.
        qrels: Judgements. Without them, effectiveness is unknown, and the result says so first.
        queries: Queries, as an audit takes them; ``only_queries``: the run and the figures are of these alone.
        tune_queries: The queries that strength and direction are chosen on: ids, or queries, or a file of either; by
            default a half of the run's, by a hash of ``seed`` and id. Figures are of the other queries.
        protected: Of ``fair``, the group that needs a minimum; by default the one that lacks most on these queries.
        alpha: Of ``fair``, the significance, by default 0.1.
        per: Of ``shift``, an offset per "group" (default) or per unit of "magnitude".
        top: Of ``fair`` and ``detconstsort``, how many first ranks have the promise, chosen from the first ``depth``
            documents; by default all of these.
        seed: Seed of the division of queries and of intervals.
        order: As in an audit.
        name: The name of the new run.
        provenance: The record of how the inputs were made, if the caller knows more.
        **groups: As :func:`evenrank.audit` takes them.

    Returns:
        The new run with its figures; see :class:`Rebalanced`.

    Raises:
        EvenrankError: For input that cannot be used. ``UnmetError``, which is one, if no strength meets the bounds.
    """
    source = ListGroups(collection, **groups, target=target, missing=missing)
    options = MethodOptions(method, protected, alpha, per, top)
    only = only_ids(queries, only_queries=only_queries)
    bounds, tuning = (parsed(meet, "meet"), parsed(keep, "keep")), TuningQueries.of(tune_queries, seed)
    request = Request(options, source, strength, *bounds, depth, tuning, seed, only)
    request.check(qrels is not None)
    if out is not None:
        read = (run, collection, source.scores, source.labels, source.lexicon, target, qrels, queries, tune_queries)
        check_outputs([out, card_path(out)], read)
    if provenance is None:
        provenance = Provenance("evenrank.rebalance")
        provenance.add("run", run)
        source.note(provenance)
        provenance.add("qrels", qrels).add("queries", queries).add("tune_queries", tune_queries)
    provenance.ahead()
    given = as_run(run, order=order)
    judged = None if qrels is None else as_qrels(qrels)
    made = rebalanced(request, given, judged, name, provenance)
    if out is not None:
        write_run(made.run, out)
        write_card(_made_by(made), out, provenance)
    return made


def only_ids(queries: object, *, only_queries: bool) -> pl.Series | None:
    """The ids of the only queries; None for all. Raises EvenrankError for queries that would restrict nothing."""
    if only_queries and queries is None:
        raise EvenrankError("`only_queries` needs `queries`")
    if queries is not None and not only_queries:
        raise EvenrankError("`queries` are those of `only_queries`: give both or neither")
    return None if queries is None else as_queries(queries)["query_id"]


def only_those(
    run: Run, qrels: pl.DataFrame | None, only: pl.Series | None
) -> tuple[Run, pl.DataFrame | None, list[str]]:
    """The run and the judgements of the ``only`` queries (None: all), and a note on it."""
    if only is None:
        return run, qrels, []
    note = f"`only_queries`: the run and its figures are restricted to the {len(only):,} queries given."
    return restricted_to(run, only), None if qrels is None else only_judged(qrels, only), [note]


def _made_by(made: Rebalanced) -> dict[str, object]:
    """The card's values: among them, how many of the rows that were put into order were tied."""
    return {
        "stage": "rebalance",
        "method": made.method,
        "strength": made.strength,
        **made.learnt,
        "depth": made.settings["depth"],
        "tied": {"rows": made.changes.tied, "of": made.changes.total},
        "unknown": {"rows": made.changes.lacking, "of": made.changes.total},
        "bounds": made.outcomes,
        "settings": made.settings,
    }


def rebalanced(
    request: Request, run: Run, qrels: pl.DataFrame | None, name: str, provenance: Provenance | None
) -> Rebalanced:
    """A fairer order of a run in memory."""
    run, qrels, restriction = only_those(run, qrels, request.only)
    figures = qrels is not None or bool(request.bounds)
    ids = run.table["doc_id"]
    if not figures and not request.source.may_skip:
        ids = ids.filter(run.table["rank"] <= max(request.depth, SHOWN))
    grouping = request.source.grouping([ids], request.depth)
    if grouping.drawn is not None and request.bounds:
        raise EvenrankError(
            "`meet` and `keep` need every document's group, of which labels that were drawn are a sample: choose the"
            " strength by a lexicon, then audit both runs with labels drawn for both"
        )
    queries = run.queries
    chosen = request.queries.chosen(queries, qrels) if request.tunes else pl.Series([False] * len(queries))
    notes = [*([] if qrels is not None else [UNKNOWN_EFFECTIVENESS]), *restriction]
    if request.tunes:
        tuning = int(chosen.sum())
        request.queries.check(tuning, len(queries) - tuning)
        notes.append(request.queries.note(tuning, len(queries) - tuning))
    on = restricted(run, chosen) if request.tunes else None
    absent = absent_queries(queries, qrels)
    absent_tuning = (
        request.queries.chosen(absent, qrels) if request.tunes else pl.Series([False] * len(absent), dtype=pl.Boolean)
    )
    plan = request.plan(grouping, on, qrels, absent.filter(absent_tuning))
    lists = grouping.lists(run)
    order, kept = applied(plan.method, lists.lists, plan.strength)
    made = replace(lists.reordered(order), name=name if name != run.name else f"{name} (rebalanced)")
    changes = lists.changes(order, (~chosen).to_numpy())
    notes += notes_of(request, plan, grouping, changes, kept)
    moved = []
    if plan.strength > 0 and not changes.moved:
        moved.append(_SAYS.find(_nothing_moved(plan.method.name, grouping, kept), name, place="warning"))
    others, tuned = None, None
    if figures:
        asked = measures_of(request, grouping, qrels is not None)
        said = _Figures(untied(run), made, grouping, qrels, asked, request.seed)
        others = said.audit(~chosen, absent.filter(~absent_tuning))
        tuned = said.audit(chosen, absent.filter(absent_tuning)) if on is not None else None
    else:
        pair = (restricted(one, ~chosen) for one in (run, made))
        # Lists close up over documents that are skipped, so that later ones come to be looked at.
        others = _bias_alone(request, grouping, *(pair if grouping.missing == "skip" else map(_shown, pair)))
    if grouping.drawn is not None:
        moved.append(_SAYS.find("by_guess", name, "cannot be told", place="warning"))
    if grouping.drawn is not None and others is not None:
        figures_after = others[made.name].figures.values()
        if any(is_bias(one.measure) and one.from_labels is None for one in figures_after):
            moved.append(_SAYS.find("not_drawn", name, "cannot be told", place="warning"))
    return Rebalanced(
        made.name,
        request.method.name,
        plan.strength,
        plan.learnt,
        changes,
        () if others is None else _outcomes(request, plan, others, made.name),
        others,
        tuned,
        _settings(request, grouping),
        tuple(notes),
        provenance=provenance,
        strengths=plan.strengths,
        run=made,
        lacks=(*absence_findings(run.name, absent, qrels), *unknown_findings(run.name, changes, grouping), *moved),
    )


def measures_of(request: Request, grouping: Grouping, judged: bool) -> list[Measure]:
    """The measures that are reported: the usual ones that a new order of the first documents can move, and the bounds'.

    Recall deeper than ``depth`` and figures of whole lists are left out.
    """
    table = grouping.table if grouping.drawn is None else grouping.drawn
    usual = [measure for measure in usual_measures(table, judged) if not resolve(measure).whole_run]
    near = [measure for measure in usual if measure.params.get("cutoff", request.depth + 1) <= max(request.depth, 10)]
    return sorted(dict.fromkeys([*(bound.measure for bound in request.bounds), *near]), key=is_bias)


def _shown(run: Run) -> Run:
    """The first documents of each query, which are all that :func:`_bias_alone` looks at."""
    return replace(run, table=run.table.filter(pl.col("rank") <= SHOWN))


def _bias_alone(request: Request, grouping: Grouping, run: Run, made: Run) -> AuditResult | None:
    """Bias before and after where effectiveness is unknown, of the first documents; None if no measure is of them.

    Measures that compare with all candidates, such as NFaiRR, need the groups of all documents, of which only the first
    are looked up.
    """
    asked = [measure for measure in measures_of(request, grouping, False) if _is_of_shown(measure, grouping)]
    if not asked:
        return None
    every = pl.Series([True] * len(run.queries))
    return _Figures(untied(run), made, grouping, None, asked, request.seed).audit(every, run.queries.clear())


def _is_of_shown(measure: Measure, grouping: Grouping) -> bool:
    how = resolve(measure)
    of_candidates = grouping.target is not None and grouping.target.kind == "candidates" and not how.signed
    return not how.needs_background and not of_candidates and measure.params.get("cutoff", SHOWN + 1) <= SHOWN


def _settings(request: Request, grouping: Grouping) -> dict[str, object]:
    """The settings as JSON values."""
    target = grouping.target
    return {
        **grouping.table.settings,
        "depth": request.depth,
        **({} if request.method.top is None else {"top": request.method.top}),
        "target": "the shares of the lexicon or the labels" if target is None else target.described,
        "missing": grouping.missing,
        "meet": [bound.text for bound in request.meet],
        "keep": [bound.text for bound in request.keep],
        "seed": request.seed,
        **({} if request.only is None else {"only_queries": len(request.only)}),
    }


@dataclass(frozen=True, slots=True)
class _Figures:
    """What figures are made from: a run, its new order, and the measures."""

    run: Run
    made: Run
    grouping: Grouping
    qrels: pl.DataFrame | None
    measures: list[Measure]
    seed: int

    def audit(self, chosen: pl.Series, absent: pl.Series) -> AuditResult:
        """The audit on the ``chosen`` queries [Q] of the run (bool), and on judged ones that it lacks."""
        before, qrels = restricted(self.run, chosen), self.qrels
        if qrels is not None:
            if not qrels["query_id"].is_in(before.queries.implode()).any():
                of = counted(int(chosen.sum()), "query")
                raise EvenrankError(f"the qrels judge none of {of} of the run that figures are of")
            qrels = qrels.filter(pl.col("query_id").is_in(pl.concat([before.queries, absent]).implode()))
        grouping = self.grouping
        unknown: Literal["bounds", "skip", "neutral"] = "neutral" if grouping.missing == "neutral" else "skip"
        labelled = grouping.table.labelled
        return audit(
            {self.run.name: before, self.made.name: restricted(self.made, chosen)},
            scores=grouping.table if grouping.drawn is None else grouping.drawn,
            qrels=qrels,
            baseline=self.run.name,
            target=grouping.target,
            measures=self.measures,
            seed=self.seed,
            missing="error" if labelled else grouping.missing,
            missing_limit=1.0,
            unknown="bounds" if grouping.drawn is not None else unknown if labelled else None,
        )


def _outcomes(request: Request, plan: Plan, found: AuditResult, name: str) -> tuple[Outcome, ...]:
    def values(run: str, measure: Measure) -> Array:
        return np.asarray(found[run, str(measure)].values)

    def greatest(measure: Measure) -> float:
        known = [found[run, str(measure)].greatest for run in (name, base)]
        return max(math.inf if one is None else one for one in known)

    base, several = str(found.baseline), len(request.bounds)
    return tuple(
        outcome(
            bound,
            tuned,
            values(name, bound.measure),
            values(base, bound.measure),
            greatest(bound.measure),
            several,
            None if found.query_cluster is None else found.query_cluster.to_numpy(),
        )
        for bound, tuned in zip(request.bounds, plan.sizes or (), strict=True)
    )
