"""Lexicons are read as they stand or refused, against a slow, obvious reader."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from as_they_stand import BLANK, FIELDS, PACKED, Packing, Wrong, check_against, filled, lines_of_text
from evenrank.groups import load_lexicon, tokenize


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
