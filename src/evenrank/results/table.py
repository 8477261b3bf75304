"""One table: columns are declared once and read in the terminal, on pages, in notebooks and in data frames.

    >>> columns = (Column("run"), Column("mean", digits(3), "Mean"), Column("n", COUNT, "Queries"))
    >>> table = Table("Runs", columns, [("BM25", 0.25, 1200), ("random", None, 1200)])
    >>> print(table.text())
    Runs
    ─────────────────────
    run      Mean  Queries
    ...
    >>> table.frame()["mean"].to_list()
    [0.25, None]

Values stay as they are until one of these is asked for. None reads "–" and is null in a frame; in a column of numbers
so is a text, which stands where there is no figure.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from html import escape
from os import PathLike
from typing import Any, Literal

import polars as pl
from rich.cells import cell_len, set_cell_size

from evenrank.files import atomic_path
from evenrank.files.errors import plain
from evenrank.files.outputs import for_spreadsheets
from evenrank.files.wording import percent

Interval = tuple[float, float]
NONE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` decimals; one that would round to 0 keeps its first digit, so that it is not read as 0.

    >>> number(-0.0616), number(-0.00003), number(0.0), number(None)
    ('-0.062', '-3e-05', '0.000', '–')
    """
    if value is None:
        return NONE
    if abs(value) < 1e-9:
        value = 0.0
    if 0 < abs(value) < 0.5 * 10**-digits:
        fixed = f"{value:.{digits + 1}f}"
        return fixed if float(fixed) else f"{value:.0e}"
    return f"{value:.{digits}f}"


def interval(ends: Interval | None, digits: int = 3) -> str:
    """An interval in brackets."""
    return NONE if ends is None else f"[{number(ends[0], digits)}, {number(ends[1], digits)}]"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign.

    >>> signed(0.08), signed(-0.0004), signed(0.0), signed(None)
    ('+0.080', '-0.0004', '0.000', '–')
    """
    text = number(value, digits)
    return f"+{text}" if value is not None and value >= 1e-9 else text


def signed_interval(ends: Interval | None, digits: int = 3) -> str:
    """The interval of a difference, its ends with their signs."""
    return NONE if ends is None else f"[{signed(ends[0], digits)}, {signed(ends[1], digits)}]"


def true_minus(text: str) -> str:
    """A text of numbers with typographic minus signs, for pages.

    >>> true_minus("[-0.062, 0.100]"), true_minus("-3e-05")
    ('[−0.062, 0.100]', '−3e-05')
    """
    return text.replace("-", "−").replace("e−", "e-")


def short(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """A figure for sentences and screens: without the 0 before its decimal point, its minus typographic.

    >>> short(0.1594), short(-0.062), short(0.004, sign=True), short(1.0), short(0.0, sign=True)
    ('.159', '−.062', '+.004', '1.000', '.000')

    One that is all but 0 is 0:

    >>> short(1e-8), short(0.0004)
    ('.000', '.0004')
    """
    if value is not None and abs(value) < 1e-6:
        value = 0.0
    text = signed(value, digits) if sign else number(value, digits)
    return true_minus(re.sub(r"(?<!\d)0\.", ".", text))


def short_interval(ends: Interval | None, digits: int = 3, *, sign: bool = False) -> str:
    """The interval of a figure in short form."""
    return NONE if ends is None else f"[{', '.join(short(end, digits, sign=sign) for end in ends)}]"


def mark(shown: bool) -> str:
    """What stands behind a figure: the mark of one that is shown to differ, else room for it."""
    return " ●" if shown else "  "


def p_value(p: float | None) -> str:
    """A p-value with three decimals, or ``<0.001``.

    >>> p_value(0.04211), p_value(1e-9), p_value(None)
    ('0.042', '<0.001', '–')
    """
    if p is None:
        return NONE
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def equation(name: str, p: float | None) -> str:
    """A p-value in a sentence: ``Holm p = 0.042``."""
    if p is None:
        return f"no {name}"
    return f"{name} {p_value(p).replace('<', '< ') if p < 0.0005 else '= ' + p_value(p)}"


@dataclass(frozen=True, slots=True)
class Format:
    """How the values of a column read.

    Attributes:
        read: A value as text; never called with None or with a text, which stands where there is no figure.
        kind: Texts are on the left; counts are whole numbers in frames.
        sort: What a value sorts by on a page; None: by itself.
    """

    read: Callable[[Any], str]
    kind: Literal["text", "count", "number"] = "number"
    sort: Callable[[Any], float] | None = None


def digits(places: int) -> Format:
    """Numbers with so many decimals."""
    return Format(lambda value: number(value, places))


def differences(places: int) -> Format:
    """Numbers with their sign."""
    return Format(lambda value: signed(value, places))


def intervals(places: int, *, sign: bool = False, wide: bool = False) -> Format:
    """Intervals, which sort by their lower end, or by their width if they are ranges (``wide``)."""
    read = signed_interval if sign else interval
    return Format(lambda ends: read(ends, places), sort=lambda ends: ends[1] - ends[0] if wide else ends[0])


def percents(decimals: int = 0) -> Format:
    """Shares as percentages."""
    return Format(lambda share: percent(share, decimals))


def shorts(places: int, *, sign: bool = False) -> Format:
    """Figures as screens have them."""
    return Format(lambda value: short(value, places, sign=sign))


def short_intervals(places: int, *, sign: bool = False) -> Format:
    """Intervals of such figures, which sort by their lower end."""
    return Format(lambda ends: short_interval(ends, places, sign=sign), sort=lambda ends: ends[0])


TEXT = Format(str, "text")
COUNT = Format(lambda count: f"{count:,}", "count")
P = Format(p_value)


_GAP = "  "
_INDENT = 2
LEAST_NAME, MOST_NAME = 15, 30
"""Characters of the name of a row, where the terminal has little room and where it has enough."""
_TYPES = {"text": pl.String, "count": pl.Int64, "number": pl.Float64}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: key, format, heading and values.

    Attributes:
        key: The column's name in frames and files; for values of several parts, such as intervals, a name for each.
        format: How its values read.
        heading: Its heading; by default the key.
        of: What it takes from a row: a path of attributes and of places in tuples (``"test.p"``, ``"1.mean"``; None
            as soon as one is None), or a function. By default the attribute called like the key, or the item at the
            column's place if rows are tuples.
        short: A shorter heading for the terminal.
        note: What it holds, for those who ask the page.
        mark, tag: What follows the figure: a sign, and on pages a remark.
        data: On pages, what its cell carries for the page's script.
    """

    key: str | tuple[str, ...]
    format: Format = TEXT
    heading: str | None = None
    of: str | Callable[[Any], object] | None = None
    short: str | None = None
    note: str = ""
    mark: Callable[[Any], str] | None = None
    tag: Callable[[Any], str] | None = None
    data: Callable[[Any], Mapping[str, object]] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of its values' parts."""
        return (self.key,) if isinstance(self.key, str) else self.key

    @property
    def title(self) -> str:
        """Its heading."""
        return self.keys[0] if self.heading is None else self.heading

    @property
    def left(self) -> bool:
        """Whether its values are texts."""
        return self.format.kind == "text"

    def value(self, row: Any, place: int) -> Any:
        """The value of a row, None where it is undefined; ``place``: the column's own among all."""
        if callable(self.of):
            value = self.of(row)
        elif self.of is not None:
            value = reduce(_part, self.of.split("."), row)
        else:
            value = row[place] if isinstance(row, tuple) else getattr(row, self.keys[0])
        return None if isinstance(value, float) and math.isnan(value) else value

    def read(self, value: Any) -> str:
        """A value as it reads."""
        return NONE if value is None else value if isinstance(value, str) else self.format.read(value)

    def parts(self, value: Any) -> Sequence[Any]:
        """The values of the keys; None for those without."""
        if isinstance(value, str) and not self.left:
            value = None
        if isinstance(self.key, str):
            return [value]
        return [None] * len(self.key) if value is None else value


def with_interval(
    key: str, of: str | Callable[[Any], object], places: int = 3, heading: str | None = None, *, sign: bool = False
) -> tuple[Column, Column]:
    """The columns of a figure and of its 95% interval.

    Args:
        of: As for columns, something with ``mean`` and ``ci95``; None where there is no figure.
        places: Decimals; ``sign``: whether figures above 0 have one.
    """
    estimate = Column(key, of=of)
    ends = Column((f"{key}_low", f"{key}_high"), intervals(places), "95%")
    mean = Column(key, differences(places) if sign else digits(places), heading)
    return (
        replace(mean, of=lambda row: _part(estimate.value(row, 0), "mean")),
        replace(ends, of=lambda row: _part(estimate.value(row, 0), "ci95")),
    )


@dataclass(frozen=True, slots=True)
class Table:
    """A table: rows and the columns that show them.

    Attributes:
        rows: Objects or tuples.
        notes: Sentences below the table.
        group: In the terminal, the line above the rows of which it says the same.
        below: In the terminal, a line below a row; "" for none.
        kind: On pages, the classes of a row.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    notes: tuple[str, ...] = ()
    group: Callable[[Any], str] | None = None
    below: Callable[[Any], str] | None = None
    kind: Callable[[Any], str] | None = None

    def only(self, *keys: str) -> Table:
        """The same rows with those columns alone, in this order; of several keys, a column is called by its first."""
        by_key = {column.keys[0]: self._placed(place) for place, column in enumerate(self.columns)}
        return replace(self, columns=tuple(by_key[name] for name in keys))

    def _placed(self, place: int) -> Column:
        """A column that knows its place."""
        column = self.columns[place]
        return column if column.of is not None else replace(column, of=lambda row: column.value(row, place))

    def _cells(self, row: Any) -> Iterator[tuple[Column, Any]]:
        """The columns with the row's values."""
        for place, column in enumerate(self.columns):
            yield column, column.value(row, place)

    # --- as text ------------------------------------------------------------------------------------------------------

    def text(self, width: int | None = None) -> str:
        """The table for a terminal; with a ``width`` in characters, names are cut and lines broken to fit into it."""
        heads = self._heads()
        lines = [self._line(row) for row in self.rows]
        sizes = _sizes(heads, lines)
        indent = _INDENT if self.group else 0
        if width is not None and sizes:
            sizes = [min(size, MOST_NAME) if c.left else size for c, size in zip(self.columns, sizes, strict=True)]
            longest = max(range(self._names), key=lambda place: sizes[place])
            over = indent + sum(sizes) + len(_GAP) * (len(sizes) - 1) - width
            sizes[longest] -= min(max(over, 0), sizes[longest] - 1)
        # A last column of texts is not cut but broken into lines.
        broken = width is not None and len(self.columns) > 1 and self.columns[-1].left

        def aligned(cells: Sequence[str]) -> str:
            parts = [fitted(c, size, column.left) for c, size, column in zip(cells, sizes, self.columns, strict=True)]
            if not broken:
                return (" " * indent + _GAP.join(parts)).rstrip()
            return wrapped(cells[-1], width, " " * indent + _GAP.join([*parts[:-1], ""])).rstrip()

        previous, body = None, []
        for row, line in zip(self.rows, lines, strict=True):
            group = self.group(row) if self.group else None
            if group != previous:
                previous = group
                body.append(wrapped(plain(group or ""), width))
            body.append(aligned(line))
            below = self.below(row) if self.below else ""
            if below:
                body.append(wrapped(plain(below), width, " " * 2 * _INDENT))
        head = [aligned(heads)] if any(heads) else []
        if not self.title:
            return "\n".join([*head, *body])
        rule = "─" * (sum(sizes) + len(_GAP) * (len(sizes) - 1))
        return "\n".join(
            [
                plain(self.title),
                rule,
                *head,
                *([rule] if head else []),
                *body,
                rule,
                *(wrapped(plain(note), width) for note in self.notes),
            ]
        )

    def folded(self, width: int) -> str:
        """The whole table for a terminal that is ``width`` wide: long texts are broken into lines in their columns."""
        heads, lines = self._heads(), [self._line(row) for row in self.rows]
        sizes = _sizes(heads, lines)
        long = [place for place, column in enumerate(self.columns) if column.left and sizes[place] > MOST_NAME]
        over = sum(sizes) + len(_GAP) * (len(sizes) - 1) - width
        if not long or over <= 0 or self.group or self.below:
            return "\n\n".join(part.text(width if self.group else None) for part in self.packed(width))
        room = max(MOST_NAME, (sum(sizes[place] for place in long) - over) // len(long))
        parts = [
            [textwrap.wrap(cell, room) or [""] if place in long else [cell] for place, cell in enumerate(line)]
            for line in lines
        ]
        rows = [list(itertools.zip_longest(*cells, fillvalue="")) for cells in parts]
        columns = tuple(
            replace(column, of=None, heading=head, short=None, mark=None)
            for column, head in zip(self.columns, heads, strict=True)
        )
        return replace(self, columns=columns, rows=[line for row in rows for line in row]).text()

    def fits(self, width: int) -> bool:
        """Whether a terminal that is ``width`` characters wide has room for all but the end of long names."""
        sizes = _sizes(self._heads(), [self._line(row) for row in self.rows])
        indent = _INDENT if self.group else 0
        name = max(sizes[: self._names])
        return indent + sum(sizes) - name + min(name, LEAST_NAME) + len(_GAP) * (len(sizes) - 1) <= width

    @property
    def _names(self) -> int:
        """The number of columns that name the row: the first ones, without a heading; at least one."""
        headed = (place for place, column in enumerate(self.columns) if column.title)
        return max(next(headed, 1), 1)

    def packed(self, width: int) -> list[Table]:
        """The table, or where it is too wide its columns in several, each with the names of the rows.

        The title of all but the first says that they continue it. Names are the first columns, without a heading; any
        other such column stays with the one before it. What stands below rows and below the table is said once.
        """
        headed = [place for place, column in enumerate(self.columns) if column.title]
        if not self.rows or self.fits(width) or self.columns[0].title or not headed:
            return [self]
        sizes = _sizes(self._heads(), [self._line(row) for row in self.rows])
        names, ends = range(headed[0]), [*headed[1:], len(self.columns)]
        room = width - _INDENT * bool(self.group) - sum(min(sizes[place], MOST_NAME) for place in names)
        parts: list[list[int]] = []
        left = 0
        for start, end in zip(headed, ends, strict=True):
            need = sum(sizes[place] + len(_GAP) for place in range(start, end))
            if not parts or need > left:
                parts.append([])
                left = room
            parts[-1] += range(start, end)
            left -= need
        return [
            replace(
                self,
                columns=tuple(map(self._placed, (*names, *part))),
                title=self.title if part is parts[0] or not self.title else f"{self.title} (continued)",
                notes=self.notes if part is parts[-1] else (),
                below=self.below if part is parts[0] else None,
            )
            for part in parts
        ]

    def _heads(self) -> list[str]:
        heads = [column.title if column.short is None else column.short for column in self.columns]
        return [plain(head) + " " * bool(column.mark) for head, column in zip(heads, self.columns, strict=True)]

    def _line(self, row: Any) -> list[str]:
        """The cells with their signs; a space where there could be one, so that figures stay aligned."""
        return [
            plain(column.read(value) + (column.mark(row) or " " if column.mark else ""))
            for column, value in self._cells(row)
        ]

    # --- as HTML ------------------------------------------------------------------------------------------------------

    def html(self, *, sorts: bool = False) -> str:
        """The table for pages and notebooks; ``sorts``: with what the script of the audit's page needs to sort it.

        Cells on the right say so in an attribute that any style sheet overrides, for views without one.
        """
        state = ' aria-sort="none"' * sorts
        heads = "".join(
            f'<th scope="col"{_side(column)}{state}>{_button(column) if sorts else html_text(column.title)}</th>'
            for column in self.columns
        )
        names = next((place for place, column in enumerate(self.columns) if not column.left), len(self.columns))
        body = []
        previous: object = None
        for row in self.rows:
            group = self.group(row) if self.group else None
            starts = self.group is not None and group != previous
            previous = group
            kind = " ".join(filter(None, ["first" if starts else "", self.kind(row) if self.kind else ""]))
            cells = "".join(
                self._cell(row, column, value, "th" if place < names else "td", sorts)
                for place, (column, value) in enumerate(self._cells(row))
            )
            body.append(f'<tr class="{html_text(kind)}">{cells}</tr>' if kind else f"<tr>{cells}</tr>")
        kinds = "plain groups" if self.group else "plain"
        attributes = 'id="table" class="figures"' if sorts else f'class="{kinds}"'
        head = f"<thead><tr>{heads}</tr></thead>" if any(column.title for column in self.columns) else ""
        caption = f"<caption>{html_text(self.title)}</caption>" if self.title else ""
        rows = "\n".join(body)
        return f"<table {attributes}>{caption}{head}<tbody>{rows}</tbody></table>"

    def _cell(self, row: Any, column: Column, value: Any, tag: str, sorts: bool) -> str:
        first, *others = column.read(value).split("\n")
        text = _figure(first, column)
        if column.mark and (mark := column.mark(row)):
            text += f'<b class="mark">{html_text(mark)}</b>'
        if others:
            text += f"<br><small>{'<br>'.join(_figure(other, column) for other in others)}</small>"
        if column.tag and (remark := column.tag(row)):
            text += f' <small class="tag">{html_text(true_minus(remark))}</small>'
        carried = {"sort": _sort(column, value)} if sorts else column.data(row) if column.data else {}
        key = "".join(f' data-{name}="{html_text(str(of))}"' for name, of in carried.items())
        scope = ' scope="row"' if tag == "th" else ""
        return f"<{tag}{scope}{_side(column)}{key}>{text}</{tag}>"

    # --- as data ------------------------------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """The values of all columns by their keys, a dict for each row. Raises ValueError for a key of two columns."""
        keys = [key for column in self.columns for key in column.keys]
        if len(set(keys)) < len(keys):
            raise ValueError(f"two columns have one key: {', '.join(keys)}")
        return [
            {
                key: part
                for column, value in self._cells(row)
                for key, part in zip(column.keys, column.parts(value), strict=True)
            }
            for row in self.rows
        ]

    def frame(self) -> pl.DataFrame:
        """All columns: texts, whole numbers and floats; null where there is no value."""
        schema = {key: _TYPES[column.format.kind] for column in self.columns for key in column.keys}
        return pl.DataFrame(self.records(), schema=schema)

    def csv(self, path: str | PathLike[str]) -> None:
        """Writes :meth:`frame` as CSV; a text that a spreadsheet would take for a formula follows an apostrophe."""
        with atomic_path(path) as part:
            for_spreadsheets(self.frame()).write_csv(part)


def wrapped(text: str, width: int | None, first: str = "") -> str:
    """A text in lines of ``width`` characters, the first after ``first``, the others below it; None: in one line."""
    if width is None or not text:
        return first + text
    # "p < 0.001" and "gender = f" stay on one line.
    unbroken = text.replace("p < ", "p\xa0<\xa0").replace(" = ", "\xa0=\xa0")
    indent = " " * cell_len(first)
    filled = textwrap.fill(unbroken, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return filled.replace("\xa0", " ")


def _part(found: Any, name: str) -> Any:
    """An attribute of something, or what a tuple has at a place; None of None."""
    return None if found is None else found[int(name)] if name.isdigit() else getattr(found, name)


def _sizes(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, cells)) for cells in zip(heads, *lines, strict=True)]


def fitted(cell: str, size: int, left: bool = True) -> str:
    """A text in so many characters; a longer one is cut in its middle, as names often differ at their ends."""
    if cell_len(cell) > size:
        end = (size - 1) // 2
        return set_cell_size(cell, size - 1 - end) + "…" + set_cell_size(cell[::-1], end)[::-1]
    space = " " * (size - cell_len(cell))
    return cell + space if left else space + cell


def _side(column: Column) -> str:
    return ' class="left"' if column.left else ' align="right"'


def _figure(text: str, column: Column) -> str:
    return html_text(text if column.left else true_minus(text))


def _button(column: Column) -> str:
    return f'<button type="button" title="{html_text(column.note)}">{html_text(column.title)}</button>'


def _sort(column: Column, value: Any) -> str:
    if value is None or (isinstance(value, str) and not column.left):
        return ""
    return str(value if column.format.sort is None else column.format.sort(value))


def html_text(text: str) -> str:
    """A text as HTML, without control characters."""
    return escape(plain(text))
