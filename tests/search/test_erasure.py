"""Erasure of an index: what it is fitted on, what it does to vectors and queries, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from hypothesis import given
from hypothesis import strategies as st

from dense_indexes import QUERIES, bi_encoder, collection, sparse_encoder
from evenrank import Encoding, build_index, load_lexicon, open_index, retrieve
from evenrank.files import EvenrankError
from evenrank.search import erased_index
from evenrank.search.embeddings import Eraser, fit_leace
from evenrank.search.erased_index import PassageNumbers, open_to_debias, write_debiased
from evenrank.search.erasure import Erasure, fit_leace_blocks, of_length_one
from evenrank.search.vector_index import VectorIndex
from planted_encoders import planted_encoder

SMALL = Encoding(batch_size=4)
HALVES = {"lad": (1, 2), "man": (1, -2), "maid": (-1, 2), "lady": (-1, -2), "rain": (3, 0)}


def numbered(index: VectorIndex, groups: list[int], names: tuple[str, ...] = ("a", "b")) -> PassageNumbers:
    known = pl.DataFrame({"doc_id": index.ids, "group": pl.Series(groups, dtype=pl.Int16)})
    return PassageNumbers.of(index, names, known, {"labels": "here"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and indexes: one of known vectors, one of a tiny model with the cosine, and of other kinds."""
    folder = tmp_path_factory.mktemp("erased")
    planted_encoder(folder / "planted", HALVES)
    build_index({word: word for word in HALVES}, out=folder / "halves", model=folder / "planted", quiet=True)
    bi_encoder(folder / "tiny")
    collection(folder / "c.tsv")
    build_index(folder / "c.tsv", out=folder / "cosine", model=folder / "tiny", encoding=SMALL, quiet=True)
    done = open_to_debias(folder / "cosine")
    write_debiased(done, folder / "done", numbered(done, [row % 2 for row in range(40)]), quiet=True)
    return folder


def refused(call: Callable[..., object], *arguments: object, **settings: object) -> str:
    with pytest.raises(EvenrankError) as caught:
        call(*arguments, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stored(folder: Path) -> np.ndarray:
    index = open_index(folder, check=True)
    assert isinstance(index, VectorIndex)
    return index.vectors.astype(np.float64)


def test_by_hand(home: Path, tmp_path: Path) -> None:
    """Groups that differ on the first axis only lose it: both means are 0; what is of no known group loses it too."""
    index = open_to_debias(home / "halves")
    manifest = write_debiased(index, tmp_path / "new", numbered(index, [0, 0, 1, 1, -2]), quiet=True)
    np.testing.assert_allclose(stored(tmp_path / "new"), [[0, 2], [0, -2], [0, 2], [0, -2], [0, 0]], atol=1e-6)
    done = manifest.settings["erasure"]
    assert isinstance(done, dict)
    assert (done["method"], done["directions"], done["unit"]) == ("leace", 1, False)
    assert done["groups"] == {"labels": "here", "passages": {"a": 2, "b": 2}, "none": 0, "unknown": 1}
    assert done["gap"] == {"before": 2.0, "after": pytest.approx(0, abs=1e-6)}
    source = json.loads((tmp_path / "new" / "index.json").read_text())["settings"]["erasure"]["source"]
    assert source["path"] == str(home / "halves")
    assert len(source["sha256"]) == 64
    # A query loses it as well: "lad" (1, 2) is at (0, 2).
    run = retrieve(tmp_path / "new", {"q": "lad"}, k=5, quiet=True)
    assert dict(run.table.select("doc_id", "score").rows()) == pytest.approx(
        {"lad": 4, "maid": 4, "rain": 0, "man": -4, "lady": -4}, abs=1e-5
    )
    assert "1 direction erased from passages and queries (leace)" in run.notes[0]
    assert run.card is not None
    assert run.card["index"]["settings"]["erasure"]["method"] == "leace"  # type: ignore[index]


def test_hard_by_hand(home: Path, tmp_path: Path) -> None:
    """The direction of man and lady, of length 1: (2, 0) / √5. Of lad and maid the same: the first axis is lost."""
    index = open_to_debias(home / "halves")
    groups = numbered(index, [0, 0, 1, 1, -1])
    pairs = [("man", "lady"), ("lady", "man"), ("lad", "maid"), ("maid", "lad")]
    made = write_debiased(
        index, tmp_path / "new", groups, method="hard", pairs=pairs, encoder=index.encoder(), quiet=True
    )
    np.testing.assert_allclose(stored(tmp_path / "new"), [[0, 2], [0, -2], [0, 2], [0, -2], [0, 0]], atol=1e-6)
    done = made.settings["erasure"]
    assert isinstance(done, dict)
    assert (done["pairs"], done["components"], done["directions"]) == (2, 1, 1)
    assert done["explained"] == [pytest.approx(1)]


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 30))
def test_blocks_do_not_matter(seed: int, count: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count + 4, 5)).astype(np.float16)
    groups = np.concatenate([[0, 1, -1, -2], rng.integers(-2, 2, count)])
    found = fit_leace_blocks(rows, groups, 2, block=block)
    known = groups >= -1
    whole = fit_leace(rows[known], groups[known])
    np.testing.assert_allclose(found(rows), whole(rows), atol=1e-8)


def test_the_authors_package_says_the_same() -> None:
    concept_erasure = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 3
    rows = (rng.normal(size=(300, 8)) + rng.normal(size=(3, 8))[groups]).astype(np.float16)
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-9, "dtype": torch.float64}
    fitter = concept_erasure.LeaceFitter(8, 3, **options)
    given_rows = torch.from_numpy(rows.astype(np.float64))
    fitter.update(given_rows, torch.nn.functional.one_hot(torch.from_numpy(groups)))
    # The third group is "none" here.
    found = fit_leace_blocks(rows, np.where(groups == 2, -1, groups), 2, block=7)
    np.testing.assert_allclose(found(rows), fitter.eraser(given_rows).numpy(), atol=1e-8)


def test_scaled_to_length_one_again() -> None:
    """(0.6, 0.8) loses its first number and is (0, 1); of (1, 0) nothing is left, and rounding is not made of it."""
    eraser = Eraser(np.array([[1.0], [1e-9]]), np.array([[1.0, 0.0]]), np.zeros(2))
    rows = np.array([[0.6, 0.8], [1.0, 0.0]], np.float16)
    np.testing.assert_allclose(Erasure(eraser, True, "hard")(rows), [[0, 1], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(Erasure(eraser, False, "hard")(rows), [[0, 0.8], [0, 0]], atol=1e-3)
    assert of_length_one(rows)
    assert of_length_one(np.array([[0, 0], [0, 1]], np.float16))
    assert not of_length_one(np.array([[0, 1], [0, 1.1]], np.float16))
    assert not of_length_one(np.zeros((3, 2), np.float16))


def test_search_is_of_erased_vectors_with_an_erased_query(home: Path) -> None:
    index = open_index(home / "done")
    before = open_index(home / "cosine")
    assert isinstance(index, VectorIndex)
    assert isinstance(before, VectorIndex)
    groups = np.arange(40) % 2
    eraser = fit_leace(before.vectors, groups)

    def erased(rows: np.ndarray) -> np.ndarray:
        found = eraser(rows)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    rows = erased(before.vectors)
    np.testing.assert_allclose(index.vectors.astype(np.float64), rows, atol=1e-3)
    queries = index.encoder(None, SMALL).queries(list(QUERIES.values()))
    assert isinstance(queries, np.ndarray)
    own = erased(queries) @ index.vectors.astype(np.float64).T
    run = index.search(QUERIES, 40, quiet=True, encoding=SMALL)
    for query, scores in zip(QUERIES, own, strict=True):
        found = dict(run.table.filter(pl.col("query_id") == query).select("doc_id", "score").rows())
        expected = dict(zip(index.ids.to_list(), scores.tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-5)
    assert run.notes[0] == (
        "tiny: exact search, vectors of 32 numbers in float16, 1 direction erased from passages and queries (leace),"
        " which were then scaled to length 1"
    )
    # The means are apart by no more than scaling and float16 put them.
    gap = index.manifest.settings["erasure"]["gap"]  # type: ignore[index]
    means = [index.vectors[groups == group].astype(np.float64).mean(axis=0) for group in (0, 1)]
    assert gap["after"] == pytest.approx(np.linalg.norm(means[0] - means[1]))
    assert 0 < gap["after"] < gap["before"] / 5


def test_the_same_bytes_again_and_nothing_where_it_fails(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_to_debias(home / "cosine")
    groups = numbered(index, [row % 2 for row in range(40)])
    write_debiased(index, tmp_path / "again", groups, quiet=True)
    # Without what a search of the first may have kept beside it.
    again, done = (
        {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checked.json"}
        for folder in (tmp_path / "again", home / "done")
    )
    assert again == done
    monkeypatch.setattr(erased_index, "group_means", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_debiased(index, tmp_path / "failed", groups, quiet=True)
    assert not (tmp_path / "failed").exists()
    assert refused(write_debiased, index, tmp_path / "again", groups).endswith("is an index already; remove it, or"
                                                                               " choose another output")  # fmt: skip


def test_a_killed_call_is_started_again(home: Path, tmp_path: Path) -> None:
    index = open_to_debias(home / "halves")
    write_debiased(index, tmp_path / "new", numbered(index, [0, 0, 1, 1, -2]), quiet=True)
    # As it is before the manifest is written.
    whole = (tmp_path / "new" / "index.json").read_bytes()
    made_from = {"format": "evenrank index 1", "kind": "dense", "settings": {}}
    (tmp_path / "new" / "index.json").unlink()
    (tmp_path / "new" / "_unfinished.json").write_text(json.dumps(made_from))
    assert "was not finished" in refused(open_index, tmp_path / "new")
    write_debiased(index, tmp_path / "new", numbered(index, [0, 0, 1, 1, -2]), quiet=True)
    assert (tmp_path / "new" / "index.json").read_bytes() == whole


def _empty(folder: Path) -> None:
    (folder / "erasure-mean.bin").write_bytes(b"")


def _other_bytes(folder: Path) -> None:
    path = folder / "erasure-left.bin"
    path.write_bytes(bytes(8) + path.read_bytes()[8:])


def _missing(folder: Path) -> None:
    (folder / "erasure-right.bin").unlink()


def _said(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        values = json.loads((folder / "index.json").read_text())
        change(values)
        (folder / "index.json").write_text(json.dumps(values))

    return damage


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (_empty, "erasure-mean.bin has 0 bytes, expected 256"),
    "other bytes": (_other_bytes, "erasure-left.bin differs from what was written"),
    "missing": (_missing, "erasure-right.bin: No such file or directory"),
    "not listed": (
        _said(lambda values: values["files"].pop("erasure-left.bin")),  # type: ignore[attr-defined]
        "index.json does not list erasure-left.bin",
    ),
    "no table": (_said(lambda values: values["settings"].update(erasure=3)), "its erasure cannot be used"),  # type: ignore[attr-defined]
    "no method": (
        _said(lambda values: values["settings"]["erasure"].update(method="x")),  # type: ignore[index]
        "its erasure cannot be used",
    ),
    "no unit": (
        _said(lambda values: values["settings"]["erasure"].update(unit=1)),  # type: ignore[index]
        "its erasure cannot be used",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage(home: Path, tmp_path: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    folder = Path(shutil.copytree(home / "done", tmp_path / "index"))
    damage(folder)
    assert refused(open_index, folder) == f"{folder}: the index is damaged: {message}"


def test_files_that_do_not_fit(home: Path, tmp_path: Path) -> None:
    import hashlib

    folder = Path(shutil.copytree(home / "done", tmp_path / "index"))
    for content in (bytes(8), np.full(32, np.nan).tobytes()):
        (folder / "erasure-mean.bin").write_bytes(content)
        entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        _said(lambda values, entry=entry: values["files"].update({"erasure-mean.bin": entry}))(folder)  # type: ignore[misc]
        assert refused(open_index, folder) == f"{folder}: the index is damaged: its erasure cannot be used"


def test_refusals(home: Path, tmp_path: Path) -> None:
    build_index({"d": "rain"}, out=tmp_path / "bm25", quiet=True)
    assert "an index of BM25's words has no vectors to debias" in refused(open_to_debias, tmp_path / "bm25")
    sparse_encoder(tmp_path / "splade")
    build_index(home / "c.tsv", out=tmp_path / "sparse", model=tmp_path / "splade", encoding=SMALL, quiet=True)
    assert "an index of weights of terms has no vectors to debias" in refused(open_to_debias, tmp_path / "sparse")
    assert refused(open_to_debias, home / "done") == (
        f"{home / 'done'}: is debiased already: debias the index that it was made from, {home / 'cosine'}"
    )
    damaged = Path(shutil.copytree(home / "halves", tmp_path / "damaged"))
    content = (damaged / "vectors.bin").read_bytes()
    (damaged / "vectors.bin").write_bytes(content[2:] + content[:2])
    assert refused(open_to_debias, damaged).endswith("vectors.bin differs from what was written")
    index = open_to_debias(home / "halves")
    assert "none of its ids, such as 'lad'" in refused(
        PassageNumbers.of, index, ("a", "b"), pl.DataFrame({"doc_id": ["x"], "group": [0]}), {}
    )

    def writing(groups: list[int], **settings: object) -> str:
        message = refused(write_debiased, index, tmp_path / "new", numbered(index, groups), **settings)
        assert not (tmp_path / "new").exists()
        return message

    assert writing([0, 0, -1, -2, -2]) == "LEACE: expected passages of two groups or more, found those of one"
    assert writing([-1] * 5) == "LEACE: expected passages of two groups or more, found those of none"
    both = [0, 0, 1, 1, -1]
    assert writing(both, method="soft") == "`method`: expected leace or hard, found 'soft'"
    assert writing(both, components=2) == "`components` needs `method='hard'`"
    assert writing(both, components=0).startswith("`components`: expected 1 or more")
    assert writing(both, method="hard") == (
        "`method='hard'` needs `lexicon` with pairs of counterparts ([pairs] in its TOML)"
    )
    encoder, pairs = index.encoder(), load_lexicon("gender-en").pairs
    few = writing(both, method="hard", pairs=pairs, components=2, encoder=encoder)
    assert few.startswith("`components`: expected 1 to 1 (vectors of 2 dimensions)")
    same = writing(both, method="hard", pairs=[("storm", "snow"), ("snow", "storm")], encoder=encoder)
    assert same.startswith("definitional sets: the words of each set have the same vector")


def test_another_model_is_refused(home: Path, tmp_path: Path) -> None:
    bi_encoder(tmp_path / "other", seed=1)
    message = refused(retrieve, home / "done", QUERIES, k=3, model=tmp_path / "other", quiet=True)
    assert "is not the one that the index was made with" in message
