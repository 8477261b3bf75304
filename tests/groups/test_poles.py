"""Lexicons of two groups whose poles nobody named."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenrank
from evenrank.groups.scoring import sides_of_texts

AGES = "word,group\nyoung,young\nteenager,young\nold,old\npensioner,old\n"


@pytest.mark.parametrize(
    ("name", "text", "poles"),
    [
        ("ages.csv", AGES, ("young", "old")),
        ("ages.csv", "\n".join(AGES.splitlines()[::-1][:-1]), ("old", "young")),
        ("ages.toml", '[words]\nyoung = ["young"]\nold = ["old"]\n', ("young", "old")),
        ("ages.toml", 'groups = ["old", "young"]\n[words]\nyoung = ["young"]\nold = ["old"]\n', ("old", "young")),
    ],
)
def test_two_groups_take_the_order_of_the_file(tmp_path: Path, name: str, text: str, poles: tuple[str, str]) -> None:
    (tmp_path / name).write_text(text)
    lexicon = evenrank.load_lexicon(tmp_path / name)
    assert (lexicon.poles, lexicon.poles_assumed) == (poles, True)
    assert lexicon.with_poles("old,rest").poles_assumed is False


def test_the_side_of_a_document_is_that_of_the_pole_with_more_words() -> None:
    texts = pl.Series(["he and his brother", "she met him and her aunt", "nobody", "he or she"])
    assert sides_of_texts(texts, evenrank.Scoring(evenrank.load_lexicon("gender-en"))).tolist() == [1, -1, 0, 0]


def test_m_and_f_need_no_word(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("she,f\nhe,m\n")
    lexicon = evenrank.load_lexicon(tmp_path / "l.csv")
    assert (lexicon.poles, lexicon.poles_assumed) == (("m", "f"), False)
