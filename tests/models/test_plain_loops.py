"""The rankers over word vectors against plain loops over the words of one pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tiny_models import texts

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("safetensors", reason="needs the extra [neural]")

import ranker_factories as factories
from evenrank.models.protocol import CandidateLists
from evenrank.models.word_rankers import (
    EVEN_CENTRES,
    PUBLISHED_CENTRES,
    ConvKNRMRanker,
    KNRMRanker,
    MatchPyramidRanker,
    TKRanker,
)
from plain_loops import array, slow_transformer, slow_vectors


def slow_cosine(a: Any, b: Any) -> float:
    return float(a @ b / ((np.linalg.norm(a) + 1e-13) * (np.linalg.norm(b) + 1e-13)))


def slow_kernels(queries: Any, passages: Any, centres: Any, widths: Any) -> Any:
    """Σ_i ln max(Σ_j K_k, 1e-10) for each k."""
    features = []
    for centre, width in zip(centres, widths, strict=True):
        feature = 0.0
        for query in queries:
            total = sum(math.exp(-((slow_cosine(query, p) - centre) ** 2) / (2 * width**2)) for p in passages)
            feature += math.log(max(total, 1e-10))
        features.append(feature)
    return np.array(features)


def slow_knrm(ranker: KNRMRanker, query: Any, passage: Any) -> float:
    features = slow_kernels(query, passage, PUBLISHED_CENTRES, [1e-4] + [0.1] * 10)
    return float(array(ranker.kernels.weight)[0] @ features * 0.01)


def slow_grams(layer: Any, vectors: Any) -> list[Any]:
    """ReLU of a convolution, with zeros after the last word."""
    weight, bias = array(layer.weight), array(layer.bias)
    grams = []
    for start in range(len(vectors)):
        total = bias.copy()
        for place in range(weight.shape[2]):
            if start + place < len(vectors):
                total += weight[:, :, place] @ vectors[start + place]
        grams.append(np.maximum(total, 0))
    return grams


def slow_conv_knrm(ranker: ConvKNRMRanker, query: Any, passage: Any) -> float:
    layers = list(ranker.contextualisation)
    features = [
        slow_kernels(slow_grams(a, query), slow_grams(b, passage), PUBLISHED_CENTRES, [1e-3] + [0.1] * 10)
        for a in layers
        for b in layers
    ]
    return float(array(ranker.kernels.weight)[0] @ np.concatenate(features) * 0.01)


def slow_tk(ranker: TKRanker, query: Any, passage: Any) -> float:
    a, b = slow_transformer(ranker, query, 0), slow_transformer(ranker, passage, 500)
    centres = EVEN_CENTRES if ranker.settings.kernels == "even" else PUBLISHED_CENTRES
    return float(array(ranker.kernels.weight)[0] @ slow_kernels(a, b, centres, [0.1] * 11))


@torch.no_grad()
def slow_match_pyramid(ranker: MatchPyramidRanker, query: Any, passage: Any) -> float:
    """The whole image of 30 × 200, as the definition has it."""
    image = np.zeros((1, 30, 200))
    for i, a in enumerate(query):
        for j, b in enumerate(passage):
            image[0, i, j] = slow_cosine(a, b)
    maps = torch.tensor(image)
    for layer, pool in zip(ranker.convolutions, ((36, 90), (18, 60), (9, 30), (6, 20), (3, 10)), strict=True):
        wider = torch.nn.functional.pad(maps, (0, 2, 0, 2))
        maps = torch.nn.functional.conv2d(wider[None], layer.weight.double(), layer.bias.double())[0].relu()
        rows, columns = maps.shape[1:]
        pooled = torch.empty(16, *pool, dtype=torch.float64)
        for i in range(pool[0]):
            for j in range(pool[1]):
                window = maps[
                    :,
                    i * rows // pool[0] : -(-(i + 1) * rows // pool[0]),
                    j * columns // pool[1] : -(-(j + 1) * columns // pool[1]),
                ]
                pooled[:, i, j] = window.amax((1, 2))
        maps = pooled
    features = maps.flatten()
    for layer in ranker.dense:
        features = (layer.weight.double() @ features + layer.bias.double()).relu()
    return float(ranker.last.weight.double()[0] @ features)


SLOW: dict[str, Callable[[Any, Any, Any], float]] = {
    "tk": slow_tk,
    "tk-even": slow_tk,
    "knrm": slow_knrm,
    "conv-knrm": slow_conv_knrm,
    "match-pyramid": slow_match_pyramid,
}


@pytest.mark.parametrize("name", SLOW)
def test_against_plain_loops(name: str) -> None:
    ranker: Any = factories.CASES[name].make(2)
    with torch.no_grad():  # weights of the size that training gives, biases and all
        torch.manual_seed(0)
        for parameter in ranker.parameters():
            if parameter is not ranker.embeddings.weight:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    count = 1 if name == "match-pyramid" else 3
    groups = CandidateLists(texts(count, 8, 5), [[*texts(2, 25, i), "", "zyx nurse zyx"] for i in range(count)])
    fast = array(ranker(**ranker.encode(groups)))
    expected = [
        [
            SLOW[name](
                ranker,
                slow_vectors(ranker, query, ranker.settings.query_length),
                slow_vectors(ranker, text, ranker.settings.passage_length),
            )
            for text in row
        ]
        for query, row in zip(groups.queries, groups.passages, strict=True)
    ]
    assert np.std(expected) > 1e-3
    np.testing.assert_allclose(fast, expected, atol=1e-5)
