"""Public judgements of people, and the grades that language models gave the same pairs of query and document.

Grep-BiasIR is part of the public data. The two folders of language models' grades are clones of GitHub's
naghmefarzi/llmjudge (TREC DL 2019: NIST's grades and 37 runs) and aminbigdeli/bias-eval-llms (Grep-BiasIR's pairs); no
licence is stated for the grades, so that nothing of them is kept here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array

from . import cell

GREP_BIAS, TREC, CHATS = cell.DATA / "grepbiasir", cell.CLONES / "llmjudge", cell.CLONES / "bias-eval-llms"
LANGUAGE_MODELS = {
    "Llama 3 8B, one prompt": "dl2019_test_baseline",
    "Llama 3 8B, four prompts": "4_prompts_dl2019",
    "Llama 3 8B, two steps": "dl2019_sun",
    "Llama 3 8B, by a made-up query": "dl2019_dev_gen",
    "Llama 3 70B, four prompts": "dl2019_test_4prompts_llama70b",
    "Flan-T5, four prompts": "dl2019_test_4prompts_flant5large",
    "Flan-T5, two steps": "dl2019_test_sun",
}
CHAT_MODELS = {
    "GPT-4o": "chatgpt-4o",
    "Claude 3 Haiku": "claude-3-haiku",
    "Llama 3.3": "llama3.3",
    "Phi-4": "phi4",
    "Qwen 2.5": "qwen2.5",
}
_BEYOND, _OWN = 1 << 20, 6


@dataclass(frozen=True, slots=True)
class Pool:
    """People's ``grade`` [Q, D] of a pool of documents, their ``ranks`` [R, Q, D] in runs, and ``models``' grades."""

    grade: Array
    ranks: Array
    models: dict[str, Array] = field(default_factory=dict)


def two_runs(pool: Pool, rng: np.random.Generator) -> Pool:
    """The pool with two of its runs, by chance."""
    return Pool(pool.grade, pool.ranks[rng.permutation(len(pool.ranks))[:2]], pool.models)


@functools.cache
def first_found(size: int) -> Pool:
    """Grep-BiasIR: what BM25 finds first, in its order and in another one."""
    run = evenrank.read_run(GREP_BIAS / "bm25.run").table.filter(pl.col("rank") <= size)
    qrels = evenrank.read_qrels(GREP_BIAS / "qrels.txt")
    table = run.join(qrels, on=["query_id", "doc_id"], how="left").fill_null(0).sort("query_id", "rank")
    whole = table.filter(pl.len().over("query_id") == size)
    grade = (whole["relevance"].to_numpy() > 0).astype(int).reshape(-1, size)
    first = np.tile(np.arange(1, size + 1), (len(grade), 1))
    order = np.random.default_rng(1).normal(size=grade.shape) * 4 + first
    return Pool(grade, np.stack([first, _ranks(order)]))


def _ranks(keys: Array) -> Array:
    """The rank of each key [Q, D] in its row, from the smallest on."""
    ranks: Array = np.argsort(np.argsort(keys, axis=1), axis=1) + 1
    return ranks


@functools.cache
def trec(depth: int) -> Pool:
    """TREC DL 2019: what its 37 runs find in the first ranks, and seven judges."""
    files = sorted((TREC / "trec-dl-2019/runs-compressed/deep").glob("input.*.gz"))
    read = [evenrank.read_run(file).table.filter(pl.col("rank") <= depth) for file in files]
    runs = pl.concat([run.with_columns(run=pl.lit(number)) for number, run in enumerate(read)])
    judged = evenrank.read_qrels(TREC / "data/dl2019/2019qrels-pass.txt").rename({"relevance": "people"})
    pairs = runs.select("query_id", "doc_id").unique().join(judged, on=["query_id", "doc_id"])
    for name, stem in LANGUAGE_MODELS.items():
        (file,) = (TREC / "results").glob(f"{stem}*")
        grades = evenrank.read_qrels(file).rename({"relevance": name})
        pairs = pairs.join(grades, on=["query_id", "doc_id"], how="left")
    pairs = pairs.fill_null(0).sort("query_id", "doc_id")
    pairs = pairs.with_columns(q=pl.col("query_id").rank("dense") - 1, d=pl.int_range(pl.len()).over("query_id"))
    ranked = runs.join(pairs, on=["query_id", "doc_id"])
    shape = pairs["query_id"].n_unique(), 1 + int(pairs["d"].to_numpy().max())
    ranks = np.full((len(files), *shape), _BEYOND)
    ranks[tuple(ranked[name].to_numpy() for name in ("run", "q", "d"))] = ranked["rank"].to_numpy()
    graded = {name: np.zeros(shape, int) for name in ("people", *LANGUAGE_MODELS)}
    for name, grades in graded.items():
        grades[pairs["q"].to_numpy(), pairs["d"].to_numpy()] = pairs[name].to_numpy()
    return Pool(graded.pop("people"), ranks, graded)


@functools.cache
def chats() -> Pool:
    """Grep-BiasIR's own six documents of each query, in two orders of which one is better, and five chat models."""
    tables = []
    for stem in CHAT_MODELS.values():
        (folder,) = (CHATS / "results/relevance").glob(f"{stem}*")
        read = pl.concat([pl.read_csv(file, infer_schema=False) for file in sorted(folder.glob("*.csv"))])
        said = pl.col("llm_relevance_response").str.strip_chars("[]")
        tables.append(
            read.select(pl.col("q_id", "d_id", "relevant").cast(pl.Int64), said.cast(pl.Int64)).sort("q_id", "d_id")
        )
    people, *models = (
        table.sort("q_id", "d_id")[name].to_numpy().reshape(-1, _OWN)
        for table, name in zip(
            (tables[0], *tables), ("relevant", *["llm_relevance_response"] * len(tables)), strict=True
        )
    )
    noise = np.random.default_rng(2).normal(size=(2, *people.shape))
    ranks = np.stack([_ranks(noise[0] - people), _ranks(noise[1] - people / 2)])
    # A model's 2 is people's relevant.
    graded = zip(CHAT_MODELS, ((grades >= 2).astype(int) for grades in models), strict=True)
    return Pool(people, ranks, dict(graded))
