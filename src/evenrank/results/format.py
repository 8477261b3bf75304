"""How values read, the same in the terminal and on pages: functions for sentences, and formats for columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from evenrank.io.wording import percent

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
    """The interval of such a figure."""
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
