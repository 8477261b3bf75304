"""Bigdeli et al., ECIR 2022, bias-aware negative sampling: Tables 1 to 3, Figures 1 to 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from evenrank.auditing import AuditResult
from evenrank.io.wording import counted

from . import work
from .paper_page import Drawing, ExperimentPage, bars, curve, plane
from .paper_tables import CONTROLS, Claim, Row, Table, Value, non_inferior, paired
from .published import fact, numbers, published
from .sampling_setup import QUERY_SETS, SOURCE, Experiment, Settings
from .work import Figures, Trained

MRR, NFAIRR, TF, BOOL = "RR@10", "NFaiRR@10", "ARaB@10", "ARaB(magnitude='bool')@10"
COLUMNS = {"mrr_10": MRR, "nfairr_10": NFAIRR, "arab_tf_10": TF, "arab_bool_10": BOOL}
HEADINGS = {"mrr_10": "MRR@10", "nfairr_10": "NFaiRR@10", "arab_tf_10": "ARaB tf@10", "arab_bool_10": "ARaB bool@10"}
FIRST = "BM25"
ORIGINAL, AWARE, ADVERSARIAL = "original", "bias-aware", "AdvBert"


@dataclass
class Found:
    """What was measured: [query set][ranker] → figures of ``original``, ``bias-aware``, … and of the controls."""

    sets: dict[str, dict[str, Figures]] = field(default_factory=dict)
    small: dict[str, Figures] = field(default_factory=dict)
    """Table 3: QS2."""
    shares: dict[str, Figures] = field(default_factory=dict)
    """Figure 1: [query set] → figures of each share, one seed."""
    fairer: dict[str, tuple[pl.DataFrame, float]] = field(default_factory=dict)
    """Figure 2: NFaiRR of bias-aware − AdvBert, query by query, and the share of queries above 0."""


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k != "seeds"})
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    first, found = settings.seeds[0], Found()
    sets = ("dev", *QUERY_SETS)
    for name in settings.rankers:
        for seed in settings.seeds:
            systems = {
                ORIGINAL: experiment.ranker(seed, name, 0.0),
                AWARE: experiment.ranker(seed, name, settings.share),
            }
            systems["blind"] = experiment.blind(seed, name)
            for part in sets:
                _audit(experiment, seed, part, systems, found.sets.setdefault(part, {}).setdefault(name, {}))
    main = next(iter(settings.rankers))
    curve_systems = {f"{share:g}": experiment.ranker(first, main, share) for share in settings.shares}
    for part in ("dev", "QS2"):
        _audit(experiment, first, part, curve_systems, found.shares.setdefault(part, {}))
    for name in settings.small_rankers:
        systems = {
            ORIGINAL: experiment.ranker(first, name, 0.0),
            ADVERSARIAL: experiment.adversarial(first, name),
            AWARE: experiment.ranker(first, name, settings.share),
            "blind": experiment.blind(first, name),
        }
        result = _audit(experiment, first, "QS2", systems, found.small.setdefault(name, {}))
        table = work.differences(result, AWARE, ADVERSARIAL, NFAIRR)
        found.fairer[name] = table, float((table["difference"] > 0).mean() or 0.0)  # type: ignore[arg-type]
    counts = {name: part.count for name, part in experiment.of(first).parts.items()}
    tables = (_table1(found, settings), _table2(found, settings), _table3(found), _facts(found, counts))
    return ExperimentPage(
        "sampling",
        "Bias-aware negative sampling",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", str(len(settings.seeds))),
            *((f"queries {name}", f"{counts[name]:,}") for name in ("train", "dev", *QUERY_SETS)),
        ),
        claims(found.sets["QS1"][main], found.sets["dev"][main], settings),
        tables,
        _drawings(found, settings, main),
        _notes(settings),
    )


def _audit(experiment: Experiment, seed: int, part: str, systems: Mapping[str, Trained], into: Figures) -> AuditResult:
    trainings, where = experiment.work(seed), experiment.of(seed).parts[part]
    runs = {name: trainings.rank(trained, part, where) for name, trained in systems.items()}
    result = trainings.audit(where, runs, f"{MRR} {NFAIRR} {TF} {BOOL}", FIRST)
    work.collect(into, result)
    return result


def claims(fair: Figures, dev: Figures, settings: Settings) -> tuple[Claim, ...]:
    """NFaiRR rises, |ARaB| falls, MRR is not inferior: original against bias-aware over the seeds."""

    def change(measure: str, absolute: bool = False) -> Value:
        pair = [work.per_seed(fair, name, measure) for name in (AWARE, ORIGINAL)]
        if absolute:
            pair = [[abs(value) for value in values] for values in pair]
        return paired(*pair)

    n = f"{counted(len(settings.seeds), 'seed')}, QS1"
    rises = change(NFAIRR)
    found = [
        Claim(f"NFaiRR@10 rises at share {settings.share:g}", _beyond(rises, up=True), f"{rises.signed()}, {n}"),
    ]
    for measure, kind in ((TF, "tf"), (BOOL, "bool")):
        falls = change(measure, absolute=True)
        found.append(Claim(f"|ARaB {kind}@10| falls", _beyond(falls, up=False), f"{falls.signed()}, {n}"))
    aware, original = (work.per_seed(dev, name, MRR) for name in (AWARE, ORIGINAL))
    loss = paired(aware, original)
    detail = f"{loss.signed()} on {Value.over_seeds(original).mean:.3f}, {counted(len(settings.seeds), 'seed')}, dev"
    return (*found, Claim("MRR@10 is not inferior (margin 5%)", non_inferior(aware, original), detail))


def _beyond(value: Value, *, up: bool) -> bool | None:
    if value.ci95 is None:
        return None
    return value.ci95[0] > 0 if up else value.ci95[1] < 0


def _table1(found: Found, settings: Settings) -> Table:
    columns = ["original_mrr_10", "bias_aware_mrr_10", "change_percent"]
    rows = []
    for line in published("sampling_table1"):
        figures = found.sets["dev"].get(line["ranker"], {})
        measured = {}
        if figures:
            original, aware = (work.per_seed(figures, name, MRR) for name in (ORIGINAL, AWARE))
            change = [100 * (b - a) / a if a else float("nan") for a, b in zip(original, aware, strict=True)]
            values = work.row_values(figures, ORIGINAL, {"original_mrr_10": MRR})
            measured = values | work.row_values(figures, AWARE, {"bias_aware_mrr_10": MRR})
            measured |= {"change_percent": Value.over_seeds(change)}
        rows.append(Row((line["ranker"],), measured, numbers(line, columns)))
    for name in CONTROLS:
        main = next(iter(found.sets["dev"].values()))
        rows.append(Row((name,), work.row_values(main, name, {"original_mrr_10": MRR}), control=True))
    headings = {"original_mrr_10": "original", "bias_aware_mrr_10": "bias-aware", "change_percent": "change (%)"}
    return Table(
        "Table 1",
        f"MRR@10 on dev, share {settings.share:g}",
        ("ranker",),
        headings,
        tuple(rows),
        ("Controls have random negatives only; random and neutral-first order the same candidates.",),
        4,
    )


def _table2(found: Found, settings: Settings) -> Table:
    rows = []
    for line in published("sampling_table2"):
        figures = found.sets[line["query_set"]].get(line["ranker"], {})
        labels = (line["query_set"], line["ranker"], line["training"])
        rows.append(Row(labels, work.row_values(figures, line["training"], COLUMNS), numbers(line, list(COLUMNS))))
    for part in QUERY_SETS:
        for ranker, figures in found.sets[part].items():
            rows += [
                Row((part, ranker, name), work.row_values(figures, name, COLUMNS), control=True) for name in CONTROLS
            ]
    title = f"Utility and bias on neutral queries, share {settings.share:g}"
    notes = ("NFaiRR is relative to BM25's candidates; ARaB is signed, nearer 0 is better.",)
    return Table("Table 2", title, ("queries", "ranker", "training"), HEADINGS, tuple(rows), notes, 4)


def _table3(found: Found) -> Table:
    rows = []
    for line in published("sampling_table3"):
        values = work.row_values(found.small.get(line["ranker"], {}), line["training"], COLUMNS)
        rows.append(Row((line["ranker"], line["training"]), values, numbers(line, list(COLUMNS))))
    for ranker, figures in found.small.items():
        rows += [Row((ranker, name), work.row_values(figures, name, COLUMNS), control=True) for name in CONTROLS]
    notes = ("One seed; intervals over queries.",)
    return Table("Table 3", "Against AdvBert, QS2", ("ranker", "training"), HEADINGS, tuple(rows), notes, 4)


def _facts(found: Found, counts: Mapping[str, int]) -> Table:
    """Figures of the paper's text."""
    rows = []
    for size in ("tiny", "mini"):
        share = found.fairer.get(f"BERT-{size.title()}")
        measured = {"value": Value(share[1], share[0].height, "queries")} if share else {}
        printed = {"value": fact("sampling", f"share_of_queries_fairer_than_AdvBert_{size}")}
        rows.append(Row((f"share of queries fairer than AdvBert, BERT-{size.title()}",), measured, printed))
    for name in QUERY_SETS:
        printed = {"value": fact("sampling", f"queries_{name}")}
        rows.append(Row((f"queries {name}",), {"value": Value(float(counts[name]), 1, "count")}, printed))
    printed = {"value": fact("sampling", "largest_lambda_without_significant_mrr_drop")}
    rows.append(Row(("largest share without a significant drop of MRR",), {"value": Value(_largest(found))}, printed))
    return Table("Text", "Figures of the text", ("figure",), {"value": "value"}, tuple(rows))


def _largest(found: Found) -> float | None:
    """The largest share before the first whose MRR interval lies below the mean at share 0 (one seed, dev)."""
    figures = found.shares["dev"]
    shares = sorted(float(name) for name in figures if name.replace(".", "").isdigit())
    if not shares or shares[0] != 0:
        return None
    start = figures["0"][MRR][0].mean
    largest = None
    for share in shares:
        ends = figures[f"{share:g}"][MRR][0].ci95
        if start is None or ends is None or ends[1] < start:
            break
        largest = share
    return largest


def _drawings(found: Found, settings: Settings, main: str) -> tuple[Drawing, ...]:
    drawings = []
    for part, figures in found.shares.items():
        rows = []
        for share in settings.shares:
            for key, measure in COLUMNS.items():
                value = figures[f"{share:g}"][measure][0]
                low, high = value.ci95 or (value.mean, value.mean)
                rows.append({"x": share, "measure": HEADINGS[key], "value": value.mean, "low": low, "high": high})
        hint = f"{main}, one seed, 95% intervals over queries. Published: no significant drop of MRR up to 0.6."
        drawings.append(curve(f"Figure 1 ({part})", "Over the share of biased negatives", rows, "share λ", hint))
    for name, (table, share) in found.fairer.items():
        title = f"NFaiRR@10 of bias-aware − AdvBert by query, {name}"
        hint = f"QS2, one seed: {share:.0%} of {table.height} queries are fairer."
        signs = ("bias-aware is more neutral", "AdvBert is more neutral")
        drawings.append(bars(f"Figure 2 ({name})", title, table, "difference of NFaiRR@10", hint, signs=signs))
    for name, figures in found.small.items():
        drawings.append(_plane(f"Figure 3 ({name})", f"QS2, {name}, one seed", figures))
    for part in QUERY_SETS:
        for name, figures in found.sets[part].items():
            drawings.append(_plane(f"Plane {part} ({name})", f"{part}, {name}, means over seeds", figures))
    return tuple(drawings)


def _plane(name: str, title: str, figures: Figures) -> Drawing:
    points = {
        "none" if system == ORIGINAL else system: (work.summary(values[MRR]), work.summary(values[NFAIRR]))
        for system, values in figures.items()
    }
    return plane(
        name,
        f"Utility against bias: {title}",
        points,
        "MRR@10 (higher is better)",
        "NFaiRR@10 (higher is better)",
        ("none", "blind"),
    )


def _notes(settings: Settings) -> tuple[str, ...]:
    notes = [
        "original: all negatives at random (share 0); bias-aware: that share of them the unjudged candidates of largest"
        f" |magnitude tf|. Negatives from BM25's first {settings.depth}; re-ranked lists are as long.",
        "Claims: paired t intervals over seeds. Nothing was chosen on the queries that the tables are about.",
        "blind, random and neutral-first are controls; random is the expectation over random orders.",
    ]
    if settings.planted is not None:
        notes += [
            "Scale tiny: the built-in collection, generated for each seed. In place of the cross-encoders a two-tower"
            f" ranker (a BERT of {settings.small_bert.layers} layer and {settings.small_bert.hidden} dimensions that"
            " starts from random weights, mean pooling): a cross-encoder from random weights does not learn to match"
            " words in this time. It is in the rows BERT-base and BERT-Tiny; the others need the full scale.",
            "QS1: all queries of dev, which are neutral; QS2: the quarter of them whose BM25 lists lean most to one"
            " group (|RaB@10|).",
        ]
    else:
        notes.append("Validation is on MS MARCO's dev/2 without the queries of QS1 and QS2, never on dev small.")
    return tuple(notes)
