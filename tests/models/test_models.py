"""Model folders and hub names: what is found, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenrank.files import EvenrankError
from evenrank.models.load import find_model, load_kernel_ranker

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")


def message_of(folder: object, kind: Any = None) -> str:
    with pytest.raises(EvenrankError) as caught:
        load_kernel_ranker(find_model(str(folder), kind))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}")


BERT = '{"architectures": ["BertModel"]}'
HEAD = '{"architectures": ["BertForSequenceClassification"]}'
KNOWN = "a cross-encoder, bi-encoder, sparse encoder or late-interaction encoder"
PICKLED = "pickled weights are not loaded, because they can run code: save the model as model.safetensors"
ST = "config_sentence_transformers.json"


def st(content: str) -> dict[str, str]:
    return {"modules.json": "[]", "model.safetensors": "", ST: content}


def own(content: str) -> dict[str, str]:
    return {"evenrank.json": content, "model.safetensors": ""}


PLAIN = {"config.json": BERT, "model.safetensors": "x"}
PART = {"modules.json": "[]", "model.safetensors": "x", "2_Dense/pytorch_model.bin": "x"}


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        ({"config.json": HEAD}, None, ": the folder has no weights: expected model.safetensors"),
        ({"config.json": HEAD, "pytorch_model.bin": "x"}, None, f"/pytorch_model.bin: {PICKLED}"),
        (PART, None, f"/2_Dense/pytorch_model.bin: {PICKLED}"),
        (PLAIN, None, ": not clear what kind of ranker this is (BertModel): set `kind` to bi"),
        (PLAIN, "cross", ": expected an architecture with a head that scores pairs, found BertModel"),
        (st('{"model_type": "DenseEncoder"}'), None, f": expected {KNOWN}, found DenseEncoder"),
        (st('{"model_type": ["x"]}'), None, f": expected {KNOWN}, found ['x']"),
        (st("["), None, f"/{ST}: expected a JSON object"),
        (own('{"kind": ["knrm"]}'), None, "/evenrank.json: expected the kind of a kernel ranker, found \"['knrm']\""),
        (own("[" * 100_000), None, "/evenrank.json: expected a JSON object"),
        (
            {**PLAIN, "config.json": '{"architectures": 7}'},
            None,
            "/config.json: expected a list of architectures, found '7'",
        ),
    ],
)
def test_model_folders_that_are_refused(files: dict[str, str], kind: Any, message: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert message_of(tmp_path, kind) == message


def test_names_that_are_no_models() -> None:
    for name in ("./a/b", "a/b/c", "/a", "~/a", "a//b", "a b"):
        assert message_of(name) == ": no such folder (and models on the hub are named OWNER/NAME or NAME)"


def test_hub_names_are_fetched_without_code_and_pickles(cross: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[Any] = []

    def fetched(name: str, **settings: Any) -> str:
        asked.append((name, settings))
        if name == "owner/none":
            raise ValueError("404 Not Found\nsecond line")
        return cross

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    assert find_model("owner/tiny").name == "tiny"
    # The oldest models have no owner.
    assert find_model("bert-base-uncased").name == "bert-base-uncased"
    patterns = asked[0][1]["allow_patterns"]
    assert "*.safetensors" in patterns
    assert not any(pattern.endswith((".py", ".bin")) for pattern in patterns)
    with pytest.raises(
        EvenrankError, match=r"^owner/none: no such folder, and it cannot be downloaded from the hub \(404 Not Found\)$"
    ):
        find_model("owner/none")
