"""The core alone, as a first user gets it in a container: its size and packages, and the seconds of its installation
and of its first audit, where nothing is compiled or cached yet."""

from __future__ import annotations

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


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    clean = folder / "clean"
    run_command([sys.executable, "-m", "venv", "--clear", "--without-pip", str(clean)])
    (wheel,) = (folder / "wheel").glob("*.whl")
    lock = ["--constraint", str(ROOT / "requirements.lock")]
    pip = [sys.executable, "-m", "pip", "--python", str(clean / "bin" / "python"), "install", "--quiet"]
    seconds = run_command([*pip, *lock, str(wheel)]).seconds
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
    ]
