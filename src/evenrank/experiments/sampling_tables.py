"""The tables of the sampling experiment, laid out as the paper's, measured beside published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from evenrank.measures.statistics import SIGNIFICANT, holm
from evenrank.training.verdicts import ruined

from .paper_tables import CONTROLS, MARKS, Row, Table, Value
from .published import fact, numbers, published
from .sampling_measures import (
    BIAS,
    FIRST,
    HEADINGS,
    MEASURES,
    Figures,
    improvement,
    minus,
    reduction,
    relative,
    share_above,
)

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
