"""Scoring a collection against a plain per-token Python loop, and its memory at two sizes."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

from .collections import write_collections
from .measure import Row, bare_scan, run

SMALL, LARGE, LOOP = 300_000, 3_000_000, 30_000
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)$")


def ours(folder: str, size: str) -> None:
    """Scores a collection; prints documents a second without the interpreter's start."""
    from evenrank.groups import Scoring, load_lexicon, score_collection, score_in_memory
    from evenrank.io import read_queries

    scoring = Scoring(load_lexicon())
    # The kernel is compiled on a machine's first use and loaded from disk after: not what is measured here.
    score_in_memory(read_queries(Path(folder) / "one.tsv").rename({"query_id": "doc_id"}), scoring)
    start = time.perf_counter()
    rows = score_collection(Path(folder) / f"{size}.tsv", Path(folder) / f"{size}.parquet", scoring)
    print(rows / (time.perf_counter() - start))


def loop(folder: str) -> None:
    """The same by a loop over the words of each text, by the definitions; prints documents a second."""
    from evenrank.groups import load_lexicon

    group_of = {word.casefold(): group for word, group in load_lexicon().words if " " not in word and "-" not in word}
    start = time.perf_counter()
    rows = []
    with (Path(folder) / "small.tsv").open(encoding="utf-8") as stream:
        for line in stream:
            doc_id, text = line.rstrip("\n").split("\t", 1)
            tokens = [_CLITIC.sub("", token) for token in _WORD.findall(text.casefold())]
            words: dict[str, dict[str, int]] = {"f": {}, "m": {}}
            for token in tokens:
                group = group_of.get(token)
                if group is not None:
                    words[group][token] = words[group].get(token, 0) + 1
            count = {group: sum(found.values()) for group, found in words.items()}
            total = sum(count.values())
            row = [doc_id, len(tokens), count["f"], count["m"]]
            for group in ("f", "m"):
                row += [math.log(1 + count[group]), int(count[group] > 0)]
                row.append(sum(math.log(1 + n) for n in words[group].values()))
            row.append(1.0 if total <= 1 else 1 - sum(abs(n / total - 0.5) for n in count.values()))
            rows.append(row)
            if len(rows) == LOOP:
                break
    print(len(rows) / (time.perf_counter() - start))


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    write_collections(folder, {"small": SMALL, "large": LARGE})
    (folder / "one.tsv").write_text("0\tone text\n", encoding="utf-8")
    run("scoring.ours", str(folder), "small")
    small, large = run("scoring.ours", str(folder), "small"), run("scoring.ours", str(folder), "large")
    plain = run("scoring.loop", str(folder))
    bytes_a_document = (folder / "large.tsv").stat().st_size / LARGE
    bare_scan(folder / "large.tsv")
    scan = (folder / "large.tsv").stat().st_size / bare_scan(folder / "large.tsv")
    rate = float(large.said)
    return [
        Row(
            "scoring 3 million passages, per-token Python loop",
            f"{rate:,.0f} docs/s",
            f"{float(plain.said):,.0f} docs/s",
            f"{rate / float(plain.said):.1f} x",
            ">= 20 x",
        ),
        Row(
            "scoring, peak memory at 3 and at 0.3 million passages",
            f"{large.megabytes:,.0f} MB",
            f"{small.megabytes:,.0f} MB",
            f"{large.megabytes / small.megabytes:.2f}",
            "flat",
        ),
        Row(
            "scoring, share of a bare scan of the file",
            f"{rate * bytes_a_document / 1e6:,.0f} MB/s",
            f"{scan / 1e6:,.0f} MB/s",
            f"{rate * bytes_a_document / scan:.0%}",
            "-",
        ),
    ]
