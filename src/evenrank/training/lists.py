"""Training lists on disk: built once from a run, judgements and texts, then memory-mapped.

A folder contains ``texts.arrow`` (every passage once, with its id and, if asked for, its sides) and ``groups.arrow``
(for each query its text and the rows of its positives and negatives). Training needs no more memory than a batch,
whatever their size.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import torch

from evenrank import options as opt
from evenrank.files import (
    EvenrankError,
    InputError,
    Run,
    as_collection,
    as_qrels,
    as_queries,
    as_run,
    atomic_path,
    make_folder,
    read_texts,
    write_text,
)
from evenrank.files.arguments import checked
from evenrank.files.convert import first_of, frame_of
from evenrank.files.errors import arg, quoted
from evenrank.files.reading import line_blocks, open_binary, open_parquet, read_bytes, refuse_pipe
from evenrank.files.tables import lines_of
from evenrank.files.types import Array
from evenrank.files.wording import are, counted
from evenrank.groups import GroupTable, Scoring, as_labels, sides_of_texts
from evenrank.mitigation.attributes import Attribute, Attributes, attributes_of, rows_of, scorings_of, sides_by
from evenrank.mitigation.blind import blind, mask_texts
from evenrank.mitigation.rotation import Mode, cut_of, mixed_seed, rotated
from evenrank.models.protocol import CandidateLists

ADVERSARY = "adversary"
"""The name of an adversary's labels among those of the attributes."""


@dataclass(frozen=True, slots=True)
class PassageGroups:
    """The ``attributes`` for which passages get a side, and the labels of an adversary's ``target``, if it has any.

    ``values``: a number of each passage, ``doc_id`` and ``value``, if a term wants one.
    ``label``: what makes a passage gendered, that it is not ``neutrality`` 1, or ``any`` weight of a group.
    """

    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    target: GroupTable | None = None
    label: Literal["neutrality", "any"] = "neutrality"
    values: pl.DataFrame | None = None

    @property
    def labels(self) -> dict[str, GroupTable]:
        """The labels, by the name of their attribute."""
        labels = {name: attribute for name, attribute in self.attributes.items() if isinstance(attribute, GroupTable)}
        return labels if self.target is None else {**labels, ADVERSARY: self.target}

    def columns(self, texts: pl.DataFrame) -> list[pl.Series]:
        """``signs``: the sides of each text, one for each attribute [IBBR §2.2]; ``gendered``: 1, 0, or −1 (unknown).

        ``value``: its number. Raises EvenrankError for labels that know none of the passages, and for a passage without
        a finite number where there are numbers.
        """
        columns = []
        if self.attributes:
            sides = [sides_by(attribute, texts) for attribute in self.attributes.values()]
            columns.append(pl.Series("signs", np.stack(sides, axis=1)).cast(pl.List(pl.Int8)))
        if self.target is not None:
            from .adversarial import gendered_by_label

            columns.append(pl.Series("gendered", gendered_by_label(texts["doc_id"], self.target, self.label)))
        if self.values is not None:
            columns.append(values_of(texts["doc_id"], self.values))
        return columns

    def counts(self, passages: pl.Series, relevant: pl.Series) -> dict[str, int]:
        """How many of the passages and of the ``relevant`` ones there are, and how many each of the labels knows."""
        if not self.labels:
            return {}
        counts = {"passages": len(passages), "relevant": relevant.n_unique()}
        for name, labels in self.labels.items():
            known = passages.filter(pl.Series(rows_of(labels, passages) >= 0))
            counts[f"known_{name}"] = len(known)
            counts[f"known_relevant_{name}"] = int(relevant.unique().is_in(known.implode()).sum())
        return counts


def values_of(passages: pl.Series, values: pl.DataFrame) -> pl.Series:
    """The ``value`` of each passage. Raises EvenrankError for a passage without one, with two, or not a finite one."""
    if not {"doc_id", "value"} <= {*values.columns} or not values.schema["value"].is_numeric():
        raise EvenrankError(f"{arg.values}: expected the columns doc_id and value (numbers), found {values.columns}")
    known = values.select(pl.col("doc_id").cast(pl.String), pl.col("value").cast(pl.Float32))
    if known["doc_id"].is_duplicated().any():
        raise EvenrankError(f"{arg.values}: a passage has two values")
    joined = passages.to_frame().join(known, on="doc_id", how="left", maintain_order="left")
    bad = joined.filter(~pl.col("value").is_finite().fill_null(False))["doc_id"]
    if len(bad):
        raise EvenrankError(f"{arg.values}: the passage {quoted(bad[0])} has no finite value")
    return joined["value"]


def label_lines(labels: Mapping[str, Mapping[str, int]]) -> list[str]:
    """How much the labels of each attribute know, in words."""
    return [
        f"labels ({name}): {n['known']:,} of {n['passages']:,} training passages have one ({n['known_relevant']:,} of"
        f" {n['relevant']:,} relevant ones), {n['known_validated']:,} of {n['validated']:,} validated ones; the others"
        f" are unknown and {'left out' if name == ADVERSARY else 'on no side'}"
        for name, n in labels.items()
    ]


def read_list_file(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Training lists from a file (Parquet or JSONL): ``query_id``, ``doc_id`` (list), ``label`` (list).

    Raises InputError, with the row, for a list without a positive (label ≥ 1), one whose labels are all equal, and
    one whose columns differ in length.
    """
    table = _parquet_lists(path) if _is_parquet(path) else _json_lists(path)
    numbers = pl.col("label").list
    problems = {
        "a query_id, a doc_id or a label is missing": pl.any_horizontal(
            pl.col("query_id", "doc_id", "label").is_null(),
            pl.col("doc_id").list.eval(pl.element().is_null()).list.any(),
            numbers.eval(pl.element().is_null()).list.any(),
        ),
        "a label is no finite number": ~numbers.eval(pl.element().is_finite()).list.all(),
        "the lists of doc_id and label differ in length": pl.col("doc_id").list.len() != pl.col("label").list.len(),
        "all labels are equal: there is nothing to learn": pl.col("label").list.n_unique() < 2,
        "there is no positive (a label of 1 or more)": pl.col("label").list.max() < 1,
    }
    for problem, wrong in problems.items():
        bad = table.filter(wrong.fill_null(True))
        if bad.height:
            raise InputError(path, f"query {quoted(bad['query_id'][0])}: {problem}", line=int(bad["line"][0]))
    return table.drop("line")


_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "query_id": pl.String,
    "doc_id": pl.List(pl.String),
    "label": pl.List(pl.Float64),
}


def _parquet_lists(path: str | os.PathLike[str]) -> pl.DataFrame:
    with open_parquet(path) as file:
        if not {*_COLUMNS} <= {*file.schema}:
            raise InputError(path, "expected query_id, and lists under doc_id and label")
        table = file.read([*_COLUMNS])
        if not all(isinstance(table.schema[name], pl.List) for name in ("doc_id", "label")):
            raise InputError(path, "expected query_id, and lists under doc_id and label")
        return table.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items()).with_row_index("line", offset=1)


def _json_lists(path: str | os.PathLike[str]) -> pl.DataFrame:
    expected = "expected a JSON object with query_id, and lists under doc_id and label (numbers)"
    rows, parts = _json_rows(path, expected, _json_list), []
    while part := list(itertools.islice(rows, 1 << 16)):
        lines, lists = zip(*part, strict=True)
        queries, docs, labels = zip(*lists, strict=True)
        # Arrow makes lists of lists into columns several times faster than polars.
        columns = {
            "query_id": pa.array(queries, pa.large_string()),
            "doc_id": pa.array(docs, pa.large_list(pa.large_string())),
            "label": pa.array(labels, pa.large_list(pa.float64())),
            "line": pa.array(lines, pa.uint32()),
        }
        parts.append(pl.DataFrame(pa.table(columns)))
    if not parts:
        raise InputError(path, "the file has no line")
    return pl.concat(parts)


def _is_parquet(path: str | os.PathLike[str]) -> bool:
    refuse_pipe(path)
    with open_binary(path) as stream:
        return read_bytes(path, stream, 4) == b"PAR1"


def _json_rows(
    path: str | os.PathLike[str], expected: str, parse: Callable[[object], Any]
) -> Iterator[tuple[int, Any]]:
    """The lines of a file, numbered, as ``parse`` makes them of their JSON values. Raises InputError for another."""
    for block in line_blocks(path):
        for line, content in lines_of(block).iter_rows():
            try:
                yield line, parse(json.loads(content))
            except (ValueError, RecursionError):
                raise InputError(path, f"{expected}, found {quoted(content)}", line=line) from None


def _json_list(value: object) -> tuple[str, list[str], list[float]]:
    """The three values of a list. Raises ValueError if one has another form."""
    query_id, doc_ids, labels = (value.get(name) for name in _COLUMNS) if isinstance(value, dict) else (None,) * 3
    if not (isinstance(doc_ids, list) and isinstance(labels, list)):
        raise ValueError
    if type(query_id) not in _ID or not {*map(type, doc_ids)} <= _ID or not {*map(type, labels)} <= {int, float}:
        raise ValueError
    texts = [*map(str, doc_ids)]
    "".join([str(query_id), *texts]).encode()  # half a surrogate pair is a ValueError too
    try:
        return str(query_id), texts, [*map(float, labels)]
    except OverflowError:
        raise ValueError from None


_ID = {str, int}


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
        count = counted(len(absent), "training passage")
        raise EvenrankError(f"{count} {are(len(absent))} not in {where}: {first_of(absent)}")
    table = table.join(queries.rename({"text": "query"}), on="query_id", how="left", maintain_order="left")
    lacking = table.filter(pl.col("query").is_null())["query_id"]
    if len(lacking):
        raise EvenrankError(f"{counted(len(lacking), 'training query')} without a text: {first_of(lacking)}")
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
    group_columns = groups.columns(texts)
    counts |= groups.counts(texts["doc_id"], relevant)
    if masked is not None:
        texts = blind(texts, masked)
        table = table.with_columns(mask_texts(table["query"], scoring=masked))
    _write_arrow(texts.select("doc_id", "text", *group_columns), folder / "texts.arrow")
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

    ``gendered`` [K]: 1, 0 or −1 (unknown), for an adversary, if that is by label. ``values`` [K]: a number of each.
    """

    index: int
    query: str
    passages: list[str]
    relevance: list[float]
    sides: list[list[int]] | None = None
    gendered: list[int] | None = None
    values: list[float] | None = None


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

    def texts(self) -> pl.DataFrame:
        """The distinct texts of queries and passages, ``doc_id`` and ``text``: what word vectors are made for."""
        items = map(self.__getitem__, range(len(self)))
        return _numbered(pl.Series([text for item in items for text in (item.query, *item.passages)], dtype=pl.String))


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
        self._lists = _batches(self.folder / "groups.arrow")
        self._texts = _batches(self.folder / "texts.arrow")
        self._columns = self._texts[0].schema.names
        self.attributes = len(self._texts[0].column("signs")[0]) if "signs" in self._columns else 0
        lengths = np.concatenate([_lengths(batch, "positives") for batch in self._lists])
        # Items in order: every positive of query 0, of query 1, …
        self._query = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._positive = (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32)

    def _described(self) -> str:
        return f"{super()._described()}, {counted(self.negatives, f'{self.sampling} negative')} each"

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
        known = (
            [self._value(column, row) for row in rows] if column in self._columns else None
            for column in ("signs", "gendered", "value")
        )
        relevance = [grade] + [0.0] * len(chosen)
        return TrainingList(number, batch.column("query")[row].as_py(), texts, relevance, *known)

    def query_id(self, index: int) -> str:
        """The query of an item, for messages."""
        query = int(self._query[index])
        return str(self._lists[query // _ROWS].column("query_id")[query % _ROWS].as_py())

    def texts(self) -> pl.DataFrame:
        """The distinct texts of queries and passages, drawn or not."""
        columns = [part.column("query") for part in self._lists] + [part.column("text") for part in self._texts]
        return _numbered(pl.concat([pl.Series(pl.from_arrow(column), dtype=pl.String) for column in columns]))

    def _text(self, number: int) -> str:
        text = str(self._value("text", number))
        if self.rotate is None:
            return text
        cut = cut_of(text, self._value("doc_id", number), mixed_seed(self.seed, self.epoch), self.rotate)
        return rotated(text, cut)

    def _value(self, column: str, number: int) -> Any:
        return self._texts[number // _ROWS].column(column)[number % _ROWS].as_py()


def _numbered(texts: pl.Series) -> pl.DataFrame:
    distinct = texts.unique(maintain_order=True)
    return pl.DataFrame({"doc_id": pl.int_range(len(distinct), eager=True).cast(pl.String), "text": distinct})


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
    """Items as one batch; relevance, sides and values are padded with 0, what is known for an adversary with −1."""

    def padded(name: str, dtype: torch.dtype = torch.float32, padding: int = 0) -> torch.Tensor | None:
        if getattr(lists[0], name) is None:
            return None
        rows = [torch.tensor(getattr(list_, name), dtype=dtype) for list_ in lists]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding)

    sides = padded("sides", torch.int8)
    return CandidateLists(
        [list_.query for list_ in lists],
        [list_.passages for list_ in lists],
        padded("relevance"),
        None if sides is None else sides.permute(2, 0, 1),
        padded("gendered", torch.int8, -1),
        padded("values"),
    )


_EXPECTED = "expected query (a text), passages (texts) and relevance (numbers)"


class MemoryLists(ListDataset):
    """Lists in memory, each an item, all of its passages in every epoch."""

    def __init__(self, lists: Sequence[TrainingList]) -> None:
        self.lists = list(lists)
        sides = self.lists[0].sides
        self.attributes = 0 if sides is None else len(sides[0])

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, index: int) -> TrainingList:
        return self.lists[index] if index >= 0 else replace(self.lists[-1 - index], index=-1)

    def query_id(self, index: int) -> str:
        """The query itself."""
        return quoted(self.lists[index].query)


@checked
def training_lists(
    run: object = None,
    *,
    qrels: object = None,
    collection: object,
    queries: object,
    groups: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    depth: Annotated[int, opt.COUNT] = 1000,
    negatives: int = 20,
    lexicon: Attributes | None = None,
    labels: opt.Labels = None,
    values: object = None,
) -> TrainingLists:
    """The training lists of a run: each judged relevant passage with negatives drawn from its query's list.

    ``run``, ``qrels``, ``collection``, ``queries``: files or tables, as :func:`evenrank.audit` takes them; or, instead
    of ``run`` and ``qrels``, ``groups``: a file of lists that :func:`evenrank.write_negatives` made. The lists are
    written to the folder ``out`` (a temporary one by default) and memory-mapped. ``depth``: how much of each list is
    used; ``negatives``: how many passages join the positive, drawn anew each epoch; ``lexicon``: passages get the sides
    that a fairness term needs; or from ``labels`` by document, as :func:`evenrank.as_labels` takes them (for several
    attributes, ``lexicon`` may name group tables of labels). A passage without a label has side 0; ``counts.json`` in
    ``out`` says how many have one. ``values``: a frame with ``doc_id`` and ``value``, a number of each passage (its
    neutrality, a teacher's score) for a :class:`FunctionTerm` that takes them.

    Raises EvenrankError for a passage or a query without a text, a passage without a value if there are values, for
    labels that know no passage, and if no query has both kinds of passages.
    """
    if (groups is None) == (run is None or qrels is None):
        raise EvenrankError(f"`training_lists`: expected {arg.run} and {arg.qrels}, or {arg.groups}")
    texts, query_texts = as_collection(collection), as_queries(queries)
    chosen = lexicon if labels is None else as_labels(labels)
    value_table = frame_of(values, str(arg.values))
    if value_table is None and values is not None:
        raise EvenrankError(f"{arg.values}: expected a frame with doc_id and value, found {type(values).__name__}")
    kept_groups = PassageGroups({} if chosen is None else attributes_of(chosen), values=value_table)
    temporary = tempfile.TemporaryDirectory() if out is None else None
    place = out if temporary is None else temporary.name
    assert place is not None
    if groups is not None:
        build_from_file(groups, texts, query_texts, place, groups=kept_groups)
    else:
        build_lists(as_run(run), as_qrels(qrels), texts, query_texts, place, depth=depth, groups=kept_groups)
    lists = TrainingLists(place, negatives=negatives)
    lists.temporary = temporary
    return lists


def as_lists(given: object, attributes: Sequence[Attribute] = ()) -> ListDataset:
    """Training lists from a :class:`ListDataset`, a file, a frame or records, with sides for each of ``attributes``.

    A file (JSONL or Parquet), frame (polars, pandas, Arrow) or record has ``query``, ``passages`` (or ``docs``) and
    ``relevance`` (or ``labels``), as ``evenrank negatives --format labeled-list`` writes them, and perhaps ``sides``:
    +1, −1 or 0 for each passage, a list of them for several attributes, and ``values``: a number for each. Missing
    sides come from the texts: labels are by document, so with them the lists have to have sides.

    Raises InputError, with the line, for a file that cannot be used; EvenrankError for other input that cannot.
    """
    if isinstance(given, ListDataset):
        lists = given
    else:
        items = list(_of_file(given) if isinstance(given, str | os.PathLike) else _of_rows(given))
        if not items:
            raise EvenrankError("`lists`: expected at least one list, found none")
        _check_sides(items)
        if items[0].sides is None and attributes:
            by_words = scorings_of({str(number): attribute for number, attribute in enumerate(attributes)})
            items = _with_sides(items, list(by_words.values()))
        lists = MemoryLists(items)
    if attributes and lists.attributes != len(attributes):
        if not lists.attributes:
            hint = f": pass {arg.lexicon} or {arg.labels} to training_lists" if isinstance(lists, TrainingLists) else ""
            raise EvenrankError(f"`lists`: no passage has a side{hint}")
        there = counted(lists.attributes, "attribute")
        raise EvenrankError(f"`lists`: the passages have sides for {there}, expected {len(attributes)}")
    return lists


def _check_sides(lists: Sequence[TrainingList]) -> None:
    """Raises EvenrankError unless all lists have sides for the same number of attributes, or none; values alike."""
    attributes = [0 if list_.sides is None else len(list_.sides[0]) for list_ in lists]
    other = next((number for number, count in enumerate(attributes) if count != attributes[0]), None)
    if other is not None:
        sides = f"expected sides for {counted(attributes[0], 'attribute')}, as in list 1, found {attributes[other]}"
        raise EvenrankError(f"`lists`: list {other + 1}: {sides}")
    if len({list_.values is None for list_ in lists}) > 1:
        raise EvenrankError("`lists`: some have values, others none: expected them in all or in none")


def _with_sides(lists: Sequence[TrainingList], scorings: Sequence[Scoring]) -> list[TrainingList]:
    texts = [text for list_ in lists for text in list_.passages]
    sides = iter(zip(*(sides_of_texts(texts, scoring).tolist() for scoring in scorings), strict=True))
    return [replace(list_, sides=[list(next(sides)) for _ in list_.passages]) for list_ in lists]


def _of_rows(given: object) -> Iterator[TrainingList]:
    frame = frame_of(given, "`lists`")
    rows = given if frame is None else frame.iter_rows(named=True)
    if not isinstance(rows, Iterable):
        raise EvenrankError(f"`lists`: expected a path, a table or records, found {type(given).__name__}")
    for number, row in enumerate(rows):
        try:
            yield _parsed(row, number)
        except ValueError as error:
            raise EvenrankError(f"`lists`: row {number + 1}: {error}") from None


def _of_file(path: str | os.PathLike[str]) -> Iterator[TrainingList]:
    if _is_parquet(path):
        with open_parquet(path) as file:
            rows: Iterator[tuple[int, Any]] = enumerate(file.read().iter_rows(named=True), start=1)
    else:
        rows = _json_rows(path, "expected a JSON object", lambda row: row)
    for number, (line, row) in enumerate(rows):
        try:
            yield _parsed(row, number)
        except ValueError as error:
            raise InputError(path, str(error), line=line) from None


def _parsed(row: object, number: int) -> TrainingList:
    """A record as a list. Raises ValueError for a record of another form."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{_EXPECTED}, found {type(row).__name__}")
    if "positive" in row and "passages" not in row:
        raise ValueError(
            "expected passages and relevance, found positive: write query = anchor, passages = [positive, a negative],"
            f" relevance = [1, 0]; {arg('in_batch', True)} adds the passages of the batch's other lists to these"
        )
    query, sides = row.get("query"), row.get("sides")
    passages, relevance = row.get("passages", row.get("docs")), row.get("relevance", row.get("labels"))
    if not isinstance(query, str) or not _is_list(passages, str) or not _is_list(relevance, int | float):
        raise ValueError(f"{_EXPECTED}, found {quoted(json.dumps(dict(row), default=str, ensure_ascii=False))}")
    try:
        grades = [float(value) for value in relevance]
    except OverflowError:
        raise ValueError("expected finite relevance") from None
    if not passages or len(passages) != len(grades):
        raise ValueError(f"expected a relevance for each passage, found {len(grades)} for {len(passages)} passages")
    if not all(map(math.isfinite, grades)) or len(set(grades)) < 2:
        raise ValueError("expected finite relevance that is not equal for all passages: there is nothing to learn")
    values = row.get("values")
    if values is not None:
        if not _is_list(values, int | float) or len(values) != len(grades) or not all(map(math.isfinite, values)):
            raise ValueError("values: expected a finite number for each passage")
        values = [float(value) for value in values]
    passage_sides = None if sides is None else _sides(sides, len(grades))
    return TrainingList(number, query, list(passages), grades, passage_sides, values=values)


def _is_list(values: object, kind: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)  # type: ignore[arg-type]


def _sides(sides: object, passages: int) -> list[list[int]]:
    rows = sides if isinstance(sides, list | tuple) else ()
    table = [list(row) if isinstance(row, list | tuple) else [row] for row in rows]
    known = all(
        len(row) == len(table[0]) and all(type(side) is int and abs(side) <= 1 for side in row) for row in table
    )
    if len(table) != passages or not known:
        raise ValueError("sides: expected +1, -1 or 0 for each passage (a list of them for several attributes)")
    return table
