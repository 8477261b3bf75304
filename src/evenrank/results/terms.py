"""The glossary, and what a finding or a term means."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from evenrank.files.errors import UnknownNameError, quoted

from .finding import phrases

_FILES = resources.files("evenrank")
_COMMON = ("not shown", "found", "rate")
"""Terms that are words of other sentences, too."""
_NO_WORD = re.compile(r"\W+")
"""What marks of tables are."""


@cache
def glossary() -> Mapping[str, Mapping[str, str]]:
    """Every term with its sentence, by the heading that it stands under."""
    terms: dict[str, dict[str, str]] = tomllib.loads((_FILES / "terms.toml").read_text(encoding="utf-8"))
    return terms


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a kind of finding.

    Attributes:
        command: The command whose sentences these are, by its file in ``phrases/``.
        keys: The keys of its sentences.
        means: What it means.
        sure: How sure it is.
        next: What to do.
        example: A sentence of the first key, as a screen has it.
    """

    command: str
    keys: tuple[str, ...]
    means: str
    sure: str
    next: str
    example: str


@cache
def explanations() -> tuple[Explanation, ...]:
    """Every kind of finding, by command, in the order of ``findings.toml``."""
    kinds: dict[str, Any] = tomllib.loads((_FILES / "findings.toml").read_text(encoding="utf-8"))
    levels = kinds.pop("sure")
    return tuple(
        Explanation(
            command=command,
            keys=tuple(entry["keys"]),
            means=entry["means"],
            sure=levels[entry["sure"]],
            next=entry["next"],
            example=entry.get("example") or phrases(command).templates[entry["keys"][0]],
        )
        for command, entries in kinds.items()
        for entry in entries
    )


def sentence(command: str, key: str) -> str:
    """The sentence of a key, with … where a screen has values."""
    return re.sub(r"(\{[^}]*\})+", "…", phrases(command).templates[key])


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
    terms = {term: meaning for of in glossary().values() for term, meaning in of.items() if term not in _COMMON}
    terms = {term: meaning for term, meaning in terms.items() if not _NO_WORD.fullmatch(term)}
    return {
        term: meaning
        for term, meaning in terms.items()
        if re.search(rf"\b{re.escape(term)}(e?s)?\b", words[term != term.casefold()])
    }


def _folded(term: str) -> str:
    """A term without case, spaces, hyphens and underscores: ``impact ratio`` is ImpactRatio."""
    return re.sub(r"[\s_-]", "", term.casefold())


def explain(what: str) -> str:
    """The sentences of a finding's key, what they mean and what to do, with the terms in them; or that of a term.

    >>> explain("nDCG@20")
    'nDCG: Effectiveness: the discounted gain of the first documents, divided by that of an ideal order; 1 is best.'

    A mark, or a word of a term, is explained by the first term that it is in.

    >>> explain("unjudged").partition(":")[0], explain("▲").partition(":")[0]
    ('unjudged document', '▲▼')

    Raises UnknownNameError, with near names, for what is neither.
    """
    terms = {term: text for part in glossary().values() for term, text in part.items()}
    by_name = {_folded(term): term for term in terms} | {term.casefold(): term for term in terms}
    what = what.strip()
    # A measure with its cutoff and parameters is explained by its name.
    term = (
        by_name.get(what.casefold())
        or by_name.get(_folded(what))
        or by_name.get(_folded(re.split("[@(]", what)[0].strip("|")))
    )
    key = next((key for key in _templates() if _folded(key) == _folded(what)), None)
    if term is None and key is None:
        # A mark of several, or a word of a longer term.
        part = re.escape(what.casefold())
        is_mark = _NO_WORD.fullmatch(what) is not None
        among = [term for term in terms if is_mark == (_NO_WORD.fullmatch(term) is not None)]
        form = part if is_mark else rf"(^|.* ){part}(e?s)?($| .*)"
        term = next((term for term in among if what and re.search(form, term.casefold())), None)
    lines = [] if term is None else [f"{term}: {terms[term]}"]
    if key is not None:
        sentences = {command: sentence(command, key) for command in _templates()[key]}
        for command, text in sentences.items():
            entries = [entry for entry in explanations() if entry.command == command and key in entry.keys]
            example = next((entry.example for entry in entries if key == entry.keys[0] and entry.example != text), None)
            lines.append(f"{key} ({command}): {f'for example, {example}' if example else text}")
            lines += [f"  {line}" for entry in entries for line in (entry.means, entry.sure, f"Next: {entry.next}")]
        named = terms_in(" ".join(sentences.values()))
        lines += [f"  {name}: {text}" for name, text in named.items() if name != term]
    if lines:
        return "\n".join(lines)
    near = difflib.get_close_matches(what, [*terms, *_templates()], n=3)
    like = f" (near it: {', '.join(near)})" if near else " (the documentation lists the terms)"
    raise UnknownNameError(f"no term and no finding {quoted(what)}{like}")
