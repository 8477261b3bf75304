"""What a scan says: its findings, its screen and its page."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from evenrank.files.errors import plain
from evenrank.files.wording import counted, percent, plural
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.page import COLOURS, Chip, Drawing, Page, Section, Tone, Verdicts, no_drawings, specification
from evenrank.results.table import (
    COUNT,
    TEXT,
    Column,
    Table,
    digits,
    p_value,
    percents,
    short_intervals,
    shorts,
    with_interval,
)
from evenrank.stats.estimate import Estimate

from .retrieving import BM25
from .scan import AT, TENTH_NAMES

if TYPE_CHECKING:
    from .scan import Contrast, Found, LostPassage, LostSentence, Part, ScanResult

_PHRASES = phrases("scan")
_SOURCE = "Known-item queries of single sentences; exposure as Bache & Azzopardi 2010"
_READ_WHOLE = 0.95
_LISTED = 50
"""Passages that a page names; the JSON has all."""
_EXCERPT = 120
_WIDTH, _HEIGHT = 460, 250
_HEADING = 20


def scan_page(result: ScanResult) -> Page:
    """All that a scan found."""
    found = result.retrievers
    what = "question" if result.questions else "query"
    return Page(
        "scan",
        f"Scan of {result.name}",
        tuple(scan_findings(result)),
        _short(result),
        ("share of the queries whose passage is among the first 10",),
        f"{counted(result.queries, what)}, {counted(result.passages, 'passage')}",
        tuple(_next(result)),
        Verdicts(("", "by depth", "by group", "passages lost"), tuple(_chips(result))),
        functools.partial(_curves, result) if _by_depth(result) else None,
        sections=tuple(_sections(result)),
        facts=(
            ("passages", f"{result.documents:,}"),
            ("drawn", f"{result.passages:,}"),
            (plural(what), f"{result.queries:,}"),
            *((f"{one.name} reads", f"{percent(one.read)} of words") for one in found if one.read is not None),
        ),
        source=_SOURCE,
        notes=tuple(_notes(result)),
        provenance=result.provenance,
    )


# --- findings ---------------------------------------------------------------------------------------------------------


def scan_findings(result: ScanResult) -> Iterator[Finding]:
    """Whether depth matters, what has changed, who is lost, whose passages, and who is shown.

    Where nothing is shown of depth, what is shown of reading or of groups stands first.
    """
    own = [contrast for contrast in result.contrasts if contrast.name == result.name]
    depth = _depth(result, own[0])
    # Of groups that nobody asked for, what cannot be told is not said.
    groups = [one for one in own if one.by == "group"]
    of_groups = list(_groups([group for group in groups if result.grouped or group.verdict != "cannot be told"]))
    reading = list(_reading(result, own, depth.level != "shown"))
    if depth.level != "shown" and depth.key != "depth_queries":
        first = [*reading, *(one for one in of_groups if one.level == "shown")][:1]
        yield from (replace(one, place="answer") for one in first)
        of_groups, reading = ([one for one in some if one not in first] for some in (of_groups, reading))
        yield replace(depth, place="finding", subject="Depth") if first else depth
    else:
        yield depth
    for one in own:
        if one.by == "retriever":
            yield _change(result, one)
    subject, other = result.retrievers[0], result.retrievers[-1]
    if subject.read is not None and subject.read < _READ_WHOLE and subject.reads and depth.key != "depth_read":
        yield _PHRASES.finding("cut", place="warning", name=result.name, read=subject.read, reads=subject.reads)
    if subject.unlisted:
        yield _PHRASES.finding("unlisted", place="warning", name=result.name, count=subject.unlisted, of=result.queries)
    counts: dict[str, Any] = {"count": _lost(subject), "of": subject.lost.n, "bm25": _lost(other)}
    counts["asked"] = "questions" if result.questions else "sentences"
    if _lost(subject):
        key = "lost_alone" if other is subject else "lost"
        yield _PHRASES.finding(key, "Passages", estimate=subject.lost, example=result.lost[0].doc_id, **counts)
    yield from reading
    if result.edge is not None and subject.read is None:
        yield _PHRASES.finding("edge", "Reading", "shown", None, edge=result.edge)
    yield from of_groups
    yield _exposure(result, subject, other)
    if not result.questions and 2 * sum(part.queries for part in subject.parts if part.by == "depth") < result.queries:
        yield _PHRASES.finding("short", place="note")
    if result.wordless:
        yield _PHRASES.finding("wordless", place="note", count=result.wordless, of=result.of_sentences)
    if result.unjudged:
        yield _PHRASES.finding("unjudged", place="note", count=result.unjudged)
    if result.same:
        yield _PHRASES.finding("same", place="note", count=result.same, of=result.queries)


def _reading(result: ScanResult, own: Sequence[Contrast], first: bool) -> Iterator[Finding]:
    """What is found of what is read and of what is cut off; where depth is shown, the first line says it."""
    for one in own:
        if one.by == "read" and one.verdict == "shown" and one.bm25 is not None:
            place: Place = "finding" if first else "detail"
            yield _PHRASES.finding("read", "Reading", "shown", one.found, place, name=result.name, **_shares(one))


def _lost(found: Found) -> int:
    """How many passages a retriever does not find."""
    return round((found.lost.mean or 0.0) * found.lost.n)


def _shares(one: Contrast) -> dict[str, Any]:
    bm25 = one.bm25 or (None, None)
    return {"first": one.of_first, "last": one.of_last, "bm25_first": bm25[0], "bm25_last": bm25[1]}


def _depth(result: ScanResult, one: Contrast) -> Finding:
    subject = result.retrievers[0]
    values: dict[str, Any] = {
        "name": result.name,
        "whole": subject.whole.at10.mean,
        "why": one.found.reason,
        **_shares(one),
    }
    values |= {"noticed": one.found.mde}
    key = "depth_same"
    if result.questions and not any(part.by == "depth" for part in subject.parts):
        key = "depth_unknown"
    elif one.verdict == "cannot be told":
        key = "depth_untold"
    elif one.verdict == "shown":
        cut = subject.read is not None and subject.read < _READ_WHOLE and subject.reads is not None
        cut &= (one.found.mean or 0.0) > 0
        key = "depth_alone" if one.bm25 is None else "depth_read" if cut else "depth"
        values |= {"beyond": 1 - (subject.read or 0.0), "reads": subject.reads}
    elif one.bm25 is not None and one.alone.shown:
        key = "depth_queries"
    elif not one.found.mde:
        key = "depth_equal"
    level = "cannot be told" if key == "depth_unknown" else one.found.verdict
    return _PHRASES.finding(key, result.name, level, one.found, "answer", **values)


def _change(result: ScanResult, one: Contrast) -> Finding:
    change = one.found
    key = "change_same" if change.mde else "change_equal"
    if one.verdict == "cannot be told":
        key = "change_untold"
    elif one.verdict == "shown":
        key = "change_better" if (change.mean or 0.0) > 0 else "change_worse"
    values: dict[str, Any] = {"other": one.last, "change": change, "noticed": change.mde, "why": change.reason}
    counts: dict[str, Any] = {"gone": len(result.gone), "won": len(result.won)}
    return _PHRASES.finding(key, result.name, change.verdict, change, "answer", **values, **counts)


def _groups(contrasts: Sequence[Contrast]) -> Iterator[Finding]:
    """Of two groups what is known of them; of more the ones that differ, the largest difference first."""
    several = len(contrasts) > 1
    shown = [contrast for contrast in contrasts if contrast.verdict == "shown"]
    for one in sorted(shown if several else contrasts, key=lambda one: -abs(one.found.mean or 0.0)):
        change = one.found
        key = "group_same" if change.mde else "group_equal"
        if one.verdict == "cannot be told":
            key = "group_untold"
        elif one.verdict == "shown":
            key = "group_differs"
        elif one.bm25 is not None and one.alone.shown:
            key = "group_queries"
        values: dict[str, Any] = {"group": one.first, "other": one.last, "change": change, "noticed": change.mde}
        values |= {"first": one.of_first, "last": one.of_last}
        yield _PHRASES.finding(key, "Groups", change.verdict, change, why=change.reason, **values)
    told = [contrast for contrast in contrasts if contrast.verdict != "cannot be told"]
    if several and told and not shown:
        most = max(told, key=lambda one: abs(one.found.mean or 0.0))
        change, size = most.found, most.found.mde
        values = {"group": most.first, "change": change, "noticed": size}
        yield _PHRASES.finding("groups_same", "Groups", "no difference shown", change, **values)
    elif several and not told:
        yield _PHRASES.finding("groups_untold", "Groups", "cannot be told", why=contrasts[0].found.reason)


def _exposure(result: ScanResult, subject: Found, other: Found) -> Finding:
    of = subject.exposure
    values: dict[str, Any] = {"unseen": of.unseen, "passages": of.passages, "k": result.k, "gini": of.gini}
    if other is subject:
        return _PHRASES.finding("exposure_alone", "Exposure", place="detail", **values)
    theirs = other.exposure
    return _PHRASES.finding("exposure", "Exposure", place="detail", bm25=theirs.unseen, bm25_gini=theirs.gini, **values)


def _notes(result: ScanResult) -> Iterator[str]:
    if not result.questions:
        yield (
            "A query is three to five of the rarest words of a sentence that stand nowhere else in its passage, in"
            " their order, never three neighbours. Depth: 0 for the first sentence of a passage, 1 for the last."
        )
    own = "" if len(result.retrievers) == 1 else " and from BM25's own on the same queries"
    yield (
        f"A contrast is shown where it differs from 0{own}, with Holm's correction over all of them, by tests over"
        " passages: first and last tenth of those that have both, groups within the same length and depth. The tables"
        " have all queries, with intervals over passages."
    )
    yield f"Exposure: r(d) = Σ 1 / ln(1 + rank) over all queries, up to rank {result.k}."
    if result.k < AT * AT:
        yield f"Lists are compared down to rank {result.k}."
    yield from result.notes


def _next(result: ScanResult) -> Iterator[tuple[str, str]]:
    """Cutting passages where the model does not read them whole; BM25 beside it where that finds what it does not."""
    subject = result.retrievers[0]
    given = str(result.settings.get("collection", "COLLECTION"))
    # Passages that are cut already are cut anew of their documents.
    cut_already = os.path.isfile(os.path.join(os.path.dirname(given), "documents.csv"))
    path = "DOCUMENTS" if cut_already else shlex.quote(given)
    model = result.settings.get("model")
    then = "cut to what it reads; documents then rank by their best passage: evenrank retrieve --passages"
    if subject.read is not None and subject.read < _READ_WHOLE and isinstance(model, str):
        yield f"evenrank passages {path} --model {shlex.quote(model)} --out DIR", then
    elif result.edge is not None and subject.read is None:
        yield f"evenrank passages {path} --tokens {max(20, result.edge)} --out DIR", then
    if subject.lost.mean and len(result.retrievers) > 1 and "run" not in result.settings:
        yield "evenrank fuse", "its run with one of BM25"


def _chips(result: ScanResult) -> Iterator[tuple[str, tuple[Chip, ...]]]:
    # BM25 is what is compared with, not what is judged.
    for found in result.retrievers[: max(1, len(result.retrievers) - 1)]:
        own = [contrast for contrast in result.contrasts if contrast.name == found.name]
        depth = next((one for one in own if one.by == "depth"), None)
        groups = [one for one in own if one.by == "group"]
        shown = [group for group in groups if group.verdict == "shown"]
        lost = found.lost.mean or 0.0
        chips = (
            _chip(depth),
            Chip(", ".join(f"{one.first} {'more' if (one.found.mean or 0) > 0 else 'less'}" for one in shown), "bad")
            if shown
            else _chip(groups[0] if groups else None),
            Chip(percent(lost), "bad" if lost else "good"),
        )
        yield found.name, chips


def _chip(one: Contrast | None) -> Chip:
    if one is None:
        return Chip("–", "unknown")
    tones: dict[str, Tone] = {"shown": "bad", "no difference shown": "same"}
    words = one.verdict
    if one.verdict == "shown":
        words = "falls" if (one.found.mean or 0.0) > 0 else "rises"
    return Chip(words, tones.get(one.verdict, "unknown"))


# --- tables -----------------------------------------------------------------------------------------------------------


def _short(result: ScanResult) -> Table:
    """What each retriever finds by depth; by length, where depth is unknown."""
    by = "depth" if any(one.by == "depth" for one in result.retrievers[0].parts) else "length"
    names = [one.part for one in result.retrievers[0].parts if one.by == by]
    cells = {(found.name, part.part): part for found in result.retrievers for part in found.parts if part.by == by}
    columns = [Column(by, TEXT, by, lambda name: name)]
    for found in result.retrievers:
        columns += _pair(found.name, cells)
    first = result.retrievers[0].name
    columns.append(Column("queries", COUNT, of=lambda name: cells[first, name].queries))
    return Table(f"Recall@10 by {by}", tuple(columns), names)


def _pair(name: str, cells: dict[tuple[str, str], Part]) -> tuple[Column, ...]:
    """The columns of a retriever's share and its interval; of BM25, which is compared with, the share alone."""
    mean = Column(name, shorts(2), "BM25" if name == BM25 else "", lambda part: cells[name, part].at10.mean)
    if name == BM25:
        return (mean,)
    ends = Column(
        (f"{name}_low", f"{name}_high"),
        short_intervals(2),
        name,
        lambda part: cells[name, part].at10.ci95,
        _shortened(name),
    )
    return mean, ends


def _shortened(name: str) -> str:
    return name if cell_len(name) <= _HEADING else f"{set_cell_size(name, _HEADING - 1).rstrip()}…"


def _parts(result: ScanResult, by: str) -> Table:
    rows = [(found.name, part) for found in result.retrievers for part in found.parts if part.by == by]
    columns = (
        Column("retriever", TEXT, of=lambda row: row[0]),
        Column("part", TEXT, by, lambda row: row[1].part),
        Column("R@1", digits(3), of=lambda row: row[1].at1.mean),
        *with_interval("R@10", lambda row: row[1].at10),
        *[Column(f"R@{result.k}", digits(3), of=lambda row: row[1].at_k.mean)] * (result.k > AT),
        Column("RR", digits(3), of=lambda row: row[1].rr.mean),
        Column("queries", COUNT, of=lambda row: row[1].queries),
        Column("passages", COUNT, of=lambda row: row[1].at10.n),
    )
    return Table(f"By {by}", columns, rows)


_CONTRASTS = (
    Column("name", TEXT, "retriever"),
    Column("by"),
    Column("first"),
    Column("last"),
    Column("of_first", digits(3), "share"),
    Column("of_last", digits(3), "share"),
    *with_interval("difference", "found", sign=True),
    Column("p", of=lambda one: p_value(one.found.holm_p if one.found.holm_p is not None else one.found.p)),
    Column("mde", digits(3), "detects from", "found.mde"),
    Column("verdict", TEXT),
)


def _sections(result: ScanResult) -> Iterator[Section]:
    kinds = [by for by in ("depth", "group", "length", "read") if any(p.by == by for p in result.retrievers[0].parts)]
    for by in kinds:
        drawn = (lambda: [_strip(result)]) if by == "group" else no_drawings
        yield Section(f"By {by}", (_parts(result, by),), drawn)
    if result.lost:
        yield Section("Lost passages", (_lost_table(result),), hint=_more(len(result.lost)))
    if result.gone or result.won:
        yield Section("What has changed", (_changed("Lost", result.gone), _changed("Won", result.won)))
    yield Section("Exposure", (_exposures(result), _hubs(result)), lambda: [_lorenz(result)])
    yield Section("Contrasts", (Table("Contrasts", _CONTRASTS, result.contrasts),))


def _more(count: int) -> str:
    return f"The first {_LISTED} of {count:,}; the JSON has all." if count > _LISTED else ""


def _lost_table(result: ScanResult) -> Table:
    rows: list[tuple[LostPassage, LostSentence]] = [
        (one, sentence) for one in result.lost[:_LISTED] for sentence in one.sentences
    ]
    columns = (
        Column("passage", TEXT, of=lambda row: row[0].doc_id),
        Column("group", TEXT, of=lambda row: row[0].group or "–"),
        Column("words", COUNT, of=lambda row: row[0].words),
        Column("start", COUNT, "from character", lambda row: row[1].start),
        Column("sentence", TEXT, of=lambda row: _excerpt(row[1].text or row[1].query)),
        Column("bm25", COUNT, "BM25's rank", lambda row: row[1].bm25),
    )
    return Table("Lost passages", columns, rows)


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1].rstrip()}…"


def _changed(title: str, ids: Sequence[str]) -> Table:
    return Table(
        title, (Column("passage", TEXT, of=lambda row: row),), ids[:_LISTED], (_more(len(ids)),) * (len(ids) > _LISTED)
    )


def _exposures(result: ScanResult) -> Table:
    columns = (
        Column("retriever", TEXT, of=lambda one: one.name),
        Column("gini", digits(3), "Gini", lambda one: one.exposure.gini),
        Column("unseen", COUNT, "in no list", lambda one: one.exposure.unseen),
        Column("share", percents(1), "share", lambda one: one.exposure.unseen / one.exposure.passages),
    )
    return Table("Exposure", columns, result.retrievers)


def _hubs(result: ScanResult) -> Table:
    rows = [(retriever.name, *hub) for retriever in result.retrievers for hub in retriever.exposure.hubs]
    return Table("Shown most", (Column("retriever"), Column("passage"), Column("exposure", digits(1), "r(d)")), rows)


# --- charts -----------------------------------------------------------------------------------------------------------


def _by_depth(result: ScanResult) -> bool:
    """Whether what is found is known by depth of every retriever."""
    return all(any(part.by == "depth" for part in found.parts) for found in result.retrievers)


def _curves(result: ScanResult) -> Drawing:
    """What each retriever finds by depth, with bands."""
    import altair as alt

    rows = [
        {
            "retriever": plain(of.name),
            "depth": (TENTH_NAMES.index(part.part) + 0.5) / 10,
            "found": _mid(part.at10),
            "low": _low(part.at10),
            "high": _high(part.at10),
        }
        for of in result.retrievers
        for part in of.parts
        if part.by == "depth"
    ]
    names = [plain(of.name) for of in result.retrievers]
    legend = alt.Legend(title=None, orient="top", labelLimit=200)
    colour = alt.Color("retriever:N", legend=legend, scale=alt.Scale(domain=names, range=COLOURS[: len(names)]))
    chart = alt.Chart(alt.Data(values=rows))
    x = alt.X("depth:Q", title="depth (0 first sentence, 1 last)", scale=alt.Scale(domain=[0, 1]))
    unit = alt.Scale(domain=[0, 1])
    band = chart.mark_area(opacity=0.18).encode(x=x, y=alt.Y("low:Q", scale=unit), y2="high:Q", color=colour)
    up = alt.Y("found:Q", title="found among the first 10", scale=unit)
    line = chart.mark_line(strokeWidth=2.5).encode(x=x, y=up, color=colour)
    layers = alt.layer(band, line).properties(width=_WIDTH, height=_HEIGHT)
    return Drawing("depth", "What is found, by depth", specification(layers))


def _low(one: Estimate) -> float:
    return max(0.0, one.ci95[0] if one.ci95 else one.mean or 0.0)


def _mid(one: Estimate) -> float:
    return one.mean or 0.0


def _high(one: Estimate) -> float:
    return min(1.0, one.ci95[1] if one.ci95 else one.mean or 0.0)


def _strip(result: ScanResult) -> Drawing:
    import altair as alt

    rows = [
        {
            "group": part.part,
            "value": part.at10.mean,
            "low": _low(part.at10),
            "high": _high(part.at10),
            "retriever": of.name,
        }
        for of in result.retrievers
        for part in of.parts
        if part.by == "group"
    ]
    data = alt.Chart(alt.Data(values=rows))
    y = alt.Y("group:N", title=None, sort=None)
    across = alt.X("value:Q", title="share found among the first 10", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color("retriever:N", title=None, sort=None, scale=alt.Scale(range=COLOURS[:3]))
    tips = [alt.Tooltip("retriever:N"), alt.Tooltip("value:Q", format=".3f")]
    bars = data.mark_rule(strokeWidth=2, opacity=0.5).encode(y=y, x=alt.X("low:Q"), x2="high:Q", color=colour)
    points = data.mark_point(filled=True, size=70).encode(y=y, x=across, color=colour, tooltip=tips)
    chart = alt.layer(bars, points).properties(width=780, height={"step": 34})
    return Drawing("groups", "What is found, by group", specification(chart), "Contrasts are within length and depth.")


def _lorenz(result: ScanResult) -> Drawing:
    import altair as alt

    rows = [
        {"x": place / (len(found.exposure.lorenz) - 1), "value": share, "retriever": found.name}
        for found in result.retrievers
        for place, share in enumerate(found.exposure.lorenz)
        if share == share
    ]
    data = alt.Chart(alt.Data(values=rows))
    colour = alt.Color("retriever:N", title=None, sort=None, scale=alt.Scale(range=COLOURS[:3]))
    chart = data.mark_line().encode(
        x=alt.X("x:Q", title="passages, those shown least first"),
        y=alt.Y("value:Q", title="their share of exposure"),
        color=colour,
    )
    hint = "A straight line would be equal exposure."
    return Drawing("lorenz", "Lorenz curve of exposure", specification(chart.properties(width=780, height=260)), hint)
