"""Who is served: figures by group of query or of user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
from ir_measures import Measure

from evenrank.files.convert import columns_of, id_column
from evenrank.files.errors import EvenrankError, arg, quoted, shown
from evenrank.files.tables import QUERY, Columns, column_named, first_repeat
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.measures import is_bias, resolve
from evenrank.stats.compare import Comparison, compare_groups
from evenrank.stats.estimate import Estimate
from evenrank.stats.values import QueryValues

from .comparison import (
    MISSING_QUERIES,
    UNEQUAL_DEPTH,
    agrees,
    corrected_with_ties,
    depth_decides,
    run_difference,
    run_difference_over_ties,
    unless_missing,
)
from .data import QueryGroup
from .metric_values import possible
from .values import RunValues

_SHOWN = 5
_MOST_GROUPS = 100
_Row = tuple[RunValues, Measure, str]
_Tests = tuple[Comparison, Comparison | None]
"""A test in the order of tied documents that there is, and over all orders."""


# --- what is given ---------------------------------------------------------------------------------------------------


def as_query_groups(given: object, queries: pl.Series) -> pl.DataFrame:
    """The groups of the ``queries`` [Q], ``query_id`` and ``query_group``, null where one has none.

    ``given``: a CSV, TSV, JSONL or Parquet file of ``query_id,group``, ``{query: group}``, a frame or a Series. Raises
    EvenrankError for a query that is repeated, and for fewer than two groups among these queries.
    """
    columns, name = by_query(given, arg.query_groups, "group")
    values = columns.table[name]
    if values.dtype.is_float():
        raise columns.error(f"expected names of groups in the column {name}, found numbers with decimals")
    table = on_axis(columns.table.select("query_id", named(values).alias("query_group")), queries)
    number = table["query_group"].drop_nulls().n_unique()
    if not 2 <= number <= _MOST_GROUPS:
        raise columns.error(
            f"expected from 2 to {_MOST_GROUPS} groups of the {counted(len(queries), 'query')}, found {number}"
        )
    return table


def named(values: pl.Series) -> pl.Series:
    """The names in a column, without white space around them; null of an empty one."""
    names = values.cast(pl.String).str.strip_chars()
    return pl.select(pl.when(names != "").then(names)).to_series()


def on_axis(table: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """What a table says of each of the ``queries`` [Q], by their ids; null of one that it lacks."""
    return table.join(queries.to_frame("query_id"), "query_id", "right", maintain_order="right")


def by_query(given: object, what: str, column: str) -> tuple[Columns, str]:
    """A table with ``query_id``, each once, and the name of its other column, ``column`` where it has several.

    Raises EvenrankError, which begins with ``what``, for what is no such table, and for a query that is repeated.
    """
    if isinstance(given, Mapping):
        ids = pl.Series(list(given), dtype=pl.Object) if given else pl.Series([], dtype=pl.String)
        values = pl.Series(column, list(given.values()), strict=False)
        given = pl.DataFrame([id_column(ids, "query_id", what), values])
    columns = columns_of(given, what, ("query_id", column))
    if columns is None:
        kinds = f"a path, {{query: {column}}} or a table with query_id and {column}"
        raise EvenrankError(f"{what}: expected {kinds}, found {shown(given)}")
    id_name = column_named(columns, QUERY)
    others = [name for name in columns.table.columns if name != id_name]
    name = others[0] if len(others) == 1 else column_named(columns, (column,))
    values = columns.table[name]
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary):
        raise columns.error(f"expected names of {column}s in the column {name}, found other values")
    ids = id_column(columns.table[id_name], "query_id", columns.path or what)
    columns = replace(columns, table=pl.DataFrame([ids, values]))
    again = first_repeat(columns.table, ["query_id"])
    if again is not None:
        raise columns.error(
            f"the query {quoted(ids[again[1]])} is there twice, first in {columns.line(again[0])}", again[1]
        )
    return columns, name


def lacking_groups(groups: pl.Series | None, queries: pl.Series) -> list[str]:
    """A note on the queries without a group, if there are any."""
    if groups is None or not groups.null_count():
        return []
    lacking = queries.filter(groups.is_null())
    some = f"{', '.join(map(quoted, lacking[:_SHOWN]))}{', …' if len(lacking) > _SHOWN else ''}"
    return [f"Query groups: {len(lacking)} of {counted(len(queries), 'query')} have none, and are left out: {some}."]


# --- figures by group -------------------------------------------------------------------------------------------------


def served(
    given: Sequence[RunValues], measures: Sequence[Measure], baseline: str | None, groups: pl.Series | None
) -> tuple[QueryGroup, ...]:
    """The runs' figures by query group [Q], the groups' differences from the other groups, and from the baseline.

    Holm over all groups, runs and measures of a kind, effectiveness or bias. Two groups have one difference. Figures of
    whole runs are no means over queries, and are left out.
    """
    if groups is None:
        return ()
    sizes = groups.drop_nulls().value_counts().sort(["count", "query_group"], descending=[True, False])
    inside = {name: groups.eq(name).fill_null(False).to_numpy() for name in sizes["query_group"]}
    some, first = groups.is_not_null().to_numpy(), next(iter(inside))
    base = next((run for run in given if run.name == baseline), None)
    of_queries = [measure for measure in measures if not (resolve(measure).whole_run or measure.params.get("pooled"))]
    rows = [(run, measure, name) for measure in of_queries for run in given for name in inside]
    tested = [row for row in rows if len(inside) > 2 or row[2] == first]
    apart = _corrected(tested, [_from_others(*row[:2], inside[row[2]], some & ~inside[row[2]]) for row in tested])
    against: dict[tuple[str, Measure, str], Comparison] = {}
    if base is not None:
        compared = [row for row in rows if row[0].name != base.name]
        against = _corrected(compared, [_from_baseline(run, base, m, inside[name]) for run, m, name in compared])
    query_groups = []
    for run, measure, name in rows:
        key, figure = (run.name, measure, name), _figure(run, measure, inside[name])
        test = apart[key] if key in apart else _turned(apart[run.name, measure, first], figure.n)
        query_groups.append(QueryGroup(run.name, str(measure), name, figure, test, against.get(key)))
    return tuple(query_groups)


def _corrected(rows: Sequence[_Row], found: Sequence[_Tests]) -> dict[tuple[str, Measure, str], Comparison]:
    """The tests of the rows, corrected by kind; what ties decide cannot be told."""
    tests = corrected_with_ties([(row[1], *tests) for row, tests in zip(rows, found, strict=True)])
    return {(run.name, measure, name): test for (run, measure, name), test in zip(rows, tests, strict=True)}


def _turned(test: Comparison, n: int) -> Comparison:
    """The difference of the other of two groups."""
    other = test.negated()
    return replace(test, mean=other.mean, ci95=other.ci95, n=n)


def _figure(run: RunValues, measure: Measure, where: Array) -> Estimate:
    values = run[measure]
    figure = values.by_query.on(where).estimate()
    return replace(figure, ci95=None if values.undecidable_reason is not None else possible(figure.ci95, measure))


def _from_others(run: RunValues, measure: Measure, where: Array, others: Array) -> _Tests:
    """Whether a run's mean over a group's queries differs from that over the other groups'."""
    own = run[measure]

    def compared(values: QueryValues) -> Comparison:
        return compare_groups(values.on(where).values, values.on(others).values, clusters=values.clusters)

    test = compared(own.by_query)
    if own.undecidable_reason is not None:
        return test.without_verdict(own.undecidable_reason), None
    if own.by_query.label_sample is not None:
        return test.without_verdict("labels were drawn for all queries together"), None
    if (
        not is_bias(measure)
        and test.shown
        and not run.has.all()
        and not agrees(compared(own.by_query.on(run.has)), test)
    ):
        test = test.without_verdict(MISSING_QUERIES)
    return test, None if own.over_ties is None else compared(own.over_ties)


def _from_baseline(run: RunValues, base: RunValues, measure: Measure, where: Array) -> _Tests:
    """Whether a run differs from the baseline on a group's queries."""
    own, other = run[measure], base[measure]
    test = run_difference(own, other, where)
    reason = own.undecidable_reason or other.undecidable_reason
    if reason is not None:
        return test.without_verdict(reason), None
    if depth_decides(run, base, measure):
        return test.without_verdict(UNEQUAL_DEPTH), None
    return unless_missing(test, run, base, measure, where), run_difference_over_ties(own, other, where)
