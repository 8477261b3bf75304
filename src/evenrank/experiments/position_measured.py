"""Everything that the position experiment measures: effectiveness by query, word vectors, places of answers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evenrank.io import Run, read_qrels, read_run
from evenrank.measures import Evaluation, parse_measure
from evenrank.position.answer_positions import AnswerPositions
from evenrank.position.answers import load_answer_positions
from evenrank.reports.page import histogram

from .paper_page import Drawing
from .position_found import MEASURES, UNTRAINED, Found, Key, Values
from .position_runs import Experiment
from .position_setup import BIASED, ORIGINAL, OTHER, VERSIONS
from .work import Trained


def facts(experiment: Experiment, seed: int, name: str) -> tuple[tuple[str, str], ...]:
    """The first line of the page: the scale, the seeds and the test queries."""
    settings = experiment.settings
    seeds = ", ".join(map(str, settings.seeds))
    development = ", ".join(map(str, settings.development))
    return (
        ("scale", settings.scale),
        (f"seeds of TK, {settings.encoder_seeds} of the encoders", f"{len(settings.seeds)} ({seeds})"),
        *((("development seeds", development),) if development else ()),
        ("test queries a seed", f"{experiment.of(seed, name).parts['test'].count:,}"),
    )


def measured(experiment: Experiment) -> Found:
    """The figures of every training, and of the first stage."""
    found = Found(same_queries=experiment.settings.planted is None)
    for ranker in experiment.settings.rankers:
        for seed in experiment.settings.seeds_of(ranker):
            for name in experiment.names:
                _measure(experiment, found, ranker, name, seed)
            for version in VERSIONS if BIASED in experiment.names else ():
                trained = experiment.transferred(seed, ranker, version)
                _add(experiment, found, (OTHER, ranker, f"MS({version})", ORIGINAL), trained, seed)
    for name in experiment.names:
        # Published data are the same for every seed.
        for seed in experiment.settings.seeds[: 1 if found.same_queries else None]:
            _first_stage(experiment, found, name, seed)
    return found


def _measure(experiment: Experiment, found: Found, ranker: str, name: str, seed: int) -> None:
    """One ranker of a seed, trained on both versions of a collection."""
    for version in VERSIONS:
        trained = experiment.ranker(seed, ranker, name, version)
        for test in VERSIONS:
            _add(experiment, found, (name, ranker, version, test), trained, seed)
        if ranker == "TK":
            _similarity(experiment, found, (name, version), trained.model, seed)
    if ranker == "TK":
        with tempfile.TemporaryDirectory() as elsewhere:
            model = experiment.untrained(seed, ranker, name, Path(elsewhere))
            _similarity(experiment, found, (name, UNTRAINED), model, seed)


def _add(experiment: Experiment, found: Found, key: Key, trained: Trained, seed: int) -> None:
    name, test = key[0], key[3]
    run = experiment.ranked(trained, seed, name, test)
    found.values.setdefault(key, []).append(values_of(run, experiment.of(seed, name).parts["test"].qrels))


def values_of(run: Run, qrels: str) -> Values:
    """The measures of a run by query, in the order of the sorted query ids."""
    evaluation = Evaluation(run, qrels=read_qrels(qrels))
    order = evaluation.judged.arg_sort().to_numpy()
    return {key: evaluation.values(parse_measure(name))[order] for key, name in MEASURES.items()}


def _similarity(experiment: Experiment, found: Found, key: tuple[str, str], model: str, seed: int) -> None:
    """ATS, MATS and the level of different terms, of the words of the original collection."""
    from evenrank.position.different_terms import different_terms
    from evenrank.position.similarity import sampled_words
    from evenrank.position.term_similarity import term_similarity

    wanted = experiment.settings.similarity
    words = sampled_words(model, experiment.of(seed, key[0]).texts[ORIGINAL], passages=wanted["passages"])
    pairs, terms = wanted.get("min_pairs", 5), wanted["min_terms"]
    found.similarity.setdefault(key, []).append(term_similarity(*words.arrays, min_pairs=pairs, min_terms=terms))
    found.different.setdefault(key, []).append(different_terms(*words.arrays))


def _first_stage(experiment: Experiment, found: Found, name: str, seed: int) -> None:
    """BM25, which does not see the order of words, and the expectation over random orders."""
    part = experiment.of(seed, name).parts["test"]
    run = read_run(part.run, "BM25")
    evaluation = Evaluation(run, qrels=read_qrels(part.qrels))
    order = evaluation.judged.arg_sort().to_numpy()
    for system, of in (("BM25", evaluation.values), ("random", evaluation.random_values)):
        values = {key: of(parse_measure(measure))[order] for key, measure in MEASURES.items()}
        for test in VERSIONS:
            found.values.setdefault((name, system, "", test), []).append(values)


def answer_positions(experiment: Experiment, seed: int) -> dict[tuple[str, str], AnswerPositions]:
    """Where answers begin, by collection and version."""
    found = {}
    for name in experiment.names:
        data = experiment.of(seed, name)
        for version, answers in data.answers.items():
            found[name, version] = load_answer_positions(answers)
    return found


def figure1(positions: dict[tuple[str, str], AnswerPositions]) -> list[Drawing]:
    """Figure 1: a histogram for each collection and version."""
    return [
        histogram(
            f"Figure 1 ({name}, {version})",
            f"Where answers begin: {name}, {version}",
            of.relative_histogram(),
            "relative position",
            f"{of.table.height:,} matches; mean {of.mean:.3f}; Kolmogorov–Smirnov distance to uniform {of.ks:.3f}.",
        )
        for (name, version), of in positions.items()
    ]
