"""The runs of the IBBR experiment without a term, reordered without training, beside PD, TS and blind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from evenrank.groups import Scoring, score_in_memory
from evenrank.io import Run, read_qrels, read_texts

from .ibbr_claims import PAPER
from .ibbr_measured import COLUMNS, FIRST, HEADINGS, Figures, parts_of
from .ibbr_setup import TERMS
from .ibbr_trainings import DEV, Experiment
from .paper_claims import Claim, above
from .paper_page import Curves
from .paper_tables import Table
from .untrained import Axis, Frontier, Line, compare, curves_of, rebalance_claim, reorderings
from .untrained_rows import Rows
from .untrained_tables import against_table, drawn, frontier_rows, frontier_table
from .work import Trained, development

RUN, BASE, BLIND = "none", "base", "blind"
UTILITY = "mrr"
AXIS = Axis("delta_aprf_signed", "|ΔA-PRF|")
CELLS = {key: ("delta_aprf_signed", True) if key == "delta_aprf_abs" else (key, False) for key in HEADINGS}
_MEASURED = [column for column in COLUMNS if column != "delta_aprf_abs"]


@dataclass(frozen=True)
class Untrained:
    """The frontier of each model, and how each trained mitigation compares with it."""

    frontiers: Mapping[str, Frontier]
    lines: tuple[Line, ...]

    def tables(self) -> list[Table]:
        """The frontier, and the trained mitigations beside it."""
        rows = [row for name, one in self.frontiers.items() for row in frontier_rows(one, CELLS, AXIS, (name,))]
        return [
            frontier_table(rows, HEADINGS, ("model",), RUN),
            against_table(self.lines, ("model",), HEADINGS[UTILITY]),
        ]

    def curves(self, encoder: str) -> Curves:
        """For the plane of the trained rows."""
        return drawn(self.frontiers[encoder], AXIS)

    def claim(self, figures: Mapping[str, Figures]) -> Claim | None:
        """Whether reordering beats or equals every trained mitigation, of rankers above BM25."""
        alive = [above(one.difference(RUN, FIRST, UTILITY)) for one in figures.values()]
        return rebalance_claim(PAPER, self.lines, *alive)


def untrained(experiment: Experiment, chosen: Mapping[tuple[str, str], float], scoring: Scoring) -> Untrained:
    """Measures and compares, for every model. A row of "best" without a weight that qualified is none's, and no
    mitigation."""
    frontiers, lines = {}, []
    for encoder in experiment.settings.encoders:
        weights = {term: chosen[encoder, term] for term in TERMS}
        frontiers[encoder] = frontier = _frontier(experiment, encoder, weights, scoring)
        rows = [f"{term} best" for term, weight in weights.items() if weight] + [f"{term} auto" for term in TERMS]
        rows += [*([DEV] if experiment.settings.dev_weight is not None else []), BLIND]
        lines += [compare(frontier, row, AXIS, (encoder,), control=row == BLIND) for row in rows]
    return Untrained(frontiers, tuple(lines))


def _frontier(experiment: Experiment, encoder: str, weights: Mapping[str, float], scoring: Scoring) -> Frontier:
    """The rows of all seeds' test queries, and of the first seed's development queries."""
    settings, first = experiment.settings, experiment.settings.seeds[0]
    shared = settings.planted is None
    dev, test = Rows(same_queries=shared), Rows(same_queries=shared)
    for seed in settings.seeds:
        trained = _mitigations(experiment, seed, encoder, weights)
        runs = {row: experiment.test(seed, one) for row, one in trained.items()}
        _add(experiment, seed, "test", runs, development(trained[RUN]), scoring, test)
    trained = _mitigations(experiment, first, encoder, weights)
    runs = {row: development(one) for row, one in trained.items()}
    _add(experiment, first, "dev", runs, runs[RUN], scoring, dev)
    return Frontier(RUN, curves_of(settings.strengths), dev, test, UTILITY)


def _mitigations(experiment: Experiment, seed: int, encoder: str, weights: Mapping[str, float]) -> dict[str, Trained]:
    """None and the rows that continue as it does: "base" was validated on other queries."""
    return {row: one for row, one in experiment.rows(seed, encoder, weights).items() if row != BASE}


def _add(  # parameters: what is measured, how, and where it goes
    experiment: Experiment, seed: int, part: str, runs: Mapping[str, Run], learn: Run, scoring: Scoring, into: Rows
) -> None:
    """Measures a seed's runs of one part and the reorderings of none; the documents are read and scored once.

    ``learn``: none's run of the seed's development queries.
    """
    data = experiment.of(seed)
    documents = pl.concat([learn.table["doc_id"], runs[RUN].table["doc_id"]]).unique(maintain_order=True)
    table = score_in_memory(read_texts(data.collection, documents), scoring)
    every = {**runs, **reorderings(runs[RUN], table, experiment.settings.strengths, learn)}
    qrels, queries = read_qrels(data.parts[part].qrels), runs[RUN].queries.to_list()
    into.seeds.append({row: parts_of(run, table, qrels, queries, _MEASURED) for row, run in every.items()})
    into.queries.append(queries)
