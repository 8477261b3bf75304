"""One rule of a budget, tested on the values of an audit's queries."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

import numpy as np

from evenrank.io.errors import EvenrankError, InputError, quoted, reason_of
from evenrank.io.tolerances import NEAR_ZERO, unequally_deep
from evenrank.io.types import Array
from evenrank.io.wording import counted
from evenrank.measures.inference import (
    BoundTest,
    bound_of_mean,
    bound_of_size,
    guaranteed_lower,
    queries_to_hold,
)

from .budget import BASELINE, Budget, Facts, Rule


@dataclass(frozen=True, slots=True)
class Tested:
    """A rule's test, None with fewer than two queries (of each part), and what it was made of.

    ``n``: queries used; ``left_out``: those with a value in only one of the runs; ``mean`` and ``other``: the runs'
    figures over the queries used, with their signs. ``guaranteed``: the lower limit of how far the mean is within the
    bound that holds for any values, where it was asked for. ``if_equal``: the number of queries that would show that
    the rule holds if the runs were equal; ``one_in``: one query in so many that loses everything would use up the
    margin. Both None where the rule has no margin between two runs.
    """

    test: BoundTest | None
    n: int
    left_out: int
    mean: float | None
    other: float | None
    guaranteed: float | None = None
    if_equal: int | None = None
    one_in: float | None = None


def tested(
    rule: Rule,
    values: Sequence[Array],
    others: Sequence[Array] | None,
    *,
    greatest: float,
    guaranteed: Sequence[object] | None,
    alpha: float,
) -> Tested:
    """The test of a rule on the values [Q] of a run's parts, and those of the run that it is against.

    ``greatest``: the size of the greatest value that the measure can take, infinite if that is not known;
    ``guaranteed``: the ids [Q] of the queries where the betting bound is asked for, else None. Raises EvenrankError for
    a share of a mean that is not above 0.
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
    if guaranteed is not None and (not np.isfinite(rule.facts.most) or rule.absolute or len(own) > 1):
        raise EvenrankError(
            f"no guaranteed bound of {rule.subject}: that needs values between known ends, as effectiveness has"
        )
    if rule.absolute:
        size = max(map(abs, _range(rule, greatest)))
        return Tested(bound_of_size(own, other, rule.bound, size, factors), n, left_out, mean, of_other)
    if rule.relative and (of_other is None or of_other <= NEAR_ZERO):
        raise EvenrankError(f"a share of {rule.measure} of {of_other or 0:.3g} means nothing: expected a number")
    least, most = _range(rule, greatest)
    within, ends = _within(rule, own, other, (least, most))
    unit = of_other if rule.relative and of_other is not None else 1.0
    sign = 1 if rule.floor else -1
    test = bound_of_mean(within, -ends[0], bound=rule.bound, sign=sign, unit=unit, factors=factors)
    if_equal = needed = None
    margin = -sign * rule.bound * unit
    if other is not None and margin > NEAR_ZERO and math.isfinite(most - least) and guaranteed is None:
        spread = abs(rule.bound) * float(np.std(other[0], ddof=1)) if rule.relative else 0.0
        if_equal, needed = queries_to_hold(margin, spread, -ends[0], alpha), (most - least) / margin
    limit = None
    if guaranteed is not None:
        ids = [one for one, out in zip(guaranteed, gone[0], strict=True) if not out]
        limit = guaranteed_lower(within[0], ids, *ends, alpha)
    return Tested(test, n, left_out, mean, of_other, limit, if_equal, needed)


def _range(rule: Rule, greatest: float) -> tuple[float, float]:
    """The least and the most that a query's value of the rule's quantity can be; infinite where that is not known."""
    least = rule.facts.least if math.isfinite(rule.facts.least) else -greatest
    most = rule.facts.most if math.isfinite(rule.facts.most) else greatest
    # A difference from the same documents in another order.
    return (least, most) if rule.quantity == "figure" else (least - most, most - least)


def _within(
    rule: Rule, own: list[Array], other: list[Array] | None, ends: tuple[float, float]
) -> tuple[list[Array], tuple[float, float]]:
    """How far each query [n] of each part is within the bound, and the least and the most that one can be."""
    sign, (least, most) = 1 if rule.floor else -1, ends
    share = 1 + rule.bound if rule.relative else 1.0
    bound = 0.0 if rule.relative else rule.bound
    others = [np.zeros(len(part)) for part in own] if other is None else [share * part for part in other]
    within = [sign * (a - b - bound) for a, b in zip(own, others, strict=True)]
    low, high = (0.0, 0.0) if other is None else (share * least, share * most)
    far = sorted((sign * (least - high - bound), sign * (most - low - bound)))
    return within, (far[0], far[1])


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

    def greatest(self, rule: Rule, runs: Sequence[str]) -> float:
        """The largest size that a query's value can have; infinite where the audit does not tell."""
        if math.isfinite(rule.facts.most):
            return max(abs(rule.facts.least) if math.isfinite(rule.facts.least) else 0.0, abs(rule.facts.most))
        known = [self.figure(run, rule).get("greatest") for run in runs]
        values = [
            float(one) for one in known if isinstance(one, int | float) and not isinstance(one, bool) and one >= 0
        ]
        return max(values) if len(values) == len(runs) else math.inf

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
