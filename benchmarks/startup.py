"""Commands that are mostly their start: ``evenrank --help``, and an audit of 117 queries, without and with a report."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

from .measure import Row, once, run_command

GIVEN = Path(__file__).resolve().parents[2] / "shared" / "data" / "grepbiasir"
QUERIES, DOCUMENTS, DEPTH = 117, 702, 100
_WORDS = ("she", "he", "her", "his", "women", "men", *(f"word{number}" for number in range(400)))


def make(folder: Path) -> None:
    """Grep-BiasIR where it is there, otherwise a collection of its size; a second run of another order; the caches."""
    if GIVEN.is_dir():
        for name in ("collection.tsv", "qrels.txt", "queries.tsv", "bm25.run"):
            shutil.copyfile(GIVEN / name, folder / name)
    else:
        _invent(folder)
    lists: dict[str, list[str]] = {}
    for line in (folder / "bm25.run").read_text(encoding="utf-8").splitlines():
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(doc)
    rng = random.Random(0)
    _write_run(folder / "second.run", {query: rng.sample(docs, len(docs)) for query, docs in lists.items()})
    # What an installation has, and a machine after its first report.
    _seconds(folder, *_audit(folder, report=True))


def _invent(folder: Path) -> None:
    rng = random.Random(0)
    texts = [" ".join(rng.choices(_WORDS, k=45)) for _ in range(DOCUMENTS)]
    queries = [" ".join(rng.choices(_WORDS, k=4)) for _ in range(QUERIES)]
    for name, lines in (("collection.tsv", texts), ("queries.tsv", queries)):
        (folder / name).write_text("".join(f"{i}\t{line}\n" for i, line in enumerate(lines)), encoding="utf-8")
    judged = [f"{query} 0 {doc} 1\n" for query in range(QUERIES) for doc in rng.sample(range(DOCUMENTS), 6)]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    lists = {str(query): list(map(str, rng.sample(range(DOCUMENTS), DEPTH))) for query in range(QUERIES)}
    _write_run(folder / "bm25.run", lists)


def _write_run(path: Path, lists: dict[str, list[str]]) -> None:
    lines = [f"{query} Q0 {doc} {r} {-r} t\n" for query, docs in lists.items() for r, doc in enumerate(docs, 1)]
    path.write_text("".join(lines), encoding="utf-8")


def _audit(folder: Path, *, report: bool) -> list[str]:
    texts = ["--collection", str(folder / "collection.tsv"), "--qrels", str(folder / "qrels.txt")]
    if not report:
        return ["audit", str(folder / "bm25.run"), *texts]
    runs = [f"bm25={folder / 'bm25.run'}", f"second={folder / 'second.run'}"]
    return ["audit", *runs, *texts, "--queries", str(folder / "queries.tsv"), "--report", str(folder / "report.html")]


def _seconds(folder: Path, *arguments: str) -> float:
    """A whole command, with the bytecode that an installation comes with."""
    settings = [f"PYTHONPYCACHEPREFIX={folder / 'bytecode'}", f"XDG_CACHE_HOME={folder / 'cache'}"]
    command = ["env", "-u", "PYTHONDONTWRITEBYTECODE", *settings, str(Path(sys.executable).with_name("evenrank"))]
    return run_command([*command, *arguments]).seconds


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    return [
        Row("`evenrank --help`", _seconds(folder, "--help"), "s", most=0.5),
        Row("`python -c pass`", run_command([sys.executable, "-c", "pass"]).seconds, "s"),
        Row("`evenrank audit` of 117 queries", _seconds(folder, *_audit(folder, report=False)), "s", most=0.7),
        Row("the same of two runs, with a report", _seconds(folder, *_audit(folder, report=True)), "s", most=1.5),
    ]
