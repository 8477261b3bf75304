"""The result of an audit in every form: tables for the terminal and for data frames, JSON, a report, every value."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from evenrank.files import EvenrankError, arg, atomic_path, check_apart
from evenrank.files.json_values import fields_of, json_text, json_values
from evenrank.files.outputs import for_spreadsheets
from evenrank.measures import facts
from evenrank.results.page import Page
from evenrank.results.result import envelope
from evenrank.results.table import Table

from .data import AuditFigures
from .impact import impact_table, impact_text
from .tables import figures_frame, query_groups_table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class AuditResult(AuditFigures):
    """Result of :func:`evenrank.audit`: every run's measures, comparisons and findings.

    ``result["BM25", "nDCG@10"]`` is a :class:`MetricValue`, with ``mean``, ``ci95`` and ``vs_baseline``.
    """

    def __repr__(self) -> str:
        return self.table()

    def page(self) -> Page:
        """The audit as a page: findings, tables and notes."""
        return self._page

    @cached_property
    def _page(self) -> Page:
        from .audit_page import audit_page

        return audit_page(self)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        from .audit_page import render_page

        return render_page(self)

    def to_dict(self, *, values: bool = False) -> dict[str, object]:
        """The audit as JSON values.

        ``values``: with the ids of the queries and the value of each in every figure, for what reads the audit later.
        Raises EvenrankError for values of sums, which have none of a view.
        """
        if values and self.views is not None:
            raise EvenrankError("sums by query have no values of single views")
        measures = {str(measure): facts(measure) for measure in self.measures}
        runs = {run.name: fields_of(run, by_query=values) for run in self.runs}
        findings = {"findings": json_values(self.findings)}
        return fields_of(self, by_query=values) | {"runs": runs, "measures": measures} | findings

    def to_json(self, path: str | os.PathLike[str] | None = None, *, values: bool = False) -> str:
        """The audit as JSON, also written to ``path`` if one is given; ``values``: see :meth:`to_dict`."""
        text = json_text(envelope(self.to_dict(values=values), self.provenance))
        if path is not None:
            self._write(path, text + "\n")
        return text

    def metrics(self) -> dict[str, float]:
        """The figures by name, as trackers of experiments take them: ``ARaB@10``, ``ARaB@10/low``, ``ARaB@10/high``.

        The interval is the 95% one. If there are several runs, the run's name stands first (``BM25/ARaB@10``), and
        ``result["BM25"].metrics()`` has those of one run. What is undefined is left out.
        """
        if len(self.given) == 1:
            return self.given[0].metrics()
        return {f"{run.name}/{name}": value for run in self.given for name, value in run.metrics().items()}

    def frames(self) -> dict[str, pl.DataFrame]:
        """:meth:`to_polars` and :meth:`per_query`, by name; with groups of queries also their table."""
        groups = {"query_groups": query_groups_table(self).frame()} if self.query_groups else {}
        return {"figures": self.to_polars(), "queries": self.per_query(), **groups}

    def to_polars(self) -> pl.DataFrame:
        """All figures in long form, one row per run and measure.

        Columns: ``run``, ``measure``, ``mean``, ``n``, ``undefined``, ``low`` and ``high`` (of the 95% interval); with
        labels ``known`` of ``known_of`` rows that the measure looks at, and ``bound_low`` and ``bound_high``;
        ``tie_mean``, ``tie_low``, ``tie_high``;
        of the comparison with the baseline ``difference``, ``relative``, ``better``, ``equal``, ``worse``,
        ``holm_p``, ``p``, ``difference_low`` and ``difference_high``; of what the run's order adds to its candidates
        ``vs_random_order``, ``vs_random_order_low``, ``vs_random_order_high``, ``vs_random_order_p`` and
        ``vs_random_order_tie_mean``, and the same of what it has beyond an ideal order, ``vs_ideal_order``. Null where
        there is no value.
        """
        return figures_frame(self).frame()

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`to_polars` as a pandas frame. Raises EvenrankError if pandas is not installed."""
        if importlib.util.find_spec("pandas") is None:
            raise EvenrankError("to_pandas needs pandas, which is not installed: pip install pandas, or use to_polars")
        return self.to_polars().to_pandas()

    def impact_table(self) -> Table:
        """The table that an audit of selection publishes. Raises EvenrankError where no ImpactRatio was measured."""
        if not self.impact:
            raise EvenrankError(f"there is no table of impact ratios: {arg.measures} has no ImpactRatio")
        return impact_table(self.impact)

    def impact_text(self) -> str:
        """The impact table as text for a terminal, below a line on the groups under four fifths of the highest rate."""
        self.impact_table()
        return impact_text(self.impact)

    def per_query(self, path: str | os.PathLike[str] | None = None) -> pl.DataFrame:
        """Every value: ``query_id``, ``run`` and one column per measure, null if undefined; also as CSV to ``path``.

        With groups of queries, ``query_group`` stands behind the run; of sums, ``views`` of the query, of which the
        values are means.

        In the CSV, an id or name that a spreadsheet would take for a formula is prefixed with an apostrophe.
        """
        parts = [
            pl.DataFrame(
                {
                    "query_id": self.queries,
                    "run": [run.name] * len(self.queries),
                    **({} if self.query_group is None else {"query_group": self.query_group}),
                    **({} if self.views is None else {"views": self.views}),
                    **{name: pl.Series(figure.values).fill_nan(None) for name, figure in run.measures.items()},
                }
            )
            for run in self.runs
        ]
        table = pl.concat(parts)
        if path is not None:
            check_apart([path], [] if self.provenance is None else self.provenance.paths)
            with atomic_path(path) as part:
                for_spreadsheets(table).write_csv(part)
        return table
