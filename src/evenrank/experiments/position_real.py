"""The position experiment on real text: trained on early answers, tested on answers anywhere."""

from __future__ import annotations

import itertools
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
from .position_claims import PAPER, both_trainings, floored
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
        significance_table(found, (OTHER,), rankers),
    )
    return ExperimentPage(
        "position",
        "Position bias on real text",
        SOURCE,
        facts(experiment, first, OTHER),
        claims(found, rankers),
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


def claims(found: Found, rankers: tuple[str, ...]) -> tuple[Claim, ...]:
    """What the two trainings show."""
    made = []
    seeing = [ranker for ranker in RANKERS if ranker in rankers]
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
