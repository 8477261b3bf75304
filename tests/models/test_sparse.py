"""The sparse ranker beside the whole vocabulary's weights, its fixed query side, and a training from a recipe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from sentence_transformers import SparseEncoder
from sentence_transformers.sparse_encoder.modules import SpladePooling

import evenrank
from evenrank.files import EvenrankError, InputError
from evenrank.models.sparse import SparseRanker
from evenrank.training.recipes import RankerRecipe
from kind_factories import bi, inference_free, splade
from ranker_factories import CASES
from tiny_models import texts

# Of lists that were kept in a temporary folder.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
QUERIES, PASSAGES = texts(5, 6, 11), texts(7, 20, 12)


def whole_vocabulary(model: SparseEncoder) -> np.ndarray:
    """[Q, P]: every term's weight in every text, and their inner products."""
    queries, passages = model.encode_query(QUERIES), model.encode_document(PASSAGES)
    return (queries.to_dense() @ passages.to_dense().T).numpy()


def scored(ranker: SparseRanker) -> np.ndarray:
    pairs = [(query, passage) for query in QUERIES for passage in PASSAGES]
    return ranker.score(*zip(*pairs, strict=True)).numpy().reshape(len(QUERIES), len(PASSAGES))


@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_the_terms_of_the_query_are_enough(tmp_path: Path, activation: str) -> None:
    model = splade(tmp_path)
    model[1].activation_function = activation
    ranker = SparseRanker(model)
    np.testing.assert_allclose(scored(ranker), whole_vocabulary(model), rtol=1e-4)
    assert ranker.score([], []).shape == (0,)


def test_weights_of_words_may_stand_for_the_query_side(tmp_path: Path) -> None:
    model = inference_free(tmp_path)
    np.testing.assert_allclose(scored(SparseRanker(model)), whole_vocabulary(model), rtol=1e-4)


def test_only_the_passage_side_learns(tmp_path: Path) -> None:
    ranker = CASES["sparse"].make(0)
    assert isinstance(ranker, SparseRanker)
    before = ranker.model.encode_query(QUERIES).to_dense()
    lists = evenrank.training_lists(
        {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}},
        qrels={"q1": {"d1": 1}, "q2": {"d2": 1}},
        collection={"d1": "the nurse runs home", "d2": "a doctor wrote software"},
        queries={"q1": "nurse", "q2": "software by night"},
        negatives=1,
    )
    found = evenrank.train(ranker, lists, batch=2, max_steps=20, learning_rate=5e-3, out=tmp_path / "run")
    losses = [row["loss"] for row in found.log if "loss" in row]
    assert losses[-1] < losses[0]
    saved = SparseEncoder(str(tmp_path / "run" / "model"))
    torch.testing.assert_close(saved.encode_query(QUERIES).to_dense(), before)
    assert (saved.encode_document(QUERIES).to_dense() - before).abs().max() > 0.01
    np.testing.assert_allclose(scored(ranker), whole_vocabulary(saved), rtol=1e-4)
    # Trained further, from its folder.
    again = evenrank.train(tmp_path / "run" / "model", lists, batch=2, max_steps=1).ranker
    assert isinstance(again, SparseRanker)


def test_what_is_no_sparse_ranker(tmp_path: Path) -> None:
    for given, pooling in (({"similarity_fn_name": "cosine"}, "max"), ({}, "sum")):
        model = splade(tmp_path / pooling, **given)
        model[1] = SpladePooling(pooling)
        with pytest.raises(EvenrankError, match="a sparse ranker needs SPLADE with the maximum"):
            SparseRanker(model)
    bi(tmp_path / "bi").save_pretrained(str(tmp_path / "vectors"))
    with pytest.raises(InputError, match="vectors"):
        SparseRanker.load(tmp_path / "vectors")
    with pytest.raises(EvenrankError, match="expected 1 or more, found 0"):
        SparseRanker.from_pretrained("anything", passage_length=0)
    with pytest.raises(ValueError, match="a sparse ranker needs one"):
        RankerRecipe(kind="sparse")
