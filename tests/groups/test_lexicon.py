"""Lexicons: their two forms, their poles and their mistakes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError
from evenrank.groups import Lexicon, Scoring, load_lexicon, score_texts
from evenrank.groups.scoring import sides_of_texts
from slow_groups import lexicon_of


def test_lexicon_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("\ufeffWord,Group\r\nshe,f\r\n\r\n Her Majesty , f\nhe,m\nshe,f\nhe, too,m")
    lexicon = load_lexicon(path)
    assert (lexicon.name, lexicon.groups, lexicon.shares) == ("words", ("f", "m"), (0.5, 0.5))
    assert lexicon.entries("word") == {("she",): "f", ("her", "majesty"): "f", ("he",): "m", ("he", "too"): "m"}
    assert lexicon.entries("whitespace") == {("she",): "f", ("he",): "m"}


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
    path.write_text('[words]\nb = ["x"]\na = ["y"]\nc = []\n')
    plain = load_lexicon(path)
    assert (plain.name, plain.groups, plain.poles) == ("words", ("a", "b", "c"), None)
    assert plain.shares == (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.parametrize(
    ("name", "text", "poles", "assumed"),
    [
        ("l.csv", "she,f\nhe,m\n", ("m", "f"), False),
        # Other groups take the order of the file.
        ("l.csv", "word,group\nyoung,young\nteenager,young\nold,old\n", ("young", "old"), True),
        ("l.csv", "old,old\nteenager,young\nyoung,young\n", ("old", "young"), True),
        ("l.toml", '[words]\nyoung = ["young"]\nold = ["old"]\n', ("young", "old"), True),
        ("l.toml", 'groups = ["old", "young"]\n[words]\nyoung = ["young"]\nold = ["old"]\n', ("old", "young"), True),
    ],
)
def test_poles_of_two_groups(tmp_path: Path, name: str, text: str, poles: tuple[str, str], assumed: bool) -> None:
    (tmp_path / name).write_text(text)
    lexicon = load_lexicon(tmp_path / name)
    assert (lexicon.poles, lexicon.poles_assumed) == (poles, assumed)
    assert lexicon.with_poles(f"{poles[1]},rest").poles_assumed is False


THREE = lexicon_of({"x": "a", "y": "b", "z": "c"})


def test_poles() -> None:
    for poles, expected in ((None, None), ("a,b", ("a", "b")), (" c , a ", ("c", "a")), ("b,rest", ("b", "rest"))):
        assert (THREE.with_poles(poles).poles, THREE.with_poles(poles).words) == (expected, THREE.words)


@pytest.mark.parametrize("poles", ["a", "a,b,c", "a,a", "a,d", "d,a", "rest,a", "rest,rest", ",", ""])
def test_poles_that_are_none(poles: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        THREE.with_poles(poles)
    assert str(caught.value) == f"`poles`: expected two of a, b, c, rest (rest second), found {poles!r}"


def test_the_side_of_a_document_is_that_of_the_pole_with_more_words() -> None:
    texts = pl.Series(["he and his brother", "she met him and her aunt", "nobody", "he or she"])
    assert sides_of_texts(texts, Scoring(load_lexicon("gender-en"))).tolist() == [1, -1, 0, 0]


TWO = '[words]\nf = ["she"]\nm = ["he"]\n'
LINES, LISTS = "expected word,group, found ", "expected a table [words] with a list of words for each group"
SHARES, ONE_TABLE = "the target shares must sum to 1", "cannot be in one group table: both "
MISTAKES: list[tuple[str, str, str]] = [
    *((".csv", content, message) for content, message in [
        ("she,f\nhe,m\nthey\n", f", line 3: {LINES}'they'"),
        ("query_id,doc_id,score\nq1,d1,2\n", f", line 1: {LINES}3 columns: 'query_id,doc_id,score'"),
        ("she,f\nhe,\n", f", line 2: {LINES}'he,'"),
        ("she,f\n,m\n", f", line 2: {LINES}',m'"),
        ("she,f\n\nhe,m\nShe,m\n", ", line 4: 'She' is in two groups, f (line 1) and m"),
        ("she,f\nshe's,m\n", ", line 2: \"she's\" is in two groups, f (line 1) and m"),
        ("she,f\n...,m\n", ", line 2: the entry '...' contains no word"),
        (f"she,f\n{'a ' * 33},m\n", ": lexicon words: expected entries of at most 32 words, found 33: 'a a "),
        ("she,f\nher,f\n", ": expected at least two groups, found f"),
        ("word,group\n", ": expected at least two groups, found none"),
        ("she,f\nthey,rest\n", ": no group may be named 'rest'"),
        ("she,f\nh\udcffe,m\n", ", line 2: expected UTF-8, found the byte 0xff"),
        ("", ": the file is empty"),
    ]),
    *((".toml", content, message) for content, message in [
        ('[words]\nf = ["she", "x"]\nm = ["X"]\n', ": lexicon words: 'X' is in two groups, f and m"),
        ('[words]\nf = ["she"]\nm = ["-"]\n', ": lexicon words: the entry '-' contains no word"),
        ('[words]\nf = ["she"]\n', ": expected at least two groups, found f"),
        ('name = "x"\n', f": {LISTS}"),
        ('[words]\nf = "she"\nm = ["he"]\n', f": {LISTS}"),
        ("[words]\nf = [1]\nm = []\n", f": {LISTS}"),
        ("words = [\n", ": no valid TOML: "),
        ('[words]\nf = ["\udce4"]\n', ", line 2: expected UTF-8, found the byte 0xe4 (save the file as UTF-8)"),
        (f"colour = 1\n{TWO}", ": unknown key 'colour' (allowed: name, groups, poles, shares, words, pairs, neutral, "
         "language, about, misses)"),
        (f"[shares]\nf = 0.5\nm = 0.4\n{TWO}", f": {SHARES}, they sum to 0.9"),
        (f"[shares]\nf = -0.5\nm = 1.5\n{TWO}", f": {SHARES}"),
        (f"[shares]\nf = nan\nm = 1.0\n{TWO}", f": {SHARES}, they sum to nan"),
        (f"[shares]\nf = 1{'0' * 400}\nm = 1.0\n{TWO}", f": {SHARES}, one of them is too large"),
        (f"[shares]\nf = 1.0\n{TWO}", ": [shares] names f, the groups are f, m"),
        (f"[shares]\nf = 'half'\nm = 0.5\n{TWO}", ": expected a table [shares] with a number for each group"),
        (f"shares = 1\n{TWO}", ": expected a table [shares] with a number for each group"),
        ('[words]\nx = ["she"]\nliteral_x = ["he"]\n', f": the groups 'literal_x' and 'x' {ONE_TABLE}"),
        (f'groups = ["f", "m", "x"]\n{TWO}', ": groups names f, m, x, [words] has f, m"),
        (f'groups = ["f", "f", "m"]\n{TWO}', ": groups names f, f, m, [words] has f, m"),
        (f'groups = "fm"\n{TWO}', ": expected a list of texts as groups, found 'fm'"),
        (f"groups = [1, 2]\n{TWO}", ": expected a list of texts as groups, found '[1, 2]'"),
        (f'poles = ["m", "x"]\n{TWO}', ": `poles`: expected two of f, m, rest (rest second), found 'm,x'"),
        (f"name = 1\n{TWO}", ": expected a text as name, found '1'"),
        ("", ": the file is empty"),
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
