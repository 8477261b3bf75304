"""An audit with labels against one with scores of words, of a run of seven million lines; and with labels drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from . import audits
from .measure import Row, once, run

MEASURES = "RR@10 nDCG@10 AP NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10 DeltaAPRF"
DRAWN = "RR@10 nDCG@10 AP RaB@10 ARaB@10 ARaB(magnitude='bool')@10 Share(group='m')@10"


def make(folder: Path) -> None:
    """The files of ``audits``, and a label for every document: 15% m, 10% f, the others of no group."""
    audits.make(folder)
    rng = np.random.default_rng(1)
    groups = rng.choice(["m", "f", "n"], audits.DOCUMENTS, p=[0.15, 0.10, 0.75])
    table = pl.DataFrame({"doc_id": np.arange(audits.DOCUMENTS).astype(str), "group": groups})
    table.write_parquet(folder / "labels.parquet")
    import evenrank

    sample = evenrank.sample_labels(folder / "run.trec", n=200)
    sample.write(folder / "drawn.csv")
    group = dict(table.iter_rows())
    todo = pl.read_csv(folder / "drawn.csv", infer_schema=False)
    named = [{"n": "none"}.get(one, one) for one in (group[document] for document in todo["doc_id"])]
    todo.with_columns(pl.Series("group", named)).write_csv(folder / "drawn.csv")


def audit(folder: str, described: str) -> None:
    """One audit; ``described``: ``scores``, ``labels`` or ``drawn``."""
    import evenrank

    home = Path(folder)
    path = home / f"{described}.parquet"
    of_labels = {"labels": path, "neutral": ["n"]}
    if described == "drawn":
        of_labels = {"labels": home / "drawn.csv", "guess": home / "labels.parquet", "neutral": ["n"]}
    result = evenrank.audit(
        {"run": home / "run.trec"},
        qrels=home / "qrels.txt",
        measures=DRAWN if described == "drawn" else MEASURES,
        **({"scores": path} if described == "scores" else of_labels),
    )
    result.to_json(home / "audit.json")
    print(result["run"].measures["ARaB@10"].mean)


def rows(folder: Path) -> list[Row]:
    """All labels known, against scores of words."""
    once(folder, make)
    found = {name: run("labels.audit", str(folder), name).seconds for name in ("labels", "scores", "drawn")}
    what = "audit of 6,980 x 1,000 with labels: all labels known, against scores of words"
    drawn = "the same with 200 labels drawn and a guess, against scores of words"
    return [
        Row(what, found["labels"], "s", found["scores"], "share", most=1.0),
        Row(drawn, found["drawn"], "s", found["scores"], "share", most=1.5),
    ]
