"""Negatives of a long run beside the same in SQL; and training lists drawn while BM25 searches."""

from __future__ import annotations

import math
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Row, once, run, run_command

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


def in_duckdb(folder: str) -> None:
    """The same in SQL: the most biased unjudged documents, others in the order of a hash, and what is judged."""
    import duckdb

    biased = math.floor(SHARE * N + 1e-9)
    form = "header = false, delim = ' ', quote = '', escape = ''"
    with duckdb.connect() as base:
        base.execute(
            f"""
            CREATE VIEW run AS SELECT column0 AS query_id, column2 AS doc_id, column4::DOUBLE AS score
              FROM read_csv('{folder}/long.run', {form}, all_varchar = true);
            CREATE VIEW qrels AS SELECT column0 AS query_id, column2 AS doc_id, column3::INT AS label
              FROM read_csv('{folder}/qrels.txt', {form}, all_varchar = true);
            CREATE VIEW scored AS SELECT *, abs(ln(1 + count_m) - ln(1 + count_f)) AS beta
              FROM run JOIN '{folder}/scores.parquet' USING (doc_id) ANTI JOIN qrels USING (query_id, doc_id);
            CREATE VIEW ranked AS SELECT query_id, doc_id,
                row_number() OVER (PARTITION BY query_id ORDER BY beta DESC, score DESC, doc_id DESC) AS place
              FROM scored;
            COPY (
              SELECT * FROM qrels
              UNION ALL SELECT query_id, doc_id, 0 FROM ranked WHERE place <= {biased}
              UNION ALL SELECT query_id, doc_id, 0 FROM ranked WHERE place > {biased}
                QUALIFY row_number() OVER (PARTITION BY query_id ORDER BY hash(query_id, doc_id)) <= {N - biased}
              ORDER BY query_id
            ) TO '{folder}/duckdb.parquet'
            """
        )
    print(pl.scan_parquet(f"{folder}/duckdb.parquet").select(pl.len()).collect().item())


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
    files = [str(folder / "long.run"), "--scores", str(folder / "scores.parquet"), "--qrels", str(folder / "qrels.txt")]
    command = [
        str(Path(sys.executable).with_name("evenrank")),
        "negatives",
        *files,
        "--n",
        f"{N}",
        "--share",
        f"{SHARE}",
    ]
    ours = run_command([*command, "--out", str(folder / "long.parquet"), "--quiet"])
    duckdb = run("negatives.in_duckdb", str(folder))
    what = "`evenrank negatives` of a run of 10 million lines, CPU seconds, against the same in DuckDB"
    return [
        Row(what, ours.cpu_seconds, "s", duckdb.cpu_seconds, least=1),
        Row("its peak memory", ours.megabytes, "MB", duckdb.megabytes, "share"),
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
