"""``evenrank probe``: how its variants are written, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEXTS = {f"d{i}": f"{'he' if i % 2 else 'she'} wrote the old tea book {'and more ' * i}" for i in range(6)}
SWAP = {
    doc: text.replace("she", "x").replace("he wrote", "she wrote").replace("x", "he") for doc, text in TEXTS.items()
}
LATE = {doc: f"{text} late" for doc, text in TEXTS.items()}
BASE = "--queries q.tsv --collection c.tsv --run r.run --quiet"


@pytest.fixture
def folder(given):
    texts = {"c.tsv": TEXTS, "s.tsv": SWAP, "l.tsv": LATE, "q.tsv": {"q1": "tea", "q2": "old more"}}
    return given({
        **{name: "".join(f"{one}\t{text}\n" for one, text in of.items()) for name, of in texts.items()},
        "r.run": "".join(f"{q} Q0 {d} 1 1 t\n" for q in ("q1", "q2") for d in TEXTS),
        "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
    })  # fmt: skip


def test_everything_at_once(folder, evenrank):
    more = "--qrels qrels --placebo swap=l.tsv --depth 4 --report out.html --json out.json"
    ended = evenrank("probe", "bm25", "--variants", "swap=s.tsv", "neutral", *BASE.split(), *more.split())
    assert (ended.status, ended.err) == (0, "report: out.html\n")
    assert max(map(len, ended.out.split("\n"))) <= 80
    values = json.loads(Path("out.json").read_text())
    said = {one["key"]: one for one in values["findings"]}
    assert said["effectiveness"]["text"].startswith("bm25 has nDCG@10 ")
    assert values["variants"]["swap"]["placebo_name"] == "placebo of swap"
    assert values["variants"]["neutral"]["placebo_name"] is None
    roles = {file["role"]: file["path"] for file in values["provenance"]["files"]}
    assert (roles["variant swap"], roles["placebo of swap"], roles["model"]) == ("s.tsv", "l.tsv", "bm25")
    assert "evenrank probe bm25" in values["provenance"]["command"]
    assert "swap" in Path("out.html").read_text()
    assert not list(folder.glob(".*rerank"))


def test_a_sample(folder, evenrank):
    command = ("probe", "bm25", "--variants", "swap=s.tsv", *BASE.split(), "--sample", "1")
    ended = evenrank(*command, "--full")
    assert (ended.status, ended.err) == (0, "")
    assert "1 of 2 queries" in ended.out
    # JSON alone goes to standard output.
    values = json.loads(evenrank(*command, "--json", "-", "--lexicon", "none").out)
    assert (values["queries"], values["settings"]["sample"], values["variants"]["swap"]["poles"]) == (1, 1, None)
