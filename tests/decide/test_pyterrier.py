"""The PyTerrier transformer: PyTerrier's own contract tests, and scores that are the ranker's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evenrank.files import EvenrankError
from ranker_factories import CASES
from tiny_models import texts

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed")

import pandas as pd
import pyterrier.testing

from evenrank.decide.pyterrier import EvenrankReranker

# Its report of what a transformer takes and gives is a warning.
pytestmark = pytest.mark.filterwarnings("ignore:INFO", "ignore:You can hide", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")


class TestContract(pyterrier.testing.TransformerTestCase):
    """PyTerrier's tests of a transformer."""

    @staticmethod
    def get_transformer() -> EvenrankReranker:
        return EvenrankReranker(CASES["knrm"].make(0))

    @classmethod
    def tearDownClass(cls) -> None:
        # A class is torn down after its tests' environment is.
        cls.transformer = None


def frame(seed: int = 0) -> pd.DataFrame:
    """Candidates of two queries, in no order, with a column of the user's own."""
    columns = {"qid": ["0", "1"] * 4 + ["0"], "docno": [f"d{i}" for i in range(9)], "text": texts(9, 12, seed)}
    found = pd.DataFrame({**columns, "url": [f"u{i}" for i in range(9)], "score": 1.0, "rank": 7})
    found["query"] = found["qid"].map({"0": "she wrote software", "1": "a nurse"})
    return found.set_index(np.arange(9)[::-1])


@pytest.mark.parametrize("case", ["knrm", "cat", "dot"])
def test_scores_are_the_rankers(case: str) -> None:
    ranker = CASES[case].make(0)
    given = frame()
    before = given.copy()
    found = EvenrankReranker(ranker, batch_size=2)(given)
    pd.testing.assert_frame_equal(given, before)
    assert set(found.columns) == set(given.columns)
    expected = ranker.score(given["query"].tolist(), given["text"].tolist()).numpy()
    by_document = dict(zip(given["docno"], expected, strict=True))
    np.testing.assert_allclose(found["score"], [by_document[d] for d in found["docno"]], atol=1e-5)
    assert dict(zip(found["docno"], found["url"], strict=True)) == dict(zip(given["docno"], given["url"], strict=True))
    for _, part in found.groupby("qid"):
        assert sorted(part["rank"]) == list(range(len(part)))
        assert part.sort_values("rank")["score"].is_monotonic_decreasing


def test_in_a_pipeline_with_another_text_field() -> None:
    given = frame().rename(columns={"text": "body"}).drop(columns=["score", "rank"])
    reranker = EvenrankReranker(CASES["knrm"].make(0), text_field="body")
    pipeline = pt.Transformer.from_df(given) >> reranker % 2
    found = pipeline(given[["qid", "query"]].drop_duplicates())
    whole = reranker(given)
    assert set(found["docno"]) == set(whole[whole["rank"] < 2]["docno"])
    with pytest.raises(pt.validate.InputValidationError, match="body"):
        reranker(given.drop(columns="body"))


def test_mistakes_and_an_empty_frame() -> None:
    ranker = CASES["knrm"].make(0)
    found = EvenrankReranker(ranker)(frame().iloc[:0])
    assert len(found) == 0
    assert {"score", "rank", "url"} <= set(found.columns)
    with pytest.raises(EvenrankError, match="`batch_size`: expected 1 or more, found 0"):
        EvenrankReranker(ranker, batch_size=0)
    given = frame()
    given.loc[given["docno"] == "d3", "text"] = None
    with pytest.raises(EvenrankError, match="the row of 'd3' lacks its query or its text"):
        EvenrankReranker(ranker)(given)
    with pytest.raises(EvenrankError, match="no such folder"):
        EvenrankReranker("nowhere")
