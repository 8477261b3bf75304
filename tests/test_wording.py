"""Words around numbers."""

from __future__ import annotations

import pytest

from evenrank.files.wording import are, counted


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [(0, "seed", "0 seeds"), (1, "seed", "1 seed"), (1, "query", "1 query"), (12_000, "query", "12,000 queries")],
)
def test_a_number_and_its_noun_agree(count: int, noun: str, said: str) -> None:
    assert counted(count, noun) == said
    assert are(count) == ("is" if count == 1 else "are")
