"""Impact ratios of people: who is selected at less than four fifths of the rate of the group selected most."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from ir_measures import Measure

from evenrank.files.errors import plain
from evenrank.files.json_values import INLINE, LEFT_OUT
from evenrank.files.wording import counted
from evenrank.groups import GroupSource
from evenrank.groups.labels import TIMES
from evenrank.measures import Evaluation
from evenrank.measures.impact import ImpactRatio
from evenrank.results.finding import Finding, Level, Place, phrases
from evenrank.results.page import COLOURS, Drawing
from evenrank.results.table import (
    COUNT,
    TEXT,
    Column,
    Format,
    Interval,
    P,
    Table,
    short,
    short_interval,
    short_intervals,
    shorts,
    wrapped,
)
from evenrank.stats import ratios as limits
from evenrank.stats.compare import Comparison, Verdict
from evenrank.stats.estimate import EQUAL, SIGNIFICANT
from evenrank.stats.ratios import FOUR_FIFTHS, SELECTED_MOST, RateRatio, Selection, corrected_ratios, rate_ratios

_PHRASES = phrases("impact")
BELOW, LOWER, UNTOLD = "▼", "▽", "?"
_CLAIMS = ("shown", "lower", "chance", "undecidable")
"""Of groups below four fifths, from the strongest."""
_SENTENCES = ("shown", "lower", "corrected", "chance", "undecidable")
"""The verdicts on groups below four fifths, in the order in which they are said."""
_EXPOSURE = "exposure in rank"


@dataclass(frozen=True, slots=True)
class GroupImpact:
    """A group's row of the table that an audit of selection publishes.

    Attributes:
        run: The run that selects; "" of a table of people. ``selects``: whom, such as "rank 1 to 10".
        attribute: What the group is a value of, such as "gender", or "gender × ethnicity".
        group: The group; ``reference``: the one that is selected most, with which it is compared.
        candidates: How often people of the group are in a list; ``selected``: how often they are selected, or the
            exposure that they get. Whole numbers, but for shares of people in several groups, and of tied ones.
        unknown: How many candidates have no known value of the attribute, and so are in no figure of it;
            ``unknown_selected``: how many of these are selected, in a table of people. ``neutral``: how many are known
            to be of no group.
        ratio: The impact ratio, with its people, interval and z, and whether it is below four fifths: corrected by
            Holm over all groups, attributes and runs.
    """

    also: ClassVar = ("rate", "verdict")
    run: str
    selects: str
    attribute: str
    group: str
    reference: str
    candidates: float
    selected: float
    unknown: int
    ratio: RateRatio = field(metadata=INLINE)
    neutral: int = field(default=0, metadata=LEFT_OUT)
    unknown_selected: float | None = field(default=None, metadata=LEFT_OUT)

    @property
    def rate(self) -> float | None:
        """The rate of selection."""
        return self.selected / self.candidates if self.candidates else None

    @property
    def verdict(self) -> Verdict:
        """Whether the ratio is shown to be below four fifths."""
        return self.ratio.verdict

    @property
    def undecidable(self) -> bool:
        """Whether the group is too small for a verdict, or has nothing to compare."""
        return self.ratio.reason not in (None, SELECTED_MOST)

    @property
    def name(self) -> str:
        """The group with what it is a value of: ``gender = f × disabled = yes``."""
        attributes, groups = self.attribute.split(TIMES), self.group.split(TIMES)
        if len(attributes) != len(groups):
            return f"{self.attribute} = {self.group}"
        return TIMES.join(f"{attribute} = {group}" for attribute, group in zip(attributes, groups, strict=True))

    @property
    def but_for_correction(self) -> bool:
        """Whether the ratio would be shown to be below four fifths without Holm's correction."""
        return not self.ratio.shown and (self.ratio.p or 0.0) < SIGNIFICANT <= (self.ratio.holm_p or 0.0)

    @property
    def claim(self) -> str:
        """What is said of its ratio below four fifths, one of :data:`_CLAIMS`; "" of one that is not below."""
        if not self.ratio.below:
            return ""
        if self.undecidable:
            return "undecidable"
        return "shown" if self.ratio.shown else "lower" if self.lower else "chance"

    @property
    def lower(self) -> bool:
        """Whether the group is shown to be selected less than the one selected most, whatever the ratio."""
        return self.ratio.to_equal_rates().shown

    @property
    def corrected_to_chance(self) -> bool:
        """Whether chance explains a ratio below four fifths only after Holm's correction for several comparisons."""
        return self.claim == "chance" and (self.ratio.p_equal or 0.0) < SIGNIFICANT

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.ratio.reason is not None:
            return f"no verdict: {self.ratio.reason}" if self.undecidable else self.ratio.reason
        above = "not_below_lower" if self.lower else "not_below"
        claim = "corrected" if self.corrected_to_chance else self.claim or above
        text = _PHRASES.text(f"verdict_{claim}", reference=replace(self, group=self.reference).name, n=self.ratio.n)
        return text + _PHRASES.text("verdict_but_for_correction") if self.but_for_correction else text


def group_impacts(
    run: str, selects: str, attribute: str, groups: Sequence[str], selection: Selection, known: int, unknown: int
) -> list[GroupImpact]:
    """The rows of one attribute, not corrected; ``known``, ``unknown``: how many candidates are."""
    ratios = rate_ratios(selection)
    selected, candidates = (np.round(sums.sum(axis=0), 9).tolist() for sums in selection.by_list)
    return [
        GroupImpact(
            run=run,
            selects=selects,
            attribute=attribute,
            group=group,
            reference=groups[selection.most_selected],
            candidates=_whole(candidates[place]),
            selected=_whole(selected[place]),
            unknown=unknown,
            neutral=round(known - sum(candidates)),
            ratio=ratios[place],
        )
        for place, group in enumerate(groups)
    ]


def _whole(count: float) -> float:
    """A count as a whole number if it is one."""
    return int(count) if count.is_integer() else count


def corrected(rows: Sequence[GroupImpact]) -> tuple[GroupImpact, ...]:
    """The rows with Holm's correction over all of them."""
    tables = _tables(rows)
    ratios = corrected_ratios([[row.ratio for row in table] for table in tables])
    pairs = zip(itertools.chain(*tables), itertools.chain(*ratios), strict=True)
    return tuple(replace(row, ratio=ratio) for row, ratio in pairs)


def _tables(rows: Sequence[GroupImpact]) -> list[list[GroupImpact]]:
    """The rows whose groups are compared with each other, which follow each other."""
    return [list(table) for _, table in itertools.groupby(rows, lambda row: (row.run, row.selects, row.attribute))]


def impacts_of_runs(
    runs: Sequence[Evaluation], measures: Sequence[Measure], source: GroupSource
) -> tuple[GroupImpact, ...]:
    """The rows of each impact ratio among the measures: of each run and attribute, all queries together."""
    rows: list[GroupImpact] = []
    ratios = [measure for measure in measures if isinstance(measure, type(ImpactRatio))]
    # Of labels that were drawn a ratio has bounds alone.
    if not ratios or any(run.required_table.sample is not None for run in runs):
        return ()
    margins = source.margins([run.run.table["doc_id"] for run in runs])
    # Groups and pooling aside, the measures with one cutoff and discount have one table.
    for measure in {(ratio["cutoff"], ratio["discount"]): ratio for ratio in ratios}.values():
        what = "rank" if measure["discount"] == "first" else _EXPOSURE
        selects = f"{what} 1 to {measure['cutoff']}"
        for run in runs:
            of_columns = (Evaluation(run.run, table, missing=run.missing) for table in margins.values())
            for evaluation in (*of_columns, run):
                table, unknown = evaluation.required_table, int((evaluation.document < 0).sum())
                selection, groups = measure.selection(evaluation), (table.attribute, table.groups)
                known = int((evaluation.scored_documents >= 0).sum())
                rows += group_impacts(run.run.name, selects, *groups, selection, known, unknown)
    return corrected(rows)


def impact_text(rows: Sequence[GroupImpact]) -> str:
    """Which groups each run selects at less than four fifths of the largest rate, and the table that is published."""
    first = [finding.text for finding in impact_findings(rows) if finding.place == "finding" and finding.subject]
    return "\n".join([*(wrapped(text, 80) for text in first), "", impact_table(rows).text()])


def impact_table(rows: Sequence[GroupImpact]) -> Table:
    """The table that an audit of selection publishes; what is the same in all rows, such as the run, has no column."""
    within = Column("within_lists", shorts(3), "within lists", "ratio.within_lists", short="within")
    exposure = any(row.selects.startswith(_EXPOSURE) for row in rows)
    columns = (
        *(Column(key) for key in ("run", "selects") if len({getattr(row, key) for row in rows}) > 1),
        Column("attribute"),
        Column("group"),
        *([Column("people", COUNT, of="ratio.n")] if any(row.candidates > row.ratio.n + 0.5 for row in rows) else ()),
        Column("candidates", _counts(rows, "candidates"), short="total"),
        Column("selected", _counts(rows, "selected"), "exposure" if exposure else "selected"),
        Column("rate", shorts(3)),
        Column("ratio", shorts(3), of="ratio.mean", mark=_mark),
        Column(("ratio_low", "ratio_high"), short_intervals(3), "95% interval", "ratio.ci95"),
        Column("z", shorts(2), of="ratio.z"),
        Column("p_equal", P, "p", "ratio.p_equal"),
        *([within] if any(row.ratio.within_lists is not None for row in rows) else ()),
        Column("verdict", TEXT, of="text"),
    )
    notes = [finding.text for finding in impact_findings(rows) if finding.key in ("unknown_people", "neutral_people")]
    return Table("Impact ratios", columns, rows, (*notes, _PHRASES.text("of_one_group")))


def _counts(rows: Sequence[GroupImpact], name: str) -> Format:
    """How counts read: whole; exposure has one decimal."""
    if all(isinstance(getattr(row, name), int) for row in rows):
        return COUNT
    exposure = any(row.selects.startswith(_EXPOSURE) for row in rows) and name == "selected"
    return Format(lambda count: f"{count:,.1f}" if exposure else f"{count:,.0f}")


def impact_screen_table(rows: Sequence[GroupImpact]) -> Table:
    """The impact table for a screen, where the attribute heads its groups or their column."""
    table = impact_table(rows)
    attributes = {row.attribute for row in rows}
    left_out = ("attribute", "selects", "people", "z", "p_equal", "verdict")
    table = table.only(*(column.keys[0] for column in table.columns if column.keys[0] not in left_out))
    group, *others = table.columns
    if len(attributes) == 1:
        return replace(table, notes=(), columns=(replace(group, heading=attributes.pop()), *others))
    # On a page nothing stands above rows.
    group = replace(group, tag=lambda row: row.attribute)
    return replace(table, notes=(), columns=(group, *others), group=lambda row: row.attribute)


def _mark(row: GroupImpact) -> str:
    return BELOW if row.ratio.shown else UNTOLD if row.undecidable else LOWER if row.lower else ""


# --- the chart --------------------------------------------------------------------------------------------------------

_MOST_DRAWN = 1.6
"""Ratios and ends of intervals beyond are drawn here."""
_ROW = 26


def ratio_plot(rows: Sequence[GroupImpact]) -> Drawing:
    """The ratios with their intervals, and lines at four fifths and at equal rates."""
    known = [row for row in rows if row.ratio.mean is not None]
    values = [
        {
            "group": plain(row.name),
            "ratio": row.ratio.mean,
            "low": row.ratio.ci95 and row.ratio.ci95[0],
            "high": row.ratio.ci95 and min(row.ratio.ci95[1], _MOST_DRAWN),
            "kind": "known" if row.ratio.ci95 or row.ratio.reason == SELECTED_MOST else "unknown",
            "text": plain(f"{short(row.ratio.mean)} {short_interval(row.ratio.ci95)}: {row.text}"),
        }
        for row in known
    ]
    names = list(dict.fromkeys(plain(row.name) for row in known))
    axis = {"labelLimit": 260}
    y = {"field": "group", "type": "nominal", "sort": None, "title": None, "axis": axis, "scale": {"domain": names}}
    scale = {"domain": [0, _MOST_DRAWN], "clamp": True}
    x = {"type": "quantitative", "title": "ratio (dashed: .8)", "scale": scale}
    filled = {"field": "kind", "scale": {"domain": ["known", "unknown"], "range": [COLOURS[0], "transparent"]}}
    point = {"type": "point", "filled": True, "size": 70, "stroke": COLOURS[0], "strokeWidth": 1.5, "opacity": 1}

    def line(at: float, dash: Sequence[int]) -> dict[str, object]:
        mark = {"type": "rule", "strokeDash": dash}
        return {"data": {"values": [{"at": at}]}, "mark": mark, "encoding": {"x": {**x, "field": "at"}}}

    intervals = {**x, "field": "low"}
    layers = [
        line(FOUR_FIFTHS, [5, 4]),
        line(1.0, []),
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "color": COLOURS[0], "strokeWidth": 1.5},
            "encoding": {"x": intervals, "x2": {"field": "high"}, "y": y},
        },
        {
            "mark": point,
            "encoding": {
                "x": {**x, "field": "ratio"},
                "y": y,
                "fill": {**filled, "type": "nominal", "legend": None},
                "tooltip": [{"field": name, "type": "nominal"} for name in ("group", "text")],
            },
        },
    ]
    specification = {"width": 460, "height": 40 + _ROW * len(names), "data": {"values": values}, "layer": layers}
    return Drawing("ratios", "Impact ratios with 95% intervals; dashed: four fifths", specification)


# --- findings ---------------------------------------------------------------------------------------------------------


def impact_findings(rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """Which groups are below four fifths, what chance can do, and of which groups nothing can be told."""
    for run in dict.fromkeys(row.run for row in rows):
        own = [row for row in rows if row.run == run]
        yield from _below(run, own) if any(row.ratio.below for row in own) else _none_below(run, own)
        silent = [row for row in own if row.undecidable and not row.ratio.below]
        for reason in dict.fromkeys(row.ratio.reason for row in silent):
            groups = [row.name for row in silent if row.ratio.reason == reason]
            yield _PHRASES.finding(
                "undecidable", run, "cannot be told", place="note", groups=list(dict.fromkeys(groups)), reason=reason
            )
        neutral = [_of_none(table[0]) for table in _tables(own) if table[0].neutral]
        if neutral:
            yield _PHRASES.finding("neutral_people", run, place="warning", neutral=list(dict.fromkeys(neutral)))
        lacking = [_left_out(table) for table in _tables(own) if table[0].unknown]
        if lacking:
            yield _PHRASES.finding("unknown_people", run, place="warning", lacking=list(dict.fromkeys(lacking)))


def _of_none(first: GroupImpact) -> str:
    """How many people of an attribute are known to be of no group."""
    return _PHRASES.text("unknown_of", attribute=first.attribute, count=counted(first.neutral, "candidate"))


def _left_out(rows: Sequence[GroupImpact]) -> str:
    """How many people are in no figure of an attribute, and what the lowest ratio of note could be with them."""
    first, tested = rows[0], [row for row in rows if row.ratio.p is not None]
    values = {"attribute": first.attribute, "count": counted(first.unknown, "candidate")}
    if first.unknown_selected is None or not tested:
        return _PHRASES.text("unknown_of", **values)
    values["selected"] = f"{first.unknown_selected:,.0f}"
    if _unknown_decide_who_is_large(rows):
        return _PHRASES.text("unknown_decide", **values)
    noted = [row for row in tested if row.lower or row.ratio.below] or tested
    lowest = min(noted, key=lambda row: row.ratio.mean or 0.0)
    low, high = range_with_unknown(lowest, rows)
    return _PHRASES.text("unknown_range", **values, group=lowest.name, low=low, high=high)


def _unknown_decide_who_is_large(rows: Sequence[GroupImpact]) -> bool:
    """Whether the unknown people could make a group of the ``rows`` large enough for a verdict, or too small."""
    unknown = rows[0].unknown
    least = limits.LEAST_SHARE * (sum(row.candidates for row in rows) + unknown) - EQUAL
    could = [row for row in rows if row.ratio.n + unknown >= limits.LEAST_PEOPLE and row.candidates + unknown >= least]
    return any(row.undecidable or row.candidates < least for row in could)


def range_with_unknown(row: GroupImpact, rows: Sequence[GroupImpact]) -> Interval:
    """The least and the greatest ratio of a group, over all ways to put the unknown people into the ``rows``' groups.

    Lowest where it has those who are not selected, and another group the others; highest the other way round, with the
    former shared by the groups of the highest rates.
    """
    taken = row.unknown_selected or 0.0
    passed = row.unknown - taken
    others = [(other.selected, other.candidates) for other in rows if other is not row and not other.undecidable]
    others.sort(key=lambda counts: -counts[0] / counts[1])
    low = row.selected / (row.candidates + passed) / max((s + taken) / (n + taken) for s, n in others)
    pooled = zip(*(itertools.accumulate(counts) for counts in zip(*others, strict=True)), strict=True)
    highest = max(s / (n + passed) for s, n in pooled)
    return low, min(1.0, (row.selected + taken) / (row.candidates + taken) / highest)


def _below(run: str, rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """A sentence that names every group below four fifths, and one for each verdict on them."""
    below = sorted((row for row in rows if row.ratio.below), key=lambda row: -(row.ratio.mean or 0.0))
    strongest = min(below, key=lambda row: _CLAIMS.index(row.claim)).ratio
    groups = [f"{_name(row, rows)} {short(row.ratio.mean)}" for row in below]
    yield _first("below", run, rows, strongest.verdict, strongest, groups=groups)
    comparisons = sum(row.ratio.p is not None for row in rows)

    def sentence(row: GroupImpact) -> tuple[str, str, str]:
        """What rows of one sentence have in common."""
        reference = replace(row, group=row.reference).name if row.claim == "lower" else ""
        return "corrected" if row.corrected_to_chance else row.claim, reference, row.ratio.reason or ""

    keys = {row: sentence(row) for row in below}
    order = sorted(set(keys.values()), key=lambda key: _SENTENCES.index(key[0]))
    for key in order:
        alike = [row for row in below if keys[row] == key]
        claim, reference, reason = key
        ratio = alike[0].ratio
        estimate = ratio.to_equal_rates() if claim == "lower" else ratio
        yield _PHRASES.finding(
            f"below_{claim}",
            run,
            estimate.verdict,
            estimate,
            "finding" if run else "warning",
            groups=[_with_ratio(row, rows) for row in alike],
            reference=reference,
            people=[f"{row.ratio.n:,}" for row in alike],
            reach=max((row.ratio.ci95[1] for row in alike if row.ratio.ci95), default=None),
            comparisons=comparisons,
            reason=reason,
        )
    yield from _above_lower(run, rows, "finding" if run else "warning")


def _above_lower(run: str, rows: Sequence[GroupImpact], place: Place) -> Iterator[Finding]:
    """Which groups at four fifths or above are selected less beyond chance."""
    above = sorted((row for row in rows if row.lower and not row.ratio.below), key=lambda row: row.ratio.mean or 0.0)
    if above:
        estimate, groups = above[0].ratio.to_equal_rates(), [_with_ratio(row, rows) for row in above]
        yield _PHRASES.finding("above_lower", run, "shown", estimate, place, groups=groups, highest=_highest(rows))


def _none_below(run: str, rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """That no group is below four fifths, with the ratio above which that would be missed, or that nothing is known."""
    tested = [row for row in rows if row.ratio.p is not None]
    if not tested:
        yield _first("untold", run, rows, "cannot be told", None)
        return
    if all(row.rate == 1 and not row.unknown and not row.neutral for row in rows):
        yield _first("everyone", run, rows, "cannot be told", None)
        return
    lowest = min(tested, key=lambda row: row.ratio.mean or 0.0)
    no_group = _PHRASES.text("no_known_group" if any(row.unknown for row in rows) else "no_group")
    values: dict[str, Any] = {"no_group": no_group, "groups": _with_ratio(lowest, rows)}
    yield _first("none", run, rows, "no difference shown", lowest.ratio, **values)
    # Beside it, so that nobody reads an all-clear.
    yield from _above_lower(run, rows, "finding" if run else "answer")
    # Of the group of which the least is known.
    least = max(tested, key=lambda row: math.inf if row.ratio.mde is None else row.ratio.mde)
    key = "missed_any" if least.ratio.mde is None else "missed"
    missed = FOUR_FIFTHS - (least.ratio.mde or 0.0)
    place: Place = "finding" if run else "warning"
    named: dict[str, Any] = {"group": _name(least, rows), "missed": missed}
    yield _PHRASES.finding(key, run, "no difference shown", least.ratio, place, **named)


def _first(
    key: str, run: str, rows: Sequence[GroupImpact], level: Level, estimate: Comparison | None, **values: Any
) -> Finding:
    """The first sentence on a selection; of a run it says which of its ranks are selected."""
    values["highest"] = _highest(rows)
    if not run:
        return _PHRASES.finding(key, run, level, estimate, "answer", **values)
    selects = list(dict.fromkeys(row.selects for row in rows))
    return _PHRASES.finding(f"{key}_of_run", run, level, estimate, selects=selects, **values)


def _highest(rows: Sequence[GroupImpact]) -> str:
    """What ratios are to: the highest rate of a group that is large enough, as a smaller group's may be higher."""
    higher = any(row.ratio.mean is not None and row.ratio.mean > 1 + EQUAL for row in rows)
    return _PHRASES.text("highest_of_large" if higher else "highest")


def _with_ratio(row: GroupImpact, among: Sequence[GroupImpact]) -> str:
    """A group with its ratio and interval."""
    values = {"group": _name(row, among), "ratio": row.ratio}
    return _PHRASES.text("group_but_for_correction" if row.but_for_correction else "group", **values)


def _name(row: GroupImpact, among: Sequence[GroupImpact]) -> str:
    """A group; where several ways of selecting are measured, with its own."""
    return f"{row.name}, {row.selects}" if len({other.selects for other in among}) > 1 else row.name
