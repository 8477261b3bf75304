"""Word lists: which words speak of which group, their counterparts, and the list as the counting kernel reads it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from evenrank.files.arguments import checked
from evenrank.files.convert import PathLike
from evenrank.files.errors import EvenrankError, InputError, arg, quoted, readable
from evenrank.files.hashing import fnv
from evenrank.files.provenance import Provenance
from evenrank.files.reading import line_blocks
from evenrank.files.tables import lines_of
from evenrank.files.tokens import Tokens, tokenize
from evenrank.files.toml import parsed_toml
from evenrank.files.types import Array

from .table import REST, check_groups, named_poles, parse_poles

MOST_WORDS = 32
"""Words of an entry, or of what names no group."""

Replacements = tuple[tuple[str, str], ...]
"""(word, what it becomes), each word once."""
Entries = Mapping[tuple[str, ...], str]
"""The group of each entry of a lexicon, by its tokens."""


def _is_table(table: object) -> TypeGuard[dict[str, str | list[str]]]:
    return isinstance(table, dict) and all(
        isinstance(words, str) or (isinstance(words, list) and words and all(isinstance(word, str) for word in words))
        for words in table.values()
    )


def pairs_of(table: object) -> Replacements:
    """The pairs of a TOML table: the words of a line become its key, which becomes the first of them.

    >>> pairs_of({"she": "he", "dad": ["mom", "mum"]})
    (('she', 'he'), ('he', 'she'), ('dad', 'mom'), ('mom', 'dad'), ('mum', 'dad'))
    """
    if not _is_table(table):
        raise EvenrankError("expected a table [pairs] with a word or a list of words for each word")
    lines = [(key, [words] if isinstance(words, str) else words) for key, words in table.items()]
    return tuple(pair for key, words in lines for pair in [(key, words[0]), *((word, key) for word in words)])


def neutral_of(table: object) -> Replacements:
    """The neutral words of a TOML table: the words of a line become its key.

    >>> neutral_of({"they": ["she", "he"]})
    (('she', 'they'), ('he', 'they'))
    """
    if not _is_table(table):
        raise EvenrankError("expected a table [neutral] with a word or a list of words for each neutral word")
    lines = [(key, [words] if isinstance(words, str) else words) for key, words in table.items()]
    return tuple((word, key) for key, words in lines for word in words)


def check_pairs(pairs: Replacements, entries: Entries) -> None:
    """Raises EvenrankError unless each word is an entry, once, and becomes an entry of another group."""
    _check_words("pairs", pairs, entries)
    for word, other in pairs:
        group, of = (entries.get(tuple(tokenize(each))) for each in (word, other))
        if of is None:
            raise EvenrankError(f"[pairs]: {quoted(other)} is no word of the lexicon")
        if group == of:
            raise EvenrankError(f"[pairs]: {quoted(word)} and {quoted(other)} are both of the group {group}")


def check_neutral(neutral: Replacements, entries: Entries) -> None:
    """Raises EvenrankError unless each word is an entry, once, and becomes a text without an entry."""
    _check_words("neutral", neutral, entries)
    lengths, firsts = sorted({len(entry) for entry in entries}), {entry[0] for entry in entries}
    for _, other in neutral:
        tokens = tokenize(other)
        if not tokens:
            raise EvenrankError(f"[neutral]: {quoted(other)} contains no word")
        if len(tokens) > MOST_WORDS:
            detail = f"found {len(tokens):,}: {quoted(other)}"
            raise EvenrankError(f"[neutral]: expected at most {MOST_WORDS} words, {detail}")
        for start in (place for place, token in enumerate(tokens) if token in firsts):
            for end in (start + length for length in lengths):
                if (group := entries.get(tuple(tokens[start:end]))) is not None:
                    entry = " ".join(tokens[start:end])
                    raise EvenrankError(f"[neutral]: {quoted(other)} is not neutral, {entry} is of the group {group}")


def _check_words(table: str, replacements: Replacements, entries: Entries) -> None:
    seen = set()
    for word, _ in replacements:
        key = tuple(tokenize(word))
        if key not in entries:
            raise EvenrankError(f"[{table}]: {quoted(word)} is no word of the lexicon")
        if key in seen:
            raise EvenrankError(f"[{table}]: {quoted(word)} is there twice")
        seen.add(key)


_KEYS = ("name", "groups", "poles", "shares", "words", "pairs", "neutral")
_NOTES = ("language", "about", "misses")


@checked
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
            if len(key) > MOST_WORDS:
                detail = f"found {len(key):,}: {quoted(word)}"
                raise EvenrankError(f"lexicon {self.name}: expected entries of at most {MOST_WORDS} words, {detail}")
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


LexiconLike = PathLike | Lexicon | Mapping[str, Iterable[str]]
"""A built-in lexicon's name, a file (``word,group`` lines, or TOML), a :class:`Lexicon`, or ``{group: words}``."""


@checked
def load_lexicon(lexicon: LexiconLike | None = None, *, poles: str | None = None) -> Lexicon:
    """A lexicon from any of its forms (:data:`evenrank.groups.LexiconLike`); by default ``gender-en``.

    >>> load_lexicon({"f": ["she", "her"], "m": ["he", "him", "his"]})
    Lexicon(in memory: words 2 f, 3 m)

    Raises InputError, with the line where there is one, for a line that is no ``word,group``, a word in two groups, an
    entry of more than 32 words, fewer than two groups, or shares that do not sum to 1.
    """
    return _found("gender-en" if lexicon is None else lexicon).with_poles(poles)


def _found(source: LexiconLike) -> Lexicon:
    if isinstance(source, Lexicon):
        return source
    if isinstance(source, Mapping):
        words = {group: [words] if isinstance(words, str) else list(words) for group, words in source.items()}
        return _of_table(arg.lexicon, {"name": "in memory", "words": words})
    name = os.fspath(source)
    if name in builtin_lexicons():
        return _built_in(name)
    if not os.path.exists(name):
        raise EvenrankError(
            f"{arg.lexicon}: no file and no built-in lexicon {quoted(name)} (built in: {', '.join(builtin_lexicons())})"
        )
    return _from_toml(Path(name)) if name.endswith(".toml") else _from_lines(name)


@functools.cache
def _built_in(name: str) -> Lexicon:
    with resources.as_file(resources.files(__package__) / "lexicons" / f"{name}.toml") as path:
        return _from_toml(path)


def note_lexicon(made: Provenance, lexicon: LexiconLike | None) -> None:
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
            if not words and content.count(",") > 1:
                columns = content.count(",") + 1
                raise InputError(path, f"expected word,group, found {columns} columns: {quoted(content)}", line=line)
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
    table: dict[str, list[str]] = {}
    for word, group in words:
        table.setdefault(group, []).append(word)
    return _of_table(path, {"name": readable(Path(path).stem), "words": table}, words)


def _from_toml(path: Path) -> Lexicon:
    try:
        data = parsed_toml(b"".join(block.data for block in line_blocks(path)).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid TOML: {error}") from None
    return _of_table(path, {"name": readable(path.stem), **data})


def _of_table(path: PathLike, data: Mapping[str, Any], words: list[tuple[str, str]] | None = None) -> Lexicon:
    """``words``: all of them in their order, if that is not by group."""
    unknown = data.keys() - {*_KEYS, *_NOTES}
    if unknown:
        raise InputError(path, f"unknown key {quoted(min(unknown))} (allowed: {', '.join((*_KEYS, *_NOTES))})")
    table = data.get("words")
    if not isinstance(table, dict) or not all(
        isinstance(entries, list) and all(isinstance(entry, str) for entry in entries) for entries in table.values()
    ):
        raise InputError(path, "expected a table [words] with a list of words for each group")
    name, shares = data["name"], data.get("shares")
    groups, poles = (
        _texts(path, key, data.get(key, default)) for key, default in (("groups", sorted(table)), ("poles", []))
    )
    notes = {key: data.get(key, "") for key in _NOTES}
    for key, text in {"name": name, **notes}.items():
        if not isinstance(text, str):
            raise InputError(path, f"expected a text as {key}, found {quoted(text)}")
    shares = dict.fromkeys(groups, 1 / max(1, len(groups))) if shares is None else shares
    numbers: list[Any] = [*shares.values()] if isinstance(shares, dict) else [None]
    # A whole number of TOML may have any size.
    if not all(type(share) in (int, float) and abs(share) < 1e300 for share in numbers):
        raise InputError(path, "expected a table [shares] with a number for each group")
    if sorted(groups) != sorted(table):
        raise InputError(path, f"groups names {', '.join(groups)}, [words] has {', '.join(table)}")
    if len(groups) < 2:
        raise InputError(path, f"expected at least two groups, found {', '.join(groups) or 'none'}")
    if REST in groups:
        raise InputError(path, f"no group may be named {REST!r}: it stands for all the others")
    if set(shares) != set(groups):
        raise InputError(path, f"[shares] names {', '.join(shares)}, the groups are {', '.join(groups)}")
    if not (min(numbers) >= 0 and abs(sum(numbers) - 1) <= 1e-9):
        raise InputError(path, f"the target shares must sum to 1, they sum to {sum(numbers):g}")
    between, assumed = named_poles(groups if "groups" in data else tuple(table))
    try:
        lexicon = Lexicon(
            name,
            groups,
            tuple(words or [(word, group) for group in groups for word in table[group]]),
            tuple(float(shares[group]) for group in groups),
            between,
            assumed and not poles,
            pairs=pairs_of(data.get("pairs", {})),
            neutral=neutral_of(data.get("neutral", {})),
            **notes,
        )
        lexicon.entries("word")
        return lexicon.with_poles(",".join(poles) if poles else None)
    except EvenrankError as error:
        raise InputError(path, str(error)) from None


def _texts(path: PathLike, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(path, f"expected a list of texts as {key}, found {quoted(value)}")
    return tuple(value)


EntriesByFirst = dict[str, list[tuple[tuple[str, ...], int, int]]]


@functools.lru_cache(maxsize=8)
def entries_by_first(lexicon: Lexicon, tokens: Tokens) -> EntriesByFirst:
    """By its first token, each entry with its number and its group's: longest first."""
    by_first: EntriesByFirst = {}
    for number, (key, group) in enumerate(lexicon.entries(tokens).items()):
        by_first.setdefault(key[0], []).append((key, number, lexicon.groups.index(group)))
    for entries in by_first.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return by_first


def find_entries(words: Sequence[str], entries: EntriesByFirst) -> Iterator[tuple[int, int, int, int]]:
    """Where entries are met from left to right, without overlap: first word, end, the entry's number, its group's."""
    end = 0
    for place, word in enumerate(words):
        if word not in entries or place < end:
            continue
        for key, number, group in entries[word]:
            if len(key) == 1 or tuple(words[place : place + len(key)]) == key:
                end = place + len(key)
                yield place, end, number, group
                break


@functools.lru_cache(maxsize=8)
def matcher_of(lexicon: Lexicon, tokens: Tokens) -> tuple[Array, ...]:
    """A lexicon as the arrays that the kernel reads: token table, trie of entries, group of each."""
    entries = lexicon.entries(tokens)
    token_ids: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    node_entry = [-1]
    entry_group = []
    for number, (key, group) in enumerate(entries.items()):
        node = 0
        for token in key:
            edge = (node, token_ids.setdefault(token, len(token_ids)))
            if edge not in nodes:
                nodes[edge] = len(node_entry)
                node_entry.append(-1)
            node = nodes[edge]
        node_entry[node] = number
        entry_group.append(lexicon.groups.index(group))
    # 64 bits stand for the token: of a few thousand tokens two have the same hash with a chance of about 1e-16.
    token_hashes = {fnv(map(ord, token)): number for token, number in token_ids.items()}
    edge_hashes = {fnv([(node << 32) | token]): child for (node, token), child in nodes.items()}
    return (
        *_hash_table(token_hashes),
        np.array([nodes.get((0, token), -1) for token in range(len(token_ids))], dtype=np.int32),
        *_hash_table(edge_hashes),
        np.array(node_entry, dtype=np.int32),
        np.array(entry_group, dtype=np.int32),
    )


def _hash_table(items: dict[int, int]) -> tuple[Array, Array]:
    """Open addressing at a quarter full at most: keys [2^n] uint64 and values [2^n] int32, −1 where empty."""
    size = 1 << max(4, (4 * len(items)).bit_length())
    keys = np.zeros(size, dtype=np.uint64)
    slots = np.full(size, -1, dtype=np.int32)
    for key, value in items.items():
        place = (key ^ (key >> 29)) & (size - 1)
        while slots[place] >= 0:
            place = (place + 1) & (size - 1)
        keys[place], slots[place] = key, value
    return keys, slots
