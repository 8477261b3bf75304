"""Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization": Tables 1 to 3.

A two-tower ranker is trained on clicks; then training continues with the queries of the fairness set, without the term
("none"), with PD, with TS, or, from its start on, with group words masked ("blind"): rows that differ by that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from evenrank.groups import Scoring, load_lexicon
from evenrank.io import Run

from . import work
from .ibbr_claims import claims
from .ibbr_measured import Figures, measure
from .ibbr_notes import notes
from .ibbr_setup import TERMS, Settings
from .ibbr_tables import (
    auto_table,
    changes,
    grid_table,
    none_curve,
    retrieval_table,
    score_table,
    systems_plane,
    table1,
    table2,
    table3,
)
from .ibbr_trainings import DEV, SOURCE, Experiment
from .ibbr_untrained import untrained
from .ibbr_why import why
from .paper_page import ExperimentPage
from .work import LEXICON, Trained

Chosen = Mapping[tuple[str, str], float]
OURS = "gender-en, word tokens"


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k not in ("seeds", "strengths", "given")})
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    first, main = settings.seeds[0], next(iter(settings.encoders))
    chosen: dict[tuple[str, str], float] = {}
    trained: dict[tuple[str, str], dict[float, Trained]] = {}
    for encoder in settings.encoders:
        for term in TERMS:
            chosen[encoder, term], trained[encoder, term] = experiment.best(encoder, term)
    scoring = experiment.scoring(first)
    figures, grids, baselines = measured(experiment, chosen, trained, scoring)
    without = untrained(experiment, chosen, scoring)
    tables = [table1(settings, figures, chosen), changes(figures), table2(figures, baselines), *without.tables()]
    if experiment.of(first).lexicon != LEXICON or scoring.tokens != "word":
        own, _, others = measured(experiment, chosen, trained, Scoring(load_lexicon(LEXICON)))
        tables += [table1(settings, own, chosen, OURS), table2(own, others, OURS)]
    if settings.retrieved:
        tables.append(retrieval_table(settings, retrieved(experiment, chosen, scoring)))
    tables += [
        table3(experiment.of(first)),
        *(grid_table(encoder, grids[encoder], trained, chosen) for encoder in settings.encoders),
        auto_table(experiment),
        *([score_table(experiment, trained)] if settings.scores else []),
    ]
    drawings = [systems_plane(one, figures[one], curves=without.curves(one)) for one in settings.encoders]
    drawings += [systems_plane(encoder, grids[encoder], "every weight, one seed") for encoder in settings.encoders]
    drawings += [none_curve(experiment, encoder) for encoder in settings.encoders]
    ours = without.claim(figures)
    found = (*claims(figures, baselines, chosen, settings.dev_weight), *([] if ours is None else [ours]))
    return ExperimentPage(
        "ibbr",
        "In-batch balancing regularization",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", ", ".join(map(str, settings.seeds))),
            ("development seeds", ", ".join(map(str, settings.development)) or "no"),
            ("test queries", str(settings.sizes["test"])),
        ),
        found,
        tuple(tables),
        tuple(drawings),
        (*notes(settings, chosen, figures, scoring), *why(found, figures[main], grids[main], main)),
    )


Measured = tuple[dict[str, Figures], dict[str, Figures], Figures]


def measured(
    experiment: Experiment,
    chosen: Chosen,
    trained: Mapping[tuple[str, str], Mapping[float, Trained]],
    scoring: Scoring,
) -> Measured:
    """The rows of all seeds by encoder, every weight of the first seed by encoder, and the baselines."""
    settings, first = experiment.settings, experiment.settings.seeds[0]
    # A built-in collection is generated for each seed; published test queries are the same, drawn ones overlap.
    shared = settings.planted is None
    figures, grids = ({one: Figures(same_queries=shared) for one in settings.encoders} for _ in range(2))
    for encoder in settings.encoders:
        of_encoder = {term: chosen[encoder, term] for term in TERMS}
        for seed in settings.seeds:
            measure(experiment, seed, experiment.systems(seed, encoder, of_encoder), figures[encoder], scoring)
        measure(experiment, first, _every_weight(experiment, encoder, trained), grids[encoder], scoring)
    baselines = Figures(same_queries=shared)
    others = {name: experiment.test(first, experiment.baseline(name)) for name in settings.baselines}
    measure(experiment, first, others | {"RM3": experiment.rm3(first)}, baselines, scoring)
    return figures, grids, baselines


def retrieved(experiment: Experiment, chosen: Chosen, scoring: Scoring) -> dict[str, Figures]:
    """The rows that search the whole collection, of all seeds by encoder."""
    settings = experiment.settings
    found = {encoder: Figures(same_queries=settings.planted is None) for encoder in settings.encoders}
    for encoder, figures in found.items():
        rows = experiment.retrievals(encoder, {term: chosen[encoder, term] for term in TERMS})
        for seed in settings.seeds:
            runs = {row[1]: experiment.retrieved(seed, *row) for row in rows}
            measure(experiment, seed, runs, figures, scoring)
    return found


def _every_weight(
    experiment: Experiment, encoder: str, trained: Mapping[tuple[str, str], Mapping[float, Trained]]
) -> dict[str, Run]:
    """The first seed's test lists under each weight, and the yardsticks."""
    first = experiment.settings.seeds[0]
    grid = {f"{term} {w:g}": one for term in TERMS for w, one in trained[encoder, term].items() if w}
    every = grid | {
        "none": trained[encoder, "TS"][0.0],
        "base": experiment.base(first, encoder),
        "blind": experiment.blind(first, encoder),
    }
    if experiment.settings.dev_weight is not None:
        score = experiment.settings.score
        every[DEV] = experiment.fair(first, encoder, "TS", experiment.settings.dev_weight, score)
    runs = {name: experiment.test(first, one) for name, one in every.items()}
    return runs | {
        "shift" if share == 1 else f"shift × {share:g}": run for share, run in experiment.shifts(first, encoder).items()
    }
