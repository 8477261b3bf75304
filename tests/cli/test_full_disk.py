"""No room: every command that writes says so in a line, ends with status 2, leaves the old output and nothing else."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import WORDS, texts

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files from which every command writes more than 64 KiB."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    passages = [f"she {text} he" for text in texts(6000, 9, seed=1)]
    (folder / "c.tsv").write_text("".join(f"document-{i}\t{text}\n" for i, text in enumerate(passages)))
    (folder / "q.tsv").write_text("".join(f"query-{i}\t{' '.join(rng.choice(WORDS, 3))} man\n" for i in range(2000)))
    (folder / "qrels").write_text("".join(f"query-{i} 0 document-{i} 1\n" for i in range(200)))
    for name in ("r.run", "s.run"):
        lines = [
            f"query-{q} Q0 document-{d} 1 {-rank} t\n"
            for q in range(200)
            for rank, d in enumerate(rng.permutation(1500)[:60])
        ]
        (folder / name).write_text("".join(lines))
    paragraphs = []
    for i, text in enumerate(passages[:600]):
        answer = {"text": text[:8].rstrip(), "answer_start": 0}
        question = {"id": f"query-{i}", "question": "where?", "answers": [answer]}
        paragraphs.append({"doc_id": f"document-{i}", "context": text, "qas": [question]})
    (folder / "squad.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    pairs = ["she", "he", "her", "his", "woman", "man", "mary", "john", "herself", "himself", "daughter", "son"]
    pairs += ["mother", "father", "gal", "guy", "girl", "boy", "female", "male"]
    names = [*pairs, *(f"word-{i}" for i in range(1200))]
    rows = rng.standard_normal((len(names), 20))
    rows[0:20:2, 0] += 3
    vectors = [f"{name} {' '.join(f'{x:.4f}' for x in row)}\n" for name, row in zip(names, rows, strict=True)]
    (folder / "v.txt").write_text("".join(vectors))
    return folder


INPUTS = ["--collection", "c.tsv", "--queries", "q.tsv", "--qrels", "qrels"]
AUDIT = ["audit", "r.run", *INPUTS[:4], "--qrels", "qrels"]
NEGATIVES = ["negatives", "r.run", *INPUTS, "--n", "40", "--quiet", "--out"]
DEBIAS = ["embeddings", "debias", "v.txt", "--out"]
COMMANDS = {
    "audit, report": [*AUDIT, "--report", "OUT"],
    "index": ["index", "c.tsv", "--quiet", "--out", "OUT/"],
    "retrieve": ["retrieve", "c.tsv", "q.tsv", "--out", "OUT"],
    "expand": ["expand", "q.tsv", "--vectors", "v.txt", "--out", "OUT"],
    "fuse": ["fuse", "r.run", "s.run", "--weight", "0.5", "--out", "OUT"],
    "negatives, JSONL": [*NEGATIVES, "OUT.jsonl"],
    "rotate, TSV": ["rotate", "c.tsv", "--quiet", "--out", "OUT.tsv"],
    "rotate, JSONL": ["rotate", "c.tsv", "--quiet", "--out", "OUT.jsonl"],
    "rotate, Parquet": ["rotate", "c.tsv", "--quiet", "--out", "OUT.parquet"],
    "variants, TSV": ["variants", "c.tsv", "--kind", "rotate", "--quiet", "--out", "OUT.tsv"],
    "variants, JSONL": ["variants", "c.tsv", "--kind", "rotate", "--quiet", "--out", "OUT.jsonl"],
    "debias, text": [*DEBIAS, "OUT.vec"],
    "debias, binary": [*DEBIAS, "OUT.bin"],
    "debias, folder": [*DEBIAS, "OUT/"],
    "position answers": ["position", "answers", "squad.json", "--report", "OUT"],
    "data squad": ["data", "squad", "squad.json", "--out", "OUT/"],
    "demo": ["demo", "--out", "OUT/"],
}  # fmt: skip


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra [neural]")
def test_no_room_for_vectors(source: Path, no_room: tuple[Path, str], evenrank: Command, tmp_path: Path) -> None:
    from dense_indexes import bi_encoder

    folder, reason = no_room
    home = tmp_path.parent / f"{tmp_path.name}-model"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    home.mkdir()
    model = bi_encoder(home / "tiny")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    out = folder / "out"
    ended = evenrank("index", source / "c.tsv", "--quiet", "--out", out, "--model", model, "--device", "cpu")
    # The first of its files that has no room is named, or the folder.
    place, _, problem = ended.err.partition(": cannot be written: ")
    assert (ended.status, problem) == (2, f"{reason}\n")
    assert place.startswith(f"evenrank: {out}")
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    ("name", "no_room"),
    [*((name, "limit") for name in COMMANDS), ("retrieve", "disk"), ("index", "disk")],
    indirect=["no_room"],
)
def test_no_room(
    source: Path, no_room: tuple[Path, str], evenrank: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, reason = no_room
    monkeypatch.chdir(source)
    ending = next(part.removeprefix("OUT") for part in COMMANDS[name] if part.startswith("OUT"))
    out = folder / f"out{ending.rstrip('/')}"
    if ending != "/":
        out.write_text("old")
    before = sorted(os.listdir(source))
    ended = evenrank(*[str(out) if part.startswith("OUT") else part for part in COMMANDS[name]])
    assert ended.status == 2, ended.err
    assert ended.err.splitlines()[-1].startswith(f"evenrank: {out}")
    assert ended.err.endswith(f": cannot be written: {reason}\n")
    if ending == "/":
        left = [path for path in folder.rglob("*") if path.is_file()]
        # What was written whole before may stay; nothing half-written does.
        assert [path for path in left if path.name.startswith(".") or path.name.endswith(".part")] == []
    else:
        assert out.read_text() == "old"
        assert os.listdir(folder) == [out.name]
    assert sorted(os.listdir(source)) == before
