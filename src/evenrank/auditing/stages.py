"""Where the bias of a pipeline comes from: its candidates, its first stage, or a later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files import EvenrankError, Run
from evenrank.files.errors import quoted
from evenrank.files.wording import are, counted
from evenrank.groups import GroupTable
from evenrank.measures import Evaluation, LinearMeasure, is_bias, resolve
from evenrank.measures import inference as st

from .comparison import compare_runs, on_common_queries, with_statistics
from .data import RANDOM, Decomposition, Figure, Stages, Step
from .figures import Measured, measure_run, place_values

_COLLECTION = "collection"


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
    held: Measured | None = None,
    collection: GroupTable | None = None,
) -> Stages | None:
    """Each bias measure of the last stage as a sum over the stages named, which are among the evaluations.

    ``measured``: the evaluations' values on the ``axis``; ``held``: those of the first stage's candidates in random
    order, if they are known; ``collection``: its documents, if they are. Measures without a value for some stage are
    left out.
    """
    biased = [measure for measure in measures if is_bias(measure)]
    if not names:
        return None
    place = {run.name: number for number, run in enumerate(measured)}
    first = evaluations[place[names[0]]]
    if held is None:
        held = measure_run(first, RANDOM, biased, axis, over="random", profiled=False)
    rankings = [held, *(measured[place[name]] for name in names)]
    found = {}
    for measure in biased:
        everything = None if collection is None else _of_collection(first, collection, measure, held, axis)
        found[str(measure)] = _decomposed([*([] if everything is None else [everything]), *rankings], measure)
    known = {key: of for key, of in found.items() if of is not None}
    documents = None if collection is None else collection.table.height
    return Stages(tuple(names), known, documents)


def _of_collection(
    run: Evaluation, collection: GroupTable, measure: Measure, held: Measured, axis: pl.Series
) -> Measured | None:
    """The expectation for random documents of the collection in lists as long as a run's; None without a closed form.

    ``held``: the run's own candidates in random order, on the ``axis``.
    """
    how, key = resolve(measure), str(measure)
    if not isinstance(how, LinearMeasure) or how.drawn:
        return None
    mean = float(how.documents(collection, np.arange(collection.table.height)).mean())
    values = place_values(how.of_mean(run, mean), run.queries, axis)
    return replace(held, name=_COLLECTION, parts={key: (values,)}, values={key: values}, expected={})


def _decomposed(rankings: list[Measured], measure: Measure) -> Decomposition | None:
    """The sum over rankings: of the collection, if that is known, of the candidates in random order, of each stage."""
    key = str(measure)
    common = on_common_queries(rankings, key)
    # What was drawn over all queries is no figure of some of them.
    if any(key in run.means and key not in of_common.means for run, of_common in zip(rankings, common, strict=True)):
        return None
    figures = [result.figures[key] for result in with_statistics(common, [measure], None)]
    means = [figure.mean for figure in figures]
    if any(mean is None for mean in means):
        return None
    steps = []
    for place, (before, after) in enumerate(pairwise(common)):
        compared = compare_runs(after, before, measure)
        start, end = means[place], means[place + 1]
        assert start is not None
        assert end is not None
        test = compared.test
        if key in before.means:
            test = st.untold(end - start, compared.n, "its figure was drawn over random orders")
        equal = _equal(before, after, key)
        steps.append(Step(common[place + 1].name, end - start, test, end, compared.tied, equal))
    tests = st.corrected([step.test for step in steps])
    steps = [replace(step, test=test) for step, test in zip(steps, tests, strict=True)]
    return _sum_of(measure, figures, steps)


def _equal(before: Measured, after: Measured, key: str) -> bool:
    """Whether every query's value is that of the stage before, also averaged over the orders of tied documents."""
    if key in before.means or after.partly_known(key):
        return False
    pairs = [*zip(before.parts[key], after.parts[key], strict=True), (before.expected[key], after.expected[key])]
    return all(np.allclose(a, b, rtol=0, atol=st.EQUAL, equal_nan=True) for a, b in pairs)


def _sum_of(measure: Measure, figures: list[Figure], steps: list[Step]) -> Decomposition:
    """The sum of ``steps``, the first of which may be from the collection to the candidates."""
    retrieval = steps[0] if steps[0].stage == RANDOM else None
    start = figures[0].mean
    held = figures[0 if retrieval is None else 1]
    assert held.mean is not None
    stages = tuple(steps if retrieval is None else steps[1:])
    return Decomposition(measure, held.n, held.mean, held.ci95, stages, start if retrieval else None, retrieval)


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
