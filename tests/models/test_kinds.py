"""Every kind of ranker through one protocol: tiny random models score as sentence-transformers itself scores them.

The other kinds are in ``test_kinds_used``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import WORDS, texts

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.load import ModelFolder, load_encoder, load_ranker
from evenrank.models.scorers import SHORTER, Scorer
from kind_factories import KINDS, own_scores

QUERIES = texts(30, 5, seed=1)
PASSAGES = texts(30, 36, seed=2)
PROMPTED = {
    name: {"query": "she wrote "} | ({} if kind.architecture == "cross" else {"document": "the nurse "})
    for name, kind in KINDS.items()
}
OWN = {"bi": {"query": "query: ", "document": "passage: "}, "late": {"query": "query ", "document": "passage "}}
"""The prompts in the models' configurations."""


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(folder: ModelFolder, **settings: Any) -> Scorer:
    return load_ranker(folder.path, device="cpu", **settings)


def arguments(prompts: dict[str, str]) -> dict[str, str]:
    return {f"{side}_prompt": prompt for side, prompt in prompts.items()}


def close(found: Any, expected: Any) -> None:
    """Equal to 1e-5, of scores that differ."""
    assert np.std(expected) > 0.05
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_scores_are_sentence_transformers_own(
    name: str, folders: dict[str, ModelFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenrank.models.scorers._SIMILARITIES", 7)
    folder, kind = folders[name], KINDS[name]
    scorer, model = load(folder), load_encoder(folder, "float32", "cpu")
    found = scorer.score(QUERIES, PASSAGES, 30)
    close(found, own_scores(model, QUERIES, PASSAGES))
    facts = scorer.facts()
    assert (folder.architecture, facts["kind"], facts["reads"]) == (kind.architecture, kind.name, kind.reads)
    similarity = {"bi": "cosine", "sparse": "dot", "late": "maxsim"}.get(kind.architecture)
    assert (facts.get("similarity"), facts["sha256"]) == (similarity, folder.digest())
    # A loaded model is left as it was.
    assert load_ranker(model.train()).score(QUERIES, PASSAGES, 30).tobytes() == found.tobytes()
    assert model.training
    assert "preprocess" not in vars(model)


BESIDE = {"cross": 5, "bi": 4, "splade": 4, "inference-free": 4, "late": 4, "causal": 9, "causal-pair": 2}
"""The tokens beside those words that are ranked: two of a prompt, special ones, and a template's own."""


def test_truncation_is_counted(name: str, folders: dict[str, ModelFolder]) -> None:
    prompts = PROMPTED[name]
    scorer = load(folders[name], **arguments(prompts))
    assert scorer.truncated is not None
    assert (scorer.truncated.cut, scorer.truncated.of) == (0, 0)
    scorer.score(QUERIES, PASSAGES, 4)
    unit = "pair" if KINDS[name].architecture == "cross" else "passage"
    ranked = [f"{query} {passage}" for query, passage in zip(QUERIES, PASSAGES, strict=True)]
    ranked, reads = ranked if unit == "pair" else PASSAGES, KINDS[name].reads
    expected = sum(reads is not None and len(text.split()) + BESIDE[name] > reads for text in ranked)
    assert (scorer.truncated.unit, scorer.truncated.cut, scorer.truncated.of) == (unit, expected, 30)
    assert name == "static" or 0 < expected < 30
    # The end of a chat template is put back.
    assert scorer.truncated.lost_end == 0
    if unit == "passage":
        scorer.score([*QUERIES, *QUERIES], [PASSAGES[0]] * 60)
        assert scorer.truncated.of == 31


def test_prompts_are_reported_and_change_the_scores(name: str, folders: dict[str, ModelFolder]) -> None:
    prompts = PROMPTED[name]
    model = load_encoder(folders[name], "float32", "cpu")
    plain, scorer = load(folders[name]), load(folders[name], **arguments(prompts))
    facts = scorer.facts()
    assert {side: facts[f"{side}_prompt"] for side in prompts} == prompts
    found = scorer.score(QUERIES, PASSAGES, 30)
    close(found, own_scores(model, QUERIES, PASSAGES, prompts))
    assert np.abs(found - plain.score(QUERIES, PASSAGES, 30)).max() > 1e-3
    given = load_ranker(model, **arguments(prompts))
    assert given.score(QUERIES, PASSAGES, 30).tobytes() == found.tobytes()
    assert {side: plain.facts()[f"{side}_prompt"] for side in prompts} == OWN.get(name, dict.fromkeys(prompts))
    assert load(folders[name], **dict.fromkeys(arguments(prompts), "")).facts()["query_prompt"] is None


def test_the_ends_of_what_is_read(name: str, folders: dict[str, ModelFolder]) -> None:
    scorer = load(folders[name])
    ends = scorer.reads_to(QUERIES, PASSAGES)
    if not KINDS[name].offsets:
        assert ends is None
        return
    assert ends is not None
    # What lies behind the end does not count.
    kept = [passage[:end] for passage, end in zip(PASSAGES, ends, strict=True)]
    assert name == "static" or kept != PASSAGES
    np.testing.assert_allclose(scorer.score(QUERIES, kept), scorer.score(QUERIES, PASSAGES), rtol=1e-5, atol=2e-5)


def test_scores_in_bfloat16_are_not_rounded_to_it(name: str, folders: dict[str, ModelFolder]) -> None:
    rng = np.random.default_rng(0)
    queries = [" ".join(rng.choice(WORDS, 4)) for _ in range(300)]
    passages = [" ".join(rng.choice(WORDS, 9)) for _ in range(300)]
    scorer = load(folders[name], precision="bfloat16")
    # Static embeddings stay what they are.
    assert scorer.facts()["precision"] == ("float32" if name == "static" else "bfloat16")
    exact, rough = load(folders[name]).score(queries, passages), scorer.score(queries, passages)
    assert np.abs(exact - rough).mean() < 0.1 * exact.std()
    rounded = torch.from_numpy(rough).bfloat16().double().numpy()
    assert len(np.unique(rough)) > 290 > len(np.unique(rounded))


@pytest.mark.parametrize("similarity", ["dot", "cosine", "euclidean", "manhattan"])
def test_each_similarity_of_sparse_vectors(similarity: str, tmp_path: Path) -> None:
    from kind_factories import splade

    model = splade(tmp_path, similarity_fn_name=similarity)
    found = load_ranker(model).score(QUERIES, PASSAGES, 3)
    first = model.encode_query(QUERIES, convert_to_sparse_tensor=False)
    second = model.encode_document(PASSAGES, convert_to_sparse_tensor=False)
    np.testing.assert_allclose(found, model.similarity_pairwise(first, second).numpy(), rtol=1e-5, atol=1e-4)
    assert load_ranker(model).facts()["similarity"] == similarity


@pytest.mark.parametrize("restored", [True, False])
def test_a_prompt_that_loses_its_end_is_counted(restored: bool, folders: dict[str, ModelFolder]) -> None:
    model = load_encoder(folders["causal"], "float32", "cpu")
    if not restored:
        model[0].processing_kwargs = {"chat_template": {"restore_suffix": False}}
    scorer = load_ranker(model)
    scorer.score(QUERIES, PASSAGES)
    found = scorer.truncated
    assert found is not None
    assert found.cut > 10
    # "." ends no passage.
    assert found.lost_end == (0 if restored else found.cut)
    lines = found.notes("llama")
    assert lines[0] == f"llama: {found.cut} of 30 pairs are longer than the 24 tokens that it reads{SHORTER}"
    lost = f"llama: {found.lost_end} pairs lost the end of the prompt, from which the score is read"
    assert lines[1:] == (() if restored else (lost,))


def test_a_slow_tokeniser_leaves_truncation_unknown(folders: dict[str, ModelFolder], monkeypatch: Any) -> None:
    model = load_encoder(folders["bi"], "float32", "cpu")
    fast = model.preprocess
    monkeypatch.setattr(model, "preprocess", lambda *given, **settings: dict(fast(*given, **settings)), raising=False)
    scorer = load_ranker(model)
    scorer.score(QUERIES, PASSAGES)
    assert scorer.truncated is None
    assert scorer.reads_to(QUERIES, PASSAGES) is None
