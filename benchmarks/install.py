"""The core alone, as a first user gets it in a container: its size and packages, and the seconds of its installation
and of its first audit, where nothing is compiled or cached yet. And what commands compile at first, with the extras of
this environment: the seconds that they take longer with an empty cache of numba's than with the one they have made."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from .measure import Row, once, run_command

ROOT = Path(__file__).resolve().parents[1]
RUNS = 3


def make(folder: Path) -> None:
    """A wheel, and the built-in collection with a run."""
    import evenrank

    run_command([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder / "wheel"), str(ROOT)])
    evenrank.generate(evenrank.SyntheticConfig(male_share=0.6, relevance_male_share=0.8)).write(folder)
    run = evenrank.retrieve(folder / "collection.tsv", folder / "queries.test.tsv", k=100, quiet=True)
    evenrank.write_run(run, folder / "bm25.run")
    texts = (folder / "collection.tsv").read_text(encoding="utf-8").splitlines()
    lines = (f"{n}-{text}\n" for n in range(1 + (9 << 20) // sum(map(len, texts))) for text in texts)
    (folder / "large.tsv").write_text("".join(lines), encoding="utf-8")


_TEXTS = "--collection {0}/collection.tsv"
COMPILING = {
    "retrieve": "retrieve {0}/collection.tsv {0}/queries.test.tsv --out {0}/x.run",
    "index": "index {0}/collection.tsv --out {0}/x.index",
    "score (more than 8 MB)": "score {0}/large.tsv --out {0}/x.parquet",
    "lexicon check": f"lexicon check gender-en {_TEXTS}",
    "rebalance --method fair": f"rebalance {{0}}/bm25.run {_TEXTS} --method fair --strength 1 --out {{0}}/x.run",
}
"""Commands that have compiled loops."""


def compiling(folder: Path) -> list[Row]:
    """How long each command compiles before its first result."""
    found = []
    for name, command in COMPILING.items():
        cache = folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        seconds = []
        for _ in range(2):
            shutil.rmtree(folder / "x.index", ignore_errors=True)
            typed = [sys.executable, "-m", "evenrank", *command.format(folder).split()]
            seconds.append(run_command(["env", f"NUMBA_CACHE_DIR={cache}", *typed]).seconds)
        found.append(Row(f"`{name}`: compiling at first", max(0.0, seconds[0] - seconds[1]), "s", most=3))
    return found


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    clean = folder / "clean"
    run_command([sys.executable, "-m", "venv", "--clear", "--without-pip", str(clean)])
    (wheel,) = (folder / "wheel").glob("*.whl")
    pins = folder / "pins"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    # Without hashes: the wheel has none.
    pins.write_text("\n".join(re.findall(r"^\S+==\S+", lock, re.MULTILINE)), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(clean / "bin" / "python"), "install", "--quiet"]
    seconds = run_command([*pip, "--constraint", str(pins), str(wheel)]).seconds
    (site,) = (clean / "lib").glob("python*/site-packages")
    megabytes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    texts = ["--collection", str(folder / "collection.tsv"), "--qrels", str(folder / "qrels.txt")]
    audit = ["env", "-u", "PYTHONPATH", str(clean / "bin" / "evenrank"), "audit", str(folder / "bm25.run"), *texts]
    first = run_command(audit).seconds
    return [
        Row("`pip install evenrank`: size", megabytes, "MB", most=480),
        Row("`pip install evenrank`: packages", len(list(site.glob("*.dist-info"))), "packages", most=25),
        Row("`pip install evenrank`: time, from the network or pip's cache", seconds, "s"),
        Row("the first audit after it, of the built-in collection", first, "s"),
        *compiling(folder),
    ]
