"""Where the bias of a pipeline comes from: its candidates, its first stage, or a later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io import EvenrankError, Run
from evenrank.io.errors import quoted
from evenrank.io.wording import are, counted
from evenrank.measures import Evaluation, is_bias, resolve
from evenrank.measures import statistics as st

from .comparison import compare_runs, with_statistics
from .figures import Measured, measure_run
from .findings import RANDOM
from .stage_steps import Decomposition, Stages, Step


def name_stages(runs: Mapping[str, object], stages: object) -> tuple[dict[str, object], tuple[str, ...]]:
    """The runs by name, with those of ``stages`` added, and the names of the stages in order.

    ``stages``: names of given runs, or runs by name. Raises EvenrankError for fewer than two stages, for a name that is
    repeated and for one that no run has.
    """
    named = dict(runs)
    if stages is None:
        return named, ()
    if isinstance(stages, Mapping):
        both = next((name for name in stages if name in named), None)
        if both is not None:
            raise EvenrankError(f"`stages`: there is another run named {quoted(both)}: name the stage or the run anew")
        named = {**{str(name): run for name, run in stages.items()}, **named}
    elif isinstance(stages, str) or not isinstance(stages, Sequence):
        raise EvenrankError(f"`stages`: expected names of runs, or runs by name, found {quoted(stages)}")
    names = tuple(map(str, stages))
    if len(names) < 2:
        raise EvenrankError(f"`stages`: expected two or more, found {len(names)}")
    unknown = next((name for name in names if name not in named), None)
    if unknown is not None:
        raise EvenrankError(f"`stages`: no run {quoted(unknown)} (the runs are {', '.join(named)})")
    if len(set(names)) < len(names):
        raise EvenrankError(f"`stages`: expected each run once, found {', '.join(names)}")
    return named, names


def decompose(
    names: Sequence[str],
    evaluations: Sequence[Evaluation],
    measured: Sequence[Measured],
    measures: list[Measure],
    axis: pl.Series,
    seed: int,
    held: Measured | None = None,
) -> Stages | None:
    """Each bias measure of the last stage as a sum over the stages named, which are among the evaluations.

    ``measured``: the evaluations' values on the ``axis``; ``held``: those of the first stage's candidates in random
    order, if they are known. Measures without a value for some stage are left out.
    """
    biased = [measure for measure in measures if is_bias(measure)]
    if not names:
        return None
    place = {run.name: number for number, run in enumerate(measured)}
    if held is None:
        held = measure_run(evaluations[place[names[0]]], RANDOM, biased, axis, random=True)
    rankings = [held, *(measured[place[name]] for name in names)]
    found = {str(measure): _decomposed(names, rankings, measure, seed) for measure in biased}
    return Stages(tuple(names), {key: of for key, of in found.items() if of is not None})


def _decomposed(names: Sequence[str], rankings: list[Measured], measure: Measure, seed: int) -> Decomposition | None:
    key, how = str(measure), resolve(measure)
    common = _on_common_queries(rankings, key)
    # What was drawn over all queries is no figure of some of them.
    if any(key in run.means and key not in of_common.means for run, of_common in zip(rankings, common, strict=True)):
        return None
    figures = [result.figures[key] for result in with_statistics(common, [measure], None, seed)]
    means = [figure.mean for figure in figures]
    if any(mean is None for mean in means):
        return None
    steps = []
    for place, (before, after) in enumerate(pairwise(common)):
        compared = compare_runs(after, before, measure, seed)
        ends, p = compared.ci95, compared.p if how.whole_run else compared.t_p
        if key in before.means:
            ends = p = None
        elif not how.whole_run and key not in after.draws and key not in before.draws:
            difference = (after.values[key] - before.values[key])[:, None]
            defined = difference[~np.isnan(difference[:, 0])]
            ends = st.interval(st.bootstrap_means(defined, seed)) if len(defined) > 1 else None
        start, end = means[place], means[place + 1]
        assert start is not None
        assert end is not None
        steps.append(Step(names[place], end - start, ends, p, end, compared.tie_difference, compared.tie_p))
    held = means[0]
    assert held is not None
    return Decomposition(measure, figures[0].n, held, figures[0].ci95, tuple(steps))


def _on_common_queries(rankings: list[Measured], key: str) -> list[Measured]:
    """The rankings with the values of one measure only for queries where, part by part, all have one."""
    of_parts = zip(*(run.parts[key] for run in rankings), strict=True)
    missing = [np.isnan(np.stack(parts)).any(axis=0) for parts in of_parts]
    restricted = []
    for run in rankings:
        parts = tuple(np.where(gone, np.nan, part) for gone, part in zip(missing, run.parts[key], strict=True))
        draws = {}
        if key in run.draws:
            pairs = zip(missing, run.draws[key], strict=True)
            draws = {key: tuple(np.where(gone, np.nan, part) for gone, part in pairs)}
        values = np.where(np.logical_and.reduce(missing), np.nan, run.values[key])
        # The figure of a random order is its expectation already.
        expected = {key: np.where(np.isnan(values), np.nan, run.expected.get(key, run.values[key]))}
        whole = all((np.isnan(a) == np.isnan(b)).all() for a, b in zip(parts, run.parts[key], strict=True))
        means = run.means if whole else {}
        restricted.append(
            replace(run, parts={key: parts}, values={key: values}, expected=expected, draws=draws, means=means)
        )
    return restricted


def stage_notes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Notes on documents of a stage that the stage before it does not have."""
    by_name = {run.name: run for run in runs}
    notes = []
    for before, after in pairwise(by_name[name] for name in names):
        keys = ["query_id", "doc_id"]
        of_both = after.table.filter(pl.col("query_id").is_in(before.queries.implode()))
        new = of_both.join(before.table, on=keys, how="anti").height
        if new:
            notes.append(
                f"{after.name}: {new:,} of its {counted(of_both.height, 'document')} {are(new)} not among those of"
                f" {before.name}, the stage before: what they bring counts as added by {after.name}."
            )
    return notes
