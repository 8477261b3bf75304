"""What a position sensitivity found, as JSON and as a page."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenrank.io import Provenance
from evenrank.measures.sensitivity import Buckets, Course
from evenrank.measures.statistics import holm

from .findings import SIGNIFICANT
from .report._format import NONE, interval, number
from .report.plain import Drawing, PlainPage, PlainResult, PlainTable, specification

Array = np.ndarray[Any, Any]
MEASURE = "nDCG@10"
_FEW = 10
"""Passages below which it is not said that nothing was shown: hardly anything could be."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The same passages, turned round so that the answer stands at each place.

    ``score`` and ``rank`` (among the query's other candidates, from 1): over all queries; ``kept_score`` and
    ``kept_rank``: over those whose answer is read whole at every place. ``cut`` [P]: queries whose answer falls off the
    end of what the ranker reads (None: not known).
    """

    score: Course
    rank: Course
    kept_score: Course
    kept_rank: Course
    cut: Array | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        names = ("score", "rank", "kept_score", "kept_rank")
        return {
            **{name: getattr(self, name).to_dict() for name in names},
            "cut": None if self.cut is None else self.cut.tolist(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityResult(PlainResult):
    """What :func:`position_sensitivity` found.

    ``tokens``, ``relative``: effectiveness by where answers stand, in words and as a share of the passage; ``moved``:
    the same passage with its answer at each place, None where a run alone was given. ``cut``: answers that the ranker
    does not read to their end as they stand (None: not known). ``added``: relevant passages that were no candidates and
    joined them; ``without_candidates``: queries left out because no other passage competes with their own; ``absent``:
    queries that the run lacks, which count 0; ``sampled_from``: how many queries the sample was drawn from (None: all
    were taken).
    """

    name: str
    queries: int
    passages: int
    without_answer: int
    value: float
    tokens: Buckets
    relative: Buckets
    moved: Moved | None
    cut: int | None
    settings: dict[str, Any]
    added: int = 0
    without_candidates: int = 0
    absent: int = 0
    sampled_from: int | None = None
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "settings": self.settings,
            "name": self.name,
            "measure": MEASURE,
            "summary": list(self.summary()),
            "queries": self.queries,
            "sampled_from": self.sampled_from,
            "passages": self.passages,
            "unit": "passage",
            "without_answer": self.without_answer,
            "without_candidates": self.without_candidates,
            "absent": self.absent,
            "added": self.added,
            "mean": self.value,
            "cut": self.cut,
            "tokens": self.tokens.to_dict(),
            "relative": self.relative.to_dict(),
            "moved": None if self.moved is None else self.moved.to_dict(),
            "notes": list(self.notes),
        }

    def summary(self) -> tuple[str, ...]:
        """What was found, in sentences."""
        lines = [self._dependence()]
        if self.moved is not None:
            lines += _preference(self.moved)
            lines += _truncation(self.moved, self.cut, self.queries)
        return tuple(lines)

    def _dependence(self) -> str:
        """Whether effectiveness depends on where the answer stands; of four tests, corrected for it."""
        if self.passages < 2:
            return f"Whether {MEASURE} depends on where the answer stands cannot be told from one passage."
        if not self.value:
            return f"Whether {MEASURE} depends on where the answer stands cannot be told: it is 0 for every query."
        if math.isnan(self.tokens.slope):
            return f"Whether {MEASURE} depends on where the answer stands cannot be told: all stand at the same word."
        names = ("slope over the passage", "slope over words", "fifths of the passage", "ranges of words")
        tests = (self.relative.slope_p, self.tokens.slope_p, self.relative.p, self.tokens.p)
        corrected = dict(zip(names, holm(tests), strict=True))
        found = {name: p for name, p in corrected.items() if p is not None and p < SIGNIFICANT}
        change = ""
        if not math.isnan(self.relative.slope):
            change = (
                f" From the beginning of a passage to its end it changes by {number(self.relative.slope, 4)}"
                f" {_ends(self.relative.slope_ci95, self.relative.slope_p)}."
            )
        tried = f"of {sum(p is not None for p in tests)} tests, corrected for their number"
        if not found:
            least = min((p for p in corrected.values() if p is not None), default=None)
            if self.passages < _FEW:
                told = f"cannot be told from {self.passages} passages"
                return f"Whether {MEASURE} depends on where the answer stands {told}."
            return (
                f"No preference shown: {MEASURE} does not depend on where the answer stands beyond chance.{change} The"
                f" smallest p {tried}, is {_p(least)}."
            )
        slope = self.relative.slope if names[0] in found else self.tokens.slope if names[1] in found else 0
        who = "early answers" if slope < 0 else "late answers" if slope > 0 else "answers at some places"
        shown = ", ".join(f"{name} (p {_p(p)})" for name, p in found.items())
        other = "" if self.moved is not None else " The passages may differ in other ways too."
        verdict = f"{MEASURE} depends on where the answer stands: {who} fare better."
        return f"{verdict}{change} Shown by, {tried}: {shown}.{other}"

    def page(self) -> PlainPage:
        """The figures as a page."""
        tables = [
            _bucket_table("Where answers stand: by fifths of the passage", self.relative, "{:.1f}", 1, "passage"),
            _bucket_table("Where answers stand: by words", self.tokens, "{:,.0f}", 100, "100 words"),
        ]
        drawings = [
            _bucket_drawing("Fifths", "by fifths of the passage", self.relative),
            _bucket_drawing("Words", "by words before the answer", self.tokens),
        ]
        notes = [
            "Index: 1 − min/max of the buckets' means. Noise alone makes it more than 0: compare it with its mean when"
            " places are shuffled, and see p.",
            "Slope: least squares of a query's value on the place; below 0: early answers fare better.",
            f"The unit of intervals and of p is the passage ({self.passages:,} of them), with all its queries: the"
            " bootstrap draws whole passages, a shuffle gives the queries of each passage the values of another's.",
            "By words: ranges that hold about as many answers each.",
            "Passages with early and with late answers can differ in other ways: only the same passage turned round"
            " shows what the place itself does.",
        ]
        facts = [
            ("queries", f"{self.queries:,}"),
            ("passages", f"{self.passages:,}"),
            (f"mean {MEASURE}", number(self.value, 4)),
        ]
        if self.sampled_from is not None:
            facts[0] = ("queries drawn", f"{self.queries:,} of {self.sampled_from:,}")
            notes.append(f"All figures are of the {self.queries:,} queries drawn, not of all.")
        if self.absent:
            facts.append(("queries that the run lacks, counted as 0", f"{self.absent:,}"))
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
                " possible one, and between (where it is last, what follows it in the text stands first, and a ranker"
                " that reads only the beginning still meets the answer's surroundings); rank among the query's other"
                " candidates. Whole: only queries whose answer is read whole at every place. Slope: from the first"
                " place to the last; its p turns the signs of whole passages."
            )
        source = "Position sensitivity; rotation as in Hofstätter et al., ECIR 2021"
        title = f"Position sensitivity of {self.name}"
        return PlainPage(
            "position sensitivity",
            title,
            source,
            tuple(facts),
            tuple(tables),
            tuple(drawings),
            (*notes, *self.notes),
            self.summary(),
        )


def _ends(ci: tuple[float, float] | None, p: float | None) -> str:
    """Interval and p of a figure in a sentence, in brackets."""
    between = "no interval" if ci is None else f"95% interval {number(ci[0], 4)} to {number(ci[1], 4)}"
    return f"({between}, {'no p' if p is None else f'p {_p(p)}'})"


def _preference(found: Moved) -> list[str]:
    """What moving the answer within its passage does: of two tests, corrected for it."""
    score, rank = found.score, found.rank
    first, last = (number(float(score.means[place]), 4) for place in (0, -1))
    change = (
        f"a straight line through the scores at all places changes by {number(score.slope, 4)} from first to last"
        f" {_ends(score.slope_ci95, score.slope_p)}; at these two themselves the mean score is {first} and {last}, the"
        f" mean rank {number(float(rank.means[0]), 1)} and {number(float(rank.means[-1]), 1)}"
    )
    best, worst = int(np.argmax(score.means)), int(np.argmin(score.means))
    course = (
        f"between places it differs by up to {number(score.spread, 4)} (highest at {score.places[best]:.2f}, lowest at"
        f" {score.places[worst]:.2f}, p {_p(score.spread_p)})"
    )
    slope_p, spread_p = holm([score.slope_p, score.spread_p])
    if slope_p is None or spread_p is None:
        return [f"In the same passage, {change}: one passage shows nothing of others."]
    if slope_p < SIGNIFICANT:
        verdict = f"the model prefers {'early' if score.slope < 0 else 'late'} answers"
    elif spread_p < SIGNIFICANT:
        verdict = "the score depends on the place, though neither early nor late answers are preferred throughout"
    else:
        verdict = "no preference is shown"
    return [f"In the same passage {verdict}: {change}; {course}."]


def _truncation(found: Moved, cut: int | None, queries: int) -> list[str]:
    """What the end of what the model reads does to the answers."""
    if found.cut is None or cut is None:
        return ["How far the model reads cannot be told, so an answer that it cuts off counts as one in a late place."]
    n = found.score.n
    read = f"The model reads {queries - cut:,} of {queries:,} answers to their end where they stand"
    if not found.cut.any():
        return [f"{read}, and all at every place that they are moved to: truncation plays no part in the above."]
    most = int(found.cut.max())
    lines = f"{read}; moved, up to {most:,} of {n:,} are cut off"
    kept = found.kept_score
    if not kept.n:
        return [f"{lines}, and none is read whole at every place: a preference cannot be told from truncation."]
    among = f"among the {kept.n:,} that are read whole at every place the score changes by {number(kept.slope, 4)}"
    end = f"{among} {_ends(kept.slope_ci95, kept.slope_p)}"
    if kept.slope_p is None or kept.slope_p >= SIGNIFICANT:
        return [f"{lines}; {end}: no preference shown apart from truncation."]
    return [f"{lines}; {end}: a preference apart from truncation."]


def _bucket_table(title: str, found: Buckets, form: str, scale: float, unit: str) -> PlainTable:
    """The buckets that hold queries; ``scale`` places are a ``unit``."""
    ends = [*found.starts[1:], math.inf if found.end is None else found.end]
    shown = [
        (form.format(low), form.format(high), n, mean, ci)
        for low, high, n, mean, ci in zip(found.starts, ends, found.n, found.means, found.ci95, strict=True)
    ]
    rows = [
        (low, high, f"{n:,}", number(float(mean), 4), "one passage" if ci is None else interval(ci, 4))
        for low, high, n, mean, ci in shown
        if n
    ]
    empty = [f"{low}–{high}" for low, high, n, _, _ in shown if not n]
    slope_ci = None if found.slope_ci95 is None else (found.slope_ci95[0] * scale, found.slope_ci95[1] * scale)
    notes = [f"No answer begins in {', '.join(empty)}."] if empty else []
    alone = "" if found.units > 1 else " (one passage: no interval, no p)"
    if not math.isnan(found.index):
        tested = f" {interval(found.index_ci95, 4)}; shuffled {number(found.null, 4)}, p {_p(found.p)}"
        notes.append(f"Index {number(found.index, 4)}{alone or tested}.")
    else:
        one = "all answers are in one range" if len(rows) == 1 else f"no query has an {MEASURE} above 0"
        notes.append(f"No index: {one}.")
    if not math.isnan(found.slope):
        tested = f", {interval(slope_ci, 4)}, p {_p(found.slope_p)}"
        notes.append(f"Slope {number(found.slope * scale, 4)} a {unit}{alone or tested}.")
    else:
        notes.append("No slope: all answers stand at the same place.")
    return PlainTable(
        title, ("from", "to below", "queries", MEASURE, "95% interval"), tuple(rows), tuple(notes), left=2
    )


def _p(value: float | None) -> str:
    return NONE if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _moved_table(found: Moved) -> PlainTable:
    # Where none or all of the answers are read whole everywhere, columns of those that are say nothing more.
    partly = 0 < found.kept_rank.n < found.rank.n
    courses = [("score", found.score), ("rank", found.rank), *([("rank, whole", found.kept_rank)] if partly else [])]
    rows = []
    for i, place in enumerate(found.score.places):
        cells = [f"{place:.2f}"]
        for _, one in courses:
            ci = one.ci95[i]
            cells += [number(float(one.means[i]), 4), "one passage" if ci is None else interval(ci, 4)]
        rows.append((*cells, *(() if found.cut is None else (f"{found.cut[i]:,}",))))
    heads = ["place", *(head for name, _ in courses for head in (name, "95%"))]
    heads += [] if found.cut is None else ["answers cut"]
    slopes = [("score", found.score), ("rank", found.rank)]
    slopes += [("score, whole", found.kept_score), ("rank, whole", found.kept_rank)] if partly else []
    notes = [
        f"Slope of the {name}: {number(one.slope, 4)} {_ends(one.slope_ci95, one.slope_p)}, {one.n:,} queries."
        for name, one in slopes
    ]
    if not found.kept_rank.n:
        notes.append("No answer is read whole at every place.")
    return PlainTable("The same passage, its answer at each place", tuple(heads), tuple(rows), tuple(notes))


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
        "95% intervals; queries of one passage are drawn together.",
    )


def _moved_drawings(found: Moved) -> list[Drawing]:
    drawings = []
    for name, what, pair in (
        ("Score", "Score", (found.score, found.kept_score)),
        ("Rank", "Rank", (found.rank, found.kept_rank)),
    ):
        rows = []
        for kind, one in zip(("all queries", "answer read whole at every place"), pair, strict=True):
            if one.n == pair[0].n and one is not pair[0]:
                continue
            for place, mean, ci in zip(one.places.tolist(), one.means.tolist(), one.ci95, strict=True):
                if ci is not None and not math.isnan(mean):
                    rows.append({"x": place, "value": mean, "low": ci[0], "high": ci[1], "n": one.n, "kind": kind})
        title = f"{what} of the same passage by the place of its answer"
        drawings.append(Drawing(name, title, _chart(rows, "place of the answer (0 first, 1 last)", what.lower())))
    return drawings
