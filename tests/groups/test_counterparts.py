"""The counterparts of a lexicon's words: what its TOML says, and each mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.files import EvenrankError, InputError
from evenrank.files.errors import quoted
from evenrank.files.tokens import tokenize
from evenrank.groups import Lexicon, builtin_lexicons, load_lexicon

WORDS = """\
[words]
f = ["she", "mom", "mum", "ex-wife", "first lady"]
m = ["he", "dad", "ex-husband"]
"""


def test_pairs_and_neutral_words_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text(
        f'{WORDS}[pairs]\nhe = "she"\ndad = ["mom", "mum"]\n"ex husband" = "Ex-Wife"\n'
        '[neutral]\nthey = ["she", "he"]\n"some one" = "first lady"\n'
    )
    lexicon = load_lexicon(path)
    assert lexicon.pairs == (
        ("he", "she"), ("she", "he"), ("dad", "mom"), ("mom", "dad"), ("mum", "dad"),
        ("ex husband", "Ex-Wife"), ("Ex-Wife", "ex husband"),
    )  # fmt: skip
    assert lexicon.neutral == (("she", "they"), ("he", "they"), ("first lady", "some one"))
    assert hash(lexicon) == hash(load_lexicon(path))
    path.write_text(WORDS)
    assert load_lexicon(path).pairs == load_lexicon(path).neutral == ()
    assert load_lexicon(path) != lexicon


A_LIST = "with a word or a list of words for each"
MISTAKES = [
    ("[pairs]\nhe = 1\n", f"expected a table [pairs] {A_LIST} word"),
    ("[pairs]\nhe = []\n", f"expected a table [pairs] {A_LIST} word"),
    ("[pairs]\nhe = ['she', 1]\n", f"expected a table [pairs] {A_LIST} word"),
    ("[neutral]\nthey = 1\n", f"expected a table [neutral] {A_LIST} neutral word"),
    ("[pairs]\nhe = 'actor'\n", "[pairs]: 'actor' is no word of the lexicon"),
    ("[pairs]\nactor = 'she'\n", "[pairs]: 'actor' is no word of the lexicon"),
    ("[pairs]\ndad = ['mom', 'he']\n", "[pairs]: 'he' and 'dad' are both of the group m"),
    ("[pairs]\nhe = 'she'\nHe = 'mom'\n", "[pairs]: 'He' is there twice"),
    ("[pairs]\nhe = 'she'\nshe = 'he'\n", "[pairs]: 'she' is there twice"),
    ("[pairs]\nhe = ['she', 'she']\n", "[pairs]: 'she' is there twice"),
    ("[neutral]\nthey = 'actor'\n", "[neutral]: 'actor' is no word of the lexicon"),
    ("[neutral]\nthey = ['she', 'SHE']\n", "[neutral]: 'SHE' is there twice"),
    (
        "[neutral]\n'the first lady' = 'she'\n",
        "[neutral]: 'the first lady' is not neutral, first lady is of the group f",
    ),
    ("[neutral]\n'-' = 'she'\n", "[neutral]: '-' contains no word"),
    (f"[neutral]\n'{'a ' * 33}' = 'she'\n", f"[neutral]: expected at most 32 words, found 33: {quoted('a ' * 33)}"),
]


@pytest.mark.parametrize(
    ("content", "message"),
    [(WORDS + content, message) for content, message in MISTAKES]
    + [(f"pairs = 1\n{WORDS}", f"expected a table [pairs] {A_LIST} word")],
)
def test_mistakes(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.toml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value) == f"{path}: {message}"


def test_pairs_of_a_lexicon_made_by_hand() -> None:
    by_hand = ("mine", ("f", "m"), (("she", "f"), ("he", "m")), (0.5, 0.5), ("m", "f"))
    assert Lexicon(*by_hand, pairs=(("she", "he"),)).pairs == (("she", "he"),)
    for table, pair in (("pairs", ("she", "her")), ("neutral", ("her", "they"))):
        with pytest.raises(EvenrankError, match=rf"\[{table}\]: 'her' is no word of the lexicon"):
            Lexicon(*by_hand, **{table: (pair,)})  # type: ignore[arg-type]


def test_built_in_counterparts() -> None:
    """Only gender-en has them: other languages need more than words (die Lehrerin), other groups have no pairs."""
    assert [name for name in builtin_lexicons() if load_lexicon(name).pairs] == ["gender-en"]
    assert [name for name in builtin_lexicons() if load_lexicon(name).neutral] == ["gender-en"]
    lexicon = load_lexicon("gender-en")
    pairs, neutral, groups = dict(lexicon.pairs), dict(lexicon.neutral), lexicon.entries("word")
    assert all(groups[tuple(tokenize(a))] != groups[tuple(tokenize(b))] for a, b in pairs.items())
    one_way = [word for word, other in pairs.items() if pairs[other] != word]
    assert sorted(one_way) == [
        "auntie", "aunties", "bloke", "blokes", "chap", "chaps", "fiancee", "friar", "friars", "grandad", "guy", "guys",
        "lord", "lords", "ma'am", "mademoiselle", "miss", "ms", "mum", "mummy", "mums", "nana",
    ]  # fmt: skip
    # What both words of a pair become is the same, so that a swap does not change it.
    apart = {word for word, other in pairs.items() if neutral.get(word) != neutral.get(other)}
    assert apart == {"bloke", "blokes", "chap", "chaps", "guy", "guys", "lord", "lords"}
