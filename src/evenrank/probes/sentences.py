"""Answers in their passages: which answer is a query's first, where it is, and which sentences it is in."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenrank.files import EvenrankError
from evenrank.files.convert import first_of
from evenrank.files.errors import quoted
from evenrank.files.sentences import Span
from evenrank.files.squad import AnswerAlignment
from evenrank.files.wording import are, counted


def holding(spans: Sequence[Span], start: int, end: int) -> tuple[int, int]:
    """The first and the last sentence that the answer touches. Raises ValueError if it touches none."""
    touched = [number for number, (begin, stop) in enumerate(spans) if begin < end and stop > start]
    if not touched:
        raise ValueError("the answer is in no sentence")
    return touched[0], touched[-1]


_COLUMNS = ("query_id", "doc_id", "text", "answer_start", "answer_end")


def first_answers(spans: pl.DataFrame) -> pl.DataFrame:
    """The first answer of each query.

    ``spans``: ``query_id``, ``doc_id``, ``answer_start``, ``answer_end`` and perhaps ``answer``, which else becomes
    null. First is the lowest passage id, then the lowest start. Rows in the order in which ``spans`` first has them.
    """
    order = spans.select("query_id").unique(maintain_order=True)
    answers = spans.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    answers = order.join(answers.unique("query_id", keep="first"), on="query_id", maintain_order="left")
    names = ["query_id", "doc_id", "answer_start", "answer_end"]
    answer = pl.col("answer") if "answer" in answers.columns else pl.lit(None, pl.String).alias("answer")
    return answers.select(*names, answer)


def locate(spans: pl.DataFrame, texts: pl.DataFrame, where: str) -> tuple[pl.DataFrame, AnswerAlignment]:
    """Where answers are in their passages, and how they were aligned.

    ``spans``: as :func:`first_answers` returns them; ``texts``: ``doc_id``, ``text``; ``where``: the collection, for
    messages. One row per answer, in order: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``
    (characters, without white space at the ends). Answers that are not in their passage's text are left out. Raises
    EvenrankError if no answer is left or a passage is missing.
    """
    table = spans.join(texts.select("doc_id", "text"), on="doc_id", how="left", maintain_order="left")
    _check_present(table, where)
    rows, alignment = [], AnswerAlignment()
    for query, doc, start, end, wanted, text in table.iter_rows():
        if wanted is not None and (start < 0 or text[start:end].split() != wanted.split()):
            span = alignment.align(query, doc, text, wanted, start)
            if span is None:
                continue
            start, end = span
        else:
            alignment.read += 1
        answer = text[start:end] if start >= 0 else ""
        if not answer.strip() or (wanted is None and end > len(text)):
            raise EvenrankError(f"query {quoted(query)}: the answer's span is not in the passage {quoted(doc)}")
        start, end = start + len(answer) - len(answer.lstrip()), start + len(answer.rstrip())
        rows.append((query, doc, text, start, end))
    if not rows:
        raise EvenrankError(f"no answer was found in its passage ({table.height} searched)")
    return pl.DataFrame(rows, list(_COLUMNS), orient="row"), alignment


def _check_present(table: pl.DataFrame, where: str) -> None:
    absent = table.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        raise EvenrankError(
            f"{counted(len(absent), 'passage')} with answers {are(len(absent))} not in {where}: {first_of(absent)}"
        )
