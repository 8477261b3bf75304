"""Numbers formatted for readers, the same in the terminal and on pages."""

from __future__ import annotations

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


def true_minus(text: str) -> str:
    """A text of numbers with typographic minus signs, for pages.

    >>> true_minus("[-0.062, 0.100]"), true_minus("-3e-05")
    ('[−0.062, 0.100]', '−3e-05')
    """
    return text.replace("-", "−").replace("e−", "e-")


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
