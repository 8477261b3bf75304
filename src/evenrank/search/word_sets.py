"""The word sets of debiasing: built-in ones, and those of JSON files."""

from __future__ import annotations

import functools
import json
import os
import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from evenrank.files import InputError
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.reading import line_blocks
from evenrank.models.vectors import Sets


@dataclass(frozen=True, slots=True)
class WordSets:
    """The word sets for debiasing and evaluating vectors of a language.

    ``definitional`` sets define the bias (one word per group, groups in the same order), words of an ``equalize`` set
    differ in the group only (pairs in that order too), ``specific`` words keep their group. ``occupations`` say nothing
    about who does them; ``analogies`` are (a, b, c).
    """

    name: str
    definitional: Sets
    equalize: Sets
    specific: tuple[str, ...]
    occupations: tuple[str, ...] = ()
    analogies: Sets = ()


@functools.cache
def gender_en() -> WordSets:
    """The built-in English gender sets; in each pair the female word comes first."""
    data = tomllib.loads((resources.files(__package__) / "gender_en.toml").read_text(encoding="utf-8"))
    equalize = _tuples(data["equalize"])
    definitional = _tuples(data["definitional"])
    named = dict.fromkeys([*(word for of in (*definitional, *equalize) for word in of), *data["specific"]])
    return WordSets(
        data["name"],
        definitional,
        equalize,
        tuple(named),
        tuple(data["occupations"]),
        _tuples(data["analogies"]),
    )


def _tuples(sets: list[list[str]]) -> Sets:
    return tuple(tuple(words) for words in sets)


@checked
def load_word_sets(
    definitional: str | os.PathLike[str] | None = None,
    equalize: str | os.PathLike[str] | None = None,
    specific: str | os.PathLike[str] | None = None,
) -> WordSets:
    """The built-in sets, replaced by those of JSON files (:func:`read_sets`, :func:`read_word_list`) if given.

    Which group a list of pairs to equalise names first is known by the pairs that are definitional sets too, in either
    order; a list that names the other group first is turned round. Raises InputError where these pairs disagree.
    """
    sets = gender_en()
    if definitional is not None:
        sets = replace(sets, definitional=read_sets(definitional))
    if equalize is not None:
        sets = replace(sets, equalize=_turned(read_sets(equalize), sets.definitional, equalize))
    return sets if specific is None else replace(sets, specific=read_word_list(specific))


def _turned(pairs: Sets, definitional: Sets, path: str | os.PathLike[str]) -> Sets:
    """The sets with the words of a pair in the groups' order of the definitional sets."""
    ways = {of: tuple(word.lower() for word in of) for of in pairs if len(of) == 2}
    as_defined = [of for of, words in ways.items() if words in definitional]
    turned = [of for of, words in ways.items() if words[::-1] in definitional]
    if as_defined and turned:
        example = " and ".join(quoted(", ".join(of)) for of in (as_defined[0], turned[0]))
        raise InputError(path, f"expected the same group first in every pair, found {example}")
    return tuple(of[::-1] if turned and len(of) == 2 else of for of in pairs)


@checked
def read_sets(path: str | os.PathLike[str]) -> Sets:
    """Sets of two or more words from JSON, ``[["she", "he"], …]``, the format of the public lists.

    Raises InputError for anything else, for a set of fewer than two words and for a word that is repeated in its set.
    """
    sets = []
    for number, words in enumerate(_list(path, "a list of lists of words"), 1):
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise InputError(path, f"set {number}: expected a list of words, found {quoted(json.dumps(words))}")
        if len(words) < 2:
            raise InputError(path, f"set {number}: expected two words or more, found {len(words)}")
        if len(set(words)) < len(words):
            raise InputError(path, f"set {number}: a word is repeated in {quoted(json.dumps(words))}")
        sets.append(tuple(words))
    return tuple(sets)


@checked
def read_word_list(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Words from JSON, ``["actress", "aunt", …]``. Raises InputError for anything else."""
    words = []
    for number, word in enumerate(_list(path, "a list of words"), 1):
        if not isinstance(word, str) or not word:
            raise InputError(path, f"entry {number}: expected a word, found {quoted(json.dumps(word))}")
        words.append(word)
    return tuple(words)


def _list(path: str | os.PathLike[str], expected: str) -> list[object]:
    text = b"".join(block.data for block in line_blocks(Path(path))).decode()
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(path, f"invalid JSON: {error.msg}", line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"invalid JSON: {error}") from None
    if not isinstance(data, list):
        raise InputError(path, f"expected {expected}, found {quoted(text.strip())}")
    if not data:
        raise InputError(path, f"expected {expected}, found an empty list")
    return data
