"""Negatives of a long run against a plain loop over its lines and queries."""

from __future__ import annotations

import itertools
import math
import operator
import random
import shutil
import time
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Row, once, run

DEPTH, DOCUMENTS, STEP, QUERIES = 1_000, 1_000_000, 1_000, 10_000
N, SHARE = 20, 0.6


def make(folder: Path) -> None:
    """A run of 10,000 queries × 1,000 over a million scored documents, one of them judged relevant a query."""
    rng = np.random.default_rng(0)
    counts = rng.poisson([0.4, 0.6], (DOCUMENTS, 2)).astype(np.int32)
    words = np.log1p(counts)
    columns = {"doc_id": np.arange(DOCUMENTS).astype(str), "tokens": np.full(DOCUMENTS, 55, np.int32)}
    for place, group in enumerate("fm"):
        columns |= {f"count_{group}": counts[:, place], f"magnitude_tf_words_{group}": words[:, place]}
    pl.DataFrame({**columns, "neutrality": np.ones(DOCUMENTS)}).write_parquet(folder / "scores.parquet")
    with (folder / "long.run").open("wb") as long, (folder / "qrels.txt").open("wb") as qrels:
        for start in range(0, QUERIES, STEP):
            query = np.arange(start, start + STEP)
            docs = ((query[:, None] * 7_919_003 + np.arange(DEPTH) * 8_191) % DOCUMENTS).ravel()
            table = pl.DataFrame(
                {
                    "query_id": np.repeat(query + 1_000_000, DEPTH),
                    "q0": "Q0",
                    "doc_id": docs,
                    "rank": np.tile(np.arange(1, DEPTH + 1), STEP),
                    "score": -np.sort(-rng.gamma(4, 2, (STEP, DEPTH)).round(4), axis=1).ravel(),
                    "tag": "run",
                }
            )
            table.write_csv(long, separator=" ", include_header=False)
            judged = table[np.arange(STEP) * DEPTH + np.minimum(rng.geometric(0.05, STEP) - 1, DEPTH - 1)]
            judged = judged.select("query_id", pl.lit(0).alias("iteration"), "doc_id", pl.lit(1).alias("relevance"))
            judged.write_csv(qrels, separator=" ", include_header=False)
    # Loops are compiled on a machine's first use.
    run("negatives.ours", str(folder))


def ours(folder: str) -> None:
    """Samples; prints lines a second without the interpreter's start."""
    from evenrank.mitigation.negatives import sample, write_negatives

    # Compiled on a machine's first use and loaded from disk after: not what is measured here.
    sample(pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "beta": [1.0]}))
    home = Path(folder)
    start = time.perf_counter()
    done = write_negatives(
        home / "long.run",
        out=home / "long.parquet",
        scores=home / "scores.parquet",
        qrels=home / "qrels.txt",
        n=N,
        share=SHARE,
    )
    print(done["queries"] * DEPTH / (time.perf_counter() - start))


def loop(folder: str) -> None:
    """The same by a loop over lines and queries; prints lines a second."""
    home = Path(folder)
    start = time.perf_counter()
    scored = pl.read_parquet(home / "scores.parquet", columns=["doc_id", "count_m", "count_f"])
    beta = {doc: abs(math.log1p(m) - math.log1p(f)) for doc, m, f in scored.iter_rows()}
    judged: dict[str, dict[str, int]] = {}
    for line in (home / "qrels.txt").open():
        query, _, doc, grade = line.split()
        judged.setdefault(query, {})[doc] = int(grade)
    rows = []
    lines = 0
    with (home / "long.run").open() as stream:
        for query, of_query in itertools.groupby(map(str.split, stream), key=operator.itemgetter(0)):
            ranked = sorted(((float(score), doc) for _, _, doc, _, score, _ in of_query), reverse=True)
            lines += len(ranked)
            unjudged = [doc for _, doc in ranked if doc not in judged[query]]
            biased = sorted(unjudged, key=lambda doc: -beta[doc])[: math.floor(SHARE * N + 1e-9)]
            chosen = set(biased)
            rest = [doc for doc in unjudged if doc not in chosen]
            drawn = biased + random.Random(f"0 {query}").sample(rest, N - len(biased))
            rows.append((query, [*judged[query], *drawn], [*judged[query].values(), *[0] * len(drawn)]))
    table = pl.DataFrame(rows, schema=["query_id", "doc_id", "label"], orient="row")
    table.write_parquet(home / "loop.parquet")
    print(lines / (time.perf_counter() - start))


def make_texts(folder: Path) -> None:
    """100,000 passages of 30 words and 40,000 queries of 4, one passage relevant to each, in Zipf's distribution."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(30_000)] + ["he", "she", "man", "woman"])
    shares = 1 / np.arange(10, len(words) + 10)
    shares /= shares.sum()
    for name, count, length in (("passages", 100_000, 30), ("queries", 40_000, 4)):
        drawn = words[rng.choice(len(words), (count, length), p=shares)]
        texts = [f"{number}\t{' '.join(row)}\n" for number, row in enumerate(drawn)]
        (folder / f"{name}.tsv").write_text("".join(texts), encoding="utf-8")
    (folder / "relevant.txt").write_text("".join(f"{q} 0 {2 * q} 1\n" for q in range(40_000)), encoding="utf-8")


def drawn(folder: str, way: str) -> None:
    """Negatives of all queries' first 500 passages: while BM25 searches, or through a run file; prints the seconds."""
    from evenrank.files import read_qrels, read_queries
    from evenrank.mitigation.negatives import write_negatives
    from evenrank.papers.sources import Lists, Part

    home, start = Path(folder), time.perf_counter()
    collection, queries, qrels = (str(home / name) for name in ("passages.tsv", "queries.tsv", "relevant.txt"))
    lists, out = Lists(collection, home / way), home / f"{way}.parquet"
    if way == "streamed":
        part = Part(collection, queries, qrels, "", 40_000)
        groups = {"lexicon": "gender-en", "tokens": "word"}
        lists.negatives(part, {out: SHARE}, n=N, depth=500, seed=0, **groups)  # type: ignore[arg-type]
    else:
        part = lists.part("train", read_queries(queries), read_qrels(qrels), depth=500)
        write_negatives(part.run, out=out, collection=collection, qrels=qrels, n=N, share=SHARE)
    print(time.perf_counter() - start)


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    ours, plain = run("negatives.ours", str(folder)), run("negatives.loop", str(folder))
    return [
        Row(
            "negatives of a run of 10 million lines, against a plain Python loop",
            float(ours.said),
            "lines/s",
            float(plain.said),
            least=6,
        ),
        Row("its peak memory", ours.megabytes, "MB"),
        *_drawn_rows(folder),
    ]


def _drawn_rows(folder: Path) -> list[Row]:
    """Training lists without a run file against those made through one."""
    once(folder, make_texts)
    for way in ("streamed", "filed"):
        # What is there already would not be made again.
        shutil.rmtree(folder / way, ignore_errors=True)
        for file in folder.glob(f"{way}.parquet*"):
            file.unlink()
    streamed, filed = run("negatives.drawn", str(folder), "streamed"), run("negatives.drawn", str(folder), "filed")
    if not pl.read_parquet(folder / "streamed.parquet").equals(pl.read_parquet(folder / "filed.parquet")):
        raise SystemExit("negatives: the lists drawn while BM25 searches differ from those made through a run file")
    what = "training lists of 40,000 queries drawn while BM25 searches"
    return [
        Row(f"{what}, against a run file of 20 million lines", float(streamed.said), "s", float(filed.said), least=1),
        Row(f"{what}, peak memory, against a run file", streamed.megabytes, "MB", filed.megabytes, "share"),
    ]
