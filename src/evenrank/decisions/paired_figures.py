"""The difference of two rankings on one measure, paired by query."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from evenrank.io.types import Array
from evenrank.measures import inference as st
from evenrank.reports.format import Interval


@dataclass(frozen=True, slots=True)
class Difference:
    """One ranking's figure minus another's, over the ``n`` queries where both have one.

    ``mean``: None without such a query; ``ci95``: by the bootstrap, None with fewer than two; ``t_p``: of a paired
    t-test, two-sided and not corrected.
    """

    mean: float | None
    ci95: Interval | None
    t_p: float | None
    n: int

    def to_dict(self) -> dict[str, object]:
        """The difference as JSON values."""
        return asdict(self)


def difference(values: Array, others: Array, seed: int) -> Difference:
    """``values`` [Q] minus ``others`` [Q], NaN left out."""
    apart = values - others
    draws = st.bootstrap_means(apart[:, None], seed) if (~np.isnan(apart)).sum() > 1 else None
    return described(values, others, None if draws is None else draws[:, 0])


def described(values: Array, others: Array, draws: Array | None) -> Difference:
    """:func:`difference`, with the bootstrap means of the differences; None where there are fewer than two."""
    tests = st.paired_tests(values, others)
    return Difference(tests.difference, None if draws is None else st.interval(draws), tests.t_p, tests.n)
