"""Swapped and neutral wordings: sentences by hand, and properties beside a slow version."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.files.tokens import tokenize
from evenrank.groups import Lexicon, Scoring, load_lexicon, score_texts
from evenrank.probes.group_wording import language_notes, neutralised, swapped
from slow_groups import slow_words

GENDER = load_lexicon("gender-en")
PAIRS, NEUTRAL = dict(GENDER.pairs), dict(GENDER.neutral)


def swap(text: str, lexicon: Lexicon = GENDER) -> str:
    return str(swapped(pl.Series([text]), lexicon).texts[0])


def neutral(text: str) -> str:
    return str(neutralised(pl.Series([text]), GENDER).texts[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mrs. Smith and MS. Jones", "Mr. Smith and MR. Jones"),
        # endings after an apostrophe, hyphens, phrases
        ("She's the woman’s doctor, she'll see", "He's the man’s doctor, he'll see"),
        ("the mothers' day, ma'am", "the fathers' day, sir"),
        ("my ex-wife, my ex wife, my Mother-in-Law", "my ex-husband, my ex husband, my Father-in-Law"),
        ("the First Lady's call, FIRST LADY", "the First Gentleman's call, FIRST GENTLEMAN"),
        ("she-wolf, he/she", "he-wolf, she/he"),
        # pronouns, by what follows
        ("her house; I saw her. Tell her that.", "his house; I saw him. Tell him that."),
        ("HER HOUSE, HER; Hers is hers, herself", "HIS HOUSE, HIM; His is his, himself"),
        ("his house; a friend of his. His was new", "her house; a friend of hers. Hers was new"),
        ("his or her job, with him or her", "her or his job, with her or him"),
        ("her (late) husband called her Anna", "his (late) wife called him Anna"),
        # possessives of many, and the end of a quotation
        ("Ladies' shoes, LADIES’ NIGHT, ladies'", "Gentlemen's shoes, GENTLEMEN’S NIGHT, gentlemen'"),
        ("the brides' mothers' day, his wives' aunts", "the bridegrooms' fathers' day, her husbands' uncles"),
        ("'the ladies' or ‘two ladies’ he said", "'the gentlemen' or ‘two gentlemen’ she said"),
        # beside a word that the lexicon does not have
        ("bride and groom, the groom or his Bride; a bride", "bride and groom, the groom or her Bride; a bridegroom"),
        # one way, and a title only before a name
        ("guys and gals", "girls and dudes"),
        ("Miss Marple, Miss  Lee. Miss out", "Mr Marple, Mr  Lee. Miss out"),
    ],
)
def test_swap(text: str, expected: str) -> None:
    assert swap(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She saw her; HIS, Hers", "They saw them; THEIRS, Theirs"),
        ("The policewoman, a Policeman, POLICEMEN", "The police officer, a Police officer, POLICE OFFICERS"),
        ("Drag Queens, her mother-in-law", "Drag Performers, their parent-in-law"),
        ("Mrs. Smith, Miss Lee, but miss them", "Mx. Smith, Mx Lee, but miss them"),
        ("Ladies' shoes, boys' school", "People's shoes, children's school"),
        ("The brides and grooms, the bride", "The brides and grooms, the newlywed"),
        ("yes sir, the uterus", "yes sir, the uterus"),
    ],
)
def test_neutral(text: str, expected: str) -> None:
    assert neutral(text) == expected


def test_edits_what_is_left_and_verbs() -> None:
    texts = pl.Series(["She was a midwife, he (said) too; She.", "nobody", "Midwife!", "she's his girl, he"])
    found = swapped(texts, GENDER)
    assert found.edits.tolist() == [3, 0, 0, 4]
    assert found.left == Counter(midwife=2)
    assert found.verbs == 0
    found = neutralised(texts, GENDER)
    assert found.texts.to_list() == [
        "They was a midwife, they (said) too; They.", "nobody", "Midwife!", "they's their child, they",
    ]  # fmt: skip
    assert found.edits.tolist() == [3, 0, 0, 4]
    assert found.left == Counter(midwife=2)
    assert found.verbs == 2


AGES = Lexicon(
    "ages",
    ("old", "middle", "young"),
    (("elder", "old"), ("adult", "middle"), ("grown up", "middle"), ("kid", "young"), ("teen", "young")),
    (0.25, 0.5, 0.25),
    ("young", "old"),
    pairs=(("kid", "elder"), ("elder", "kid"), ("adult", "teen"), ("teen", "adult")),
)


def test_only_words_of_the_poles_are_swapped() -> None:
    assert swap("A kid, an elder, an adult, a grown-up", AGES) == "A elder, an kid, an adult, a grown-up"
    found = swapped(pl.Series(["teen adult grown up kid"]), AGES)
    assert (found.edits.tolist(), found.left) == ([1], Counter({"teen": 1, "adult": 1, "grown up": 1}))
    # The second pole may be the rest.
    rest = AGES.with_poles("young,rest")
    assert swap("kid, elder, adult, teen, grown up", rest) == "elder, kid, teen, adult, grown up"
    assert swap("kid, elder, adult, teen", AGES.with_poles("old,middle")) == "kid, elder, adult, teen"


NO_POLES = Lexicon("ages", AGES.groups, AGES.words, AGES.shares, None, pairs=AGES.pairs)


@pytest.mark.parametrize(
    ("made", "lexicon", "message"),
    [
        (swapped, load_lexicon("age-en"), r"age-en has no \[pairs\], the counterparts of its words$"),
        (neutralised, AGES, r"ages has no \[neutral\], the neutral counterparts"),
        (swapped, NO_POLES, r"ages names no poles, between which words are swapped$"),
    ],
)
def test_lexicons_that_cannot(made, lexicon, message) -> None:
    with pytest.raises(EvenrankError, match=f"^`lexicon`: {message}"):
        made(pl.Series(["she"]), lexicon)


PLAIN = ("she", "He", "WOMAN", "men", "boy", "girls", "Father", "mom", "queen", "WIFE", "himself", "sister", "guy")
OTHER = ("house", "The", "and", "midwife", "naïve", "it's", "𝔘", "they")
GAPS = (" ", "  ", ", ", "-", "'s ", ".\n", " (", "’s-", "/")
plain_texts = st.lists(st.tuples(st.sampled_from(PLAIN + OTHER), st.sampled_from(GAPS))).map(
    lambda parts: "".join(map("".join, parts))
)


def slow_replaced(text: str, table: dict[str, str]) -> tuple[str, int]:
    """Word by word from the end; words of one token without a rule of their own."""
    edits = 0
    for start, end, folded in reversed(slow_words(text)):
        if folded in table:
            word, other = text[start:end], table[folded]
            other = other.upper() if word.isupper() else other.capitalize() if word.istitle() else other
            text, edits = text[:start] + other + text[end:], edits + 1
    return text, edits


@given(st.lists(plain_texts, max_size=4))
def test_as_the_slow_version(texts: list[str]) -> None:
    series = pl.Series(texts, dtype=pl.String)
    for made, table in ((swapped(series, GENDER), PAIRS), (neutralised(series, GENDER), NEUTRAL)):
        expected = [slow_replaced(text, table) for text in texts]
        assert list(zip(made.texts.to_list(), made.edits.tolist(), strict=True)) == expected


SYMMETRIC = [word for word, other in PAIRS.items() if PAIRS[other] == word and word not in ("he", "his", "him", "hers")]
AFTER = ("house", "and", "in", "friend", "it", "happy", "back", "first", "the", "old man", "quickly", "is")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*SYMMETRIC, "her"]),
            st.sampled_from((str.lower, str.upper, str.capitalize, str.title)),
            st.sampled_from(AFTER),
            st.sampled_from((" ", ". ", ", ", " and ")),
        )
    )
)
def test_a_swap_of_a_swap_is_the_text_again(parts: list[tuple[str, object, str, str]]) -> None:
    """*her* too, which becomes *his* only where *his* becomes *her* again; not *his* and *him*, which *her* joins."""
    text = "".join(f"{as_(word)} {after}{gap}" for word, as_, after, gap in parts if callable(as_))  # type: ignore[operator]
    once = swapped(pl.Series([text]), GENDER)
    assert swap(str(once.texts[0])) == text
    both = pl.DataFrame({"doc_id": ["d", "e"], "text": [text, once.texts[0]]})
    counts = score_texts(both, Scoring(GENDER)).select("count_f", "count_m").rows()
    assert counts[0] == counts[1][::-1]
    assert once.edits[0] == sum(counts[0])


@given(plain_texts)
def test_a_neutral_text_has_only_the_words_left(text: str) -> None:
    made = neutralised(pl.Series([text]), GENDER)
    assert neutralised(made.texts, GENDER).edits.tolist() == [0]
    again = [word for word in tokenize(str(made.texts[0])) if (word,) in GENDER.entries("word")]
    assert Counter(again) == made.left
    assert re.sub(r"\w", "", text) == re.sub(r"\w", "", str(made.texts[0]))


# --- in other languages -----------------------------------------------------------------------------------------------


def notes(*texts: list[str]) -> tuple[str, ...]:
    return language_notes([pl.DataFrame({"text": each}) for each in texts], GENDER)


def test_texts_in_another_language_by_hand() -> None:
    note = "The texts hardly look English (9% of the words of the first documents are English stop words), but the "
    note += "lexicon gender-en is: its words may mean other things here."
    assert notes(["der " * 182], ["the " * 18]) == (note,)
    assert notes(["der " * 180 + "the " * 20]) == ()
    # Few words say nothing, and a thousand documents suffice.
    assert notes(["der " * 199]) == notes() == ()
    assert notes(["the"] * 999 + ["der"], ["der " * 10**6]) == ()
    assert language_notes([pl.DataFrame({"text": ["she " * 300]})], load_lexicon("gender-de")) == ()
