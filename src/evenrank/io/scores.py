"""The score table: what each document says of each group, and the one way to read magnitudes from it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from .convert import frame_of, id_column
from .errors import EvenrankError, InputError, shown
from .files import open_parquet, polars_table, reading_parquet
from .folders import files_of
from .tables import IdIndex, first_repeat

Magnitude = Literal["count", "bool", "tf", "tf_words", "tf_literal"]
MAGNITUDES: tuple[Magnitude, ...] = ("count", "bool", "tf", "tf_words", "tf_literal")
METADATA_KEY = b"evenrank"
REST = "rest"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Scores:
    """A score table with the settings it was made with.

    ``table`` has one row a document: ``doc_id``, ``tokens``, ``count_<group>``, ``magnitude_<kind>_<group>`` for the
    kinds asked for, ``neutrality``. ``shares``: target share of each group; ``poles``: the two groups whose difference
    is the signed magnitude, the positive one first (the second may be ``rest``), or None. ``source``: what the
    documents stand in, for messages.
    """

    table: pl.DataFrame
    groups: tuple[str, ...]
    shares: tuple[float, ...]
    poles: tuple[str, str] | None
    settings: dict[str, Any]
    source: str = "the collection"

    @classmethod
    def of(
        cls, table: pl.DataFrame, settings: dict[str, Any] | None = None, *, source: str = "the collection"
    ) -> Scores:
        """Scores from a table; without settings the groups are those of its columns, with equal shares.

        Where nobody named the poles of two groups, they are m and f, or else the groups in their order, and the
        setting ``poles_assumed`` says so. Raises EvenrankError where a column is missing, and for a value that no
        scoring gives.
        """
        missing = [column for column in ("doc_id", "neutrality") if column not in table.columns]
        groups = tuple(column.removeprefix("count_") for column in table.columns if column.startswith("count_"))
        if missing or not groups:
            raise EvenrankError(f"no score table: it has no column {missing[0] if missing else 'count_<group>'}")
        check_groups(groups)
        _check_values(table)
        settings = settings or {"lexicon": "unknown"}
        shares = settings.get("shares") or [1 / len(groups)] * len(groups)
        poles = settings.get("poles") or (["m", "f"] if {"m", "f"} <= set(groups) else None)
        if poles is None and len(groups) == 2:
            poles = groups
            settings = {**settings, "poles_assumed": True}
        settings = {**settings, "shares": list(shares), "poles": list(poles) if poles else None}
        # In one piece, so that a column is an array without a copy.
        return cls(table.rechunk(), groups, tuple(shares), (poles[0], poles[1]) if poles else None, settings, source)

    def signed_magnitude(
        self, kind: Magnitude, poles: tuple[str, str] | None = None, rows: Array | slice = slice(None)
    ) -> Array:
        """The signed magnitude of each document of ``rows``: that of the first pole minus that of the second.

        With ``rest`` as second pole, the mean over all other groups is subtracted. Raises EvenrankError where no poles
        are known or the table lacks a column that the kind needs.
        """
        poles = poles or self.poles
        if poles is None:
            raise EvenrankError(f"which groups to compare? the groups are {', '.join(self.groups)}; `poles='A,B'` says")
        unknown = [pole for pole in poles if pole not in (*self.groups, REST)]
        if unknown:
            raise EvenrankError(f"no group {shown(unknown[0])} in the score table, which has {', '.join(self.groups)}")
        others = [group for group in self.groups if group != poles[0]] if poles[1] == REST else [poles[1]]
        second = sum(self.magnitude(kind, group, rows) for group in others) / len(others)
        difference: Array = self.magnitude(kind, poles[0], rows) - second
        return difference

    def magnitude(self, kind: Magnitude, group: str, rows: Array | slice = slice(None)) -> Array:
        """The magnitude of one group in each document of ``rows``."""
        column = f"magnitude_{kind}_{group}"
        if column in self.table.columns:
            return self.table[column].to_numpy()[rows]
        if kind in ("count", "bool", "tf"):
            return magnitude_of_count(self.table[f"count_{group}"].to_numpy()[rows], kind)
        raise EvenrankError(f"the score table has no column {column}: score the collection with the magnitude {kind}")


def check_groups(groups: Sequence[str]) -> None:
    """Raises EvenrankError for two groups whose columns would have one name: ``tf_words`` of x is ``tf`` of words_x."""
    owner: dict[str, str] = {}
    for group in groups:
        for kind in MAGNITUDES:
            other = owner.setdefault(f"{kind}_{group}", group)
            if other != group:
                raise EvenrankError(
                    f"the groups {shown(other)} and {shown(group)} cannot stand side by side: both would have a "
                    f"column magnitude_{kind}_{group} in a score table"
                )


def magnitude_of_count(count: Array, kind: Magnitude) -> Array:
    """The magnitude of a group's count [D] for the kinds that need no more than it: count, bool and tf.

    ``tf`` is ln(1 + count), one log of the group's total [RS20].
    """
    if kind == "count":
        return count.astype(np.float64)
    if kind == "bool":
        return (count > 0).astype(np.float64)
    if kind == "tf":
        return np.log1p(count, dtype=np.float64)
    raise ValueError(f"{kind} cannot be had from counts")


def bias_labels(magnitude: Array) -> Array:
    """+1 where a signed magnitude [D] is above 1e-9, −1 below −1e-9, else 0 [IBBR §2.2]."""
    labels: Array = (magnitude > 1e-9).astype(np.int8) - (magnitude < -1e-9).astype(np.int8)
    return labels


def read_scores(path: str | os.PathLike[str], ids: Sequence[pl.Series] | None = None) -> Scores:
    """A score file or a folder of them, whole or for the documents that ``ids`` name (whole too where it is no longer
    than they are).

    Raises InputError for a file that is no score table: not Parquet, a column missing, an id that stands twice.
    """
    parts: list[pl.DataFrame] = []
    kept: set[bytes | None] = set()
    files = files_of(path)
    rows = 0
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            rows += file.metadata.num_rows
            kept.add((file.metadata.metadata or {}).get(METADATA_KEY))
    index = IdIndex(ids) if ids is not None and sum(map(len, ids)) < rows else None
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            columns = [column for column in file.schema_arrow.names if _is_scores(column)]
            if "doc_id" not in columns:
                raise InputError(name, "no score table: it has no column doc_id")
            parts += [_batch(name, batch, index) for batch in file.iter_batches(batch_size=1 << 18, columns=columns)]
    if not parts:
        raise InputError(path, "no score table: it holds no row")
    if len(kept) > 1:
        raise InputError(path, "its files were scored with different settings")
    stored = kept.pop()
    try:
        settings = json.loads(stored) if stored else None
    except (ValueError, RecursionError):
        settings = ()
    if settings is not None and not isinstance(settings, dict):
        raise InputError(path, "damaged: its settings are no JSON object")
    with reading_parquet(path, _UNREADABLE):
        table = pl.concat(parts)
        try:
            scores = Scores.of(table, _checked(path, settings), source=f"the scores {os.fspath(path)}")
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(path, str(error)) from None
        if len(scores.shares) != len(scores.groups) or not {*(scores.poles or ())} <= {*scores.groups, REST}:
            raise InputError(path, "damaged: its settings do not fit its groups")
        repeat = first_repeat(table, ["doc_id"])
        if repeat is not None:
            raise InputError(path, f"the document {shown(table['doc_id'][repeat[1]])} stands twice")
    return scores


_UNREADABLE = "no Parquet file that can be read"


def _is_scores(column: str) -> bool:
    return column in ("doc_id", "tokens", "neutrality") or column.startswith(("count_", "magnitude_"))


def as_scores(given: Any, ids: Sequence[pl.Series] | None = None, what: str = "`scores`") -> Scores:
    """Scores from a path (see :func:`read_scores`) or a frame; :class:`Scores` as they are.

    Raises EvenrankError, which begins with ``what``, for a frame that is no score table and for anything else.
    """
    if isinstance(given, Scores):
        return given
    if isinstance(given, str | os.PathLike):
        return read_scores(given, ids)
    table = frame_of(given, what)
    if table is None:
        raise EvenrankError(f"{what}: expected a path, Scores or a score table, found {type(given).__name__}")
    if "doc_id" in table.columns:
        table = table.with_columns(id_column(table["doc_id"], "doc_id", what))
    try:
        scores = Scores.of(table)
    except EvenrankError as error:
        raise EvenrankError(f"{what}: {error}") from None
    repeat = first_repeat(table, ["doc_id"])
    if repeat is not None:
        raise EvenrankError(f"{what}: the document {shown(table['doc_id'][repeat[1]])} stands twice")
    return scores


def _checked(path: str | os.PathLike[str], settings: dict[str, Any] | None) -> dict[str, Any] | None:
    """The settings, those that are used being of the right form."""
    shares, poles = (settings or {}).get("shares") or [], (settings or {}).get("poles") or []
    numbers = isinstance(shares, list) and all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    texts = isinstance(poles, list) and all(isinstance(pole, str) for pole in poles)
    if not (numbers and texts and len(poles) in (0, 2)):
        raise InputError(
            path, "damaged: expected numbers from 0 to 1 as shares and two groups as poles in its settings"
        )
    return settings


def _check_values(table: pl.DataFrame) -> None:
    """Raises EvenrankError for values that no scoring gives: they would make figures wrong without a word."""
    if table["doc_id"].null_count():
        raise EvenrankError(f"row {(table['doc_id'].is_null().arg_max() or 0) + 1}: the doc_id is missing")
    for name in table.columns:
        if name != "neutrality" and not name.startswith(("count_", "magnitude_")):
            continue
        column = table[name]
        # Arrays, not queries: polars' threads would be missing in a process forked from this one.
        values = column.to_numpy() if column.dtype.is_integer() or column.dtype.is_float() else None
        if values is None or values.dtype == object:
            raise EvenrankError(f"expected numbers in {name}, found {column.dtype}")
        # Sums of float32 may go over 1 a little. A null is NaN here.
        allowed = (values >= 0) & (values <= (1 + 1e-6 if name == "neutrality" else np.finfo(np.float64).max))
        if allowed.all():
            continue
        row = int(np.argmin(allowed))
        document, value = shown(table["doc_id"][row]), column[row]
        if value is None or not math.isfinite(value):
            raise EvenrankError(f"the document {document} has no finite number in {name}")
        expected = "a number from 0 to 1" if name == "neutrality" else "0 or more"
        raise EvenrankError(f"the document {document}: expected {expected} in {name}, found {value}")


def _batch(path: str, batch: Any, ids: IdIndex | None) -> pl.DataFrame:
    table = polars_table(path, batch).with_columns(pl.col("doc_id").cast(pl.String))
    return table if ids is None else table.filter(ids.among(table["doc_id"]))
