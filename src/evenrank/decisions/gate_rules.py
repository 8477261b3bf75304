"""One rule of a budget, tested on the values of an audit's queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenrank.io.errors import EvenrankError
from evenrank.io.tolerances import NEAR_ZERO
from evenrank.io.types import Array

from . import gate_sizes, gate_tests
from .budget import ALPHA, Rule
from .gate_sizes import Sizes
from .gate_tests import Estimate

_ONE_SIDED = 1.6449
"""The normal quantile of ALPHA."""


class Test(Protocol):
    """The test of a rule. What is beyond the bound is on its side that the budget does not allow."""

    @property
    def value(self) -> float:
        """The estimate, in the units of the rule."""

    @property
    def distance(self) -> float:
        """How far the estimate is within the budget, in the units of the measure."""

    @property
    def error(self) -> float:
        """The standard error, in the units of the measure."""

    def limits(self, alpha: float) -> tuple[float, float]:
        """The one-sided lower and upper limit of the value, in the units of the rule."""

    def p_holds(self) -> float:
        """One-sided p of the claim that the rule holds."""

    def p_broken(self) -> float:
        """One-sided p of the claim that it is broken."""


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A mean that has to be on one side of a bound.

    ``found``: the mean's distance from the bound; ``sign``: 1 for a least value, −1 for a most; ``unit``: the other
    run's mean where the bound is a share of it.
    """

    found: Estimate
    bound: float
    sign: int
    unit: float = 1.0

    @property
    def value(self) -> float:
        """The estimate, in the units of the rule."""
        return self.bound + self.found.mean / self.unit

    @property
    def distance(self) -> float:
        """How far the estimate is within the budget."""
        return self.sign * self.found.mean

    @property
    def error(self) -> float:
        """The standard error."""
        return self.found.error

    def limits(self, alpha: float) -> tuple[float, float]:
        """The one-sided limits; those of a share take the other run's mean as it is."""
        low, high = gate_tests.lower(self.found, alpha), gate_tests.upper(self.found, alpha)
        return self.bound + low / self.unit, self.bound + high / self.unit

    def p_holds(self) -> float:
        """One-sided p of the claim that the rule holds."""
        return gate_tests.above(self._within, 0.0, reached=True)

    def p_broken(self) -> float:
        """One-sided p of the claim that it is broken."""
        return gate_tests.above(-self._within, 0.0)

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at``, in the units of the rule."""
        return gate_tests.power(self.found, self.sign * (self.bound - at) * self.unit, alpha)

    def caught(self, alpha: float) -> float:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound - self.sign * gate_tests.least_shown(self.found, alpha) / self.unit

    @property
    def _within(self) -> Estimate:
        return self.found if self.sign > 0 else -self.found


@dataclass(frozen=True, slots=True)
class SizeTest:
    """An absolute value that has to be ``bound`` at most, or that much above another run's; ``alone``: no other."""

    found: Sizes
    bound: float
    alone: bool

    @property
    def value(self) -> float:
        """The estimate."""
        return self.found.value

    @property
    def distance(self) -> float:
        """How far the estimate is within the budget."""
        return self.bound - self.found.value

    @property
    def error(self) -> float:
        """The standard error, as the limit towards the bound has it: near 0 both signs of the means are possible."""
        low, high = self.limits(ALPHA)
        reach = high - self.value if self.distance > 0 else self.value - low
        return reach / _ONE_SIDED

    def limits(self, alpha: float) -> tuple[float, float]:
        """The one-sided limits."""
        low, high = gate_sizes.limits(self.found, alpha)
        return (max(low, 0.0) if self.alone else low), high

    def p_holds(self) -> float:
        """One-sided p of the claim that the rule holds."""
        return gate_sizes.smaller(self.found, self.bound, reached=True)

    def p_broken(self) -> float:
        """One-sided p of the claim that it is broken."""
        return gate_sizes.larger(self.found, self.bound)


@dataclass(frozen=True, slots=True)
class Tested:
    """A rule's test, None with fewer than two queries (of each part), and what it was made of.

    ``n``: queries used; ``left_out``: those with a value in only one of the runs; ``mean`` and ``other``: the runs'
    figures over the queries used, with their signs.
    """

    test: Test | None
    n: int
    left_out: int
    mean: float | None
    other: float | None


def tested(rule: Rule, values: Sequence[Array], others: Sequence[Array] | None) -> Tested:
    """The test of a rule on the values [Q] of a run's parts, and those of the run that it is against.

    Raises EvenrankError for a share of a mean that is not above 0.
    """
    gone = [np.isnan(v) if others is None else np.isnan(v) | np.isnan(others[k]) for k, v in enumerate(values)]
    own = [v[~out] for v, out in zip(values, gone, strict=True)]
    other = None if others is None else [v[~out] for v, out in zip(others, gone, strict=True)]
    n = int((~np.stack(gone)).any(axis=0).sum())
    left_out = 0
    if others is not None:
        lone = [np.isnan(v) != np.isnan(o) for v, o in zip(values, others, strict=True)]
        left_out = int(np.any(lone, axis=0).sum())
    factors = _factors(rule, len(values))
    mean, of_other = _mean(own, factors), None if other is None else _mean(other, factors)
    if min(map(len, own)) < 2:
        return Tested(None, n, left_out, mean, of_other)
    if rule.absolute:
        found = gate_sizes.sizes(own, other, factors)
        return Tested(SizeTest(found, rule.bound, other is None), n, left_out, mean, of_other)
    test = _mean_test(rule, own, other, factors, of_other)
    return Tested(test, n, left_out, mean, of_other)


def _mean_test(
    rule: Rule, own: list[Array], other: list[Array] | None, factors: list[float], of_other: float | None
) -> MeanTest:
    sign = 1 if rule.floor else -1
    if not rule.relative:
        apart = own if other is None else [a - b for a, b in zip(own, other, strict=True)]
        found = gate_tests.estimate(apart, factors)
        found = Estimate(found.mean - rule.bound, found.error, found.freedom, found.skew)
        return MeanTest(found, rule.bound, sign)
    if other is None or of_other is None or of_other <= NEAR_ZERO:
        raise EvenrankError(f"a share of {rule.measure} of {of_other or 0:.3g} means nothing: expected a number")
    kept = [a - (1 + rule.bound) * b for a, b in zip(own, other, strict=True)]
    return MeanTest(gate_tests.estimate(kept, factors), rule.bound, sign, of_other)


def _factors(rule: Rule, parts: int) -> list[float]:
    """How the means of a figure's parts enter it: with 1, or with the signs of a difference of poles."""
    return list(rule.facts.signs) if len(rule.facts.signs) == parts else [1.0] * parts


def _mean(parts: list[Array], factors: list[float]) -> float | None:
    if not all(map(len, parts)):
        return None
    return sum(factor * float(part.mean()) for factor, part in zip(factors, parts, strict=True))
