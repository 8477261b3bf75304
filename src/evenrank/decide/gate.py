"""Whether a run keeps to a budget: every rule holds, is violated, or is not shown; in words and for machines."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeGuard, runtime_checkable
from xml.etree import ElementTree

import numpy as np

from evenrank import options as opt
from evenrank.files import Provenance
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, InputError, plain, quoted, readable, reason_of, shown
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.types import EQUAL, NEAR_ZERO, Array, holm, unequally_deep
from evenrank.files.wording import counted, percent
from evenrank.measures import parse_measure, resolve
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Chip, Page, Section, Verdicts
from evenrank.results.result import Result, metric_entries
from evenrank.results.table import COUNT, NONE, Column, P, Table, digits, short, true_minus, wrapped
from evenrank.stats.bounds import (
    AbsoluteLimit,
    BoundTest,
    MeanBound,
    Outcome,
    bound_mean,
    limit_absolute,
    margin_absolute,
)
from evenrank.stats.bounds import outcome as outcome_of
from evenrank.stats.compare import LEAST_CLUSTERS, LEAST_SAMPLE
from evenrank.stats.estimate import Estimate, defined
from evenrank.stats.planning import queries_to_decide, queries_to_hold
from evenrank.stats.sampling import LabelSample, SamplePair, on_queries

from .budget import ALPHA, BASELINE, Budget, Facts, Rule, as_budget


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A rule's test, None with fewer than two queries (of each part), and what it was made of.

    ``n``: queries used; ``left_out``: those with a value in only one of the runs; ``mean`` and ``other``: the runs'
    figures over the queries used, with their signs. ``n_if_equal``: the number of queries that show that the rule holds
    if the runs are equally good, with the spread of their differences; ``n_identical``: if they are the same run. Both
    None where the rule has no margin between two runs.
    """

    test: BoundTest | None
    n: int
    left_out: int
    mean: float | None
    other: float | None
    n_if_equal: int | None = None
    n_identical: int | None = None


def rule_test(
    rule: Rule,
    values: Sequence[Array],
    others: Sequence[Array] | None,
    *,
    greatest: float,
    alpha: float,
    samples: SamplePair = (None, None),
    clusters: Array | None = None,
) -> RuleTest:
    """The test of a rule on the values [Q] of a run's parts, and those of the run that it is against.

    ``greatest``: the size of the greatest value that the measure can take, infinite if that is not known; ``samples``:
    what the values owe to labels that were drawn; ``clusters`` [Q]: the clusters of the queries. Raises EvenrankError
    for a share of a mean that is not above 0.
    """
    gone = [np.isnan(v) if others is None else np.isnan(v) | np.isnan(others[k]) for k, v in enumerate(values)]
    own = [v[~out] for v, out in zip(values, gone, strict=True)]
    other = None if others is None else [v[~out] for v, out in zip(others, gone, strict=True)]
    within = None if clusters is None else [clusters[~out] for out in gone]
    if within is not None and all(len(np.unique(one)) == len(one) for one in within):
        within = None
    n = int((~np.stack(gone).all(axis=0)).sum())
    samples = on_queries(samples, ~gone[0])
    left_out = 0
    if others is not None:
        lone = [np.isnan(v) != np.isnan(o) for v, o in zip(values, others, strict=True)]
        left_out = int(np.any(lone, axis=0).sum())
    factors = _factors(rule, len(values))
    mean, of_other = _mean(own, factors), None if other is None else _mean(other, factors)
    if min(map(len, own)) < 2:
        return RuleTest(None, n, left_out, mean, of_other)
    least, most = _range(rule, greatest)
    if rule.absolute:
        size = max(abs(least), abs(most))
        if other is None:
            limit: BoundTest = limit_absolute(own, rule.bound, size, factors, sample=samples[0], clusters=within)
        else:
            limit = margin_absolute(own, other, rule.bound, size, factors, samples=samples, clusters=within)
        return RuleTest(limit, n, left_out, mean, of_other)
    if rule.relative and (of_other is None or of_other <= NEAR_ZERO):
        raise EvenrankError(f"a share of {rule.measure} of {of_other or 0:.3g} means nothing: expected a number")
    z, loss, gain = _within(rule, own, other, (least, most))
    unit = of_other if rule.relative and of_other is not None else 1.0
    sign = 1 if rule.floor else -1
    share = -(1 + rule.bound) if rule.relative else -1.0
    test = bound_mean(
        z,
        loss,
        gain=gain if math.isfinite(gain) else None,
        zeros="drop" if rule.facts.bias else "keep",
        bound=rule.bound,
        sign=sign,
        unit=unit,
        factors=factors,
        sample=samples[0] and samples[0].plus(samples[1], share),
        clusters=within,
    )
    margin = -sign * rule.bound * unit
    found = RuleTest(test, n, left_out, mean, of_other)
    if other is None or margin <= NEAR_ZERO or not math.isfinite(most - least):
        return found
    of_base = abs(rule.bound) * other[0] if rule.relative else np.zeros(len(other[0]))
    # The spread of z where the runs are equally good: of their differences, and of the margin that a query has.
    spreads = (float(np.std(one, ddof=1)) for one in (own[0] - other[0] + sign * of_base, of_base))
    effect = test.design_effect
    n_if_equal, n_identical = (queries_to_hold(margin, sd, loss, alpha, design_effect=effect) for sd in spreads)
    return replace(found, n_if_equal=n_if_equal, n_identical=n_identical)


def _range(rule: Rule, greatest: float) -> tuple[float, float]:
    """The least and the most that a query's value of the rule's quantity can be; infinite where that is not known."""
    least = rule.facts.least if math.isfinite(rule.facts.least) else -greatest
    most = rule.facts.most if math.isfinite(rule.facts.most) else greatest
    # A difference from the same documents in another order.
    return (least, most) if rule.quantity == "figure" else (least - most, most - least)


def _within(
    rule: Rule, own: list[Array], other: list[Array] | None, ends: tuple[float, float]
) -> tuple[list[Array], float, float]:
    """How far each query [n] of each part is within the bound, and how far beyond it, and within it, one can be."""
    sign, (least, most) = 1 if rule.floor else -1, ends
    share = 1 + rule.bound if rule.relative else 1.0
    bound = 0.0 if rule.relative else rule.bound
    others = [np.zeros(len(part)) for part in own] if other is None else [share * part for part in other]
    within = [sign * (a - b - bound) for a, b in zip(own, others, strict=True)]
    low, high = (0.0, 0.0) if other is None else (share * least, share * most)
    extremes = sign * (least - high - bound), sign * (most - low - bound)
    return within, -min(extremes), max(extremes)


def _factors(rule: Rule, parts: int) -> list[float]:
    """How the means of a figure's parts enter it: with 1, or with the signs of a difference of poles."""
    return list(rule.facts.signs) if len(rule.facts.signs) == parts else [1.0] * parts


def _mean(parts: list[Array], factors: list[float]) -> float | None:
    if not all(map(len, parts)):
        return None
    return sum(factor * float(part.mean()) for factor, part in zip(factors, parts, strict=True))


REFERENCES = ("random", "neutral-first", "relevance-first")
"""The audit's reference rankings; a rule can be against one, but they are not gated."""
_OF_SAMPLE = {
    "query": np.int64,
    "document": np.int64,
    "weight": np.float64,
    "residual": np.float64,
    "probability": np.float64,
    "contradicts": np.bool_,
}
_LARGEST = 1e50
"""The sums of powers of larger values overflow."""
_WITHOUT = "`evenrank audit … --json F --values` writes them"


@dataclass(frozen=True, slots=True)
class Audited:
    """The JSON of an audit with the values by query, and the file that it was read from."""

    data: Mapping[str, object]
    path: str | None = None

    def fail(self, message: str) -> EvenrankError:
        """An error about the audit."""
        return EvenrankError(message) if self.path is None else InputError(self.path, message)

    @property
    def runs(self) -> Mapping[str, object]:
        """What the audit says of each run."""
        return _table(self.data.get("runs"))

    @property
    def given(self) -> list[str]:
        """The runs that are no references."""
        return [name for name in self.runs if name not in REFERENCES]

    @property
    def warnings(self) -> list[str]:
        """The notes without which the figures mislead."""
        found = self.data.get("warnings")
        return [one for one in found if isinstance(one, str)] if isinstance(found, list | tuple) else []

    @property
    def facts(self) -> dict[str, Facts]:
        """What the measures are, by their texts."""
        found = {name: Facts.of(values) for name, values in _table(self.data.get("measures")).items()}
        return {name: facts for name, facts in found.items() if facts is not None}

    @property
    def provenance(self) -> Mapping[str, object] | None:
        """How the audit was made."""
        return _table(self.data.get("provenance")) or None

    def baseline(self, wanted: str | None) -> str | None:
        """The run that "baseline" means. Raises EvenrankError for one that the audit lacks."""
        own = self.data.get("baseline")
        name = own if wanted is None and isinstance(own, str) else wanted
        if name is not None and name not in self.runs:
            raise self.fail(f"no run {quoted(name)} to be the `baseline` (the runs are {', '.join(self.given)})")
        return name

    def run(self, wanted: str | None, baseline: str | None) -> str:
        """The run that is gated. Raises EvenrankError if it is unknown or not the only one that is no baseline."""
        if wanted is not None:
            if wanted not in self.given:
                raise self.fail(f"no run {quoted(wanted)} (the runs are {', '.join(self.given)})")
            return wanted
        others = [name for name in self.given if name != baseline] or self.given
        if len(others) != 1:
            raise self.fail(f"`run`: expected the one to gate of {', '.join(others) or 'no runs'}")
        return others[0]

    def figure(self, run: str, rule: Rule) -> Mapping[str, object]:
        """What the audit says of a run and the measure of a rule. Raises EvenrankError if it was not measured."""
        figures = _table(_table(self.runs[run]).get("measures"))
        found = figures.get(rule.measure)
        if found is None:
            # Another spelling, in a file that was written by hand.
            spelled = {_canonical(name): name for name in figures}
            found = figures.get(spelled.get(rule.measure, ""))
        if not isinstance(found, Mapping):
            needed = "" if rule.facts.bias else "; effectiveness needs `qrels`"
            raise EvenrankError(f"{rule.measure} is not in the audit, which has {', '.join(figures)}{needed}")
        return found

    def parts(self, run: str, rule: Rule, *, over_ties: bool = False) -> list[Array]:
        """The values [Q] that a rule's quantity of a run is made of; NaN is undefined.

        ``over_ties``: their expectations over the orders of tied documents.
        """
        figure = self.figure(run, rule)
        if rule.quantity != "figure":
            figure = self._excess(figure, run, rule)
        if over_ties and figure.get("over_ties") is not None:
            return [np.where(self.inside(rule), self._array(figure["over_ties"]), np.nan)]
        found = figure.get("parts")
        if found is None:
            found = [figure.get("values")]
        elif not isinstance(found, list | tuple) or len(found) != len(rule.facts.signs):
            wanted = counted(len(rule.facts.signs), "list")
            raise self.fail(f"no audit's JSON: parts of {rule.measure}: expected {wanted} of values")
        if any(values is None for values in found):
            raise self.fail(f"no values of the queries: {_WITHOUT}")
        inside = self.inside(rule)
        return [np.where(inside, self._array(values), np.nan) for values in found]

    @property
    def clusters(self) -> Array | None:
        """The cluster of each query [Q]; None where queries are independent."""
        found = self.data.get("query_cluster")
        if found is None:
            return None
        numbers = self._array(found)
        if np.isnan(numbers).any():
            raise self.fail("no audit's JSON: expected a whole number for each query in query_cluster")
        return np.unique(numbers, return_inverse=True)[1]

    def inside(self, rule: Rule) -> Array:
        """Which of the queries [Q] a rule is about. Raises EvenrankError for a group that the audit does not have."""
        if rule.queries is None:
            return np.ones(len(self.ids), np.bool_)
        found = self.data.get("query_group")
        if not isinstance(found, list | tuple) or len(found) != len(self.ids):
            raise EvenrankError(f"queries = {quoted(rule.queries)}: no groups of queries were given (`query_groups`)")
        inside = np.array([group == rule.queries for group in found])
        if not inside.any():
            known = ", ".join(sorted({group for group in found if isinstance(group, str)}))
            raise EvenrankError(f"queries: no query group {quoted(rule.queries)} (the groups are {known})")
        return inside

    def sample(self, run: str, rule: Rule) -> LabelSample | None:
        """What the values of a rule's quantity of a run owe to labels that were drawn; None of others."""
        figure = self.figure(run, rule)
        found = (figure if rule.quantity == "figure" else self._excess(figure, run, rule)).get("sample")
        if found is None:
            return None
        try:
            parts: dict[str, Array] = {name: np.array(_table(found)[name], kind) for name, kind in _OF_SAMPLE.items()}
            part = LabelSample(**parts)
            places = (part.query, len(self.ids)), (part.document, part.labels)
            sound = all(len(at) == len(part.weight) and (at >= 0).all() and (at < most).all() for at, most in places)
            sound &= len(part.probability) == len(part.contradicts) == part.labels
            sound &= bool(np.isfinite(np.concatenate([part.weight, part.residual])).all())
            if not (sound and (part.probability > 0).all() and (part.probability <= 1).all()):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self.fail(f"no audit's JSON: {rule.measure}: what it owes to drawn labels cannot be read") from None
        return part

    @property
    def poles(self) -> tuple[str, str] | None:
        """The groups that signed measures compare, the positive one first, if the audit tells."""
        found = _table(self.data.get("settings")).get("poles")
        if not isinstance(found, list | tuple) or len(found) != 2 or not all(isinstance(one, str) for one in found):
            return None
        return found[0], found[1]

    def lengths(self, run: str) -> Array | None:
        """How many documents each query [Q] has in a run; None if the audit does not tell."""
        found = _table(self.runs[run]).get("lengths")
        return None if found is None else self._array(found)

    def greatest(self, rule: Rule, runs: Sequence[str]) -> float:
        """The largest size that a query's value can have; infinite where neither audit nor budget tells."""
        if rule.greatest is not None:
            largest = max(float(np.nanmax(np.abs(part), initial=0.0)) for one in runs for part in self.parts(one, rule))
            if largest > rule.greatest + EQUAL:
                raise EvenrankError(f"greatest: a query has a value of {largest:.3g}, beyond {rule.greatest:g}")
            return rule.greatest
        if math.isfinite(rule.facts.most):
            return max(abs(rule.facts.least) if math.isfinite(rule.facts.least) else 0.0, abs(rule.facts.most))
        known = [self.figure(run, rule).get("greatest") for run in runs]
        values = [
            float(one) for one in known if isinstance(one, int | float) and not isinstance(one, bool) and one >= 0
        ]
        return max(values) if len(values) == len(runs) else math.inf

    def partly_labelled(self, runs: Sequence[str], rule: Rule) -> bool:
        """Whether documents without a label could change the figure of one of these runs."""
        figures = [self.figure(run, rule) for run in runs]
        if all(figure.get("sample") is not None for figure in figures):
            return False
        found = [_table(figure.get("known")) for figure in figures]
        return any(known.get("rows") != known.get("of") for known in found)

    def few_labels(self, run: str, rule: Rule) -> bool:
        """Whether so few labels were drawn that they tell nothing."""
        part = self.sample(run, rule)
        return part is not None and part.too_few is not None

    @property
    def ids(self) -> Sequence[object]:
        """The ids of the queries [Q]."""
        queries = self.data.get("queries")
        return queries if isinstance(queries, list | tuple) else []

    def _excess(self, figure: Mapping[str, object], run: str, rule: Rule) -> Mapping[str, object]:
        found = figure.get(rule.quantity.replace(" ", "_"))
        if not isinstance(found, Mapping):
            needed = " (it needs `qrels`)" if rule.quantity == "beyond relevance" else ""
            raise EvenrankError(f"the audit has no {quoted(rule.quantity)} of {rule.measure} for {run}{needed}")
        return found

    def _array(self, values: object) -> Array:
        queries = self.data.get("queries")
        if not isinstance(values, list | tuple) or not isinstance(queries, list | tuple):
            raise self.fail("no audit's JSON: expected a list of values for its list of queries")
        kinds: set[type] = {type(value) for value in values} - {type(None)}
        try:
            if bool in kinds or not all(issubclass(kind, Real) for kind in kinds):
                raise TypeError
            found = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise self.fail("no audit's JSON: expected numbers or null as values") from None
        except OverflowError:
            found = np.array([np.inf])
        if (np.abs(found) > _LARGEST).any():
            raise self.fail("no audit's JSON: expected finite numbers as values")
        if found.ndim != 1 or len(found) != len(queries):
            raise self.fail("no audit's JSON: expected a value for each of its queries")
        return found


def as_audited(source: str | os.PathLike[str] | Mapping[str, object]) -> Audited:
    """An audit's values from its JSON. Raises InputError for a file that is not one."""
    if isinstance(source, Mapping):
        return _checked(Audited(source))
    path = os.fspath(source)
    try:
        data = json.loads(Path(path).read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise InputError(path, f"cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(path, "no audit's JSON: expected an object with the key runs")
    return _checked(Audited(data, path))


def _no_constant(name: str) -> float:
    raise ValueError(f"expected a number or null, found {name}")


def _checked(found: Audited) -> Audited:
    if not found.given:
        raise found.fail("no audit's JSON: expected an object with the key runs")
    if found.data.get("queries") is None:
        raise found.fail(f"no values of the queries: {_WITHOUT}")
    return found


def against(audited: Audited, budget: Budget, number: int, baseline: str | None) -> str | None:
    """The run that the rule of that number compares with. Raises EvenrankError for one that the audit lacks."""
    name = budget.rules[number - 1].against
    if name is None:
        return None
    if name == BASELINE and baseline is None:
        raise budget.error(number, "against the baseline, but no run is named as `baseline`")
    name = baseline if name == BASELINE else name
    if name not in audited.runs:
        known = ", ".join([BASELINE, *audited.runs])
        raise budget.error(number, f"against: no run {quoted(name)} (the runs are {known})")
    return name


def unequal_depth(audited: Audited, run: str, rule: Rule, other: str) -> bool | None:
    """Whether depth rather than order may decide a comparison; None if the audit does not tell."""
    own, others, inside = audited.lengths(run), audited.lengths(other), audited.inside(rule)
    if own is not None and others is not None:
        return unequally_deep(own[inside], others[inside], rule.facts.cutoff)
    compared = _table(audited.figure(run, rule).get("vs_baseline"))
    if other == audited.data.get("baseline") and "unequal_depth" in compared:
        return bool(compared["unequal_depth"])
    return None


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _canonical(name: str) -> str:
    from evenrank.measures import parse_measure

    try:
        return str(parse_measure(name))
    except EvenrankError:
        return name


_SAYS = phrases("gate")
Correction = Literal["holm", "none"]
Limits = tuple[float, float]
UndecidableReason = Literal["unlabelled", "unequal", "few_labels", "labels", "tied", "missing"]
"""Why nothing can be told of a rule, whatever the number of queries: the template that says it."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The outcome of one rule.

    Attributes:
        outcome: "holds", "violated" or "not shown".
        value: The estimate that the budget bounds: the figure, its absolute value, the difference from ``against`` or
            that as a share; None if no query has a value. ``run``: the run that was gated.
        limits: The one-sided limits of ``value``, each at the budget's level: of the side that could break the rule
            with one query more that loses all it can. None with one query.
        n: Number of queries with a value (in both runs); ``left_out``: those with a value in only one of them.
        mean, other_mean: The figures of the run and of ``against`` over these queries, with their signs.
        p_holds, p_violated: One-sided p-values of the two claims; ``holm_p``: the second after Holm's correction.
        queries_to_decide: Of a rule that is not shown, the number of queries with which it would be decided in 8 of 10
            samples, if the truth is what was observed; None if no number would, as where lists differ in length or
            documents lack a label, or with one query.
        n_if_equal: Of a margin between two runs, the number that would show that it holds if they are equally good,
            with the spread of these differences; ``n_identical``: if they are the same run.
        detectable: The true value nearest to the budget of which so many queries show that it violates it in 8 of 10
            samples at most. None of an absolute value against another run's, and if the measure has no such value.
        direction: The groups that ``mean`` and ``other_mean`` lean to, where their signs tell and the audit names them.
    """

    also: ClassVar = ("name",)
    rule: Rule
    against: str | None
    outcome: Outcome
    value: float | None
    limits: Limits | None
    n: int
    left_out: int
    mean: float | None
    other_mean: float | None
    p_holds: float | None
    p_violated: float | None
    holm_p: float | None
    queries_to_decide: int | None
    detectable: float | None
    n_if_equal: int | None
    n_identical: int | None
    alpha: float
    level: float
    """The level at which the rule is violated if it is the only one that is; ``alpha``: that of its limits."""
    test: BoundTest | None = field(repr=False, compare=False, default=None, metadata=LEFT_OUT)
    run: str = ""
    direction: tuple[str | None, str | None] = (None, None)
    undecidable_reason: UndecidableReason | None = field(default=None, metadata=LEFT_OUT)
    """Of a rule that is not shown: why more queries would not help."""

    @property
    def subject(self) -> str:
        """What the rule looks at: ``nDCG@10 vs BM25``."""
        return self.rule.subject + ("" if self.against is None else f" vs {self.against}")

    @property
    def title(self) -> str:
        """The rule's name, if it has one, and what it looks at."""
        return self.subject if self.rule.name is None else f"{self.rule.name} ({self.subject})"

    @property
    def name(self) -> str:
        """The rule's name; without one, what it looks at."""
        return self.rule.name or self.subject

    def power(self, at: float) -> float:
        """The probability that a sample like this one shows the rule to be violated if the true value is ``at``.

        In the units of the budget: −0.03 for "-3%". Raises EvenrankError where there was no test, and of an absolute
        value against another run's.
        """
        if self.test is None:
            raise EvenrankError(f"{self.name}: fewer than two queries show nothing")
        if not _has_power(self.test):
            raise EvenrankError(f"{self.name}: no power is stated of an absolute value against another run's")
        return self.test.power(at, self.level)


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Result):
    """What :func:`evenrank.gate` returns: whether a run keeps to a budget.

    Attributes:
        run: The run that was gated; ``baseline``: what "baseline" means, if there is one.
        rulings: The rules in the budget's order, each with its outcome.
        alpha: The level of the one-sided limits; ``correction``: of the rules that are violated, "holm" or "none".
        misleading: What misleads in the audit or in the budget; ``warnings``: the sentences.
        audit: The provenance of the audit, as JSON values.
    """

    also: ClassVar = ("outcome", "warnings")
    run: str
    baseline: str | None
    rulings: tuple[RuleResult, ...] = field(metadata=named("rules"))
    alpha: float
    correction: Correction
    misleading: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)
    audit: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> Outcome:
        """ "violated" if one rule is, "holds" if all hold, else "not shown"."""
        outcomes = [ruling.outcome for ruling in self.rulings]
        if "violated" in outcomes:
            return "violated"
        return "not shown" if "not shown" in outcomes else "holds"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What misleads in the audit or in the budget."""
        return tuple(one.text for one in self.misleading if one.place == "warning")

    def status(self, *, strict: bool = False) -> int:
        """The exit status of ``evenrank gate``: 0 holds, 1 violated, 3 not shown (``strict``: 1)."""
        return {"holds": 0, "violated": 1, "not shown": 1 if strict else 3}[self.outcome]

    def __repr__(self) -> str:
        return self.table()

    def metrics(self) -> dict[str, float]:
        """Each rule's value by name, as trackers of experiments take it, with its one-sided limits, and ``status``.

        ``nDCG@10 vs old``, ``nDCG@10 vs old/low``, ``nDCG@10 vs old/high``; ``status``: 0, 1 (violated), 3 (not shown).
        """
        entries = [metric_entries(ruling.name, ruling.value, ruling.limits) for ruling in self.rulings]
        values = {name: value for entry in entries for name, value in entry.items()}
        return values | {"status": float(self.status())}

    def table(self, *, full: bool = False, width: int = 80) -> str:
        """The outcome and the rules for a terminal: no line of it is a command to a pipeline."""
        return "\n".join(map(_printed, self.page().text(full=full, width=width).split("\n")))

    def page(self) -> Page:
        """The outcome, and the rules with their figures."""
        glance = tuple((one.title, (Chip(one.outcome, _TONES[one.outcome]),)) for one in self.rulings)
        found = (_outcome(self), *self.misleading, *(finding(ruling) for ruling in self.rulings))
        return Page(
            "gate",
            f"{self.run} against its budget",
            found,
            rules_table(self, _WIDTH),
            sections=(Section("All figures", (_figures_table(self),)),),
            verdicts=Verdicts(("rule", "outcome"), glance),
            facts=(("level of the limits", f"{self.alpha:g}"),),
            legend=("limit: with one imagined query that loses all it can; an interval has none",),
            source="A rule holds if its limit lies within the budget.",
            provenance=self.provenance,
        )

    def markdown(self) -> str:
        """The rules as a Markdown table, for a pull request."""
        return markdown(self)

    def junit(self, *, strict: bool = False) -> str:
        """The rules as JUnit XML: one test case each; what is not shown is skipped (``strict``: a failure)."""
        return junit(self, strict=strict)

    def annotations(self, *, strict: bool = False) -> str:
        """The rules as annotations of GitHub Actions, a line each."""
        return workflow_commands(self, strict=strict)


_MOST_QUERIES = 1e9
_MANY = 1_000_000
_WIDTH = 80
_POLES = re.compile(r"poles='([^',]*),([^',]*)'")


@runtime_checkable
class WithValues(Protocol):
    """The result of an audit."""

    def to_json(self, path: None = None, *, values: bool = False) -> str:
        """The audit as JSON, with the values of every query."""


@checked
def gate(
    audited: WithValues | opt.File | Mapping[str, object],
    *,
    budget: Annotated[Budget | opt.File | Mapping[str, object], opt.Option("The rules (TOML).", reads=True)],
    baseline: Annotated[
        str | None,
        opt.Option("The run that rules call the baseline; a file, or a name.", metavar="[NAME=]RUN", panel="Input"),
    ] = None,
    run: Annotated[
        str | None,
        opt.Option(
            "Which run to gate (default: the first; of AUDIT.json the only other one).",
            metavar="NAME",
            panel="Input",
            rare=True,
        ),
    ] = None,
    correction: Annotated[
        Literal["holm", "none"],
        opt.Option("For the number of rules, of those that are violated: holm or none.", panel="Statistics", rare=True),
    ] = "holm",
) -> GateResult:
    """Decide whether a run keeps to a budget. Every rule holds, is violated, or is not shown.

    A rule *holds* if the one-sided 95% interval of its value lies within the budget. It is *violated* if the value is
    shown to lie beyond the budget, also after Holm's correction for the number of rules: with several rules, more than
    an interval beyond it. Otherwise it is *not shown*. All rules have to hold, so what holds needs no correction.

    Args:
        audited: What :func:`evenrank.audit` returned, or its JSON with the values by query: a file or a dict.
        budget: A TOML file, the values that such a file has, or what :func:`evenrank.decide.budget.as_budget`
            returned, whose ``measures`` are those that the audit needs.
        run: The run to gate; by default the only one that is not the baseline.
        baseline: What "baseline" means in the rules; by default the audit's.
        correction: "holm" (default): several rules are violated by chance in at most 5%; "none": each rule is.

    Raises:
        EvenrankError: For a budget or an audit that cannot be used, or a rule that the audit has no values for.
    """
    if not isinstance(audited, str | os.PathLike | Mapping | WithValues):
        raise EvenrankError(f"`audited`: expected an audit's result, or its JSON, found {shown(audited)}")
    provenance = Provenance("evenrank.gate").add("audit", audited)
    provenance.add("budget", budget.path if isinstance(budget, Budget) and budget.path is not None else budget)
    provenance.ahead()
    values = as_audited(as_json_values(audited))
    rules = as_budget(budget, values.facts)
    base = values.baseline(baseline)
    gated = values.run(run, base)
    results = _rulings(rules, _rule_tests(values, rules, gated, base), correction)
    # What only the order of ties decides, or queries that a run lacks and that count as 0, is not shown.
    over_ties = _rulings(rules, _rule_tests(values, rules, gated, base, over_ties=True), correction)
    in_common = _rulings(rules, _rule_tests(values, rules, gated, base, in_common=True), correction)
    rulings = tuple(
        replace(_beyond(values, gated, ruling), run=gated, direction=_direction(values, ruling))
        for ruling in (
            _unless_turned(_unless_turned(result, tied, "tied"), common, "missing")
            for result, tied, common in zip(results, over_ties, in_common, strict=True)
        )
    )
    # The words of the audit's own are not the gate's.
    passed_on = (Finding("audit", "", "cannot be told", None, said, "warning") for said in values.warnings)
    misleading = (*passed_on, *_misleading(values, gated, rulings), *_of_clusters(values))
    return GateResult(
        gated, base, rulings, rules.alpha, correction, misleading, values.provenance, provenance=provenance
    )


def _rule_tests(
    values: Audited,
    rules: Budget,
    gated: str,
    base: str | None,
    *,
    over_ties: bool = False,
    in_common: bool = False,
) -> list[tuple[str | None, RuleTest]]:
    """Each rule's test, and the run that it is against.

    ``over_ties``: of the expectations over the orders of tied documents; ``in_common``: of effectiveness, on the
    queries that both runs have.
    """
    found: list[tuple[str | None, RuleTest]] = []
    for place, rule in enumerate(rules.rules, start=1):
        other = against(values, rules, place, base)
        if other == gated:
            raise rules.error(place, f"against: {quoted(gated)} is the run that is gated")
        runs = [gated, *([] if other is None else [other])]
        try:
            if "pooled=True" in rule.measure:
                raise EvenrankError("a pooled ratio is no mean over queries: the audit's impact table tests it")
            own, *others = (values.parts(run, rule, over_ties=over_ties) for run in runs)
            if in_common and not rule.facts.bias:
                lengths = [one for run in runs if (one := values.lengths(run)) is not None]
                lacking = np.isnan(np.stack(lengths)).any(axis=0) if lengths else np.zeros(len(values.ids), np.bool_)
                own, *others = ([np.where(lacking, np.nan, part) for part in parts] for parts in (own, *others))
            if others and len(others[0]) != len(own):
                raise values.fail(f"no audit's JSON: {rule.measure} has parts in only one of {gated} and {other}")
            test = rule_test(
                rule,
                own,
                others[0] if others else None,
                greatest=values.greatest(rule, runs),
                alpha=rules.alpha,
                samples=(values.sample(gated, rule), None if other is None else values.sample(other, rule)),
                clusters=values.clusters,
            )
            if values.partly_labelled(runs, rule) or values.few_labels(gated, rule):
                test = replace(test, test=None)
            found.append((other, test))
        except EvenrankError as error:
            raise rules.error(place, str(error)) from None
    return found


def _unless_turned(ruling: RuleResult, other: RuleResult, reason: UndecidableReason) -> RuleResult:
    """The ruling, not shown for this ``reason`` where the ``other`` one of the same rule has not the same outcome."""
    if ruling.outcome in (other.outcome, "not shown"):
        return ruling
    return replace(ruling, outcome="not shown", undecidable_reason=reason)


def as_json_values(audited: WithValues | opt.File | Mapping[str, object]) -> opt.File | Mapping[str, object]:
    """A file or a dict as it is, a result as the dict that its JSON has."""
    if isinstance(audited, str | os.PathLike | Mapping):
        return audited
    values: dict[str, object] = json.loads(audited.to_json(values=True))
    return values


def _rulings(
    budget: Budget, found: list[tuple[str | None, RuleTest]], correction: Correction
) -> tuple[RuleResult, ...]:
    p_violated = [None if one.test is None else one.test.p_violated() for _, one in found]
    tests = sum(p is not None for p in p_violated)
    corrected = holm(p_violated) if correction == "holm" else p_violated
    level = budget.alpha / max(tests, 1) if correction == "holm" else budget.alpha
    rows = zip(budget.rules, found, p_violated, corrected, strict=True)
    return tuple(_ruling(rule, other, one, (p, after), (budget.alpha, level)) for rule, (other, one), p, after in rows)


def _ruling(
    rule: Rule,
    other: str | None,
    found: RuleTest,
    p_violated: tuple[float | None, float | None],
    levels: tuple[float, float],
) -> RuleResult:
    """``p_violated``: before and after correction; ``levels``: of what holds, and of what is violated."""
    test, (p, corrected), (alpha, level) = found.test, p_violated, levels
    if test is None:
        value = _value_of(rule, found.mean, found.other)
        counts = found.n, found.left_out, found.mean, found.other
        nothing = (None,) * 7
        return RuleResult(rule, other, "not shown", value, None, *counts, *nothing, alpha, level)
    p_holds = test.p_holds()
    outcome = outcome_of(test, corrected, alpha)
    return RuleResult(
        rule,
        other,
        outcome,
        test.value,
        _possible_limits(rule, test, alpha, found.other),
        found.n,
        found.left_out,
        found.mean,
        found.other,
        p_holds,
        p,
        corrected,
        _queries_to_decide(test, found, alpha, level) if outcome == "not shown" else None,
        _detectable(rule, test, level, found.other),
        found.n_if_equal,
        found.n_identical,
        alpha,
        level,
        test,
    )


def _possible_limits(rule: Rule, test: BoundTest, alpha: float, other: float | None) -> Limits | None:
    """The limits without values that the rule's quantity cannot have; None below six clusters, as of one query."""
    if isinstance(test, AbsoluteLimit):
        few = test.n_effective < LEAST_CLUSTERS <= test.upper.n
    else:
        few = test.n_effective < LEAST_CLUSTERS <= test.n
    if few:
        return None
    least, most = rule.scale(other)
    low, high = test.limits(alpha)
    return min(max(low, least), most), max(min(high, most), least)


def _value_of(rule: Rule, own: float | None, other: float | None) -> float | None:
    """What a rule bounds, from the means of the run and of the one that it is against; None if it is undefined."""
    if own is None or (rule.against is not None and other is None):
        return None
    size = abs(own) if rule.absolute else own
    if other is None:
        return size
    if rule.relative:
        return None if other <= NEAR_ZERO else size / other - 1
    return size - (abs(other) if rule.absolute else other)


def _has_power(test: BoundTest | None) -> TypeGuard[MeanBound | AbsoluteLimit]:
    """Whether power is stated: where an absolute value is against another run's, it would depend on both means."""
    return isinstance(test, MeanBound | AbsoluteLimit)


def _detectable(rule: Rule, test: BoundTest, level: float, other: float | None) -> float | None:
    """What is caught, if the measure can have such a value; None of an absolute value against another run's."""
    if not _has_power(test):
        return None
    low, high = rule.scale(other)
    value = test.detectable(level)
    return value if value is not None and low - EQUAL <= value <= high + EQUAL else None


def _beyond(audited: Audited, run: str, ruling: RuleResult) -> RuleResult:
    """The ruling, where it is not shown with the reason that more queries do nothing about."""
    rule, other = ruling.rule, ruling.against
    if ruling.outcome != "not shown":
        return ruling
    if audited.partly_labelled([run, *([] if other is None else [other])], rule):
        return replace(ruling, undecidable_reason="unlabelled")
    if audited.few_labels(run, rule):
        return replace(ruling, undecidable_reason="few_labels")
    if other is not None and ruling.test is not None and unequal_depth(audited, run, rule, other):
        return replace(ruling, undecidable_reason="unequal", queries_to_decide=None)
    if audited.sample(run, rule) is not None:
        return replace(ruling, undecidable_reason="labels", queries_to_decide=None)
    return ruling


def _direction(audited: Audited, ruling: RuleResult) -> tuple[str | None, str | None]:
    """The groups that the means of the run and of the other lean to, where the sign tells and the audit names them."""
    own = _POLES.search(ruling.rule.measure)
    poles = (own[1].strip(), own[2].strip()) if own else audited.poles
    if not ruling.rule.absolute or poles is None:
        return None, None
    signs = [None if not mean else poles[mean < 0] for mean in (ruling.mean, ruling.other_mean)]
    return signs[0], signs[1]


def _queries_to_decide(test: BoundTest, found: RuleTest, alpha: float, level: float) -> int | None:
    """How many queries decide a rule if the truth is what these show."""
    n = found.n
    if test.distance > 0 and not math.isfinite(test.loss):
        return None
    if test.distance > 0:
        # In independent units: a cluster is imagined as one, and the standard error is that of clusters.
        effect = max(1.0, n / test.n_effective)
        sd = test.se * math.sqrt(n / effect)
        needed = queries_to_hold(test.distance, sd, test.loss, alpha, design_effect=effect)
        # As many as there are did not: what was added to the test is more than this formula knows of.
        return needed if needed is not None and needed > n else None
    # It is tested on both sides.
    needed = queries_to_decide(test.distance, test.se, n, level / 2)
    return needed if needed is not None and needed <= _MOST_QUERIES else None


def _misleading(audited: Audited, run: str, rulings: tuple[RuleResult, ...]) -> Iterator[Finding]:
    if all(ruling.rule.facts.bias for ruling in rulings):
        yield _SAYS.find("no_effectiveness", "", "cannot be told", None, "warning")
    for ruling in rulings:
        rule, other = ruling.rule, ruling.against
        deep = None if other is None else unequal_depth(audited, run, rule, other)
        if deep and ruling.undecidable_reason is None:
            yield _SAYS.find("depth", ruling.name, "cannot be told", None, "warning")
        if other is not None and deep is None:
            yield _SAYS.find("depth_unknown", ruling.name, "cannot be told", None, "warning", other=other)
        if ruling.left_out:
            queries = counted(ruling.left_out, "query")
            yield _SAYS.find("left_out", ruling.name, "cannot be told", None, "warning", queries=queries)


def _of_clusters(audited: Audited) -> Iterator[Finding]:
    """That queries share clusters, which are the units of every limit."""
    if (clusters := audited.clusters) is not None:
        sizes = counted(len(clusters), "query"), counted(len(np.unique(clusters)), "cluster")
        yield _SAYS.find("clusters", "", "cannot be told", None, "note", count=sizes[0], clusters=sizes[1])


def amount(rule: Rule, value: float | None) -> str:
    """A value in the units of a rule: ``−1.2%``, ``+.012`` for a difference, ``.048``."""
    if value is None:
        return "no value"
    if rule.relative:
        return true_minus(f"{round(100 * value, 1) + 0.0:+.1f}%")
    return short(value, sign=rule.against is not None)


def noticed(ruling: RuleResult) -> str:
    """The value nearest to the budget that would be shown to break it; "" where none is stated."""
    return amount(ruling.rule, ruling.detectable) if ruling.detectable is not None and _has_power(ruling.test) else ""


def _undecided(ruling: RuleResult) -> str:
    """Why a rule is not shown: the template of the reason."""
    test = ruling.test
    if ruling.undecidable_reason is not None:
        return _template_of(ruling.undecidable_reason)
    if test is None:
        return "few"
    if not math.isfinite(test.loss) and test.distance > 0:
        return _unbounded(ruling.rule)
    if ruling.p_violated is not None and ruling.p_violated <= ruling.alpha:
        return "corrected"
    if (test.nearer if isinstance(test, AbsoluteLimit) else test).n_effective < LEAST_CLUSTERS <= ruling.n:
        return "few_clusters"
    if ruling.n < LEAST_SAMPLE and test.distance > 0:
        return "few_queries"
    if ruling.p_violated is None and test.distance < 0:
        return "few_differ"
    if ruling.n_if_equal is not None and ruling.n_if_equal > ruling.n:
        return "margin"
    if ruling.queries_to_decide is not None:
        return "needs"
    if abs(test.distance) <= EQUAL:
        return "never"
    return "notices" if noticed(ruling) else "undecided"


def _unbounded(rule: Rule) -> str:
    """The template that says that the largest value of a query is not known: of a lean, what would tell it."""
    return "unbounded" if rule.facts.order else "unbounded_value"


def _template_of(why: UndecidableReason) -> str:
    """Why more queries would not help: the template of the reason."""
    if why == "unequal":
        return "unequal"
    if why == "few_labels":
        return "few_labels"
    if why in ("tied", "missing"):
        return "tied" if why == "tied" else "missing"
    return "labels" if why == "labels" else "unlabelled"


def _reason(ruling: RuleResult) -> str:
    """Why a rule is not shown, in words."""
    template = _undecided(ruling)
    needed = ruling.n_if_equal if template == "margin" else ruling.queries_to_decide
    return _SAYS.say(template, needed=many(needed), count=ruling.n, noticed=noticed(ruling))


def many(queries: int | None) -> str:
    """A number of queries that would be needed."""
    if queries is None:
        return NONE
    return "more than a million queries" if queries > _MANY else f"about {counted(queries, 'query')}"


def finding(ruling: RuleResult) -> Finding:
    """A rule in a sentence."""
    values: dict[str, Any] = {"value": found(ruling), "limit": ruling.rule.limit}
    # The limit has an imagined query in it: it is no end of an interval.
    estimate = Estimate(ruling.value, None, ruling.n)
    if ruling.outcome == "not shown":
        values["reason"] = _reason(ruling)
        return _SAYS.find("untold", ruling.title, ruling.outcome, estimate, "detail", **values)
    key = "is_violated" if ruling.outcome == "violated" else "holds_notices" if noticed(ruling) else "holds"
    return _SAYS.find(key, ruling.title, ruling.outcome, estimate, "detail", noticed=noticed(ruling), **values)


def found(ruling: RuleResult) -> str:
    """The value with its limit, and where an absolute value leans to: ``.056 (limit .114) towards f``."""
    limit = _bound(ruling)
    value = amount(ruling.rule, ruling.value) + (f" (limit {limit})" if limit else "")
    own, other = ruling.direction
    if own is not None and other is not None and own != other:
        return f"{value} ({ruling.run} towards {own}, {ruling.against} towards {other})"
    return value if own is None else f"{value} towards {own}"


def _leaning(ruling: RuleResult) -> str:
    own = ruling.direction[0]
    return amount(ruling.rule, ruling.value) + ("" if own is None or ruling.against is not None else f" ({own})")


def _bound(ruling: RuleResult) -> str:
    """The limit that has to be within the budget."""
    return "" if ruling.limits is None else amount(ruling.rule, ruling.limits[0 if ruling.rule.floor else 1])


def _outcome(result: GateResult) -> Finding:
    """The outcome of all rules."""
    total = len(result.rulings)
    by_outcome = {outcome: [one for one in result.rulings if one.outcome == outcome] for outcome in _LEVELS}
    violated, open_ = by_outcome["violated"], by_outcome["not shown"]
    values: dict[str, Any] = {"run": result.run, "total": counted(total, "rule")}
    if not violated and not open_:
        return _SAYS.find("all_hold" if total > 1 else "one_holds", result.run, "holds", place="answer", **values)
    named = [one.rule.name or one.rule.subject for one in violated or open_]
    values |= {"rules": named, "count": len(violated), "held": len(by_outcome["holds"])}
    if violated:
        return _SAYS.find("violated" if total > 1 else "one_violated", result.run, "violated", place="answer", **values)
    effective = [one for one in result.rulings if not one.rule.facts.bias]
    kept = bool(effective) and all(one.outcome == "holds" for one in effective)
    key = "effective" if kept else "not_shown" if total > 1 else "one_not_shown"
    if all(_undecided(one) == "needs" for one in open_):
        key += "_needs"
        needed = max(one.queries_to_decide or 0 for one in open_)
        values |= {"needed": many(needed), "count": max(one.n for one in open_)}
    elif open_[0].undecidable_reason is not None and len({one.undecidable_reason for one in open_}) == 1:
        key += "_why"
        values["why"] = _reason(open_[0])
    return _SAYS.find(key, result.run, "not shown", place="answer", **values)


def verdict(result: GateResult) -> str:
    """The outcome of all rules in one sentence."""
    return _outcome(result).text


def rules_table(result: GateResult, width: int | None = None) -> Table:
    """The rules with their outcomes, a line each; below what is not shown what would decide it.

    ``width``: in characters; what is detected is left out where it does not fit (the findings say it).
    """

    def below(ruling: RuleResult) -> str:
        return _reason(ruling) if ruling.outcome == "not shown" else ""

    columns = (
        Column("outcome", heading=""),
        Column("rule", of="title", heading=""),
        Column("value", of=_leaning),
        Column("bound", heading=f"{percent(1 - result.alpha, 1)} limit", of=_bound),
        Column("budget", of="rule.limit"),
    )
    table = Table("Rules", columns, result.rulings, below=below)
    wider = replace(table, columns=(*columns, Column("noticed", heading="detects from", of=noticed)))
    # A title that names a group of queries is not cut for it.
    fits = width is None or (wider.fits(width) and all(one.rule.queries is None for one in result.rulings))
    return wider if fits and any(map(noticed, result.rulings)) else table


def _figures_table(result: GateResult) -> Table:
    columns = (
        Column("rule", of="title"),
        Column("n", COUNT, "queries"),
        Column("left_out", COUNT, "left out"),
        Column("mean", digits(4), result.run),
        Column("other_mean", digits(4), "against"),
        Column("p_holds", P, "p holds"),
        Column("p_violated", P, "p violated"),
        Column("holm_p", P, "Holm p"),
    )
    return Table("All figures", columns, result.rulings)


def _printed(text: str) -> str:
    """One line that no pipeline takes for a command, whatever the runs are called."""
    shown = plain(readable(text)).replace("##[", "## [")
    return f"run {shown}" if shown.lstrip().startswith("::") else shown


_MARKS = re.compile(r"([\\`*_{}\[\]#!|~])")
_LINKED = re.compile(r"(?<![a-zA-Z0-9_])@|#|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_TONES: dict[str, Literal["good", "bad", "unknown"]] = {"holds": "good", "violated": "bad", "not shown": "unknown"}
_LEVELS = {"holds": "notice", "violated": "error", "not shown": "warning"}


def junit(result: GateResult, *, strict: bool) -> str:
    """The rules as JUnit XML: a test case each."""
    failed, skipped = _counted(result, strict)
    counts = {"tests": str(len(result.rulings)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "evenrank gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(f"evenrank gate {result.run}"), **counts})
    suite.set("skipped", str(skipped))
    for ruling, name in zip(result.rulings, _case_names(result), strict=True):
        names = {"classname": _xml(f"evenrank.gate.{result.run}"), "name": _xml(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        said = _xml(finding(ruling).text)
        if _fails(ruling, strict):
            ElementTree.SubElement(case, "failure", {"message": said, "type": ruling.outcome}).text = said
        elif ruling.outcome == "not shown":
            ElementTree.SubElement(case, "skipped", {"message": said})
        else:
            ElementTree.SubElement(case, "system-out").text = said
    if result.warnings:
        said = "\n".join(_xml(f"note: {warning}") for warning in result.warnings)
        ElementTree.SubElement(suite, "system-out").text = said
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case_names(result: GateResult) -> list[str]:
    """A name for each rule, all of them different: what shows JUnit's files keeps one case of a name."""
    names: list[str] = []
    for ruling in result.rulings:
        name = f"{ruling.title}, {ruling.rule.limit}"
        names.append(name if name not in names else f"{name} (rule {len(names) + 1})")
    return names


def _fails(ruling: RuleResult, strict: bool) -> bool:
    return ruling.outcome == "violated" or (strict and ruling.outcome == "not shown")


def _counted(result: GateResult, strict: bool) -> tuple[int, int]:
    failed = sum(_fails(ruling, strict) for ruling in result.rulings)
    return failed, 0 if strict else sum(ruling.outcome == "not shown" for ruling in result.rulings)


def _xml(text: str) -> str:
    """``text`` in one line, without characters that XML cannot have, escaped or not."""
    return re.sub(r"[\ufffe\uffff]", "�", plain(readable(text)))


def markdown(result: GateResult) -> str:
    """The rules as a Markdown table, and the outcome above it."""
    table = replace(rules_table(result), below=None)
    rows = [[_cell(column.read(column.value(ruling, 0))) for column in table.columns] for ruling in table.rows]
    for row in rows:
        row[0] = row[0] if row[0] == "holds" else f"**{row[0]}**"
    head = [[column.title for column in table.columns], ["---"] * len(table.columns)]
    lines = [f"**{_cell(verdict(result))}**", "", *(f"| {' | '.join(row)} |" for row in [*head, *rows])]
    if result.warnings:
        lines += ["", *(f"- {_cell(warning)}" for warning in result.warnings)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """``text`` as Markdown that shows it as it is: nothing is a mark, a tag, a mention, a link or a new cell.

    Mentions and links are found after entities are decoded: a space of no width keeps them apart.
    """
    escaped = plain(readable(text)).replace("&", "&amp;").replace("<", "&lt;")
    escaped = _LINKED.sub("\\g<0>\u200b", escaped)
    return _MARKS.sub(r"\\\1", escaped)


def workflow_commands(result: GateResult, *, strict: bool) -> str:
    """The rules as workflow commands: ``::error title=…::…``; what holds is a notice, what is not shown a warning."""
    lines = [f"::warning title=evenrank gate::{_command(warning)}" for warning in result.warnings]
    for ruling in result.rulings:
        level = "error" if _fails(ruling, strict) else _LEVELS[ruling.outcome]
        title = f"evenrank gate {result.run}: {ruling.outcome}"
        lines.append(f"::{level} title={_property(title)}::{_command(finding(ruling).text)}")
    return "\n".join(lines)


def _command(text: str) -> str:
    """The message of a workflow command."""
    return readable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _command(text).replace(":", "%3A").replace(",", "%2C")


MARGINS = (1, 2, 3, 5, 10, 20)
"""Losses, in percent."""
SIZES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Limits on an absolute value, of which a share means nothing."""
_TYPICAL = 0.5
"""The standard deviation of a difference of two runs, as a share of the baseline's."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A rule as TOML has it, and whether the sample can show that it holds of the baseline itself.

    ``needed``: queries with which it would, for identical runs; ``typical``: for runs that are equally good and whose
    difference has half the standard deviation of the baseline.
    """

    values: Mapping[str, object]
    holds: bool
    needed: int | None
    typical: int | None
    n: int


@checked
def initial_budget(
    audited: WithValues | opt.File | Mapping[str, object], *, baseline: str | None = None, run: str | None = None
) -> str:
    """A budget that these queries can check, as TOML: for each measure the tightest limit that the baseline keeps.

    The smallest change for the worse (1, 2, 3, 5, 10 or 20%) that would be ruled out if the run were as good as the
    baseline: a loss where higher is better, a rise where nearer zero is. Of a signed measure and of one in bars, a
    limit on its absolute value. A comment behind each says nearer than which value is missed in one of five such
    samples, another which tighter limit takes how many queries.

    Args:
        audited: As for :func:`evenrank.gate`: what :func:`evenrank.audit` returned, or its JSON with values by query.
        baseline: What rules compare with; by default the audit's.
        run: The run to be gated, from which it is told what is detected; by default the only other one.

    Raises:
        EvenrankError: Without a baseline, and where no rule can be checked.
    """
    return checkable_budget(audited, baseline=baseline, run=run).text


@dataclass(frozen=True, slots=True)
class InitialBudget:
    """A budget that ``queries`` queries can check: the ``text`` of its file, and what a gate says of its rules.

    ``depth``: the sentence on lists that differ in length, if they do; ``refused``: why a measure has no rule.
    """

    text: str
    queries: int
    rulings: tuple[RuleResult, ...]
    depth: str
    refused: tuple[str, ...] = ()

    def said(self, path: str) -> str:
        """What was written to a file, and what each rule detects."""
        values: dict[str, Any] = {"path": path, "rules": counted(len(self.rulings), "rule")}
        lines = [_SAYS.say("init_written", queries=counted(self.queries, "query"), **values)]
        lines += [wrapped(one, _WIDTH) for one in (self.depth, *self.refused) if one]
        columns = (
            Column("rule", of="title", heading=""),
            Column("budget", of="rule.limit"),
            Column("noticed", heading="detects from", of=noticed),
        )
        return "\n".join([*lines, "", Table("", columns, self.rulings).text(_WIDTH)])


def checkable_budget(
    audited: WithValues | opt.File | Mapping[str, object], *, baseline: str | None = None, run: str | None = None
) -> InitialBudget:
    """What :func:`initial_budget` makes, with its rules as a gate has them."""
    values = as_audited(as_json_values(audited))
    base = values.baseline(baseline)
    if base is None:
        raise EvenrankError("expected a `baseline`: a budget says what a run may lose against it")
    gated = values.run(run, base)
    found: dict[str, list[_Tried]] = {}
    refused: dict[str, str] = {}
    for measure in (name for name, facts in values.facts.items() if len(facts.signs) == 1):
        try:
            found[measure] = _tightest(values, [base, gated], measure)
        except EvenrankError as error:
            refused[measure] = str(error).removeprefix("`budget`: rule 1: ")
    rules = {measure: tried[-1].values for measure, tried in found.items() if tried and tried[-1].holds}
    if not rules and refused and not any(found.values()):
        why = "; ".join(f"{measure}: {why}" for measure, why in refused.items())
        raise EvenrankError(f"no rule can be checked: {why}")
    if not rules:
        raise EvenrankError("no rule can be checked with these queries: more are needed")
    queries = max(tried.n for of in found.values() for tried in of)
    said = {"queries": counted(queries, "query"), "baseline": plain(readable(base))}
    lines = [f"# {_SAYS.say('init', **said)}"]
    # All at once: what is detected is corrected for the number of rules.
    rulings = gate(audited, budget={"rule": list(rules.values())}, baseline=base, run=gated).rulings
    deep = [plain(one.rule.measure) for one in rulings if one.against and unequal_depth(values, gated, one.rule, base)]
    depth = _SAYS.say("init_depth", measures=deep) if deep else ""
    lines += [f"# {depth}"] if deep else []
    notices = dict(zip(rules, map(noticed, rulings), strict=True))
    for measure, tried in found.items():
        lines += ["", *_rule_lines(measure, tried, notices.get(measure, ""))] if tried else []
    told = [_SAYS.say("init_refused", measure=plain(measure), why=plain(why)) for measure, why in refused.items()]
    lines += [line for one in told for line in ("", f"# {one}")]
    return InitialBudget("\n".join(lines) + "\n", queries, rulings, depth, tuple(told))


def _tightest(values: Audited, runs: Sequence[str], measure: str) -> list[_Tried]:
    """The limits tried, from the tightest to the first that holds of the first of the ``runs``, the baseline.

    None of a measure without a better side. Raises EvenrankError where documents without a label could change it.
    """
    how = resolve(parse_measure(measure))
    limits: list[dict[str, object]]
    if how.undirected:
        limits = []
    elif values.facts[measure].signed or measure.startswith("|"):
        limits = [{"measure": measure, "at_most": size} for size in SIZES]
    else:
        side, sign = ("at_least", "-") if how.better == "higher" else ("at_most", "+")
        limits = [{"measure": measure, "against": "baseline", side: f"{sign}{margin}%"} for margin in MARGINS]
    tried: list[_Tried] = []
    for limit in limits:
        (rule,) = as_budget({"rule": [limit]}, values.facts).rules
        if rule.absolute and rule.bound >= values.greatest(rule, runs[:1]):
            break
        tried.append(_try(values, runs, limit))
        if tried[-1].holds:
            break
    return tried


def _try(values: Audited, runs: Sequence[str], limit: Mapping[str, object]) -> _Tried:
    """Whether a rule would hold of a run that is as good as the baseline."""
    (rule,) = as_budget({"rule": [limit]}, values.facts).rules
    if values.partly_labelled(runs, rule):
        raise EvenrankError(_SAYS.say("unlabelled"))
    base = runs[0]
    parts = values.parts(base, rule)
    others = None if rule.against is None else parts
    size, part = values.greatest(rule, [base]), values.sample(base, rule)
    labels = part, None if rule.against is None else part
    found = rule_test(rule, parts, others, greatest=size, alpha=ALPHA, samples=labels, clusters=values.clusters)
    if found.test is not None and not math.isfinite(found.test.loss):
        raise EvenrankError(_SAYS.say(_unbounded(rule)))
    holds = found.test is not None and outcome_of(found.test, found.test.p_violated(), ALPHA) == "holds"
    if found.test is not None and not math.isfinite(found.test.loss):
        raise EvenrankError(_SAYS.say("unbounded"))
    typical = None
    if isinstance(found.test, MeanBound) and found.n_identical is not None:
        known = defined(parts[0])
        share = abs(rule.bound) if rule.relative else 0.0
        sd = math.hypot(_TYPICAL, share) * float(np.std(known, ddof=1))
        margin = abs(rule.bound) * found.test.unit
        effect = found.test.design_effect
        typical = queries_to_hold(margin, sd, found.test.loss, ALPHA, design_effect=effect)
    return _Tried(limit, holds, found.n_identical, typical, found.n)


def _rule_lines(measure: str, tried: list[_Tried], notice: str) -> Iterator[str]:
    """The rule, or why there is none, and what a tighter one would take."""
    last = tried[-1]
    side = "at_most" if "at_most" in last.values else "at_least"
    limit, queries = last.values[side], counted(last.n, "query")
    if not last.holds:
        yield f"# {_SAYS.say('init_none', measure=plain(measure), queries=queries, limit=str(limit))}"
        return
    if len(tried) > 1:
        tighter = tried[-2]
        key = "init_tighter" if tighter.needed is None else "init_tighter_needs"
        said = {
            "limit": str(tighter.values[side]),
            "queries": counted(tighter.n, "query"),
            "needed": many(tighter.needed),
            "typical": many(tighter.typical),
        }
        yield f"# {_SAYS.say(key, **said)}"
    yield "[[rule]]"
    yield f"measure = {json.dumps(measure)}"
    if "against" in last.values:
        yield 'against = "baseline"'
    written = f'"{limit}"' if isinstance(limit, str) else f"{limit:g}"
    yield f"{side} = {written}" + (f"  # {_SAYS.say('init_notice', notice=notice)}" if notice else "")
