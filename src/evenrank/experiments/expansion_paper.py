"""Gerritse and de Vries: what hard-debiased word embeddings do to query expansion; Tables 1 and 2."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import polars as pl

from evenrank.auditing import RELEVANCE_FIRST, AuditResult, audit
from evenrank.groups import Scoring, load_lexicon
from evenrank.io import EvenrankError, Run, read_texts, scan_collection
from evenrank.mitigation.blind import blind
from evenrank.retrieval.analysis import Analyzer
from evenrank.retrieval.bm25 import Index
from evenrank.retrieval.expansion import expand
from evenrank.retrieval.fusion import Tuned, tune

from . import work
from .expansion_claims import claims
from .expansion_critique import criticise
from .expansion_setup import LOCAL, SOURCE, Collection, Settings, collection_of, spaces, vectors_of, word_sets
from .expansion_tables import (
    BIAS,
    BIASED,
    DEBIASED,
    FUSED,
    MEASURES,
    REGULAR,
    Measured,
    OneSeed,
    cell,
    fused_name,
    tables_of,
)
from .paper_page import Drawing, ExperimentPage, plane
from .work import LEXICON

Units = list[tuple[str, OneSeed]]
"""Of each kind of vectors: what one seed measured."""


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """The whole experiment."""
    kept = {key: value for key, value in asdict(settings).items() if key not in ("seeds", "development")}
    work.write_settings(folder, kept)
    found: list[Measured] = []
    for name in settings.collections:
        say(f"{name}: {len(settings.seeds)} seeds with {', '.join(settings.vectors)}")
        done = _seeds(settings, folder, name, jobs)
        for place, vectors in enumerate(settings.vectors):
            found.append(Measured(name, vectors, tuple(units[place][1] for units in done)))
    return ExperimentPage(
        "expansion",
        "Debiased embeddings in query expansion",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", ", ".join(map(str, settings.seeds))),
            ("development seeds", ", ".join(map(str, settings.development)) or "none"),
        ),
        tuple(claim for one in found for claim in claims(one)),
        tuple(table for one in found for table in tables_of(one)),
        tuple(_plane(one) for one in found),
        _notes(settings, found),
    )


def _seeds(settings: Settings, folder: Path, name: str, jobs: int) -> list[Units]:
    """What each seed measured, seeds in parallel processes."""
    arguments = [(settings, folder, name, seed) for seed in settings.seeds]
    if jobs < 2 or len(arguments) < 2:
        searcher: _Searcher | None = None
        done = []
        for one in arguments:
            collection = collection_of(*one)
            if searcher is None or collection.nested:
                searcher = _Searcher(collection, settings)
            done.append(_one_seed(settings, folder, searcher, one[-1]))
        return done
    # Files that all seeds share are made once.
    collection_of(*arguments[0])
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(arguments)), context) as pool:
        waiting = [pool.submit(_in_process, *one) for one in arguments]
        results = [future.result() for future in waiting]
    for result in results:
        if isinstance(result, str):
            raise EvenrankError(result)
    return [result for result in results if not isinstance(result, str)]


def _in_process(settings: Settings, folder: Path, name: str, seed: int) -> Units | str:
    """One seed, or the message of its error."""
    try:
        collection = collection_of(settings, folder, name, seed)
        return _one_seed(settings, folder, _Searcher(collection, settings), seed)
    except EvenrankError as error:
        return str(error)


class _Searcher:
    """BM25 with RM3 over a collection, whose regular and blind rankings are made once."""

    def __init__(self, collection: Collection, settings: Settings) -> None:
        self.collection, self.depth, self.rm3 = collection, settings.depth, settings.rm3
        self.index = self._built(collection.texts)
        self.regular = self.search(collection.queries, REGULAR)
        masked = Scoring(load_lexicon(LEXICON))
        index = self._built(blind(batch, masked) for batch in scan_collection(collection.texts))  # type: ignore[arg-type]
        asked = blind(collection.queries, masked)
        self.blind = index.search(asked, self.depth, rm3=self.rm3, name="blind", quiet=True)

    def _built(self, texts: str) -> Index:
        return Index.build(texts, Analyzer("english", "english"), forward=True, quiet=True)

    def search(self, queries: pl.DataFrame, name: str) -> Run:
        return self.index.search(queries, self.depth, rm3=self.rm3, name=name, quiet=True)


def _one_seed(settings: Settings, folder: Path, searcher: _Searcher, seed: int) -> Units:
    collection = searcher.collection
    units = []
    for name in settings.vectors:
        both = spaces(settings, vectors_of(settings, folder, collection, name, seed), name)
        before = expand(collection.queries, both.before, settings.k)
        after = expand(collection.queries, both.after, settings.k)
        runs = {REGULAR: searcher.regular, "blind": searcher.blind}
        for label, expansion in ((BIASED, before), (DEBIASED, after)):
            runs[label] = searcher.search(expansion.expanded(), label)
        tuned: dict[tuple[str, str], Tuned] = {}
        for objective in settings.objectives:
            for label, expanded in FUSED.items():
                done = tune(
                    [runs[REGULAR], runs[expanded]],
                    collection.qrels,
                    objective,
                    folds=settings.folds,
                    seed=seed,
                    name=fused_name(label, objective, settings.objectives[0]),
                )
                tuned[label, objective] = done
                runs[done.run.name] = done.run
        changes = before.changes(after)
        result = _audit(collection, runs)
        # Fixed vectors are the same for every seed and collection.
        first = seed == settings.seeds[0] and (name == LOCAL or collection.name == settings.collections[0])
        critique = None
        if first:
            counts = {"count": settings.biased_words, "train": settings.svm_words}
            critique = criticise(both.before, both.after, word_sets(settings), **counts, seed=seed)
        unit = OneSeed(
            collection,
            result.queries,
            {
                one.name: {m: f.values for m, f in one.figures.items()}
                for one in result.runs
                if one.name != RELEVANCE_FIRST
            },
            result.queries.is_in(changes["query_id"].implode()).to_numpy(),
            tuned,
            (before, after),
            changes,
            both.check,
            (len(both.before.words), len(both.after.words), both.own),
            critique,
        )
        units.append((name, unit))
    return units


def _audit(collection: Collection, runs: dict[str, Run]) -> AuditResult:
    wanted = pl.concat([run_.table["doc_id"] for run_ in runs.values()]).unique()
    # A judged query that no list has counts 0.
    judged = collection.qrels.filter(pl.col("query_id").is_in(collection.queries["query_id"].implode()))
    measures = " ".join([*MEASURES.values(), *BIAS.values()])
    # A run of expanded queries can lack queries, and has documents that the regular one has not.
    both = Run.from_table(
        pl.concat(
            [run_.table.select("query_id", "doc_id", pl.lit(0.0).alias("score")) for run_ in runs.values()]
        ).unique(["query_id", "doc_id"], maintain_order=True),
        "background",
    )
    texts = read_texts(collection.texts, wanted)
    return audit(runs, collection=texts, qrels=judged, background=both, measures=measures)


def _plane(found: Measured) -> Drawing:
    points = {
        "none" if system == REGULAR else system: (cell(found, system, "AP"), cell(found, system, "NFaiRR@10"))
        for system in found.seeds[0].values
        if ", tuned" not in system
    }
    title = f"Effectiveness against bias: {found.collection}, {found.vectors}"
    axes = ("AP (higher is better)", "NFaiRR@10 (higher is better)")
    return plane(f"Plane {found.label}", title, points, *axes, ("none", "blind"))


def _notes(settings: Settings, found: list[Measured]) -> tuple[str, ...]:
    rm3 = settings.rm3
    notes = [
        f"Expansion: the {settings.k} words nearest by cosine to the mean of the query's unit vectors, as a query of"
        f" their own; all rankings are BM25 with RM3 ({rm3.fb_docs} documents, {rm3.fb_terms} terms, weight"
        f" {rm3.original_weight:g}), {settings.depth:,} documents a query.",
        f"λ: the best of 0, 0.01, … 1 on the other folds, {settings.folds} folds drawn by the seed; scores scaled to"
        f" 0 … 1 by query (our reading: RankLib's scaling is not stated). Rows without another name: by"
        f" {settings.objectives[0]}.",
        "Differences are biased − debiased throughout, as printed in Table 2: positive means that biased is better.",
        "Intervals and mixed p: queries and seeds together (queries nested in seeds where every seed has its own"
        " collection; else the larger error of the tests over queries and over seeds). t and Wilcoxon: the first seed.",
        "Departure: hard debiasing with the word lists that come with evenrank, unless `debiased_vectors` is given"
        " (the paper: the lists of Bolukbasi et al., and their debiased file).",
        "blind, random and neutral-first are controls; blind masks group words in queries and passages. NFaiRR is"
        " relative to the candidates of all runs.",
    ]
    notes += {
        "tiny": [
            "Departure at tiny: the built-in collection, another one for each seed, whose questions are sentences"
            " (the paper: 250 topic titles); its figures are not comparable with Robust04's."
        ],
        "real": [
            f"Departure at real: Grep-BiasIR's queries and the questions on SQuAD's articles of the part"
            f" {settings.squad_part}; vectors of MiniLM's input table (one-word entries, no phrases) and of word2vec"
            " trained on the collection itself (the paper's open question). Seeds redraw folds and local vectors only."
        ],
        "full": ["Departure at full: one drawing of the folds, whose seed the paper does not state."],
    }.get(settings.scale, [])
    for one in found:
        before, after, own = one.seeds[0].sizes
        if not own:
            notes.append(
                f"{one.label}: debiased vectors from a file of their own: {before:,} words before, {after:,} after;"
                " each expands with its own words, and what is compared of the vectors uses those in both."
            )
    return tuple(notes)
