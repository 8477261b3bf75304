"""What ``evenrank fuse`` writes beside its run, and what an audit says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_a_fused_run_says_what_it_is_made_of(
    tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("d1\the said\nd2\tshe said\n")
    Path("a.run").write_text("q 0 d1 1 2 a\nq 0 d2 2 1 a\n")
    Path("b.run").write_text("q 0 d2 1 2 b\nq 0 d1 2 1 b\n")
    Path("q.txt").write_text("q 0 d1 1\n")
    assert evenrank("fuse", "A=a.run", "B=b.run", "--weight", "0.75", "--out", "f.run").status == 0
    card = json.loads(Path("f.run.card.json").read_text())
    assert card["made_by"] == {"stage": "fuse", "weights": {"A": 0.75, "B": 0.25}}
    assert [(entry["role"], entry["path"]) for entry in card["inputs"]] == [("run A", "a.run"), ("run B", "b.run")]
    done = evenrank("audit", "f.run", "--collection", "c.tsv", "--measures", "ARaB@10", "--full")
    assert "f: fused from A (0.75), B (0.25)." in done.out
    # A card is an output: it never replaces an input.
    Path("x.run.card.json").write_text("q 0 d1 1 2 a\n")
    refused = evenrank("fuse", "a.run", "x.run.card.json", "--weight", "0.5", "--out", "x.run")
    assert refused.status == 2
    assert "x.run.card.json" in refused.err
    assert evenrank("fuse", "a.run", "b.run", "--weight", "0.5", "--out", "-").status == 0
    assert not Path("-.card.json").exists()
