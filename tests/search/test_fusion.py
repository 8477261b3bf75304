"""Interpolation and the choice of its weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.files import EvenrankError, Run, read_run
from evenrank.measures import Evaluation, parse_measure
from evenrank.search.fusion import Candidates, _hundredths, _moved, interpolate, min_max, reachable, tune

Lists = dict[str, dict[str, float]]


def table(cells: dict[str, dict[str, float]], value: str) -> pl.DataFrame:
    rows = [(query, doc, number) for query, docs in cells.items() for doc, number in docs.items()]
    return pl.DataFrame(rows, ["query_id", "doc_id", value], orient="row")


def run(name: str, lists: Lists) -> Run:
    return Run.from_table(table(lists, "score"), name)


def scores(found: Run) -> Lists:
    lists: Lists = {}
    for query, doc, score in found.table.select("query_id", "doc_id", "score").iter_rows():
        lists.setdefault(query, {})[doc] = score
    return lists


def slow(first: Lists, second: Lists, weight: float) -> Lists:
    def scaled(docs: dict[str, float]) -> dict[str, float]:
        low, high = min(docs.values()), max(docs.values())
        return {doc: (score - low) / (high - low) if high > low else 0.5 for doc, score in docs.items()}

    fused: Lists = {}
    for query in {**first, **second}:
        a, b = scaled(first.get(query, {"": 0})), scaled(second.get(query, {"": 0}))
        for doc in {**first.get(query, {}), **second.get(query, {})}:
            fused.setdefault(query, {})[doc] = weight * a.get(doc, 0) + (1 - weight) * b.get(doc, 0)
    return fused


def test_by_hand() -> None:
    # First: 3, 2, 1 → 1, .5, 0. Second: 10, 10 → .5, .5. λ .8: b .8 · .5 = .4 …, d only in the second: .2 · .5 = .1.
    first = run("a", {"0": {"a": 3.0, "b": 2.0, "c": 1.0}})
    second = run("b", {"0": {"c": 10.0, "d": 10.0}})
    found = scores(interpolate([first, second], weights=[0.8, 0.2]))["0"]
    assert found == pytest.approx({"a": 0.8, "b": 0.4, "c": 0.1, "d": 0.1})
    assert scores(interpolate([first, second], weights=[1.6e308, 4e307]))["0"] == pytest.approx(found)
    # A constant list and a huge range.
    found = min_max(run("a", {"0": {"a": 7.0}, "1": {"b": 1.7e308, "c": -1.7e308, "d": 0.0}}))
    assert dict(zip(found["doc_id"], found["scaled"], strict=True)) == {"a": 0.5, "b": 1.0, "d": 0.5, "c": 0.0}


docs = st.dictionaries(st.sampled_from("abcdef"), st.integers(-3, 3).map(float), min_size=1)
lists = st.dictionaries(st.sampled_from(["0", "1", "x"]), docs, min_size=1)


@settings(max_examples=60, deadline=None)
@given(lists, lists, st.sampled_from([0.0, 0.25, 0.9, 1.0]))
def test_against_the_slow_version(first: Lists, second: Lists, weight: float) -> None:
    found = scores(interpolate([run("a", first), run("b", second)], weights=[weight, 1 - weight]))
    expected = slow(first, second, weight)
    assert {query: pytest.approx(docs) for query, docs in expected.items()} == found


def made(queries: int, lean: float, seed: int = 0) -> tuple[Run, Run, pl.DataFrame]:
    """Two runs of noise around relevance; the second is ``lean`` times as clear as the first."""
    rng = np.random.default_rng(seed)
    first, second, judged = {}, {}, {}
    for query in map(str, range(queries)):
        relevant = rng.permutation(20) < 4
        for scores_, clear in ((first, 1.0), (second, lean)):
            values = clear * relevant + rng.normal(size=20)
            scores_[query] = {f"d{i}": float(value) for i, value in enumerate(values)}
        judged[query] = {f"d{i}": 1 for i in np.flatnonzero(relevant)}
    return run("first", first), run("second", second), table(judged, "relevance")


def test_ties_go_to_the_larger_weight_and_queries_without_judgements_are_ranked_too() -> None:
    first, _, judged = made(6, 1.0)
    found = tune([first, Run(name="same", table=first.table)], qrels=judged.filter(pl.col("query_id") != "3"), folds=2)
    assert [fold.weights for fold in found.folds] == [(1.0, 0.0)] * 2
    assert (found.run.queries.n_unique(), sum(fold.queries for fold in found.folds)) == (6, 5)


def test_two_runs_take_the_best_of_a_hundred_steps() -> None:
    first, second, judged = made(12, 1.3, seed=3)
    found = tune([first, second], qrels=judged, measure="AP", folds=2)
    candidates = Candidates.of([first, second])
    by_weight = {}
    for part in range(101):
        evaluation = Evaluation(candidates.fused([part / 100, 1 - part / 100]), qrels=judged)
        order = evaluation.judged.arg_sort().to_numpy()
        by_weight[part] = evaluation.values(parse_measure("AP"))[order]
    assert found.alone == pytest.approx((by_weight[100].mean(), by_weight[0].mean()))
    # The value is that of the run that is given.
    assert Evaluation(found.run, qrels=judged).values(parse_measure("AP")).mean() == pytest.approx(
        found.value, abs=1e-12
    )
    fold_of = np.random.default_rng([0, 2]).permutation(np.arange(12) % 2)
    for number, fold in enumerate(found.folds):
        train = [values[fold_of != number].mean() for values in by_weight.values()]
        best = max(range(101), key=lambda part: (round(train[part], 12), part))
        assert fold.weights == (pytest.approx(best / 100), pytest.approx(1 - best / 100))
        assert fold.train == pytest.approx(max(train))
        assert fold.test == pytest.approx(by_weight[best][fold_of == number].mean())


@pytest.mark.slow
def test_coordinate_ascent_leaves_out_a_run_of_noise() -> None:
    first, second, judged = made(60, 1.5)
    rng = np.random.default_rng(9)
    noise = run("noise", {str(q): {f"d{i}": float(rng.normal()) for i in range(20)} for q in range(60)})
    found = tune([first, second, noise], qrels=judged, measure="nDCG@10", folds=3, restarts=2)
    assert found.mean[2] < 0.15
    assert sum(found.mean) == pytest.approx(1)
    assert all(fold.train >= 0.99 * max(found.alone) for fold in found.folds)
    again = tune([first, second, noise], qrels=judged, measure="nDCG@10", folds=3, restarts=2)
    assert again.to_dict() == found.to_dict()
    assert again.run.table.equals(found.run.table)


@given(st.lists(st.integers(0, 20), min_size=3, max_size=5).filter(any), st.integers(0, 4), st.integers(-5, 110))
def test_moves_stay_among_the_hundredths(parts: list[int], i: int, part: int) -> None:
    point = _hundredths(np.array(parts, dtype=float))
    assert sum(point) == 100
    i %= len(point)
    moved = _moved(point, i, part)
    assert sum(moved) == 100
    assert moved[i] == min(max(part, 0), 100)
    assert min(moved) >= 0


TWO = made(6, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tune(TWO[:2], qrels=TWO[2], measure="NFaiRR@10"), "`measure`: expected one of effectiveness"),
        (lambda: tune(TWO[:2], qrels=TWO[2], folds=7), "`folds`: expected 2 to 6"),
        (lambda: interpolate(TWO[:2], weights=[1, 1, 1]), "expected one for each of the 2 runs, found 3"),
        *(
            (lambda first=first: interpolate(TWO[:2], weights=[first, -first]), "expected numbers from 0, not all 0")
            for first in (-1.0, 0.0, float("nan"))
        ),
        (lambda: interpolate(TWO[:1], weights=[1]), "expected two runs or more, found 1"),
    ],
)
def test_what_cannot_be_fused(call, message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        call()


@pytest.fixture
def fuse(tmp_path, monkeypatch, evenrank):
    monkeypatch.chdir(tmp_path)
    Path("a.run").write_text("0 Q0 x 1 2 a\n0 Q0 y 2 1 a\n1 Q0 y 1 2 a\n1 Q0 x 2 1 a\n", encoding="utf-8")
    Path("b.run").write_text("0 Q0 y 1 2 b\n0 Q0 x 2 1 b\n1 Q0 y 1 2 b\n", encoding="utf-8")
    Path("qrels").write_text("0 0 x 1\n1 0 x 1\n", encoding="utf-8")
    return lambda *options, second="b.run": evenrank("fuse", "a.run", second, "--out", "o", *options)


def test_the_command(fuse) -> None:
    assert fuse("--weight", "0.9").status == 0
    assert scores(read_run("o"))["0"] == pytest.approx({"x": 0.9, "y": 0.1})
    tuned = ("--tune", "RR@10", "--qrels", "qrels", "--folds", "2", "--json", "weights.json")
    done = fuse(*tuned, second="second=b.run")
    assert "weight of second: mean 0.000, standard deviation 0.000 over the folds" in done.err
    found = json.loads(Path("weights.json").read_text(encoding="utf-8"))
    assert (found["runs"], found["weights"]["mean"], found["value"]) == (["a", "second"], [1.0, 0.0], 0.75)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "expected --weight or --tune"),
        ("--weight 0.5 --tune AP", "--weight: not with --tune"),
        ("--tune AP", "--tune needs --qrels"),
        ("--weight x", "expected a number, or one per run separated by commas, found x"),
    ],
)
def test_mistakes_are_told(fuse, options, message) -> None:
    done = fuse(*options.split())
    assert message in done.err
    assert not Path("o").exists()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_only_reachable_documents_are_needed(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"d{i:02}" for i in range(25)]

    def drawn() -> Run:
        # Few scores, so that there are ties.
        return run("r", {q: {d: float(rng.integers(0, 6)) for d in rng.permutation(names)[:15]} for q in ("0", "1")})

    whole = Candidates.of([drawn(), drawn()])
    some = reachable(whole, depth)
    assert some.table.height <= whole.table.height
    for part in (0, 7, 30, 62, 100):
        weights = np.array([part, 100 - part]) / 100
        first = [one.fused(weights).table.filter(pl.col("rank") <= depth) for one in (whole, some)]
        for query in ("0", "1"):
            of = [table.filter(query_id=query).sort("rank") for table in first]
            assert of[1]["score"].to_list() == pytest.approx(of[0]["score"].to_list())
        if part in (0, 100):
            assert first[0]["doc_id"].to_list() == first[1]["doc_id"].to_list()
