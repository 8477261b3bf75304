"""The one way to score pairs of a query and a passage, whatever model computes the scores."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted

from .pairs import Rows, TextPairs, Unit

if TYPE_CHECKING:
    from .protocol import Ranker
    from .truncation import Truncation

Scores = NDArray[np.float64]
ScoreFunction = Callable[[str, list[str]], ArrayLike]
"""A query and n passages → their n scores."""


class Scorer(ABC):
    """Scores pairs of a query and a passage; :func:`load_ranker` makes one of any model.

    ``name``: the name of the runs that it ranks. ``settings``: what the scores depend on besides the model's files.
    ``progress_bar``: whether sentence-transformers shows its own. ``truncated``: how many of the passages or pairs
    scored so far the model cut, each distinct one counted once per call; None if it does not show it.
    ``listwise_capable``: whether a score may depend on the other passages of the list; ``listwise``: whether rows come
    as whole lists, in the order to give the passages in, all of a query together in one call. ``digest``: what computes
    the SHA-256 of the model's files, if it has any.
    """

    unit: ClassVar[Unit] = "pair"
    listwise_capable: ClassVar[bool] = False
    listwise = False
    settings = ""
    progress_bar = False
    truncated: Truncation | None = None
    digest: Callable[[], str] | None = None

    @property
    def answers(self) -> str | os.PathLike[str] | None:
        """The file that keeps what a server has answered; None if there is none."""
        return None

    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self) -> dict[str, object]:
        """What the model is, as JSON values: ``kind``, ``model`` (its name), ``sha256`` (None for one in memory) and,
        where they mean something, ``query_prompt``, ``document_prompt``, ``reads`` (tokens), ``precision``,
        ``similarity``, ``backend`` and ``device``.
        """
        return {"kind": type(self).__name__, "model": self.name, "sha256": self.digest and self.digest()}

    @abstractmethod
    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        """A function from rows of ``pairs`` to their scores; computes first what all rows share."""

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        """The scores of each window of rows, in order; a scorer may work ahead of the window that is wanted."""
        yield from map(self.bind(pairs, batch_size), windows)

    def notes(self) -> tuple[str, ...]:
        """What is to be said of the calls since the last time, besides their scores."""
        return ()

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> Scorer:
        """The scorer for runs written to ``out``; one that keeps ``answers`` may keep them beside it."""
        return self

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


class RankerScorer(Scorer):
    """The scores of a :class:`Ranker` of this library."""

    def __init__(self, ranker: Ranker, name: str) -> None:
        super().__init__(name)
        self.ranker = ranker

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            return self.ranker.score(*pairs.texts(rows), batch_size).numpy().astype(np.float64)

        return score

    def facts(self) -> dict[str, object]:
        parameter = next(self.ranker.parameters())
        precision = str(parameter.dtype).removeprefix("torch.")
        computed = {"precision": precision, "backend": "torch", "device": str(parameter.device)}
        return {**super().facts(), "kind": self.ranker.kind, **computed}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        return self.ranker.reads_to(queries, passages)


class FunctionScorer(Scorer):
    """The scores of a function of a query and its passages, called once for each query of a call."""

    unit = "query"
    listwise_capable = True

    def __init__(self, function: ScoreFunction, name: str) -> None:
        super().__init__(name)
        self.function = function

    def facts(self) -> dict[str, object]:
        return {"kind": "function", "model": self.name}

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
