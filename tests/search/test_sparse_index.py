"""Indexes of weights of terms: equal to the model's own similarity, also without inference for queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from dense_indexes import DOCUMENTS, QUERIES, bi_encoder, collection, sparse_encoder
from evenrank import Encoding, build_index, open_index, retrieve
from evenrank.files import EvenrankError
from evenrank.models.text_encoders import TextEncoder

# transformers warns of what it does itself.
SMALL = Encoding(batch_size=4)
FORMS = {"splade": {}, "cosine": {"similarity": "cosine"}, "inference-free": {"inference_free": True}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each form, a collection, and its indexes."""
    folder = tmp_path_factory.mktemp("sparse")
    collection(folder / "c.tsv")
    for name, settings in FORMS.items():
        sparse_encoder(folder / name, **settings)  # type: ignore[arg-type]
        build_index(folder / "c.tsv", out=folder / f"{name}-index", model=folder / name, encoding=SMALL, quiet=True)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_equals_the_models_own_similarities(home: Path, tmp_path: Path, form: str) -> None:
    from sentence_transformers import SparseEncoder

    texts = collection(tmp_path / "c.tsv")
    model = SparseEncoder(str(home / form), device="cpu")
    own = model.similarity(model.encode_query(list(QUERIES.values())), model.encode_document(list(texts.values())))
    run = retrieve(home / f"{form}-index", QUERIES, k=DOCUMENTS, quiet=True)
    for row, query in enumerate(QUERIES):
        found = dict(run.table.filter(query_id=query).select("doc_id", "score").iter_rows())
        scores = {doc: float(own[row, number]) for number, doc in enumerate(texts)}
        assert found.keys() == {doc for doc, score in scores.items() if score > 0}
        for doc, score in found.items():
            assert score == pytest.approx(scores[doc], rel=1e-5, abs=1e-6)
        ranked = run.table.filter(query_id=query).sort("rank").select("score", "doc_id").rows()
        assert ranked == sorted(ranked, reverse=True)


def test_says_what_it_is(home: Path, tmp_path: Path) -> None:
    manifest = open_index(home / "splade-index", check=True).manifest
    assert manifest.model is not None
    assert (manifest.kind, manifest.model["kind"]) == ("sparse", "sparse encoder")
    run = retrieve(home / "splade-index", QUERIES, k=3, quiet=True)
    assert (run.name, run.notes) == ("splade", ("splade: weights of 25 terms",))
    with pytest.raises(EvenrankError, match="`kind`"):
        retrieve(home / "splade-index", QUERIES, model=bi_encoder(tmp_path / "bi"), quiet=True)


def test_a_query_without_a_term_is_counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import csr_matrix

    rows = csr_matrix(np.eye(4, 25, dtype=np.float32))
    rows.data[1] = 0
    rows.eliminate_zeros()
    monkeypatch.setattr(TextEncoder, "queries", lambda self, texts: rows)
    notes = retrieve(home / "splade-index", QUERIES, k=3, quiet=True).notes
    assert any(note.endswith("no term of a document and no documents") for note in notes)
    for found, message in (
        (csr_matrix((4, 25), dtype=np.float32), "none of the 4 queries has a term of a document"),
        (-rows, "splade: expected weights of terms from 0, found a negative one"),
        (csr_matrix((4, 9), dtype=np.float32), "weights of 25 terms, and the queries of 9"),
    ):
        monkeypatch.setattr(TextEncoder, "queries", lambda self, texts, found=found: found)
        with pytest.raises(EvenrankError, match=message):
            retrieve(home / "splade-index", QUERIES, k=3, quiet=True)


def test_negative_weights_are_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = TextEncoder.documents
    monkeypatch.setattr(TextEncoder, "documents", lambda self, texts: -documents(self, texts))
    with pytest.raises(EvenrankError, match="splade: expected weights of terms from 0, found a negative one"):
        build_index({"a": "the nurse"}, out=tmp_path / "out", model=home / "splade", quiet=True)
    assert not (tmp_path / "out").exists()


def test_windows_do_not_change_the_index(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.search.vector_index.BATCHES", 2)
    place = tmp_path / "index"
    build_index(home / "c.tsv", out=place, model=home / "splade", encoding=SMALL, quiet=True)
    run, other = (retrieve(path, QUERIES, k=9, quiet=True).table for path in (place, home / "splade-index"))
    assert run.drop("score").equals(other.drop("score"))
    np.testing.assert_allclose(run["score"], other["score"], rtol=1e-5)
