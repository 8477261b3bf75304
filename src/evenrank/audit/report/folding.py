"""Tables that fold: where a table is wider than the room it has, each row becomes a card of labelled figures.

A style sheet cannot tell how wide a table has to be, so each table gets a class that says it. Nothing here needs a
script: a page folds in a mail's preview and on paper too.
"""

from __future__ import annotations

import html
import re

from .page_parts import asset

STEPS = (18, 21, 24, 27, 30, 34, 38, 42, 47, 52, 58, 64, 71, 78, 86)
"""The widths (in em of the table) at which a table can fold; a wider one always does."""

_LETTER, _PADDING, _SORT = 0.66, 0.9, 0.7
_NAME = 7.5  # the least that page.css gives a name with long words, which may be broken
_LONG = 10  # letters
_TABLE = re.compile(r"<table\b([^>]*)>(.*?)</table>", re.DOTALL)
_PART = re.compile(r"<(thead|tbody|tr)\b|<(th|td)\b([^>]*)>(.*?)</\2>", re.DOTALL)
_ROLES = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def style_sheet() -> str:
    """The style of every page, with the rules of folding for each width."""
    rules = asset("fold.css")
    folds = [f"@container (max-width: {step}em) {{ .fold-{step} {{\n{rules}}} }}" for step in STEPS]
    return "\n".join([asset("page.css"), *folds, f".fold {{\n{rules}}}"])


def folding(page: str) -> str:
    """A page whose tables can fold: each cell says its column's heading, and each table how wide it has to be.

    Every table that stands before the first script. Headings are those of the ``thead`` above; names (``th`` and the
    class ``left``) may be broken, figures only at a space. Roles are written out, since a browser may forget those of
    elements that are shown in another way.
    """
    body, script, rest = page.partition("<script")
    return _TABLE.sub(_folding_table, body) + script + rest


def fold_class(widths: list[float]) -> str:
    """The class of a table whose columns have to be this wide (em)."""
    total = sum(widths)
    return next((f"fold-{step}" for step in STEPS if total <= step), "fold")


def _folding_table(found: re.Match[str]) -> str:
    headings: list[str] = []
    widths: list[float] = []
    in_head = False
    place = 0

    def part(found: re.Match[str]) -> str:
        nonlocal in_head, place
        group, tag, attributes, content = found.groups()
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
        widths[place] = max(widths[place], _width(text, named and not in_head, "<button" in content))
        role, label = "rowheader" if tag == "th" else "cell", ""
        if in_head:
            headings.append(html.escape(text))
            role = "columnheader"
        # A row's own name needs no heading, unless it is a number.
        elif place < len(headings) and (place or not named or text[:1].isdigit()):
            label = f' data-label="{headings[place]}"'
        if named and not in_head and max(map(len, text.split()), default=0) > _LONG:
            label += " data-long"
        place += 1
        return f'<{tag} role="{role}"{label}{attributes}>{content}</{tag}>'

    attributes, content = found.groups()
    content = _PART.sub(part, content)
    name = fold_class(widths)
    if 'class="' in attributes:
        attributes = attributes.replace('class="', f'class="{name} ', 1)
    else:
        attributes += f' class="{name}"'
    return f'<table role="table"{attributes}>{content}</table>'


def _width(text: str, name: bool, sorts: bool) -> float:
    """The least width (em) of a cell: its longest word's, or what a name has to have."""
    longest = max(map(len, text.split()), default=0)
    width = longest * _LETTER + _PADDING + _SORT * sorts
    return min(width, _NAME) if name else width
