"""Word lists: which words speak of which group."""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from evenrank.io.errors import EvenrankError, InputError, quoted, readable
from evenrank.io.files import line_blocks
from evenrank.io.provenance import Provenance
from evenrank.io.tables import lines_of

from .counterparts import Replacements, check_neutral, check_pairs, neutral_of, pairs_of
from .table import REST, check_groups, named_poles, parse_poles
from .tokens import Tokens, tokenize

_KEYS = ("name", "groups", "poles", "shares", "words", "pairs", "neutral")
_NOTES = ("language", "about", "misses")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words by group.

    ``groups`` in a fixed order; ``words`` as (entry, group); ``shares`` the target share of each group, summing to 1;
    ``poles`` the two groups whose difference is the signed magnitude, the positive one first, or None. The second
    pole may be ``"rest"``: the mean of all other groups (our reading). ``poles_assumed``: nobody named the poles, so
    they are the two groups in the file's order. ``language``, ``about`` (what the words are and who chose them) and
    ``misses`` (what they cannot see): texts for readers. ``pairs``: (word, its counterpart of another group), and
    ``neutral``: (word, what names no group), each word once at most; empty if the lexicon has none. In TOML:
    ``[pairs] dad = ["mom", "mum"]``: dad becomes mom, mom and mum become dad; ``[neutral] parent = ["dad", "mom"]``:
    dad and mom become parent. Raises EvenrankError for two groups whose score columns would have one name, and for
    ``pairs`` or ``neutral`` that are not so.
    """

    name: str
    groups: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    shares: tuple[float, ...]
    poles: tuple[str, str] | None
    poles_assumed: bool = False
    language: str = ""
    about: str = ""
    misses: str = ""
    # Not hashed: the words are enough to look up what was made of a lexicon, and this is done for every text.
    pairs: Replacements = field(default=(), hash=False)
    neutral: Replacements = field(default=(), hash=False)

    def __post_init__(self) -> None:
        check_groups(self.groups)
        if self.pairs or self.neutral:
            entries = self.entries("word")
            check_pairs(self.pairs, entries)
            check_neutral(self.neutral, entries)

    def __repr__(self) -> str:
        counts = ", ".join(f"{sum(of == group for _, of in self.words)} {group}" for group in self.groups)
        return f"Lexicon({self.name}: words {counts})"

    def entries(self, tokens: Tokens) -> dict[tuple[str, ...], str]:
        """The group of each entry, keyed by its tokens. Raises EvenrankError for an entry in two groups.

        ``word`` entries of several tokens match as phrases; under ``whitespace``, entries hold no space.
        """
        entries: dict[tuple[str, ...], str] = {}
        for word, group in self.words:
            key = tuple(tokenize(word, tokens))
            if not key:
                raise EvenrankError(f"lexicon {self.name}: the entry {quoted(word)} contains no word")
            if tokens == "whitespace" and len(key) > 1:
                # Whole tokens split at single spaces cannot hold one; the public programs never match such an entry.
                continue
            if entries.setdefault(key, group) != group:
                raise EvenrankError(f"lexicon {self.name}: {quoted(word)} is in two groups, {entries[key]} and {group}")
        return entries

    def with_poles(self, poles: str | None) -> Lexicon:
        """The lexicon with the poles written ``A,B`` (positive first; B may be ``rest``), or as it is for None."""
        if poles is None:
            return self
        return replace(self, poles=parse_poles(poles, self.groups), poles_assumed=False)


def builtin_lexicons() -> list[str]:
    """The names of the lexicons that come with evenrank."""
    folder = resources.files(__package__) / "lexicons"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_lexicon(source: str | os.PathLike[str] = "gender-en", *, poles: str | None = None) -> Lexicon:
    """A built-in lexicon by name, or one from a file: ``word,group`` lines, or TOML.

    Raises InputError, with the line where there is one, for a line that is no ``word,group``, a word in two groups,
    fewer than two groups, or shares that do not sum to 1.
    """
    if not isinstance(source, str | os.PathLike):
        raise EvenrankError(f"`lexicon`: expected a name, a file or a Lexicon, found a {type(source).__name__}")
    name = os.fspath(source)
    if name in builtin_lexicons():
        return _built_in(name).with_poles(poles)
    if not os.path.exists(name):
        raise EvenrankError(
            f"`lexicon`: no file and no built-in lexicon {quoted(name)} (built in: {', '.join(builtin_lexicons())})"
        )
    lexicon = _from_toml(Path(name)) if name.endswith(".toml") else _from_lines(name)
    return lexicon.with_poles(poles)


@functools.cache
def _built_in(name: str) -> Lexicon:
    with resources.as_file(resources.files(__package__) / "lexicons" / f"{name}.toml") as path:
        return _from_toml(path)


def lexicon_of(given: str | os.PathLike[str] | Lexicon | None) -> Lexicon:
    """A lexicon as it is, or as :func:`load_lexicon` finds it; None: gender-en."""
    return given if isinstance(given, Lexicon) else load_lexicon("gender-en" if given is None else given)


def note_lexicon(made: Provenance, lexicon: str | os.PathLike[str] | Lexicon | None) -> None:
    """Notes a lexicon among what a result is made from: its file, its words in memory, or a built-in one's name."""
    if isinstance(lexicon, str) and lexicon in builtin_lexicons():
        made.name("lexicon", lexicon, "built in")
    else:
        made.add("lexicon", lexicon)


def _from_lines(path: str) -> Lexicon:
    words: list[tuple[str, str]] = []
    seen: dict[tuple[str, ...], tuple[str, int]] = {}
    for block in line_blocks(path):
        for line, content in lines_of(block).iter_rows():
            if line == 1 and content.strip().casefold() == "word,group":
                continue
            word, comma, group = (part.strip() for part in content.rpartition(","))
            if not comma or not word or not group:
                raise InputError(path, f"expected word,group, found {quoted(content)}", line=line)
            key = tuple(tokenize(word))
            if not key:
                raise InputError(path, f"the entry {quoted(word)} contains no word", line=line)
            other, first = seen.setdefault(key, (group, line))
            if other != group:
                raise InputError(
                    path, f"{quoted(word)} is in two groups, {other} (line {first}) and {group}", line=line
                )
            words.append((word, group))
    appearing = tuple(dict.fromkeys(group for _, group in words))
    return _checked(path, readable(Path(path).stem), tuple(sorted(appearing)), words, None, None, appearing)


def _from_toml(path: Path) -> Lexicon:
    try:
        data = tomllib.loads(b"".join(block.data for block in line_blocks(path)).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid TOML: {error}") from None
    unknown = data.keys() - {*_KEYS, *_NOTES}
    if unknown:
        raise InputError(path, f"unknown key {quoted(min(unknown))} (allowed: {', '.join((*_KEYS, *_NOTES))})")
    table = data.get("words")
    if not isinstance(table, dict) or not all(
        isinstance(entries, list) and all(isinstance(entry, str) for entry in entries) for entries in table.values()
    ):
        raise InputError(path, "expected a table [words] with a list of words for each group")
    name, shares = data.get("name", readable(path.stem)), data.get("shares")
    groups, poles = (
        _texts(path, key, data.get(key, default)) for key, default in (("groups", sorted(table)), ("poles", []))
    )
    notes = {key: data.get(key, "") for key in _NOTES}
    for key, text in {"name": name, **notes}.items():
        if not isinstance(text, str):
            raise InputError(path, f"expected a text as {key}, found {quoted(text)}")
    if shares is not None and not (isinstance(shares, dict) and all(type(s) in (int, float) for s in shares.values())):
        raise InputError(path, "expected a table [shares] with a number for each group")
    if sorted(groups) != sorted(table):
        raise InputError(path, f"groups names {', '.join(groups)}, [words] has {', '.join(table)}")
    words = [(word, group) for group in groups for word in table[group]]
    appearing = groups if "groups" in data else tuple(table)
    lexicon = _checked(path, name, groups, words, shares, poles or None, appearing)
    try:
        pairs, neutral = pairs_of(data.get("pairs", {})), neutral_of(data.get("neutral", {}))
        return replace(lexicon, **notes, pairs=pairs, neutral=neutral)
    except EvenrankError as error:
        raise InputError(path, str(error)) from None


def _texts(path: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(path, f"expected a list of texts as {key}, found {quoted(value)}")
    return tuple(value)


def _checked(
    path: str | os.PathLike[str],
    name: str,
    groups: tuple[str, ...],
    words: list[tuple[str, str]],
    shares: dict[str, int | float] | None,
    poles: tuple[str, ...] | None,
    appearing: tuple[str, ...],
) -> Lexicon:
    """``appearing``: the groups in the file's order."""
    if len(groups) < 2:
        raise InputError(path, f"expected at least two groups, found {', '.join(groups) or 'none'}")
    if REST in groups:
        raise InputError(path, f"no group may be named {REST!r}: it stands for all the others")
    if shares is None:
        shares = dict.fromkeys(groups, 1 / len(groups))
    if set(shares) != set(groups):
        raise InputError(path, f"[shares] names {', '.join(shares)}, the groups are {', '.join(groups)}")
    try:
        amounts = tuple(float(shares[group]) for group in groups)
    except OverflowError:
        raise InputError(path, "the target shares must sum to 1, one of them is too large for a number") from None
    if not (min(amounts) >= 0 and abs(sum(amounts) - 1) <= 1e-9):
        raise InputError(path, f"the target shares must sum to 1, they sum to {sum(amounts):g}")
    between, assumed = named_poles(appearing)
    try:
        lexicon = Lexicon(name, groups, tuple(words), amounts, between, assumed and not poles)
        lexicon.entries("word")
        return lexicon.with_poles(",".join(poles) if poles else None)
    except EvenrankError as error:
        raise InputError(path, str(error)) from None
