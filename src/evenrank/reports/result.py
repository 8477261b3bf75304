"""What every result can do: a table for the terminal, JSON, a notebook view and an HTML report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from evenrank._version import __version__
from evenrank.io import Provenance, write_text
from evenrank.io.atomic import json_text

from .notebook import page_html, summary_line
from .page import Page


class Result:
    """A result that can be shown as a table, as JSON and as a page.

    A subclass has :meth:`page` and :meth:`to_dict`, or overrides what is made of them.
    """

    __slots__ = ()
    provenance: Provenance | None

    def __repr__(self) -> str:
        return summary_line(type(self).__name__, {"name": getattr(self, "name", None)} | self.to_dict())

    def _repr_html_(self) -> str:
        """The view in a notebook."""
        return page_html(self.page())

    def page(self) -> Page:
        """The figures as a page."""
        raise NotImplementedError(f"{type(self).__name__} has no page")

    def to_dict(self) -> dict[str, object]:
        """The figures and their settings as JSON values."""
        raise NotImplementedError(f"{type(self).__name__} has no values")

    def table(self) -> str:
        """All figures, for a terminal."""
        return self.page().text()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The figures as JSON, also written to ``path`` if one is given."""
        text = json_text(self.enveloped())
        if path is not None:
            write_text(path, text)
        return text

    def enveloped(self, **beside: object) -> dict[str, object]:
        """The values of :meth:`to_json`, with others ``beside`` them."""
        return envelope({**self.to_dict(), **beside}, self.provenance)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        return replace(self.page(), provenance=self.provenance).html()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as one HTML page that opens without a network."""
        write_text(path, self.html())


def envelope(values: Mapping[str, object], provenance: Provenance | None) -> dict[str, object]:
    """The JSON of a result: the version first, and last its provenance if it is known."""
    last = {} if provenance is None else {"provenance": provenance.to_dict()}
    return {"evenrank": __version__, **values, **last}
