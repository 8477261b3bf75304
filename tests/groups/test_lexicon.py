"""Lexicons: their two forms, read as they stand or refused, their poles, counterparts and mistakes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from as_they_stand import BLANK, FIELDS, PACKED, Packing, Wrong, check_against, filled, lines_of_text
from evenrank.files import EvenrankError, InputError
from evenrank.files.errors import quoted
from evenrank.files.tokens import tokenize
from evenrank.groups import Lexicon, Scoring, load_lexicon, score_texts

TOML = """\
name = "ages"
groups = ["young", "old", "other"]
poles = ["young", "old"]
[shares]
young = 0.5
old = 0.25
other = 0.25
[words]
old = ["old", "grandparent"]
young = ["young", "kid"]
other = ["adult"]
"""


def test_lexicon_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text(TOML)
    lexicon = load_lexicon(path)
    assert (lexicon.name, lexicon.groups) == ("ages", ("young", "old", "other"))
    assert (lexicon.shares, lexicon.poles) == ((0.5, 0.25, 0.25), ("young", "old"))
    assert lexicon.words[0] == ("young", "young")
    assert lexicon.entries("word")[("grandparent",)] == "old"
    assert load_lexicon(path, poles="other,rest").poles == ("other", "rest")


WORDS = """\
[words]
f = ["she", "mom", "mum", "ex-wife", "first lady"]
m = ["he", "dad", "ex-husband"]
"""
A_LIST = "with a word or a list of words for each"
IN_PAIRS = [
    ("[pairs]\nhe = []\n", f"expected a table [pairs] {A_LIST} word"),
    ("[pairs]\nhe = ['she', 1]\n", f"expected a table [pairs] {A_LIST} word"),
    ("[neutral]\nthey = 1\n", f"expected a table [neutral] {A_LIST} neutral word"),
    ("[pairs]\nhe = 'actor'\n", "[pairs]: 'actor' is no word of the lexicon"),
    ("[pairs]\ndad = ['mom', 'he']\n", "[pairs]: 'he' and 'dad' are both of the group m"),
    ("[pairs]\nhe = 'she'\nshe = 'he'\n", "[pairs]: 'she' is there twice"),
    ("[neutral]\nthey = 'actor'\n", "[neutral]: 'actor' is no word of the lexicon"),
    ("[neutral]\nthey = ['she', 'SHE']\n", "[neutral]: 'SHE' is there twice"),
    (
        "[neutral]\n'the first lady' = 'she'\n",
        "[neutral]: 'the first lady' is not neutral, first lady is of the group f",
    ),
    ("[neutral]\n'-' = 'she'\n", "[neutral]: '-' contains no word"),
    (f"[neutral]\n'{'a ' * 33}' = 'she'\n", f"[neutral]: expected at most 32 words, found 33: {quoted('a ' * 33)}"),
]
TWO = '[words]\nf = ["she"]\nm = ["he"]\n'
LINES, LISTS = "expected word,group, found ", "expected a table [words] with a list of words for each group"
SHARES, ONE_TABLE = "the target shares must sum to 1", "cannot be in one group table: both "
MISTAKES: list[tuple[str, str, str]] = [
    *((".csv", content, message) for content, message in [
        ("she,f\nhe,m\nthey\n", f", line 3: {LINES}'they'"),
        ("query_id,doc_id,score\nq1,d1,2\n", f", line 1: {LINES}3 columns: 'query_id,doc_id,score'"),
        ("she,f\nhe,\n", f", line 2: {LINES}'he,'"),
        ("she,f\n\nhe,m\nShe,m\n", ", line 4: 'She' is in two groups, f (line 1) and m"),
        ("she,f\n...,m\n", ", line 2: the entry '...' contains no word"),
        (f"she,f\n{'a ' * 33},m\n", ": lexicon words: expected entries of at most 32 words, found 33: 'a a "),
        ("she,f\nher,f\n", ": expected at least two groups, found f"),
        ("she,f\nthey,rest\n", ": no group may be named 'rest'"),
        ("she,f\nh\udcffe,m\n", ", line 2: expected UTF-8, found the byte 0xff"),
        ("", ": the file is empty"),
    ]),
    *((".toml", content, message) for content, message in [
        ('[words]\nf = ["she", "x"]\nm = ["X"]\n', ": lexicon words: 'X' is in two groups, f and m"),
        ('name = "x"\n', f": {LISTS}"),
        ("[words]\nf = [1]\nm = []\n", f": {LISTS}"),
        ("words = [\n", ": no valid TOML: "),
        ('[words]\nf = ["\udce4"]\n', ", line 2: expected UTF-8, found the byte 0xe4 (save the file as UTF-8)"),
        (f"colour = 1\n{TWO}", ": unknown key 'colour' (allowed: name, groups, poles, shares, words, pairs, neutral, "
         "language, about, misses)"),
        (f"[shares]\nf = 0.5\nm = 0.4\n{TWO}", f": {SHARES}, they sum to 0.9"),
        (f"[shares]\nf = -0.5\nm = 1.5\n{TWO}", f": {SHARES}"),
        (f"[shares]\nf = 1{'0' * 400}\nm = 1.0\n{TWO}", ": expected a table [shares] with a number for each group"),
        (f"[shares]\nf = 1.0\n{TWO}", ": [shares] names f, the groups are f, m"),
        (f"[shares]\nf = 'half'\nm = 0.5\n{TWO}", ": expected a table [shares] with a number for each group"),
        ('[words]\nx = ["she"]\nliteral_x = ["he"]\n', f": the groups 'literal_x' and 'x' {ONE_TABLE}"),
        (f'groups = ["f", "m", "x"]\n{TWO}', ": groups names f, m, x, [words] has f, m"),
        (f"groups = [1, 2]\n{TWO}", ": expected a list of texts as groups, found '[1, 2]'"),
        (f"name = 1\n{TWO}", ": expected a text as name, found '1'"),
        ("", ": the file is empty"),
        (f"pairs = 1\n{WORDS}", f": expected a table [pairs] {A_LIST} word"),
        *((WORDS + content, f": {message}") for content, message in IN_PAIRS),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "message"), MISTAKES)
def test_mistakes(tmp_path: Path, suffix: str, content: str, message: str) -> None:
    path = tmp_path / f"words{suffix}"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_no_such_lexicon(tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=r"no file and no built-in lexicon 'gender-xx' \(built in: .*gender-en"):
        load_lexicon("gender-xx")
    (tmp_path / "x.toml").mkdir()
    for folder in (tmp_path, tmp_path / "x.toml"):
        with pytest.raises(InputError, match="Is a directory"):
            load_lexicon(folder)
    by_hand = Lexicon("mine", ("f", "m"), (("she", "f"), ("SHE", "m")), (0.5, 0.5), None)
    with pytest.raises(EvenrankError, match="lexicon mine: 'SHE' is in two groups, f and m"):
        score_texts(pl.DataFrame({"doc_id": ["1"], "text": ["she"]}), Scoring(by_hand))


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


def test_pairs_of_a_lexicon_made_by_hand() -> None:
    by_hand = ("mine", ("f", "m"), (("she", "f"), ("he", "m")), (0.5, 0.5), ("m", "f"))
    assert Lexicon(*by_hand, pairs=(("she", "he"),)).pairs == (("she", "he"),)
    for table, pair in (("pairs", ("she", "her")), ("neutral", ("her", "they"))):
        with pytest.raises(EvenrankError, match=rf"\[{table}\]: 'her' is no word of the lexicon"):
            Lexicon(*by_hand, **{table: (pair,)})  # type: ignore[arg-type]


def slow_lexicon(content: bytes) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    groups: dict[tuple[str, ...], str] = {}
    for line in filled(lines_of_text(content)):
        word, _, group = (part.strip() for part in line.rpartition(","))
        key = tuple(tokenize(word))
        if not key or not group or group == "rest" or groups.setdefault(key, group) != group:
            raise Wrong
        rows.append((word, group))
    if len({group for _, group in rows}) < 2:
        raise Wrong
    return rows


entries = st.lists(
    st.one_of(
        st.builds("{}{}{}".format, FIELDS, st.sampled_from([",", ",", " , ", ""]), st.sampled_from(["f", "m", "é"])),
        st.builds("w{},{}".format, st.integers(0, 99), st.sampled_from(["f", "m", "x", "rest", "<b>", ""])),
        BLANK,
    ),
    max_size=6,
)


@given(entries, PACKED)
def test_lexicons_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    check_against(slow_lexicon, lambda path: list(load_lexicon(path).words), place / "lexicon", lines, packing)
