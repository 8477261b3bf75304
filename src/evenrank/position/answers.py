"""Answer positions of a SQuAD file or a data set: the call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from evenrank.io import EvenrankError, InputError, Provenance, irds, read_texts
from evenrank.io.answer_matching import match_answers, read_question_answers
from evenrank.io.errors import quoted
from evenrank.io.squad import load_squad

from .answer_positions import AnswerPositions, answer_positions
from .answers_result import AnswersResult

__all__ = ["AnswersResult", "load_answer_positions", "position_answers"]


def position_answers(
    source: str | os.PathLike[str], collections: Sequence[str | os.PathLike[str]] = (), *, annotated: bool = False
) -> AnswersResult:
    """Measures where answers are in their passages [Hofstätter et al., ECIR 2021, §2].

    The arguments and the errors are those of :func:`load_answer_positions`; also raises EvenrankError if ``source`` is
    not a path or an identifier.
    """
    if not isinstance(source, str | os.PathLike):
        raise EvenrankError(f"`source`: expected a SQuAD file or irds:NAME, found a {type(source).__name__}")
    made = Provenance("evenrank.position_answers").add("answers", source)
    for collection in collections:
        made.add("collection", collection)
    made.ahead()
    positions, name = load_answer_positions(source, collections, annotated=annotated), os.fspath(source)
    settings = {"answers": name, "collections": [os.fspath(one) for one in collections], "annotated": annotated}
    return AnswersResult(name if irds.is_identifier(name) else Path(name).name, positions, settings, made)


def load_answer_positions(
    source: str | os.PathLike[str], collections: Sequence[str | os.PathLike[str]] = (), *, annotated: bool = False
) -> AnswerPositions:
    """Answer positions of a SQuAD file, or of an ir_datasets data set with answers (``irds:msmarco-qna/dev``).

    Every match of an answer's text in its passage counts, and the annotated span too (aligned by
    :func:`evenrank.io.squad.load_squad`). ``annotated``: count the annotated spans only. ``collections``: take the
    passages' texts from here, by document id, instead of the file; answers are then matched there and annotated spans
    do not apply. Raises EvenrankError for ``annotated`` without annotated spans; InputError if no answer is found.
    """
    if annotated and collections:
        raise EvenrankError("annotated spans refer to the file's own texts, not to those of a collection")
    if irds.is_identifier(source):
        if annotated:
            raise EvenrankError(f"{source}: the answers of a data set have no annotated spans")
        wanted, passages = read_question_answers(os.fspath(source))
        spans = alignment = None
    else:
        found = load_squad(source)
        spans, passages, alignment = found.answers(), found.passages(), found.alignment
        columns = dict.fromkeys(("query_id", "doc_id", "answer"), pl.String)
        left_out = pl.DataFrame(alignment.left_out, columns, orient="row")
        wanted = pl.concat([spans.select(left_out.columns), left_out])
    if collections:
        passages, spans, alignment = _texts(collections, wanted["doc_id"]), None, None
    if annotated and spans is not None:
        positions = answer_positions(spans, passages, left_out)
    else:
        matches, unmatched = match_answers(wanted, passages)
        if spans is not None:
            # Annotated answers are never unmatched, even if their span splits a word.
            unmatched = unmatched.join(spans, on=unmatched.columns, how="anti", maintain_order="left")
            matches = pl.concat([spans, matches])
        positions = answer_positions(matches, passages, unmatched)
    if not positions.table.height:
        raise InputError(source, f"no answer was found in its passage ({wanted.height} searched)")
    return replace(positions, alignment=alignment)


def _texts(collections: Sequence[str | os.PathLike[str]], ids: pl.Series) -> pl.DataFrame:
    """The passages ``ids`` of one or more collections. Raises InputError for an id that two of them contain."""
    parts = []
    for collection in collections:
        parts.append(read_texts(collection, ids))
        repeated = pl.concat(parts).filter(pl.col("doc_id").is_duplicated())["doc_id"]
        if len(repeated):
            raise InputError(collection, f"the document {quoted(repeated[0])} is in another collection too")
    return pl.concat(parts)
