"""*her* and *his* before a noun phrase or not: sentences by hand, a case for each rule."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from evenrank.probes.group_wording import her_is_possessive, his_is_possessive

POSSESSIVE = """\
Her house is old.
We met her brother.
in HER opinion
Her, and HER alone: her own idea
this is her most famous book
for her first novel
It was her first with them.
on her back
her back pain
her best friend
by her last
her now famous speech
her then-boyfriend
her self-esteem
her 20s
her 2010 album
for her soulful and bluesy voice
her happy marriage
her elderly aunt
her family
her only child
her "old" house
his or her job
each with her or his deputy
her/his deputy
she acts in her acting career
it raised her understanding of it
She hurt her back.
let her friends come
made her bed
Is her love real?
her injured knee
her (late) husband
her [first] two books
called her mother
Why I Called Her Mother
called her "old" friend
"""
"""The last *her* of each line is possessive."""

OBJECT = """\
I saw her.
I saw her, too.
Tell her!
give it to her
I met her and left.
told her that it is
told her about it
told her to go
asked her if she could
with her in it
I love her more than you
loves her now
I call her again.
told her everything
I know her well.
get her back
get her back together
met her back in school
make her happy
keep her safe and sound
find her attractive, though
made her jealous.
let her go
makes her respect you
help her understand it
seeing her walking
told her quietly.
gave her flowers
gave her 20
she likes him or her
with her and her friends, I mean her
I gave her the keys
treat her like a queen
about her being late
(her)
call her?" he said
her – of all people
and of her own accord I chose her
her's
she told her (twice) that
met her (late that night)
named her Anna.
They call her Lady Day
her (and only her)
"""
"""The last *her* of each line is an object."""

HERS = """\
a friend of his
a friend of his, who
The idea is his.
His is the best.
the choice was his and mine
it is his to lose
his, not theirs
his or hers
a friend of his came by
A good friend of his told us
"""
BEFORE_NOUN = """\
his house
His own
his all
his then wife
his best.
his/her job
his or her job
his and her bathrooms
his and my house
his not-so-old house
his (late) wife
a friend of his father came
a list of his works
the house of his came
"""


def last(word: str, line: str) -> tuple[int, int]:
    return [found.span() for found in re.finditer(rf"\b{word}\b", line, re.IGNORECASE)][-1]


@pytest.mark.parametrize(
    ("line", "possessive"),
    [(line, True) for line in POSSESSIVE.splitlines()] + [(line, False) for line in OBJECT.splitlines()],
)
def test_her(line: str, possessive: bool) -> None:
    assert her_is_possessive(line, *last("her", line)) is possessive


def test_her_at_the_end_of_a_line() -> None:
    assert her_is_possessive("her\nhouse", 0, 3)
    assert not her_is_possessive("her\n", 0, 3)


def test_her_of_two_with_another() -> None:
    assert her_is_possessive("her or his job", 0, 3)
    assert her_is_possessive("her/his job", 0, 3)
    assert not her_is_possessive("her and her friends", 0, 3)
    assert not her_is_possessive("her or him", 0, 3)


@pytest.mark.parametrize(
    ("line", "possessive"),
    [(line, True) for line in BEFORE_NOUN.splitlines()] + [(line, False) for line in HERS.splitlines()],
)
def test_his(line: str, possessive: bool) -> None:
    found = re.search(r"\bhis\b", line, re.IGNORECASE)
    assert found is not None
    assert his_is_possessive(line, *found.span()) is possessive


def test_his_and_him_of_real_texts_told_from_her(shared_data: Path) -> None:
    """Each *his* and *him* of Grep-BiasIR and people's nq_utd as *her*, told apart again: right in 97 % (of 223).

    Many rules were found on these texts: on others it is right less often.
    """
    lines = (shared_data / "grepbiasir" / "collection.tsv").read_text().splitlines()
    texts = [line.partition("\t")[2] for line in lines]
    texts += pl.read_ndjson(shared_data / "nq_utd" / "human.jsonl")["text"].to_list()
    told: Counter[tuple[str, bool]] = Counter()
    for text in texts:
        for found in re.finditer(r"\b(his|him)\b", text, re.IGNORECASE):
            start, end = found.span()
            as_her = her_is_possessive(f"{text[:start]}her{text[end:]}", start, end)
            told[found[0].lower(), as_her] += 1
    assert told == {("his", True): 166, ("his", False): 3, ("him", False): 51, ("him", True): 3}
