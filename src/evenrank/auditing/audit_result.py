"""The result of an audit in every form: tables for the terminal and for data frames, JSON, a report, every value."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from evenrank.io import EvenrankError, atomic_path, write_text
from evenrank.io.outputs import for_spreadsheets, json_text
from evenrank.measures import facts
from evenrank.results.result import Result, envelope

from .findings import Excess, Findings, RunAudit

if TYPE_CHECKING:
    import pandas

_COMPARISON = ("difference", "relative", "better", "equal", "worse", "t_p", "wilcoxon_p", "holm_p", "p")
_EXCESSES = ("added", "beyond_relevance")
_SCHEMA = {
    **{"run": pl.String, "measure": pl.String, "mean": pl.Float64, "n": pl.Int64, "undefined": pl.Int64},
    **dict.fromkeys(("low", "high"), pl.Float64),
    **{"known": pl.Int64, "known_of": pl.Int64, "bound_low": pl.Float64, "bound_high": pl.Float64},
    **dict.fromkeys(("tie_mean", "tie_low", "tie_high"), pl.Float64),
    **dict.fromkeys(("order_mean", "order_low", "order_high"), pl.Float64),
    **dict.fromkeys(("difference", "relative"), pl.Float64),
    **dict.fromkeys(("better", "equal", "worse"), pl.Int64),
    **dict.fromkeys(("t_p", "wilcoxon_p", "holm_p", "p", "difference_low", "difference_high"), pl.Float64),
    **{f"{name}{suffix}": pl.Float64 for name in _EXCESSES for suffix in ("", "_low", "_high", "_p", "_tie_mean")},
}


@dataclass(frozen=True, repr=False)
class AuditResult(Findings, Result):
    """What :func:`evenrank.audit` returns.

    ``result["BM25", "nDCG@10"]`` is a :class:`Figure`, with ``mean``, ``ci95`` and ``vs_baseline``.
    """

    def __repr__(self) -> str:
        from .notebook_html import audit_lines

        return audit_lines(self)

    def _repr_html_(self) -> str:
        """The table and the plane of effectiveness against bias, for a notebook."""
        from .notebook_html import audit_html

        return audit_html(self)

    def table(self, width: int = 120) -> str:
        """The audit for a terminal, ``width`` characters wide."""
        from .text import render_text

        return render_text(self, width)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        from .audit_page import render_page

        return render_page(self)

    def to_dict(self) -> dict[str, object]:
        """The values of :meth:`to_json`, as dicts, lists, strings, numbers and None."""
        values: dict[str, object] = json.loads(self.to_json())
        return values

    def to_json(self, path: str | os.PathLike[str] | None = None, *, values: bool = False) -> str:
        """The audit as JSON, also written to ``path`` if one is given.

        ``values``: with the ids of the queries and the value of each in every figure, for what reads the audit later.
        """
        contents = {
            "settings": self.settings,
            "baseline": self.baseline,
            **({"queries": self.queries.to_list()} if values else {}),
            "runs": {run.name: run.to_dict(values=values) for run in self.runs},
            "measures": {str(measure): facts(measure) for measure in self.measures},
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "words": None if self.words is None else self.words.to_dict(),
            **({} if self.stages is None else {"stages": self.stages.to_dict()}),
        }
        text = json_text(envelope(contents, self.provenance))
        if path is not None:
            write_text(path, text + "\n")
        return text

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
        return pl.DataFrame([row for run in self.runs for row in _rows(run)], schema=_SCHEMA)

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
            with atomic_path(path) as part:
                for_spreadsheets(table).write_csv(part)
        return table


def _rows(run: RunAudit) -> list[dict[str, object]]:
    rows = []
    for measure, figure in run.figures.items():
        compared = figure.vs_baseline
        low, high = figure.ci95 or (None, None)
        known, known_of = figure.known or (None, None)
        bound_low, bound_high = figure.bounds or (None, None)
        tie_low, tie_high = figure.tie_range or (None, None)
        order_low, order_high = figure.order_range or (None, None)
        difference_low, difference_high = (compared.ci95 if compared is not None else None) or (None, None)
        rows.append(
            {
                **{"run": run.name, "measure": measure, "mean": figure.mean, "n": figure.n},
                **{"undefined": figure.undefined, "low": low, "high": high},
                **{"known": known, "known_of": known_of, "bound_low": bound_low, "bound_high": bound_high},
                **{"tie_mean": figure.tie_mean, "tie_low": tie_low, "tie_high": tie_high},
                **{"order_mean": figure.order_mean, "order_low": order_low, "order_high": order_high},
                **{name: getattr(compared, name, None) for name in _COMPARISON},
                **{"difference_low": difference_low, "difference_high": difference_high},
                **_differences("added", figure.added),
                **_differences("beyond_relevance", figure.beyond_relevance),
            }
        )
    return rows


def _differences(name: str, of: Excess | None) -> dict[str, float | None]:
    if of is None:
        return {}
    low, high = of.ci95 or (None, None)
    ends = {f"{name}_low": low, f"{name}_high": high}
    return {name: of.mean, **ends, f"{name}_p": of.test.p, f"{name}_tie_mean": of.tie_mean}
