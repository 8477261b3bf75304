"""The group table: how much each document is about each group; from memory, Parquet files and frames."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.files.arguments import checked
from evenrank.files.convert import Frame, PathLike, frame_of, id_column
from evenrank.files.errors import EvenrankError, InputError, arg, quoted, shown
from evenrank.files.reading import files_of, open_parquet, reading_parquet
from evenrank.files.tables import IdIndex, first_repeat, is_parquet
from evenrank.files.types import Array

Magnitude = Literal["count", "bool", "tf", "tf_words", "tf_literal"]
ROUNDING = 1e-12
MAGNITUDES: tuple[Magnitude, ...] = ("count", "bool", "tf", "tf_words", "tf_literal")


def magnitude_of_count(count: Array, kind: Magnitude) -> Array:
    """The magnitude of a group's count [D] for the kinds that need nothing else: count, bool, tf.

    ``tf`` is ln(1 + count), one log of the group's total [RS20].
    """
    if kind == "count":
        return count.astype(np.float64)
    if kind == "bool":
        return (count > 0).astype(np.float64)
    if kind == "tf":
        return np.log1p(count, dtype=np.float64)
    raise ValueError(f"{kind} cannot be computed from counts")


def sides(magnitude: Array) -> Array:
    """The side [D] int8 of documents by their signed magnitude: +1 above 1e-9, −1 below −1e-9, else 0 [IBBR §2.2]."""
    side: Array = (magnitude > 1e-9).astype(np.int8) - (magnitude < -1e-9).astype(np.int8)
    return side


def neutrality(count: Array, shares: Sequence[float], threshold: float = 1) -> Array:
    """Neutrality in [0, 1] of documents with ``count`` [N, G] tokens of each group [RKS21, eq. 1].

    1 if the total c is at most ``threshold``, else 1 − Σ_a |c_a/c − J_a| / (2(1 − min J)); for two groups with
    equal shares J that is the published form 1 − Σ_a |c_a/c − J_a|.

    >>> neutrality(np.array([[1, 0], [2, 0], [3, 1], [2, 2]]), [0.5, 0.5]).tolist()
    [1.0, 0.0, 0.5, 1.0]
    """
    total = _row_sums(count)
    values = np.ones(len(count))
    # Most documents of a collection have no words of any group.
    rows = np.flatnonzero(~(total <= threshold))
    # In the order of before, which sums depend on.
    count, total = (count.T[:, rows].T if count.flags.f_contiguous else count[rows]), total[rows]
    target = np.asarray(shares, dtype=np.float64)
    # Weights of labels may sum to less than 1.
    share = count / np.where(total > 0, total, 1)[:, None]
    distance = _row_sums(np.abs(share - target)) / (2 * (1 - target.min()))
    # Rounding must not make a document of one group alone anything but 0: a ratio to 1e-16 would be beyond all bounds.
    values[rows] = np.where(1 - distance < ROUNDING, 0.0, np.minimum(1 - distance, 1.0))
    return values


def _row_sums(values: Array) -> Array:
    two = values.shape[1] == 2
    # The same numbers, of the same type, faster than by ``sum``, which has a start to make in each row.
    sums: Array = np.add(*values.T, dtype=values[:0].sum(axis=1).dtype) if two else values.sum(axis=1)
    return sums


REST = "rest"
_OF_COUNTS: tuple[Magnitude, ...] = ("count", "bool", "tf")


@dataclass(frozen=True, slots=True)
class DrawnLabels:
    """Which documents could have been drawn, which were, and what is guessed of all of them.

    Attributes:
        documents: The ids [F] of the documents that could have been drawn.
        labelled: The row in the group table of each that was drawn [F], −1 of the others; ``probability``: with which
            it was drawn [F], 1 of the others.
        guess: The groups' weights as a group table, and ``guessed`` the row in it of each document [F], −1 where
            nothing is guessed.
        trusted: Whether that all ranked documents could have been drawn is taken on trust.
    """

    documents: pl.Series
    labelled: Array
    probability: Array
    guess: GroupTable | None = None
    guessed: Array | None = None
    trusted: bool = False

    @property
    def rows(self) -> Array:
        """The places [k], among all that could have been drawn, of those that were."""
        return np.flatnonzero(self.labelled >= 0)

    def guesses(self, values: Callable[[GroupTable, Array], Array]) -> Array:
        """The guessed value of all documents [F]: where nothing is guessed, the mean of the others, 0 without any.

        ``values``: of rows [n] of a group table.
        """
        guess = np.zeros(len(self.documents))
        if self.guess is not None and self.guessed is not None:
            known = self.guessed >= 0
            guess[known] = values(self.guess, self.guessed[known])
            guess[~known] = guess[known].mean() if known.any() else 0.0
        return guess


@checked
@dataclass(frozen=True, slots=True)
class GroupTable:
    """A group table with the settings it was made with.

    ``table`` has one row a document: ``doc_id``, ``tokens``, ``count_<group>``, ``magnitude_<kind>_<group>`` for the
    chosen kinds, ``neutrality``. ``shares``: target share of each group; ``poles``: the two groups whose difference
    is the signed magnitude, the positive one first (the second may be ``rest``), or None. ``source``: where
    the documents are from, for messages.
    """

    table: pl.DataFrame
    groups: tuple[str, ...]
    shares: tuple[float, ...]
    poles: tuple[str, str] | None
    settings: dict[str, Any]
    source: str = "the collection"
    sample: DrawnLabels | None = None
    """Of labels that were drawn, with which probabilities, and what is guessed of the documents that were not."""
    extremes: pl.DataFrame | None = None
    """A row for each group with the largest values that it has in any document of a collection of which the table has
    some; None: the table has all that is known."""
    partial: bool = False
    """Whether only some of the collection's documents were scored, so that how far the others lean is not known."""

    @classmethod
    def of(
        cls, table: pl.DataFrame, settings: dict[str, Any] | None = None, *, source: str = "the collection"
    ) -> GroupTable:
        """A group table from a frame; without settings the groups are those of its columns, with equal shares.

        Without named poles, those of two groups are m and f, or else the groups in their order, which the setting
        ``poles_assumed`` records. Raises EvenrankError if a column is missing, and for impossible values.
        """
        missing = [column for column in ("doc_id", "neutrality") if column not in table.columns]
        groups = tuple(column.removeprefix("count_") for column in table.columns if column.startswith("count_"))
        if missing or not groups:
            raise EvenrankError(f"no group table: it has no column {missing[0] if missing else 'count_<group>'}")
        check_groups(groups)
        _check_values(table)
        settings = settings or {"lexicon": "unknown"}
        shares = settings.get("shares") or [1 / len(groups)] * len(groups)
        poles, assumed = settings.get("poles"), False
        if not poles:
            poles, assumed = named_poles(groups)
        if assumed:
            settings = {**settings, "poles_assumed": True}
        settings = {**settings, "shares": list(shares), "poles": list(poles) if poles else None}
        # In one piece, so that a column is an array without a copy.
        return cls(table.rechunk(), groups, tuple(shares), (poles[0], poles[1]) if poles else None, settings, source)

    def with_poles(self, poles: str | None) -> GroupTable:
        """The table with the poles written ``A,B``, or as it is for None; see :func:`parse_poles`."""
        if poles is None:
            return self
        pair = parse_poles(poles, self.groups)
        settings = {name: value for name, value in self.settings.items() if name != "poles_assumed"}
        return replace(self, poles=pair, settings={**settings, "poles": list(pair)})

    def signed_magnitude(
        self, kind: Magnitude, poles: tuple[str, str] | None = None, rows: Array | slice = slice(None)
    ) -> Array:
        """The signed magnitude of each document of ``rows``: that of the first pole minus that of the second.

        With ``rest`` as second pole, the mean over all other groups is subtracted. Raises EvenrankError if no poles
        are known or the table lacks a column that the kind needs.
        """
        first, others = self.sides_of(poles)
        second = sum(self.magnitude(kind, group, rows) for group in others) / len(others)
        difference: Array = self.magnitude(kind, first, rows) - second
        return difference

    def sides_of(self, poles: tuple[str, str] | None = None) -> tuple[str, list[str]]:
        """The first pole, and the groups of the second pole: only itself, or all others for ``rest``.

        Raises EvenrankError if no poles are known, and for one that is no group.
        """
        poles = poles or self.poles
        if poles is None:
            raise EvenrankError(
                f"which groups to compare? the groups are {', '.join(self.groups)}; {arg('poles', 'A,B')} says"
            )
        for pole in poles:
            if pole != REST:
                self.number_of(pole)
        return poles[0], [group for group in self.groups if group != poles[0]] if poles[1] == REST else [poles[1]]

    def number_of(self, group: str) -> int:
        """The number of a group. Raises EvenrankError for one that the table lacks."""
        if group not in self.groups:
            raise EvenrankError(f"no group {quoted(group)} in the group table, which has {', '.join(self.groups)}")
        return self.groups.index(group)

    @property
    def attribute(self) -> str:
        """The attribute of labelled groups: their column, or the columns of combinations; else ``group``."""
        return str(self.settings.get("attribute", "group"))

    @property
    def labelled(self) -> bool:
        """Whether the groups are from labels, weights from 0 to 1, rather than counts of words."""
        return "labels" in self.settings

    @property
    def usual_kind(self) -> Magnitude:
        """The default magnitude of measures: ``tf`` for words, the weight (``count``) for labels."""
        return "count" if self.labelled else "tf"

    def extreme_documents(self) -> GroupTable | None:
        """A document for each group that is about it as much as any of the collection; None where that is not known.

        Of labels a document is wholly of the group.
        """
        if self.labelled:
            rows = extremes_of(pl.DataFrame({f"count_{group}": 1.0 for group in self.groups}), self.groups)
        elif self.extremes is not None:
            rows = self.extremes
        elif self.partial or not self.table.height:
            return None
        else:
            rows = extremes_of(self.table.drop("doc_id").max(), self.groups)
        return replace(self, table=rows)

    def weight(self, group: str, rows: Array | slice = slice(None)) -> Array:
        """The weight, from 0 to 1, of one group in each document of ``rows``; all groups' sum to 1 at most.

        A label's weight as it is; of counted words, the group's share of the document's group words, 0 in a document
        with no more of them than the threshold, which is neutral.
        """
        count = self.table[f"count_{group}"].to_numpy()[rows].astype(np.float64)
        if self.labelled:
            return count
        total = sum(self.table[f"count_{other}"].to_numpy()[rows].astype(np.float64) for other in self.groups)
        threshold = float(self.settings.get("threshold", 1))
        return np.divide(count, total, out=np.zeros(count.shape), where=np.asarray(total) > threshold)

    def guessed(self) -> GroupTable:
        """The guess for all documents, for sampled labels.

        For what is estimated by the labels, and so must not depend on them. Raises EvenrankError without a guess.
        """
        if self.sample is None or self.sample.guess is None:
            raise EvenrankError(f"labels that were drawn are of some documents: {arg.guess} says what the others are")
        return replace(self.sample.guess, poles=self.poles, settings={**self.settings}, source="the guess")

    def as_weights(self, groups: Sequence[str]) -> GroupTable:
        """The weights of ``groups`` as labels, 0 of a group that the table lacks: what words guess."""
        weights = [self.weight(group) if group in self.groups else np.zeros(self.table.height) for group in groups]
        shares = [1 / len(groups)] * len(groups)
        columns = {f"count_{group}": weight for group, weight in zip(groups, weights, strict=True)}
        even = neutrality(np.stack(weights, axis=1), shares, threshold=0)
        table = pl.DataFrame({"doc_id": self.table["doc_id"], **columns, "neutrality": even})
        return GroupTable.of(table, {"labels": "guess", "groups": list(groups), "shares": shares, "threshold": 0})

    def magnitude(self, kind: Magnitude, group: str, rows: Array | slice = slice(None)) -> Array:
        """The magnitude of one group in each document of ``rows``."""
        if self.labelled and kind not in ("count", "bool"):
            raise EvenrankError(
                f"magnitude {kind}: labels have no words to take the logarithm of; {arg.count} is their weight, `bool`"
                " whether it is above 0"
            )
        column = f"magnitude_{kind}_{group}"
        if column in self.table.columns:
            return self.table[column].to_numpy()[rows]
        if kind in _OF_COUNTS:
            return magnitude_of_count(self.table[f"count_{group}"].to_numpy()[rows], kind)
        raise EvenrankError(f"the group table has no column {column}: score the collection with the magnitude {kind}")


_USUAL_POLES = (("m", "f"), ("male", "female"))


def named_poles(groups: Sequence[str]) -> tuple[tuple[str, str] | None, bool]:
    """The poles of groups for which none were named, and whether they are assumed.

    m and f (male and female, in any case) where the groups have these names, or else two groups in the order given,
    which is an assumption; None for more.
    """
    known = {group.casefold(): group for group in reversed(groups)}
    for first, second in _USUAL_POLES:
        if first in known and second in known:
            return (known[first], known[second]), False
    return ((groups[0], groups[1]), True) if len(groups) == 2 else (None, False)


def parse_poles(poles: str, groups: Sequence[str]) -> tuple[str, str]:
    """The poles written ``A,B``, positive first; B may be ``rest``. Raises EvenrankError for what is no two groups."""
    parts = [part.strip() for part in poles.split(",")]
    allowed = [*groups, REST]
    if len(parts) != 2 or parts[0] not in groups or parts[1] not in allowed or parts[0] == parts[1]:
        raise EvenrankError(f"{arg.poles}: expected two of {', '.join(allowed)} (rest second), found {quoted(poles)}")
    return parts[0], parts[1]


def check_groups(groups: Sequence[str]) -> None:
    """Raises EvenrankError for two groups whose columns would have one name: ``tf_words`` of x is ``tf`` of words_x."""
    owner: dict[str, str] = {}
    for group in groups:
        for kind in MAGNITUDES:
            other = owner.setdefault(f"{kind}_{group}", group)
            if other != group:
                raise EvenrankError(
                    f"the groups {quoted(other)} and {quoted(group)} cannot be in one group table: both would have a "
                    f"column magnitude_{kind}_{group}"
                )


_GREATEST = 1e9
"""More words than a text has; squares of magnitudes below it are exact enough for intervals."""


def _check_values(table: pl.DataFrame) -> None:
    """Raises EvenrankError for impossible values, which would silently make figures wrong."""
    if table["doc_id"].null_count():
        raise EvenrankError(f"row {(table['doc_id'].is_null().arg_max() or 0) + 1}: the doc_id is missing")
    for name in table.columns:
        if name != "neutrality" and not name.startswith(("count_", "magnitude_")):
            continue
        column = table[name]
        # Arrays, not queries: polars' threads would be missing in a forked process.
        values = column.to_numpy() if column.dtype.is_integer() or column.dtype.is_float() else None
        if values is None or values.dtype == object:
            raise EvenrankError(f"expected numbers in {name}, found {column.dtype}")
        # Sums of float32 may go over 1 a little. A null is NaN here.
        allowed = (values >= 0) & (values <= (1 + 1e-6 if name == "neutrality" else _GREATEST))
        if allowed.all():
            continue
        row = int(np.argmin(allowed))
        document, value = quoted(table["doc_id"][row]), column[row]
        if value is None or not math.isfinite(value):
            raise EvenrankError(f"the document {document} has no finite number in {name}")
        size = "0 or more" if value < 0 else f"{_GREATEST:g} at most"
        expected = "a number from 0 to 1" if name == "neutrality" else size
        raise EvenrankError(f"the document {document}: expected {expected} in {name}, found {value}")


METADATA_KEY = "evenrank"
_UNREADABLE = "no Parquet file that can be read"


@checked
def read_group_table(path: str | os.PathLike[str], *, ids: Sequence[pl.Series] | None = None) -> GroupTable:
    """The group table in a file that ``evenrank score`` wrote, or a folder of them; with ``ids``, only their rows.

    It is read whole if it is no longer than ``ids``. Raises InputError for a file that is no group table: not Parquet,
    a column missing, a repeated id.
    """
    parts: list[pl.DataFrame] = []
    metadata: set[str | None] = set()
    files = files_of(path)
    rows = 0
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            rows += file.height
            metadata.add(file.metadata.get(METADATA_KEY))
    index = IdIndex(ids) if ids is not None and sum(map(len, ids)) < rows else None
    largest: list[pl.DataFrame] = []
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            columns = [column for column in file.schema if _is_known(column)]
            if "doc_id" not in columns:
                raise InputError(name, "no group table: it has no column doc_id")
            for batch in file.batches(1 << 18, columns):
                largest.append(batch.drop("doc_id").max())
                parts.append(_among(batch, index))
    if not parts:
        raise InputError(path, "no group table: it has no rows")
    if len(metadata) > 1:
        raise InputError(path, "its files were scored with different settings")
    stored = metadata.pop()
    with reading_parquet(path, _UNREADABLE):
        table = pl.concat(parts)
        try:
            scores = GroupTable.of(table, _stored_settings(path, stored, table), source=f"the scores {os.fspath(path)}")
            scores = replace(scores, extremes=extremes_of(pl.concat(largest).max(), scores.groups))
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(path, str(error)) from None
        repeat = first_repeat(table, ["doc_id"])
        if repeat is not None:
            raise InputError(path, f"the document {quoted(table['doc_id'][repeat[1]])} is repeated")
    return scores


def extremes_of(largest: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """A row for each group with its columns' ``largest`` values [1 row], 0 in those of other groups; neutrality 1."""
    columns = {name: np.zeros(len(groups)) for name in largest.columns if name.startswith(("count_", "magnitude_"))}
    for row, group in enumerate(groups):
        for name in (f"count_{group}", *(f"magnitude_{kind}_{group}" for kind in MAGNITUDES)):
            if name in columns:
                columns[name][row] = float(largest[name][0] or 0.0)
    ids = pl.Series("doc_id", [f"most {group}" for group in groups], dtype=pl.String)
    return pl.DataFrame([ids, *(pl.Series(name, values) for name, values in columns.items())]).with_columns(
        pl.lit(1.0).alias("neutrality")
    )


def _is_known(column: str) -> bool:
    return column in ("doc_id", "tokens", "neutrality") or column.startswith(("count_", "magnitude_"))


def is_score_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file or a folder is what ``evenrank score`` writes: Parquet with its settings."""
    name = files_of(path)[0]
    if not is_parquet(name):
        return False
    with open_parquet(name, _UNREADABLE) as file:
        return METADATA_KEY in file.metadata


GroupTableLike = PathLike | GroupTable | Frame
"""A file that ``evenrank score`` wrote or a folder of them, a :class:`GroupTable`, or a frame with its columns."""


def as_group_table(given: object, ids: Sequence[pl.Series] | None = None, what: str | None = None) -> GroupTable:
    """A group table from a path (see :func:`read_group_table`), a frame, or a :class:`GroupTable` as it is.

    Raises EvenrankError, which begins with ``what``, for a frame that is no group table and for anything else.
    """
    if isinstance(given, GroupTable):
        return given
    if isinstance(given, str | os.PathLike):
        return read_group_table(given, ids=ids)
    what = what or arg.scores
    table = frame_of(given, what)
    if table is None:
        raise EvenrankError(f"{what}: expected a path, a GroupTable or a frame, found {shown(given)}")
    if "doc_id" in table.columns:
        table = table.with_columns(id_column(table["doc_id"], "doc_id", what))
    try:
        scores = GroupTable.of(table)
    except EvenrankError as error:
        raise EvenrankError(f"{what}: {error}") from None
    repeat = first_repeat(table, ["doc_id"])
    if repeat is not None:
        raise EvenrankError(f"{what}: the document {quoted(table['doc_id'][repeat[1]])} is repeated")
    return scores


def _stored_settings(path: PathLike, stored: str | None, table: pl.DataFrame) -> dict[str, Any] | None:
    """The settings kept with a table; raises InputError for those that are not of it."""
    groups = [name.removeprefix("count_") for name in table.columns if name.startswith("count_")]
    if stored is None:
        return None
    try:
        settings: dict[str, Any] = json.loads(stored)
        shares, poles = settings.get("shares") or [0.0 for _ in groups], settings.get("poles") or []
        fit = len(shares) == len(groups) and all(0 <= share <= 1 for share in shares) and isinstance(poles, list)
        if poles:
            first, second = poles
            fit = fit and first in groups and second in (*groups, REST) and first != second
    except (ValueError, TypeError, AttributeError, RecursionError):
        fit = False
    if not fit:
        raise InputError(path, "damaged: its settings do not fit its groups")
    return settings


def _among(batch: pl.DataFrame, ids: IdIndex | None) -> pl.DataFrame:
    table = batch.with_columns(pl.col("doc_id").cast(pl.String))
    return table if ids is None else table.filter(ids.among(table["doc_id"]))


NO_GROUP = -1
"""Of no group, or of several with the same weight."""


def largest_groups(table: GroupTable, rows: Array | slice = slice(None)) -> Array:
    """The number of the group of each document of ``rows`` [N] int64, that with the largest weight; ``NO_GROUP``
    for none or several.

    Weights are those of :meth:`GroupTable.weight`: a document with no more group words than the threshold has none.
    Those that differ by rounding alone are the same.
    """
    weights = np.stack([table.weight(group, rows) for group in table.groups])
    largest = weights.max(axis=0)
    single = (weights >= largest - 1e-9).sum(axis=0) == 1
    numbers: Array = np.where(single & (largest > 0), weights.argmax(axis=0), NO_GROUP)
    return numbers
