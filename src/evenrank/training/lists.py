"""Training lists on disk: built once from a run, judgements and texts, then memory-mapped.

A folder contains ``texts.arrow`` (every passage once, with its id and, if asked for, its sides) and ``groups.arrow``
(for each query its text and the rows of its positives and negatives). Training needs no more memory than a batch,
whatever their size.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import torch

from evenrank.groups import Scoring
from evenrank.io import EvenrankError, Run, atomic_path, make_folder, read_texts, write_text
from evenrank.io.errors import quoted
from evenrank.io.types import Array
from evenrank.io.wording import are, counted
from evenrank.mitigation.blind import blind, mask_texts
from evenrank.mitigation.rotation import Mode, cut_of, mixed_seed, rotated
from evenrank.rankers.protocol import CandidateLists

from .list_files import read_list_file
from .passage_groups import PassageGroups

Sampling = Literal["random", "first"]
_ROWS = 1 << 14


def build_lists(
    run: Run,
    qrels: pl.DataFrame,
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: str | os.PathLike[str],
    *,
    depth: int = 1000,
    groups: PassageGroups | None = None,
    masked: Scoring | None = None,
) -> dict[str, int]:
    """Writes the training lists of a run: a query's judged relevant passages against the rest of its first ``depth``.

    Relevant passages need not be in the run. ``groups``: what is kept of the passages' groups; ``masked``: its words
    are masked in queries and passages. :class:`TrainingLists` reads the folder. Returns counts: ``queries`` written,
    ``without_positive`` and ``without_negative`` left out; with labels ``passages``, ``relevant``, and how many of both
    are known (``known_NAME``, ``known_relevant_NAME``). Raises EvenrankError for a query or a passage without a text,
    for labels that know no passage, and if no list is left.
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
    _write(table, collection, queries, Path(folder), counts, groups, masked)
    return counts


def build_from_file(
    path: str | os.PathLike[str],
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: str | os.PathLike[str],
    *,
    groups: PassageGroups | None = None,
    masked: Scoring | None = None,
) -> dict[str, int]:
    """Writes the training lists of a file (see :func:`read_list_file`); the rest as in :func:`build_lists`."""
    flat = read_list_file(path).with_row_index("list").explode("doc_id", "label")
    positive = pl.col("label") >= 1
    table = flat.group_by("list", maintain_order=True).agg(
        pl.col("query_id").first(),
        pl.col("doc_id").filter(positive).alias("positives"),
        pl.col("label").filter(positive).alias("grades"),
        pl.col("doc_id").filter(~positive).alias("negatives"),
    )
    counts = {"queries": table.height, "without_positive": 0, "without_negative": 0}
    _write(table.drop("list"), collection, queries, Path(folder), counts, groups, masked)
    return counts


def _write(
    table: pl.DataFrame,
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: pl.DataFrame,
    folder: Path,
    counts: dict[str, int],
    groups: PassageGroups | None,
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
        listed = ", ".join(map(quoted, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(f"{counted(len(absent), 'training passage')} {are(len(absent))} not in {where}: {listed}")
    table = table.join(queries.rename({"text": "query"}), on="query_id", how="left", maintain_order="left")
    lacking = table.filter(pl.col("query").is_null())["query_id"]
    if len(lacking):
        listed = ", ".join(map(quoted, lacking[:5])) + (", …" if len(lacking) > 5 else "")
        raise EvenrankError(f"{counted(len(lacking), 'training query')} without a text: {listed}")
    relevant = table["positives"].explode()
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
    groups = groups or PassageGroups()
    kept = groups.columns(texts)
    counts |= groups.counts(texts["doc_id"], relevant)
    if masked is not None:
        texts = blind(texts, masked)
        table = table.with_columns(mask_texts(table["query"], masked))
    _write_arrow(texts.select("doc_id", "text", *kept), folder / "texts.arrow")
    _write_arrow(
        table.select(columns).with_columns(pl.col("grades").cast(pl.List(pl.Float32))), folder / "groups.arrow"
    )
    write_text(folder / "counts.json", json.dumps(counts))


def _write_arrow(table: pl.DataFrame, path: Path) -> None:
    arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
    with atomic_path(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, arrow.schema) as writer:
        # Pieces of one size, so that a row's piece is known from its number.
        writer.write_table(arrow.combine_chunks(), max_chunksize=_ROWS)


@dataclass(frozen=True, slots=True)
class TrainingList:
    """One query with its K passages, as training reads it: relevance [K], and sides [K][A] for A attributes.

    ``gendered`` [K]: 1, 0 or −1 (unknown), for an adversary, if that is by label.
    """

    index: int
    query: str
    passages: list[str]
    relevance: list[float]
    sides: list[list[int]] | None = None
    gendered: list[int] | None = None


class ListDataset(torch.utils.data.Dataset[TrainingList]):
    """Training lists by number. Item −1 − i is item i as padding of a batch: its ``index`` is −1.

    ``attributes``: for how many attributes the passages have sides.
    """

    attributes: int = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._described()})"

    def _described(self) -> str:
        sides = f", sides for {counted(self.attributes, 'attribute')}" if self.attributes else ""
        return f"{counted(len(self), 'list')}{sides}"

    def set_epoch(self, epoch: int) -> None:
        """Called when an epoch starts."""

    def query_id(self, index: int) -> str:
        """The query of an item, for messages."""
        raise NotImplementedError


class TrainingLists(ListDataset):
    """The lists in a folder that :func:`build_lists` wrote: one item for each pair of a query and a positive.

    ``negatives`` passages of the query's list join the positive (or all, if there are fewer): drawn anew each epoch
    (``random``), or the first of the run (``first``). The draw depends on seed, epoch and item alone.

    ``rotate``: every passage, positive or negative, is rotated at a word, or at the start of a sentence [POS eq. 7];
    the place depends on seed, epoch and the passage's id alone.
    """

    temporary: tempfile.TemporaryDirectory[str] | None = None
    """The folder, if it goes with the last reference to the lists."""

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
        lengths = np.concatenate([_lengths(batch, "positives") for batch in self._lists])
        # Items in order: every positive of query 0, of query 1, …
        self._query = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._positive = (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32)

    def _described(self) -> str:
        return f"{super()._described()}, {counted(self.negatives, f'{self.sampling} negative')} each"

    def _open(self) -> None:
        self._lists = _batches(self.folder / "groups.arrow")
        self._texts = _batches(self.folder / "texts.arrow")
        names = self._texts[0].schema.names
        self.attributes = len(self._texts[0].column("signs")[0]) if "signs" in names else 0
        self.targeted = "gendered" in names

    def __getstate__(self) -> dict[str, object]:
        # A data-loading process opens the maps itself.
        return {name: value for name, value in self.__dict__.items() if name not in ("_lists", "_texts", "temporary")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return len(self._query)

    def set_epoch(self, epoch: int) -> None:
        """Makes ``random`` draw other negatives and ``rotate`` other places: always the same for an epoch."""
        self.epoch = epoch

    def __getitem__(self, index: int) -> TrainingList:
        number = index
        if index < 0:
            index, number = -1 - index, -1
        query = int(self._query[index])
        batch, row = self._lists[query // _ROWS], query % _ROWS
        positives, negatives = _list(batch, "positives", row), _list(batch, "negatives", row)
        chosen = negatives[: self.negatives]
        if self.sampling == "random" and len(negatives) > self.negatives:
            rng = np.random.default_rng([self.seed, self.epoch, index])
            chosen = negatives[np.sort(rng.choice(len(negatives), self.negatives, replace=False))]
        place = int(self._positive[index])
        grade = float(_list(batch, "grades", row)[place])
        rows = [int(row) for row in (positives[place], *chosen)]
        texts = [self._text(row) for row in rows]
        sides = [self._value("signs", row) for row in rows] if self.attributes else None
        target = [self._value("gendered", row) for row in rows] if self.targeted else None
        relevance = [grade] + [0.0] * len(chosen)
        return TrainingList(number, batch.column("query")[row].as_py(), texts, relevance, sides, target)

    def query_id(self, index: int) -> str:
        """The query of an item, for messages."""
        query = int(self._query[index])
        return str(self._lists[query // _ROWS].column("query_id")[query % _ROWS].as_py())

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


def collate(lists: Sequence[TrainingList]) -> CandidateLists:
    """Items as one batch; relevance and sides are padded with 0, what is known for an adversary with −1."""
    longest = max(len(one.passages) for one in lists)
    relevance = torch.tensor([one.relevance + [0.0] * (longest - len(one.relevance)) for one in lists])
    sides = None
    if lists[0].sides is not None:
        rows = [torch.tensor(one.sides, dtype=torch.int8) for one in lists]
        sides = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).permute(2, 0, 1)
    target = None
    if lists[0].gendered is not None:
        rows = [torch.tensor(one.gendered, dtype=torch.int8) for one in lists]
        target = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    return CandidateLists([one.query for one in lists], [one.passages for one in lists], relevance, sides, target)
