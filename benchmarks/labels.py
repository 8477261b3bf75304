"""An audit with labels against one with scores of words, of a run of seven million lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from . import audits
from .measure import Row, once, run

MEASURES = "RR@10 nDCG@10 AP NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10 DeltaAPRF"


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
    """All labels known against scores; a tenth known, estimated against counted as neutral."""
    once(folder, make)
    pairs = {
        "all labels known, against scores of words": (("labels", "estimate"), ("scores", "skip"), 1.0),
        "a tenth known, estimates against counting the unknown as neutral": (
            ("tenth", "estimate"),
            ("tenth", "neutral"),
            1.5,
        ),
    }
    found = []
    for what, (one, other, most) in pairs.items():
        ours, peer = (run("labels.audit", str(folder), *side).seconds for side in (one, other))
        found.append(Row(f"audit of 6,980 x 1,000 with labels: {what}", ours, "s", peer, "share", most=most))
    return found
