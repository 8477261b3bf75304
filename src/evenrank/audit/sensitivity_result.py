"""What a position sensitivity found, as JSON and as a page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.measures.sensitivity import Buckets, Course

from .report._format import NONE, interval, number
from .report.plain import Drawing, PlainPage, PlainResult, PlainTable, specification

Array = np.ndarray[Any, Any]
MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Moved:
    """The same passages, turned round so that the answer stands at each place.

    ``score`` and ``rank`` (among the query's other candidates, from 1): over all queries; ``kept_score`` and
    ``kept_rank``: over those whose answer is read whole at every place. ``cut`` [P]: queries whose answer falls off the
    end of what the ranker reads.
    """

    score: Course
    rank: Course
    kept_score: Course
    kept_rank: Course
    cut: Array

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        names = ("score", "rank", "kept_score", "kept_rank")
        return {**{name: getattr(self, name).to_dict() for name in names}, "cut": self.cut.tolist()}


@dataclass(frozen=True, slots=True)
class SensitivityResult(PlainResult):
    """What :func:`position_sensitivity` found.

    ``tokens``, ``relative``: effectiveness by where answers stand, in words and as a share of the passage; ``moved``:
    the same passage with its answer at each place, None where a run alone was given. ``cut``: answers that the ranker
    does not read to their end as they stand (None: not known). ``added``: relevant passages that were no candidates and
    joined them; ``without_candidates``: queries left out because no other passage competes with their own.
    """

    name: str
    queries: int
    without_answer: int
    value: float
    tokens: Buckets
    relative: Buckets
    moved: Moved | None
    cut: int | None
    settings: dict[str, Any]
    added: int = 0
    without_candidates: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "settings": self.settings,
            "name": self.name,
            "measure": MEASURE,
            "queries": self.queries,
            "without_answer": self.without_answer,
            "without_candidates": self.without_candidates,
            "added": self.added,
            "mean": self.value,
            "cut": self.cut,
            "tokens": self.tokens.to_dict(),
            "relative": self.relative.to_dict(),
            "moved": None if self.moved is None else self.moved.to_dict(),
        }

    def page(self) -> PlainPage:
        """The figures as a page."""
        tables = [
            _bucket_table("Where answers stand: by fifths of the passage", self.relative, "{:.1f}", "passage"),
            _bucket_table("Where answers stand: by words", self.tokens, "{:.0f}", "100 words"),
        ]
        drawings = [
            _bucket_drawing("Fifths", "by fifths of the passage", self.relative),
            _bucket_drawing("Words", "by words before the answer", self.tokens),
        ]
        notes = [
            "Index: 1 − min/max of the buckets' means. Noise alone makes it more than 0: compare it with its mean when"
            " places are shuffled over the queries, and see p.",
            "Slope: least squares of a query's value on the place; below 0: early answers fare better.",
            "Intervals: bootstrap over passages, with all their queries; shuffles are over queries.",
            "Passages with early and with late answers can differ in other ways: only the same passage turned round"
            " shows what the place itself does.",
        ]
        facts = [("queries", f"{self.queries:,}"), (f"mean {MEASURE}", number(self.value, 4))]
        if self.without_answer:
            facts.append(("queries without an answer in place, left out", f"{self.without_answer:,}"))
        if self.without_candidates:
            facts.append(("queries without other candidates, left out", f"{self.without_candidates:,}"))
        if self.added:
            facts.append(("relevant passages added to the candidates", f"{self.added:,}"))
            notes.append(
                f"{self.added:,} relevant passages were not among the candidates and were ranked with them:"
                f" {MEASURE} here says nothing of what the first stage misses."
            )
        if self.cut is not None:
            facts.append(("answers not read to their end", f"{self.cut:,}"))
        if self.moved is not None:
            tables.append(_moved_table(self.moved))
            drawings += _moved_drawings(self.moved)
            notes.append(
                "The same passage: its words turned round so that the answer begins at the first place, the last"
                " possible one, and between; rank among the query's other candidates. Whole: only queries whose answer"
                " is read whole at every place. Slope: from the first place to the last."
            )
        source = "Position sensitivity; rotation as in Hofstätter et al., ECIR 2021"
        title = f"Position sensitivity of {self.name}"
        return PlainPage(
            "position sensitivity", title, source, tuple(facts), tuple(tables), tuple(drawings), tuple(notes)
        )


def _bucket_table(title: str, found: Buckets, form: str, unit: str) -> PlainTable:
    ends = [*found.starts[1:], found.end]
    rows = [
        (
            form.format(low),
            NONE if high is None else form.format(high),
            f"{n:,}",
            number(_known(mean), 4),
            interval(ci, 4),
        )
        for low, high, n, mean, ci in zip(found.starts, ends, found.n, found.means, found.ci95, strict=True)
    ]
    scale = 100 if found.end is None else 1
    slope_ci = None if found.slope_ci95 is None else (found.slope_ci95[0] * scale, found.slope_ci95[1] * scale)
    notes = (
        f"Index {number(_known(found.index), 4)} {interval(found.index_ci95, 4)}; shuffled"
        f" {number(_known(found.null), 4)}, p {_p(found.p)}.",
        f"Slope {number(_known(found.slope * scale), 4)} {interval(slope_ci, 4)} a {unit}, p {_p(found.slope_p)}.",
    )
    return PlainTable(title, ("from", "to below", "queries", MEASURE, "95 % interval"), tuple(rows), notes, left=2)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _p(value: float | None) -> str:
    return NONE if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _moved_table(found: Moved) -> PlainTable:
    rows = []
    for i, place in enumerate(found.score.places):
        cells = [f"{place:.2f}"]
        for one in (found.score, found.rank, found.kept_rank):
            cells += [number(_known(one.means[i]), 4), interval(one.ci95[i], 4)]
        rows.append((*cells, f"{found.cut[i]:,}"))
    heads = ("place", "score", "95 %", "rank", "95 %", "rank, whole", "95 %", "answers cut")
    notes = tuple(
        f"Slope of the {name}: {number(_known(one.slope), 4)} {interval(one.slope_ci95, 4)}, {one.n:,} queries."
        for name, one in (
            ("score", found.score),
            ("rank", found.rank),
            ("score, whole", found.kept_score),
            ("rank, whole", found.kept_rank),
        )
    )
    return PlainTable("The same passage, its answer at each place", heads, tuple(rows), notes)


def _chart(rows: list[dict[str, Any]], x: str, y: str) -> dict[str, Any]:
    import altair as alt

    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title=x)
    scale = alt.Scale(zero=False)
    tips = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", title=y, format=".4f"), alt.Tooltip("n:Q")]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=["#0072b2", "#c24d00"]))
    line = data.mark_line(point=True).encode(
        x=across, y=alt.Y("value:Q", title=y, scale=scale), color=colour, tooltip=tips
    )
    band = data.mark_rule(opacity=0.5).encode(
        x=across, y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q", color=colour
    )
    return specification(alt.layer(band, line).properties(width=780, height=300))


def _bucket_drawing(name: str, what: str, found: Buckets) -> Drawing:
    rows = [
        {"x": low, "value": mean, "low": ci[0], "high": ci[1], "n": int(n), "kind": "all queries"}
        for low, n, mean, ci in zip(found.starts, found.n, found.means.tolist(), found.ci95, strict=True)
        if ci is not None and not math.isnan(mean)
    ]
    title = f"{MEASURE} {what} (each point: from here to the next)"
    return Drawing(
        name,
        title,
        _chart(rows, "place of the answer", MEASURE),
        "95 % intervals; queries of one passage are drawn together.",
    )


def _moved_drawings(found: Moved) -> list[Drawing]:
    drawings = []
    for name, what, pair in (
        ("Score", "Score", (found.score, found.kept_score)),
        ("Rank", "Rank", (found.rank, found.kept_rank)),
    ):
        rows = []
        for kind, one in zip(("all queries", "answer read whole at every place"), pair, strict=True):
            for place, mean, ci in zip(one.places.tolist(), one.means.tolist(), one.ci95, strict=True):
                if ci is not None and not math.isnan(mean):
                    rows.append({"x": place, "value": mean, "low": ci[0], "high": ci[1], "n": one.n, "kind": kind})
        title = f"{what} of the same passage by the place of its answer"
        drawings.append(Drawing(name, title, _chart(rows, "place of the answer (0 first, 1 last)", what.lower())))
    return drawings
