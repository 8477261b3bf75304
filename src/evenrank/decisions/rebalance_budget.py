"""A bound on a figure, such as ``ARaB@10 <= 0.02`` or ``nDCG@10 >= 98%``, and whether a run is within it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ir_measures import Measure

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.types import Array
from evenrank.measures import is_bias, parse_measure, resolve
from evenrank.measures import statistics as st
from evenrank.measures.base import mean_of
from evenrank.reports.format import Interval, interval, number

from .budget import ALPHA

_FORM = re.compile(r"\s*(?P<measure>.+?)\s*(?P<sign><=|>=|≤|≥)\s*(?P<value>[^%\s]+)\s*(?P<percent>%?)\s*")
Verdict = Literal["holds", "broken", "not shown"]


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
        if how.part_count > 1 or how.of_rankings:
            raise EvenrankError(f"`{what}`: expected a measure that is a mean over queries, found {measure}")
        at_most = found["sign"] in ("<=", "≤")
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """A bound on the queries that a strength was chosen on, and on the others.

    ``tuning``, ``others``: the figure that is compared; ``ci95``: of that on the others; ``verdict`` there, as a gate
    says it: whether the one-sided 95% limits of the distance to the bound show that it is kept, or that it is not.
    """

    bound: Bound
    tuning: float
    others: float | None
    ci95: Interval | None
    met: bool | None
    verdict: Verdict

    def sentence(self) -> str:
        """The outcome in words."""
        said = {"holds": "holds", "broken": "is broken", "not shown": "is not shown to hold"}[self.verdict]
        return (
            f"{self.bound.text}: {number(self.tuning, 4)} on the queries tuned on; on the others"
            f" {number(self.others, 4)} {interval(self.ci95, 4)}: the bound {said} there."
        )

    def to_dict(self) -> dict[str, object]:
        """The outcome as JSON values."""
        return {
            "bound": self.bound.text,
            "tuning": self.tuning,
            "others": self.others,
            "ci95": self.ci95,
            "met": self.met,
            "verdict": self.verdict,
        }


def outcome(bound: Bound, tuning: float, values: Array, of_run: Array, seed: int) -> Outcome:
    """How a bound fares on queries that it was not chosen on: ``values`` [Q], and those of the run [Q]."""
    mean, base = mean_of(values), mean_of(of_run)
    if mean is None or base is None:
        return Outcome(bound, tuning, None, None, None, "not shown")
    size = float(bound.size(np.array(mean)))
    met = bool(bound.slack(np.array(mean), np.array(base)) >= -st.EQUAL)
    if (~np.isnan(values)).sum() < 2:
        return Outcome(bound, tuning, size, None, met, "not shown")
    draws = st.bootstrap_means(np.stack([values, of_run], axis=1), seed)
    slack = bound.slack(draws[:, 0], draws[:, 1])
    slack = slack[~np.isnan(slack)]
    verdict: Verdict = "not shown"
    if len(slack):
        low, high = np.quantile(slack, [ALPHA, 1 - ALPHA])
        verdict = "holds" if low >= -st.EQUAL else "broken" if high < -st.EQUAL else "not shown"
    return Outcome(bound, tuning, size, st.interval(bound.size(draws[:, 0])), met, verdict)
