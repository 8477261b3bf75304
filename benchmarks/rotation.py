"""Rotating a collection beside the same in SQL and a bare scan, and its memory at two sizes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from .collections import write_collections
from .measure import Cost, Row, bare_scan, once, run, run_command

SMALL, LARGE, MARCO = 1_000_000, 3_000_000, 8_841_823


def in_duckdb(folder: str) -> None:
    """The same in SQL: the words of each text from a place that a hash of its id gives, then those before it."""
    import duckdb

    form = "header = false, delim = '\t', quote = '', escape = '', columns = {'id': 'VARCHAR', 'text': 'VARCHAR'}"
    with duckdb.connect() as base:
        base.execute(
            f"""
            COPY (
              SELECT id, array_to_string(list_concat(words[cut + 1 :], words[: cut]), ' ')
              FROM (
                SELECT id, words, hash(id) % len(words) AS cut
                FROM (SELECT id, string_split(text, ' ') AS words FROM read_csv('{folder}/large.tsv', {form}))
              )
            ) TO '{folder}/duckdb.tsv' (header false, delimiter '\t', quote '', escape '')
            """
        )


def copy(folder: str) -> None:
    """Reads the file and writes it again, as no program that writes a collection can avoid; prints seconds."""
    start = time.perf_counter()
    with (Path(folder) / "large.tsv").open("rb") as source, (Path(folder) / "large.out.tsv").open("wb") as out:
        while block := source.read(1 << 24):
            out.write(block)
    print(time.perf_counter() - start)


def _rotate(folder: Path, size: str) -> Cost:
    command = [str(Path(sys.executable).with_name("evenrank")), "rotate", str(folder / f"{size}.tsv"), "--quiet"]
    return run_command([*command, "--out", str(folder / f"{size}.out.tsv")])


def make(folder: Path) -> None:
    """Writes the collections."""
    write_collections(folder, {"small": SMALL, "large": LARGE})


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    size = (folder / "large.tsv").stat().st_size / 1e6
    bare_scan(folder / "large.tsv")
    scan = size / bare_scan(folder / "large.tsv")
    small, large = _rotate(folder, "small"), _rotate(folder, "large")
    duckdb, copied = run("rotation.in_duckdb", str(folder)), run("rotation.copy", str(folder))
    # A straight line through both sizes: what it starts with, and what a passage costs.
    a_passage = (large.seconds - small.seconds) / (LARGE - SMALL)
    what = f"`evenrank rotate` of 3 million passages ({size:.0f} MB)"
    return [
        Row(f"{what}, CPU seconds, against the same in DuckDB", large.cpu_seconds, "s", duckdb.cpu_seconds, least=1),
        Row("its peak memory", large.megabytes, "MB", duckdb.megabytes, "share"),
        Row("its peak memory, against that of 1 million passages", large.megabytes, "MB", small.megabytes, "share"),
        Row("its rate, against a bare scan of the file", size / large.seconds, "MB/s", scan, compare="share"),
        Row("copying the file, against a bare scan of it", size / float(copied.said), "MB/s", scan, compare="share"),
        Row(
            f"rotating {MARCO:,} passages, from a line through 1 and 3 million",
            large.seconds + a_passage * (MARCO - LARGE),
            "s",
            most=60,
        ),
    ]
