"""What rules look at in an audit: the values of every query, taken from a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenrank.files.errors import EvenrankError, InputError, arg, quoted
from evenrank.files.types import EQUAL, Array, unequally_deep
from evenrank.files.wording import in_clusters
from evenrank.stats.clusters import cluster_sizes, effective_clusters
from evenrank.stats.sampling import LabelSample

from .budget import BASELINE, Budget, Facts, Rule

NOT_CHECKED = "not checked"
OF_SUMS = "an audit of sums has no values of single views, which rules are tested on: audit the log itself"
REFERENCES = ("random", "neutral-first", "relevance-first")
"""The audit's reference rankings; a rule can be against one, but they are not gated."""


def named_clusters(setting: object) -> str | None:
    """The setting ``query_clusters`` of an audit where the user named the clusters, or that there are none."""
    named = isinstance(setting, str) and (setting == "none" or setting.startswith("query clusters: "))
    return str(setting) if named else None


@dataclass(frozen=True, slots=True)
class RuleValues:
    """A rule's quantity of a run, query by query.

    Attributes:
        parts: The arrays [Q] that it is made of: one, or one for each pole; NaN where a query has no value.
        over_ties: The expectations [Q] over the orders of tied documents; None where nothing is tied.
        sample: What the values owe to labels that were drawn; None of others.
        greatest: The largest size that a query's value can have; None where that is not known.
        partly_labelled: Whether documents without a label could change the figure.
    """

    parts: tuple[Array, ...]
    over_ties: Array | None = None
    sample: LabelSample | None = None
    greatest: float | None = None
    partly_labelled: bool = False

    @property
    def few_labels(self) -> bool:
        """Whether so few labels were drawn that they tell nothing."""
        return self.sample is not None and self.sample.too_few is not None

    def within(self, inside: Array) -> RuleValues:
        """The same on the queries that are ``inside`` [Q]; the others have no value."""
        if inside.all():
            return self
        over_ties = None if self.over_ties is None else np.where(inside, self.over_ties, np.nan)
        return replace(self, parts=tuple(np.where(inside, p, np.nan) for p in self.parts), over_ties=over_ties)


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit, as a gate reads it.

    Attributes:
        runs: The names of all rankings, references among them.
        own_baseline: The audit's baseline.
        queries: The number of queries, the length Q of every array.
        facts: What the measures are, by their texts.
        values: The values of a rule's quantity of a run. Raises EvenrankError where the audit has none.
        lengths: How many documents each query [Q] has, by run; NaN where the run lacks it.
        query_group: The group of each query; None where no groups were given.
        clusters: The cluster of each query [Q], as whole numbers; None where queries are independent.
        query_clusters: What the user named as clusters: "none", or "query clusters: FILE"; None where they were found.
        poles: The groups that signed measures compare, the positive one first; None where the audit does not tell.
        warnings: What misleads in the audit, as sentences.
        provenance: How the audit was made, as JSON values.
        unchecked: Whether effectiveness is by a judge alone, which nobody has checked.
        path: The file that it was read from.
    """

    runs: Sequence[str]
    own_baseline: str | None
    queries: int
    facts: Mapping[str, Facts]
    values: Callable[[str, Rule], RuleValues]
    lengths: Mapping[str, Array]
    query_group: Sequence[object] | None = None
    clusters: Array | None = None
    query_clusters: str | None = None
    poles: tuple[str, str] | None = None
    warnings: Sequence[str] = ()
    provenance: Mapping[str, object] | None = None
    unchecked: bool = False
    path: str | None = None

    def fail(self, message: str) -> EvenrankError:
        """An error about the audit."""
        return EvenrankError(message) if self.path is None else InputError(self.path, message)

    @property
    def clusters_in_words(self) -> str:
        """How many clusters of queries there are, and how many of equal size these are worth."""
        sizes = cluster_sizes(np.arange(self.queries) if self.clusters is None else self.clusters)
        return in_clusters(len(sizes), effective_clusters(sizes))

    @property
    def given(self) -> list[str]:
        """The runs that are no references."""
        return [name for name in self.runs if name not in REFERENCES]

    def baseline(self, wanted: str | None) -> str | None:
        """The run that "baseline" means. Raises EvenrankError for one that the audit lacks."""
        name = self.own_baseline if wanted is None else wanted
        if name is not None and name not in self.runs:
            raise self.fail(f"no run {quoted(name)} to be the {arg.baseline} (the runs are {', '.join(self.given)})")
        return name

    def run(self, wanted: str | None, baseline: str | None) -> str:
        """The run that is gated. Raises EvenrankError if it is unknown or not the only one that is no baseline."""
        if wanted is not None:
            if wanted not in self.given:
                raise self.fail(f"no run {quoted(wanted)} (the runs are {', '.join(self.given)})")
            return wanted
        others = [name for name in self.given if name != baseline] or self.given
        if len(others) != 1:
            raise self.fail(f"{arg.run}: expected the one to gate of {', '.join(others) or 'no runs'}")
        return others[0]

    def against(self, budget: Budget, number: int, baseline: str | None) -> str | None:
        """The run that the rule of that number compares with. Raises EvenrankError for one that the audit lacks."""
        name = budget.rules[number - 1].against
        if name is None:
            return None
        if name == BASELINE and baseline is None:
            raise budget.error(number, f"against the baseline, but no run is named as {arg.baseline}")
        name = baseline if name == BASELINE else name
        if name not in self.runs:
            known = ", ".join([BASELINE, *self.runs])
            raise budget.error(number, f"against: no run {quoted(name)} (the runs are {known})")
        return name

    def inside(self, rule: Rule) -> Array:
        """Which of the queries [Q] a rule is about. Raises EvenrankError for a group that the audit does not have."""
        if rule.queries is None:
            return np.ones(self.queries, np.bool_)
        if self.query_group is None:
            raise EvenrankError(
                f"queries = {quoted(rule.queries)}: no groups of queries were given ({arg.query_groups})"
            )
        inside = np.array([group == rule.queries for group in self.query_group])
        if not inside.any():
            known = ", ".join(sorted({group for group in self.query_group if isinstance(group, str)}))
            raise EvenrankError(f"queries: no query group {quoted(rule.queries)} (the groups are {known})")
        return inside

    def of(self, run: str, rule: Rule) -> RuleValues:
        """The values of a rule's quantity of a run, on the queries that the rule is about."""
        return self.values(run, rule).within(self.inside(rule))

    def both_have(self, runs: Sequence[str]) -> Array:
        """Which queries [Q] all of these runs have."""
        has: Array = np.logical_and.reduce([~np.isnan(self.lengths[run]) for run in runs])
        return has

    def unequal_depth(self, run: str, rule: Rule, other: str) -> bool:
        """Whether depth rather than order may decide a comparison."""
        inside = self.inside(rule)
        return unequally_deep(self.lengths[run][inside], self.lengths[other][inside], rule.facts.cutoff)


def greatest_of(rule: Rule, values: Sequence[RuleValues]) -> float:
    """The largest size that a query's value can have; infinite where neither audit nor budget tells."""
    if rule.greatest is not None:
        largest = max(float(np.nanmax(np.abs(part), initial=0.0)) for of_run in values for part in of_run.parts)
        if largest > rule.greatest + EQUAL:
            raise EvenrankError(f"greatest: a query has a value of {largest:.3g}, beyond {rule.greatest:g}")
        return rule.greatest
    if math.isfinite(rule.facts.most):
        return max(abs(rule.facts.least) if math.isfinite(rule.facts.least) else 0.0, abs(rule.facts.most))
    return max(math.inf if of_run.greatest is None else of_run.greatest for of_run in values)


def no_quantity(rule: Rule, run: str) -> EvenrankError:
    """The error for a quantity that the audit does not have."""
    needed = f" (it needs {arg.qrels})" if rule.quantity == "vs_ideal_order" else ""
    return EvenrankError(f"the audit has no {quoted(rule.quantity)} of {rule.measure} for {run}{needed}")


def not_measured(rule: Rule, measures: Sequence[str]) -> EvenrankError:
    """The error for a measure that the audit does not have."""
    needed = "" if rule.facts.bias else f"; effectiveness needs {arg.qrels}"
    return EvenrankError(f"{rule.measure} is not in the audit, which has {', '.join(measures)}{needed}")
