"""The rankers over cosines of word vectors: TK, K-NRM, Conv-KNRM and MatchPyramid.

TK: kernels over the cosines of contextual word vectors [Hofstätter et al., ECAI 2020; POS eq. 4–6].
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, write_text
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.tokens import word_spans

from .encoders import saving, seeded
from .protocol import CandidateLists, Inputs, Ranker, config_file
from .vectors import Vectors
from .vocabulary import FIRST, UNKNOWN, Vocabulary, padded

# 1, .9, .7, … −.9 (K-NRM as published, TK) and −1, −.8, … 1.
PUBLISHED_CENTRES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9)
EVEN_CENTRES = (-1.0, -0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WIDTH = 0.1
# The cosine of padding: so far from every centre that each kernel and its derivative are exactly 0.
_NOWHERE = 1e4


def exact_widths(exact: float) -> tuple[float, ...]:
    """σ of the published centres; ``exact`` is that of the one at 1, which counts exact matches only."""
    return (exact, *[WIDTH] * (len(PUBLISHED_CENTRES) - 1))


def cosine(queries: Tensor, passages: Tensor, rows: Tensor) -> Tensor:
    """a·b / ((‖a‖ + 1e-13)(‖b‖ + 1e-13)) of each query vector with each passage vector, in float32.

    ``queries`` [B, Q, d]; ``passages`` [N, D, d]; ``rows`` [N]: the query of each passage. Returns [N, Q, D].
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, passages = queries.float(), passages.float()
        query_norm = torch.linalg.vector_norm(queries, dim=-1) + 1e-13
        passage_norm = torch.linalg.vector_norm(passages, dim=-1) + 1e-13
        # Divided after, not before: the matrix of products is smaller than the vectors.
        products = torch.bmm(queries[rows], passages.transpose(1, 2))
        cosines: Tensor = products / query_norm[rows][:, :, None] / passage_norm[:, None, :]
        return cosines


class _KernelSums(torch.autograd.Function):
    """Σ over the last dimension of each kernel; saves only the cosines for the backward pass."""

    @staticmethod
    def forward(ctx: Any, cosines: Tensor, centres: tuple[float, ...], widths: tuple[float, ...]) -> Tensor:
        """``cosines`` [..., D] → [..., kernels]."""
        ctx.save_for_backward(cosines)
        ctx.kernels = tuple(zip(centres, widths, strict=True))
        sums = cosines.new_empty(*cosines.shape[:-1], len(centres))
        values = torch.empty_like(cosines)
        for number, (centre, width) in enumerate(ctx.kernels):
            torch.sub(cosines, centre, out=values)
            values.square_().mul_(-0.5 / width**2).exp_()
            torch.sum(values, -1, out=sums[..., number])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (cosines,) = ctx.saved_tensors
        total = torch.zeros_like(cosines)
        for number, (centre, width) in enumerate(ctx.kernels):
            distance = cosines - centre
            values = distance.square().mul_(-0.5 / width**2).exp_()
            total.addcmul_(values.mul_(distance), gradient[..., number, None], value=-1 / width**2)
        return total, None, None


def kernel_pool(
    cosines: Tensor,
    query_mask: Tensor,
    passage_mask: Tensor,
    centres: tuple[float, ...],
    widths: tuple[float, ...],
) -> Tensor:
    """Σ_i ln max(Σ_j exp(−(cos_ij − μ_k)² / (2σ_k²)), 1e-10) for each kernel k [Xiong et al. 2017, eq. 3–5].

    ``cosines`` [..., Q, D]; ``query_mask`` [..., Q] and ``passage_mask`` [..., D], bool: True for words; their
    shapes broadcast. Returns [..., kernels], finite: −23.03 for each query word and kernel without a match.
    """
    sums: Tensor = _KernelSums.apply(cosines.masked_fill(~passage_mask[..., None, :], _NOWHERE), centres, widths)  # type: ignore[no-untyped-call]
    return (sums.clamp(min=1e-10).log() * query_mask[..., None]).sum(-2)


def kernel_weights(features: int) -> nn.Linear:
    """The last layer: no bias, weights from U(−0.014, 0.014)."""
    layer = nn.Linear(features, 1, bias=False)
    nn.init.uniform_(layer.weight, -0.014, 0.014)
    return layer


_WEIGHTS, _VOCABULARY = "model.safetensors", "vocabulary.txt"
# Pairs whose distinct words are looked up together when scoring.
_WINDOW = 1 << 13


@checked
@dataclass(frozen=True, slots=True)
class WordConfig:
    """Settings of all rankers over word vectors: the words kept of a query and of a passage.

    Raises EvenrankError for a number below 1.
    """

    query_length: Annotated[int, opt.COUNT] = 30
    passage_length: Annotated[int, opt.COUNT] = 200


class WordRanker(Ranker):
    """A ranker that compares each word of a query with each word of a passage by the cosine of their vectors.

    Subclasses define the vectors (:meth:`project` and :meth:`represent`) and the score of the cosines (:meth:`match`).
    """

    config_class: ClassVar[type[WordConfig]] = WordConfig
    settings: WordConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: WordConfig) -> None:
        """``matrix`` [V, d] float32: the vector of each number of ``vocabulary``, row 0 (padding) all zero."""
        super().__init__()
        self.vocabulary = vocabulary
        # Not "config": transformers' Trainer would take that for its own and write into it.
        self.settings = config
        self.embeddings = nn.Embedding(len(vocabulary), matrix.shape[1], padding_idx=0, _weight=matrix)

    @classmethod
    def from_vectors(
        cls, vectors: Vectors, config: WordConfig | Mapping[str, object] | None = None, seed: int = 0
    ) -> Self:
        """A new ranker over pre-trained vectors, which are trained too; the same seed gives the same weights.

        ``config``: an instance of ``config_class`` or its settings by name; raises EvenrankError for an unknown one.

        Words with a zero vector, which has no direction, and unknown words, which share one vector, get a random one:
        normal, with the standard deviation of all numbers of ``vectors``.
        """
        vocabulary, rows = Vocabulary.of_vectors(vectors)
        if not rows:
            raise EvenrankError("vectors: none is for a single word")
        if not isinstance(config, WordConfig):
            config = cls._config(config or {})
        with seeded(seed):
            matrix = torch.zeros(len(vocabulary), vectors.dimensions)
            matrix[FIRST:] = torch.from_numpy(vectors.matrix[rows])
            lacking = (matrix == 0).all(1)
            lacking[0] = False
            spread = float(matrix[FIRST:].std(correction=0)) or 1.0
            matrix[lacking] = torch.randn(int(lacking.sum()), vectors.dimensions) * spread
            assert lacking[UNKNOWN]
            return cls(vocabulary, matrix, config)

    @classmethod
    def _config(cls, settings: Mapping[str, Any]) -> WordConfig:
        known = [field.name for field in fields(cls.config_class)]
        for name in settings:
            if name not in known:
                raise EvenrankError(f"{cls.kind}: expected some of {', '.join(known)}, found {quoted(name)}")
        return cls.config_class(**settings)

    # --- defined by subclasses -------------------------------------------------------------------------------------

    def project(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """What depends on one word alone: of word vectors [..., d], tensors [..., *], 0 for the zero vector."""
        return (vectors,)

    def represent(self, projected: tuple[Tensor, ...], mask: Tensor, *, passage: bool) -> Tensor:
        """The vectors [N, R, d'] to compare of N texts: ``projected`` [N, L, *] each, ``mask`` [N, L] bool."""
        return projected[0]

    @abstractmethod
    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        """Scores [N] of ``cosines`` [N, R_q, R_d]; ``query_mask`` [N, Q] and ``passage_mask`` [N, D], bool."""

    # --- the protocol ----------------------------------------------------------------------------------------------

    def encode(self, lists: CandidateLists) -> Inputs:
        """``queries`` [B, Q] and ``passages`` [N, D]: numbers of words, 0 for padding; ``mask`` [B, K].

        N is the number of passages: row n belongs to the n-th True of ``mask``, row by row. ``query_cut`` [B] and
        ``passage_cut`` [N] bool: truncated texts.
        """
        queries, query_cut = self._numbers(lists.queries, self.settings.query_length)
        texts = [text for row in lists.passages for text in row]
        passages, passage_cut = self._numbers(texts, self.settings.passage_length)
        return {
            "queries": queries,
            "passages": passages,
            "mask": lists.mask,
            "query_cut": query_cut,
            "passage_cut": passage_cut,
        }

    def _numbers(self, texts: Sequence[str], length: int) -> tuple[Tensor, Tensor]:
        """The words kept of N texts, as numbers [N, L], and which texts [N] are truncated."""
        rows = [self.vocabulary.numbers(text) for text in texts]
        cut = torch.tensor([len(row) > length for row in rows], dtype=torch.bool)
        return padded([row[:length] for row in rows]), cut

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], 0 where ``mask`` [B, K] is False; each query is encoded once for all its passages."""
        queries, passages, mask = inputs["queries"], inputs["passages"], inputs["mask"]
        query_mask, passage_mask = queries > 0, passages > 0
        compared = self.represent(self.project(self.embeddings(queries)), query_mask, passage=False)
        against = self.represent(self.project(self.embeddings(passages)), passage_mask, passage=True)
        rows = mask.nonzero()[:, 0]
        scores = self.match(cosine(compared, against, rows), query_mask[rows], passage_mask)
        return scores.new_zeros(mask.shape).masked_scatter(mask, scores)

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs], computed on the ranker's device: each distinct text once per window of 8,192 pairs.

        In a window, :meth:`project` is called once per distinct word, and passages are sorted by length against
        padding; batches of ``batch_size`` pairs should fit the processor's cache.
        """
        training = self.training
        self.eval()
        scores = torch.empty(len(queries))
        for start in range(0, len(queries), _WINDOW):
            part = slice(start, start + _WINDOW)
            scores[part] = self._score_window(queries[part], passages[part], batch_size)
        self.train(training)
        return scores

    def _score_window(self, queries: Sequence[str], passages: Sequence[str], batch_size: int) -> Tensor:
        device = self.embeddings.weight.device
        query_row, query_ids = self._distinct(queries, self.settings.query_length)
        passage_row, passage_ids = self._distinct(passages, self.settings.passage_length)
        seen = torch.zeros(len(self.vocabulary), dtype=torch.bool)
        seen[0] = seen[query_ids] = seen[passage_ids] = True
        tables = self.project(self.embeddings.weight[seen.to(device)])
        # Number of a word → row of the tables; padding remains 0.
        place = seen.cumsum(0) - 1
        query_ids, passage_ids = place[query_ids].to(device), place[passage_ids].to(device)

        def represent(ids: Tensor, *, passage: bool) -> Tensor:
            looked_up = tuple(functional.embedding(ids, table) for table in tables)
            return self.represent(looked_up, ids > 0, passage=passage)

        starts = range(0, len(query_ids), batch_size)
        compared = torch.cat([represent(query_ids[at : at + batch_size], passage=False) for at in starts])
        query_length, passage_length = (query_ids > 0).sum(1).cpu(), (passage_ids > 0).sum(1).cpu()
        # By length, with the pairs of a passage next to each other.
        order = (passage_length[passage_row] * len(passages) + passage_row).argsort(descending=True, stable=True)
        scores = torch.empty(len(queries))
        for at in range(0, len(order), batch_size):
            pairs = order[at : at + batch_size]
            rows = query_row[pairs]
            distinct, against_row = torch.unique_consecutive(passage_row[pairs], return_inverse=True)
            longest = max(1, int(passage_length[distinct].max())), max(1, int(query_length[rows].max()))
            ids = passage_ids[distinct.to(device), : longest[0]]
            against = represent(ids, passage=True)
            if len(distinct) < len(pairs):
                against, ids = against[against_row.to(device)], ids[against_row.to(device)]
            words = query_ids[rows.to(device), : longest[1]]
            cosines = cosine(self._first(compared, query_ids.shape[1], longest[1]), against, rows.to(device))
            scores[pairs] = self.match(cosines, words > 0, ids > 0).float().cpu()
        return scores

    @staticmethod
    def _first(compared: Tensor, length: int, longest: int) -> Tensor:
        """Of vectors [N, n-grams · length, d], those [N, n-grams · longest, d] of the first words."""
        size, rows, width = compared.shape
        return compared.view(size, rows // length, length, width)[:, :, :longest].flatten(1, 2)

    def _distinct(self, texts: Sequence[str], length: int) -> tuple[Tensor, Tensor]:
        """The row of each text, and the words [distinct texts, L] of the rows."""
        rows: dict[str, int] = {}
        row = torch.tensor([rows.setdefault(text, len(rows)) for text in texts])
        return row, self._numbers(list(rows), length)[0]

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read: up to the end of the last word kept."""
        limit = self.settings.passage_length
        spans = [word_spans(text) for text in passages]
        return [len(t) if len(s) <= limit else s[limit - 1][1] for t, s in zip(passages, spans, strict=True)]

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """``embeddings``, ``contextualisation`` (if the ranker has it) and ``kernels`` (the rest)."""
        groups: dict[str, list[nn.Parameter]] = {"embeddings": [], "contextualisation": [], "kernels": []}
        for name, parameter in self.named_parameters():
            groups[name.partition(".")[0] if name.partition(".")[0] in groups else "kernels"].append(parameter)
        return {name: parameters for name, parameters in groups.items() if parameters}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes ``model.safetensors``, ``vocabulary.txt`` and ``evenrank.json`` into a folder."""
        from safetensors.torch import save_file

        weights = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        content = {"kind": self.kind, "config": asdict(self.settings)}
        with saving(folder) as part:
            save_file(weights, Path(part) / _WEIGHTS)
            self.vocabulary.save(Path(part) / _VOCABULARY)
            write_text(config_file(part), json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The ranker that :meth:`save` wrote. Raises InputError for missing or damaged files and other rankers."""
        from safetensors.torch import load_file

        try:
            content = json.loads(config_file(folder).read_text(encoding="utf-8"))
            if content["kind"] != cls.kind:
                raise InputError(folder, f"expected a ranker of kind {cls.kind}, found {quoted(content['kind'])}")
            config = cls._config(content["config"])
            vocabulary = Vocabulary.load(Path(folder) / _VOCABULARY)
            weights = load_file(Path(folder) / _WEIGHTS)
            matrix = weights["embeddings.weight"].float()
            if matrix.ndim != 2 or len(matrix) != len(vocabulary):
                raise ValueError(f"{len(vocabulary)} words and {len(matrix)} vectors")
            with seeded(0):
                ranker = cls(vocabulary, matrix, config)
            ranker.load_state_dict(weights)
        except InputError:
            raise
        except Exception as error:  # damaged settings and weights can raise anything
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(folder, f"the folder has no usable {cls.kind} ranker ({reason})") from None
        return ranker


PASSAGE_START = 500


@checked
@dataclass(frozen=True, slots=True)
class TKConfig(WordConfig):
    """Words kept, sizes of the transformer, and the kernels: ``published`` (1, .9, .7, … −.9) or ``even`` (−1 … 1)."""

    layers: Annotated[int, opt.COUNT] = 2
    heads: Annotated[int, opt.COUNT] = 16
    head_size: Annotated[int, opt.COUNT] = 32
    feedforward: Annotated[int, opt.COUNT] = 100
    kernels: Literal["published", "even"] = "published"


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


class KNRMRanker(WordRanker):
    """11 kernels, the first (μ 1, σ 1e-4) for exact matches; their logarithms × 0.01, weighted by 11 numbers."""

    kind = "knrm"

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: WordConfig) -> None:
        super().__init__(vocabulary, matrix, config)
        self.kernels = kernel_weights(len(PUBLISHED_CENTRES))

    def match(self, cosines: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
        pooled = kernel_pool(cosines, query_mask, passage_mask, PUBLISHED_CENTRES, exact_widths(1e-4))
        scores: Tensor = self.kernels(pooled * 0.01)[:, 0]
        return scores


@checked
@dataclass(frozen=True, slots=True)
class ConvKNRMConfig(WordConfig):
    """Words kept, n-grams of 1 to ``longest`` words, and the filters (dimensions) of each n-gram's vector."""

    longest: Annotated[int, opt.COUNT] = 3
    filters: Annotated[int, opt.COUNT] = 128


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


class MatchPyramidRanker(WordRanker):
    """5 × (3×3 convolution to 16 maps, ReLU, adaptive max-pooling), then 480 → 100 → 10 → 1, the last without a bias.

    The image is padded with zeros to 30 × 200, and the input of each convolution with two rows and columns of zeros at
    the end, as in the public code, so that its output has the same size. Most of an image is padding, where each layer
    has the same output as for an image of zeros. So only the corner that the texts of a batch reach is computed, and
    the rest is taken from one image of zeros: the same scores for a tenth of the work.
    """

    kind = "match-pyramid"

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
        maps = zeros.repeat(len(image), 1, 1, 1)
        maps[:, :, : image.shape[2], : image.shape[3]] = image
        features = maps.flatten(1)
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
