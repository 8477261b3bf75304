"""Scoring whatever Python callers give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.groups import Scoring, as_group_table, load_lexicon
from given_data import FRAMES, TEXTS, frame


@FRAMES
def test_scoring(tmp_path: Path, make: Any) -> None:
    scoring = Scoring(load_lexicon("gender-en"))
    for number, given in enumerate((TEXTS, frame(list(TEXTS.items()), "docno text", make))):
        assert evenrank.groups.score_collection(given, tmp_path / str(number), scoring) == 3
    scored = evenrank.read_group_table(tmp_path / "0").table
    assert scored.equals(evenrank.read_group_table(tmp_path / "1").table)
    assert scored["doc_id"].to_list() == ["d1", "d2", "d3"]
    as_frame = make({name: scored[name].to_list() for name in scored.columns})
    assert as_group_table(as_frame).table.drop("tokens").equals(scored.drop("tokens"))
    with pytest.raises(EvenrankError, match=r"^`engine='ray'` reads files"):
        evenrank.score(TEXTS, out=tmp_path / "2", engine="ray")
