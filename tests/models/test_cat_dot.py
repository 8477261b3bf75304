"""``cat`` and ``dot``: scores, folders that sentence-transformers loads, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.files import EvenrankError, InputError
from tiny_models import texts, tiny_bert, without

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.load import find_model, load_ranker
from evenrank.models.protocol import CandidateLists, Ranker, ranker_class
from evenrank.training.recipes import RankerRecipe
from evenrank.training.run import build_ranker

LISTS = CandidateLists(texts(3, 5), [texts(4, 30, 1), texts(1, 8, 2), texts(6, 12, 3)])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plain encoder: no head, no tokenizer.json."""
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny-head", head=True))


def pairs(groups: CandidateLists = LISTS) -> list[tuple[str, str]]:
    return [(query, text) for query, row in zip(groups.queries, groups.passages, strict=True) for text in row]


def flat(ranker: Ranker, groups: CandidateLists = LISTS) -> Any:
    """The scores of the pairs, query by query."""
    with torch.no_grad():
        scores = ranker(**ranker.encode(groups))
    assert scores.shape == groups.mask.shape
    assert scores.dtype == torch.float32
    assert (scores[~groups.mask] == 0).all()
    return scores[groups.mask].numpy()


DOTS: dict[str, dict[str, Any]] = {
    "mean": {"pooling": "mean", "projection": 7},
    "cosine": {"similarity": "cosine", "projection": 5},
    "separate": {"shared": False, "projection": 7, "layers": 2},
    "separate-lengths": {"shared": False, "query_length": 9, "passage_length": 4},
}


@pytest.mark.parametrize("max_length", [512, 12])
def test_cat_saved_scores_as_cross_encoder(bert: str, tmp_path: Path, max_length: int) -> None:
    ranker = CatRanker.from_pretrained(bert, max_length=max_length, seed=3)
    assert ranker.max_length == min(max_length, 64)
    expected = flat(ranker)
    assert expected.std() > 0.05
    assert flat(ranker, CandidateLists(["she"], [[]])).shape == (0,)
    ranker.save(tmp_path / "saved")
    encoder = sentence_transformers.CrossEncoder(str(tmp_path / "saved"), device="cpu")
    # One pair at a time, and with the activation that the folder names.
    np.testing.assert_allclose(encoder.predict(pairs(), batch_size=1), expected, atol=1e-5)
    # A head that is there is kept, whatever the seed.
    for again in (CatRanker.load(tmp_path / "saved"), CatRanker.from_pretrained(str(tmp_path / "saved"), seed=4)):
        np.testing.assert_allclose(flat(again), expected, atol=1e-6)
    np.testing.assert_allclose(ranker.score(*zip(*pairs(), strict=True), batch_size=4), expected, atol=1e-5)


@pytest.mark.parametrize("settings", DOTS.values(), ids=DOTS)
def test_dot_saved_scores_as_sentence_transformer(bert: str, tmp_path: Path, settings: dict[str, Any]) -> None:
    ranker = DotRanker.from_pretrained(bert, seed=3, **settings)
    if not settings.get("shared", True):
        with torch.no_grad():  # two that differ, as after training
            for name, weight in ranker.named_parameters():
                if ".query." in name and "LayerNorm" not in name:
                    weight *= 1.1
    expected = flat(ranker)
    assert expected.std() > 0.01
    ranker.save(tmp_path / "saved")
    encoder = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    queries, passages = zip(*pairs(), strict=True)
    vectors = encoder.encode_query(list(queries)), encoder.encode_document(list(passages))
    np.testing.assert_allclose((vectors[0] * vectors[1]).sum(1), expected, atol=1e-5, rtol=1e-6)
    similarity = encoder.similarity_pairwise(*map(torch.from_numpy, vectors))
    np.testing.assert_allclose(similarity, expected, atol=1e-5, rtol=1e-6)
    np.testing.assert_allclose(flat(DotRanker.load(tmp_path / "saved")), expected, atol=1e-6)
    np.testing.assert_allclose(ranker.score(queries, passages, batch_size=2), expected, atol=1e-5, rtol=1e-6)
    assert vectors[0].shape[1] == settings.get("projection", 32)


@pytest.mark.parametrize(
    ("kind", "unit", "settings"), [("cat", "pair", "max_length"), ("dot", "passage", "passage_length")]
)
def test_what_is_cut_is_counted(bert: str, kind: str, unit: str, settings: str) -> None:
    start: Any = ranker_class(kind)
    scorer = load_ranker(start.from_pretrained(bert, **{settings: 12}))
    scorer.score(["she"] * 3, ["he runs", "a nurse", "rain " * 30])
    assert scorer.truncated is not None
    assert (scorer.truncated.unit, scorer.truncated.cut, scorer.truncated.of) == (unit, 1, 3)


def test_two_checkpoints(bert: str, tmp_path: Path) -> None:
    wide = str(tiny_bert(tmp_path / "wide", hidden=48, layers=1, seed=1))
    with pytest.raises(EvenrankError, match=r"^vectors of 32 and 48 numbers: project both to one size$"):
        DotRanker.from_pretrained(bert, passage_model=wide)
    ranker = DotRanker.from_pretrained(bert, passage_model=wide, projection=8)
    ranker.save(tmp_path / "saved")
    np.testing.assert_allclose(flat(DotRanker.load(tmp_path / "saved")), flat(ranker), atol=1e-6)


@pytest.mark.parametrize("kind", ["cat", "dot"])
def test_the_first_layers(bert: str, kind: str) -> None:
    start: Any = ranker_class(kind)
    settings = {"projection": 8} if kind == "dot" else {}
    shallow, whole = (start.from_pretrained(bert, layers=n, **settings).state_dict() for n in (2, 3))
    layers = [{name.split("layer.")[1][0] for name in state if "layer." in name} for state in (whole, shallow)]
    assert layers == [{"0", "1", "2"}, {"0", "1"}]
    assert all(torch.equal(value, whole[name]) for name, value in shallow.items() if "encoder" in name)
    for wrong in (0, 4):
        with pytest.raises(EvenrankError, match=rf"^`layers`: expected 1 to 3, found {wrong}$"):
            start.from_pretrained(bert, layers=wrong)


def stated(bert: str, folder: Path, pooling: Any = "mean", side: str = "document", **settings: Any) -> str:
    """A folder of sentence-transformers with a layer behind its pooling, by the cosine, which reads 12 tokens."""
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(1)
    pool = Pooling(32, pooling)
    modules = [Transformer(bert, max_seq_length=12), pool, Dense(pool.pooling_output_dimension, 8), Normalize()]
    model = sentence_transformers.SentenceTransformer(
        modules=modules, prompts={"query": "query : ", side: "a "}, device="cpu", **settings
    )
    model.save_pretrained(str(folder), create_model_card=False)
    return str(folder)


@pytest.mark.parametrize("side", ["document", "passage"])
def test_what_a_folder_states_is_taken_and_saved(bert: str, tmp_path: Path, side: str) -> None:
    folder = stated(bert, tmp_path / "stated", side=side)
    ranker = build_ranker(RankerRecipe(kind="dot", model=folder))
    assert ranker.replaced == ""
    ranker.save(tmp_path / "saved")
    queries, passages = map(list, zip(*pairs(), strict=True))
    for place in (folder, tmp_path / "saved"):
        model = sentence_transformers.SentenceTransformer(str(place), device="cpu")
        expected = model.similarity_pairwise(model.encode_query(queries), model.encode_document(passages))
        np.testing.assert_allclose(ranker.score(queries, passages), expected, atol=1e-5)
        assert (model.max_seq_length, model.similarity_fn_name, model.prompts[side]) == (12, "cosine", "a ")
    cat = CatRanker.from_pretrained(bert, max_length=12)
    cat.save(tmp_path / "cat")
    recipe = RankerRecipe(kind="cat", model=str(tmp_path / "cat"))
    assert build_ranker(recipe).max_length == 12
    longer = build_ranker(recipe.model_copy(update={"passage_length": 10}))
    assert (longer.max_length, longer.replaced.partition(": ")[2]) == (40, "max_length (40, was 12)")


def test_a_named_setting_replaces_what_a_folder_states_and_is_logged(
    bert: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = stated(bert, tmp_path / "stated")
    settings: dict[str, Any] = {"pooling": "cls", "similarity": "dot", "query_length": 12, "passage_length": 30}
    ranker = build_ranker(RankerRecipe(kind="dot", model=folder, **settings))
    changes = "passage_length (30, was 12), pooling (cls, was mean), similarity (dot, was cosine)"
    assert caplog.messages == [f"settings in place of those of {folder}: {changes}"]
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    model[1].pooling_mode = "cls"
    del model[3]
    queries, passages = map(list, zip(*pairs(), strict=True))
    vectors = model.encode_query(queries)
    model.max_seq_length = 30
    expected = (vectors * model.encode_document(passages)).sum(1)
    np.testing.assert_allclose(ranker.score(queries, passages), expected, atol=1e-5)
    # The layer is the projection already, and another one stands in front of the normalisation.
    kinds = [
        [type(part).__name__ for part in DotRanker.from_pretrained(folder, projection=size).model] for size in (8, 5)
    ]
    assert kinds[0] == ["Transformer", "Pooling", "Dense", "Normalize"]
    assert kinds[1] == ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    # Nobody is told of 1,000 tokens that are not read.
    longest = DotRanker.from_pretrained(bert, passage_length=1000)
    assert longest.replaced.endswith("64 in place of passage_length 1000 (the model has no more positions)")
    assert "and 64 of a passage; pooling: " in longest.reads
    # Each side has its own prompt, and what is replaced is said of its own folder.
    other = stated(bert, tmp_path / "other")
    two = DotRanker.from_pretrained(folder, passage_model=other, pooling="cls")
    assert two.replaced.endswith(f"pooling (cls, was mean), pooling (cls, was mean) of {other}")
    assert two.model.prompts["document"] == "a "


def test_what_a_dot_ranker_cannot_represent_is_refused(bert: str, tmp_path: Path) -> None:
    both = stated(bert, tmp_path / "both", ("cls", "mean"))
    assert len(DotRanker.from_pretrained(both).score(["a"], ["nurse"])) == 1
    with pytest.raises(EvenrankError, match=r"`pooling`: .*both pools in a way that cannot be replaced: leave it out$"):
        DotRanker.from_pretrained(both, pooling="cls")
    with pytest.raises(EvenrankError, match=r"^`similarity`: the two models state dot and cosine: name one$"):
        DotRanker.from_pretrained(bert, passage_model=both, projection=8)
    DotRanker.from_pretrained(bert, shared=False).save(tmp_path / "two")
    with pytest.raises(EvenrankError, match=r"^`layers`: .*two has an encoder for each side, and these stay whole"):
        DotRanker.from_pretrained(str(tmp_path / "two"), layers=1)
    DotRanker.from_pretrained(bert, map=True).save(tmp_path / "mapped")
    with pytest.raises(EvenrankError, match=r"^`dimensions`: .*mapped has a map for each side already: leave it out$"):
        DotRanker.from_pretrained(str(tmp_path / "mapped"), projection=5)
    short = stated(bert, tmp_path / "short", truncate_dim=4)
    for start in (DotRanker.from_pretrained, DotRanker.load):
        with pytest.raises(InputError, match=r"short: a model that truncates its vectors \(truncate_dim\) is not supp"):
            start(short)


def test_folders_that_are_refused(bert: str, classifier: str, tmp_path: Path) -> None:
    def refused(start: Any, folder: object, message: str) -> None:
        with pytest.raises(EvenrankError, match=message) as caught:
            start(folder)
        assert "\n" not in str(caught.value)

    def changed(folder: Path, file: str, **values: Any) -> Path:
        (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | values))
        return folder

    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    for start in (CatRanker.from_pretrained, DotRanker.from_pretrained, CatRanker.load, DotRanker.load):
        refused(start, str(tmp_path / "empty"), r"empty: the folder has no weights: expected model.safetensors$")
        refused(start, "nowhere", r"^nowhere: no such folder")
    refused(DotRanker.load, classifier, r"tiny-head: expected a bi-encoder, found a cross model$")
    DotRanker.from_pretrained(bert).save(dot := tmp_path / "dot")
    refused(CatRanker.load, dot, r"dot: expected a cross-encoder, found a bi model$")
    changed(dot, "config_sentence_transformers.json", similarity_fn_name="euclidean")
    refused(DotRanker.load, dot, r"dot: `similarity`: expected dot or cosine, found 'euclidean'$")
    (dot / "model.safetensors").write_bytes(b"not weights")
    for start in (CatRanker.from_pretrained, DotRanker.from_pretrained):
        refused(start, str(dot), r"dot: the model cannot be loaded \(")
    several = tiny_bert(tmp_path / "several", head=True)
    changed(several, "config.json", id2label={"0": "no", "1": "yes"}, label2id={"no": 0, "yes": 1})
    refused(CatRanker.from_pretrained, str(several), r"several: expected a model with one score per pair, found 2$")


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("dot", {"pooling": "max"}, "`pooling`: expected cls or mean, found 'max'"),
        ("dot", {"projection": 0}, "`projection`: expected 1 or more, found 0"),
        ("dot", {"passage_length": 0}, "`passage_length`: expected 1 or more, found 0"),
        ("cat", {"max_length": 0}, "`max_length`: expected 1 or more, found 0"),
        ("dot", {"freeze": "encoder"}, "`freeze`: only the encoder has weights to train: add `map` or `dimensions`"),
        ("dot", {"map": True, "projection": 4}, "`map`: not beside a projection, which is a map too"),
        ("dot", {"map": True, "freeze": "head"}, "`freeze`: expected encoder, found 'head'"),
    ],
)
def test_settings_that_are_refused(bert: str, kind: str, settings: dict[str, Any], message: str) -> None:
    start: Any = ranker_class(kind)
    with pytest.raises(EvenrankError) as caught:
        start.from_pretrained(bert, **settings)
    assert str(caught.value) == message


def test_saving_where_there_is_no_room(bert: str, no_room: tuple[Path, str]) -> None:
    folder, reason = no_room
    for ranker in (CatRanker.from_pretrained(bert), DotRanker.from_pretrained(bert, shared=False)):
        with pytest.raises(InputError, match=f"cannot be written: .*{reason}"):
            ranker.save(folder / "saved")
        assert not (folder / "saved").exists()


def test_what_a_killed_save_left_is_no_part_of_a_model(bert: str, tmp_path: Path) -> None:
    ranker = CatRanker.from_pretrained(bert, layers=1)
    ranker.save(tmp_path / "a")
    digest = find_model(str(tmp_path / "a")).digest()
    left = tmp_path / "a" / ".saving.abcd1234"
    left.mkdir()
    (left / "config.json").write_text("half")
    assert find_model(str(tmp_path / "a")).digest() == digest
    ranker.save(tmp_path / "a")
    assert not left.exists()


def test_a_checkpoint_that_lacks_layers_is_refused(bert: str, tmp_path: Path) -> None:
    without(bert, tmp_path / "half", ".layer.1.output.dense.")
    for ranker in (CatRanker, DotRanker):
        message = r"half: the weights lack .*encoder\.layer\.1\.output\.dense\.\w+ and 1 more"
        with pytest.raises(InputError, match=message):
            ranker.from_pretrained(str(tmp_path / "half"))
        ranker.from_pretrained(str(tmp_path / "half"), layers=1)
