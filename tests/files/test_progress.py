"""Progress where nobody watches a bar: a line now and then."""

from __future__ import annotations

import sys
from unittest.mock import Mock

import pytest

from evenrank.files import progress as module
from evenrank.files.progress import EVERY, ProgressLines, progress, to_standard_error


def lines(total: int | None, steps: list[tuple[float, int]], note: str = "") -> list[str]:
    """What is written when so many items are done at such times."""
    now, written = [0.0], []
    shown = ProgressLines("re-ranking", total, clock=lambda: now[0], write=written.append)
    for at, done in steps:
        now[0] = at
        shown.advance(done, note)
    return written


def test_a_line_every_thirty_seconds_and_no_sooner():
    assert EVERY == 30
    found = lines(1000, [(10, 100), (29.9, 100), (30, 50), (59, 250), (61, 100), (400, 400)])
    assert found == [
        "re-ranking: 250 of 1,000 (25%), 0:00:30 so far, about 0:01:30 left",
        "re-ranking: 600 of 1,000 (60%), 0:01:01 so far, about 0:00:41 left",
        "re-ranking: 1,000 of 1,000 (100%), 0:06:40 so far",
    ]
    # Without a total, and with a note.
    assert lines(None, [(45, 1200)], "loss 0.31") == ["re-ranking: 1,200, loss 0.31, 0:00:45 so far"]
    assert lines(0, [(45, 0)]) == ["re-ranking: 0, 0:00:45 so far"]


def test_off_a_terminal_long_work_is_told_and_short_or_quiet_work_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for every, quiet, said in (
        (EVERY, False, ""),
        (0.0, False, "documents: 3 of 4 (75%), 0:00:00 so far"),
        (0.0, True, ""),
    ):
        monkeypatch.setattr(module, "EVERY", every)
        with progress("documents", 4, quiet=quiet) as advance:
            advance(3)
        err = capsys.readouterr().err
        assert err.startswith(said) if said else err == ""


def test_a_closed_standard_error_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch):
    for error in (BrokenPipeError, ValueError):
        monkeypatch.setattr(sys, "stderr", Mock(write=Mock(side_effect=error)))
        to_standard_error("a line")
