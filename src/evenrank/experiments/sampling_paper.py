"""Bigdeli et al., ECIR 2022, bias-aware negative sampling: Tables 1 to 3, Figures 1 to 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import polars as pl

from evenrank.groups import Scoring, load_lexicon
from evenrank.io import Run, read_qrels, read_run, read_texts

from . import work
from .paper_page import ExperimentPage
from .paper_tables import Value
from .sampling_claims import claims
from .sampling_data import QUERY_SETS
from .sampling_figures import drawings
from .sampling_measures import FIRST, Figures, Lists, Values, per_query
from .sampling_setup import SOURCE, Experiment, Settings
from .sampling_tables import (
    ADVERSARIAL,
    AWARE,
    BLIND,
    DEV,
    ORIGINAL,
    Found,
    adversary_table,
    facts_table,
    public_table,
    shares_table,
    significance_table,
    table1,
    table2,
    table3,
)
from .sampling_untrained import untrained
from .work import LEXICON, Trained

OURS = "gender-en, word tokens"


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    kept = {k: v for k, v in asdict(settings).items() if k not in ("seeds", "development", "strengths", "given")}
    work.write_settings(folder, kept)
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    first, main = settings.seeds[0], next(iter(settings.rankers))
    scoring = experiment.scoring(first)
    measure = _Measure(experiment, scoring)
    found = measured(measure)
    without = untrained(experiment, measure.lists)
    found.counts = {name: part.count for name, part in experiment.of(first).parts.items()}
    tables = [table1(found, settings.share), table2(found, settings.share), table3(found)]
    if experiment.of(first).lexicon != LEXICON or scoring.tokens != "word":
        ours = measured(_Measure(experiment, Scoring(load_lexicon(LEXICON))))
        tables += [table2(ours, settings.share, OURS), table3(ours, OURS)]
    if found.shares:
        tables.append(shares_table(found))
    tables += [*without.tables(), adversary_table(found), significance_table(found), facts_table(found)]
    if found.public is not None:
        tables.append(public_table(found))
    claim = without.claim()
    return ExperimentPage(
        "sampling",
        "Bias-aware negative sampling",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", ", ".join(map(str, settings.seeds))),
            ("development seeds", ", ".join(map(str, settings.development)) or "none"),
            *((f"queries {name}", f"{found.counts[name]:,}") for name in ("train", DEV, *QUERY_SETS)),
        ),
        (*claims(found, main), *([] if claim is None else [claim])),
        tuple(tables),
        (*drawings(found, settings.shares, main), *without.drawings()),
        _notes(settings, scoring),
    )


def measured(measure: _Measure) -> Found:
    """Everything that the tables of trained rankers are about, with a lexicon and tokens."""
    experiment, found = measure.experiment, Found()
    settings, scoring = experiment.settings, measure.scoring
    first, main = settings.seeds[0], next(iter(settings.rankers))

    def figures() -> Figures:
        return Figures(same_queries=settings.planted is None)

    for name in settings.rankers:
        for part in (DEV, *QUERY_SETS):
            into = found.sets.setdefault(part, {}).setdefault(name, figures())
            for seed in settings.seeds:
                systems = {
                    ORIGINAL: experiment.ranker(seed, name, 0.0),
                    AWARE: experiment.ranker(seed, name, settings.share),
                    BLIND: experiment.blind(seed, name),
                }
                into.seeds.append(measure(seed, part, systems))
    for part in (DEV, "QS2") if settings.shares else ():
        systems = {f"{share:g}": experiment.ranker(first, main, share) for share in settings.shares}
        found.shares[part] = Figures([measure(first, part, systems)])
    for name in settings.small_rankers:
        systems = {
            ORIGINAL: experiment.ranker(first, name, 0.0),
            ADVERSARIAL: experiment.adversarial(first, name),
            AWARE: experiment.ranker(first, name, settings.share),
            BLIND: experiment.blind(first, name),
        }
        found.small[name] = Figures([measure(first, "QS2", systems)])
        if "leakage" in systems[ADVERSARIAL].result:
            leakage = systems[ADVERSARIAL].result["leakage"]
            found.leakage[name] = {when: accuracy(**leakage[when]) for when in ("before", "after")}
        queries = measure.lists(first, "QS2").queries
        found.fairer[name] = per_query(found.small[name], queries, AWARE, ADVERSARIAL, "nfairr_10")
    data = experiment.of(first)
    if data.runs:
        found.public = public_runs(data.runs, data.collection, data.parts["QS2"].qrels, scoring)
    return found


def accuracy(balanced_accuracy: float, ci95: tuple[float, float], queries: int, **_: object) -> Value:
    """The figure of an attack, as a training's result has it."""
    return Value(balanced_accuracy, queries, "queries", (ci95[0], ci95[1]))


class _Measure:
    """Measures re-ranked lists; query sets that are one are measured once."""

    def __init__(self, experiment: Experiment, scoring: Scoring) -> None:
        self.experiment, self.scoring = experiment, scoring
        self._lists: dict[str, Lists] = {}
        self._values: dict[tuple[str, ...], Values] = {}

    def lists(self, seed: int, part: str) -> Lists:
        data = self.experiment.of(seed)
        where = data.parts[part]
        if where.run not in self._lists:
            self._lists[where.run] = Lists.of(where, data.collection, self.scoring)
        return self._lists[where.run]

    def __call__(self, seed: int, part: str, systems: Mapping[str, Trained]) -> Values:
        key = (self.experiment.of(seed).parts[part].run, *(f"{n} {one.folder}" for n, one in systems.items()))
        if key not in self._values:
            runs = {name: self.experiment.rank(trained, seed, part) for name, trained in systems.items()}
            self._values[key] = self.lists(seed, part).values(runs)
        return self._values[key]


def public_runs(files: tuple[str, ...], collection: str, qrels: str, scoring: Scoring) -> Figures:
    """The authors' runs as they are, in file order; the background is their BM25 run."""
    runs = {Path(file).stem: read_run(file, Path(file).stem, order="file") for file in files}
    background = runs.pop(FIRST)
    documents = pl.concat([background.table["doc_id"], *(one.table["doc_id"] for one in runs.values())]).unique()
    lists = Lists.with_texts(background, read_qrels(qrels), read_texts(collection, documents), scoring)
    return Figures([lists.values({name: _known(one, background) for name, one in runs.items()})])


def _known(run: Run, background: Run) -> Run:
    """Without queries that the background lacks."""
    kept = run.table.join(background.queries.to_frame(), on="query_id", how="semi", maintain_order="left")
    return Run(run.name, kept, run.notes)


def _notes(settings: Settings, scoring: Scoring) -> tuple[str, ...]:
    notes = [
        f"original: all negatives at random (share 0); bias-aware: share {settings.share:g} of them the unjudged"
        f" candidates of largest |magnitude tf|. Negatives from BM25's first {settings.depth}, drawn while it searches;"
        f" its first {settings.listed} are re-ranked.",
        f"Bias measures: lexicon {scoring.lexicon.name}, {scoring.tokens} tokens."
        + ("" if settings.scale == "full" else " The published lexicon (gender-representative) needs the scale full."),
        "Claims over seeds have intervals of the mixed test; |ARaB| and relative changes "
        + (
            "t intervals over seeds."
            if settings.planted is not None
            else "too, of values whose mean is each seed's figure (for relative changes to first order)."
        )
        + " Their n is that of the seeds or of the queries, whichever the interval mostly comes from. With one seed:"
        " t and bootstrap intervals over queries.",
        "A claim is supported only if every trained ranker that it compares beats BM25 (not inferior on dev: the"
        " bias-aware one).",
        "blind, random and neutral-first are controls; random is the expectation over random orders.",
        "AdvBert continues from the original ranker on random negatives: 64 pairs a batch, constant rate, Adam with"
        " ε = 1e-5, clip 1.0, two epochs, the last checkpoint.",
    ]
    if settings.planted is not None:
        return (*notes, *_of_tiny(settings))
    return (*notes, *(_of_real(settings) if settings.options is not None else _of_full(settings)))


def _of_tiny(settings: Settings) -> tuple[str, ...]:
    return (
        f"Settings were chosen on the development seeds {', '.join(map(str, settings.development))}, whose collections,"
        " queries and judgements are their own.",
        "Scale tiny: the built-in collection, generated for each seed. In place of the cross-encoders a two-tower"
        f" ranker (a BERT of {settings.small_bert.layers} layer and {settings.small_bert.hidden} dimensions that"
        " starts from random weights, mean pooling). It is in the rows BERT-base and BERT-Tiny; the others need the"
        " full scale.",
        f"AdvBert's rate is {settings.debias['learning_rate']:g} instead of 3e-5, because the encoder starts from"
        " random weights, and the adversary's is ten times that. Tried on development seed 102, where a fresh attack on"
        " the original ranker has balanced accuracy .856: one rate for both of 3e-4 (.972 after), 1e-3 (.957) and 3e-3"
        " (.818, but MRR@10 on QS2 .785 → .429, below BM25's .470: no ranker is left to judge), and the one chosen,"
        f" best by the attack (.700, MRR@10 .754). Its ranking loss is {settings.debias_loss}, that of the original"
        " ranker.",
        "QS1: all queries of dev, which are neutral; QS2: the quarter of them whose BM25 lists lean most to one"
        " group (|RaB@10|).",
    )


def _of_real(settings: Settings) -> tuple[str, ...]:
    return (
        f"Scale real: in place of cross-encoders a two-tower ranker of the first {settings.ranker.get('layers')} layers"
        f" of a pre-trained encoder (rows BERT-base and BERT-Tiny), {settings.sizes['train']} training questions of"
        f" SQuAD, {settings.negatives} negatives each, share {settings.share:g}.",
        "No setting was chosen by a measure on development data: sizes, rates and epochs follow from the time they"
        " take. There were only partial looks before the run, at seed 100. Its data are not other data: it divides the"
        " same articles in another way, and its QS2 is all of Grep-BiasIR too. Two trainings of 30 steps were stopped"
        " early: that of a cross-encoder of two layers after 12 steps, at loss 1.61 = ln 5 (chance), which does not"
        " show that it never learns, and that of the two-tower ranker after 14, at loss 1.2.",
        "QS1 and dev: SQuAD questions without a group word, of articles that training has not seen; QS2: the"
        " queries of Grep-BiasIR. All seeds share the queries, and their intervals count both.",
        f"AdvBert's ranking loss is {settings.debias_loss}, that of the original ranker.",
        "BM25 is hard to beat on SQuAD, whose questions repeat the words of their passages: all six layers without"
        " training reach MRR@10 .75 where BM25 has .87 (60 questions, seed 100).",
    )


def _of_full(settings: Settings) -> tuple[str, ...]:
    training = settings.training
    return (
        f"Rankers are trained with {settings.loss}, rate {training['learning_rate']:g}, {training['epochs']:g} epoch,"
        f" batches of {training['batch']} lists of {settings.negatives + 1} passages. The published repository states"
        " none of these; it names a program of sentence-transformers (train_cross-encoder_scratch), whose loss, rate"
        " and epoch these are. That program has batches of 32 pairs of any queries, 5,000 steps of warm-up instead of"
        f" {training['warmup']:.0%} of all, and weight decay 0.01 instead of {training['weight_decay']:g}.",
        "Validation is on MS MARCO's dev/2 without the queries of QS1 and QS2, never on dev small, with the first"
        f" {settings.validated} documents (the paper does not say how it validates).",
        "AdvBert and Table 3 have one seed; the paper's random state is unknown.",
    )
