"""Small models, data and evaluators of sentence-transformers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from evenrank.training.sentence_transformers import BiasEvaluator

# transformers, accelerate and datasets warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

HIS, HERS, ITS = "he wrote software by night", "she is a nurse", "the doctor runs home early"
QUERIES = {
    str(i): query for i, query in enumerate(["software", "a nurse", "the doctor", "runs home", "by night", "is a"])
}
CORPUS = {
    f"{kind}{i}": f"{text} {tail}"
    for kind, text in (("m", HIS), ("f", HERS), ("n", ITS))
    for i, tail in enumerate(["", "early", "is a doctor", "the software"])
}
RELEVANT = {str(i): {f"{'mf'[i % 2]}{i % 4}": 1} for i in range(6)}
CANDIDATES = {query: [*list(CORPUS)[int(query) :], *list(CORPUS)[: int(query)]] for query in QUERIES}
ROWS = 6


def bi_encoder(checkpoint: str, similarity: str = "dot") -> SentenceTransformer:
    """Without dropout, so that a second forward pass gives the same."""
    encoder = Transformer(checkpoint, config_kwargs={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    pooling = Pooling(encoder.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[encoder, pooling], similarity_fn_name=similarity, device="cpu")


def cross_encoder(checkpoint: str) -> CrossEncoder:
    torch.manual_seed(0)
    options = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return CrossEncoder(checkpoint, num_labels=1, device="cpu", config_kwargs=options)


def tuples() -> Any:
    """Query, positive and two negatives; positives of either group in turn."""
    rows = range(ROWS)
    return datasets.Dataset.from_dict(
        {
            "query": [QUERIES[str(i)] for i in rows],
            "positive": [f"{(HIS, HERS)[i % 2]} {i}" for i in rows],
            "negative_1": [(HERS, ITS, HIS)[i % 3] for i in rows],
            "negative_2": [(ITS, HIS)[i % 2] for i in rows],
        }
    )


def lists() -> Any:
    """The same as lists, one of them shorter, the positive not always first."""
    table = tuples()
    docs = [[row["negative_1"], row["positive"], row["negative_2"]] for row in table]
    docs[3] = docs[3][:2]
    labels = [[0, 1, 0][: len(row)] for row in docs]
    return datasets.Dataset.from_dict({"query": table["query"], "docs": docs, "labels": labels})


def evaluator(**more: Any) -> BiasEvaluator:
    return BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, **more)


def bi_inputs(model: SentenceTransformer, dataset: Any) -> tuple[list[dict[str, Any]], Any]:
    columns = [name for name in dataset.column_names if name != "label"]
    return [model.preprocess(list(dataset[name])) for name in columns], torch.tensor(dataset["label"])


MEASURES = ["nDCG@10", "NFaiRR@10", "ARaB@10", "AbsoluteDeltaAPRF"]
