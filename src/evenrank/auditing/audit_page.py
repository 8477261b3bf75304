"""The audit as one HTML page that opens without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ir_measures import Measure

from evenrank.files.wording import counted
from evenrank.measures import describe, is_bias, is_linear, resolve
from evenrank.results.finding import Finding
from evenrank.results.page import CITATIONS, Page, Section, asset, render
from evenrank.results.table import NONE, Column, Table

from . import page_data as data
from .data import AuditFigures, MetricValue
from .findings import audit_findings, run_findings
from .impact import impact_table
from .page_data import rounded
from .run_names import cut_name
from .selected_measures import (
    direction,
    ideal_adds,
    only_bounds,
    plane_bias,
    signed_measures,
    utility_measures,
    with_origins,
)
from .summary import legend, screen_table, verdicts
from .tables import (
    by_measure,
    figures_table,
    figures_terminal,
    labels_table,
    origins_table,
    pairs_table,
    query_groups_table,
    strata_table,
    words_table,
)
from .tradeoff_plot import audit_plot
from .values import SHOWN_DEPTH

GIVEN_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "triangle-right", "triangle-left")
REFERENCE_SHAPES = {"random": "cross", "neutral-first": "diamond", "relevance-first": "star"}


def specifications() -> dict[str, dict[str, object]]:
    """The charts by the names that the script uses.

    * ``queries``: one bar per query, sorted.
    * ``origins``: up to three rows per run for one measure: what its order adds, what an ideal one would, and the
      difference.

    A string that starts with ``@`` is a placeholder for the script; ``["@runs"]`` becomes a list. Runs are
    distinguished by shape and colour, as in the page's legend, and so have none in the charts.
    """
    specifications: dict[str, dict[str, object]] = json.loads(asset("charts.json"))
    return specifications


def styles(runs: list[tuple[str, bool]]) -> list[dict[str, object]]:
    """Shape and colour number (−1 for references) of each run, given as (name, whether it is a reference).

    Repeated shapes are shifted against the colours, so that 36 runs look different.
    """
    result: list[dict[str, object]] = []
    colour = 0
    for name, reference in runs:
        if reference:
            result.append({"shape": REFERENCE_SHAPES.get(name, "cross"), "colour": -1})
            continue
        shift = colour + colour // len(GIVEN_SHAPES)
        result.append({"shape": GIVEN_SHAPES[shift % len(GIVEN_SHAPES)], "colour": colour})
        colour += 1
    return result


_NO_SUM = (
    "No measure of bias in this audit can be taken apart like this: that takes a weighted sum over ranks, such as"
    " ARaB, FaiRR or NFaiRR."
)
_BOUNDS = (
    "Only bounds are known: where in them a figure lies is not known, and so neither is what the order of the"
    " documents adds."
)
_UNLABELLED = (
    "Some candidates have no label: what their random order would hold is not known, and so neither is what the order"
    " of the documents adds, nor what is beyond relevance."
)
_NO_QRELS = (
    "Without qrels it is unknown what an ideal ranking of the same candidates would add, and so is what a run has"
    " beyond relevance."
)
_NO_COMMON = "No query has both a judgement and a value, so what an ideal ranking would add is unknown."


def origins_section(result: AuditFigures) -> dict[str, object] | None:
    """The rows of the section's table and what it says; None without a measure of bias."""
    biased = [measure for measure in result.measures if is_bias(measure)]
    if not biased:
        return None
    measures = with_origins(result)
    figures = [run.measures[str(measure)] for measure in measures for run in result.given]
    effects = [effect for figure in figures for effect in (figure.vs_random_order, figure.vs_ideal_order)]
    relevance = any(figure.vs_ideal_order is not None for figure in figures)
    return {
        "table": origins_table(result) if measures else None,
        "relevance": relevance,
        "missing": _missing(result, measures, relevance),
        "left_out": ", ".join(str(measure) for measure in biased if measure not in measures) if measures else "",
        "ties": any(effect is not None and effect.tie_sensitive for effect in effects),
    }


def _missing(result: AuditFigures, found: list[Measure], relevance: bool) -> str:
    """Why something is not known."""
    if not found:
        figures = [run.measures[str(m)] for m in result.measures if is_linear(m) for run in result.given]
        if not figures or not result.partly_labelled:
            return _NO_SUM
        return _BOUNDS if only_bounds(result) and all(f.mean is None for f in figures) else _UNLABELLED
    if relevance:
        return ""
    return _NO_COMMON if result.judged else _NO_QRELS


# --- data of the chart ------------------------------------------------------------------------------------------------


def origins_chart(result: AuditFigures) -> dict[str, object]:
    """By the measures' places: for each run its name, and its differences as (kind, mean, low, high, p)."""
    measures = with_origins(result)
    return {
        str(place): [
            {"run": run.name, "marks": _marks(run.measures[str(measure)])}
            for run in result.given
            if run.measures[str(measure)].vs_random_order is not None
        ]
        for place, measure in enumerate(result.measures)
        if measure in measures
    }


def _marks(figure: MetricValue) -> list[tuple[object, ...]]:
    marks: list[tuple[object, ...]] = []
    for kind, of in (("added", figure.vs_random_order), ("beyond", figure.vs_ideal_order)):
        if of is not None:
            low, high = of.ci95 or (None, None)
            marks.append((kind, rounded(of.mean), rounded(low), rounded(high), rounded(of.test.p)))
    would = ideal_adds(figure)
    if would is not None:
        marks.insert(1, ("ideal", rounded(would), None, None, None))
    return marks


def explanations(result: AuditFigures) -> list[dict[str, str]]:
    """An explanation of each measure; variants that differ only in parameters share one.

    ``names`` of the variants, ``kind`` (bias or effectiveness, and which values are better) and ``text``.
    """
    entries: dict[str, dict[str, str]] = {}
    for measure in result.measures:
        if measure.NAME in entries:
            entries[measure.NAME]["names"] += f", {measure}"
            continue
        kind = f"{'bias' if is_bias(measure) else 'effectiveness'}, {direction(measure)}"
        text = resolve(measure).meaning
        if is_bias(measure) or not text:
            text = f"{text} {_plain(describe(measure))}".strip()
        entries[measure.NAME] = {"names": str(measure), "kind": kind, "text": text}
    return list(entries.values())


def literature(measures: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    """The publications that the measures' descriptions cite, by key."""
    text = " ".join(entry["text"] for entry in measures)
    return [(key, f"{citation.text}.") for key, citation in CITATIONS.items() if key in text]


def _plain(text: str) -> str:
    """A description without reStructuredText markup, up to its first directive."""
    return re.sub(r"``(.+?)``", r"\1", text.split(" .. ")[0])


_SCRIPTS = ("charts.js", "audit.js", "table.js", "browser.js", "words.js", "origins.js")


def _aside(result: AuditFigures) -> str:
    """The number of queries, and of those that are judged where effectiveness is of fewer."""
    first = next((measure for measure in result.measures if not is_bias(measure)), None)
    judged = result.n if first is None else max(run[first].n for run in result.given)
    return counted(result.n, result.unit) + ("" if judged == result.n else f", {judged:,} judged")


def audit_page(result: AuditFigures) -> Page:
    """The first screen, and the tables of ``--full``; the sections of the HTML page are of :func:`render_page`."""
    by_run = run_findings(result)
    findings, table = audit_findings(result, by_run), screen_table(result)
    return Page(
        "audit",
        ", ".join(run.name for run in result.given),
        findings,
        table,
        legend=legend(result, table),
        aside=_aside(result),
        next=next_commands(result, findings),
        verdicts=verdicts(result, by_run),
        plot=audit_plot(result),
        sections=_sections(result),
        notes=tuple(result.notes),
        # What was asked for of groups of queries has room of its own.
        lines=22 + 8 * max(0, len(result.given) - 2) // 3 + 4 * bool(result.query_groups),
        provenance=result.provenance,
    )


def _sections(result: AuditFigures) -> tuple[Section, ...]:
    """What the terminal shows where all is asked for."""
    tables = [figures_terminal(result)]
    if with_origins(result):
        tables.append(by_measure(origins_table(result)))
    if result.pairs:
        tables.append(pairs_table(result.pairs))
    if result.query_groups:
        tables.append(by_measure(query_groups_table(result)))
    strata = strata_table(result)
    tables += [strata] if strata is not None else []
    if result.impact:
        tables.append(impact_table(result.impact))
    if result.words is not None:
        tables += [words_table(result, result.words, run.name, None) for run in result.given]
    return (Section("All figures", (*tables, _settings(result))),)


def next_commands(result: AuditFigures, findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """What can be done now: commands, and what for."""
    if result.views is not None:
        return ()
    if result.impact and not result.judged:
        return (("evenrank audit … --tables impact", "the table as it is published"),)
    if not result.judged or result.unchecked:
        return (("evenrank labels sample … --measure P@10", "a hundred judgements"),)
    if any(finding.key == "better_untold" for finding in findings) and _is_sampled(result):
        return ((f"evenrank labels sample … --baseline {result.baseline}", "judgements of where they differ"),)
    if any(finding.key == "absent" for finding in findings) and not result.settings.get("only_queries"):
        return (("evenrank audit … --queries FILE --only-queries", "the queries that were asked"),)
    mended = [finding for finding in findings if finding.level == "shown" and finding.key in _MENDED_BY_ORDER]
    rebalance = [("evenrank rebalance", f"a fairer order of {cut_name(finding.subject)}") for finding in mended[:1]]
    return (*rebalance, ("evenrank gate", "limits for pipelines"))


def _is_sampled(result: AuditFigures) -> bool:
    """Whether effectiveness is estimated from judgements that were drawn."""
    return any(result.given[0][measure].from_labels is not None for measure in utility_measures(result))


_MENDED_BY_ORDER = {
    "leans_more",
    "leans_by_order",
    "leans_turned",
    "leans_more_than",
    "less_neutral",
    "more_groups",
    "fewer_groups",
    "more_and_fewer_groups",
}
"""What another order of the same documents can mend: not what the candidates hold."""


def render_page(result: AuditFigures) -> str:
    """One self-contained HTML page: the first screen, and in closed sections charts, figures and single queries.

    It loads nothing: a content security policy forbids every request and every other script. Passages are read from
    the audit's collection. The same audit renders to the same bytes.
    """
    shown, page = data.most_telling(result, data.query_cap(result)), result.page()
    return render(
        asset("audit.html.j2"),
        scripts=_SCRIPTS,
        data={
            "audit": data.runs_and_measures(result),
            "values": data.values(result, shown),
            "queries": data.browser(result, shown),
            "charts": _charts(result),
        },
        charts=True,
        plot=None if page.plot is None else page.plot(),
        provenance=result.provenance,
        page=page,
        **_contents(result),
    )


def _charts(result: AuditFigures) -> dict[str, object]:
    """Specifications, the runs' styles, and the measures that are selected at first."""
    focus = data.focus(result)
    lean = plane_bias(result)
    compared = result.baseline is not None and len(result.given) > 1
    kind = f"difference from {result.baseline}" if compared else "value"
    return {
        "specifications": specifications(),
        "styles": styles([(run.name, run.reference) for run in result.runs]),
        "focus": result.measures.index(focus) if focus is not None else 0,
        "lean": result.measures.index(lean) if lean is not None else 0,
        "compared": data.compared(result),
        "origins": origins_chart(result),
        "chosenBy": f"{kind} in {focus}" if focus is not None else None,
    }


# --- contents of the template ----------------------------------------------------------------------------------------


def _contents(result: AuditFigures) -> dict[str, object]:
    figures, measures = figures_table(result), explanations(result)
    return {
        "judged": result.judged,
        "baseline": result.baseline,
        "figures": figures,
        "counts_queries": any(column.title == "b/e/w" for column in figures.columns),
        "signed": ", ".join(signed_measures(result)),
        "labels": labels_table(result),
        "labels_depth": SHOWN_DEPTH,
        "origins": origins_section(result),
        "impact": impact_table(result.impact) if result.impact else None,
        "query_groups": query_groups_table(result) if result.query_groups else None,
        "judge": strata_table(result),
        "only_bounds": only_bounds(result),
        "has_values": data.focus(result) is not None,
        "sums": result.views is not None,
        "words": _words(result),
        "measures": measures,
        "literature": literature(measures),
        "settings": _settings(result),
    }


def _settings(result: AuditFigures) -> Table:
    rows = [(name.replace("_", " "), _setting(value)) for name, value in result.settings.items()]
    return Table("Settings", (Column("setting", heading=""), Column("value", heading="")), rows)


def _setting(value: object) -> str:
    if value is None:
        return NONE
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _words(result: AuditFigures) -> dict[str, object] | None:
    """Each run's words with the largest shares by group."""
    words = result.words
    if words is None:
        return None
    listed = data.listed(result)
    runs = [(run, words_table(result, words, run, listed.index(run) if run in listed else None)) for run in words.runs]
    return {"measure": words.measure, "depth": words.depth, "documents": f"{words.documents:,}", "runs": runs}
