"""Answers that move along with the passages they are in, and what a rotation did."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace

import polars as pl

from evenrank.io import InputError
from evenrank.io.errors import quoted
from evenrank.io.squad import SquadAnswer, load_squad, paragraphs, question_id

from .rotation_cut import Mode, cut_of, mixed_seed, moved_span, rotated


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: documents, those left unchanged (cut before the first word, or empty), words; and of the
    answers, if there are any, those that moved along and those that the cut split, which are left out.

    split_answers: the question and the passage of each split answer. answer_places: how many answers the file has, and
    what was done to those not found at their offset (:class:`evenrank.io.squad.AnswerAlignment`); notes: that in words.
    """

    documents: int
    unmoved: int
    words: int
    answers: int | None = None
    split: int | None = None
    split_answers: tuple[tuple[str, str], ...] = ()
    answer_places: dict[str, object] | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


class RotatedAnswers:
    """A SQuAD file whose contexts are rotated like the documents of a collection."""

    def __init__(self, path: str | os.PathLike[str], seed: int, mode: Mode) -> None:
        self.path = path
        found = load_squad(path)
        self.data, self.alignment = found.data, found.alignment
        self.moved = 0
        self.split: list[tuple[str, str]] = []
        self._texts: dict[str, str] = {}
        self._met: set[str] = set()
        mixed = mixed_seed(seed)
        for doc_id, paragraph in paragraphs(self.data):
            context = paragraph["context"]
            cut = cut_of(context, doc_id, mixed, mode)
            text = rotated(context, cut)
            if self._texts.setdefault(doc_id, text) != text:
                raise InputError(path, f"two paragraphs have the document id {quoted(doc_id)} and different texts")
            for question in paragraph["qas"]:
                query_id = question_id(question)
                kept = _moved(context, text, question["answers"], cut)
                self.moved += len(kept)
                self.split += [(query_id, doc_id)] * (len(question["answers"]) - len(kept))
                question["answers"] = kept
                # SQuAD 2.0 has these beside a question without an answer: moved, but not counted.
                plausible = question.get("plausible_answers")
                if plausible is not None:
                    question["plausible_answers"] = _moved(context, text, plausible, cut)
            paragraph["context"] = text
            paragraph["doc_id"] = doc_id
        self._wanted = pl.Series(list(self._texts), dtype=pl.String)

    def check(self, table: pl.DataFrame) -> None:
        """Compares a rotated batch with the paragraphs in it. Raises InputError for another text."""
        for doc_id, text in table.filter(pl.col("doc_id").is_in(self._wanted.implode())).iter_rows():
            if self._texts[doc_id] != text:
                raise InputError(self.path, f"the paragraph {quoted(doc_id)} has another text in the collection")
            self._met.add(doc_id)

    def complete(self) -> None:
        """Raises InputError if the collection lacks a paragraph."""
        absent = [doc_id for doc_id in self._texts if doc_id not in self._met]
        if absent:
            first = ", ".join(map(quoted, absent[:5]))
            raise InputError(self.path, f"{len(absent)} paragraphs are not in the collection: {first}")

    def noted(self, done: Rotated) -> Rotated:
        """``done`` with what happened to the answers."""
        return replace(
            done,
            answers=self.moved,
            split=len(self.split),
            split_answers=tuple(self.split),
            answer_places=self.alignment.to_dict(),
            notes=self.alignment.notes(),
        )


def _moved(context: str, text: str, answers: list[SquadAnswer], cut: int) -> list[SquadAnswer]:
    """The answers with their offsets in the rotated ``text``, without those that the cut splits."""
    kept: list[SquadAnswer] = []
    for answer in answers:
        span = moved_span(context, answer["answer_start"], answer["answer_start"] + len(answer["text"]), cut)
        if span is not None:
            kept.append({**answer, "text": text[span[0] : span[1]], "answer_start": span[0]})
    return kept
