"""Impact ratios of people: who is selected at less than four fifths of the rate of the group selected most."""

from __future__ import annotations

import itertools
import math
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
from evenrank.files.errors import arg, quoted, readable, shown
from evenrank.files.json_values import INLINE
from evenrank.files.tables import Columns, read_columns
from evenrank.files.types import Array
from evenrank.groups import GroupSource
from evenrank.groups.labels import PROBABILITY
from evenrank.measures import Evaluation
from evenrank.measures.impact import ImpactRatio
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import COUNT, TEXT, Column, Format, P, Table, short, short_intervals, shorts
from evenrank.stats.compare import Verdict
from evenrank.stats.estimate import SIGNIFICANT
from evenrank.stats.ratios import FOUR_FIFTHS, SELECTED_MOST, RateRatio, Selection, corrected_ratios, rate_ratios

_PHRASES = phrases("impact")
_BELOW, _UNTOLD = "▼", "?"
_CLAIMS = ("shown", "lower", "chance", "undecidable")
"""Of groups below four fifths, from the strongest."""
_COUNT = Format(lambda count: f"{count:,.6g}")
_YES = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0}


@dataclass(frozen=True, slots=True)
class GroupImpact:
    """A group's row of the table that an audit of selection publishes.

    Attributes:
        run: The run that selects; "" of a table of people. ``selects``: whom, such as "the first 10".
        attribute: What the group is a value of, such as "gender", or "gender × ethnicity".
        group: The group; ``reference``: the one that is selected most, with which it is compared.
        candidates: How often people of the group are in a list; ``selected``: how often they are selected, or the
            exposure that they get. Of people in several groups, and of tied ones, a share.
        unknown: How many candidates have no known value of the attribute, and so are in no figure of it.
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
        return "shown" if self.ratio.shown else "lower" if self.ratio.to_equal_rates().shown else "chance"

    @property
    def said(self) -> str:
        """The verdict in words."""
        if self.ratio.reason is not None:
            return f"cannot be told: {self.ratio.reason}" if self.undecidable else self.ratio.reason
        text = _PHRASES.text(f"verdict_{self.claim or 'not_below'}", reference=self.reference, n=self.ratio.n)
        return text + _PHRASES.text("verdict_but_for_correction") if self.but_for_correction else text


def group_impacts(
    run: str, selects: str, attribute: str, groups: Sequence[str], selection: Selection, unknown: int
) -> list[GroupImpact]:
    """The rows of one attribute, not corrected."""
    ratios = rate_ratios(selection)
    selected, candidates = (np.round(sums.sum(axis=0), 9).tolist() for sums in selection.by_list)
    return [
        GroupImpact(
            run=run,
            selects=selects,
            attribute=attribute,
            group=group,
            reference=groups[selection.most_selected],
            candidates=candidates[place],
            selected=selected[place],
            unknown=unknown,
            ratio=ratios[place],
        )
        for place, group in enumerate(groups)
    ]


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
    asked = [measure for measure in measures if isinstance(measure, type(ImpactRatio))]
    # Of labels that were drawn a ratio has bounds alone.
    if not asked or any(run.required_table.sample is not None for run in runs):
        return ()
    margins = source.margins([run.run.table["doc_id"] for run in runs])
    # Groups and pooling aside, the measures with one cutoff and discount have one table.
    for measure in {(one["cutoff"], one["discount"]): one for one in asked}.values():
        by = "the first" if measure["discount"] == "first" else "by exposure in the first"
        selects = f"{by} {measure['cutoff']}"
        for run in runs:
            of = {name: Evaluation(run.run, table, missing=run.missing) for name, table in margins.items()}
            for name, one in {**of, source.attribute: run}.items():
                groups, unknown = one.required_table.groups, int((one.document < 0).sum())
                rows += group_impacts(run.run.name, selects, name, groups, measure.selection(one), unknown)
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
            "With --table: the column of who was selected (0 or 1).",
            needs=("table",),
            excludes=("k",),
            metavar="COLUMN",
            panel="Input",
            rare=True,
        ),
    ] = None,
    score: Annotated[
        str | None,
        opt.Option("With --table: the column of scores.", needs=("table",), metavar="COLUMN", panel="Input", rare=True),
    ] = None,
    rank: Annotated[
        str | None,
        opt.Option(
            "With --table: the column of ranks, from 1, instead.",
            needs=("table",),
            metavar="COLUMN",
            panel="Input",
            rare=True,
        ),
    ] = None,
    k: Annotated[
        int | None,
        opt.Option(
            "With --table: so many of each list are selected.",
            needs=("table",),
            range=opt.COUNT,
            panel="Input",
            rare=True,
        ),
    ] = None,
    query: Annotated[
        str | None,
        opt.Option(
            "With --table: the column of the lists (default: one list).",
            needs=("table",),
            metavar="COLUMN",
            panel="Input",
            rare=True,
        ),
    ] = None,
    id: Annotated[
        str | None,
        opt.Option(
            "With --table: the column of people's ids (default: each row is another person).",
            needs=("table",),
            metavar="COLUMN",
            panel="Input",
            rare=True,
        ),
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
        id: The column of people's ids, each once in a list. Without it each row counts as another person, and if the
            same people are in several lists, what is said of their ratios is said too often.

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
        raise EvenrankError(f"{arg.group_column}: expected the column of people's groups, found none")
    named = {"selected": selected, "score": score, "rank": rank, "query": query, "id": id}
    for option, name in [*(("group_column", one) for one in chosen), *named.items()]:
        if name is not None and name not in columns.table.columns:
            has = ", ".join(columns.table.columns)
            raise columns.error(f"there is no column {quoted(name)} ({arg(option)}): found {has}")
    reserved = next((name for name in chosen if name in ("doc_id", PROBABILITY)), None)
    if reserved is not None:
        raise EvenrankError(f"{arg.group_column}: a column of groups has another name than {reserved}")
    for name, what in ((query, "list"), (id, "id")):
        if name is not None and columns.table[name].null_count():
            row = columns.table[name].is_null().arg_max()
            raise columns.error(f"expected the {what} of each row in {name}, found none", row)
    number = np.zeros(columns.table.height, dtype=np.int64) if query is None else _numbered(columns.table[query])
    person = None if id is None else _numbered(columns.table[id])
    if id is not None and person is not None:
        _refuse_repeats(columns, number, person, id)
    taken, selects = _selection(columns, number, selected, score, rank, k)
    frame = columns.table.select(pl.Series("doc_id", np.arange(len(number))).cast(pl.String), *chosen)
    source = GroupSource(labels=frame, neutral=neutral, group_column=chosen, intersect=intersect)
    rows: list[GroupImpact] = []
    ids = [frame["doc_id"]]
    for name, groups in {**source.margins(ids), source.attribute: source.known(ids)}.items():
        place = groups.table["doc_id"].cast(pl.Int64).to_numpy()
        weights = np.zeros((len(number), len(groups.groups)))
        weights[place] = np.stack([groups.weight(group) for group in groups.groups], axis=1)
        selection = Selection.of_rows(taken, weights, person, number)
        rows += group_impacts("", selects, name, groups.groups, selection, len(number) - len(place))
    settings = {
        "table": readable(os.path.basename(columns.path)) if columns.path else "in memory",
        "selects": selects,
        "group_column": list(chosen),
        "neutral": list(strings(neutral)),
        "lists": int(number.max()) + 1,
        "id": id,
    }
    people = len(number) if person is None else int(person.max()) + 1
    return ImpactRatios(settings, corrected(rows), people, provenance=made)


def _people(given: object) -> Columns:
    if isinstance(given, str | os.PathLike):
        columns = read_columns(given)
    else:
        frame = frame_of(given, arg.table)
        if frame is None:
            raise EvenrankError(f"{arg.table}: expected a path or a frame, found {shown(given)}")
        columns = Columns(frame, what=arg.table)
    if not columns.table.height:
        raise columns.error("contains no rows")
    return columns


def _refuse_repeats(columns: Columns, number: Array, person: Array, id: str) -> None:
    again = pl.Series(number * (int(person.max()) + 1) + person).is_duplicated()
    if again.any():
        row = int(again.arg_max() or 0)
        raise columns.error(f"{quoted(columns.table[id][row])} ({arg.id}) is there twice in one list", row)


def _numbered(values: pl.Series) -> Array:
    """The number [N] of each value among those that there are, from 0."""
    given = values.alias("value").to_frame()
    numbers = given.unique(maintain_order=True).with_row_index("number")
    return given.join(numbers, on="value", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)


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
        written = columns.table[selected].cast(pl.String).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
        found = written.replace_strict(_YES, default=None, return_dtype=pl.Float64)
        if found.null_count():
            row = int(found.is_null().arg_max() or 0)
            raise columns.error(f"expected 0 or 1 as {selected}, found {quoted(columns.table[selected][row])}", row)
        return found.to_numpy(), selected
    if (score is None) == (rank is None):
        both = "found both" if score is not None else "found neither"
        raise EvenrankError(
            f"{arg.score} or {arg.rank}: expected one of them where {arg.selected} is not given, {both}"
        )
    values = _numbers(columns, score) if score is not None else -_numbers(columns, str(rank))
    if k is None:
        return (values > np.median(values)).astype(np.float64), f"{score or rank} better than the median"
    order = pl.DataFrame({"list": number, "value": -values}).select(
        pl.col("value").rank("min").over("list").alias("from"), pl.col("value").rank("max").over("list").alias("to")
    )
    start, end = (order[name].to_numpy().astype(np.float64) for name in ("from", "to"))
    # Of tied people, each has the chance that a random order of them gives.
    return np.clip((k - start + 1) / (end - start + 1), 0, 1), f"the first {k}"


@dataclass(frozen=True, slots=True, repr=False)
class ImpactRatios(Result):
    """What :func:`evenrank.impact_ratios` returns: ``groups``, the rows of the table, and the number of ``people``."""

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
        lists = self.settings["lists"]
        several = isinstance(lists, int) and lists > 1
        no_ids = [_PHRASES.finding("no_ids", place="note")] if several and self.settings["id"] is None else []
        return Page(
            "audit",
            f"{self.settings['table']}: {self.settings['selects']}",
            (*impact_findings(self.groups), *no_ids),
            _screen_table(self.groups),
            legend=(*LEGEND, *(["within: ratio within lists"] if several else [])),
            aside=f"{self.people:,} {'rows' if several and self.settings['id'] is None else 'people'}"
            + (f" in {lists:,} lists" if several else ""),
            source="Rate of selection over that of the group selected most. A measurement, no legal advice.",
            sections=(Section("As it is published", (self.impact_table(),)),),
            provenance=self.provenance,
            lines=22 + len(self.groups),
        )


LEGEND = (f"{_BELOW} shown below four fifths", f"{_UNTOLD} cannot be told", "z, p: against equal rates")


def impact_table(rows: Sequence[GroupImpact]) -> Table:
    """The table that an audit of selection publishes; what is the same in all rows, such as the run, has no column."""
    within = Column("within_lists", shorts(3), "within lists", "ratio.within_lists", short="within")
    columns = (
        *(Column(key) for key in ("run", "selects", "attribute") if len({getattr(row, key) for row in rows}) > 1),
        Column("group"),
        *([Column("people", COUNT, of="ratio.n")] if any(row.candidates > row.ratio.n + 0.5 for row in rows) else ()),
        Column("candidates", _COUNT, short="total"),
        Column("selected", _COUNT),
        Column("rate", shorts(3)),
        Column("ratio", shorts(3), of="ratio.mean", mark=_mark),
        Column(("ratio_low", "ratio_high"), short_intervals(3), "95% interval", "ratio.ci95"),
        Column("z", shorts(2), of="ratio.z"),
        Column("p_equal", P, "p", "ratio.p_equal"),
        *([within] if any(row.ratio.within_lists is not None for row in rows) else ()),
        Column("verdict", TEXT, of="said"),
    )
    unknown = (finding.text for finding in impact_findings(rows) if finding.key == "unknown")
    return Table("Impact ratios", columns, rows, tuple(unknown))


def _screen_table(rows: Sequence[GroupImpact]) -> Table:
    """The same for a screen, with the attributes above their groups."""
    table = impact_table(rows)
    left_out = ("attribute", "selects", "people", "verdict")
    table = table.only(*(column.keys[0] for column in table.columns if column.keys[0] not in left_out))
    several = len({row.attribute for row in rows}) > 1
    return replace(table, notes=(), group=(lambda row: row.attribute) if several else None)


def _mark(row: GroupImpact) -> str:
    return _BELOW if row.ratio.shown else _UNTOLD if row.undecidable else ""


def impact_findings(rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """Which groups are below four fifths, of which of them that is shown, and of which nothing can be told."""
    for run in dict.fromkeys(row.run for row in rows):
        own = [row for row in rows if row.run == run]
        below = list(_below(run, own))
        yield from below or [_not_below(run, own)]
        silent = [row for row in own if row.undecidable and not row.ratio.below]
        for reason in dict.fromkeys(row.ratio.reason for row in silent):
            groups = list(dict.fromkeys(row.group for row in silent if row.ratio.reason == reason))
            yield _PHRASES.finding("undecidable", run, "cannot be told", place="note", groups=groups, reason=reason)
        lacking = [f"{name} of {n:,}" for name, n in {row.attribute: row.unknown for row in own}.items() if n]
        if lacking:
            yield _PHRASES.finding("unknown", run, place="note", lacking=lacking)


def _who(run: str) -> str:
    return run or "This selection"


def _below(run: str, rows: Sequence[GroupImpact]) -> Iterator[Finding]:
    """What is said of groups below four fifths; if that takes several sentences, before them one that names all."""
    sentences: list[Finding] = []
    for table in _tables(rows):
        reasons = dict.fromkeys((claim, row.ratio.reason) for claim in _CLAIMS for row in table if row.claim == claim)
        for claim, reason in reasons:
            alike = [row for row in table if (row.claim, row.ratio.reason) == (claim, reason)]
            ratio = alike[0].ratio
            estimate = ratio.to_equal_rates() if claim == "lower" else ratio
            sentence = _PHRASES.finding(
                f"below_{claim}",
                run,
                estimate.verdict,
                estimate,
                who=_who(run),
                groups=_listed(alike, rows),
                reference=alike[0].reference,
                people=[f"{row.ratio.n:,}" for row in alike],
                reason=reason,
            )
            sentences.append(sentence)
    first: Place = "finding" if run else "answer"
    if len(sentences) == 1:
        yield replace(sentences[0], place=first)
    elif sentences:
        below = [row for row in rows if row.ratio.below]
        groups = [f"{_name(row, rows)} ({short(row.ratio.mean)})" for row in below]
        strongest = min(below, key=lambda row: _CLAIMS.index(row.claim)).ratio
        yield _PHRASES.finding("below", run, strongest.verdict, strongest, first, who=_who(run), groups=groups)
        yield from sentences


def _not_below(run: str, rows: Sequence[GroupImpact]) -> Finding:
    """That no group is below four fifths, with the ratio above which that would be missed, or that nothing is known."""
    place: Place = "finding" if run else "answer"
    tested = [row for row in rows if row.ratio.p is not None]
    if not tested:
        return _PHRASES.finding("untold", run, "cannot be told", None, place, who=_who(run))
    # Of the group of which the least is known.
    least = max(tested, key=lambda row: math.inf if row.ratio.mde is None else row.ratio.mde)
    key = "not_below_unseen" if least.ratio.mde is None else "not_below"
    missed = FOUR_FIFTHS - (least.ratio.mde or 0.0)
    group = _name(least, rows)
    return _PHRASES.finding(
        key, run, "no difference shown", least.ratio, place, who=_who(run), group=group, missed=missed
    )


def _listed(rows: Sequence[GroupImpact], among: Sequence[GroupImpact]) -> list[str]:
    """The groups with their ratios."""
    return [
        _PHRASES.text(
            "group_but_for_correction" if row.but_for_correction else "group", group=_name(row, among), ratio=row.ratio
        )
        for row in rows
    ]


def _name(row: GroupImpact, among: Sequence[GroupImpact]) -> str:
    """A group; where several ways of selecting are measured, with its own."""
    return f"{row.group}, {row.selects}" if len({one.selects for one in among}) > 1 else row.group
