"""The glossary, and what a finding or a term means."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from evenrank.files.errors import UnknownNameError, quoted

from .finding import phrases

_FILES = resources.files("evenrank")


@cache
def glossary() -> Mapping[str, Mapping[str, str]]:
    """Every term with its sentence, by the heading that it stands under."""
    found: dict[str, dict[str, str]] = tomllib.loads((_FILES / "terms.toml").read_text(encoding="utf-8"))
    return found


@cache
def _templates() -> Mapping[str, Mapping[str, str]]:
    """The sentences that commands have under each key of a finding, by key and command."""
    by_key: dict[str, dict[str, str]] = {}
    for file in sorted((_FILES / "phrases").iterdir(), key=lambda file: file.name):
        command = file.name.removesuffix(".toml")
        for key, template in phrases(command).templates.items():
            by_key.setdefault(key, {})[command] = template
    return by_key


def terms_in(text: str) -> dict[str, str]:
    """The terms of the glossary that occur in a text, each with its sentence; names (Share) as they are written."""
    words = {True: text, False: text.casefold()}
    terms = {term: sentence for part in glossary().values() for term, sentence in part.items()}
    return {
        term: sentence
        for term, sentence in terms.items()
        # "is not shown" is said of more than rules.
        if term != "not shown" and re.search(rf"\b{re.escape(term)}(e?s)?\b", words[term != term.casefold()])
    }


def explain(what: str) -> str:
    """The sentences of a finding's key, by command, with the terms in them; or the sentence of a term.

    >>> explain("nDCG@20")
    'nDCG: Effectiveness: discounted gain of the first documents over that of an ideal order; 1 is best.'

    Raises UnknownNameError, with near names, for what is neither.
    """
    terms = {term: text for part in glossary().values() for term, text in part.items()}
    by_name = {term.casefold(): term for term in terms}
    what = what.strip()
    # A measure with its cutoff and parameters is explained by its name.
    term = by_name.get(what.casefold()) or by_name.get(re.split("[@(]", what.strip("|"))[0].casefold())
    key = next((key for key in _templates() if key == what.casefold()), None)
    lines = [] if term is None else [f"{term}: {terms[term]}"]
    if key is not None:
        sentences = {command: re.sub(r"\{[^}]*\}", "…", text) for command, text in _templates()[key].items()}
        lines += [f"{key} ({command}): {sentence}" for command, sentence in sentences.items()]
        named = terms_in(" ".join(sentences.values()))
        lines += [f"  {name}: {text}" for name, text in named.items() if name != term]
    if lines:
        return "\n".join(lines)
    near = difflib.get_close_matches(what, [*terms, *_templates()], n=3)
    like = f" (near it: {', '.join(near)})" if near else " (the documentation lists the terms)"
    raise UnknownNameError(f"no term and no finding {quoted(what)}{like}")
