"""K-NRM: kernels over the cosines of word vectors [Xiong et al., SIGIR 2017]."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .kernels import PUBLISHED_CENTRES, exact_widths, kernel_pool, kernel_weights
from .vocabulary import Vocabulary
from .word_ranker import WordConfig, WordRanker


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
