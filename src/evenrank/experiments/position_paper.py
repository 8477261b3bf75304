"""Hofstätter et al., ECIR 2021, position bias: Tables 1 to 5, Figures 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from evenrank.io import Run, read_qrels, read_run
from evenrank.io.wording import counted
from evenrank.measures import Evaluation, parse_measure
from evenrank.position.answers import load_answer_positions
from evenrank.position.term_similarity import TermSimilarity
from evenrank.reports.page import histogram

from . import work
from .paper_page import Drawing, ExperimentPage, curve, plane
from .paper_tables import Claim, Value, paired, t_interval
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, RANKERS, SOURCE, VERSIONS, Experiment, Settings
from .position_tables import (
    MEASURES,
    Found,
    Key,
    Values,
    effectiveness_table,
    significance_table,
    similarity_table,
    sizes_table,
    table_row,
    transfer_table,
)
from .work import Trained

MARGIN = 0.02
"""How far apart, relative to the mean, two means may be that count as equivalent."""


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k != "seeds"})
    experiment, found = Experiment(settings, folder, say), Found()
    if jobs > 1:
        experiment.everything_ahead(jobs)
    for ranker in settings.rankers:
        for seed in experiment.seeds_of(ranker):
            _measure(experiment, found, ranker, seed)
    first = settings.seeds[0]
    for name in (BIASED, OTHER):
        _first_stage(experiment, found, name, first)
    tables = (
        sizes_table(experiment, first),
        similarity_table(found),
        effectiveness_table(found, "Table 3", BIASED, "position_table3"),
        effectiveness_table(found, "Table 4", OTHER, "position_table4"),
        transfer_table(found),
        significance_table(found),
    )
    return ExperimentPage(
        "position",
        "Position bias",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", f"{len(settings.seeds)} (TK)"),
            ("test queries", f"{experiment.of(first, BIASED).parts['test'].count:,}"),
        ),
        claims(found),
        tables,
        _drawings(experiment, found, first),
        _notes(settings),
    )


def _measure(experiment: Experiment, found: Found, ranker: str, seed: int) -> None:
    """One ranker of a seed: trained on both versions of both collections, and transferred."""
    for name in (BIASED, OTHER):
        for version in VERSIONS:
            trained = experiment.ranker(seed, ranker, name, version)
            for test in VERSIONS:
                _add(experiment, found, (name, ranker, version, test), trained, seed)
            if ranker == "TK":
                found.similarity.setdefault((name, version), []).append(_similarity(experiment, trained, name, seed))
    for version in VERSIONS:
        trained = experiment.transferred(seed, ranker, version)
        _add(experiment, found, (OTHER, ranker, f"MS({version})", ORIGINAL), trained, seed)


def _add(experiment: Experiment, found: Found, key: Key, trained: Trained, seed: int) -> None:
    name, test = key[0], key[3]
    run = experiment.ranked(trained, seed, name, test)
    found.values.setdefault(key, []).append(_values(run, experiment.of(seed, name).parts["test"].qrels))


def _values(run: Run, qrels: str) -> Values:
    judged = read_qrels(qrels)
    evaluation = Evaluation(run, qrels=judged)
    order = evaluation.judged.arg_sort().to_numpy()
    return {key: evaluation.values(parse_measure(name))[order] for key, name in MEASURES.items()}


def _similarity(experiment: Experiment, trained: Trained, name: str, seed: int) -> TermSimilarity:
    from evenrank.position.similarity import position_similarity

    texts = experiment.of(seed, name).texts[ORIGINAL]
    return position_similarity(trained.model, texts, **experiment.settings.similarity).similarity  # type: ignore[arg-type]


def _first_stage(experiment: Experiment, found: Found, name: str, seed: int) -> None:
    """BM25, which does not see the order of words, and the expectation over random orders."""
    part = experiment.of(seed, name).parts["test"]
    run = read_run(part.run, "BM25")
    evaluation = Evaluation(run, qrels=read_qrels(part.qrels))
    order = evaluation.judged.arg_sort().to_numpy()
    for system, values_of in (("BM25", evaluation.values), ("random", evaluation.random_values)):
        values = {key: values_of(parse_measure(measure))[order] for key, measure in MEASURES.items()}
        for test in VERSIONS:
            found.values[name, system, "", test] = [values]


# --- what it has to show ---------------------------------------------------------------------------------------------


def claims(found: Found) -> tuple[Claim, ...]:
    """Trained on early answers: a drop on the rotated test. Trained on rotated: equivalent. MATS: a third or less."""
    original = _difference(found, "TK", ORIGINAL)
    debiased = _difference(found, "TK", DEBIASED)
    mean = float(np.mean(found.mean((BIASED, "TK", DEBIASED, ORIGINAL), "ndcg")))
    differences = [
        b - a
        for a, b in zip(
            found.mean((BIASED, "TK", DEBIASED, ORIGINAL), "ndcg"),
            found.mean((BIASED, "TK", DEBIASED, DEBIASED), "ndcg"),
            strict=True,
        )
    ]
    ends = t_interval(np.array(differences), 0.90)
    mats = {version: np.array([one.mats for one in found.similarity[BIASED, version]]) for version in VERSIONS}
    before, after = float(mats[ORIGINAL].mean()), float(mats[DEBIASED].mean())
    ratio = f"{before / after:.1f} ×" if after > 0 else "nothing left"
    n = counted(original.n, "seed")
    return (
        Claim(
            "TK trained on early answers loses nDCG@10 on the rotated test",
            None if original.ci95 is None else original.ci95[1] < 0,
            f"{original.signed()}, {n}",
        ),
        Claim(
            "TK trained on rotated passages is equivalent on both (margin 2%)",
            None if ends is None else -MARGIN * mean < ends[0] and ends[1] < MARGIN * mean,
            f"{debiased.signed()} on {mean:.3f}, {n}",
        ),
        Claim(
            "its MATS is at least three times smaller",
            None if np.isnan(before + after) else before > 0 and 3 * after <= before,
            f"{before:.4f} against {after:.4f}: {ratio}, {n}",
        ),
    )


def _difference(found: Found, ranker: str, training: str) -> Value:
    """nDCG@10 on the rotated test − on the original one, paired by seed."""
    key = BIASED, ranker, training
    return paired(found.mean((*key, DEBIASED), "ndcg"), found.mean((*key, ORIGINAL), "ndcg"))


# --- figures ---------------------------------------------------------------------------------------------------------


def _drawings(experiment: Experiment, found: Found, seed: int) -> tuple[Drawing, ...]:
    drawings = []
    for name in (BIASED, OTHER):
        for version, answers in experiment.of(seed, name).answers.items():
            positions = load_answer_positions(answers)
            drawings.append(
                histogram(
                    f"Figure 1 ({name}, {version})",
                    f"Where answers begin: {name}, {version}",
                    positions.relative_histogram(),
                    "relative position",
                    f"{positions.table.height:,} matches; mean {positions.mean:.3f}; Kolmogorov–Smirnov distance to"
                    f" uniform {positions.ks:.3f}.",
                )
            )
    rows = []
    for (name, version), of in found.similarity.items():
        last = min(one.delta_max for one in of)
        for distance in range(last + 1):
            values = np.array([one.ats[distance] for one in of])
            spread = float(np.mean([one.deviation[distance] for one in of]))
            mean = float(np.nanmean(values))
            rows.append(
                {
                    "x": distance,
                    "measure": f"{name}, {version}",
                    "value": mean,
                    "low": mean - spread,
                    "high": mean + spread,
                }
            )
    hint = "TK's vectors of the same word by distance, means over seeds; bars: one standard deviation over pairs."
    drawings.append(curve("Figure 2", "Average term similarity ATS(Δ)", rows, "distance Δ in words", hint))
    points = {}
    for ranker in (*RANKERS, "BM25", "random"):
        for training in VERSIONS if ranker in RANKERS else ("",):
            row = table_row(found, BIASED, ranker, training)
            if row:
                points[f"{ranker} {training}".strip()] = (row["ndcg_orig"], row["change_original"])
    drawings.append(
        plane(
            "Plane",
            f"Effectiveness against position bias: {BIASED}",
            points,
            "nDCG@10 on the original test (higher is better)",
            "change on the rotated test (%, nearer 0 is better)",
            None,
        )
    )
    return tuple(drawings)


def _notes(settings: Settings) -> tuple[str, ...]:
    notes = [
        "original, debiased: the collection as it is, and with every passage rotated by word, once. The first-stage"
        " lists are the same for both: BM25 does not see the order of words.",
        "Claims: TK, paired t intervals over seeds; equivalence: the two one-sided 5% tests. Nothing was chosen on"
        " test queries.",
        "Controls: BM25, blind to order by design, and random. Masking words and neutral-first say nothing about"
        " position.",
        "MATS as printed, with 1/(Δmax − 1); its terms change with the distance, so it is also computed over the terms"
        " that occur at every distance.",
    ]
    if settings.planted is not None:
        notes += [
            f"Scale tiny: built-in collections in the rows of {BIASED} (relevant passages answer early, at 0.2 of the"
            f" passage on average) and {OTHER} (anywhere), generated for each seed. TK: {len(settings.seeds)} seeds,"
            " smaller than published, word vectors made here. BERT_CAT and BERT_DOT: one seed, a BERT of"
            f" {settings.small_bert.layers} layer and {settings.small_bert.hidden} dimensions from random weights,"
            " whose intervals are over queries; in this time BERT_CAT hardly learns to match words.",
        ]
    else:
        notes += [
            f"{BIASED}'s answers are not part of its passage collection: Figure 1 shows {OTHER} alone"
            " (evenrank position answers irds:msmarco-qna/dev shows the others).",
            "Duplicate passages of SQuAD are one document, so it can have slightly fewer than published.",
        ]
    return tuple(notes)
