"""No room: every command that writes says so in a line, ends with status 2, leaves the old output and nothing else."""

from __future__ import annotations

import json
import os
import resource
from importlib.util import find_spec

import numpy as np
import pytest

from tiny_models import WORDS, texts

PAIRS = "she he her his woman man mary john herself himself daughter son mother father gal guy girl boy female male"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Files from which every command writes more than 64 KiB."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    passages = [f"she {text} he" for text in texts(6000, 9, seed=1)]
    paragraphs = []
    for i, text in enumerate(passages[:600]):
        answer = {"text": text[:8].rstrip(), "answer_start": 0}
        question = {"id": f"query-{i}", "question": "where?", "answers": [answer]}
        paragraphs.append({"doc_id": f"document-{i}", "context": text, "qas": [question]})
    names = [*PAIRS.split(), *(f"word-{i}" for i in range(1200))]
    rows = rng.standard_normal((len(names), 20))
    rows[0:20:2, 0] += 3
    lines = {
        "c.tsv": [f"document-{i}\t{text}" for i, text in enumerate(passages)],
        "q.tsv": [f"query-{i}\t{' '.join(rng.choice(WORDS, 3))} man" for i in range(2000)],
        "qrels": [f"query-{i} 0 document-{i} 1" for i in range(200)],
        "squad.json": [json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})],
        "v.txt": [f"{name} {' '.join(f'{x:.4f}' for x in row)}" for name, row in zip(names, rows, strict=True)],
    }
    for name in ("r.run", "s.run"):
        ranked = {query: rng.permutation(1500)[:60] for query in range(200)}
        lines[name] = [f"query-{q} Q0 document-{d} 1 {-i} t" for q, of in ranked.items() for i, d in enumerate(of)]
    for name, of in lines.items():
        (folder / name).write_text("\n".join(of) + "\n")
    return folder


INPUTS = "--collection c.tsv --queries q.tsv --qrels qrels"
COMMANDS = [
    f"audit r.run {INPUTS} --report OUT",
    "index c.tsv --quiet --out OUT/",
    "retrieve c.tsv q.tsv --out OUT",
    "expand q.tsv --vectors v.txt --out OUT",
    "fuse r.run s.run --weight 0.5 --out OUT",
    f"negatives r.run {INPUTS} --n 40 --quiet --out OUT.jsonl",
    "rotate c.tsv --quiet --out OUT.tsv",
    "rotate c.tsv --quiet --out OUT.parquet",
    "variants c.tsv --kind rotate --quiet --out OUT.jsonl",
    "embeddings debias v.txt --out OUT.bin",
    "embeddings debias v.txt --out OUT/",
    "position answers squad.json --report OUT",
    "data squad squad.json --out OUT/",
    "demo --out OUT/",
]


@pytest.mark.parametrize(
    ("line", "no_room"),
    [*((line, "limit") for line in COMMANDS), (COMMANDS[1], "disk"), (COMMANDS[2], "disk")],
    indirect=["no_room"],
)
def test_no_room(source, no_room, evenrank, line, monkeypatch):
    folder, reason = no_room
    monkeypatch.chdir(source)
    ending = line.partition("OUT")[2]
    out = folder / f"out{ending.rstrip('/')}"
    if ending != "/":
        out.write_text("old")
    before = sorted(os.listdir(source))
    ended = evenrank(*line.replace(f"OUT{ending}", str(out)).split())
    assert ended.status == 2, ended.err
    assert ended.err.splitlines()[-1].startswith(f"evenrank: {out}")
    assert ended.err.endswith(f": cannot be written: {reason}\n")
    if ending == "/":
        # What was written whole before may stay; nothing half-written does.
        left = [path.name for path in folder.rglob("*") if path.is_file()]
        assert [name for name in left if name.startswith(".") or name.endswith(".part")] == []
    else:
        assert out.read_text() == "old"
        assert os.listdir(folder) == [out.name]
    assert sorted(os.listdir(source)) == before


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra [neural]")
def test_no_room_for_vectors(source, no_room, evenrank, tmp_path):
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
