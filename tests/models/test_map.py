"""``dot`` with a map behind its encoder, and the vectors of a frozen encoder, which are kept."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError, Run
from kind_factories import static
from tiny_models import texts, tiny_bert

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

import evenrank
from evenrank.models.encoders import DotRanker
from evenrank.models.kept_vectors import digest_of
from evenrank.training.recipes import RankerRecipe
from evenrank.training.run import build_ranker

# transformers and accelerate warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

QUERIES, PASSAGES = texts(12, 4), texts(12, 9, 1)
LISTS = [
    {"query": query, "passages": [PASSAGES[i], PASSAGES[i - 1], PASSAGES[i - 2]], "relevance": [1, 0, 0]}
    for i, query in enumerate(QUERIES)
]
SETTINGS: dict[str, Any] = {"batch": 4, "max_steps": 6, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def stored(bert: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of sentence-transformers that pools by the mean, normalises, and has prompts."""
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(bert), Pooling(32, "mean"), Normalize()]
    model = sentence_transformers.SentenceTransformer(
        modules=modules, prompts={"query": "query : ", "document": "passage : "}, device="cpu"
    )
    folder = str(tmp_path_factory.mktemp("models") / "stored")
    model.save_pretrained(folder, create_model_card=False)
    return folder


def frozen(model: str, **settings: Any) -> DotRanker:
    return DotRanker.from_pretrained(model, **{"map": True, "freeze": "encoder", **settings})


def digests(ranker: DotRanker) -> list[str]:
    return [digest_of(ranker._split(side)[0]) for side in ("query_", "passage_")]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that go through a frozen encoder from now on."""
    seen: list[str] = []
    plain = DotRanker._encoded

    def noted(self: DotRanker, side: str, batch: list[str]) -> Any:
        seen.extend(batch)
        return plain(self, side, batch)

    monkeypatch.setattr(DotRanker, "_encoded", noted)
    return seen


def test_a_map_is_a_product_with_a_matrix(stored: str) -> None:
    ranker = frozen(stored, layers=2, similarity="dot")
    model = sentence_transformers.SentenceTransformer(stored, device="cpu", config_kwargs={"num_hidden_layers": 2})
    query, passage = model.encode_query(QUERIES), model.encode_document(PASSAGES)
    with torch.no_grad():
        ranker.model[-1].sub_modules["query"][0].linear.weight.copy_(2 * torch.eye(32).roll(1, 0))
    expected = (2 * np.roll(query, 1, axis=1) * passage).sum(1)
    np.testing.assert_allclose(ranker.score(QUERIES, PASSAGES).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_only_the_maps_are_trained_and_the_folder_is_the_ranker(stored: str, tmp_path: Path, similarity: Any) -> None:
    ranker = frozen(stored, similarity=similarity)
    before, first = digests(ranker), ranker.score(QUERIES, PASSAGES).numpy()
    result = evenrank.train(ranker, LISTS, out=tmp_path / "run", **SETTINGS)
    scores = result.ranker.score(QUERIES, PASSAGES).numpy()
    assert digests(ranker) == before
    assert np.abs(scores - first).max() > 1e-3
    folder = tmp_path / "run" / "model"
    assert len(list(folder.rglob("*.safetensors"))) == 3  # the encoder once, and two maps
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    loaded = (model.encode_query(QUERIES) * model.encode_document(PASSAGES)).sum(1)
    np.testing.assert_allclose(loaded, scores, atol=1e-5)
    # Without a side, the passages' map.
    as_passages = model.encode(QUERIES, prompt=model.prompts["document"])
    np.testing.assert_allclose(as_passages, model.encode_document(QUERIES), atol=1e-5)
    # Trained further: with the encoder, or frozen again, from the same scores.
    again = build_ranker(RankerRecipe(kind="dot", model=str(folder), map=True, freeze="encoder", similarity=similarity))
    for further in (DotRanker.load(folder), again):
        np.testing.assert_allclose(further.score(QUERIES, PASSAGES).numpy(), scores, atol=1e-5)
        assert sum("sub_modules" in name for name, _ in further.named_parameters()) == 2
    assert digests(again) == before
    evenrank.train(again, LISTS, **SETTINGS)
    assert digests(again) == before
    whole = DotRanker.load(folder)
    evenrank.train(whole, LISTS, **SETTINGS)
    assert digests(whole) != before


def test_each_text_is_encoded_once(stored: str, encoded: list[str], tmp_path: Path) -> None:
    collection = pl.DataFrame({"doc_id": [str(i) for i in range(12)], "text": PASSAGES})
    queries = pl.DataFrame({"query_id": [str(i) for i in range(12)], "text": QUERIES})
    rows = [(str(q), str(d), float(-d)) for q in range(12) for d in range(12)]
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"), "first")
    recipe = RankerRecipe(kind="dot", model=stored, map=True, freeze="encoder", kept=str(tmp_path / "kept"))
    trained = [evenrank.train(recipe, LISTS, **SETTINGS).ranker]
    assert len(encoded) == len({*QUERIES}) + len({*PASSAGES})
    trained.append(evenrank.train(recipe, LISTS, **SETTINGS).ranker)
    # Re-ranked as from its folder, also by a ranker that another one's vectors were kept for.
    trained[1].save(tmp_path / "model")
    found = [
        evenrank.rerank(run, model=model, collection=collection, queries=queries, quiet=True).table
        for model in (*trained, tmp_path / "model")
    ]
    assert len(encoded) == len({*QUERIES}) + len({*PASSAGES})
    for table in found[1:]:
        np.testing.assert_allclose(table["score"], found[0]["score"], atol=1e-5)
    # Without a folder they are kept in memory.
    (ranker := frozen(stored)).score(QUERIES, PASSAGES)
    ranker.score(QUERIES, PASSAGES)
    assert len(encoded) == 2 * (len({*QUERIES}) + len({*PASSAGES}))


def other_weights(ranker: DotRanker) -> None:
    with torch.no_grad():
        next(ranker.model[0].parameters()).mul_(-1)


def test_other_encoders_prompts_and_lengths_never_mix(stored: str, tmp_path: Path) -> None:
    changes: list[Any] = [
        other_weights,
        lambda ranker: ranker.prompts.update(passage_=""),
        lambda ranker: setattr(ranker.model[0], "document_length", 4),
    ]
    same = frozen(stored).score(QUERIES, PASSAGES)
    for change in changes:
        # As in a ranker that has kept nothing yet.
        change(fresh := frozen(stored))
        expected = fresh.score(QUERIES, PASSAGES)
        assert (expected - same).abs().max() > 1e-3
        for folder in (None, tmp_path / "kept"):
            (ranker := frozen(stored)).keep_vectors(folder)
            torch.testing.assert_close(ranker.score(QUERIES, PASSAGES), same)
            change(ranker)
            torch.testing.assert_close(ranker.score(QUERIES, PASSAGES), expected)
    settings: dict[str, int]
    for settings in ({"query_length": 4, "passage_length": 5}, {"layers": 1}):
        (ranker := frozen(stored, **settings)).keep_vectors(tmp_path / "kept")
        expected = frozen(stored, **settings).score(QUERIES, PASSAGES)
        torch.testing.assert_close(ranker.score(QUERIES, PASSAGES), expected)


def test_a_file_of_vectors_that_is_damaged_or_foreign_is_named(stored: str, tmp_path: Path) -> None:
    ranker = frozen(stored)
    ranker.keep_vectors(tmp_path / "kept")
    ranker.score(QUERIES, PASSAGES)
    file = tmp_path / "kept" / "vectors.sqlite"
    with sqlite3.connect(file) as base:
        base.execute("UPDATE vectors SET value = zeroblob(137)")
    again = frozen(stored)
    again.keep_vectors(tmp_path / "kept")
    with pytest.raises(InputError, match=r"sqlite: damaged vectors: remove the file to encode everything anew"):
        again.score(QUERIES, PASSAGES)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "vectors.sqlite").write_text("of another program" * 100, encoding="utf-8")
    with pytest.raises(InputError, match=r"vectors\.sqlite: kept vectors cannot be used"):
        again.keep_vectors(tmp_path / "other")


def test_what_is_not_kept_or_cached(bert: str, tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match="only the vectors of a frozen encoder are kept"):
        DotRanker.from_pretrained(bert, map=True).keep_vectors()
    with pytest.raises(EvenrankError, match="`cached`: not with a frozen encoder"):
        evenrank.train(frozen(bert), LISTS, cached=4)
    static(tmp_path).save_pretrained(str(tmp_path / "static"), create_model_card=False)
    for start in (frozen, DotRanker.load):
        with pytest.raises(EvenrankError, match=r"static embeddings is not supported: a dot ranker needs a transf"):
            start(str(tmp_path / "static"))
