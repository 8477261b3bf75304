"""The groups' shares of the first ranks against those of the candidates, of an ideal ranking, and of the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenrank.measures import Share
from evenrank.stats.compare import corrected

from .data import TIES, GroupShare, RunAudit


def group_shares(results: Sequence[RunAudit]) -> tuple[GroupShare, ...]:
    """The groups' shares against those of the candidates, of an ideal ranking, and of the baseline; Holm by run."""
    return tuple(share for run in results for share in _shares_of(run))


def _shares_of(run: RunAudit) -> list[GroupShare]:
    figures = [value for value in run.measures.values() if type(value.measure) is type(Share)]
    # Of documents without labels, and so of what a random order would add, nothing is known.
    known = [
        (figure, figure.vs_random_order)
        for figure in figures
        if figure.vs_random_order is not None and figure.mean is not None
    ]
    # What ties decide is in the family all the same.
    tests = [of.test for _, of in known]
    holm = corrected([replace(test, p=1.0) if test.reason == TIES else test for test in tests])
    added = [test if test.reason == TIES else adjusted for test, adjusted in zip(tests, holm, strict=True)]
    ideal = iter(corrected([figure.vs_ideal_order.test for figure, _ in known if figure.vs_ideal_order is not None]))
    beyond = [None if figure.vs_ideal_order is None else next(ideal) for figure, _ in known]
    compared = [figure.vs_baseline for figure, _ in known]
    return [
        GroupShare(
            run.name,
            str(figure.measure["group"]),
            float(figure.mean or 0.0),
            of.reference,
            test,
            further,
            None if against is None or against.unequal_depth else against.test,
        )
        for (figure, of), test, further, against in zip(known, added, beyond, compared, strict=True)
    ]
