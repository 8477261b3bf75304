"""Impact ratios of people: who is selected at less than four fifths of the rate of the group selected most."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, check_apart
from evenrank.files.arguments import checked
from evenrank.files.convert import frame_of, strings
from evenrank.files.errors import quoted, readable, shown
from evenrank.files.json_values import INLINE
from evenrank.files.tables import Columns, read_columns
from evenrank.files.types import Array
from evenrank.groups import GroupSource
from evenrank.groups.labels import PROBABILITY
from evenrank.measures import Evaluation
from evenrank.measures.impact import ImpactRatio, candidates
from evenrank.results.finding import Finding, Level, Place, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import TEXT, Column, Format, P, Table, short_intervals, shorts
from evenrank.stats.compare import Verdict
from evenrank.stats.compare import corrected as holm_corrected
from evenrank.stats.ratios import FOUR_FIFTHS, SELECTED_MOST, RateRatio, rate_ratios

_SAYS = phrases("impact")
_BELOW, _UNTOLD = "▼", "?"
_COUNT = Format(lambda count: f"{count:,.6g}")
_YES = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0}


@dataclass(frozen=True, slots=True)
class GroupImpact:
    """A group's row of the table that an audit of selection publishes.

    Attributes:
        run: The run that selects; "" of a table of people. ``selects``: whom, such as "the first 10".
        attribute: What the group is a value of, such as "gender", or "gender × ethnicity".
        group: The group.
        candidates: How many people of the group there are; ``selected``: how many of them are selected, or the
            exposure that they get. Of people in several groups, and of tied ones, a share.
        unknown: How many candidates have no known value of the attribute, and so are in no figure of it.
        ratio: The impact ratio, with its interval and z, and whether it is below four fifths: corrected by Holm over
            all groups, attributes and runs.
    """

    also: ClassVar = ("rate", "verdict")
    run: str
    selects: str
    attribute: str
    group: str
    candidates: float
    selected: float
    unknown: int
    ratio: RateRatio = field(metadata=INLINE)

    @property
    def rate(self) -> float | None:
        """The rate of selection."""
        return self.selected / self.candidates if self.candidates else None

    @property
    def verdict(self) -> Verdict:
        """Whether the ratio is shown to be below four fifths."""
        return self.ratio.verdict

    @property
    def small(self) -> bool:
        """Whether the group is too small for a verdict, or has nothing to compare."""
        return self.ratio.reason not in (None, SELECTED_MOST)

    @property
    def said(self) -> str:
        """The verdict in words."""
        if self.ratio.reason is not None:
            return f"cannot be told: {self.ratio.reason}" if self.small else self.ratio.reason
        if self.ratio.shown:
            return "below four fifths"
        ends = self.ratio.ci95
        alone = ends is not None and ends[1] < FOUR_FIFTHS
        return "below four fifths but for the correction" if alone else "not shown below four fifths"


def group_impacts(
    run: str,
    selects: str,
    attribute: str,
    groups: Sequence[str],
    lists: tuple[Array, Array],
    unknown: int,
    counts: bool,
) -> list[GroupImpact]:
    """The rows of one attribute, not corrected; ``lists``: whom each query's list selects and whom it has [Q, G]."""
    found = rate_ratios(*lists, counts=counts)
    chosen, people = (np.round(of.sum(axis=0), 9).tolist() for of in lists)
    return [
        GroupImpact(run, selects, attribute, group, n, selected, unknown, ratio)
        for group, n, selected, ratio in zip(groups, people, chosen, found, strict=True)
    ]


def corrected(rows: Sequence[GroupImpact]) -> tuple[GroupImpact, ...]:
    """The rows with Holm's correction over all of them."""
    ratios = holm_corrected([row.ratio for row in rows])
    return tuple(
        replace(row, ratio=ratio) for row, ratio in zip(rows, ratios, strict=True) if isinstance(ratio, RateRatio)
    )


def impacts_of_runs(
    runs: Sequence[Evaluation], measures: Sequence[Measure], source: GroupSource
) -> tuple[GroupImpact, ...]:
    """The rows of each impact ratio among the measures: of each run and attribute, all queries together."""
    rows: list[GroupImpact] = []
    asked = [measure for measure in measures if isinstance(measure, type(ImpactRatio))]
    # Of labels that were drawn a ratio has bounds alone.
    if not asked or any(run.required_table.sample is not None for run in runs):
        return ()
    margins = source.margins([run.run.table["doc_id"] for run in runs])
    # Groups and pooling aside, the measures with one cutoff and discount have one table.
    for measure in {(one["cutoff"], one["discount"]): one for one in asked}.values():
        counts = measure["discount"] == "first"
        selects = f"{'the first' if counts else 'by exposure in the first'} {measure['cutoff']}"
        for run in runs:
            of = {name: Evaluation(run.run, table, missing=run.missing) for name, table in margins.items()}
            for name, one in {**of, source.attribute: run}.items():
                lists = measure.selected(one), candidates(one)
                unknown = int((one.document < 0).sum())
                rows += group_impacts(run.run.name, selects, name, one.required_table.groups, lists, unknown, counts)
    return corrected(rows)


# --- a table of people -----------------------------------------------------------------------------------------------


@checked
def impact_ratios(
    table: object,
    *,
    group_column: opt.GroupColumn = None,
    intersect: opt.Intersect = None,
    neutral: opt.Neutral = None,
    selected: Annotated[
        str | None,
        opt.Option(
            "With --table: the column of who was selected (0 or 1).", metavar="COLUMN", panel="Input", rare=True
        ),
    ] = None,
    score: Annotated[
        str | None, opt.Option("With --table: the column of scores.", metavar="COLUMN", panel="Input", rare=True)
    ] = None,
    rank: Annotated[
        str | None,
        opt.Option("With --table: the column of ranks, from 1, instead.", metavar="COLUMN", panel="Input", rare=True),
    ] = None,
    k: Annotated[
        int | None, opt.Option("With --table: so many of each list are selected.", panel="Input", rare=True)
    ] = None,
    query: Annotated[
        str | None,
        opt.Option(
            "With --table: the column of the lists (default: one list).", metavar="COLUMN", panel="Input", rare=True
        ),
    ] = None,
    id: Annotated[
        str | None,
        opt.Option("With --table: the column of ids, each once in a list.", metavar="COLUMN", panel="Input", rare=True),
    ] = None,
) -> ImpactRatios:
    """Measure whom a selection or a ranking of people leaves out.

    The impact ratio of a group is its rate of selection over that of the group selected most, all lists together.

    Args:
        table: A CSV, TSV, JSONL or Parquet file or a frame with a row for each person in a list.
        group_column: The column of groups; several with ``intersect``.
        intersect: Also the groups of the columns' combinations, such as ``"f × yes"``.
        neutral: Values that mean "no group", such as "not said".
        selected: The column of who was selected: 1, true or yes, or 0, false or no.
        score: The column of scores, higher is better. Without ``selected``, the first ``k`` of each list are selected,
            of tied ones a share each; without ``k``, those with a score above the median of all: the ratios are then
            those of *scoring rates*.
        rank: The column of ranks, from 1, instead of scores.
        query: The column that says which list a row is of, such as a job.
        id: The column of ids, to be sure that nobody is twice in a list.

    Returns:
        The table of groups and what it says; see :class:`ImpactRatios`.

    Raises:
        EvenrankError: For a column that the table lacks and for values that cannot be used, with file and line.
    """
    made = Provenance("evenrank.impact_ratios").add("table", table)
    made.ahead()
    columns = _people(table)
    chosen = strings(group_column)
    if not chosen:
        raise EvenrankError("`group_column`: expected the column of people's groups, found none")
    named = {"selected": selected, "score": score, "rank": rank, "query": query, "id": id}
    for option, name in [*(("group_column", one) for one in chosen), *named.items()]:
        if name is not None and name not in columns.table.columns:
            has = ", ".join(columns.table.columns)
            raise columns.error(f"there is no column {quoted(name)} (`{option}`): found {has}")
    reserved = next((name for name in chosen if name in ("doc_id", PROBABILITY)), None)
    if reserved is not None:
        raise EvenrankError(f"`group_column`: a column of groups has another name than {reserved}")
    if query is not None and columns.table[query].null_count():
        raise columns.error(
            f"expected the list of each row in {query}, found none", columns.table[query].is_null().arg_max()
        )
    lists = columns.table[query] if query is not None else pl.repeat("", columns.table.height, eager=True)
    if id is not None:
        _refuse_repeats(columns, lists, columns.table[id])
    number = lists.cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
    taken, selects = _selection(columns, number, selected, score, rank, k)
    frame = columns.table.select(pl.Series("doc_id", np.arange(len(number))).cast(pl.String), *chosen)
    source = GroupSource(labels=frame, neutral=neutral, group_column=chosen, intersect=intersect)
    source.check()
    rows: list[GroupImpact] = []
    ids = [frame["doc_id"]]
    for name, groups in {**source.margins(ids), source.attribute: source.known(ids)}.items():
        place = groups.table["doc_id"].cast(pl.Int64).to_numpy()
        weights = np.zeros((len(number), len(groups.groups)))
        weights[place] = np.stack([groups.weight(group) for group in groups.groups], axis=1)
        both = tuple(_by_list(number, of) for of in (weights * taken[:, None], weights))
        rows += group_impacts("", selects, name, groups.groups, (both[0], both[1]), len(number) - len(place), True)
    settings = {
        "table": readable(os.path.basename(columns.path)) if columns.path else "in memory",
        "selects": selects,
        "group_column": list(chosen),
        "neutral": list(strings(neutral)),
        "lists": int(number.max()) + 1,
    }
    return ImpactRatios(settings, corrected(rows), len(number), provenance=made)


def _people(given: object) -> Columns:
    if isinstance(given, str | os.PathLike):
        columns = read_columns(given)
    else:
        frame = frame_of(given, "`table`")
        if frame is None:
            raise EvenrankError(f"`table`: expected a path or a frame, found {shown(given)}")
        columns = Columns(frame, what="`table`")
    if not columns.table.height:
        raise columns.error("contains no rows")
    return columns


def _refuse_repeats(columns: Columns, lists: pl.Series, ids: pl.Series) -> None:
    again = ~pl.DataFrame({"list": lists, "id": ids}).is_duplicated()
    if again.all():
        return
    row = int(again.arg_min() or 0)
    raise columns.error(f"{quoted(ids[row])} (`id`) is there twice in one list", row)


def _numbers(columns: Columns, name: str) -> Array:
    """A column of numbers [N]. Raises EvenrankError for another value."""
    found = columns.table[name].cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    bad = ~found.is_finite().fill_null(False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise columns.error(f"expected a number as {name}, found {quoted(columns.table[name][row])}", row)
    return found.to_numpy()


def _selection(
    columns: Columns, number: Array, selected: str | None, score: str | None, rank: str | None, k: int | None
) -> tuple[Array, str]:
    """Who is selected [N], and how that is said; ``number`` [N]: of the list."""
    if selected is not None:
        if k is not None:
            raise EvenrankError("`selected` or `k`: who was selected is known, or the first `k` are")
        written = columns.table[selected].cast(pl.String).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
        found = written.replace_strict(_YES, default=None, return_dtype=pl.Float64)
        if found.null_count():
            row = int(found.is_null().arg_max() or 0)
            raise columns.error(f"expected 0 or 1 as {selected}, found {quoted(columns.table[selected][row])}", row)
        return found.to_numpy(), selected
    if (score is None) == (rank is None):
        both = "found both" if score is not None else "found neither"
        raise EvenrankError(f"`score` or `rank`: expected one of them where `selected` is not given, {both}")
    values = _numbers(columns, score) if score is not None else -_numbers(columns, str(rank))
    if k is None:
        return (values > np.median(values)).astype(np.float64), f"{score or rank} better than the median"
    order = pl.DataFrame({"list": number, "value": -values}).select(
        pl.col("value").rank("min").over("list").alias("from"), pl.col("value").rank("max").over("list").alias("to")
    )
    start, end = (order[name].to_numpy().astype(np.float64) for name in ("from", "to"))
    # Of tied people, each has the chance that a random order of them gives.
    return np.clip((k - start + 1) / (end - start + 1), 0, 1), f"the first {k}"


def _by_list(number: Array, weights: Array) -> Array:
    """The sums [Q, G] of weights [N, G] over the rows of each list."""
    found = np.zeros((int(number.max()) + 1, weights.shape[1]))
    np.add.at(found, number, weights)
    return found


@dataclass(frozen=True, slots=True, repr=False)
class ImpactRatios(Result):
    """What :func:`evenrank.impact_ratios` returns: ``groups``, the rows of the table, and of how many ``people``."""

    settings: dict[str, object]
    groups: tuple[GroupImpact, ...]
    people: int

    def __getitem__(self, group: str) -> GroupImpact:
        """The row of a group. Raises EvenrankError for one that there is not."""
        for row in self.groups:
            if row.group == group:
                return row
        raise EvenrankError(f"no group {quoted(group)} (the groups are {', '.join(row.group for row in self.groups)})")

    def impact_table(self) -> Table:
        """The table that an audit of selection publishes."""
        return impact_table(self.groups)

    def per_query(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as CSV."""
        check_apart([path], [] if self.provenance is None else self.provenance.paths)
        self.impact_table().csv(path)

    def page(self) -> Page:
        """What the ratios say, and the table."""
        return Page(
            "audit",
            f"{self.settings['table']}: {self.settings['selects']}",
            tuple(impact_findings(self.groups)),
            _screen_table(self.groups),
            legend=LEGEND,
            aside=f"{self.people:,} people",
            source="Rate of selection over that of the group selected most. A measurement, no legal advice.",
            sections=(Section("As it is published", (self.impact_table(),)),),
            provenance=self.provenance,
            lines=22 + len(self.groups),
        )


LEGEND = (f"{_BELOW} below four fifths (p < .05, corrected)", f"{_UNTOLD} cannot be told", "z, p: against equal rates")


def impact_table(rows: Sequence[GroupImpact]) -> Table:
    """The table that an audit of selection publishes; what is the same in all rows, such as the run, has no column."""
    columns = (
        *(Column(key) for key in ("run", "selects", "attribute") if len({getattr(row, key) for row in rows}) > 1),
        Column("group"),
        Column("candidates", _COUNT),
        Column("selected", _COUNT),
        Column("rate", shorts(3)),
        Column("ratio", shorts(3), of="ratio.mean", mark=_mark),
        Column(("ratio_low", "ratio_high"), short_intervals(3), "95% interval", "ratio.ci95"),
        Column("z", shorts(2), of="ratio.z"),
        Column("z_p", P, "p", "ratio.z_p"),
        Column("verdict", TEXT, of="said"),
    )
    unknown = (one.text for one in impact_findings(rows) if one.key == "unknown")
    return Table("Impact ratios", columns, rows, tuple(unknown))


def _screen_table(rows: Sequence[GroupImpact]) -> Table:
    """The same for a screen, with the attributes above their groups."""
    table = impact_table(rows)
    shown = [column.keys[0] for column in table.columns if column.keys[0] not in ("attribute", "selects", "verdict")]
    several = len(shown) < len(table.columns) - 1
    return replace(table.only(*shown), notes=(), group=(lambda row: row.attribute) if several else None)


def _mark(row: GroupImpact) -> str:
    return _BELOW if row.ratio.shown else _UNTOLD if row.small else ""


def impact_findings(rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """Which groups are shown to be below four fifths, which only seem so, and of which nothing can be told."""
    for run in dict.fromkeys(row.run for row in rows):
        own = [row for row in rows if row.run == run]
        who = run or "This selection"
        yield from _below(run, who, own)
        seem = [row for row in own if row.verdict == "no difference shown" and (row.ratio.mean or 0) < FOUR_FIFTHS]
        if seem:
            first = seem[0].ratio
            yield _SAYS.find("seem", run, "no difference shown", first, who=who, groups=_listed(seem, own))
        for why in dict.fromkeys(row.ratio.reason for row in own if row.small):
            groups = list(dict.fromkeys(row.group for row in own if row.ratio.reason == why))
            yield _SAYS.find("small", run, "cannot be told", place="note", groups=groups, why=why)
        lacking = [f"{name} of {n:,}" for name, n in {row.attribute: row.unknown for row in own}.items() if n]
        if lacking:
            yield _SAYS.find("unknown", run, place="note", lacking=lacking)


def _below(run: str, who: str, rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """By attribute the groups that are shown to be below four fifths, or that none is."""
    place: Place = "finding" if run else "answer"
    tables: dict[tuple[str, str], list[GroupImpact]] = {}
    for row in rows:
        tables.setdefault((row.selects, row.attribute), []).append(row)
    below = [[row for row in table if row.ratio.shown] for table in tables.values()]
    for found, table in zip(below, tables.values(), strict=True):
        if found:
            most = next(row.group for row in table if row.ratio.reason == SELECTED_MOST)
            groups = _listed(found, rows)
            yield _SAYS.find("below", run, "shown", found[0].ratio, place, who=who, groups=groups, most=most)
    if not any(below):
        told = [row.ratio for row in rows if row.ratio.p is not None]
        level: Level = "no difference shown" if told else "cannot be told"
        # Of the group of which the least is known; nothing, where even a ratio of 0 could be chance.
        noticed = FOUR_FIFTHS - max((one.mde or 0.0 for one in told), default=1.0)
        key = "not_below_noticed" if noticed > 0 else "not_below" if told else "untold"
        yield _SAYS.find(key, run, level, told[0] if told else None, place, who=who, noticed=noticed)


def _listed(rows: Sequence[GroupImpact], among: Sequence[GroupImpact]) -> list[str]:
    """The groups with their ratios; where several ways of selecting are measured, with theirs."""
    several = len({row.selects for row in among}) > 1
    names = [f"{row.group}, {row.selects}" if several else row.group for row in rows]
    return [_SAYS.say("group", group=name, ratio=row.ratio) for name, row in zip(names, rows, strict=True)]
