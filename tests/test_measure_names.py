"""Names and parameters of measures, and our measures inside ir_measures."""

from __future__ import annotations

import ir_measures
import numpy as np
import polars as pl
import pytest
from ir_measures import nDCG

import slow
from evenrank.io import EvenrankError, Run
from evenrank.measures import (
    BIAS_MEASURES,
    AbsARaB,
    AbsoluteDeltaAPRF,
    AbsoluteMeanARaB,
    ARaB,
    DeltaAPRF,
    Evaluation,
    NFaiRR,
    describe,
    parse_measure,
    parse_measures,
    set_scores,
    using_scores,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("NFaiRR @ 10", "NFaiRR@10"),
        ("ARaB(magnitude='tf')@10", "ARaB@10"),
        ("ARaB(magnitude='bool')@10", "ARaB(magnitude='bool')@10"),
        ("|ARaB|@10", "|ARaB|@10"),
        ("|ARaB(magnitude='bool')|@10", "|ARaB|(magnitude='bool')@10"),
        ("|ARaB|(magnitude='bool')@10", "|ARaB|(magnitude='bool')@10"),
        ("|DeltaAPRF|", "|DeltaAPRF|"),
        ("APRF(group='m')", "APRF(group='m')"),
        ("MRR@10", "RR@10"),
        ("Recall@1000", "R@1000"),
        ("MAP", "AP"),
    ],
)
def test_measures_are_written_as_ir_measures_writes_them(text, written):
    measure = parse_measure(text)
    assert str(measure) == written
    assert parse_measure(written) == measure


def test_a_list_is_split_at_spaces_outside_brackets():
    found = parse_measures("nDCG@10  ARaB(magnitude='bool', poles='m, f') @ 5 nDCG@10")
    assert [str(measure) for measure in found] == ["nDCG@10", "ARaB(magnitude='bool',poles='m, f')@5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo@3", "no measure 'Foo@3' (bias: RaB, ARaB,"),
        ("ARaB", "'ARaB' needs a cutoff, such as ARaB@10"),
        ("ARaB(depth=1)@3", "unsupported params found: ['depth']"),
        ("ARaB(magnitude='idf')@3", "invalid param magnitude='idf'"),
        ("ARaB@0", "the cutoff must be 1 or more"),
        ("ARaB(poles='m')@3", "poles are written 'A,B'"),
        ("1 + 1", "is no measure"),
        ("__import__('os')", "is no measure"),
        ("", "expected at least one measure"),
    ],
)
def test_what_is_no_measure_is_said_in_one_line(text, message):
    with pytest.raises(EvenrankError) as error:
        parse_measures(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_measure_says_what_it_is():
    for measure in BIAS_MEASURES:
        assert len(describe(measure)) > 30, measure


def test_ours_in_calc_aggregate_beside_theirs():
    table, scores, qrels = slow.random_case(11, queries=6, longest=8)
    run = Run.from_table(table)
    found = Evaluation(run, scores, qrels)
    found.background = found.as_background("run")
    theirs_run = [ir_measures.ScoredDoc(*row) for row in table.iter_rows()]
    theirs_qrels = [ir_measures.Qrel(*row) for row in qrels.iter_rows()]
    measures = [NFaiRR @ 10, ARaB(magnitude="bool") @ 3, AbsARaB @ 3, AbsoluteMeanARaB @ 3, DeltaAPRF, nDCG @ 10]
    with using_scores(scores):
        result = ir_measures.calc_aggregate([*measures, AbsoluteDeltaAPRF], theirs_qrels, theirs_run)
        assert ir_measures.parse_measure("ARaB(magnitude='bool')@3") in result
        per_query = list(ir_measures.iter_calc([NFaiRR @ 10], theirs_qrels, theirs_run))
    nfairr = found.values(NFaiRR @ 10)
    # A query without a value is skipped, not averaged in as 0; judged queries outside the run likewise.
    assert result[NFaiRR @ 10] == pytest.approx(np.nanmean(nfairr))
    assert {v.query_id for v in per_query if not np.isnan(v.value)} == set(found.queries.to_list())
    assert result[ARaB(magnitude="bool") @ 3] == pytest.approx(found.values(ARaB(magnitude="bool") @ 3).mean())
    assert result[AbsARaB @ 3] == pytest.approx(np.abs(found.values(ARaB @ 3)).mean())
    assert result[AbsoluteMeanARaB @ 3] == pytest.approx(abs(found.values(ARaB @ 3).mean()))
    male, female = found.poles_prf(DeltaAPRF)
    assert result[DeltaAPRF] == pytest.approx(np.nanmean(male) - np.nanmean(female))
    assert result[AbsoluteDeltaAPRF] == pytest.approx(abs(result[DeltaAPRF]))
    assert result[nDCG @ 10] == pytest.approx(found.values(nDCG @ 10).mean())


def test_a_query_without_a_value_is_undefined_in_ir_measures():
    scores = pl.DataFrame({"doc_id": ["a", "b"], "count_f": [0, 2], "count_m": [0, 0], "neutrality": [1.0, 0.0]})
    run = [ir_measures.ScoredDoc("0", "a", 1.0), ir_measures.ScoredDoc("1", "b", 1.0)]
    qrels = [ir_measures.Qrel("0", "a", 1)]
    with using_scores(scores):
        # Query 1 has no neutral document in its background: IFaiRR is 0.
        assert ir_measures.calc_aggregate([NFaiRR @ 5], qrels, run)[NFaiRR @ 5] == 1.0


def test_without_a_score_table_the_error_says_what_to_call():
    set_scores(None)
    with pytest.raises(EvenrankError, match=r"evenrank\.measures\.set_scores"):
        ir_measures.calc_aggregate(
            [NFaiRR @ 5], [ir_measures.Qrel("0", "a", 1)], [ir_measures.ScoredDoc("0", "a", 1.0)]
        )


def test_scores_from_a_file(tmp_path):
    scores = pl.DataFrame({"doc_id": ["a"], "count_f": [0], "count_m": [3], "neutrality": [0.0]})
    scores.write_parquet(tmp_path / "s.parquet")
    measure = ARaB(magnitude="count") @ 1
    with using_scores(tmp_path / "s.parquet"):
        run, qrels = [ir_measures.ScoredDoc("0", "a", 1.0)], [ir_measures.Qrel("0", "a", 1)]
        assert ir_measures.calc_aggregate([measure], qrels, run) == {measure: 3.0}
