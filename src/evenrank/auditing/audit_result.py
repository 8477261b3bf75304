"""The result of an audit in every form: tables for the terminal and for data frames, JSON, a report, every value."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from evenrank.io import EvenrankError, atomic_path, check_apart
from evenrank.io.errors import plain
from evenrank.io.json_values import fields_of, json_text
from evenrank.io.outputs import for_spreadsheets
from evenrank.io.wording import counted
from evenrank.measures import facts
from evenrank.results.result import envelope

from .findings import Findings
from .plane import plane_svg
from .summary import UNKNOWN, labelled, with_origins
from .tables import (
    REFERENCE,
    TIES,
    figures_frame,
    means_table,
    origins_short,
    short_table,
    stage_rows,
    stages_short,
)
from .unknown_labels import only_bounds

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class AuditResult(Findings):
    """What :func:`evenrank.audit` returns.

    ``result["BM25", "nDCG@10"]`` is a :class:`Figure`, with ``mean``, ``ci95`` and ``vs_baseline``.
    """

    def __repr__(self) -> str:
        table = means_table(self, self._title(type(self).__name__)).text()
        return table if self.judged else f"{UNKNOWN}: there are no qrels.\n{table}"

    def _repr_html_(self) -> str:
        """The table and the plane of effectiveness against bias, for a notebook."""
        unknown = "" if self.judged else f"<p>{UNKNOWN}: there are no qrels.</p>"
        bounds = " Without a value: bounds over every way to label the unknown documents." if only_bounds(self) else ""
        known = " Known: share of the documents looked at that have a label." if labelled(self) else ""
        foot = f"Mean and 95% interval.{bounds}{known} {REFERENCE} reference ranking of the same candidates."
        parts = [unknown, short_table(self, self._title("Audit")).html(), _small(foot), plane_svg(self)]
        return f"<div>{''.join(parts)}{_origins(self)}{_stages(self)}</div>"

    def _title(self, heading: str) -> str:
        baseline = "no baseline" if self.baseline is None else f"baseline {self.baseline}"
        return plain(f"{heading}: {counted(len(self.given), 'run')}, {counted(len(self.queries), 'query')}, {baseline}")

    def table(self, width: int = 120) -> str:
        """The audit for a terminal, ``width`` characters wide."""
        from .text import render_text

        return render_text(self, width)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        from .audit_page import render_page

        return render_page(self)

    def to_dict(self, *, values: bool = False) -> dict[str, object]:
        """The audit as JSON values.

        ``values``: with the ids of the queries and the value of each in every figure, for what reads the audit later.
        """
        measures = {str(measure): facts(measure) for measure in self.measures}
        runs = {run.name: fields_of(run, by_query=values) for run in self.runs}
        return fields_of(self, by_query=values) | {"runs": runs, "measures": measures}

    def to_json(self, path: str | os.PathLike[str] | None = None, *, values: bool = False) -> str:
        """The audit as JSON, also written to ``path`` if one is given; ``values``: see :meth:`to_dict`."""
        text = json_text(envelope(self.to_dict(values=values), self.provenance))
        if path is not None:
            self._write(path, text + "\n")
        return text

    def frames(self) -> dict[str, pl.DataFrame]:
        """:meth:`to_polars` and :meth:`per_query`, by name."""
        return {"figures": self.to_polars(), "queries": self.per_query()}

    def to_polars(self) -> pl.DataFrame:
        """All figures in long form, one row per run and measure.

        Columns: ``run``, ``measure``, ``mean``, ``n``, ``undefined``, ``low`` and ``high`` (of the 95% interval); with
        labels ``known`` of ``known_of`` rows that the measure looks at, and ``bound_low`` and ``bound_high``;
        ``tie_mean``, ``tie_low``, ``tie_high``; of a listwise re-ranking ``order_mean``, ``order_low``, ``order_high``;
        of the comparison with the baseline ``difference``, ``relative``, ``better``, ``equal``, ``worse``, ``t_p``,
        ``wilcoxon_p``, ``holm_p``, ``p``, ``difference_low`` and ``difference_high``; of
        what the run's order adds to its candidates ``added``, ``added_low``, ``added_high``, ``added_p`` and
        ``added_tie_mean``, and the same of what it has ``beyond_relevance``. Null where there is no value.
        """
        return figures_frame(self).frame()

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`to_polars` as a pandas frame. Raises EvenrankError if pandas is not installed."""
        if importlib.util.find_spec("pandas") is None:
            raise EvenrankError("to_pandas needs pandas, which is not installed: pip install pandas, or use to_polars")
        return self.to_polars().to_pandas()

    def per_query(self, path: str | os.PathLike[str] | None = None) -> pl.DataFrame:
        """Every value: ``query_id``, ``run`` and one column per measure, null if undefined; also as CSV to ``path``.

        In the CSV, an id or name that a spreadsheet would take for a formula is prefixed with an apostrophe.
        """
        parts = [
            pl.DataFrame(
                {
                    "query_id": self.queries,
                    "run": [run.name] * len(self.queries),
                    **{name: pl.Series(figure.values).fill_nan(None) for name, figure in run.figures.items()},
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


def _origins(result: Findings) -> str:
    """What each run's order adds to its candidates, and what it has beyond relevance; "" where that is not known."""
    figures = [run.figures[str(measure)] for measure in with_origins(result) for run in result.given]
    if not figures:
        return ""
    tied = any(of.tie_sensitive for one in figures for of in (one.added, one.beyond_relevance) if of is not None)
    beyond = any(figure.beyond_relevance is not None for figure in figures)
    more = " Beyond relevance: run minus a perfect ranking of the same candidates." if beyond else ""
    foot = f"Run minus its own candidates in random order, with 95% interval.{more} p: t and Hall's t, uncorrected."
    return origins_short(result).html() + _small(foot + _TIED * tied)


def _stages(result: Findings) -> str:
    """What each step of a pipeline adds, and the sum after it; "" without stages."""
    if result.stages is None or not result.stages.measures:
        return ""
    tied = any(row.tie_sensitive for of in result.stages.measures.values() for row in stage_rows(of))
    return stages_short(result).html() + _small("Added, with 95% interval, and the sum so far." + _TIED * tied)


_TIED = f" {TIES} the order of tied documents decides."


def _small(text: str) -> str:
    return f"<p><small>{text}</small></p>"
