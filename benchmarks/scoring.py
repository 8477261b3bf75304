"""Scoring a collection against a plain per-token Python loop, and its memory at two sizes."""

from __future__ import annotations

import math
import re
import sys
import time
from pathlib import Path

from .collections import write_collections
from .measure import Row, bare_scan, once, run, run_command

FEW, SMALL, LARGE, LOOP = 20_000, 300_000, 3_000_000, 30_000
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)$")


def ours(folder: str, size: str) -> None:
    """Scores a collection; prints documents a second without the interpreter's start."""
    from evenrank.groups import Scoring, load_lexicon, score_collection

    scoring = Scoring(load_lexicon())
    # The kernel is compiled on a machine's first use and loaded from disk after: not what is measured here.
    score_collection(Path(folder) / "few.tsv", Path(folder) / "few.parquet", scoring)
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


def make(folder: Path) -> None:
    """Writes the collections; compiles the loops, as a machine does on its first use."""
    write_collections(folder, {"few": FEW, "small": SMALL, "large": LARGE})
    run("scoring.ours", str(folder), "small")


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    command = [str(Path(sys.executable).with_name("evenrank")), "score", str(folder / "large.tsv")]
    size = (folder / "large.tsv").stat().st_size / 1e6
    bare_scan(folder / "large.tsv")
    scan = size / bare_scan(folder / "large.tsv")
    small, large = run("scoring.ours", str(folder), "small"), run("scoring.ours", str(folder), "large")
    whole = run_command([*command, "--out", str(folder / "large.parquet"), "--quiet"])
    plain = run("scoring.loop", str(folder))
    rate = float(large.said)
    return [
        Row("scoring 3 million passages, against a per-token Python loop", rate, "docs/s", float(plain.said), least=20),
        Row(
            "scoring 3 million passages, against a bare scan of the file",
            size * rate / LARGE,
            "MB/s",
            scan,
            compare="share",
            least=0.4,
        ),
        Row(
            "`evenrank score` of 3 million passages, start included, against a bare scan",
            size / whole.seconds,
            "MB/s",
            scan,
            compare="share",
        ),
        Row(
            "scoring, peak memory at 3 against 0.3 million passages",
            large.megabytes,
            "MB",
            small.megabytes,
            compare="share",
        ),
    ]
