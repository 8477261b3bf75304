"""Answers found in passages: by hand, and as a regular expression finds them."""

from __future__ import annotations

import re

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.squad import match_answers


def passages(*texts: str) -> pl.DataFrame:
    columns = {"doc_id": [str(i) for i in range(len(texts))], "text": list(texts)}
    return pl.DataFrame(columns, {"doc_id": pl.String, "text": pl.String})


def wanted(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), ["query_id", "doc_id", "answer"], orient="row")


def test_matches_by_hand() -> None:
    texts = passages("The bee, a Bee and beehives. Bee", "Straße, STRASSE", "aa aa aa", "cost $5 or 5")
    found, unmatched = match_answers(
        wanted(
            ("q2", "1", "straße"),
            ("q1", "0", " bee "),
            ("q1", "0", "wasp"),
            ("q1", "0", ""),
            ("q3", "2", "aa aa"),
            ("q4", "3", "$5"),
            ("q4", "9", "5"),
            ("q1", "0", " bee "),
        ),
        texts,
    )
    assert found.rows() == [
        ("q2", "1", "Straße", 0, 6),
        ("q1", "0", "bee", 4, 7),
        ("q1", "0", "Bee", 11, 14),
        ("q1", "0", "Bee", 29, 32),
        ("q3", "2", "aa aa", 0, 5),
        ("q3", "2", "aa aa", 3, 8),
        ("q4", "3", "$5", 5, 7),
    ]
    assert unmatched.rows() == [("q1", "0", "wasp"), ("q1", "0", ""), ("q4", "9", "5")]


@given(st.text("aB1_ .é", max_size=16), st.text("aB1_ .é", max_size=3))
def test_matches_as_a_regular_expression_finds_them(text: str, answer: str) -> None:
    found, unmatched = match_answers(wanted(("q", "0", answer)), passages(text))
    needle = answer.strip()
    expected = []
    for start in range(len(text)) if needle else []:
        end = start + len(needle)
        left = needle[0:1] if re.match(r"\w", needle) else ""
        right = needle[-1:] if re.match(r"\w", needle[-1]) else ""
        cut = (left and re.match(r"\w", text[max(start - 1, 0) : start])) or (right and re.match(r"\w", text[end:]))
        if text[start:end].casefold() == needle.casefold() and not cut:
            expected.append((start, end))
    assert [row[3:] for row in found.rows()] == expected
    assert unmatched.height == (not expected)
