"""A fairer order of the first documents of a run, without training: in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.auditing import AuditResult, audit
from evenrank.auditing.inputs import usual_measures
from evenrank.groups import Lexicon, Tokens
from evenrank.io import EvenrankError, Order, Provenance, Run, as_qrels, as_run, write_run
from evenrank.io.run_cards import write_card
from evenrank.io.types import Array
from evenrank.io.wording import counted
from evenrank.measures import is_bias, resolve

from .group_sources import GroupSource
from .rebalance_budget import Outcome, outcome
from .rebalance_lists import DEPTH, SHOWN, Grouping, OfMissing, untied
from .rebalance_methods import MethodOptions, applied
from .rebalance_plan import Plan, Request, notes_of, parsed, restricted
from .rebalance_result import Rebalanced
from .tuning_queries import TuningQueries, absence_note, absent_queries

__all__ = ["Rebalanced", "rebalance"]
UNKNOWN_EFFECTIVENESS = (
    "Effectiveness is unknown, as there are no qrels: how far the order has moved is all that is known of its cost."
)


# parameters: one for each option of the command line, which mirrors this function
# long: the signature and the description of its parameters
def rebalance(
    run: object,
    *,
    method: str = "neutral",
    strength: float | None = None,
    meet: str | Sequence[str] | None = None,
    keep: str | Sequence[str] | None = None,
    depth: int = DEPTH,
    collection: object = None,
    scores: object = None,
    labels: object = None,
    neutral: Sequence[str] | str | None = None,
    group_column: str | None = None,
    lexicon: str | os.PathLike[str] | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    target: object = None,
    missing: OfMissing | None = None,
    qrels: object = None,
    tune_queries: object = None,
    protected: str | None = None,
    alpha: float | None = None,
    per: str | None = None,
    seed: int = 0,
    order: Order = "score",
    name: str = "rebalanced",
    provenance: Provenance | None = None,
) -> Rebalanced:
    """Puts the first documents of each query into a fairer order, without training.

    Ids and the length of lists stay; scores are rewritten, n, n − 1, …, 1 over the n documents of a query.

    Args:
        run: The run, as :func:`evenrank.audit` takes one.
        method: "neutral", "fair" (FA*IR), "detconstsort" or "shift"; see the guide.
        strength: From 0, the run as it is, to 1, as far as the method goes.
        meet: Instead of a strength, a bound on bias, or several: ``"ARaB@10 <= 0.02"``; the least strength that meets
            it is chosen. Of signed measures the size of the mean is compared; ``"… <= 50%"`` is of the run's own.
        keep: A bound on effectiveness, ``"nDCG@10 >= 98%"`` (of the run's own): alone, of the strengths
            that keep it the one with the least bias (ARaB@10, without poles NFaiRR@10) is chosen;
            beside ``meet``, the least that meets and keeps all.
        depth: How many documents of each query are put into a new order; the others keep their ranks.
        collection: The documents' texts, which say with ``lexicon`` which groups they are of; see
            :func:`evenrank.audit`, as for the following ones.
        scores: A group table instead.
        labels: The documents' groups instead.
        neutral: Values of the labels that mean "no group".
        group_column: The labels' column of groups.
        lexicon: By default ``gender-en``.
        poles: The two groups of signed measures, the positive one first.
        tokens: "word" (default) or "whitespace".
        threshold: How many group words a neutral document may have; by default 1.
        target: What share of the documents that have a group each group should have: "uniform", "candidates" (as in the
            list), a file or a dict as in an audit; by default the lexicon's own shares, or equal ones of labels.
        missing: What to do about documents without text or label: "error", "skip" (they keep their rank) or "neutral";
            by default an error, of labels ``skip``.
        qrels: Judgements. Without them, effectiveness is unknown, and the result says so first.
        tune_queries: The queries that strength and direction are chosen on: ids, or queries, or a file of either; by
            default a half of the run's, by a hash of ``seed`` and id. Figures are of the other queries.
        protected: Of ``fair``, the group that needs a minimum; by default the one that lacks most on these queries.
        alpha: Of ``fair``, the significance, by default 0.1.
        per: Of ``shift``, an offset per "group" (default) or per unit of "magnitude".
        seed: Seed of the division of queries and of intervals.
        order: As in an audit.
        name: The name of the new run.
        provenance: The record of how the inputs were made, if the caller knows more.

    Returns:
        The new run with its figures; see :class:`Rebalanced`.

    Raises:
        EvenrankError: For input that cannot be used. ``UnmetError``, which is one, if no strength meets the bounds.
    """
    source = GroupSource(
        collection, scores, labels, neutral, group_column, lexicon, poles, tokens, threshold, target, missing
    )
    options = MethodOptions(method, protected, alpha, per)
    request = request_of(options, source, strength, meet, keep, depth, tune_queries, seed, qrels is not None)
    if provenance is None:
        provenance = Provenance("evenrank.rebalance")
        note_inputs(provenance, run, source, qrels, tune_queries)
    provenance.ahead()
    given = as_run(run, order=order)
    judged = None if qrels is None else as_qrels(qrels)
    return rebalanced(request, given, judged, name, provenance)


def request_of(  # parameters: what a request is made of
    method: MethodOptions,
    source: GroupSource,
    strength: float | None,
    meet: str | Sequence[str] | None,
    keep: str | Sequence[str] | None,
    depth: int,
    tune_queries: object,
    seed: int,
    judged: bool,
) -> Request:
    """What is asked for, checked; ``judged``: whether there are qrels. Raises EvenrankError for what contradicts."""
    bounds = parsed(meet, "meet"), parsed(keep, "keep")
    request = Request(method, source, strength, *bounds, depth, TuningQueries.of(tune_queries, seed), seed)
    request.check(judged)
    return request


def note_inputs(provenance: Provenance, run: object, source: GroupSource, qrels: object, tune_queries: object) -> None:
    """Records what a fairer order is made from, before it is read."""
    provenance.add("run", run)
    source.note(provenance)
    provenance.add("qrels", qrels).add("tune_queries", tune_queries)


def write_rebalanced(
    request: Request,
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    qrels: object,
    name: str,
    provenance: Provenance,
    card: bool,
) -> Rebalanced:
    """Writes a run file's fairer order to ``out``, with its ``card``. Raises EvenrankError as :func:`rebalance`."""
    judged = None if qrels is None else as_qrels(qrels)
    made = rebalanced(request, as_run(run), judged, name, provenance)
    write_run(made.run, out)
    if card:
        write_card(_made_by(made), out, provenance)
    return made


def _made_by(made: Rebalanced) -> dict[str, object]:
    """The card's values: among them, how many of the rows that were put into order were tied."""
    return {
        "stage": "rebalance",
        "method": made.method,
        "strength": made.strength,
        **made.learnt,
        "depth": made.settings["depth"],
        "tied": {"rows": made.changes.tied, "of": made.changes.total},
        "unknown": {"rows": made.changes.lacking, "of": made.changes.total},
        "bounds": [found.to_dict() for found in made.outcomes],
        "settings": made.settings,
    }


def rebalanced(
    request: Request, run: Run, qrels: pl.DataFrame | None, name: str, provenance: Provenance | None
) -> Rebalanced:
    """A fairer order of a run in memory."""
    figures = qrels is not None or bool(request.bounds)
    ids = run.table["doc_id"]
    if not figures:
        ids = ids.filter(run.table["rank"] <= max(request.depth, SHOWN))
    grouping = request.source.grouping([ids], request.depth)
    queries = run.queries
    chosen = request.queries.chosen(queries) if request.tunes else pl.Series([False] * len(queries))
    notes = [] if qrels is not None else [UNKNOWN_EFFECTIVENESS]
    if request.tunes:
        tuning = int(chosen.sum())
        request.queries.check(tuning, len(queries) - tuning)
        notes.append(request.queries.note(tuning, len(queries) - tuning))
    on = restricted(run, chosen) if request.tunes else None
    absent = absent_queries(queries, qrels)
    absent_tuning = (
        request.queries.chosen(absent) if request.tunes else pl.Series([False] * len(absent), dtype=pl.Boolean)
    )
    plan = request.plan(grouping, on, qrels, absent.filter(absent_tuning))
    lists = grouping.lists(run)
    order, kept = applied(plan.method, lists.lists, plan.strength)
    made = replace(lists.reordered(order), name=name if name != run.name else f"{name} (rebalanced)")
    changes = lists.changes(order, (~chosen).to_numpy())
    notes += notes_of(request, plan, grouping, changes, kept)
    if len(absent):
        notes.append(absence_note(len(absent)))
    others, tuned = None, None
    if figures:
        asked = measures_of(request, grouping, qrels is not None)
        said = _Figures(untied(run), made, grouping, qrels, asked, request.seed)
        others = said.audit(~chosen, absent.filter(~absent_tuning))
        tuned = said.audit(chosen, absent.filter(absent_tuning)) if on is not None else None
    else:
        others = _bias_alone(request, grouping, *(_shown(restricted(one, ~chosen)) for one in (run, made)))
    return Rebalanced(
        made.name,
        request.method.name,
        plan.strength,
        plan.learnt,
        changes,
        () if others is None else _outcomes(request, plan, others, made.name),
        others,
        tuned,
        _settings(request, grouping),
        tuple(notes),
        provenance,
        run=made,
    )


def measures_of(request: Request, grouping: Grouping, judged: bool) -> list[Measure]:
    """The measures that are reported: the usual ones that a new order of the first documents can move, and the bounds'.

    Recall deeper than ``depth`` and figures of whole lists are left out.
    """
    usual = [measure for measure in usual_measures(grouping.table, judged) if not resolve(measure).whole_run]
    near = [measure for measure in usual if measure.params.get("cutoff", request.depth + 1) <= max(request.depth, 10)]
    return sorted(dict.fromkeys([*(bound.measure for bound in request.bounds), *near]), key=is_bias)


def _shown(run: Run) -> Run:
    """The first documents of each query, which are all that :func:`_bias_alone` looks at."""
    return replace(run, table=run.table.filter(pl.col("rank") <= SHOWN))


def _bias_alone(request: Request, grouping: Grouping, run: Run, made: Run) -> AuditResult | None:
    """Bias before and after where effectiveness is unknown, of the first documents; None if no measure is of them.

    Measures that compare with all candidates, such as NFaiRR, need the groups of all documents, of which only the first
    are looked up.
    """
    asked = [measure for measure in measures_of(request, grouping, False) if _is_of_shown(measure, grouping)]
    if not asked:
        return None
    every = pl.Series([True] * len(run.queries))
    return _Figures(untied(run), made, grouping, None, asked, request.seed).audit(every, run.queries.clear())


def _is_of_shown(measure: Measure, grouping: Grouping) -> bool:
    how = resolve(measure)
    of_candidates = grouping.target is not None and grouping.target.kind == "candidates" and not how.signed
    return not how.needs_background and not of_candidates and measure.params.get("cutoff", SHOWN + 1) <= SHOWN


def _settings(request: Request, grouping: Grouping) -> dict[str, object]:
    """The settings as JSON values."""
    target = grouping.target
    return {
        **grouping.table.settings,
        "depth": request.depth,
        "target": "the shares of the lexicon or the labels" if target is None else target.described,
        "missing": grouping.missing,
        "meet": [bound.text for bound in request.meet],
        "keep": [bound.text for bound in request.keep],
        "seed": request.seed,
    }


@dataclass(frozen=True, slots=True)
class _Figures:
    """What figures are made from: a run, its new order, and the measures."""

    run: Run
    made: Run
    grouping: Grouping
    qrels: pl.DataFrame | None
    measures: list[Measure]
    seed: int

    def audit(self, chosen: pl.Series, absent: pl.Series) -> AuditResult:
        """The audit on the ``chosen`` queries [Q] of the run (bool), and on judged ones that it lacks."""
        before, qrels = restricted(self.run, chosen), self.qrels
        if qrels is not None:
            if not qrels["query_id"].is_in(before.queries.implode()).any():
                of = counted(int(chosen.sum()), "query")
                raise EvenrankError(f"the qrels judge none of {of} of the run that figures are of")
            qrels = qrels.filter(pl.col("query_id").is_in(pl.concat([before.queries, absent]).implode()))
        grouping = self.grouping
        labelled = grouping.table.labelled
        return audit(
            {self.run.name: before, self.made.name: restricted(self.made, chosen)},
            scores=grouping.table,
            qrels=qrels,
            baseline=self.run.name,
            target=grouping.target,
            measures=self.measures,
            seed=self.seed,
            missing="error" if labelled else grouping.missing,
            missing_limit=1.0,
            unknown=("neutral" if grouping.missing == "neutral" else "skip") if labelled else None,
        )


def _outcomes(request: Request, plan: Plan, found: AuditResult, name: str) -> tuple[Outcome, ...]:
    def values(run: str, measure: Measure) -> Array:
        return np.asarray(found[run, str(measure)].values)

    base = str(found.baseline)
    return tuple(
        outcome(bound, tuned, values(name, bound.measure), values(base, bound.measure), request.seed)
        for bound, tuned in zip(request.bounds, plan.sizes or (), strict=True)
    )
