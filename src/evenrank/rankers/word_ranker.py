"""The base of the rankers over word vectors: encoding, scoring many pairs fast, saving and loading."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenrank.embeddings import Vectors
from evenrank.groups.tokens import word_spans
from evenrank.io import EvenrankError, InputError, write_text
from evenrank.io.errors import quoted
from evenrank.io.ranges import LARGEST

from .encoders import saving, seeded
from .kernels import cosine
from .protocol import CandidateLists, Inputs, Ranker, config_file
from .vocabulary import FIRST, UNKNOWN, Vocabulary, padded

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
