"""Indexes of a bi-encoder's vectors: built, resumed, searched, refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from dense_indexes import DOCUMENTS, QUERIES, bi_encoder, collection, sparse_encoder
from evenrank import RM3, Encoding, build_index, retrieve
from evenrank.files import EvenrankError, Run, read_run
from evenrank.models.text_encoders import TextEncoder
from evenrank.search import encoded_windows
from evenrank.search.index_folder import read_manifest
from evenrank.search.vector_index import DenseIndex

SMALL = Encoding(batch_size=4)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a collection, and its index."""
    folder = tmp_path_factory.mktemp("dense")
    bi_encoder(folder / "tiny", prompts=True)
    collection(folder / "c.tsv")
    build_index(folder / "c.tsv", out=folder / "index", model=folder / "tiny", encoding=SMALL, quiet=True)
    return folder


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """The index, to be damaged."""
    return Path(shutil.copytree(home / "index", tmp_path / "index"))


def table(run: Run) -> dict[str, list[tuple[str, float]]]:
    rows = run.table.sort("query_id", "rank").rows()
    return {query: [(doc, score) for other, doc, score, _ in rows if other == query] for query in QUERIES}


def refused(call: object, *arguments: object, **settings: object) -> str:
    assert callable(call)
    with pytest.raises(EvenrankError) as caught:
        call(*arguments, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change(folder: Path, *keys: str, to: Any) -> None:
    """Writes another value into the manifest."""
    path = folder / "index.json"
    values = inner = json.loads(path.read_text())
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    path.write_text(json.dumps(values))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_equals_the_models_own_similarities(tmp_path: Path, similarity: str) -> None:
    from sentence_transformers import SentenceTransformer

    folder = bi_encoder(tmp_path / "tiny", similarity=similarity)
    texts = collection(tmp_path / "c.tsv")
    build_index(tmp_path / "c.tsv", out=tmp_path / "index", model=folder, encoding=SMALL, quiet=True)
    run = retrieve(tmp_path / "index", QUERIES, k=DOCUMENTS, quiet=True)
    assert run.name == "tiny"
    found = table(run)
    model = SentenceTransformer(str(folder), device="cpu")
    own = model.similarity(model.encode_query([*QUERIES.values()]), model.encode_document([*texts.values()]))
    for query, row in zip(QUERIES, own.numpy(), strict=True):
        scores = dict(found[query])
        assert scores.keys() == texts.keys()
        np.testing.assert_allclose([scores[doc] for doc in texts], row, rtol=0, atol=2e-3 * abs(row).max())


def test_ties_are_broken_by_descending_id_also_at_the_end(home: Path, tmp_path: Path) -> None:
    texts = {f"d{number}": "the nurse" for number in range(9)} | {"x": "a doctor wrote software early"}
    build_index(texts, out=tmp_path / "index", model=home / "tiny", encoding=SMALL, quiet=True)
    found = table(retrieve(tmp_path / "index", {"q1": "the nurse"}, k=4, quiet=True))["q1"]
    assert [doc for doc, _ in found] == ["d8", "d7", "d6", "d5"]


@pytest.fixture(scope="module")
def unfinished(home: Path) -> Path:
    """Three of five windows are encoded; of the fourth the rows are written, but not marked."""
    place, encode = home / "unfinished", encoded_windows._encode

    def stopping(encoder: TextEncoder, texts: pl.Series, out: Path, first: int) -> Any:
        report = encode(encoder, texts, out, first)
        if out.name == "rows-000003.part":
            raise KeyboardInterrupt
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenrank.search.vector_index.BATCHES", 2)
        patch.setattr(encoded_windows, "_encode", stopping)
        with pytest.raises(KeyboardInterrupt):
            build_index(home / "c.tsv", out=place, model=home / "tiny", encoding=SMALL, quiet=True)
    return place


def test_goes_on_where_it_was_stopped(home: Path, unfinished: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("evenrank.search.vector_index.BATCHES", 2)
    place = Path(shutil.copytree(unfinished, tmp_path / "index"))
    assert "was not finished" in refused(retrieve, place, QUERIES)
    encoded: list[int] = []
    documents = TextEncoder.documents
    monkeypatch.setattr(TextEncoder, "documents", lambda *given: encoded.append(len(given[1])) or documents(*given))
    for out in (place, tmp_path / "whole"):
        build_index(home / "c.tsv", out=out, model=home / "tiny", encoding=SMALL, quiet=True)
    # Windows 4 and 5 of 5, and all of them.
    assert encoded == [8] * 2 + [8] * 5
    files = [{path.name: path.read_bytes() for path in out.iterdir()} for out in (place, tmp_path / "whole")]
    assert files[0] == files[1]


def test_a_damaged_beginning_is_refused(home: Path, unfinished: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("evenrank.search.vector_index.BATCHES", 2)
    place = Path(shutil.copytree(unfinished, tmp_path / "index"))
    rows = place / "rows-000001.part"
    rows.write_bytes(b"x" * rows.stat().st_size)
    message = refused(build_index, home / "c.tsv", out=place, model=home / "tiny", encoding=SMALL, quiet=True)
    assert message == f"{place}: the beginning of the index is damaged: remove it, and start again"


def test_a_changed_model_is_refused(home: Path, copy: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(home / "tiny", tmp_path / "moved"))
    runs = [retrieve(copy, QUERIES, k=3, quiet=True, **given) for given in ({}, {"model": moved})]
    assert table(runs[0]) == table(runs[1])
    weights = next(moved.rglob("model.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    message = refused(retrieve, copy, QUERIES, model=moved, quiet=True)
    assert message == f"{copy}: the model {moved} is not the one that the index was made with, or has changed since"
    change(copy, "model", "path", to=str(tmp_path / "gone"))
    assert refused(retrieve, copy, QUERIES, quiet=True) == (
        f"{copy}: its model is no longer in {tmp_path / 'gone'}: give its folder as `model`"
    )


def test_queries_are_encoded_in_the_precision_of_the_index(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "index"
    halved = Encoding(batch_size=4, precision="bfloat16", device="cpu")
    build_index(home / "c.tsv", out=place, model=home / "tiny", encoding=halved, quiet=True)
    for given, used in ((None, "bfloat16"), ("float32", "float32"), ("bfloat16", "bfloat16")):
        run = retrieve(place, QUERIES, k=3, quiet=True, encoding=Encoding(precision=given, device="cpu"))
        assert run.card["query_encoder"]["precision"] == used  # type: ignore[index]
        note = "tiny: the index was made in bfloat16, and the queries are encoded in float32"
        assert (note in run.notes) == (used == "float32")


def test_what_has_changed_is_noted(home: Path, copy: Path, tmp_path: Path) -> None:
    change(copy, "versions", "torch", to="1.0")
    notes = retrieve(copy, QUERIES, k=3, quiet=True).notes
    assert notes[1].startswith("tiny: the index was made with torch 1.0 (now ")
    path, place = tmp_path / "c.tsv", tmp_path / "own"
    path.write_bytes((home / "c.tsv").read_bytes())
    build_index(path, out=place, model=home / "tiny", encoding=SMALL, quiet=True)
    note = f"tiny: the collection {path} has changed since the index was made"
    path.write_bytes(path.read_bytes() + b"d99\tlate\n")
    assert note in retrieve(place, QUERIES, k=3, quiet=True).notes
    path.rename(tmp_path / "gone.tsv")
    assert not any("has changed" in one for one in retrieve(place, QUERIES, k=3, quiet=True).notes)


def test_a_model_that_only_the_index_names_is_not_downloaded(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def snapshot(name: str, *, local_files_only: bool = False, **_: object) -> str:
        from huggingface_hub.errors import LocalEntryNotFoundError

        asked.append((name, local_files_only))
        raise LocalEntryNotFoundError("none")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    change(copy, "model", "path", to="owner/large")
    assert refused(retrieve, copy, QUERIES, quiet=True) == (
        f"{copy}: its model owner/large was not downloaded: give that name as `model` to download it"
    )
    assert asked == [("owner/large", True)]
    assert "it cannot be downloaded" in refused(retrieve, copy, QUERIES, model="owner/large", quiet=True)
    assert asked[1:] == [("owner/large", False)]


def test_damaged_files_are_refused(copy: Path) -> None:
    """Sizes are checked when it is opened, digests where turns and vectors cannot be used."""
    by_turn = copy / "by-turn.npy"
    sound = by_turn.read_bytes()
    np.save(by_turn, np.full(DOCUMENTS, 10_000, np.int32))
    assert refused(retrieve, DenseIndex(read_manifest(copy)), QUERIES, quiet=True) == (
        f"{copy}: the index is damaged: by-turn.npy differs from what was written"
    )
    by_turn.write_bytes(sound)
    vectors = copy / "vectors.npy"
    whole = vectors.read_bytes()
    np.save(vectors, np.full((DOCUMENTS, 32), np.nan, np.float16))
    opened = DenseIndex(read_manifest(copy))
    assert "vectors.npy differs from what was written" in refused(retrieve, opened, QUERIES, quiet=True)
    vectors.write_bytes(whole[:-2])
    assert "vectors.npy has" in refused(retrieve, copy, QUERIES, quiet=True)
    # Read, it would end the process.
    assert "vectors.npy has" in refused(opened.search, QUERIES, quiet=True)
    change(copy, "files", "vectors.npy", "bytes", to=vectors.stat().st_size)
    assert "vectors.npy cannot be read" in refused(DenseIndex, read_manifest(copy))


def test_vectors_beyond_float16_are_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, out = np.ones((3, 2), np.float32), tmp_path / "out"
    monkeypatch.setattr(TextEncoder, "documents", lambda self, texts: rows)
    message = "tiny: the vector of document 3 has numbers that are not finite or beyond 65504, where float16 ends"
    for number in (7e4, np.nan):
        rows[2, 1] = number
        assert refused(build_index, dict(zip("abc", "abc", strict=True)), out=out, model=home / "tiny") == message
        assert not out.exists()


def test_bad_settings_are_refused(home: Path, tmp_path: Path) -> None:
    index, texts, out, tiny = home / "index", home / "c.tsv", tmp_path / "out", home / "tiny"
    for call, message in (
        (lambda: retrieve(index, QUERIES, rm3=RM3()), "`rm3`: only for BM25"),
        (lambda: retrieve(index, QUERIES, weighted=True), "`weighted`: only for BM25"),
        (lambda: retrieve(index, QUERIES, k1=1.0), "`k1`: a setting of BM25"),
        (lambda: retrieve({"a": "b"}, QUERIES, model=tiny), "BM25 has no model"),
        (lambda: build_index(texts, out=out, model=tmp_path / "none"), "no such folder"),
        (lambda: build_index(texts, out=out, model=1), "`model`: expected a folder"),
        (lambda: build_index(texts, out=out, model=tiny, encoding=Encoding(kind="late")), "`kind`: expected"),
        (lambda: build_index(texts, out=out, model=home / "tiny-bert"), "set `kind` to"),
    ):
        assert message in refused(call)
    assert not (tmp_path / "out").exists()
    model = bi_encoder(tmp_path / "far", similarity="euclidean")
    assert refused(build_index, texts, out=out, model=model) == (
        f"{model}: expected a model with the similarity dot or cosine, found euclidean"
    )


def test_a_loaded_model(home: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(home / "tiny"), device="cpu")
    build_index(home / "c.tsv", out=tmp_path / "index", model=model, encoding=SMALL, quiet=True)
    assert "give that as `model`" in refused(retrieve, tmp_path / "index", QUERIES, quiet=True)
    found = retrieve(tmp_path / "index", QUERIES, k=5, model=model, quiet=True)
    assert table(found) == table(retrieve(home / "index", QUERIES, k=5, quiet=True))


def test_windows_of_any_batches() -> None:
    frames = [pl.DataFrame({"doc_id": ["x"] * size, "text": ["t"] * size}) for size in (3, 1, 7, 2)]
    assert [part.height for part in encoded_windows._of_size(frames, 5)] == [5, 5, 3]
    assert [part.height for part in encoded_windows._of_size(frames[:1], 3)] == [3]


# transformers warns of what it does itself.
FORMS = {"splade": {}, "cosine": {"similarity": "cosine"}, "inference-free": {"inference_free": True}}


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each form, a collection, and its indexes."""
    folder = tmp_path_factory.mktemp("sparse")
    collection(folder / "c.tsv")
    for name, settings in FORMS.items():
        sparse_encoder(folder / name, **settings)  # type: ignore[arg-type]
        build_index(folder / "c.tsv", out=folder / f"{name}-index", model=folder / name, encoding=SMALL, quiet=True)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_equals_the_sparse_models_own_similarities(sparse: Path, tmp_path: Path, form: str) -> None:
    from sentence_transformers import SparseEncoder

    texts = collection(tmp_path / "c.tsv")
    model = SparseEncoder(str(sparse / form), device="cpu")
    own = model.similarity(model.encode_query(list(QUERIES.values())), model.encode_document(list(texts.values())))
    run = retrieve(sparse / f"{form}-index", QUERIES, k=DOCUMENTS, quiet=True)
    assert (run.name, run.notes) == (form, (f"{form}: weights of 25 terms",))
    for row, query in enumerate(QUERIES):
        found = dict(run.table.filter(query_id=query).select("doc_id", "score").iter_rows())
        scores = {doc: float(own[row, number]) for number, doc in enumerate(texts)}
        assert found.keys() == {doc for doc, score in scores.items() if score > 0}
        for doc, score in found.items():
            assert score == pytest.approx(scores[doc], rel=1e-5, abs=1e-6)
        ranked = run.table.filter(query_id=query).sort("rank").select("score", "doc_id").rows()
        assert ranked == sorted(ranked, reverse=True)


def test_a_query_without_a_term_is_counted(sparse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import csr_matrix

    rows = csr_matrix(np.eye(4, 25, dtype=np.float32))
    rows.data[1] = 0
    rows.eliminate_zeros()
    monkeypatch.setattr(TextEncoder, "queries", lambda self, texts: rows)
    notes = retrieve(sparse / "splade-index", QUERIES, k=3, quiet=True).notes
    assert any(note.endswith("no term of a document and no documents") for note in notes)
    for found, message in (
        (csr_matrix((4, 25), dtype=np.float32), "none of the 4 queries has a term of a document"),
        (-rows, "splade: expected weights of terms from 0, found a negative one"),
        (csr_matrix((4, 9), dtype=np.float32), "weights of 25 terms, and the queries of 9"),
    ):
        monkeypatch.setattr(TextEncoder, "queries", lambda self, texts, found=found: found)
        with pytest.raises(EvenrankError, match=message):
            retrieve(sparse / "splade-index", QUERIES, k=3, quiet=True)


def test_negative_weights_are_refused(sparse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = TextEncoder.documents
    monkeypatch.setattr(TextEncoder, "documents", lambda self, texts: -documents(self, texts))
    with pytest.raises(EvenrankError, match="splade: expected weights of terms from 0, found a negative one"):
        build_index({"a": "the nurse"}, out=tmp_path / "out", model=sparse / "splade", quiet=True)
    assert not (tmp_path / "out").exists()


def test_windows_do_not_change_the_index(sparse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.search.vector_index.BATCHES", 2)
    place = tmp_path / "index"
    build_index(sparse / "c.tsv", out=place, model=sparse / "splade", encoding=SMALL, quiet=True)
    run, other = (retrieve(path, QUERIES, k=9, quiet=True).table for path in (place, sparse / "splade-index"))
    assert run.drop("score").equals(other.drop("score"))
    np.testing.assert_allclose(run["score"], other["score"], rtol=1e-5)


def test_the_commands(tmp_path: Path, evenrank: Callable[..., Any]) -> None:
    collection(tmp_path / "c.tsv")
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    model = bi_encoder(tmp_path / "tiny")
    index, run = tmp_path / "index", tmp_path / "out.run"
    build = ["index", tmp_path / "c.tsv", "--out", index, "--model", model, "--batch-size", "4", "--quiet"]
    ended = evenrank(*build, "--document-prompt", "passage : ")
    assert (ended.status, ended.err) == (0, f"40 documents indexed: {index}\n")
    search = ["retrieve", index, tmp_path / "q.tsv", "--out", run, "--k", "5", "--quiet"]
    said = evenrank(*search, "--query-prompt", "query : ", "--device", "cpu").err
    assert "the prompt 'query : '\ntiny: each document was put after the prompt 'passage : '\n4 queries ranked" in said
    assert read_run(run).table.height == 20
    assert f"--rm3: only for BM25, and {index} is a dense index" in evenrank(*search, "--rm3").err
