"""Scoring through other engines, by CPU seconds, and the sums of a log of rankings in DuckDB.

``EVENRANK_LOG`` sets another number of rows than 10 million.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars as pl

from .collections import write_collections
from .measure import Row, once, run, run_command

PASSAGES = 1_000_000
LOG = int(os.environ.get("EVENRANK_LOG", 10_000_000))
DOCUMENTS, DEPTH, MEMORY = 1_000_000, 10, "2GB"
MEASURES = "ARaB@10 Share(group='f')@10 Share(group='m')@10"
RUNS = 1


def duckdb_scores(folder: str) -> None:
    """The documents that DuckDB reads, in batches through ``score_batch``, written by DuckDB."""
    import duckdb
    import pyarrow as pa

    import evenrank

    with duckdb.connect() as source, duckdb.connect() as target:
        pages = source.sql(f"SELECT doc_id, text FROM '{folder}/pages.parquet'").to_arrow_reader(100_000)
        batches = (part for page in pages for part in evenrank.score_batch(pa.table(page)).to_batches())
        first = next(batches)
        groups = pa.RecordBatchReader.from_batches(first.schema, (part for some in ([first], batches) for part in some))
        target.register("groups", groups)
        target.sql(f"COPY (SELECT * FROM groups) TO '{folder}/duckdb.parquet'")


def sums(folder: str) -> None:
    """The query of ``evenrank audit --sql duckdb`` on a log: a tenth as many views, a thirtieth as many queries."""
    import duckdb

    from evenrank import audit_sql

    sql = audit_sql("duckdb", measures=MEASURES)
    for table in ("rankings", "scores"):
        sql = sql.replace(f"FROM {table}", f"FROM '{folder}/{table}.parquet'")
    with duckdb.connect() as base:
        base.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = '{folder}/spilled'")
        base.execute(f"COPY ({sql}) TO '{folder}/sums.parquet'")


def make(folder: Path) -> None:
    """The collection and the log; DuckDB's hashes are its random numbers."""
    import duckdb

    write_collections(folder, {"pages": PASSAGES})
    pages = pl.read_csv(folder / "pages.tsv", separator="\t", has_header=False, quote_char=None, infer_schema=False)
    pages.rename(dict(zip(pages.columns, ("doc_id", "text"), strict=True))).write_parquet(folder / "pages.parquet")
    view = f"i // {DEPTH}"
    query = f"'words ' || CAST(pow(hash({view}) % 1000000 / 1e6, 3) * {LOG // 30} AS BIGINT)"
    with duckdb.connect() as base:
        base.execute(f"SET memory_limit = '{MEMORY}'; SET preserve_insertion_order = false")
        base.execute(
            f"COPY (SELECT {view} AS query_id, {query} AS query, 'd' || (hash(i) % {DOCUMENTS}) AS doc_id,"
            f" i % {DEPTH} + 1 AS rank FROM range({LOG}) AS log(i)) TO '{folder}/rankings.parquet'"
        )
        base.execute(
            "COPY (SELECT 'd' || i AS doc_id, hash(i) % 4 AS count_f, hash(i + 0.5) % 4 AS count_m, 1.0 AS neutrality"
            f" FROM range({DOCUMENTS}) AS documents(i)) TO '{folder}/scores.parquet'"
        )


def rows(folder: Path) -> list[Row]:
    """Each engine against the plain command; time and memory of the sums, and of their audit."""
    once(folder, make)
    evenrank = [sys.executable, "-m", "evenrank"]
    score = [*evenrank, "score", str(folder / "pages.parquet"), "--quiet", "--out"]
    plain = PASSAGES / run_command([*score, str(folder / "plain.parquet")]).cpu_seconds
    ray = PASSAGES / run_command([*score, str(folder / "ray"), "--engine", "ray"]).cpu_seconds
    duckdb = PASSAGES / run("machines.duckdb_scores", str(folder)).cpu_seconds
    made, audited = (
        run("machines.sums", str(folder)),
        run_command([*evenrank, "audit", "--sums", f"{folder}/sums.parquet"]),
    )
    queries = pl.scan_parquet(folder / "sums.parquet").select(pl.len()).collect().item()
    scoring, log = f"scoring {PASSAGES:,} passages", f"a log of {LOG:,} rows"
    return [
        Row(f"{scoring} by Ray Data, in CPU seconds, against `evenrank score`", ray, "docs/s", plain),
        Row(
            f"{scoring} by DuckDB and `score_batch`, in CPU seconds, against `evenrank score`", duckdb, "docs/s", plain
        ),
        Row(f"sums of {log} in DuckDB, three measures: CPU seconds", made.cpu_seconds, "s"),
        Row("their time, on two cores", made.seconds, "s"),
        Row(f"their peak memory, with `memory_limit = '{MEMORY}'`", made.megabytes, "MB", most=3000),
        Row(f"`evenrank audit --sums` of them, {queries:,} queries", audited.seconds, "s"),
        Row("its peak memory", audited.megabytes, "MB", most=3000),
    ]
