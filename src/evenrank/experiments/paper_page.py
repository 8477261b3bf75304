"""An experiment as one HTML page that opens offline: claims, tables, figures, notes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from evenrank.io import Provenance
from evenrank.io.atomic import json_text
from evenrank.reports.page import COLOURS, Drawing, bars, curve, render_charts, specification
from evenrank.reports.result import envelope

from .paper_claims import Claim
from .paper_tables import Table, Value

__all__ = ["Drawing", "ExperimentPage", "bars", "curve", "plane"]


Curves = Mapping[str, Sequence[tuple[str, Value, Value]]]
"""For each method that reorders a run its points by strength: name, utility and bias."""


def plane(
    name: str,
    title: str,
    points: Mapping[str, tuple[Value, Value]],
    x: str,
    y: str,
    ends: tuple[str, str] | None,
    curves: Curves | None = None,
) -> Drawing:
    """Utility (x) against bias (y): a point per system with its intervals, the line between two ``ends``, and a line
    per method of ``curves``."""
    import altair as alt

    rows = [_point(system, *values) for system, values in points.items()]
    rows = [row for row in rows if row["x"] is not None and row["y"] is not None]
    middle = (min(row["xLow"] for row in rows) + max(row["xHigh"] for row in rows)) / 2 if rows else 0
    rows = [{**row, "side": "right" if row["x"] > middle else "left"} for row in rows]
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title=x, scale=alt.Scale(zero=False, padding=30))
    up = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=20))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS))
    tips = [
        alt.Tooltip("system:N"),
        alt.Tooltip("x:Q", title=x, format=".4f"),
        alt.Tooltip("y:Q", title=y, format=".4f"),
    ]
    layers = [
        data.mark_rule(opacity=0.5).encode(x=alt.X("xLow:Q", title=x), x2="xHigh:Q", y=up, color=colour),
        data.mark_rule(opacity=0.5).encode(y=alt.Y("yLow:Q", title=y), y2="yHigh:Q", x=across, color=colour),
        data.mark_point(size=90, filled=True, opacity=1).encode(x=across, y=up, color=colour, tooltip=tips),
        # Names are on the side with more room.
        *(
            data.transform_filter(f"datum.side === '{side}'")
            .mark_text(dx=dx, dy=-9, align=side, fontSize=12)
            .encode(x=across, y=up, text="system:N", color=colour)
            for side, dx in (("left", 8), ("right", -8))
        ),
    ]
    found = {row["system"]: row for row in rows}
    hint = "Bars are 95% intervals (over seeds; over queries where there is one seed)."
    if ends is not None and all(end in found for end in ends):
        line = alt.Chart(alt.Data(values=[{"x": found[end]["x"], "y": found[end]["y"]} for end in ends]))
        layers.insert(0, line.mark_line(strokeDash=[5, 4], color="#8a8f98").encode(x=across, y=up))
        hint += (
            f" The dashed line from {ends[0]} to {ends[1]}: what masking group words in part of the data would achieve."
        )
    chart = alt.layer(*layers)
    if curves:
        hint += (
            " Thin lines: the untouched ranker's runs, reordered by each method of rebalance at rising strength, as far"
            " as they lose no fifth of the effectiveness and do not double the bias; the table Rebalance has the rest."
        )
        below = alt.Legend(orient="bottom", columns=3, title="rebalance")
        named = alt.Color("method:N", sort=[*curves], scale=alt.Scale(range=COLOURS), legend=below)
        drawn = alt.Chart(alt.Data(values=_curve_rows(curves))).encode(x=across, y=up, color=named)
        line = drawn.mark_line(strokeWidth=1).encode(order="place:Q")
        spots = drawn.mark_point(size=25).encode(tooltip=[alt.Tooltip("reordering:N"), *tips[1:]])
        chart = alt.layer(alt.layer(line, spots), chart).resolve_scale(color="independent")
    return Drawing(name, title, specification(chart.properties(width=780, height=420)), hint)


def _curve_rows(curves: Curves) -> list[dict[str, object]]:
    """The points of each method's line."""
    return [
        {"method": method, "reordering": name, "place": place, "x": x.mean, "y": y.mean}
        for method, curve in curves.items()
        for place, (name, x, y) in enumerate(curve)
        if x.mean is not None and y.mean is not None
    ]


def _point(system: str, x: Value, y: Value) -> dict[str, Any]:
    kind = "control" if system in ("blind", "random", "neutral-first", "BM25") else "ranker"
    x_low, x_high = x.ci95 or (x.mean, x.mean)
    y_low, y_high = y.ci95 or (y.mean, y.mean)
    ends = {"xLow": x_low, "xHigh": x_high, "yLow": y_low, "yHigh": y_high}
    return {"system": system, "kind": kind, "x": x.mean, "y": y.mean, **ends}


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """The results of an experiment."""

    name: str
    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def text(self) -> str:
        """The results for a terminal."""
        facts = "; ".join(f"{name}: {value}" for name, value in self.facts)
        head = [*self.warnings, self.title, self.source, facts]
        parts = ["\n".join(head), *(table.text() for table in self.tables)]
        parts.append("\n".join(["Claims:", *(f"  {claim}" for claim in self.claims)]))
        parts.append("\n".join(["Notes:", *(f"  {note}" for note in self.notes)]))
        return "\n\n".join(parts)

    @property
    def warnings(self) -> list[str]:
        """The warnings of all tables, each once: destroyed rankers."""
        return list(dict.fromkeys(warning for table in self.tables for warning in table.warnings))

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        claims = [claim.to_dict() for claim in self.claims]
        values = {
            "experiment": self.name,
            "facts": dict(self.facts),
            "warnings": self.warnings,
            "claims": claims,
            "tables": [table.to_dict() for table in self.tables],
            "figures": [{"name": d.name, "title": d.title, "chart": d.specification} for d in self.drawings],
            "notes": list(self.notes),
        }
        return envelope(values, self.provenance)

    def html(self) -> str:
        """One self-contained page; its content security policy forbids all requests and all scripts but its own."""
        template = (resources.files(__package__) / "assets" / "experiment.html.j2").read_text(encoding="utf-8")
        rows = [[(row, table.cells(row)) for row in table.rows] for table in self.tables]
        tables = list(zip(self.tables, rows, strict=True))
        return render_charts(template, self.drawings, self.provenance, page=self, tables=tables)

    def write(self, folder: Path) -> Path:
        """Writes ``results.json``, a CSV per table and ``report.html``, whose path is returned."""
        from .work import write_tables

        files = {"results.json": json_text(self.to_dict()), "report.html": self.html()}
        for table in self.tables:
            files[re.sub(r"[^\w-]+", "_", table.name.lower()).strip("_") + ".csv"] = table.csv()
        write_tables(folder, files)
        return folder / "report.html"
