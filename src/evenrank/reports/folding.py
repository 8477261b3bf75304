"""Foldable tables: if a table is too wide for its container, each row becomes a card of labelled figures.

A style sheet cannot tell how much width a table needs, so each table gets a class that tells it. Folding needs no
script, so it works in mail previews and on paper too.
"""

from __future__ import annotations

import html
import re
from importlib import resources

STEPS = (18, 21, 24, 27, 30, 34, 38, 42, 47, 52, 58, 64, 71, 78, 86)
"""The widths (in em of the table) at which tables fold; a table that needs more always folds."""

_LETTER, _PADDING, _SORT = 0.66, 0.9, 0.7
_NAME = 7.5  # the minimum width in page.css of a name with long words, which may be broken
_LONG = 10  # letters
_TABLE = re.compile(r"<table\b([^>]*)>(.*?)</table>", re.DOTALL)
_PART = re.compile(r"<(thead|tbody|tr)\b|<(th|td)\b([^>]*)>(.*?)</\2>", re.DOTALL)
_ROLES = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def asset(name: str) -> str:
    """The text of a file of the assets folder."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """The style sheet of every page, with the folding rules for each width."""
    rules = asset("fold.css")
    folds = [f"@container (max-width: {step}em) {{ .fold-{step} {{\n{rules}}} }}" for step in STEPS]
    return "\n".join([asset("page.css"), *folds, f".fold {{\n{rules}}}"])


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
        widths[place] = max(widths[place], _width(text, named and not in_head, "<button" in content))
        role, label = "rowheader" if tag == "th" else "cell", ""
        if in_head:
            headings.append(html.escape(text))
            role = "columnheader"
        # The row's name needs no heading, unless it is a number.
        elif place < len(headings) and (place or not named or text[:1].isdigit()):
            label = f' data-label="{headings[place]}"'
        if named and not in_head and max(map(len, text.split()), default=0) > _LONG:
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
