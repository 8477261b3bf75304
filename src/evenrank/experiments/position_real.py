"""The position experiment on real text: trained on early answers, tested on answers anywhere."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import read_qrels
from evenrank.io.types import Array
from evenrank.io.wording import counted
from evenrank.position.buckets import FIFTHS, Buckets, by_bucket

from .paper_claims import Claim, Verdict, above, below, every, within
from .paper_page import Drawing, ExperimentPage, curve
from .paper_tables import Row, Table, Value
from .position_claims import PAPER, SHORT_NAMES, both_trainings, floored
from .position_data import answer_places
from .position_found import Found, Key
from .position_measured import answer_positions, facts, figure1, measured
from .position_notes import notes
from .position_runs import Experiment
from .position_setup import DEBIASED, KERNEL, ORIGINAL, OTHER, RANKERS, SOURCE, VERSIONS
from .position_tables import effectiveness_table, significance_table

FIFTH_NAMES = tuple(f"{low:g}–{high:g}" for low, high in itertools.pairwise(FIFTHS))
SAME = 0.01
"""nDCG@10 within which the two trainings of a ranker that is blind to order have to be."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where each test query's answer begins [Q], and the number of its passage [Q], by sorted query id."""

    place: Array
    passage: Array


def page(experiment: Experiment) -> ExperimentPage:
    """Tables, curves and claims of the scale ``real``."""
    found = measured(experiment)
    places = places_of(experiment)
    first = experiment.settings.seeds[0]
    rankers = tuple(experiment.settings.rankers)
    tables = (
        effectiveness_table(found, "Both tests", OTHER, None, rankers),
        fifths_table(found, places, rankers),
        sensitivity_table(found, places, rankers),
        significance_table(found, (OTHER,), rankers),
    )
    return ExperimentPage(
        "position",
        "Position bias on real text",
        SOURCE,
        facts(experiment, first, OTHER),
        claims(found, places, rankers),
        tables,
        (*figure1(answer_positions(experiment, first)), *_curves(found, places, rankers)),
        notes(experiment.settings),
    )


def places_of(experiment: Experiment) -> Places:
    """The places of the test queries' answers in the original texts."""
    data = experiment.of(experiment.settings.seeds[0], OTHER)
    judged = read_qrels(data.parts["test"].qrels).select("query_id").unique().sort("query_id")
    table = judged.join(answer_places(data.answers[ORIGINAL]), on="query_id", how="left", maintain_order="left")
    passages = table["doc_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
    return Places(table["place"].to_numpy(), passages)


def mean_of(found: Found, key: Key) -> Array:
    """nDCG@10 of each query [Q], its mean over seeds."""
    return np.asarray(np.mean([one["ndcg"] for one in found.values[key]], axis=0))


def sensitivity(values: Array, places: Places) -> Buckets:
    """The values [Q] by fifth of the passage."""
    return by_bucket(values, places.place, FIFTHS[:-1], 1.0, clusters=places.passage)


def advantage(found: Found, places: Places, ranker: str) -> Buckets:
    """The original-trained ranker minus the rotated-trained one, on the original texts, by fifth."""
    values = [mean_of(found, (OTHER, ranker, training, ORIGINAL)) for training in VERSIONS]
    return sensitivity(values[0] - values[1], places)


def slope_of(found: Found, places: Places, ranker: str) -> Value:
    """The slope of :func:`advantage`, with an interval over passages; the spread over trainings is added to it."""
    of = advantage(found, places, ranker)
    ends = of.slope_ci95
    rotated, original = both_trainings(OTHER, ranker)
    pairs = found.paired_values(original, rotated, "ndcg")
    over = Value.over_seeds([sensitivity(one - other, places).slope for one, other in pairs]).ci95
    if ends is not None and over is not None:
        half = math.hypot((ends[1] - ends[0]) / 2, (over[1] - over[0]) / 2)
        ends = (of.slope - half, of.slope + half)
    return Value(of.slope, int(of.n.sum()), "queries", ends)


def _systems(found: Found, rankers: tuple[str, ...]) -> list[tuple[str, str]]:
    systems = [(ranker, training) for ranker in rankers for training in VERSIONS] + [("BM25", "")]
    return [one for one in systems if (OTHER, *one, ORIGINAL) in found.values]


def fifths_table(found: Found, places: Places, rankers: tuple[str, ...]) -> Table:
    """nDCG@10 on the original texts by the fifth in which the answer begins."""
    rows = []
    for ranker, training in _systems(found, rankers):
        of = sensitivity(mean_of(found, (OTHER, ranker, training, ORIGINAL)), places)
        rows.append(Row((ranker, training), _by_fifth(of), control=ranker in (KERNEL, "BM25")))
    rows += [Row((ranker, "original − debiased"), _by_fifth(advantage(found, places, ranker))) for ranker in rankers]
    columns = {str(number): name for number, name in enumerate(FIFTH_NAMES)}
    note = "nDCG@10, each question's mean over seeds; intervals over questions by bootstrap of passages."
    return Table("Fifths", "By the place of the answer", ("model", "training"), columns, tuple(rows), (note,))


def _by_fifth(of: Buckets) -> dict[str, Value]:
    rows = zip(of.means.tolist(), of.n.tolist(), of.ci95, strict=True)
    return {
        str(number): Value(None if np.isnan(mean) else mean, n, "queries", ends)
        for number, (mean, n, ends) in enumerate(rows)
    }


def sensitivity_table(found: Found, places: Places, rankers: tuple[str, ...]) -> Table:
    """The sensitivity index and the slope of each training."""
    rows = []
    for ranker, training in _systems(found, rankers):
        of = sensitivity(mean_of(found, (OTHER, ranker, training, ORIGINAL)), places)
        rows.append(Row((ranker, training), _summary(of), control=ranker in (KERNEL, "BM25")))
    rows += [Row((one, "original − debiased"), {"slope": slope_of(found, places, one)}) for one in rankers]
    columns = {
        "index": "index",
        "null": "index, no effect",
        "index_p": "p",
        "slope": "slope",
        "slope_p": "slope p",
    }
    return Table("Sensitivity", "Position sensitivity", ("model", "training"), columns, tuple(rows))


def _summary(of: Buckets) -> dict[str, Value]:
    n = int(of.n.sum())
    return {
        "index": Value(of.index, n, "queries", of.index_ci95),
        "null": Value(of.null, n, "queries"),
        "index_p": _p(of.p, of),
        "slope": Value(of.slope, n, "queries", of.slope_ci95),
        "slope_p": _p(of.slope_p, of),
    }


def _p(value: float | None, of: Buckets) -> Value:
    return Value(value, int(of.n.sum()), "queries")


def claims(found: Found, places: Places, rankers: tuple[str, ...]) -> tuple[Claim, ...]:
    """What the curves show."""
    made = []
    seeing = [ranker for ranker in RANKERS if ranker in rankers]
    for ranker in seeing:
        slope = slope_of(found, places, ranker)
        seeds = len(found.values[OTHER, ranker, ORIGINAL, ORIGINAL])
        detail = f"slope {slope.signed()}, {slope.n} queries, {counted(seeds, 'seed')}"
        late = floored(found, below(slope), *both_trainings(OTHER, ranker))
        made.append(Claim.of(PAPER, f"real_late_{SHORT_NAMES[ranker]}", late, detail))
    drops = {
        one: found.difference((OTHER, one, ORIGINAL, DEBIASED), (OTHER, one, ORIGINAL, ORIGINAL)) for one in seeing
    }
    trained = {one: both_trainings(OTHER, one) for one in rankers}
    alive = [trained[one][1] for one in seeing]
    made.append(_all(found, "real_drop", floored(found, every(*map(below, drops.values())), *alive), drops))
    costs = {
        one: found.difference((OTHER, one, DEBIASED, ORIGINAL), (OTHER, one, ORIGINAL, ORIGINAL), level=0.90)
        for one in seeing
    }
    means = {one: float(np.mean(found.mean((OTHER, one, ORIGINAL, ORIGINAL), "ndcg"))) for one in seeing}
    kept = every(*(above(value, -0.02 * means[one]) for one, value in costs.items()))
    alive = [key for one in seeing for key in trained[one]]
    made.append(_all(found, "real_no_loss", floored(found, kept, *alive), costs))
    if KERNEL in rankers:
        blind = found.difference((OTHER, KERNEL, DEBIASED, ORIGINAL), (OTHER, KERNEL, ORIGINAL, ORIGINAL), level=0.90)
        same = floored(found, within(blind, -SAME, SAME), *trained[KERNEL])
        made.append(_all(found, "real_control", same, {KERNEL: blind}))
    return tuple(made)


def _all(found: Found, key: str, verdict: Verdict, values: dict[str, Value]) -> Claim:
    detail = ", ".join(f"{name} {value.signed()}" for name, value in values.items())
    seeds = dict.fromkeys(counted(len(found.values[OTHER, name, ORIGINAL, ORIGINAL]), "seed") for name in values)
    queries = len(next(iter(found.values.values()))[0]["ndcg"])
    return Claim.of(PAPER, key, verdict, f"{detail}; {queries} queries, {' or '.join(seeds)}")


def _curves(found: Found, places: Places, rankers: tuple[str, ...]) -> tuple[Drawing, ...]:
    rows: list[dict[str, object]] = []
    for ranker, training in _systems(found, rankers):
        of = sensitivity(mean_of(found, (OTHER, ranker, training, ORIGINAL)), places)
        for number, (mean, ends) in enumerate(zip(of.means.tolist(), of.ci95, strict=True)):
            low, high = ends or (mean, mean)
            rows.append(
                {"x": number + 1, "measure": f"{ranker} {training}".strip(), "value": mean, "low": low, "high": high}
            )
    hint = "nDCG@10 on the original texts by the fifth of the passage in which the answer begins; bars: 95% intervals."
    return (curve("Curve", "Effectiveness by the place of the answer", rows, "fifth of the passage", hint),)
