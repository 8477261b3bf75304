"""What a reader of the figures may want to know: ties, targets, depths, queries that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files import Run, arg
from evenrank.files.provenance import made_by_text
from evenrank.files.wording import are, counted, percent
from evenrank.measures import Background, Evaluation, PairwiseMeasure, Target, is_bias
from evenrank.measures.ranked_lists import tied_pair_share

from .comparison import common, depth_decides
from .data import NEUTRAL_FIRST, RANDOM, RunAudit
from .inputs import Inputs
from .rankings import Rankings
from .values import SHOWN_DEPTH, RunValues


def remarks(
    inputs: Inputs,
    rankings: Rankings,
    measures: Sequence[Measure],
    runs: Sequence[RunAudit],
    unequal: Mapping[str, Sequence[str]],
    baseline: str | None,
) -> list[str]:
    """All of them, a sentence each; ``unequal``: see :func:`unequally_deep`."""
    query_ids = None if inputs.queries is None else inputs.queries["query_id"]
    return [
        *_of_labels(runs),
        *_of_target(rankings.background.target, measures),
        *_of_cards(inputs.runs),
        *(note for run in inputs.runs for note in run.notes),
        *([] if query_ids is None or inputs.qrels is None else _of_judged_queries(query_ids, inputs.qrels)),
        *_of_depth(rankings, unequal, baseline),
        *_of_rankings(rankings, inputs.qrels is not None, measures, runs),
    ]


def _of_labels(runs: Sequence[RunAudit]) -> list[str]:
    """How many documents of each group stand in the first ranks of each run."""
    notes = []
    for run in runs:
        if run.labels is None or run.reference:
            continue
        groups = ", ".join(f"{weight:,.6g} {group}" for group, weight in run.labels.groups.items())
        notes.append(
            f"{run.name}: {run.labels.known:,} of {counted(run.labels.rows, 'document')} in the first"
            f" {run.labels.depth} ranks are labelled ({groups}, {run.labels.neutral:,.6g} of no group)."
        )
    return notes


def _of_judged_queries(known: pl.Series, qrels: pl.DataFrame) -> list[str]:
    """A note that the qrels judge more queries than were given, if they do."""
    judged = qrels["query_id"].unique()
    others = int((~judged.is_in(known.implode())).sum())
    if not others:
        return []
    return [
        f"The qrels judge {counted(len(judged), 'query')}, {others:,} of which {are(others)} not among the"
        f" {len(known):,} given: utility is averaged over all {len(judged):,}"
        f" ({arg.only_queries} restricts the audit to those given)."
    ]


def unequally_deep(rankings: Rankings, measures: Sequence[Measure], baseline: str | None) -> dict[str, list[str]]:
    """The measures that depth may decide, by the run whose lists are shorter or longer than the baseline's.

    Without a baseline, the run with the longest lists takes its place.
    """
    base = _deepest(rankings, baseline)
    return {
        run.name: [str(measure) for measure in measures if depth_decides(run, base, measure)]
        for run in rankings.audited
        if run is not base and depth_decides(run, base)
    }


def _deepest(rankings: Rankings, baseline: str | None) -> RunValues:
    lengths = [float(np.nanmean(run.lengths)) for run in rankings.audited]
    deepest = rankings.audited[int(np.argmax(lengths))]
    return next((run for run in rankings.audited if run.name == baseline), deepest)


def _of_depth(rankings: Rankings, unequal: Mapping[str, Sequence[str]], baseline: str | None) -> Iterator[str]:
    """Which runs have shorter or longer lists, and the measures that this decides."""
    base = _deepest(rankings, baseline)
    for run in rankings.audited:
        if run.name not in unequal:
            continue
        keys = unequal[run.name]
        own, other = common(run.lengths, base.lengths).mean(axis=0)
        decided = f"; depth may decide {', '.join(keys)}, which the summary does not compare" if keys else ""
        yield (
            f"{run.name} has {own:,.0f} documents per query, {base.name} {other:,.0f}"
            f" (means over the queries of both){decided}."
        )


def _of_rankings(rankings: Rankings, judged: bool, measures: Sequence[Measure], runs: Sequence[RunAudit]) -> list[str]:
    """On the background, documents outside it, ties, and queries left out."""
    notes = []
    background, evaluations = rankings.normaliser, rankings.evaluations
    if background is not None:
        notes.append(
            f"Background of NFaiRR and candidates of the reference rankings: {background.name}, first"
            f" {background.depth} documents per query (reference rankings: all of them)."
        )
    cutoff = max((m.params.get("cutoff", 0) for m in measures if is_bias(m)), default=0)
    every = pl.concat([evaluation.queries for evaluation in evaluations]).unique()
    biased = any(map(is_bias, measures))
    for evaluation, result in zip(evaluations, runs, strict=False):
        name = evaluation.run.name
        if background is not None:
            notes += _outside(name, evaluation, background, cutoff)
        if result.tie_share:
            share = percent(result.tie_share)
            notes.append(f"{name}: {share} of the documents in the first {SHOWN_DEPTH} ranks are tied.")
        flagged = [key for key, figure in result.measures.items() if figure.tie_sensitive]
        if flagged:
            notes.append(
                f"{name}: the order of tied documents moves {', '.join(flagged)} by more than its interval is wide."
            )
        others = int((~every.is_in(evaluation.queries.implode())).sum())
        if judged:
            notes += _judgement_notes(evaluation, measures)
        if others and biased and not result.absent:
            notes.append(
                f"{name}: {others:,} of the {len(every):,} queries of the runs {are(others)} not in this run; bias"
                f" measures skip {'it' if others == 1 else 'them'}."
            )
    if background is not None and rankings.neutral_first is not None:
        notes += _outside(NEUTRAL_FIRST, rankings.neutral_first, background, cutoff)
    random = next(run for run in runs if run.name == RANDOM)
    known = {key: f for key, f in runs[0].measures.items() if f.mean is not None and f.from_labels is None}
    unknown = [
        key
        for key, figure in random.measures.items()
        if figure.mean is None and not is_bias(figure.measure) and key in known
    ]
    if unknown:
        notes.append(f"{RANDOM}: {', '.join(unknown)} was not computed: the runs are too long for random draws.")
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
        f"{name}: {outside} of {total} documents in the first {cutoff} ranks {are(outside)} outside the background;"
        " its NFaiRR can exceed 1."
    ]


def _judgement_notes(evaluation: Evaluation, measures: Sequence[Measure]) -> list[str]:
    name, notes = evaluation.run.name, []
    judged = evaluation.judged
    unjudged = len(evaluation.queries) - int(evaluation.queries.is_in(judged.implode()).sum())
    if unjudged:
        notes.append(f"{name}: {counted(unjudged, 'query')} {are(unjudged)} not judged and left out of utility.")
    if any(isinstance(measure, PairwiseMeasure) for measure in measures):
        share = tied_pair_share(evaluation.wins()[0])
        if share > 0:
            notes.append(
                f"{name}: {percent(share)} of the (clicked, not clicked) pairs of PRF are tied; ties count as wins."
            )
    return notes


def _of_target(target: Target | None, measures: Sequence[Measure]) -> list[str]:
    """Which target measures compare with that do not name one."""
    comparing = [str(m) for m in measures if "target" in m.SUPPORTED_PARAMS and m.params.get("target") is None]
    if not comparing:
        return []
    described = "equal shares of all groups" if target is None else target.described
    return [f"Target of {', '.join(comparing)}: {described}."]


def _of_cards(runs: Iterable[Run]) -> list[str]:
    """A note for each run with a card."""
    return [f"{run.name}: {made_by_text(run.card)}." for run in runs if run.card is not None]
