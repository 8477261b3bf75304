"""Every kind of ranker in the commands and integrations; what is refused; what is told of cut texts."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tiny_models import texts, tiny_bert, without

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.files import EvenrankError, read_run
from evenrank.models.load import load_ranker
from evenrank.models.rerank import rerank
from evenrank.models.stored import find_model, load_encoder
from evenrank.training.run import ranker_at
from kind_factories import KINDS, llama, saved

QUERIES = {f"q{i}": text for i, text in enumerate(texts(3, 4, seed=1))}
PASSAGES = {f"d{i}": text for i, text in enumerate(texts(20, 36, seed=2))}
RUN = {query: {passage: float(-rank) for rank, passage in enumerate(PASSAGES)} for query in QUERIES}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("kinds")
    made = {}
    for name in KINDS:
        (home / name).mkdir()
        made[name] = str(saved(name, home / name))
    return made


def refused(model: Any, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        load_ranker(model, device="cpu", **settings) if isinstance(model, str) else load_ranker(model, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_command_tells_what_was_cut(folders: dict[str, str], tmp_path: Path) -> None:
    from evenrank.cli import app

    rows = [f"{query} Q0 {passage} 1 {score} first" for query, of in RUN.items() for passage, score in of.items()]
    (tmp_path / "first.run").write_text("\n".join(rows) + "\n")
    for file, content in (("c.tsv", PASSAGES), ("q.tsv", QUERIES)):
        (tmp_path / file).write_text("".join(f"{key}\t{text}\n" for key, text in content.items()))
    files = ["--collection", tmp_path / "c.tsv", "--queries", tmp_path / "q.tsv", "--device", "cpu", "--quiet"]
    command = ["rerank", tmp_path / "first.run", *files, "--out", tmp_path / "out.run", "--query-prompt", "she "]
    prompt = ["--document-prompt", "a nurse "]
    done = CliRunner().invoke(app, [str(part) for part in [*command, *prompt, "--model", folders["splade"]]])
    assert done.exit_code == 0, done.output
    # [CLS] and [SEP] besides.
    cut = sum(len(passage.split()) + 4 > 24 for passage in PASSAGES.values())
    assert f"splade: {cut} of 20 passages are longer than the 24 tokens that it reads" in done.output
    found = read_run(tmp_path / "out.run").table
    scorer = load_ranker(folders["splade"], device="cpu", query_prompt="she ", document_prompt="a nurse ")
    pairs = [[QUERIES[q] for q in found["query_id"]], [PASSAGES[d] for d in found["doc_id"]]]
    np.testing.assert_allclose(found["score"].to_numpy(), scorer.score(*pairs), rtol=1e-5, atol=2e-5)
    done = CliRunner().invoke(app, [str(part) for part in [*command, *prompt, "--model", folders["cross"]]])
    assert isinstance(done.exception, EvenrankError)
    assert str(done.exception) == (
        "--document-prompt: a cross-encoder has one prompt, --query-prompt, before the whole pair"
    )


def test_what_was_cut_survives_an_interruption(
    folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.files.work import Work

    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 1)
    monkeypatch.setattr(Work, "remove", lambda self: None)

    def notes(name: str, **settings: Any) -> tuple[str, ...]:
        out = tmp_path / f"{name}.run"
        return rerank(
            RUN,
            model=folders[name],
            collection=PASSAGES,
            queries=QUERIES,
            batch_size=3,
            out=out,
            device="cpu",
            quiet=True,
            **settings,
        ).notes[1:]

    for name in ("cross", "late"):
        first = notes(name)
        assert len(first) == 1
        kept = sorted((tmp_path / f".{name}.run.rerank").glob("scores-*.part"))
        assert len(kept) > 3
        for file in kept[2:]:
            file.unlink()
        again = notes(name)
        assert "scores kept from an interrupted run" in again[0]
        assert again[1:] == first
        # Another prompt, other scores.
        assert "kept" not in notes(name, query_prompt="a nurse ")[0]


def test_windows_count_each_passage_once(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rerank(RUN, model=folders["bi"], collection=PASSAGES, queries=QUERIES, device="cpu", quiet=True)
    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 1)
    monkeypatch.setattr("evenrank.models.encoder_scorers._BATCHES", 1)
    for name in ("bi", "splade", "late"):
        parts = rerank(
            RUN, model=folders[name], collection=PASSAGES, queries=QUERIES, batch_size=3, device="cpu", quiet=True
        )
        monkeypatch.setattr("evenrank.models.rerank._WINDOW", 64)
        whole = rerank(RUN, model=folders[name], collection=PASSAGES, queries=QUERIES, device="cpu", quiet=True)
        monkeypatch.setattr("evenrank.models.rerank._WINDOW", 1)
        assert parts.notes == whole.notes
        assert " of 20 passages are longer than " in parts.notes[1]
        key = ["query_id", "doc_id"]
        both = parts.table.join(whole.table, on=key)
        np.testing.assert_allclose(both["score"], both["score_right"], rtol=1e-5, atol=2e-5)


def test_prompts_where_there_are_none(tmp_path: Path) -> None:
    from ranker_factories import CASES

    def words(query: str, passages: list[str]) -> list[float]:
        return [0.0] * len(passages)

    knrm = CASES["knrm"].make(0)
    assert refused(words, query_prompt="x") == "`query_prompt`: a function takes no prompts"
    assert refused(knrm, document_prompt="") == "`document_prompt`: a kernel ranker takes no prompts"
    knrm.save(tmp_path / "knrm")
    both = {"query_prompt": "x", "document_prompt": "y"}
    message = "`query_prompt`, `document_prompt`: a kernel ranker takes no prompts"
    assert refused(str(tmp_path / "knrm"), **both) == message
    assert refused(load_ranker(words), query_prompt="x") == (
        "`query_prompt`: a model that is a scorer already takes no prompts"
    )
    assert refused(words, query_prompt=7) == "`query_prompt`: expected a string, found 7"
    assert load_ranker(words).facts() == {"kind": "function", "model": "words"}
    assert load_ranker(knrm).facts() == {
        "kind": "knrm", "model": "knrm", "sha256": None, "precision": "float32", "backend": "torch", "device": "cpu"
    }  # fmt: skip


def test_kinds_that_the_files_deny(folders: dict[str, str]) -> None:
    def message(name: str, kind: str) -> str:
        return refused(folders[name], kind=kind).removeprefix(f"{folders[name]}: ")

    assert message("splade", "late") == "`kind`: expected sparse, as its files say, found late"
    assert message("late", "bi") == "`kind`: expected late, as its files say, found bi"
    assert message("bi", "sparse") == "`kind`: expected bi, as its files say, found sparse"
    assert message("splade", "cross") == "a sparse encoder has no head that scores pairs"
    assert message("causal", "late") == "`kind`: expected cross, as its files say, found late"
    assert find_model(folders["late"], "late").architecture == "late"


def test_plain_checkpoints_need_a_kind(folders: dict[str, str], tmp_path: Path) -> None:
    masked = str(Path(folders["splade"]).parent / "checkpoint")
    assert refused(masked) == (
        f"{masked}: not clear what kind of ranker this is (BertForMaskedLM): set `kind` to sparse or bi"
    )
    assert load_ranker(masked, kind="sparse", device="cpu").facts()["kind"] == "sparse encoder"
    with pytest.raises(EvenrankError) as error:
        ranker_at(masked)
    new = 'a new ranker on it is RankerRecipe(kind="dot", model=…), or kind="cat"'
    assert str(error.value) == f"{masked}: no ranker that was trained before: {new}"
    plain = str(tiny_bert(tmp_path / "plain"))
    assert refused(plain, kind="sparse") == (
        f"{plain}: expected an architecture with a head that predicts words, found none"
    )
    assert (
        refused(plain, kind="late") == f"{plain}: expected a model with a projection for late interaction, found none"
    )
    language = str(llama(tmp_path / "llama", more=("yes", "no")))
    assert refused(language).endswith("(LlamaForCausalLM): set `kind` to cross or bi")
    assert load_ranker(language, kind="cross", device="cpu").facts()["kind"] == "causal language model"
    # Without these words, both would be the unknown one: every score 0.
    speechless = str(llama(tmp_path / "speechless"))
    assert refused(speechless, kind="cross") == (
        f"{speechless}: the tokeniser lacks the words whose logits make the score (yes and no by default)"
    )


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("cross", "word_embeddings"),
        ("cross", "pooler"),
        ("cross", ".layer.0."),
        ("bi", "word_embeddings"),
        ("late", ".layer.0."),
        ("splade", "word_embeddings"),
        ("causal", "layers.0.mlp"),
    ],
)
def test_a_model_that_lacks_weights_is_refused(
    name: str, weights: str, folders: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = without(folders[name], tmp_path / "lacking", weights)
    # Whatever a program shows of transformers' warnings.
    caplog.set_level(logging.ERROR, "transformers.modeling_utils")
    logging.disable(logging.ERROR)
    try:
        message = refused(str(folder), kind="cross" if name == "causal" else None)
        assert logging.root.manager.disable == logging.ERROR
    finally:
        logging.disable(logging.NOTSET)
    assert re.fullmatch(rf"{folder}: the weights lack \S*{re.escape(weights)}.* its scores would be random", message)


@pytest.mark.parametrize(
    ("name", "weights", "head"),
    [
        ("splade", "cls.predictions.transform.dense", "cls.predictions.transform.dense"),
        ("inference-free", "cls.predictions.transform.dense", "cls.predictions.transform.dense"),
        ("causal", "lm_head", "lm_head"),
    ],
)
def test_heads_without_weights(name: str, weights: str, head: str, folders: dict[str, str], tmp_path: Path) -> None:
    folder = without(folders[name], tmp_path / "headless", weights)
    assert refused(str(folder)) == f"{folder}: the weights lack the head {head}: its scores would be random"


def test_tied_weights_are_no_missing_head(tmp_path: Path) -> None:
    from kind_factories import causal

    model = causal(tmp_path, tied=True)
    model.save_pretrained(str(tmp_path / "tied"), create_model_card=False)
    rough = load_ranker(str(tmp_path / "tied"), device="cpu", precision="bfloat16")
    queries, passages = texts(200, 4, seed=5), texts(200, 9, seed=6)
    assert len(np.unique(rough.score(queries, passages))) > 150


@pytest.mark.parametrize("name", ["late", "static", "inference-free"])
def test_missing_weights_are_told_in_one_line(name: str, folders: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "part"
    shutil.copytree(folders[name], folder)
    files = sorted(folder.rglob("*.safetensors"), key=lambda file: file.stat().st_size)
    files[0].unlink()
    expected = "the folder has no weights" if name == "static" else "the model cannot be loaded ("
    assert refused(str(folder)).startswith(f"{folder}: {expected}")
    (files[0].parent / "pytorch_model.bin").write_bytes(b"x")
    assert "pickled weights are not loaded" in refused(str(folder))


def test_models_of_pylate(folders: dict[str, str], tmp_path: Path) -> None:
    """Which saves a transformer and a projection, and its settings beside the kind or without one."""
    folder = tmp_path / "pylate"
    shutil.copytree(folders["late"], folder)
    config = json.loads((folder / "config_sentence_transformers.json").read_text())
    config = {"query_prefix": "query ", "document_prefix": "passage ", "__version__": config["__version__"]}
    for kind in ({"model_type": "ColBERT"}, {}):
        (folder / "config_sentence_transformers.json").write_text(json.dumps(config | kind))
        assert find_model(str(folder)).architecture == "late"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config | {"model_type": "ColBERT"}))
    modules = json.loads((folder / "modules.json").read_text())[:2]
    (folder / "modules.json").write_text(json.dumps(modules))
    scorer = load_ranker(str(folder), device="cpu")
    assert (scorer.facts()["kind"], scorer.facts()["query_prompt"]) == ("late interaction", "query ")
    model = load_encoder(find_model(str(folder)), "float32", "cpu")
    queries, passages = list(QUERIES.values()), list(PASSAGES.values())[:3]
    expected = model.similarity_pairwise(model.encode_query(queries), model.encode_document(passages))
    np.testing.assert_allclose(scorer.score(queries, passages), expected.numpy(), rtol=1e-5, atol=2e-5)


def test_other_back_ends(folders: dict[str, str]) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for name in ("splade", "inference-free", "causal", "static"):
        message = refused(folders[name], backend="onnx")
        assert message == f"{folders[name]}: the backend onnx cannot run this kind of model"
    scorer = load_ranker(folders["late"], device="cpu", backend="onnx")
    assert (scorer.facts()["backend"], scorer.facts()["precision"]) == ("onnx", "float32")
    queries, passages = list(QUERIES.values()), list(PASSAGES.values())[:3]
    expected = load_ranker(folders["late"], device="cpu").score(queries, passages)
    np.testing.assert_allclose(scorer.score(queries, passages), expected, rtol=1e-3, atol=1e-3)


def test_frames_of_texts_are_taken_too(folders: dict[str, str]) -> None:
    collection = pl.DataFrame({"doc_id": list(PASSAGES), "text": list(PASSAGES.values())})
    run = rerank(RUN, model=folders["static"], collection=collection, queries=QUERIES, device="cpu", quiet=True)
    assert run.notes == ("static: static embeddings, float32",)
