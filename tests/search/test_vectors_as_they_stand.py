"""Text vectors are read as they stand or refused, against a slow, obvious reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from as_they_stand import FIELDS, NUMBERS, PACKED, Packing, Wrong, check_against, finite, is_finite, lines_of_text
from evenrank.search import read_vectors


def slow_vectors(content: bytes) -> list[tuple[str, list[float]]]:
    rows = []
    for line in lines_of_text(content):
        if line.rstrip(" ") or line.startswith(" "):
            fields = line.removesuffix(" ").split(" ")
            # A word may hold spaces.
            word, numbers = " ".join(fields[:-2]), fields[-2:]
            if not word or any(is_finite(field) for field in fields[1:-2]):
                raise Wrong
            rows.append((word, [float(np.float32(finite(field))) for field in numbers]))
    if len({word for word, _ in rows}) < len(rows):
        raise Wrong
    return rows


vectors = st.lists(
    st.one_of(
        st.builds("{} {} {}".format, FIELDS.filter(lambda field: " " not in field), NUMBERS, NUMBERS),
        st.builds("w{} {} {}{}".format, st.integers(0, 99), NUMBERS, NUMBERS, st.sampled_from(["", " ", "  ", " 1"])),
        st.just(""),
    ),
    max_size=6,
)


@given(vectors, PACKED)
@settings(max_examples=150)
def test_vectors_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    lines = ["first 1 2", *lines]

    def read(path: Path) -> list[Any]:
        found = read_vectors(path)
        return list(zip(found.words, found.matrix.tolist(), strict=True))

    check_against(slow_vectors, read, place / "vectors", lines, packing)
