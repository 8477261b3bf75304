"""Layers of rankers as plain loops over the words of one text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evenrank.groups import tokenize

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("safetensors", reason="needs the extra [neural]")

from evenrank.models.word_rankers import TKRanker


def array(tensor: Any) -> Any:
    return tensor.detach().double().numpy()


def slow_vectors(ranker: Any, text: str, length: int) -> Any:
    """The vectors of the first words of a text."""
    table, known = array(ranker.embeddings.weight), list(ranker.vocabulary)
    numbers = [known.index(word) + 2 if word in known else 1 for word in tokenize(text)[:length]]
    return table[numbers]


def slow_norm(layer: Any, vector: Any) -> Any:
    scaled = (vector - vector.mean()) / math.sqrt(vector.var() + layer.eps)
    return scaled * array(layer.weight) + array(layer.bias)


def slow_transformer(ranker: TKRanker, vectors: Any, start: int) -> Any:
    size = vectors.shape[1]
    states = []
    for place, vector in enumerate(vectors, start):
        angles = [place / 10000 ** (2 * (i // 2) / size) for i in range(size)]
        states.append(vector + [math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(angles)])
    for layer in ranker.contextualisation:
        heads, head_size = ranker.settings.heads, ranker.settings.head_size
        projected = [array(layer.attention_in.weight) @ state + array(layer.attention_in.bias) for state in states]
        query, key, value = ([row.reshape(3, heads, head_size)[part] for row in projected] for part in range(3))
        after = []
        for i, state in enumerate(states):
            attended = []
            for head in range(heads):
                logits = np.array([query[i][head] @ k[head] / math.sqrt(head_size) for k in key])
                shares = np.exp(logits - logits.max())
                attended.append(sum(s * v[head] for s, v in zip(shares / shares.sum(), value, strict=True)))
            mixed = array(layer.attention_out.weight) @ np.concatenate(attended) + array(layer.attention_out.bias)
            state = slow_norm(layer.attention_norm, state + mixed)
            inner = np.maximum(array(layer.feedforward_in.weight) @ state + array(layer.feedforward_in.bias), 0)
            outer = array(layer.feedforward_out.weight) @ inner + array(layer.feedforward_out.bias)
            after.append(slow_norm(layer.feedforward_norm, state + outer))
        states = after
    gate = float(ranker.gate.detach())
    return [gate * vector + (1 - gate) * state for vector, state in zip(vectors, states, strict=True)]
