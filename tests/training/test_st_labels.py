"""Labels of documents for the losses and the evaluator of sentence-transformers."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from evenrank.files import EvenrankError
from evenrank.groups import as_labels
from evenrank.training.sentence_transformers import BiasEvaluator, CrossEncoderIBBRLoss, IBBRLoss, with_group_labels
from st_models import CANDIDATES, CORPUS, MEASURES, QUERIES, RELEVANT, bi_encoder, cross_encoder, evaluator, tuples

# transformers, accelerate and datasets warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

IDS = ["positive_id", "negative_1_id", "negative_2_id"]
LABELS = {"a": "m", "b": "f", "c": "none"}


def identified() -> Any:
    """The tuples with an id for each passage; nothing is known of d."""
    data = tuples()
    ids = {name: [("abcd", "bcda", "dabc")[column][i % 4] for i in range(len(data))] for column, name in enumerate(IDS)}
    for name, values in ids.items():
        data = data.add_column(name, values)
    return data


def test_sides_of_passages_by_their_ids(checkpoint: str) -> None:
    labels = as_labels(LABELS, neutral=["none"])
    with pytest.warns(UserWarning, match="^the labels know 3 of 4 passages: the others are on no side$"):
        found = with_group_labels(identified(), labels=labels, id_columns=IDS)
    assert found.column_names == ["query", "positive", "negative_1", "negative_2", "label"]
    # a is m, b is f, c neutral, d unknown.
    side = {"a": 1, "b": -1, "c": 0, "d": 0}
    rows = [[side[row[name]] for name in IDS] for row in identified()]
    assert rows[:4] == [[1, -1, 0], [-1, 0, 1], [0, 0, -1], [0, 1, 0]]
    assert found["label"][:] == rows
    # A stream, whose batches may know none; a dict; what as_labels takes; swapped poles.
    streamed = with_group_labels(identified().to_iterable_dataset(), labels=labels, id_columns=IDS)
    assert [row["label"] for row in streamed] == rows
    assert set(next(iter(streamed))) == set(found.column_names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = with_group_labels(datasets.DatasetDict(one=identified()), labels=labels, id_columns=IDS)
        swapped = with_group_labels(identified(), labels.with_poles("f,m"), id_columns=IDS)
        several = with_group_labels(identified(), {"label": labels, "words": "gender-en"}, id_columns=IDS)
    assert both["one"]["label"][:] == rows
    assert swapped["label"][:] == [[-side for side in row] for row in rows]
    by_words = with_group_labels(tuples())["label"][:]
    assert several["label"][:] == [list(pair) for pair in zip(rows, by_words, strict=True)]
    # The loss takes them.
    model = bi_encoder(checkpoint)
    features = [model.preprocess(found[name][:]) for name in found.column_names[:-1]]
    parts = IBBRLoss(model)(features, torch.tensor(found["label"][:]))
    assert all(torch.isfinite(part) for part in parts.values())


def test_labels_that_say_what_the_words_say_are_the_same() -> None:
    data = tuples()
    ids = [f"positive {i}" for i in range(len(data))], [f"one {i}" for i in range(len(data))], ["x"] * len(data)
    expected = with_group_labels(data)["label"][:]
    known = {}
    for name, values in zip(IDS[:2], ids, strict=False):
        data = data.add_column(name, values)
    for row, sides in enumerate(expected):
        known |= {ids[column][row]: {1: "m", -1: "f", 0: "none"}[sides[column]] for column in range(2)}
    labels = as_labels(known, neutral=["none"])
    found = with_group_labels(data.remove_columns("negative_2"), labels=labels, id_columns=IDS[:2])
    assert found["label"][:] == [row[:2] for row in expected]


def test_mistakes_in_labels_of_a_dataset(checkpoint: str) -> None:
    labels = as_labels(LABELS, neutral=["none"])
    with pytest.raises(
        EvenrankError, match=r"^`id_columns`: labels are by document: expected 3 columns with the ids of"
    ):
        with_group_labels(tuples(), labels=labels)
    with pytest.raises(
        EvenrankError, match=r"^`id_columns`: the dataset has no column 'id' \(it has query, positive, n"
    ):
        with_group_labels(tuples(), labels=labels, id_columns=["id"])
    with pytest.raises(EvenrankError, match=r"^`labels`: not with `lexicon`"):
        with_group_labels(identified(), "gender-en", labels=labels, id_columns=IDS)
    with pytest.raises(EvenrankError, match=r"^the labels know none of 4 passages \('a', 'b', 'c', …\)"):
        with_group_labels(identified(), labels={"x": "m", "y": "f"}, id_columns=IDS)
    with pytest.raises(EvenrankError, match="by document, and these passages have no ids: give their sides"):
        CrossEncoderIBBRLoss(cross_encoder(checkpoint), lexicon=labels)


# --- the evaluator ---------------------------------------------------------------------------------------------------


def test_an_evaluator_by_labels_that_say_what_the_words_say(checkpoint: str) -> None:
    """Signs and neutrality of the corpus: his and her texts have two group words of their own or one (neutral)."""
    model = bi_encoder(checkpoint)
    by_words = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, measures="nDCG@10 |DeltaAPRF|")
    labels = {id_: {"m": "m", "f": "f", "n": "none"}[id_[0]] for id_ in CORPUS}
    table = as_labels(labels, neutral=["none"])
    by_labels = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, labels=table, measures="nDCG@10 |DeltaAPRF|")
    assert by_labels(model) == by_words(model)
    assert by_labels.first_stage == by_words.first_stage
    assert by_labels.known == (12, 12)
    assert by_labels.get_config_dict()["candidates with a label"] == "12 of 12, others are left out"
    # The usual measures take the weight as magnitude.
    usual = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, labels=table)
    assert list(usual(model)) == MEASURES
    # RaB@1 by hand: the first candidates are m0, m1, m2, m3, f0 and f1.
    first = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, labels=table, measures="nDCG@10 RaB@1 NFaiRR@1")
    assert first.first_stage["RaB@1"] == pytest.approx((4 - 2) / 6)


def test_documents_without_a_label_are_left_out_of_an_evaluator() -> None:
    # Of m0 … f1, the first candidates, m1 … m3 are unknown: the lists close up. q0: m0; q1 … q4: f0; q5: f1.
    known = {id_: id_[0] for id_ in CORPUS if id_ not in ("m1", "m2", "m3")} | {f"n{i}": "none" for i in range(4)}
    table = as_labels(known, neutral=["none"])
    found = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, labels=table, measures="nDCG@10 RaB@1")
    assert found.known == (9, 12)
    assert found.get_config_dict()["candidates with a label"] == "9 of 12, others are left out"
    assert found.get_config_dict()["labels"] == "in memory"
    assert found.first_stage["RaB@1"] == pytest.approx((1 - 5) / 6)
    # A group table of labels as scores is the same.
    scored = BiasEvaluator(QUERIES, CORPUS, RELEVANT, CANDIDATES, scores=table, measures="nDCG@10 RaB@1")
    assert scored.first_stage == found.first_stage
    with pytest.raises(EvenrankError, match=r"^`labels`: knows none of the documents: it has 'x', 'y'; asked for"):
        evaluator(labels={"x": "m", "y": "f"})
    with pytest.raises(EvenrankError, match=r"^`labels`: not with `scores`"):
        evaluator(labels=table, scores=table)
