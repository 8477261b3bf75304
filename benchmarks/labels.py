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


def audit(folder: str, described: str) -> None:
    """One audit; ``described``: ``scores`` or ``labels``."""
    import evenrank

    home = Path(folder)
    path = home / f"{described}.parquet"
    of_labels = {"labels": path, "neutral": ["n"]}
    result = evenrank.audit(
        {"run": home / "run.trec"},
        qrels=home / "qrels.txt",
        measures=MEASURES,
        **({"scores": path} if described == "scores" else of_labels),
    )
    result.to_json(home / "audit.json")
    print(result["run"].figures["NFaiRR@10"].mean)


def rows(folder: Path) -> list[Row]:
    """All labels known, against scores of words."""
    once(folder, make)
    ours, peer = (run("labels.audit", str(folder), described).seconds for described in ("labels", "scores"))
    what = "audit of 6,980 x 1,000 with labels: all labels known, against scores of words"
    return [Row(what, ours, "s", peer, "share", most=1.0)]
