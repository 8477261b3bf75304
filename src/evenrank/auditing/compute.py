"""The audit, step by step: inputs loaded and checked, runs evaluated, compared, and put into one result."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Unpack

import polars as pl

from evenrank import options as opt
from evenrank.files import Provenance, Run
from evenrank.files.arguments import checked
from evenrank.files.convert import TextsLike, is_path
from evenrank.files.errors import readable
from evenrank.files.runs import RunLike, RunsLike
from evenrank.groups import GroupSource
from evenrank.measures import Background, Evaluation, Lacking, MeasuresLike, Target, is_bias

from .audit_result import AuditResult
from .comparison import (
    compare_pairs,
    group_shares,
    with_order_effects,
    with_statistics,
)
from .data import NEUTRAL_FIRST, RANDOM, RELEVANCE_FIRST, RunAudit
from .documents import Documents, describe_documents
from .figures import SHOWN_DEPTH, Measured, measure_run, query_axis
from .impact import impacts_of_runs
from .inputs import Inputs, Options, load_inputs, name_runs, note_sources, usual_measures
from .notes import (
    add_cards,
    card_notes,
    cautions,
    depth_notes,
    evaluated_settings,
    first_documents,
    label_notes,
    load_target,
    make_notes,
    misleading,
    query_notes,
    target_notes,
)
from .query_clusters import QueryClusters
from .query_clusters import query_clusters as clusters_of
from .query_groups import as_query_groups, lacking_groups, on_axis, served
from .words import Words, find_words


@checked
def audit(
    runs: Annotated[
        RunsLike | None, opt.Option("TREC run files, with or without a name.", metavar="[NAME=]RUN…", typed=list)
    ] = None,
    *,
    collection: opt.MaybeCollection = None,
    unknown: Annotated[
        Literal["bounds", "skip", "neutral"] | None,
        opt.Option("What to do about documents without a label (default: bounds).", panel="Groups", rare=True),
    ] = None,
    target: Annotated[
        object,
        opt.Option(
            "The groups' shares of exposure that AWRF and NDKL compare with: uniform (default), candidates,"
            " relevant, or a file of group,share or query_id,group,share.",
            reads=True,
            panel="Groups",
            rare=True,
        ),
    ] = None,
    qrels: opt.Qrels = None,
    queries: Annotated[TextsLike | None, opt.Option("Query texts, for the report.", reads=True)] = None,
    only_queries: Annotated[bool, opt.Option("Audit only the queries in --queries.", panel="Input", rare=True)] = False,
    baseline: Annotated[
        str | None, opt.Option("The run to compare the others with.", metavar="NAME", panel="Statistics")
    ] = None,
    background: Annotated[
        RunLike | None,
        opt.Option(
            "The run that normalises NFaiRR (default: the baseline, else the first run).",
            reads=True,
            metavar="RUN",
            panel="Statistics",
            rare=True,
        ),
    ] = None,
    background_depth: Annotated[
        int,
        opt.Option("How many of its documents to use for each query.", range=opt.COUNT, panel="Statistics", rare=True),
    ] = 200,
    query_groups: Annotated[
        object,
        opt.Option("Of queries or users: query_id,group.", reads=True, panel="Groups"),
    ] = None,
    query_clusters: Annotated[
        object,
        opt.Option(
            "Queries that are about the same thing: query_id,cluster; or none (default: found by words and qrels).",
            reads=True,
            metavar="FILE|none",
            panel="Statistics",
            rare=True,
        ),
    ] = None,
    missing: Annotated[
        Literal["error", "skip", "neutral"],
        opt.Option("What to do with documents without text.", panel="Input", rare=True),
    ] = "error",
    missing_limit: Annotated[
        float,
        opt.Option(
            "Stop if a larger share of documents has no text (0 to 1).", range=opt.SHARE, panel="Input", rare=True
        ),
    ] = 0.1,
    seed: Annotated[
        int, opt.Option("Seed of the orders that are drawn.", range=opt.SEED, panel="Statistics", rare=True)
    ] = 0,
    order: Annotated[
        Literal["score", "file"],
        opt.Option(
            "score (ties by descending document id), or file (the order of the file).", panel="Input", rare=True
        ),
    ] = "score",
    measures: Annotated[
        MeasuresLike | None,
        opt.Option(
            "Default: ARaB@10 NFaiRR@10, of labels AWRF@10 and the groups' shares; with --qrels also nDCG@10.",
            metavar="LIST",
            panel="Statistics",
        ),
    ] = None,
    provenance: Provenance | None = None,
    **groups: Unpack[opt.GroupOptions],
) -> AuditResult:
    """Measure the group bias of rankings, and their effectiveness.

    Reference rankings of the background's candidates are always included: ``random`` (the expectation over random
    orders), ``neutral-first`` and, with ``qrels``, ``relevance-first`` (by falling grade, the expectation over the
    orders of equal grades). An audit of effectiveness alone needs neither ``collection`` nor ``scores``; it has no
    ``neutral-first`` then.

    Args:
        runs: One run, a list of run files, or runs by name. A run is the path of a TREC file, a :class:`Run`,
            ``{query: {document: score}}``, a polars or pandas frame with ``query_id``, ``doc_id`` and ``score`` (or
            ``qid`` and ``docno``), or an iterable of records such as ``ir_measures.ScoredDoc``.
        collection: The documents' texts: a path, ``irds:NAME``, ``{document: text}``, a frame with ``doc_id`` and
            ``text``, or records.
        unknown: What to do about documents without a label: "bounds" (default: of a figure that looks at one, the
            smallest and largest value over every way to label them), "skip" (leave them out) or "neutral" (count them
            as of no group).
        qrels: Relevance judgements: a path, ``{query: {document: grade}}``, a frame or records such as
            ``ir_measures.Qrel``. Without them, effectiveness is unknown, and the result says so first.
        queries: The queries' texts, for the report, in the same forms as ``collection``.
        baseline: The name of the run to compare the others with.
        target: The shares of exposure that AWRF and NDKL compare with: "uniform" (default), "candidates"
            (those of the background's documents), "relevant" (those of the query's relevant documents), a file of
            ``group,share`` or ``query_id,group,share``, ``{group: share}`` or ``{query: {group: share}}``.
        query_groups: The group of each query, or of the user who asked it: a file of ``query_id,group``,
            ``{query: group}``, a frame or a Series. The result has each measure by group, whether a group's queries
            differ from those of the other groups, and on which groups a run differs from the baseline.
        query_clusters: Which queries are about the same thing, such as questions on one passage, and so count as one in
            tests and intervals: a file of ``query_id,cluster``, ``{query: cluster}``, a frame or a Series, or "none".
            By default those that have the same words, or at least half of their relevant documents in common.
        background: The run against which NFaiRR is normalised; by default the baseline, or the first run.
        background_depth: How many of the background's documents per query are used.
        missing: What to do about documents of a run without text: "error", "skip" (leave them out of bias measures)
            or "neutral" (count them as neutral).
        missing_limit: The largest share (0 to 1) of documents without text that "skip" and "neutral" tolerate, in a
            run as a whole or within the ranks that a measure looks at, whichever share is larger.
        only_queries: Restrict the audit to ``queries``.
        seed: Seed of the orders that are drawn where no closed form is known.
        order: Rank by ``"score"`` (ties by descending document id) or in the order of the ``"file"``.
        measures: Measures, as one string separated by spaces, a measure, or a list.
        provenance: The record of how the inputs were made, if the caller knows more than this function can see; JSON
            and report show it.
        **groups: What says which groups the documents are of: see :class:`evenrank.options.GroupOptions`.

    Returns:
        The figures with intervals, comparisons and notes; see :class:`AuditResult`.

    Raises:
        EvenrankError: For input that cannot be used; InputError with file and line if it comes from a file.
    """
    source = GroupSource(collection, **groups, takes_drawn=True)
    named = name_runs(runs, order)
    if provenance is None:
        provenance = Provenance("evenrank.audit")
        sources = {"qrels": qrels, "queries": queries}
        sources |= {"target": target if is_path(target) and os.path.exists(target) else None}
        sources |= {"query groups": query_groups if is_path(query_groups) else None}
        of_clusters = None if query_clusters == "none" else query_clusters
        sources |= {"query clusters": of_clusters if is_path(of_clusters) else None}
        note_sources(provenance, named, background, source, sources)
    provenance.ahead()
    options = Options(baseline, background_depth, missing, missing_limit, unknown, only_queries, seed, order)
    inputs = load_inputs(
        named,
        background=background,
        collection=collection,
        qrels=qrels,
        queries=queries,
        measures=measures,
        options=options,
    )
    inputs = replace(inputs, of_relevant=isinstance(target, str) and target == "relevant")
    read = None if query_groups is None else as_query_groups(query_groups, inputs.asked)
    documents = describe_documents(inputs, source)
    known = documents.groups
    options = options.of_labels(known)
    if measures is None and known is not None:
        inputs = replace(inputs, measures=usual_measures(known, inputs.qrels is not None))
    wanted = load_target(target, known, inputs.qrels is not None)
    add_cards(provenance, inputs.runs, inputs.background)
    evaluated = _evaluate(inputs, documents, options, wanted)
    measured = _measure(inputs, documents, evaluated, query_clusters)
    results = with_statistics(measured.rankings, inputs.measures, baseline)
    references = {run.name: (evaluated.background, run) for run in measured.rankings[len(measured.given) :]}
    results = with_order_effects(results, evaluated.runs, measured.given, references, measured.queries)
    result = _result(inputs, documents, options, evaluated, measured, results, provenance)
    groups_of_queries = None if read is None else on_axis(read, measured.queries)["query_group"]
    groups_file = readable(os.path.basename(query_groups)) if is_path(query_groups) else "in memory"
    notes = lacking_groups(groups_of_queries, measured.queries)
    return replace(
        result,
        notes=(*result.notes, *notes),
        pairs=compare_pairs(measured.given, inputs.measures, baseline),
        shares=group_shares(results),
        impact=impacts_of_runs(evaluated.runs, inputs.measures, source),
        query_groups=served(measured.given, inputs.measures, baseline, groups_of_queries),
        query_group=groups_of_queries,
        settings={
            **result.settings,
            **({} if query_groups is None else {"query_groups": groups_file}),
            "query_clusters": measured.clusters.reason,
        },
    )


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """The evaluations of the runs, the background and the neutral-first reference (None without a group table).

    ``normaliser``: the background as NFaiRR uses it; ``lacking``: each run's documents without text.
    """

    runs: list[Evaluation]
    background: Evaluation
    neutral_first: Evaluation | None
    normaliser: Background | None
    lacking: list[Lacking | None]


def _evaluate(inputs: Inputs, documents: Documents, options: Options, target: Target | None) -> _Evaluated:
    def evaluation(run: Run) -> Evaluation:
        return Evaluation(
            run, documents.groups, inputs.qrels, missing=options.missing, target=target, seed=options.seed
        )

    runs = [evaluation(run) for run in inputs.runs]
    background = next((e for e in runs if e.run is inputs.background), None) or evaluation(inputs.background)
    lacking = [each.check_missing(options.missing_limit, inputs.measures) for each in runs]
    if documents.groups is None:
        return _Evaluated(runs, background, None, None, lacking)
    background.check_missing(options.missing_limit, inputs.measures, [options.background_depth])
    normaliser = background.as_background(inputs.background.name, options.background_depth)
    for each in [*runs, background]:
        each.background = normaliser

    # Which documents are neutral is not known of those that were not drawn.
    ideal = background.neutral_first() if documents.groups.sample is None else None
    return _Evaluated(runs, background, ideal, normaliser, lacking)


@dataclass(frozen=True, slots=True)
class _MeasuredRuns:
    """The values of every ranking: ``rankings`` are the ``given`` runs, then the references.

    ``queries``: the axis of their values; ``documents``: the first documents of every ranking; ``clusters``: those of
    the queries.
    """

    rankings: list[Measured]
    given: list[Measured]
    queries: pl.Series
    documents: pl.DataFrame
    clusters: QueryClusters


def _measure(inputs: Inputs, documents: Documents, evaluated: _Evaluated, query_clusters: object) -> _MeasuredRuns:
    axis = query_axis(evaluated.runs, evaluated.background, inputs.qrels)
    found = clusters_of(query_clusters, axis, inputs.queries, inputs.qrels)
    clusters = found.numbers
    given = [
        measure_run(evaluation, evaluation.run.name, inputs.measures, axis, lacking=lacking, clusters=clusters)
        for evaluation, lacking in zip(evaluated.runs, evaluated.lacking, strict=True)
    ]
    random = measure_run(evaluated.background, RANDOM, inputs.measures, axis, over="random", clusters=clusters)
    rankings = [*given, random]
    first = {evaluation.run.name: evaluation.first(SHOWN_DEPTH) for evaluation in evaluated.runs}
    if evaluated.neutral_first is not None:
        rankings.append(measure_run(evaluated.neutral_first, NEUTRAL_FIRST, inputs.measures, axis, clusters=clusters))
        first[NEUTRAL_FIRST] = evaluated.neutral_first.first(SHOWN_DEPTH)
    if inputs.qrels is not None:
        rankings.append(
            measure_run(
                evaluated.background, RELEVANCE_FIRST, inputs.measures, axis, over="relevance", clusters=clusters
            )
        )
    return _MeasuredRuns(rankings, given, axis, first_documents(first, documents.groups, inputs.qrels), found)


def _result(
    inputs: Inputs,
    documents: Documents,
    options: Options,
    evaluated: _Evaluated,
    measured: _MeasuredRuns,
    results: list[RunAudit],
    provenance: Provenance,
) -> AuditResult:
    depth, unequal = depth_notes(measured.given, inputs.measures, options.baseline)
    judged = None if inputs.qrels is None else inputs.qrels["query_id"].n_unique()
    misled = tuple(misleading(evaluated.background, judged, inputs.measures, results))
    cautioned = tuple(cautions(documents.groups))
    notes = [one.text for one in misled] + [*inputs.notes, *documents.notes] + [one.text for one in cautioned]
    notes += label_notes(results)
    notes += target_notes(evaluated.background.target, inputs.measures)
    notes += card_notes(inputs.runs)
    notes += [note for run in inputs.runs for note in run.notes]
    if inputs.query_ids is not None and inputs.qrels is not None:
        notes += query_notes(inputs.query_ids, inputs.qrels)
    notes += depth
    notes += make_notes(
        evaluated.runs, evaluated.neutral_first, evaluated.normaliser, inputs.qrels, inputs.measures, results
    )
    queries = inputs.queries
    if queries is not None:
        queries = queries.filter(pl.col("query_id").is_in(measured.queries.implode()))
    return AuditResult(
        settings=_settings(inputs, documents, options, evaluated),
        baseline=options.baseline,
        runs=tuple(results),
        notes=tuple(notes),
        queries=measured.queries,
        rankings=measured.documents,
        lexicon=documents.lexicon,
        collection=inputs.collection,
        query_texts=queries,
        misleading=misled,
        cautions=cautioned,
        unequal_depth=unequal,
        partly_labelled=_partly_labelled(documents, evaluated),
        provenance=provenance,
        query_cluster=None if measured.clusters.numbers is None else pl.Series(measured.clusters.numbers),
        words=_driving_words(inputs, documents, evaluated, measured),
    )


def _partly_labelled(documents: Documents, evaluated: _Evaluated) -> bool:
    """Whether some ranked document has no label although others have one."""
    if documents.groups is None or not documents.groups.labelled:
        return False
    return any(bool((run.document < 0).any()) for run in [*evaluated.runs, evaluated.background])


def _settings(inputs: Inputs, documents: Documents, options: Options, evaluated: _Evaluated) -> dict[str, object]:
    return {
        **(documents.groups.settings if documents.groups is not None else {}),
        "order": options.order,
        **_of_missing(options, documents),
        **evaluated_settings(evaluated.runs[0], inputs.measures),
        "only_queries": options.only_queries,
        "background": inputs.background.name,
        "background_depth": options.background_depth,
        "seed": options.seed,
        "measures": [str(measure) for measure in inputs.measures],
    }


def _of_missing(options: Options, documents: Documents) -> dict[str, object]:
    if documents.groups is not None and documents.groups.labelled:
        return {"unknown": options.missing}
    return {"missing": options.missing, "missing_limit": options.missing_limit}


def _driving_words(
    inputs: Inputs, documents: Documents, evaluated: _Evaluated, measured: _MeasuredRuns
) -> Words | None:
    """The words that drive the figures; None without texts or without a measure of bias."""
    ideal = evaluated.neutral_first
    if documents.groups is None or documents.words is None or ideal is None or not any(map(is_bias, inputs.measures)):
        return None
    rankings = [(evaluation.run.name, evaluation, False) for evaluation in evaluated.runs]
    rankings += [(RANDOM, evaluated.background, True), (NEUTRAL_FIRST, ideal, False)]
    shown = measured.documents["doc_id"]
    return find_words(rankings, documents.groups, documents.words, inputs.measures, shown)
