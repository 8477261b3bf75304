"""SQuAD files as a retrieval collection: passages, queries with their splits, qrels and answer spans."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from . import irds
from .answers import matched_squad
from .collection_folder import SPLITS, write_collection
from .errors import EvenrankError, InputError, shown
from .ranges import check_ranges
from .squad import load_squad, paragraphs, question_id
from .written import write_text

Floats = np.ndarray[Any, np.dtype[np.float64]]
VALIDATION = 5000
"""How many of the training questions of the official SQuAD 2.0 split validate."""
SHARES = (0.7, 0.1, 0.2)
# What would end a field or a line of a TSV; one character each, so that spans stay where they are.
_BREAKS = str.maketrans("\t\r\n", "   ")


@dataclass(frozen=True, slots=True)
class SquadCollection:
    """A retrieval collection made of SQuAD files.

    collection: ``doc_id``, ``text``, every different passage once.
    queries: ``query_id``, ``text``, ``split`` (``train``, ``valid``, ``test``, or null: left out of all three).
    qrels: ``query_id``, ``doc_id``, ``relevance`` (1).
    squad: the answers in SQuAD's form, as :func:`evenrank.io.squad.read_answers` reads it, with ``doc_id`` at each
    paragraph and ``query_id`` at each question.
    counts: what was met and what was left out.
    notes: what a reader should know of the splits and of the answers' places, in words.
    """

    collection: pl.DataFrame
    queries: pl.DataFrame
    qrels: pl.DataFrame
    squad: dict[str, Any]
    counts: dict[str, int]
    notes: tuple[str, ...] = ()

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes collection.tsv, queries.tsv, queries.SPLIT.tsv, qrels.txt (TREC), answers.json and counts.json.

        Each file appears whole or not at all; counts.json, the last, says that all are there.
        """
        target = write_collection(folder, self.collection, self.queries, qrels=self.qrels)
        write_text(target / "answers.json", json.dumps(self.squad, ensure_ascii=False))
        write_text(target / "counts.json", json.dumps({**self.counts, "notes": self.notes}, indent=1))
        return target


def squad_collection(
    files: Sequence[str | os.PathLike[str]],
    *,
    validation: int = VALIDATION,
    shares: tuple[float, float, float] = SHARES,
    seed: int = 0,
) -> SquadCollection:
    """SQuAD files as one collection with splits.

    Several files: the official split, the last one the test questions, of the others ``validation`` questions drawn by
    article (in a seeded order, until they are enough; the rest of the last article's questions is left out of training
    too). One file: its articles divided by ``shares`` of the questions (training, validation, test). Where there are
    too few articles for that (a split would be empty, or miss its share by more than the largest article) passages are
    divided instead, and a note says so. Passages of the same text are one document. Unanswerable questions
    (``is_impossible``, or without an answer) and those without a text are left out and counted; their passages stay.
    Answers are put in their places as :func:`evenrank.io.squad.load_squad` does; a question none of whose answers
    stands in its passage is left out and counted.

    A data set of ir_datasets whose queries carry answers (``irds:msmarco-qna/dev``) stands for a file: its relevant
    passages are the articles, and answers count where their text stands in them; those that match nowhere are counted.

    Ids: a paragraph's ``doc_id`` and a question's ``query_id`` where they are there, else the paragraph's number over
    all files and the question's ``id``. Raises InputError for what is not SQuAD, for an id with white space, and for
    one that has two texts or stands in two splits' files; EvenrankError where a split would be without a question.
    """
    if not files:
        raise EvenrankError("expected a SQuAD file, found none")
    check_ranges(validation=validation, seed=seed)
    if len(shares) != len(SPLITS) or min(shares) < 0 or not 0 < sum(shares) < 1 + 1e-9:
        raise EvenrankError(f"`shares`: expected three numbers from 0 that sum to at most 1, found {shown(shares)}")
    made = _Maker()
    for number, path in enumerate(files):
        made.add(path, number)
    if not made.question:
        sought = sum(made.counts[name] for name in ("unmatched_answers", "unmatched_questions"))
        raise InputError(files[0], "no answer stands in its passage" if sought else "no question has an answer")
    if len(files) > 1:
        made.official(files, validation, seed)
    else:
        made.by_shares(files[0], shares, seed)
    return made.result()


class _Maker:
    def __init__(self) -> None:
        self.text: dict[str, str] = {}
        self.doc_of: dict[str, str] = {}
        self.question: dict[str, str] = {}
        self.file_of: dict[str, int] = {}
        self.article_of: dict[str, int] = {}
        self.passage_of: dict[str, str] = {}
        self.notes: list[str] = []
        self.split: dict[str, str | None] = {}
        self.judged: dict[tuple[str, str], None] = {}
        self.articles: list[tuple[int, str, dict[str, dict[str, Any]]]] = []
        self.counts = dict.fromkeys(
            (
                "paragraphs",
                "repeated_paragraphs",
                "questions",
                "unanswerable",
                "realigned_answers",
                "unmatched_answers",
                "unmatched_questions",
                "without_text",
                "left_out_of_splits",
            ),
            0,
        )

    def add(self, path: str | os.PathLike[str], file: int) -> None:
        lost: set[str] = set()
        if irds.is_identifier(path):
            data, unmatched = matched_squad(os.fspath(path))
            self.counts["unmatched_answers"] += unmatched
        else:
            found = load_squad(path)
            data, lost = found.data, {query_id for query_id, _, _ in found.placed.left_out}
            self.counts["realigned_answers"] += found.placed.moved + found.placed.unplaced
            self.counts["unmatched_answers"] += len(found.placed.left_out)
            self.notes += (f"{os.fspath(path)}: {note}" for note in found.placed.notes())
        offset = self.counts["paragraphs"]
        ids = (doc_id for doc_id, _ in paragraphs(data))
        for number, article in enumerate(data["data"]):
            kept: dict[str, dict[str, Any]] = {}
            self.articles.append((file, str(article.get("title", number)), kept))
            for paragraph in article["paragraphs"]:
                own = next(ids)
                doc_id = own if "doc_id" in paragraph else str(int(own) + offset)
                doc_id = self._passage(path, doc_id, paragraph["context"].translate(_BREAKS))
                place = kept.setdefault(doc_id, {"doc_id": doc_id, "context": self.text[doc_id], "qas": []})
                for question in paragraph["qas"]:
                    if not question["answers"] and question_id(question) in lost:
                        self.counts["questions"] += 1
                        self.counts["unmatched_questions"] += 1
                    else:
                        self._question(path, file, doc_id, question, place["qas"])

    def _passage(self, path: str | os.PathLike[str], doc_id: str, text: str) -> str:
        _check_id(path, doc_id)
        self.counts["paragraphs"] += 1
        _check_text(path, text)
        known = self.doc_of.get(text)
        if known is not None:
            self.counts["repeated_paragraphs"] += 1
            return known
        if doc_id in self.text:
            raise InputError(path, f"two passages have the document id {shown(doc_id)} and different texts")
        self.text[doc_id] = text
        self.doc_of[text] = doc_id
        return doc_id

    def _question(
        self, path: str | os.PathLike[str], file: int, doc_id: str, question: dict[str, Any], into: list[dict[str, Any]]
    ) -> None:
        self.counts["questions"] += 1
        if question.get("is_impossible") or not question["answers"]:
            self.counts["unanswerable"] += 1
            return
        text = " ".join(str(question.get("question", "")).split())
        if not text:
            self.counts["without_text"] += 1
            return
        _check_text(path, text)
        query_id = question_id(question)
        _check_id(path, query_id)
        if self.question.setdefault(query_id, text) != text:
            raise InputError(path, f"two questions have the id {shown(query_id)} and different texts")
        if self.file_of.setdefault(query_id, file) != file:
            raise InputError(path, f"the question {shown(query_id)} stands in two files, so in two splits")
        answers = [
            {"text": answer["text"].translate(_BREAKS), "answer_start": answer["answer_start"]}
            for answer in question["answers"]
        ]
        self.passage_of.setdefault(query_id, doc_id)
        self.article_of.setdefault(query_id, len(self.articles) - 1)
        self.judged[query_id, doc_id] = None
        kept = {"id": str(question.get("id", query_id)), "query_id": query_id, "question": text}
        into.append({**kept, "answers": answers, "is_impossible": False})

    def _shuffled(self, of: Mapping[str, object], seed: int, below: int | None = None) -> list[list[str]]:
        """The questions of each article (or passage: ``of``), these in a drawn order; of the files before ``below``
        alone."""
        by_unit: dict[object, list[str]] = {}
        for query_id, unit in of.items():
            if below is None or self.file_of[query_id] < below:
                by_unit.setdefault(unit, []).append(query_id)
        units = list(by_unit.values())
        return [units[place] for place in np.random.default_rng(seed).permutation(len(units))]

    def official(self, files: Sequence[str | os.PathLike[str]], validation: int, seed: int) -> None:
        """The last file tests; of the others ``validation`` questions, by article where some are left to train on."""
        test = len(files) - 1
        total = sum(file < test for file in self.file_of.values())
        if not total:
            raise InputError(files[0], "no question has an answer: nothing to train on")
        if total == len(self.file_of):
            raise InputError(files[-1], "no question has an answer: the last file is the test")
        if validation >= total:
            raise EvenrankError(f"`validation`: {validation} of {total} questions for training leave none to train on")
        for of in (self.article_of, self.passage_of):
            for query_id, file in self.file_of.items():
                self.split[query_id] = "test" if file == test else "train"
            room = validation
            for queries in self._shuffled(of, seed, below=test):
                if room == 0:
                    break
                for place, query_id in enumerate(queries):
                    self.split[query_id] = "valid" if place < room else None
                room -= min(room, len(queries))
            if "train" in self.split.values():
                break
        else:
            raise EvenrankError(
                f"`validation`: drawing {validation} of {total} questions by passage leaves none to train on"
            )
        if of is self.passage_of:
            self._by_passage(len(self._shuffled(self.article_of, seed, below=test)))

    def by_shares(self, path: str | os.PathLike[str], shares: tuple[float, float, float], seed: int) -> None:
        """One file's questions by ``shares``, by article where these are enough, else by passage."""
        articles = self._shuffled(self.article_of, seed)
        drawn = _divided(list(map(len, articles)), shares)
        units = articles
        if drawn is None or _furthest(list(map(len, articles)), drawn, shares) > max(map(len, articles)):
            units = self._shuffled(self.passage_of, seed)
            drawn = _divided(list(map(len, units)), shares)
            self._by_passage(len(articles))
        if drawn is None:
            wanted = sum(share > 0 for share in shares)
            raise InputError(
                path,
                f"expected {wanted} passages with questions or more to divide into {wanted} splits, found {len(units)}:"
                " `shares='1 0 0'` trains on all of them",
            )
        for queries, place in zip(units, drawn, strict=True):
            self.split |= dict.fromkeys(queries, SPLITS[place] if place < len(SPLITS) else None)

    def _by_passage(self, articles: int) -> None:
        self.notes.append(
            f"Too few articles with questions ({articles}) for these splits: divided by passage, so passages of one"
            " article stand in several splits."
        )

    def result(self) -> SquadCollection:
        ids = list(self.question)
        splits = [self.split[query_id] for query_id in ids]
        queries = pl.DataFrame(
            {"query_id": ids, "text": list(self.question.values()), "split": pl.Series(splits, dtype=pl.String)}
        )
        qrels = pl.DataFrame(list(self.judged), {"query_id": pl.String, "doc_id": pl.String}, orient="row")
        collection = {"doc_id": list(self.text), "text": list(self.text.values())}
        self.counts["left_out_of_splits"] = splits.count(None)
        self.counts |= {"documents": len(self.text), "queries": len(ids), "articles": len(self.articles)}
        self.counts |= {split: splits.count(split) for split in SPLITS}
        data = [{"title": title, "paragraphs": list(kept.values())} for _, title, kept in self.articles]
        return SquadCollection(
            pl.DataFrame(collection, {"doc_id": pl.String, "text": pl.String}),
            queries,
            qrels.with_columns(pl.lit(1, dtype=pl.Int64).alias("relevance")),
            {"version": "v2.0", "data": data},
            self.counts,
            tuple(self.notes),
        )


def _wanted(total: int, shares: Sequence[float]) -> Floats:
    """How many of ``total`` questions each split should have, those that stay out last."""
    return np.array([*shares, max(0.0, 1 - sum(shares))]) * total


def _furthest(sizes: list[int], drawn: Sequence[int], shares: Sequence[float]) -> float:
    """By how many questions the split that misses its share the most misses it."""
    found = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1)
    return float(np.abs(found - _wanted(sum(sizes), shares)).max())


def _divided(sizes: list[int], shares: Sequence[float]) -> list[int] | None:
    """The split of each of several units in a drawn order, by its number of questions; None where a split that has a
    share would be empty whatever one does."""
    ends = np.cumsum(shares) * sum(sizes)
    middles = np.cumsum(sizes) - np.array(sizes) / 2
    # By the middle of the unit, so that no split is ahead on average.
    drawn = np.searchsorted(ends, middles, side="right")
    for split in (place for place, share in enumerate(shares) if share > 0):
        number = np.bincount(drawn, minlength=len(shares) + 1)
        if number[split]:
            continue
        # A split without a unit gets the one whose move leaves all splits nearest to their shares.
        found = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1) - _wanted(sum(sizes), shares)
        size = np.array(sizes)
        change = np.abs(found[drawn] - size) - np.abs(found[drawn])
        change = change + np.abs(found[split] + size) - abs(found[split])
        # The last unit of a split stays, but for what is left out anyway.
        movable = (number[drawn] > 1) | (drawn == len(shares))
        if not movable.any():
            return None
        drawn[len(sizes) - 1 - int(np.argmin(np.where(movable, change, np.inf)[::-1]))] = split
    return [int(place) for place in drawn]


def _check_id(path: str | os.PathLike[str], found: str) -> None:
    _check_text(path, found)
    if not found or re.search(r"\s", found):
        raise InputError(path, f"expected an id without white space, found {shown(found)}")


def _check_text(path: str | os.PathLike[str], text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(path, f"expected Unicode, found half a surrogate pair: {shown(ascii(text))}") from None
