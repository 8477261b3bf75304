"""A page of an answer, tables, charts and notes: as text, and as one HTML file that opens without a network.

On a phone and on paper, each row of a table that is too wide becomes a card of labelled figures. A style sheet cannot
tell how much width a table needs, so each table gets a class that tells it. Folding needs no script, so it works in
mail previews too. On wider screens no table folds: a script hides the columns that do not fit until a click.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import importlib.util
import itertools
import json
import os
import re
import string
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.cells import cell_len

from evenrank._version import __version__
from evenrank.files import Provenance, write_text
from evenrank.files.errors import STEERING, EvenrankError, plain, require_report
from evenrank.files.outputs import atomic_path
from evenrank.files.provenance import made_by_text
from evenrank.files.wording import singular

from .finding import Finding, Place
from .table import Table, fitted, html_text, wrapped
from .terms import terms_in

if TYPE_CHECKING:
    from markupsafe import Markup


class Citation(NamedTuple):
    """A publication: ``text`` is authors, title, venue and year, without a final period."""

    text: str
    url: str


STEPS = (18, 21, 24, 27, 30, 34, 38, 42, 47, 52, 58, 64, 71, 78, 86)
"""The widths (in em of the table) at which tables fold; a table that needs more always folds."""

_LETTER, _PADDING, _SORT = 0.66, 0.9, 0.7
_NAME = 7.5  # the minimum width in page.css of a name with long words, which may be broken
_LONG, _LONG_HEADING = 10, 12  # letters
_TABLE = re.compile(r"<table\b([^>]*)>(.*?)</table>", re.DOTALL)
_PART = re.compile(r"<(thead|tbody|tr)\b|<(th|td)\b([^>]*)>(.*?)</\2>", re.DOTALL)
_ROLES = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def asset(name: str) -> str:
    """The text of a file of the assets folder."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


CITATIONS = {key: Citation(**fields) for key, fields in tomllib.loads(asset("citations.toml")).items()}
CITATIONS["Hofstätter et al., ECIR 2021"] = CITATIONS["POS"]


NARROW = 860
"""The widest window (in pixels) whose tables fold; a sheet of paper is narrower."""


def style_sheet() -> str:
    """The style sheet of every page, with the folding rules for each width; in a box of class ``keep`` none folds."""
    rules, folding = asset("fold.css"), ":not(.keep) > .fold"
    folds = [f"@container (max-width: {step}em) {{ {folding}-{step} {{\n{rules}}} }}" for step in STEPS]
    narrow = "\n".join([*folds, f"{folding} {{\n{rules}}}"])
    return f"{asset('page.css')}\n@media (max-width: {NARROW}px) {{\n{narrow}\n}}"


def make_foldable(page: str) -> str:
    """A page with foldable tables: each cell carries its column's heading, and each table the width it needs.

    Applies to all tables before the first script. Headings are taken from the preceding ``thead``; names (``th`` and
    the class ``left``) may be broken anywhere, figures only at spaces. ARIA roles are written out, since browsers may
    drop the implicit ones of elements with another ``display``.
    """
    body, script, rest = page.partition("<script")
    return _TABLE.sub(_foldable_table, body) + script + rest


def fold_class(widths: list[float]) -> str:
    """The class of a table whose columns need these widths (em)."""
    total = sum(widths)
    return next((f"fold-{step}" for step in STEPS if total <= step), "fold")


def _foldable_table(match: re.Match[str]) -> str:
    headings: list[str] = []
    widths: list[float] = []
    in_head = False
    place = 0

    def part(match: re.Match[str]) -> str:
        nonlocal in_head, place
        group, tag, attributes, content = match.groups()
        if group:
            if group == "thead":
                headings.clear()
            in_head = {"thead": True, "tbody": False}.get(group, in_head)
            place = 0
            return f'<{group} role="{_ROLES[group]}"'
        text = html.unescape(" ".join(re.sub(r"<[^>]*>", " ", content).split()))
        named = tag == "th" or 'class="left"' in attributes
        if place == len(widths):
            widths.append(0.0)
        long = max(map(len, text.split()), default=0) > (_LONG_HEADING if in_head else _LONG)
        broken = long if in_head else named
        widths[place] = max(widths[place], _width(text, broken, "<button" in content))
        role, label = "rowheader" if tag == "th" else "cell", ""
        if in_head:
            headings.append(html.escape(text))
            role = "columnheader"
        # The row's name needs no heading, unless it is a number.
        elif place < len(headings) and (place or not named or text[:1].isdigit()):
            label = f' data-label="{headings[place]}"'
        if named and long:
            label += " data-long"
        place += 1
        return f'<{tag} role="{role}"{label}{attributes}>{content}</{tag}>'

    attributes, content = match.groups()
    content = _PART.sub(part, content)
    name = fold_class(widths)
    if 'class="' in attributes:
        attributes = attributes.replace('class="', f'class="{name} ', 1)
    else:
        attributes += f' class="{name}"'
    return f'<table role="table"{attributes}>{content}</table>'


def _width(text: str, name: bool, sorts: bool) -> float:
    """The minimum width (em) of a cell: that of its longest word, or less for a name."""
    longest = max(map(len, text.split()), default=0)
    width = longest * _LETTER + _PADDING + _SORT * sorts
    return min(width, _NAME) if name else width


def chart_libraries() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which makes ``vega``, ``vegaLite`` and ``vegaEmbed`` global.

    Bundled once for the versions that are installed, then read from ``evenrank/`` in the user's cache
    (``XDG_CACHE_HOME``); where that cannot be written, it is bundled each time.
    """
    require_report()
    import vl_convert

    versions = (
        str(getattr(vl_convert, "__version__", "")),
        vl_convert.get_vega_version(),
        vl_convert.get_vegalite_versions()[-1],
        vl_convert.get_vega_embed_version(),
    )
    path = _cache() / f"charts-{'-'.join(versions)}.js"
    code = _read(path)
    if code is None:
        code = vl_convert.javascript_bundle()  # type: ignore[call-arg]
        # A full disk, a folder that is read-only or another user's.
        with suppress(EvenrankError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(path) as part:
                part.write_bytes(_signed(code))
    return code


def _cache() -> Path:
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # As its specification says, a relative one is ignored.
        return (home if home.is_absolute() else Path.home() / ".cache") / "evenrank"
    except RuntimeError:  # no home
        return Path(os.devnull) / "evenrank"


def _signed(code: str) -> bytes:
    """The file's bytes: a digest, so that a damaged file is seen, and the code."""
    data = code.encode()
    return b"// " + hashlib.sha256(data).hexdigest().encode() + b"\n" + data


def _read(path: Path) -> str | None:
    """The code in a file; None if there is none or it is damaged."""
    try:
        data = path.read_bytes()
        code = data.partition(b"\n")[2].decode()
        return code if _signed(code) == data else None
    except (OSError, UnicodeDecodeError):
        return None


def render(
    template: str,
    *,
    scripts: Sequence[str],
    data: object = None,
    charts: bool,
    plot: Drawing | None = None,
    provenance: Provenance | None,
    **context: object,
) -> str:
    """A page from a template.

    ``scripts``: the assets that its script consists of, besides ``page.js``; ``data``: JSON values that they read;
    ``charts``: whether they draw with the chart libraries; ``plot``: the chart of the first screen. Libraries and data,
    which are large, are packed. Besides ``context`` the template sees ``css``, ``policy``, ``version``, ``packs``,
    ``script`` and ``provenance`` (None if it is unknown), and may extend or include assets. Every text is escaped.
    """
    import jinja2
    from markupsafe import Markup

    code = "\n".join(asset(name) for name in ("page.js", *scripts))
    script = _script(f'(async () => {{\n"use strict";\n{code}\n}})();')
    libraries = f"(() => {{\n{chart_libraries()}\n}})();" if charts else ""
    packs = {
        "data": None if data is None else _json(data),
        "plot-data": None if plot is None else _json(plot.specification),
        "libraries": libraries or None,
    }
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    page = environment.from_string(template).render(
        **context,
        version=__version__,
        css=Markup(style_sheet()),
        policy=_policy([str(script), *([libraries] if charts else [])]),
        packs=[(name, packed(text)) for name, text in packs.items() if text is not None],
        script=script,
        provenance=None if provenance is None else _provenance(provenance),
        plot_title="" if plot is None else plot.title,
    )
    return make_foldable(page)


def packed(text: str) -> str:
    """A text as ``page.js`` unpacks it: gzip and base64, the same bytes for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _shown(value: object) -> object:
    """A value as a template inserts it: a text without what steers a terminal or reverses what follows."""
    return STEERING.sub("�", value) if type(value) is str else value


def _script(code: str) -> Markup:
    """Code as the content of a script element; whatever would end it or open a comment is escaped."""
    from markupsafe import Markup

    return Markup(code.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def _policy(scripts: Sequence[str]) -> str:
    """A content security policy that forbids every request and every script but these, packed or not."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


def _provenance(provenance: Provenance) -> dict[str, object]:
    """What the template of the provenance section shows."""
    values = provenance.to_dict()
    files = [
        {
            "role": file["role"],
            "path": file["path"] or "",
            "digest": file.get("sha256") or file.get("commit"),
            "card": [made_by_text(file["card"]), file["card"].get("command")] if "card" in file else [],
            "about": [f"{file[unit]:,} {unit}" for unit in ("files", "rows", "bytes") if file.get(unit) is not None]
            + [text for text in (file.get("note"), "changed since it was read" if "changed" in file else None) if text],
        }
        for file in values["files"]
    ]
    origin = {
        "command": values["command"],
        "date": values["date"],
        "versions": ", ".join(f"{name} {version}" for name, version in values["versions"].items()),
        "platform": values["platform"],
    }
    return {"made": origin, "files": files, "folders": any("files" in file for file in values["files"])}


COLOURS = ["#0072b2", "#c24d00", "#00795a", "#a3478a", "#7d6200", "#5048b8", "#5a6270"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: a Vega-Lite specification that contains its data."""

    name: str
    title: str
    specification: dict[str, object]
    hint: str = ""


def specification(chart: Any) -> dict[str, object]:
    """An altair chart as JSON values, without its configuration and addresses: the page has its own."""
    values: dict[str, object] = chart.to_dict()
    for name in ("$schema", "config"):
        values.pop(name, None)
    return values


def curve(name: str, title: str, rows: Sequence[Mapping[str, object]], x: str, hint: str = "") -> Drawing:
    """Lines over ``x`` with intervals, one panel per measure.

    ``rows`` have ``x``, ``measure``, ``value``, ``low`` and ``high``.
    """
    import altair as alt

    base_chart = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", format=".4f")]
    line = base_chart.mark_line(point=True, color=COLOURS[0]).encode(x=across, y=y, tooltip=tooltip)
    band = base_chart.mark_rule(color=COLOURS[0], opacity=0.5).encode(x=across, y="low:Q", y2="high:Q")
    columns = 2 if len({row["measure"] for row in rows}) % 2 == 0 else 3
    chart = (
        alt.layer(band, line)
        .properties(width=780 // columns, height=220)
        .facet(facet=alt.Facet("measure:N", title=None), columns=columns)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    return Drawing(name, title, specification(chart), hint)


def histogram(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, object]],
    x: str,
    hint: str = "",
    *,
    expected: float | None = None,
) -> Drawing:
    """A histogram of answers: ``rows`` have ``low``, ``high``, ``count`` and ``share``; a line marks ``expected``."""
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    tips = [alt.Tooltip(f"{key}:Q") for key in ("low", "high", "count")] + [alt.Tooltip("share:Q", format=".4f")]
    y = alt.Y("share:Q", title="share of the answers")
    chart: Any = data.mark_bar(color=COLOURS[0]).encode(
        x=alt.X("low:Q", bin="binned", title=x), x2="high:Q", y=y, tooltip=tips
    )
    if expected is not None:
        line = alt.Chart(alt.Data(values=[{"share": expected}])).mark_rule(color=COLOURS[1], strokeWidth=2)
        chart = alt.layer(chart, line.encode(y=y))
    return Drawing(name, title, specification(chart.properties(width=780, height=300)), hint)


Tone = Literal["good", "bad", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict in a word or two; ``tone``: how it is painted, which says nothing that the words don't."""

    text: str
    tone: Tone = "same"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts at a glance: the ``headings`` of the chips, and what each row is about, with its chips."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Chip, ...]], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page that is closed until it is opened: first the picture, then tables.

    ``draw``: makes its charts, which takes longer than all else and is not needed in a terminal; ``hint``: how to read
    it.
    """

    title: str
    tables: tuple[Table, ...] = ()
    draw: Callable[[], Sequence[Drawing]] | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What a result says, wherever it is shown: the answer, one table, what it means, and all the rest.

    Attributes:
        kind: The command; ``title``: what it is about.
        findings: What is said; those placed as the answer and as warnings stand above the table.
        table: The one table; ``legend``: what its marks mean: parts that begin with a mark are
            left out where the table has none.
        aside: What stands beside the answer, such as the number of queries.
        next: What can be done now: commands as they are typed, each with what it is for.
        verdicts: On pages, verdicts at a glance; ``plot``: makes the chart that stands beside them.
        sections: What is shown when it is asked for: closed parts of a page, ``--full`` in a terminal.
        facts: (What, how many) pairs; ``source``: where the method comes from; ``notes``: all other remarks.
        lines: So many lines a screen should have, without the last that say what more there is.
    """

    kind: str
    title: str
    findings: tuple[Finding, ...] = ()
    table: Table | None = None
    legend: tuple[str, ...] = ()
    aside: str = ""
    next: tuple[tuple[str, str], ...] = ()
    verdicts: Verdicts | None = None
    plot: Callable[[], Drawing] | None = None
    sections: tuple[Section, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    lines: int = 22

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables."""
        first = () if self.table is None else (self.table,)
        return (*first, *(table for section in self.sections for table in section.tables))

    @property
    def key(self) -> str:
        """What the marks of the table mean, as far as they stand in it, and its words."""
        return self._key(words=True)

    def _key(self, *, words: bool) -> str:
        drawn = set("" if self.table is None else replace(self.table, title="").text())
        marks = {part: set(part.partition(" ")[0]) for part in self.legend}
        there = [part for part, mark in marks.items() if (words if part[0] in _LETTERS else mark & drawn)]
        # A line ends between two parts.
        return "   ".join(part.replace(" ", "\xa0") for part in there)

    @property
    def terms(self) -> dict[str, str]:
        """The terms of the glossary that its sentences, legend and headings have, each with its sentence."""
        headings = [] if self.verdicts is None else list(self.verdicts.headings)
        headings += [column.title for table in self.tables for column in table.columns]
        return terms_in(" ".join([*(finding.text for finding in self.findings), self.key, *headings]))

    @property
    def keys(self) -> str:
        """The keys of the findings, as ``evenrank explain`` takes them and JSON has them."""
        return ", ".join(dict.fromkeys(finding.key for finding in self.findings))

    def said(self, *places: Place) -> tuple[Finding, ...]:
        """The findings of these places."""
        return tuple(finding for finding in self.findings if finding.place in places)

    def headline(self, width: int = 80) -> str:
        """The answer, and what stands below it."""
        return "\n".join([_answer(self.said("answer"), self.aside, width), *_warnings(self, width)])

    def text(self, *, full: bool = False, width: int = 80) -> str:
        """The screen: the answer, the table, what it means, and at most three notes; ``full``: and all the rest.

        Where the screen would have more than ``lines`` lines, notes are left out, then what comes last of each run,
        then what words mean.
        """
        above = self.headline(width)
        tables: list[str] = []
        if self.table is not None:
            tables = [table.text(width) for table in replace(self.table, title="", notes=()).packed(width)]
        notes = self.said("note")
        for most, of_each, shown, words in _SHORTER:
            paragraphs = _paragraphs([*_first(self.said("finding"), of_each, shown), *notes[:most]], width)
            meanings = self._key(words=words)
            key = [wrapped(plain(meanings), width)] * bool(meanings)
            screen = "\n\n".join([above, *tables, *[paragraphs] * bool(paragraphs), *key])
            if full or screen.count("\n") < self.lines:
                break
        if not full:
            return "\n".join(map(plain, screen.split("\n")))
        texts = {finding.text for finding in self.findings}
        rest = [*(finding.text for finding in notes[MOST_NOTES:]), *(note for note in self.notes if note not in texts)]
        parts = [
            screen,
            *[", ".join(fact(name, value) for name, value in self.facts)] * bool(self.facts),
            *(table.folded(width) for section in self.sections for table in section.tables),
            *["\n".join(["Notes:", *(wrapped(plain(note), width, "  ") for note in rest)])] * bool(rest),
            *[wrapped(f"Findings (evenrank explain KEY): {self.keys}", width)] * bool(self.findings),
        ]
        return "\n".join(map(plain, "\n\n".join(parts).split("\n")))

    def html(self) -> str:
        """One self-contained HTML page; a content security policy forbids every request and every other script."""
        if self.plot is not None or any(section.draw for section in self.sections):
            require_report()
        drawn = [tuple(section.draw()) if section.draw else () for section in self.sections]
        numbers = itertools.count()
        sections = [
            (section, [(next(numbers), drawing) for drawing in drawings])
            for section, drawings in zip(self.sections, drawn, strict=True)
        ]
        specifications = [drawing.specification for drawing in itertools.chain.from_iterable(drawn)]
        return render(
            asset("page.html.j2"),
            scripts=["charts.js", "drawings.js"] if specifications or self.plot is not None else [],
            data=specifications,
            charts=bool(specifications) or self.plot is not None,
            plot=None if self.plot is None else self.plot(),
            provenance=self.provenance,
            page=self,
            sections=sections,
        )

    def said_below(self) -> list[tuple[str, str]]:
        """What stands below the table: each name with the sentences about it, then a line for each note."""
        by_name: dict[str, list[str]] = {}
        for finding in self.said("finding"):
            by_name.setdefault(finding.subject, []).append(finding.text)
        rows = [(name, _predicate(" ".join(texts), name)) for name, texts in by_name.items()]
        return [*rows, *(("Note", finding.text) for finding in self.said("note"))]

    def notebook(self) -> str:
        """The same as the screen, as HTML for a notebook."""
        above = "".join(f"<p>{html_text(finding.text)}</p>" for finding in self.said("warning"))
        answer = html_text(" ".join(finding.text for finding in self.said("answer")))
        aside = f" <small>{html_text(', '.join(filter(None, (self.title, self.aside))))}</small>"
        table = "" if self.table is None else self.table.html()
        sentences = self.said_below()
        rows = sentences[: len(sentences) - len(self.said("note")) + MOST_NOTES]
        below = "".join(f"<li>{f'<b>{html_text(name)}</b> ' * bool(name)}{html_text(text)}</li>" for name, text in rows)
        parts = [f"<p><b>{answer}</b>{aside}</p>{above}{table}", f"<ul>{below}</ul>" * bool(below)]
        parts.append(f"<p><small>{html_text(self.key.replace('   ', ' · '))}</small></p>" * bool(self.key))
        return f"<div>{''.join(parts)}{self._static_plot()}</div>"

    def _static_plot(self) -> str:
        """The plot as SVG, which a notebook shows without a script; "" where the chart libraries are not installed."""
        if self.plot is None or importlib.util.find_spec("vl_convert") is None:
            return ""
        import vl_convert

        svg: str = vl_convert.vegalite_to_svg({**self.plot().specification, "config": _ON_ANY_BACKGROUND})
        return svg

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page atomically."""
        write_text(path, self.html())


MOST_NOTES = 3
_TEXT = {"labelColor": "currentColor", "titleColor": "currentColor"}
_FAINT = {"gridOpacity": 0.15, "gridColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor"}
_ON_ANY_BACKGROUND = {
    "background": None,
    "view": {"stroke": None},
    "axis": {**_TEXT, **_FAINT},
    "legend": _TEXT,
    "rule": {"color": "currentColor"},
}
"""The configuration of a plot whose text and axes take the colour of the text around it."""
# How many notes, findings of each run, whether those behind its first are only what is shown, and whether the words of
# the table are explained: from the whole to the least.
_SHORTER = (
    (3, None, False, True),
    (2, None, False, True),
    (1, None, False, True),
    (0, None, False, True),
    (0, 2, False, True),
    (0, 2, True, True),
    (0, 2, True, False),
    (0, 1, True, False),
)
_LETTERS = frozenset(string.ascii_letters + "[")
_LONGEST_LABEL = 16


def _answer(findings: Sequence[Finding], aside: str, width: int) -> str:
    """The sentences of the answer, and at the end of the line what stands beside it."""
    lines = wrapped(plain(" ".join(finding.text for finding in findings)), width).split("\n")
    room = width - cell_len(lines[-1])
    if aside and room > len(aside) + 1:
        lines[-1] += plain(aside).rjust(room)
    elif aside:
        lines.append(plain(aside).rjust(width))
    return "\n".join(lines)


def _warnings(page: Page, width: int) -> list[str]:
    return [wrapped(plain(finding.text), width) for finding in page.said("warning")]


def _first(findings: Sequence[Finding], of_each: int | None, shown: bool) -> list[Finding]:
    """So many findings about each thing, shown ones before others; ``shown``: others as its first alone."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.level != "shown"):
        chosen = by_subject.setdefault(finding.subject, [])
        if not (shown and chosen and finding.level != "shown"):
            chosen.append(finding)
    return [finding for finding in findings if finding in by_subject[finding.subject][:of_each]]


def _paragraphs(findings: Sequence[Finding], width: int) -> str:
    """The findings, those about one thing together behind its name."""
    by_subject: dict[str, list[str]] = {}
    for finding in findings:
        by_subject.setdefault("Note" if finding.place == "note" else finding.subject, []).append(plain(finding.text))
    label = min(max((cell_len(plain(name)) for name in by_subject), default=0), _LONGEST_LABEL)
    labels = [fitted(plain(name), label) for name in by_subject]

    def paragraph(name: str, texts: Sequence[str]) -> str:
        if not name:
            return "\n".join(wrapped(text, width) for text in texts)
        first = fitted(plain(name), label) + "  "
        if name == "Note":
            return "\n".join(wrapped(text, width, first) for text in texts)
        sentences = " ".join(texts)
        # What is said of it reads on from its name, unless two are cut to the same.
        return wrapped(sentences if labels.count(first[:-2]) > 1 else _predicate(sentences, plain(name)), width, first)

    return "\n".join(paragraph(name, texts) for name, texts in by_subject.items())


def _predicate(text: str, subject: str) -> str:
    """What is said of a subject, to be read behind its name."""
    return text.removeprefix(f"{subject}: ").removeprefix(f"{subject} ").removeprefix("It ")


def fact(name: str, value: str) -> str:
    """``200 queries``, ``1 query``, ``mean nDCG@10 0.3979``."""
    if "." in value:
        return f"{name} {value}"
    first, space, rest = name.partition(" ")
    return f"{value} {singular(first) if value == '1' else first}{space}{rest}"
