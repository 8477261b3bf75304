"""Tiny random models of every kind that sentence-transformers has, as folders in the hub's form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tiny_models import WORDS, tiny_bert

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }} {% endif %}{% endfor %}"
    "query: {% for m in messages %}{% if m.role == 'query' %}{{ m.content }}{% endif %}{% endfor %}"
    " passage: {% for m in messages %}{% if m.role == 'document' %}{{ m.content }}{% endif %}{% endfor %}"
    " is a ."
)
"""A chat template that ends in three tokens."""


def bert(folder: Path, seed: int = 0) -> Any:
    """A transformer that reads 24 tokens."""
    from sentence_transformers.base.modules import Transformer

    return Transformer(str(tiny_bert(folder, layers=2, seed=seed)), max_seq_length=24)


def cross(folder: Path) -> Any:
    from sentence_transformers import CrossEncoder

    checkpoint = tiny_bert(folder / "checkpoint", head=True, layers=2)
    return CrossEncoder(str(checkpoint), device="cpu", max_length=24)


def bi(folder: Path, **settings: Any) -> Any:
    """With prompts of its own."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    encoder = bert(folder / "checkpoint")
    prompts = {"query": "query: ", "document": "passage: "}
    modules = [encoder, Pooling(encoder.get_embedding_dimension(), "mean")]
    return SentenceTransformer(modules=modules, device="cpu", **{"prompts": prompts, **settings})


def static(folder: Path) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokeniser = bert(folder / "checkpoint").tokenizer
    weights = torch.from_numpy(np.random.default_rng(0).standard_normal((len(tokeniser), 12)).astype(np.float32))
    return SentenceTransformer(modules=[StaticEmbedding(tokeniser, embedding_weights=weights)], device="cpu")


def _masked(folder: Path) -> Any:
    """A BERT that predicts words."""
    import torch
    from sentence_transformers.base.modules import Transformer
    from transformers import BertConfig, BertForMaskedLM

    checkpoint = tiny_bert(folder, layers=2)
    config = BertConfig.from_pretrained(checkpoint)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        BertForMaskedLM(config).save_pretrained(checkpoint)
    return Transformer(str(checkpoint), transformer_task="fill-mask", max_seq_length=24)


def splade(folder: Path, **settings: Any) -> Any:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    return SparseEncoder(modules=[_masked(folder / "checkpoint"), SpladePooling("max")], device="cpu", **settings)


def inference_free(folder: Path) -> Any:
    """A weight per word for queries, SPLADE for passages."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    masked = _masked(folder / "checkpoint")
    weights = torch.from_numpy(np.random.default_rng(0).random(len(masked.tokenizer)).astype(np.float32))
    router = Router.for_query_document(
        query_modules=[SparseStaticEmbedding(masked.tokenizer, weights)],
        document_modules=[masked, SpladePooling("max")],
    )
    return SparseEncoder(modules=[router], device="cpu")


def late(folder: Path, **settings: Any) -> Any:
    """As ColBERT: a projection of each token, queries of eight tokens, prompts, a word that is not compared."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    encoder = bert(folder / "checkpoint")
    encoder.document_length = 20
    encoder.query_expansion = {"strategy": "fixed", "length": 8, "attend": False}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        size = encoder.get_embedding_dimension()
        names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
        dense = Dense(size, 8, bias=False, activation_function=torch.nn.Identity(), **names)
    modules = [encoder, dense, MultiVectorMask(["."]), Normalize(module_input_name="token_embeddings")]
    prompts = {"query": "query ", "document": "passage "}
    return MultiVectorEncoder(modules=modules, device="cpu", **{"prompts": prompts, **settings})


def causal(folder: Path, *, template: str | None = TEMPLATE, tied: bool = False) -> Any:
    """A Llama whose "doctor" against "nurse" is the score: of a chat template's text, or of a plain pair."""
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.cross_encoder.modules import LogitScore

    checkpoint = llama(folder / "checkpoint", template=template, tied=tied)
    encoder = Transformer(str(checkpoint), transformer_task="text-generation", max_seq_length=24)
    words = encoder.tokenizer.convert_tokens_to_ids(["doctor", "nurse"])
    return CrossEncoder(modules=[encoder, LogitScore(*words)], device="cpu")


def llama(folder: Path, *, template: str | None = None, tied: bool = False, more: tuple[str, ...] = ()) -> Path:
    """A causal language model and its tokeniser of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", *WORDS, "query", "passage", ":", ".", *more]
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokeniser = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
    tokeniser.chat_template = template
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        initializer_range=0.4,
        tie_word_embeddings=tied,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Kind:
    """A kind of model. ``make``: from an empty folder for its checkpoint; ``kind``, ``facts``: what must be found."""

    make: Callable[[Path], Any]
    architecture: str
    name: str
    reads: int | None = 24
    offsets: bool = True


KINDS: dict[str, Kind] = {
    "cross": Kind(cross, "cross", "cross-encoder"),
    "bi": Kind(bi, "bi", "bi-encoder"),
    "static": Kind(static, "bi", "static embeddings", None),
    "splade": Kind(splade, "sparse", "sparse encoder"),
    "inference-free": Kind(inference_free, "sparse", "sparse encoder"),
    "late": Kind(late, "late", "late interaction", 20),
    "causal": Kind(causal, "cross", "causal language model", offsets=False),
    "causal-pair": Kind(lambda folder: causal(folder, template=None), "cross", "causal language model"),
}


def saved(name: str, folder: Path) -> Path:
    """A model of a kind, saved as sentence-transformers saves it."""
    KINDS[name].make(folder).save_pretrained(str(folder / name), create_model_card=False)
    return folder / name


def own_scores(model: Any, queries: list[str], passages: list[str], prompts: dict[str, str] | None = None) -> Any:
    """The scores of pairs as sentence-transformers documents them, one text or pair at a time: without padding."""
    import torch
    from sentence_transformers import CrossEncoder

    given = prompts or {}
    if isinstance(model, CrossEncoder):
        pairs = list(zip(queries, passages, strict=True))
        prompt = given.get("query")
        return model.predict(pairs, prompt=prompt, activation_fn=torch.nn.Identity(), batch_size=1)
    first = model.encode_query(queries, batch_size=1, prompt=given.get("query"))
    second = model.encode_document(passages, batch_size=1, prompt=given.get("document"))
    return model.similarity_pairwise(first, second).cpu().numpy()
