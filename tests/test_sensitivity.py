"""Position sensitivity: hand-worked, planted, against slow versions, and the commands."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenrank.io import EvenrankError, Run, write_run
from evenrank.measures.sensitivity import _weighted_slopes, by_bucket, course

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
    if max(means) > 1e-6:
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
    from evenrank.io.squad import answer_table
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
        collection=made.collection,
        queries=made.queries.select("query_id", "text"),
        qrels=made.qrels,
        **{"answers": answer_table(made.squad, "squad"), "run": home / "run", **options},  # type: ignore[arg-type]
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
    with pytest.raises(EvenrankError, match="expected candidates of a query with an answer, found none"):
        sensitivity(home, Early(0.5), monkeypatch, run=alone)


def test_white_space_at_an_answers_ends_is_none_of_its_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenrank.io.squad import read_answers

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
    assert (result.moved.score.n, result.queries) == (2, 6)
    for name, value in (("places", 1), ("depth", 0), ("sample", 0), ("seed", -1)):
        with pytest.raises(EvenrankError, match=f"{name}: expected"):
            sensitivity(home, Early(0.5), monkeypatch, **{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--squad", "s.json", "--qrels", "q"], "--squad stands for"),
        (["--qrels", "q"], "expected --squad, or --collection, --queries, --answers too"),
    ],
)
def test_mistakes_are_told(options: list[str], message: str) -> None:
    done = command("sensitivity", *options)
    assert isinstance(done.exception, EvenrankError)
    assert message in str(done.exception)


def test_neither_model_nor_run(home: Path) -> None:
    done = command("sensitivity", "--squad", home / "squad.json")
    assert "a model or a run is needed" in str(done.exception)


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
