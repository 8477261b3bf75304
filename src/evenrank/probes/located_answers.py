"""Answers and where they are in the texts of a collection."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.squad import AnswerAlignment
from evenrank.io.wording import are, counted

_COLUMNS = ("query_id", "doc_id", "text", "answer_start", "answer_end")


def first_answers(spans: pl.DataFrame, by: Sequence[str] = ("query_id", "doc_id")) -> pl.DataFrame:
    """The first answer of each query and passage, or of each query (``by``).

    ``spans``: ``query_id``, ``doc_id``, ``answer_start``, ``answer_end`` and perhaps ``answer``, which else becomes
    null. First is the lowest passage id, then the lowest start. Rows in the order in which ``spans`` first has them.
    """
    order = spans.select(by).unique(maintain_order=True)
    found = spans.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    found = order.join(found.unique(by, keep="first", maintain_order=True), on=list(by), maintain_order="left")
    names = ["query_id", "doc_id", "answer_start", "answer_end"]
    answer = pl.col("answer") if "answer" in found.columns else pl.lit(None, pl.String).alias("answer")
    return found.select(*names, answer)


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
        listed = ", ".join(map(quoted, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(
            f"{counted(len(absent), 'passage')} with answers {are(len(absent))} not in {where}: {listed}"
        )
