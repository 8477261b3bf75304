"""Edits of passages that depend on a query: on its answer, or on its words."""

from __future__ import annotations

import os
from collections.abc import Callable

import polars as pl

from evenrank.engines.hashing import FNV_OFFSET, fnv, mix
from evenrank.io import EvenrankError, InputError, as_qrels, as_queries, as_run, read_texts
from evenrank.io.convert import frame_of, id_column, is_path
from evenrank.io.squad import load_squad
from evenrank.io.wording import counted
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.rankers.pairs import TextPairs

from .content_words import content_words
from .located_answers import first_answers, locate
from .sentence_pool import SentencePool
from .sentences import (
    control_moved,
    control_without,
    holding,
    inserted,
    moved,
    only,
    places,
    sentence_spans,
    without,
)

Collection = str | os.PathLike[str] | pl.DataFrame
_SPANS = ("query_id", "doc_id", "answer_start", "answer_end")
_NAMED = ", ".join(_SPANS[:-1]) + f" and {_SPANS[-1]}"
_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "text": pl.String, "edits": pl.Int64}
Pairs = tuple[pl.DataFrame, tuple[str, ...]]
"""A variant (``query_id``, ``doc_id``, ``text``, ``edits``), and notes."""
AnswerEdit = Callable[[str, int, int, int], tuple[str | None, int]]
"""From text, start, end and a draw to the edited text and the sentences that were moved or removed."""


def answer_variant(collection: Collection, answers: object, kind: str, control: bool, seed: int) -> Pairs:
    """The variant of the passages with answers: one row per query and passage, by its first answer there.

    ``kind``: brief, early, late or foil; ``control``: its placebo. Raises EvenrankError if a passage is missing.
    """
    spans, notes = read_spans(answers)
    first = first_answers(spans)
    place, texts = _texts_of(collection, first["doc_id"])
    table, alignment = locate(first, texts, place)
    edit = (CONTROLS if control else EDITS)[kind]
    start = mixed_seed(seed)
    rows, again, lacking = [], 0, 0
    columns = ("query_id", "doc_id", "text", "answer_start", "answer_end")
    for query, doc, text, begin, end in table.select(columns).iter_rows():
        edited, edits = edit(text, begin, end, draw(f"{query}\t{doc}", 1 << 32, start))
        lacking += edited is None
        edited = text if edited is None else edited
        rows.append((query, doc, edited, edits if edited != text else 0))
        again += edited != text and text[begin:end].casefold() in edited.casefold()
    notes += tuple(f"In the collection: {note}" for note in alignment.notes())
    if kind == "foil" and again and not control:
        notes += (f"Foils in which the answer's words are left, in another sentence: {again:,} of {len(rows):,}.",)
    if lacking:
        fitting = "sentences as long as the answer's" if kind == "foil" else "another sentence"
        notes += (f"Without a placebo, for lack of {fitting}: {lacking:,} of {counted(len(rows), 'pair')}.",)
    return pl.DataFrame(rows, _SCHEMA, orient="row"), notes


def _brief(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return only(text, start, end), places(text, start, end)[1]


def _early(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return moved(text, start, end, 0), _held(text, start, end)


def _late(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return moved(text, start, end, places(text, start, end)[1]), _held(text, start, end)


def _foil(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return without(text, start, end), _held(text, start, end)


def _held(text: str, start: int, end: int) -> int:
    first, last = holding(sentence_spans(text), start, end)
    return last - first + 1


def _early_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    return control_moved(text, start, end, 0, drawn), 1


def _late_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    return control_moved(text, start, end, places(text, start, end)[1], drawn), 1


def _foil_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    left = control_without(text, start, end, drawn)
    # What is left is cut as before: the order of the sentences is the same.
    return left, 0 if left is None else len(sentence_spans(text)) - len(sentence_spans(left))


EDITS: dict[str, AnswerEdit] = {"brief": _brief, "early": _early, "late": _late, "foil": _foil}
CONTROLS: dict[str, AnswerEdit] = {"early": _early_control, "late": _late_control, "foil": _foil_control}


# parameters: what it edits, and which pairs.
def repeated_variant(
    collection: Collection,
    queries: object,
    run: object,
    qrels: object,
    depth: int,
    control: bool,
    seed: int,
) -> Pairs:
    """The variant of the passages of a run to ``depth``, or of judged ones: one more sentence in each.

    It has the query's content words, or, as its placebo (``control``), as many of a sentence of another passage of the
    run, in the same place. Raises EvenrankError for a query or a passage without a text.
    """
    if run is not None:
        found = as_run(run)
        name, table = found.described, found.table.filter(pl.col("rank") <= depth)
    else:
        name, table = "the judgements", as_qrels(qrels)
    pairs = TextPairs.of_run(name, table, collection, as_queries(queries))
    ids = table.select("query_id", "doc_id")
    passages = ids.with_columns(pairs.documents.gather(pairs.document).alias("text"))
    pool = SentencePool.sampled([passages.select("doc_id", "text").unique("doc_id")], seed) if control else None
    start = mixed_seed(seed)
    rows = []
    for (query, doc, text), asked in zip(passages.iter_rows(), pairs.queries.gather(pairs.query), strict=True):
        words: list[str] | None = content_words(asked)
        if pool is not None and words:
            key = mix(fnv(f"{query}\t{doc}".encode(), FNV_OFFSET ^ start))
            words = pool.other_words(len(words), doc, text, asked, key)
        count = len(sentence_spans(text))
        if not words or not count:
            rows.append((query, doc, text, 0))
            continue
        place = draw(f"{query}\t{doc}", count + 1, start)
        rows.append((query, doc, inserted(text, _sentence(words), place), 1))
    return pl.DataFrame(rows, _SCHEMA, orient="row"), ()


def _sentence(words: list[str]) -> str:
    """Words as a sentence: the sentence after it is then cut from it, and itself from the one before."""
    line = " ".join(words)
    return f"{line[0].upper()}{line[1:]}."


def _texts_of(collection: Collection, ids: pl.Series) -> tuple[str, pl.DataFrame]:
    """The passages of a collection named by ``ids``, and what messages call the collection."""
    if isinstance(collection, pl.DataFrame):
        return "the collection", collection.filter(pl.col("doc_id").is_in(ids.implode()))
    return f"the collection {os.fspath(collection)}", read_texts(collection, ids.unique())


def read_spans(answers: object) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The answers of a SQuAD file or of a table, and notes on those that are elsewhere than the file says."""
    if is_path(answers):
        found = load_squad(answers)
        table, notes = found.answers(), tuple(f"{found.path}: {note}" for note in found.alignment.notes())
        if not table.height:
            raise InputError(found.path, "expected questions with answers, found none")
        return table, notes
    frame = frame_of(answers, "`answers`")
    if frame is None:
        found_type = type(answers).__name__
        raise EvenrankError(f"`answers`: expected a SQuAD file or a table with {_NAMED}, found a {found_type}")
    missing = [name for name in _SPANS if name not in frame.columns]
    if missing:
        has = ", ".join(frame.columns) or "none"
        raise EvenrankError(f"`answers`: the table has no column {missing[0]} (its columns are {has})")
    if not frame.height:
        raise EvenrankError("`answers`: expected at least one row, found none")
    for name in _SPANS[2:]:
        if not frame[name].dtype.is_integer() or frame[name].null_count():
            raise EvenrankError(f"`answers`: expected whole numbers as {name}, found {frame[name].dtype}")
    ids = [id_column(frame[name], name, "`answers`") for name in _SPANS[:2]]
    kept = [name for name in (*_SPANS[2:], "answer") if name in frame.columns]
    return pl.DataFrame([*ids, *(frame[name] for name in kept)]), ()
