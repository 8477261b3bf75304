"""People's rewordings beside swaps: by hand, and the male and female wordings of Grep-BiasIR."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from evenrank.groups import load_lexicon
from evenrank.probes.rewordings import Rewording, compared

GENDER = load_lexicon("gender-en")


@pytest.mark.parametrize(
    ("text", "reworded", "one_for_one", "changed", "misses"),
    [
        ("He has a dog.", "she has a dog", True, 1, []),
        ("his dog saw him, his", "her dog saw her, hers", True, 3, []),
        # beyond a word list, and a word that the swap does not change as people do
        ("a handsome guy", "a pretty lady", True, 2, [("handsome", "handsome", "pretty"), ("guy", "girl", "lady")]),
        # in two ways, and two in one
        ("men and men", "women and woman", False, 2, [("men", "women", "woman")]),
        ("men and boys", "women and women", False, 2, [("boys", "girls", "women")]),
        # a group word is left
        ("he and his mother", "she and her mother", False, 3, [("mother", "father", "mother")]),
        # a word more
        ("he left", "she has left", False, 0, []),
        ("nothing", "nothing", True, 0, []),
    ],
)
def test_by_hand(text: str, reworded: str, one_for_one: bool, changed: int, misses: list[tuple[str, str, str]]) -> None:
    assert compared([text], [reworded], GENDER) == [Rewording(one_for_one, changed, tuple(misses))]


MALE_TO_FEMALE = """\
15 gentlemen ladies lady
60 mens mens womens
75 groom groom bride
75 groom groom bride
159 vasectomy vasectomy sterilization
159 vasectomy vasectomy sterilization
186 paternity paternity maternity
186 paternity paternity maternity
189 paternity paternity maternity
189 paternity paternity maternity
195 malecareer malecareer femalecareer
204 paternity paternity maternity
213 handyman handywoman handywomen
213 handyman handywoman handywomen
252 masculine feminine female
261 women men divorcees
274 dude gal lady
465 mens mens womens
499 houseman houseman housewife
516 manly womanly feminine
561 blue blue pink
585 handsome handsome beautiful
585 ladies gentlemen men
585 handsome handsome beautiful
622 girl boy guy
642 husbands wives wifes
673 girly girly masculine
"""
"""Every miss: the male document, its word, the swap's, people's."""
ONLY_FEMALE_TO_MALE = [21, 270, 372, 387, 390, 432, 568, 573, 648, 661, 670]
"""Male documents of further misses in the other direction: *guy* and *girl*, as girl becomes boy."""


def test_swaps_and_peoples_rewordings_of_grep_biasir(shared_data: Path) -> None:
    """All pairs of a male and a female text (title and body): swap of the male one, word for word."""
    folder = shared_data / "grepbiasir"
    texts = dict(line.split("\t", 1) for line in (folder / "collection.tsv").read_text().splitlines())
    wordings: dict[tuple[str, str], dict[str, str]] = {}
    with open(folder / "documents.csv", newline="") as file:
        for row in csv.DictReader(file):
            wordings.setdefault((row["query_id"], row["relevance"]), {})[row["content_gender"]] = row["doc_id"]
    ids = sorted((int(of["M"]), int(of["F"])) for of in wordings.values() if {"M", "F"} <= of.keys())
    male, female = ([texts[str(pair[side])] for pair in ids] for side in (0, 1))

    found = compared(male, female, GENDER)
    clean = [(pair, rewording) for pair, rewording in zip(ids, found, strict=True) if rewording.one_for_one]
    misses = [f"{pair[0]} {' '.join(miss)}\n" for pair, rewording in clean for miss in rewording.misses]
    assert "".join(misses) == MALE_TO_FEMALE
    equal = sum(not rewording.misses for _, rewording in clean)
    assert (len(ids), len(clean), equal) == (232, 201, 181)
    assert equal / len(clean) >= 0.9
    # Of all words that people or the swap change, in all pairs of as many words.
    changed, missed = (sum(counts) for counts in zip(*((x.changed, len(x.misses)) for x in found), strict=True))
    assert (changed, missed) == (558, 92)

    back = compared(female, male, GENDER)
    assert [rewording.one_for_one for rewording in back] == [rewording.one_for_one for rewording in found]
    further = [
        pair[0]
        for pair, there, here in zip(ids, found, back, strict=True)
        if here.one_for_one and here.misses and not there.misses
    ]
    assert further == ONLY_FEMALE_TO_MALE
    # This direction is below nine in ten: people wrote guy where girl becomes boy, as it should of children.
    assert sum(rewording.one_for_one and not rewording.misses for rewording in back) == 170
    guy = tuple({**dict(GENDER.pairs), "girl": "guy", "girls": "guys"}.items())
    young = compared(female, male, replace(GENDER, pairs=guy))
    assert sum(rewording.one_for_one and not rewording.misses for rewording in young) == 180
