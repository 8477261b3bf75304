"""The tables of the position experiment."""

from __future__ import annotations

import numpy as np

from evenrank.io.types import Array
from evenrank.measures.statistics import holm, paired_tests
from evenrank.training.verdicts import ruined

from .paper_tables import Row, Table, Value
from .position_found import MEASURES, SHORT, UNTRAINED, Found, Key, between, both_tests, relative_mats
from .position_runs import Experiment
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, RANKERS, VERSIONS
from .published import numbers, published


def sizes_table(experiment: Experiment, seed: int) -> Table:
    """Table 1."""
    columns = ["documents", "train_queries", "validation_queries", "test_queries"]
    rows = []
    for line in published("position_table1"):
        data = experiment.of(seed, line["collection"])
        counts = [data.documents, *(data.parts[part].count for part in ("train", "valid", "test"))]
        measured = {key: Value(float(count), 1, "count") for key, count in zip(columns, counts, strict=True)}
        rows.append(Row((line["collection"],), measured, numbers(line, columns)))
    headings = {key: key.replace("_queries", "").replace("validation", "valid.") for key in columns}
    return Table("Table 1", "Collections", ("collection",), headings, tuple(rows))


def similarity_table(found: Found) -> Table:
    """Table 2, with the untrained ranker and the level of different terms beside it."""
    columns = {"msmarco_mats": BIASED, "msmarco_sd": BIASED, "squad_mats": OTHER, "squad_sd": OTHER}
    rows = []
    lines = {line["training"]: numbers(line, list(columns)) for line in published("position_table2")}
    for training in (*VERSIONS, UNTRAINED):
        measured = {}
        for key, name in columns.items():
            of = found.similarity.get((name, training), [])
            values = [one.mats if key.endswith("mats") else one.mats_deviation for one in of]
            measured[key] = Value.over_seeds(list(values))
        rows.append(Row((training,), measured, lines.get(training, {}), control=training == UNTRAINED))
    short = {BIASED: "msmarco_mats", OTHER: "squad_mats"}
    for training in (*VERSIONS, UNTRAINED):
        of_all = {key: _beside(found, name, training) for name, key in short.items()}
        for what in of_all["msmarco_mats"]:
            over = {key: Value.over_seeds(of[what]) for key, of in of_all.items()}
            rows.append(Row((f"{training}: {what}",), over, control=True))
    headings = {
        "msmarco_mats": f"{BIASED}: MATS",
        "msmarco_sd": "sd",
        "squad_mats": f"{OTHER}: MATS",
        "squad_sd": "sd",
    }
    notes = (
        "sd: over distances, its mean over seeds. Passages: the original collection's. Untrained: the ranker that the"
        " trainings start from.",
        "Relative to different terms: MATS / (ATS(0) − the mean cosine of different terms' vectors, up to Δmax). Where"
        " different terms have a cosine near 1, the transformer has collapsed, and a small MATS says nothing.",
    )
    return Table("Table 2", "Position in TK's word vectors", ("training",), headings, tuple(rows), notes)


def _beside(found: Found, name: str, training: str) -> dict[str, list[float]]:
    """What MATS has to be read with, for each seed."""
    of = found.similarity.get((name, training), [])
    return {
        "terms at every distance": [one.mats_common for one in of],
        "relative to different terms": relative_mats(found, name, training),
        "ATS(0)": [float(one.ats[0]) for one in of],
        "cosine of different terms": between(found, name, training),
    }


def published_changes(line: dict[str, str]) -> dict[str, float]:
    """The published figures of a row of Tables 3 and 4, and its Δ in percent: (debiased − original)/debiased."""
    columns = [f"{measure}_{short}" for measure in MEASURES for short in SHORT.values()]
    figures = numbers(line, columns)
    for measure in MEASURES:
        original, debiased = figures[f"{measure}_orig"], figures[f"{measure}_deb"]
        figures[f"{measure}_change"] = 100 * (debiased - original) / debiased
    return figures


def effectiveness_table(
    found: Found, title: str, name: str, file: str | None, rankers: tuple[str, ...] = RANKERS
) -> Table:
    """Tables 3 and 4. ``file``: the published one, None if the paper has none."""
    printed = {(line["model"], line["training"]): published_changes(line) for line in published(file)} if file else {}
    rows = []
    for pair in ((ranker, training) for ranker in rankers for training in VERSIONS):
        warning = _warning(found, name, *pair)
        rows.append(Row(pair, table_row(found, name, *pair), printed.get(pair, {}), warning=warning))
    rows += [Row((system, ""), table_row(found, name, system, ""), control=True) for system in ("BM25", "random")]
    heads = {"ndcg": "nDCG", "mrr": "MRR", "recall": "Recall"}
    headings: dict[str, str] = {}
    for measure, head in heads.items():
        headings |= {f"{measure}_{short}": f"{head} {short}." for short in SHORT.values()}
        headings[f"{measure}_change"] = f"Δ {head} (%)"
    headings["change_of_original"] = "Δ of orig. (%)"
    notes = (
        "At 10. Δ: (debiased − original)/debiased, as the published tables have it, the published Δ from the printed"
        " figures; Δ of orig.: of nDCG, relative to the original. BM25 does not see the order of words; random is the"
        " expectation over random orders. Intervals: over seeds (t), or over queries where there is one (bootstrap).",
    )
    return Table(title, f"Trained and tested on {name}", ("model", "training"), headings, tuple(rows), notes)


def table_row(found: Found, name: str, ranker: str, training: str) -> dict[str, Value]:
    """The figures of a row of Tables 3 and 4."""
    key = (name, ranker, training)
    if (*key, ORIGINAL) not in found.values:
        return {}
    values = {}
    for measure in MEASURES:
        for version, short in SHORT.items():
            values[f"{measure}_{short}"] = found.value((*key, version), measure)
        values[f"{measure}_change"] = found.change(key, measure)
    values["change_of_original"] = found.change(key, "ndcg", of_original=True)
    return values


def _warning(found: Found, name: str, ranker: str, training: str) -> str:
    """What is said of a ranker that is below BM25 on one of the tests, or far below the original's on its own."""
    said = []
    for test, words in ((ORIGINAL, "nDCG@10"), (DEBIASED, "nDCG@10 on the rotated test")):
        own, first = (found.mean((name, *of, test), "ndcg") for of in ((ranker, training), ("BM25", "")))
        if own and first:
            # The original's training is the base of the other where both are tested as they were trained.
            base = found.mean((name, ranker, ORIGINAL, ORIGINAL), "ndcg") if test == training == DEBIASED else []
            said.append(ruined(_mean(own), _mean(first), _mean(base) if base else None, measure=words))
    return " ".join(filter(None, said))


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


# --- Table 5 ---

TRANSFER = {
    "SQuAD(original)": ORIGINAL,
    "MS(original)>SQuAD(original)": f"MS({ORIGINAL})",
    "MS(debiased)>SQuAD(original)": f"MS({DEBIASED})",
}
"""Table 5's rows and their trainings."""


def transfer_table(found: Found) -> Table:
    """Table 5; letters name the rows that are significantly worse."""
    rows = []
    for line in published("position_table5"):
        key = (OTHER, line["model"], TRANSFER[line["training"]], ORIGINAL)
        measured = {measure: found.value(key, measure) for measure in MEASURES} if key in found.values else {}
        letters = {m: _letters(found, line["model"], key, m) for m in MEASURES} if measured else {}
        marks = "; ".join(f"{MEASURES[m]} > {text}" for m, text in letters.items() if text)
        said = [f"{m} > {line[f'{m}_better_than']}" for m in MEASURES if line[f"{m}_better_than"]]
        labels = (line["model"], line["training"], line["letter"], marks or "–", "; ".join(said) or "–")
        warning = _below_first(found, key)
        rows.append(Row(labels, measured, numbers(line, list(MEASURES)), warning=warning))
    heads = ("model", "training", "row", "better than", "published")
    notes = (
        "better than: rows of the same model that are below with p < .05, uncorrected as published; * also after"
        " Holm's correction over the model's three pairs. One seed: Wilcoxon's signed-rank test over queries. Several:"
        " the mixed view, queries nested in seeds (a seed is one training, which all its queries share).",
    )
    return Table("Table 5", f"Transfer to {OTHER}", heads, dict(MEASURES), tuple(rows), notes)


def _below_first(found: Found, key: Key) -> str:
    own, first = found.mean(key, "ndcg"), found.mean((OTHER, "BM25", "", ORIGINAL), "ndcg")
    return ruined(_mean(own), _mean(first), measure="nDCG@10") if own and first else ""


def _letters(found: Found, model: str, key: Key, measure: str) -> str:
    keys: dict[str, Key] = {
        letter: (OTHER, model, training, ORIGINAL) for letter, training in zip("abc", TRANSFER.values(), strict=True)
    }
    pairs = [(x, y) for x in "abc" for y in "abc" if x < y]
    tests = {pair: _test(found, keys[pair[0]], keys[pair[1]], measure) for pair in pairs}
    corrected = dict(zip(pairs, holm([p for _, p in tests.values()]), strict=True))
    own = next(letter for letter, of in keys.items() if of == key)
    marks = ""
    for other in "abc":
        if other == own:
            continue
        pair = (min(own, other), max(own, other))
        difference, p = tests[pair]
        above = difference is not None and (difference if own == pair[0] else -difference) > 0
        if above and p is not None and p < 0.05:
            after = corrected[pair]
            marks += other + ("*" if after is not None and after < 0.05 else "")
    return marks


def _test(found: Found, key: Key, base: Key, measure: str) -> tuple[float | None, float | None]:
    """The mean difference and p: Wilcoxon's over queries for one seed, else the mixed view."""
    pairs = found.paired_values(key, base, measure)
    if len(pairs) == 1:
        test = paired_tests(*pairs[0])
        return test.difference, test.wilcoxon_p
    mixed = found.tested(key, base, measure)
    return mixed.mean, mixed.p


def significance_table(found: Found, names: tuple[str, ...], rankers: tuple[str, ...] = RANKERS) -> Table:
    """nDCG@10 on the rotated against the original test, with the tests."""
    labels, tests = [], []
    for name in names:
        for ranker in rankers:
            for training in VERSIONS:
                keys = both_tests(name, ranker, training)
                if keys[0] in found.values:
                    labels.append((name, ranker, training))
                    tests.append((found.difference(*keys), found.tested(*keys), _wilcoxon(found, *keys)))
    corrected = holm([mixed.p for _, mixed, _ in tests])
    rows = [
        Row(
            own,
            {
                "difference": difference,
                "p": Value(mixed.p, mixed.queries, "queries"),
                "holm": Value(after, mixed.queries, "queries"),
                "wilcoxon": Value(wilcoxon, mixed.queries, "queries"),
            },
        )
        for own, (difference, mixed, wilcoxon), after in zip(labels, tests, corrected, strict=True)
    ]
    headings = {"difference": "rotated − original", "p": "p", "holm": "p, Holm", "wilcoxon": "Wilcoxon p"}
    notes = (
        "Differences of nDCG@10. p: paired t over queries for one seed, else the mixed view (queries nested in seeds);"
        " Wilcoxon over the queries' means over seeds where all seeds have the same queries, else over all queries."
        " Holm over the rows.",
    )
    heads = ("collection", "model", "training")
    return Table("Rotated test", "What rotating the test passages costs", heads, headings, tuple(rows), notes, 4)


def _wilcoxon(found: Found, key: Key, base: Key) -> float | None:
    pairs = found.paired_values(key, base, "ndcg")
    if found.same_queries:
        joined: list[Array] = [np.mean([pair[side] for pair in pairs], axis=0) for side in (0, 1)]
    else:
        joined = [np.concatenate([pair[side] for pair in pairs]) for side in (0, 1)]
    return paired_tests(*joined).wilcoxon_p
