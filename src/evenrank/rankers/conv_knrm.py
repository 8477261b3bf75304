"""Conv-KNRM: kernels over the cosines of n-grams [Dai et al., WSDM 2018]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .kernels import PUBLISHED_CENTRES, exact_widths, kernel_pool, kernel_weights
from .vocabulary import Vocabulary
from .word_ranker import WordConfig, WordRanker


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
