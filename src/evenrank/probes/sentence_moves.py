"""Versions of a passage in which one sentence is moved from place to place: the answer's, or another, the seam control.

Whatever moving a sentence does to a passage besides the place of the answer (neighbours that are parted, a text that
begins with another sentence) the control does as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.files.sentences import sentence_spans
from evenrank.mitigation.rotation import draw, mixed_seed

from .position_curve import Floats, Ints, version_shapes
from .sentences import holding

LEAST_OTHERS = 2
"""With one other sentence, moving that one is moving the answer's, and there is no middle."""


@dataclass(frozen=True, slots=True)
class SentenceMoves:
    """The versions of M passages, each for a query.

    ``rows`` [M]: their rows in the table of answers. ``answer``, ``control`` [M, K]: the text of each version, a row of
    ``texts`` (``doc_id``, ``text``, all distinct), −1 for the passage as it is (at the answer's own place), −2
    beyond a passage's versions; ``shape`` [M]: the row of ``weights`` [S, P, K] that makes places of them. ``ends``
    [M, K]: where the answer ends, in characters.
    """

    rows: Ints
    answer: Ints
    control: Ints
    ends: Ints
    shape: Ints
    weights: Floats
    texts: pl.DataFrame

    def at_places(self, values: Floats, rows: Ints | slice = slice(None)) -> Floats:
        """The values at the places [·, P] of some rows, from those of the versions [M, K]; NaN for an undefined one."""
        weights = self.weights[self.shape[rows]]
        at: Floats = np.einsum("qk,qpk->qp", np.where(weights.any(axis=1), values[rows], 0.0), weights)
        return at


@dataclass(frozen=True, slots=True)
class _Passage:
    """The sentences of a passage, those of the answer as one unit: its number, where the answer ends in the passage and
    within it, and the key by which ties are drawn."""

    units: list[str]
    own: int
    end: int
    end_within: int
    key: str
    seed: int

    def at(self, place: int) -> str:
        """The passage with the answer's unit at a place among the others."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return " ".join([*rest[:place], self.units[self.own], *rest[place:]])

    def end_at(self, place: int) -> int:
        """Where the answer ends with its unit at a place."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return sum(len(unit) + 1 for unit in rest[:place]) + self.end_within

    def control_at(self, place: int) -> str:
        """The passage with another unit at a place, the answer's where it is and the rest in order."""
        other = self._other(place)
        rest = iter([unit for number, unit in enumerate(self.units) if number not in (self.own, other)])
        fixed = {self.own: self.units[self.own], place: self.units[other]}
        return " ".join(fixed[at] if at in fixed else next(rest) for at in range(len(self.units)))

    def _other(self, place: int) -> int:
        """The unit nearest in words to the answer's that does not stand at the place; of those on the same side of the
        answer, if there are any: it then stays behind as many words as before."""
        others = [number for number in range(len(self.units)) if number not in (self.own, place)]
        beside = [number for number in others if (number < self.own) == (place < self.own)]
        words = len(self.units[self.own].split())
        far = {number: abs(len(self.units[number].split()) - words) for number in beside or others}
        tied = [number for number, distance in far.items() if distance == min(far.values())]
        return tied[draw(self.key, len(tied), mixed_seed(self.seed))]


def _passage(text: str, start: int, end: int, key: str, seed: int) -> _Passage | None:
    """None if there are fewer than LEAST_OTHERS sentences besides the answer's."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    if len(spans) - (last - first + 1) < LEAST_OTHERS:
        return None
    sentences = [text[begin:stop] for begin, stop in spans]
    answer = sentences[first : last + 1]
    units = [*sentences[:first], " ".join(answer), *sentences[last + 1 :]]
    within = sum(len(s) + 1 for s in answer[:-1]) + end - spans[last][0]
    return _Passage(units, first, end, within, key, seed)


def sentence_moves(table: pl.DataFrame, places: int, seed: int = 0) -> SentenceMoves:
    """The versions needed for so many places, of the rows whose passage has two sentences or more besides the answer's.

    ``table``: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``. To each place but the answer's own
    the control moves the sentence that is nearest in words to the answer's and does not stand there, one of the same
    side of the answer if there is any; the answer's keeps its place. Ties are drawn from ``seed`` and the ids.
    """
    columns = ("query_id", "doc_id", "text", "answer_start", "answer_end")
    passages = [
        _passage(text, start, end, f"{query} {doc}", seed)
        for query, doc, text, start, end in table.select(columns).iter_rows()
    ]
    rows = np.array([row for row, passage in enumerate(passages) if passage is not None], np.int64)
    movable = [passage for passage in passages if passage is not None]
    needed, shape, weights = version_shapes(np.array([len(passage.units) - 1 for passage in movable], np.int64), places)
    size = len(rows), weights.shape[2]
    answer, control, ends = np.full(size, -2), np.full(size, -2), np.zeros(size, np.int64)
    texts: dict[str, int] = {}
    for row, (passage, form) in enumerate(zip(movable, shape, strict=True)):
        for column, place in enumerate(needed[form].tolist()):
            if place == passage.own:
                answer[row, column], control[row, column], ends[row, column] = -1, -1, passage.end
                continue
            answer[row, column] = texts.setdefault(passage.at(place), len(texts))
            control[row, column] = texts.setdefault(passage.control_at(place), len(texts))
            ends[row, column] = passage.end_at(place)
    versions = pl.DataFrame({"doc_id": [str(number) for number in range(len(texts))], "text": list(texts)})
    return SentenceMoves(rows, answer, control, ends, shape, weights, versions.cast(pl.String))
