"""What a command answers: findings in sentences, tables, charts and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .finding import Finding, Level, phrases
    from .page import COLOURS, Drawing, Page, Section, curve, specification
    from .result import Result
    from .table import COUNT, NONE, Column, Table, differences, digits, interval, intervals, number, short
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "COLOURS",
    "COUNT",
    "NONE",
    "Column",
    "Drawing",
    "Finding",
    "Level",
    "Page",
    "Result",
    "Section",
    "Table",
    "curve",
    "differences",
    "digits",
    "interval",
    "intervals",
    "number",
    "phrases",
    "short",
    "specification",
]
