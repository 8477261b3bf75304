"""The rankers over cosines of word vectors: K-NRM, Conv-KNRM and MatchPyramid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd

import torch
from torch import Tensor, nn
from torch.nn import functional

from .word_ranker import (
    PUBLISHED_CENTRES,
    Vocabulary,
    WordConfig,
    WordRanker,
    exact_widths,
    kernel_pool,
    kernel_weights,
)


@dataclass(frozen=True, slots=True)
class KNRMConfig(WordConfig):
    """Words kept of a query and of a passage."""


class KNRMRanker(WordRanker):
    """11 kernels, the first (μ 1, σ 1e-4) for exact matches; their logarithms × 0.01, weighted by 11 numbers."""

    kind = "knrm"
    config_class = KNRMConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: WordConfig) -> None:
        super().__init__(vocabulary, matrix, config)
        self.kernels = kernel_weights(len(PUBLISHED_CENTRES))

    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        pooled = kernel_pool(cosines, query_mask, passage_mask, PUBLISHED_CENTRES, exact_widths(1e-4))
        scores: Tensor = self.kernels(pooled * 0.01)[:, 0]
        return scores


@dataclass(frozen=True, slots=True)
class ConvKNRMConfig(WordConfig):
    """Words kept, n-grams of 1 to ``longest`` words, and the filters (dimensions) of each n-gram's vector."""

    longest: int = 3
    filters: int = 128


class ConvKNRMRanker(WordRanker):
    """Convolutions of 1 to 3 words, ReLU; kernels of all 9 n-gram pairs (exact match σ 1e-3), × 0.01, 99 weights.

    The n-gram of width n at position i is the words i … i + n − 1, with zeros after the last word: a text has as many
    n-grams of each width as words.
    """

    kind = "conv-knrm"
    config_class = ConvKNRMConfig
    settings: ConvKNRMConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: ConvKNRMConfig) -> None:
        super().__init__(vocabulary, matrix, config)
        convolutions = [nn.Conv1d(matrix.shape[1], config.filters, n) for n in range(1, config.longest + 1)]
        self.contextualisation = nn.ModuleList(convolutions)
        self.kernels = kernel_weights(config.longest**2 * len(PUBLISHED_CENTRES))

    def project(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """What a word adds at each position of an n-gram of each width: [..., filters] each."""
        weights = [layer.weight[:, :, place] for layer in self._layers() for place in range(layer.kernel_size[0])]
        # One multiplication for all; a convolution would multiply each word once for each width and position.
        return (functional.linear(vectors, torch.cat(weights)),)

    def represent(self, projected: tuple[Tensor, ...], mask: Tensor, *, passage: bool) -> Tensor:
        """The n-grams' vectors [N, widths · L, filters], one width after the other."""
        parts = iter(torch.split(projected[0], self.settings.filters, dim=-1))
        grams = []
        for width, layer in enumerate(self._layers(), 1):
            assert layer.bias is not None
            total = next(parts) + layer.bias
            for shift in range(1, width):
                part = next(parts)
                total[:, : max(0, part.shape[1] - shift)] += part[:, shift:]
            grams.append(total.relu())
        return torch.cat(grams, dim=1)

    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        widths = self.settings.longest
        pairs, rows, columns = cosines.shape
        # [N, query n-gram, passage n-gram, Q, D]
        split = cosines.view(pairs, widths, rows // widths, widths, columns // widths).transpose(2, 3)
        masks = query_mask[:, None, None], passage_mask[:, None, None]
        pooled = kernel_pool(split, *masks, PUBLISHED_CENTRES, exact_widths(1e-3))
        scores: Tensor = self.kernels(pooled.flatten(1) * 0.01)[:, 0]
        return scores

    def _layers(self) -> list[nn.Conv1d]:
        return [layer for layer in self.contextualisation if isinstance(layer, nn.Conv1d)]


POOLS = ((36, 90), (18, 60), (9, 30), (6, 20), (3, 10))
MAPS = 16
_KERNEL = 3


@dataclass(frozen=True, slots=True)
class MatchPyramidConfig(WordConfig):
    """Words kept of a query and of a passage: the size of the image."""


class MatchPyramidRanker(WordRanker):
    """5 × (3×3 convolution to 16 maps, ReLU, adaptive max-pooling), then 480 → 100 → 10 → 1, the last without a bias.

    The image is padded with zeros to 30 × 200, and the input of each convolution with two rows and columns of zeros at
    the end, as in the public code, so that its output has the same size. Most of an image is padding, where each layer
    has the same output as for an image of zeros. So only the corner that the texts of a batch reach is computed, and
    the rest is taken from one image of zeros: the same scores for a tenth of the work.
    """

    kind = "match-pyramid"
    config_class = MatchPyramidConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: WordConfig) -> None:
        super().__init__(vocabulary, matrix, config)
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(MAPS if level else 1, MAPS, _KERNEL) for level in range(len(POOLS))]
        )
        sizes = (MAPS * POOLS[-1][0] * POOLS[-1][1], 100, 10)
        self.dense = nn.ModuleList(nn.Linear(*size) for size in pairwise(sizes))
        self.last = nn.Linear(sizes[-1], 1, bias=False)
        # PyTorch's default shrinks the signal to a hundred-thousandth over eight layers; this keeps it [He 2015].
        for layer in (*self.convolutions, *self.dense):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        image = (cosines * query_mask[:, :, None] * passage_mask[:, None, :])[:, None]
        size = self.settings.query_length, self.settings.passage_length
        zeros = image.new_zeros(1, 1, *size)
        for convolution, pool in zip(self.convolutions, POOLS, strict=True):
            padded = functional.pad(zeros, (0, _KERNEL - 1, 0, _KERNEL - 1))
            rows, out_rows = _reach(image.shape[2], size[0], pool[0])
            columns, out_columns = _reach(image.shape[3], size[1], pool[1])
            corner = padded[:, :, : rows + _KERNEL - 1, : columns + _KERNEL - 1].expand(len(image), -1, -1, -1)
            # Pooling is 20 times as fast with the maps last.
            corner = corner.clone(memory_format=torch.channels_last)
            corner[:, :, : image.shape[2], : image.shape[3]] = image
            image = _pooled(convolution(corner), (out_rows, out_columns))
            zeros = _pooled(convolution(padded), pool)
            size = pool
        whole = zeros.repeat(len(image), 1, 1, 1)
        whole[:, :, : image.shape[2], : image.shape[3]] = image
        features = whole.flatten(1)
        for layer in self.dense:
            features = layer(features).relu()
        scores: Tensor = self.last(features)[:, 0]
        return scores


def _pooled(maps: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.adaptive_max_pool2d(maps.relu_().contiguous(memory_format=torch.channels_last), size)


def _reach(used: int, size: int, pooled: int) -> tuple[int, int]:
    """How far the first ``used`` of ``size`` places reach when these are pooled to ``pooled``: before and after.

    A convolution over a place and those after it leaves the reach as it is. Cell p pools the places from
    floor(p · size / pooled) on, so the cells up to ceil(used · pooled / size) are reached. Both results are rounded up
    to where a cell ends with a place, so that pooling the corner alone has the same cells as pooling all.
    """
    step = pooled // gcd(size, pooled)
    after = min(pooled, -(-used * pooled // size))
    after = -(-after // step) * step
    return after * size // pooled, after
