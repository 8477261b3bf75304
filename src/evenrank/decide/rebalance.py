"""A fairer order of the first documents of a run, without training: chosen on some queries, reported on others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.auditing import AuditResult, audit
from evenrank.auditing.inputs import check_judged, only_judged, usual_measures
from evenrank.auditing.inputs import only_queries as restricted_to
from evenrank.files import Order, Provenance, as_qrels, as_queries, as_run, check_outputs, write_run
from evenrank.files.arguments import checked
from evenrank.files.convert import TextsLike
from evenrank.files.errors import EvenrankError, arg
from evenrank.files.provenance import card_path, write_card
from evenrank.files.runs import Run
from evenrank.files.types import Array
from evenrank.files.wording import are, counted, percent
from evenrank.measures import is_bias, parse_measure, resolve
from evenrank.mitigation.reorderings import Reordering
from evenrank.results.finding import Finding, phrases
from evenrank.results.table import short

from .bound import Bound, BoundResult, bound_result, parsed_bounds
from .order_figures import OrderFigures
from .rebalance_lists import SHOWN, Changes, Grouping, ListGroups, untied
from .rebalance_method import Kept, MethodOptions, applied, check_top, in_words, learnt
from .rebalance_result import Rebalanced
from .strength import STEPS, Strengths, Tuning, UnmetError, chosen_step, least_biased, usual_bias
from .validation_queries import ValidationQueries, absence_findings, absent_queries

__all__ = ["rebalance"]
_PHRASES = phrases("rebalance")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a fairer order; see :func:`evenrank.rebalance`. ``only``: the ids of the only queries."""

    method: MethodOptions
    source: ListGroups
    strength: float | None
    max_bias: tuple[Bound, ...]
    min_utility: tuple[Bound, ...]
    depth: int
    queries: ValidationQueries
    seed: int
    only: pl.Series | None = None

    def check(self) -> None:
        """Raises EvenrankError for what contradicts itself, before anything long is read."""
        check_top(self.method.top, self.depth)
        if self.queries.given is not None and not self.tunes:
            raise EvenrankError(
                f"{arg.validation_queries}: nothing is chosen, as {arg.strength} is given and {self.method.name}"
                " learns nothing"
            )

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds."""
        return (*self.max_bias, *self.min_utility)

    @property
    def tunes(self) -> bool:
        """Whether something is chosen on queries that are then not reported on."""
        return bool(self.bounds) or self.method.learns

    def plan(self, grouping: Grouping, tuning: Run, qrels: pl.DataFrame | None, absent: pl.Series) -> Plan:
        """The method with its direction, and the strength that meets the bounds; ``tuning``: the queries to tune on.

        ``absent``: judged queries to tune on that the run lacks.

        Raises UnmetError if no strength does.
        """
        table = grouping.table
        if not self.bounds:
            method = self.method.make(grouping.lists(tuning).lists, table)
            return Plan(method, self.strength or 0.0, None, learnt(method, table.groups) if self.tunes else {}, None)
        bias = self.max_bias[0].measure if self.max_bias else usual_bias(table)
        usual = None if qrels is None else parse_measure("nDCG@10")
        utility = self.min_utility[0].measure if self.min_utility else usual
        all_measures = [*(bound.measure for bound in self.bounds), bias, *([] if utility is None else [utility])]
        measures = list(dict.fromkeys(all_measures))
        figures = OrderFigures(tuning, grouping, qrels, measures, self.seed, absent)
        if self.min_utility and not figures.judged:
            raise EvenrankError(
                f"{arg.min_utility}: the qrels judge none of the {counted(len(figures.queries), 'query')} to tune on"
            )
        method = self.method.make(figures.lists.lists, table)
        search = Tuning(method, figures)
        step = chosen_step(search, self.max_bias, self.min_utility, self.method.described, len(tuning.queries))
        if not self.max_bias:
            step = least_biased(search, self.min_utility, bias, step)
        sizes = tuple(bound.size(search.figure(bound.measure, step)) for bound in self.bounds)
        strengths = search.strengths(step, utility, bias)
        return Plan(method, step / STEPS, sizes, learnt(method, table.groups), strengths)


@dataclass(frozen=True, slots=True)
class Plan:
    """A method and a strength.

    ``sizes``: the bounds' figures on the validation queries; ``learnt``: the direction; ``strengths``: their table.
    """

    method: Reordering
    strength: float
    sizes: tuple[float, ...] | None
    learnt: dict[str, object]
    strengths: Strengths | None


def restricted(run: Run, chosen: pl.Series) -> Run:
    """The run of those of its queries that are ``chosen`` [Q] (bool)."""
    queries = run.queries.filter(chosen)
    return replace(run, table=run.table.filter(pl.col("query_id").is_in(queries.implode())))


def notes_of(request: Request, plan: Plan, grouping: Grouping, changes: Changes, kept: Kept) -> Iterator[str]:
    """What is to be said of an order, beside its figures."""
    name = request.method.described
    if plan.learnt and request.method.learns:
        yield f"{name}: {in_words(plan.learnt, grouping.table.poles)} (learnt on the validation queries)."
    if request.min_utility and not request.max_bias:
        yield (
            "Of the strengths tried that keep what they must on the validation queries, the one with the least bias"
            f" there ({usual_bias(grouping.table)}, in size) was chosen."
        )
    yield from kept.notes(name, request.method.top)
    reach = f"the first {request.depth} ranks"
    if changes.tied:
        yield (
            f"{counted(changes.tied, 'document')} of {changes.total:,} in {reach}"
            f" ({percent(changes.tied / changes.total, 1)}) {are(changes.tied)} tied with a neighbour in the run, which"
            f" has no order of its own there: {name} starts from falling document ids, and so do the figures of the"
            " run. The new run has no ties, so an audit of it cannot see this; its card says it."
        )
    if grouping.table.settings.get("poles_assumed") and grouping.table.poles is not None:
        first, second = grouping.table.poles
        yield f"The groups compared are assumed to be {first} and {second}."


def unknown_findings(name: str, of: Changes, grouping: Grouping) -> tuple[Finding, ...]:
    """What is said first of documents of a run that have no label or no text, if there are any."""
    if not of.lacking:
        return ()
    values: dict[str, Any] = {"documents": counted(of.lacking, "document"), "total": of.total}
    values |= {"depth": grouping.depth, "share": percent(of.lacking / of.total, 1)}
    values["what"] = "a label" if grouping.table.labelled else "text"
    key = "unknown_neutral" if grouping.missing == "neutral" else "unknown_skip"
    return (_PHRASES.finding(key, name, "cannot be told", place="warning", **values),)


def _done(
    request: Request, plan: Plan, grouping: Grouping, kept: Kept, changes: Changes, name: str, longest: int
) -> Finding:
    """What was done: how many documents moved, or why none did; on the queries that are reported.

    ``longest``: how many documents the longest list has in the ranks that are reordered.
    """
    if not changes.moved:
        bounds = [
            f"{bound.text} ({short(size)})" for bound, size in zip(request.bounds, plan.sizes or (), strict=False)
        ]
        key = _nothing_moved(request, plan, grouping, kept)
        named: dict[str, Any] = {"method": request.method.name, "bounds": bounds}
        return _PHRASES.finding(key, name, place="answer", **named)
    promise = request.method.name in ("fair", "detconstsort") and not kept.unmet and changes.changed < changes.queries
    top = request.method.top or SHOWN
    return _PHRASES.finding(
        "moved_where_needed" if promise else "moved",
        name,
        place="answer",
        moved=changes.moved,
        # Where all documents are among the first already, none can enter.
        entered=_PHRASES.text("entered", entered=changes.entered, top=top) if longest > top else "",
        documents=counted(changes.documents, "document"),
        changed=changes.changed,
        queries=counted(changes.queries, "query"),
        depth=grouping.depth,
    )


def _nothing_moved(request: Request, plan: Plan, grouping: Grouping, kept: Kept) -> str:
    """The template of why a method changed nothing."""
    method = plan.method.name
    if plan.strength == 0 and request.bounds:
        return "met_already" if request.max_bias else "nothing_lessened"
    if plan.strength == 0:
        return "no_strength"
    if _none_neutral(request, grouping):
        return "none_neutral"
    if method in ("fair", "detconstsort"):
        return "none_moved" if kept.unmet else "all_there"
    return "too_weak" if method in ("neutral", "shift") else "none_moved"


def _none_neutral(request: Request, grouping: Grouping) -> bool:
    """Whether the method raises neutral documents, of which there are none."""
    return request.method.name == "neutral" and not (grouping.table.table["neutrality"] > 0).any()


UNKNOWN_EFFECTIVENESS = (
    "Effectiveness is unknown, as there are no qrels: how far the order has moved is all that is known of its cost."
)


@checked
def rebalance(
    run: Annotated[object, opt.Option("A run.", metavar="RUN", reads=True)],
    *,
    out: Annotated[opt.File | None, opt.Option("The run to write (-: standard output).", panel="Output")] = None,
    method: Annotated[
        str,
        opt.Option("neutral, fair (FA*IR), detconstsort or shift.", metavar="NAME"),
    ] = "neutral",
    strength: Annotated[
        float | None,
        opt.Option(
            "From 0, the run as it is, to 1, as far as the method goes.",
            range=opt.SHARE,
            excludes=("max_bias", "min_utility"),
            unless=("max_bias", "min_utility"),
        ),
    ] = None,
    max_bias: Annotated[
        str | Sequence[str] | None,
        opt.Option('The least strength that meets it: "ARaB@10 <= 0.02"; repeatable.', metavar="BOUND", typed=list),
    ] = None,
    min_utility: Annotated[
        str | Sequence[str] | None,
        opt.Option(
            'The least biased strength that keeps it: "nDCG@10 >= 98%"; with --max-bias, the least with both;'
            " repeatable.",
            metavar="BOUND",
            typed=list,
            needs=("qrels",),
        ),
    ] = None,
    depth: Annotated[int, opt.Option("The pool: how many documents of each query move.", range=opt.COUNT)] = 100,
    top: opt.Top = None,
    collection: Annotated[
        TextsLike | None, opt.Option(f"The documents: {opt.TEXTS}", reads=True, unless=("scores", "labels"))
    ] = None,
    target: Annotated[
        object,
        opt.Option(
            "The groups' shares in a fair list: uniform, candidates, or a file of group,share or query_id,group,share"
            " (default: those of the lexicon, equal ones of labels).",
            reads=True,
            panel="Groups",
            rare=True,
        ),
    ] = None,
    missing: Annotated[
        Literal["error", "skip", "neutral"] | None,
        opt.Option(
            "What to do with documents without text or label: error, skip (they keep their rank) or neutral (default:"
            " error; of labels skip).",
            panel="Input",
            rare=True,
        ),
    ] = None,
    qrels: opt.Qrels = None,
    queries: opt.QueriesAlone = None,
    only_queries: opt.OnlyQueries = False,
    validation_queries: Annotated[
        object,
        opt.Option(
            "Ids of the queries to choose on, or queries; figures are of the others (default: a half, by --seed).",
            metavar="FILE",
            reads=True,
            panel="Statistics",
            rare=True,
        ),
    ] = None,
    protected: opt.Protected = None,
    alpha: opt.Alpha = None,
    per: opt.Per = None,
    seed: Annotated[
        int,
        opt.Option("Seed of the division of queries and of intervals.", range=opt.SEED, panel="Statistics", rare=True),
    ] = 0,
    order: Order = "score",
    name: str = "rebalanced",
    **groups: Unpack[opt.GroupOptions],
) -> Rebalanced:
    """Put a run into a fairer order, without training. What moves are the first documents of each query.

    Ids and the length of lists stay; scores are rewritten, n, n − 1, …, 1 over the n documents of a query.

    Args:
        run: The run, as :func:`evenrank.audit` takes one.
        out: Where to write the new run too, with what it was made from beside it (``OUT.card.json``).
        method: "neutral", "fair" (FA*IR), "detconstsort" or "shift"; see the guide. Or one added by
            :func:`evenrank.mitigation.reorderings.add_reordering`.
        strength: From 0, the run as it is, to 1, as far as the method goes.
        max_bias: Instead of a strength, a bound on bias, or several: ``"ARaB@10 <= 0.02"``; the least strength that
            meets it is chosen. Of signed measures the size of the mean is compared; ``"… <= 50%"`` is of the run's own.
        min_utility: A bound on effectiveness, ``"nDCG@10 >= 98%"`` (of the run's own): alone, of the strengths
            that keep it the one with the least bias (ARaB@10, without poles NFaiRR@10, of labels AWRF@10 against the
            candidates) is chosen; beside ``max_bias``, the least that meets and keeps all.
        depth: How many documents of each query are put into a new order, the pool that all ranks are filled from; the
            others keep their ranks.
        collection: The documents' texts, which say with ``lexicon`` which groups they are of; see
            :func:`evenrank.audit`.
        target: What share of the documents that have a group each group should have: "uniform", "candidates" (as in the
            list), a file or a dict as in an audit; by default the lexicon's own shares, or equal ones of labels.
        missing: What to do about documents without text or label: "error", "skip" (they keep their rank) or "neutral";
            by default an error, of labels ``skip``.
        qrels: Judgements. Without them, effectiveness is unknown, and the result says so first.
        queries: Queries, as an audit takes them; ``only_queries``: the run and the figures are of these alone.
        validation_queries: The queries that strength and direction are chosen on: ids, or queries, or a file of either;
            by default a half of the run's, by a hash of ``seed`` and id. Figures are of the other queries.
        protected: Of ``fair``, the group that needs a minimum; by default the one that lacks most on these queries.
        alpha: Of ``fair``, the significance, by default 0.1.
        per: Of ``shift``, an offset per "group" (default) or per unit of "magnitude".
        top: Of ``fair`` and ``detconstsort``, how many first ranks have the promise, chosen from the first ``depth``
            documents; by default all of these.
        seed: Seed of the division of queries and of intervals.
        order: As in an audit.
        name: The name of the new run.
        **groups: As :func:`evenrank.audit` takes them.

    Returns:
        The new run with its figures; see :class:`Rebalanced`.

    Raises:
        EvenrankError: For input that cannot be used. ``UnmetError``, which is one, if no strength meets the bounds.
    """
    source = ListGroups(collection, **groups, target=target, missing=missing)
    options = MethodOptions(method, protected, alpha, per, top)
    only = None if queries is None else as_queries(queries)["query_id"]
    bounds = parsed_bounds(max_bias, "max_bias"), parsed_bounds(min_utility, "min_utility")
    tuning = ValidationQueries.of(validation_queries, seed)
    request = Request(options, source, strength, *bounds, depth, tuning, seed, only)
    request.check()
    if out is not None:
        read = (run, collection, source.scores, source.labels, source.lexicon, target, qrels, queries)
        check_outputs([out, card_path(out)], (*read, validation_queries))
    provenance = Provenance("evenrank.rebalance").add("run", run)
    source.note(provenance)
    provenance.add("qrels", qrels).add("queries", queries).add("validation_queries", validation_queries).ahead()
    original = as_run(run, order=order)
    judged = None if qrels is None else as_qrels(qrels)
    if judged is not None:
        check_judged(judged["query_id"], [original], qrels)
    result = rebalanced(request, original, judged, name, provenance)
    if out is not None:
        write_run(result.run, out)
        write_card(_made_by(result), out, provenance)
    return result


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
        "bounds": made.outcomes,
        "settings": made.settings,
    }


def rebalanced(request: Request, run: Run, qrels: pl.DataFrame | None, name: str, provenance: Provenance) -> Rebalanced:
    """A fairer order of a run in memory."""
    notes = [] if qrels is not None else [UNKNOWN_EFFECTIVENESS]
    if (only := request.only) is not None:
        run, qrels = restricted_to(run, only), None if qrels is None else only_judged(qrels, only)
        notes.append(f"{arg.only_queries}: the run and its figures are restricted to the {len(only):,} queries given.")
    figures = qrels is not None or bool(request.bounds)
    ids = run.table["doc_id"]
    if not figures and not request.source.may_skip:
        ids = ids.filter(run.table["rank"] <= max(request.depth, SHOWN))
    grouping = request.source.grouping([ids], request.depth)
    if grouping.drawn is not None and request.bounds:
        raise EvenrankError(
            f"{arg.max_bias} and {arg.min_utility} need every document's group, of which labels that were drawn are a"
            " sample: choose the"
            " strength by a lexicon, then audit both runs with labels drawn for both"
        )
    queries, absent = run.queries, absent_queries(run.queries, qrels)
    chosen, absent_chosen = (
        request.queries.chosen(ids, qrels) if request.tunes else pl.Series([False] * len(ids), dtype=pl.Boolean)
        for ids in (queries, absent)
    )
    if request.tunes:
        tuning = int(chosen.sum())
        request.queries.check(tuning, len(queries) - tuning)
        notes.append(request.queries.note(tuning, len(queries) - tuning))
    absent_tuning, absent_others = absent.filter(absent_chosen), absent.filter(~absent_chosen)
    try:
        plan = request.plan(grouping, restricted(run, chosen), qrels, absent_tuning)
    except UnmetError as error:
        if request.max_bias and _none_neutral(request, grouping):
            raise UnmetError(f"{error}; no document is neutral: try fair, detconstsort or shift") from None
        raise
    lists = grouping.lists(run)
    order, kept = applied(plan.method, lists.lists, plan.strength)
    new_run = replace(lists.reordered(order), name=name if name != run.name else f"{name} (rebalanced)")
    changes = lists.changes(order, (~chosen).to_numpy(), request.method.top or SHOWN)
    notes += notes_of(request, plan, grouping, changes, kept)
    done = _done(request, plan, grouping, kept, changes, name, int(lists.lists.lengths.max()))
    warnings = []
    if request.method.name == "fair" and request.method.protected is None:
        warnings.append(_PHRASES.finding("protects", name, place="warning", group=plan.learnt["protected"]))
    others, tuned = None, None
    if figures:
        measures = measures_of(request, grouping, qrels is not None)
        pair = untied(run), new_run
        others = _audited(request, grouping, pair, ~chosen, measures, qrels, absent_others)
        tuned = _audited(request, grouping, pair, chosen, measures, qrels, absent_tuning) if request.tunes else None
    else:
        # Lists close up over documents that are skipped, so that later ones come to be looked at.
        parts = [ranking if grouping.missing == "skip" else _shown(ranking) for ranking in (run, new_run)]
        # Measures that compare with all candidates, such as NFaiRR, need the groups of all documents.
        measures = [measure for measure in measures_of(request, grouping, False) if _is_of_shown(measure, grouping)]
        others = _audited(request, grouping, (untied(parts[0]), parts[1]), ~chosen, measures) if measures else None
    if grouping.drawn is not None:
        warnings.append(_PHRASES.finding("by_guess", name, "cannot be told", place="warning"))
    if grouping.drawn is not None and others is not None:
        figures_after = others[new_run.name].measures.values()
        if any(is_bias(figure.measure) and figure.from_labels is None for figure in figures_after):
            warnings.append(_PHRASES.finding("not_drawn", name, "cannot be told", place="warning"))
    return Rebalanced(
        new_run.name,
        request.method.name,
        plan.strength,
        plan.learnt,
        changes,
        () if others is None else _outcomes(request, plan, others, new_run.name),
        others,
        tuned,
        _settings(request, grouping),
        tuple(notes),
        provenance=provenance,
        strengths=plan.strengths,
        run=new_run,
        done=done,
        lacks=(*absence_findings(run, absent, qrels), *unknown_findings(run.name, changes, grouping), *warnings),
    )


def measures_of(request: Request, grouping: Grouping, judged: bool) -> list[Measure]:
    """The measures that are reported: the usual ones that a new order of the first documents can move, and the bounds'.

    Recall deeper than ``depth`` and figures of whole lists are left out.
    """
    table = grouping.table if grouping.drawn is None else grouping.drawn
    usual = [measure for measure in usual_measures(table, judged) if not resolve(measure).whole_run]
    near = [measure for measure in usual if measure.params.get("cutoff", request.depth + 1) <= max(request.depth, 10)]
    return sorted(dict.fromkeys([*(bound.measure for bound in request.bounds), *near]), key=is_bias)


def _shown(run: Run) -> Run:
    """The first documents of each query, whose bias is shown where effectiveness is unknown."""
    return replace(run, table=run.table.filter(pl.col("rank") <= SHOWN))


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
        **({} if request.method.top is None else {"top": request.method.top}),
        "target": "the shares of the lexicon or the labels" if target is None else target.described,
        "missing": grouping.missing,
        "max_bias": [bound.text for bound in request.max_bias],
        "min_utility": [bound.text for bound in request.min_utility],
        "seed": request.seed,
        **({} if request.only is None else {"only_queries": len(request.only)}),
    }


def _audited(
    request: Request,
    grouping: Grouping,
    runs: tuple[Run, Run],
    chosen: pl.Series,
    measures: list[Measure],
    qrels: pl.DataFrame | None = None,
    absent: pl.Series | None = None,
) -> AuditResult:
    """The audit of a run and its new order on its ``chosen`` queries [Q] (bool), and on judged ones that it lacks."""
    before, after = (restricted(run, chosen) for run in runs)
    if qrels is not None:
        if not qrels["query_id"].is_in(before.queries.implode()).any():
            of = counted(int(chosen.sum()), "query")
            raise EvenrankError(f"the qrels judge none of {of} of the run that figures are of")
        queries = before.queries if absent is None else pl.concat([before.queries, absent])
        qrels = qrels.filter(pl.col("query_id").is_in(queries.implode()))
    unknown: Literal["bounds", "skip", "neutral"] = "neutral" if grouping.missing == "neutral" else "skip"
    labelled = grouping.table.labelled
    return audit(
        {before.name: before, after.name: after},
        scores=grouping.table if grouping.drawn is None else grouping.drawn,
        qrels=qrels,
        baseline=before.name,
        target=grouping.target,
        measures=measures,
        seed=request.seed,
        missing="error" if labelled else grouping.missing,
        missing_limit=1.0,
        unknown="bounds" if grouping.drawn is not None else unknown if labelled else None,
    )


def _outcomes(request: Request, plan: Plan, found: AuditResult, name: str) -> tuple[BoundResult, ...]:
    def values(run: str, measure: Measure) -> Array:
        return np.asarray(found[run, str(measure)].values)

    def greatest(measure: Measure) -> float:
        known = [found[run, str(measure)].greatest for run in (name, base)]
        return max(math.inf if value is None else value for value in known)

    base, several = str(found.baseline), len(request.bounds)
    return tuple(
        bound_result(
            bound,
            tuned,
            values(name, bound.measure),
            values(base, bound.measure),
            greatest(bound.measure),
            several,
            None if found.query_cluster is None else found.query_cluster.to_numpy(),
        )
        for bound, tuned in zip(request.bounds, plan.sizes or (), strict=True)
    )
