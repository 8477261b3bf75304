"""The IBBR experiment: every step of both scales on small data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.experiments import ibbr_paper, ibbr_setup, sampling_setup
from evenrank.experiments.corpora import Lists, Source, draw, judged_queries, neutral_queries
from evenrank.experiments.paper_page import ExperimentPage
from evenrank.experiments.work import Trained
from evenrank.io import EvenrankError, read_queries, read_run
from micro_experiments import check_controls, labels, micro_ibbr, micro_sampling, no_training_after, table
from reaching import unreachable


@pytest.fixture(scope="module")
def ibbr_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("ibbr")
    with no_training_after(ibbr_setup.Experiment, micro_ibbr(), folder):
        page = ibbr_paper.run(micro_ibbr(), folder)
    page.write(folder)
    return page, folder


# --- ibbr ------------------------------------------------------------------------------------------------------------


def test_ibbr_tables_are_laid_out_as_published(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    page, _ = ibbr_run
    first = table(page, "Table 1")
    assert labels(first)[:5] == [
        ("BERT-L2", "none", ""),
        ("BERT-L2", "PD", "best"),
        ("BERT-L2", "PD", "auto"),
        ("BERT-L2", "TS", "best"),
        ("BERT-L2", "TS", "auto"),
    ]
    assert list(first.columns) == ["recall_10", "mrr", "ndcg_10", "delta_aprf_abs", "rab_5", "rab_10"]
    assert first.rows[3].published["delta_aprf_abs"] == 0.001
    assert {value.n for value in first.rows[3].measured.values()} == {2}
    assert not first.rows[5].measured  # BERT-L4
    second = table(page, "Table 2")
    assert [row.labels[0] for row in second.rows] == [
        "BM25", "RM3", "MP", "KNRM", "C-KNRM", "TK", "DPR-L2", "DPR-L4", "blind", "random", "neutral-first",
    ]  # fmt: skip
    assert second.rows[3].measured["mrr"].unit == "queries"
    third = table(page, "Table 3")
    assert [value.mean for value in third.rows[0].measured.values()] == [30, 10, 20, 60]
    assert third.rows[1].published["total"] == 1252


def test_controls_stand_in_every_table_of_rankings(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    for name in ("Table 1", "Table 2", "Grid BERT-L2"):
        check_controls(table(ibbr_run[0], name))


def test_ibbr_claims_and_scores_are_reported(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    page, folder = ibbr_run
    assert len(page.claims) == 3
    assert all("2 seeds" in claim.detail for claim in page.claims)
    assert labels(table(page, "Score R")) == [
        ("any", "0"), ("softmax", "0.1"), ("sigmoid", "0.1"), ("blind", "")
    ]  # fmt: skip
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in found["tables"]] == [one.name for one in page.tables]
    assert (folder / "table_1.csv").is_file()
    assert "measured" in page.text()


def test_a_finished_training_is_not_done_again(
    ibbr_run: tuple[ExperimentPage, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, folder = ibbr_run
    said: list[str] = []
    monkeypatch.setattr("evenrank.experiments.work.train_recipe", lambda *_, **__: pytest.fail("trained again"))
    again = ibbr_paper.run(micro_ibbr(), folder, said.append)
    assert again.text() == page.text()
    assert not [line for line in said if line.startswith("training")]
    with pytest.raises(EvenrankError, match="begun with other settings"):
        ibbr_paper.run(replace(micro_ibbr(), listed=9), folder)


def test_a_list_holds_the_clicked_passage_and_the_first_others(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    _, folder = ibbr_run
    run = read_run(folder / "data-0" / "test.run").table
    clicks = pl.read_csv(
        folder / "data-0" / "test.qrels", separator=" ", has_header=False, infer_schema=False,
        new_columns=["query_id", "zero", "doc_id", "relevance"],
    )  # fmt: skip
    clicked = run.join(clicks, on=["query_id", "doc_id"], how="semi")["query_id"].implode()
    lengths = run.group_by("query_id").len().with_columns(pl.col("query_id").is_in(clicked).alias("found"))
    assert lengths.filter(pl.col("found"))["len"].max() == 8
    assert lengths.filter(~pl.col("found"))["len"].max() in (None, 7)  # the clicked one's place stays empty


def trained(value: float, bias: float) -> Trained:
    return Trained(Path("x"), "dot", {"value": value, "delta_aprf": {"gender": -bias}})


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        ({0.0: (0.40, 0.2), 1.0: (0.39, 0.1), 2.0: (0.381, 0.02), 3.0: (0.2, 0.0)}, 2.0),
        ({0.0: (0.40, 0.2), 1.0: (0.30, 0.1), 2.0: (0.2, 0.02), 3.0: (0.1, 0.0)}, 0.0),
    ],
)
def test_the_best_weight_keeps_the_utility(
    found: dict[float, tuple[float, float]], chosen: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = replace(micro_ibbr(), weights=(1.0, 2.0, 3.0))
    experiment = ibbr_setup.Experiment(settings, tmp_path, lambda _: None)
    monkeypatch.setattr(experiment, "fair", lambda seed, encoder, term, weight, score: trained(*found[weight]))
    assert experiment.best("BERT-L2", "TS")[0] == chosen


# --- full: the same steps on files of the published form -------------------------------------------------------------


def test_full_settings_are_the_published_ones() -> None:
    full = ibbr_setup.full()
    assert full.weights == (0.1, 0.5, 1.0, 5.0, 10.0)
    assert full.sizes == {"dpr": 510_586, "dpr_dev": 26_873, "train": 876, "dev": 250, "test": 126}
    assert (full.listed, full.data["negatives"], full.base["batch"], len(full.seeds)) == (200, 199, 150, 10)
    sampled = sampling_setup.full()
    assert (sampled.negatives, sampled.depth, sampled.share) == (20, 1000, 0.6)
    assert len(sampled.rankers) == 3


@pytest.fixture
def published_files(tmp_path: Path, ibbr_run: tuple[ExperimentPage, Path]) -> Source:
    """A collection with judged queries in two sets, and annotated queries as the public file has them."""
    home = ibbr_run[1] / "data-0"
    annotated = tmp_path / "annotated.csv"
    rows = [line.split("\t") for line in (home / "queries.tsv").read_text(encoding="utf-8").splitlines()]
    text = "".join(f'{q},"{t}, really",{"n" if int(q) % 2 else "f"}\n' for q, t in rows)
    annotated.write_text(text, encoding="utf-8")
    both = (str(home / "queries.tsv"),) * 2
    return Source(str(home / "collection.tsv"), both, (str(home / "clicks.txt"),), str(annotated))


def test_full_draws_the_fairness_set_from_neutral_annotated_queries(published_files: Source, tmp_path: Path) -> None:
    parts = ibbr_setup.split(published_files, micro_ibbr(), tmp_path / "home", 0)
    ids = {name: set(read_queries(part.queries)["query_id"]) for name, part in parts.items()}
    assert all(int(number) % 2 for name in ("train", "dev", "test") for number in ids[name])
    assert not [(a, b) for a in ids for b in ids if a < b and ids[a] & ids[b]]
    with pytest.raises(EvenrankError, match="queries are wanted"):
        ibbr_setup.split(published_files, replace(micro_ibbr(), sizes={**micro_ibbr().sizes, "train": 60}), tmp_path, 0)


def test_full_sampling_parts(published_files: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(published_files.collection).parent
    # A name of ir_datasets gives queries and judgements alike; here each name is one file of each.
    files = [str(home / "queries.tsv")], [str(home / "clicks.txt")]
    monkeypatch.setattr(sampling_setup, "judged_queries", lambda *_: judged_queries(*files))
    neutral = neutral_queries(published_files.annotated)
    settings = replace(micro_sampling(), sizes={"train": 30})
    names = {"train": "a", "valid": "b", "dev": "c"}
    sets = {"QS1": neutral, "QS2": neutral.head(10)}
    lists = Lists(published_files.collection, tmp_path / "home")
    parts = sampling_setup.published_parts(names, "d", sets, lists, settings)
    assert {name: part.count for name, part in parts.items()} == {
        "train": 30, "valid": 50, "dev": 100, "QS1": 50, "QS2": 10
    }  # fmt: skip
    assert all(Path(part.run).is_file() for part in parts.values())


def test_draw_is_disjoint_and_seeded() -> None:
    rows = pl.DataFrame({"query_id": [str(i) for i in range(20)]})
    parts = draw(rows, {"a": 5, "b": 7}, 3)
    assert parts["b"].equals(draw(rows, {"a": 5, "b": 7}, 3)["b"])
    assert not set(parts["a"]["query_id"]) & set(parts["b"]["query_id"])


def test_every_number_can_be_reached(browser: Any, ibbr_run: tuple[ExperimentPage, Path]) -> None:
    page = browser.new_page()
    page.goto((ibbr_run[1] / "report.html").as_uri())
    assert unreachable(page) == []
    page.close()
