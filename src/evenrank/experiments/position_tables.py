"""The tables of the position experiment."""

from __future__ import annotations

import numpy as np

from evenrank.io.types import Array
from evenrank.measures.statistics import bootstrap_means, holm, interval, paired_tests
from evenrank.position.term_similarity import TermSimilarity

from .paper_tables import Row, Table, Value, paired
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, RANKERS, VERSIONS, Experiment
from .published import numbers, published

MEASURES = {"ndcg": "nDCG@10", "mrr": "RR@10", "recall": "R@10"}
Values = dict[str, Array]
"""The values of each measure by query, in the order of the sorted query ids."""
Key = tuple[str, str, str, str]
"""Collection, ranker, training, version of the test passages."""


class Found:
    """The measured values, by :data:`Key`, for each seed."""

    def __init__(self) -> None:
        self.values: dict[Key, list[Values]] = {}
        self.similarity: dict[tuple[str, str], list[TermSimilarity]] = {}

    def mean(self, key: Key, measure: str) -> list[float]:
        """The mean for each seed."""
        return [float(np.nanmean(values[measure])) for values in self.values.get(key, [])]

    def value(self, key: Key, measure: str) -> Value:
        """The mean over seeds; for a single seed, with the interval over queries."""
        means = self.mean(key, measure)
        if len(means) != 1:
            return Value.over_seeds(list(means))
        draws = bootstrap_means(self.values[key][0][measure][:, None], 0)[:, 0]
        return Value(means[0], len(self.values[key][0][measure]), "queries", interval(draws))


def sizes_table(experiment: Experiment, seed: int) -> Table:
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


def effectiveness_table(found: Found, title: str, name: str, file: str) -> Table:
    columns = [f"{measure}_{short}" for measure in MEASURES for short in ("orig", "deb")]
    rows = []
    for line in published(file):
        measured = table_row(found, name, line["model"], line["training"])
        rows.append(Row((line["model"], line["training"]), measured, numbers(line, columns)))
    rows += [Row((system, ""), table_row(found, name, system, ""), control=True) for system in ("BM25", "random")]
    heads = {"ndcg": "nDCG", "mrr": "MRR", "recall": "Recall"}
    headings = {f"{m}_{s}": f"{heads[m]} {s}." for m in MEASURES for s in ("orig", "deb")}
    headings |= {"change": "Δ nDCG (%)", "change_original": "Δ of orig. (%)"}
    notes = (
        "At 10. Δ: (debiased − original)/debiased, as the published tables have it; Δ of orig.: relative to the"
        " original. BM25 does not see the order of words; random is the expectation over random orders.",
    )
    return Table(title, f"Trained and tested on {name}", ("model", "training"), headings, tuple(rows), notes)


def table_row(found: Found, name: str, ranker: str, training: str) -> dict[str, Value]:
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


def transfer_table(found: Found) -> Table:
    """Transfer; letters name the rows that are significantly worse, by Wilcoxon's test over queries."""
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


def _letters(found: Found, model: str, key: Key, measure: str) -> str:
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


def _joined(found: Found, key: Key, measure: str) -> Array:
    """The values of all queries of all seeds."""
    values: Array = np.concatenate([one[measure] for one in found.values[key]])
    return values


def significance_table(found: Found) -> Table:
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
