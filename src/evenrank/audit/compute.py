"""Runs + score table + judgements → one result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import polars as pl
from ir_measures import Measure

from evenrank.groups import Lexicon, Scoring, Tokens, WordCounts, load_lexicon, scores_as_asked
from evenrank.io import EvenrankError, Magnitude, Order, Provenance, Run, Scores, as_collection, as_qrels, as_scores
from evenrank.io.convert import text_table
from evenrank.measures import BACKGROUND_DEPTH, MISSING_LIMIT, Evaluation, Missing, is_bias
from evenrank.measures import statistics as st

from .comparison import with_statistics
from .figures import SHOWN_DEPTH, measure_run, query_axis
from .findings import NEUTRAL_FIRST, RANDOM
from .inputs import (
    PathLike,
    as_named,
    check_options,
    check_queries,
    choose_measures,
    load_background,
    load_runs,
    note_sources,
    only_queries_of,
    query_ids,
    score_documents,
    texts_of,
)
from .notes import depth_notes, first_documents, make_notes, make_warnings, poles_notes, query_notes
from .result import AuditResult
from .words import counts_for, find_words

_MAGNITUDES: tuple[Magnitude, ...] = ("tf", "bool", "tf_words", "tf_literal")


def audit(
    runs: Any,
    *,
    collection: Any = None,
    scores: Any = None,
    qrels: Any = None,
    queries: Any = None,
    baseline: str | None = None,
    background: Any = None,
    background_depth: int = BACKGROUND_DEPTH,
    missing: Missing = "error",
    missing_limit: float = MISSING_LIMIT,
    only_queries: bool = False,
    seed: int = 0,
    lexicon: PathLike | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    order: Order = "score",
    measures: str | Sequence[str | Measure] | None = None,
    provenance: Provenance | None = None,
) -> AuditResult:
    """Audits rankings for group bias, beside effectiveness.

    ``runs``: one run, a list of files, or runs by name. A run is a TREC file, a :class:`Run`, ``{query: {document:
    score}}``, a frame of polars or pandas with ``query_id``, ``doc_id`` and ``score`` (``qid``, ``docno`` too), or
    records such as ``ir_measures.ScoredDoc``. Documents are scored from ``collection`` (a file, ``irds:NAME``,
    ``{document: text}``, or a frame with ``doc_id`` and ``text``) with the lexicon (default ``gender-en``, ``word``
    tokens, threshold 1), or come scored in ``scores``. With ``qrels`` (a file, ``{query: {document: grade}}``, a frame
    or records) utility stands beside bias; without, the notes say that it is unknown.
    ``background``: the run against which NFaiRR is normalised (default: the baseline, else the first run), its first
    ``background_depth`` documents per query. ``missing``: what to do with documents of a run that have no text;
    "skip" and "neutral" put up with a share of up to ``missing_limit`` (0 to 1) of a run's documents, or of those in
    the first ranks that a measure looks at, whichever is larger.
    ``queries``: the queries' texts, for the report, in the forms of ``collection``; with ``only_queries`` the audit is
    restricted to them.

    ``provenance``: how what is given in memory was made, where the caller knows more of it; JSON and report show it.

    Two reference rankings of the background's candidates are always there: ``random`` and ``neutral-first``. Only where
    all ``measures`` are of effectiveness is neither ``collection`` nor ``scores`` needed; without, there is no
    ``neutral-first``.
    Raises EvenrankError (InputError with file and line) for input that cannot be used.
    """
    sources = as_named(runs, order)
    made = provenance or Provenance("evenrank.audit")
    if provenance is None:
        note_sources(made, sources, background, collection, scores, qrels, queries, lexicon)
    made.ahead()
    loaded = load_runs(sources, order)
    names = [run.name for run in loaded]
    check_options(names, baseline, background_depth, missing, missing_limit, order, seed)
    judgements = None if qrels is None else as_qrels(qrels)
    if collection is not None:
        collection = as_collection(collection)
    if queries is not None and not isinstance(queries, str | os.PathLike):
        queries = text_table(queries, "`queries`", "query_id")
    chosen, notes = choose_measures(measures, judgements is not None)
    back = load_background(background, loaded, baseline, order)
    known = query_ids(queries) if queries is not None else None
    if only_queries:
        if known is None:
            raise EvenrankError("`only_queries` needs `queries`")
        restricted = {id(run): only_queries_of(run, known) for run in [*loaded, back]}
        loaded, back = [restricted[id(run)] for run in loaded], restricted[id(back)]
        notes.append(f"`only_queries`: the audit is restricted to the {len(known):,} queries given.")
        if judgements is not None:
            judgements = judgements.filter(pl.col("query_id").is_in(known.implode()))
            if not judgements.height:
                raise EvenrankError("`only_queries`: the qrels judge none of the queries given")
    everything = [*loaded, back] if all(back is not run for run in loaded) else loaded
    if queries is not None and known is not None:
        check_queries(queries, known, loaded)
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon or "gender-en")
    scored: Scores | None = None
    counts: WordCounts | None = None
    if scores is None and collection is None and not any(map(is_bias, chosen)):
        notes.append(f"{NEUTRAL_FIRST} is left out: without texts or scores nothing is known of the documents.")
    elif scores is None:
        scoring = Scoring(words.with_poles(poles), tokens or "word", _MAGNITUDES, 1 if threshold is None else threshold)
        scored, counts = score_documents(everything, collection, scoring)
    else:
        ids = [run.table["doc_id"] for run in everything]
        found = as_scores(scores, ids)
        named = words.name if lexicon is not None else None
        scored = scores_as_asked(found, lexicon=named, poles=poles, tokens=tokens, threshold=threshold)
        counts = _counts_of(scored, everything, collection, words)
        if counts is None:
            notes.append(_no_words(scored, collection, words))

    evaluations = [Evaluation(run, scored, judgements, missing=missing, seed=seed) for run in loaded]
    of_background = next((e for e in evaluations if e.run is back), None) or Evaluation(
        back, scored, judgements, missing=missing, seed=seed
    )
    lacking = [evaluation.check_missing(missing_limit, chosen) for evaluation in evaluations]
    shared = None
    if scored is not None:
        of_background.check_missing(missing_limit, chosen, [background_depth])
        shared = of_background.as_background(back.name, background_depth)
        for evaluation in [*evaluations, of_background]:
            evaluation.background = shared
    axis = query_axis(evaluations, of_background, judgements)
    measured, tops = [], []
    for evaluation, lost in zip(evaluations, lacking, strict=True):
        measured.append(measure_run(evaluation, evaluation.run.name, chosen, axis, lacking=lost))
        tops.append(evaluation.first(SHOWN_DEPTH))
    given = list(measured)
    measured.append(measure_run(of_background, RANDOM, chosen, axis, random=True))
    ideal = of_background.neutral_first() if scored is not None else None
    if ideal is not None:
        measured.append(measure_run(ideal, NEUTRAL_FIRST, chosen, axis))
        tops.append(ideal.first(SHOWN_DEPTH))
    results = with_statistics(measured, chosen, baseline, seed)

    of_depth, unequal = depth_notes(given, chosen, baseline)
    warnings = make_warnings(of_background, judgements is not None, chosen, results)
    notes = [*warnings, *notes, *poles_notes(scored)]
    rankings = first_documents(tops, [*names, NEUTRAL_FIRST][: len(tops)], scored, judgements)
    driving = None
    if scored is not None and counts is not None and ideal is not None and any(map(is_bias, chosen)):
        of = [(e.run.name, e, False) for e in evaluations]
        of += [(RANDOM, of_background, True), (NEUTRAL_FIRST, ideal, False)]
        driving = find_words(of, scored, counts, chosen, rankings["doc_id"])

    notes += [note for run in loaded for note in run.notes]
    if known is not None and judgements is not None:
        notes += query_notes(known, judgements)
    notes += of_depth
    notes += make_notes(evaluations, ideal, shared, judgements, chosen, results)
    settings = {
        **(scored.settings if scored is not None else {}),
        "order": order,
        "missing": missing,
        "missing_limit": missing_limit,
        "only_queries": only_queries,
        "background": back.name,
        "background_depth": background_depth,
        "seed": seed,
        "bootstrap_draws": st.BOOTSTRAP_DRAWS,
        "permutations": st.PERMUTATIONS,
        "measures": [str(measure) for measure in chosen],
    }
    return AuditResult(
        settings,
        baseline,
        tuple(results),
        tuple(notes),
        axis,
        rankings,
        words if scored is not None and words.name == scored.settings.get("lexicon") else None,
        {"collection": collection, "queries": queries},
        tuple(warnings),
        unequal,
        shared is not None and shared.all_neutral,
        made,
        driving,
    )


def _counts_of(
    scored: Scores, runs: list[Run], collection: PathLike | pl.DataFrame | None, lexicon: Lexicon
) -> WordCounts | None:
    """The words of documents that were given scored, where a collection is given too and the lexicon is known."""
    tokens = scored.settings.get("tokens")
    if collection is None or lexicon.name != scored.settings.get("lexicon") or tokens not in ("word", "whitespace"):
        return None
    return counts_for(scored, texts_of(runs, collection), Scoring(lexicon, tokens))


def _no_words(scored: Scores, collection: PathLike | pl.DataFrame | None, lexicon: Lexicon) -> str:
    if collection is None:
        return "Which words drive the figures is unknown: the scores hold no texts; give a collection to see words."
    if lexicon.name != scored.settings.get("lexicon"):
        return "Which words drive the figures is unknown: give the lexicon that the scores were made with to see words."
    return (
        "Which words drive the figures is unknown: the collection's texts are not those that the scores were made from."
    )
