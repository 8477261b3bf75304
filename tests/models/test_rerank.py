"""Re-ranking with random weights, interruptions, and what bad input gets."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import InputError, Run, read_run
from evenrank.files.work import Work
from evenrank.models.load import find_model, load_encoder
from evenrank.models.rerank import rerank
from forked import in_forks

KILLED = """
import os, signal, sys
from evenrank.files.work import Work
from evenrank.models import rerank
keep = Work.keep
def killing(self, number, *rest):
    if number == 3:
        open(self.path(".scores-000003.part.abc.part"), "wb").write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    keep(self, number, *rest)
Work.keep = killing
rerank._WINDOW = 2
from evenrank.cli import main
main()
"""

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")


Data = tuple[Run, pl.DataFrame, pl.DataFrame]
KEYS = ["query_id", "doc_id"]


def again(data: Data, model: Any, **settings: Any) -> Run:
    """The re-ranked run, without --out unless it is given."""
    run, collection, queries = data
    settings = {"collection": collection, "queries": queries, "batch_size": 4, **settings}
    return rerank(run, model=model, **settings)


def texts_of(run: Run, data: Data) -> pl.DataFrame:
    joined = run.table.join(data[2].rename({"text": "query"}), on="query_id").join(data[1], on="doc_id")
    assert joined.height == run.table.height
    return joined


def test_cross_encoder_scores(data: Data, cross: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 2)
    result = again(data, cross)
    assert result.name == "tiny-cross"
    assert result.queries.to_list() == data[0].queries.to_list()
    assert result.table.height == 60
    joined = texts_of(result, data)
    encoder = sentence_transformers.CrossEncoder(cross, device="cpu")
    # One pair at a time: no padding at all.
    expected = encoder.predict(joined.select("query", "text").rows(), activation_fn=torch.nn.Identity(), batch_size=1)
    assert expected.std() > 0.1
    np.testing.assert_allclose(joined["score"].to_numpy(), expected, atol=1e-5)
    # Of a depth, the first only.
    kept, first = again(data, cross, depth=3).table, data[0].table.filter(pl.col("rank") <= 3)
    assert kept.select(KEYS).sort(KEYS).equals(first.select(KEYS).sort(KEYS))
    both = kept.join(result.table, on=KEYS)
    np.testing.assert_allclose(both["score"], both["score_right"], atol=1e-5)


def test_kept_scores_of_another_call_are_not_used(
    data: Data, cross: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 2)
    remove = Work.remove
    monkeypatch.setattr(Work, "remove", lambda self: None)

    def resumed(model: str = cross, **settings: Any) -> tuple[str, ...]:
        return again(data, model, out=tmp_path / "out.run", **settings).notes[1:]

    def kept(count: int) -> tuple[str, ...]:
        return (f"tiny-cross: {count} of 60 scores kept from an interrupted run",)

    assert resumed() == ()
    assert resumed() == kept(60)
    whole = (tmp_path / "out.run").read_bytes()
    (tmp_path / ".out.run.rerank" / "scores-000001.part").write_bytes(b"cut")
    assert resumed() == kept(52)
    assert (tmp_path / "out.run").read_bytes() == whole
    other = tmp_path / "other" / "tiny-cross"
    shutil.copytree(cross, other)
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    changes: list[dict[str, Any]] = [
        {"depth": 11}, {}, {"collection": data[1].with_columns(pl.col("text") + ".")}, {"kind": "bi"},
        {"precision": "bfloat16"}, {},
        {"model": str(other)},
    ]  # fmt: skip
    for change in changes:
        assert resumed(**change) == ()
    monkeypatch.setattr(Work, "remove", remove)
    assert resumed(model=str(other)) == kept(60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out.run", "out.run.card.json"]


def test_a_tokeniser_without_its_unknown_word_is_one_line_with_the_folder(cross: str, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(cross, folder)
    file = folder / "tokenizer.json"
    tokeniser = json.loads(file.read_text())
    tokeniser["model"]["vocab"]["unknown"] = tokeniser["model"]["vocab"].pop("[UNK]")
    tokeniser["added_tokens"] = [token for token in tokeniser["added_tokens"] if token["content"] != "[UNK]"]
    file.write_text(json.dumps(tokeniser))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("unk_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="the tokeniser cannot read an unknown word") as error:
        load_encoder(find_model(str(folder)), "float32", "cpu")
    assert str(error.value).startswith(f"{folder}: ")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("--model ./none", "./none: no such folder (and models on the hub are named OWNER/NAME or NAME)"),
        ("--depth 0", "--depth: expected 1 or more, found 0"),
        ("--kind both", "--kind: expected cross, bi, sparse or late, found 'both'"),
        ("--precision int8", "--precision: expected auto, float32 or bfloat16, found 'int8'"),
        ("--queries none.tsv", "none.tsv: no such file"),
        ("--queries c.tsv", "first.run): 5 of its queries have no text: 'q0', 'q1', 'q2', 'q3', 'q4'"),
        ("--device meta", "'meta' cannot be used; this machine has cpu, cuda:0, cuda:1"),
        ("--blind nowhere", "--blind: no file and no built-in lexicon 'nowhere'"),
    ],
)
def test_bad_input_gives_status_2(
    extra: str, message: str, files: list[str], cross: str, tmp_path: Path, monkeypatch: Any, evenrank: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    before = sorted(tmp_path.iterdir())
    device = [] if "--device" in extra else ["--device", "cpu"]
    done = evenrank("rerank", *files, "--model", cross, *device, *extra.split(), "--out", tmp_path / "out.run")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert message in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_blind_scores_are_those_of_masked_texts(
    files: list[str], data: Data, cross: str, tmp_path: Path, evenrank: Any
) -> None:
    out = tmp_path / "out.run"
    assert evenrank("rerank", *files, "--model", cross, "--out", out, "--blind", "gender-en").status == 0
    collection, queries = (
        table.with_columns(pl.col("text").str.replace_all(r"\b(she|he)\b", "[MASK]")) for table in data[1:]
    )
    expected = again(data, cross, collection=collection, queries=queries, batch_size=32).table
    assert read_run(out).table.select(KEYS).equals(expected.select(KEYS))
    assert not again(data, cross).table["doc_id"].equals(expected["doc_id"])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_goes_on_after_a_kill(
    files: list[str], cross: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evenrank: Any
) -> None:
    ways = [["rerank", *files, "--model", cross, "--kind", kind, "--out"] for kind in ("cross", "bi")]
    outs = [tmp_path / kind / "out.run" for kind in ("cross", "bi")]
    for out in outs:
        out.parent.mkdir()
    programs = [(KILLED, [*way, out]) for way, out in zip(ways, outs, strict=True)]
    imported = ["evenrank.cli", "evenrank.models.rerank", "sentence_transformers"]
    assert in_forks(imported, programs) == [-signal.SIGKILL] * 2

    saved: list[int] = []
    keep = Work.keep

    def noted(self: Work, number: int, *rest: Any) -> None:
        saved.append(number)
        keep(self, number, *rest)

    monkeypatch.setattr(Work, "keep", noted)
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 2)
    for way, out in zip(ways, outs, strict=True):
        side, whole = out.parent / ".out.run.rerank", out.parent / "whole.run"
        assert not out.exists()
        assert len(list(side.glob("_done-*.json"))) == 3
        for target, first in ((out, 3), (whole, 0)):
            saved.clear()
            assert evenrank(*way, target).status == 0
            assert saved[0] == first
        assert out.read_bytes() == whole.read_bytes()
        names = ["out.run", "out.run.card.json", "whole.run", "whole.run.card.json"]
        assert sorted(path.name for path in out.parent.iterdir()) == names
