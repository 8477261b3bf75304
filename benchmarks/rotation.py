"""Rotating a collection against a plain Python loop, against a bare scan, and its memory at two sizes."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

from .collections import write_collections
from .measure import Row, bare_scan, once, run, run_command

FEW, SMALL, LARGE, LOOP, MARCO = 20_000, 1_000_000, 3_000_000, 200_000, 8_841_823


def ours(folder: str, size: str) -> None:
    """Rotates a collection; prints seconds without the interpreter's start."""
    from evenrank.mitigation.rotation import rotate_collection

    # What is imported where it is needed is not what is measured here.
    rotate_collection(Path(folder) / "few.tsv", out=Path(folder) / "few.out.tsv")
    start = time.perf_counter()
    rotate_collection(Path(folder) / f"{size}.tsv", out=Path(folder) / f"{size}.out.tsv")
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


def copy(folder: str) -> None:
    """Reads the file and writes it again, as no program that writes a collection can avoid; prints seconds."""
    start = time.perf_counter()
    with (Path(folder) / "large.tsv").open("rb") as source, (Path(folder) / "large.out.tsv").open("wb") as out:
        while block := source.read(1 << 24):
            out.write(block)
    print(time.perf_counter() - start)


def make(folder: Path) -> None:
    """Writes the collections; compiles the loops, as a machine does on its first use."""
    write_collections(folder, {"few": FEW, "small": SMALL, "large": LARGE})
    run("rotation.ours", str(folder), "small")


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    size = {name: (folder / f"{name}.tsv").stat().st_size / 1e6 for name in ("small", "large")}
    bare_scan(folder / "large.tsv")
    scan = size["large"] / bare_scan(folder / "large.tsv")
    small, large = run("rotation.ours", str(folder), "small"), run("rotation.ours", str(folder), "large")
    command = [str(Path(sys.executable).with_name("evenrank")), "rotate", str(folder / "large.tsv")]
    whole = run_command([*command, "--out", str(folder / "large.out.tsv"), "--quiet"])
    copied = run("rotation.copy", str(folder))
    plain = run("rotation.loop", str(folder))
    seconds = {"small": float(small.said), "large": float(large.said)}
    rate = size["large"] / seconds["large"]
    # A straight line through both sizes: what it starts with, and what a passage costs.
    a_passage = (seconds["large"] - seconds["small"]) / (LARGE - SMALL)
    by_loop = size["small"] * (LOOP / SMALL) / float(plain.said)
    by_copy = size["large"] / float(copied.said)
    by_command = size["large"] / whole.seconds
    return [
        Row("rotating 3 million passages, against a plain Python loop", rate, "MB/s", by_loop),
        Row(
            "rotating 3 million passages, against a bare scan of the file",
            rate,
            "MB/s",
            scan,
            compare="share",
            least=0.25,
        ),
        Row("copying the file, against a bare scan of it", by_copy, "MB/s", scan, compare="share"),
        Row(
            "`evenrank rotate` of 3 million passages, start included, against a bare scan",
            by_command,
            "MB/s",
            scan,
            compare="share",
        ),
        Row(
            "rotating, peak memory at 3 against 1 million passages",
            large.megabytes,
            "MB",
            small.megabytes,
            compare="share",
        ),
        Row(
            f"rotating {MARCO:,} passages, from a line through 1 and 3 million",
            seconds["large"] + a_passage * (MARCO - LARGE),
            "s",
            most=60,
        ),
    ]
