"""Lexicons: their two forms, their mistakes, and those that are built in."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError
from evenrank.groups import Lexicon, Scoring, Tokens, builtin_lexicons, load_lexicon, score_texts
from slow_groups import lexicon_of, scored, slow_tokens


def test_lexicon_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("\ufeffWord,Group\r\nshe,f\r\n\r\n Her Majesty , f\nhe,m\nshe,f\nhe, too,m")
    lexicon = load_lexicon(path)
    assert lexicon.name == "words"
    assert lexicon.groups == ("f", "m")
    assert lexicon.shares == (0.5, 0.5)
    assert lexicon.poles == ("m", "f")
    assert lexicon.entries("word") == {
        ("she",): "f",
        ("her", "majesty"): "f",
        ("he",): "m",
        ("he", "too"): "m",
    }
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
    path = tmp_path / "ages.toml"
    path.write_text(TOML)
    lexicon = load_lexicon(path)
    assert lexicon.name == "ages"
    assert lexicon.groups == ("young", "old", "other")
    assert lexicon.shares == (0.5, 0.25, 0.25)
    assert lexicon.poles == ("young", "old")
    assert lexicon.words[0] == ("young", "young")
    assert lexicon.entries("word")[("grandparent",)] == "old"
    assert load_lexicon(path, poles="other,rest").poles == ("other", "rest")
    path.write_text('[words]\nb = ["x"]\na = ["y"]\nc = []\n')
    plain = load_lexicon(path)
    assert (plain.name, plain.groups, plain.poles) == ("ages", ("a", "b", "c"), None)
    assert plain.shares == (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.parametrize(
    ("poles", "expected"),
    [(None, None), ("a,b", ("a", "b")), (" c , a ", ("c", "a")), ("b,rest", ("b", "rest"))],
)
def test_poles(poles: str | None, expected: tuple[str, str] | None) -> None:
    lexicon = lexicon_of({"x": "a", "y": "b", "z": "c"})
    assert lexicon.with_poles(poles).poles == expected
    assert lexicon.with_poles(poles).words == lexicon.words


@pytest.mark.parametrize("poles", ["a", "a,b,c", "a,a", "a,d", "d,a", "rest,a", "rest,rest", ",", ""])
def test_poles_that_are_none(poles: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        lexicon_of({"x": "a", "y": "b", "z": "c"}).with_poles(poles)
    assert str(caught.value) == f"`poles`: expected two of a, b, c, rest (rest second), found {poles!r}"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("she,f\nhe,m\nthey\n", 3, "expected word,group, found 'they'"),
        ("query_id,doc_id,score\nq1,d1,2\n", 1, "expected word,group, found 3 columns: 'query_id,doc_id,score'"),
        ("she,f\nhe,\n", 2, "expected word,group, found 'he,'"),
        ("she,f\n,m\n", 2, "expected word,group, found ',m'"),
        ("she,f\n\nhe,m\nShe,m\n", 4, "'She' is in two groups, f (line 1) and m"),
        ("she,f\nshe's,m\n", 2, '"she\'s" is in two groups, f (line 1) and m'),
        ("she,f\n...,m\n", 2, "the entry '...' contains no word"),
        (f"she,f\n{'a ' * 33},m\n", None, "lexicon words: expected entries of at most 32 words, found 33: 'a a "),
        ("she,f\nher,f\n", None, "expected at least two groups, found f"),
        ("word,group\n", None, "expected at least two groups, found none"),
        ("she,f\nthey,rest\n", None, "no group may be named 'rest'"),
        ("she,f\nh\udcffe,m\n", 2, "expected UTF-8, found the byte 0xff"),
        ("", None, "the file is empty"),
    ],
)
def test_mistakes_in_lines(tmp_path: Path, content: str, line: int | None, message: str) -> None:
    path = tmp_path / "words.csv"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    place = str(path) if line is None else f"{path}, line {line}"
    assert str(caught.value).startswith(f"{place}: {message}")


TWO = '[words]\nf = ["she"]\nm = ["he"]\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[words]\nf = ["she", "x"]\nm = ["X"]\n', "lexicon words: 'X' is in two groups, f and m"),
        ('[words]\nf = ["she"]\nm = ["-"]\n', "lexicon words: the entry '-' contains no word"),
        ('[words]\nf = ["she"]\n', "expected at least two groups, found f"),
        ('[words]\nf = ["she"]\nrest = ["he"]\n', "no group may be named 'rest'"),
        ("[words]\n", "expected at least two groups, found none"),
        ('name = "x"\n', "expected a table [words] with a list of words for each group"),
        ('[words]\nf = "she"\nm = ["he"]\n', "expected a table [words] with a list of words for each group"),
        ("[words]\nf = [1]\nm = []\n", "expected a table [words] with a list of words for each group"),
        ("words = [\n", "no valid TOML: "),
        (
            f"colour = 1\n{TWO}",
            "unknown key 'colour' (allowed: name, groups, poles, shares, words, pairs, neutral, language, "
            "about, misses)",
        ),
        (f"[shares]\nf = 0.5\nm = 0.4\n{TWO}", "the target shares must sum to 1, they sum to 0.9"),
        (f"[shares]\nf = -0.5\nm = 1.5\n{TWO}", "the target shares must sum to 1"),
        (f"[shares]\nf = nan\nm = 1.0\n{TWO}", "the target shares must sum to 1, they sum to nan"),
        (f"[shares]\nf = 1{'0' * 400}\nm = 1.0\n{TWO}", "the target shares must sum to 1, one of them is too large"),
        (
            '[words]\nx = ["she"]\nwords_x = ["he"]\n',
            "the groups 'words_x' and 'x' cannot be in one group table: both ",
        ),
        ('[words]\nx = ["she"]\nliteral_x = ["he"]\n', "the groups 'literal_x' and 'x' cannot be in one group table: "),
        (f"[shares]\nf = 1.0\n{TWO}", "[shares] names f, the groups are f, m"),
        (f"[shares]\nf = 'half'\nm = 0.5\n{TWO}", "expected a table [shares] with a number for each group"),
        (f"shares = 1\n{TWO}", "expected a table [shares] with a number for each group"),
        (f'groups = ["f", "m", "x"]\n{TWO}', "groups names f, m, x, [words] has f, m"),
        (f'groups = ["f", "f", "m"]\n{TWO}', "groups names f, f, m, [words] has f, m"),
        (f'groups = "fm"\n{TWO}', "expected a list of texts as groups, found 'fm'"),
        (f"groups = [1, 2]\n{TWO}", "expected a list of texts as groups, found '[1, 2]'"),
        (f'poles = ["m", "x"]\n{TWO}', "`poles`: expected two of f, m, rest (rest second), found 'm,x'"),
        (f'poles = "m,f"\n{TWO}', "expected a list of texts as poles, found 'm,f'"),
        (f"name = 1\n{TWO}", "expected a text as name, found '1'"),
        (f"about = 1\n{TWO}", "expected a text as about, found '1'"),
        (f'misses = ["x"]\n{TWO}', "expected a text as misses, found \"['x']\""),
        ("", "the file is empty"),
    ],
)
def test_mistakes_in_toml(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.toml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_toml_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_bytes(b'[words]\nf = ["\xe4"]\n')
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value) == f"{path}, line 2: expected UTF-8, found the byte 0xe4 (save the file as UTF-8)"


def test_no_such_lexicon(tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=r"no file and no built-in lexicon 'gender-xx' \(built in: .*gender-en"):
        load_lexicon("gender-xx")
    with pytest.raises(InputError, match="Is a directory"):
        load_lexicon(tmp_path)
    (tmp_path / "x.toml").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        load_lexicon(tmp_path / "x.toml")


def test_a_word_in_two_groups_of_a_lexicon_made_by_hand() -> None:
    lexicon = Lexicon("mine", ("f", "m"), (("she", "f"), ("SHE", "m")), (0.5, 0.5), None)
    with pytest.raises(EvenrankError, match="lexicon mine: 'SHE' is in two groups, f and m"):
        score_texts(pl.DataFrame({"doc_id": ["1"], "text": ["she"]}), Scoring(lexicon))


@pytest.mark.parametrize("name", builtin_lexicons())
@pytest.mark.parametrize("tokens", ["word", "whitespace"])
def test_built_in_lexicons(name: str, tokens: Tokens) -> None:
    lexicon = load_lexicon(name)
    assert lexicon.name == name
    groups: dict[tuple[str, ...], set[str]] = {}
    for word, group in lexicon.words:
        groups.setdefault(tuple(slow_tokens(word, tokens)), set()).add(group)
    assert [entry for entry, of_entry in groups.items() if len(of_entry) > 1] == []
    assert set(lexicon.entries(tokens).values()) == set(lexicon.groups)
    assert sum(lexicon.shares) == pytest.approx(1)


def test_gender_en() -> None:
    lexicon = load_lexicon()
    assert (lexicon.name, lexicon.groups, lexicon.shares) == ("gender-en", ("f", "m"), (0.5, 0.5))
    assert lexicon.poles == ("m", "f")
    entries = lexicon.entries("word")
    for female, male in [("she", "he"), ("her", "his"), ("woman", "man"), ("mother", "father"), ("wives", "husbands")]:
        assert (entries[(female,)], entries[(male,)]) == ("f", "m")
    texts = ["The woman's friend, she said, is her mother-in-law.", "He is his own man; don't ask him."]
    table = scored(texts, lexicon)
    assert table.select("count_f", "count_m").rows() == [(4, 0), (0, 4)]
