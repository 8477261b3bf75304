"""The word sets of debiasing: those that come with evenrank, and those of a user's JSON files."""

from __future__ import annotations

import functools
import json
import os
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evenrank.io import InputError
from evenrank.io.errors import shown
from evenrank.io.files import line_blocks

Sets = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class AssociationTest:
    """Two sets of targets ``x``, ``y`` and two of attributes ``a``, ``b``."""

    name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordSets:
    """What debiasing and looking at what remains need to know of a language.

    ``definitional`` sets define the bias (one word a group, the groups in the same order), ``equalize`` sets differ in
    nothing but the group, ``specific`` words keep their group. ``occupations``, ``analogies`` (a, b, c), ``neighbours``
    and ``associations`` are for :func:`evenrank.embeddings.remains`.
    """

    name: str
    definitional: Sets
    equalize: Sets
    specific: tuple[str, ...]
    occupations: tuple[str, ...] = ()
    analogies: Sets = ()
    neighbours: tuple[str, ...] = ()
    associations: tuple[AssociationTest, ...] = ()


@functools.cache
def gender_en() -> WordSets:
    """The English gender sets that come with evenrank; in each pair the female word stands first."""
    data = tomllib.loads((resources.files(__package__) / "gender_en.toml").read_text(encoding="utf-8"))
    equalize = _tuples(data["equalize"])
    definitional = _tuples(data["definitional"])
    named = dict.fromkeys([*(word for of in (*definitional, *equalize) for word in of), *data["specific"]])
    tests = (
        AssociationTest(test.pop("name"), **{key: tuple(test[key]) for key in test}) for test in data["associations"]
    )
    return WordSets(
        data["name"],
        definitional,
        equalize,
        tuple(named),
        tuple(data["occupations"]),
        _tuples(data["analogies"]),
        tuple(data["neighbours"]),
        tuple(tests),
    )


def _tuples(sets: list[list[str]]) -> Sets:
    return tuple(tuple(words) for words in sets)


def read_sets(path: str | os.PathLike[str]) -> Sets:
    """Sets of two or more words from JSON, ``[["she", "he"], …]``, the form of the public lists.

    Raises InputError where the file is something else, for a set of fewer than two words and for a word that stands
    twice in its set.
    """
    found = []
    for number, words in enumerate(_list(path, "a list of lists of words"), 1):
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise InputError(path, f"set {number}: expected a list of words, found {shown(json.dumps(words))}")
        if len(words) < 2:
            raise InputError(path, f"set {number}: expected two words or more, found {len(words)}")
        if len(set(words)) < len(words):
            raise InputError(path, f"set {number}: a word stands twice in {shown(json.dumps(words))}")
        found.append(tuple(words))
    return tuple(found)


def read_word_list(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Words from JSON, ``["actress", "aunt", …]``. Raises InputError where the file is something else."""
    words = _list(path, "a list of words")
    for number, word in enumerate(words, 1):
        if not isinstance(word, str) or not word:
            raise InputError(path, f"entry {number}: expected a word, found {shown(json.dumps(word))}")
    return tuple(words)


def _list(path: str | os.PathLike[str], expected: str) -> list[Any]:
    text = b"".join(block.data for block in line_blocks(Path(path))).decode()
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(path, f"no valid JSON: {error.msg}", line=error.lineno) from None
    except UnicodeEncodeError:
        raise InputError(path, "expected Unicode, found half a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid JSON: {error}") from None
    if not isinstance(data, list):
        raise InputError(path, f"expected {expected}, found {shown(text.strip())}")
    if not data:
        raise InputError(path, f"expected {expected}, found an empty list")
    return data
