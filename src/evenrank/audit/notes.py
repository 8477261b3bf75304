"""What a reader of an audit has to know beside its figures, and the documents that its report shows."""

from __future__ import annotations

import polars as pl
from ir_measures import Measure

from evenrank.io import Scores
from evenrank.measures import DELTA, Background, Evaluation, is_bias
from evenrank.measures.pairwise import tied_pair_share

from .figures import SHOWN_DEPTH
from .findings import NEUTRAL_FIRST, RANDOM, RunAudit


def make_notes(
    evaluations: list[Evaluation],
    neutral_first: Evaluation,
    background: Background,
    qrels: pl.DataFrame | None,
    measures: list[Measure],
    results: list[RunAudit],
) -> list[str]:
    """Background, missing documents, documents outside the background, ties, and queries left out."""
    notes = [
        f"Background of NFaiRR and candidates of the reference rankings: {background.name}, first {background.depth}"
        " per query (references: all)."
    ]
    cutoff = max((m.params.get("cutoff", 0) for m in measures if is_bias(m)), default=0)
    for evaluation, result in zip(evaluations, results, strict=False):
        name = evaluation.run.name
        if evaluation.missing_documents:
            done = {"skip": "left out of the bias measures", "neutral": "counted as neutral"}[evaluation.missing]
            notes.append(f"{name}: {evaluation.missing_documents} rows hold documents without text, {done}.")
        notes += _outside(name, evaluation, background, cutoff)
        if result.tie_share:
            share = _percent(result.tie_share)
            notes.append(f"{name}: {share} of the documents in the first {SHOWN_DEPTH} ranks are tied.")
        flagged = [key for key, figure in result.figures.items() if figure.tie_sensitive]
        if flagged:
            notes.append(f"{name}: the order of tied documents moves {', '.join(flagged)} by more than the interval.")
        if qrels is not None:
            notes += _judgement_notes(evaluation, measures)
    notes += _outside(NEUTRAL_FIRST, neutral_first, background, cutoff)
    unknown = [
        key
        for key, figure in results[-2].figures.items()
        if figure.mean is None and not is_bias(figure.measure) and results[0].figures[key].mean is not None
    ]
    if unknown:
        notes.append(f"{RANDOM}: {', '.join(unknown)} was not computed: the runs are too long to draw from.")
    return notes


def _outside(name: str, evaluation: Evaluation, background: Background, cutoff: int) -> list[str]:
    if evaluation.run is background.run:
        ranks = evaluation.own_ranks(cutoff)
        outside, total = int((ranks > background.depth).sum()), len(ranks)
    else:
        top = evaluation.first(cutoff).select("query_id", "doc_id")
        outside, total = top.join(background.table, on=["query_id", "doc_id"], how="anti").height, top.height
    if not outside:
        return []
    return [
        f"{name}: {outside} of {total} documents in the first {cutoff} ranks are outside the background;"
        " its NFaiRR can exceed 1."
    ]


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{share:.0%}"


def _judgement_notes(evaluation: Evaluation, measures: list[Measure]) -> list[str]:
    name, notes = evaluation.run.name, []
    judged = evaluation.judged
    unjudged = len(evaluation.queries) - int(evaluation.queries.is_in(judged.implode()).sum())
    if unjudged:
        notes.append(f"{name}: {unjudged} queries are not judged and left out of utility.")
    absent = len(judged) - int(judged.is_in(evaluation.queries.implode()).sum())
    if absent:
        notes.append(f"{name}: {absent} judged queries are not in the run and count 0 in utility.")
    if any(m.NAME in ("APRF", *DELTA) for m in measures):
        share = tied_pair_share(evaluation.wins()[0])
        if share > 0:
            notes.append(
                f"{name}: {_percent(share)} of the (clicked, not clicked) pairs of PRF are tied; ties count as wins."
            )
    return notes


def first_documents(
    tops: list[pl.DataFrame], names: list[str], scores: Scores, qrels: pl.DataFrame | None
) -> pl.DataFrame:
    """The first documents of every run in one table, with their scores and grades."""
    counts = ["doc_id", "neutrality", *[f"count_{group}" for group in scores.groups]]
    named = [top.select(pl.lit(name).alias("run"), pl.all()) for top, name in zip(tops, names, strict=True)]
    table = pl.concat(named).join(scores.table.select(counts), on="doc_id", how="left", maintain_order="left")
    if qrels is None:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias("relevance"))
    return table.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
