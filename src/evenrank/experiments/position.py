"""Hofstätter et al., ECIR 2021, position bias: Tables 1 to 5, Figures 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evenrank._wording import counted
from evenrank.audit.report.plain import histogram
from evenrank.io import Run, read_qrels, read_run
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.answers import positions_of
from evenrank.measures.similarity import Similarity
from evenrank.measures.statistics import bootstrap_means, holm, interval, paired_tests

from . import work as steps
from .page import Drawing, Page, curve, plane
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, RANKERS, SOURCE, VERSIONS, Experiment, Settings
from .published import numbers, published
from .tables import Claim, Row, Table, Value, paired, t_interval
from .work import Trained

MEASURES = {"ndcg": "nDCG@10", "mrr": "RR@10", "recall": "R@10"}
MARGIN = 0.02
"""How far apart, relative to the mean, two means may be that count as equivalent."""
Array = np.ndarray[Any, Any]
Values = dict[str, Array]
"""Each measure's values by query, in the order of the sorted query ids."""


class Found:
    """What was measured: values by (collection, ranker, training, version of the test) for each seed."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str, str, str], list[Values]] = {}
        self.similarity: dict[tuple[str, str], list[Similarity]] = {}

    def mean(self, key: tuple[str, str, str, str], measure: str) -> list[float]:
        """The mean of each seed."""
        return [float(np.nanmean(values[measure])) for values in self.values.get(key, [])]

    def value(self, key: tuple[str, str, str, str], measure: str) -> Value:
        """Over seeds; with its interval over queries where there is but one."""
        means = self.mean(key, measure)
        if len(means) != 1:
            return Value.over_seeds(list(means))
        draws = bootstrap_means(self.values[key][0][measure][:, None], 0)[:, 0]
        return Value(means[0], len(self.values[key][0][measure]), "queries", interval(draws))


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> Page:
    """The whole experiment: trains what is not trained yet, and gives its tables and figures."""
    steps.write_settings(folder, {k: v for k, v in asdict(settings).items() if k != "seeds"})
    experiment, found = Experiment(settings, folder, say), Found()
    if jobs > 1:
        experiment.everything_ahead(jobs)
    for ranker in settings.rankers:
        for seed in experiment.seeds_of(ranker):
            _measure(experiment, found, ranker, seed)
    first = settings.seeds[0]
    for name in (BIASED, OTHER):
        _first_stage(experiment, found, name, first)
    tables = (
        _table1(experiment, first),
        _table2(found),
        _table_of(found, "Table 3", BIASED, "position_table3"),
        _table_of(found, "Table 4", OTHER, "position_table4"),
        _table5(found),
        _significance(found),
    )
    return Page(
        "position",
        "Position bias",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", f"{len(settings.seeds)} (TK)"),
            ("test queries", f"{experiment.of(first, BIASED).parts['test'].count:,}"),
        ),
        claims(found),
        tables,
        _drawings(experiment, found, first),
        _notes(settings),
    )


def _measure(experiment: Experiment, found: Found, ranker: str, seed: int) -> None:
    """One ranker of a seed: trained on both versions of both collections, and transferred."""
    for name in (BIASED, OTHER):
        for version in VERSIONS:
            trained = experiment.ranker(seed, ranker, name, version)
            for test in VERSIONS:
                _add(experiment, found, (name, ranker, version, test), trained, seed)
            if ranker == "TK":
                found.similarity.setdefault((name, version), []).append(_similarity(experiment, trained, name, seed))
    for version in VERSIONS:
        trained = experiment.transferred(seed, ranker, version)
        _add(experiment, found, (OTHER, ranker, f"MS({version})", ORIGINAL), trained, seed)


def _add(experiment: Experiment, found: Found, key: tuple[str, str, str, str], trained: Trained, seed: int) -> None:
    name, test = key[0], key[3]
    run = experiment.ranked(trained, seed, name, test)
    found.values.setdefault(key, []).append(_values(run, experiment.of(seed, name).parts["test"].qrels))


def _values(run: Run, qrels: str) -> Values:
    judged = read_qrels(qrels)
    evaluation = Evaluation(run, qrels=judged)
    order = evaluation.judged.arg_sort().to_numpy()
    return {key: evaluation.values(parse_measure(name))[order] for key, name in MEASURES.items()}


def _similarity(experiment: Experiment, trained: Trained, name: str, seed: int) -> Similarity:
    from evenrank.audit.similarity import position_similarity

    texts = experiment.of(seed, name).texts[ORIGINAL]
    return position_similarity(trained.model, texts, **experiment.settings.similarity).similarity  # type: ignore[arg-type]


def _first_stage(experiment: Experiment, found: Found, name: str, seed: int) -> None:
    """BM25, which does not see the order of words, and the expectation over random orders."""
    part = experiment.of(seed, name).parts["test"]
    run = read_run(part.run, "BM25")
    evaluation = Evaluation(run, qrels=read_qrels(part.qrels))
    order = evaluation.judged.arg_sort().to_numpy()
    for system, values_of in (("BM25", evaluation.values), ("random", evaluation.random_values)):
        values = {key: values_of(parse_measure(measure))[order] for key, measure in MEASURES.items()}
        for test in VERSIONS:
            found.values[name, system, "", test] = [values]


# --- what it has to show ---------------------------------------------------------------------------------------------


def claims(found: Found) -> tuple[Claim, ...]:
    """Trained on early answers: a drop on the rotated test. Trained on rotated: equivalent. MATS: a third or less."""
    original = _difference(found, "TK", ORIGINAL)
    debiased = _difference(found, "TK", DEBIASED)
    mean = float(np.mean(found.mean((BIASED, "TK", DEBIASED, ORIGINAL), "ndcg")))
    differences = [
        b - a
        for a, b in zip(
            found.mean((BIASED, "TK", DEBIASED, ORIGINAL), "ndcg"),
            found.mean((BIASED, "TK", DEBIASED, DEBIASED), "ndcg"),
            strict=True,
        )
    ]
    ends = t_interval(np.array(differences), 0.90)
    mats = {version: np.array([one.mats for one in found.similarity[BIASED, version]]) for version in VERSIONS}
    before, after = float(mats[ORIGINAL].mean()), float(mats[DEBIASED].mean())
    ratio = f"{before / after:.1f} ×" if after > 0 else "nothing left"
    n = counted(original.n, "seed")
    return (
        Claim(
            "TK trained on early answers loses nDCG@10 on the rotated test",
            None if original.ci95 is None else original.ci95[1] < 0,
            f"{original.signed()}, {n}",
        ),
        Claim(
            "TK trained on rotated passages is equivalent on both (margin 2%)",
            None if ends is None else -MARGIN * mean < ends[0] and ends[1] < MARGIN * mean,
            f"{debiased.signed()} on {mean:.3f}, {n}",
        ),
        Claim(
            "its MATS is at least three times smaller",
            None if np.isnan(before + after) else before > 0 and 3 * after <= before,
            f"{before:.4f} against {after:.4f}: {ratio}, {n}",
        ),
    )


def _difference(found: Found, ranker: str, training: str) -> Value:
    """nDCG@10 on the rotated test − on the original one, paired by seed."""
    key = BIASED, ranker, training
    return paired(found.mean((*key, DEBIASED), "ndcg"), found.mean((*key, ORIGINAL), "ndcg"))


# --- tables ----------------------------------------------------------------------------------------------------------


def _table1(experiment: Experiment, seed: int) -> Table:
    columns = ["documents", "train_queries", "validation_queries", "test_queries"]
    rows = []
    for line in published("position_table1"):
        data = experiment.of(seed, line["collection"])
        counts = [data.documents, *(data.parts[part].count for part in ("train", "valid", "test"))]
        measured = {key: Value(float(count), 1, "count") for key, count in zip(columns, counts, strict=True)}
        rows.append(Row((line["collection"],), measured, numbers(line, columns)))
    headings = {key: key.replace("_queries", "").replace("validation", "valid.") for key in columns}
    return Table("Table 1", "Collections", ("collection",), headings, tuple(rows))


def _table2(found: Found) -> Table:
    columns = {"msmarco_mats": BIASED, "msmarco_sd": BIASED, "squad_mats": OTHER, "squad_sd": OTHER}
    rows = []
    for line in published("position_table2"):
        measured = {}
        for key, name in columns.items():
            of = found.similarity.get((name, line["training"]), [])
            values = [one.mats if key.endswith("mats") else one.mats_deviation for one in of]
            measured[key] = Value.over_seeds(list(values))
        rows.append(Row((line["training"],), measured, numbers(line, list(columns))))
    for version in VERSIONS:
        over = {
            key: Value.over_seeds([one.mats_common for one in found.similarity.get((name, version), [])])
            for key, name in (("msmarco_mats", BIASED), ("squad_mats", OTHER))
        }
        rows.append(Row((f"{version}, terms at every distance",), over))
    headings = {
        "msmarco_mats": f"{BIASED}: MATS",
        "msmarco_sd": "sd",
        "squad_mats": f"{OTHER}: MATS",
        "squad_sd": "sd",
    }
    notes = ("sd: over distances, its mean over seeds. Passages: the original collection's.",)
    return Table("Table 2", "Position in TK's word vectors", ("training",), headings, tuple(rows), notes)


def _table_of(found: Found, title: str, name: str, file: str) -> Table:
    columns = [f"{measure}_{short}" for measure in MEASURES for short in ("orig", "deb")]
    rows = []
    for line in published(file):
        measured = _row(found, name, line["model"], line["training"])
        rows.append(Row((line["model"], line["training"]), measured, numbers(line, columns)))
    rows += [Row((system, ""), _row(found, name, system, ""), control=True) for system in ("BM25", "random")]
    heads = {"ndcg": "nDCG", "mrr": "MRR", "recall": "Recall"}
    headings = {f"{m}_{s}": f"{heads[m]} {s}." for m in MEASURES for s in ("orig", "deb")}
    headings |= {"change": "Δ nDCG (%)", "change_original": "Δ of orig. (%)"}
    notes = (
        "At 10. Δ: (debiased − original)/debiased, as the published tables have it; Δ of orig.: relative to the"
        " original. BM25 does not see the order of words; random is the expectation over random orders.",
    )
    return Table(title, f"Trained and tested on {name}", ("model", "training"), headings, tuple(rows), notes)


def _row(found: Found, name: str, ranker: str, training: str) -> dict[str, Value]:
    if (name, ranker, training, ORIGINAL) not in found.values:
        return {}
    values = {
        f"{measure}_{short}": found.value((name, ranker, training, test), measure)
        for measure in MEASURES
        for short, test in (("orig", ORIGINAL), ("deb", DEBIASED))
    }
    pairs = list(
        zip(
            found.mean((name, ranker, training, ORIGINAL), "ndcg"),
            found.mean((name, ranker, training, DEBIASED), "ndcg"),
            strict=True,
        )
    )
    values["change"] = Value.over_seeds([100 * (b - a) / b for a, b in pairs])
    values["change_original"] = Value.over_seeds([100 * (b - a) / a for a, b in pairs])
    return values


_TRANSFER = {
    "SQuAD(original)": ORIGINAL,
    "MS(original)>SQuAD(original)": f"MS({ORIGINAL})",
    "MS(debiased)>SQuAD(original)": f"MS({DEBIASED})",
}


def _table5(found: Found) -> Table:
    """Transfer; a letter names a row that is significantly below, by Wilcoxon's test over queries."""
    rows = []
    for line in published("position_table5"):
        key = (OTHER, line["model"], _TRANSFER[line["training"]], ORIGINAL)
        measured = {measure: found.value(key, measure) for measure in MEASURES} if key in found.values else {}
        letters = {m: _letters(found, line["model"], key, m) for m in MEASURES} if measured else {}
        marks = "; ".join(f"{MEASURES[m]} > {text}" for m, text in letters.items() if text)
        said = [f"{m} > {line[f'{m}_better_than']}" for m in MEASURES if line[f"{m}_better_than"]]
        labels = (line["model"], line["training"], line["letter"], marks or "–", "; ".join(said) or "–")
        rows.append(Row(labels, measured, numbers(line, list(MEASURES))))
    heads = ("model", "training", "row", "better than", "published")
    notes = (
        "better than: rows of the same model that are below by Wilcoxon's signed-rank test over queries of all"
        " seeds, p < .05 uncorrected as published; * also after Holm's correction over the model's pairs.",
    )
    return Table("Table 5", f"Transfer to {OTHER}", heads, dict(MEASURES), tuple(rows), notes)


def _letters(found: Found, model: str, key: tuple[str, str, str, str], measure: str) -> str:
    keys = {
        letter: (OTHER, model, training, ORIGINAL) for letter, training in zip("abc", _TRANSFER.values(), strict=True)
    }
    values = {letter: _joined(found, of, measure) for letter, of in keys.items()}
    pairs = [(x, y) for x in "abc" for y in "abc" if x < y]
    tests = {pair: paired_tests(values[pair[0]], values[pair[1]]) for pair in pairs}
    corrected = dict(zip(pairs, holm([tests[pair].wilcoxon_p for pair in pairs]), strict=True))
    own = next(letter for letter, of in keys.items() if of == key)
    marks = ""
    for other in "abc":
        if other == own:
            continue
        pair = (min(own, other), max(own, other))
        p, difference = tests[pair].wilcoxon_p, tests[pair].difference
        above = difference is not None and (difference if own == pair[0] else -difference) > 0
        if above and p is not None and p < 0.05:
            after = corrected[pair]
            marks += other + ("*" if after is not None and after < 0.05 else "")
    return marks


def _joined(found: Found, key: tuple[str, str, str, str], measure: str) -> Array:
    """The values of all queries of all seeds."""
    values: Array = np.concatenate([one[measure] for one in found.values[key]])
    return values


def _significance(found: Found) -> Table:
    """nDCG@10 on the rotated against the original test, query by query."""
    rows = []
    for name in (BIASED, OTHER):
        for ranker in RANKERS:
            for training in VERSIONS:
                keys = [(name, ranker, training, test) for test in (DEBIASED, ORIGINAL)]
                if keys[0] not in found.values:
                    continue
                test = paired_tests(*(_joined(found, key, "ndcg") for key in keys))
                over_seeds = paired(found.mean(keys[0], "ndcg"), found.mean(keys[1], "ndcg"))
                measured = {
                    "difference": over_seeds,
                    "t": Value(test.t_p, test.n, "queries"),
                    "wilcoxon": Value(test.wilcoxon_p, test.n, "queries"),
                }
                rows.append(Row((name, ranker, training), measured))
    headings = {"difference": "rotated − original", "t": "t p", "wilcoxon": "Wilcoxon p"}
    notes = ("Differences of nDCG@10 over seeds; p over the queries of all seeds, uncorrected.",)
    labels = ("collection", "model", "training")
    return Table("Rotated test", "What rotating the test passages costs", labels, headings, tuple(rows), notes, 4)


# --- figures ---------------------------------------------------------------------------------------------------------


def _drawings(experiment: Experiment, found: Found, seed: int) -> tuple[Drawing, ...]:
    drawings = []
    for name in (BIASED, OTHER):
        for version, answers in experiment.of(seed, name).answers.items():
            positions = positions_of(answers)
            drawings.append(
                histogram(
                    f"Figure 1 ({name}, {version})",
                    f"Where answers begin: {name}, {version}",
                    positions.relative_histogram(),
                    "relative position",
                    f"{positions.table.height:,} matches; mean {positions.mean:.3f}; Kolmogorov–Smirnov distance to"
                    f" uniform {positions.ks:.3f}.",
                )
            )
    rows = []
    for (name, version), of in found.similarity.items():
        last = min(one.delta_max for one in of)
        for distance in range(last + 1):
            values = np.array([one.ats[distance] for one in of])
            spread = float(np.mean([one.deviation[distance] for one in of]))
            mean = float(np.nanmean(values))
            rows.append(
                {
                    "x": distance,
                    "measure": f"{name}, {version}",
                    "value": mean,
                    "low": mean - spread,
                    "high": mean + spread,
                }
            )
    hint = "TK's vectors of the same word by distance, means over seeds; bars: one standard deviation over pairs."
    drawings.append(curve("Figure 2", "Average term similarity ATS(Δ)", rows, "distance Δ in words", hint))
    points = {}
    for ranker in (*RANKERS, "BM25", "random"):
        for training in VERSIONS if ranker in RANKERS else ("",):
            row = _row(found, BIASED, ranker, training)
            if row:
                points[f"{ranker} {training}".strip()] = (row["ndcg_orig"], row["change_original"])
    drawings.append(
        plane(
            "Plane",
            f"Effectiveness against position bias: {BIASED}",
            points,
            "nDCG@10 on the original test (higher is better)",
            "change on the rotated test (%, nearer 0 is better)",
            None,
        )
    )
    return tuple(drawings)


def _notes(settings: Settings) -> tuple[str, ...]:
    notes = [
        "original, debiased: the collection as it is, and with every passage rotated by word, once. The first-stage"
        " lists are the same for both: BM25 does not see the order of words.",
        "Claims: TK, paired t intervals over seeds; equivalence: the two one-sided 5% tests. Nothing was chosen on"
        " test queries.",
        "Controls: BM25, blind to order by design, and random. Masking words and neutral-first say nothing about"
        " position.",
        "MATS as printed, with 1/(Δmax − 1); its terms change with the distance, so it also stands over the terms that"
        " are there at every distance.",
    ]
    if settings.planted is not None:
        notes += [
            f"Scale tiny: built-in collections in the rows of {BIASED} (relevant passages answer early, at 0.2 of the"
            f" passage on average) and {OTHER} (anywhere), made anew for each seed. TK: {len(settings.seeds)} seeds,"
            " smaller than published, word vectors made here. BERT_CAT and BERT_DOT: one seed, a BERT of"
            f" {settings.small_bert.layers} layer and {settings.small_bert.hidden} dimensions from random weights,"
            " whose intervals are over queries; in this time BERT_CAT hardly learns to match words.",
        ]
    else:
        notes += [
            f"{BIASED}'s answers are not part of its passage collection: Figure 1 shows {OTHER} alone"
            " (evenrank position answers irds:msmarco-qna/dev shows the others).",
            "Duplicate passages of SQuAD are one document, so it can have slightly fewer than published.",
        ]
    return tuple(notes)
