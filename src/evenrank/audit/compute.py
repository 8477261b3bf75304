"""Runs + score table + judgements → one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from ir_measures import Measure

from evenrank.groups import Lexicon, Scoring, Tokens, load_lexicon, scores_as_asked
from evenrank.io import Magnitude, Order, Run, Scores, read_qrels, read_scores
from evenrank.measures import BACKGROUND_DEPTH, Evaluation, Missing
from evenrank.measures import statistics as st

from .comparison import with_statistics
from .figures import SHOWN_DEPTH, measure_run, query_axis
from .findings import NEUTRAL_FIRST, RANDOM
from .inputs import (
    PathLike,
    check_options,
    check_queries,
    choose_measures,
    load_background,
    load_runs,
    score_documents,
)
from .notes import first_documents, make_notes
from .result import AuditResult

_MAGNITUDES: tuple[Magnitude, ...] = ("tf", "bool", "tf_words", "tf_literal")


def audit(
    runs: Mapping[str, PathLike | Run | pl.DataFrame] | Sequence[PathLike],
    *,
    collection: PathLike | pl.DataFrame | None = None,
    scores: PathLike | Scores | None = None,
    qrels: PathLike | pl.DataFrame | None = None,
    queries: PathLike | pl.DataFrame | None = None,
    baseline: str | None = None,
    background: PathLike | Run | None = None,
    background_depth: int = BACKGROUND_DEPTH,
    missing: Missing = "error",
    seed: int = 0,
    lexicon: PathLike | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    order: Order = "score",
    measures: str | Sequence[str | Measure] | None = None,
) -> AuditResult:
    """Audits rankings for group bias, beside effectiveness.

    ``runs``: TREC files, :class:`Run` objects or tables, by name (a list of files takes their names). Documents are
    scored from ``collection`` (a file, ``irds:NAME``, or a table with ``doc_id`` and ``text``) with the lexicon
    (default ``gender-en``, ``word`` tokens, threshold 1), or come scored in ``scores``. With ``qrels`` utility stands
    beside bias; without, the notes say that it is unknown.
    ``background``: the run against which NFaiRR is normalised (default: the baseline, else the first run), its first
    ``background_depth`` documents per query. ``missing``: what to do with documents of a run that have no text.

    Two reference rankings of the background's candidates are always there: ``random`` and ``neutral-first``.
    Raises EvenrankError (InputError with file and line) for input that cannot be used.
    """
    loaded = load_runs(runs, order)
    names = [run.name for run in loaded]
    check_options(names, baseline, background_depth, missing, order, seed)
    judgements = read_qrels(qrels) if qrels is not None and not isinstance(qrels, pl.DataFrame) else qrels
    chosen, notes = choose_measures(measures, judgements is not None)
    back = load_background(background, loaded, baseline, order)
    everything = [*loaded, back] if all(back is not run for run in loaded) else loaded
    if queries is not None:
        check_queries(queries, loaded)
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon or "gender-en")
    if scores is None:
        scoring = Scoring(words.with_poles(poles), tokens or "word", _MAGNITUDES, 1 if threshold is None else threshold)
        scored = score_documents(everything, collection, scoring)
    else:
        ids = [run.table["doc_id"] for run in everything]
        made = scores if isinstance(scores, Scores) else read_scores(scores, ids)
        named = words.name if lexicon is not None else None
        scored = scores_as_asked(made, lexicon=named, poles=poles, tokens=tokens, threshold=threshold)

    evaluations = [Evaluation(run, scored, judgements, missing=missing, seed=seed) for run in loaded]
    of_background = next((e for e in evaluations if e.run is back), None) or Evaluation(
        back, scored, judgements, missing=missing, seed=seed
    )
    shared = of_background.as_background(back.name, background_depth)
    for evaluation in [*evaluations, of_background]:
        evaluation.background = shared
    axis = query_axis(evaluations, of_background, judgements)
    measured, tops = [], []
    for evaluation in evaluations:
        measured.append(measure_run(evaluation, evaluation.run.name, chosen, axis))
        tops.append(evaluation.first(SHOWN_DEPTH))
    measured.append(measure_run(of_background, RANDOM, chosen, axis, random=True))
    ideal = of_background.neutral_first()
    measured.append(measure_run(ideal, NEUTRAL_FIRST, chosen, axis))
    tops.append(ideal.first(SHOWN_DEPTH))
    results = with_statistics(measured, chosen, baseline, seed)

    notes += [note for run in loaded for note in run.notes]
    notes += make_notes(evaluations, ideal, shared, judgements, chosen, results)
    settings = {
        **scored.settings,
        "order": order,
        "missing": missing,
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
        first_documents(tops, [*names, NEUTRAL_FIRST], scored, judgements),
        words if words.name == scored.settings.get("lexicon") else None,
        {"collection": collection, "queries": queries},
    )
