"""The test of one rule on the values of a run, and of the run that it is against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenrank.files.errors import EvenrankError
from evenrank.files.types import NEAR_ZERO, Array
from evenrank.stats.bounds import BoundTest, bound_mean, limit_absolute, margin_absolute
from evenrank.stats.compare import compare
from evenrank.stats.estimate import Estimate
from evenrank.stats.planning import chance_to_hold, queries_to_hold
from evenrank.stats.sampling import SamplePair, on_queries

from .budget import Rule


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A rule's test, None with fewer than two queries (of each part), and what it was made of.

    ``n``: queries used; ``left_out``: those with a value in only one of the runs; ``mean`` and ``other``: the runs'
    figures over the queries used, with their signs. ``n_if_equal``: the number of queries that show that the rule holds
    if the runs are equally good, with the spread of their differences; ``n_identical``: if they are the same run;
    ``chance_if_equal``: in what share of samples so many queries as these do, if the runs are equally good. All None
    where the rule has no margin between two runs. ``difference``: that of two figures, with its 95% interval.
    """

    test: BoundTest | None
    n: int
    left_out: int
    mean: float | None
    other: float | None
    n_if_equal: int | None = None
    n_identical: int | None = None
    chance_if_equal: float | None = None
    difference: Estimate | None = None


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
    if within is not None and all(len(np.unique(c)) == len(c) for c in within):
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
    difference = None
    if other is not None and len(own) == 1:
        between = compare(
            own[0] - other[0],
            zeros="drop" if rule.facts.bias else "keep",
            clusters=None if within is None else within[0],
            sample=samples[0] and samples[0].plus(samples[1], -1.0),
            reach=most - least if math.isfinite(most - least) else None,
        )
        difference = Estimate(between.mean, between.ci95, between.n)
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
    result = RuleTest(test, n, left_out, mean, of_other, difference=difference)
    if other is None or margin <= NEAR_ZERO or not math.isfinite(most - least):
        return result
    of_base = abs(rule.bound) * other[0] if rule.relative else np.zeros(len(other[0]))
    # The spread of z where the runs are equally good: of their differences, and of the margin that a query has.
    spreads = [float(np.std(x, ddof=1)) for x in (own[0] - other[0] + sign * of_base, of_base)]
    effect = test.design_effect
    n_if_equal, n_identical = (queries_to_hold(margin, sd, loss, alpha, design_effect=effect) for sd in spreads)
    chance = chance_to_hold(test.n, margin, spreads[0], loss, alpha, effect)
    return replace(result, n_if_equal=n_if_equal, n_identical=n_identical, chance_if_equal=chance)


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
