"""Time, peak memory and their growth from 1 to 10 million passages, and a run of 7 million lines.

Not part of ``make bench`` (a quarter of an hour, 10 GB of disk): ``make bench-large``. ``EVENRANK_LARGE`` sets another
size than 10 million.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import polars as pl

from .collections import write_collections
from .measure import Cost, Row, bare_scan, run_command

LARGE = int(os.environ.get("EVENRANK_LARGE", 10_000_000))
SMALL = LARGE // 10
QUERIES, DEPTH, ASKED = 7_000, 1_000, 200
RUNS = 1
MARCO_2, WEB = 138_364_198, 10_000_000_000


def make(folder: Path) -> None:
    """Both collections, a run over each, judgements, and questions."""
    from evenrank.files.synthetic import SyntheticConfig, generate

    write_collections(folder, {"small": SMALL, "large": LARGE})
    questions = generate(SyntheticConfig(passages=20_000, queries=ASKED)).queries
    questions.select("query_id", "text").write_csv(folder / "queries.tsv", separator="\t", include_header=False)
    rng = np.random.default_rng(0)
    for name, size in (("small", SMALL), ("large", LARGE)):
        queries = QUERIES * size // LARGE
        docs = ((np.arange(queries)[:, None] * 7_919_003 + np.arange(DEPTH) * 8_191) % size).ravel()
        score = -np.sort(-rng.gamma(4, 2, (queries, DEPTH)).round(4), axis=1).ravel()
        table = pl.DataFrame({"query_id": np.repeat(np.arange(queries), DEPTH), "q0": "Q0", "doc_id": docs})
        table = table.with_columns(
            pl.Series("rank", np.tile(np.arange(1, DEPTH + 1), queries)), pl.Series(score), tag=1
        )
        table.write_csv(folder / f"{name}.run", separator=" ", include_header=False)
        relevant = table[np.arange(queries) * DEPTH + np.minimum(rng.geometric(0.05, queries) - 1, DEPTH - 1)]
        relevant.select("query_id", pl.lit(0).alias("iteration"), "doc_id", pl.lit(1).alias("relevance")).write_csv(
            folder / f"{name}.qrels", separator=" ", include_header=False
        )


def _commands(folder: Path, name: str) -> dict[str, list[str]]:
    def at(suffix: str) -> str:
        return str(folder / f"{name}.{suffix}")

    questions = str(folder / "queries.tsv")
    scored = ["--scores", at("parquet"), "--qrels", at("qrels")]
    return {
        "score": ["score", at("tsv"), "--out", at("parquet")],
        "rotate": ["rotate", at("tsv"), "--out", at("rotated.tsv")],
        f"retrieve ({ASKED} queries)": ["retrieve", at("tsv"), questions, "--out", at("bm25")],
        "audit": ["audit", f"run={at('run')}", *scored, "--json", at("json")],
    }


def _cost(command: list[str]) -> Cost:
    quiet = [] if command[0] == "audit" else ["--quiet"]
    return run_command([sys.executable, "-m", "evenrank", *command, *quiet])


def rows(folder: Path) -> list[Row]:
    """For each command: seconds and memory at the large size, at the small size, their ratio."""
    make(folder)
    table = []
    size = (folder / "large.tsv").stat().st_size
    bare_scan(folder / "large.tsv")
    scan = bare_scan(folder / "large.tsv")
    table.append(Row(f"a bare scan of {LARGE:,} passages ({size / 1e9:.1f} GB)", scan, "s"))
    small, large = _commands(folder, "small"), _commands(folder, "large")
    for name, command in small.items():
        little, much = _cost(command), _cost(large[name])
        lines = f"{QUERIES * DEPTH:,} lines" if name == "audit" else f"{LARGE:,}"
        what = f"`evenrank {name}`, {lines}, as a multiple of a tenth of them"
        table.append(Row(what, much.seconds, "s", little.seconds, compare="share", most=10))
        table.append(Row(f"its memory, {lines}", much.megabytes, "MB", little.megabytes, compare="share"))
        if name in ("score", "rotate"):
            # A straight line through both sizes.
            each = (much.seconds - little.seconds) / (LARGE - SMALL)
            for what, passages in (("MS MARCO v2", MARCO_2), ("10 billion passages", WEB)):
                hours = (much.seconds + each * (passages - LARGE)) / 3600
                table.append(Row(f"`evenrank {name}` of {what}, on paper", hours, "hours"))
        for file in folder.glob("*.rotated.tsv*"):
            file.unlink()
    return table
