"""What misleads unless it is known, and what could change the answer: unjudged queries, unknown labels, no words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.convert import first_of
from evenrank.files.wording import counted, percent
from evenrank.groups import GroupTable, builtin_lexicons
from evenrank.groups.table import DrawnLabels
from evenrank.measures import Evaluation, NeutralityMeasure, is_bias, is_estimable, resolve
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.table import NONE, short
from evenrank.stats.sampling import LEAST_LABELS

from .data import FromLabels, MetricValue, RunAudit, shown_name
from .inputs import Inputs
from .judge_check import JudgeCheck
from .judgements import DrawnJudgements
from .poles import group_label
from .run_names import cut_name

_PHRASES = phrases("audit")
_LEFT_OUT = {"skip": "left out of the bias measures", "neutral": "counted as neutral"}
LEAST_UNJUDGED = 0.01
"""From which share on unjudged documents are warned of."""
LEAST_OF_GROUP = 30
MUCH_UNJUDGED = 0.2
"""Groups whose shares of unjudged documents differ so much, of at least 30 documents each, are named."""
MOST_NAMED = 2
"""Of more runs, the share of unjudged documents is told from the smallest to the largest."""
_MANY = 0.25
"""From which share of the documents with a word those with too few of them are noted."""


def _found(key: str, place: Place = "warning", **values: Any) -> Finding:
    return _PHRASES.finding(key, "", "cannot be told", None, place, **values)


def absence_warning(lacking: Mapping[str, int], ids: pl.Series, queries: Mapping[str, pl.Series]) -> str:
    """What every view says of judged queries, ``ids``, that some runs lack.

    ``lacking``: how many, by the name of a run that lacks some; ``queries``: those of every run.
    """
    counts, judged, runs = list(lacking.values()), len(ids), len(queries)
    phrase = "; ".join(_PHRASES.text("lacks", run=name, count=count, judged=judged) for name, count in lacking.items())
    if len(counts) == runs > 1 and len(set(counts)) == 1:
        phrase = _PHRASES.text(
            "lack_alike", runs="both runs" if runs == 2 else f"all {runs} runs", count=counts[0], judged=judged
        )
    others = {name: queries[name].filter(~queries[name].is_in(ids.implode())) for name in lacking}
    # A run that has queries instead may have other ids.
    name = next((name for name, own in others.items() if len(own)), None)
    if name is None:
        return _PHRASES.text("absent", lacking=phrase)
    only = ids.filter(~ids.is_in(queries[name].implode()))
    sides = {"judged": first_of(only[:3]), "run": name, "others": first_of(others[name][:3])}
    return _PHRASES.text("absent", lacking=phrase) + _PHRASES.text("absent_ids", **sides)


def misleading(
    background: Evaluation,
    inputs: Inputs,
    measures: Sequence[Measure],
    results: Sequence[RunAudit],
    documents: pl.DataFrame,
    judge: JudgeCheck | None,
) -> Iterator[Finding]:
    """What misleads unless it is known.

    ``documents``: the first ones of every run, see :class:`AuditFigures`; ``judge``: what drawn judgements say of one.
    """
    runs, qrels = [run for run in results if not run.reference], inputs.qrels
    if inputs.judgements is not None:
        yield from _from_judgements(inputs.judgements, judge, runs)
    elif qrels is None:
        yield _found("unknown", "answer")
    else:
        if inputs.unchecked:
            yield _found("judge_alone", "answer")
        yield from _unjudged(runs)
        if background.group_table is not None and background.group_table.sample is None:
            yield from _unjudged_groups(documents, [run.name for run in runs], qrels, background.group_table.groups)
        yield from _without_relevant(qrels)
    sample = None if background.group_table is None else background.group_table.sample
    yield from _unlabelled(background.missing, runs) if sample is None else _estimated(sample, runs)
    lacking = [_lacking(run, background.missing) for run in results if run.lacking is not None]
    if lacking:
        yield _found("without_text", documents="; ".join(lacking))
    absent = {run.name: run.absent for run in runs if run.absent}
    if qrels is not None and absent:
        queries = {run.name: run.queries for run in inputs.runs}
        text = absence_warning(absent, qrels["query_id"].unique(maintain_order=True), queries)
        yield Finding("absent", "", "cannot be told", None, text, "warning")
    if any(isinstance(measure, NeutralityMeasure) for measure in measures) and _all_neutral(background):
        yield _found("all_neutral", why=_why_neutral(background))
    elif any(map(is_bias, measures)) and not _counts(background):
        yield _found("no_words", why=_why_neutral(background))


def _unjudged(given: Sequence[RunAudit]) -> Iterator[Finding]:
    """Which share of each run's first documents has no judgement."""
    known = [(run.name, run.unjudged) for run in given if run.unjudged is not None and run.unjudged.rows]
    if not any(unjudged.share >= LEAST_UNJUDGED for _, unjudged in known):
        return
    depth = known[0][1].depth
    if len(known) > MOST_NAMED or any(cut_name(name) != name for name, _ in known):
        ends = [percent(pick(of.share for _, of in known)) for pick in (min, max)]
        shares = _PHRASES.text("unjudged_of_all", share=" to ".join(dict.fromkeys(ends)), depth=depth)
    else:
        values = [{"run": name, "share": percent(of.share)} for name, of in known]
        first = _PHRASES.text("unjudged_share", depth=depth, **values[0])
        shares = ", ".join([first, *(_PHRASES.text("unjudged_too", **of) for of in values[1:])])
    all_are = all(unjudged.share == 1 for _, unjudged in known)
    yield _found("unjudged_documents", shares=shares, ids=_PHRASES.text("unjudged_ids") if all_are else "")


def _unjudged_groups(
    documents: pl.DataFrame, runs: Sequence[str], qrels: pl.DataFrame, groups: Sequence[str]
) -> Iterator[Finding]:
    """Which share of each group's documents in the runs' first ranks has no judgement, where the shares differ much."""
    judged = qrels["query_id"].unique().implode()
    first = documents.filter(pl.col("run").is_in(runs) & pl.col("query_id").is_in(judged))
    shares = {}
    for group in groups:
        of_group = first.filter(pl.col(f"count_{group}") > 0)["relevance"]
        if len(of_group) >= LEAST_OF_GROUP:
            shares[group] = of_group.null_count() / len(of_group)
    if len(shares) > 1 and max(shares.values()) - min(shares.values()) >= MUCH_UNJUDGED:
        most, *_, least = sorted(shares, key=lambda group: -shares[group])
        texts = [
            _PHRASES.text("unjudged_group", group=group_label(group, list(groups)), share=percent(shares[group]))
            for group in (most, least)
        ]
        yield _found("unjudged_groups", shares=", ".join(texts))


def _without_relevant(qrels: pl.DataFrame) -> Iterator[Finding]:
    """How many judged queries have no relevant document, and so count as 0 whatever is ranked."""
    most = qrels.group_by("query_id").agg(pl.col("relevance").max())
    count = int((most["relevance"] <= 0).sum())
    if count:
        yield _found("without_relevant", count=count, judged=most.height)


def _unlabelled(missing: str, given: Sequence[RunAudit]) -> Iterator[Finding]:
    """What part of the labels is unknown, and what becomes of it."""
    labelled = [(run.name, run.labels) for run in given if run.labels is not None]
    above = any(labels.unknown for _, labels in labelled)
    if not above and not any(_looks_at_unknown(figure) for run in given for figure in run.measures.values()):
        return
    shares = ", ".join(f"{percent(labels.unknown / labels.rows)} of {name}" for name, labels in labelled)
    key = "unlabelled" if above else "unlabelled_below"
    yield _found(key, shares=shares, depth=labelled[0][1].depth, done=_PHRASES.text(f"unlabelled_{missing}"))


def _estimated(sample: DrawnLabels, given: Sequence[RunAudit]) -> Iterator[Finding]:
    """That figures are estimates, of which labels; and which are not, and why."""
    figures = [
        figure
        for run in given
        for figure in run.measures.values()
        if figure.known is not None and is_bias(figure.measure)
    ]
    known = [figure.from_labels for figure in figures if figure.from_labels is not None]
    of: dict[str, Any] = {"labels": len(sample.rows), "documents": len(sample.documents)}
    if known:
        yield _found("estimated" if sample.guess is None else "estimated_guess", **of)
    if len(sample.rows) < LEAST_LABELS:
        yield _found("few_labels", labels=of["labels"], least=LEAST_LABELS)
    others = [figure.measure for figure in figures if figure.from_labels is None]
    sums = [shown_name(other) for other in others if is_estimable(other)]
    if sums:
        yield _found("not_drawn", measures=list(dict.fromkeys(sums)))
    rest = [shown_name(other) for other in others if not is_estimable(other)]
    if rest:
        yield _found("no_sums", measures=list(dict.fromkeys(rest)))
    if sample.trusted:
        yield _found("trusted")


def _from_judgements(
    judgements: DrawnJudgements, judge: JudgeCheck | None, given: Sequence[RunAudit]
) -> Iterator[Finding]:
    """That effectiveness is estimated, and what a judge says, how wrong it is, and what it saves."""
    drawn, pairs = judgements.drawn, judgements.pairs
    figures = [figure for run in given for figure in run.measures.values() if not is_bias(figure.measure)]
    if drawn < pairs:
        yield _found("judged_sample", count=drawn, pairs=pairs)
    if drawn < min(LEAST_LABELS, pairs):
        yield _found("few_judgements", count=drawn, least=LEAST_LABELS)
    others = [shown_name(figure.measure) for figure in figures if figure.mean is None]
    if others:
        yield _found("pairs_not_drawn", measures=list(dict.fromkeys(others)))
    if judgements.table.sample is not None and judgements.table.sample.trusted:
        yield _found("trusted_pairs")
    first = {run.name: value for run in given for value in run.measures.values() if value.measure == figures[0].measure}
    known = any(value.from_labels is not None and value.from_labels.guess_alone is not None for value in first.values())
    if judge is None or judge.excess.mean is None or judge.kappa.mean is None or not known:
        return
    fields: dict[str, Any] = {"measure": shown_name(figures[0].measure), "figures": _by_guess(first)}
    ends = judge.excess.ci95
    key = (
        "judge_as_people" if ends is None or ends[0] <= 0 <= ends[1] else "judge_more" if ends[0] > 0 else "judge_fewer"
    )
    size = judge.excess if key != "judge_fewer" else judge.excess.negated()
    values: dict[str, Any] = {
        "points": points(size.mean),
        "low": points(size.ci95 and size.ci95[0]),
        "high": points(size.ci95 and size.ci95[1]),
    }
    yield _found(key, **fields, **values, kappa=judge.kappa.mean)
    saved = [share for figure in first.values() if (share := _narrower(figure.from_labels)) is not None]
    if saved:
        share = float(np.mean(saved))
        yield _found("judge_saves" if share > 0.005 else "judge_saves_nothing", share=percent(abs(share)))


def _by_guess(figures: Mapping[str, MetricValue]) -> str:
    """What a guess alone says of each run; of many from the least to the most."""
    alone = {name: f.from_labels.guess_alone for name, f in figures.items() if f.from_labels is not None}
    known = {name: short(value, 2) for name, value in alone.items() if value is not None}
    if len(known) > MOST_NAMED or len(figures) == 1:
        return " to ".join(dict.fromkeys((min(known.values()), max(known.values()))))
    return " and ".join(f"{value} of {name}" for name, value in known.items())


def points(share: float | None) -> str:
    """A share in points of a hundred."""
    return NONE if share is None else f"{100 * share:.0f}".replace("-", "−")


def _narrower(found: FromLabels | None) -> float | None:
    """How much narrower a guess makes the interval for these queries, as a share."""
    if found is None or found.ci95 is None or found.without_guess is None:
        return None
    (low, high), (first, last) = found.ci95, found.without_guess
    return 1 - (high - low) / (last - first)


def _looks_at_unknown(figure: MetricValue) -> bool:
    return is_bias(figure.measure) and figure.known is not None and figure.known[0] < figure.known[1]


def _lacking(run: RunAudit, missing: str) -> str:
    lacking = run.lacking
    assert lacking is not None
    values: dict[str, Any] = {"count": lacking.documents, "total": counted(lacking.total, "document"), "run": run.name}
    values |= {"place": lacking.place, "share": percent(lacking.share), "done": _LEFT_OUT[missing]}
    if not lacking.queries:
        return _PHRASES.text("lacking", **values)
    return _PHRASES.text(f"lacking_{missing}", queries=counted(lacking.queries, "query"), **values)


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
        return _PHRASES.text("neutral_labels", run=name)
    if most == 0:
        return _PHRASES.text("neutral_texts", run=name, lexicon=str(scores.settings.get("lexicon")))
    if most <= threshold:
        words = counted(int(threshold), "group word") if threshold.is_integer() else f"{threshold:g} group words"
        return _PHRASES.text("too_few_words", run=name, words=words)
    return _PHRASES.text("neutral_shares", run=name)


def cautions(groups: GroupTable | None, measures: Sequence[Measure]) -> Iterator[Finding]:
    """What a reader may have meant otherwise: poles that nobody named, a misspelt label, words too few to count."""
    if groups is None:
        return
    signed = any(resolve(measure).signed for measure in measures)
    if signed and groups.poles is not None and groups.settings.get("poles_assumed"):
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
