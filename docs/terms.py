"""Writes docs/terms.md from the glossary: python docs/terms.py"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent / "terms.md"


def page() -> str:
    """The page of all terms."""
    from evenrank.results.terms import glossary

    parts = [
        "# Terms",
        "The words of screens, options and JSON. `evenrank explain TERM` prints one, `evenrank explain KEY` a finding.",
    ]
    for heading, terms in glossary().items():
        rows = "\n".join(f"| {term} | {text} |" for term, text in terms.items())
        parts.append(f"## {heading}\n\n| term | |\n| --- | --- |\n{rows}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
