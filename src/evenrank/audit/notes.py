"""What a reader of an audit has to know beside its figures, and the documents that its report shows."""

from __future__ import annotations

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank._wording import are, counted
from evenrank.io import Scores
from evenrank.measures import DELTA, Background, Evaluation, is_bias
from evenrank.measures.pairwise import tied_pair_share

from .comparison import common, depth_decides
from .figures import SHOWN_DEPTH, Measured
from .findings import NEUTRAL_FIRST, RANDOM, RunAudit

_OF_NEUTRALITY = ("FaiRR", "NFaiRR")


def make_warnings(background: Evaluation, judged: bool, measures: list[Measure], results: list[RunAudit]) -> list[str]:
    """What stands in the first lines, each a heading, a colon and the rest."""
    warnings = []
    if not judged:
        warnings.append("Effectiveness is unknown: there are no qrels. A ranking of nonsense can be perfectly fair.")
    lacking = [_lacking(run, background.missing) for run in results if run.lacking is not None]
    if lacking:
        warnings.append(f"Documents without text: {'; '.join(lacking)}.")
    if judged:
        unjudged = [run.name for run in results if not run.reference and run.absent and run.absent == _most(run)]
        if unjudged:
            warnings.append(
                f"Effectiveness says nothing here: the qrels judge no query of {', '.join(unjudged)}, and every judged"
                " query counts 0."
            )
    if any(m.NAME in _OF_NEUTRALITY for m in measures) and _all_neutral(background):
        warnings.append(f"Neutrality says nothing here: {_why_neutral(background)}, so NFaiRR is 1 in any order.")
    elif any(map(is_bias, measures)) and not _counts(background):
        warnings.append(f"Bias says nothing here: {_why_neutral(background)}.")
    return warnings


def _most(run: RunAudit) -> int:
    """The queries that a run's utility is over."""
    return max((figure.n for figure in run.figures.values() if not is_bias(figure.measure)), default=0)


def _counts(background: Evaluation) -> bool:
    """Whether any document of the runs holds a word of the lexicon, or that is not known."""
    scores = background.scores
    return scores is None or any(scores.table[f"count_{group}"].to_numpy().any() for group in scores.groups)


def _all_neutral(background: Evaluation) -> bool:
    return background.background is not None and background.background.all_neutral


def _lacking(run: RunAudit, missing: str) -> str:
    lacking = run.lacking
    assert lacking is not None
    done = {"skip": "left out of the bias measures", "neutral": "counted as neutral"}[missing]
    documents = f"{lacking.documents:,} of {counted(lacking.total, 'document')} {lacking.place} of {run.name}"
    text = f"{documents} ({_percent(lacking.share)}), {done}"
    if lacking.queries:
        queries = counted(lacking.queries, "query")
        empty = (
            f"bias is undefined for {queries}"
            if missing == "skip"
            else f"{queries} count{'s' * (lacking.queries == 1)} as wholly neutral"
        )
        text += f"; {empty}, as no document has a text"
    return text


def _why_neutral(background: Evaluation) -> str:
    """Why every document of the background is neutral; labels written as texts of one word are a usual case."""
    scores = background.scores
    assert scores is not None
    assert background.background is not None
    rows = background.document[background.run.table["rank"].to_numpy() <= background.background.depth]
    counts = sum(scores.table[f"count_{group}"].to_numpy() for group in scores.groups)
    most = float(np.max(np.asarray(counts)[rows[rows >= 0]], initial=0))
    name, threshold = background.background.name, scores.settings.get("threshold", 1)
    if most == 0:
        return f"no document of the background ({name}) holds a word of the lexicon {scores.settings.get('lexicon')}"
    if most <= threshold:
        return (
            f"no document of the background ({name}) has more than {threshold:g} group word{'s' * (threshold != 1)},"
            " and so few do not count (texts that are labels of one word need `threshold=0`)"
        )
    return f"every document of the background ({name}) holds the groups at their target shares"


def poles_notes(scores: Scores | None) -> list[str]:
    """That nobody said which of two groups is the positive one."""
    if scores is None or scores.poles is None or not scores.settings.get("poles_assumed"):
        return []
    first, second = scores.poles
    return [f"Bias is {first} minus {second}: nobody named the poles, so the file's order decided (`poles` sets them)."]


def query_notes(known: pl.Series, qrels: pl.DataFrame) -> list[str]:
    """That the qrels judge more queries than were given."""
    judged = qrels["query_id"].unique()
    others = int((~judged.is_in(known.implode())).sum())
    if not others:
        return []
    return [
        f"The qrels judge {counted(len(judged), 'query')}, {others:,} of which {are(others)} not among the"
        f" {len(known):,} given: utility is averaged over all {len(judged):,}"
        " (`only_queries` restricts the audit to those given)."
    ]


def depth_notes(
    given: list[Measured], measures: list[Measure], baseline: str | None
) -> tuple[list[str], tuple[str, ...]]:
    """Runs whose lists are not as long as the baseline's (else the longest), and the measures that this decides."""
    lengths = [float(np.nanmean(run.lengths)) for run in given]
    deepest = given[int(np.argmax(lengths))]
    base = next((run for run in given if run.name == baseline), deepest)
    notes, unequal = [], []
    for run in given:
        if run is base or not depth_decides(run, base):
            continue
        keys = [str(measure) for measure in measures if depth_decides(run, base, measure)]
        own, other = common(run.lengths, base.lengths).mean(axis=0)
        decided = f"; depth decides {', '.join(keys)}, which the summary does not compare" if keys else ""
        notes.append(
            f"{run.name} has {own:,.0f} documents a query, {base.name} {other:,.0f}"
            f" (means over the queries of both){decided}."
        )
        unequal += keys
    return notes, tuple(dict.fromkeys(unequal))


def make_notes(
    evaluations: list[Evaluation],
    neutral_first: Evaluation | None,
    background: Background | None,
    qrels: pl.DataFrame | None,
    measures: list[Measure],
    results: list[RunAudit],
) -> list[str]:
    """Background, documents outside the background, ties, and queries left out."""
    notes = []
    if background is not None:
        notes.append(
            f"Background of NFaiRR and candidates of the reference rankings: {background.name}, first"
            f" {background.depth} documents per query (reference rankings: all of them)."
        )
    cutoff = max((m.params.get("cutoff", 0) for m in measures if is_bias(m)), default=0)
    for evaluation, result in zip(evaluations, results, strict=False):
        name = evaluation.run.name
        if background is not None:
            notes += _outside(name, evaluation, background, cutoff)
        if result.tie_share:
            share = _percent(result.tie_share)
            notes.append(f"{name}: {share} of the documents in the first {SHOWN_DEPTH} ranks are tied.")
        flagged = [key for key, figure in result.figures.items() if figure.tie_sensitive]
        if flagged:
            notes.append(f"{name}: the order of tied documents moves {', '.join(flagged)} by more than the interval.")
        if qrels is not None:
            notes += _judgement_notes(evaluation, measures, result.absent)
    if background is not None and neutral_first is not None:
        notes += _outside(NEUTRAL_FIRST, neutral_first, background, cutoff)
    random = next(run for run in results if run.name == RANDOM)
    unknown = [
        key
        for key, figure in random.figures.items()
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
        f"{name}: {outside} of {total} documents in the first {cutoff} ranks {are(outside)} outside the background;"
        " its NFaiRR can exceed 1."
    ]


def _percent(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{share:.0%}"


def _judgement_notes(evaluation: Evaluation, measures: list[Measure], absent: int) -> list[str]:
    name, notes = evaluation.run.name, []
    judged = evaluation.judged
    unjudged = len(evaluation.queries) - int(evaluation.queries.is_in(judged.implode()).sum())
    if unjudged:
        notes.append(f"{name}: {counted(unjudged, 'query')} {are(unjudged)} not judged and left out of utility.")
    if absent:
        notes.append(
            f"{name}: utility is averaged over {len(judged):,} judged queries; {absent:,} of them {are(absent)} not in"
            f" the run and count{'s' * (absent == 1)} 0."
        )
    if any(m.NAME in ("APRF", *DELTA) for m in measures):
        share = tied_pair_share(evaluation.wins()[0])
        if share > 0:
            notes.append(
                f"{name}: {_percent(share)} of the (clicked, not clicked) pairs of PRF are tied; ties count as wins."
            )
    return notes


def first_documents(
    tops: list[pl.DataFrame], names: list[str], scores: Scores | None, qrels: pl.DataFrame | None
) -> pl.DataFrame:
    """The first documents of every run in one table, with their scores and grades."""
    named = [top.select(pl.lit(name).alias("run"), pl.all()) for top, name in zip(tops, names, strict=True)]
    table = pl.concat(named)
    if scores is None:
        table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias("neutrality"))
    else:
        counts = ["doc_id", "neutrality", *[f"count_{group}" for group in scores.groups]]
        table = table.join(scores.table.select(counts), on="doc_id", how="left", maintain_order="left")
    if qrels is None:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias("relevance"))
    return table.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
