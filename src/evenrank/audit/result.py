"""An audit's forms: a table, JSON, a page, and every value."""

from __future__ import annotations

import os
from dataclasses import dataclass

import polars as pl

from evenrank import __version__
from evenrank.io import atomic_path, write_text
from evenrank.io.written import for_spreadsheets, json_text

from .findings import Findings


@dataclass(frozen=True, repr=False)
class AuditResult(Findings):
    """What :func:`evenrank.audit` returns: its findings, and the forms to give them in."""

    def __repr__(self) -> str:
        from .report.notebook import audit_lines

        return audit_lines(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .report.notebook import audit_html

        return audit_html(self)

    def table(self, width: int = 120) -> str:
        """The audit as a table of text, ``width`` characters wide."""
        from .report.text import render_text

        return render_text(self, width)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The audit as JSON (the form is in the README); also written to ``path`` if one is given."""
        data = {
            "evenrank": __version__,
            "settings": self.settings,
            "baseline": self.baseline,
            "runs": {run.name: run.to_dict() for run in self.runs},
            "notes": list(self.notes),
            "words": None if self.words is None else self.words.to_dict(),
            **({} if self.provenance is None else {"provenance": self.provenance.to_dict()}),
        }
        text = json_text(data)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the audit as one HTML page that needs no network."""
        from .report.page import render_page

        write_text(path, render_page(self))

    def per_query(self, path: str | os.PathLike[str] | None = None) -> pl.DataFrame:
        """Every value: ``query_id``, ``run`` and a column a measure, null where undefined; also as CSV to ``path``.

        In the CSV an apostrophe stands before an id or a name that a spreadsheet would take for a formula.
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
