"""One rule of a budget, tested on the values of an audit's queries."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Protocol

import numpy as np

from evenrank.io.errors import EvenrankError, InputError, quoted, reason_of
from evenrank.io.tolerances import EQUAL, NEAR_ZERO, unequally_deep
from evenrank.io.types import Array
from evenrank.io.wording import counted

from .budget import ALPHA, BASELINE, Budget, Facts, Rule

POWER = 0.8
_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, or a sum of the means of independent samples.

    Attributes:
        mean: The estimate.
        error: Its standard error; 0 if the values do not differ.
        freedom: The degrees of freedom of the error; Welch and Satterthwaite's for several samples.
        skew: Third central moment of the estimate over ``error``³: the skewness of the values over √n.
    """

    mean: float
    error: float
    freedom: float
    skew: float

    def __neg__(self) -> Estimate:
        return Estimate(-self.mean, self.error, self.freedom, -self.skew)


def estimate(samples: Sequence[Array], factors: Sequence[float] = (1.0,)) -> Estimate:
    """Σ factor × mean of each of the ``samples`` [n], which are of different queries and have two values or more."""
    mean = variance = third = pooled = 0.0
    for factor, sample in zip(factors, samples, strict=True):
        n, centre = len(sample), float(sample.mean())
        apart = sample - centre
        own = factor**2 * float(apart @ apart) / (n - 1) / n
        mean += factor * centre
        variance += own
        third += factor**3 * float((apart**3).mean()) / n**2
        pooled += own**2 / (n - 1)
    # What is left of equal values is rounding.
    if np.sqrt(variance * max(map(len, samples))) <= EQUAL:
        return Estimate(mean, 0.0, 1.0, 0.0)
    return Estimate(mean, float(np.sqrt(variance)), variance**2 / pooled, third / variance**1.5)


def above(found: Estimate, bound: float, *, reached: bool = False) -> float:
    """One-sided p of the claim that the true mean is above ``bound`` (``reached``: or equal to it).

    The larger p of Student's t and of the t from which the skewness is taken out [HALL92, section 2]:
    g(T) = T + κT²/3 + κ²T³/27 + κ/6, where κ is the skewness of the estimate. Alone, t claims too much on one side of
    skewed values, and g on both sides of values with long tails. Values that do not differ decide by the value alone.

    [HALL92] Hall (1992). On the removal of skewness by transformation. J. R. Statist. Soc. B 54(1).

    >>> round(above(Estimate(0.5, 0.2, 29.0, 0.0), 0.0), 4)
    0.0092
    """
    if found.error == 0:
        return float(not (found.mean > bound + EQUAL or (reached and found.mean >= bound - EQUAL)))
    return tail((found.mean - bound) / found.error, found.freedom, found.skew)


def tail(ratio: float, freedom: float, skew: float = 0.0) -> float:
    """The p of the ratio T of an estimate to its error."""
    from scipy.special import stdtr

    moved = ratio + skew / 6 + skew * ratio**2 / 3 + skew**2 * ratio**3 / 27
    return float(stdtr(freedom, -min(ratio, moved)))


def lower(found: Estimate, alpha: float) -> float:
    """The lower limit of the mean at the one-sided level ``alpha``: the bound for which :func:`above` is ``alpha``."""
    ratio, skew = _critical(found.freedom, alpha), found.skew
    if abs(skew) > EQUAL:
        # The inverse of Hall's transformation.
        ratio = max(ratio, 3 * (float(np.cbrt(1 + skew * (ratio - skew / 6))) - 1) / skew)
    return found.mean - ratio * found.error


def upper(found: Estimate, alpha: float) -> float:
    """The upper limit of the mean at the one-sided level ``alpha``."""
    return -lower(-found, alpha)


def power(found: Estimate, distance: float, alpha: float) -> float:
    """The probability that a mean whose true value is ``distance`` above the bound is shown to be above it.

    By the non-central t, with the observed spread.
    """
    from scipy.special import nctdtr

    if found.error == 0:
        return float(distance > EQUAL)
    return float(1 - nctdtr(found.freedom, distance / found.error, _critical(found.freedom, alpha)))


def least_shown(found: Estimate, alpha: float) -> float:
    """The smallest distance above the bound that is shown with probability 80%, by the same."""
    if found.error == 0:
        return 0.0
    # Twice what the normal approximation says, and more than enough for small samples.
    most = 2 * found.error * (_critical(found.freedom, alpha) + 3)
    return crossing(lambda distance: power(found, distance, alpha) - POWER, 0.0, most)


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that does not fall crosses 0 between ``low`` and ``high``, by halving."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def factor_to_decide(distance: float, error: float, alpha: float) -> float | None:
    """How many times as many queries show a true ``distance`` from the bound with probability 80%; None: none would.

    Normal approximation with the observed error: ((z₁₋α + z.₈) · error / distance)².
    """
    from scipy.special import ndtri

    if abs(distance) <= EQUAL:
        return None
    return float(((ndtri(1 - alpha) + ndtri(POWER)) * error / distance) ** 2)


def _critical(freedom: float, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha))


_NOTHING = Estimate(0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Two signed means of the same queries, μ of the run and ν of the other; ν is 0 where there is no other.

    Attributes:
        own, other: The means.
        total, difference: μ + ν and μ − ν, with the errors that pairing gives.
    """

    own: Estimate
    other: Estimate
    total: Estimate
    difference: Estimate

    @property
    def value(self) -> float:
        """|μ| − |ν|."""
        return abs(self.own.mean) - abs(self.other.mean)

    @property
    def swapped(self) -> Sizes:
        """The same with the roles exchanged."""
        return Sizes(self.other, self.own, self.total, -self.difference)


def sizes(own: Sequence[Array], other: Sequence[Array] | None, factors: Sequence[float]) -> Sizes:
    """The means of a run's parts [n], and of the other's on the same queries."""
    mean = estimate(own, factors)
    if other is None:
        return Sizes(mean, _NOTHING, mean, mean)
    pairs = list(zip(own, other, strict=True))
    total, difference = (estimate([a + sign * b for a, b in pairs], factors) for sign in (1, -1))
    return Sizes(mean, estimate(other, factors), total, difference)


def larger(found: Sizes, bound: float, *, reached: bool = False) -> float:
    """One-sided p of the claim |μ| − |ν| > ``bound`` (``reached``: or equal to it).

    The claim is that for one sign s and both signs t, sμ − tν > ``bound``. For a given s both have to be shown, so
    their p is the larger one (intersection–union). Either s would do (union): to the p of the estimate's own sign comes
    the chance of as clear an estimate of the other sign, where the truth is on the bound as near to the estimate as it
    can be. Without ν, and with a bound of 0, that is the two-sided t-test.
    """
    if any(one.error == 0 and abs(one.mean) <= EQUAL for one in (found.difference, found.total)):
        # The values are the same, or have the other sign: their means have the same size, whatever it is.
        return above(_NOTHING, bound, reached=reached)
    size, sign = abs(found.own.mean), -1.0 if found.own.mean < 0 else 1.0
    covariance = (found.total.error**2 - found.difference.error**2) / 4
    p = extra = 0.0
    for t in (1.0, -1.0):
        # sμ − tν is the difference or the total, up to the sign s.
        apart = found.difference if sign * t > 0 else found.total
        distance = size - t * found.other.mean - bound
        here = _of_side(apart, distance, sign, reached)
        if here > p:
            extra = 0.0
            # Without an error of its own, the mean has one sign only.
            if apart.error > 0 and found.own.error > 0:
                # The truth nearest to the estimate on the bound, in the metric of the errors.
                weight = (found.own.error**2 - sign * t * covariance) / apart.error**2
                nearest = max(size - weight * distance, 0.0)
                extra = tail((distance + 2 * nearest) / apart.error, apart.freedom)
            p = here
    return min(p + extra, 1.0)


def _of_side(apart: Estimate, distance: float, sign: float, reached: bool) -> float:
    """The p that sμ − tν, which is ``apart`` or its negative, lies above the bound, from which it is ``distance``."""
    if apart.error > 0:
        return tail(distance / apart.error, apart.freedom, sign * apart.skew)
    return float(not (distance > EQUAL or (reached and distance >= -EQUAL)))


def smaller(found: Sizes, bound: float, *, reached: bool = True) -> float:
    """One-sided p of the claim |μ| − |ν| < ``bound`` (``reached``: or equal to it); without ν two one-sided tests."""
    return larger(found.swapped, -bound, reached=reached)


def limits(found: Sizes, alpha: float) -> tuple[float, float]:
    """The one-sided limits of |μ| − |ν|: the bounds that :func:`larger` and :func:`smaller` just do not reject."""
    reach = 20 * (found.own.error + found.other.error) + EQUAL
    low = crossing(lambda bound: larger(found, bound) - alpha, found.value - reach, found.value)
    high = -crossing(lambda bound: smaller(found, -bound) - alpha, -found.value - reach, -found.value)
    return low, high


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
        low, high = lower(self.found, alpha), upper(self.found, alpha)
        return self.bound + low / self.unit, self.bound + high / self.unit

    def p_holds(self) -> float:
        """One-sided p of the claim that the rule holds."""
        return above(self._within, 0.0, reached=True)

    def p_broken(self) -> float:
        """One-sided p of the claim that it is broken."""
        return above(-self._within, 0.0)

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at``, in the units of the rule."""
        return power(self.found, self.sign * (self.bound - at) * self.unit, alpha)

    def caught(self, alpha: float) -> float:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound - self.sign * least_shown(self.found, alpha) / self.unit

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
        low, high = limits(self.found, alpha)
        return (max(low, 0.0) if self.alone else low), high

    def p_holds(self) -> float:
        """One-sided p of the claim that the rule holds."""
        return smaller(self.found, self.bound, reached=True)

    def p_broken(self) -> float:
        """One-sided p of the claim that it is broken."""
        return larger(self.found, self.bound)

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at`` and there is no other run."""
        return power(self.found.own, at - self.bound, self._one_sided(alpha))

    def caught(self, alpha: float) -> float:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound + least_shown(self.found.own, self._one_sided(alpha))

    def _one_sided(self, alpha: float) -> float:
        """The level left for the estimate's own sign: the p of :func:`larger` has the other sign's chance too."""
        own = self.found.own
        if own.error == 0:
            return alpha
        apart = 2 * self.bound / own.error
        ratio = crossing(
            lambda t: alpha - tail(t, own.freedom) - tail(t + apart, own.freedom),
            0.0,
            _critical(own.freedom, alpha / 2),
        )
        return tail(ratio, own.freedom)


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
        found = sizes(own, other, factors)
        return Tested(SizeTest(found, rule.bound, other is None), n, left_out, mean, of_other)
    test = _mean_test(rule, own, other, factors, of_other)
    return Tested(test, n, left_out, mean, of_other)


def _mean_test(
    rule: Rule, own: list[Array], other: list[Array] | None, factors: list[float], of_other: float | None
) -> MeanTest:
    sign = 1 if rule.floor else -1
    if not rule.relative:
        apart = own if other is None else [a - b for a, b in zip(own, other, strict=True)]
        found = estimate(apart, factors)
        found = Estimate(found.mean - rule.bound, found.error, found.freedom, found.skew)
        return MeanTest(found, rule.bound, sign)
    if other is None or of_other is None or of_other <= NEAR_ZERO:
        raise EvenrankError(f"a share of {rule.measure} of {of_other or 0:.3g} means nothing: expected a number")
    kept = [a - (1 + rule.bound) * b for a, b in zip(own, other, strict=True)]
    return MeanTest(estimate(kept, factors), rule.bound, sign, of_other)


def _factors(rule: Rule, parts: int) -> list[float]:
    """How the means of a figure's parts enter it: with 1, or with the signs of a difference of poles."""
    return list(rule.facts.signs) if len(rule.facts.signs) == parts else [1.0] * parts


def _mean(parts: list[Array], factors: list[float]) -> float | None:
    if not all(map(len, parts)):
        return None
    return sum(factor * float(part.mean()) for factor, part in zip(factors, parts, strict=True))


REFERENCES = ("random", "neutral-first", "relevance-first")
"""The audit's reference rankings; a rule can be against one, but they are not gated."""
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

    def parts(self, run: str, rule: Rule) -> list[Array]:
        """The values [Q] that a rule's quantity of a run is made of; NaN is undefined."""
        figure = self.figure(run, rule)
        if rule.quantity != "figure":
            figure = self._excess(figure, run, rule)
        found = figure.get("parts")
        if found is None:
            found = [figure.get("values")]
        elif not isinstance(found, list | tuple) or len(found) != len(rule.facts.signs):
            wanted = counted(len(rule.facts.signs), "list")
            raise self.fail(f"no audit's JSON: parts of {rule.measure}: expected {wanted} of values")
        if any(values is None for values in found):
            raise self.fail(f"no values of the queries: {_WITHOUT}")
        return [self._array(values) for values in found]

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
    """Whether depth rather than order decides a comparison; None if the audit does not tell."""
    own, others = audited.lengths(run), audited.lengths(other)
    if own is not None and others is not None:
        return unequally_deep(own, others, rule.facts.cutoff)
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
