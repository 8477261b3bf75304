"""The audit, step by step: read, join, measure, compare, find."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal, Unpack

import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.files import Provenance
from evenrank.files.arguments import checked
from evenrank.files.convert import TextsLike, is_path
from evenrank.files.errors import readable
from evenrank.files.runs import RunLike, RunsLike
from evenrank.groups import GroupSource
from evenrank.measures import MeasuresLike, is_bias
from evenrank.stats.bounds import MARGIN

from .audit_result import AuditResult
from .caveats import cautions, misleading
from .comparison import compare_pairs
from .data import NEUTRAL_FIRST, NOT_CHECKED, RANDOM
from .documents import Documents, describe_documents
from .group_shares import group_shares
from .impact import impacts_of_runs
from .inputs import (
    Inputs,
    Options,
    common_depth,
    load_inputs,
    load_target,
    name_runs,
    usual_measures,
)
from .judge_check import check_judge
from .metric_values import run_audits
from .query_groups import as_query_groups, lacking_groups, served
from .rankings import Rankings, measure_rankings
from .remarks import remarks, unequally_deep
from .word_attribution import Words, find_words


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
    judge: Annotated[
        object,
        opt.Option(
            "A language model's grades (qrels), which drawn judgements check.",
            reads=True,
        ),
    ] = None,
    queries: Annotated[TextsLike | None, opt.Option("Query texts and ids: report, clusters.", reads=True)] = None,
    only_queries: Annotated[bool, opt.Option("Audit only the queries in --queries.", panel="Input", rare=True)] = False,
    baseline: Annotated[
        str | None, opt.Option("The run to compare the others with, or its file.", metavar="NAME", panel="Statistics")
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
    margin: Annotated[
        float | None,
        opt.Option(
            "Also say whether effectiveness loses more than this share of the baseline's (such as 0.05).",
            range=opt.SHARE,
            needs=("baseline",),
            panel="Statistics",
            rare=True,
        ),
    ] = None,
    query_groups: Annotated[
        object, opt.Option("Of queries or users: query_id,group.", reads=True, panel="Groups")
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
            "Default: ARaB@10 NFaiRR@10, of labels AWRF@10 and the groups' shares; with --qrels also nDCG@10 and,"
            " where lists are longer, recall at their depth.",
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
        judge: A judge's grades of the same pairs, as ``qrels``, wrong as they may be. With ``qrels`` that were drawn
            (:func:`evenrank.sample_labels`) they make intervals narrower, and the result says how wrong they are; alone
            they are effectiveness that is not checked, without intervals.
        queries: The queries' texts, for the report, clusters and ``only_queries``, in the same forms as ``collection``.
        baseline: The run to compare the others with: its name, or the path that it was given by.
        target: The shares of exposure that AWRF and NDKL compare with: "uniform" (default), "candidates"
            (those of the background's documents), "relevant" (those of the query's relevant documents), a file of
            ``group,share`` or ``query_id,group,share``, ``{group: share}`` or ``{query: {group: share}}``.
        margin: The share of the baseline's effectiveness that a run may lose, such as 0.05. The result then says
            whether more than that is lost, even if one query more lost everything.
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
        for name, run in named.items():
            provenance.add(f"run {name}", run)
        if not (isinstance(background, str) and background in named):
            provenance.add("background", background)
        source.note(provenance)
        provenance.add("qrels", qrels).add("judge", judge).add("queries", queries)
        provenance.add("target", target if is_path(target) and os.path.exists(target) else None)
        provenance.add("query groups", query_groups if is_path(query_groups) else None)
        of_clusters = is_path(query_clusters) and query_clusters != "none"
        provenance.add("query clusters", query_clusters if of_clusters else None)
    provenance.ahead()
    if baseline not in named:
        # By its file, as a run is given.
        paths = {os.path.normpath(run): name for name, run in named.items() if is_path(run)}
        baseline = None if baseline is None else paths.get(os.path.normpath(baseline), baseline)
    options = Options(baseline, background_depth, missing, missing_limit, unknown, only_queries, seed, order)
    inputs = load_inputs(
        named,
        background=background,
        collection=collection,
        qrels=qrels,
        judge=judge,
        queries=queries,
        measures=measures,
        target=target,
        options=options,
        of_groups=collection is not None or source.described,
    )
    judged = inputs.qrels is not None
    query_group = None if query_groups is None else as_query_groups(query_groups, inputs.asked)["query_group"]
    documents = describe_documents(inputs, source)
    options = options.of_labels(documents.groups)
    wanted = inputs.measures
    if measures is None and documents.groups is not None:
        wanted = usual_measures(documents.groups, judged, common_depth(inputs.runs), inputs.judgements)
    compared_to = load_target(target, documents.groups, judged)
    for run in inputs.runs:
        provenance.add_card(f"run {run.name}", run.card)
    provenance.add_card("background", inputs.background.card)

    rankings = measure_rankings(inputs, documents.groups, wanted, options, compared_to, query_clusters)
    results = run_audits(
        rankings.every, wanted, baseline, rankings.own_references, MARGIN if margin is None else margin
    )

    drawn = inputs.judgements
    checked_judge = None if drawn is None else check_judge(drawn, wanted, inputs.runs, documents.groups)
    misleads = tuple(misleading(rankings.background, inputs, wanted, results, rankings.documents, checked_judge))
    cautioned = tuple(cautions(documents.groups, wanted))
    unequal = unequally_deep(rankings, wanted, baseline)
    settings = _settings(inputs, documents, options, rankings, wanted)
    if query_groups is not None:
        file = readable(os.path.basename(query_groups)) if is_path(query_groups) else "in memory"
        settings["query_groups"] = file
    settings["query_clusters"] = rankings.clusters.reason
    settings["margin"] = margin
    if judge is not None:
        settings["judge"] = NOT_CHECKED if inputs.unchecked else "checked"
    texts = inputs.queries
    return AuditResult(
        settings=settings,
        baseline=baseline,
        runs=results,
        notes=(
            *(finding.text for finding in misleads),
            *inputs.notes,
            *documents.notes,
            *(finding.text for finding in cautioned),
            *remarks(inputs, rankings, wanted, results, unequal, baseline),
            *lacking_groups(query_group, rankings.queries),
        ),
        queries=rankings.queries,
        rankings=rankings.documents,
        lexicon=documents.lexicon,
        collection=inputs.collection,
        query_texts=None if texts is None else texts.filter(pl.col("query_id").is_in(rankings.queries.implode())),
        misleading=misleads,
        cautions=cautioned,
        unequal_depth=tuple(dict.fromkeys(measure for measures in unequal.values() for measure in measures)),
        partly_labelled=_partly_labelled(documents, rankings),
        provenance=provenance,
        query_cluster=None if rankings.clusters.numbers is None else pl.Series(rankings.clusters.numbers),
        words=_driving_words(documents, rankings, wanted),
        pairs=compare_pairs(rankings.audited, wanted, baseline),
        shares=group_shares(results),
        impact=impacts_of_runs(rankings.evaluations, wanted, source),
        query_groups=served(rankings.audited, wanted, baseline, query_group),
        query_group=query_group,
        judge=checked_judge,
    )


def _partly_labelled(documents: Documents, rankings: Rankings) -> bool:
    """Whether some ranked document has no label although others have one."""
    if documents.groups is None or not documents.groups.labelled:
        return False
    return any(bool((run.document < 0).any()) for run in [*rankings.evaluations, rankings.background])


def _settings(
    inputs: Inputs, documents: Documents, options: Options, rankings: Rankings, measures: Sequence[Measure]
) -> dict[str, object]:
    labelled = documents.groups is not None and documents.groups.labelled
    target = rankings.background.target
    return {
        **(documents.groups.settings if documents.groups is not None else {}),
        "order": options.order,
        **(
            {"unknown": options.missing}
            if labelled
            else {"missing": options.missing, "missing_limit": options.missing_limit}
        ),
        **(
            {"target": "uniform" if target is None else target.described}
            if any("target" in measure.SUPPORTED_PARAMS for measure in measures)
            else {}
        ),
        "only_queries": options.only_queries,
        "background": inputs.background.name,
        "background_depth": options.background_depth,
        "seed": options.seed,
        "measures": [str(measure) for measure in measures],
    }


def _driving_words(documents: Documents, rankings: Rankings, measures: Sequence[Measure]) -> Words | None:
    """The words that drive the figures; None without texts or without a measure of bias."""
    ideal = rankings.neutral_first
    if documents.groups is None or documents.words is None or ideal is None or not any(map(is_bias, measures)):
        return None
    ranked = [(evaluation.run.name, evaluation, False) for evaluation in rankings.evaluations]
    ranked += [(RANDOM, rankings.background, True), (NEUTRAL_FIRST, ideal, False)]
    return find_words(ranked, documents.groups, documents.words, measures, rankings.documents["doc_id"])
