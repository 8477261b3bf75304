"""An audit with labels against one with scores of words, of a run of seven million lines."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import polars as pl

from . import audits
from .measure import Row, run

MEASURES = "RR@10 nDCG@10 AP NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10 DeltaAPRF"
PAIRS = 3


def make(folder: Path) -> None:
    """The files of ``audits``, and a label for every document: 15% m, 10% f, the others of no group."""
    audits.make(folder)
    rng = np.random.default_rng(1)
    groups = rng.choice(["m", "f", "n"], audits.DOCUMENTS, p=[0.15, 0.10, 0.75])
    table = pl.DataFrame({"doc_id": np.arange(audits.DOCUMENTS).astype(str), "group": groups})
    table.write_parquet(folder / "labels.parquet")
    table.filter(pl.Series(rng.random(audits.DOCUMENTS) < 0.1)).write_parquet(folder / "tenth.parquet")


def audit(folder: str, described: str, unknown: str) -> None:
    """One audit; ``described``: ``scores``, or a file of labels; ``unknown``: what to do about unknown ones."""
    import evenrank

    home = Path(folder)
    path = home / f"{described}.parquet"
    of_labels = {"labels": path, "neutral": ["n"], "unknown": unknown}
    result = evenrank.audit(
        {"run": home / "run.trec"},
        qrels=home / "qrels.txt",
        measures=MEASURES,
        **({"scores": path} if described == "scores" else of_labels),
    )
    result.to_json(home / "audit.json")
    print(result["run"].figures["NFaiRR@10"].mean)


def rows(folder: Path) -> list[Row]:
    """All labels known against scores; a tenth known, estimated against counted as neutral. Medians of three pairs."""
    make(folder)
    pairs = {
        "all labels known, against scores": (("labels", "estimate"), ("scores", "skip"), "<= 1.0"),
        "a tenth known, estimates against counting the unknown as neutral": (
            ("tenth", "estimate"),
            ("tenth", "neutral"),
            "<= 1.5",
        ),
    }
    found = []
    for what, (one, other, expected) in pairs.items():
        times: list[tuple[float, float]] = []
        for number in range(PAIRS):
            order = (one, other) if number % 2 == 0 else (other, one)
            taken = {side: run("labels.audit", str(folder), *side).seconds for side in order}
            times.append((taken[one], taken[other]))
        ratio = statistics.median(a / b for a, b in times)
        ours, peer = (statistics.median(side) for side in zip(*times, strict=True))
        name = f"audit of 6,980 x 1,000 with labels: {what}"
        found.append(Row(name, f"{ours:.1f} s", f"{peer:.1f} s", f"{ratio:.2f}", expected))
    return found
