"""Encoders whose vectors are known: the mean of those of a text's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def planted_encoder(folder: Path, vectors: Mapping[str, Sequence[float]], *, similarity: str = "dot") -> Path:
    """A saved SentenceTransformer that encodes a text as the mean of its words' ``vectors``; other words are 0."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = ["[UNK]", *vectors]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    rows = np.array(list(vectors.values()), np.float32)
    weights = np.concatenate([np.zeros((1, rows.shape[1]), np.float32), rows])
    module = StaticEmbedding(tokenizer, embedding_weights=weights)
    SentenceTransformer(modules=[module], similarity_fn_name=similarity, device="cpu").save(str(folder))
    return folder
