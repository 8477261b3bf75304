"""The same passages with one of their sentences at other places: the answer's, and for comparison another one.

The other sentence is the seam control: whatever moving a sentence does to a passage besides the place of the answer
(neighbours that are parted, a text that begins with another sentence) it does as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.probes.sentences import holding, sentence_spans

from .curves import Versions, version_shapes
from .resampling import Floats, Ints

LEAST_OTHERS = 2
"""With one other sentence, moving that one is moving the answer's, and there is no middle."""


@dataclass(frozen=True, slots=True)
class SentenceMoves:
    """The versions of M passages, each for a query.

    ``rows`` [M]: their rows in the table of answers. ``answer``, ``control`` [M, K]: the text of each version, a row of
    ``texts`` (``doc_id``, ``text``, all distinct), −1 for the passage as it is; ``shape`` [M], ``weights``: as in
    :class:`Versions`, and beyond a passage's versions −2. ``ends`` [M, K]: where the answer ends, in characters.
    """

    rows: Ints
    answer: Ints
    control: Ints
    ends: Ints
    shape: Ints
    weights: Floats
    texts: pl.DataFrame

    def of(self, values: Floats) -> Versions:
        """Values [M, K] of the versions."""
        return Versions(values, self.shape, self.weights)


@dataclass(frozen=True, slots=True)
class _Passage:
    """The sentences of a passage, those of the answer as one unit: its number, where the answer ends within it, and
    the number of the control."""

    text: str
    units: list[str]
    own: int
    end: int
    end_within: int
    other: int

    def at(self, number: int, place: int) -> str:
        """The passage with a unit at a place among the others."""
        rest = self.units[:number] + self.units[number + 1 :]
        return " ".join([*rest[:place], self.units[number], *rest[place:]])

    def end_at(self, place: int) -> int:
        """Where the answer ends with its unit at a place."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return sum(len(unit) + 1 for unit in rest[:place]) + self.end_within


def _passage(text: str, start: int, end: int, key: str, seed: int) -> _Passage | None:
    """None if there are fewer than LEAST_OTHERS sentences besides the answer's."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    if len(spans) - (last - first + 1) < LEAST_OTHERS:
        return None
    sentences = [text[begin:stop] for begin, stop in spans]
    held = sentences[first : last + 1]
    units = [*sentences[:first], " ".join(held), *sentences[last + 1 :]]
    within = sum(len(one) + 1 for one in held[:-1]) + end - spans[last][0]
    words = [len(unit.split()) for unit in units]
    distance = {number: abs(count - words[first]) for number, count in enumerate(words) if number != first}
    tied = [number for number, far in distance.items() if far == min(distance.values())]
    return _Passage(text, units, first, end, within, tied[draw(key, len(tied), mixed_seed(seed))])


def sentence_moves(table: pl.DataFrame, places: int, seed: int = 0) -> SentenceMoves:
    """The versions needed for so many places, of the rows whose passage has two sentences or more besides the answer's.

    ``table``: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``. The control is the sentence that is
    nearest in words to the answer's; ties are drawn from ``seed`` and the ids.
    """
    columns = ("query_id", "doc_id", "text", "answer_start", "answer_end")
    found = [
        _passage(text, start, end, f"{query} {doc}", seed)
        for query, doc, text, start, end in table.select(columns).iter_rows()
    ]
    rows = np.array([row for row, one in enumerate(found) if one is not None], np.int64)
    movable = [one for one in found if one is not None]
    needed, shape, weights = version_shapes(np.array([len(one.units) - 1 for one in movable], np.int64), places)
    size = len(rows), weights.shape[2]
    answer, control, ends = np.full(size, -2), np.full(size, -2), np.zeros(size, np.int64)
    texts: dict[str, int] = {}
    for row, (one, number) in enumerate(zip(movable, shape, strict=True)):
        for column, place in enumerate(needed[number].tolist()):
            for side, unit in ((answer, one.own), (control, one.other)):
                side[row, column] = -1 if unit == place else texts.setdefault(one.at(unit, place), len(texts))
            ends[row, column] = one.end if one.own == place else one.end_at(place)
    made = pl.DataFrame({"doc_id": [str(number) for number in range(len(texts))], "text": list(texts)})
    return SentenceMoves(rows, answer, control, ends, shape, weights, made.cast(pl.String))
