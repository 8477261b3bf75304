"""How often a probe says that BM25 prefers a wording, asked as the command asks it, of whole collections.

BM25 counts the words of a query. Where no query has a word that the edit takes away or brings, no wording can please
it, so "prefers" is false; with .5 added to the score of each male-worded passage it is true.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import Stemmer

import evenrank
from evenrank.groups import Scoring, load_lexicon, score_texts, sides_of_texts, tokenize
from evenrank.search.bm25 import BM25Scorer

from .cell import DATA, Cell

RULE = "a probe says that BM25 prefers a wording"
SQUAD = DATA / "squad2"
_GENDER = Scoring(load_lexicon())
_PLANTED = 0.5
_stem = Stemmer.Stemmer("english").stemWords


@dataclass(frozen=True, slots=True)
class Collection:
    """Passages (doc_id, text), queries (query_id, text), and what is added to the score of a male-worded passage."""

    passages: pl.DataFrame
    queries: pl.DataFrame
    added: float = 0.0


def made(number: int, rng: np.random.Generator, added: float = 0.0) -> Collection:
    """So many generated passages, four fifths of those with a group male-worded, and a query for each ten of them."""
    seed = int(rng.integers(1 << 31))
    config = evenrank.SyntheticConfig(passages=number, queries=number // 10, male_share=0.8, seed=seed)
    found = evenrank.generate(config)
    return Collection(found.collection, found.queries.select("query_id", "text"), added)


@functools.cache
def paragraphs() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Paragraphs of Wikipedia with a word of a group (doc_id, text), and questions about them (doc_id, text).

    Without the questions that have a word, by its stem, of a group or of the neutral wording ("How many people …"):
    BM25 prefers the wording that has it.
    """
    texts, questions = [], []
    for article in json.loads((SQUAD / "answered.json").read_text())["data"]:
        for paragraph in article["paragraphs"]:
            asked = [one["question"] for one in paragraph["qas"] if one.get("answers")]
            questions += [(f"d{len(texts)}", question) for question in asked]
            texts.append((f"d{len(texts)}", paragraph["context"]))
    passages = pl.DataFrame(texts, schema=["doc_id", "text"], orient="row")
    about = pl.DataFrame(questions, schema=["doc_id", "text"], orient="row")
    counts = score_texts(passages, _GENDER)
    passages = passages.filter(counts["count_m"] + counts["count_f"] > 0)
    neutral = evenrank.variants(passages, kind="neutral").table
    changed = {word for word, _ in load_lexicon().words}
    for before, after in zip(passages["text"], neutral["text"], strict=True):
        changed |= (Counter(tokenize(before)) - Counter(tokenize(after))).keys()
        changed |= (Counter(tokenize(after)) - Counter(tokenize(before))).keys()
    stems = set(_stem(list(changed)))
    return passages, about.filter([stems.isdisjoint(_stem(tokenize(text))) for text in about["text"]])


def real(number: int, rng: np.random.Generator) -> Collection:
    """So many of the paragraphs, each with one of its questions."""
    texts, questions = paragraphs()
    texts = texts.filter(pl.col("doc_id").is_in(questions["doc_id"].implode()))
    chosen = texts[np.sort(rng.choice(texts.height, number, replace=False)).tolist()]
    shuffled = questions[rng.permutation(questions.height).tolist()]
    own = shuffled.join(chosen.select("doc_id"), on="doc_id", how="semi").unique("doc_id", maintain_order=True)
    return Collection(chosen, own.select(query_id="doc_id", text="text"))


def prefers(collection: Collection, *, variant: str) -> bool:
    """Whether the function that the command calls says so."""
    run = evenrank.retrieve(collection.passages, collection.queries, k=20, quiet=True)
    bm25 = BM25Scorer(collection.passages)

    def planted(query: str, passages: list[str]) -> list[float]:
        male = sides_of_texts(passages, _GENDER) > 0
        return (bm25.score([query] * len(passages), passages) + collection.added * male).tolist()

    found = evenrank.probe(
        planted if collection.added else bm25,
        variants=variant,
        collection=collection.passages,
        queries=collection.queries,
        run=run,
        depth=20,
    )
    return found[variant].finding.shown


def _cells() -> Iterator[Cell]:
    few: Any = {"draws": 60, "quick": 1}
    for variant in ("swap", "neutral"):
        said = functools.partial(prefers, variant=variant)
        yield Cell(RULE, f"{variant}: four fifths male", 400, functools.partial(made, 400), said, **few)
        yield Cell(RULE, f"{variant}: Wikipedia", 100, functools.partial(real, 100), said, data=SQUAD, **few)
        planted = functools.partial(made, 400, added=_PLANTED)
        yield Cell(RULE, f"{variant}: .5 more for male wording", 400, planted, said, kind="power", **few)


CELLS = tuple(_cells())
