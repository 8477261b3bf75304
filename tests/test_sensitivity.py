"""Position sensitivity: hand-worked, planted, against slow versions, and the commands."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenrank.io import EvenrankError, Run, write_run
from evenrank.io.squad import answer_table, load_squad, read_answers
from evenrank.measures import sensitivity as sensitivity_measure
from evenrank.measures.sensitivity import _weighted_slopes, by_bucket, course, quantile_starts

# --- figures ---------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    # Buckets [0, .5) and [.5, 1): means (1 + .5)/2 = .75 and .25; index 1 − 1/3. Places 0, .2, .5, .9; values 1, .5, 0,
    # .5: slope = Σ(x − .4)(y − .5) / Σ(x − .4)² = (−.2 + 0 − .05 + 0) / (.16 + .04 + .01 + .25) = −.25/.46.
    values, places = np.array([1, 0.5, 0, 0.5, np.nan]), np.array([0, 0.2, 0.5, 0.9, 0.1])
    found = by_bucket(values, places, (0.0, 0.5), 1.0)
    assert found.n.tolist() == [2, 2]
    assert found.means.tolist() == [0.75, 0.25]
    assert found.index == pytest.approx(2 / 3)
    assert found.slope == pytest.approx(-0.25 / 0.46)
    # A half-open bucket: .5 is in the second one. An empty bucket has no mean and no part in the index.
    empty = by_bucket(values, places, (0.0, 0.5, 2.0))
    assert math.isnan(empty.means[2])
    assert empty.ci95[2] is None
    assert empty.index == pytest.approx(2 / 3)
    assert empty.to_dict()["buckets"][2] == {"from": 2.0, "to": None, "queries": 0, "mean": None, "ci95": None}


def test_the_null_is_the_mean_over_shuffles() -> None:
    # Values 1, 0 in one bucket each: whatever the order, the index is 1; the null says so, and p is 1.
    found = by_bucket(np.array([1.0, 0.0]), np.array([0.1, 0.6]), (0.0, 0.5), 1.0)
    assert (found.index, found.null, found.p) == (1.0, 1.0, 1.0)
    # Values 1, 1, 0, 0 in pairs: of the 3 ways to pair them up 1 has index 1, 2 have index 0: null 1/3.
    found = by_bucket(np.array([1.0, 1, 0, 0]), np.array([0.1, 0.2, 0.6, 0.7]), (0.0, 0.5), 1.0)
    assert found.index == 1
    assert found.null == pytest.approx(1 / 3, abs=0.04)
    assert found.p == pytest.approx(1 / 3, abs=0.04)


def test_noise_is_told_from_an_effect() -> None:
    rng = np.random.default_rng(1)
    places = rng.random(300)
    noise = by_bucket(rng.random(300), places, (0.0, 0.2, 0.4, 0.6, 0.8), 1.0)
    assert noise.p is not None
    assert noise.slope_p is not None
    assert noise.p > 0.05
    assert noise.slope_p > 0.05
    effect = by_bucket(0.2 * rng.random(300) + 0.5 * (1 - places), places, (0.0, 0.2, 0.4, 0.6, 0.8), 1.0)
    assert effect.p is not None
    assert effect.p < 0.001
    assert effect.slope_ci95 is not None
    assert effect.slope_ci95[0] < -0.5 < effect.slope_ci95[1]
    assert effect.index_ci95 is not None
    assert effect.index_ci95[0] > noise.null


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=12))
def test_buckets_against_the_slow_version(pairs: list[tuple[float, int]]) -> None:
    values, places = np.array([v for v, _ in pairs]), np.array([p for _, p in pairs])
    found = by_bucket(values, places, (0, 3, 6))
    means = []
    for b, (low, high) in enumerate([(0, 3), (3, 6), (6, 99)]):
        inside = [v for v, p in pairs if low <= p < high]
        assert found.n[b] == len(inside)
        if inside:
            means.append(sum(inside) / len(inside))
            assert found.means[b] == pytest.approx(means[-1])
    if len(means) == 1:
        assert math.isnan(found.index)
    elif max(means) > 1e-6:
        assert found.index == pytest.approx(1 - min(means) / max(means))
    if len(set(places)) > 1:
        assert found.slope == pytest.approx(np.polyfit(places, values, 1)[0], abs=1e-6)
    else:
        assert math.isnan(found.slope)


def test_places_outside_the_buckets() -> None:
    with pytest.raises(EvenrankError, match=r"places: expected 0\.0 to below 1\.0, found 1\.0"):
        by_bucket(np.array([1.0]), np.array([1.0]), (0.0,), 1.0)
    with pytest.raises(EvenrankError, match="no query has both"):
        by_bucket(np.array([np.nan]), np.array([0.5]), (0.0,), 1.0)


def test_a_course() -> None:
    # Slopes over 0, .5, 1: −1 and 1, mean 0; the undefined query is left out.
    values = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0], [np.nan, 1.0, 1.0]])
    found = course(values, np.array([0, 0.5, 1]))
    assert (found.n, found.means.tolist(), found.slope) == (2, [0.5, 0.5, 0.5], 0.0)
    assert found.slope_ci95 == (-1.0, 1.0)
    assert course(values[2:], np.array([0, 0.5, 1])).n == 0


def test_queries_of_one_passage_are_drawn_together() -> None:
    # Four copies of each query: drawn apart, intervals are those of four times the queries; together, those of one.
    rng = np.random.default_rng(3)
    values, places = rng.random(40), rng.random(40)
    four, clusters = (np.repeat(values, 4), np.repeat(places, 4)), np.repeat(np.arange(40), 4)
    one = by_bucket(values, places, (0.0, 0.5), 1.0)
    apart = by_bucket(*four, (0.0, 0.5), 1.0)
    together = by_bucket(*four, (0.0, 0.5), 1.0, clusters=clusters)
    assert np.array(together.ci95) == pytest.approx(np.array(one.ci95))
    assert together.slope_ci95 == pytest.approx(one.slope_ci95)
    assert np.ptp(apart.ci95[0]) == pytest.approx(np.ptp(one.ci95[0]) / 2, rel=0.1)
    moved = np.repeat(values[:, None] * [1, 2], 4, axis=0)
    ends = [course(m, np.array([0.0, 1.0]), clusters=c).slope_ci95 for m, c in ((moved[::4], None), (moved, clusters))]
    assert ends[0] == pytest.approx(ends[1])


def test_weighted_slopes_are_those_of_the_drawn_queries() -> None:
    rng = np.random.default_rng(5)
    values, places, weights = rng.random(9), rng.random(9), rng.integers(0, 3, (7, 9)).astype(float)
    found = _weighted_slopes(values, places, weights)
    for row, slope in zip(weights.astype(int), found, strict=True):
        assert slope == pytest.approx(np.polyfit(np.repeat(places, row), np.repeat(values, row), 1)[0])
    assert np.isnan(_weighted_slopes(values, np.full(9, 0.3), weights)).all()


@pytest.mark.parametrize("clustered", [True, False])
def test_under_no_effect_one_in_twenty_is_significant(monkeypatch: pytest.MonkeyPatch, clustered: bool) -> None:
    # Passages differ in their effectiveness and in where their answers stand; the place itself does nothing. Shuffles
    # of queries (each its own passage) take what passages share for an effect.
    monkeypatch.setattr(sensitivity_measure, "PERMUTATIONS", 99)
    starts, found = np.arange(5) / 5, []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        passages = np.repeat(np.arange(24), rng.integers(1, 6, 24))
        places = np.clip(rng.random(24)[passages] + rng.normal(0, 0.15, len(passages)), 0, 0.999)
        values = np.clip(0.5 + rng.normal(0, 0.35, 24)[passages] + rng.normal(0, 0.25, len(passages)), 0, 1)
        bucket = np.searchsorted(starts, places, side="right") - 1
        units = passages if clustered else np.arange(len(passages))
        index, slope = sensitivity_measure._nulls(values, places, bucket, 5, units, seed)
        own = sensitivity_measure._index(sensitivity_measure._means(values[None], bucket[None], 5))[0]
        steep = abs(sensitivity_measure._slopes(values[None], places[None])[0])
        found.append([(index >= own).sum() < 5, (abs(slope) >= steep).sum() < 5])
    rates = np.mean(found, axis=0)
    assert all((rates >= 0.03) & (rates <= 0.07) if clustered else rates > 0.1), rates


def test_interval_and_p_have_the_passage_as_their_unit() -> None:
    # Eight passages of twelve questions each, all of whose values and places are about the same: over 96 questions the
    # slope would be beyond doubt, over eight passages it is not.
    rng = np.random.default_rng(0)
    passages = np.repeat(np.arange(8), 12)
    places = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])[passages] + rng.uniform(0, 0.05, 96)
    values = np.array([0.9, 0.3, 0.8, 0.6, 0.7, 0.2, 0.6, 0.4])[passages]
    apart = by_bucket(values, places, (0.0, 0.5), 1.0)
    together = by_bucket(values, places, (0.0, 0.5), 1.0, clusters=passages)
    assert (apart.units, together.units, together.to_dict()["unit"]) == (96, 8, "passage")
    assert apart.slope_p is not None
    assert apart.slope_p < 0.01
    assert together.slope_p is not None
    assert together.slope_p > 0.05
    assert together.p is not None
    assert together.p > 0.05
    assert together.slope_ci95 is not None
    assert together.slope_ci95[0] < 0 < together.slope_ci95[1]
    # One passage is no sample of passages.
    one = by_bucket(values, places, (0.0, 0.5), 1.0, clusters=np.full(96, 7))
    assert (one.p, one.slope_p, one.slope_ci95, one.index_ci95, one.ci95) == (None, None, None, None, (None, None))


def test_shuffles_keep_the_queries_of_a_passage_together() -> None:
    clusters = np.array([2, 0, 1, 0, 2, 1, 0, 2, 1])
    for row in sensitivity_measure._shuffled(clusters, 50, np.random.default_rng(0)):
        # Passages of one size: a permutation that gives each passage the values of one other.
        assert sorted(row) == list(range(9))
        assert all(len({int(clusters[i]) for i in row[clusters == c]}) == 1 for c in range(3))
    # Of two and one: the passage of two takes the one value twice, or its own.
    for row in sensitivity_measure._shuffled(np.array([0, 0, 1]), 50, np.random.default_rng(0)):
        assert row.tolist() in ([0, 1, 2], [1, 0, 2], [2, 2, 0], [2, 2, 1])


def test_word_buckets_hold_about_as_many_answers_each() -> None:
    # As in COVID-QA: most answers thousands of words down.
    places = np.concatenate([np.arange(0, 200, 20), np.arange(200, 7200, 100)])
    starts = quantile_starts(places)
    assert len(starts) == 8
    assert np.bincount(np.searchsorted(starts, places, side="right") - 1).tolist() == [9, 10, 10, 10, 10, 10, 10, 11]
    # Equal places stay in one bucket; none is empty; few answers make two.
    assert quantile_starts(np.array([0] * 60 + [5] * 20 + [9] * 20)) == (0.0, 5.0, 9.0)
    assert quantile_starts(np.full(50, 7)) == (0.0,)
    assert quantile_starts(np.zeros(50)) == (0.0,)
    assert quantile_starts(np.array([3, 1, 2, 4])) == (0.0, 2.0)


def test_a_courses_p() -> None:
    # Two passages with slopes 1 and 1 have as much in half of the sign changes; one passage has no p.
    places = np.array([0.0, 1.0])
    found = course(np.array([[0.0, 1.0], [0.0, 1.0]]), places)
    assert found.slope_p == pytest.approx(0.5, abs=0.05)
    rng = np.random.default_rng(0)
    found = course(np.column_stack([np.zeros(40), rng.normal(1, 1, 40)]), places)
    assert found.slope_p is not None
    assert found.slope_p < 0.001
    alone = course(np.array([[0.0, 1.0], [0.0, 0.5]]), places, clusters=np.zeros(2, int))
    assert (alone.slope, alone.slope_p, alone.slope_ci95, alone.spread_p) == (0.75, None, None, None)


def test_a_course_that_falls_and_rises_has_a_spread() -> None:
    # .5, 0, .5 in each of 12 passages: no slope, but of the three places the lowest is always the second. As many
    # shuffles as have the lowest at one place in all passages give as much: next to none.
    rng = np.random.default_rng(1)
    places = np.array([0, 0.5, 1])
    found = course(np.array([0.5, 0.0, 0.5]) + rng.normal(0, 0.01, (12, 3)), places)
    assert found.slope_p is not None
    assert found.spread_p is not None
    assert (found.spread, found.slope_p > 0.05, found.spread_p < 0.001) == (pytest.approx(0.5, abs=0.02), True, True)
    # Four questions of each of three passages, alike within them: shuffled together they show less than apart.
    few = np.repeat(rng.normal(0, 1, (3, 3)), 4, axis=0)
    together, apart = course(few, places, clusters=np.repeat(np.arange(3), 4)), course(few, places)
    assert together.spread_p is not None
    assert apart.spread_p is not None
    assert together.spread_p > 0.1 > apart.spread_p


# --- the whole way ---------------------------------------------------------------------------------------------------

WORDS = [f"w{i}" for i in range(9)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Six questions; passage i has its answer, two words, at word i; each ranks first where it stands early."""
    paragraphs, run = [], {"query_id": [], "doc_id": [], "score": []}
    for i in range(6):
        words = [*WORDS[:i], "the", "answer", *WORDS[i:]]
        context = "  ".join(words)
        start = context.index("the")
        answer = {"text": "the  answer", "answer_start": start}
        question = {"id": f"q{i}", "question": f"where is w{i}", "answers": [answer]}
        paragraphs.append({"doc_id": f"d{i}", "context": context, "qas": [question]})
        for j in range(6):
            run["query_id"].append(f"q{i}")
            run["doc_id"].append(f"d{j}")
            run["score"].append(float(9 - i if j == i else 5.5 - j / 10))
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    write_run(Run.from_table(pl.DataFrame(run)), tmp_path / "run")
    return tmp_path


def command(*arguments: object):
    from evenrank.cli import app

    return CliRunner().invoke(app, ["position", *map(str, arguments)])


def test_a_run_by_where_its_answers_stand(home: Path) -> None:
    from evenrank.cli import app

    assert CliRunner().invoke(app, ["data", "squad", str(home / "squad.json"), "--to", str(home / "c")]).exit_code == 0
    c = home / "c"
    done = command(
        "sensitivity", "--collection", c / "collection.tsv", "--queries", c / "queries.tsv", "--qrels", c / "qrels.txt",
        "--answers", c / "answers.json", "--run", home / "run", "--json", home / "s.json", "--report", home / "s.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads((home / "s.json").read_text(encoding="utf-8"))
    assert found["queries"] == 6
    assert found["moved"] is None
    # 11 words; the answers begin at 0 … 5: fifths of the passage hold those at 0–2, 3–4 and 5 (5/11 = .45).
    assert [bucket["queries"] for bucket in found["relative"]["buckets"]] == [3, 2, 1, 0, 0]
    # The relevant passage is first for i up to 3 (score 9 − i > 5.5), third and lower after that.
    assert found["relative"]["buckets"][0]["mean"] == pytest.approx(1.0)
    assert found["relative"]["buckets"][2]["mean"] < 0.5
    assert found["relative"]["slope"] < -1
    html = (home / "s.html").read_text(encoding="utf-8")
    assert "Position sensitivity of run" in html


class Early:
    """A ranker whose score falls with the place of the word "the", or does not look at it."""

    def __init__(self, slope: float, reads: int = 10_000) -> None:
        self.slope, self.reads = slope, reads

    def score(self, queries: list[str], passages: list[str], batch_size: int = 32) -> np.ndarray:
        import torch

        return torch.tensor([5 - self.slope * p.split().index("the") for p in passages])

    def reads_to(self, queries: list[str], passages: list[str]) -> list[int]:
        return [min(self.reads, len(passage)) for passage in passages]

    def parameters(self):
        import torch

        return iter([torch.zeros(1)])


def sensitivity(home: Path, ranker: Early, monkeypatch: pytest.MonkeyPatch, **options: object):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.audit.sensitivity import position_sensitivity
    from evenrank.io.squad_collection import squad_collection
    from evenrank.rankers.models import ModelFolder

    folder = ModelFolder("early", home, "kernel")
    monkeypatch.setattr("evenrank.rankers.rerank.find_model", lambda *_: folder)
    monkeypatch.setattr("evenrank.rankers.models.find_model", lambda *_: folder)
    for module in ("rerank", "models"):
        monkeypatch.setattr(f"evenrank.rankers.{module}.load_kernel", lambda *_: ranker)
    made = squad_collection([home / "squad.json"])
    return position_sensitivity(
        "early",
        queries=made.queries.select("query_id", "text"),
        qrels=made.qrels,
        **{"collection": made.collection, "answers": answer_table(made.squad), "run": home / "run", **options},  # type: ignore[arg-type]
    )


def test_a_ranker_that_looks_at_the_place_gives_the_planted_curve(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sensitivity(home, Early(0.5), monkeypatch, places=10).moved
    # 11 words, 2 of the answer: it begins at 0, 1, … 9; the score is 5 − .5 · place, from 5 to .5.
    assert found is not None
    assert found.score.means == pytest.approx(5 - 0.5 * np.arange(10))
    assert found.score.slope == pytest.approx(-4.5)
    assert found.score.slope_ci95 == pytest.approx((-4.5, -4.5))
    # At place p the other passages, with answers at 0 … 5 but for the own, beat it where they are earlier.
    for p in range(10):
        others = [[other for other in range(6) if other != own] for own in range(6)]
        ranks = [1 + sum((other < p) + 0.5 * (other == p) for other in of) for of in others]
        assert found.rank.means[p] == pytest.approx(np.mean(ranks))
    assert found.cut.tolist() == [0] * 10


def test_a_ranker_that_does_not_look_at_the_place_is_flat(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = sensitivity(home, Early(0.0), monkeypatch, places=5)
    assert result.moved is not None
    assert result.moved.score.means.tolist() == [5.0] * 5
    assert result.moved.score.slope == 0
    assert "Position sensitivity of early" in result.table()


def test_equal_scores_share_their_ranks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = sensitivity(home, Early(0.0), monkeypatch, places=3)
    assert result.moved is not None
    assert result.moved.rank.means.tolist() == [3.5] * 3


def test_answers_that_are_cut_off_are_counted_apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 11 words joined by single spaces: 9 of two letters, "the" and "answer". 20 characters are read: an answer at word
    # p ends at 3p + 10, so those from p = 4 on are cut.
    result = sensitivity(home, Early(0.5, reads=20), monkeypatch, places=10)
    assert result.moved is not None
    assert result.moved.cut.tolist() == [0, 0, 0, 0, 6, 6, 6, 6, 6, 6]
    assert result.moved.kept_score.n == 0
    # As they stand words are two spaces apart: an answer at word i ends at 4i + 11; from i = 3 on it is cut.
    assert result.cut == 3


def test_queries_without_candidates_are_left_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The run has candidates for q0 and q1 alone, and of q1 only others: d1 joins them. Ranked by early answers, d0 is
    # first and d1 second; with four questions ranked alone the mean would be (1 + 1/log2 3 + 4) / 6.
    rows = [("q0", "d0", 2.0), ("q0", "d3", 1.0), ("q1", "d0", 2.0), ("q1", "d3", 1.0)]
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"), "part")
    found = sensitivity(home, Early(0.5), monkeypatch, places=10, run=run)
    assert (found.queries, found.without_answer, found.without_candidates, found.added) == (2, 0, 4, 1)
    assert found.value == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert found.moved is not None
    # At place p d0 meets d3 (place 3), d1 meets d0 and d3.
    assert found.moved.rank.means == pytest.approx(
        [(2 + 2 * ((p > 3) + 0.5 * (p == 3)) + ((p > 0) + 0.5 * (p == 0))) / 2 for p in range(10)]
    )
    assert "1 relevant passages were not among the candidates" in found.table()
    assert "queries without other candidates" in found.table()
    alone = Run.from_table(pl.DataFrame([("q0", "d0", 1.0)], ["query_id", "doc_id", "score"], orient="row"), "alone")
    with pytest.raises(EvenrankError, match="no query with an answer has a candidate beside its own passages"):
        sensitivity(home, Early(0.5), monkeypatch, run=alone)


def test_white_space_at_an_answers_ends_is_none_of_its_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = read_answers(home / "squad.json")
    wide = spans.with_columns(
        pl.when(pl.col("answer_start") > 0).then(pl.col("answer_start") - 1).otherwise(0).alias("answer_start"),
        pl.col("answer_end") + 1,
    )
    found = [sensitivity(home, Early(0.5), monkeypatch, answers=one, places=10) for one in (spans, wide)]
    assert found[0].to_json() == found[1].to_json()


def test_a_sample_and_bad_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = sensitivity(home, Early(0.5), monkeypatch, places=3, sample=2)
    assert result.moved is not None
    # Of both parts.
    assert (result.moved.score.n, result.queries, result.sampled_from) == (2, 2, 6)
    assert sum(result.relative.n) == 2
    assert "2 of 6 queries drawn" in result.table()
    again = sensitivity(home, Early(0.5), monkeypatch, places=3, sample=2)
    assert again.to_json() == result.to_json()
    assert sensitivity(home, Early(0.5), monkeypatch, places=3, sample=6).sampled_from is None
    for name, value in (("places", 1), ("depth", 0), ("sample", 0), ("seed", -1)):
        with pytest.raises(EvenrankError, match=f"`{name}`: expected"):
            sensitivity(home, Early(0.5), monkeypatch, **{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--squad", "s.json", "--qrels", "q"], "give it alone"),
        (["--qrels", "q"], "expected `squad`, or `collection`, `queries`, `answers` too"),
    ],
)
def test_mistakes_are_told(options: list[str], message: str) -> None:
    done = command("sensitivity", "--run", "r", *options)
    assert isinstance(done.exception, EvenrankError)
    assert message in str(done.exception)


def test_neither_model_nor_run(home: Path) -> None:
    done = command("sensitivity", "--squad", home / "squad.json")
    assert "give a model or a `run`" in str(done.exception)


def test_real_models_go_the_whole_way(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from ranker_factories import tk
    from tiny_models import tiny_bert

    tk().save(tmp_path / "tk")
    done = command(
        "sensitivity", tmp_path / "tk", "--squad", home / "squad.json", "--places", 3, "--quiet",
        "--json", tmp_path / "s.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert len(found["moved"]["score"]["places"]) == 3
    bert = tiny_bert(tmp_path / "bert")
    done = command(
        "similarity", bert, "--collection", _collection(tmp_path), "--min-pairs", 1, "--min-terms", 2, "--quiet",
        "--json", tmp_path / "a.json", "--report", tmp_path / "a.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "MATS" in done.output
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["delta_max"] >= 2
    assert "Average term similarity" in (tmp_path / "a.html").read_text(encoding="utf-8")


def _collection(folder: Path) -> Path:
    from tiny_models import texts

    lines = [f"{i}\t{text}" for i, text in enumerate(texts(12, 9))]
    (folder / "c.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "c.tsv"


# --- what is said ----------------------------------------------------------------------------------------------------


def long_squad(path: Path, passages: int, words: int, seed: int = 0) -> Path:
    """Passages of so many words with three questions each, as COVID-QA has them; answers anywhere."""
    rng = np.random.default_rng(seed)
    articles = []
    for p in range(passages):
        text = " ".join(f"t{p}w{w}" for w in range(words))
        questions = []
        for q in range(3):
            answer = f"t{p}w{rng.integers(words)}"
            start = text.index(f"{answer} ") - int(q == 1) if f"{answer} " in text else text.index(answer)
            answers = [{"text": answer, "answer_start": start}]
            questions.append({"id": 10 * p + q, "question": f"what of t{p}w{q}", "answers": answers})
        articles.append({"paragraphs": [{"document_id": 600 + p, "context": text, "qas": questions}]})
    path.write_text(json.dumps({"data": articles}), encoding="utf-8")
    return path


def long_run(path: Path, passages: int, rank: Callable[[int, int], int]) -> Path:
    """Ranks the relevant passage of question q of passage p at ``rank(p, q)`` among five."""
    rows = []
    for p in range(passages):
        for q in range(3):
            docs = [str((p + other) % passages) for other in range(1, 5)]
            docs.insert(rank(p, q) - 1, str(p))
            rows += [(str(10 * p + q), doc, 9.0 - place) for place, doc in enumerate(docs)]
    write_run(Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")), path)
    return path


def test_a_run_on_long_passages_says_what_it_shows(tmp_path: Path) -> None:
    squad = long_squad(tmp_path / "s.json", 24, 3000)
    starts = read_answers(squad).with_columns(pl.col("doc_id").cast(pl.Int64)).sort("query_id")
    word = dict(zip(starts["query_id"], (int(a.split("w")[1]) for a in starts["answer"]), strict=True))
    late = long_run(tmp_path / "late", 24, lambda p, q: 1 + 4 * word[str(10 * p + q)] // 3000)
    done = command("sensitivity", "--squad", squad, "--run", late, "--json", tmp_path / "s.json.out")
    assert done.exit_code == 0, done.output
    assert "nDCG@10 depends on where the answer stands: early answers fare better." in done.output
    assert "taken at the nearest place of their text: 24 of 72." in done.output
    assert "The unit of intervals and of p is the passage (24 of them)" in done.output
    found = json.loads((tmp_path / "s.json.out").read_text(encoding="utf-8"))
    buckets = found["tokens"]["buckets"]
    assert [bucket["queries"] for bucket in buckets] == [10, 10, 10, 11, 10, 10, 11]
    assert buckets[0]["from"] == 0
    assert buckets[-1]["to"] == max(word.values()) + 1
    assert (found["unit"], found["passages"], found["queries"]) == ("passage", 24, 72)
    assert found["summary"][0].startswith("nDCG@10 depends on where the answer stands")
    rng = np.random.default_rng(3)
    noise = long_run(tmp_path / "noise", 24, lambda p, q: int(rng.integers(1, 6)))
    done = command("sensitivity", "--squad", squad, "--run", noise)
    assert "No preference shown: nDCG@10 does not depend on where the answer stands beyond chance." in done.output
    # No figure is a dash.
    assert not re.search(r"(^|\s)–(\s|$)", done.output)


def test_fifths_without_an_answer_are_named_not_dashed(home: Path) -> None:
    done = command("sensitivity", "--squad", home / "squad.json", "--run", home / "run")
    assert done.exit_code == 0, done.output
    assert "No answer begins in 0.6–0.8, 0.8–1.0." in done.output
    assert "one passage" in done.output
    assert not re.search(r"(^|\s)–(\s|$)", done.output)


def test_what_truncation_does_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(ranker: Early) -> str:
        result = sensitivity(home, ranker, monkeypatch, places=10)
        assert not re.search(r"(^|\s)–(\s|$)", result.table())
        assert result.to_dict()["summary"] == list(result.summary())
        assert all(line in result.table() for line in result.summary())
        return " ".join(result.summary()[1:])

    whole = said(Early(0.5))
    assert "the model prefers early answers: a straight line through the scores at all places" in whole
    assert "changes by -4.5000 from first to last (95% interval -4.5000 to -4.5000, p 0.0" in whole
    assert "reads 6 of 6 answers to their end where they stand, and all at every place" in whole
    assert "differs by up to 4.5000 (highest at 0.00, lowest at 1.00, p <0.001)" in whole
    flat = said(Early(0.0))
    assert "In the same passage no preference is shown" in flat
    none = said(Early(0.5, reads=20))
    assert "The model reads 3 of 6 answers to their end where they stand; moved, up to 6 of 6 are cut off" in none
    assert "none is read whole at every place: a preference cannot be told from truncation" in none


def test_where_nothing_can_be_compared(home: Path, tmp_path: Path) -> None:
    def ask(i: int) -> dict[str, object]:
        text = f"w{i}"
        return {"context": text, "qas": [{"id": f"q{i}", "question": text, "answers": [{"text": text}]}]}

    # Passages of one word: every answer stands at the same place.
    (tmp_path / "one.json").write_text(json.dumps({"data": [{"paragraphs": [ask(i) for i in range(6)]}]}))
    rows = [(f"q{i}", str(j), float(i == j)) for i in range(6) for j in range(6)]
    write_run(Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")), tmp_path / "run")
    done = command("sensitivity", "--squad", tmp_path / "one.json", "--run", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "cannot be told: all stand at the same word" in done.output
    assert "No slope: all answers stand at the same place." in done.output
    assert "No index: all answers are in one range." in done.output
    # A run of other queries.
    other = Run.from_table(pl.DataFrame([("x", "d0", 1.0)], ["query_id", "doc_id", "score"], orient="row"), "other")
    write_run(other, tmp_path / "other")
    done = command("sensitivity", "--squad", home / "squad.json", "--run", tmp_path / "other")
    assert isinstance(done.exception, EvenrankError)
    assert str(done.exception) == "run other: expected queries with an answer, found none of the 6"
    # One of them alone: the others count 0, and it is said.
    own = pl.DataFrame([("q0", "d0", 1.0)], ["query_id", "doc_id", "score"], orient="row")
    write_run(Run.from_table(own), tmp_path / "own")
    done = command("sensitivity", "--squad", home / "squad.json", "--run", tmp_path / "own")
    assert "5 queries that the run lacks, counted as 0" in done.output


def test_answers_are_put_right_in_the_collections_text(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The collection writes single spaces where the file has two: the file's places are off.
    spans = read_answers(home / "squad.json")
    texts = load_squad(home / "squad.json").passages()
    single = texts.with_columns(pl.col("text").str.replace_all("  ", " "))
    found = sensitivity(home, Early(0.0), monkeypatch, answers=spans, collection=single)
    assert found.relative.n.tolist() == [3, 2, 1, 0, 0]
    assert any("In the collection: Answers that do not stand" in note for note in found.notes)
    gone = single.with_columns(
        pl.when(pl.col("doc_id") == "d1").then(pl.lit("the rest")).otherwise(pl.col("text")).alias("text")
    )
    found = sensitivity(home, Early(0.0), monkeypatch, answers=spans, collection=gone, run=home / "run")
    assert (found.queries, found.without_answer) == (5, 1)
    assert any("left out: 1 of 6: 'the  answer' (question q1)" in note for note in found.notes)


def test_every_long_step_tells_how_far_it_is(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from contextlib import contextmanager

    from evenrank.audit.similarity import position_similarity
    from tiny_models import tiny_bert

    done: dict[str, int] = {}

    @contextmanager
    def counted(what: str, total: int | None = None, *, quiet: bool = False):
        def advance(number: int) -> None:
            done[what] = done.get(what, 0) + number

        before = done.get(what, 0)
        yield advance
        assert total is None or done[what] - before == total

    for module in ("audit.sensitivity", "audit.similarity", "rankers.rerank", "retrieval.bm25"):
        monkeypatch.setattr(f"evenrank.{module}.progress", counted)
    sensitivity(home, Early(0.5), monkeypatch, places=4, quiet=False)
    # 6 queries with 6 candidates each, and 6 passages at 4 places each.
    assert done == {"re-ranking": 36 + 24, "how far texts are read": 6 + 24}
    done.clear()
    position_similarity(str(tiny_bert(tmp_path / "bert")), _collection(tmp_path), min_pairs=1, min_terms=2)
    assert (done["documents"], done["passages"]) == (12, 12)
    assert done["terms"] > 12


def test_files_from_pipes_are_read_once_or_refused(evenrank: Callable[..., Any], home: Path) -> None:
    def piped(path: Path) -> str:
        reading, writing = os.pipe()
        os.write(writing, path.read_bytes())
        os.close(writing)
        return f"/dev/fd/{reading}"

    assert evenrank("data", "squad", home / "squad.json", "--to", home / "c").status == 0
    squad, run = home / "squad.json", home / "run"
    plain = evenrank("position", "sensitivity", "--squad", squad, "--run", run).out.splitlines()
    for one, other in ((piped(squad), run), (squad, piped(run))):
        done = evenrank("position", "sensitivity", "--squad", one, "--run", other)
        assert done.status == 0, done.err
        # All but the run's name in the title.
        assert done.out.splitlines()[1:] == plain[1:]
    names = {"collection": "collection.tsv", "queries": "queries.tsv", "qrels": "qrels.txt", "answers": "answers.json"}
    files = {f"--{name}": home / "c" / file for name, file in names.items()}
    for name in files:
        given = files | {name: piped(files[name])}
        done = evenrank("position", "sensitivity", "--run", run, *(part for pair in given.items() for part in pair))
        if name in ("--qrels", "--answers"):
            assert done.status == 0, done.err
        else:
            assert done.status == 2
            assert done.err.endswith(": expected a file, found a pipe: it may be read more than once\n")
