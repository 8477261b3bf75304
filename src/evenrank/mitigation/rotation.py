"""Rotation of a passage's words at a random place, so that the position of its answer carries no information.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], eq. 7:
n words (white-space separated), r uniform in 1 … n, the result words[r−1:] + words[:r−1], joined by single spaces.

When it misleads: a sentence that is cut in two reads badly, and a ranker trained on rotated text has learned from text
that it will not see in use (``mode="sentence"`` cuts between sentences,
:func:`evenrank.files.sentences.sentence_starts`; its places are not quite uniform). An answer that the cut splits is
left out. Rotation does not help if the answer is lost because the ranker reads too few words; and if answers do come
early in the texts that people ask about, a ranker without the preference may be less effective.

Worked example: five words, cut before the third (r = 3, two words move to the end).

>>> from evenrank.mitigation.rotation import moved_span, rotated
>>> rotated("we drank tea there today", 2)
'tea there today we drank'
>>> moved_span("we drank tea there today", 9, 12, 2)
(0, 3)
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    InputError,
    Provenance,
    atomic_path,
    check_apart,
    check_outputs,
)
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.hashing import FNV_OFFSET, GOLDEN, MASK, fnv, fnv_of_texts, mix
from evenrank.files.progress import progress
from evenrank.files.sentences import sentence_starts
from evenrank.files.squad import SquadAnswer, load_squad, paragraphs, question_id
from evenrank.files.streams import TableWriter, check_tsv_ids, form_of
from evenrank.files.texts import map_passages
from evenrank.files.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Mode",
    "Rotated",
    "cut_of",
    "draw",
    "mixed_seed",
    "moved_span",
    "rotate_collection",
    "rotate_texts",
    "rotated",
]

Mode = Literal["word", "sentence"]
_WORD = re.compile(r"\S+")
_OTHER_SPACE = r"[\s\x1c-\x1f&&[^ ]]"
"""What separates words (of ``str.split``) beside spaces."""


def mixed_seed(*parts: int) -> int:
    """A 64-bit seed from whole numbers from 0 (a seed; a seed and an epoch)."""
    value = 0
    for part in parts:
        value = mix((value + part + GOLDEN) & MASK)
    return value


def draw(doc_id: str, choices: int, seed: int) -> int:
    """A whole number from 0 to ``choices`` − 1, from the passage's id and a mixed seed alone."""
    return (mix(fnv(doc_id.encode(), FNV_OFFSET ^ seed)) * choices) >> 64


def cut_of(text: str, doc_id: str, seed: int, mode: Mode = "word") -> int:
    """How many words of a passage are moved to its end, 0 to n − 1 (r − 1 in eq. 7). ``seed``: a mixed one."""
    words = text.split()
    if not words:
        return 0
    if mode == "word":
        return draw(doc_id, len(words), seed)
    starts = sentence_starts(words)
    return starts[draw(doc_id, len(starts), seed)]


def rotated(text: str, cut: int) -> str:
    """words[cut:] + words[:cut], joined by single spaces; a text of white space alone is returned unchanged."""
    words = text.split()
    return " ".join([*words[cut:], *words[:cut]]) if words else text


def moved_span(text: str, start: int, end: int, cut: int) -> tuple[int, int] | None:
    """The place of text[start:end] after :func:`rotated` (characters, end excluded); None if the cut splits it.

    White space inside the span becomes single spaces; at its ends it is dropped. Raises ValueError for a span of
    white space alone.
    """
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    end -= len(inner) - len(inner.rstrip())
    if start >= end:
        raise ValueError("a span of white space alone")
    spans = [match.span() for match in _WORD.finditer(text)]
    first = next(i for i, (_, stop) in enumerate(spans) if stop > start)
    last = next(i for i, (_, stop) in enumerate(spans) if stop >= end)
    if first < cut <= last:
        return None
    order = [*range(cut, len(spans)), *range(cut)]
    place, places = 0, {}
    for number in order:
        places[number] = place
        place += spans[number][1] - spans[number][0] + 1
    return places[first] + start - spans[first][0], places[last] + end - spans[last][0]


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: documents, those left unchanged (cut before the first word, or empty), words; and of the
    answers, if there are any, those that moved along and those that the cut split, which are left out.

    split_answers: the question and the passage of each split answer. answer_places: how many answers the file has, and
    what was done to those not found at their offset (:class:`~evenrank.files.squad.AnswerAlignment`); notes: that in
    words.
    """

    documents: int
    unmoved: int
    words: int
    answers: int | None = None
    split: int | None = None
    split_answers: tuple[tuple[str, str], ...] = ()
    answer_places: dict[str, object] | None = None
    notes: tuple[str, ...] = ()


class RotatedAnswers:
    """A SQuAD file whose contexts are rotated like the documents of a collection."""

    def __init__(self, path: str | os.PathLike[str], seed: int, mode: Mode) -> None:
        self.path = path
        squad = load_squad(path)
        self.data, self.alignment = squad.data, squad.alignment
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
                answers = _moved(context, text, question["answers"], cut)
                self.moved += len(answers)
                self.split += [(query_id, doc_id)] * (len(question["answers"]) - len(answers))
                question["answers"] = answers
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
    moved_answers: list[SquadAnswer] = []
    for answer in answers:
        span = moved_span(context, answer["answer_start"], answer["answer_start"] + len(answer["text"]), cut)
        if span is not None:
            moved_answers.append({**answer, "text": text[span[0] : span[1]], "answer_start": span[0]})
    return moved_answers


def _draws(doc_ids: pl.Series, choices: Array, seed: int) -> Array:
    """:func:`draw` of each passage [N], of so many ``choices`` [N] each."""
    value, many = mix(fnv_of_texts(doc_ids, FNV_OFFSET ^ seed)), choices.astype(np.uint64)
    half = np.uint64(32)
    # ⌊value · choices / 2^64⌋ without the product, which has up to 96 bits.
    low = ((value & np.uint64(0xFFFFFFFF)) * many) >> half
    return (((value >> half) * many + low) >> half).astype(np.int32)


@checked
def rotate_texts(
    table: pl.DataFrame, seed: Annotated[int, opt.SEED] = 0, mode: Mode = "word"
) -> tuple[pl.Series, Array, Array]:
    """The rotated texts of ``doc_id``, ``text``; the number of words moved to the end and of all words [N] int32.

    The cut depends on the seed and the document's id alone, so it is the same on any machine and for any batch. Raises
    EvenrankError for an unknown mode and a negative seed.
    """
    text = table["text"]
    spaced = text.str.replace_all(_OTHER_SPACE, " ").str.replace_all("  +", " ").str.strip_chars(" ")
    words = spaced.str.split(" ")
    count = np.where(spaced == "", 0, words.list.len()).astype(np.int32)
    if mode == "word":
        cut = _draws(table["doc_id"], count, mixed_seed(seed))
    else:
        starts = pl.Series([sentence_starts(w) for w in words.to_list()], dtype=pl.List(pl.Int32))
        drawn = _draws(table["doc_id"], starts.list.len().to_numpy(), mixed_seed(seed))
        cut = starts.list.get(pl.Series(drawn)).to_numpy()
    parts = pl.DataFrame({"text": text, "spaced": spaced, "words": words, "count": count, "cut": cut})
    last, first = (
        part.list.join(" ") for part in (pl.col("words").list.slice("cut"), pl.col("words").list.head("cut"))
    )
    turned = pl.when(pl.col("cut") > 0).then(pl.format("{} {}", last, first)).otherwise("spaced")
    return (
        parts.select(pl.when(pl.col("count") > 0).then(turned).otherwise("text")).to_series().alias("text"),
        cut,
        count,
    )


@checked
def rotate_collection(
    collection: Annotated[opt.File, opt.Option(opt.TEXTS, metavar="COLLECTION", reads=True)],
    *,
    out: Annotated[opt.File, opt.Option("The collection to write: TSV, .jsonl or .parquet.", panel="Output")],
    answers: Annotated[
        opt.File | None,
        opt.Option("Answers in these documents; their spans move along.", metavar="SQUAD.json", reads=True),
    ] = None,
    answers_out: Annotated[
        opt.File | None,
        opt.Option(
            "Where to write the moved answers (default: OUT.answers.json).",
            metavar="FILE",
            needs=("answers",),
            panel="Output",
            rare=True,
        ),
    ] = None,
    mode: Annotated[
        Literal["word", "sentence"], opt.Option("Cut before any word, or only where a sentence begins.")
    ] = "word",
    seed: Annotated[
        int, opt.Option("A document's cut depends only on the seed and its id.", range=opt.SEED, rare=True)
    ] = 0,
    quiet: bool = True,
) -> Rotated:
    """Rotate each document's words, against position bias. The cut is random, so that an answer's position carries no
    information.

    One streaming pass; the same bytes for any number of cores. ``out``: TSV, JSONL or Parquet, by its name
    (TSV unless it ends in ``.jsonl`` or ``.parquet``). ``answers``: a SQuAD file whose paragraphs are documents of
    the collection; its contexts and answer spans (realigned first, see :func:`evenrank.files.squad.load_squad`) move
    along into ``answers_out``, without the answers that a cut splits. ``OUT.manifest.json`` records the settings,
    the counts, and which answers were split. Files appear whole or not at all.

    Raises EvenrankError for a setting out of range, InputError for input that cannot be read, for a paragraph that the
    collection lacks, and for an id that a TSV cannot represent.
    """
    if answers is not None and answers_out is None:
        answers_out = f"{os.fspath(out)}.answers.json"
    files = [f"{os.fspath(out)}.manifest.json", answers_out]
    check_apart([out, *files], [collection, answers])
    check_outputs([out, *files])
    provenance = Provenance("evenrank.mitigation.rotation.rotate_collection")
    provenance.add("collection", collection).add("answers", answers).ahead(True)
    spans = None if answers is None else RotatedAnswers(answers, seed, mode)
    with progress("documents", quiet=quiet) as advance:
        done = _rotate_into(out, collection, seed, mode, advance, spans)
    sources = {"collection": os.fspath(collection), "answers_file": None if answers is None else os.fspath(answers)}
    settings = {"evenrank": __version__, **sources, "mode": mode, "seed": seed}
    with atomic_path(f"{os.fspath(out)}.manifest.json") as manifest, ExitStack() as stack:
        if spans is not None and answers_out is not None:
            done = spans.noted(done)
            file = stack.enter_context(atomic_path(answers_out))
            file.write_text(json.dumps(spans.data, ensure_ascii=False), encoding="utf-8")
        values = {**settings, **asdict(done), "provenance": provenance.to_dict()}
        manifest.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return done


def _rotate_into(
    out: str | os.PathLike[str],
    collection: str | os.PathLike[str],
    seed: int,
    mode: Mode,
    advance: Callable[[int], None],
    spans: RotatedAnswers | None,
) -> Rotated:
    form = form_of(out)
    unmoved = total = 0
    with atomic_path(out) as part, TableWriter(part, form) as writer:

        def work(batch: pl.DataFrame) -> tuple[pl.DataFrame, pa.Table | memoryview, Array, Array]:
            texts, moved, words = rotate_texts(batch, seed, mode)
            table = pl.DataFrame([batch["doc_id"], texts])
            written = table
            if form == "tsv":
                check_tsv_ids(batch["doc_id"], out)
                # White space alone stays as it is, but for what would end the field.
                written = table.with_columns(pl.col("text").str.replace_all(r"[\t\r\n]", " "))
            return table, writer.encode(written), moved, words

        for table, encoded, moved, words in map_passages(collection, work):
            writer.append(encoded, table.height)
            if spans is not None:
                spans.check(table)
            unmoved += int((moved == 0).sum())
            total += int(words.sum())
            advance(table.height)
        if spans is not None:
            spans.complete()
    return Rotated(writer.rows, unmoved, total)
