"""TK: kernels over the cosines of contextual word vectors [Hofstätter et al., ECAI 2020; POS eq. 4–6]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted

from .kernels import EVEN_CENTRES, PUBLISHED_CENTRES, WIDTH, kernel_pool, kernel_weights
from .vocabulary import Vocabulary
from .word_ranker import WordConfig, WordRanker

PASSAGE_START = 500


@dataclass(frozen=True, slots=True)
class TKConfig(WordConfig):
    """Words kept, sizes of the transformer, and the kernels: ``published`` (1, .9, .7, … −.9) or ``even`` (−1 … 1)."""

    layers: int = 2
    heads: int = 16
    head_size: int = 32
    feedforward: int = 100
    kernels: str = "published"

    def __post_init__(self) -> None:
        super(TKConfig, self).__post_init__()
        if self.kernels not in ("published", "even"):
            raise EvenrankError(f"`kernels`: expected published or even, found {quoted(self.kernels)}")


def sinusoids(start: int, length: int, size: int) -> Tensor:
    """[length, size]: sin(p / 10000^(2i/size)) and cos of the same by turns, for p = start, … [Vaswani et al. 2017]."""
    place = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :size].float()


def _linear(layer: nn.Linear, vectors: Tensor) -> Tensor:
    """``layer(vectors)`` for ``vectors`` [N, L, *].

    On a CPU as a convolution over single words, which PyTorch computes with oneDNN: on AMD processors three times as
    fast as its matrix multiplication, and not slower on others.
    """
    if vectors.device.type != "cpu":
        return layer(vectors)  # type: ignore[no-any-return]
    image = vectors[:, :, None].permute(0, 3, 1, 2)
    return functional.conv2d(image, layer.weight[:, :, None, None], layer.bias).permute(0, 2, 3, 1)[:, :, 0]


class _Layer(nn.Module):
    """Self-attention and a feed-forward network, each with its input added and then normalised ("post-norm").

    The heads have projections of their own size, so that their number need not divide the vectors'.
    """

    def __init__(self, size: int, config: TKConfig) -> None:
        super().__init__()
        self.heads = config.heads
        inner = config.heads * config.head_size
        self.attention_in = nn.Linear(size, 3 * inner)
        self.attention_out = nn.Linear(inner, size)
        self.feedforward_in = nn.Linear(size, config.feedforward)
        self.feedforward_out = nn.Linear(config.feedforward, size)
        self.attention_norm = nn.LayerNorm(size)
        self.feedforward_norm = nn.LayerNorm(size)
        for layer in (self.attention_in, self.attention_out, self.feedforward_in, self.feedforward_out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, vectors: Tensor, attention: Tensor, mask: Tensor | None) -> Tensor:
        """[N, L, size] → the same. ``attention`` [N, L, 3 · inner]: queries, keys and values; ``mask`` [N, 1, 1, L]."""
        texts, length, _ = vectors.shape
        query, key, value = attention.view(texts, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        vectors = self.attention_norm(vectors + _linear(self.attention_out, attended.transpose(1, 2).flatten(2)))
        inner = _linear(self.feedforward_in, vectors).relu_()
        return self.feedforward_norm(vectors + _linear(self.feedforward_out, inner))  # type: ignore[no-any-return]


class TKRanker(WordRanker):
    """The vector of each word, mixed with its output of a small transformer; 11 kernels, 11 weights.

    ``contextualisation``: the transformer, without dropout; ``gate``: α, one number, initially 0.5.
    """

    kind = "tk"
    config_class = TKConfig
    settings: TKConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: TKConfig) -> None:
        super().__init__(vocabulary, matrix, config)
        size = matrix.shape[1]
        self.contextualisation = nn.ModuleList([_Layer(size, config) for _ in range(config.layers)])
        self.gate = nn.Parameter(torch.tensor([0.5]))
        self.kernels = kernel_weights(len(PUBLISHED_CENTRES))
        places = sinusoids(0, max(config.query_length, PASSAGE_START + config.passage_length), size)
        self.register_buffer("places", places, persistent=False)

    def contextualise(self, ids: Tensor, mask: Tensor, start: int) -> Tensor:
        """α · e + (1 − α) · transformer(e + sinusoid) [POS eq. 4] of texts, the vectors that the kernels compare.

        ``ids`` and ``mask`` [N, L]: numbers of words, and False for padding; ``start``: the position of the first word,
        0 for queries and ``PASSAGE_START`` for passages. Returns [N, L, size], undefined for padding.
        """
        return self._gated(self.project(self.embeddings(ids)), mask, start)

    def project(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """The vectors, and their projections in the first layer's attention before positions are added."""
        first = self._layers()[0]
        return vectors, functional.linear(vectors, first.attention_in.weight)

    def represent(self, projected: tuple[Tensor, ...], mask: Tensor, *, passage: bool) -> Tensor:
        return self._gated(projected, mask, PASSAGE_START if passage else 0)

    def _gated(self, projected: tuple[Tensor, ...], mask: Tensor, start: int) -> Tensor:
        embedded, attention = projected
        length, layers = embedded.shape[1], self._layers()
        assert isinstance(self.places, Tensor)
        known = start + length <= len(self.places)
        places = self.places[start : start + length] if known else sinusoids(start, length, embedded.shape[2])
        places = places.to(embedded)
        # Linear: the projection of a sum is that of the word, looked up, plus that of the position.
        attention = attention + layers[0].attention_in(places)
        vectors = embedded + places
        visible = None
        if not mask.all():
            # A text without words must attend to something; pooling masks the result.
            visible = (mask | ((torch.arange(length, device=mask.device) == 0) & ~mask.any(1, keepdim=True)))[
                :, None, None
            ]
        for number, layer in enumerate(layers):
            vectors = layer(vectors, attention if number == 0 else _linear(layer.attention_in, vectors), visible)
        return self.gate * embedded + (1 - self.gate) * vectors

    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        centres = EVEN_CENTRES if self.settings.kernels == "even" else PUBLISHED_CENTRES
        pooled = kernel_pool(cosines, query_mask, passage_mask, centres, (WIDTH,) * len(centres))
        scores: Tensor = self.kernels(pooled)[:, 0]
        return scores

    def _layers(self) -> list[_Layer]:
        return [layer for layer in self.contextualisation if isinstance(layer, _Layer)]
