"""What a scan says: its findings, its screen and its page."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.cells import cell_len

from evenrank.files.errors import plain
from evenrank.files.types import Array
from evenrank.files.wording import counted, listed, percent
from evenrank.results.finding import Finding, Level, Place, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.table import COUNT, TEXT, Column, Format, Table, digits, fitted, percents
from evenrank.stats.shares import clustered_error

from .known_items import LONG_SENTENCE
from .losses import FEWEST_PASSAGES, SENTENCES, Loss
from .retrieving import BM25

if TYPE_CHECKING:
    from .scan import ScanResult

_PHRASES = phrases("scan")
_LISTED, _EXCERPT = 50, 160
_WIDTH, _LABEL = 80, 22
"""Characters of the table of the screen, and of a cause in it at most."""
_WEAK, _SMALL, _SOON = 0.25, 0.005, 0.1
_UNKNOWN: Level = "cannot be told"
_NOTHING: Level = "no difference shown"
_POINTS = Format(lambda share: f"{100 * share:.0f}", "number")
_CAUSES = {
    "another id": ("another_id", "ids", "index again, each text with its id"),
    "not in the index": ("missing", "index", "index them again"),
    "wrong vector": ("wrong_vector", "index", "index them again with the model that is asked"),
    "late": ("late", "depth", "shorter passages, then index again"),
    "cut off": ("cut_edge", "depth", "passages that are read whole, then index again"),
    "group": ("group", "group", "with BM25's run, or a model of that language"),
    "not found otherwise": ("otherwise", "", "its run with one of BM25"),
    "no documents": ("ghosts", "ids", "take them out of the index"),
    "repeats": ("repeats", "repeats", "leave them out of the collection"),
    "hubs": ("hubs", "hubs", "read them; leave them out"),
    "short": ("short", "length", "join them with their neighbours, or leave them out"),
}
"""By cause: the key of its sentence, by what it is a loss (of those that are not shown), and what mends it."""
_COUNTED = (
    "Answers are counted on whole sentences; places on queries of three to five of a sentence's rarest words, or on a"
    " log. A passage that holds the sentence, or shares nine tenths of the words, counts as found."
)
TENTHS = 10
LENGTHS = (50, 100, 200, 400, 800)
"""The greatest numbers of words of passages whose figures stand together; a last row has the longer ones."""


def scan_page(result: ScanResult) -> Page:
    """All that a scan has found."""
    drawn = f"{result.passages:,} of {result.documents:,} passages drawn"
    key = ["±: half of a 99% interval"]
    if result.found is not None:
        key = [f"found: among the first {result.found.rank}", *key]
        key.append("sentences: the first, the last and one other of each drawn passage")
    return Page(
        "scan",
        f"Scan of {result.name}",
        tuple(scan_findings(result)),
        _table(result),
        tuple(key),
        f"{counted(result.queries, 'query')}, {drawn}",
        tuple(_next(result)),
        sections=tuple(_sections(result)),
        facts=(
            ("passages", f"{result.documents:,}"),
            ("drawn", f"{result.passages:,}"),
            ("queries", f"{result.queries:,}"),
        ),
        source="Known-item queries of single sentences (Azzopardi & de Rijke 2006)",
        notes=(*result.notes, _COUNTED),
        provenance=result.provenance,
    )


# --- findings ---------------------------------------------------------------------------------------------------------


def scan_findings(result: ScanResult) -> Iterator[Finding]:
    """The largest loss, the others, and what would have been seen."""
    named = result.named
    if named:
        yield from _loss(result, named[0], "answer")
    elif result.found is None:
        yield _PHRASES.finding("nothing_log", result.name, "no difference shown", place="answer", name=result.name)
    else:
        few = result.documents < FEWEST_PASSAGES
        key, level = "few" if few else "nothing", _UNKNOWN if few else _NOTHING
        values: dict[str, Any] = {"documents": result.documents, "fewest": FEWEST_PASSAGES, "name": result.name}
        shares: dict[str, Any] = {"found": result.found.share, "bm25": result.found.bm25}
        yield _PHRASES.finding(key, result.name, level, place="answer", **values, **shares)
    if result.name == BM25:
        yield _PHRASES.finding("bm25_itself", place="warning")
    if result.by_file:
        yield _PHRASES.finding("by_file", place="warning", name=result.name, count=result.by_file)
    if result.unlisted:
        yield _PHRASES.finding("unlisted", place="warning", name=result.name, count=result.unlisted, of=result.queries)
    summary = result.found
    if summary is not None and summary.without_query:
        share = summary.without_query / summary.of
        place: Place = "warning" if share > 0.1 else "note"
        yield _PHRASES.finding("coverage", place=place, without=summary.without_query, of=summary.of, share=share)
    if summary is not None and 10 * summary.undivided > result.passages:
        values = {"count": summary.undivided, "of": result.passages, "words": LONG_SENTENCE}
        yield _PHRASES.finding("undivided", place="warning", **values)
    unexplained = sum(loss.share for loss in result.losses if loss.cause == "not found otherwise")
    if unexplained > _WEAK:
        yield _PHRASES.finding("weak", place="warning", name=result.name, missed=unexplained)
    if result.k < 10:
        yield _PHRASES.finding("short_lists", place="warning", name=result.name, depth=result.k)
    if result.against is not None and summary is not None and result.against.found is not None:
        other = result.against
        first = next((loss for loss in other.losses if loss.named), None)
        values = {"other": other.name, "found": result.against.found.share, "own": summary.share}
        counts: dict[str, Any] = {"lost": len(other.lost), "gained": len(other.gained)}
        yield _PHRASES.finding("against", **values, **counts)
        if first is not None:
            yield _PHRASES.finding("against_first", cause=_label(first), share=first.share)
    for loss in named[1:]:
        yield from _loss(result, loss, "finding")
    if named:
        yield from _nothing_else([loss for loss in result.losses if not loss.named and loss.detectable is not None])


def _nothing_else(losses: Sequence[Loss]) -> Iterator[Finding]:
    """From which share the losses would show that are not named; those of few queries, from a larger one."""
    seen = [(loss.detectable or 0.0, _CAUSES[loss.cause][1]) for loss in losses if (loss.detectable or 0.0) < 1]
    later = [(share, what) for share, what in seen if share > _SOON]
    # A cause of several kinds is told by the one that shows last.
    soon = [(share, what) for share, what in seen if what not in {w for _, w in later}] or later

    def values(shares: Sequence[tuple[float, str]]) -> dict[str, Any]:
        return {"seen": max(shares)[0], "what": listed(sorted({what for _, what in shares})).replace(" and ", " or ")}

    if soon:
        rest = _PHRASES.text("seen_later", **values(later)) if later and soon is not later else ""
        yield _PHRASES.finding("nothing_else", level="no difference shown", rest=rest, **values(soon))


def _loss(result: ScanResult, loss: Loss, place: Place) -> Iterator[Finding]:
    """The sentence of a loss, and behind it what else is known."""
    evidence, key = loss.evidence, _CAUSES[loss.cause][0]
    example = _name(result, loss.documents[0]) if loss.documents else ""
    values = {**evidence, "share": loss.share, "count": loss.count, "where": loss.where}
    values |= {"name": result.name, "k": result.k, "documents": result.documents}
    values["passages"] = counted(loss.count, "passage")
    if loss.cause == "another id":
        pairs = evidence["pairs"]
        example = f"{_name(result, pairs[0][0])} comes as {_name(result, pairs[0][1])}"
        values |= {"of": len(pairs), "tested": evidence["never_first"]}
    elif loss.cause in ("not in the index", "wrong vector") and evidence["certain"]:
        key = "missing_certain" if loss.cause == "not in the index" else "zero_vector"
    elif loss.cause == "cut off" and evidence["read"] is not None:
        key = "cut_read"
        values |= {"beyond": 1 - evidence["read"]}
    subject = loss.where if loss.cause == "group" else ""
    yield _PHRASES.finding(key, subject or "", "shown", None, place, example=example, **values)
    if evidence.get("distance"):
        yield _PHRASES.finding("another_id_rows", distance=f"{evidence['distance']:+}")
    if loss.cause == "not in the index" and evidence["untested"]:
        counts = {name: evidence[name] for name in ("in_no_list", "unseen", "proven")}
        yield _PHRASES.finding("untested", **counts)
    if loss.cause == "not in the index" and evidence["values"] and not evidence["certain"]:
        unlisted = evidence["unlisted_values"]
        if loss.where:
            yield _PHRASES.finding("whole_values", where=loss.where)
        elif unlisted:
            more = [f"{len(unlisted) - 3:,} others"] if len(unlisted) > 3 else []
            yield _PHRASES.finding("unlisted_values", where=[*unlisted[:3], *more])
        elif evidence["values_listed"]:
            yield _PHRASES.finding("no_value")
    if evidence.get("hubs"):
        yield _PHRASES.finding("hubs_short", hubs=counted(len(evidence["hubs"]), "passage"))


def _next(result: ScanResult) -> Iterator[tuple[str, str]]:
    """What mends the largest loss, and a command that writes the names of all."""
    if not result.named:
        return
    first = result.named[0]
    mends = _CAUSES[first.cause][2]
    if first.command is not None:
        yield first.command, mends
    command = [f"evenrank scan {shlex.quote(str(result.settings.get('collection', 'COLLECTION')))}"]
    command += [
        f"--{name} {shlex.quote(str(result.settings[name]))}"
        for name in ("model", "index", "run")
        if name in result.settings
    ]
    yield f"{' '.join(command)} --lost lost.txt", "all names" if first.command else f"{mends}; all names"


# --- tables -----------------------------------------------------------------------------------------------------------


def _label(loss: Loss) -> str:
    return f"lost in {loss.where}" if loss.cause == "group" else loss.cause


def _name(result: ScanResult, doc_id: str) -> str:
    """How a document is named for people: a section by its file and line."""
    return result.lines.get(doc_id, doc_id)


def _who(result: ScanResult, loss: Loss, room: int) -> str:
    """How many documents, and as many names as there is room for."""
    text = f"{loss.count:,}"
    if loss.cause == "not found otherwise":
        share = loss.evidence["bm25_finds"]
        return text if share is None else f"{text}; BM25 finds {percent(share)} of them"
    if not loss.documents:
        return text
    first, *others = (plain(_name(result, doc_id)) for doc_id in loss.documents)
    text = f"{text}: {fitted(first, min(cell_len(first), room - len(text) - 5))}"
    for name in others:
        if cell_len(text) + cell_len(name) + 5 > room:
            return f"{text}, …"
        text += f", {name}"
    return text


def _table(result: ScanResult) -> Table:
    """The losses that are named and what is found; where none is named, what would have been."""
    if not result.named:
        seen = (
            Column("cause", TEXT, "", lambda loss: _label(loss)),
            Column("lost", percents(), "lost", lambda loss: loss.share),
            Column("detectable", _seen_from(percents()), "would show from", lambda loss: loss.detectable),
            Column("unit", TEXT, "share of", lambda loss: loss.unit),
        )
        return Table(
            "What would have been seen",
            seen,
            [loss for loss in _by_cause(result.losses) if loss.detectable is not None],
        )
    rest = (loss for loss in result.losses if loss.cause == "not found otherwise" and not loss.named)
    losses = [*result.named, *(loss for loss in rest if loss.share >= _SMALL)]
    labels = [fitted(_label(loss), min(cell_len(_label(loss)), _LABEL)) for loss in losses]
    # Between and in the other columns: two spaces four times, "lost", "±".
    room = _WIDTH - 8 - 6 - max(map(cell_len, labels)) - max(len(loss.unit) for loss in losses)
    rows: list[Any] = [
        (label, loss.share, (loss.ci99[1] - loss.ci99[0]) / 2, loss.unit, _who(result, loss, room))
        for label, loss in zip(labels, losses, strict=True)
    ]
    if result.found is not None:
        bm25 = f"(BM25: {percent(result.found.bm25)})"
        rows.append(("found", result.found.share, None, SENTENCES, bm25))
    columns = (
        Column("cause", TEXT, "", "0"),
        Column("lost", percents(), "lost", "1"),
        Column("half", _POINTS, "±", "2"),
        Column("unit", TEXT, "share of", "3"),
        Column("passages", TEXT, "passages", "4"),
    )
    return Table("Losses", columns, rows)


def _seen_from(text: Format) -> Format:
    """How the share reads from which a loss would show; of so few none can."""
    return Format(lambda share: "no share" if share > 1 else text.read(share))


def _by_cause(losses: Sequence[Loss]) -> list[Loss]:
    """Of each cause the loss that would have been seen last."""
    by_cause: dict[str, Loss] = {}
    for loss in sorted(losses, key=lambda one: -(one.detectable or 0.0)):
        by_cause.setdefault(loss.cause, loss)
    return list(by_cause.values())


# --- the page ---------------------------------------------------------------------------------------------------------


def _sections(result: ScanResult) -> Iterator[Section]:
    for loss in result.named:
        hint = f"The first {_LISTED} of {loss.count:,}; --lost and the JSON have all." if loss.count > _LISTED else ""
        yield Section(f"{_label(loss)[:1].upper()}{_label(loss)[1:]}", (_documents(result, loss),), hint=hint)
    yield Section("All causes", (_all(result),))
    if not result.asked.height:
        return
    tables = _strata(result)
    for title, table in tables.items():
        draw = functools.partial(_depth_chart, table) if title == "By depth" else None
        yield Section(title, (table,), draw)
    if result.against is not None:
        other = result.against
        yield Section("What has changed", (_changed("Lost", other.lost), _changed("Gained", other.gained)))


def _documents(result: ScanResult, loss: Loss) -> Table:
    """The documents of a loss with the beginning of their text."""
    others = {"another id": ("pairs", "comes as"), "repeats": ("above", "repeats")}
    columns = [Column("passage", TEXT, of=lambda doc_id: _name(result, doc_id))]
    if loss.cause in others:
        key, heading = others[loss.cause]
        pairs: dict[str, str] = dict(loss.evidence[key])

        def other(doc_id: str) -> str:
            return _name(result, pairs.get(doc_id, "–"))

        columns.append(Column("other", TEXT, heading, other))
    if any(doc_id in result.texts for doc_id in loss.documents):
        columns.append(Column("text", TEXT, of=lambda doc_id: _excerpt(result.texts.get(doc_id, ""))))
    return Table(f"Passages: {_label(loss)}", tuple(columns), loss.documents[:_LISTED])


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1].rstrip()}…"


def _all(result: ScanResult) -> Table:
    columns = (
        Column("cause", TEXT, of=lambda loss: _label(loss)),
        Column("share", digits(3)),
        Column(("low", "high"), Format(lambda ends: f"[{ends[0]:.3f}, {ends[1]:.3f}]"), "99% interval", "ci99"),
        Column("unit", TEXT, "share of"),
        Column("count", COUNT, "passages"),
        Column("named", TEXT, of=lambda loss: "shown" if loss.named else "–"),
        Column("detectable", _seen_from(digits(3)), "would show from"),
    )
    return Table("All causes", columns, result.losses)


def _changed(title: str, ids: Sequence[str]) -> Table:
    return Table(title, (Column("passage", TEXT, of=lambda row: row),), ids[:_LISTED])


def _strata(result: ScanResult) -> dict[str, Table]:
    """What is found by depth, length and group, of both kinds of queries, with BM25's."""
    queries = result.asked
    rank = result.found.rank if result.found is not None else 10
    tenth = (pl.col("place") * TENTHS).floor().clip(0, TENTHS - 1).cast(pl.Int64)
    length = pl.sum_horizontal(*(pl.col("length") > most for most in LENGTHS)).cast(pl.Int64)
    kinds = {"By depth": ("tenth", tenth, _TENTHS), "By length": ("words", length, _LENGTH_NAMES)}
    tables = {
        title: _stratum(queries.with_columns(part=part), title, heading, names, result.name, rank)
        for title, (heading, part, names) in kinds.items()
    }
    groups = queries["group"].drop_nulls().unique().sort().to_list()
    if len(groups) > 1:
        numbered = queries.with_columns(part=pl.col("group").replace_strict(groups, range(len(groups)), default=None))
        tables["By group"] = _stratum(numbered, "By group", "group", groups, result.name, rank)
    return {title: table for title, table in tables.items() if table.rows}


_TENTHS = tuple(f"{place / 10:.1f}–{(place + 1) / 10:.1f}" for place in range(TENTHS))
_LENGTH_NAMES = (
    *(f"{first + 1}–{last}" for first, last in zip((0, *LENGTHS), LENGTHS, strict=False)),
    f"over {LENGTHS[-1]}",
)


def _stratum(asked: pl.DataFrame, title: str, heading: str, names: Sequence[str], name: str, rank: int) -> Table:
    rows = []
    for part in range(len(names)):
        own = asked.filter(pl.col("part") == part)
        if not own.height:
            continue
        cells: list[Any] = [names[part]]
        for whole in (True, False):
            some = own.filter(pl.col("whole") == whole)
            for of in (name, BM25):
                hits = (some[f"rank_{of}"].fill_null(rank + 1) <= rank).to_numpy().astype(np.float64)
                cells.append(_with_limits(hits, some["doc_id"].to_numpy()))
            cells.append(some.height)
        rows.append(tuple(cells))

    def share(key: str, place: int) -> tuple[Column, Column]:
        return (
            Column(key, digits(2), key, f"{place}.0"),
            Column((f"{key}_low", f"{key}_high"), _LIMITS, "99% interval", f"{place}.1"),
        )

    columns = (
        Column(heading, TEXT, heading, "0"),
        *share("sentences", 1),
        Column("bm25", digits(2), "BM25", "2.0"),
        Column("number", COUNT, "sentences asked", "3"),
        *share("rare words", 4),
        Column("bm25_words", digits(2), "BM25 by words", "5.0"),
        Column("number_words", COUNT, "queries of words", "6"),
    )
    return Table(title, columns, rows)


_LIMITS = Format(lambda ends: f"[{ends[0]:.2f}, {ends[1]:.2f}]")


def _with_limits(hits: Array, clusters: Array) -> tuple[float | None, tuple[float, float] | None]:
    """A share with its 99% interval; None where it is unknown: of fewer than 15 passages, or where all are alike."""
    if not len(hits):
        return None, None
    mean = float(hits.mean())
    error = clustered_error((hits - mean) / len(hits), clusters)
    if len(np.unique(clusters)) < 15 or not 0 < error < 1:
        return mean, None
    return mean, (max(0.0, mean - 2.576 * error), min(1.0, mean + 2.576 * error))


def _depth_chart(table: Table) -> list[Drawing]:
    """What is found by depth: a line and its band for each kind of query; an unknown interval has no band."""
    import altair as alt

    rows = []
    for place, kind in ((1, "sentences"), (2, "BM25, sentences"), (4, "rare words"), (5, "BM25, rare words")):
        for row in table.rows:
            share, ends = row[place]
            depth = (_TENTHS.index(row[0]) + 0.5) / TENTHS
            limits = {} if ends is None else {"low": ends[0], "high": ends[1]}
            rows.append({"kind": kind, "depth": depth, "found": share, **limits})
    names = list(dict.fromkeys(row["kind"] for row in rows))
    colour = alt.Color(
        "kind:N", legend=alt.Legend(title=None, orient="top"), scale=alt.Scale(domain=names, range=COLOURS[:4])
    )
    x = alt.X("depth:Q", title="depth (0 first sentence, 1 last)", scale=alt.Scale(domain=[0, 1]))
    unit = alt.Scale(domain=[0, 1])
    known = alt.Chart(alt.Data(values=[row for row in rows if "low" in row]))
    band = known.mark_rule(opacity=0.4, strokeWidth=4).encode(
        x=x, y=alt.Y("low:Q", scale=unit), y2="high:Q", color=colour
    )
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(x=x, y=alt.Y("found:Q", title="share found", scale=unit), color=colour)
    )
    chart = alt.layer(band, line).properties(width=780, height=260)
    hint = "Bars are 99% intervals; where there is none it is unknown."
    return [Drawing("depth", "What is found, by depth", specification(chart), hint)]
