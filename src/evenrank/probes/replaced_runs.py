"""The run with every passage replaced by its variant, audited as any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from evenrank.groups import Lexicon
from evenrank.io import Run

UTILITY = "nDCG@10"
BIAS = ("NFaiRR@10", "ARaB@10")


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A measure's mean over queries, with its 95% interval; None where it is not defined."""

    mean: float | None
    ci95: tuple[float, float] | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"mean": self.mean, "ci95": None if self.ci95 is None else list(self.ci95)}


def run_figures(
    run: Run, passages: pl.DataFrame | None, qrels: pl.DataFrame | None, lexicon: Lexicon | None, seed: int
) -> Mapping[str, RunFigure]:
    """nDCG@10 of the run's queries where there are judgements; NFaiRR@10 and ARaB@10 where there are ``passages``
    (``doc_id``, ``text``) and a lexicon."""
    from evenrank.auditing import audit

    if qrels is not None:
        # What the list was not made for is no fault of the ranker.
        qrels = qrels.join(run.table, on="query_id", how="semi", maintain_order="left")
        qrels = qrels if qrels.height else None

    bias = passages is not None and lexicon is not None
    measures = [*([] if qrels is None else [UTILITY]), *(BIAS if bias else ())]
    if not measures:
        return {}
    texts, words = (passages, lexicon) if bias else (None, None)
    audited = audit({"run": run}, collection=texts, lexicon=words, qrels=qrels, measures=measures, seed=seed)
    found = audited.runs[0]
    return {measure: RunFigure(found[measure].mean, found[measure].ci95) for measure in measures}
