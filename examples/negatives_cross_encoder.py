"""A cross-encoder trained on bias-aware negatives in the trainer of sentence-transformers.

Uses the built-in collection, whose relevant passages are mostly male-worded. Needs evenrank[neural] and datasets.

    python examples/negatives_cross_encoder.py --out model
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl
from datasets import Dataset
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, LambdaLoss
from transformers import set_seed

from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.mitigation.negatives import write_negatives
from evenrank.search.indexes import retrieve

# The format that each loss reads.
SHAPES = {"bce": ("labeled-pair", BinaryCrossEntropyLoss), "lambda": ("labeled-list", LambdaLoss)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="google/bert_uncased_L-2_H-128_A-2", help="checkpoint to start from")
    parser.add_argument("--out", default="bias-aware-cross-encoder", help="folder for the data and the trained model")
    parser.add_argument("--loss", choices=SHAPES, default="bce", help="bce is the published loss")
    parser.add_argument("--share", type=float, default=0.6, help="share of the negatives chosen by bias")
    parser.add_argument("--n", type=int, default=20, help="negatives per query")
    parser.add_argument("--passages", type=int, default=5000, help="size of the built-in collection")
    parser.add_argument("--max-length", type=int, default=128, help="maximum tokens of a pair")
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)

    made = generate(SyntheticConfig(passages=options.passages, relevance_gender_rate=0.8, relevance_male_share=0.8))
    queries = made.queries.filter(pl.col("split") == "train").select("query_id", "text")
    shape, loss = SHAPES[options.loss]
    done = write_negatives(
        retrieve(made.collection, queries, k=200, quiet=True),
        out=out / "train.parquet",
        collection=made.collection,
        queries=queries,
        qrels=made.qrels,
        n=options.n,
        share=options.share,
        format=shape,
    )
    print(f"{done['queries']} queries, {done['biased']} biased and {done['random']} random negatives")
    print("mean bias of", ", ".join(f"{part}: {value or 0:.3f}" for part, value in done["mean_beta"].items()))
    dataset = Dataset.from_parquet(str(out / "train.parquet"), cache_dir=str(out / "cache"))

    set_seed(0)  # the head is initialised at random
    model = CrossEncoder(options.model, num_labels=1, max_length=options.max_length)
    trainer = CrossEncoderTrainer(
        model,
        CrossEncoderTrainingArguments(
            output_dir=str(out / "checkpoints"),
            max_steps=options.steps,
            per_device_train_batch_size=32 if shape == "labeled-pair" else 8,
            learning_rate=3e-4,
            logging_steps=20,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=dataset,
        loss=loss(model),
    )
    print("loss", trainer.train().training_loss)
    model.save_pretrained(str(out / "model"))


if __name__ == "__main__":
    main()
