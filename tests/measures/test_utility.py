"""Utility: equal to ir_measures on the same files, and to slow versions; expectations over ties against all orders."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slow
from evenrank.files import EvenrankError, Run, read_qrels, read_run
from evenrank.measures import Evaluation, parse_measure, parse_measures, resolve

NAMES = "nDCG@1 nDCG@3 nDCG RR RR@2 RR@10 AP AP@3 AP(rel=2) P@3 P(rel=2)@2 R@2 R@1000 Success@1 Success@4 RR(rel=3)@3"
seeds = st.integers(0, 10_000)


def dicts(found):
    """The run and the judgements as ir_measures takes them."""
    ranked = {query: dict(docs) for query, docs in slow.rankings(found.run).items()}
    return slow.graded(found), ranked


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_every_query_equals_ir_measures(seed):
    table, _, qrels = slow.random_case(seed, longest=9)
    found = Evaluation(Run.from_table(table), qrels=qrels)
    as_qrels, as_run = dicts(found)
    measures = parse_measures(NAMES)
    # Without ties all measures are theirs; with them RR@k is not, which they take by rising id.
    strict = {q: {doc: -float(place) for place, doc in enumerate(docs)} for q, docs in as_run.items()}
    theirs: dict = {}
    for measures_, ranked in (
        (measures, strict),
        ([m for m in measures if "@" not in str(m) or m.NAME != "RR"], as_run),
    ):
        for value in ir_measures.iter_calc(measures_, as_qrels, ranked):
            found_ = theirs.setdefault((value.measure, value.query_id), value.value)
            assert value.value == pytest.approx(found_, abs=1e-9)
    for measure in measures:
        for query, value in zip(found.judged, found.values(measure), strict=True):
            assert value == pytest.approx(theirs[measure, query], abs=1e-9), (measure, query)


@given(seeds, st.sampled_from([1, 2, 3, 10]), st.sampled_from([0, 1]))
@settings(max_examples=30, deadline=None)
def test_values_and_orders_equal_the_slow_versions(seed, k, below):
    table, _, qrels = slow.random_case(seed, queries=2, longest=5, levels=2)
    found = Evaluation(Run.from_table(table), qrels=qrels.with_columns(pl.col("relevance") - below))
    judged = {query: {doc: max(0, g) for doc, g in of.items()} for query, of in slow.graded(found).items()}
    forms = {
        f"nDCG@{k}": lambda grades, all_: slow.ndcg(grades, k, all_),
        f"AP@{k}": lambda grades, all_: slow.ap(grades, k, all_),
        f"RR@{k}": lambda grades, all_: slow.rr(grades, k),
        f"ERR@{k}": lambda grades, all_: slow.err(grades, k),
        f"P@{k}": lambda grades, all_: slow.precision(grades, k),
        f"SDCG(max_rel=2)@{k}": lambda grades, all_: slow.sdcg(grades, k, 2),
        f"RBP(rel=2,p=0.6)@{k}": lambda grades, all_: slow.rbp(grades, k, 2, 0.6),
        "RBP(rel=1)": lambda grades, all_: slow.rbp(grades, 99, 1, 0.8),
        f"R@{k}": lambda grades, all_: slow.recall(grades, k, all_),
        f"Success@{k}": lambda grades, all_: slow.success(grades, k),
    }
    for text, value in forms.items():

        def of(query, docs, value=value):
            return value(
                [max(0, judged[query].get(doc, 0)) for doc in docs], [max(0, g) for g in judged[query].values()]
            )

        slow.check_over_orders(found, text, of)


def case(scores, grades, **options):
    """A query's documents with their scores, and grades of some."""
    run = pl.DataFrame({"query_id": ["0"] * len(scores), "doc_id": [*scores], "score": [*scores.values()]})
    qrels = pl.DataFrame({"query_id": ["0"] * len(grades), "doc_id": [*grades], "relevance": [*grades.values()]})
    return Evaluation(Run.from_table(run, **options), qrels=qrels)


def values(found, text):
    return found.values(parse_measure(text)).tolist()


def test_hand_worked_err_and_tied_expectations():
    # Grades 4, 0 then 1: stops with 15/16 at rank 1, and (1/16)·(1/16) at rank 3.
    assert slow.err([4, 0, 1], 3) == pytest.approx(15 / 16 + 1 / 16 * 1 / 16 / 3)
    # One relevant document among two tied ones: RR is 1 or ½.
    found = case({"a": 1.0, "b": 1.0}, {"a": 1})
    assert (values(found, "RR"), values(found, "RR@10")) == ([0.5], [0.5])
    assert resolve(parse_measure("RR@10")).expected(found).tolist() == [0.75]
    with pytest.raises(EvenrankError, match="ERR takes grades from 0 to 4; the qrels contain 5"):
        values(case({"a": 1.0}, {"a": 5}), "ERR@10")


@pytest.mark.parametrize(("order", "rank"), [("score", 3), ("file", 2)])
def test_one_order_of_tied_documents_for_all_measures(order, rank):
    """ir_measures' programs have RR@k by rising id, the others by falling id, whatever the order of the file."""
    found = case({"b": 1.0, "a": 1.0, "c": 1.0}, {"a": 1, "b": 0, "c": 0}, order=order)
    for text in ("RR@3", "RR(rel=1)@3", "RR", "AP", "RR(judged_only=True)", "AP(judged_only=True)"):
        assert values(found, text) == pytest.approx([1 / rank]), text
    assert values(found, "RR(rel=2)@3") == [0.0]
    assert values(found, "nDCG@3") == [1 / np.log2(1 + rank)]


def test_scores_that_are_equal_in_float32_keep_their_order():
    found = case({"a": 1 + 1e-12, "b": 1.0}, {"a": 1})
    assert [values(found, text) for text in ("AP", "AP(judged_only=True)", "IPrec@0.5")] == [[1.0]] * 3


def test_a_measure_that_only_ir_measures_has_is_passed_through():
    table, _, qrels = slow.random_case(5, longest=9)
    found = Evaluation(Run.from_table(table), qrels=qrels)
    measure = parse_measure("Bpref")
    theirs = {v.query_id: v.value for v in ir_measures.iter_calc([measure], *dicts(found))}
    assert found.values(measure).tolist() == [theirs[query] for query in found.judged]
    # Which order of ties is best is not known for it; the mean over 200 of them is.
    assert np.isnan(resolve(measure).bounds(found)).all()
    other = resolve(measure).expected(found)
    assert ((other >= 0) & (other <= 1)).all()
    in_order = Evaluation(Run.from_table(found.run.table, order="file"), qrels=qrels)
    np.testing.assert_array_equal(resolve(measure).bounds(in_order)[0], in_order.values(measure))
    np.testing.assert_array_equal(resolve(measure).expected(in_order), in_order.values(measure))


def test_a_passed_through_measure_sees_the_order_of_the_reference_ranking():
    table, scores, qrels = slow.random_case(8, longest=9)
    found = Evaluation(Run.from_table(table), scores, qrels)
    ideal, measure = found.neutral_first(), parse_measure("AP(judged_only=True)")
    expected = {}
    for query, doc, rank in ideal.first(100).select("query_id", "doc_id", "rank").iter_rows():
        expected.setdefault(query, {})[doc] = -float(rank)
    theirs = {v.query_id: v.value for v in ir_measures.iter_calc([measure], slow.graded(found), expected)}
    assert ideal.values(measure).tolist() == [theirs[query] for query in ideal.judged]
    assert ideal.values(measure).tolist() != found.values(measure).tolist()


def test_a_measure_that_fails_in_ir_measures_is_one_line():
    table, _, qrels = slow.random_case(1)
    with pytest.raises(EvenrankError, match="ir_measures cannot compute it here"):
        Evaluation(Run.from_table(table), qrels=qrels).values(parse_measure("AP(rel=0)"))
    # A cutoff beyond every list costs nothing.
    found = Evaluation(Run.from_table(table), qrels=qrels.filter(qrels["relevance"] < 5))
    deep, whole = parse_measure("ERR@100000000"), parse_measure("ERR@100")
    np.testing.assert_allclose(resolve(deep).expected(found), resolve(whole).expected(found))


def test_equal_to_ir_measures_on_the_public_files(shared_data: Path):
    run, qrels = shared_data / "grepbiasir" / "bm25.run", shared_data / "grepbiasir" / "qrels.txt"
    found = Evaluation(read_run(run), qrels=read_qrels(qrels))
    measures = parse_measures("nDCG@10 nDCG@20 RR AP P@30 R@10 R@1000 ERR@10")
    files = list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))
    theirs = ir_measures.calc_aggregate(measures, *files)
    for measure in measures:
        # gdeval prints five decimals.
        tolerance = 5e-6 if measure.NAME == "ERR" else 1e-9
        assert found.values(measure).mean() == pytest.approx(theirs[measure], abs=tolerance), measure
    # Tied documents by rising id, as ir_measures has them here, give .69885.
    assert found.values(parse_measure("RR@10")).mean() == pytest.approx(0.69971, abs=5e-6)
