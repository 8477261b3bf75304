"""An audit of a log of rankings, from the sums that the query of :func:`evenrank.audit_sql` makes of it."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.files import Provenance
from evenrank.files.arguments import checked
from evenrank.files.convert import PathLike
from evenrank.files.errors import quoted, readable
from evenrank.files.tables import Columns, read_columns
from evenrank.files.types import Array
from evenrank.files.wording import are, counted
from evenrank.groups import builtin_lexicons, load_lexicon
from evenrank.measures import greatest_value, parse_measures
from evenrank.results.finding import phrases
from evenrank.stats.clusters import ClusterSums
from evenrank.stats.values import QueryValues

from .audit_result import AuditResult
from .audit_sql import FIGURES, STATISTICS
from .data import RANDOM
from .group_shares import group_shares
from .inputs import named_runs
from .metric_values import run_audits
from .query_clusters import query_clusters
from .values import MeasureValues, RunValues

_PHRASES = phrases("audit")
_COUNTS = ("views", "documents", "unknown", "unranked", "repeated", "copied")
_MAY_BE_NULL = ("_least", "_most")
"""What a query has none of where all its values are 0."""


@checked
def audit_sums(
    sums: Annotated[PathLike, opt.Option("The result of the query of --sql (CSV, TSV, JSONL, Parquet).", reads=True)],
) -> AuditResult:
    """Measure the group bias of a log of rankings, from sums by query.

    The result is that of :func:`evenrank.audit` of the log, with a view as a query and views of the same words as one
    cluster. Its figures by query are the means over the query's views. Sums know no judgements, compare no runs, and
    have no values of single views for a gate.

    Args:
        sums: What the query of :func:`evenrank.audit_sql` returns, as a file; ``NAME=FILE`` names the ranking.

    Returns:
        The figures with intervals and tests.

    Raises:
        EvenrankError: For a file that is not of that query, and a log with ties, gaps or documents without a group.
    """
    ((name, file),) = named_runs([sums]).items()
    path = str(file)
    provenance = Provenance("evenrank.audit_sums").add("sums", path)
    columns = read_columns(path)
    if len({name.lower() for name in columns.table.columns}) < columns.table.width:
        raise columns.error("two columns have names that differ in case alone")
    columns = Columns(columns.table.rename(str.lower), columns.path, columns.what, columns.lines)
    if not columns.table.height:
        raise columns.error("has no rows: the log has no views")
    counts = {key: _numbers(columns, key).astype(np.int64) for key in _COUNTS}
    settings = _settings(columns)
    _refuse(columns, counts, settings)
    measures = parse_measures(settings["measures"])
    rows = pl.Series("query_id", np.arange(columns.table.height)).cast(pl.String)
    texts = pl.DataFrame([rows, _column(columns, "query").cast(pl.String).alias("text")])
    clusters = query_clusters(None, rows, texts.drop_nulls(), None).numbers
    clusters = np.arange(len(rows)) if clusters is None else clusters
    rankings = [
        RunValues(
            name=of_run,
            queries=int(counts["views"].sum()),
            measures={
                str(measure): _values(
                    columns, counts["views"], clusters, k, measure, figure, 1.0 if "labels" in settings else None
                )
                for k, measure in enumerate(measures, start=1)
            },
            tie_share=0.0,
            lengths=counts["documents"] / counts["views"],
        )
        for of_run, figure in ((name, FIGURES[0]), (RANDOM, FIGURES[1]))
    ]
    results = run_audits(rankings, measures, None, {name: {"random": rankings[1]}})
    shown = ("run", "query_id", "doc_id", *(f"count_{group}" for group in settings["groups"]))
    return AuditResult(
        settings={**settings, "sums": readable(os.path.basename(path)), "query_clusters": "same words"},
        baseline=None,
        runs=results,
        notes=(),
        queries=texts["text"].alias("query_id"),
        rankings=pl.DataFrame(schema=dict.fromkeys(shown, pl.String)),
        lexicon=load_lexicon(settings["lexicon"]) if settings.get("lexicon") in builtin_lexicons() else None,
        misleading=(_PHRASES.finding("unknown", "", "cannot be told", None, "answer"),),
        provenance=provenance,
        query_cluster=pl.Series(clusters) if len(np.unique(clusters)) < counts["views"].sum() else None,
        views=pl.Series(counts["views"]),
        shares=group_shares(results),
    )


def _numbers(columns: Columns, name: str) -> Array:
    """A column of numbers [Q]; NaN where it may have none. Raises EvenrankError for another value."""
    column = _column(columns, name)
    column = column.replace("", None) if column.dtype == pl.String else column
    numbers = column.cast(pl.Float64, strict=False)
    known = numbers.filter(column.is_not_null()) if name.endswith(_MAY_BE_NULL) else numbers
    sound, whole = known.is_finite().fill_null(False), name in _COUNTS
    if whole:
        sound &= (known >= (name in _COUNTS[:2])) & (known == known.round())
    if not sound.all():
        raise columns.error(f"expected a {'whole ' * whole}number in each row of {name}")
    return numbers.fill_null(np.nan).to_numpy()


def _column(columns: Columns, name: str) -> pl.Series:
    """A column. Raises EvenrankError for one that the table lacks."""
    if name not in columns.table.columns:
        raise columns.error(f"expected what the query of `evenrank.audit_sql` returns, found no column {name}")
    return columns.table[name]


def _settings(columns: Columns) -> dict[str, Any]:
    """What the query said of its measures and groups."""
    try:
        (text,) = _column(columns, "settings").unique()
        values = json.loads(text)
        return {key: values[key] for key in ("measures", "groups", "poles", *({"lexicon", "labels"} & values.keys()))}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise columns.error(
            "expected the settings of one query of `evenrank.audit_sql` in the column settings"
        ) from None


def _refuse(columns: Columns, counts: dict[str, Array], settings: dict[str, Any]) -> None:
    """Raises EvenrankError for a log that no sums can be made of."""
    unranked, unknown, repeated = (int(counts[key].sum()) for key in ("unranked", "unknown", "repeated"))
    if counts["copied"].any():
        raise columns.error("a document stands twice in the group table: expected one row a document")
    for number, group in enumerate(settings["groups"] if "labels" in settings else (), start=1):
        if not _numbers(columns, f"rows_of_{number}").any():
            raise columns.error(f"no document of the log is of group {quoted(group)}")
    if unranked:
        raise columns.error(
            f"the ranks of {counted(unranked, 'view')} are not 1, 2, 3 …: sums know neither ties nor gaps"
        )
    if unknown:
        raise columns.error(f"{counted(unknown, 'row')} of the log {are(unknown)} of a document without a group")
    if repeated:
        raise columns.error(f"a document stands twice in {counted(repeated, 'view')}")


def _values(
    columns: Columns, views: Array, clusters: Array, k: int, measure: Measure, figure: str, greatest: float | None
) -> MeasureValues:
    """A figure of a measure, the k-th; ``greatest``: the largest size of a value, where the measure does not say."""

    def summed(figure: str, beyond: QueryValues | None = None) -> QueryValues:
        total, nonzero, least, most = (_numbers(columns, f"{figure}_{k}_{part}") for part in STATISTICS)
        sums = ClusterSums(views, total, nonzero, float(np.fmin.reduce(least)), float(np.fmax.reduce(most)))
        return QueryValues(total / views, sums=sums.merged(clusters), beyond=beyond)

    values = summed(figure, summed(FIGURES[2]) if figure == FIGURES[0] else None)
    mean = values.mean or 0.0
    return MeasureValues(
        measure=measure,
        parts=(values.values,),
        by_query=values,
        tie_mean=mean,
        tie_range=(mean, mean),
        greatest=greatest_value(measure) or (greatest if figure == FIGURES[0] else None),
        order_variances=np.bincount(clusters, _numbers(columns, f"sd_{k}_sum")) ** 2,
    )
