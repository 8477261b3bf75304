"""Rotating a collection against a plain Python loop, against a bare scan, and its memory at two sizes."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from .collections import write_collections
from .measure import Row, bare_scan, run

SMALL, LARGE, LOOP, MARCO = 1_000_000, 3_000_000, 200_000, 8_841_823


def ours(folder: str, size: str) -> None:
    """Rotates a collection; prints seconds without the interpreter's start."""
    from evenrank.mitigation.rotation import rotate_collection

    # Compiled on a machine's first use and loaded from disk after: not what is measured here.
    rotate_collection(Path(folder) / "one.tsv", Path(folder) / "one.out.tsv")
    start = time.perf_counter()
    rotate_collection(Path(folder) / f"{size}.tsv", Path(folder) / f"{size}.out.tsv")
    print(time.perf_counter() - start)


def loop(folder: str) -> None:
    """The same by a loop over the lines of a file, a cut from a hash of the id; prints seconds for ``LOOP`` of them."""
    start = time.perf_counter()
    with (
        (Path(folder) / "small.tsv").open(encoding="utf-8") as stream,
        (Path(folder) / "loop.tsv").open("w", encoding="utf-8") as out,
    ):
        for number, line in enumerate(stream):
            if number == LOOP:
                break
            doc_id, text = line.rstrip("\n").split("\t", 1)
            words = text.split()
            value = int.from_bytes(hashlib.blake2b(b"0:" + doc_id.encode(), digest_size=8).digest(), "little")
            cut = value * len(words) >> 64
            out.write(f"{doc_id}\t{' '.join(words[cut:] + words[:cut])}\n")
    print(time.perf_counter() - start)


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    write_collections(folder, {"small": SMALL, "large": LARGE})
    (folder / "one.tsv").write_text("0\tone text\n", encoding="utf-8")
    run("rotation.ours", str(folder), "one")
    small, large = run("rotation.ours", str(folder), "small"), run("rotation.ours", str(folder), "large")
    plain = run("rotation.loop", str(folder))
    size = {name: (folder / f"{name}.tsv").stat().st_size for name in ("small", "large")}
    bare_scan(folder / "large.tsv")
    scan = size["large"] / bare_scan(folder / "large.tsv") / 1e6
    seconds = {"small": float(small.said), "large": float(large.said)}
    rate = size["large"] / seconds["large"] / 1e6
    peer = size["small"] * (LOOP / SMALL) / float(plain.said) / 1e6
    # A straight line through both sizes: what it starts with, and what a passage costs.
    a_passage = (seconds["large"] - seconds["small"]) / (LARGE - SMALL)
    marco = seconds["large"] + a_passage * (MARCO - LARGE)
    return [
        Row(
            "rotating 3 million passages, plain Python loop",
            f"{rate:,.0f} MB/s",
            f"{peer:,.0f} MB/s",
            f"{rate / peer:.1f} x",
            "-",
        ),
        Row(
            "rotating, share of a bare scan of the file",
            f"{rate:,.0f} MB/s",
            f"{scan:,.0f} MB/s",
            f"{rate / scan:.0%}",
            "-",
        ),
        Row(
            "rotating, peak memory at 3 and at 1 million passages",
            f"{large.megabytes:,.0f} MB",
            f"{small.megabytes:,.0f} MB",
            f"{large.megabytes / small.megabytes:.2f}",
            "flat",
        ),
        Row(
            f"rotating {MARCO:,} passages, from a line through 1 and 3 million",
            f"{marco:,.0f} s",
            "-",
            "-",
            "about 60 s",
        ),
    ]
