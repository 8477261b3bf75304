"""An evaluator for sentence-transformers whose figures are the audit's."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")


from evenrank.files import EvenrankError, Run
from evenrank.groups import as_labels
from evenrank.training.sentence_transformers import BiasEvaluator
from st_models import CANDIDATES, CORPUS, MEASURES, QUERIES, RELEVANT, bi_encoder, cross_encoder, evaluator

# transformers, accelerate and datasets warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def test_what_an_evaluator_takes(checkpoint: str) -> None:
    """Mappings and tables give the same; other queries are left out; the background is deeper than what is ranked."""
    model = bi_encoder(checkpoint)
    table = pl.DataFrame([(q, d) for q, of in CANDIDATES.items() for d in of], ["query_id", "doc_id"], orient="row")
    table = table.with_columns(score=-pl.int_range(pl.len()).cast(pl.Float64))
    as_tables = BiasEvaluator(
        pl.DataFrame({"query_id": list(QUERIES), "text": list(QUERIES.values())}),
        pl.DataFrame({"doc_id": list(CORPUS), "text": list(CORPUS.values())}),
        pl.DataFrame(
            [(q, d, 1) for q, of in RELEVANT.items() for d in of], ["query_id", "doc_id", "relevance"], orient="row"
        ),
        Run.from_table(table),
    )
    expected = evaluator()(model)
    assert as_tables(model) == pytest.approx(expected)
    assert list(expected) == MEASURES
    sets = BiasEvaluator(QUERIES, CORPUS, {q: set(of) for q, of in RELEVANT.items()}, CANDIDATES)
    assert sets(model) == pytest.approx(expected)

    few = BiasEvaluator(
        {q: QUERIES[q] for q in "01"}, CORPUS, RELEVANT, CANDIDATES, depth=4, measures="nDCG@10 P@4 |ARaB|@10 NFaiRR@4"
    )
    found = few(model)
    assert list(found) == ["nDCG@10", "P@4", "AbsoluteMeanARaB@10", "NFaiRR@4"]
    assert found["P@4"] == pytest.approx(np.mean([len({*CANDIDATES[q][:4]} & {*RELEVANT[q]}) / 4 for q in "01"]))
    # Four of twelve documents cannot be more neutral than the best four of all.
    assert found["NFaiRR@4"] <= 1


@pytest.mark.parametrize("labelled", [False, True])
def test_figures_with_intervals_and_values_of_each_query(checkpoint: str, labelled: bool) -> None:
    model = bi_encoder(checkpoint).train()
    # One document has no label.
    labels = {name: {"m": "male", "f": "female"}.get(name[0], "none") for name in list(CORPUS)[:-1]}
    more = {"labels": as_labels(labels, neutral=["none"], poles="female,male")} if labelled else {}
    check = evaluator(name="toy", **more)
    result = check.audit(model)
    assert model.training
    assert list(result["toy"].measures) == ["nDCG@10", "NFaiRR@10", "ARaB@10", "|DeltaAPRF|"]
    for run, figures in (("toy", list(check(model).values())), ("first stage", list(check.first_stage.values()))):
        assert [value.mean for value in result[run].measures.values()] == pytest.approx(figures, abs=1e-9)
    ndcg = result["toy"]["nDCG@10"]
    assert ndcg.mean == pytest.approx(np.mean(ndcg.values))
    assert len(ndcg.values) == len(QUERIES)
    low, high = ndcg.ci95
    assert low < ndcg.mean < high
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


def test_mistakes_in_an_evaluator() -> None:
    with pytest.raises(EvenrankError, match="none is of effectiveness, and a ranking at random is fair"):
        evaluator(measures="ARaB@10 |DeltaAPRF|")
    with pytest.raises(EvenrankError, match="expected 1 or more"):
        evaluator(depth=0)
    with pytest.raises(EvenrankError, match="no measure 'NDCG10'"):
        evaluator(measures="NDCG10")
    some = dict(list(CORPUS.items())[:-2])
    with pytest.raises(EvenrankError, match="2 documents without a text, such as 'n2'"):
        BiasEvaluator(QUERIES, some, RELEVANT, CANDIDATES)
    with pytest.raises(EvenrankError, match="none of the queries has any"):
        BiasEvaluator({"other": "query"}, CORPUS, RELEVANT, CANDIDATES)


def test_an_evaluator_leaves_the_model_as_it_was(checkpoint: str) -> None:
    for model in (bi_encoder(checkpoint).train(), cross_encoder(checkpoint).eval()):
        training, activation = model.training, getattr(model, "activation_fn", None)
        evaluator()(model)
        assert model.training == training
        assert getattr(model, "activation_fn", None) is activation
