"""Answers that move along with the passages they stand in."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from evenrank.io import InputError
from evenrank.io.errors import shown
from evenrank.io.squad import load_squad, paragraphs, question_id

from .cut import Mode, cut_of, mixed_seed, moved_span, rotated


class RotatedAnswers:
    """A SQuAD file whose contexts are rotated as the documents of a collection are."""

    def __init__(self, path: str | os.PathLike[str], seed: int, mode: Mode) -> None:
        self.path = path
        found = load_squad(path)
        self.data, self.placed = found.data, found.placed
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
                raise InputError(path, f"two paragraphs have the document id {shown(doc_id)} and different texts")
            for question in paragraph["qas"]:
                query_id = question_id(question)
                kept = _moved(context, text, question["answers"], cut)
                self.moved += len(kept)
                self.split += [(query_id, doc_id)] * (len(question["answers"]) - len(kept))
                question["answers"] = kept
                # What SQuAD 2.0 has beside a question without an answer: moved, but no answer to count.
                if question.get("plausible_answers") is not None:
                    question["plausible_answers"] = _moved(context, text, question["plausible_answers"], cut)
            paragraph["context"] = text
            paragraph["doc_id"] = doc_id
        self._wanted = pl.Series(list(self._texts), dtype=pl.String)

    def check(self, table: pl.DataFrame) -> None:
        """Compares a rotated batch with the paragraphs that are in it."""
        for doc_id, text in table.filter(pl.col("doc_id").is_in(self._wanted.implode())).iter_rows():
            if self._texts[doc_id] != text:
                raise InputError(self.path, f"the paragraph {shown(doc_id)} has another text in the collection")
            self._met.add(doc_id)

    def complete(self) -> None:
        """Raises InputError where the collection lacks a paragraph."""
        absent = [doc_id for doc_id in self._texts if doc_id not in self._met]
        if absent:
            first = ", ".join(map(shown, absent[:5]))
            raise InputError(self.path, f"{len(absent)} paragraphs are not in the collection: {first}")


def _moved(context: str, text: str, answers: list[dict[str, Any]], cut: int) -> list[dict[str, Any]]:
    """The answers where they stand in the rotated ``text``, without those that the cut splits."""
    kept = []
    for answer in answers:
        span = moved_span(context, answer["answer_start"], answer["answer_start"] + len(answer["text"]), cut)
        if span is not None:
            kept.append({**answer, "text": text[span[0] : span[1]], "answer_start": span[0]})
    return kept
