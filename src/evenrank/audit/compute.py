"""Runs + score table + judgements → one result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.groups import Lexicon, Scoring, Tokens, load_lexicon, score_batches
from evenrank.io import (
    EvenrankError,
    InputError,
    Magnitude,
    Order,
    Run,
    Scores,
    read_qrels,
    read_queries,
    read_run,
    read_scores,
    scan_texts,
)
from evenrank.io.errors import shown
from evenrank.io.tables import IdIndex
from evenrank.measures import Background, Evaluation, Missing, is_bias, parse_measure, parse_measures
from evenrank.measures import statistics as st
from evenrank.measures.evaluate import BACKGROUND_DEPTH, DELTA
from evenrank.measures.pairwise import delta_aprf, tied_pair_share

from .result import NEUTRAL_FIRST, RANDOM, REFERENCES, AuditResult, Comparison, Figure, Interval, RunAudit

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]
_MAGNITUDES: tuple[Magnitude, ...] = ("tf", "bool", "tf_words", "tf_literal")
UTILITY = "nDCG@10 RR@10 R@1000"
BIAS = "NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10"
PAIRWISE = "DeltaAPRF"
SHOWN_DEPTH = 10
PROFILE_DEPTH = 100
_NEAR_ZERO = 1e-6


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
    loaded = _load_runs(runs, order)
    names = [run.name for run in loaded]
    _check_options(names, baseline, background_depth, missing, order, seed)
    judgements = read_qrels(qrels) if qrels is not None and not isinstance(qrels, pl.DataFrame) else qrels
    chosen, notes = _choose_measures(measures, judgements is not None)
    back = _load_background(background, loaded, baseline, order)
    everything = [*loaded, back] if all(back is not run for run in loaded) else loaded
    if queries is not None:
        _check_queries(queries, loaded)
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon or "gender-en")
    if scores is None:
        scoring = Scoring(words.with_poles(poles), tokens or "word", _MAGNITUDES, 1 if threshold is None else threshold)
        scored = _score(everything, collection, scoring)
    else:
        asked = {"lexicon": lexicon and words.name, "tokens": tokens, "threshold": threshold}
        scored = _load_scores(everything, scores, poles, asked)

    evaluations = [Evaluation(run, scored, judgements, missing=missing, seed=seed) for run in loaded]
    of_background = next((e for e in evaluations if e.run is back), None) or Evaluation(
        back, scored, judgements, missing=missing, seed=seed
    )
    shared = Background.of(of_background, back.name, background_depth)
    for evaluation in [*evaluations, of_background]:
        evaluation.background = shared
    axis = _axis(evaluations, of_background, judgements)
    measured, tops = [], []
    for evaluation in evaluations:
        measured.append(_measure(evaluation, evaluation.run.name, chosen, axis))
        tops.append(evaluation.first(SHOWN_DEPTH))
    measured.append(_measure(of_background, RANDOM, chosen, axis, random=True))
    ideal = of_background.neutral_first()
    measured.append(_measure(ideal, NEUTRAL_FIRST, chosen, axis))
    tops.append(ideal.first(SHOWN_DEPTH))
    results = _with_statistics(measured, chosen, baseline, seed)

    notes += [note for run in loaded for note in run.notes]
    notes += _notes(evaluations, ideal, shared, judgements, chosen, results)
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
        _rankings(tops, [*names, NEUTRAL_FIRST], scored, judgements),
        words if words.name == scored.settings.get("lexicon") else None,
        {"collection": collection, "queries": queries},
    )


# --- input -----------------------------------------------------------------------------------------------------------


def _load_runs(runs: Mapping[str, PathLike | Run | pl.DataFrame] | Sequence[PathLike], order: Order) -> list[Run]:
    if not isinstance(runs, Mapping):
        runs = named_runs([runs] if isinstance(runs, str | os.PathLike) else runs)
    if not runs:
        raise EvenrankError("an audit needs at least one run")
    return [_load_run(run, name, order) for name, run in runs.items()]


def run_name(path: PathLike) -> str:
    """The name that a run file gives its run: its own, without ``.gz``, ``.run``, ``.txt``, ``.tsv`` or ``.trec``."""
    name = os.path.basename(os.fspath(path)).removesuffix(".gz")
    stem, suffix = os.path.splitext(name)
    return stem if suffix in (".run", ".txt", ".tsv", ".trec") and stem else name


def named_runs(arguments: Sequence[PathLike]) -> dict[str, PathLike | Run | pl.DataFrame]:
    """Runs by name from ``NAME=RUN`` or ``RUN``, which takes its file's name. Raises EvenrankError for a name twice."""
    named: dict[str, PathLike | Run | pl.DataFrame] = {}
    for argument in arguments:
        text = os.fspath(argument)
        name, equals, path = text.partition("=")
        if not equals or not name or os.path.exists(text):
            name, path = run_name(text), text
        if name in named:
            raise EvenrankError(f"two runs are named {shown(name)}: name them, as in NAME={path}")
        named[name] = path
    return named


def _load_run(run: PathLike | Run | pl.DataFrame, name: str, order: Order) -> Run:
    if isinstance(run, pl.DataFrame):
        return Run.from_table(run, name, order=order)
    if isinstance(run, Run):
        return replace(run, name=name)
    return read_run(run, name, order=order)


def _check_options(names: list[str], baseline: str | None, depth: int, missing: str, order: str, seed: int) -> None:
    reserved = [name for name in names if name in REFERENCES]
    if reserved:
        raise EvenrankError(f"the name {shown(reserved[0])} is kept for a reference ranking: name the run otherwise")
    if baseline is not None and baseline not in names:
        raise EvenrankError(f"--baseline: no run {shown(baseline)} (the runs are {', '.join(names)})")
    if depth < 1:
        raise EvenrankError(f"--background-depth: expected 1 or more, found {depth}")
    if seed < 0:
        raise EvenrankError(f"--seed: expected 0 or more, found {seed}")
    if missing not in ("error", "skip", "neutral"):
        raise EvenrankError(f"--missing: expected error, skip or neutral, found {shown(missing)}")
    if order not in ("score", "file"):
        raise EvenrankError(f"--order: expected score or file, found {shown(order)}")


def _choose_measures(measures: str | Sequence[str | Measure] | None, judged: bool) -> tuple[list[Measure], list[str]]:
    """The measures, utility first, and what to say about the choice."""
    notes = []
    if not judged:
        notes.append("Effectiveness is unknown: there are no qrels. A ranking of nonsense can be perfectly fair.")
    if measures is None:
        chosen = parse_measures(f"{UTILITY} {BIAS} {PAIRWISE}" if judged else BIAS)
    elif isinstance(measures, str):
        chosen = parse_measures(measures)
    else:
        chosen = list(dict.fromkeys(parse_measure(measure) for measure in measures))
    needing = [m for m in chosen if not is_bias(m) or m.NAME in ("APRF", *DELTA)]
    if needing and not judged:
        raise EvenrankError(f"{needing[0]} needs --qrels")
    if judged and all(is_bias(measure) for measure in chosen):
        chosen.append(parse_measure("nDCG@10"))
        notes.append("nDCG@10 was added: bias is not shown without effectiveness.")
    return sorted(chosen, key=is_bias), notes


def _load_background(background: PathLike | Run | None, runs: list[Run], baseline: str | None, order: Order) -> Run:
    if background is None:
        return next((run for run in runs if run.name == baseline), runs[0])
    if isinstance(background, Run):
        return background
    return next((run for run in runs if run.name == background), None) or read_run(
        background, run_name(background), order=order
    )


def _check_queries(queries: PathLike | pl.DataFrame, runs: list[Run]) -> None:
    known = queries if isinstance(queries, pl.DataFrame) else read_queries(queries)
    for run in runs:
        lacking = run.queries.filter(~run.queries.is_in(known["query_id"].implode()))
        if len(lacking):
            message = (
                f"no text for {len(lacking)} of the queries of the run {run.name}: {', '.join(map(shown, lacking[:5]))}"
            )
            raise InputError("the queries" if isinstance(queries, pl.DataFrame) else queries, message)


def _score(runs: list[Run], collection: PathLike | pl.DataFrame | None, scoring: Scoring) -> Scores:
    """Scores of the runs' documents, from the collection's texts as they are read."""
    if collection is None:
        raise EvenrankError("an audit needs the documents' texts or scores: give --collection or --scores")
    ids = [run.table["doc_id"] for run in runs]
    if isinstance(collection, pl.DataFrame):
        texts = iter(collection.filter(IdIndex(ids).among(collection["doc_id"])).iter_slices(1 << 15))
    else:
        texts = scan_texts(collection, ids)
    return Scores.of(pl.concat(list(score_batches(texts, scoring))), scoring.describe())


def _load_scores(runs: list[Run], scores: PathLike | Scores, poles: str | None, asked: dict[str, Any]) -> Scores:
    """Scores made before; ``asked``: how they were asked to be made, None where it does not matter."""
    loaded = scores if isinstance(scores, Scores) else read_scores(scores, [run.table["doc_id"] for run in runs])
    for name, value in asked.items():
        if value is not None and loaded.settings.get(name, value) != value:
            found = loaded.settings[name]
            raise EvenrankError(f"--{name}: {value} was asked for, but the scores were made with {name} {found}")
    if poles is None:
        return loaded
    pair = lexicon_poles(poles, loaded.groups)
    return replace(loaded, poles=pair, settings={**loaded.settings, "poles": list(pair)})


def lexicon_poles(poles: str, groups: Sequence[str]) -> tuple[str, str]:
    """Poles written ``A,B`` checked against the groups of a score table."""
    checked = Lexicon("scores", tuple(groups), (), (), None).with_poles(poles).poles
    assert checked is not None
    return checked


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    """A run's values before statistics: per measure the values on the audit's axis, and what ties do to the figure."""

    name: str
    queries: int
    tie_share: float
    by_depth: pl.DataFrame
    values: dict[str, Array]
    undefined: dict[str, int]
    ties: dict[str, tuple[float | None, Interval | None]]
    poles: dict[str, tuple[Array, Array]]
    expected: dict[str, Array]
    """Per measure each query's expectation over the orders of tied documents, on the axis."""
    means: dict[str, float]
    """Figures that are no mean of the values: the expectation of an absolute value over random orders."""


def _axis(evaluations: list[Evaluation], background: Evaluation, qrels: pl.DataFrame | None) -> pl.Series:
    """All queries of the audit: those of the runs, then the judged ones that no run has."""
    parts = [evaluation.queries for evaluation in [*evaluations, background]]
    if qrels is not None:
        parts.append(qrels["query_id"])
    return pl.concat(parts).unique(maintain_order=True).alias("query_id")


def _place(values: Array, queries: pl.Series, axis: pl.Series) -> Array:
    index = pl.DataFrame({"q": axis}).with_row_index("place")
    place = pl.DataFrame({"q": queries}).join(index, on="q", how="left", maintain_order="left")["place"].to_numpy()
    laid = np.full(len(axis), np.nan)
    laid[place] = values
    return laid


def _measure(
    evaluation: Evaluation, name: str, measures: list[Measure], axis: pl.Series, *, random: bool = False
) -> _Measured:
    values: dict[str, Array] = {}
    undefined: dict[str, int] = {}
    ties: dict[str, tuple[float | None, Interval | None]] = {}
    poles: dict[str, tuple[Array, Array]] = {}
    expected: dict[str, Array] = {}
    means: dict[str, float] = {}
    for measure in measures:
        key, queries = str(measure), evaluation.axis(measure)
        if measure.NAME in DELTA:
            pair = evaluation.poles_prf(measure)
            if random:
                pair = tuple(np.where(np.isnan(pole), pole, 0.5) for pole in pair)  # type: ignore[assignment]
            poles[key] = (_place(pair[0], queries, axis), _place(pair[1], queries, axis))
            own = pair[0] - pair[1]
            undefined[key] = int((np.isnan(pair[0]) & np.isnan(pair[1])).sum())
        else:
            own = evaluation.random_values(measure) if random else evaluation.values(measure)
            undefined[key] = int(np.isnan(own).sum())
        values[key] = _place(own, queries, axis)
        if random:
            ties[key] = None, None
            if measure.NAME.startswith("|"):
                means[key] = _random_absolute(evaluation, measure)
        else:
            tied = None if measure.NAME in DELTA else evaluation.tie_values(measure)
            ties[key] = _ties(evaluation, measure, tied)
            if tied is not None:
                expected[key] = _place(tied, queries, axis)
    lists = evaluation.scored_lists
    return _Measured(
        name,
        len(evaluation.queries),
        0.0 if random else lists.tie_share(SHOWN_DEPTH),
        _profile(evaluation, random=random),
        values,
        undefined,
        ties,
        poles,
        expected,
        means,
    )


def _random_absolute(evaluation: Evaluation, measure: Measure) -> float:
    """The expectation of the absolute value of a run's figure over random orders of the candidates, by draws."""
    if measure.NAME in DELTA:
        return float(np.mean([abs(delta_aprf(*pair)) for pair in evaluation.drawn_poles_prf(measure, random=True)]))
    return float(np.mean(np.abs(evaluation.mean_draws(measure, random=True))))


def _mean(values: Array) -> float | None:
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else None


def _ties(evaluation: Evaluation, measure: Measure, tied: Array | None) -> tuple[float | None, Interval | None]:
    """The figure's expectation over orders of tied documents, and its smallest and largest value where known.

    ``tied``: each query's expectation; None for ΔA-PRF.
    """
    if tied is None:
        ends = [delta_aprf(*evaluation.poles_prf(measure, weights)) for weights in ((0.0, 1.0), (1.0, 0.0))]
        if measure.NAME == "DeltaAPRF":
            middle = delta_aprf(*evaluation.poles_prf(measure, (0.5, 0.5)))
        else:
            middle = float(np.mean([abs(delta_aprf(*pair)) for pair in evaluation.drawn_poles_prf(measure)]))
            ends = list(_absolute(ends[0], ends[1]))
        return (None, None) if np.isnan(middle) else (middle, (ends[0], ends[1]))
    low, high = (_mean(bound) for bound in evaluation.tie_bounds(measure))
    known = None if low is None or high is None else (low, high)
    if measure.NAME == "|ARaB|" and known is not None:
        return float(np.nanmean(np.abs(evaluation.mean_draws(measure)))), _absolute(*known)
    return _mean(tied), known


def _absolute(low: float, high: float) -> Interval:
    """The range of |x| for x in [low, high]."""
    ends = sorted((abs(low), abs(high)))
    return (0.0 if low <= 0 <= high else ends[0], ends[1])


def _profile(evaluation: Evaluation, *, random: bool) -> pl.DataFrame:
    """Mean over queries of the signed magnitude (tf) and the neutrality of the documents down to each rank."""
    lists = evaluation.scored_lists
    depth = min(PROFILE_DEPTH, int(lists.lengths.max(initial=0)))
    ranks = np.arange(1, depth + 1)
    counts = np.minimum(ranks, lists.lengths[:, None])
    columns: dict[str, Any] = {"rank": ranks}
    kinds = {"neutrality": evaluation.neutrality}
    if evaluation.scores is not None and evaluation.scores.poles is not None:
        kinds["magnitude"] = evaluation.magnitude("tf")
    for name, values in kinds.items():
        top = values.first(lists, depth)
        running = lists.means(values)[:, None] * counts if random else np.cumsum(top, axis=1)
        columns[name] = np.nanmean(
            np.divide(running, counts, where=counts > 0, out=np.full(running.shape, np.nan)), axis=0
        )
    return pl.DataFrame(columns)


# --- statistics ------------------------------------------------------------------------------------------------------


def _with_statistics(
    measured: list[_Measured], measures: list[Measure], baseline: str | None, seed: int
) -> list[RunAudit]:
    figures: list[dict[str, Figure]] = [{} for _ in measured]
    base = next((i for i, run in enumerate(measured) if run.name == baseline), None)
    keys = [str(measure) for measure in measures]
    plain = [key for key, measure in zip(keys, measures, strict=True) if key not in measured[0].poles]
    # One set of bootstrap draws for all runs and measures, so that differences are paired.
    stacked = np.stack([run.values[key] for run in measured for key in plain], axis=1) if plain else np.zeros((1, 0))
    draws = st.bootstrap_means(stacked, seed)
    for m, (key, measure) in enumerate(zip(keys, measures, strict=True)):
        if key in measured[0].poles:
            run_draws = _delta_draws([run.poles[key] for run in measured], seed)
            means: list[float | None] = [delta_aprf(*run.poles[key]) for run in measured]
            counts = [int((~np.isnan(np.stack(run.poles[key]))).any(axis=0).sum()) for run in measured]
        else:
            run_draws = [draws[:, r * len(plain) + plain.index(key)] for r in range(len(measured))]
            means = [_mean(run.values[key]) for run in measured]
            counts = [int((~np.isnan(run.values[key])).sum()) for run in measured]
        if measure.NAME.startswith("|"):
            run_draws = [np.abs(d) for d in run_draws]
            means = [None if mean is None else abs(mean) for mean in means]
        # A figure that was drawn has no interval over queries.
        run_draws = [np.array([np.nan]) if key in run.means else d for run, d in zip(measured, run_draws, strict=True)]
        means = [run.means.get(key, mean) for run, mean in zip(measured, means, strict=True)]
        compared = _compare(measured, measure, base, seed + m)
        for r, run in enumerate(measured):
            mean = means[r]
            mean = None if mean is None or np.isnan(mean) else mean
            tie_mean, tie_range = run.ties[key]
            if run.name == RANDOM and mean is not None:
                tie_mean, tie_range = mean, (mean, mean)
            figures[r][key] = Figure(
                measure,
                mean,
                counts[r],
                run.undefined[key],
                st.interval(run_draws[r]),
                tie_mean,
                tie_range,
                run.values[key],
                compared[r],
            )
    return [RunAudit(run.name, run.queries, figures[r], run.tie_share, run.by_depth) for r, run in enumerate(measured)]


def _delta_draws(poles: list[tuple[Array, Array]], seed: int) -> list[Array]:
    """Bootstrap draws of ΔA-PRF for each run, stratified by group, the same queries for all runs."""
    draws = []
    for p in (0, 1):
        values = np.stack([pair[p] for pair in poles], axis=1)
        values = values[(~np.isnan(values)).any(axis=1)]
        draws.append(st.bootstrap_means(values, seed + p) if len(values) else np.full((1, len(poles)), np.nan))
    return [draws[0][:, r] - draws[1][:, r] for r in range(len(poles))]


def _compare(measured: list[_Measured], measure: Measure, base: int | None, seed: int) -> list[Comparison | None]:
    """Every run's comparison with the baseline on one measure; Holm over the runs that were given."""
    if base is None:
        return [None] * len(measured)
    whole = bool(getattr(measure, "whole_run", False))
    form = _compare_whole if whole else _compare_queries
    compared = [None if r == base else form(run, measured[base], measure, seed) for r, run in enumerate(measured)]
    given = [r for r, c in enumerate(compared) if c is not None and measured[r].name not in REFERENCES]
    corrected = st.holm([(c.p if whole else c.t_p) for c in (compared[r] for r in given) if c is not None])
    for r, p in zip(given, corrected, strict=True):
        comparison = compared[r]
        assert comparison is not None
        compared[r] = replace(comparison, holm_p=p)
    return compared


def _compare_queries(run: _Measured, base: _Measured, measure: Measure, seed: int) -> Comparison:
    key = str(measure)
    values, baseline = run.values[key], base.values[key]
    paired = st.paired_tests(values, baseline)
    both = ~np.isnan(values - baseline)
    if getattr(measure, "better", "higher") == "nearer zero":
        gain = np.abs(baseline[both]) - np.abs(values[both])
    else:
        gain = values[both] - baseline[both]
    better, worse = int((gain > st.EQUAL).sum()), int((gain < -st.EQUAL).sum())
    tied = None
    if key in run.expected and key in base.expected:
        tied = st.paired_tests(run.expected[key], base.expected[key])
    return Comparison(
        paired.difference,
        _relative(paired.difference, float(baseline[both].mean()) if both.any() else None),
        better,
        int(both.sum()) - better - worse,
        worse,
        paired.t_p,
        paired.wilcoxon_p,
        non_inferior=None if is_bias(measure) else st.non_inferior(values, baseline, seed),
        tie_difference=tied.difference if tied else None,
        tie_p=tied.t_p if tied else None,
    )


def _relative(difference: float | None, baseline: float | None) -> float | None:
    if difference is None or baseline is None or abs(baseline) <= _NEAR_ZERO:
        return None
    return difference / baseline


def _compare_whole(run: _Measured, base: _Measured, measure: Measure, seed: int) -> Comparison:
    """A figure of the whole run, on the queries (for ΔA-PRF those of each pole) where both runs have a value."""
    key = str(measure)
    if key in run.poles:
        parts = [_common(run.poles[key][pole], base.poles[key][pole]) for pole in (0, 1)]
        # Under the null hypothesis the change of a query's PRF does not depend on its group.
        changes = [part[:, 0] - part[:, 1] for part in parts]
        p = st.permuted_group_p(changes[0], changes[1], seed)
    else:
        parts = [_common(run.values[key], base.values[key])]
        p = st.permuted_runs_p(parts[0][:, 0], parts[0][:, 1], seed)
    if any(not len(part) for part in parts):
        return Comparison(None)
    means = parts[0].mean(axis=0) - (parts[1].mean(axis=0) if len(parts) > 1 else 0.0)
    draws = st.bootstrap_means(parts[0], seed)
    if len(parts) > 1:
        draws = draws - st.bootstrap_means(parts[1], seed + 1)
    if measure.NAME.startswith("|"):
        means, draws = np.abs(means), np.abs(draws)
    difference = float(means[0] - means[1])
    return Comparison(
        difference, _relative(difference, float(means[1])), ci95=st.interval(draws[:, 0] - draws[:, 1]), p=p
    )


def _common(values: Array, baseline: Array) -> Array:
    """Both runs' values [Q, 2] of the queries where both have one."""
    both = ~np.isnan(values - baseline)
    return np.stack([values[both], baseline[both]], axis=1)


# --- notes and rankings ----------------------------------------------------------------------------------------------


def _notes(
    evaluations: list[Evaluation],
    neutral_first: Evaluation,
    background: Background,
    qrels: pl.DataFrame | None,
    measures: list[Measure],
    results: list[RunAudit],
) -> list[str]:
    notes = [
        f"Background of NFaiRR and candidates of the reference rankings: {background.name}, first {background.depth}"
        " per query (references: all)."
    ]
    cutoff = max((m.params.get("cutoff", 0) for m in measures if is_bias(m)), default=0)
    for evaluation, result in zip(evaluations, results, strict=False):
        name = evaluation.run.name
        if evaluation.missing_documents:
            done = {"skip": "left out of the bias measures", "neutral": "counted as neutral"}[evaluation.missing]
            notes.append(f"{name}: {evaluation.missing_documents} rows hold documents without text, {done}.")
        notes += _outside(name, evaluation, background, cutoff)
        if result.tie_share:
            share = _percent(result.tie_share)
            notes.append(f"{name}: {share} of the documents in the first {SHOWN_DEPTH} ranks are tied.")
        flagged = [key for key, figure in result.figures.items() if figure.tie_sensitive]
        if flagged:
            notes.append(f"{name}: the order of tied documents moves {', '.join(flagged)} by more than the interval.")
        if qrels is not None:
            notes += _judgement_notes(evaluation, measures)
    notes += _outside(NEUTRAL_FIRST, neutral_first, background, cutoff)
    unknown = [
        key
        for key, figure in results[-2].figures.items()
        if figure.mean is None and not is_bias(figure.measure) and results[0].figures[key].mean is not None
    ]
    if unknown:
        notes.append(f"{RANDOM}: {', '.join(unknown)} was not computed: the runs are too long to draw from.")
    return notes


def _outside(name: str, evaluation: Evaluation, background: Background, cutoff: int) -> list[str]:
    top = evaluation.first(cutoff).select("query_id", "doc_id")
    outside = top.join(background.table, on=["query_id", "doc_id"], how="anti").height
    if not outside:
        return []
    return [
        f"{name}: {outside} of {top.height} documents in the first {cutoff} ranks are outside the background;"
        " its NFaiRR can exceed 1."
    ]


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{share:.0%}"


def _judgement_notes(evaluation: Evaluation, measures: list[Measure]) -> list[str]:
    name, notes = evaluation.run.name, []
    judged = evaluation.judged
    unjudged = len(evaluation.queries) - int(evaluation.queries.is_in(judged.implode()).sum())
    if unjudged:
        notes.append(f"{name}: {unjudged} queries are not judged and left out of utility.")
    absent = len(judged) - int(judged.is_in(evaluation.queries.implode()).sum())
    if absent:
        notes.append(f"{name}: {absent} judged queries are not in the run and count 0 in utility.")
    if any(m.NAME in ("APRF", *DELTA) for m in measures):
        share = tied_pair_share(evaluation.wins()[0])
        if share > 0:
            notes.append(
                f"{name}: {_percent(share)} of the (clicked, not clicked) pairs of PRF are tied; ties count as wins."
            )
    return notes


def _rankings(tops: list[pl.DataFrame], names: list[str], scores: Scores, qrels: pl.DataFrame | None) -> pl.DataFrame:
    """The first documents of every run in one table, with their scores and grades."""
    counts = ["doc_id", "neutrality", *[f"count_{group}" for group in scores.groups]]
    named = [top.select(pl.lit(name).alias("run"), pl.all()) for top, name in zip(tops, names, strict=True)]
    table = pl.concat(named).join(scores.table.select(counts), on="doc_id", how="left", maintain_order="left")
    if qrels is None:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias("relevance"))
    return table.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
