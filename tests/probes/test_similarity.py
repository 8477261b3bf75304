"""ATS and MATS: hand-worked, and against the obvious loop."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.files.json_values import json_values
from evenrank.probes.similarity import TermSimilarity, different_terms, position_similarity, term_similarity


def similarity(rows: list[tuple[str, int, int, list[float]]], **options: int) -> TermSimilarity:
    """Rows of term, place, passage, vector."""
    numbers = {term: i for i, term in enumerate(dict.fromkeys(row[0] for row in rows))}
    return term_similarity(
        np.array([row[3] for row in rows], dtype=np.float32),
        np.array([numbers[row[0]] for row in rows]),
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
        **{"min_pairs": 1, "min_terms": 1, **options},
    )


def test_by_hand() -> None:
    # a: places 0, 0, 2 in passages 0, 1, 2: Δ 0: cos 1; Δ 2: cos 0 twice. b: 0 and 2 in passages 0 and 1: Δ 2: cos −1.
    # The pair of a in passage 0 with itself at place 1 is none: the same passage.
    rows = [
        ("a", 0, 0, [1.0, 0.0]),
        ("a", 0, 1, [2.0, 0.0]),
        ("a", 2, 2, [0.0, 1.0]),
        ("b", 0, 0, [1.0, 1.0]),
        ("b", 2, 1, [-1.0, -1.0]),
    ]
    found = similarity(rows)
    assert found.ats.tolist() == pytest.approx([1.0, math.nan, -0.5], nan_ok=True)
    assert found.pairs.tolist() == [1, 0, 3]
    assert found.terms.tolist() == [1, 0, 2]
    # Of the pairs at Δ 2 (0, 0, −1): mean −1/3, variance 1/3 − 1/9.
    assert found.deviation[2] == pytest.approx(math.sqrt(2 / 9))
    # Δmax 2: MATS = 1/(2 − 1) · (ATS(0) − ATS(2)), ATS(1) being undefined.
    assert found.delta_max == 2
    assert found.mats == pytest.approx(1.5)
    assert [similarity(rows, min_terms=least).delta_max for least in (2, 3)] == [2, -1]
    assert math.isnan(similarity(rows, min_terms=3).mats)
    assert similarity(rows, min_pairs=2).terms.tolist() == [0, 0, 1]
    # MATS is undefined below Δmax 2.
    found = similarity([("a", 0, 0, [1.0]), ("a", 1, 1, [1.0]), ("a", 0, 2, [1.0])])
    assert found.delta_max == 1
    assert json_values(found)["mats"] is None


row = st.tuples(
    st.sampled_from("abc"),
    st.integers(0, 4),
    st.integers(0, 3),
    st.lists(st.integers(-2, 2).map(float), min_size=2, max_size=2),
)


@given(st.lists(row, min_size=1, max_size=14), st.integers(1, 2), st.integers(1, 2))
def test_against_the_obvious_loop(rows: list[tuple[str, int, int, list[float]]], least: int, terms: int) -> None:
    cosines: dict[int, dict[str, list[float]]] = {}
    for i, (term, place, passage, vector) in enumerate(rows):
        for other, other_place, other_passage, other_vector in rows[:i]:
            if other == term and other_passage != passage:
                lengths = np.linalg.norm(vector) * np.linalg.norm(other_vector)
                cosine = float(np.dot(vector, other_vector) / lengths) if lengths else 0.0
                cosines.setdefault(abs(place - other_place), {}).setdefault(term, []).append(cosine)
    kept = {delta: {t: c for t, c in by_term.items() if len(c) >= least} for delta, by_term in cosines.items()}
    found = similarity(rows, min_pairs=least, min_terms=terms)
    for delta, ats in enumerate(found.ats):
        means = [np.mean(c) for c in kept.get(delta, {}).values()]
        every = [c for values in kept.get(delta, {}).values() for c in values]
        assert found.terms[delta] == len(means)
        assert found.pairs[delta] == len(every)
        assert ats == pytest.approx(np.mean(means) if means else math.nan, abs=1e-6, nan_ok=True)
        if every:
            assert found.deviation[delta] == pytest.approx(np.std(every), abs=1e-3)
    last = max((delta for delta, by_term in kept.items() if len(by_term) >= terms), default=-1)
    assert found.delta_max == last


def test_the_cap_bounds_the_pairs_and_the_seed_decides() -> None:
    rng = np.random.default_rng(0)
    rows = [("a", int(p), i, rng.normal(size=3).tolist()) for i, p in enumerate(rng.integers(0, 5, 60))]
    whole, capped = similarity(rows, cap=1000), similarity(rows, cap=20)
    assert whole.pairs.sum() == 60 * 59 // 2
    assert capped.pairs.sum() == 20 * 19 // 2
    assert similarity(rows, cap=20).ats.tolist() == capped.ats.tolist()
    assert similarity(rows, cap=20, seed=1).ats.tolist() != capped.ats.tolist()


def test_the_sampled_level_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    size = 60
    vectors = rng.normal(size=(size, 4)).astype(np.float32) + 1
    terms, places, passages = rng.integers(-1, 8, size), rng.integers(0, 4, size), rng.integers(0, 9, size)
    sums: dict[int, list[float]] = {}
    for i, j in itertools.combinations(range(size), 2):
        if min(terms[i], terms[j]) < 0 or terms[i] == terms[j] or passages[i] == passages[j]:
            continue
        one, other = vectors[i].astype(float), vectors[j].astype(float)
        cosine = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        sums.setdefault(abs(int(places[i] - places[j])), []).append(cosine)
    found = different_terms(vectors, terms, places, passages)
    assert len(found) == max(sums) + 1
    for distance, values in sums.items():
        assert abs(found[distance] - np.mean(values)) < 0.01
    # Collapsed vectors have a level of one, and no words none.
    found = different_terms(np.ones((50, 3), np.float32), np.arange(50) % 5, np.arange(50) % 7, np.arange(50) % 10)
    assert np.nanmin(found) > 0.999
    nothing = np.empty(0, np.int64)
    assert np.isnan(different_terms(np.empty((0, 3), np.float32), nothing, nothing, nothing)).all()


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from tiny_models import tiny_bert

    return tiny_bert(tmp_path_factory.mktemp("bert"))


def test_word_pieces_are_averaged_to_words(bert: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from evenrank.models.word_encoders import word_encoder

    (words, vectors), (none, empty) = word_encoder(str(bert)).encode(["She runs, homes.", "."])
    assert words == ["she", "runs", "homes"]
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    with torch.no_grad():
        hidden = model(**tokenizer("She runs, homes.", return_tensors="pt")).last_hidden_state[0].numpy()
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("She runs, homes.")["input_ids"])
    assert pieces == ["[CLS]", "she", "runs", "[UNK]", "home", "##s", ".", "[SEP]"]
    assert vectors[0] == pytest.approx(hidden[1], abs=1e-5)
    assert vectors[2] == pytest.approx((hidden[4] + hidden[5]) / 2, abs=1e-5)
    assert (none, empty.shape) == ([], (0, 32))
    assert word_encoder(str(bert), max_words=2).encode(["she runs home"])[0][0] == ["she", "runs"]


def test_tks_vectors_are_its_gated_ones(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.models.word_encoders import word_encoder
    from ranker_factories import knrm, tk

    ranker = tk().eval()
    ranker.save(tmp_path / "tk")
    (words, vectors), *_ = word_encoder(str(tmp_path / "tk")).encode(["she runs home", "a nurse"])
    assert words == ["she", "runs", "home"]
    ids = torch.tensor([ranker.vocabulary.numbers("she runs home")])
    with torch.no_grad():
        expected = ranker.contextualise(ids, ids > 0, 500)[0].numpy()
    assert vectors == pytest.approx(expected, abs=1e-5)
    knrm().save(tmp_path / "knrm")
    with pytest.raises(EvenrankError, match="a knrm ranker has no contextual vectors"):
        word_encoder(str(tmp_path / "knrm"))


def test_the_whole_way_depends_on_neither_batches_nor_order(bert: Path) -> None:
    from tiny_models import texts

    table = pl.DataFrame({"doc_id": [str(i) for i in range(12)], "text": texts(12, 9)})
    settings_ = {"min_pairs": 1, "min_terms": 2, "passages": 10}
    found = position_similarity(str(bert), collection=table, **settings_)
    again = position_similarity(str(bert), collection=table.reverse(), batch_size=3, **settings_)
    assert found.similarity.ats == pytest.approx(again.similarity.ats, abs=1e-5, nan_ok=True)
    assert found.similarity.delta_max >= 2
    assert math.isfinite(found.similarity.mats)
    assert f"{found.similarity.mats:.4f}" in found.table()
    none = pl.DataFrame({"doc_id": [], "text": []}, {"doc_id": pl.String, "text": pl.String})
    for given_, message in (
        ({"device": "gpu9"}, "`device`: 'gpu9' cannot be used"),
        ({"passages": 0}, "`passages`: expected 1 or more"),
        ({"collection": none}, "`collection`: expected at least one row, found none$"),
    ):
        with pytest.raises(EvenrankError, match=f"^{message}"):
            position_similarity(str(bert), **{"collection": table, **given_})


def test_passages_longer_than_the_model_has_places_for(tmp_path: Path) -> None:
    # RoBERTa's places begin after the padding's number: 12 of them hold 10 pieces, two of which are <s> and </s>.
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    from evenrank.models.word_encoders import word_encoder

    numbers = {name: i for i, name in enumerate(["<s>", "<pad>", "</s>", "<unk>", "she", "runs"])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(tmp_path)
    size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    RobertaModel(RobertaConfig(vocab_size=6, max_position_embeddings=12, **size)).save_pretrained(tmp_path)
    words, vectors = word_encoder(str(tmp_path)).encode(["she runs " * 20])[0]
    assert (len(words), vectors.shape) == (8, (8, 8))
