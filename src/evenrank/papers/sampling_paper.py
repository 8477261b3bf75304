"""Bigdeli et al., ECIR 2022, bias-aware negative sampling: Tables 1 to 3, Figures 1 to 3.

Beside the shares of biased negatives and AdvBert stand the runs of the rankers with random negatives, reordered
without training.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.files import Run, read_qrels, read_run, read_texts
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_texts
from evenrank.measures import BACKGROUND_DEPTH, Evaluation, parse_measure
from evenrank.measures.inference import (
    MARGIN,
    SIGNIFICANT,
    Mixed,
    compare_sizes,
    estimate,
    holm,
    mixed_test,
    proportion,
)
from evenrank.results.page import COLOURS, specification
from evenrank.training.card import ruined

from . import work
from .corpora import Part
from .paper_page import (
    CONTROLS,
    MARKS,
    Claim,
    Drawing,
    ExperimentPage,
    Row,
    Table,
    Value,
    Verdict,
    above,
    bars,
    below,
    every,
    fact,
    numbers,
    plane,
    published,
)
from .sampling_setup import QUERY_SETS, SOURCE, Experiment, Settings
from .untrained import (
    Axis,
    Frontier,
    Line,
    Rows,
    against_table,
    compare,
    curves_of,
    drawn,
    frontier_rows,
    frontier_table,
    placed,
    rebalance_claim,
    reorderings,
)
from .work import LEXICON, Trained, development

MEASURES = {
    "mrr_10": "RR@10",
    "nfairr_10": "NFaiRR@10",
    "arab_tf_10": "ARaB@10",
    "arab_bool_10": "ARaB(magnitude='bool')@10",
}
HEADINGS = {"mrr_10": "MRR@10", "nfairr_10": "NFaiRR@10", "arab_tf_10": "ARaB tf@10", "arab_bool_10": "ARaB bool@10"}
BIAS = ("arab_tf_10", "arab_bool_10")
"""Signed: nearer 0 is better."""
FIRST, RANDOM, NEUTRAL = "BM25", "random", "neutral-first"
_NEAR_ZERO = 1e-6

Values = dict[str, dict[str, Array]]
"""[system][measure] → the value of each query [Q], NaN where it has none."""


@dataclass(frozen=True, slots=True)
class Lists:
    """What rankings of a query set are measured with: judgements, group table and background."""

    queries: pl.Series
    qrels: pl.DataFrame
    scores: GroupTable
    background: Run

    @classmethod
    def of(cls, part: Part, collection: str, scoring: Scoring) -> Lists:
        """``collection``: where the texts of the part's first-stage documents are."""
        run = read_run(part.run, name=FIRST)
        texts = read_texts(collection, run.table["doc_id"].unique())
        return cls.with_texts(run, read_qrels(part.qrels), texts, scoring)

    @classmethod
    def with_texts(cls, background: Run, qrels: pl.DataFrame, texts: pl.DataFrame, scoring: Scoring) -> Lists:
        """``texts``: ``doc_id`` and ``text`` of every document."""
        judged = qrels.join(background.queries.to_frame(), on="query_id", how="semi")
        return cls(
            background.queries, judged, GroupTable.of(score_texts(texts, scoring), scoring.describe()), background
        )

    def values(self, runs: Mapping[str, Run]) -> Values:
        """The measures of the first stage, of the runs, and of the two reference rankings of the same candidates."""
        back = Evaluation(self.background, self.scores, self.qrels)
        normaliser = back.as_background(self.background.name, BACKGROUND_DEPTH)
        back.background = normaliser
        found = {FIRST: self._values(back)}
        for name, run in runs.items():
            found[name] = self._values(Evaluation(run, self.scores, self.qrels, background=normaliser))
        found[RANDOM] = self._values(back, random=True)
        found[NEUTRAL] = self._values(back.neutral_first())
        return found

    def _values(self, evaluation: Evaluation, random: bool = False) -> dict[str, Array]:
        found = {}
        for key, name in MEASURES.items():
            measure = parse_measure(name)
            values = evaluation.random_values(measure) if random else evaluation.values(measure)
            places = IdIndex([evaluation.queries_of(measure)]).places(self.queries)
            found[key] = np.where(places >= 0, values[places], np.nan)
        return found


@dataclass
class Figures:
    """One ranker on one query set: the values of each seed."""

    seeds: list[Values] = field(default_factory=list)
    same_queries: bool = False
    """Every seed has the same queries."""

    def arrays(self, system: str, measure: str) -> list[Array]:
        """Of each seed, the value of each query."""
        return [values[system][measure] for values in self.seeds]

    def means(self, system: str, measure: str) -> list[float]:
        """Of each seed."""
        return [_mean(array) for array in self.arrays(system, measure)]

    def mean(self, system: str, measure: str) -> float:
        """Over the seeds."""
        return float(np.mean(self.means(system, measure)))

    def value(self, system: str, measure: str) -> Value:
        """The mean over seeds, whose interval also counts the queries where they are the same in every seed; for a
        single seed its mean over queries."""
        arrays = self.arrays(system, measure)
        if len(arrays) == 1:
            return _over_queries(arrays[0])
        return self._over(arrays) if self.same_queries else Value.over_seeds(self.means(system, measure))

    def values(self, system: str) -> dict[str, Value]:
        """All measures of a system; empty if it was not measured."""
        known = self.seeds and system in self.seeds[0]
        return {measure: self.value(system, measure) for measure in MEASURES} if known else {}

    def test(self, system: str, baseline: str, measure: str) -> Mixed:
        """Paired over queries nested in seeds; with one seed the paired t-test over queries. Signed values."""
        pairs = zip(self.arrays(system, measure), self.arrays(baseline, measure), strict=True)
        return mixed_test([a - b for a, b in pairs], same_queries=self.same_queries)

    def seed_tests(self, system: str, baseline: str, measure: str) -> list[float | None]:
        """p of the paired t-test over the queries of each seed."""
        pairs = zip(self.arrays(system, measure), self.arrays(baseline, measure), strict=True)
        return [mixed_test([a - b]).p for a, b in pairs]

    def difference(self, system: str, baseline: str, measure: str, level: float = 0.95) -> Value:
        """system − baseline of a signed measure, by :meth:`test`."""
        return Value.of_test(self.test(system, baseline, measure), level)

    def nearer(self, system: str, baseline: str, measure: str) -> Value:
        """|mean of system| − |mean of baseline|: over seeds, or for one seed over its queries.

        With the same queries in every seed: over both, of the differences of the values with their means' signs, whose
        mean is that figure.
        """
        if len(self.seeds) > 1:
            pairs = [self._pair(system, baseline, measure, seed) for seed in range(len(self.seeds))]
            if self.same_queries:
                return self._over([one[:, 0] - one[:, 1] for one in map(_positive, pairs)])
            means = zip(self.means(system, measure), self.means(baseline, measure), strict=True)
            return Value.over_seeds([abs(a) - abs(b) for a, b in means])
        pair = _known(self._pair(system, baseline, measure))
        return Value.of(compare_sizes([pair[:, 0]], [pair[:, 1]], [1.0]))

    def change(self, system: str, baseline: str, measure: str) -> Value:
        """100 · (system − baseline) / baseline, the relative change in percent; absolute values where nearer 0 is
        better. Undefined where the baseline is within 1e-6 of 0. Intervals as those of :meth:`nearer`."""
        absolute = measure in BIAS
        if len(self.seeds) > 1:
            pairs = [self._pair(system, baseline, measure, seed) for seed in range(len(self.seeds))]
            if self.same_queries:
                return self._over([_relative_values(_positive(one) if absolute else one) for one in pairs])
            means = zip(self.means(system, measure), self.means(baseline, measure), strict=True)
            return Value.over_seeds([relative(a, b, absolute) for a, b in means])
        pair = _known(self._pair(system, baseline, measure))
        return Value.of(estimate(_relative_values(_positive(pair) if absolute else pair)))

    def _over(self, arrays: Sequence[Array]) -> Value:
        """The mean of each seed's values of the same queries, by the mixed test."""
        return Value.of_test(mixed_test(arrays, same_queries=True))

    def _pair(self, system: str, baseline: str, measure: str, seed: int = 0) -> Array:
        """[queries, 2], NaN in both where one is."""
        pair: Array = np.stack([self.seeds[seed][name][measure] for name in (system, baseline)], axis=1)
        return np.where(np.isnan(pair).any(axis=1, keepdims=True), np.nan, pair)


def _known(pair: Array) -> Array:
    found: Array = pair[~np.isnan(pair).any(axis=1)]
    return found


def _positive(pair: Array) -> Array:
    """Each column with the sign that makes its mean positive."""
    signs: Array = np.array([-1.0 if _mean(column) < 0 else 1.0 for column in pair.T])
    return pair * signs


def _relative_values(pair: Array) -> Array:
    """Values [queries] whose mean is the relative change of the columns' means, and whose spread is that of the change
    to first order (the delta method); NaN where the change is undefined."""
    first, second = _mean(pair[:, 0]), _mean(pair[:, 1])
    change = relative(first, second)
    if change is None:
        return np.full(len(pair), np.nan)
    return change + 100 * (pair[:, 0] - pair[:, 1] * first / second) / second


def relative(value: float, baseline: float, absolute: bool = False) -> float | None:
    """The change from a baseline in percent, as the paper's columns; ``absolute``: of absolute values."""
    if absolute:
        value, baseline = abs(value), abs(baseline)
    return None if abs(baseline) <= _NEAR_ZERO else 100 * (value - baseline) / baseline


def improvement(value: float, baseline: float) -> float | None:
    """The paper's column beside NFaiRR: by how many percent it rises."""
    return relative(value, baseline)


def reduction(value: float, baseline: float) -> float | None:
    """The paper's column beside ARaB: by how many percent its absolute value falls."""
    found = relative(value, baseline, absolute=True)
    return None if found is None else -found


def minus(value: Value) -> Value:
    """A figure with the other sign."""
    ends = None if value.ci95 is None else (-value.ci95[1], -value.ci95[0])
    return Value(None if value.mean is None else -value.mean, value.n, value.unit, ends)


def margin(figures: Figures, baseline: str) -> float:
    """−5% of the baseline's MRR@10: what a ranker that is not inferior may lose."""
    return -MARGIN * figures.mean(baseline, "mrr_10")


def per_query(figures: Figures, queries: pl.Series, system: str, baseline: str, measure: str) -> pl.DataFrame:
    """``query_id`` and ``difference`` in the first seed, in descending order; undefined ones are left out."""
    first, second = (figures.arrays(name, measure)[0] for name in (system, baseline))
    table = pl.DataFrame({"query_id": queries, "difference": first - second})
    return table.filter(pl.col("difference").is_not_nan()).sort("difference", descending=True, maintain_order=True)


def share_above(differences: Sequence[float] | pl.Series) -> Value:
    """The share of queries whose difference is above 0."""
    above, n = sum(one > 0 for one in differences), len(differences)
    return Value(above / n if n else None, n, "queries", proportion(above, n))


def _mean(values: Array) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


def _over_queries(values: Array) -> Value:
    return Value.of(estimate(values))


ORIGINAL, AWARE, ADVERSARIAL, BLIND = "original", "bias-aware", "AdvBert", "blind"
DEV = "dev"
CHANGES: Mapping[str, tuple[str, str, Callable[[float, float], float | None]]] = {
    "nfairr_10": ("nfairr_improvement", "improvement (%)", improvement),
    "arab_tf_10": ("arab_tf_reduction", "reduction (%)", reduction),
    "arab_bool_10": ("arab_bool_reduction", "reduction (%)", reduction),
}
"""The paper's columns beside a measure: key, heading, and how they follow from its figure and the original's."""
RULE = (
    "p < .05: measures that differ from the original ranker's by the paired t-test per query, uncorrected as published;"
    " over several seeds by the mixed test (queries nested in seeds: with spread between the seeds it has as many"
    " degrees of freedom as seeds − 1); * also after Holm's correction over the table's tests. Tests are on signed"
    " values."
)
PUBLIC_RUNS = {
    "bert_L2": ("BERT-Tiny", ORIGINAL),
    "advbert_L2": ("BERT-Tiny", ADVERSARIAL),
    "bert_L4": ("BERT-Mini", ORIGINAL),
    "advbert_L4": ("BERT-Mini", ADVERSARIAL),
}
"""The authors' runs that stand in Table 3."""


@dataclass
class Found:
    """What was measured. Systems: ``original``, ``bias-aware``, ``AdvBert``, ``blind``, BM25 and the controls."""

    sets: dict[str, dict[str, Figures]] = field(default_factory=dict)
    """[query set][ranker]."""
    small: dict[str, Figures] = field(default_factory=dict)
    """Table 3: QS2, one seed."""
    shares: dict[str, Figures] = field(default_factory=dict)
    """Figure 1: [query set], a system for each share, one seed."""
    leakage: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    """[ranker]: the attack ``before`` and ``after`` AdvBert."""
    fairer: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Figure 2: [ranker] NFaiRR of bias-aware − AdvBert, query by query."""
    public: Figures | None = None
    """The authors' own runs."""
    counts: dict[str, int] = field(default_factory=dict)


Key = tuple[str, ...]
Entries = dict[Key, tuple[Figures, str]]
"""A table's tested rows, by their labels: figures and system."""
Tests = dict[tuple[Key, str], tuple[float | None, float | None]]
"""p and Holm's p of a row's measure."""


def tested(entries: Entries) -> Tests:
    """p and Holm's p against the original of every measure of the rows ``entries``: labels → figures and system."""
    p = {
        (key, measure): figures.test(system, ORIGINAL, measure).p
        for key, (figures, system) in entries.items()
        for measure in MEASURES
    }
    return dict(zip(p, zip(p.values(), holm(list(p.values())), strict=True), strict=True))


def marked(found: Tests, key: Key) -> str:
    """The measures of a row that differ from the original's, with * if also after Holm's correction."""
    marks = []
    for measure, heading in HEADINGS.items():
        p, after = found.get((key, measure), (None, None))
        if p is not None and p < SIGNIFICANT:
            marks.append(heading.removesuffix("@10") + ("*" if after is not None and after < SIGNIFICANT else ""))
    return ", ".join(marks) or "–"


def warned(figures: Figures, system: str) -> str:
    """Whether a trained ranker is destroyed: below BM25, or far below the original, on this query set."""
    base = figures.mean(ORIGINAL, "mrr_10") if system != ORIGINAL and ORIGINAL in figures.seeds[0] else None
    return ruined(figures.mean(system, "mrr_10"), figures.mean(FIRST, "mrr_10"), base, measure=HEADINGS["mrr_10"])


def measured_row(figures: Figures, system: str) -> dict[str, Value]:
    """The figures of a row with the paper's relative columns."""
    values = figures.values(system)
    if values and system not in (ORIGINAL, FIRST, *CONTROLS):
        for measure, (column, _, _) in CHANGES.items():
            change = figures.change(system, ORIGINAL, measure)
            values[column] = minus(change) if measure in BIAS else change
    return values


def published_row(line: Mapping[str, str], original: Mapping[str, str]) -> dict[str, float]:
    """The printed figures of a row with the relative columns that follow from them."""
    values = numbers(dict(line), list(MEASURES))
    if line is not original:
        for measure, (column, _, relative_to) in CHANGES.items():
            change = relative_to(float(line[measure]), float(original[measure]))
            if change is not None:
                values[column] = change
    return values


def _headings() -> dict[str, str]:
    headings = {}
    for measure, heading in HEADINGS.items():
        headings[measure] = heading
        if measure in CHANGES:
            column, relative_heading, _ = CHANGES[measure]
            headings[column] = relative_heading
    return headings


def _row(labels: Key, figures: Figures | None, system: str, marks: str, printed: Mapping[str, float]) -> Row:
    if figures is None or not figures.seeds or system not in figures.seeds[0]:
        return Row((*labels, "–"), {}, printed)
    return Row((*labels, marks), measured_row(figures, system), printed, warning=warned(figures, system))


def _controls(labels: Key, figures: Figures) -> list[Row]:
    return [
        Row(
            (*labels, name, "–"),
            measured_row(figures, name),
            control=True,
            warning=warned(figures, name) if name == BLIND else "",
        )
        for name in (FIRST, *CONTROLS)
    ]


def table1(found: Found, share: float) -> Table:
    """MRR@10 on dev."""
    columns = ["original_mrr_10", "bias_aware_mrr_10", "change_percent"]
    entries: Entries = {(name,): (figures, AWARE) for name, figures in found.sets.get(DEV, {}).items()}
    p = {key: figures.test(system, ORIGINAL, "mrr_10").p for key, (figures, system) in entries.items()}
    after = dict(zip(p, holm(list(p.values())), strict=True))
    tests: Tests = {(key, "mrr_10"): (p[key], after[key]) for key in p}
    rows = []
    for line in published("sampling_table1"):
        key = (line["ranker"],)
        printed = numbers(line, columns[:2])
        change = relative(printed[columns[1]], printed[columns[0]])
        if change is not None:
            printed["change_percent"] = change
        if key not in entries:
            rows.append(Row((*key, "–"), {}, printed))
            continue
        figures = entries[key][0]
        measured = {
            "original_mrr_10": figures.value(ORIGINAL, "mrr_10"),
            "bias_aware_mrr_10": figures.value(AWARE, "mrr_10"),
            "change_percent": figures.change(AWARE, ORIGINAL, "mrr_10"),
        }
        warning = " ".join(dict.fromkeys(filter(None, (warned(figures, ORIGINAL), warned(figures, AWARE)))))
        rows.append(Row((*key, marked(tests, key)), measured, printed, warning=warning))
    for figures in list(found.sets.get(DEV, {}).values())[:1]:
        columns_of = {name: {"original_mrr_10": figures.value(name, "mrr_10")} for name in (FIRST, *CONTROLS)}
        rows += [Row((name, "–"), values, control=True) for name, values in columns_of.items()]
    headings = dict(zip(columns, ("original", "bias-aware", "change (%)"), strict=True))
    notes = (RULE, "Controls have random negatives only; random and neutral-first order the same candidates.")
    return Table("Table 1", f"MRR@10 on dev, share {share:g}", ("ranker", MARKS), headings, tuple(rows), notes, 4)


def table2(found: Found, share: float, words: str = "") -> Table:
    """QS1 and QS2; ``words``: which lexicon and tokens the bias measures have, if not the published ones."""
    sets = ("QS1", "QS2")
    entries: Entries = {(part, name): (one, AWARE) for part in sets for name, one in found.sets[part].items()}
    tests = tested(entries)
    rows = []
    originals: dict[Key, dict[str, str]] = {}
    for line in published("sampling_table2"):
        key = (line["query_set"], line["ranker"])
        original = originals.setdefault(key, line)
        figures, training = found.sets[key[0]].get(key[1]), line["training"]
        marks = marked(tests, key) if training == AWARE else "–"
        rows.append(_row((*key, training), figures, training, marks, {} if words else published_row(line, original)))
    for part in sets:
        for name, figures in found.sets[part].items():
            rows += _controls((part, name), figures)
    title = f"Utility and bias on neutral queries, share {share:g}" + (f" ({words})" if words else "")
    notes = (
        RULE,
        "NFaiRR is relative to BM25's candidates; ARaB is signed, nearer 0 is better. Improvement and reduction, in"
        " percent of the original ranker's figure, are of absolute values; the published ones follow from the figures.",
    )
    labels = ("queries", "ranker", "training", MARKS)
    return Table("Table 2" + _suffix(words), title, labels, _headings(), tuple(rows), notes, 4)


def table3(found: Found, words: str = "") -> Table:
    """AdvBert on QS2."""
    trainings = (ADVERSARIAL, AWARE)
    entries: Entries = {
        (name, system): (figures, system) for name, figures in found.small.items() for system in trainings
    }
    tests = tested(entries)
    rows = []
    originals: dict[str, dict[str, str]] = {}
    for line in published("sampling_table3"):
        key = (line["ranker"], line["training"])
        original = originals.setdefault(key[0], line)
        printed = {} if words else published_row(line, original)
        rows.append(_row(key, found.small.get(key[0]), key[1], marked(tests, key), printed))
    for name, figures in found.small.items():
        rows += _controls((name,), figures)
    title = "Against AdvBert, QS2" + (f" ({words})" if words else "")
    notes = (RULE, "One seed; intervals over queries. Improvement and reduction are against the original ranker.")
    labels = ("ranker", "training", MARKS)
    return Table("Table 3" + _suffix(words), title, labels, _headings(), tuple(rows), notes, 4)


def _suffix(words: str) -> str:
    return " ours" if words else ""


def significance_table(found: Found) -> Table:
    """Every test against the original ranker: within each seed, over the seeds, and corrected."""
    entries: Entries = {}
    for part, rankers in found.sets.items():
        entries |= {(part, name, AWARE): (figures, AWARE) for name, figures in rankers.items()}
    for name, figures in found.small.items():
        entries[("QS2, Table 3", name, ADVERSARIAL)] = (figures, ADVERSARIAL)
    tests = tested(entries)
    rows = []
    for key, (figures, system) in entries.items():
        for measure, heading in HEADINGS.items():
            p, after = tests[key, measure]
            mixed = figures.test(system, ORIGINAL, measure)
            within = figures.seed_tests(system, ORIGINAL, measure)
            measured = {
                "difference": figures.difference(system, ORIGINAL, measure),
                "within": Value(float(sum(one is not None and one < SIGNIFICANT for one in within)), 1, "count"),
                "p": Value(p, mixed.queries, "queries"),
                "holm": Value(after, mixed.queries, "queries"),
            }
            rows.append(Row((*key, heading), measured))
    headings = {"difference": "difference", "within": "seeds with p < .05", "p": "p", "holm": "Holm p"}
    labels = ("queries", "ranker", "training", "measure")
    return Table("Tests", "Paired tests against the original ranker", labels, headings, tuple(rows), (RULE,), 4)


def shares_table(found: Found) -> Table:
    """Figure 1 as a table: each share against none."""
    rows = []
    for part, figures in found.shares.items():
        names = sorted(figures.seeds[0].keys() & _numbers(figures), key=float)
        p = {(n, m): figures.test(n, names[0], m).p for n in names[1:] for m in MEASURES}
        after = dict(zip(p, holm(list(p.values())), strict=True))
        for name in names:
            tests: Tests = {((name,), m): (p.get((name, m)), after.get((name, m))) for m in MEASURES}
            rows.append(Row((part, name, marked(tests, (name,))), figures.values(name)))
    notes = ("One seed. p < .05: measures that differ from share 0's by the paired t-test per query; * after Holm.",)
    return Table("Figure 1", "Over the share λ", ("queries", "λ", MARKS), dict(HEADINGS), tuple(rows), notes, 4)


def _numbers(figures: Figures) -> set[str]:
    return {name for name in figures.seeds[0] if name.replace(".", "", 1).isdigit()}


def largest_share(figures: Figures) -> float | None:
    """The largest share before the first whose MRR is significantly below share 0's (paired t-test)."""
    names = sorted(_numbers(figures), key=float)
    if not names or float(names[0]) != 0:
        return None
    largest = 0.0
    for name in names[1:]:
        found = figures.test(name, names[0], "mrr_10")
        if found.p is not None and found.p < SIGNIFICANT and (found.mean or 0.0) < 0:
            break
        largest = float(name)
    return largest


def adversary_table(found: Found) -> Table:
    """The attack on the ranker before and after AdvBert's training."""
    rows = []
    for name, leakage in found.leakage.items():
        for when, label in (("before", ORIGINAL), ("after", ADVERSARIAL)):
            one = leakage[when]
            warning = warned(found.small[name], label) if name in found.small else ""
            rows.append(Row((name, label), {"accuracy": one}, warning=warning))
    notes = (
        "Balanced accuracy of a fresh adversary that tells from the frozen ranker's vectors whether a pair is gendered;"
        " ½ is chance. Half of the validation queries train it, the others test it; intervals over queries.",
    )
    columns = {"accuracy": "balanced accuracy"}
    return Table("Adversary", "What an attack still finds", ("ranker", "training"), columns, tuple(rows), notes)


def facts_table(found: Found) -> Table:
    """Figures of the paper's text."""
    rows = []
    for size in ("tiny", "mini"):
        table = found.fairer.get(f"BERT-{size.title()}")
        measured = {} if table is None else {"value": share_above(table["difference"])}
        printed = {"value": fact("sampling", f"share_of_queries_fairer_than_AdvBert_{size}")}
        rows.append(Row((f"share of queries fairer than AdvBert, BERT-{size.title()}",), measured, printed))
    for name in ("QS1", "QS2"):
        printed = {"value": fact("sampling", f"queries_{name}")}
        rows.append(Row((f"queries {name}",), {"value": Value(float(found.counts[name]), 1, "count")}, printed))
    printed = {"value": fact("sampling", "largest_lambda_without_significant_mrr_drop")}
    largest = {"value": Value(largest_share(found.shares[DEV]), 1, "seeds")} if DEV in found.shares else {}
    rows.append(Row(("largest share without a significant drop of MRR",), largest, printed))
    return Table("Text", "Figures of the text", ("figure",), {"value": "value"}, tuple(rows))


def public_table(found: Found) -> Table:
    """The authors' own runs for QS2 as they are, beside the paper's rows."""
    rows = []
    lines = {(line["ranker"], line["training"]): line for line in published("sampling_table3")}
    assert found.public is not None
    for name in _runs(found.public):
        key = PUBLIC_RUNS.get(name)
        printed = numbers(lines[key], list(MEASURES)) if key else {}
        rows.append(Row((name, " ".join(key) if key else "–"), found.public.values(name), printed))
    notes = ("Runs in file order, as published; the background of NFaiRR is the authors' BM25 run.",)
    headings = dict(HEADINGS)
    return Table("Public runs", "The authors' runs for QS2", ("run", "row of Table 3"), headings, tuple(rows), notes, 4)


def _runs(figures: Figures) -> Iterable[str]:
    return [name for name in figures.seeds[0] if name not in CONTROLS]


PAPER, BASELINE = "sampling", "advbert"
_ROUNDING = 0.0005
_FLOOR = "a ranker that beats BM25"


def claims(found: Found, main: str) -> tuple[Claim, ...]:
    """Every claim that was measured; ``main``: the ranker of evenrank's own lines."""
    dev, fair, sensitive = (found.sets.get(part, {}) for part in (DEV, "QS1", "QS2"))
    own = [
        _claim("nfairr", fair, _rises, only=main),
        _claim("arab_tf", fair, lambda one: _falls(one, "arab_tf_10"), only=main),
        _claim("arab_bool", fair, lambda one: _falls(one, "arab_bool_10"), only=main),
        _claim("mrr", dev, _kept, only=main),
        reproduced(found),
    ]
    paper = [
        _claim("dev_mrr", dev, lambda one: _no_drop(one, AWARE, ORIGINAL)),
        _claim("qs1_nfairr", fair, _rises),
        _claim("qs1_arab", fair, *(_fall(measure) for measure in BIAS)),
        _claim("qs1_mrr", fair, _costs),
        _claim("qs2_nfairr", sensitive, _rises),
        _claim("qs2_arab", sensitive, *(_fall(measure) for measure in BIAS)),
    ]
    return tuple(
        one
        for one in (*own, *paper, *_against_advbert(found), *_over_shares(found), *_of_advbert(found))
        if one is not None
    )


Judged = tuple[Verdict, str]
Judge = Callable[[Figures], Judged]


def _claim(
    key: str, rankers: Mapping[str, Figures], *judges: Judge, only: str | None = None, paper: str = PAPER
) -> Claim | None:
    """A claim that holds if it holds for every ranker; None if none was measured."""
    shown = {name: figures for name, figures in rankers.items() if only in (None, name)}
    if not shown:
        return None
    found = [(name, judge(figures)) for name, figures in shown.items() for judge in judges]
    detail = "; ".join(f"{name} {text}" for name, (_, text) in found)
    return Claim.of(paper, key, every(*(verdict for _, (verdict, _) in found)), detail)


def _said(value: Value) -> str:
    return f"{value.signed()}, {value.n} {value.unit}"


def _floored(verdict: Verdict, figures: Figures | None, *systems: str) -> Verdict:
    """Support needs rankers above BM25; one below it decides nothing, for a claim or against it."""
    beats = [] if figures is None else [above(figures.difference(one, FIRST, "mrr_10")) for one in systems]
    if figures is None or any(one.supported is False for one in beats):
        return Verdict(None, _FLOOR)
    return Verdict(None, _FLOOR) if verdict.supported and not every(*beats).supported else verdict


def _rises(figures: Figures) -> Judged:
    value = figures.difference(AWARE, ORIGINAL, "nfairr_10")
    return _floored(above(value), figures, AWARE, ORIGINAL), _said(value)


def _falls(figures: Figures, measure: str) -> Judged:
    value = figures.nearer(AWARE, ORIGINAL, measure)
    return _floored(below(value), figures, AWARE, ORIGINAL), f"{measure.split('_')[1]} {_said(value)}"


def _fall(measure: str) -> Judge:
    return lambda figures: _falls(figures, measure)


def _costs(figures: Figures) -> Judged:
    value = figures.difference(AWARE, ORIGINAL, "mrr_10")
    return _floored(below(value), figures, AWARE, ORIGINAL), _said(value)


def _kept(figures: Figures) -> Judged:
    """Not inferior: the one-sided 95% interval ends above −5% of the original's."""
    value = figures.difference(AWARE, ORIGINAL, "mrr_10", level=0.90)
    limit = margin(figures, ORIGINAL)
    text = f"{_said(value)}, limit {limit:+.4f}, 90% interval"
    return every(above(value, limit), above(figures.difference(AWARE, FIRST, "mrr_10"))), text


def _no_drop(figures: Figures, system: str, baseline: str) -> Judged:
    """ "No significant drop": refuted by one; shown only by not being inferior, since a missing one shows nothing."""
    test = figures.test(system, baseline, "mrr_10")
    value = figures.difference(system, baseline, "mrr_10", level=0.90)
    text = f"{_said(value)}, p {'unknown' if test.p is None else f'{test.p:.3f}'}"
    if test.p is not None and test.p < SIGNIFICANT and (test.mean or 0.0) < 0:
        return Verdict(False), text
    shown = above(value, margin(figures, baseline))
    return _floored(Verdict(None, shown.needs) if shown.supported is False else shown, figures, system, baseline), text


def attacked(found: Found) -> Claim | None:
    """Whether a fresh attack finds less after AdvBert's training than before: a ranker that finds nothing either hides
    the group from any attack."""
    if not found.leakage:
        return None
    verdicts, said = [], []
    for name, leakage in found.leakage.items():
        value = leaked(leakage["before"], leakage["after"])
        verdicts.append(_floored(below(value), found.small.get(name), ADVERSARIAL, ORIGINAL))
        said.append(f"{name} {_said(value)}")
    return Claim.of(BASELINE, "adversary", every(*verdicts), "; ".join(said))


def leaked(before: Value, after: Value) -> Value:
    """after − before, with the interval of two independent figures: both attacks are on the same pairs, so it is
    rather too wide."""
    if before.mean is None or after.mean is None or before.ci95 is None or after.ci95 is None:
        return Value(None)
    half = math.hypot(*((one.ci95[1] - one.ci95[0]) / 2 for one in (before, after) if one.ci95))
    difference = after.mean - before.mean
    return Value(difference, before.n, "queries", (difference - half, difference + half))


def reproduced(found: Found) -> Claim | None:
    """Whether the authors' runs give the printed rows."""
    if found.public is None:
        return None
    lines = {(line["ranker"], line["training"]): line for line in published("sampling_table3")}
    gaps = [
        abs(found.public.mean(name, measure) - float(lines[key][measure]))
        for name, key in PUBLIC_RUNS.items()
        if name in found.public.seeds[0]
        for measure in MEASURES
    ]
    if not gaps:
        return None
    near = sum(gap <= _ROUNDING for gap in gaps)
    detail = f"{near} of {len(gaps)} figures, the largest gap {max(gaps):.4f}"
    return Claim.of(PAPER, "public_rows", Verdict(near == len(gaps)), detail)


def _nearer(measure: str, first: str, second: str) -> Judge:
    """Whether |ARaB| of ``first`` is below that of ``second``."""

    def judge(figures: Figures) -> Judged:
        value = figures.nearer(first, second, measure)
        return _floored(below(value), figures, first, second), f"{measure.split('_')[1]} {_said(value)}"

    return judge


def _higher(measure: str, first: str, second: str) -> Judge:
    """Whether a measure of ``first`` is above that of ``second``."""

    def judge(figures: Figures) -> Judged:
        value = figures.difference(first, second, measure)
        return _floored(above(value), figures, first, second), _said(value)

    return judge


def _of_advbert(found: Found) -> list[Claim | None]:
    """Of the baseline's own paper."""
    small = _with_advbert(found)

    def costs(figures: Figures) -> Judged:
        value = figures.difference(ADVERSARIAL, ORIGINAL, "mrr_10")
        return _floored(below(value), figures, ADVERSARIAL, ORIGINAL), _said(value)

    nearer = [_nearer(measure, ADVERSARIAL, ORIGINAL) for measure in BIAS]
    return [
        attacked(found),
        _claim("nfairr", small, _higher("nfairr_10", ADVERSARIAL, ORIGINAL), paper=BASELINE),
        _claim("arab", small, *nearer, paper=BASELINE),
        _claim("mrr", small, costs, paper=BASELINE),
    ]


def _with_advbert(found: Found) -> dict[str, Figures]:
    return {name: figures for name, figures in found.small.items() if ADVERSARIAL in figures.seeds[0]}


def _against_advbert(found: Found) -> list[Claim | None]:
    small = _with_advbert(found)
    aware = [_nearer(measure, AWARE, ADVERSARIAL) for measure in BIAS]
    adversarial = [_nearer(measure, ADVERSARIAL, AWARE) for measure in BIAS]
    made = [
        _claim("adv_nfairr", small, _higher("nfairr_10", AWARE, ADVERSARIAL)),
        _claim("adv_mrr", small, _higher("mrr_10", AWARE, ADVERSARIAL)),
        _claim("adv_arab_tiny", small, *aware, only="BERT-Tiny"),
        _claim("adv_arab_mini", small, *adversarial, only="BERT-Mini"),
    ]
    for key, name in (("fairer_tiny", "BERT-Tiny"), ("fairer_mini", "BERT-Mini")):
        if name in found.fairer and name in small:
            value = share_above(found.fairer[name]["difference"])
            detail = f"{_percent(value)} of {value.n} queries"
            verdict = _floored(above(value, 0.5), small[name], AWARE, ADVERSARIAL)
            made.append(Claim.of(PAPER, key, verdict, detail))
    return made


def _percent(value: Value) -> str:
    return "undefined" if value.mean is None else f"{value.mean:.0%}"


def _over_shares(found: Found) -> list[Claim | None]:
    """Fig. 1: NFaiRR on QS2, MRR on dev; one seed."""
    if DEV not in found.shares or "QS2" not in found.shares:
        return []
    dev, sensitive = found.shares[DEV], found.shares["QS2"]
    shares = sorted((name for name in dev.seeds[0] if name.replace(".", "", 1).isdigit()), key=float)
    zero, others = shares[0], shares[1:]
    if float(zero) != 0 or not others:
        return []
    gains = {name: sensitive.difference(name, zero, "nfairr_10") for name in others}
    rise = every(*(_floored(above(value), sensitive, name, zero) for name, value in gains.items()))
    made: list[Claim | None] = [
        Claim.of(PAPER, "shares_nfairr", rise, "; ".join(f"λ {n} {v.signed()}" for n, v in gains.items()))
    ]
    low = [(name, _no_drop(dev, name, zero)) for name in others if float(name) <= 0.6]
    if low:
        detail = "; ".join(f"λ {name} {text}" for name, (_, text) in low)
        made.append(Claim.of(PAPER, "shares_mrr", every(*(verdict for _, (verdict, _) in low)), detail))
    high = {name: dev.difference(name, zero, "mrr_10") for name in others if float(name) > 0.6}
    if high:
        verdict = every(*(_floored(below(value), dev, name, zero) for name, value in high.items()))
        made.append(Claim.of(PAPER, "shares_drop", verdict, "; ".join(f"λ {n} {v.signed()}" for n, v in high.items())))
    return made


def drawings(found: Found, shares: Sequence[float], main: str) -> tuple[Drawing, ...]:
    """Figures 1 to 3, and a plane for each query set."""
    made = [_drawn_over_shares(part, figures, shares, main) for part, figures in found.shares.items()]
    for name, table in found.fairer.items():
        title = f"NFaiRR@10 of bias-aware − AdvBert by query, {name}"
        fairer = share_above(table["difference"])
        hint = f"QS2, one seed: {fairer.mean or 0:.0%} of {table.height} queries are fairer."
        signs = ("bias-aware is more neutral", "AdvBert is more neutral")
        made.append(bars(f"Figure 2 ({name})", title, table, "difference of NFaiRR@10", hint, signs=signs))
    made.append(_plane("Figure 3", "QS2, all small rankers, one seed", found.small))
    made += [_plane(f"Plane {part}", f"{part}, all rankers", found.sets[part]) for part in QUERY_SETS]
    return tuple(made)


def _drawn_over_shares(part: str, figures: Figures, shares: Sequence[float], main: str) -> Drawing:
    """Figure 1: a panel for each measure; filled points differ from share 0."""
    import altair as alt

    rows = []
    for share in shares:
        for key, heading in HEADINGS.items():
            value = figures.value(f"{share:g}", key)
            low, high = value.ci95 or (value.mean, value.mean)
            p = figures.test(f"{share:g}", f"{shares[0]:g}", key).p if share != shares[0] else None
            differs = "p < .05" if p is not None and p < SIGNIFICANT else "not significant"
            point = {"x": share, "measure": heading, "value": value.mean, "low": low, "high": high}
            rows.append({**point, "differs": differs})
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title="share λ of biased negatives")
    up = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    fill = alt.Color(
        "differs:N",
        title="against λ = 0",
        scale=alt.Scale(domain=["p < .05", "not significant"], range=[COLOURS[0], "#8a8f98"]),
    )
    shape = alt.Shape(
        "differs:N",
        title="against λ = 0",
        scale=alt.Scale(domain=["p < .05", "not significant"], range=["circle", "cross"]),
    )
    tips = [alt.Tooltip("x:Q", title="λ"), alt.Tooltip("value:Q", format=".4f"), alt.Tooltip("differs:N")]
    layers = (
        data.mark_rule(color=COLOURS[0], opacity=0.5).encode(x=across, y="low:Q", y2="high:Q"),
        data.mark_line(color=COLOURS[0]).encode(x=across, y=up),
        data.mark_point(size=70, filled=True, opacity=1).encode(x=across, y=up, color=fill, shape=shape, tooltip=tips),
    )
    chart = (
        alt.layer(*layers)
        .properties(width=390, height=220)
        .facet(facet=alt.Facet("measure:N", title=None), columns=2)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    hint = (
        f"{main}, one seed, 95% intervals over queries; the points' shape says whether the measure differs from λ = 0"
        " (paired t-test per query). Published: no significant drop of MRR up to 0.6."
    )
    return Drawing(f"Figure 1 ({part})", "Over the share of biased negatives", specification(chart), hint)


def _plane(name: str, title: str, rankers: Mapping[str, Figures]) -> Drawing:
    """All rankers of a query set in one plane; controls of the first."""
    points = {}
    for ranker, figures in rankers.items():
        for system in (ORIGINAL, ADVERSARIAL, AWARE):
            if system in figures.seeds[0]:
                points[f"{ranker} {system}"] = figures.value(system, "mrr_10"), figures.value(system, "nfairr_10")
    first, figures = next(iter(rankers.items()))
    for system in (BLIND, FIRST):
        points[system] = figures.value(system, "mrr_10"), figures.value(system, "nfairr_10")
    return plane(
        name,
        f"Utility against bias: {title}",
        points,
        "MRR@10 (higher is better)",
        "NFaiRR@10 (higher is better)",
        (f"{first} {ORIGINAL}", BLIND),
    )


UTILITY = "mrr_10"
AXES = (Axis("arab_tf_10", "|ARaB tf@10|"), Axis("nfairr_10", "NFaiRR@10", rises=True))
CELLS = {key: (key, False) for key in HEADINGS}
LABELS = ("queries", "ranker")
VALID = "valid"
"""The development queries."""
_ONCE = "QS2"
"""The queries of AdvBert and of the shares, on the first seed alone."""


@dataclass(frozen=True)
class Untrained:
    """The frontier of each query set and ranker over all seeds, and how each trained mitigation compares."""

    frontiers: Mapping[tuple[str, str], Frontier]
    lines: tuple[Line, ...]
    alive: tuple[Verdict, ...]
    """Whether the rankers whose runs are reordered are above BM25."""

    def tables(self) -> list[Table]:
        """The frontier, and the trained mitigations beside it."""
        rows = [row for key, one in self.frontiers.items() for row in frontier_rows(one, CELLS, AXES[0], key)]
        return [
            frontier_table(rows, HEADINGS, LABELS, ORIGINAL, 4),
            against_table(self.lines, LABELS, HEADINGS[UTILITY]),
        ]

    def drawings(self) -> list[Drawing]:
        """MRR against each measure of bias, for each query set and ranker."""
        made = []
        for (part, ranker), frontier in self.frontiers.items():
            for axis in AXES:
                points = {row: placed(frontier, row, axis) for row in (ORIGINAL, AWARE, BLIND)}
                name = f"Rebalance {part} {ranker} {HEADINGS[axis.column]}"
                good = "higher is better" if axis.rises else "nearer 0 is better"
                made.append(
                    plane(
                        name,
                        f"Reordering without training: {part}, {ranker}",
                        points,
                        f"{HEADINGS[UTILITY]} (higher is better)",
                        f"{axis.heading} ({good})",
                        (ORIGINAL, BLIND),
                        drawn(frontier, axis),
                    )
                )
        return made

    def claim(self) -> Claim | None:
        """Whether reordering beats or equals every trained mitigation, of rankers above BM25."""
        return rebalance_claim(PAPER, self.lines, *self.alive)


Of = Callable[[int, str], Lists]
"""What rankings of a seed's query set are measured with."""
Systems = Callable[[int], Mapping[str, Trained]]
"""The trainings of a seed, by row; the first is the ranker whose runs are reordered."""


def untrained(experiment: Experiment, lists: Of) -> Untrained:
    """Measures and compares: bias-aware negatives over all seeds; of the first seed the other shares and AdvBert."""
    settings, first, measure = experiment.settings, experiment.settings.seeds[0], _UntrainedMeasure(experiment, lists)
    frontiers, lines = {}, []
    for part in QUERY_SETS:
        for name in settings.rankers:

            def main(seed: int, name: str = name) -> Mapping[str, Trained]:
                return {
                    ORIGINAL: experiment.ranker(seed, name, 0.0),
                    AWARE: experiment.ranker(seed, name, settings.share),
                    BLIND: experiment.blind(seed, name),
                }

            found = frontiers[part, name] = measure.frontier(part, settings.seeds, main)
            lines += _compared(found, (AWARE, BLIND), (part, name))
    for name, rows in _of_first(experiment).items():
        found = measure.frontier(_ONCE, (first,), functools.partial(_the_same, rows))
        lines += _compared(found, tuple(rows)[1:], (f"{_ONCE}, one seed", name))
    return Untrained(frontiers, tuple(lines), tuple(measure.alive))


def _of_first(experiment: Experiment) -> dict[str, dict[str, Trained]]:
    """The mitigations that only the first seed has, with the ranker that each is compared with, by ranker."""
    settings, first, main = experiment.settings, experiment.settings.seeds[0], next(iter(experiment.settings.rankers))
    shares = {
        f"share {share:g}": experiment.ranker(first, main, share)
        for share in settings.shares
        if share not in (0.0, settings.share)
    }
    found = {main: {ORIGINAL: experiment.ranker(first, main, 0.0), **shares}} if shares else {}
    for name in settings.small_rankers:
        rows = {ORIGINAL: experiment.ranker(first, name, 0.0), ADVERSARIAL: experiment.adversarial(first, name)}
        found[name] = {**found.get(name, {}), **rows}
    return found


def _the_same(systems: Mapping[str, Trained], seed: int) -> Mapping[str, Trained]:
    return systems


def _compared(frontier: Frontier, rows: Sequence[str], labels: tuple[str, ...]) -> list[Line]:
    return [compare(frontier, row, axis, labels, control=row == BLIND) for row in rows for axis in AXES]


class _UntrainedMeasure:
    """Measures runs and their reorderings; the reorderings of a run are measured once."""

    def __init__(self, experiment: Experiment, lists: Of) -> None:
        self.experiment, self.lists = experiment, lists
        self.alive: list[Verdict] = []
        """Of each run that is reordered, whether it is above BM25."""
        self._kept: dict[tuple[str, str], Values] = {}

    def frontier(self, part: str, seeds: Sequence[int], systems: Systems) -> Frontier:
        """The rows of all ``seeds`` on a query set, and of the first on its development queries."""
        shared = self.experiment.settings.planted is None
        dev, test = Rows(same_queries=shared), Rows(same_queries=shared)
        for seed in seeds:
            self._add(test, seed, part, systems(seed))
        self._add(dev, seeds[0], VALID, systems(seeds[0]))
        ahead = test.over(lambda figure: figure(ORIGINAL, UTILITY) - figure(FIRST, UTILITY))
        self.alive.append(above(Value.of_test(ahead)))
        return Frontier(ORIGINAL, curves_of(self.experiment.settings.strengths), dev, test, UTILITY)

    def _add(self, into: Rows, seed: int, part: str, systems: Mapping[str, Trained]) -> None:
        lists = self.lists(seed, part)
        runs = {row: self._run(one, seed, part) for row, one in systems.items()}
        values = lists.values(runs) | self._reordered(seed, part, systems[ORIGINAL], runs[ORIGINAL])
        wanted = {row: one for row, one in values.items() if row not in (RANDOM, NEUTRAL)}
        into.seeds.append({row: {key: one[:, None] for key, one in found.items()} for row, found in wanted.items()})
        into.queries.append(lists.queries.to_list())

    def _run(self, trained: Trained, seed: int, part: str) -> Run:
        return development(trained) if part == VALID else self.experiment.rank(trained, seed, part)

    def _reordered(self, seed: int, part: str, trained: Trained, run: Run) -> Values:
        where = self.experiment.of(seed).parts[part].run
        if (where, str(trained.folder)) not in self._kept:
            lists, valid = self.lists(seed, part), self.lists(seed, VALID)
            both = pl.concat([lists.scores.table, valid.scores.table]).unique("doc_id", maintain_order=True)
            table = replace(lists.scores, table=both.rechunk())
            made = reorderings(run, table, self.experiment.settings.strengths, development(trained))
            found = lists.values(made)
            self._kept[where, str(trained.folder)] = {row: found[row] for row in made}
        return self._kept[where, str(trained.folder)]


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
    runs = {Path(file).stem: read_run(file, name=Path(file).stem, order="file") for file in files}
    background = runs.pop(FIRST)
    documents = pl.concat([background.table["doc_id"], *(one.table["doc_id"] for one in runs.values())]).unique()
    lists = Lists.with_texts(background, read_qrels(qrels), read_texts(collection, documents), scoring)
    return Figures([lists.values({name: _known_documents(one, background) for name, one in runs.items()})])


def _known_documents(run: Run, background: Run) -> Run:
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
        " intervals over queries.",
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
