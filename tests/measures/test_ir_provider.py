"""Our measures inside ir_measures: a provider bound to a group table."""

from __future__ import annotations

import ir_measures
import numpy as np
import polars as pl
import pytest
from ir_measures import RR, nDCG

import slow
from evenrank.files import EvenrankError, Run
from evenrank.groups import as_labels
from evenrank.measures import (
    AbsARaB,
    AbsoluteDeltaAPRF,
    AbsoluteMeanARaB,
    ARaB,
    DeltaAPRF,
    Evaluation,
    NFaiRR,
    RaB,
    provider,
)

TABLE = pl.DataFrame({"doc_id": ["a", "b"], "count_f": [0, 2], "count_m": [0, 0], "neutrality": [1.0, 0.0]})
RUN = [ir_measures.ScoredDoc("0", "a", 1.0), ir_measures.ScoredDoc("1", "b", 1.0)]
QRELS = [ir_measures.Qrel("0", "a", 1)]


def test_ours_in_calc_aggregate_beside_theirs():
    table, scores, qrels = slow.random_case(11, queries=6, longest=8)
    run = Run.from_table(table)
    found = Evaluation(run, scores, qrels)
    found.background = found.as_background("run")
    theirs_run = [ir_measures.ScoredDoc(*row) for row in table.iter_rows()]
    theirs_qrels = [ir_measures.Qrel(*row) for row in qrels.iter_rows()]
    measures = [NFaiRR @ 10, ARaB(magnitude="bool") @ 3, AbsARaB @ 3, AbsoluteMeanARaB @ 3, DeltaAPRF, nDCG @ 10]
    bound = provider(scores)
    result = bound.calc_aggregate([*measures, AbsoluteDeltaAPRF], theirs_qrels, theirs_run)
    assert set(result) == {*measures, AbsoluteDeltaAPRF}
    assert ir_measures.parse_measure("ARaB(magnitude='bool')@3") in result
    per_query = list(bound.iter_calc([NFaiRR @ 10], theirs_qrels, theirs_run))
    nfairr = found.values(NFaiRR @ 10)
    # A query without a value is skipped, not averaged in as 0; judged queries outside the run likewise.
    assert result[NFaiRR @ 10] == pytest.approx(np.nanmean(nfairr))
    assert {v.query_id for v in per_query if not np.isnan(v.value)} == set(found.queries.to_list())
    assert result[ARaB(magnitude="bool") @ 3] == pytest.approx(found.values(ARaB(magnitude="bool") @ 3).mean())
    assert result[AbsARaB @ 3] == pytest.approx(np.abs(found.values(ARaB @ 3)).mean())
    assert result[AbsoluteMeanARaB @ 3] == pytest.approx(abs(found.values(ARaB @ 3).mean()))
    male, female = DeltaAPRF.parts(found)
    assert result[DeltaAPRF] == pytest.approx(np.nanmean(male) - np.nanmean(female))
    assert result[AbsoluteDeltaAPRF] == pytest.approx(abs(result[DeltaAPRF]))
    assert result[nDCG @ 10] == ir_measures.calc_aggregate([nDCG @ 10], theirs_qrels, theirs_run)[nDCG @ 10]
    assert result[nDCG @ 10] == pytest.approx(found.values(nDCG @ 10).mean())
    both = bound.calc([NFaiRR @ 10, nDCG @ 10], theirs_qrels, theirs_run)
    assert both.aggregated == {m: result[m] for m in (NFaiRR @ 10, nDCG @ 10)}
    assert {metric.measure for metric in both.per_query} == {NFaiRR @ 10, nDCG @ 10}


def test_tied_documents_are_in_one_order_for_ours_and_theirs():
    run = {"0": {"a": 1.0, "b": 1.0}}
    measures = [ARaB(magnitude="count") @ 1, RR @ 10, RR, nDCG @ 1]
    found = provider(TABLE).calc_aggregate(measures, {"0": {"a": 1}}, run)
    # By descending id: b, the one that speaks of f, first.
    assert found == {measures[0]: -2.0, RR @ 10: 0.5, RR: 0.5, nDCG @ 1: 0.0}


@pytest.mark.parametrize("relevant", ["a", "b"])
def test_a_difference_without_a_value_of_one_pole_is_undefined(relevant):
    words = [pl.Series("magnitude_tf_words_f", [0.0, 1.0]), pl.Series("magnitude_tf_words_m", [1.0, 0.0])]
    table = TABLE.with_columns(pl.Series("count_m", [2, 0]), *words)
    run = [ir_measures.ScoredDoc("0", doc, score) for doc, score in (("a", 2.0), ("b", 1.0))]
    result = provider(table).calc_aggregate([DeltaAPRF], [ir_measures.Qrel("0", relevant, 1)], run)
    assert np.isnan(result[DeltaAPRF])


def test_background_is_the_run_given():
    # Query 1 has no neutral document in its background, itself: IFaiRR is 0, and it has no value.
    assert provider(TABLE).calc_aggregate([NFaiRR @ 5], QRELS, RUN)[NFaiRR @ 5] == 1.0
    background = {"0": {"a": 1.0, "b": 0.0}, "1": {"a": 1.0}}
    found = provider(TABLE, background=background).calc_aggregate([NFaiRR @ 5], QRELS, RUN)
    # Query 0 has the ideal order but for a document that adds nothing; query 1 ranks what is not neutral: 0 of 1.
    assert found == {NFaiRR @ 5: 0.5}


def test_labels_without_a_limit():
    """Nothing is known of three of five documents: the lists close up over them."""
    labels = as_labels({"a": "m", "b": "f"}, poles="m,f")
    run = {"1": {"x": 5.0, "a": 4.0, "y": 3.0, "b": 2.0, "z": 1.0}, "2": {"b": 2.0, "z": 1.0}, "3": {"z": 1.0}}
    bound = provider(labels, missing_limit=0.1)
    assert bound.missing == "skip"
    values = {m.query_id: m.value for m in bound.iter_calc([RaB @ 2], {}, run)}
    # (1 − 1)/2, −1, and no value where nothing is known.
    assert values.pop("3") != values["1"]
    assert values == {"1": 0.0, "2": -1.0}
    assert bound.calc_aggregate([RaB @ 2], {}, run)[RaB @ 2] == -0.5
    neutral = provider(labels, missing="neutral").calc_aggregate([RaB @ 2], {}, run)
    assert neutral[RaB @ 2] == pytest.approx((1 / 2 - 1 / 2 + 0) / 3)
    with pytest.raises(EvenrankError, match="3 of its 5 documents are not in the labels"):
        provider(labels, missing="error").calc_aggregate([RaB @ 2], {}, run)
