"""What texts say about groups: counts, magnitudes and neutrality, for a table or for a whole collection."""

from __future__ import annotations

import functools
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, InputError
from evenrank.io.files import atomic_path
from evenrank.io.progress import progress
from evenrank.io.texts import scan_collection

from . import _kernel
from .lexicon import REST, Lexicon
from .tokens import Tokens, alphabet, tokenize

Magnitude = Literal["count", "bool", "tf", "tf_words", "tf_literal"]
MAGNITUDES: tuple[Magnitude, ...] = ("count", "bool", "tf", "tf_words", "tf_literal")
DEFAULT_MAGNITUDES: tuple[Magnitude, ...] = ("tf", "bool", "tf_words")
METADATA_KEY = b"evenrank"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Scoring:
    """How documents are scored: the lexicon, the tokenisation, the magnitudes and the neutrality threshold τ ≥ 0."""

    lexicon: Lexicon
    tokens: Tokens = "word"
    magnitudes: tuple[Magnitude, ...] = DEFAULT_MAGNITUDES
    threshold: float = 1

    def __post_init__(self) -> None:
        if self.tokens not in ("word", "whitespace"):
            raise EvenrankError(f"--tokens: expected word or whitespace, found {self.tokens!r}")
        unknown = [kind for kind in self.magnitudes if kind not in MAGNITUDES]
        if unknown:
            raise EvenrankError(f"--magnitudes: expected some of {', '.join(MAGNITUDES)}, found {unknown[0]!r}")
        if not self.threshold >= 0:
            raise EvenrankError(f"--threshold: expected 0 or more, found {self.threshold!r}")

    def describe(self) -> dict[str, Any]:
        """The settings as JSON values; stored with every score file."""
        return {
            "lexicon": self.lexicon.name,
            "groups": list(self.lexicon.groups),
            "shares": list(self.lexicon.shares),
            "poles": list(self.lexicon.poles) if self.lexicon.poles else None,
            "tokens": self.tokens,
            "threshold": self.threshold,
        }


def score_texts(table: pl.DataFrame, scoring: Scoring) -> pl.DataFrame:
    """The score table of documents: one row for each row of ``table`` (``doc_id``, ``text``), in its order.

    Columns: ``doc_id``, ``tokens``, ``count_<group>``, ``magnitude_<kind>_<group>`` and ``neutrality``, as measures.md
    §1, §2 and §4 define them.
    """
    total, count, tf_words, tf_literal = _count(table["text"], scoring)
    columns: dict[str, Any] = {"doc_id": table["doc_id"], "tokens": total}
    groups = scoring.lexicon.groups
    for g, group in enumerate(groups):
        columns[f"count_{group}"] = count[:, g]
    for kind in scoring.magnitudes:
        by_group = {"tf_words": tf_words, "tf_literal": tf_literal}.get(kind)
        for g, group in enumerate(groups):
            column = by_group[:, g] if by_group is not None else magnitude_of_count(count[:, g], kind)
            columns[f"magnitude_{kind}_{group}"] = np.ascontiguousarray(column)
    columns["neutrality"] = neutrality(count, scoring.lexicon.shares, scoring.threshold)
    return pl.DataFrame(columns)


def magnitude_of_count(count: Array, kind: Magnitude) -> Array:
    """The magnitude of a group's count [N] for the kinds that need no more than it: count, bool and tf.

    ``tf`` is ln(1 + count), one log of the group's total [RS20].
    """
    if kind == "count":
        return count.astype(np.float64)
    if kind == "bool":
        return (count > 0).astype(np.float64)
    if kind == "tf":
        return np.log1p(count)
    raise ValueError(f"{kind} cannot be had from counts")


def neutrality(count: Array, shares: Sequence[float], threshold: float = 1) -> Array:
    """Neutrality in [0, 1] of documents with ``count`` [N, G] tokens of each group [RKS21, eq. 1].

    1 where the total c is at most ``threshold``, else 1 − Σ_a |c_a/c − J_a| / (2(1 − min J)); for two groups with
    equal shares J that is the published form 1 − Σ_a |c_a/c − J_a|.

    >>> neutrality(np.array([[1, 0], [2, 0], [3, 1], [2, 2]]), [0.5, 0.5]).tolist()
    [1.0, 0.0, 0.5, 1.0]
    """
    total = count.sum(axis=1)
    target = np.asarray(shares, dtype=np.float64)
    share = count / np.maximum(total, 1)[:, None]
    distance = np.abs(share - target).sum(axis=1) / (2 * (1 - target.min()))
    # Rounding must not make a document of one group alone slightly worse than 0.
    return np.where(total <= threshold, 1.0, np.clip(1 - distance, 0.0, 1.0))


def signed_magnitude(scores: pl.DataFrame, kind: Magnitude, poles: tuple[str, str]) -> pl.Series:
    """The signed magnitude of each document: that of the first pole minus that of the second.

    With ``rest`` as second pole, the mean over all other groups is subtracted. Raises EvenrankError where the table
    lacks a column that the kind needs.
    """
    groups = score_groups(scores)
    if REST in poles:
        others = [group for group in groups if group != poles[0]]
        second = pl.mean_horizontal(*[_magnitude(scores, kind, group) for group in others])
    else:
        second = _magnitude(scores, kind, poles[1])
    return scores.select((_magnitude(scores, kind, poles[0]) - second).alias("magnitude"))["magnitude"]


def _magnitude(scores: pl.DataFrame, kind: Magnitude, group: str) -> pl.Expr:
    column, count = f"magnitude_{kind}_{group}", f"count_{group}"
    if column in scores.columns:
        return pl.col(column)
    if kind in ("count", "bool", "tf") and count in scores.columns:
        number = pl.col(count).cast(pl.Float64)
        return {"count": number, "bool": (number > 0).cast(pl.Float64), "tf": number.log1p()}[kind]
    raise EvenrankError(f"the score table has no column {column}: score the collection with --magnitudes {kind!r}")


def score_groups(scores: pl.DataFrame) -> list[str]:
    """The groups that a score table counts, in its order."""
    return [column.removeprefix("count_") for column in scores.columns if column.startswith("count_")]


def bias_labels(magnitude: Array) -> Array:
    """+1 where a signed magnitude [N] is above 1e-9, −1 below −1e-9, else 0 [IBBR §2.2]."""
    return (magnitude > 1e-9).astype(np.int8) - (magnitude < -1e-9).astype(np.int8)


# --- a whole collection --------------------------------------------------------------------------------------------


def score_batches(
    batches: Iterable[pl.DataFrame], scoring: Scoring, *, workers: int | None = None
) -> Iterator[pl.DataFrame]:
    """Score tables of batches of documents, in order, on ``workers`` threads (default: one a core)."""
    workers = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[pl.DataFrame]] = deque()
        for batch in batches:
            waiting.append(pool.submit(score_texts, batch, scoring))
            # Bounded: the reader must not run ahead of the counting.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def score_collection(
    collection: str | os.PathLike[str], out: str | os.PathLike[str], scoring: Scoring, *, quiet: bool = True
) -> int:
    """Scores a collection in one streaming pass over all cores into a Parquet file; returns the number of documents.

    Memory stays at a few batches, whatever the collection's size (and eight bytes a document to find repeated ids).
    The file appears whole or not at all.
    """
    import pyarrow.parquet as pq

    rows = 0
    writer = None
    with atomic_path(out) as part, progress("documents", quiet=quiet) as advance:
        try:
            for table in score_batches(scan_collection(collection), scoring):
                arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
                if writer is None:
                    metadata = {METADATA_KEY: json.dumps(scoring.describe()).encode()}
                    writer = pq.ParquetWriter(part, arrow.schema.with_metadata(metadata), compression="zstd")
                writer.write_table(arrow.cast(writer.schema))
                rows += table.height
                advance(table.height)
        finally:
            if writer is not None:
                writer.close()
    return rows


@dataclass(frozen=True, slots=True)
class Scores:
    """A score table (one row a document) with the settings it was made with."""

    table: pl.DataFrame
    lexicon: str
    shares: tuple[float, ...]
    poles: tuple[str, str] | None
    settings: dict[str, Any]

    @classmethod
    def from_texts(cls, texts: pl.DataFrame, scoring: Scoring) -> Scores:
        """Scores documents held in memory (``doc_id``, ``text``), on all cores."""
        tables = list(score_batches(texts.iter_slices(1 << 15), scoring))
        table = pl.concat(tables) if tables else score_texts(texts, scoring)
        return cls.of(table, scoring.describe())

    @classmethod
    def of(cls, table: pl.DataFrame, settings: dict[str, Any] | None = None) -> Scores:
        """Scores from a table; without settings, groups are read from its columns, with equal shares."""
        groups = score_groups(table)
        if settings is None:
            settings = {"lexicon": "unknown"}
        shares = tuple(settings.get("shares") or [1 / len(groups)] * len(groups))
        poles = tuple(settings.get("poles") or (("m", "f") if {"m", "f"} <= set(groups) else ()))
        return cls(table, settings["lexicon"], shares, (poles[0], poles[1]) if poles else None, settings)


def read_scores(path: str | os.PathLike[str], ids: pl.Series | None = None) -> Scores:
    """A score file written by :func:`score_collection`, whole or for the documents that ``ids`` names.

    Raises InputError for a file that is no score table: not Parquet, a column missing, an id that stands twice.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not os.path.exists(path):
        raise InputError(path, "no such file")
    try:
        metadata = pq.read_metadata(path).metadata or {}
        frame = pl.scan_parquet(path)
        columns = frame.collect_schema().names()
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        raise InputError(path, f"no Parquet file that can be read ({str(error).splitlines()[0]})") from None
    needed = [c for c in ("doc_id", "neutrality") if c not in columns]
    if needed or not any(column.startswith("count_") for column in columns):
        raise InputError(path, f"no score table: no column {needed[0] if needed else 'count_<group>'}")
    frame = frame.with_columns(pl.col("doc_id").cast(pl.String))
    if ids is not None:
        frame = frame.join(pl.LazyFrame({"doc_id": ids.unique()}), on="doc_id", how="semi")
    table = frame.collect(engine="streaming")
    if table["doc_id"].is_duplicated().any():
        repeated = table.filter(pl.col("doc_id").is_duplicated())["doc_id"][0]
        raise InputError(path, f"the document {repeated!r} stands twice")
    stored = metadata.get(METADATA_KEY)
    return Scores.of(table, json.loads(stored) if stored else None)


# --- the kernel's inputs -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _matcher(lexicon: Lexicon, tokens: Tokens) -> tuple[Array, ...]:
    """A lexicon as the arrays that the kernel walks: token table, trie of entries, group of each entry."""
    entries = lexicon.entries(tokens)
    token_ids: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    node_entry = [-1]
    entry_group = []
    for number, (key, group) in enumerate(entries.items()):
        node = 0
        for token in key:
            edge = (node, token_ids.setdefault(token, len(token_ids)))
            if edge not in nodes:
                nodes[edge] = len(node_entry)
                node_entry.append(-1)
            node = nodes[edge]
        node_entry[node] = number
        entry_group.append(lexicon.groups.index(group))
    token_hashes = {_kernel.fnv(list(map(ord, token))): number for token, number in token_ids.items()}
    edge_hashes = {
        ((((node << 32) | token) ^ _kernel.FNV_OFFSET) * _kernel.FNV_PRIME) & ((1 << 64) - 1): child
        for (node, token), child in nodes.items()
    }
    return (
        *_hash_table(token_hashes),
        *_hash_table(edge_hashes),
        np.array(node_entry, dtype=np.int32),
        np.array(entry_group, dtype=np.int32),
    )


def _hash_table(items: dict[int, int]) -> tuple[Array, Array]:
    """Open addressing at a quarter full at most: keys [2^n] uint64 and values [2^n] int32, −1 where empty."""
    size = 1 << max(4, (4 * len(items)).bit_length())
    keys = np.zeros(size, dtype=np.uint64)
    slots = np.full(size, -1, dtype=np.int32)
    for key, value in items.items():
        place = (key ^ (key >> 29)) & (size - 1)
        while slots[place] >= 0:
            place = (place + 1) & (size - 1)
        keys[place], slots[place] = key, value
    return keys, slots


def _count(texts: pl.Series, scoring: Scoring) -> tuple[Array, Array, Array, Array]:
    """Tokens [N], count [N, G], tf_words [N, G] and tf_literal [N, G] of each text."""
    import pyarrow as pa

    column = texts.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.zeros(0, dtype=np.uint8)
    keys, slots, node_keys, node_slots, node_entry, entry_group = _matcher(scoring.lexicon, scoring.tokens)
    result: tuple[Array, Array, Array, Array] = _kernel.count_entries(
        data,
        offsets[:-1],
        offsets[1:],
        scoring.tokens == "word",
        *alphabet(scoring.tokens),
        keys,
        slots,
        node_keys,
        node_slots,
        node_entry,
        entry_group,
        len(scoring.lexicon.groups),
    )
    return result


def gendered_spans(text: str, lexicon: Lexicon) -> list[tuple[int, int, str]]:
    """Where a text's ``word`` tokens match the lexicon: start, end (characters) and group, as the kernel matches."""
    from .tokens import word_spans

    entries = lexicon.entries("word")
    longest = max(map(len, entries))
    spans = word_spans(text)
    tokens = tokenize(text)
    found = []
    place = 0
    while place < len(tokens):
        for length in range(min(longest, len(tokens) - place), 0, -1):
            group = entries.get(tuple(tokens[place : place + length]))
            if group is not None:
                found.append((spans[place][0], spans[place + length - 1][1], group))
                place += length - 1
                break
        place += 1
    return found
