"""The expansion experiment on small data, and its figures by a slow and obvious second way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import read_qrels, read_queries
from evenrank.files.synthetic import SyntheticConfig
from evenrank.papers import expansion_paper, expansion_setup
from evenrank.papers.expansion_paper import Measured
from evenrank.papers.expansion_setup import BUILT_IN, LOCAL, Settings
from evenrank.papers.paper_page import ExperimentPage, Row, Table, Value
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import Index
from evenrank.search.embeddings import Vectors, gender_en, hard_debias
from evenrank.search.expansion import RM3, query_words
from evenrank.search.fusion import interpolate

Lists = dict[str, list[str]]
Judged = dict[str, dict[str, int]]


def micro() -> Settings:
    planted = SyntheticConfig(passages=300, queries=24, relevant=2, sentences=4, relevance_gender_rate=0.8)
    return replace(
        expansion_setup.tiny(),
        scale="micro",
        seeds=(0, 1),
        planted=planted,
        vectors=(LOCAL,),
        vector_size=8,
        depth=50,
        folds=2,
        biased_words=60,
        svm_words=20,
    )


@dataclass(frozen=True)
class Done:
    page: ExperimentPage
    folder: Path
    found: list[Measured]

    def table(self, name: str) -> Table:
        return table(self.page, name)


def table(page: ExperimentPage, name: str) -> Table:
    return next(one for one in page.tables if one.name.startswith(f"{name} ("))


def row(found: Table, label: str) -> Row:
    return next(one for one in found.rows if one.labels[0] == label)


def run(settings: Settings, folder: Path, **patches: Callable[..., Any]) -> Done:
    """Runs the experiment, with names of ``expansion_paper`` replaced; the measured data are kept."""
    found: list[Measured] = []

    def claims(one: Measured) -> Any:
        found.append(one)
        return kept(one)

    kept = patches.pop("claims", expansion_paper.claims)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansion_paper, "claims", claims)
        for name, other in patches.items():
            patch.setattr(expansion_paper, name, other)
        page = expansion_paper.run(settings, folder)
    page.write(folder)
    return Done(page, folder, found)


# --- the second way --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slow:
    """AP and P@30 by ranking and query, and the ids of the queries that changed; of one seed."""

    values: dict[str, dict[str, tuple[float, float]]]
    changed: set[str]
    texts: dict[str, str]
    """Text → id."""


def slow(settings: Settings, folder: Path, seed: int) -> Slow:
    """Every step anew: nearest words by loops, AP, P@30 and nDCG@10 from sorted lists, λ by trying all."""
    home = folder / f"built-in-{seed}"
    queries = read_queries(home / "queries.tsv")
    judged: Judged = {}
    for query, doc, grade in read_qrels(home / "qrels.txt").select("query_id", "doc_id", "relevance").iter_rows():
        judged.setdefault(query, {})[doc] = grade
    index = Index.build(str(home / "collection.tsv"), Analyzer("english", "english"), forward=True, quiet=True)
    vectors = Vectors.load(folder / "vectors" / f"{BUILT_IN}-{seed}")
    sets = gender_en()
    after = hard_debias(vectors, sets.definitional, sets.equalize, sets.specific).vectors
    runs = {"Regular": index.search(queries, settings.depth, rm3=RM3(), quiet=True)}
    words = {}
    for name, space in (("biased", vectors), ("debiased", after)):
        words[name] = {query: nearest(text, space, settings.k) for query, text in queries.iter_rows()}
        texts = [(query, " ".join(words[name][query]) or text) for query, text in queries.iter_rows()]
        asked = pl.DataFrame(texts, ["query_id", "text"], orient="row")
        runs[f"Expansion {name}"] = index.search(asked, settings.depth, rm3=RM3(), quiet=True)
    lists = {name: in_order(found) for name, found in runs.items()}
    for name in ("Expansion biased", "Expansion debiased"):
        lists[f"Regular + {name}"] = fused(runs["Regular"], runs[name], judged, settings.folds, seed)
    values = {}
    for name, found in lists.items():
        both = {query: (found.get(query, []), of) for query, of in judged.items()}
        values[name] = {query: (precision(*one), p30(*one)) for query, one in both.items()}
    changed = {query for query in words["biased"] if {*words["biased"][query]} != {*words["debiased"][query]}}
    return Slow(values, changed, {text: query for query, text in queries.iter_rows()})


def nearest(text: str, vectors: Vectors, k: int) -> list[str]:
    own = query_words(text)
    rows = {word: vectors.matrix[place].astype(float) for place, word in enumerate(vectors.words)}
    known = [rows[word] / np.linalg.norm(rows[word]) for word in own if word in rows]
    if not known:
        return []
    point = sum(known) / len(known)
    cosine = {w: float(v @ point / np.linalg.norm(v) / np.linalg.norm(point)) for w, v in rows.items() if w not in own}
    return sorted(cosine, key=lambda word: -cosine[word])[:k]


def in_order(found: Any) -> Lists:
    lists: Lists = {}
    for query, doc in found.table.sort("query_id", "rank").select("query_id", "doc_id").iter_rows():
        lists.setdefault(query, []).append(doc)
    return lists


def precision(docs: list[str], judged: dict[str, int]) -> float:
    """Average precision."""
    relevant = {doc for doc, grade in judged.items() if grade > 0}
    hits = [place for place, doc in enumerate(docs, 1) if doc in relevant]
    return sum(number / place for number, place in enumerate(hits, 1)) / len(relevant)


def p30(docs: list[str], judged: dict[str, int]) -> float:
    return sum(judged.get(doc, 0) > 0 for doc in docs[:30]) / 30


def ndcg(docs: list[str], judged: dict[str, int]) -> float:
    def gain(grades: list[int]) -> float:
        return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades[:10], 1))

    return gain([judged.get(doc, 0) for doc in docs]) / gain(sorted(judged.values(), reverse=True))


def fused(first: Any, second: Any, judged: Judged, folds: int, seed: int) -> Lists:
    """Each query with the λ that is best on the other folds, the larger of equal ones."""
    asked = sorted(judged)
    fold = np.random.default_rng([seed, folds]).permutation(np.arange(len(asked)) % folds)
    every = [in_order(interpolate([first, second], weights=[part, 100 - part])) for part in range(100, -1, -1)]
    values = np.array([[ndcg(lists.get(query, []), judged[query]) for query in asked] for lists in every])
    chosen: Lists = {}
    for number in range(folds):
        best = int(values[:, fold != number].mean(axis=1).argmax())
        chosen |= {query: every[best].get(query, []) for query, of in zip(asked, fold, strict=True) if of == number}
    return chosen


NAMES = ("Regular", "Expansion biased", "Expansion debiased")
FUSED = tuple(f"Regular + {name}" for name in NAMES[1:])


def problems(page: ExperimentPage, expected: list[Slow]) -> list[str]:
    """Where Tables 1 and 2 and the published figures differ from the second way, each in words."""
    wrong = []
    for name in (*NAMES, *FUSED):
        found = row(table(page, "Table 1"), name)
        for place, key in enumerate(("map", "p30")):
            full = [[values[place] for values in one.values[name].values()] for one in expected]
            changed = [[one.values[name][query][place] for query in one.changed] for one in expected]
            for column, seeds in ((f"{key}_full", full), (f"{key}_changed", changed)):
                mean = float(np.mean([np.mean(seed) for seed in seeds]))
                measured = found.measured[column].mean if column in found.measured else None
                if measured is None or abs(measured - mean) > 1e-9:
                    wrong.append(f"Table 1, {name}, {column}: {measured}, expected {mean}")
                if found.published.get(column) != PUBLISHED[name][column]:
                    wrong.append(f"Table 1, {name}, {column}: published {found.published.get(column)}")
    first = expected[0]
    listed = {one.labels[0]: one for one in table(page, "Table 2").rows}
    for text, query in first.texts.items():
        pairs = zip(*(first.values[name][query] for name in NAMES[1:]), strict=True)
        ap, precise = (biased - debiased for biased, debiased in pairs)
        if (max(abs(ap), abs(precise)) > 0.01 + 1e-9 and query in first.changed) != (text in listed):
            wrong.append(f"Table 2, {text}: {ap}, {precise}")
        elif text in listed:
            figures = (listed[text].measured.get(f"{key}_difference", Value(None)) for key in ("map", "p30"))
            found = [one.mean for one in figures]
            if None in found or found != pytest.approx([ap, precise], abs=1e-9):
                wrong.append(f"Table 2, {text}: {found}, expected {ap}, {precise}")
    return wrong


PUBLISHED = {
    "Expansion biased": {"map_full": 0.106, "p30_full": 0.135, "map_changed": 0.126, "p30_changed": 0.156},
    "Expansion debiased": {"map_full": 0.105, "p30_full": 0.135, "map_changed": 0.117, "p30_changed": 0.158},
    "Regular": {"map_full": 0.290, "p30_full": 0.337, "map_changed": 0.303, "p30_changed": 0.372},
    "Regular + Expansion biased": {"map_full": 0.290, "p30_full": 0.339, "map_changed": 0.306, "p30_changed": 0.377},
    "Regular + Expansion debiased": {"map_full": 0.290, "p30_full": 0.338, "map_changed": 0.305, "p30_changed": 0.375},
}
"""Table 1 as printed."""
