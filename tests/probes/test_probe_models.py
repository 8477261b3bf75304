"""Probes of models with weights: what an interrupted one keeps, what is encoded, what is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.search.bm25 import BM25Scorer
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


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("cross"), head=True)


@pytest.fixture(scope="module")
def whole(cross: Path) -> evenrank.ProbeResult:
    return evenrank.probe(cross, variants={"swap": SWAP}, **GIVEN)


def test_an_interrupted_probe_resumes(cross, whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evenrank.probes.probing.Comparison.figures", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evenrank.probe(cross, variants={"swap": SWAP}, keep=tmp_path / "out.json", **GIVEN)
    assert (tmp_path / ".out.json.rerank").is_dir()
    again = evenrank.probe(cross, variants={"swap": SWAP}, keep=tmp_path / "out.json", **GIVEN)
    pairs = 3 * len({*TEXTS.values(), *SWAP.values(), *PLACEBO.values()})
    assert f"{whole.name}: {pairs} scores kept from an interrupted probe" in again.notes
    assert again.variants == whole.variants
    assert not list(tmp_path.iterdir())


def test_the_scores_are_those_of_the_model(cross: Path, whole: evenrank.ProbeResult) -> None:
    scorer = evenrank.load_ranker(cross, device="cpu")
    queries = [query for query in GIVEN["queries"].values() for _ in TEXTS]
    scores, then, other = (
        scorer.score(queries, [*found.values()] * 3).reshape(3, -1) for found in (TEXTS, SWAP, PLACEBO)
    )
    deviation = scores.std(axis=1, keepdims=True)
    # The swap is towards men in every passage.
    assert whole["swap"].means.effect.mean == pytest.approx(((then - scores) / deviation).mean(), abs=1e-5)
    placebo = whole["swap"].means.placebo
    assert placebo.mean == pytest.approx(((other - scores) / deviation).mean(), abs=1e-5)


def test_word_pieces_are_the_models_own(cross: Path, tmp_path: Path) -> None:
    counted = evenrank.load_ranker(cross, device="cpu").tokens(["night she", "", "night " * 200])
    assert counted == [2, 0, 200]
    bi = evenrank.load_ranker(tiny_bert(tmp_path / "bi"), kind="bi", device="cpu")
    assert bi.tokens(["night she"]) == [2]
    assert evenrank.load_ranker(lambda query, passages: [0.0]).tokens(["night"]) is None
    assert BM25Scorer({"d": "the night"}).tokens(["the night of the fox", ""]) == [2, 0]


def test_each_text_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny_bert(tmp_path / "bi")
    encoded: list[str] = []
    encode = SentenceTransformer.encode

    def counting(self: object, inputs: list[str], **options: object) -> object:
        encoded.extend(inputs)
        return encode(self, inputs, **options)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(SentenceTransformer, "encode", counting)
    evenrank.probe(folder, variants={"swap": SWAP, "again": SWAP}, kind="bi", **GIVEN)
    wanted = {*TEXTS.values(), *SWAP.values(), *PLACEBO.values(), *GIVEN["queries"].values()}
    assert np.unique(encoded, return_counts=True)[1].max() == 1
    assert set(encoded) == wanted


@pytest.mark.parametrize("kind", ["cross", "bi"])
def test_what_is_not_read_to_its_end(tmp_path: Path, kind: str) -> None:
    """Of twelve passages the odd ones are longer than the 64 tokens that the model reads."""
    folder = tiny_bert(tmp_path / kind, head=kind == "cross")
    long = {doc: f"{text}{' night' * 80 * (i % 2)}" for i, (doc, text) in enumerate(TEXTS.items())}
    short = {doc: text for i, (doc, text) in enumerate(long.items()) if not i % 2}
    swap = {doc: text.replace("she", "he") for doc, text in long.items()}
    given = {**GIVEN, "placebos": {}, "kind": kind, "collection": long}
    found = evenrank.probe(folder, variants={"swap": swap}, **given)
    assert "swap: in 18 of 36 compared pairs the model does not read to the end of both texts" in found.notes
    given["run"] = {query: dict.fromkeys(short, 1.0) for query in GIVEN["queries"]}
    found = evenrank.probe(folder, variants={"swap": swap}, **given)
    assert not any("to the end" in note for note in found.notes)
