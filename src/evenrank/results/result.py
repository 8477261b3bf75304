"""What every command returns: fields that are the JSON, tables for the terminal, a view for notebooks, a page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from evenrank._version import __version__
from evenrank.files import Provenance, check_apart, write_text
from evenrank.files.json_values import LEFT_OUT, fields_of, json_text, json_values

from .finding import Finding
from .page import Page
from .table import Interval

SCHEMA = 2
"""The number of the JSON's form: it rises where a key is renamed or taken out."""
_LONGEST = 400


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The base of all results, dataclasses whose fields make the JSON (see :mod:`evenrank.files.json_values`).

    A subclass has :meth:`page`, or overrides what is made of it. The provenance ends JSON and page.
    """

    provenance: Provenance | None = field(default=None, repr=False, compare=False, kw_only=True, metadata=LEFT_OUT)

    def __repr__(self) -> str:
        return summary_line(type(self).__name__, self.to_dict())

    def __str__(self) -> str:
        """The screen of the command, as ``print`` shows it."""
        return self.table()

    def _repr_html_(self) -> str:
        """The view in a notebook: the same as in the terminal."""
        return self.page().notebook()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the result, in the order of the screen."""
        return self.page().findings

    def page(self) -> Page:
        """The result as a page: findings, tables and charts."""
        raise NotImplementedError(f"{type(self).__name__} has no page")

    def table(self, *, full: bool = False, width: int = 80) -> str:
        """The screen of the command; ``full``: with all figures and notes. ``width``: in characters."""
        return self.page().text(full=full, width=width)

    def frames(self) -> dict[str, pl.DataFrame]:
        """The figures as data frames, by the titles of their tables."""
        return {table.title: table.frame() for table in self.page().tables}

    def to_dict(self) -> dict[str, object]:
        """The fields as JSON values: dicts, lists, strings, numbers, booleans and None."""
        findings = {"findings": json_values(self.findings)}
        return fields_of(self) | {name: json_values(value) for name, value in self._beside().items()} | findings

    def _beside(self) -> Mapping[str, object]:
        """What the JSON has beside the fields."""
        return {}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The result as JSON, with version, schema number and provenance, also written to ``path`` if one is given."""
        text = json_text(envelope(self.to_dict(), self.provenance))
        if path is not None:
            self._write(path, text + "\n")
        return text

    def _write(self, path: str | os.PathLike[str], text: str) -> None:
        """Writes a file. Raises InputError for one that the result was made from."""
        check_apart([path], [] if self.provenance is None else self.provenance.paths)
        write_text(path, text)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        return replace(self.page(), provenance=self.provenance).html()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as one HTML page that opens without a network."""
        self._write(path, self.html())


def metric_entries(name: str, value: float | None, ends: Interval | None) -> dict[str, float]:
    """A figure as ``NAME``, ``NAME/low`` and ``NAME/high``; what is undefined is left out."""
    if value is None:
        return {}
    return {name: value} | ({} if ends is None else {f"{name}/low": ends[0], f"{name}/high": ends[1]})


def envelope(values: Mapping[str, object], provenance: Provenance | None) -> dict[str, object]:
    """The JSON of a result: the version and the schema number first, and last its provenance if it is known."""
    last = {} if provenance is None else {"provenance": provenance.to_dict()}
    return {"evenrank": __version__, "schema": SCHEMA, **values, **last}


def summary_line(name: str, values: Mapping[str, object]) -> str:
    """A result's scalar values on one line, nested ones left out: ``Result(queries=5, mean=0.25)``."""
    shown = [
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value!r}"
        for key, value in values.items()
        if value is None or isinstance(value, str | int | float)
    ]
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]}…)"
