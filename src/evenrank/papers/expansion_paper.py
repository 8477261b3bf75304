"""Gerritse and de Vries: what hard-debiased word embeddings do to query expansion; Tables 1 and 2.

Beside them the critique that the paper answers to, of what debiasing leaves of the bias of word vectors: the most
biased words of both sides still form clusters and can be told apart (Gonen and Goldberg 2019); biased analogies say
little, and reversed they do not lead back (Nissim et al. 2020).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from evenrank.auditing import RELEVANCE_FIRST, AuditResult, audit
from evenrank.files import EvenrankError, Run, read_texts, scan_collection
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import Scoring, load_lexicon
from evenrank.measures.inference import MARGIN, Mixed, compare_parts, holm, mixed_test, paired_tests, proportion
from evenrank.mitigation.blind import blind
from evenrank.models.vectors import Vectors
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import Index
from evenrank.search.debias import EqualityCheck, bias_subspace, specific_words
from evenrank.search.embeddings_audit import Recovery, most_biased, recovery
from evenrank.search.expansion import Expansion, expand
from evenrank.search.fusion import Tuned, tune
from evenrank.search.word_sets import WordSets

from . import work
from .expansion_setup import LOCAL, ROBUST, SOURCE, Collection, Settings, collection_of, spaces, vectors_of, word_sets
from .paper_page import (
    CONTROLS,
    UNDECIDED,
    Claim,
    Drawing,
    ExperimentPage,
    Row,
    Table,
    Value,
    Verdict,
    above,
    below,
    every,
    fact,
    numbers,
    plane,
    published,
    within,
)
from .work import LEXICON

KMEANS, SVM = 0.925, 0.965
"""Of the debiased vectors, as published by the critique."""
COSINES = (0.57, 0.73)
"""Of the answers to a biased and to an appropriate analogy, as published."""
_BLOCK = 1 << 15
LEAST = 5
"""Words of a side without which nothing can be recovered."""
FROM, TO = "man", "woman"
Question = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to analogies a : b :: c : ?, one kind of them.

    ``cosine`` [n]: of each answer with the point b − a + c; ``robust`` [n]: whether the reversed analogy
    (c : answer :: a : ?) leads back to b.
    """

    words: tuple[str, ...]
    cosine: Array
    robust: Array


@dataclass(frozen=True, slots=True)
class Critique:
    """The checks before and after debiasing. ``common``: the number of words that both sets of vectors have.

    ``side``: the most biased words of each side, by the vectors before; recovery is None with too few.
    """

    common: int
    side: int
    recovered: tuple[Recovery | None, Recovery | None]
    biased: tuple[Answers, Answers]
    """Of occupations: man : programmer :: woman : ?"""
    appropriate: tuple[Answers, Answers]
    """Of words for one gender: man : king :: woman : ?"""


def criticise(before: Vectors, after: Vectors, sets: WordSets, *, count: int, train: int, seed: int) -> Critique:
    """Measures both sets of vectors on the words that they have in common."""
    before, after = common_words(before, after)
    direction = bias_subspace(before, sets.definitional).basis[0]
    neutral = ~specific_words(before.words, [*sets.specific, *(word for of in sets.equalize for word in of)])
    sides = most_biased(before, direction, neutral, count)
    known = frozenset(before.words)
    jobs = [(FROM, word, TO) for word in sets.occupations if word in known]
    pairs_of = [of for of in sets.equalize if len(of) == 2]
    pairs = [(FROM, male, TO) for female, male in pairs_of if {female, male} <= known and male not in (FROM, "he")]
    asked = known >= {FROM, TO}
    recovered = [
        recovery(vectors, sides, train=train, seed=seed) if len(sides[0]) >= LEAST else None
        for vectors in (before, after)
    ]
    biased = [answers(vectors, jobs if asked else []) for vectors in (before, after)]
    appropriate = [answers(vectors, pairs if asked else []) for vectors in (before, after)]
    return Critique(
        len(known),
        len(sides[0]),
        (recovered[0], recovered[1]),
        (biased[0], biased[1]),
        (appropriate[0], appropriate[1]),
    )


def common_words(before: Vectors, after: Vectors) -> tuple[Vectors, Vectors]:
    """Both sets of vectors with the words that both have, in the order of the first."""
    if before.words == after.words:
        return before, after
    row_of = {word: row for row, word in enumerate(after.words)}
    kept = before.keep(row_of.keys())
    return kept, Vectors(kept.words, after.matrix[[row_of[word] for word in kept.words]])


def answers(vectors: Vectors, questions: Sequence[Question]) -> Answers:
    """The word nearest by cosine to b − a + c for each question (a, b, c), without a, b and c; and the way back."""
    if not questions or len(vectors.words) < 4:
        return Answers((), np.empty(0), np.empty(0))
    row_of = {word: row for row, word in enumerate(vectors.words)}
    a, b, c = (np.array([row_of[question[i]] for question in questions]) for i in range(3))
    found, cosine = _nearest(vectors, a, b, c)
    back, _ = _nearest(vectors, c, found, a)
    return Answers(tuple(vectors.words[row] for row in found), cosine, (back == b).astype(np.float64))


def _nearest(vectors: Vectors, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The row nearest to b − a + c among the others, and its cosine, for rows a, b, c [n]."""
    matrix = vectors.matrix
    points = matrix[b] - matrix[a] + matrix[c]
    length = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(length > 0, length, 1)
    best = np.full(len(points), -np.inf)
    row = np.zeros(len(points), np.int64)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        length = np.linalg.norm(block, axis=1)
        cosine = points @ block.T / np.where(length > 0, length, 1)
        for given in (a, b, c):
            inside = np.flatnonzero((given >= start) & (given < start + len(block)))
            cosine[inside, given[inside] - start] = -np.inf
        first = cosine.argmax(axis=1)
        value = cosine[np.arange(len(points)), first]
        better = value > best
        best[better], row[better] = value[better], first[better] + start
    return row, best


def criticised(label: str, critique: Critique) -> Table:
    """Clusters, SVMs, analogies and reversed analogies before and after debiasing."""
    before, after = critique.recovered
    n = 2 * critique.side
    rows = [
        _recovery_row("k-means: share in their side's cluster", before, after, lambda one: (one.kmeans, n), KMEANS),
        _recovery_row("linear SVM: accuracy", before, after, lambda one: (one.linear, one.tested), None),
        _recovery_row("RBF SVM: accuracy", before, after, lambda one: (one.rbf, one.tested), SVM),
    ]
    kinds = (("biased", critique.biased, COSINES[0]), ("appropriate", critique.appropriate, COSINES[1]))
    for name, pair, cosine in kinds:
        printed = {"before": cosine}
        rows.append(Row((f"{name} analogies: cosine of the answer",), _analogies(pair, "cosine"), printed))
        rows.append(Row((f"{name} analogies: reversed, they lead back",), _analogies(pair, "robust")))
    notes = (
        f"{critique.side} most biased words a side by the vectors before, of {critique.common:,} words that both have"
        " [Gonen and Goldberg 2019]; first seed. Chance: .5, k-means slightly above.",
        "Published .925 and .965 are the critique's figures after debiasing: clusters, and an SVM.",
        "Analogies man : b :: woman : ?, of occupations (biased) and of words for one gender (appropriate); the cosine"
        " of the answer with b − man + woman. Published .57 and .73 are single analogies of the Google News vectors;"
        " that .73 is king to queen and .57 computer programmer to homemaker is our reading.",
    )
    headings = {"before": "before debiasing", "after": "after"}
    title = "What debiasing leaves of the vectors' bias"
    return Table(f"Critique {label}", title, ("check",), headings, tuple(rows), notes)


def _recovery_row(
    label: str,
    before: Recovery | None,
    after: Recovery | None,
    of: Callable[[Recovery], tuple[float, int]],
    printed: float | None,
) -> Row:
    both = (("before", before), ("after", after))
    measured = {key: Value(*of(one), "words") for key, one in both if one is not None}
    return Row((label,), measured, {} if printed is None else {"after": printed})


def _analogies(pair: tuple[Answers, Answers], figure: Literal["cosine", "robust"]) -> dict[str, Value]:
    found = {}
    for key, one in zip(("before", "after"), pair, strict=True):
        values = one.cosine if figure == "cosine" else one.robust
        over = Value.over_seeds(values.tolist())
        found[key] = Value(over.mean, over.n, "analogies", over.ci95)
    return found


REGULAR, BIASED, DEBIASED = "Regular", "Expansion biased", "Expansion debiased"
FUSED = {f"{REGULAR} + {name}": name for name in (BIASED, DEBIASED)}
FUSED_BIASED, FUSED_DEBIASED = FUSED
MEASURES = {"map": "AP", "p30": "P@30"}
BIAS = {"nfairr": "NFaiRR@10", "arab": "ARaB@10"}
SUBSTANTIAL = 0.01
LOST = 0.2
"""The share of the regular ranking's MAP beyond whose loss a row says so."""
MOST = 150
"""Rows of Table 2."""
Part = Literal["full", "changed"]


@dataclass(frozen=True, slots=True)
class OneSeed:
    """What one seed measured with one kind of vectors.

    ``values``: by ranking and measure, of ``queries`` [Q]; ``changed`` [Q]: those that the two vector sets expand
    differently. ``sizes``: words before and after debiasing, and whether they were debiased here.
    """

    collection: Collection
    queries: pl.Series
    values: Mapping[str, Mapping[str, Array]]
    changed: Array
    tuned: Mapping[tuple[str, str], Tuned]
    expansions: tuple[Expansion, Expansion]
    changes: pl.DataFrame
    check: EqualityCheck
    sizes: tuple[int, int, bool]
    critique: Critique | None

    def of(self, system: str, measure: str, part: Part = "full") -> Array:
        """A ranking's values [Q]; NaN for a query outside the part."""
        values = self.values[system][measure]
        return values if part == "full" else np.where(self.changed, values, np.nan)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one collection with one kind of vectors."""

    collection: str
    vectors: str
    seeds: tuple[OneSeed, ...]

    @property
    def label(self) -> str:
        """For names of tables."""
        return f"({self.collection}, {self.vectors})"

    def mixed(self, of: Callable[[OneSeed], Array]) -> Mixed:
        """The mean over queries and seeds of what ``of`` gives for each seed's queries, and its test against 0."""
        return mixed_test([of(seed) for seed in self.seeds], same_queries=not self.seeds[0].collection.nested)

    def difference(self, one: str, other: str, measure: str, part: Part = "full") -> Mixed:
        """The mean difference of two rankings, and its test."""
        return self.mixed(lambda seed: seed.of(one, measure, part) - seed.of(other, measure, part))

    def value(self, of: Callable[[OneSeed], Array], level: float = 0.95) -> Value:
        """The same as a figure; its n are queries."""
        mixed = self.mixed(of)
        return Value(mixed.mean, mixed.queries, "queries", mixed.interval(level))


def cell(found: Measured, system: str, measure: str, part: Part = "full") -> Value:
    """The mean of a ranking over queries and seeds."""
    return found.value(lambda seed: seed.of(system, measure, part))


def fused_name(label: str, objective: str, first: str) -> str:
    """The name of a fused ranking: that of the table for the first objective."""
    return label if objective == first else f"{label}, tuned for {objective}"


def tables_of(found: Measured) -> list[Table]:
    """All tables of one collection with one kind of vectors."""
    tables = [table1(found), table2(found), facts(found), tests(found)]
    critique = found.seeds[0].critique
    return tables if critique is None else [*tables, criticised(found.label, critique)]


def table1(found: Measured) -> Table:
    """Table 1: MAP and P30 of all queries and of those that changed."""
    columns = ["map_full", "p30_full", "map_changed", "p30_changed"]
    lines = published("expansion_table1")
    others = [name for name in found.seeds[0].values if ", tuned" in name]
    rows = [
        Row((name,), _figures(found, name), printed, warning=_warning(found, name))
        for name, printed in [
            *((line["model"], numbers(line, columns)) for line in lines),
            *((name, dict[str, float]()) for name in others),
        ]
    ]
    rows += [Row((name,), _figures(found, name), control=True) for name in CONTROLS]
    headings = {f"{key}_{part}": f"{name} {part}" for part in ("full", "changed") for key, name in MEASURES.items()}
    notes = ("full: all queries; changed: those that the two vector sets expand differently.",)
    return Table(f"Table 1 {found.label}", "Rankings", ("model",), headings | BIAS, tuple(rows), notes)


def _warning(found: Measured, name: str) -> str:
    """A sentence if a ranking's MAP is more than 20% below that of the regular one; otherwise empty."""
    value, regular = (cell(found, one, "AP").mean for one in (name, REGULAR))
    if value is None or regular is None or value >= (1 - LOST) * regular:
        return ""
    published_too = " In the paper, too, it is: .106 (biased) and .105 (debiased) against .290."
    return (
        f"{found.collection}, {found.vectors}: MAP {value:.3f}, {1 - value / regular:.0%} below the regular ranking"
        f" ({regular:.3f}).{published_too if name in (BIASED, DEBIASED) else ''}"
    )


def _figures(found: Measured, system: str) -> dict[str, Value]:
    parts: tuple[Part, ...] = ("full", "changed")
    figures = {f"{key}_{part}": cell(found, system, name, part) for part in parts for key, name in MEASURES.items()}
    return figures | {key: cell(found, system, name) for key, name in BIAS.items()}


def differences(seed: OneSeed) -> pl.DataFrame:
    """``query_id``, ``before``, ``after``, ``map``, ``p30``: biased − debiased of each changed query."""
    columns = {key: seed.of(BIASED, name) - seed.of(DEBIASED, name) for key, name in MEASURES.items()}
    table = pl.DataFrame({"query_id": seed.queries, **columns})
    return seed.changes.join(table, on="query_id", how="inner", maintain_order="left")


def substantial(table: pl.DataFrame) -> pl.DataFrame:
    """The changed queries whose AP or P30 differ by more than .01, the largest differences of AP first."""
    large = [pl.col(key).abs() > SUBSTANTIAL + 1e-9 for key in MEASURES]
    return table.filter(pl.any_horizontal(*large)).sort(
        pl.col("map").abs(), pl.col("p30").abs(), descending=True, maintain_order=True
    )


def table2(found: Measured) -> Table:
    """Table 2: the queries that changed substantially, with the words that only one of the expansions has."""
    seed = found.seeds[0]
    texts = dict(seed.collection.queries.select("query_id", "text").iter_rows())
    printed = {line["query"]: line for line in published("expansion_table2")}
    columns = ["map_difference", "p30_difference"]
    listed = substantial(differences(seed))
    rows = []
    for query, before, after, precision, p30 in listed.head(MOST).iter_rows():
        gone, come = ([w for w in a if w not in b] for a, b in ((before, after), (after, before)))
        line = printed.pop(texts[query].lower(), None) if found.collection == ROBUST else None
        measured = {"map_difference": Value(precision, 1, "queries"), "p30_difference": Value(p30, 1, "queries")}
        labels = (texts[query], "; ".join(gone), "; ".join(come))
        rows.append(Row(labels, measured, numbers(line, columns) if line else {}))
    if found.collection == ROBUST:
        for text, line in printed.items():
            rows.append(Row((text, line["biased_term"], line["debiased_term"]), {}, numbers(line, columns)))
    headings = {"map_difference": "Δ AP", "p30_difference": "Δ P@30"}
    note = (
        "Expansion alone, biased − debiased (positive: biased is better): every query of the first seed with |Δ AP| or"
        f" |Δ P@30| > {SUBSTANTIAL}"
    )
    rest = listed.height - MOST
    notes = (note + (f"; {rest} more are left out." if rest > 0 else "."),)
    title = "Queries whose results changed substantially"
    labels = ("query", "biased only", "debiased only")
    return Table(f"Table 2 {found.label}", title, labels, headings, tuple(rows), notes)


_QUERIES, _CHANGED = "queries", "queries_with_changed_expansion"
LARGE = {
    "p30": "substantial_p30_difference_over_0.01 (text; the printed table has 19)",
    "map": "substantial_map_difference_over_0.01 (text)",
}
"""The published numbers of queries that changed substantially, by measure."""


def shares(seed: OneSeed) -> dict[str, float]:
    """Numbers of queries of a seed: all, changed, and substantially changed by each measure."""
    table = differences(seed)
    large = {key: table.filter(pl.col(key).abs() > SUBSTANTIAL + 1e-9).height for key in MEASURES}
    return {"all": len(seed.queries), "changed": table.height, **large}


def facts(found: Measured) -> Table:
    """The figures that the paper's text states: .38 and .07 by P30 (18 of 48, 18 of 250), .33 and .06 by AP."""
    counts = [shares(seed) for seed in found.seeds]
    total, changed = fact("expansion", _QUERIES), fact("expansion", _CHANGED)

    def row(label: str, of: Callable[[dict[str, float]], float | None], printed: float) -> Row:
        return Row((label,), {"value": _over([of(one) for one in counts])}, {"value": printed})

    rows = [
        row("queries", lambda one: one["all"], total),
        row("queries whose expansion changed", lambda one: one["changed"], changed),
        row("their share", lambda one: one["changed"] / one["all"], fact("expansion", "share_of_queries_changed")),
    ]
    for key in ("p30", "map"):
        name, number = MEASURES[key], fact("expansion", LARGE[key])

        def count(one: dict[str, float], key: str = key) -> float:
            return one[key]

        def of_changed(one: dict[str, float], key: str = key) -> float | None:
            return one[key] / one["changed"] if one["changed"] else None

        def of_all(one: dict[str, float], key: str = key) -> float:
            return one[key] / one["all"]

        rows += [
            row(f"queries with |Δ {name}| > {SUBSTANTIAL}", count, number),
            row(f"of those that changed, with |Δ {name}| > {SUBSTANTIAL}", of_changed, round(number / changed, 2)),
            row(f"of all, with |Δ {name}| > {SUBSTANTIAL}", of_all, round(number / total, 2)),
        ]
    for label, objective in found.seeds[0].tuned:
        mean, deviation = weights(found, label, objective)
        rows.append(Row((f"λ of {label}, {objective}",), {"value": mean}, {"value": fact("expansion", "mean_lambda")}))
        rows.append(Row(("its deviation over folds",), {"value": deviation}, {"value": fact("expansion", "sd_lambda")}))
    before, after = found.seeds[0].expansions
    notes = (
        f"First seed: {before.missing.height} words of queries have no vector ({after.missing.height} after debiasing);"
        f" {len(before.unexpanded)} queries stay as they are.",
    )
    return Table(f"Text {found.label}", "Figures of the text", ("figure",), {"value": "value"}, tuple(rows), notes)


def weights(found: Measured, label: str, objective: str) -> tuple[Value, Value]:
    """Mean λ and its deviation over the folds; the intervals are over seeds, or over the folds of one."""
    of = [[fold.weights[0] for fold in seed.tuned[label, objective].folds] for seed in found.seeds]
    deviation = _over([float(np.std(one, ddof=1)) for one in of])
    if len(of) > 1:
        return Value.over_seeds([float(np.mean(one)) for one in of]), deviation
    over = Value.over_seeds(of[0])
    return Value(over.mean, over.n, "folds", over.ci95), deviation


def _over(values: list[float | None]) -> Value:
    """Over seeds; without an interval where they agree."""
    return Value(values[0], len(values)) if len(set(values)) == 1 else Value.over_seeds(values)


# --- tests -----------------------------------------------------------------------------------------------------------

COMPARISONS = {
    "alone: biased − debiased": (BIASED, DEBIASED),
    "fused: biased − debiased": (FUSED_BIASED, FUSED_DEBIASED),
    "fused biased − regular": (FUSED_BIASED, REGULAR),
    "fused debiased − regular": (FUSED_DEBIASED, REGULAR),
}


def compared(found: Measured) -> dict[str, tuple[str, str]]:
    """The pairs of rankings that are compared: those of Table 1, and with λ for the other objectives."""
    objectives = list(dict.fromkeys(objective for _, objective in found.seeds[0].tuned))
    pairs = {}
    for objective in objectives:
        for text, pair in COMPARISONS.items():
            names = [fused_name(one, objective, objectives[0]) if one in FUSED else one for one in pair]
            label = text if objective == objectives[0] else f"{text} ({objective})"
            if objective == objectives[0] or pair != (BIASED, DEBIASED):
                pairs[label] = (names[0], names[1])
    return pairs


def tests(found: Measured) -> Table:
    """Paired differences with their tests."""
    printed = {line["model"]: line for line in published("expansion_table1")}
    parts: tuple[Part, ...] = ("full", "changed")
    measured: list[dict[str, Value]] = []
    labels, prints, p_values = [], [], []
    for text, pair in compared(found).items():
        for part in parts:
            figures, p = _tested(found, *pair, part)
            measured.append(figures)
            p_values += p
            labels.append((text, "all" if part == "full" else part))
            columns = {key: f"{key}_{part}" for key in MEASURES}
            lines = [numbers(printed[one], list(columns.values())) for one in pair if one in printed]
            known = len(lines) == len(pair)
            prints.append({k: round(lines[0][c] - lines[1][c], 3) for k, c in columns.items()} if known else {})
    corrected = iter(holm(p_values))
    for figures in measured:
        for key in MEASURES:
            figures[f"{key}_holm"] = Value(next(corrected), figures[key].n, "queries")
    headings = {}
    for key, name in MEASURES.items():
        headings[key] = f"Δ {name}"
        headings |= {f"{key}_{test}": f"{name}: {text}" for test, text in TESTS.items()}
    rows = tuple(Row(*one) for one in zip(labels, measured, prints, strict=True))
    note = "Holm: over all mixed p of this table. Published differences are those of the rounded figures of Table 1."
    return Table(f"Tests {found.label}", "Paired tests", ("difference", "queries"), headings, rows, (note,))


def _tested(found: Measured, one: str, other: str, part: Part) -> tuple[dict[str, Value], list[float | None]]:
    """The differences of two rankings with their p-values, and the mixed ones among these."""
    first = found.seeds[0]
    figures: dict[str, Value] = {}
    p_values = []
    for key, name in MEASURES.items():
        mixed = found.difference(one, other, name, part)
        alone = paired_tests(first.of(one, name, part), first.of(other, name, part))
        figures[key] = Value(mixed.mean, mixed.queries, "queries", mixed.interval())
        figures[f"{key}_p"] = Value(mixed.p, mixed.queries, "queries")
        figures[f"{key}_t"] = Value(alone.t_p, alone.n, "queries")
        figures[f"{key}_w"] = Value(alone.wilcoxon_p, alone.n, "queries")
        p_values.append(mixed.p)
    return figures, p_values


TESTS = {"p": "mixed p", "holm": "Holm p", "t": "t p", "w": "Wilcoxon p"}


LEAST_RECOVERED = 0.75
"""Halfway between chance and certainty."""
MOST_CHANGED, MOST_SUBSTANTIAL = 0.5, 0.1
LAMBDA = (0.82, 0.98)
"""The published mean ± two of its deviations."""
MOST_REGULAR = 0.995
"""The largest mean λ with which the fused ranking says something of expansion."""


def claims(found: Measured) -> tuple[Claim, ...]:
    """The claims of the paper for one collection with one kind of vectors, and the lines it has to reach."""
    made = [_equal_distances(found), _signs(found), *_changes(found), *_effectiveness(found), _lambdas(found)]
    critique = found.seeds[0].critique
    if critique is not None:
        made += _critique(found, critique)
    return tuple(made)


def _claim(found: Measured, key: str, verdict: Verdict, detail: str) -> Claim:
    return Claim.of("expansion", key, verdict, f"{found.collection}, {found.vectors}: {detail}")


def _equal_distances(found: Measured) -> Claim:
    checks = [seed.check for seed in found.seeds]
    known = all(check.pairs and check.words for check in checks)
    largest = max(checks, key=lambda check: max(check.dot, check.distance))
    detail = (
        f"largest |w·a − w·b| {largest.dot:.1e}, |‖w − a‖ − ‖w − b‖| {largest.distance:.1e}, {largest.words:,} neutral"
        f" words, {largest.pairs} pairs, {counted(len(checks), 'seed')}"
    )
    return _claim(found, "equal_distances", Verdict(all(one.holds() for one in checks)) if known else UNDECIDED, detail)


def _signs(found: Measured) -> Claim:
    """Whether the rows of Table 2 sum to the difference of two rows of Table 1, here and as published."""
    seed = found.seeds[0]
    listed, parts, right = differences(seed), [], True
    lines = {line["model"]: line for line in published("expansion_table1")}
    shown = {row.labels[0]: row.published for row in table1(found).rows}
    for key, name in MEASURES.items():
        first, second = (seed.of(one, name, "changed") for one in (BIASED, DEBIASED))
        column = f"{key}_changed"
        printed = float(lines[BIASED][column]) - float(lines[DEBIASED][column])
        right &= abs(shown[BIASED][column] - shown[DEBIASED][column] - printed) < 1e-9
        if listed.height and seed.changed.any():
            mean, expected = float(listed[key].mean()), float(np.nanmean(first) - np.nanmean(second))  # type: ignore[arg-type]
            right &= abs(mean - expected) < 1e-9
            parts.append(f"{name}: mean of Table 2 {mean:+.4f}, biased − debiased of Table 1 {expected:+.4f}")
    detail = "; ".join(parts) + f"; {listed.height} changed queries of the first seed"
    return _claim(found, "signs", Verdict(right) if listed.height else UNDECIDED, detail)


# --- how much changes ------------------------------------------------------------------------------------------------


def _changes(found: Measured) -> list[Claim]:
    changed = found.value(lambda seed: seed.changed.astype(np.float64))
    large = {key: found.value(lambda seed, k=key: _large(seed, k)) for key in ("p30", "map")}  # type: ignore[misc]
    of_changed = {key: found.value(lambda seed, k=key: _of_changed(seed, k)) for key in large}  # type: ignore[misc]
    return [
        _claim(found, "few_change", within(changed, 0.0, MOST_CHANGED), f"{_share(changed)} of {_n(changed)}"),
        _claim(
            found,
            "few_substantial",
            every(*(below(one, MOST_SUBSTANTIAL) for one in large.values())),
            f"by P@30 {_share(large['p30'])}, by AP {_share(large['map'])} of {_n(large['map'])}",
        ),
        _claim(
            found,
            "substantial_of_changed",
            every(*(within(one, 0.0, 0.5) for one in of_changed.values())),
            f"by P@30 {_share(of_changed['p30'])}, by AP {_share(of_changed['map'])} of {_n(of_changed['map'])}",
        ),
    ]


def _large(seed: OneSeed, key: str) -> Array:
    """1 for a query that changed by more than .01, else 0."""
    name = MEASURES[key]
    large: Array = np.abs(seed.of(BIASED, name) - seed.of(DEBIASED, name)) > SUBSTANTIAL + 1e-9
    return large.astype(np.float64)


def _of_changed(seed: OneSeed, key: str) -> Array:
    return np.where(seed.changed, _large(seed, key), np.nan)


def _share(value: Value) -> str:
    return "undefined" if value.mean is None else value.signed(3).replace("+", "")


def _n(value: Value) -> str:
    return f"{value.n:,} {value.unit}"


# --- what it does to rankings ----------------------------------------------------------------------------------------


def _difference(found: Measured, one: str, other: str, part: Part = "full", level: float = 0.95) -> Value:
    mixed = found.difference(one, other, "AP", part)
    return Value(mixed.mean, mixed.queries, "queries", mixed.interval(level))


def _floor(found: Measured) -> Verdict:
    """That both kinds of ranking work: equal ones that find nothing are no evidence."""
    return every(*(above(_difference(found, name, "random")) for name in (REGULAR, BIASED)))


def _equivalent(found: Measured, one: str, other: str, base: str) -> tuple[Verdict, str]:
    """Whether two rankings are within 5% of the MAP of ``base``, where both kinds beat a random order."""
    mean = cell(found, base, "AP").mean
    if mean is None:
        return UNDECIDED, "no query"
    margin = MARGIN * mean
    difference = _difference(found, one, other, level=0.90)
    detail = f"ΔMAP {_difference(found, one, other).signed()}, margin ±{margin:.4f}, {_n(difference)}"
    return every(_floor(found), within(difference, -margin, margin)), detail


def _fused(found: Measured, verdict: Verdict) -> Verdict:
    """A verdict on fused rankings: where tuning leaves expansion without a weight, they are the regular ranking."""
    objective = next(iter(found.seeds[0].tuned))[1]
    means = [weights(found, name, objective)[0].mean for name in FUSED]
    return verdict if all(mean is not None and mean < MOST_REGULAR for mean in means) else UNDECIDED


def _effectiveness(found: Measured) -> list[Claim]:
    alone = {name: _difference(found, REGULAR, name) for name in (BIASED, DEBIASED)}
    gains = {name: _equivalent(found, name, REGULAR, REGULAR) for name in FUSED}
    changed = {name: _difference(found, name, REGULAR, "changed") for name in FUSED}
    better = _difference(found, BIASED, DEBIASED, "changed")
    fused = _difference(found, FUSED_BIASED, FUSED_DEBIASED, "changed")
    equal, detail = _equivalent(found, FUSED_BIASED, FUSED_DEBIASED, REGULAR)
    names = ("biased", "debiased")
    return [
        _claim(
            found,
            "alone_is_worse",
            every(*(above(one) for one in alone.values()), _floor(found)),
            "regular − expansion, ΔMAP "
            + ", ".join(f"{name} {one.signed()}" for name, one in zip(names, alone.values(), strict=True))
            + f", {_n(alone[BIASED])}",
        ),
        _claim(found, "alone_is_equal", *_equivalent(found, BIASED, DEBIASED, BIASED)),
        _claim(
            found,
            "alone_changed",
            above(better),
            f"biased − debiased on changed queries, ΔMAP {better.signed()}, {_n(better)}",
        ),
        _claim(found, "fused_is_equal", _fused(found, equal), detail),
        _claim(
            found,
            "fused_changed",
            _fused(found, above(fused)),
            f"biased − debiased on changed queries, ΔMAP {fused.signed()}, {_n(fused)}",
        ),
        _claim(
            found,
            "no_gain",
            _fused(found, every(*(verdict for verdict, _ in gains.values()))),
            "; ".join(f"{name}: {detail}" for name, (_, detail) in zip(names, gains.values(), strict=True)),
        ),
        _claim(
            found,
            "gain_on_changed",
            _fused(found, every(*(above(one) for one in changed.values()))),
            "fused − regular on changed queries, ΔMAP "
            + ", ".join(f"{name} {one.signed()}" for name, one in zip(names, changed.values(), strict=True))
            + f", {_n(changed[FUSED_BIASED])}",
        ),
    ]


def _lambdas(found: Measured) -> Claim:
    """Of the objective of Table 1."""
    objective = next(iter(found.seeds[0].tuned))[1]
    of = {name: weights(found, name, objective) for name in FUSED}
    detail = "; ".join(
        f"{name} {_share(mean)}, deviation over folds {_share(deviation).split(' ')[0]}, {_n(mean)}"
        for name, (mean, deviation) in zip(("biased", "debiased"), of.values(), strict=True)
    )
    return _claim(found, "lambda", every(*(within(mean, *LAMBDA) for mean, _ in of.values())), detail)


# --- what debiasing leaves -------------------------------------------------------------------------------------------


def _critique(found: Measured, critique: Critique) -> list[Claim]:
    after = critique.recovered[1]
    made = []
    if after is not None:
        n = 2 * critique.side
        shares = {"k-means": (after.kmeans, n), "RBF SVM": (after.rbf, after.tested)}
        values = {name: _proportion(*share) for name, share in shares.items()}
        detail = ", ".join(f"{name} {_share(one)}" for name, one in values.items())
        made.append(
            _claim(
                found,
                "bias_remains",
                every(*(above(one, LEAST_RECOVERED) for one in values.values())),
                f"after debiasing {detail}; {n} words, SVMs tested on {after.tested} (published {KMEANS}, {SVM})",
            )
        )
    pairs = {"cosine": "answer_cosine", "robust": "not_robust"}
    for figure, key in pairs.items():
        appropriate, biased = (getattr(one[0], figure) for one in (critique.appropriate, critique.biased))
        difference = _two_samples(appropriate, biased)
        detail = f"appropriate − biased {difference.signed(3)}, {len(appropriate)} and {len(biased)} analogies"
        made.append(_claim(found, key, above(difference), detail))
    return made


def _proportion(share: float, n: int) -> Value:
    """A share of n words with Wilson's interval."""
    return Value(share, n, "words", proportion(round(share * n), n))


def _two_samples(first: Array, second: Array) -> Value:
    """The difference of two means with Welch's interval."""
    found = compare_parts([first, second], [1.0, -1.0])
    return Value(found.mean, min(len(first), len(second)), "analogies", found.ci95)


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
        before = expand(collection.queries, vectors=both.before, k=settings.k)
        after = expand(collection.queries, vectors=both.after, k=settings.k)
        runs = {REGULAR: searcher.regular, "blind": searcher.blind}
        for label, expansion in ((BIASED, before), (DEBIASED, after)):
            runs[label] = searcher.search(expansion.expanded(), label)
        tuned: dict[tuple[str, str], Tuned] = {}
        for objective in settings.objectives:
            for label, expanded in FUSED.items():
                done = tune(
                    [runs[REGULAR], runs[expanded]],
                    qrels=collection.qrels,
                    measure=objective,
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
