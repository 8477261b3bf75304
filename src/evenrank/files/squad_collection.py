"""SQuAD files as a retrieval collection: passages, queries with their splits, qrels and answer spans."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt

from . import check_apart
from .arguments import checked
from .errors import EvenrankError, InputError, arg, quoted
from .outputs import write_text
from .squad import (
    SquadAnswer,
    SquadArticle,
    SquadData,
    SquadParagraph,
    SquadQuestion,
    load_squad,
    paragraphs,
    question_id,
)
from .synthetic import FILES, SPLITS, write_collection

Floats = NDArray[np.float64]


def _expected(total: int, shares: Sequence[float]) -> Floats:
    """The number of ``total`` questions that each split should have; last, of those left out."""
    return np.array([*shares, max(0.0, 1 - sum(shares))]) * total


def largest_deviation(sizes: list[int], drawn: Sequence[int], shares: Sequence[float]) -> float:
    """The largest difference between a split's number of questions and its share."""
    counts = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1)
    return float(np.abs(counts - _expected(sum(sizes), shares)).max())


def divide(sizes: list[int], shares: Sequence[float]) -> list[int] | None:
    """The split of each unit, given its number of questions, in the order given; None if a split with a share would
    necessarily be empty."""
    ends = np.cumsum(shares) * sum(sizes)
    middles = np.cumsum(sizes) - np.array(sizes) / 2
    # By the middle of each unit, so that no split is favoured.
    drawn = np.searchsorted(ends, middles, side="right")
    for split in (place for place, share in enumerate(shares) if share > 0):
        number = np.bincount(drawn, minlength=len(shares) + 1)
        if number[split]:
            continue
        # An empty split gets the unit whose move leaves all splits nearest to their shares.
        excess = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1) - _expected(sum(sizes), shares)
        size = np.array(sizes)
        change = np.abs(excess[drawn] - size) - np.abs(excess[drawn])
        change = change + np.abs(excess[split] + size) - abs(excess[split])
        # The last unit of a split stays, unless it is left out anyway.
        movable = (number[drawn] > 1) | (drawn == len(shares))
        if not movable.any():
            return None
        drawn[len(sizes) - 1 - int(np.argmin(np.where(movable, change, np.inf)[::-1]))] = split
    return [int(place) for place in drawn]


VALIDATION = 5000
"""Questions for validation, drawn from the training questions of the official SQuAD 2.0 split."""
SHARES = (0.7, 0.1, 0.2)
"""Shares of the questions for training, validation and test if there is only one file."""
# Characters that would end a field or a line of a TSV; replaced one by one, so that spans stay valid.
_BREAKS = str.maketrans("\t\r\n", "   ")


@dataclass(frozen=True, slots=True)
class SquadCollection:
    """A retrieval collection made of SQuAD files.

    collection: ``doc_id``, ``text``, every distinct passage once.
    queries: ``query_id``, ``text``, ``split`` (``train``, ``valid``, ``test``, or null: left out of all three).
    qrels: ``query_id``, ``doc_id``, ``relevance`` (1).
    squad: the answers in SQuAD's form, with a ``doc_id`` for each paragraph and a ``query_id`` for each question.
    counts: numbers of passages, questions and answers, and of those left out.
    notes: sentences on the splits and on answers that were moved or left out.
    """

    collection: pl.DataFrame
    queries: pl.DataFrame
    qrels: pl.DataFrame
    squad: SquadData
    counts: dict[str, int]
    notes: tuple[str, ...] = ()

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes collection.tsv, queries.tsv, queries.SPLIT.tsv, qrels.txt (TREC), answers.json and counts.json.

        Each file is written whole or not at all; counts.json is written last.
        """
        target = write_collection(folder, self.collection, self.queries, qrels=self.qrels)
        write_text(target / "answers.json", json.dumps(self.squad, ensure_ascii=False))
        write_text(target / "counts.json", json.dumps({**self.counts, "notes": self.notes}, indent=1))
        return target


@checked
def squad_collection(
    files: Sequence[str | os.PathLike[str]],
    *,
    validation: Annotated[int, opt.FROM_0] = VALIDATION,
    shares: tuple[float, float, float] = SHARES,
    seed: Annotated[int, opt.SEED] = 0,
) -> SquadCollection:
    """Builds one collection with splits from SQuAD files.

    Several files are taken as an official split: the last one has the test questions; of the others, ``validation``
    questions are drawn by article, in a seeded order (the remaining questions of the last article drawn are left out).
    The articles of a single file are divided by ``shares`` of the questions (training, validation, test). If there are
    too few articles (a split would be empty, or miss its share by more than the largest article), passages are divided
    instead, and a note reports it. Passages with the same text become one document. Unanswerable questions
    (``is_impossible``, or without an answer) and those without a text are left out and counted; their passages stay.
    Answers are aligned by :func:`evenrank.files.squad.load_squad`; questions without an answer in their passage are
    left out and counted.

    Document ids are the paragraphs' ``doc_id``, else their numbers over all files; query ids the questions'
    ``query_id``, else their ``id``. Raises InputError if a file is not in SQuAD's form, for an id with white space, and
    for one that has two texts or belongs to two splits; EvenrankError if a split would have no question.
    """
    if not files:
        raise EvenrankError("expected a SQuAD file, found none")
    if len(shares) != len(SPLITS) or min(shares) < 0 or not 0 < sum(shares) < 1 + 1e-9:
        raise EvenrankError(
            f"{arg.shares}: expected three numbers from 0 that sum to at most 1, found {quoted(shares)}"
        )
    builder = _Builder()
    for number, path in enumerate(files):
        builder.add(path, number)
    if not builder.question:
        searched = sum(builder.counts[name] for name in ("unmatched_answers", "unmatched_questions"))
        raise InputError(files[0], "no answer was found in its passage" if searched else "no question has an answer")
    if len(files) > 1:
        builder.official(files, validation, seed)
    else:
        builder.by_shares(files[0], shares, seed)
    return builder.result()


@checked
def write_squad_collection(
    files: Annotated[
        Sequence[opt.File],
        opt.Option("SQuAD files; of several, the last one is the test set.", metavar="FILE…", typed=list),
    ],
    *,
    out: Annotated[opt.File, opt.Option("The folder for the collection.", metavar="DIR", panel="Output")],
    validation: Annotated[
        int,
        opt.Option(
            "Several files: number of training questions, by article, to validate.", range=opt.FROM_0, rare=True
        ),
    ] = 5000,
    shares: tuple[float, float, float] = SHARES,
    seed: Annotated[int, opt.Option("Seed of the splits.", range=opt.SEED, rare=True)] = 0,
) -> SquadCollection:
    """Makes a :func:`squad_collection` and writes it to ``out`` (see :meth:`SquadCollection.write`).

    Raises InputError, before any work, if one of the files would replace an input.
    """
    check_apart((os.path.join(out, name) for name in (*FILES, "qrels.txt", "answers.json", "counts.json")), files)
    collection = squad_collection(files, validation=validation, shares=shares, seed=seed)
    collection.write(out)
    return collection


class _Builder:
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
        self.articles: list[tuple[int, str, dict[str, SquadParagraph]]] = []
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
        squad = load_squad(path)
        data, lost = squad.data, {query_id for query_id, _, _ in squad.alignment.left_out}
        self.counts["realigned_answers"] += squad.alignment.realigned
        self.counts["unmatched_answers"] += len(squad.alignment.left_out)
        self.notes += (f"{os.fspath(path)}: {note}" for note in squad.alignment.notes())
        offset = self.counts["paragraphs"]
        ids = (doc_id for doc_id, _ in paragraphs(data))
        for number, article in enumerate(data["data"]):
            by_id: dict[str, SquadParagraph] = {}
            self.articles.append((file, str(article.get("title", number)), by_id))
            for paragraph in article["paragraphs"]:
                own = next(ids)
                doc_id = own if "doc_id" in paragraph else str(int(own) + offset)
                doc_id = self._passage(path, doc_id, paragraph["context"].translate(_BREAKS))
                place = by_id.setdefault(doc_id, {"doc_id": doc_id, "context": self.text[doc_id], "qas": []})
                for question in paragraph["qas"]:
                    if not question["answers"] and question_id(question) in lost:
                        self.counts["questions"] += 1
                        self.counts["unmatched_questions"] += 1
                    else:
                        self._question(path, file, doc_id, question, place["qas"])

    def _passage(self, path: str | os.PathLike[str], doc_id: str, text: str) -> str:
        _check_id(path, doc_id)
        self.counts["paragraphs"] += 1
        known = self.doc_of.get(text)
        if known is not None:
            self.counts["repeated_paragraphs"] += 1
            return known
        if doc_id in self.text:
            raise InputError(path, f"two passages have the document id {quoted(doc_id)} and different texts")
        self.text[doc_id] = text
        self.doc_of[text] = doc_id
        return doc_id

    def _question(
        self, path: str | os.PathLike[str], file: int, doc_id: str, question: SquadQuestion, into: list[SquadQuestion]
    ) -> None:
        self.counts["questions"] += 1
        if question.get("is_impossible") or not question["answers"]:
            self.counts["unanswerable"] += 1
            return
        text = " ".join(str(question.get("question", "")).split())
        if not text:
            self.counts["without_text"] += 1
            return
        query_id = question_id(question)
        _check_id(path, query_id)
        if self.question.setdefault(query_id, text) != text:
            raise InputError(path, f"two questions have the id {quoted(query_id)} and different texts")
        if self.file_of.setdefault(query_id, file) != file:
            raise InputError(path, f"the question {quoted(query_id)} is in two files, so in two splits")
        answers: list[SquadAnswer] = [
            {"text": answer["text"].translate(_BREAKS), "answer_start": answer["answer_start"]}
            for answer in question["answers"]
        ]
        self.passage_of.setdefault(query_id, doc_id)
        self.article_of.setdefault(query_id, len(self.articles) - 1)
        self.judged[query_id, doc_id] = None
        into.append(
            {
                "id": str(question.get("id", query_id)),
                "query_id": query_id,
                "question": text,
                "answers": answers,
                "is_impossible": False,
            }
        )

    def _shuffled(self, of: Mapping[str, object], seed: int, below: int | None = None) -> list[list[str]]:
        """The questions of each article or passage (``of``), in a drawn order; only of the files before ``below``."""
        by_unit: dict[object, list[str]] = {}
        for query_id, unit in of.items():
            if below is None or self.file_of[query_id] < below:
                by_unit.setdefault(unit, []).append(query_id)
        units = list(by_unit.values())
        return [units[place] for place in np.random.default_rng(seed).permutation(len(units))]

    def official(self, files: Sequence[str | os.PathLike[str]], validation: int, seed: int) -> None:
        """The last file is the test; ``validation`` questions of the others validate, by article if possible."""
        test = len(files) - 1
        total = sum(file < test for file in self.file_of.values())
        if not total:
            raise InputError(files[0], "no question has an answer: nothing to train on")
        if total == len(self.file_of):
            raise InputError(files[-1], "no question has an answer, but the last file is the test")
        if validation >= total:
            raise EvenrankError(
                f"{arg.validation}: {validation} of {total} questions for training leave none to train on"
            )
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
                f"{arg.validation}: drawing {validation} of {total} questions by passage leaves none to train on"
            )
        if of is self.passage_of:
            self._by_passage(len(self._shuffled(self.article_of, seed, below=test)))

    def by_shares(self, path: str | os.PathLike[str], shares: tuple[float, float, float], seed: int) -> None:
        """Divides one file's questions by ``shares``, by article if there are enough, else by passage."""
        articles = self._shuffled(self.article_of, seed)
        drawn = divide(list(map(len, articles)), shares)
        units = articles
        if drawn is None or largest_deviation(list(map(len, articles)), drawn, shares) > max(map(len, articles)):
            units = self._shuffled(self.passage_of, seed)
            drawn = divide(list(map(len, units)), shares)
            self._by_passage(len(articles))
        if drawn is None:
            wanted = sum(share > 0 for share in shares)
            raise InputError(
                path,
                f"expected {wanted} passages with questions or more to divide into {wanted} splits, found {len(units)}:"
                f" {arg('shares', '1 0 0')} trains on all of them",
            )
        for queries, place in zip(units, drawn, strict=True):
            self.split |= dict.fromkeys(queries, SPLITS[place] if place < len(SPLITS) else None)

    def _by_passage(self, articles: int) -> None:
        self.notes.append(
            f"Too few articles with questions ({articles}) for these splits: divided by passage, so passages of one"
            " article are in several splits."
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
        data: list[SquadArticle] = [
            {"title": title, "paragraphs": list(by_id.values())} for _, title, by_id in self.articles
        ]
        return SquadCollection(
            pl.DataFrame(collection, {"doc_id": pl.String, "text": pl.String}),
            queries,
            qrels.with_columns(pl.lit(1, dtype=pl.Int64).alias("relevance")),
            {"version": "v2.0", "data": data},
            self.counts,
            tuple(self.notes),
        )


def _check_id(path: str | os.PathLike[str], found: str) -> None:
    if not found or re.search(r"\s", found):
        raise InputError(path, f"expected an id without white space, found {quoted(found)}")
