"""The notes of an audit, of ties, targets and cards, and the documents that its report shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files import EvenrankError, Provenance, Run, arg
from evenrank.files.provenance import made_by_text
from evenrank.files.tables import IdIndex
from evenrank.files.wording import are, counted, percent
from evenrank.groups import GroupTable, builtin_lexicons
from evenrank.groups.table import DrawnLabels
from evenrank.measures import (
    Background,
    Evaluation,
    NeutralityMeasure,
    PairwiseMeasure,
    Target,
    as_target,
    is_bias,
    is_estimable,
)
from evenrank.measures.ranked_lists import tied_pair_share
from evenrank.results.finding import Finding, Place, phrases
from evenrank.stats.sampling import LEAST_LABELS

from .comparison import common, depth_decides
from .data import NEUTRAL_FIRST, RANDOM, Figure, RunAudit, shown_name
from .figures import SHOWN_DEPTH, Measured

_SAYS = phrases("audit")
_LEFT_OUT = {"skip": "left out of the bias measures", "neutral": "counted as neutral"}
_MANY = 0.25
"""From which share of the documents with a word those with too few of them are noted."""


def _found(key: str, place: Place = "warning", **values: Any) -> Finding:
    return _SAYS.find(key, "", "cannot be told", None, place, **values)


def absence_warning(lacking: Mapping[str, int], judged: int, runs: int = 1) -> str:
    """What every view says of judged queries that some of ``runs`` runs lack: ``lacking``, of ``judged``, by name."""
    counts = list(lacking.values())
    said = "; ".join(_SAYS.say("lacks", run=name, count=count, judged=judged) for name, count in lacking.items())
    if len(counts) == runs > 1 and len(set(counts)) == 1:
        said = _SAYS.say(
            "lack_alike", runs="both runs" if runs == 2 else f"all {runs} runs", count=counts[0], judged=judged
        )
    return _SAYS.say("absent", lacking=said)


def misleading(
    background: Evaluation, judged: int | None, measures: Sequence[Measure], results: Sequence[RunAudit]
) -> Iterator[Finding]:
    """What misleads unless it is known; ``judged``: how many queries are, None without qrels."""
    given = [run for run in results if not run.reference]
    if judged is None:
        yield _found("unknown", "answer")
    sample = None if background.group_table is None else background.group_table.sample
    yield from _unlabelled(background.missing, given) if sample is None else _estimated(sample, given)
    lacking = [_lacking(run, background.missing) for run in results if run.lacking is not None]
    if lacking:
        yield _found("without_text", documents="; ".join(lacking))
    if judged is not None:
        absent = {run.name: run.absent for run in given if 0 < run.absent < _most(run)}
        if absent:
            yield Finding("absent", "", "cannot be told", None, absence_warning(absent, judged, len(given)), "warning")
        unjudged = [run.name for run in given if run.absent and run.absent == _most(run)]
        if unjudged:
            yield _found("unjudged", runs=", ".join(unjudged))
    if any(isinstance(measure, NeutralityMeasure) for measure in measures) and _all_neutral(background):
        yield _found("all_neutral", why=_why_neutral(background))
    elif any(map(is_bias, measures)) and not _counts(background):
        yield _found("no_words", why=_why_neutral(background))


def _unlabelled(missing: str, given: Sequence[RunAudit]) -> Iterator[Finding]:
    """What part of the labels is unknown, and what becomes of it."""
    found = [(run.name, run.labels) for run in given if run.labels is not None]
    above = any(labels.unknown for _, labels in found)
    if not above and not any(_looks_at_unknown(figure) for run in given for figure in run.figures.values()):
        return
    shares = ", ".join(f"{percent(labels.unknown / labels.rows)} of {name}" for name, labels in found)
    key = "unlabelled" if above else "unlabelled_below"
    yield _found(key, shares=shares, depth=found[0][1].depth, done=_SAYS.say(f"unlabelled_{missing}"))


def _estimated(sample: DrawnLabels, given: Sequence[RunAudit]) -> Iterator[Finding]:
    """That figures are estimates, of which labels; and which are not, and why."""
    figures = [figure for run in given for figure in run.figures.values() if figure.known is not None]
    known = [figure.from_labels for figure in figures if figure.from_labels is not None]
    of: dict[str, Any] = {"labels": len(sample.rows), "documents": len(sample.documents)}
    if known and sample.guess is not None:
        yield _found("estimated_guess", contradict=max(one.contradict or 0 for one in known), **of)
    elif known:
        yield _found("estimated", **of)
    if len(sample.rows) < LEAST_LABELS:
        yield _found("few_labels", labels=of["labels"], least=LEAST_LABELS)
    others = [one.measure for one in figures if one.from_labels is None]
    sums = [shown_name(one) for one in others if is_estimable(one)]
    if sums:
        yield _found("not_drawn", measures=list(dict.fromkeys(sums)))
    rest = [shown_name(one) for one in others if not is_estimable(one)]
    if rest:
        yield _found("no_sums", measures=list(dict.fromkeys(rest)))
    if sample.trusted:
        yield _found("trusted")


def _looks_at_unknown(figure: Figure) -> bool:
    return figure.known is not None and figure.known[0] < figure.known[1]


def _lacking(run: RunAudit, missing: str) -> str:
    lacking = run.lacking
    assert lacking is not None
    values: dict[str, Any] = {"count": lacking.documents, "total": counted(lacking.total, "document"), "run": run.name}
    values |= {"place": lacking.place, "share": percent(lacking.share), "done": _LEFT_OUT[missing]}
    if not lacking.queries:
        return _SAYS.say("lacking", **values)
    return _SAYS.say(f"lacking_{missing}", queries=counted(lacking.queries, "query"), **values)


def _most(run: RunAudit) -> int:
    """The number of queries behind a run's utility."""
    return max((figure.n for figure in run.figures.values() if not is_bias(figure.measure)), default=0)


def _counts(background: Evaluation) -> bool:
    """Whether any document of the runs contains a word of the lexicon, or it is not known."""
    scores = background.group_table
    return scores is None or any(scores.table[f"count_{group}"].to_numpy().any() for group in scores.groups)


def _all_neutral(background: Evaluation) -> bool:
    return background.background is not None and background.background.all_neutral


def _why_neutral(background: Evaluation) -> str:
    """Why every document of the background is neutral; a common case is one-word texts that are labels."""
    scores = background.group_table
    assert scores is not None
    assert background.background is not None
    rows = background.document[background.run.table["rank"].to_numpy() <= background.background.depth]
    counts = sum(scores.table[f"count_{group}"].to_numpy() for group in scores.groups)
    most = float(np.max(np.asarray(counts)[rows[rows >= 0]], initial=0))
    name, threshold = background.background.name, float(scores.settings.get("threshold", 1))
    if scores.labelled and most == 0:
        return _SAYS.say("neutral_labels", run=name)
    if most == 0:
        return _SAYS.say("neutral_texts", run=name, lexicon=str(scores.settings.get("lexicon")))
    if most <= threshold:
        words = counted(int(threshold), "group word") if threshold.is_integer() else f"{threshold:g} group words"
        return _SAYS.say("too_few_words", run=name, words=words)
    return _SAYS.say("neutral_shares", run=name)


def cautions(groups: GroupTable | None) -> Iterator[Finding]:
    """What a reader may have meant otherwise: poles that nobody named, a misspelt label, words too few to count."""
    if groups is None:
        return
    if groups.poles is not None and groups.settings.get("poles_assumed"):
        first, second = groups.poles
        yield _found("poles_assumed", "note", first=first, second=second)
    absent = groups.settings.get("neutral_absent")
    if absent:
        yield _found("neutral_absent", "note", labels=", ".join(absent), groups=", ".join(groups.groups))
    name, threshold = groups.settings.get("lexicon"), float(groups.settings.get("threshold", 1))
    if groups.labelled or name is None or name in builtin_lexicons():
        return
    words = np.sum([groups.table[f"count_{group}"].to_numpy() for group in groups.groups], axis=0)
    few, some = int(((words > 0) & (words <= threshold)).sum()), int((words > 0).sum())
    if some and few >= _MANY * some:
        values = {"few": few, "some": counted(some, "document"), "share": percent(few / some)}
        yield _found("threshold", "note", lexicon=name, threshold=f"{threshold:g}", **values)


def label_notes(results: list[RunAudit]) -> list[str]:
    """How many documents of each group stand in the first ranks of each run."""
    notes = []
    for run in results:
        if run.labels is None or run.reference:
            continue
        groups = ", ".join(f"{weight:,.6g} {group}" for group, weight in run.labels.groups.items())
        notes.append(
            f"{run.name}: {run.labels.known:,} of {counted(run.labels.rows, 'document')} in the first"
            f" {run.labels.depth} ranks are labelled ({groups}, {run.labels.neutral:,.6g} of no group)."
        )
    return notes


def query_notes(known: pl.Series, qrels: pl.DataFrame) -> list[str]:
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


def depth_notes(
    given: list[Measured], measures: list[Measure], baseline: str | None
) -> tuple[list[str], tuple[str, ...]]:
    """Notes on runs whose lists are shorter or longer than the baseline's, and the measures that this decides.

    Without a baseline, the run with the longest lists takes its place.
    """
    lengths = [float(np.nanmean(run.lengths)) for run in given]
    deepest = given[int(np.argmax(lengths))]
    base = next((run for run in given if run.name == baseline), deepest)
    notes, unequal = [], []
    for run in given:
        if run is base or not depth_decides(run, base):
            continue
        keys = [str(measure) for measure in measures if depth_decides(run, base, measure)]
        own, other = common(run.lengths, base.lengths).mean(axis=0)
        decided = f"; depth may decide {', '.join(keys)}, which the summary does not compare" if keys else ""
        notes.append(
            f"{run.name} has {own:,.0f} documents per query, {base.name} {other:,.0f}"
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
    """Notes on the background, documents outside it, ties, and queries left out."""
    notes = []
    if background is not None:
        notes.append(
            f"Background of NFaiRR and candidates of the reference rankings: {background.name}, first"
            f" {background.depth} documents per query (reference rankings: all of them)."
        )
    cutoff = max((m.params.get("cutoff", 0) for m in measures if is_bias(m)), default=0)
    every = pl.concat([evaluation.queries for evaluation in evaluations]).unique()
    biased = any(map(is_bias, measures))
    for evaluation, result in zip(evaluations, results, strict=False):
        name = evaluation.run.name
        if background is not None:
            notes += _outside(name, evaluation, background, cutoff)
        if result.tie_share:
            share = percent(result.tie_share)
            notes.append(f"{name}: {share} of the documents in the first {SHOWN_DEPTH} ranks are tied.")
        flagged = [key for key, figure in result.figures.items() if figure.tie_sensitive]
        if flagged:
            notes.append(
                f"{name}: the order of tied documents moves {', '.join(flagged)} by more than its interval is wide."
            )
        others = int((~every.is_in(evaluation.queries.implode())).sum())
        if qrels is not None:
            notes += _judgement_notes(evaluation, measures)
        if others and biased and not result.absent:
            notes.append(
                f"{name}: {others:,} of the {len(every):,} queries of the runs {are(others)} not in this run; bias"
                f" measures skip {'it' if others == 1 else 'them'}."
            )
    if background is not None and neutral_first is not None:
        notes += _outside(NEUTRAL_FIRST, neutral_first, background, cutoff)
    random = next(run for run in results if run.name == RANDOM)
    unknown = [
        key
        for key, figure in random.figures.items()
        if figure.mean is None and not is_bias(figure.measure) and results[0].figures[key].mean is not None
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


def _judgement_notes(evaluation: Evaluation, measures: list[Measure]) -> list[str]:
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


def first_documents(
    first: Mapping[str, pl.DataFrame], scores: GroupTable | None, qrels: pl.DataFrame | None
) -> pl.DataFrame:
    """The ``first`` documents of every run by name as one table, with their group counts and grades."""
    table = pl.concat([top.select(pl.lit(name).alias("run"), pl.all()) for name, top in first.items()])
    if scores is None:
        table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias("neutrality"))
    else:
        counts = scores.table.select("doc_id", "neutrality", *[f"count_{group}" for group in scores.groups])
        if counts.height > table.height:
            counts = counts.filter(IdIndex([table["doc_id"]]).among(counts["doc_id"]))
        table = table.join(counts, on="doc_id", how="left", maintain_order="left")
    if qrels is None:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias("relevance"))
    return table.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")


def load_target(target: object, groups: GroupTable | None, judged: bool) -> Target | None:
    """The target as it is given; None for equal shares.

    Raises EvenrankError for a target of groups that there are not, and for one that needs qrels which are not there.
    """
    if target is None:
        return None
    if groups is None:
        raise EvenrankError(f"{arg.target} is of groups: it needs {arg.collection}, {arg.scores} or {arg.labels}")
    if target == "relevant" and not judged:
        raise EvenrankError(f"{arg('target', 'relevant')} needs {arg.qrels}")
    return as_target(target, groups.groups)


def evaluated_settings(evaluation: Evaluation, measures: Iterable[Measure]) -> dict[str, object]:
    """The settings of measures that compare with a target; nothing without one."""
    if not any("target" in measure.SUPPORTED_PARAMS for measure in measures):
        return {}
    return {"target": "uniform" if evaluation.target is None else evaluation.target.described}


def target_notes(target: Target | None, measures: Sequence[Measure]) -> list[str]:
    """Which target measures compare with that do not name one."""
    comparing = [str(m) for m in measures if "target" in m.SUPPORTED_PARAMS and m.params.get("target") is None]
    if not comparing:
        return []
    described = "equal shares of all groups" if target is None else target.described
    return [f"Target of {', '.join(comparing)}: {described}."]


def card_notes(runs: Iterable[Run]) -> list[str]:
    """A note for each run with a card."""
    return [f"{run.name}: {made_by_text(run.card)}." for run in runs if run.card is not None]


def add_cards(provenance: Provenance, runs: Iterable[Run], background: Run) -> None:
    """Puts the cards into the record of the inputs."""
    for run in runs:
        provenance.add_card(f"run {run.name}", run.card)
    provenance.add_card("background", background.card)
