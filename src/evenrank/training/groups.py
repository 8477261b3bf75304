"""Query groups on disk: built once from a run, judgements and texts, then read where they lie.

A folder holds ``texts.arrow`` (every passage once, with its id, and with its bias labels where asked for) and
``groups.arrow`` (per query its text, the rows of its positives and of its negatives). Both are memory-mapped, so that
training needs no more memory than a batch, whatever their size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import torch

from evenrank._wording import are, counted
from evenrank.groups import Scoring, label_texts
from evenrank.io import EvenrankError, Run, atomic_path, make_folder, read_texts, write_text
from evenrank.io.errors import shown
from evenrank.mitigation.blind import blind, mask_texts
from evenrank.mitigation.rotation import Mode, cut_of, mixed_seed, rotated
from evenrank.rankers.protocol import QueryGroups

from .group_files import read_group_file

Array = np.ndarray[Any, Any]
Sampling = Literal["random", "first"]
_ROWS = 1 << 14


def build_groups(
    run: Run,
    qrels: pl.DataFrame,
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: str | os.PathLike[str],
    *,
    depth: int = 1000,
    attributes: Sequence[Scoring] = (),
    masked: Scoring | None = None,
) -> dict[str, int]:
    """Writes the query groups of a run: a query's judged relevant passages against the rest of its first ``depth``.

    Relevant passages need not be in the run. ``attributes``: what each passage gets a bias label for (its lexicon needs
    poles); ``masked``: whose words are masked in queries and passages. Returns counts: ``queries`` written,
    ``without_positive`` and ``without_negative`` left out. Raises EvenrankError for a query or a passage without a
    text, and where no group is left.
    """
    candidates = run.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id")
    graded = qrels.join(run.queries.to_frame(), on="query_id", how="semi")
    relevant = graded.filter(pl.col("relevance") >= 1)
    rest = candidates.join(relevant, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    positives = relevant.group_by("query_id", maintain_order=True).agg(
        pl.col("doc_id").alias("positives"), pl.col("relevance").alias("grades")
    )
    negatives = rest.group_by("query_id", maintain_order=True).agg(pl.col("doc_id").alias("negatives"))
    table = run.queries.to_frame()
    for part in (positives, negatives):
        table = table.join(part, on="query_id", how="left", maintain_order="left")
    no_positive, no_negative = table["positives"].is_null(), table["negatives"].is_null()
    counts = {"without_positive": int(no_positive.sum()), "without_negative": int((no_negative & ~no_positive).sum())}
    table = table.filter(~no_positive & ~no_negative)
    if not table.height:
        raise EvenrankError(f"run {run.name}: no query has both a relevant passage and another one")
    counts["queries"] = table.height
    _write(table, collection, queries, Path(folder), counts, attributes, masked)
    return counts


def build_from_file(
    path: str | os.PathLike[str],
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: str | os.PathLike[str],
    *,
    attributes: Sequence[Scoring] = (),
    masked: Scoring | None = None,
) -> dict[str, int]:
    """Writes the query groups of a file (see :func:`read_group_file`); the rest as in :func:`build_groups`."""
    flat = read_group_file(path).with_row_index("group").explode("doc_id", "label")
    positive = pl.col("label") >= 1
    table = flat.group_by("group", maintain_order=True).agg(
        pl.col("query_id").first(),
        pl.col("doc_id").filter(positive).alias("positives"),
        pl.col("label").filter(positive).alias("grades"),
        pl.col("doc_id").filter(~positive).alias("negatives"),
    )
    counts = {"queries": table.height, "without_positive": 0, "without_negative": 0}
    _write(table.drop("group"), collection, queries, Path(folder), counts, attributes, masked)
    return counts


def _write(
    table: pl.DataFrame,
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: Path,
    counts: dict[str, int],
    attributes: Sequence[Scoring],
    masked: Scoring | None,
) -> None:
    wanted = pl.concat([table["positives"].explode(), table["negatives"].explode()]).unique(maintain_order=True)
    if isinstance(collection, pl.DataFrame):
        texts = collection.join(wanted.rename("doc_id").to_frame(), on="doc_id", how="semi", maintain_order="left")
    else:
        texts = read_texts(collection, wanted)
    absent = wanted.filter(~wanted.is_in(texts["doc_id"].implode()))
    if len(absent):
        where = "the collection" if isinstance(collection, pl.DataFrame) else f"the collection {os.fspath(collection)}"
        listed = ", ".join(map(shown, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(f"{counted(len(absent), 'training passage')} {are(len(absent))} not in {where}: {listed}")
    table = table.join(queries.rename({"text": "query"}), on="query_id", how="left", maintain_order="left")
    lacking = table.filter(pl.col("query").is_null())["query_id"]
    if len(lacking):
        listed = ", ".join(map(shown, lacking[:5])) + (", …" if len(lacking) > 5 else "")
        raise EvenrankError(f"{counted(len(lacking), 'training query')} without a text: {listed}")
    row = texts.select("doc_id").with_row_index("row")
    for name in ("positives", "negatives"):
        rows = (
            table.select("query_id", pl.col(name).alias("doc_id"))
            .with_row_index("at")
            .explode("doc_id")
            .join(row, on="doc_id", how="left", maintain_order="left")
            .group_by("at", maintain_order=True)
            .agg("row")
        )
        table = table.with_columns(rows["row"].alias(name))
    make_folder(folder)
    columns = ["query_id", "query", "positives", "grades", "negatives"]
    signs = _signs(texts, attributes)
    if masked is not None:
        texts = blind(texts, masked)
        table = table.with_columns(mask_texts(table["query"], masked))
    _write_arrow(texts.select("doc_id", "text", *signs), folder / "texts.arrow")
    _write_arrow(
        table.select(columns).with_columns(pl.col("grades").cast(pl.List(pl.Float32))), folder / "groups.arrow"
    )
    write_text(folder / "counts.json", json.dumps(counts))


def _signs(texts: pl.DataFrame, attributes: Sequence[Scoring]) -> list[pl.Series]:
    """The column ``signs``: each text's bias labels, one an attribute [IBBR §2.2]."""
    if not attributes:
        return []
    labels = [label_texts(texts["text"], scoring) for scoring in attributes]
    return [pl.Series("signs", np.stack(labels, axis=1)).cast(pl.List(pl.Int8))]


def _write_arrow(table: pl.DataFrame, path: Path) -> None:
    arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
    with atomic_path(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, arrow.schema) as writer:
        # Pieces of one size, so that a row's piece is known from its number.
        writer.write_table(arrow.combine_chunks(), max_chunksize=_ROWS)


@dataclass(frozen=True, slots=True)
class Group:
    """One query with one positive (or all of them) and its negatives, as :class:`QueryGroupSet` gives it."""

    index: int
    query: str
    passages: list[str]
    labels: list[float]
    signs: list[list[int]] | None = None
    """Each passage's bias labels, one an attribute."""


class QueryGroupSet(torch.utils.data.Dataset[Group]):
    """Query groups read from the folder that :func:`build_groups` made: one item per pair of a query and a positive.

    ``negatives`` passages of the query's list join the positive: drawn anew each epoch (``random``), or the first of
    the run (``first``); fewer where there are fewer. The draw depends on seed, epoch and item alone. Item −1 − i is
    item i to fill up a batch with: its ``index`` is −1.

    ``rotate``: every passage, positive or negative, is turned round at a word, or at the start of a sentence [POS
    eq. 7]; where, depends on seed, epoch and the passage's id alone.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        negatives: int,
        sampling: Sampling = "random",
        seed: int = 0,
        rotate: Mode | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.negatives = negatives
        self.sampling = sampling
        self.seed = seed
        self.rotate = rotate
        self.epoch = 0
        self._open()
        lengths = np.concatenate([_lengths(batch, "positives") for batch in self._groups])
        # Items in order: every positive of query 0, of query 1, …
        self._query = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._positive = (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32)

    def _open(self) -> None:
        self._groups = _batches(self.folder / "groups.arrow")
        self._texts = _batches(self.folder / "texts.arrow")
        self._signed = "signs" in self._texts[0].schema.names

    def __getstate__(self) -> dict[str, Any]:
        # The maps are opened anew in a data-loading process.
        return {name: value for name, value in self.__dict__.items() if name not in ("_groups", "_texts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return len(self._query)

    def set_epoch(self, epoch: int) -> None:
        """Makes ``random`` draw other negatives and ``rotate`` other places, the same ones whenever it comes again."""
        self.epoch = epoch

    def __getitem__(self, index: int) -> Group:
        shown_index = index
        if index < 0:
            index, shown_index = -1 - index, -1
        query = int(self._query[index])
        batch, row = self._groups[query // _ROWS], query % _ROWS
        positives, negatives = _list(batch, "positives", row), _list(batch, "negatives", row)
        chosen = negatives[: self.negatives]
        if self.sampling == "random" and len(negatives) > self.negatives:
            rng = np.random.default_rng([self.seed, self.epoch, index])
            chosen = negatives[np.sort(rng.choice(len(negatives), self.negatives, replace=False))]
        place = int(self._positive[index])
        grade = float(_list(batch, "grades", row)[place])
        rows = [int(number) for number in (positives[place], *chosen)]
        texts = [self._text(number) for number in rows]
        signs = [self._value("signs", number) for number in rows] if self._signed else None
        return Group(shown_index, batch.column("query")[row].as_py(), texts, [grade] + [0.0] * len(chosen), signs)

    def query_id(self, index: int) -> str:
        """The query of an item, for messages."""
        query = int(self._query[index])
        return str(self._groups[query // _ROWS].column("query_id")[query % _ROWS].as_py())

    def _text(self, number: int) -> str:
        text = str(self._value("text", number))
        if self.rotate is None:
            return text
        cut = cut_of(text, self._value("doc_id", number), mixed_seed(self.seed, self.epoch), self.rotate)
        return rotated(text, cut)

    def _value(self, column: str, number: int) -> Any:
        return self._texts[number // _ROWS].column(column)[number % _ROWS].as_py()


def _batches(path: Path) -> list[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]


def _lengths(batch: pa.RecordBatch, name: str) -> Array:
    return np.diff(batch.column(name).offsets.to_numpy())


def _list(batch: pa.RecordBatch, name: str, row: int) -> Array:
    column = batch.column(name)
    offsets = column.offsets
    values: Array = column.values.slice(
        offsets[row].as_py(), offsets[row + 1].as_py() - offsets[row].as_py()
    ).to_numpy()
    return values


def collate(groups: Sequence[Group]) -> QueryGroups:
    """Items as one batch of query groups, labels and bias labels padded with 0."""
    longest = max(len(group.passages) for group in groups)
    labels = torch.tensor([group.labels + [0.0] * (longest - len(group.labels)) for group in groups])
    signs = None
    if groups[0].signs is not None:
        lists = [torch.tensor(group.signs, dtype=torch.int8) for group in groups]
        signs = torch.nn.utils.rnn.pad_sequence(lists, batch_first=True).permute(2, 0, 1)
    return QueryGroups([group.query for group in groups], [group.passages for group in groups], labels, signs)
