"""The tables of an audit: what each column takes from a figure, and how it reads wherever it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from evenrank.files.types import EQUAL
from evenrank.files.wording import counted, plural
from evenrank.measures import is_bias, resolve
from evenrank.results.table import (
    COUNT,
    TEXT,
    Column,
    Format,
    P,
    Table,
    differences,
    digits,
    intervals,
    short_intervals,
    shorts,
)
from evenrank.stats.compare import LEAST_DIFFERENT, LEAST_NOT_ZERO, Comparison

from .data import AuditFigures, KnownLabels, MetricValue, OrderEffect, Pair, QueryGroup, RunAudit, RunComparison
from .poles import group_label, groups, labelled
from .selected_measures import direction, ideal_adds, on_common, only_bounds, signed_measures, with_origins
from .word_attribution import Words, WordShare

_DIGITS = 4
_MOST_ON_PAGE = 15
TIES = "~"


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure with the run and the audit that it is of."""

    result: AuditFigures
    run: RunAudit
    figure: MetricValue

    @property
    def compared(self) -> RunComparison | None:
        """The comparison with the baseline."""
        return self.figure.vs_baseline


# --- figures ---------------------------------------------------------------------------------------------------------

_KNOWN = Format(str, "count", sort=lambda known: known.rows / max(1, known.of))
_COUNTS = Format(lambda counts: "/".join(f"{count:,}" for count in counts), "count", sort=lambda counts: counts[0])
_SHARE = Format(lambda share: f"{share:+.1%}")
_PERCENT = Format(lambda share: f"{share:.1%}")

_VALUE, _APART = digits(_DIGITS), differences(_DIGITS)
_ENDS, _SIGNED_ENDS = intervals(_DIGITS), intervals(_DIGITS, sign=True)
_RANGE = intervals(_DIGITS, wide=True)
_MEASURE, _RUN = "measure", "run"
_PAGE = (_MEASURE, _RUN, "mean", "low", "these_low", "guess_alone", "bound_low", "known", "tie_mean", "tie_low")
_PAGE_AGAINST = ("difference", "difference_low", "p", "holm_p", "better", "relative")
_OF_DRAWN = {"these_low", "guess_alone"}
_OF_LABELS = {"bound_low", "known", "difference_low", *_OF_DRAWN}
_NOT_OF_BOUNDS = {"tie_mean", "better", "relative"}
_ALWAYS = {_MEASURE, _RUN, "mean", "n"}


def figure_columns(result: AuditFigures) -> tuple[Column, ...]:
    """All that is said of a figure."""
    baseline, signs = result.baseline, signed_measures(result)
    nearer = f" ({', '.join(signs)}: nearer to 0 is better)" if signs else ""
    of = " of the signed difference" if signs else ""
    units = plural(result.unit).capitalize()
    return (
        Column(_RUN, TEXT, "Run", "run.name", note="The run or reference ranking", tag=_role),
        Column(_MEASURE, TEXT, "Measure", lambda row: str(row.figure.measure), note="Effectiveness first, then bias"),
        Column(
            "mean", _VALUE, "Mean", "figure.mean", "mean", f"Mean over {units.lower()}, or the value of the whole run"
        ),
        Column("n", COUNT, units, "figure.n", note=f"Number of {units.lower()} with a value", tag=_left_out),
        Column("undefined", COUNT, of="figure.undefined"),
        Column(
            ("low", "high"),
            _ENDS,
            "95% interval",
            "figure.ci95",
            note=f"Interval over {units.lower()} (t and Hall's t); sorts by its lower end",
        ),
        Column(
            ("these_low", "these_high"),
            _ENDS,
            "These queries",
            "figure.from_labels.ci95",
            note="Interval for these queries alone: only which documents were labelled is chance",
        ),
        Column(
            "guess_alone",
            _VALUE,
            "Guess alone",
            "figure.from_labels.guess_alone",
            note="What the guess says without labels",
        ),
        Column(
            ("known", "known_of"),
            _KNOWN,
            "Known",
            "figure.known",
            "known",
            "Share of the documents that the figure looks at which have a label",
        ),
        Column(
            ("bound_low", "bound_high"),
            _RANGE,
            "Bounds",
            "figure.bounds",
            "bounds",
            "Smallest and largest value over every way to label the unknown documents; sorts by their width",
        ),
        Column("tie_mean", _VALUE, "Tie mean", "figure.tie_mean", "tie mean", "Mean over all orders of tied documents"),
        Column(
            ("tie_low", "tie_high"),
            _RANGE,
            "Tie range",
            "figure.tie_range",
            "tie range",
            "Smallest and largest value over all orders of tied documents; sorts by its width",
            mark=lambda row: TIES if row.figure.tie_sensitive else "",
        ),
        Column(
            "difference",
            _VALUE,
            "Difference",
            _against("difference"),
            "differ.",
            f"Mean of the run minus that of {baseline}, over queries where both have a value",
            tag=lambda row: on_common(row.figure),
        ),
        Column(
            "relative",
            _SHARE,
            "Relative",
            _against("relative"),
            note=f"Difference as a share of the mean of {baseline}",
        ),
        Column(
            ("better", "equal", "worse"),
            _COUNTS,
            "b/e/w",
            _against("counts"),
            note=f"Queries better/equal/worse than {baseline}{nearer}; sorts by the better ones",
        ),
        Column(
            "holm_p",
            P,
            "Holm p",
            _against("holm_p"),
            note="That p, corrected over the runs compared and the measures of effectiveness, or of bias",
            mark=lambda row: "*" if row.compared is not None and row.compared.significant else "",
        ),
        Column("p", P, "p", _against("p"), note=f"Whether the difference{of} is one (t and Hall's t), uncorrected"),
        Column(
            ("difference_low", "difference_high"),
            _ENDS,
            "Its interval",
            _against("ci95"),
            "95% interval",
            "95% interval of the difference; sorts by its lower end",
        ),
        *_order_columns("vs_random_order"),
        *_order_columns("vs_ideal_order"),
    )


def _against(name: str) -> Callable[[FigureRow], object]:
    """What a comparison says; nothing of the baseline itself."""
    return lambda row: "" if row.compared is None else getattr(row.compared, name)


def _order_columns(name: str) -> Iterator[Column]:
    of = f"figure.{name}"
    yield Column(name, _APART, of=f"{of}.mean")
    yield Column((f"{name}_low", f"{name}_high"), _SIGNED_ENDS, of=f"{of}.ci95")
    yield Column(f"{name}_p", P, of=f"{of}.test.p")
    yield Column(f"{name}_tie_mean", _APART, of=f"{of}.tie_mean")


def _role(row: FigureRow) -> str:
    return "reference" if row.run.reference else "baseline" if row.run.name == row.result.baseline else ""


def _left_out(row: FigureRow) -> str:
    figure, absent = row.figure, row.run.absent
    left_out = [f"{figure.undefined:,} undefined"] if figure.undefined else []
    left_out += [f"{absent:,} not in the run, counted as 0"] if absent and not is_bias(figure.measure) else []
    return ", ".join(left_out)


def figures_frame(result: AuditFigures) -> Table:
    """All that is said of every figure, by run."""
    rows = [FigureRow(result, run, figure) for run in result.runs for figure in run.measures.values()]
    return Table("", figure_columns(result), rows)


def figures_table(result: AuditFigures) -> Table:
    """The page's table, by measure: the columns that some figure of the audit has a value for."""
    rows = [FigureRow(result, run, run.measures[str(measure)]) for measure in result.measures for run in result.runs]
    keys = (*_PAGE, *(_PAGE_AGAINST if result.baseline is not None else ()), "n")
    table = Table(
        "All figures of all runs",
        tuple(map(_of_page, figure_columns(result))),
        rows,
        group=lambda row: str(row.figure.measure),
        kind=lambda row: "reference" if row.run.reference else "",
    ).only(*keys)
    empty = {column.keys[0] for column in table.columns if all(column.value(row, 0) in (None, "") for row in rows)}
    if not labelled(result):
        return table.only(*(key for key in keys if key not in _OF_LABELS - (_OF_DRAWN - empty)))
    without = _NOT_OF_BOUNDS if only_bounds(result) else _OF_LABELS - {"known", *_OF_DRAWN}
    return table.only(*(key for key in keys if key not in without and (key in _ALWAYS or key not in empty)))


def _of_page(column: Column) -> Column:
    """A relative difference misleads for a figure that can have either sign."""
    if column.key != "relative":
        return column
    return replace(column, of=_relative)


def _relative(row: FigureRow) -> object:
    return None if row.compared is not None and resolve(row.figure.measure).signed else _against("relative")(row)


def by_measure(table: Table) -> Table:
    """A page's table for the terminal: the measure stands above its rows, which the run's name begins."""
    _, run, *others = table.columns
    return replace(table, columns=(replace(run, heading=""), *others))


def figures_terminal(result: AuditFigures) -> Table:
    """The figures of :func:`figures_table` for the terminal, with what tags and headings say on the page."""
    table = by_measure(figures_table(result))
    run, *others = table.columns
    named = replace(run, of=lambda row: f"({row.run.name})" if row.run.reference else row.run.name)
    titles = {str(measure): _title(result, str(measure)) for measure in result.measures}
    return replace(
        table,
        columns=(named, *others),
        notes=tuple(_legend(result)),
        group=lambda row: titles[str(row.figure.measure)],
        below=_on_common,
    )


def _legend(result: AuditFigures) -> Iterator[str]:
    """What marks and headings mean."""
    yield (
        "(name): a reference ranking of the same candidates. ~: the order of tied documents moves the figure by more"
        " than its interval is wide."
    )
    if labelled(result):
        yield (
            "bounds: the smallest and largest figure over every way to label the unknown. known: share of the rows"
            " looked at whose document has a label."
        )
    if result.baseline is not None:
        signed = signed_measures(result)
        nearer = f" ({', '.join(signed)}: nearer to 0 is better)" if signed else ""
        of = " of the signed difference" if signed else ""
        yield (
            f"differ.: run minus {result.baseline}. b/e/w: queries better/equal/worse{nearer}. p: t and Hall's t{of},"
            f" uncorrected; none with fewer than {LEAST_DIFFERENT} queries that differ ({LEAST_NOT_ZERO} in bias)."
            " Holm p: corrected over the runs compared, references excluded, and over the measures of effectiveness,"
            " or of bias; *: below .05."
        )


def _title(result: AuditFigures, key: str) -> str:
    figures = [run.measures[key] for run in result.runs]
    counts = sorted({figure.n for figure in figures})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    undefined = max(figure.undefined for figure in figures)
    more = f", up to {undefined} undefined" if undefined else ""
    absent = [] if is_bias(figures[0].measure) else [run.absent for run in result.runs if not run.reference]
    if any(absent):
        most = f"up to {max(absent)}" if len(set(absent)) > 1 else absent[0]
        more += f", {most} of them not in the run and counted as 0"
    kind = "bias" if is_bias(figures[0].measure) else "effectiveness"
    unit = result.unit if n == "1" else plural(result.unit)
    return f"{key} ({kind}, {direction(figures[0].measure)}; n = {n} {unit}{more})"


def _on_common(row: FigureRow) -> str:
    """The comparison's means, if it is over fewer queries than the figures."""
    text = on_common(row.figure)
    return f"on the {text}" if text and row.compared is not None and row.compared.mean is not None else text


# --- what the order adds ---------------------------------------------------------------------------------------------


def pairs_table(pairs: Sequence[Pair]) -> Table:
    """Every two runs on each measure, the first minus the second."""
    columns = (
        Column("measure"),
        Column("first"),
        Column("second"),
        Column("difference", differences(4), of="test.mean"),
        Column(("low", "high"), intervals(4, sign=True), "95% interval", "test.ci95"),
        Column("holm_p", P, "Holm p", "test.holm_p"),
        Column("why", heading="cannot be told", of="test.reason"),
    )
    title = "Every two runs: the first minus the second; Holm over all pairs, of effectiveness and of bias"
    return Table(title, columns, pairs)


def query_groups_table(result: AuditFigures) -> Table:
    """Who is served: each run's figure by group of query, and how it differs from others and the baseline."""
    compared = any(group.vs_baseline is not None for group in result.query_groups)
    columns = (
        Column("measure"),
        Column("run"),
        Column("group", heading="queries of"),
        Column("n", COUNT, of="figure.n"),
        Column("mean", shorts(3), of="figure.mean"),
        Column(("low", "high"), short_intervals(3), "95% interval", "figure.ci95"),
        *_test_columns("others", "vs others", lambda row: row.test),
        *(_test_columns("against", f"vs {result.baseline}", lambda row: row.vs_baseline) if compared else ()),
    )
    title = "Groups of queries: differences from the other groups; Holm over groups, runs and measures of a kind"
    return Table(title, columns, result.query_groups, group=lambda row: row.measure)


def strata_table(result: AuditFigures) -> Table | None:
    """Where a judge calls more relevant than people do, and how far that differs from the other pairs."""
    if result.judge is None or not result.judge.strata:
        return None
    names = groups(result)
    columns = (
        Column("by"),
        Column("pairs", of=lambda row: group_label(row.stratum, names) if row.by == "group" else row.stratum),
        Column("n", COUNT, of="test.n"),
        Column("excess", shorts(3, sign=True), "judge − people"),
        Column("others", shorts(3, sign=True), "vs others", "test.mean", mark=lambda row: "*" * row.test.shown),
        Column(("low", "high"), short_intervals(3, sign=True), "its interval", "test.ci95"),
        Column("mde", shorts(3), "detectable", "test.mde"),
        Column("holm_p", P, "Holm p", "test.holm_p"),
        Column("why", heading="cannot be told", of="test.reason"),
    )
    title = "The judge: the share it calls relevant, less the share that people do, by kind of pair"
    note = "*: shown; detectable: smaller differences from the others are missed in at least one of five such samples."
    return Table(title, columns, result.judge.strata, notes=(note,))


def labels_table(result: AuditFigures) -> Table | None:
    """Each run's first ranks by group, with what is of none and what is unknown; None without labels."""
    known = [(run, run.labels) for run in result.runs if run.labels is not None]
    if not known:
        return None
    names = groups(result)
    columns = [*(group_label(name, names) for name in names), "No group", "Unknown"]
    rows = [
        (run.name, *(_size(size, labels.rows) for size in _sizes(labels, names)), labels.rows) for run, labels in known
    ]
    shown = (Column("Run"), *(Column(name, COUNT) for name in (*columns, "Documents")))
    return Table(f"Labels of the first {known[0][1].depth} ranks", shown, rows)


def _sizes(labels: KnownLabels, groups: list[str]) -> list[float]:
    """The groups' weights, what is left of known documents, and the number of unknown ones; they sum to the rows."""
    weights = [labels.groups.get(group, 0.0) for group in groups]
    return [*weights, max(0.0, labels.known - sum(weights)), float(labels.unknown)]


def _size(size: float, rows: int) -> str:
    """A number of documents and its share: ``31 (1.4%)``; below half of the last decimal, 0."""
    return f"{round(size, 1):,.6g} ({size / max(1, rows):.1%})"


def _test_columns(key: str, heading: str, of: Callable[[QueryGroup], Comparison | None]) -> Iterator[Column]:
    def said(name: str) -> Callable[[QueryGroup], object]:
        return lambda row: "" if (test := of(row)) is None else getattr(test, name)

    def mark(row: QueryGroup) -> str:
        return "*" if (test := of(row)) is not None and test.shown else ""

    yield Column(key, shorts(3, sign=True), heading, said("mean"), mark=mark)
    yield Column((f"{key}_low", f"{key}_high"), short_intervals(3, sign=True), "its interval", said("ci95"))
    yield Column(f"{key}_p", P, "Holm p", said("holm_p"))


def _tied(effect: OrderEffect | None) -> str:
    return TIES if effect is not None and effect.tie_sensitive else ""


def origins_table(result: AuditFigures) -> Table:
    """The page's table: a row for each figure that is known to be such a sum.

    With what an ideal ranking of the candidates would add, where that is known of a figure.
    """
    rows = [
        FigureRow(result, run, run.measures[str(measure)])
        for measure in with_origins(result)
        for run in result.given
        if run.measures[str(measure)].vs_random_order is not None
    ]
    beyond = (
        Column("ideal", _APART, "Ideal ranking adds", lambda row: ideal_adds(row.figure)),
        Column(
            "vs_ideal_order",
            _APART,
            "Beyond relevance",
            "figure.vs_ideal_order.mean",
            mark=lambda row: _tied(row.figure.vs_ideal_order),
            tag=_beyond_of,
        ),
        Column(("beyond_low", "beyond_high"), _SIGNED_ENDS, "Interval (beyond)", "figure.vs_ideal_order.ci95"),
        Column("beyond_p", P, "p (beyond)", "figure.vs_ideal_order.test.p"),
    )
    columns = (
        Column(_MEASURE, TEXT, "Measure", lambda row: str(row.figure.measure)),
        Column(_RUN, TEXT, "Run", "run.name"),
        Column(
            "mean",
            _VALUE,
            "Figure",
            _added_up,
            tag=_added_of,
        ),
        Column("reference", _VALUE, "Candidates hold", "figure.vs_random_order.reference"),
        Column(
            "vs_random_order",
            _APART,
            "Order adds",
            "figure.vs_random_order.mean",
            mark=lambda row: _tied(row.figure.vs_random_order),
        ),
        Column(("added_low", "added_high"), _SIGNED_ENDS, "Interval (order)", "figure.vs_random_order.ci95"),
        Column("added_p", P, "p (order)", "figure.vs_random_order.test.p"),
        *(beyond if any(row.figure.vs_ideal_order is not None for row in rows) else ()),
        Column("n", COUNT, plural(result.unit).capitalize(), "figure.vs_random_order.n"),
    )
    title = "What candidates hold and what their order adds"
    return Table(title, columns, rows, group=lambda row: str(row.figure.measure))


def _added_up(row: FigureRow) -> float:
    """What the candidates hold and what the order adds to it."""
    effect = row.figure.vs_random_order
    assert effect is not None
    return effect.reference + effect.mean


def _added_of(row: FigureRow) -> str:
    """A remark where the sum is over fewer queries than the figure in the table of figures."""
    added = row.figure.vs_random_order
    assert added is not None
    same = added.n == row.figure.n and abs(added.reference + added.mean - (row.figure.mean or 0.0)) <= EQUAL
    return "" if same else f"of {counted(added.n, 'query')}"


def _beyond_of(row: FigureRow) -> str:
    added, beyond = row.figure.vs_random_order, row.figure.vs_ideal_order
    return "" if added is None or beyond is None or beyond.n == added.n else f"of {counted(beyond.n, 'query')}"


# --- words -----------------------------------------------------------------------------------------------------------


def words_table(result: AuditFigures, words: Words, run: str, place: int | None) -> Table:
    """The page's table of a run's words; ``place``: the run's number in the query browser, for the page's script."""
    names = groups(result)
    numbers = {name: number_ for number_, name in enumerate(words.names)}

    def data(row: tuple[str, WordShare]) -> dict[str, object]:
        return {} if place is None else {"word": numbers[row[1].word], "run": place}

    columns = (
        Column("word", TEXT, "Word", "1.word", data=data),
        Column("group", TEXT, "Group", "0"),
        Column("occurrences", Format(_occurrences), "Occurrences", "1.occurrences"),
        Column("share", _PERCENT, "Share", "1.share"),
        Column("share_of_documents", _PERCENT, "Share of documents", "1.share_of_documents"),
        Column("contribution", _VALUE, "Contribution", "1.contribution"),
    )
    rows = [(group_label(group, names), word) for group in names for word in words.runs[run][group][:_MOST_ON_PAGE]]
    return Table(f"Words in the first {words.depth} ranks of {run}", columns, rows)


def _occurrences(count: float) -> str:
    return f"{count:,.0f}" if count >= 9.5 else f"{count:.3g}"
