"""The one way to score pairs of a query and a passage, whatever model computes the scores."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted

from .pairs import Rows, TextPairs, Unit

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from .protocol import Ranker

Scores = NDArray[np.float64]
ScoreFunction = Callable[[str, list[str]], ArrayLike]
"""A query and n passages → their n scores."""
# Similarities computed at once.
_SIMILARITIES = 1 << 14
_PASSAGE_PROMPTS = ("document", "passage", "corpus")


class Scorer(ABC):
    """Scores pairs of a query and a passage; :func:`load_ranker` makes one of any model.

    ``name``: the name of the runs that it ranks. ``settings``: what the scores depend on besides the model's files.
    ``progress_bar``: whether sentence-transformers shows its own.
    """

    unit: ClassVar[Unit] = "pair"
    settings = ""
    progress_bar = False

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        """A function from rows of ``pairs`` to their scores; computes first what all rows share."""

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        """How many characters of each passage [pairs] the model reads before it truncates; None if unknown."""
        return None

    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Scores:
        """The scores [pairs] of the pairs (queries[i], passages[i]); a bi-encoder encodes each distinct text once.

        Raises EvenrankError if a score is not finite.
        """
        pairs = TextPairs.of_texts(queries, passages)
        scores = self.bind(pairs, batch_size)(np.arange(pairs.size)) if pairs.size else np.empty(0)
        check_finite(scores, self.name)
        return scores


def check_finite(scores: Scores, model: str) -> None:
    """Raises EvenrankError, which names the model, if a score is infinite or NaN."""
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise EvenrankError(f"{model}: {bad} of {len(scores)} scores are not finite")


class CrossEncoderScorer(Scorer):
    """The logits of a cross-encoder."""

    def __init__(self, model: CrossEncoder, name: str) -> None:
        super().__init__(name)
        self.model = model

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        from torch.nn import Identity

        def score(rows: Rows) -> Scores:
            texts = list(zip(*pairs.texts(rows), strict=True))
            # predict sorts its pairs by length, pads each batch to its longest and works in inference mode.
            training = self.model.training
            scores = self.model.predict(
                texts, batch_size=batch_size, activation_fn=Identity(), show_progress_bar=self.progress_bar
            )
            self.model.train(training)
            return np.asarray(scores, np.float64)

        return score

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        if not gives_offsets(self.model, ["a", "a"]):
            return None
        prompt = self.model.prompts.get(self.model.default_prompt_name)
        return reads_to(self.model, [list(pair) for pair in zip(queries, passages, strict=True)], prompt)


class BiEncoderScorer(Scorer):
    """A bi-encoder's own similarity of query and passage, with its prompts if it has any."""

    unit = "document"

    def __init__(self, model: SentenceTransformer, name: str) -> None:
        super().__init__(name)
        self.model = model

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        from torch import inference_mode

        options = {"batch_size": batch_size, "show_progress_bar": self.progress_bar, "convert_to_tensor": True}
        training = self.model.training
        query_vectors = self.model.encode_query(pairs.queries.to_list(), **options).float()
        self.model.train(training)

        def score(rows: Rows) -> Scores:
            distinct, place = np.unique(pairs.document[rows], return_inverse=True)
            training = self.model.training
            vectors = self.model.encode_document(pairs.documents.gather(distinct).to_list(), **options).float()
            self.model.train(training)
            query = pairs.query[rows]
            scores = np.empty(len(rows))
            with inference_mode():
                for start in range(0, len(rows), _SIMILARITIES):
                    part = slice(start, start + _SIMILARITIES)
                    similarity = self.model.similarity_pairwise(query_vectors[query[part]], vectors[place[part]])
                    scores[part] = similarity.cpu().numpy()
            return scores

        return score

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        if not gives_offsets(self.model, "a"):
            return None
        prompts = self.model.prompts or {}
        prompt = next((prompts[name] for name in _PASSAGE_PROMPTS if prompts.get(name)), None)
        return reads_to(self.model, passages, prompt, task="document")


class RankerScorer(Scorer):
    """The scores of a :class:`Ranker` of this library."""

    def __init__(self, ranker: Ranker, name: str) -> None:
        super().__init__(name)
        self.ranker = ranker

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            return self.ranker.score(*pairs.texts(rows), batch_size).numpy().astype(np.float64)

        return score

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        return self.ranker.reads_to(queries, passages)


class FunctionScorer(Scorer):
    """The scores of a function of a query and its passages, called once for each query of a call."""

    unit = "query"

    def __init__(self, function: ScoreFunction, name: str) -> None:
        super().__init__(name)
        self.function = function

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            scores = np.empty(len(rows))
            order = np.argsort(pairs.query[rows], kind="stable")
            for places in np.split(order, np.flatnonzero(np.diff(pairs.query[rows][order])) + 1):
                query = str(pairs.queries[int(pairs.query[rows[places[0]]])])
                passages = pairs.documents.gather(pairs.document[rows[places]]).to_list()
                scores[places] = self._checked(self.function(query, passages), query, len(passages))
            return scores

        return score

    def _checked(self, scores: ArrayLike, query: str, expected: int) -> Scores:
        """The scores as an array [expected]. Raises EvenrankError for anything but so many real numbers."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(scores, torch.Tensor):
            scores = scores.detach().cpu().double().numpy()
        try:
            values = np.asarray(scores)
        except (TypeError, ValueError):  # lists of different lengths
            values = np.asarray(None)
        place = f"{self.name}: expected {expected} scores for the query {quoted(query)}"
        if values.ndim != 1 or (len(values) and values.dtype.kind not in "iuf"):
            shape = f" of shape {values.shape}" if values.ndim > 1 else ""
            raise EvenrankError(f"{place}, as a list of real numbers, found {_described(scores)}{shape}")
        if len(values) != expected:
            raise EvenrankError(f"{place}, found {len(values)}")
        return values.astype(np.float64)


def _described(value: object) -> str:
    """A type, with that of the first entry in a list."""
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        odd = next((entry for entry in value if isinstance(entry, bool) or not isinstance(entry, int | float)), None)
        return f"{name} with {type(odd).__name__} {quoted(odd)}" if odd is not None or None in value else name
    return name
