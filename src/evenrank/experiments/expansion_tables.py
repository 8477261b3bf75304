"""The expansion experiment's tables: Tables 1 and 2, the figures of the text, tests, and what debiasing leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from evenrank.embeddings import EqualityCheck
from evenrank.io.types import Array
from evenrank.measures.nested import Mixed, mixed_test
from evenrank.measures.statistics import holm, paired_tests
from evenrank.retrieval.expansion import Expansion
from evenrank.retrieval.fusion import Tuned

from .expansion_critique import Critique, criticised
from .expansion_setup import ROBUST, Collection
from .paper_tables import CONTROLS, Row, Table, Value
from .published import fact, numbers, published

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
