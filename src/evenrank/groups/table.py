"""The group table: how much each document is about each group, and the one way to read magnitudes from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.types import Array

from .count_pairs import CountPairs
from .formulas import MAGNITUDES, Magnitude, magnitude_of_count

REST = "rest"
_OF_COUNTS: tuple[Magnitude, ...] = ("count", "bool", "tf")
_MANY = 1 << 15
"""Documents looked up at once for which it is worth it to look up pairs of counts."""


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
    _looked_up: dict[tuple[str, ...], CountPairs | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
        if len(others) == 1 and isinstance(rows, np.ndarray) and len(rows) >= _MANY:
            pairs = self._pairs_of(kind, first, others[0])
            if pairs is not None:
                found: Array = pairs.signed_magnitudes(kind)[pairs.codes[rows]]
                return found
        second = sum(self.magnitude(kind, group, rows) for group in others) / len(others)
        difference: Array = self.magnitude(kind, first, rows) - second
        return difference

    def _pairs_of(self, kind: Magnitude, first: str, second: str) -> CountPairs | None:
        """The counts of two groups in each document, if the magnitudes of this kind follow from them, to the last bit.

        Magnitudes that the table has are compared with those, once.
        """
        if self.labelled or kind not in _OF_COUNTS:
            return None
        if (first, second) not in self._looked_up:
            counts = (self.table[f"count_{group}"].to_numpy() for group in (first, second))
            self._looked_up[first, second] = CountPairs.of(*counts)
        pairs, key = self._looked_up[first, second], (kind, first, second)
        if pairs is not None and key not in self._looked_up:
            columns = [f"magnitude_{kind}_{group}" for group in (first, second)]
            same = True
            if not set(columns).isdisjoint(self.table.columns):
                kept = self.magnitude(kind, first) - self.magnitude(kind, second)
                same = bool((kept == pairs.signed_magnitudes(kind)[pairs.codes]).all())
            self._looked_up[key] = pairs if same else None
        return self._looked_up.get(key)

    def sides_of(self, poles: tuple[str, str] | None = None) -> tuple[str, list[str]]:
        """The first pole, and the groups that the second stands for: itself, or with ``rest`` all others.

        Raises EvenrankError if no poles are known, and for one that is no group.
        """
        poles = poles or self.poles
        if poles is None:
            raise EvenrankError(f"which groups to compare? the groups are {', '.join(self.groups)}; `poles='A,B'` says")
        unknown = [pole for pole in poles if pole not in (*self.groups, REST)]
        if unknown:
            raise EvenrankError(f"no group {quoted(unknown[0])} in the group table, which has {', '.join(self.groups)}")
        return poles[0], [group for group in self.groups if group != poles[0]] if poles[1] == REST else [poles[1]]

    @property
    def labelled(self) -> bool:
        """Whether the groups are from labels, weights from 0 to 1, rather than counts of words."""
        return "labels" in self.settings

    @property
    def usual_kind(self) -> Magnitude:
        """The magnitude of a measure that asks for none: ``tf`` of words, the weight (``count``) of labels."""
        return "count" if self.labelled else "tf"

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

    def magnitude(self, kind: Magnitude, group: str, rows: Array | slice = slice(None)) -> Array:
        """The magnitude of one group in each document of ``rows``."""
        if self.labelled and kind not in ("count", "bool"):
            raise EvenrankError(
                f"magnitude {kind}: labels have no words to take the logarithm of; `count` is their weight, `bool`"
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
        raise EvenrankError(f"`poles`: expected two of {', '.join(allowed)} (rest second), found {quoted(poles)}")
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
        allowed = (values >= 0) & (values <= (1 + 1e-6 if name == "neutrality" else np.finfo(np.float64).max))
        if allowed.all():
            continue
        row = int(np.argmin(allowed))
        document, value = quoted(table["doc_id"][row]), column[row]
        if value is None or not math.isfinite(value):
            raise EvenrankError(f"the document {document} has no finite number in {name}")
        expected = "a number from 0 to 1" if name == "neutrality" else "0 or more"
        raise EvenrankError(f"the document {document}: expected {expected} in {name}, found {value}")
