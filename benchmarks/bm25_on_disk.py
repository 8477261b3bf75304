"""BM25's index on disk: against the one in memory, and against bm25s' mapped index of the same postings.

200,000 passages; ``EVENRANK_LARGE`` sets another size (10 million: some minutes and 10 GB of disk).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .collections import write_collections
from .measure import Row, once, run, run_command

PASSAGES = int(os.environ.get("EVENRANK_LARGE", 200_000))
QUERIES, K, TIMES = 200, 1_000, 3
RUNS = 3 if PASSAGES <= 1_000_000 else 1


def make(folder: Path) -> None:
    """A collection and questions."""
    from evenrank.files.synthetic import SyntheticConfig, generate

    write_collections(folder, {"c": PASSAGES})
    made = generate(SyntheticConfig(passages=20_000, queries=QUERIES)).queries
    made.select("query_id", "text").write_csv(folder / "q.tsv", separator="\t", include_header=False)


def _megabytes() -> float:
    """The most that this process has had resident, mapped pages included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def _opened(folder: str) -> tuple[Any, float]:
    from evenrank import open_index

    start = time.perf_counter()
    index = open_index(f"{folder}/index")
    return index, time.perf_counter() - start


def ours(folder: str) -> None:
    """Prints the seconds to open the index and to search it, and the megabytes that took."""
    from evenrank import read_queries

    index, opened = _opened(folder)
    queries = read_queries(f"{folder}/q.tsv")
    index.search(queries.head(2), K, quiet=True)
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        index.search(queries, K, quiet=True)
        seconds.append(time.perf_counter() - start)
    print(opened, min(seconds), _megabytes())


def give(folder: str) -> None:
    """Writes our postings, and the queries' terms, as bm25s reads them."""
    import bm25s

    from evenrank import read_queries

    index, _ = _opened(folder)
    postings, analyzer = index._index._postings, index._index.analyzer
    terms = analyzer.terms(read_queries(f"{folder}/q.tsv")["text"], grow=False).filter(pl.col("term") >= 0)
    terms.group_by("text", maintain_order=True).agg("term").select("term").write_parquet(f"{folder}/terms.parquet")
    engine = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numba")
    scores = {name: getattr(postings, name) for name in ("data", "indices", "indptr")}
    engine.scores = {**scores, "num_docs": index.manifest.documents}
    engine.nonoccurrence_array, engine.vocab_dict = None, {str(i): i for i in range(analyzer.size)}
    engine.save(f"{folder}/bm25s", show_progress=False)


def theirs(folder: str) -> None:
    """The same of bm25s, whose results carry no ids."""
    import bm25s
    import numba

    start = time.perf_counter()
    engine = bm25s.BM25.load(f"{folder}/bm25s", mmap=True, show_progress=False)
    opened = time.perf_counter() - start
    lists = pl.read_parquet(f"{folder}/terms.parquet")["term"].to_list()
    threads = {"n_threads": numba.get_num_threads(), "backend_selection": "numba", "show_progress": False}
    engine.retrieve(lists[:2], k=K, **threads)
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        found = engine.retrieve(lists, k=K, **threads)
        seconds.append(time.perf_counter() - start)
    assert np.isfinite(found.scores).all()
    print(opened, min(seconds), _megabytes())


def rows(folder: Path) -> list[Row]:
    """The table's lines."""
    once(folder, make)
    shutil.rmtree(folder / "index", ignore_errors=True)
    shutil.rmtree(folder / "bm25s", ignore_errors=True)
    command = [sys.executable, "-m", "evenrank"]
    c, q, index = (str(folder / name) for name in ("c.tsv", "q.tsv", "index"))
    memory = run_command([*command, "retrieve", c, q, "--out", str(folder / "memory.run"), "--quiet"])
    built = run_command([*command, "index", c, "--out", index, "--quiet"])
    run_command([*command, "retrieve", index, q, "--out", str(folder / "disk.run"), "--quiet"])
    if (folder / "memory.run").read_bytes() != (folder / "disk.run").read_bytes():
        raise SystemExit("bm25_on_disk: the run differs from that of the index in memory")
    run("bm25_on_disk.give", str(folder))
    mine = [float(value) for value in run("bm25_on_disk.ours", str(folder)).said.split()]
    peer = [float(value) for value in run("bm25_on_disk.theirs", str(folder)).said.split()]
    size = sum(file.stat().st_size for file in Path(index).iterdir()) / 1e6
    what, other = f"`evenrank index` of {PASSAGES:,} passages", "bm25s' mapped index of the same postings"
    searched = f"searching it, {QUERIES} queries × {K:,}"
    return [
        Row(f"{what}, against `evenrank retrieve` of the collection", built.seconds, "s", memory.seconds, least=1),
        Row("its memory, against the same", built.megabytes, "MB", memory.megabytes, compare="share", most=1),
        Row("its size on disk", size, "MB"),
        Row(f"opening it, against {other}", mine[0], "s", peer[0]),
        Row(f"{searched}, against {other}", QUERIES / mine[1], "queries/s", QUERIES / peer[1], least=1),
        Row(f"{searched}, memory with mapped pages", mine[2], "MB", peer[2], compare="share"),
    ]
