"""Hofstätter et al., ECIR 2021, position bias: Tables 1 to 5, Figures 1 and 2; at ``real``, SQuAD by answer place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from evenrank.position.answer_positions import AnswerPositions

from . import position_real, work
from .paper_page import Drawing, ExperimentPage, curve, plane
from .position_claims import claims
from .position_found import UNTRAINED, Found
from .position_measured import answer_positions, facts, figure1, measured
from .position_notes import notes
from .position_runs import Experiment
from .position_setup import BIASED, ORIGINAL, OTHER, RANKERS, SOURCE, VERSIONS, Settings
from .position_tables import (
    effectiveness_table,
    significance_table,
    similarity_table,
    sizes_table,
    table_row,
    transfer_table,
)


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k not in ("seeds", "given")})
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    if settings.early is not None:
        return position_real.page(experiment)
    found = measured(experiment)
    first = settings.seeds[0]
    positions = answer_positions(experiment, first)
    tables = (
        sizes_table(experiment, first),
        similarity_table(found),
        effectiveness_table(found, "Table 3", BIASED, "position_table3"),
        effectiveness_table(found, "Table 4", OTHER, "position_table4"),
        transfer_table(found),
        significance_table(found, (BIASED, OTHER)),
    )
    return ExperimentPage(
        "position",
        "Position bias",
        SOURCE,
        facts(experiment, first, BIASED),
        claims(found, {name: positions[name, ORIGINAL] for name in (BIASED, OTHER) if (name, ORIGINAL) in positions}),
        tables,
        _drawings(found, positions),
        notes(settings),
    )


# --- figures ---------------------------------------------------------------------------------------------------------


def _drawings(found: Found, positions: dict[tuple[str, str], AnswerPositions]) -> tuple[Drawing, ...]:
    rows: list[dict[str, object]] = []
    for (name, version), of in found.similarity.items():
        last = min(one.delta_max for one in of)
        for distance in range(last + 1):
            mean = float(np.nanmean([one.ats[distance] for one in of]))
            spread = float(np.mean([one.deviation[distance] for one in of]))
            rows.append(_point(distance, f"{name}, {version}", mean, spread))
            if version != UNTRAINED:
                level = [one[distance] for one in found.different[name, version] if distance < len(one)]
                if level:
                    rows.append(_point(distance, f"{name}, {version}: different terms", float(np.nanmean(level)), 0.0))
    hint = "TK's vectors of the same word by distance, means over seeds; bars: one standard deviation over pairs."
    points = {}
    for ranker in (*RANKERS, "BM25", "random"):
        for training in VERSIONS if ranker in RANKERS else ("",):
            row = table_row(found, BIASED, ranker, training)
            if row:
                points[f"{ranker} {training}".strip()] = (row["ndcg_orig"], row["change_of_original"])
    return (
        *figure1(positions),
        curve("Figure 2", "Average term similarity ATS(Δ)", rows, "distance Δ in words", hint),
        plane(
            "Plane",
            f"Effectiveness against position bias: {BIASED}",
            points,
            "nDCG@10 on the original test (higher is better)",
            "change on the rotated test (%, nearer 0 is better)",
            None,
        ),
    )


def _point(distance: int, measure: str, mean: float, spread: float) -> dict[str, object]:
    return {"x": distance, "measure": measure, "value": mean, "low": mean - spread, "high": mean + spread}
