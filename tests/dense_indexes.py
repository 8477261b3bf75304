"""Small models and collections for indexes of vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tiny_models import texts, tiny_bert

DOCUMENTS = 40


def bi_encoder(folder: Path, *, similarity: str = "cosine", prompts: bool = False, seed: int = 0) -> Path:
    """A saved SentenceTransformer with random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    checkpoint = tiny_bert(folder.with_name(f"{folder.name}-bert"), seed=seed)
    encoder = Transformer(str(checkpoint))
    modules = [encoder, Pooling(encoder.get_embedding_dimension(), "mean")]
    own = {"query": "query: ", "document": "passage: "} if prompts else None
    model = SentenceTransformer(modules=modules, similarity_fn_name=similarity, prompts=own, device="cpu")
    model.save(str(folder))
    return folder


def sparse_encoder(folder: Path, *, inference_free: bool = False, similarity: str = "dot") -> Path:
    """A saved SPLADE model with random weights; ``inference_free``: queries get the weights of their own words."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
    from transformers import BertConfig, BertForMaskedLM

    checkpoint = tiny_bert(folder.with_name(f"{folder.name}-bert"))
    config = BertConfig.from_pretrained(checkpoint)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        BertForMaskedLM(config).save_pretrained(checkpoint)
    documents = Transformer(str(checkpoint), transformer_task="fill-mask")
    modules: list[torch.nn.Module] = [documents, SpladePooling("max")]
    if inference_free:
        rng = np.random.default_rng(0)
        weights = torch.tensor(rng.uniform(0.5, 2, config.vocab_size), dtype=torch.float32)
        static = SparseStaticEmbedding(tokenizer=documents.tokenizer, weight=weights)
        modules = [Router.for_query_document([static], modules)]
    model = SparseEncoder(modules=modules, similarity_fn_name=similarity, device="cpu")
    model.save(str(folder))
    return folder


def collection(path: Path, count: int = DOCUMENTS) -> dict[str, str]:
    """Writes a collection as TSV; the same as a dictionary."""
    rows = {f"d{number}": text for number, text in enumerate(texts(count, 12, seed=3))}
    path.write_text("".join(f"{name}\t{text}\n" for name, text in rows.items()), encoding="utf-8")
    return rows


QUERIES = {"q1": "the doctor runs", "q2": "she wrote software", "q3": "night", "q4": "a nurse is home early"}
