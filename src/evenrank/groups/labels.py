"""Groups from labels (metadata, annotation, a classifier's output) instead of words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenrank.files.arguments import checked
from evenrank.files.convert import Strings, first_of, frame_of, id_column, strings
from evenrank.files.errors import EvenrankError, InputError, arg, quoted, quoted_number, readable, shown
from evenrank.files.outputs import ids_from_spreadsheets
from evenrank.files.provenance import SUFFIX
from evenrank.files.reading import is_utf8
from evenrank.files.tables import DOCUMENT, Columns, IdIndex, column_named, read_columns
from evenrank.files.texts import TextFile
from evenrank.files.types import Array

from .table import REST, DrawnLabels, GroupTable, named_poles, neutrality

TIMES = " × "
"""Between the parts of a combination of groups."""
_SUM = 1e-6
_UNKNOWN = ("", "nan", "null", "n/a", "?", "unknown", "not known")
"""What is written, in whatever case, where a group is not known; a neutral value may be called so."""
_OF_WEIGHTS = ("weight", "share", "score", "probability")
_MOST_GROUPS = 1000
_MOST_COLUMNS = 1000
"""Columns beside the ids."""
_MANY = 1 << 20


@checked
def as_labels(
    given: object,
    ids: Sequence[pl.Series] | None = None,
    *,
    neutral: Strings | None = (),
    group_column: Strings | None = None,
    intersect: bool | None = None,
    poles: str | None = None,
    more: Sequence[str] = (),
    card: SampleCard | None = None,
    what: str | None = None,
) -> GroupTable:
    """Labels as a group table: weights w_a ≥ 0 of each group, at most 1 in all, as its counts, with threshold 0.

    Args:
        given: A CSV, TSV, JSONL or Parquet file, a frame, or a dict. *Long*: ``doc_id`` and ``group``, a document in
            several groups having several rows and equal shares. *Wide*: ``doc_id`` and a column of weights for each
            group. A dict: from documents to a group, a list of groups, or ``{group: weight}``. A :class:`GroupTable` of
            labels stays as it is. A document without a row, or with an empty value or one such as ``unknown`` and
            ``n/a``, is unknown. With a column ``probability`` they are of documents that were drawn (see
            :func:`evenrank.sample_labels`), all of them, in the order in which they were: the first so many may have a
            label. ``none`` is then a label that means no group.
        ids: The documents that are asked for; by default all.
        neutral: Values that mean "no group" (in the wide form, columns): such a document is known, with weight 0 of
            every group.
        group_column: The column of groups, if it is not the only one beside ``doc_id`` and not named ``group``.
        intersect: The groups are the combinations of those in several columns ``group_column``, such as ``"f × yes"``.
            A document that has no value in one of them is unknown, one that is neutral in one is neutral.
        poles: The groups of signed measures, ``"A,B"``; by default m and f, or the two that there are.
        more: Groups that there are, whether a document is in them or not.
        card: Of labels that were drawn, what was drawn and what could have been; by default what the card beside the
            file says. Without one every document that is asked for could have been drawn, on trust.
        what: The argument's name, for messages.

    Raises:
        EvenrankError: For a weight below 0, weights of a document that sum to more than 1, a document twice with
            different weights, fewer than two groups, and labels that know none of the documents ``ids``.
    """
    what = what or arg.labels
    if isinstance(given, GroupTable):
        if not given.labelled:
            raise EvenrankError(f"{what}: expected labels, found a group table of counted words ({arg.scores})")
        return given.with_poles(poles)
    columns = _columns(given, what)
    neutral = strings(neutral)
    columns, column = _asked(columns, strings(group_column), intersect, neutral)
    if PROBABILITY in columns.table.columns:
        if card is None and columns.path is not None:
            card = SampleCard.beside(columns.path)
        return _drawn(columns, ids, neutral, column, poles, more, card)
    return _read(columns, ids, neutral, column, poles, more)


def _read(
    columns: Columns,
    ids: Sequence[pl.Series] | None,
    neutral: Sequence[str],
    group_column: str | None,
    poles: str | None,
    more: Sequence[str],
) -> GroupTable:
    name = readable(os.path.basename(columns.path)) if columns.path is not None else "in memory"
    id_name = column_named(columns, DOCUMENT, f" (without a collection {arg.id_column} names another)")
    others = [column for column in columns.table.columns if column != id_name]
    if len(others) > _MOST_COLUMNS:
        raise columns.error(f"expected at most {_MOST_COLUMNS:,} columns of groups, found {len(others):,}")
    if group_column is not None and group_column not in others:
        has = quoted(", ".join(others), 120)[1:-1]
        raise columns.error(
            f"there is no column {quoted(group_column)} ({arg.group_column}) beside {id_name}: found {has}"
        )
    documents = id_column(columns.table[id_name], "doc_id", columns.path or columns.what or "the labels")
    if (documents == "").any():
        raise columns.error("expected a doc_id, found none", int((documents == "").arg_max() or 0))
    if not len(documents):
        raise columns.error("contains no rows")
    rows = np.arange(len(documents))
    # Looking up so many ids would cost more than the rows that it saves.
    if ids is not None and sum(map(len, ids)) < max(len(documents), _MANY):
        rows = np.flatnonzero(IdIndex(ids).among(documents).to_numpy())
        if not len(rows):
            wanted = pl.concat([part.rename("id") for part in ids]) if ids else pl.Series("id", [], pl.String)
            has, asked_for = (first_of(part.unique(maintain_order=True)) or "none" for part in (documents, wanted))
            raise columns.error(f"knows none of the documents: it has {has}; asked for {asked_for}")
    long = _group_column(columns, id_name, group_column)
    if long is None:
        table, groups, appearing = _wide(columns, id_name, documents, rows, neutral)
    else:
        table, groups, appearing = _long(columns, long, documents, rows, neutral)
    lacking = tuple(group for group in more if group not in groups)
    _check_groups(columns, (*groups, *lacking))
    table = table.with_columns(pl.lit(0.0).alias(f"count_{group}") for group in lacking)
    groups, appearing = (*groups, *lacking), (*appearing, *lacking)
    group_table = _as_table(columns, name, table, (groups, appearing), neutral, poles)
    return group_table if long is None else replace(group_table, settings={**group_table.settings, "attribute": long})


def _asked(
    columns: Columns, asked: Sequence[str], intersect: bool | None, neutral: Sequence[str]
) -> tuple[Columns, str | None]:
    """The table, and its column of groups; of combinations, one that is added.

    A combination is null where a part is unknown, and neutral where one is.
    """
    if len(set(asked)) > 1 and not intersect:
        names = " and ".join(asked)
        raise EvenrankError(
            f"{arg.group_column}: expected one, found {names}: ask for one at a time, or add {arg.intersect} for their"
            " combinations"
        )
    if intersect and len(set(asked)) < 2:
        column = asked[0] if asked else "none"
        raise EvenrankError(f"{arg.intersect}: expected two columns or more as {arg.group_column}, found {column}")
    if not intersect:
        return columns, asked[0] if asked else None
    absent = next((name for name in asked if name not in columns.table.columns), None)
    if absent is not None:
        raise columns.error(f"there is no column {quoted(absent)} ({arg.group_column}): found {_has(columns)}")
    parts = [pl.col(name).cast(pl.String).str.strip_chars() for name in asked]
    unknown = pl.any_horizontal(_is_unknown(part, neutral) for part in parts)
    value = pl.concat_str(parts, separator=TIMES)
    for part in parts:
        value = pl.when(part.is_in(list(neutral))).then(part).otherwise(value)
    name = TIMES.join(asked)
    return replace(columns, table=columns.table.with_columns(pl.when(~unknown).then(value).alias(name))), name


def _is_unknown(value: pl.Expr, neutral: Sequence[str]) -> pl.Expr:
    """Whether a value of a column of groups says that the group is not known."""
    return value.is_null() | (value.str.to_lowercase().is_in(_UNKNOWN) & ~value.is_in(list(neutral)))


PROBABILITY = "probability"
"""The column that says of labels that their documents were drawn."""
NO_LABEL = "none"
"""What somebody who labels a sample says of a document of no group."""
DRAWN, FRAME = "drawn", "could_be_drawn"


def _drawn(
    columns: Columns,
    ids: Sequence[pl.Series] | None,
    neutral: Sequence[str],
    group_column: str | None,
    poles: str | None,
    more: Sequence[str],
    card: SampleCard | None,
) -> GroupTable:
    """Labels of documents that were drawn, with the probabilities of those that have a label.

    What was drawn, in which order, is what the ``card`` says; without one, what the table has. Raises EvenrankError for
    a probability that is none, for a document that was not drawn, and for one without a label before others with one.
    """
    id_name = column_named(columns, DOCUMENT)
    table = columns.table.drop(PROBABILITY, *({"text"} & set(columns.table.columns)))
    table = table.with_columns(ids_from_spreadsheets(table[id_name].cast(pl.String)))
    # Few labels may have none of a group.
    named = tuple(part.strip() for part in poles.split(",")) if poles is not None else ()
    more = (*more, *(pole for pole in named if pole not in (*more, REST)))
    column = group_column or "group"
    texts = column in table.columns and table[column].dtype in (pl.String, pl.Null)
    if texts and (table[column].cast(pl.String).fill_null("").str.strip_chars() == "").all():
        raise columns.error(f"no document has a label yet: fill in the column {column} (`evenrank labels ask` does)")
    spoken = _spoken(table, NO_LABEL, neutral)
    group_table = _read(replace(columns, table=table), None, [*neutral, *spoken], group_column, poles, more)
    documents = ids_from_spreadsheets(columns.table[id_name].cast(pl.String))
    every = pl.DataFrame({"doc_id": documents, "row": np.arange(len(documents))})
    every = every.unique("doc_id", keep="first", maintain_order=True)
    if card is not None:
        strange = every.filter(~every["doc_id"].is_in(card.drawn.implode()))
        if strange.height:
            raise columns.error(
                f"the document {quoted(strange['doc_id'][0])} was not drawn: the card beside the file is of another"
                " sample, or ids were changed",
                int(strange["row"][0]),
            )
        every = pl.DataFrame({"doc_id": card.drawn, "chance": card.chance})
    else:
        every = every.with_columns(_chances(columns).gather(every["row"]).alias("chance"))
    places = IdIndex([group_table.table["doc_id"]]).places(every["doc_id"])
    known = int((places >= 0).sum())
    if (places[:known] < 0).any():
        gap = every["doc_id"][int(np.argmin(places[:known] >= 0))]
        raise columns.error(
            f"the document {quoted(gap)} was drawn, but has no label, and later ones have: label the documents in the"
            f" order in which they were drawn ({NO_LABEL}: of no group)"
        )
    could = every["doc_id"] if card is None else card.could
    if card is None and ids is not None:
        could = pl.concat([could, *(part.cast(pl.String).alias("doc_id") for part in ids)])
    could = pl.concat([every["doc_id"], could.alias("doc_id")]).unique(maintain_order=True)
    if known == len(could) and bool((every["chance"] == 1).all()):
        return group_table
    labelled, probability = np.full(len(could), -1), np.ones(len(could))
    # In a random order, so many of those that were drawn are a sample of them.
    labelled[:known] = places[:known]
    probability[:known] = every["chance"].to_numpy()[:known] * known / every.height
    sample = DrawnLabels(could, labelled, probability, trusted=card is None)
    return replace(group_table, sample=sample)


def _chances(columns: Columns) -> pl.Series:
    """The probabilities that the rows of a sample's table were drawn with."""
    column = columns.table[PROBABILITY]
    chance = _numbers(column)
    if chance is None:
        row = int(column.cast(pl.Float64, strict=False).is_null().arg_max() or 0)
        raise columns.error(f"expected a number in the column {PROBABILITY}, found {quoted_number(column[row])}", row)
    bad = ~((chance > 0) & (chance <= 1)).fill_null(value=False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise columns.error(f"expected a probability above 0 and at most 1, found {chance[row]}", row)
    return chance


def _spoken(table: pl.DataFrame, value: str, known: Sequence[str]) -> list[str]:
    """How a value is written in a table, in whatever case, if not as one that is ``known``."""
    texts = [column.str.strip_chars() for column in table.iter_columns() if column.dtype == pl.String]
    spellings = {text for column in texts for text in column.filter(column.str.to_lowercase() == value).unique()}
    return sorted(spellings - {*known})


@dataclass(frozen=True, slots=True)
class SampleCard:
    """What a sample was: the ids drawn [n] in their random order with their probabilities, and those that could be.

    ``measures``: the measures that it was drawn for.
    """

    drawn: pl.Series
    chance: pl.Series
    could: pl.Series
    measures: tuple[str, ...] = ()

    @staticmethod
    def beside(path: str) -> SampleCard | None:
        """The card stored beside a sample, or None. Raises InputError for a damaged one."""
        name = f"{path}{SUFFIX}"
        if not os.path.isfile(name):
            return None
        try:
            with open(name, encoding="utf-8") as file:
                card = json.load(file)
            drawn, could = (pl.Series("doc_id", card[key], dtype=pl.String) for key in (DRAWN, FRAME))
            chance, measures = pl.Series(card[PROBABILITY], dtype=pl.Float64), card["made_by"]["measures"]
            sound = len(chance) == len(drawn) and chance.is_between(0, 1, closed="right").fill_null(False).all()
        except (OSError, ValueError, KeyError, TypeError, RecursionError, pl.exceptions.PolarsError):
            sound = False
        if not sound:
            raise InputError(name, "damaged: it has to say which documents were drawn, and which could have been")
        return SampleCard(drawn, chance, could, tuple(map(str, measures)))


def _columns(given: object, what: str) -> Columns:
    if isinstance(given, Columns):
        return given
    if isinstance(given, str | os.PathLike):
        columns, name = read_columns(given), given.id_column if isinstance(given, TextFile) else None
        if name is None:
            return columns
        if name not in columns.table.columns:
            raise columns.error(f"there is no column {quoted(name)} ({arg.id_column}): found {_has(columns)}")
        ids, groups = pl.col(name).alias(DOCUMENT[0]), pl.exclude(name, DOCUMENT[0])
        return replace(columns, table=columns.table.select(ids, groups))
    if isinstance(given, Mapping):
        return Columns(_of_dict(given, what), what=what)
    frame = frame_of(given, what)
    if frame is None:
        kinds = "a path, {document: group} or a table with doc_id and group"
        raise EvenrankError(f"{what}: expected {kinds}, found {shown(given)}")
    if type(given).__module__.startswith("pandas"):
        # What is missing is NaN in pandas.
        frame = frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    return Columns(frame, what=what)


def _has(columns: Columns) -> str:
    return ", ".join(columns.table.columns)


def _of_dict(given: Mapping[object, object], what: str) -> pl.DataFrame:
    """``{document: group}``, ``{document: [groups]}`` or ``{document: {group: weight}}`` as a table."""
    ids = id_column(pl.Series(list(given), dtype=pl.Object), "doc_id", what) if given else pl.Series("doc_id", [])
    values = list(given.values())
    if any(isinstance(value, Mapping) for value in values):
        odd = next((value for value in values if not (value is None or isinstance(value, Mapping))), None)
        if odd is not None:
            raise EvenrankError(f"{what}: expected {{group: weight}} for every document, found {quoted(odd)}")
        weights = [value or {} for value in values if value is None or isinstance(value, Mapping)]
        groups = list(dict.fromkeys(group for value in weights for group in value))
        odd = next((group for group in groups if not _is_text(group) or group == "doc_id"), None)
        if odd is not None:
            raise EvenrankError(f"{what}: expected names of groups, found {quoted(odd)}")
        # A document that names no group at all is unknown; a group that it does not name has weight 0.
        columns = [
            pl.Series(group, [v.get(group, 0.0) if v else None for v in weights], strict=False) for group in groups
        ]
        return pl.DataFrame([ids, *columns])
    lists = [[value] if isinstance(value, str) else value for value in values]
    odd = next((v for v in lists if not (v is None or (isinstance(v, Sequence) and all(map(_is_text, v))))), None)
    if odd is not None:
        raise EvenrankError(f"{what}: expected a group, a list of groups or {{group: weight}}, found {quoted(odd)}")
    return pl.DataFrame([ids, pl.Series("group", lists, dtype=pl.List(pl.String))]).explode("group")


def _is_text(value: object) -> bool:
    """Whether a value is a string that a table can store: not with half a surrogate pair."""
    return isinstance(value, str) and is_utf8(value)


def _group_column(columns: Columns, id_name: str, asked: str | None) -> str | None:
    """The column of the long form; None for the wide form."""
    if asked is not None:
        return asked
    others = [name for name in columns.table.columns if name != id_name]
    if "group" in others:
        weights = next((name for name in others if name.casefold() in _OF_WEIGHTS), None)
        if weights is not None:
            raise columns.error(f"weights are in a column for each group, found the columns group and {weights}")
        return "group"
    if not others:
        raise columns.error("expected a column of groups beside doc_id, found none")
    if len(others) == 1:
        _refuse_numbers(columns, others[0])
        return others[0]
    for name in others:
        values = columns.table[name]
        if _numbers(values) is None:
            if values.dtype == pl.String and (commas := values.str.contains(r"^\s*\d*,\d+\s*$")).any():
                row = int(commas.arg_max() or 0)
                raise columns.error(f"expected a weight of {name}, found {quoted_number(values[row])}", row)
            raise columns.error(
                f"which column is the group? {quoted(name)} holds no weights, the columns are"
                f" {quoted(', '.join(others), 120)[1:-1]}"
                f" ({arg.group_column} names it)"
            )
    return None


def _refuse_numbers(columns: Columns, name: str) -> None:
    """Raises EvenrankError for numbers in the only column, not named group: a classifier's output, or a flag."""
    values = columns.table[name]
    flags = values.dtype == pl.Boolean
    if values.dtype == pl.String:
        flags = bool(values.str.strip_chars().str.to_lowercase().is_in(["true", "false", ""]).all())
    numbers = _numbers(values)
    if flags or (numbers is not None and numbers.null_count() < len(numbers)):
        raise columns.error(
            f"expected groups in the column {name}, found numbers or flags: weights need a column for each group (if"
            f" they name groups, {arg('group_column', name)} says so)"
        )


def _numbers(values: pl.Series) -> pl.Series | None:
    """A column as float64, null where it is empty; None if some value is no number."""
    if values.dtype == pl.Null:
        return values.cast(pl.Float64)
    if not (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
        return None
    if values.dtype == pl.String:
        values = values.str.strip_chars()
        values = pl.select(pl.when(values != "").then(values)).to_series()
    numbers = values.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == values.null_count() else None


_Weights = tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]
"""``doc_id`` and the weight of each group; the groups; these and the neutral values in the order of the file."""


def _wide(columns: Columns, id_name: str, documents: pl.Series, rows: Array, neutral: Sequence[str]) -> _Weights:
    groups = tuple(name for name in columns.table.columns if name != id_name)
    numbers = [_numbers(columns.table[name].gather(rows)) for name in groups]
    weights = np.stack([column.to_numpy() for column in numbers if column is not None], axis=1)
    empty = np.stack([column.is_null().to_numpy() for column in numbers if column is not None], axis=1)
    partly = np.flatnonzero(empty.any(axis=1) & ~empty.all(axis=1))
    if len(partly):
        lacking = groups[int(np.argmax(empty[partly[0]]))]
        raise columns.error(
            f"expected a weight for each group or for none, found none for {lacking}", int(rows[partly[0]])
        )
    rows, weights = rows[~empty.all(axis=1)], weights[~empty.all(axis=1)]
    bad = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        row, group = bad[0]
        raise columns.error(
            f"expected a weight of 0 or more for {groups[group]}, found {weights[row, group]:g}", int(rows[row])
        )
    total = weights.sum(axis=1)
    over = np.flatnonzero(total > 1 + _SUM)
    if len(over):
        raise columns.error(
            f"expected weights that sum to 1 at most, they sum to {total[over[0]]:g}", int(rows[over[0]])
        )
    table = pl.DataFrame({"doc_id": documents.gather(rows), "row": rows})
    table = table.with_columns(pl.Series(f"count_{group}", weights[:, g]) for g, group in enumerate(groups))
    counts = [f"count_{group}" for group in groups]
    table = table.unique(["doc_id", *counts], keep="first", maintain_order=True)
    again = table.filter(~pl.col("doc_id").is_first_distinct())
    if again.height:
        document, row = again["doc_id"][0], again["row"][0]
        first = columns.line(int(table.filter(pl.col("doc_id") == document)["row"][0]))
        raise columns.error(f"the document {quoted(document)} is there twice, with other weights in {first}", int(row))
    chosen = tuple(group for group in groups if group not in neutral)
    _check_groups(columns, chosen)
    return table.select("doc_id", *(f"count_{group}" for group in chosen)), chosen, groups


def _long(columns: Columns, name: str, documents: pl.Series, rows: Array, neutral: Sequence[str]) -> _Weights:
    values = columns.table[name]
    if values.dtype in (pl.Object, pl.Binary) or values.dtype.is_float() or values.dtype.is_nested():
        raise columns.error(f"expected names of groups in the column {name}, found {_kind(values.dtype)}")
    every = pl.DataFrame({"doc_id": documents, "row": np.arange(len(documents)), "group": values})
    every = every.with_columns(pl.col("group").cast(pl.String).str.strip_chars())
    every = every.filter(~_is_unknown(pl.col("group"), neutral))
    appearing = tuple(every["group"].unique(maintain_order=True))
    chosen = every if len(rows) == len(documents) else every.filter(pl.col("row").is_in(pl.Series(rows).implode()))
    groups = tuple(sorted(group for group in appearing if group not in neutral))
    _check_groups(columns, groups)
    if chosen["doc_id"].n_unique() == chosen.height:
        # The usual case, and the fastest: one group a document.
        own = chosen.select("doc_id", *((pl.col("group") == g).cast(pl.Float64).alias(f"count_{g}") for g in groups))
        return own, groups, appearing
    return _shared(columns, chosen, groups, neutral), groups, appearing


def _shared(columns: Columns, chosen: pl.DataFrame, groups: Sequence[str], neutral: Sequence[str]) -> pl.DataFrame:
    """The weights of documents of which some are in several groups, in equal shares."""
    chosen = chosen.unique(["doc_id", "group"], keep="first", maintain_order=True)
    is_neutral = pl.col("group").is_in(list(neutral))
    chosen = chosen.with_columns(
        is_neutral.alias("neutral"), is_neutral.any().over("doc_id").alias("any"), pl.len().over("doc_id").alias("n")
    )
    mixed = chosen.filter(pl.col("any") & (pl.col("n") > 1) & ~pl.col("neutral"))
    if mixed.height:
        document, group, row = mixed["doc_id"][0], mixed["group"][0], int(mixed["row"][0])
        other = chosen.filter((pl.col("doc_id") == document) & pl.col("neutral"))
        place = columns.line(int(other["row"][0]))
        raise columns.error(
            f"the document {quoted(document)} is in the group {quoted(group)}, but neutral"
            f" ({quoted(other['group'][0])}) in {place}",
            row,
        )
    share = pl.when(pl.col("neutral")).then(0.0).otherwise(1 / pl.col("n"))
    return chosen.group_by("doc_id", maintain_order=True).agg(
        share.filter(pl.col("group") == group).sum().alias(f"count_{group}") for group in groups
    )


def _kind(dtype: pl.DataType) -> str:
    """A type in words, without what is nested in it."""
    if dtype == pl.Object:
        return "mixed or nested values"
    inner = f"({dtype.inner.base_type()})" if isinstance(dtype, pl.List) else ""
    return f"{dtype.base_type()}{inner}"


def _check_groups(columns: Columns, groups: Sequence[str]) -> None:
    """Raises EvenrankError for what are hardly groups: more than anybody compares, or two spellings of one."""
    if len(groups) > _MOST_GROUPS:
        raise columns.error(f"expected {_MOST_GROUPS} groups at most, found {len(groups):,}: are these groups?")
    folded: dict[str, str] = {}
    for group in groups:
        if group.casefold() in _UNKNOWN:
            raise columns.error(
                f"weights of {quoted(group)} are of no group: leave the column out, or name it with {arg.neutral}"
            )
        if folded.setdefault(group.casefold(), group) != group:
            raise columns.error(
                f"the groups {quoted(folded[group.casefold()])} and {quoted(group)} differ only in case"
            )


def _as_table(
    columns: Columns,
    name: str,
    table: pl.DataFrame,
    named: tuple[tuple[str, ...], tuple[str, ...]],
    neutral: Sequence[str],
    poles: str | None,
) -> GroupTable:
    groups, appearing = named
    if len(groups) < 2:
        hint = "" if neutral else f" ({arg.neutral} names the values that mean no group)"
        hint = f" ({arg.poles} names both)" if NO_LABEL in neutral else hint
        raise columns.error(f"expected at least two groups, found {', '.join(groups) or 'none'}{hint}")
    if REST in groups:
        raise columns.error(f"no group may be named {REST!r}: it stands for all the others")
    if not table.height:
        raise columns.error("knows none of the documents: all their values are empty")
    shares = [1 / len(groups)] * len(groups)
    counts = np.stack([table[f"count_{group}"].to_numpy() for group in groups], axis=1)
    table = table.with_columns(pl.Series("neutrality", neutrality(counts, shares, threshold=0)))
    chosen, assumed = named_poles([group for group in appearing if group in groups])
    absent = [value for value in neutral if value not in appearing]
    settings: dict[str, object] = {
        "labels": name,
        "groups": list(groups),
        "shares": shares,
        "poles": list(chosen) if chosen else None,
        "threshold": 0,
        "neutral": list(neutral),
        **({"poles_assumed": True} if assumed else {}),
        **({"neutral_absent": absent} if absent else {}),
    }
    source = f"the labels {columns.path}" if columns.path is not None else "the labels"
    try:
        group_table = GroupTable.of(table, settings, source=source)
    except EvenrankError as error:
        raise columns.error(str(error)) from None
    return group_table.with_poles(poles)
