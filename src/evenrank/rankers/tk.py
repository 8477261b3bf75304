"""TK: kernels over the cosines of contextual word vectors [Hofstätter et al., ECAI 2020; POS eq. 4–6]."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted

from .models import (
    RARE_WORDS,
    ModelFolder,
    check_tokeniser,
    check_weights,
    chosen_device,
    find_folder,
    loading_problem,
    of_encoder,
    quiet_loading,
    read_object,
)
from .protocol import config_file
from .word_ranker import (
    EVEN_CENTRES,
    PUBLISHED_CENTRES,
    WIDTH,
    Vocabulary,
    WordConfig,
    WordRanker,
    kernel_pool,
    kernel_weights,
)

if TYPE_CHECKING:
    from transformers import BatchEncoding

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


Words = tuple[list[str], NDArray[np.float32]]
Encode = Callable[[list[str]], list[Words]]
"""Texts → for each its words and their vectors [words, d]."""


@dataclass(frozen=True, slots=True)
class WordEncoder:
    """Computes a model's contextual word vectors; ``what`` describes them."""

    encode: Encode
    what: str


def word_encoder(model: str, *, device: str | None = None, max_words: int = 200) -> WordEncoder:
    """The word encoder of a model: a folder, or a name on the hub.

    tk: its gated vectors [POS eq. 4]. Any transformer (a plain encoder, a cross-encoder, or a bi-encoder's passage
    encoder): the last hidden states of the passage alone, averaged over the word pieces of each word. Words are split
    at white space and punctuation, and lower-cased; at most ``max_words`` per passage. Raises EvenrankError for a
    ranker without contextual vectors.
    """
    path = find_folder(model)
    if config_file(path).is_file():
        from .models import load_kernel_ranker

        ranker = load_kernel_ranker(ModelFolder(path.name, path, "kernel"), device)
        if not isinstance(ranker, TKRanker):
            raise EvenrankError(f"{model}: a {ranker.kind} ranker has no contextual vectors of words")
        return WordEncoder(_of_tk(ranker, max_words), "gated vectors of tk")
    return WordEncoder(_of_transformer(path, device, max_words), "last hidden states, word pieces averaged")


def _of_tk(ranker: TKRanker, max_words: int) -> Encode:
    from .word_ranker import padded, words

    limit = min(max_words, ranker.settings.passage_length)

    @torch.inference_mode()
    def encode(texts: list[str]) -> list[Words]:
        numbers = [ranker.vocabulary.numbers(text)[:limit] for text in texts]
        device = ranker.embeddings.weight.device
        ids = padded(numbers).to(device)
        vectors = ranker.contextualise(ids, ids > 0, PASSAGE_START).float().cpu().numpy()
        return [
            (words(text)[: len(row)], vectors[i, : len(row)])
            for i, (text, row) in enumerate(zip(texts, numbers, strict=True))
        ]

    return encode


def _of_transformer(path: os.PathLike[str], device: str | None, max_words: int) -> Encode:
    from transformers import AutoModel, AutoTokenizer

    folder = _encoder_folder(path)
    local = {"trust_remote_code": False, "local_files_only": True}
    try:
        with quiet_loading() as missing:
            tokenizer = AutoTokenizer.from_pretrained(folder, **local)
            model = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **local)
    except Exception as error:  # as in load_encoder
        raise loading_problem(folder, error) from None
    check_weights(folder, of_encoder(missing))
    check_tokeniser(folder, tokenizer, RARE_WORDS)
    if not tokenizer.is_fast:
        raise EvenrankError(f"{folder}: its tokeniser does not show which pieces make up a word")
    device = chosen_device(device)
    model = model.to(device).eval()
    longest = min(tokenizer.model_max_length, _positions(model))

    @torch.inference_mode()
    def encode(texts: list[str]) -> list[Words]:
        batch = tokenizer(texts, truncation=True, max_length=longest, padding=True, return_tensors="pt")
        inputs = {name: value.to(device) for name, value in batch.items()}
        hidden = model(**inputs).last_hidden_state.float()
        return [_averaged(text, batch, i, hidden[i], max_words) for i, text in enumerate(texts)]

    return encode


def _positions(model: torch.nn.Module) -> int:
    """The number of positions of a transformer. RoBERTa and its relatives count them from after the padding index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return int(getattr(model.config, "max_position_embeddings", 512))


def _encoder_folder(path: os.PathLike[str]) -> Path:
    """The folder of a model's transformer; of a bi-encoder with two towers, that of the passages."""
    root = Path(path)
    router = root / "router_config.json"
    if router.is_file():
        structure = read_object(router).get("structure", {})
        if isinstance(structure, dict):
            modules = next((structure[name] for name in ("document", "passage") if name in structure), None)
            if modules:
                return root / str(modules[0])
    if (root / "config.json").is_file():
        return root
    return next((file.parent for file in sorted(root.rglob("config.json"))), root)


def _averaged(text: str, batch: BatchEncoding, number: int, hidden: torch.Tensor, max_words: int) -> Words:
    """The words of a text that have a letter or a digit, each with the mean of its pieces' vectors."""
    pieces = batch.word_ids(number)
    pieces_of: dict[int, list[int]] = {}
    for piece, word in enumerate(pieces):
        if word is not None:
            pieces_of.setdefault(word, []).append(piece)
    names: list[str] = []
    rows: list[int] = []
    owner: list[int] = []
    for word, own in pieces_of.items():
        span = batch.word_to_chars(number, word)
        name = text[span.start : span.end].strip().lower()
        if not any(character.isalnum() for character in name):
            continue
        if len(names) == max_words:
            break
        owner += [len(names)] * len(own)
        rows += own
        names.append(name)
    if not names:
        return [], np.empty((0, hidden.shape[1]), np.float32)
    sums = torch.zeros(len(names), hidden.shape[1], device=hidden.device)
    index = torch.tensor(owner, device=hidden.device)
    sums.index_add_(0, index, hidden[rows])
    means = sums / torch.bincount(index)[:, None]
    return names, means.cpu().numpy()


def sample_passages(batches: Iterable[pl.DataFrame], count: int, seed: int = 0) -> pl.DataFrame:
    """A random sample of ``count`` documents, which depends on the ids and the seed but not on the order.

    Keeps ``count`` documents and a batch in memory.
    """
    kept: pl.DataFrame | None = None
    for batch in batches:
        batch = batch.with_columns((pl.col("doc_id").hash(seed)).alias("draw"))
        kept = batch if kept is None else pl.concat([kept, batch])
        kept = kept.sort("draw", "doc_id").head(count)
    if kept is None or not kept.height:
        raise EvenrankError("the collection has no document")
    return kept.sort("doc_id").select("doc_id", "text")


def word_vectors(
    encode: Encode, texts: list[str], size: int, advance: Callable[[int], None]
) -> Iterator[tuple[int, Words]]:
    """The number of each text with its words and their vectors; texts of similar length are encoded together."""
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield from zip(rows, encode([texts[i] for i in rows]), strict=True)
        advance(len(rows))
