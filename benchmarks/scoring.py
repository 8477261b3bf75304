"""Scoring 230 MB of text by CPU seconds, start included, beside DuckDB and Hyperscan; and memory at two sizes.

``EVENRANK_TEXT`` sets another collection, of one line ``id<tab>text`` a passage, than the built-in one repeated.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import polars as pl

from .collections import write_collections
from .measure import Cost, Row, bare_scan, once, run, run_command

SMALL, LARGE = 75_000, 750_000


def in_duckdb(folder: str, way: str) -> None:
    """Counts in DuckDB, written as Parquet: ``whole``, the query of ``evenrank lexicon sql``, or ``words``, an
    expression for the words of each group and nothing else; prints how many words were counted."""
    import duckdb

    import evenrank
    from evenrank.groups import load_lexicon

    words: dict[str, list[str]] = {}
    for word, group in load_lexicon().words:
        words.setdefault(group, []).append(word.replace("'", "''"))
    counts = [
        rf"len(regexp_extract_all(text, '(?i)\b(?:{'|'.join(found)})\b')) AS count_{group}"
        for group, found in words.items()
    ]
    plain = f"SELECT doc_id, {', '.join(counts)} FROM docs"
    columns = "columns = {'doc_id': 'VARCHAR', 'text': 'VARCHAR'}"
    form = f"header = false, delim = '\t', quote = '', escape = '', max_line_size = 100000000, {columns}"
    sql = evenrank.lexicon_sql("gender-en", table="docs") if way == "whole" else plain
    with duckdb.connect() as base:
        base.execute(f"CREATE VIEW docs AS SELECT * FROM read_csv('{folder}/large.tsv', {form})")
        base.execute(f"COPY ({sql}) TO '{folder}/duckdb.parquet'")
    counted = pl.scan_parquet(f"{folder}/duckdb.parquet").select(pl.col("^count_.*$").sum()).collect()
    print(sum(counted.row(0)))


def by_hyperscan(folder: str) -> None:
    """Each word of the lexicon, between boundaries, wherever it stands in the file; prints how often one was found."""
    import hyperscan

    from evenrank.groups import load_lexicon

    words = [rf"\b{word}\b".encode() for word, _ in load_lexicon().words]
    base = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    base.compile(expressions=words, flags=[hyperscan.HS_FLAG_CASELESS] * len(words))
    found, rest = [0], b""

    def count(*_: object) -> None:
        found[0] += 1

    with (Path(folder) / "large.tsv").open("rb") as stream:
        while block := stream.read(1 << 24):
            whole, end, rest = (rest + block).rpartition(b"\n")
            base.scan(whole + end, match_event_handler=count)
    base.scan(rest, match_event_handler=count)
    print(found[0])


def make(folder: Path) -> None:
    """Writes the collections; compiles the loops, as a machine does on its first use."""
    write_collections(folder, {"small": SMALL, "large": LARGE})
    if text := os.environ.get("EVENRANK_TEXT"):
        shutil.copyfile(text, folder / "large.tsv")
    _score(folder, "large")


def _score(folder: Path, size: str) -> Cost:
    command = [str(Path(sys.executable).with_name("evenrank")), "score", str(folder / f"{size}.tsv"), "--quiet"]
    return run_command([*command, "--out", str(folder / f"{size}.parquet")])


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    large = folder / "large.tsv"
    what = f"`evenrank score` of {large.stat().st_size / 1e6:.0f} MB, CPU seconds"
    bare_scan(large)
    scan = bare_scan(large)
    whole, small = _score(folder, "large"), _score(folder, "small")
    words, same = (run("scoring.in_duckdb", str(folder), way) for way in ("words", "whole"))
    seconds = whole.cpu_seconds
    found = [
        Row(f"{what}, against DuckDB's expressions for the words alone", seconds, "s", words.cpu_seconds, least=1),
        Row(f"{what}, against DuckDB's query with the same result", seconds, "s", same.cpu_seconds, least=1),
    ]
    if importlib.util.find_spec("hyperscan"):
        alone = run("scoring.by_hyperscan", str(folder)).cpu_seconds
        found.append(Row(f"{what}, against Hyperscan's finding the words alone", seconds, "s", alone, least=0.5))
    return [
        *found,
        Row("its peak memory, against DuckDB's", whole.megabytes, "MB", same.megabytes, "share"),
        Row("its peak memory, against that of a tenth of the text", whole.megabytes, "MB", small.megabytes, "share"),
        Row("its time, against a bare scan of the file", whole.seconds, "s", scan),
    ]
