"""The texts here are so few that they would never meet the compiled loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenrank.groups._plain_counting import Room


@pytest.fixture(autouse=True, scope="module")
def compiled_loop() -> Iterator[None]:
    """Texts are counted by the compiled loop; test_plain_counting.py holds the plain one to it."""
    left, Room.left = Room.left, -1
    yield
    Room.left = left
