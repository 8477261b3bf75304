"""What a run's order has beyond a reference order of its own candidates: the figures."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenrank.io.types import Array
from evenrank.reports.format import Interval

from .stage_steps import shows, ties_decide


@dataclass(frozen=True, slots=True)
class Excess:
    """What a run's order has beyond a reference order of its own candidates, over the queries where both are defined.

    Attributes:
        mean: Mean over queries of run minus reference; ``n``: number of queries.
        ci95: 95% bootstrap interval of the mean; None with fewer than two queries.
        t_p, wilcoxon_p: Two-sided paired p-values, uncorrected.
        reference: The reference's figure over the same queries.
        tie_mean, tie_p: Mean and t-test with the run's expectation over the orders of its tied documents; None where
            that is not known.
        values: The difference for each of the audit's queries, array of shape [Q]; NaN where it is undefined.
        leans: Whether the reference's figure is shown not to be 0 (t-test over queries); None where that is not tested.
    """

    mean: float
    n: int
    ci95: Interval | None
    t_p: float | None
    wilcoxon_p: float | None
    reference: float
    tie_mean: float | None
    tie_p: float | None
    values: Array = field(repr=False)
    leans: bool | None = None

    @property
    def tie_sensitive(self) -> bool:
        """Whether ties decide: the mean over them lies outside the interval, or has another significance."""
        return ties_decide(self.ci95, self.t_p, self.tie_mean, self.tie_p)

    def shown(self, *, tied: bool = False) -> bool:
        """Whether a difference is shown; ``tied``: averaged over the orders of tied documents."""
        return shows(self.ci95, self.t_p, self.tie_p, tied=tied)

    def to_dict(self, *, values: bool = False) -> dict[str, object]:
        """The difference as JSON values; ``values``: with those of single queries, None where undefined."""
        names = ("mean", "n", "ci95", "t_p", "wilcoxon_p", "reference", "tie_mean", "tie_p")
        result: dict[str, object] = {name: getattr(self, name) for name in names}
        return {**result, "values": as_json(self.values)} if values else result


def as_json(values: Array) -> list[float | None]:
    """Values of queries [Q] for JSON: None where they are undefined."""
    return [None if value != value else value for value in values.tolist()]
