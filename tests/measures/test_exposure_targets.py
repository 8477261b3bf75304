"""Targets of exposure: their forms and errors; the measures inside ir_measures; the figures of other programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slow
import slow_exposure as plain
from evenrank.files import EvenrankError, Run, read_qrels, read_run
from evenrank.groups import GroupTable
from evenrank.measures import (
    AWRF,
    NDKL,
    Evaluation,
    ExposureGap,
    Share,
    Target,
    as_target,
    parse_measure,
    provider,
)

RUN = {"q": {"m": 3.0, "f": 2.0, "n": 1.0}, "r": {"f": 1.0}}
TABLE = plain.labels({"m": (0, 1), "f": (1, 0), "n": (0, 0), "o": (1, 0)}, "fm")
QRELS = {"q": {"m": 1, "o": 2, "lost": 1, "n": 0}, "r": {"m": 0}}
SHARES = {"q": {"f": 0.25, "m": 0.75}, "r": {"f": 1.0}}


def close(a: Any, b: Any, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=atol, equal_nan=True)


def run_of(lists: dict[str, dict[str, float]]) -> Run:
    rows = [(query, doc, score) for query, of in lists.items() for doc, score in of.items()]
    return Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"), "mine")


def evaluation(**more: Any) -> Evaluation:
    judged = [(query, doc, grade) for query, of in QRELS.items() for doc, grade in of.items()]
    qrels = pl.DataFrame(judged, ["query_id", "doc_id", "relevance"], orient="row")
    return Evaluation(run_of(RUN), TABLE, qrels, **more)


def test_targets_that_are_computed() -> None:
    found = evaluation()
    close(found.target_shares(), [[0.5, 0.5]] * 2)
    # Without a background, the run's own documents.
    close(found.target_shares("candidates"), [[0.5, 0.5], [1, 0]])
    # m and o are relevant and known; nothing is for r.
    close(found.target_shares("relevant"), [[0.5, 0.5], [math.nan] * 2])
    found.target = as_target("relevant", "fm")
    close(found.target_shares(), [[0.5, 0.5], [math.nan] * 2])
    close(found.target_shares("uniform"), [[0.5, 0.5]] * 2)
    assert found.neutral_first().target is found.target
    assert Target("candidates").described == "the groups' shares of the candidates"
    assert Target("uniform").described == "equal shares of all groups"


def test_candidates_are_those_of_the_background() -> None:
    found = evaluation()
    background = {"q": {"o": 3.0, "m": 2.0, "f": 1.0}, "r": {"n": 2.0, "m": 1.0}, "s": {"m": 1.0}}
    other = Evaluation(run_of(background), TABLE)
    found.background = other.as_background("other")
    close(found.target_shares("candidates"), [[2 / 3, 1 / 3], [0, 1]])
    # Another background is looked at anew.
    found.background = other.as_background("other", 1)
    close(found.target_shares("candidates"), [[1, 0], [math.nan] * 2])


LONG = "query_id,group,share\nq,m,.75\nq,f,.25\nr,f,1\n"
WIDE = "query_id,m,f\nq,.75,.25\n\nr,0,1\n"


@pytest.mark.parametrize(
    "given",
    [
        *(LONG, WIDE.replace(",", "\t"), SHARES),
        pl.DataFrame({"query_id": ["r", "q"], "f": [1.0, 0.25], "m": [0.0, 0.75]}),
    ],
)
def test_shares_of_each_query(given: Any, tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    if isinstance(given, str):
        path.write_text(given)
    target = as_target(path if isinstance(given, str) else given, TABLE.groups)
    close(evaluation(target=target).target_shares("file"), [[0.25, 0.75], [1, 0]])
    assert not isinstance(given, str) or target.described == f"the shares in {path}"


NO_X = "no group 'x' in the labels, which have f, m"
A_SHARE = "expected a share from 0 to 1 of the group"
MISTAKES: list[tuple[Any, str]] = [
    ("group,share\nx,1\n", f", line 2: {NO_X}"),
    ("query_id,m,x\nq,1,0\n", f", line 1: {NO_X}"),
    ("query_id,m,f\nq,.5,.4\n", ", line 2: the shares of the query 'q' sum to 0.9, expected 1"),
    ("query_id,m,f\nq,1.5,-.5\n", f", line 2: {A_SHARE} 'f', found '-.5'"),
    ("group,share\nm,many\n", f", line 2: {A_SHARE} 'm', found 'many'"),
    ("query_id,m,f\nq,1,0\nr,1,0\nq,1,0\n", ", line 4: the group 'm' of the query 'q' is repeated"),
    ("query_id,group,share\nq,m,1\nq,m,1\n", ", line 3: the group 'm' of the query 'q' is repeated"),
    ("query_id,m,m\nq,1,0\n", ", line 1: two columns are named 'm'"),
    ("query_id,m,f\nq,1\n", ", line 2: expected 3 values (query_id, m, f), found 2"),
    ("query_id,m,f\n,1,0\n", ", line 2: expected a string or a whole number as query_id, found ''"),
    ("m,f\n1,0\n", ", line 1: expected group,share or query_id,group,share or query_id and a column for each group"),
    ("group,share\n", ": expected at least one share, found none"),
    ("\n", ": the file contains no rows"),
    (5, "expected uniform, candidates, relevant, a file, {group: share}"),
    ({"m": 0.5, "q": {"m": 1}}, "expected a share for each group or for each group of each query"),
    ({"m": 0.5}, "the shares sum to 0.5, expected 1"),
    ({1.5: {"m": 1.0}}, "expected a string or a whole number as query_id, found '1.5'"),
    ({}, "expected at least one share, found none"),
    (Path("nowhere.csv"), "expected uniform, candidates, relevant or a file, found 'nowhere.csv'"),
]


@pytest.mark.parametrize(("given", "message"), MISTAKES)
def test_what_is_no_target(given: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    if isinstance(given, str):
        path.write_text(given)
    with pytest.raises(EvenrankError) as error:
        as_target(path if isinstance(given, str) else given, ("f", "m"))
    assert str(error.value).startswith(f"{path}{message}" if isinstance(given, str) else f"`target`: {message}")
    assert "\n" not in str(error.value)


def test_what_a_run_lacks() -> None:
    no_shares = r"`target`: no shares for the query 'r' \(1 of 2 queries are missing\)"
    other_groups = "no group 'x' in the group table, which has f, m"
    for found, measure, message in (
        (evaluation(target=as_target({"q": {"m": 1}}, "fm")), AWRF @ 2, no_shares),
        (evaluation(), AWRF(target="file") @ 2, "target='file' needs the shares of the groups: give `target`"),
        (Evaluation(run_of(RUN), TABLE), AWRF(target="relevant") @ 2, "the target 'relevant' needs `qrels`"),
        (evaluation(), Share(group="x") @ 2, other_groups),
        (evaluation(), ExposureGap(poles="m,x") @ 2, other_groups),
        (evaluation(target=as_target({"z": 1.0}, "xyz")), AWRF @ 2, f"`target`: {NO_X}"),
    ):
        with pytest.raises(EvenrankError, match=message):
            found.values(measure)
    with pytest.raises(EvenrankError, match=f"`target`: {NO_X}"):
        provider(TABLE, target={"x": 1.0})


def test_figures_of_the_trec_program(shared_data: Path) -> None:
    folder = shared_data / "exposure"
    weights = pl.read_csv(folder / "memberships.csv").rename({group: f"count_{group}" for group in "abc"})
    table = GroupTable.of(weights.with_columns(neutrality=pl.lit(0.0)), {"labels": "memberships.csv"})
    qrels, target = read_qrels(folder / "qrels.txt"), as_target(folder / "targets.csv", table.groups)

    # Its documents without a membership keep their ranks.
    found = Evaluation(read_run(folder / "awrf.run"), table, qrels, missing="neutral", target=target)
    expected = json.loads((folder / "expected.json").read_text())["values"]
    assert len(expected) == 30
    measure = parse_measure("AWRF(discount='trec',target='file')@1000")
    values = dict(zip(found.queries, found.values(measure), strict=True))
    close([values[query] for query in expected], [of["AWRF"] for of in expected.values()], 1e-5)


@given(st.integers(0, 1000))
def test_figures_of_fairranktune(seed: int) -> None:
    """Its EXP and the attention of its AWRF are mean exposures of a group's items, its NDKL has an ε of 1e-7."""
    theirs, pandas = pytest.importorskip("FairRankTune"), pytest.importorskip("pandas")
    case = plain.Case(seed, longest=12, levels=100, whole=True)
    found = Evaluation(case.run, case.table)
    for i, (_, ranking) in enumerate(slow.rankings(case.run).items()):
        docs = [doc for doc, _ in ranking]
        group = {doc: "abc"[case.weights[doc].index(1)] for doc in docs}
        frame, counts = pandas.DataFrame(docs), pl.Series([*group.values()]).value_counts()
        many = dict(counts.iter_rows())
        for text, means in (
            ("Exposure(group='{}')@12", theirs.EXP(frame, group, "MinMaxRatio")[1]),
            ("Exposure(group='{}',discount='rbp',gamma=0.9)@12", theirs.AWRF(frame, group, 0.1, "MinMaxRatio")[1]),
        ):
            total = sum(mean * many[name] for name, mean in means.items())
            for name, mean in means.items():
                value = found.values(parse_measure(text.format(name)))[i]
                close(value, mean * many[name] / total, 1e-9)
        close(found.values(NDKL(target="candidates") @ 12)[i], theirs.NDKL(frame, group), 1e-4)
