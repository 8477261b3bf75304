"""Templates filled in, many sentences at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from .synthetic_plan import Ints, Plan
from .synthetic_templates import Template, templates

_YEARS = pl.Series("year", [str(year) for year in range(1602, 1990)])
_NUMBERS = pl.Series("number", [str(number) for number in range(12, 97)])


@dataclass(frozen=True, slots=True)
class Sentences:
    """n sentences, in the order requested."""

    text: pl.Series
    answer: pl.Series
    """The answer in the sentence, null if it has none."""
    answer_start: Ints
    """[n] characters before the answer, 0 if the sentence has none."""


class Writer:
    """Fills in the templates for the entities of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        topics = templates().topics
        self.nouns = pl.Series([topic.noun for topic in topics])
        self.words = pl.Series([word for topic in topics for word in topic.words])
        self.words_each = len(topics[0].words)
        self.helpers = pl.Series(templates().helpers)
        self.lists = {name: pl.Series(words) for name, words in templates().answers.items()}
        self.lists |= {"year": _YEARS, "number": _NUMBERS, "place": plan.names.place}

    def write(self, template: Ints, entity: Ints, attribute: Ints, rng: np.random.Generator) -> Sentences:
        """One sentence per row of the three arrays [n]; ``attribute`` is that of the passage."""
        chance = rng.integers(0, 2**30, (4, len(template)))
        order = np.argsort(template, kind="stable")
        present, starts = np.unique(template[order], return_index=True)
        texts: list[pl.Series] = []
        answers: list[pl.Series] = []
        answer_start = np.zeros(len(template), dtype=np.int64)
        for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            filled = self._fill(templates().all[number], entity[rows], attribute[rows], chance[:, rows])
            texts.append(filled.text)
            answers.append(filled.answer)
            answer_start[rows] = filled.answer_start
        back = pl.Series(np.argsort(order, kind="stable"))
        return Sentences(pl.concat(texts).gather(back), pl.concat(answers).gather(back), answer_start)

    def _fill(self, template: Template, entity: Ints, attribute: Ints, chance: Ints) -> Sentences:
        slots: dict[str, Callable[[], pl.Series]] = {
            "name": lambda: self.names_of(entity),
            "noun": lambda: self.nouns_of(entity),
            "other": lambda: self.names_of(self._other(entity, chance[0])),
            "other_noun": lambda: self.nouns_of(self._other(entity, chance[0])),
            "place": lambda: self._place(entity, attribute, chance[1]),
            "helper": lambda: _take(self.helpers, chance[2]),
            "word": lambda: self._word(entity, chance[3]),
            "detail": lambda: self._word(entity, chance[3] + 1 + chance[2] % (self.words_each - 1)),
            "answer": lambda: self._answer(template.answer, entity, attribute),
        }
        answer = pl.Series([None], dtype=pl.String).new_from_index(0, len(entity))
        start: npt.NDArray[np.int64] = np.zeros(len(entity), dtype=np.int64)
        parts: list[pl.Expr] = []
        before = start.copy()
        for i, piece in enumerate(template.pieces):
            if i % 2 == 0:
                parts.append(pl.lit(piece))
                before = before + len(piece)
                continue
            column = slots[piece]()
            if piece == "answer":
                answer, start = column, before
            parts.append(pl.lit(column))
            before = before + column.str.len_bytes().cast(pl.Int64).to_numpy()
        text = pl.select(pl.concat_str(parts).alias("text"))["text"]
        return Sentences(text, answer.alias("answer"), start)

    def names_of(self, entity: Ints) -> pl.Series:
        names = self.plan.names
        given, family = self.plan.name[entity].T
        return _take(names.given, given) + " " + _take(names.family, family)

    def nouns_of(self, entity: Ints) -> pl.Series:
        return _take(self.nouns, self.plan.topic[entity])

    def _other(self, entity: Ints, chance: Ints) -> Ints:
        count = len(self.plan.topic)
        return np.asarray((entity + 1 + chance % (count - 1)) % count)

    def _place(self, entity: Ints, attribute: Ints, chance: Ints) -> pl.Series:
        """A town other than the answer, in case the answer is a town."""
        count = len(self.plan.names.place)
        answer = self.plan.value[entity, attribute] % count
        return _take(self.plan.names.place, answer + 1 + chance % (count - 1))

    def _word(self, entity: Ints, chance: Ints) -> pl.Series:
        return _take(self.words, self.plan.topic[entity] * self.words_each + chance % self.words_each)

    def _answer(self, what: str, entity: Ints, attribute: Ints) -> pl.Series:
        value = self.plan.value[entity, attribute]
        if what != "person":
            return _take(self.lists[what], value)
        names = self.plan.names
        return _take(names.given, value) + " " + _take(names.maker, value // len(names.given))


def _take(values: pl.Series, number: Ints) -> pl.Series:
    """``values`` at each number, modulo their length."""
    return values.gather(pl.Series(number % len(values)))
