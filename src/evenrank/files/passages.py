"""Passages of documents: the table from one to the other, and a document's score from those of its passages.

A document has the score of its best passage (MaxP):
Dai & Callan, SIGIR 2019, "Deeper text understanding for IR with contextual neural language modeling".

>>> from evenrank.files.passages import best_passages
>>> table = {"tea#1": "tea", "tea#2": "tea", "milk#1": "milk"}
>>> best_passages({"q": {"tea#1": 1.0, "milk#1": 2.0, "tea#2": 3.0}}, table).to_dict()
{'q': {'tea': 3.0, 'milk': 2.0}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from .arguments import checked
from .convert import Frame, PathLike, columns_of, id_column
from .errors import EvenrankError, arg, quoted, shown
from .runs import Run, as_run
from .tables import first_repeat
from .wording import are, counted

PassagesLike = PathLike | Frame | Mapping[str, str]
"""Passages and their documents: a file with the columns ``passage_id`` and ``doc_id`` (``documents.csv`` of a cut
collection; CSV, TSV, JSONL or Parquet), a frame with these, or ``{passage: document}``."""
_COLUMNS = ("passage_id", "doc_id")


def as_passages(given: object, what: str | None = None) -> pl.DataFrame:
    """The passages and their documents, ``passage_id`` and ``doc_id``, in the order given.

    ``given``: any form of :data:`PassagesLike`. Raises EvenrankError (of a file InputError) for a missing column, an id
    that is missing, and a passage that is repeated.
    """
    what = what or arg.passages
    if isinstance(given, Mapping):
        given = pl.DataFrame({"passage_id": list(given), "doc_id": list(given.values())})
    columns = columns_of(given, what)
    if columns is None:
        raise EvenrankError(f"{what}: expected a path, a frame or {{passage: document}}, found {shown(given)}")
    missing = [name for name in _COLUMNS if name not in columns.table.columns]
    if missing:
        has = ", ".join(map(str, columns.table.columns[:10])) or "none"
        raise columns.error(f"expected the columns passage_id and doc_id, found {quoted(has, 120)[1:-1]}")
    place = what if columns.path is None else columns.path
    table = pl.DataFrame([id_column(columns.table[name], name, place) for name in _COLUMNS])
    repeat = first_repeat(table, ["passage_id"])
    if repeat is not None:
        raise columns.error(f"the passage {quoted(table['passage_id'][repeat[1]])} appears twice", repeat[1])
    return table


@checked
def best_passages(run: object, passages: object) -> Run:
    """The run of documents of a run of passages: each has the score of its best passage (MaxP; Dai & Callan 2019).

    ``run``: a path, a :class:`Run`, ``{query: {passage: score}}``, a frame or records. ``passages``: the table from
    passages to their documents: ``documents.csv`` of :func:`evenrank.cut_passages`, a frame with ``passage_id`` and
    ``doc_id``, or ``{passage: document}``. Ties are broken by descending document id. The card of a
    written run then has ``passages``: ``max``.

    A run of the first k passages has fewer than k documents, and some of their best passages may be missing:
    :func:`evenrank.retrieve` with ``passages`` searches as deep as k documents need.

    >>> import evenrank
    >>> run = {"q": {"tea#1": 1.0, "milk#1": 2.0, "tea#2": 3.0}}
    >>> evenrank.best_passages(run, {"tea#1": "tea", "tea#2": "tea", "milk#1": "milk"}).to_dict()
    {'q': {'tea': 3.0, 'milk': 2.0}}

    Raises EvenrankError for a passage of the run that the table lacks; InputError for a file that cannot be read.
    """
    return folded(as_run(run), as_passages(passages))


def folded(run: Run, passages: pl.DataFrame) -> Run:
    """As :func:`best_passages`; ``passages``: as :func:`as_passages` returns them."""
    known = passages.rename({"passage_id": "doc_id", "doc_id": "document"})
    table = run.table.join(known, on="doc_id", how="left", maintain_order="left")
    absent = table.filter(pl.col("document").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        raise _unknown(run, absent, "passage")
    best = table.group_by("query_id", "document", maintain_order=True).agg(pl.col("score").max())
    note = f"{run.name}: each document has the score of its best passage (MaxP)"
    document_run = Run.from_table(best.rename({"document": "doc_id"}), run.name, notes=(*run.notes, note))
    card = None if run.card is None else {**run.card, "passages": "max"}
    return replace(document_run, source=run.source, card=card)


def passages_in(run: Run, rows: pl.DataFrame, passages: pl.DataFrame) -> pl.DataFrame:
    """``query_id`` and ``doc_id`` of the passages that rows of a run stand for, in the rows' order.

    ``rows``: those of the run whose passages are wanted, of documents or of passages. If all are documents of the table
    ``passages`` (as :func:`as_passages` returns it), each becomes its passages, in the table's order; else all have to
    be passages of it. Raises EvenrankError for ids that are neither.
    """
    named, pairs = rows["doc_id"], rows.select("query_id", "doc_id")
    if named.is_in(passages["doc_id"].implode()).all():
        own = passages.filter(pl.col("doc_id").is_in(named.implode()))
        matches = pairs.join(own, on="doc_id", how="left", maintain_order="left_right")
        return matches.select("query_id", doc_id="passage_id")
    others = named.filter(~named.is_in(passages["passage_id"].implode())).unique(maintain_order=True)
    if not len(others):
        return pairs
    absent = others.filter(~others.is_in(passages["doc_id"].implode()))
    if len(absent):
        raise _unknown(run, absent, "id")
    raise EvenrankError(
        f"{run.described}: expected documents of the table of passages or its passages, found both: {quoted(others[0])}"
        " is a document"
    )


def _unknown(run: Run, ids: pl.Series, noun: str) -> EvenrankError:
    first = ", ".join(map(quoted, ids.head(5))) + (", …" if len(ids) > 5 else "")
    return EvenrankError(
        f"{run.described}: {counted(len(ids), noun)} {are(len(ids))} not in the table of passages: {first}"
    )
