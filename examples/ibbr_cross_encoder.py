"""A cross-encoder trained with in-batch balancing regularization in the trainer of sentence-transformers.

Uses the built-in collection, whose relevant passages are mostly male-worded. Needs evenrank[neural] and datasets.

    python examples/ibbr_cross_encoder.py --out model
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from datasets import Dataset
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from transformers import set_seed

from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.search.indexes import retrieve
from evenrank.training.sentence_transformers import BiasEvaluator, CrossEncoderIBBRLoss

NEGATIVES = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="google/bert_uncased_L-2_H-128_A-2", help="checkpoint to start from")
    parser.add_argument("--out", default="balanced-cross-encoder", help="folder for the trained model")
    parser.add_argument("--weight", default="0.1", help="weight of the term: a number, auto or dual")
    parser.add_argument("--passages", type=int, default=5000, help="size of the built-in collection")
    parser.add_argument("--max-length", type=int, default=128, help="maximum tokens of a text or pair")
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    options = parser.parse_args()
    weight = options.weight if options.weight in ("auto", "dual") else float(options.weight)

    made = generate(SyntheticConfig(passages=options.passages, relevance_gender_rate=0.8, relevance_male_share=0.8))
    run = retrieve(made.collection, made.queries, k=100, quiet=True)
    texts = dict(made.collection.iter_rows())

    # Query, the clicked passage and negatives from BM25's top 100; the loss reads their groups from the texts.
    rng = np.random.default_rng(0)
    training = made.queries.filter(pl.col("split") == "train")
    found = training.join(made.clicks.select("query_id", pl.col("doc_id").alias("clicked")), on="query_id")
    candidates = run.table.join(made.qrels, on=["query_id", "doc_id"], how="anti").group_by("query_id").agg("doc_id")
    found = found.join(candidates, on="query_id")
    rows: dict[str, list[object]] = {"query": [], "docs": [], "labels": []}
    for query, clicked, others in found.select("text", "clicked", "doc_id").iter_rows():
        chosen = rng.choice(others, min(NEGATIVES, len(others)), replace=False)
        rows["query"].append(query)
        rows["docs"].append([texts[passage] for passage in (clicked, *chosen)])
        rows["labels"].append([1] + [0] * len(chosen))
    dataset = Dataset.from_dict(rows)

    set_seed(0)  # the head is initialised at random
    model = CrossEncoder(options.model, num_labels=1, max_length=options.max_length)
    evaluator = BiasEvaluator(
        made.queries.filter(pl.col("split") == "valid"), made.collection, made.clicks, run, name="valid"
    )
    trainer = CrossEncoderTrainer(
        model,
        CrossEncoderTrainingArguments(
            output_dir=f"{options.out}-checkpoints",
            max_steps=options.steps,
            per_device_train_batch_size=32,
            learning_rate=3e-4,
            logging_steps=20,
            eval_strategy="steps",
            eval_steps=100,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=dataset,
        loss=CrossEncoderIBBRLoss(model, weight),
        evaluator=evaluator,
    )
    print("BM25   ", evaluator.first_stage)
    print("before ", evaluator(model))
    trainer.train()
    print("after  ", evaluator(model))
    model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
