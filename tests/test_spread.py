"""The files that are spread over processes in an order of their own are there."""

from __future__ import annotations

from pathlib import Path

from spread import LONGEST, TOGETHER


def test_the_files_are_there() -> None:
    named = [*LONGEST, *TOGETHER, *TOGETHER.values()]
    assert [name for name in named if not (Path(__file__).parent / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
