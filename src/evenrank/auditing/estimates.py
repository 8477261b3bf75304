"""Figures over labels of which some are unknown: estimates from several draws, by Rubin's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from ir_measures import Measure

from evenrank.io.types import Array
from evenrank.measures import RunMeasure, resolve
from evenrank.measures import statistics as st
from evenrank.measures.absolute import AbsoluteFigure
from evenrank.measures.statistics import Pooled
from evenrank.reports.format import Interval

from .figures import Measured
from .findings import Comparison, Figure


def as_estimate(figure: Figure, run: Measured) -> Figure:
    """A figure with the mean, the interval and the effect of ties that the run's draws give."""
    key = str(figure.measure)
    how = resolve(figure.measure)
    pooled = _pooled(how, run.draws[key], run.sources)
    if pooled is None:
        return replace(figure, mean=None, ci95=None, estimated=True)
    mean, ends = _of_figure(how, pooled.mean), _folded(how, pooled.interval, run.limits[key])
    if key in run.means:
        # An absolute value over random orders is drawn as a whole, without an interval over queries.
        mean, ends = run.means[key], None
    tie_mean: float | None = mean
    tie_range: Interval | None = (mean, mean)
    if key in run.tie_shifts:
        middle, low, high = (None if np.isnan(shift) else shift for shift in run.tie_shifts[key])
        tie_mean = None if middle is None else mean + middle
        tie_range = None if low is None or high is None else (mean + low, mean + high)
    return replace(figure, mean=mean, ci95=ends, tie_mean=tie_mean, tie_range=tie_range, estimated=True)


def compare_estimates(run: Measured, base: Measured, measure: Measure) -> Comparison:
    """Two runs on the same draws of the labels that are unknown, on the queries where both have a value."""
    how, key = resolve(measure), str(measure)
    own, other = (_draws(one, key) for one in (run, base))
    # A reference ranking may have fewer draws, a run whose labels are all known has one.
    count = min((len(one[0]) for one in (own, other) if len(one[0]) > 1), default=1)
    pairs = [(_repeated(a, count), _repeated(b, count)) for a, b in zip(own, other, strict=True)]
    common = [np.isnan(a) | np.isnan(b) for a, b in pairs]
    both = [(np.where(gone, np.nan, a), np.where(gone, np.nan, b)) for (a, b), gone in zip(pairs, common, strict=True)]
    signed = [how.per_query([st.mean_and_variance(pair[side])[0] for pair in both]) for side in (0, 1)]
    signs = [_sign(how, one) for one in signed]
    pooled = _pooled(how, tuple(signs[0] * a - signs[1] * b for a, b in both), min(run.sources, base.sources))
    n = int(np.logical_or.reduce([~gone.all(axis=0) for gone in common]).sum())
    if pooled is None:
        return Comparison(None, n=n)
    means = [sign * float(np.nanmean(one)) for sign, one in zip(signs, signed, strict=True)]
    relative = pooled.mean / means[1] if abs(means[1]) > st.NEAR_ZERO else None
    whole = how.whole_run
    return Comparison(
        pooled.mean,
        relative,
        t_p=None if whole else pooled.p,
        p=pooled.p if whole else None,
        ci95=pooled.interval,
        n=n,
        mean=means[0],
        baseline_mean=means[1],
        partial=any(bool((np.isnan(a) != np.isnan(b)).any()) for a, b in pairs),
    )


def _draws(run: Measured, key: str) -> tuple[Array, ...]:
    """The draws [M, Q] of each part; one draw where all labels are known."""
    return run.draws[key] if key in run.draws else tuple(part[None] for part in run.parts[key])


def _repeated(draws: Array, count: int) -> Array:
    return np.broadcast_to(draws, (count, draws.shape[1])) if len(draws) == 1 else draws[:count]


def _sign(how: RunMeasure, signed: Array) -> float:
    """With which sign a figure's queries enter it: an absolute value's with that of its mean."""
    defined = signed[~np.isnan(signed)]
    return float(np.sign(defined.mean())) if isinstance(how, AbsoluteFigure) and len(defined) else 1.0


def _pooled(how: RunMeasure, parts: Sequence[Array], sources: float) -> Pooled | None:
    """The signed figure of parts [M, Q] in each draw; parts are of different queries, so their variances add."""
    found = [st.mean_and_variance(part) for part in parts]
    figures = how.per_query([means for means, _, _ in found])
    within = np.sum([variance for _, variance, _ in found], axis=0)
    return st.pool(figures, within, min(queries for _, _, queries in found), sources)


def _of_figure(how: RunMeasure, signed: float) -> float:
    return abs(signed) if isinstance(how, AbsoluteFigure) else signed


def _folded(how: RunMeasure, ends: Interval | None, limits: Interval) -> Interval | None:
    """The interval of the figure from that of the signed one, without what no figure can be."""
    if ends is None:
        return None
    return how.bounds_of_figure((max(ends[0], limits[0]), min(ends[1], limits[1])))
