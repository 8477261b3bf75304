"""Model folders whose files are of another form."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.files import InputError


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("evenrank.json", '{"kind": ["knrm"]}', "expected the kind of a kernel ranker, found \"\\['knrm'\\]\""),
        ("evenrank.json", "[" * 100_000, "evenrank.json: expected a JSON object"),
        ("evenrank.json", '{"a":' * 100_000, "evenrank.json: expected a JSON object"),
        ("config_sentence_transformers.json", '{"model_type": ["x"]}', "found \\['x'\\]"),
        ("config_sentence_transformers.json", '{"model_type": {}}', "found {}"),
        ("config.json", '{"architectures": 7}', "config.json: expected a list of architectures, found '7'"),
        ("config.json", '{"architectures": true}', "config.json: expected a list of architectures, found 'True'"),
    ],
)
def test_models_whose_files_are_of_another_form(tmp_path: Path, file: str, content: str, message: str) -> None:
    pytest.importorskip("torch")
    from evenrank.models.stored import find_model, load_kernel_ranker

    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / file).write_text(content)
    if file.startswith("config_"):
        (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(InputError, match=message):
        load_kernel_ranker(find_model(str(tmp_path)))
