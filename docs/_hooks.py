"""Pages made from what already exists: the README, the changelog, and the docstrings of the measures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills in the placeholders of a page."""
    for placeholder, content in (("README", _readme), ("CHANGELOG", _changelog), ("MEASURES", _measures)):
        mark = f"<!-- {placeholder} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, content())
    return markdown


def _readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # Links to files beside the README lead nowhere from the site.
    return re.sub(r"\[([^\]]+)\]\((?!http)[^)]+\)", r"\1", text)


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _measures() -> str:
    from evenrank.measures import BIAS_MEASURES, describe

    parts = []
    for measure in BIAS_MEASURES:
        better = "nearer 0 is better" if measure.better == "nearer zero" else "higher is better"
        rows = [
            f"| `{name}` | {info.desc} | {'' if info.required or info.default is None else f'`{info.default}`'} |"
            for name, info in measure.SUPPORTED_PARAMS.items()
        ]
        table = "\n".join(["| parameter | meaning | default |", "| --- | --- | --- |", *rows])
        whole = " A figure of the whole run." if measure.whole_run else ""
        parts.append(
            f"## {measure.NAME}\n\n{measure.PRETTY_NAME}; {better}.{whole}\n\n{describe(measure)}\n\n{table}\n"
        )
    return "\n".join(parts)
