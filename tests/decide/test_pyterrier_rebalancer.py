"""The PyTerrier transformer for fairer orders: PyTerrier's contract, and the orders that evenrank.rebalance gives."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.files import EvenrankError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed")

import pandas as pd
import pyterrier.testing

from evenrank.decide.pyterrier import EvenrankRebalancer

# Its report of what a transformer takes and gives is a warning.
pytestmark = pytest.mark.filterwarnings("ignore:INFO", "ignore:You can hide", "ignore::DeprecationWarning")

WORDS = ["he and his father", "she and her mother", "rain", "he said that his son was ill", "her daughter and she"]


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")


class TestContract(pyterrier.testing.TransformerTestCase):
    """PyTerrier's tests of a transformer."""

    @staticmethod
    def get_transformer() -> EvenrankRebalancer:
        return EvenrankRebalancer("detconstsort", 0.5)

    @classmethod
    def tearDownClass(cls) -> None:
        # A class is torn down after its tests' environment is.
        cls.transformer = None


def frame(seed: int = 0, queries: int = 6, length: int = 12) -> pd.DataFrame:
    """Results, in no order and with a column of the user's own; of each document, everywhere the same text."""
    rng = np.random.default_rng(seed)
    number = rng.permuted(np.tile(np.arange(3 * length), (queries, 1)), axis=1)[:, :length].ravel()
    found = pd.DataFrame(
        {
            "qid": np.repeat([f"q{i}" for i in range(queries)], length),
            "docno": [f"d{i}" for i in number],
            "text": [WORDS[i % 5] for i in number],
            "url": [f"u{i}" for i in number],
            "score": rng.permutation(queries * length) / 7,
            "rank": 99,
        }
    )
    return found.sample(frac=1, random_state=seed).set_index(pd.Index([0] * len(found)))


def labels() -> dict[str, str]:
    return {f"d{i}": "mfnm"[i % 4] for i in range(36)}


def orders(found: pd.DataFrame) -> dict[str, list[str]]:
    assert sorted(found.groupby("qid")["rank"].apply(sorted).explode()) == sorted(found.groupby("qid").cumcount())
    ranked = found.sort_values("rank")
    assert (
        ranked.groupby("qid")["score"].apply(lambda scores: scores.is_monotonic_decreasing and scores.is_unique).all()
    )
    return {str(query): part["docno"].tolist() for query, part in ranked.groupby("qid")}


def by_rebalance(results: pd.DataFrame, **settings: object) -> dict[str, list[str]]:
    run = evenrank.rebalance(results[["qid", "docno", "score"]], **settings).run  # type: ignore[arg-type]
    return {str(query): part["doc_id"].to_list() for (query,), part in run.table.group_by("query_id")}


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "neutral", "strength": 0.7},
        {"method": "fair", "strength": 1, "protected": "f", "alpha": 0.2, "target": {"f": 0.9, "m": 0.1}},
        {"method": "detconstsort", "strength": 1, "target": {"f": 0.7, "m": 0.3}, "depth": 8},
    ],
)
def test_orders_are_those_of_rebalance(settings: dict[str, object]) -> None:
    given = frame()
    before = given.copy()
    for groups in ({"labels": labels(), "neutral": "n"}, {}, {"tokens": "whitespace"}):
        collection = {} if "labels" in groups else {"collection": given[["docno", "text"]]}
        found = EvenrankRebalancer(**settings, **groups)(given)  # type: ignore[arg-type]
        pd.testing.assert_frame_equal(given, before)
        assert set(found.columns) == set(given.columns)
        assert orders(found) == by_rebalance(given, **settings, **groups, **collection)
        assert orders(found) != orders(pt.model.add_ranks(given.copy()))
        pd.testing.assert_frame_equal(
            found.sort_values(["qid", "docno"])[["qid", "docno", "text", "url"]],
            given.sort_values(["qid", "docno"])[["qid", "docno", "text", "url"]],
        )


def test_what_is_the_same_for_all_queries_is_learnt_or_given() -> None:
    given = frame(3, queries=8)
    tuning = given["qid"].isin(["q0", "q1", "q2"])
    groups: dict[str, object] = {"labels": labels(), "neutral": "n"}
    for method in ("shift", "fair"):
        rebalancer = EvenrankRebalancer(method, 0.8, **groups)  # type: ignore[arg-type]
        given_as = {"shift": "offsets", "fair": "protected"}[method]
        with pytest.raises(EvenrankError, match=f"^{method} has nothing to go by: give `{given_as}`, or call fit"):
            rebalancer(given)
        assert rebalancer.learnt == {}
        # By the last step of a pipeline.
        (pt.Transformer.from_df(given) >> rebalancer).fit(given[tuning][["qid"]].drop_duplicates(), None, None, None)
        found = orders(rebalancer(given))
        assert found == by_rebalance(
            given, method=method, strength=0.8, validation_queries=["q0", "q1", "q2"], **groups
        )
        direct = {given_as: rebalancer.learnt[given_as]}
        assert orders(EvenrankRebalancer(method, 0.8, **direct, **groups)(given)) == found  # type: ignore[arg-type]
        # One query alone is put into the same order.
        assert orders(rebalancer(given[given["qid"] == "q5"])) == {"q5": found["q5"]}
    steep = EvenrankRebalancer("shift", 1, offsets=-2, per="magnitude", labels=labels(), neutral="n", poles="m,f")
    for documents in orders(steep(given)).values():
        found_groups = [labels()[doc] for doc in documents]
        assert found_groups == sorted(found_groups, key="fnm".index)


def test_frames_without_rows_or_columns() -> None:
    rebalancer = EvenrankRebalancer("shift", 1)
    found = rebalancer(frame().iloc[:0])
    assert len(found) == 0
    assert {"score", "rank", "url"} <= set(found.columns)
    for column in ("docno", "score", "text"):
        with pytest.raises(pt.validate.InputValidationError, match=column):
            rebalancer(frame().drop(columns=column))
    with pytest.raises(EvenrankError, match="fit: expected results, found none"):
        rebalancer.fit(frame().iloc[:0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": 1.5}, "`strength`: expected a number from 0 to 1, found 1.5"),
        ({"depth": 0}, "`depth`: expected 1 or more, found 0"),
        ({"offsets": {"m": 1, "f": -1}}, "`offsets` needs `method='shift'`"),
        ({"labels": labels(), "lexicon": "gender-en"}, "`lexicon`"),
        ({"method": "shift", "offsets": {"m": 1.0}}, "expected a number for each of f, m, found {'m': 1.0}"),
        ({"method": "shift", "offsets": {"m": 1}, "per": "magnitude"}, "expected a number, per unit of magnitude,"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError, match=re.escape(message)):
        EvenrankRebalancer(**settings)(frame())


def test_results_that_cannot_be_used() -> None:
    given = frame()
    place = int(np.flatnonzero(given["docno"].duplicated())[0])
    doc, of_d3 = given["docno"].iloc[place], (given["docno"] == "d3").to_numpy()
    for wrong, message in [
        (given.assign(text=given["text"].mask(of_d3, None)), "the row of 'd3' lacks its text"),
        (given.assign(score=given["score"].mask(of_d3)), "the results: .* a finite number"),
        (
            given.assign(text=["another" if row == place else text for row, text in enumerate(given["text"])]),
            f"`text_field`: the document '{doc}' has different texts in the column 'text'",
        ),
        (pd.concat([given, given]), r"the results: .*(twice|repeated)"),
    ]:
        with pytest.raises(EvenrankError, match=message):
            EvenrankRebalancer()(wrong)
