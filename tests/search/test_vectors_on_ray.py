"""An index encoded by the workers of a Ray cluster, and the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from dense_indexes import QUERIES, bi_encoder, collection, sparse_encoder
from evenrank import Encoding, build_index
from evenrank.files import EvenrankError, read_run


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".bin"}


@pytest.mark.filterwarnings("default")
@pytest.mark.slow
def test_ray_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="needs the extra [ray]")
    monkeypatch.setattr("evenrank.search.vector_index.BATCHES", 2)
    collection(tmp_path / "c.tsv")
    models = {"dense": bi_encoder(tmp_path / "bi"), "sparse": sparse_encoder(tmp_path / "splade")}
    try:
        for kind, model in models.items():
            here, there = tmp_path / kind, tmp_path / f"{kind}-ray"
            build_index(tmp_path / "c.tsv", out=here, model=model, encoding=Encoding(batch_size=4), quiet=True)
            how = Encoding(batch_size=4, engine="ray", workers=2)
            build_index(tmp_path / "c.tsv", out=there, model=model, encoding=how, quiet=True)
            assert files(here) == files(there)
            assert sorted(path.name for path in here.iterdir()) == sorted(path.name for path in there.iterdir())
    finally:
        ray.shutdown()


def test_a_loaded_model_is_not_sent_to_a_cluster() -> None:
    with pytest.raises(EvenrankError, match="found a loaded model"):
        build_index({"a": "b"}, out="out", model=object(), encoding=Encoding(engine="ray"))
    assert not Path("out").exists()


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    from evenrank.cli import main

    monkeypatch.setattr(sys, "argv", ["evenrank", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    collection(tmp_path / "c.tsv")
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    model = bi_encoder(tmp_path / "tiny")
    index, run = tmp_path / "index", tmp_path / "out.run"
    capsys.readouterr()
    build = ["index", tmp_path / "c.tsv", "--out", index, "--model", model, "--batch-size", "4", "--quiet"]
    assert command(monkeypatch, *build, "--document-prompt", "passage : ") == 0
    assert capsys.readouterr().err == f"40 documents indexed: {index}\n"
    search = ["retrieve", index, tmp_path / "q.tsv", "--out", run, "--k", "5", "--quiet"]
    assert command(monkeypatch, *search, "--query-prompt", "query : ", "--device", "cpu") == 0
    assert capsys.readouterr().err.splitlines() == [
        "tiny: exact search, vectors of 32 numbers in float16",
        "tiny: each query is put after the prompt 'query : '",
        "tiny: each document was put after the prompt 'passage : '",
        f"4 queries ranked: {run}",
    ]
    assert read_run(run).table.height == 20
    for options, message in (
        (["--rm3"], f"`rm3`: only for BM25, and {index} is a dense index"),
        (["--precision", "half"], "expected auto, float32 or bfloat16, found 'half'"),
        (["--model", tmp_path / "none"], "no such folder"),
        (["--k1", "1"], "a setting of BM25"),
    ):
        run.unlink(missing_ok=True)
        assert command(monkeypatch, *search, *options) == 2
        assert message.replace("`rm3`", "--rm3") in capsys.readouterr().err
        assert not run.exists()
    assert command(monkeypatch, *build) == 2
    assert "is an index already" in capsys.readouterr().err
