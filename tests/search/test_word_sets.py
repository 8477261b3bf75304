"""Word sets: those built in, public ones, files, and specific words that are learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evenrank.files import InputError
from evenrank.search.embeddings import Vectors, gender_en, hard_debias, load_word_sets, read_sets, read_word_list


def test_built_in_sets() -> None:
    sets = gender_en()
    of_pairs = [word for pair in (*sets.definitional, *sets.equalize) for word in pair]
    assert set(of_pairs) <= set(sets.specific)
    assert all(len(set(pair)) == 2 for pair in (*sets.definitional, *sets.equalize))
    # A word stands in one pair, so that all can be equalised at once.
    equalized = [word for pair in sets.equalize for word in pair]
    assert len(set(equalized)) == len(equalized)
    assert set(sets.occupations).isdisjoint(sets.specific)


def test_public_sets(shared_data: Path) -> None:
    folder = shared_data / "embeddings"
    definitional, equalize = (read_sets(folder / f"{name}_pairs.json") for name in ("definitional", "equalize"))
    specific = read_word_list(folder / "gender_specific_seed.json")
    assert (len(definitional), len(equalize), len(specific)) == (10, 52, 218)
    words = sorted({form(word) for of in (*definitional, *equalize) for word in of for form in (str, str.title)})
    words += ["nurse", "Men", "actress"]
    vectors = Vectors(tuple(words), np.random.default_rng(0).normal(size=(len(words), 20)).astype(np.float32))
    found = hard_debias(vectors, definitional, equalize, specific)
    assert found.check.holds()
    assert not found.neutral[-1]
    equalized = {tuple(vectors.words[row] for row in of) for of in found.equalized}
    assert {("he", "she"), ("He", "She"), ("Men", "Women")} <= equalized


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_sets, '[["a", "b"],\n["c", ]]', "line 2: invalid JSON"),
        (read_sets, '{"a": 1}', "expected a list of lists of words, found"),
        (read_sets, "[]", "found an empty list"),
        (read_sets, '[["a", "b"], ["c"]]', "set 2: expected two words or more, found 1"),
        (read_sets, '["ab", "cd"]', "set 1: expected a list of words"),
        (read_sets, '[["a", 1]]', "set 1: expected a list of words"),
        (read_sets, '[["a", "a"]]', "set 1: a word is repeated"),
        (read_word_list, '["a", ["b"]]', "entry 2: expected a word"),
        (read_word_list, "", "the file is empty"),
    ],
)
def test_bad_word_files(read: Callable[[Path], object], content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(InputError) as error:
        read(tmp_path / "f.json")
    assert str(error.value).startswith(str(tmp_path / "f.json"))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_pairs_take_the_order_of_the_definitional_sets(tmp_path: Path) -> None:
    """Which group a list names first, it says by the pairs that are definitional too."""
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps([["she", "he"], ["a", "b", "ç"]]))
    assert read_sets(file) == (("she", "he"), ("a", "b", "ç"))
    file.write_text(json.dumps([["Man", "Woman"], ["monk", "nun"], ["a", "b", "c"]]), encoding="utf-8")
    assert load_word_sets(equalize=file).equalize == (("Woman", "Man"), ("nun", "monk"), ("a", "b", "c"))
    file.write_text(json.dumps([["woman", "man"], ["nun", "monk"]]), encoding="utf-8")
    assert load_word_sets(equalize=file).equalize == (("woman", "man"), ("nun", "monk"))
    file.write_text(json.dumps([["woman", "man"], ["he", "she"]]), encoding="utf-8")
    with pytest.raises(InputError, match="the same group first in every pair, found 'woman, man' and 'he, she'"):
        load_word_sets(equalize=file)
