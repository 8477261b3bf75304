"""Kernels, vocabularies and the rankers over word vectors: hand-worked values, folders, and what bad input gets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError
from tiny_models import texts

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("safetensors", reason="needs the extra [neural]")

import ranker_factories as factories
from evenrank.models import word_rankers as word_ranker
from evenrank.models.protocol import CandidateLists, Ranker
from evenrank.models.vocabulary import Vocabulary, collection_vectors, collection_words, padded
from evenrank.models.word_rankers import (
    EVEN_CENTRES,
    PASSAGE_START,
    PUBLISHED_CENTRES,
    ConvKNRMConfig,
    ConvKNRMRanker,
    KNRMRanker,
    MatchPyramidRanker,
    TKConfig,
    TKRanker,
    WordConfig,
    cosine,
    kernel_pool,
    sinusoids,
)
from evenrank.search import Vectors
from plain_loops import array, slow_transformer, slow_vectors

KINDS = ("tk", "knrm", "conv-knrm", "match-pyramid")


MAKE: dict[str, Callable[[int], Ranker]] = {kind: factories.CASES[kind].make for kind in KINDS}


# --- words ---------------------------------------------------------------------------------------------------------


def test_vocabulary(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["she", "woman", "é"])
    assert len(vocabulary) == 5
    assert vocabulary.numbers("She met a WOMAN's É!") == [2, 1, 1, 3, 4]
    assert vocabulary.numbers("  ") == []
    assert padded([[2, 1], [], [3]]).tolist() == [[2, 1], [0, 0], [3, 0]]
    assert padded([]).shape == (0, 1)
    names = ("Paris", "the", "paris", "new_york", ",", "London", "LONDON", "woman's", "é", "Straße")
    found, rows = Vocabulary.of_vectors(Vectors(names, np.arange(10, dtype=np.float32)[:, None]))
    assert dict(zip(found, rows, strict=True)) == {"the": 1, "paris": 2, "london": 5, "é": 8, "strasse": 9}
    vocabulary.save(tmp_path / "v")
    assert list(Vocabulary.load(tmp_path / "v")) == ["she", "woman", "é"]
    for content in (b"she\nhe\nshe\n", b"she\nhe", b"\xff\n"):
        (tmp_path / "v").write_bytes(content)
        with pytest.raises(InputError, match="vocabulary"):
            Vocabulary.load(tmp_path / "v")


def test_words_and_vectors_of_a_collection() -> None:
    table = pl.DataFrame({"doc_id": ["a", "b"], "text": ["She met her. She", "He met é"]})
    assert collection_words(table) == ["he", "her", "met", "she", "é"]
    assert collection_words(table, min_count=2) == ["met", "she"]
    vectors = collection_vectors(table, dimensions=3, min_count=2)
    assert sorted(vectors.words) == ["met", "she"]


# --- kernels -------------------------------------------------------------------------------------------------------


def test_cosine_by_hand() -> None:
    # (3, 4)·(4, 3) = 24, /25; (3, 4)·(0, 0) = 0.
    query = torch.tensor([[[1.0, 0.0]], [[3.0, 4.0]]])
    passage = torch.tensor([[[4.0, 3.0], [0.0, 0.0]]])
    np.testing.assert_allclose(cosine(query, passage, torch.tensor([1])), [[[0.96, 0.0]]], rtol=1e-6)


def test_kernels_by_hand() -> None:
    # One query word, two passage words and one of padding; cosines 1 and .8.
    cosines = torch.tensor([[[1.0, 0.8, 0.9]]])
    masks = torch.tensor([[True]]), torch.tensor([[True, True, False]])
    pooled = kernel_pool(cosines, *masks, (1.0, 0.9, -0.9), (0.1, 0.1, 0.1))
    # μ 1: e^0 + e^(−.04/.02) = 1 + e^−2; μ .9: e^−.5 + e^−.5; μ −.9: below 1e-10.
    expected = [math.log(1 + math.exp(-2)), math.log(2 * math.exp(-0.5)), math.log(1e-10)]
    np.testing.assert_allclose(pooled, [expected], rtol=1e-5)
    # The exact match alone; two query words, one of them padding.
    pooled = kernel_pool(cosines.expand(1, 2, 3), torch.tensor([[True, False]]), masks[1], (1.0,), (1e-4,))
    np.testing.assert_allclose(pooled, [[0.0]], atol=1e-6)


def test_gradient_of_the_kernels_is_that_of_the_formula() -> None:
    torch.manual_seed(0)
    cosines = (torch.rand(3, 4, 5, dtype=torch.float64) * 2 - 1).requires_grad_()
    masks = torch.rand(3, 4) > 0.3, torch.rand(3, 5) > 0.3
    widths = (0.02, *[0.1] * 10)

    def plain(values: Any) -> Any:
        centres, sigma = torch.tensor(PUBLISHED_CENTRES, dtype=torch.float64), torch.tensor(widths, dtype=torch.float64)
        kernels = torch.exp(-((values[..., None] - centres) ** 2) / (2 * sigma**2)) * masks[1][:, None, :, None]
        return (kernels.sum(2).clamp(min=1e-10).log() * masks[0][..., None]).sum(1)

    ours = kernel_pool(cosines, *masks, PUBLISHED_CENTRES, widths)
    torch.testing.assert_close(ours, plain(cosines))
    weights = torch.rand_like(ours)
    (gradient,) = torch.autograd.grad((ours * weights).sum(), cosines)
    (expected,) = torch.autograd.grad((plain(cosines) * weights).sum(), cosines)
    torch.testing.assert_close(gradient, expected)


# --- what is particular to one -------------------------------------------------------------------------------------


def test_published_sizes() -> None:
    vectors = factories.vectors(300)
    ranker = TKRanker.from_vectors(vectors)
    assert len(ranker.contextualisation) == 2
    shapes = {name: tuple(value.shape) for name, value in ranker.contextualisation[1].named_parameters()}
    assert shapes["attention_in.weight"] == (3 * 16 * 32, 300)
    assert shapes["attention_out.weight"] == (300, 16 * 32)
    assert shapes["feedforward_in.weight"] == (100, 300)
    assert ranker.gate.tolist() == [0.5]
    assert any(parameter is ranker.gate for parameter in ranker.parameter_groups()["kernels"])
    assert (ranker.settings.query_length, ranker.settings.passage_length) == (30, 200)
    pyramid: Any = MAKE["match-pyramid"](0)
    assert [tuple(layer.weight.shape) for layer in pyramid.dense] == [(100, 480), (10, 100)]
    conv = ConvKNRMRanker.from_vectors(vectors)
    assert [tuple(layer.weight.shape) for layer in conv.contextualisation] == [(128, 300, n) for n in (1, 2, 3)]


def test_positions_of_tk() -> None:
    assert PASSAGE_START == 500
    # By hand: p 500, frequencies 1 and 1/100.
    expected = [math.sin(500), math.cos(500), math.sin(5), math.cos(5)]
    np.testing.assert_allclose(sinusoids(500, 1, 4)[0], expected, atol=1e-6)
    assert sinusoids(0, 3, 5).shape == (3, 5)


def test_windows_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    ranker: Any = factories.knrm()
    queries, passages = texts(4, 6, 1) * 5, texts(20, 25, 2)
    expected = ranker.score(queries, passages)
    monkeypatch.setattr(word_ranker, "_WINDOW", 7)
    np.testing.assert_allclose(ranker.score(queries, passages, 3), expected, atol=1e-5)
    assert ranker.score([], []).shape == (0,)


def test_truncated_texts() -> None:
    lists = CandidateLists(["she " * 7, "she"], [["he " * 20, "he " * 21], ["he " * 300]])
    inputs = factories.knrm().encode(lists)
    assert inputs["query_cut"].tolist() == [True, False]
    assert inputs["passage_cut"].tolist() == [False, True, True]


# --- folders and settings ------------------------------------------------------------------------------------------


def test_a_folder_of_another_kind(tmp_path: Path) -> None:
    factories.tk().save(tmp_path / "m")
    with pytest.raises(InputError, match="expected a ranker of kind knrm, found 'tk'"):
        KNRMRanker.load(tmp_path / "m")


def config(**settings: Any) -> str:
    """A folder's evenrank.json with these settings of TK."""
    return json.dumps({"kind": "tk", "config": asdict(factories.tk().settings) | settings})


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("evenrank.json", None, ""),
        ("evenrank.json", "[1, 2]", "list indices must be"),
        ("evenrank.json", "[" * 100_000, "maximum recursion depth exceeded"),
        ("evenrank.json", '{"kind": "tk", "config": [1]}', "tk: expected some of"),
        ("evenrank.json", config(heads=2), ""),
        ("evenrank.json", config(unheard=1), ""),
        ("evenrank.json", config(heads=10**30), "`heads`: expected 1 to 2147483647"),
        ("vocabulary.txt", None, ""),
        ("vocabulary.txt", "she\nhe\n", ""),
        ("vocabulary.txt", "".join(f"w{i}\n" for i in range(5000)), "5002 words and"),
        ("model.safetensors", "\x08", ""),
    ],
    ids=range(11),
)
def test_damaged_folders(file: str, content: str | None, reason: str, tmp_path: Path) -> None:
    factories.tk().save(tmp_path / "m")
    (tmp_path / "m" / file).unlink()
    if content is not None:
        (tmp_path / "m" / file).write_text(content)
    with pytest.raises(InputError) as error:
        TKRanker.load(tmp_path / "m")
    assert str(error.value).startswith(f"{tmp_path / 'm'}")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_out_of_range() -> None:
    for settings, reason in (
        ({"query_length": 0}, "`query_length`: expected 1 or more, found 0"),
        ({"heads": 2.5}, "`heads`: "),
        ({"layers": True}, "`layers`: "),
        ({"kernels": "odd"}, "`kernels`: expected published or even"),
    ):
        with pytest.raises(EvenrankError, match=reason):
            TKConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(EvenrankError, match="knrm: expected some of query_length, passage_length, found 'heads'"):
        KNRMRanker.from_vectors(factories.vectors(), {"heads": 3})
    assert KNRMRanker.from_vectors(factories.vectors(), {"query_length": 3}).settings == WordConfig(query_length=3)
    assert ConvKNRMConfig(longest=2).filters == 128
    with pytest.raises(EvenrankError, match="none is for a single word"):
        KNRMRanker.from_vectors(Vectors(("a b",), np.ones((1, 2), np.float32)))


# --- against plain loops over the words of one pair ------------------------------------------------------------


def slow_cosine(a: Any, b: Any) -> float:
    return float(a @ b / ((np.linalg.norm(a) + 1e-13) * (np.linalg.norm(b) + 1e-13)))


def slow_kernels(queries: Any, passages: Any, centres: Any, widths: Any) -> Any:
    """Σ_i ln max(Σ_j K_k, 1e-10) for each k."""
    features = []
    for centre, width in zip(centres, widths, strict=True):
        feature = 0.0
        for query in queries:
            total = sum(math.exp(-((slow_cosine(query, p) - centre) ** 2) / (2 * width**2)) for p in passages)
            feature += math.log(max(total, 1e-10))
        features.append(feature)
    return np.array(features)


def slow_knrm(ranker: KNRMRanker, query: Any, passage: Any) -> float:
    features = slow_kernels(query, passage, PUBLISHED_CENTRES, [1e-4] + [0.1] * 10)
    return float(array(ranker.kernels.weight)[0] @ features * 0.01)


def slow_grams(layer: Any, vectors: Any) -> list[Any]:
    """ReLU of a convolution, with zeros after the last word."""
    weight, bias = array(layer.weight), array(layer.bias)
    grams = []
    for start in range(len(vectors)):
        total = bias.copy()
        for place in range(weight.shape[2]):
            if start + place < len(vectors):
                total += weight[:, :, place] @ vectors[start + place]
        grams.append(np.maximum(total, 0))
    return grams


def slow_conv_knrm(ranker: ConvKNRMRanker, query: Any, passage: Any) -> float:
    layers = list(ranker.contextualisation)
    features = [
        slow_kernels(slow_grams(a, query), slow_grams(b, passage), PUBLISHED_CENTRES, [1e-3] + [0.1] * 10)
        for a in layers
        for b in layers
    ]
    return float(array(ranker.kernels.weight)[0] @ np.concatenate(features) * 0.01)


def slow_tk(ranker: TKRanker, query: Any, passage: Any) -> float:
    a, b = slow_transformer(ranker, query, 0), slow_transformer(ranker, passage, 500)
    centres = EVEN_CENTRES if ranker.settings.kernels == "even" else PUBLISHED_CENTRES
    return float(array(ranker.kernels.weight)[0] @ slow_kernels(a, b, centres, [0.1] * 11))


@torch.no_grad()
def slow_match_pyramid(ranker: MatchPyramidRanker, query: Any, passage: Any) -> float:
    """The whole image of 30 × 200, as the definition has it."""
    image = np.zeros((1, 30, 200))
    for i, a in enumerate(query):
        for j, b in enumerate(passage):
            image[0, i, j] = slow_cosine(a, b)
    maps = torch.tensor(image)
    for layer, pool in zip(ranker.convolutions, ((36, 90), (18, 60), (9, 30), (6, 20), (3, 10)), strict=True):
        wider = torch.nn.functional.pad(maps, (0, 2, 0, 2))
        maps = torch.nn.functional.conv2d(wider[None], layer.weight.double(), layer.bias.double())[0].relu()
        rows, columns = maps.shape[1:]
        pooled = torch.empty(16, *pool, dtype=torch.float64)
        for i in range(pool[0]):
            for j in range(pool[1]):
                window = maps[
                    :,
                    i * rows // pool[0] : -(-(i + 1) * rows // pool[0]),
                    j * columns // pool[1] : -(-(j + 1) * columns // pool[1]),
                ]
                pooled[:, i, j] = window.amax((1, 2))
        maps = pooled
    features = maps.flatten()
    for layer in ranker.dense:
        features = (layer.weight.double() @ features + layer.bias.double()).relu()
    return float(ranker.last.weight.double()[0] @ features)


SLOW: dict[str, Callable[[Any, Any, Any], float]] = {
    "tk": slow_tk,
    "tk-even": slow_tk,
    "knrm": slow_knrm,
    "conv-knrm": slow_conv_knrm,
    "match-pyramid": slow_match_pyramid,
}


@pytest.mark.parametrize("name", SLOW)
def test_against_plain_loops(name: str) -> None:
    ranker: Any = factories.CASES[name].make(2)
    with torch.no_grad():  # weights of the size that training gives, biases and all
        torch.manual_seed(0)
        for parameter in ranker.parameters():
            if parameter is not ranker.embeddings.weight:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    count = 1 if name == "match-pyramid" else 3
    groups = CandidateLists(texts(count, 8, 5), [[*texts(2, 25, i), "", "zyx nurse zyx"] for i in range(count)])
    fast = array(ranker(**ranker.encode(groups)))
    expected = [
        [
            SLOW[name](
                ranker,
                slow_vectors(ranker, query, ranker.settings.query_length),
                slow_vectors(ranker, text, ranker.settings.passage_length),
            )
            for text in row
        ]
        for query, row in zip(groups.queries, groups.passages, strict=True)
    ]
    assert np.std(expected) > 1e-3
    np.testing.assert_allclose(fast, expected, atol=1e-5)
