"""The base of the rankers over word vectors: words and their numbers, cosines and kernels, scoring, saving."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import sys
import unicodedata
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from evenrank.embeddings import Vectors, read_vectors, train_vectors
from evenrank.groups.tokens import APOSTROPHES, CLITICS, word_spans
from evenrank.io import EvenrankError, InputError, as_collection, scan_collection, write_text
from evenrank.io.errors import quoted
from evenrank.io.ranges import LARGEST

from .encoders import saving, seeded
from .protocol import CandidateLists, Inputs, Ranker, config_file

# 0 is padding.
UNKNOWN, FIRST = 1, 2

# ASCII letters in lower case, digits and apostrophes as they are, everything else a space.
_ASCII = bytes(
    ord(chr(code).lower()) if code < 128 and (chr(code).isalnum() or chr(code) == "'") else 32 for code in range(256)
)
_INNER = re.compile(rb"[a-z0-9]+(?:'[a-z0-9]+)*")
_CLITIC = re.compile(f"'(?:{'|'.join(CLITICS)})$".encode(), re.MULTILINE)
# The usual typographic marks of English texts; all but the first separate words.
_TYPESET = (("\u2019", "'"), *((mark, " ") for mark in "\u2018\u201c\u201d\u2013\u2014\u2026\xa0"))
_STRAIGHT = {ord(character): "'" for character in APOSTROPHES}


@functools.cache
def _any_word(size: int) -> re.Pattern[str]:
    """The ``word`` tokens of ``groups.tokens`` as an expression over the code points below ``size``.

    Runs of letters, marks and digits, joined by apostrophes. Takes 0.1 s to make.
    """
    runs: list[list[int]] = []
    for code in range(size):
        # The combining variation selectors apart, groups.tokens knows no word character above.
        known = code < 0x32400 or 0xE0100 <= code < 0xE01F0
        if known and unicodedata.category(chr(code))[0] in "LMN" and chr(code) not in APOSTROPHES:
            if runs and runs[-1][1] == code - 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
    word = "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs) + "]+"
    return re.compile(f"{word}(?:[{APOSTROPHES}]{word})*")


def _inner(piece: bytes) -> list[bytes]:
    """The words of a piece of ASCII without spaces that has apostrophes."""
    return [_CLITIC.sub(b"", word) for word in _INNER.findall(piece)]


def words_utf8(text: str) -> list[bytes]:
    """The words of a text as ``evenrank.groups.tokenize`` returns them, in UTF-8, about ten times as fast."""
    if not text.isascii():
        for mark, plain in _TYPESET:
            text = text.replace(mark, plain)
    if text.isascii():
        pieces = text.encode().translate(_ASCII).split()
        if "'" not in text:
            return pieces
        return [word for piece in pieces for word in (_inner(piece) if b"'" in piece else (piece,))]
    # The expression finds a character of the basic plane in a table; those above are tried range by range.
    in_table = len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text)
    size = 0x10000 if in_table else sys.maxunicode + 1
    # One per line, to fold case and strip clitics in one step each.
    lines = "\n".join(_any_word(size).findall(text)).casefold().translate(_STRAIGHT)
    return _CLITIC.sub(b"", lines.encode()).split()


def words(text: str) -> list[str]:
    """The lower-cased words of a text.

    >>> words("She, the woman's friend, don't!")
    ['she', 'the', 'woman', 'friend', "don't"]
    """
    return [word.decode() for word in words_utf8(text)]


def collection_words(collection: str | os.PathLike[str] | pl.DataFrame, *, min_count: int = 1) -> list[str]:
    """The words with at least ``min_count`` occurrences in a collection (a path, or a table with ``text``), sorted.

    For ``read_vectors(…, keep=…)``, which then skips the vectors of all other words.
    """
    counts: dict[bytes, int] = {}
    batches = [collection] if isinstance(collection, pl.DataFrame) else scan_collection(collection, unique=False)
    for batch in batches:
        for text in batch["text"]:
            for word in words_utf8(text):
                counts[word] = counts.get(word, 0) + 1
    return sorted(word.decode() for word, count in counts.items() if count >= min_count)


def collection_vectors(collection: object, *, dimensions: int = 300, min_count: int = 5, seed: int = 0) -> Vectors:
    """``train_vectors`` over the words as the rankers tokenise them.

    ``collection``: a path, ``{id: text}``, a frame or records. Raises EvenrankError for anything else.
    """
    return train_vectors(
        as_collection(collection), tokenize=words, dimensions=dimensions, min_count=min_count, seed=seed
    )


def file_vectors(path: str | os.PathLike[str], *texts: str | os.PathLike[str] | pl.DataFrame) -> Vectors:
    """The vectors in a file of the words of some collections; a public file has millions of others."""
    return read_vectors(path, keep=set().union(*map(collection_words, texts)))


class Vocabulary:
    """Distinct lower-cased words and their numbers, from 2.

    Entries that are no words of texts (with a space, a hyphen, …) are allowed, but never found.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word.encode(): number for number, word in enumerate(words, FIRST)}

    def __len__(self) -> int:
        """The number of words plus the two special numbers."""
        return len(self._ids) + FIRST

    def __iter__(self) -> Iterator[str]:
        return (word.decode() for word in self._ids)

    @classmethod
    def of_vectors(cls, vectors: Vectors) -> tuple[Vocabulary, list[int]]:
        """The words of ``vectors`` as they are tokenised in texts, and the row of each.

        Lower-cased: "paris" takes precedence over "Paris", whatever their order. Entries that are not one word
        ("new_york", ",") are left out.
        """
        rows: dict[str, int] = {}
        cased: dict[str, int] = {}
        for row, entry in enumerate(vectors.words):
            found = words_utf8(entry)
            if len(found) == 1:
                word = found[0].decode()
                if word == entry:
                    rows[word] = row
                elif word == entry.casefold():
                    cased.setdefault(word, row)
        rows |= {word: row for word, row in cased.items() if word not in rows}
        return cls(rows), list(rows.values())

    def numbers(self, text: str) -> list[int]:
        """The number of each word of a text."""
        find = self._ids.get
        return [find(word, UNKNOWN) for word in words_utf8(text)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one word per line."""
        write_text(Path(path), "".join(f"{word}\n" for word in self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads a file of :meth:`save`. Raises InputError if it is missing or damaged, or repeats a word."""
        try:
            entries = Path(path).read_bytes().decode().split("\n")
        except (OSError, ValueError) as error:
            raise InputError(path, f"the vocabulary cannot be read ({error})") from None
        vocabulary = cls(entries[:-1])
        if entries[-1] or len(vocabulary) != len(entries) - 1 + FIRST:
            raise InputError(path, "the vocabulary is damaged: a word is repeated or the last line is incomplete")
        return vocabulary


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Numbers [N, L] int64, padded with 0 to the longest row L (at least 1)."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids = np.zeros((len(rows), max(1, int(lengths.max(initial=0)))), np.int64)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = flat
    return torch.from_numpy(ids)


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


@dataclass(frozen=True, slots=True)
class WordConfig:
    """Settings of all rankers over word vectors: the words kept of a query and of a passage.

    Raises EvenrankError for a number below 1.
    """

    query_length: int = 30
    passage_length: int = 200

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, int) and (type(value) is not int or not 1 <= value <= LARGEST):
                raise EvenrankError(
                    f"`{field.name}`: expected a whole number from 1 to {LARGEST}, found {quoted(value)}"
                )


class WordRanker(Ranker):
    """A ranker that compares each word of a query with each word of a passage by the cosine of their vectors.

    Subclasses define the vectors (:meth:`project` and :meth:`represent`) and the score of the cosines (:meth:`match`).
    ``cut`` counts the queries and passages that this process has truncated, each time; for other processes there are
    the tensors of :meth:`encode`.
    """

    config_class: ClassVar[type[WordConfig]]
    settings: WordConfig

    def __init__(self, vocabulary: Vocabulary, matrix: Tensor, config: WordConfig) -> None:
        """``matrix`` [V, d] float32: the vector of each number of ``vocabulary``, row 0 (padding) all zero."""
        super().__init__()
        self.vocabulary = vocabulary
        # Not "config": transformers' Trainer would take that for its own and write into it.
        self.settings = config
        self.embeddings = nn.Embedding(len(vocabulary), matrix.shape[1], padding_idx=0, _weight=matrix)
        self.cut = {"queries": 0, "passages": 0}

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
        queries, query_cut = self._numbers(lists.queries, "queries")
        passages, passage_cut = self._numbers([text for row in lists.passages for text in row], "passages")
        return {
            "queries": queries,
            "passages": passages,
            "mask": lists.mask,
            "query_cut": query_cut,
            "passage_cut": passage_cut,
        }

    def _numbers(self, texts: Sequence[str], what: str) -> tuple[Tensor, Tensor]:
        """The words kept of N texts, as numbers [N, L], and which texts [N] are truncated; counts them."""
        length = self.settings.query_length if what == "queries" else self.settings.passage_length
        rows = [self.vocabulary.numbers(text) for text in texts]
        cut = [len(row) > length for row in rows]
        self.cut[what] += sum(cut)
        return padded([row[:length] for row in rows]), torch.tensor(cut, dtype=torch.bool)

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
        query_row, query_ids = self._distinct(queries, "queries")
        passage_row, passage_ids = self._distinct(passages, "passages")
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

    def _distinct(self, texts: Sequence[str], what: str) -> tuple[Tensor, Tensor]:
        """The row of each text, and the words [distinct texts, L] of the rows."""
        rows: dict[str, int] = {}
        row = torch.tensor([rows.setdefault(text, len(rows)) for text in texts])
        return row, self._numbers(list(rows), what)[0]

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read: up to the end of the last word kept."""
        kept = self.settings.passage_length
        spans = [word_spans(text) for text in passages]
        return [len(t) if len(s) <= kept else s[kept - 1][1] for t, s in zip(passages, spans, strict=True)]

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
