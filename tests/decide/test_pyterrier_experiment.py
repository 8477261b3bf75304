"""Our measures in PyTerrier's Experiment: the audit's figures."""

from __future__ import annotations

import math
import warnings
from typing import Any

import polars as pl
import pytest
from ir_measures import AP, nDCG

import evenrank
from evenrank.files import EvenrankError
from evenrank.groups import score_texts
from evenrank.measures import AbsoluteMeanARaB, ARaB, DeltaAPRF, NFaiRR, provider

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed")

import pandas as pd

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

TEXTS = {"a": "He and his brother.", "b": "He told his father.", "c": "She and her sister.", "d": "It rained."}
LISTS = {"1": "abcd", "2": "dcba", "3": "cdab"}
ROWS = [(query, f"query {query}", one, -float(rank)) for query in LISTS for rank, one in enumerate(LISTS[query])]
FIRST = pd.DataFrame(ROWS, columns=["qid", "query", "docno", "score"])
FIRST["rank"] = -FIRST["score"].astype(int)
SECOND = FIRST.assign(score=-FIRST["score"], rank=3 - FIRST["rank"])
TOPICS = FIRST[["qid", "query"]].drop_duplicates()
QRELS = pd.DataFrame([("1", "c", 1), ("2", "a", 1), ("3", "d", 1)], columns=["qid", "docno", "label"])
MEASURES = [NFaiRR @ 10, ARaB @ 10, nDCG @ 10]


@pytest.fixture(scope="module")
def bound() -> Any:
    texts = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    return provider(score_texts(texts, evenrank.Scoring(evenrank.load_lexicon("gender-en"))))


def test_figures_are_those_of_the_audit(bound: Any) -> None:
    metrics = [bound.metric(NFaiRR @ 10), bound.metric("ARaB@10"), nDCG @ 10]
    pipelines = [pt.Transformer.from_df(frame) for frame in (FIRST, SECOND)]
    found = pt.Experiment(pipelines, TOPICS, QRELS, metrics, names=["first", "second"], batch_size=2)
    audited = evenrank.audit({"first": FIRST, "second": SECOND}, collection=TEXTS, qrels=QRELS, measures=MEASURES)
    assert {*found.columns} == {"name", "NFaiRR@10", "ARaB@10", "nDCG@10"}
    for row in found.to_dict("records"):
        for measure in MEASURES:
            expected = audited[row["name"], str(measure)].mean
            assert row[str(measure)] == pytest.approx(expected, abs=1e-12)
            assert expected


def test_two_tables_and_a_query_without_a_judgement_or_a_value(bound: Any) -> None:
    other = provider(evenrank.as_labels({"a": "m", "b": "f", "c": "m", "d": "none"}, neutral=["none"], poles="m,f"))
    metrics = [bound.metric(ARaB @ 10), other.metric(ARaB @ 10, "labelled"), AP]
    run = FIRST[FIRST["qid"] != "2"]
    # One topic is not judged, one finds nothing.
    found = pt.Experiment([run], TOPICS, QRELS[:2], metrics, perquery=True)
    values = {(row["qid"], row["measure"]): row["value"] for row in found.to_dict("records")}
    expected = evenrank.audit({"run": run}, collection=TEXTS, measures=["ARaB@10"])["run", "ARaB@10"]
    assert values["1", "ARaB@10"] == pytest.approx(expected.values[0], abs=1e-12)
    assert values["1", "labelled"] != values["1", "ARaB@10"]
    assert math.isnan(values["2", "labelled"])
    assert values["2", "AP"] == 0
    assert math.isnan(values["3", "AP"])
    assert math.isnan(values["3", "ARaB@10"])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (nDCG @ 10, "nDCG@10 is one of ir_measures: it needs no group table"),
        (DeltaAPRF, "DeltaAPRF is a figure of the run, no mean over queries"),
        (AbsoluteMeanARaB @ 10, r"\|ARaB\|@10 is a figure of the run, no mean over queries"),
    ],
    ids=["theirs", "parts", "whole"],
)
def test_what_is_no_metric(bound: Any, measure: Any, message: str) -> None:
    with pytest.raises(EvenrankError, match=f"^`measure`: {message}"):
        bound.metric(measure)
