"""Probes of models with weights: what an interrupted one keeps, what is encoded, what is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenrank
from tiny_models import texts, tiny_bert

pytest.importorskip("torch", reason="needs the extra [neural]")

TEXTS = {f"d{i}": f"{text} she" for i, text in enumerate(texts(12, 9))}
SWAP = {doc: f"{text.removesuffix('she')}he" for doc, text in TEXTS.items()}
PLACEBO = {doc: f"{text.removesuffix('she')}night she" for doc, text in TEXTS.items()}
GIVEN: dict[str, Any] = {
    "collection": TEXTS,
    "queries": {"q1": "doctor runs home", "q2": "software by night", "q3": "the nurse"},
    "run": {query: dict.fromkeys(TEXTS, 1.0) for query in ("q1", "q2", "q3")},
    "placebos": {"swap": PLACEBO},
    "device": "cpu",
}


def test_an_interrupted_probe_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cross = tiny_bert(tmp_path / "model", head=True)
    whole = evenrank.probe(cross, variants={"swap": SWAP}, **GIVEN)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evenrank.probes.probing.compare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evenrank.probe(cross, variants={"swap": SWAP}, keep=tmp_path / "out.json", **GIVEN)
    assert (tmp_path / ".out.json.rerank").is_dir()
    again = evenrank.probe(cross, variants={"swap": SWAP}, keep=tmp_path / "out.json", **GIVEN)
    pairs = 3 * len({*TEXTS.values(), *SWAP.values(), *PLACEBO.values()})
    assert f"{whole.name}: {pairs} scores kept from an interrupted probe" in again.notes
    assert again.variants == whole.variants
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
