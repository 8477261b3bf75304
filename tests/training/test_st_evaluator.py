"""An evaluator for sentence-transformers whose figures are the audit's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenrank.files import EvenrankError
from evenrank.groups import as_labels
from evenrank.training.sentence_transformers import BiasEvaluator
from st_models import CANDIDATES, CORPUS, MEASURES, QUERIES, RELEVANT, bi_encoder, cross_encoder, evaluator

KINDS = {id_: id_[0] for id_ in CORPUS}
"""The label of each document: m, f or n."""


@pytest.mark.parametrize("labelled", [False, True])
def test_figures_with_intervals_and_values_of_each_query(checkpoint: str, labelled: bool) -> None:
    model = bi_encoder(checkpoint).train()
    # One document has no label.
    labels = as_labels(dict(list(KINDS.items())[:-1]), neutral=["n"], poles="f,m")
    check = evaluator(name="toy", **({"labels": labels} if labelled else {}))
    result = check.audit(model)
    assert model.training
    assert list(result["toy"].measures) == ["nDCG@10", "NFaiRR@10", "ARaB@10", "|DeltaAPRF|"]
    for run, figures in (("toy", list(check(model).values())), ("first stage", list(check.first_stage.values()))):
        assert [value.mean for value in result[run].measures.values()] == pytest.approx(figures, abs=1e-9)
    ndcg = result["toy"]["nDCG@10"]
    assert ndcg.mean == pytest.approx(np.mean(ndcg.values))
    assert len(ndcg.values) == len(QUERIES)
    assert ndcg.ci95[0] < ndcg.mean < ndcg.ci95[1]
    difference = ndcg.mean - result["first stage"]["nDCG@10"].mean
    assert ndcg.vs_baseline.difference == pytest.approx(difference)


def test_usual_measures_that_are_undefined_are_left_out(checkpoint: str) -> None:
    model = bi_encoder(checkpoint)
    # Relevant documents of one group alone have no |ΔA-PRF|.
    men = {query: {"m0"} for query in QUERIES}
    usual = BiasEvaluator(QUERIES, CORPUS, men, CANDIDATES)
    assert list(usual(model)) == list(usual.first_stage) == MEASURES[:-1]
    asked = BiasEvaluator(QUERIES, CORPUS, men, CANDIDATES, measures="nDCG@10 |DeltaAPRF|")
    assert np.isnan(asked(model)["AbsoluteDeltaAPRF"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"measures": "ARaB@10 |DeltaAPRF|"}, "none is of effectiveness, and a ranking at random is fair"),
        ({"depth": 0}, "expected 1 or more"),
        ({"measures": "NDCG10"}, "no measure 'NDCG10'"),
        ({"corpus": dict(list(CORPUS.items())[:-2])}, "2 documents without a text, such as 'n2'"),
        ({"queries": {"other": "query"}}, "none of the queries has any"),
        ({"labels": {"x": "m", "y": "f"}}, "^`labels`: knows none of the documents: it has 'x', 'y'; asked for"),
        ({"labels": as_labels({"a": "m", "b": "f"}), "scores": as_labels({"a": "m", "b": "f"})}, "^`labels`: not with"),
    ],
)
def test_mistakes_in_an_evaluator(given: dict[str, Any], message: str) -> None:
    data = given.pop("queries", QUERIES), given.pop("corpus", CORPUS)
    with pytest.raises(EvenrankError, match=message):
        BiasEvaluator(*data, RELEVANT, CANDIDATES, **given)


def test_an_evaluator_leaves_the_model_as_it_was(checkpoint: str) -> None:
    for model in (bi_encoder(checkpoint).train(), cross_encoder(checkpoint).eval()):
        training, activation = model.training, getattr(model, "activation_fn", None)
        evaluator()(model)
        assert model.training == training
        assert getattr(model, "activation_fn", None) is activation


# --- labels of documents ----------------------------------------------------------------------------------------------


def test_documents_without_a_label_are_left_out_of_an_evaluator() -> None:
    # Of m0 … f1, the first candidates, m1 … m3 are unknown: the lists close up. q0: m0; q1 … q4: f0; q5: f1.
    table = as_labels({one: kind for one, kind in KINDS.items() if one not in ("m1", "m2", "m3")}, neutral=["n"])
    found = evaluator(labels=table, measures="nDCG@10 RaB@1")
    assert found.known == (9, 12)
    assert found.get_config_dict()["candidates with a label"] == "9 of 12, others are left out"
    assert found.get_config_dict()["labels"] == "in memory"
    assert found.first_stage["RaB@1"] == pytest.approx((1 - 5) / 6)
    # A group table of labels as scores is the same.
    assert evaluator(scores=table, measures="nDCG@10 RaB@1").first_stage == found.first_stage
