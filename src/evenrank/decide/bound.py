"""Bounds on a run's figures, which a strength is chosen by, and how they fare on other queries."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from ir_measures import Measure

from evenrank.files.convert import Strings, strings
from evenrank.files.errors import EvenrankError, arg, quoted
from evenrank.files.json_values import LEFT_OUT, fields_of
from evenrank.files.types import EQUAL, Array
from evenrank.measures import facts, is_bias, parse_measure, resolve
from evenrank.results.table import Interval
from evenrank.stats.bounds import BoundTest, bound_mean, limit_absolute, margin_absolute
from evenrank.stats.bounds import outcome as outcome_of
from evenrank.stats.compare import Zeros
from evenrank.stats.estimate import known_clusters

from .budget import ALPHA

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
    def parse(cls, text: str, what: Literal["max_bias", "min_utility"]) -> Bound:
        """A bound as users write it; ``max_bias`` is of bias, ``min_utility`` of effectiveness."""
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        example = '"ARaB@10 <= 0.02"' if what == "max_bias" else '"nDCG@10 >= 98%"'
        if match is None:
            raise EvenrankError(f"{arg(what)}: expected a bound such as {example}, found {quoted(text)}")
        try:
            value = float(match["value"])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise EvenrankError(f"{arg(what)}: expected a number in {quoted(text)}, found {quoted(match['value'])}")
        measure = parse_measure(match["measure"], arg(what))
        how = resolve(measure)
        if is_bias(measure) != (what == "max_bias"):
            kind = "bias" if what == "max_bias" else "effectiveness"
            raise EvenrankError(f"{arg(what)}: expected a measure of {kind}, as in {example}, found {measure}")
        if how.part_count > 1:
            raise EvenrankError(f"{arg(what)}: expected a measure that is a mean over queries, found {measure}")
        at_most = match["sign"] in ("<=", "≤")
        if how.signed and not at_most:
            raise EvenrankError(
                f"{arg(what)}: {measure} is better nearer 0: expected at most a number, found {quoted(text)}"
            )
        percent = bool(match["percent"])
        return cls(" ".join(text.split()), measure, at_most, value / 100 if percent else value, percent)

    def size(self, figure: float) -> float:
        """What is compared of a figure."""
        return abs(figure) if resolve(self.measure).signed else figure

    def slack(self, figure: float, of_run: float) -> float:
        """How far a figure is within the bound, below 0 where it is not; ``of_run``: the run's own."""
        limit = self.value * self.size(of_run) if self.relative else self.value
        return limit - self.size(figure) if self.at_most else self.size(figure) - limit

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
class BoundResult:
    """A bound on the queries that a strength was chosen on, and on the others.

    ``validation``, ``others``: the figure that is compared; ``limits``: its one-sided limits on the others, by which
    the ``verdict`` there is decided as a gate decides it: the bound holds even with one query more that loses all it
    can, is violated, or neither is shown. ``n``: the others that have a value; ``asked``: the figure that the bound
    asks for there.
    """

    bound: Bound = field(metadata=LEFT_OUT)
    validation: float
    others: float | None
    limits: Interval | None
    met: bool | None
    verdict: Verdict
    n: int = 0
    asked: float | None = None

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values."""
        return {"bound": self.bound.text, **fields_of(self)}


def bound_result(
    bound: Bound,
    validation: float,
    values: Array,
    of_run: Array,
    greatest: float,
    bounds: int = 1,
    clusters: Array | None = None,
) -> BoundResult:
    """How a bound fares on queries that it was not chosen on: ``values`` [Q], and those of the run [Q].

    ``greatest``: the size of the greatest value that the measure can take; ``bounds``: of how many this is one, for
    which "violated" is corrected; ``clusters`` [Q]: the queries' clusters.
    """
    both = ~np.isnan(values - of_run)
    new, base = values[both], of_run[both]
    n = len(new)
    if not n:
        return BoundResult(bound, validation, None, None, None, "not shown")
    figure, of_base = (resolve(bound.measure).figure([values]) for values in (new, base))
    size, met = bound.size(figure), bound.slack(figure, of_base) >= -EQUAL
    of_share = bound.value * bound.size(of_base) if bound.relative else 0.0
    limit = of_share if bound.relative else bound.value
    if n < 2:
        return BoundResult(bound, validation, size, None, met, "not shown", n, limit)
    test = bound.test(new, base, greatest, known_clusters(clusters, both))
    violated = test.p_violated()
    corrected = None if violated is None else min(1.0, bounds * violated)
    verdict: Verdict = outcome_of(test, corrected, ALPHA)
    known = facts(bound.measure)["least"]
    least = 0.0 if resolve(bound.measure).signed else known if isinstance(known, float) else -greatest
    low, high = (min(max(end + of_share, least), greatest) for end in test.limits(ALPHA))
    return BoundResult(bound, validation, size, (low, high), met, verdict, n, limit)


def parsed_bounds(given: Strings | None, what: Literal["max_bias", "min_utility"]) -> tuple[Bound, ...]:
    """One bound or several."""
    return tuple(Bound.parse(text, what) for text in strings(given))
