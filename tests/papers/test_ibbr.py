"""The study ibbr: its steps on a small collection, its settings, its yardsticks, and mutants that change verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, Run, read_qrels, read_queries, read_run
from evenrank.papers import ibbr
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of, published_rows
from evenrank.papers.figures import Figures
from evenrank.papers.ibbr import IBBRStudy, _agreement, _changes, least, offset_of, shifted
from evenrank.papers.report import ExperimentPage, page_of
from evenrank.papers.sources import Lists, Text
from micro_studies import micro_ibbr, rows, written

pytest.importorskip("torch", reason="PyTorch is not installed")
Done = tuple[IBBRStudy, Figures, ExperimentPage]


def verdicts(figures: Figures) -> dict[str, str]:
    return {one.key: one.decided(figures, {"BERT-L2": "words"}, "tiny").verdict.state for one in claims_of("ibbr")}


def rankers(**changed: tuple[float, float]) -> Figures:
    """Five seeds of 200 queries of a term that works: by row MRR and ΔA-PRF."""
    means = {
        "none": (0.5, 0.2),
        "none, even clicks": (0.5, 0.0),
        "TS best": (0.495, 0.01),
        "PD best": (0.48, 0.1),
        "TS auto": (0.49, 0.02),
        "PD auto": (0.48, 0.12),
    }
    means |= {key.replace("_", " "): one for key, one in changed.items()}
    rng = np.random.default_rng(0)
    found, ids = Figures(False), [str(one) for one in range(200)]
    for name, (mrr, gap) in {"BM25": (0.3, 0.0), **{f"BERT-L2 {row}": one for row, one in means.items()}}.items():
        for seed in range(5):
            same = ("MRR", "R@10", "nDCG@10", "MRR over all questions")
            for figure, mean, spread in (*((one, mrr, 0.05) for one in same), ("ΔA-PRF", gap, 0.02)):
                found.add(figure, name, seed, ids, mean + rng.normal(0, spread, 200))
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run of one seed: some seconds."""
    study = IBBRStudy(micro_ibbr(), tmp_path_factory.mktemp("ibbr"))
    figures = study.run(1)
    page = page_of(study, figures)
    page.write(study.folder)
    return study, figures, page


def test_tables_have_the_published_rows_and_the_yardsticks(done: Done) -> None:
    page = done[2]
    first = rows(page, "Table 1")
    assert {row["system"] for row in published_rows("ibbr") if row["table"] == "Table 1"} < set(first)
    assert {"BERT-L2 TS dev", "BERT-L2 base", "BERT-L2 blind", "BERT-L2 shift", "random", "neutral-first"} <= set(first)
    assert first["BERT-L2 none"].published["|ΔA-PRF|"] == 0.005
    assert first["BERT-L4 none"].measured == {}
    assert rows(page, "Table 2")["KNRM"].measured["MRR"].n == 40
    assert rows(page, "Table 3")["Fairness"].measured["total"].mean == 114


def slow_figures(run: Run, relevant: set[tuple[str, str]], side: Mapping[str, int]) -> tuple[float, float]:
    """MRR and |ΔA-PRF|, by loops over every pair."""
    lists: dict[str, list[tuple[float, str]]] = {}
    for query, doc, score in run.table.select("query_id", "doc_id", "score").iter_rows():
        lists.setdefault(query, []).append((score, doc))
    reciprocal: list[float] = []
    shares: dict[int, list[float]] = {1: [], -1: []}
    for query, scored in lists.items():
        ranked = sorted(scored, key=lambda row: -row[0])
        places = [place for place, (_, doc) in enumerate(ranked, 1) if (query, doc) in relevant]
        reciprocal.append(1 / places[0] if places else 0.0)
        others = [score for score, doc in ranked if (query, doc) not in relevant]
        for group, found in shares.items():
            wins = [
                float(score >= other)
                for score, doc in ranked
                if (query, doc) in relevant and side[doc] == group
                for other in others
            ]
            if wins:
                found.append(sum(wins) / len(wins))
    return float(np.mean(reciprocal)), abs(float(np.mean(shares[1]) - np.mean(shares[-1])))


def test_a_row_is_that_of_a_loop(done: Done) -> None:
    """MRR and |ΔA-PRF| of a run by plain loops, the mean over both seeds."""
    study, figures, page = done
    found = []
    for seed in (0, 1):
        truth = pl.read_parquet(study.folder / f"data-{seed}/truth.parquet")
        side = {doc: {"m": 1, "f": -1}.get(group, 0) for doc, group in truth.select("doc_id", "group").iter_rows()}
        qrels = read_qrels(study.data(seed).parts["test"].qrels)
        relevant = set(qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id").iter_rows())
        found.append(slow_figures(study.arm(seed, "BERT-L2", "none")[0]["test"], relevant, side))
    mrr, gap = np.mean(found, axis=0)
    row = rows(page, "Table 1")["BERT-L2 none"]
    assert row.measured["MRR"].mean == pytest.approx(mrr)
    # slow_figures has the size of each seed's gap; both lean to one side here.
    assert {figures.mean("ΔA-PRF", "BERT-L2 none") > 0} == {True}
    assert row.measured["|ΔA-PRF|"].mean == pytest.approx(gap)


def test_only_training_clicks_are_skewed(done: Done) -> None:
    home = done[0].folder / "data-0"
    truth = pl.read_parquet(home / "truth.parquet").select("doc_id", "group")
    train, test = (
        (read_qrels(home / f"{name}.qrels").join(truth, on="doc_id")["group"] == "m").mean()
        for name in ("train", "test")
    )
    assert train > 0.6
    assert test == pytest.approx(0.5, abs=0.1)


def test_a_clicked_passage_that_bm25_missed_comes_last(tmp_path: Path) -> None:
    collection = tmp_path / "c.tsv"
    collection.write_text("a\tred kettle\nb\tred red kettle\nc\tnothing alike\n", encoding="utf-8")
    queries = pl.DataFrame({"query_id": ["q"], "text": ["red kettle"]})
    clicks = pl.DataFrame({"query_id": ["q"], "doc_id": ["c"], "relevance": [1]})
    part = Lists(str(collection), tmp_path).part("x", queries, clicks, depth=10, listed=2)
    assert read_run(part.run).table["doc_id"].to_list() == ["b", "c"]


def test_an_interrupted_run_goes_on_and_another_one_is_refused(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    study, figures, _ = done
    monkeypatch.setattr(IBBRStudy, "trained", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(IBBRStudy, "base", lambda *_, **__: "")
    again = IBBRStudy(study.settings, study.folder).run(1)
    assert again.values == figures.values
    with pytest.raises(EvenrankError, match=r"begun with other settings \(listed\); choose another `out`, or"):
        IBBRStudy(replace(study.settings, listed=9), study.folder).run(1)


def test_the_best_weight_keeps_the_utility(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = IBBRStudy(replace(micro_ibbr(), weights={"TS": (1.0, 2.0, 3.0), "PD": (1.0,)}), tmp_path)
    figures = Figures(True)
    measured = {"none": (0.4, 0.2), "TS 1": (0.39, 0.1), "TS 2": (0.381, -0.02), "TS 3": (0.2, 0.0), "PD 1": (0.3, 0.0)}
    for name, (mrr, gap) in measured.items():
        for figure, value in (("MRR (dev)", mrr), ("ΔA-PRF (dev)", gap)):
            figures.add(figure, f"BERT-L2 {name}", 0, ["q"], np.array([value]))
    monkeypatch.setattr(study, "grid_figures", lambda _: figures)
    assert (study.best("BERT-L2", "TS"), study.best("BERT-L2", "PD")) == ("TS 2", "none")


# --- figures of two rows, and of all weights -------------------------------------------------------------------------


def test_what_a_term_costs_and_removes() -> None:
    """Two queries, one seed: changes of .25/.5, .3/.5 and .5/.5; 1 - .1/.2 removed with even clicks, 1 - .3/.4 else."""
    figures = Figures(same_queries=True)
    values = {
        ("R@10", "none"): (0.4, 0.6), ("R@10", "TS best"): (0.2, 0.3), ("MRR", "none"): (0.5, 0.5),
        ("MRR", "TS best"): (0.4, 0.2), ("nDCG@10", "none"): (0.5, 0.5), ("nDCG@10", "TS best"): (0.6, 0.4),
        ("ΔA-PRF", "none"): (0.3, 0.5), ("ΔA-PRF", "TS best"): (0.3, 0.3),
        ("ΔA-PRF", "none, even clicks"): (0.1, 0.3), ("ΔA-PRF", "TS best, even clicks"): (0.0, 0.2),
    }  # fmt: skip
    for (figure, row), found in values.items():
        figures.add(figure, f"L2 {row}", 0, ["a", "b"], np.array(found))
    _changes(figures, "L2", ["even clicks"])
    cost = "mean change of R@10, MRR, nDCG@10"
    assert figures.mean(cost, "L2 TS best") == pytest.approx(-(0.5 + 0.4 + 0) / 3)
    # A query's influence: on R@10 none, on MRR and nDCG@10 (x_q - r none_q) / mean(none).
    assert figures.values[cost, "L2 TS best"][0] == pytest.approx({"a": -0.3 + (0.2 + 0.2) / 3, "b": -0.3 - 0.4 / 3})
    removed = "share of ΔA-PRF removed with even clicks, less that with skewed ones"
    assert figures.mean(removed, "L2 TS") == pytest.approx((1 - 0.1 / 0.2) - (1 - 0.3 / 0.4))
    assert not figures.has(removed, "L2 PD")


def test_how_far_two_measures_agree() -> None:
    """Over three weights: sizes that change alike in one model, and the other way round in the other."""
    weighed, figures = Figures(same_queries=True), Figures(same_queries=True)
    sizes = {"L2": {"none": (0.4, 0.1), "TS 1": (-0.3, 0.08), "TS 2": (0.2, -0.05), "TS 3": (0.1, 0.01)}}
    sizes["L4"] = {"none": (0.4, 0.1), "TS 1": (0.3, 0.2), "TS 2": (0.2, 0.3), "TS 3": (0.1, -0.4)}
    for model, arms in sizes.items():
        for arm, pair in arms.items():
            for figure, value in zip(("ΔA-PRF", "RaB@5"), pair, strict=True):
                weighed.add(figure, f"{model} {arm}", 7, ["q"], np.array([value]))
    _agreement(figures, weighed, {"L2": [*sizes["L2"]], "L4": [*sizes["L4"]]}, [7])
    name = "rank correlation of changes of ΔA-PRF and RaB@5"
    assert figures.mean(name, "all weights") == pytest.approx(0)
    _agreement(figures, weighed, {"L2": [*sizes["L2"]]}, [7])
    assert figures.mean(name, "all weights") == pytest.approx(1)


# --- the ideal offset ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def leaning() -> tuple[Run, pl.DataFrame, dict[str, int]]:
    """A run whose male passages have 1.5 too much, its judgements, and the sides."""
    rng = np.random.default_rng(1)
    side = {str(d): (1, -1, 0)[d % 3] for d in range(60)}
    scored, relevant = [], []
    for query in range(120):
        docs = [str(one) for one in rng.choice(60, 12, replace=False)]
        relevant.append((f"q{query}", docs[0], 1))
        scored += [(f"q{query}", doc, rng.normal() + (doc == docs[0]) + 1.5 * side[doc]) for doc in docs]
    run = Run.from_table(pl.DataFrame(scored, ["query_id", "doc_id", "score"], orient="row"))
    return run, pl.DataFrame(relevant, ["query_id", "doc_id", "relevance"], orient="row"), side


def test_the_offset_removes_the_gap_and_no_less_does(leaning: tuple[Run, pl.DataFrame, dict[str, int]]) -> None:
    run, qrels, side = leaning
    relevant = {(query, doc) for query, doc, _ in qrels.iter_rows()}
    offset = offset_of(run, qrels, side)
    assert offset == pytest.approx(3.0, abs=0.6)
    gaps = [slow_figures(shifted(run, side, share * offset), relevant, side)[1] for share in (-1, 0, 0.9, 1)]
    assert gaps[0] > gaps[1] > 0.3 > gaps[2] > gaps[3]
    assert gaps[3] < 0.02
    assert [least(lambda _: 0.2, 10.0), least(lambda _: math.nan, 10.0)] == [0.0, 0.0]
    assert least(lambda x: -1.0 - x, 10.0) == pytest.approx(-1.0)


# --- the other scales ------------------------------------------------------------------------------------------------


def test_full_settings_are_the_published_ones() -> None:
    full = IBBRStudy.settings_of("full", Options(vectors="glove.42B.300d.txt", model=("BERT-L4=here",)))
    assert set(full.weights.values()) == {(0.1, 0.5, 1.0, 5.0, 10.0)}
    third = [row for row in published_rows("ibbr") if row["table"] == "Table 3"]
    names = {("DPR", "train"): "dpr", ("DPR", "dev"): "dpr_dev"}
    names |= {("Fairness", part): part for part in ("train", "dev", "test")}
    printed = {(row["system"], row["figure"]): int(row["value"]) for row in third}
    assert full.sizes == {name: printed[place] for place, name in names.items()}
    base, ranker = full.base or {}, full.rankers["BERT-L2"]
    assert (full.listed, full.fair_data["negatives"], base["batch"], len(full.seeds)) == (200, 199, 150, 10)
    assert full.base_grid == {"learning_rate": (3e-6, 3e-5, 3e-4), "batch": (100, 120, 150)}
    assert {"learning_rate": 3e-5, "schedule": "linear", "warmup": 0.1, "weight_decay": 0.01}.items() <= base.items()
    assert full.fair["keep"] == "last"
    shape = {"pooling": "cls", "towers": "separate", "query_length": 100, "passage_length": 100}
    assert shape.items() <= ranker.items()
    # The vector is that of [CLS], of either size.
    assert "dimensions" not in ranker
    assert dict(full.models) == {"BERT-L2": "google/bert_uncased_L-2_H-128_A-2", "BERT-L4": "here"}
    assert {wanted["ranker"]["vectors"] for wanted in full.baselines.values()} == {"glove.42B.300d.txt"}
    (missing,) = [need for need in IBBRStudy(full, Path("x")).needs() if "word vectors" in need.purpose]
    assert missing.problem is not None


@pytest.mark.slow
def test_full_runs_on_stand_ins(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale full with its own recipe; the grid of the base rankers chooses by validation."""
    made = written(tmp_path / "made", slice(None))
    text = Text(str(made / "collection.tsv"), read_queries(made / "queries.tsv"), read_qrels(made / "clicks.txt"))
    monkeypatch.setattr(ibbr, "msmarco", lambda: text)
    files = {"queries-gender-annotated": "annotated.csv", "gender-representative": "words.txt"}
    monkeypatch.setattr("evenrank.fetch", lambda name, out: [made / files[name]])
    encoder, micro = done[0].data(0).encoder, micro_ibbr()
    full = IBBRStudy.settings_of("full", Options(model=(f"BERT-L2={encoder}", f"BERT-L4={encoder}")))
    small = {"batch": 8, "epochs": 1.0, "cached": 16, "precision": "float32"}
    settings = replace(
        full,
        seeds=(0,),
        models={"BERT-L2": "stand-in"},
        sizes={"dpr": 24, "dpr_dev": 6, "train": 16, "dev": 6, "test": 10},
        listed=20,
        depth=30,
        base={**(full.base or {}), **small},
        base_data={**full.base_data, "negatives": 19},
        fair_data={**full.fair_data, "negatives": 19},
        base_grid={"learning_rate": (1e-5, 1e-3), "batch": (4, 8)},
        fair={**full.fair, **small, "evaluate_every": 2},
        weights={"PD": (0.1,), "TS": (0.1,)},
        scores=(),
        baselines=micro.baselines,
    )
    study = IBBRStudy(settings, tmp_path / "full")
    figures = study.run(1)
    bases = [file.parent for file in (tmp_path / "full/seed-0").glob("BERT-L2-base-*/result.json")]
    grid = {base.name: study.result(0, base.name)["value"] for base in bases if not base.name.endswith("blind")}
    assert len(grid) == 4
    assert grid["-".join(["BERT-L2", "base", *(f"{one:g}" for one in study._tuned("BERT-L2"))])] == max(grid.values())
    assert {"BERT-L2 none", "BERT-L2 TS auto", "BERT-L2 shift", "RM3", "KNRM"} <= set(figures.systems("MRR"))
    assert figures.mean("total", "Fairness") == 32


def test_the_claims_hold_where_they_hold() -> None:
    found = verdicts(rankers())
    supported = {key for key, state in found.items() if state == "supported"}
    assert supported == {"gap", "ts_bias", "minimal_cost_l2", "ts_pd_bias", "over_bm25"}
    assert found["signs"] == "undecided"


def test_a_ranker_below_bm25_supports_nothing() -> None:
    gaps = {"none": 0.2, "TS_best": 0.01, "PD_best": 0.1, "TS_auto": 0.02, "PD_auto": 0.12, "none,_even_clicks": 0.1}
    broken = rankers(**{name: (0.19, gap) for name, gap in gaps.items()})
    assert "supported" not in verdicts(broken).values()
