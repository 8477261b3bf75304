"""The score table: what each document says of each group, and the one way to read magnitudes from it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from .errors import EvenrankError, InputError, shown
from .files import open_parquet
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
    is the signed magnitude, the positive one first (the second may be ``rest``), or None.
    """

    table: pl.DataFrame
    groups: tuple[str, ...]
    shares: tuple[float, ...]
    poles: tuple[str, str] | None
    settings: dict[str, Any]

    @classmethod
    def of(cls, table: pl.DataFrame, settings: dict[str, Any] | None = None) -> Scores:
        """Scores from a table; without settings the groups are those of its columns, with equal shares."""
        missing = [column for column in ("doc_id", "neutrality") if column not in table.columns]
        groups = tuple(column.removeprefix("count_") for column in table.columns if column.startswith("count_"))
        if missing or not groups:
            raise EvenrankError(f"no score table: it has no column {missing[0] if missing else 'count_<group>'}")
        settings = settings or {"lexicon": "unknown"}
        shares = settings.get("shares") or [1 / len(groups)] * len(groups)
        poles = settings.get("poles") or (["m", "f"] if {"m", "f"} <= set(groups) else None)
        settings = {**settings, "shares": list(shares), "poles": list(poles) if poles else None}
        # In one piece, so that a column is an array without a copy.
        return cls(table.rechunk(), groups, tuple(shares), (poles[0], poles[1]) if poles else None, settings)

    def signed_magnitude(
        self, kind: Magnitude, poles: tuple[str, str] | None = None, rows: Array | slice = slice(None)
    ) -> Array:
        """The signed magnitude of each document of ``rows``: that of the first pole minus that of the second.

        With ``rest`` as second pole, the mean over all other groups is subtracted. Raises EvenrankError where no poles
        are known or the table lacks a column that the kind needs.
        """
        poles = poles or self.poles
        if poles is None:
            raise EvenrankError(f"which groups to compare? the groups are {', '.join(self.groups)}; --poles A,B says")
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
        raise EvenrankError(f"the score table has no column {column}: score the collection with --magnitudes {kind}")


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
    import pyarrow as pa

    parts: list[pl.DataFrame] = []
    kept: set[bytes | None] = set()
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open_parquet(file)) for file in files_of(path)]
            fewer = ids is not None and sum(map(len, ids)) < sum(file.metadata.num_rows for file in files)
            index = IdIndex(ids) if ids is not None and fewer else None
            for file in files:
                kept.add((file.metadata.metadata or {}).get(METADATA_KEY))
                parts += [_batch(batch, index) for batch in file.iter_batches(batch_size=1 << 18)]
    except pl.exceptions.ColumnNotFoundError:
        raise InputError(path, "no score table: it has no column doc_id") from None
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        raise InputError(path, f"no Parquet file that can be read ({str(error).splitlines()[0]})") from None
    if not parts:
        raise InputError(path, "no score table: it holds no row")
    if len(kept) > 1:
        raise InputError(path, "its files were scored with different settings")
    stored = kept.pop()
    table = pl.concat(parts)
    try:
        settings = json.loads(stored) if stored else None
    except ValueError:
        settings = ()
    if settings is not None and not isinstance(settings, dict):
        raise InputError(path, "damaged: its settings are no JSON object")
    try:
        scores = Scores.of(table, _checked(path, settings))
    except EvenrankError as error:
        raise InputError(path, str(error)) from None
    if len(scores.shares) != len(scores.groups) or not {*(scores.poles or ())} <= {*scores.groups, REST}:
        raise InputError(path, "damaged: its settings do not fit its groups")
    _check_values(path, table)
    repeat = first_repeat(table, ["doc_id"])
    if repeat is not None:
        raise InputError(path, f"the document {shown(table['doc_id'][repeat[1]])} stands twice")
    return scores


def _checked(path: str | os.PathLike[str], settings: dict[str, Any] | None) -> dict[str, Any] | None:
    """The settings, those that are used being of the right form."""
    shares, poles = (settings or {}).get("shares") or [], (settings or {}).get("poles") or []
    numbers = isinstance(shares, list) and all(type(share) in (int, float) for share in shares)
    texts = isinstance(poles, list) and all(isinstance(pole, str) for pole in poles)
    if not (numbers and texts and len(poles) in (0, 2)):
        raise InputError(path, "damaged: expected numbers as shares and two groups as poles in its settings")
    return settings


def _check_values(path: str | os.PathLike[str], table: pl.DataFrame) -> None:
    if table["doc_id"].null_count():
        raise InputError(path, f"row {(table['doc_id'].is_null().arg_max() or 0) + 1}: the doc_id is missing")
    for name in table.columns:
        if name != "neutrality" and not name.startswith(("count_", "magnitude_")):
            continue
        column = table[name]
        if not column.dtype.is_numeric():
            raise InputError(path, f"expected numbers in {name}, found {column.dtype}")
        wrong = ~(column.cast(pl.Float64).is_finite().fill_null(False))
        if wrong.any():
            document = table.filter(wrong)["doc_id"][0]
            raise InputError(path, f"the document {shown(document)} has no finite number in {name}")


def _batch(batch: Any, ids: IdIndex | None) -> pl.DataFrame:
    # Parquet says which columns are UTF-8, pyarrow and polars believe it.
    batch.validate(full=True)
    table = pl.DataFrame(batch).with_columns(pl.col("doc_id").cast(pl.String))
    return table if ids is None else table.filter(ids.among(table["doc_id"]))
