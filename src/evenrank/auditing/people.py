"""A table of people, such as applicants: whom a selection or a ranking of them leaves out."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, check_apart
from evenrank.files.arguments import checked
from evenrank.files.convert import columns_of, strings
from evenrank.files.errors import arg, quoted, quoted_number, readable, shown
from evenrank.files.tables import DOCUMENT, Columns, IdIndex, column_named
from evenrank.files.types import EQUAL, Array
from evenrank.groups import GroupSource
from evenrank.groups.labels import PROBABILITY
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import Table
from evenrank.stats.ratios import FOUR_FIFTHS, Selection

from .impact import (
    BELOW,
    LOWER,
    UNTOLD,
    GroupImpact,
    corrected,
    group_impacts,
    impact_findings,
    impact_screen_table,
    impact_table,
    ratio_plot,
)

_PHRASES = phrases("impact")
_MOST_NUMBERS = 20
"""The most numbers that a column of groups may have as their names."""
_YES = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0}


@checked
def impact_ratios(
    table: object,
    *,
    labels: opt.Labels = None,
    group_column: opt.GroupColumn = None,
    intersect: opt.Intersect = None,
    neutral: opt.Neutral = None,
    selected: Annotated[str | None, opt.of_table("the column of who was selected (0 or 1).", excludes=("k",))] = None,
    score: Annotated[str | None, opt.of_table("the column of scores, of which high ones are good.")] = None,
    rank: Annotated[str | None, opt.of_table("the column of ranks, from 1, instead.")] = None,
    k: Annotated[int | None, opt.of_table("so many of each list are selected.", metavar=None, range=opt.COUNT)] = None,
    query: Annotated[str | None, opt.of_table("the column of the lists (default: one list).")] = None,
    id: Annotated[str | None, opt.of_table("the column of people's ids (default: each row is another person).")] = None,
) -> ImpactRatios:
    """Measure whom a selection or a ranking of people leaves out.

    The impact ratio of a group is its rate of selection over that of the group selected most, all lists together.

    Args:
        table: A CSV, TSV, JSONL or Parquet file or a frame with a row for each person in a list.
        labels: People's groups, where they stand in another file or frame; its ``doc_id``, or its column called like
            ``id``, is the person. By default they are columns of the table.
        group_column: The column of groups; several with ``intersect``.
        intersect: Also the groups of the columns' combinations, such as ``"f × yes"``.
        neutral: Values that mean "no group", such as "not said".
        selected: The column of who was selected: 1, true or yes, or 0, false or no.
        score: The column of scores, higher is better. Without ``selected``, the first ``k`` of each list are selected,
            of tied ones a share each; without ``k``, those with a score above the median of all: the ratios are then
            those of *scoring rates*.
        rank: The column of ranks, from 1, instead of scores.
        query: The column that says which list a row is of, such as a job.
        id: The column of people's ids, each once in a list. Without it each row counts as another person, and if the
            same people are in several lists, what is said of their ratios is said too often.

    Returns:
        The table of groups and what it says; see :class:`ImpactRatios`.

    Raises:
        EvenrankError: For a column that the table lacks and for values that cannot be used, with file and line.
    """
    provenance = Provenance("evenrank.impact_ratios").add("table", table).add("labels", labels)
    provenance.ahead()
    columns = _people(table)
    chosen = strings(group_column)
    if not chosen and labels is None:
        raise EvenrankError(f"{arg.group_column}: expected the column of people's groups, found none")
    if labels is not None and id is None:
        raise EvenrankError(f"{arg.labels} of people in a table need the column of their ids: give {arg.id}")
    named = {"selected": selected, "score": score, "rank": rank, "query": query, "id": id}
    here = chosen if labels is None else ()
    for option, name in [*(("group_column", column) for column in here), *named.items()]:
        if name is not None and name not in columns.table.columns:
            has = ", ".join(columns.table.columns)
            raise columns.error(f"there is no column {quoted(name)} ({arg(option)}): found {has}")
    for name in here:
        values = columns.table[name].cast(pl.String).str.strip_chars().unique()
        numbers = values.cast(pl.Float64, strict=False).drop_nulls()
        # What is not known, or said, may be a word.
        if len(numbers) > max(_MOST_NUMBERS, 0.8 * len(values)):
            raise columns.error(f"{name} ({arg.group_column}) has {len(numbers):,} numbers: make groups of them first")
    reserved = next((name for name in chosen if name in ("doc_id", PROBABILITY)), None)
    if reserved is not None:
        raise EvenrankError(f"{arg.group_column}: a column of groups has another name than {reserved}")
    for name, what in ((query, "list"), (id, "id")):
        if name is not None and columns.table[name].null_count():
            row = columns.table[name].is_null().arg_max()
            raise columns.error(f"expected the {what} of each row in {name}, found none", row)
    number = np.zeros(columns.table.height, dtype=np.int64) if query is None else _numbered(columns.table[query])
    person = None if id is None else _numbered(columns.table[id])
    if id is not None and person is not None:
        _refuse_repeats(columns, number, person, id)
    taken, selects = _selection(columns, number, selected, score, rank, k, query)
    if labels is not None and id is not None:
        keys, label_table = columns.table[id].cast(pl.String).alias("doc_id"), _labels_of_people(labels, id)
    else:
        # A group may be one of a row, such as the shift that somebody applied for.
        keys = pl.Series("doc_id", np.arange(len(number))).cast(pl.String)
        label_table = replace(columns, table=columns.table.select(keys, *chosen))
    source = GroupSource(labels=label_table, neutral=neutral, group_column=chosen, intersect=intersect)
    rows: list[GroupImpact] = []
    for groups in (*source.margins([keys]).values(), source.known([keys])):
        place = IdIndex([groups.table["doc_id"]]).places(keys)
        weights = np.stack([groups.weight(group) for group in groups.groups], axis=1)[place]
        weights[place < 0] = 0
        selection, unknown = Selection.of_rows(taken, weights, person, number), place < 0
        counts = int((~unknown).sum()), int(unknown.sum())
        impacts = group_impacts("", selects, groups.attribute, groups.groups, selection, *counts)
        rows += [replace(row, unknown_selected=float(taken[unknown].sum())) for row in impacts]
    tied = (taken > 0) & (taken < 1)
    settings: dict[str, object] = {
        "table": readable(os.path.basename(columns.path)) if columns.path else "in memory",
        "selects": selects,
        "k": k,
        "group_column": list(chosen),
        "neutral": list(strings(neutral)),
        "lists": int(number.max()) + 1,
        "tied": int(tied.sum()),
        "tied_lists": len(np.unique(number[tied])),
        "id": id,
    }
    people = len(number) if person is None else int(person.max()) + 1
    totals = round(float(taken.sum())), len(taken)
    return ImpactRatios(settings, corrected(rows), people, *totals, provenance=provenance)


def _labels_of_people(labels: object, id: str | None) -> object:
    """Labels whose column of people may be called like the table's."""
    columns = columns_of(labels, arg.labels)
    if columns is None:
        return labels
    if id not in columns.table.columns:
        column_named(columns, DOCUMENT, f" ({arg.id} names the people's)")
        return labels
    return replace(columns, table=columns.table.rename({id: "doc_id"}))


def _people(given: object) -> Columns:
    columns = columns_of(given, arg.table)
    if columns is None:
        raise EvenrankError(f"{arg.table}: expected a path or a frame, found {shown(given)}")
    if not columns.table.height:
        raise columns.error("contains no rows")
    return columns


def _refuse_repeats(columns: Columns, number: Array, person: Array, id: str) -> None:
    again = pl.Series(number * (int(person.max()) + 1) + person).is_duplicated()
    if again.any():
        row = int(again.arg_max() or 0)
        raise columns.error(f"{quoted(columns.table[id][row])} ({arg.id}) is there twice in one list", row)


def _numbered(values: pl.Series) -> Array:
    """The number [N] of each value among those that there are, from 0."""
    table = values.alias("value").to_frame()
    numbers = table.unique(maintain_order=True).with_row_index("number")
    return table.join(numbers, on="value", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)


def _numbers(columns: Columns, name: str) -> Array:
    """A column of numbers [N]. Raises EvenrankError for another value."""
    numbers = columns.table[name].cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    bad = ~numbers.is_finite().fill_null(False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise columns.error(f"expected a number as {name}, found {quoted_number(columns.table[name][row])}", row)
    return numbers.to_numpy()


def _selection(
    columns: Columns,
    number: Array,
    selected: str | None,
    score: str | None,
    rank: str | None,
    k: int | None,
    query: str | None,
) -> tuple[Array, str]:
    """Who is selected [N], and how that is said; ``number`` [N]: of the list."""
    if selected is not None:
        written = columns.table[selected].cast(pl.String).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
        flags = written.replace_strict(_YES, default=None, return_dtype=pl.Float64)
        if flags.null_count():
            row = int(flags.is_null().arg_max() or 0)
            expected = f"expected 1, true or yes, or 0, false or no, as {selected}"
            raise columns.error(f"{expected}, found {quoted(columns.table[selected][row])}", row)
        return flags.to_numpy(), _PHRASES.text("selects_column", column=selected)
    if (score is None) == (rank is None):
        both = "found both" if score is not None else "found neither"
        raise EvenrankError(
            f"{arg.score} or {arg.rank}: expected one of them where {arg.selected} is not given, {both}"
        )
    values = _numbers(columns, score) if score is not None else -_numbers(columns, str(rank))
    if k is None:
        if rank is not None and number.any():
            raise EvenrankError(f"{arg.rank} of several lists: give {arg.k}, as their ranks have no common median")
        return (values > np.median(values)).astype(np.float64), _PHRASES.text(
            "selects_above" if rank is None else "selects_below", column=score or rank
        )
    order = pl.DataFrame({"list": number, "value": -values}).select(
        pl.col("value").rank("min").over("list").alias("from"), pl.col("value").rank("max").over("list").alias("to")
    )
    start, end = (order[name].to_numpy().astype(np.float64) for name in ("from", "to"))
    # Of tied people, each has the chance that a random order of them gives.
    selects = _PHRASES.text("selects_first" if query is None else "selects_first_of_each", k=k, query=query)
    return np.clip((k - start + 1) / (end - start + 1), 0, 1), selects


@dataclass(frozen=True, slots=True, repr=False)
class ImpactRatios(Result):
    """Result of :func:`evenrank.impact_ratios`: ``groups``, the rows of the table, and the number of ``people``.

    ``selected`` of ``candidates``: how many rows of the table are selected, whether their groups are known or not.
    """

    settings: dict[str, object]
    groups: tuple[GroupImpact, ...]
    people: int
    selected: int
    candidates: int

    def __getitem__(self, group: str) -> GroupImpact:
        """The row of a group. Raises EvenrankError for one that there is not."""
        for row in self.groups:
            if row.group == group:
                return row
        raise EvenrankError(f"no group {quoted(group)} (the groups are {', '.join(row.group for row in self.groups)})")

    def impact_table(self) -> Table:
        """The table that an audit of selection publishes."""
        return impact_table(self.groups)

    def impact_text(self) -> str:
        """The impact table as text for a terminal, below the first lines of the screen."""
        return f"{self.page().headline()}\n\n{self.impact_table().text()}"

    def per_query(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as CSV."""
        check_apart([path], [] if self.provenance is None else self.provenance.paths)
        self.impact_table().csv(path)

    def page(self) -> Page:
        """The ratios as a page: findings and the table."""
        lists = self.settings["lists"]
        several = isinstance(lists, int) and lists > 1
        unit = "row" if several and self.settings["id"] is None else "person"
        people = f"{self.people:,} {'rows' if unit == 'row' else 'people'}"
        return Page(
            "audit",
            f"{self.settings['table']}: {self.settings['selects']}",
            tuple(self._findings(several)),
            impact_screen_table(self.groups),
            legend=tuple(self._legend(several)),
            aside=f"{people} in {lists:,} lists" if several else people,
            source="Rate of selection over that of the group selected most. A measurement, no legal advice.",
            plot=functools.partial(ratio_plot, self.groups),
            sections=(Section("As it is published", (self.impact_table(),)),),
            provenance=self.provenance,
            lines=30 + 2 * len(self.groups),
        )

    def _legend(self, several: bool) -> Iterator[str]:
        meanings = {BELOW: "shown below four fifths", LOWER: "lower beyond chance", UNTOLD: "no verdict"}
        yield from (f"{mark} {meaning}" for mark, meaning in meanings.items())
        if (comparisons := sum(row.ratio.p is not None for row in self.groups)) > 1:
            yield f"verdicts are corrected for {comparisons} comparisons, intervals are not"
        if several:
            yield "within: ratio within lists"

    def _findings(self, several: bool) -> Iterator[Finding]:
        """Which groups are below four fifths, who is selected, what chance can do, and what a law publishes.

        ``several``: whether there are several lists.
        """
        first, *others = impact_findings(self.groups)
        yield first
        values: dict[str, Any] = {
            "selects": self.settings["selects"],
            "selected": self.selected,
            "candidates": self.candidates,
        }
        yield _PHRASES.finding("selection", place="warning", **values)
        yield from others
        for row in self.groups:
            ratio, within = row.ratio.mean, row.ratio.within_lists
            if row.undecidable or ratio is None or within is None or f"{ratio:.3f}" == f"{within:.3f}":
                continue
            apart = min(ratio, within) + EQUAL < FOUR_FIFTHS * max(ratio, within)
            if apart or (within < FOUR_FIFTHS - EQUAL) != row.ratio.below:
                values = {"group": row.name, "reference": replace(row, group=row.reference).name}
                yield _PHRASES.finding("within", place="warning", **values, within=within, ratio=ratio)
        yield _PHRASES.finding("published", place="warning")
        if self.settings["tied"]:
            ties: dict[str, Any] = {name: self.settings[name] for name in ("k", "tied", "tied_lists")}
            yield _PHRASES.finding("tied" if several else "tied_in_one", place="note", **ties)
        if several and self.settings["id"] is None:
            yield _PHRASES.finding("no_ids", place="warning")
