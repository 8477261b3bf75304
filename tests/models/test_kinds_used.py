"""Every kind of ranker in the commands and integrations; what is refused; what is told of cut texts."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import texts, tiny_bert, without

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.files import EvenrankError, Run, as_run, read_run, write_run
from evenrank.models.load import ModelFolder, find_model, load_ranker
from evenrank.models.rerank import rerank
from evenrank.training.run import ranker_at
from kind_factories import llama

QUERIES = {f"q{i}": text for i, text in enumerate(texts(3, 4, seed=1))}
PASSAGES = {f"d{i}": text for i, text in enumerate(texts(20, 36, seed=2))}
RUN = {query: {passage: float(-rank) for rank, passage in enumerate(PASSAGES)} for query in QUERIES}


def refused(model: Any, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        load_ranker(model, **({"device": "cpu"} if isinstance(model, str | Path) else {}), **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def again(model: Any, **settings: Any) -> Run:
    return rerank(RUN, model=model, collection=PASSAGES, queries=QUERIES, device="cpu", quiet=True, **settings)


def test_the_command_tells_what_was_cut(folders: dict[str, ModelFolder], tmp_path: Path, evenrank: Any) -> None:
    write_run(as_run(RUN), tmp_path / "first.run")
    for file, content in (("c.tsv", PASSAGES), ("q.tsv", QUERIES)):
        (tmp_path / file).write_text("".join(f"{key}\t{text}\n" for key, text in content.items()))
    files = ["--collection", tmp_path / "c.tsv", "--queries", tmp_path / "q.tsv", "--device", "cpu", "--quiet"]
    prompts = ["--query-prompt", "she ", "--document-prompt", "a nurse "]
    command = ["rerank", tmp_path / "first.run", *files, *prompts, "--out", tmp_path / "out.run", "--model"]
    done = evenrank(*command, folders["splade"].path)
    assert done.status == 0, done.err
    # [CLS] and [SEP] besides.
    cut = sum(len(passage.split()) + 4 > 24 for passage in PASSAGES.values())
    assert f"splade: {cut} of 20 passages are longer than the 24 tokens that it reads" in done.err
    expected = again(folders["splade"].path, query_prompt="she ", document_prompt="a nurse ")
    assert read_run(tmp_path / "out.run").table.equals(expected.table)
    message = "--document-prompt: a cross-encoder has one prompt, --query-prompt, before the whole pair"
    assert evenrank(*command, folders["cross"].path).err == f"evenrank: {message}\n"


def test_what_was_cut_survives_an_interruption(
    folders: dict[str, ModelFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.files.work import Work

    monkeypatch.setattr("evenrank.models.rerank._WINDOW", 1)
    monkeypatch.setattr(Work, "remove", lambda self: None)

    def notes(**settings: Any) -> tuple[str, ...]:
        return again(folders["late"].path, batch_size=3, out=tmp_path / "out.run", **settings).notes[1:]

    first = notes()
    assert len(first) == 1
    for file in sorted((tmp_path / ".out.run.rerank").glob("scores-*.part"))[2:]:
        file.unlink()
    second = notes()
    assert "scores kept from an interrupted run" in second[0]
    assert second[1:] == first
    # Another prompt, other scores.
    assert "kept" not in notes(query_prompt="a nurse ")[0]


def test_prompts_where_there_are_none(tmp_path: Path) -> None:
    from ranker_factories import CASES

    def words(query: str, passages: list[str]) -> list[float]:
        return [0.0] * len(passages)

    knrm = CASES["knrm"].make(0)
    assert refused(words, query_prompt="x") == "`query_prompt`: a function takes no prompts"
    assert refused(knrm, document_prompt="") == "`document_prompt`: a kernel ranker takes no prompts"
    knrm.save(tmp_path / "knrm")
    message = "`query_prompt`, `document_prompt`: a kernel ranker takes no prompts"
    assert refused(str(tmp_path / "knrm"), query_prompt="x", document_prompt="y") == message
    assert refused(load_ranker(words), query_prompt="x") == (
        "`query_prompt`: a model that is a scorer already takes no prompts"
    )
    assert refused(words, query_prompt=7) == "`query_prompt`: expected a string, found 7"


SAYS = "`kind`: expected {}, as its files say, found {}"
NO_BACKEND = "the backend onnx cannot run this kind of model"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("splade", {"kind": "late"}, SAYS.format("sparse", "late")),
        ("late", {"kind": "bi"}, SAYS.format("late", "bi")),
        ("bi", {"kind": "sparse"}, SAYS.format("bi", "sparse")),
        ("bi", {"kind": "cross"}, SAYS.format("bi", "cross")),
        ("causal", {"kind": "late"}, SAYS.format("cross", "late")),
        ("splade", {"kind": "cross"}, SAYS.format("sparse", "cross")),
        *((name, {"backend": "onnx"}, NO_BACKEND) for name in ("splade", "inference-free", "causal", "static")),
    ],
)
def test_kinds_and_back_ends_that_the_files_deny(
    name: str, settings: Any, message: str, folders: dict[str, ModelFolder]
) -> None:
    assert refused(folders[name].path, **settings) == f"{folders[name].path}: {message}"


def test_plain_checkpoints_need_a_kind(folders: dict[str, ModelFolder], tmp_path: Path) -> None:
    masked = str(folders["splade"].path.parent / "checkpoint")
    plain = str(tiny_bert(tmp_path / "plain"))
    language = str(llama(tmp_path / "llama", more=("yes", "no")))
    # Without these words, both would be the unknown one: every score 0.
    speechless = str(llama(tmp_path / "speechless"))
    lacking = "the tokeniser lacks the words whose logits make the score (yes and no by default)"
    for folder, kind, message in (
        (masked, None, "not clear what kind of ranker this is (BertForMaskedLM): set `kind` to sparse or bi"),
        (plain, "sparse", "expected an architecture with a head that predicts words, found none"),
        (plain, "late", "expected a model with a projection for late interaction, found none"),
        (language, None, "not clear what kind of ranker this is (LlamaForCausalLM): set `kind` to cross or bi"),
        (speechless, "cross", lacking),
    ):
        assert refused(folder, kind=kind) == f"{folder}: {message}"
    assert load_ranker(masked, kind="sparse", device="cpu").facts()["kind"] == "sparse encoder"
    assert load_ranker(language, kind="cross", device="cpu").facts()["kind"] == "causal language model"
    new = 'a new ranker on it is RankerRecipe(kind="dot", model=…), or kind="cat"'
    with pytest.raises(EvenrankError, match=re.escape(f"{masked}: no ranker that was trained before: {new}")):
        ranker_at(masked)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("cross", "pooler"),
        ("bi", "word_embeddings"),
        ("late", ".layer.0."),
        ("splade", "word_embeddings"),
        ("causal", "layers.0.mlp"),
        ("splade", "cls.predictions.transform.dense"),
        ("inference-free", "cls.predictions.transform.dense"),
        ("causal", "lm_head"),
        ("cross", "classifier"),
    ],
)
def test_a_model_that_lacks_weights_is_refused(
    name: str, weights: str, folders: dict[str, ModelFolder], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = without(folders[name].path, tmp_path / "lacking", weights)
    # Whatever a program shows of transformers' warnings.
    caplog.set_level(logging.ERROR, "transformers.modeling_utils")
    logging.disable(logging.ERROR)
    try:
        message = refused(str(folder), kind="cross" if name == "causal" else None)
        assert logging.root.manager.disable == logging.ERROR
    finally:
        logging.disable(logging.NOTSET)
    assert re.fullmatch(rf"{folder}: the weights lack \S*{re.escape(weights)}.* its scores would be random", message)


def test_tied_weights_are_no_missing_head(tmp_path: Path) -> None:
    from kind_factories import causal

    model = causal(tmp_path, tied=True)
    model.save_pretrained(str(tmp_path / "tied"), create_model_card=False)
    rough = load_ranker(str(tmp_path / "tied"), device="cpu", precision="bfloat16")
    queries, passages = texts(200, 4, seed=5), texts(200, 9, seed=6)
    assert len(np.unique(rough.score(queries, passages))) > 150


def test_models_of_pylate(folders: dict[str, ModelFolder], tmp_path: Path) -> None:
    """Which saves a transformer and a projection, and its settings beside the kind or without one."""
    folder = tmp_path / "pylate"
    shutil.copytree(folders["late"].path, folder)
    config = json.loads((folder / "config_sentence_transformers.json").read_text())
    config = {"query_prefix": "query ", "document_prefix": "passage ", "__version__": config["__version__"]}
    for kind in ({"model_type": "ColBERT"}, {}):
        (folder / "config_sentence_transformers.json").write_text(json.dumps(config | kind))
        assert find_model(str(folder)).architecture == "late"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config | {"model_type": "ColBERT"}))
    modules = json.loads((folder / "modules.json").read_text())[:2]
    (folder / "modules.json").write_text(json.dumps(modules))
    facts = load_ranker(str(folder), device="cpu").facts()
    found = [facts[key] for key in ("kind", "query_prompt", "document_prompt")]
    assert found == ["late interaction", "query ", "passage "]


def test_other_back_ends(folders: dict[str, ModelFolder]) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    scorer = load_ranker(folders["late"].path, device="cpu", backend="onnx")
    assert (scorer.facts()["backend"], scorer.facts()["precision"]) == ("onnx", "float32")
    pairs = list(QUERIES.values()), list(PASSAGES.values())[:3]
    expected = load_ranker(folders["late"].path, device="cpu").score(*pairs)
    np.testing.assert_allclose(scorer.score(*pairs), expected, rtol=1e-3, atol=1e-3)
