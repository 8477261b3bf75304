"""Experiments: every step of a scale on small data, with the same code."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from evenrank.experiments import ibbr, ibbr_setup, published, run_experiment, sampling, sampling_setup, work
from evenrank.experiments.data import Lists, Source, draw, judged_queries, neutral_queries
from evenrank.experiments.page import Page, bars, plane
from evenrank.experiments.tables import Claim, Row, Table, Value, non_inferior, paired, t_interval
from evenrank.experiments.work import Trained
from evenrank.io import EvenrankError, InputError, read_queries, read_run
from evenrank.synthetic import Planted
from reaching import unreachable

TRAINING = {"batch": 10, "epochs": 1, "learning_rate": 1e-3, "evaluate_every": 100, "weight_decay": 0.01}
WORDS = {"passage_length": 32, "vector_size": 8}


def micro_ibbr() -> ibbr_setup.Settings:
    return replace(
        ibbr_setup.tiny(),
        scale="micro",
        seeds=(0, 1),
        planted=Planted(
            passages=800, queries=100, sentences=3, gender_rate=0.9, relevance_gender_rate=1.0, click_male_share=0.6
        ),
        sizes={"dpr": 30, "dpr_dev": 10, "train": 15, "dev": 10, "test": 20},
        listed=8,
        depth=30,
        base=TRAINING,
        going_on={"learning_rate": 1e-3},
        weights=(0.1,),
        scores={"sigmoid": (0.1,)},
        baselines={"KNRM": {"ranker": {"kind": "knrm", **WORDS}, "training": {**TRAINING, "max_steps": 1}}},
    )


def micro_sampling() -> sampling_setup.Settings:
    return replace(
        sampling_setup.tiny(),
        scale="micro",
        seeds=(0, 1),
        planted=Planted(passages=800, queries=80, sentences=3, relevant=4, male_share=0.75),
        sizes={"train": 30, "valid": 10, "dev": 40},
        depth=20,
        negatives=5,
        shares=(0.0, 0.6),
        training=TRAINING,
    )


@contextmanager
def no_training_after(form: Any, settings: Any, folder: Path) -> Iterator[None]:
    """Does what is done ahead, in this process; inside nothing may be trained."""

    def inline(trainings: Any, steps: Any, jobs: int) -> None:
        assert jobs == 2
        for method, arguments in steps:
            getattr(trainings, method)(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.Trainings, "ahead", inline)
        form(settings, folder).everything_ahead(2)
        patch.setattr(work, "train", lambda *_, **__: pytest.fail("trained after everything was"))
        yield


@pytest.fixture(scope="module")
def ibbr_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Path]:
    folder = tmp_path_factory.mktemp("ibbr")
    with no_training_after(ibbr_setup.Experiment, micro_ibbr(), folder):
        page = ibbr.run(micro_ibbr(), folder)
    page.write(folder)
    return page, folder


@pytest.fixture(scope="module")
def sampling_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Path]:
    folder = tmp_path_factory.mktemp("sampling")
    with no_training_after(sampling_setup.Experiment, micro_sampling(), folder):
        page = sampling.run(micro_sampling(), folder)
    page.write(folder)
    return page, folder


def table(page: Page, name: str) -> Table:
    return next(one for one in page.tables if one.name == name)


def labels(found: Table) -> list[tuple[str, ...]]:
    return [row.labels for row in found.rows]


# --- what was published ----------------------------------------------------------------------------------------------


def test_published_figures_are_those_of_the_papers() -> None:
    row = published.published("ibbr_table1")[3]
    assert (row["ibbr"], row["lambda"]) == ("TS", "best")
    assert published.numbers(row, ["mrr", "delta_aprf_abs"]) == {"mrr": 0.17, "delta_aprf_abs": 0.001}
    bm25 = published.published("ibbr_table2")[0]
    assert published.numbers(bm25, ["mrr", "rab_5"]) == {"mrr": 0.107}
    assert published.fact("sampling", "share_of_queries_fairer_than_AdvBert_mini") == 0.69


# --- tables ----------------------------------------------------------------------------------------------------------


def test_intervals_over_seeds_are_students_t() -> None:
    # Mean 2, standard deviation 1, t(.975, 2) = 4.3027: 4.3027 / sqrt 3 = 2.4842.
    value = Value.over_seeds([1.0, 2.0, 3.0])
    assert value.mean == 2.0
    assert value.ci95 == pytest.approx((2 - 2.4842, 2 + 2.4842), abs=1e-4)
    assert Value.over_seeds([0.4]).ci95 is None
    assert Value.over_seeds([None, float("nan")]).mean is None
    assert paired([2.0, 3.0], [1.0, 2.0]).ci95 == (1.0, 1.0)
    assert t_interval(pl.Series([1.0]).to_numpy()) is None


def test_non_inferiority_over_seeds() -> None:
    # Standard deviation .01, t(.95, 2) = 2.92: the lower end is −.0169, above −.05 × .5 = −.025; not four times wider.
    assert non_inferior([0.49, 0.50, 0.51], [0.50, 0.50, 0.50]) is True
    assert non_inferior([0.46, 0.50, 0.54], [0.50, 0.50, 0.50]) is False
    assert non_inferior([0.5], [0.5]) is None


def made_table() -> Table:
    rows = (
        Row(("<b>A</b>", "x"), {"mrr": Value(0.25, 5, "seeds", (0.2, 0.3))}, {"mrr": 0.164}),
        Row(("blind", ""), {"mrr": Value(None)}, control=True),
    )
    return Table("Table 1", "An <i>example</i>", ("model", "term"), {"mrr": "MRR"}, rows, ("A note.",))


def test_a_table_shows_measured_interval_published_and_n() -> None:
    lines = made_table().text().splitlines()
    assert lines[2].split() == ["model", "term", "MRR", "n"]
    assert lines[4].split() == ["<b>A</b>", "x", "measured", "0.250", "5", "seeds"]
    assert lines[5].split() == ["95%", "[0.200,", "0.300]"]
    assert lines[6].split() == ["published", "0.164"]
    assert lines[7].split() == ["blind", "measured", "–", "–"]
    assert next(csv.DictReader(made_table().csv().splitlines())) == {
        "model": "<b>A</b>", "term": "x", "column": "mrr", "mean": "0.25", "n": "5", "unit": "seeds",
        "low": "0.2", "high": "0.3", "published": "0.164",
    }  # fmt: skip


def test_the_page_escapes_and_loads_nothing() -> None:
    evil = "</script><script>alert(1)</script>"
    points = {evil: (Value(0.1), Value(0.2)), "none": (Value(0.3), Value(0.1)), "blind": (Value(0.2), Value(0.0))}
    drawing = plane("Plane", evil, points, "MRR", "bias", ("none", "blind"))
    differences = bars(
        "Figure 2", "t", pl.DataFrame({"query_id": [evil], "difference": [0.1]}), "difference", signs=("a", "b")
    )
    page = Page(
        "ibbr", evil, evil, ((evil, evil),), (Claim(evil, False, evil),), (made_table(),),
        (drawing, differences), (evil,),
    )  # fmt: skip
    text = page.html()
    assert evil not in text
    assert "<script>alert" not in text
    assert "An &lt;i&gt;example" in text
    assert 'content="default-src &#39;none&#39;; script-src ' in text
    assert "http://" not in text.split("data-charts")[0]
    assert "The dashed line from none to blind" in text
    assert "NOT reached" in text


# --- ibbr ------------------------------------------------------------------------------------------------------------


def test_ibbr_tables_are_laid_out_as_published(ibbr_run: tuple[Page, Path]) -> None:
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


def test_controls_stand_in_every_table_of_rankings(
    ibbr_run: tuple[Page, Path], sampling_run: tuple[Page, Path]
) -> None:
    names = {"Table 1", "Table 2", "Grid BERT-L2"}
    for page, wanted in ((ibbr_run[0], names), (sampling_run[0], {"Table 1", "Table 2", "Table 3"})):
        for name in wanted:
            controls = {label for row in table(page, name).rows if row.control for label in row.labels}
            assert {"blind", "random", "neutral-first"} <= controls
            assert all(row.measured for row in table(page, name).rows if row.control)


def test_ibbr_claims_and_scores_are_reported(ibbr_run: tuple[Page, Path]) -> None:
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


def test_a_finished_training_is_not_done_again(ibbr_run: tuple[Page, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    page, folder = ibbr_run
    said: list[str] = []
    monkeypatch.setattr("evenrank.experiments.work.train", lambda *_, **__: pytest.fail("trained again"))
    again = ibbr.run(micro_ibbr(), folder, said.append)
    assert again.text() == page.text()
    assert not [line for line in said if line.startswith("training")]
    with pytest.raises(EvenrankError, match="begun with other settings"):
        ibbr.run(replace(micro_ibbr(), listed=9), folder)


def test_a_list_holds_the_clicked_passage_and_the_first_others(ibbr_run: tuple[Page, Path]) -> None:
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


class Steps(work.Trainings[str, int]):
    """Steps that leave their process's number in a file."""

    def leave(self, name: str) -> None:
        self.say(f"{self.settings} {name}")
        (self.folder / name).write_text(str(os.getpid()))

    def fail(self) -> None:
        raise InputError("qrels.txt", "no such file", line=3)


def test_steps_ahead_are_done_in_other_processes_and_speak_here(tmp_path: Path) -> None:
    said: list[str] = []
    steps = Steps("made", tmp_path, said.append)
    with pytest.raises(EvenrankError, match=r"qrels\.txt, line 3: no such file"):
        steps.ahead([("leave", ("a",)), ("leave", ("b",)), ("leave", ("a",)), ("fail", ())], 2)
    assert said == ["made a", "made b"]
    assert str(os.getpid()) not in {(tmp_path / name).read_text() for name in "ab"}
    steps.ahead([("leave", ("d",)), ("leave", ("e",))], 1)
    assert not (tmp_path / "d").exists()


def test_claims_name_what_is_missed() -> None:
    def seeds(*values: float) -> list[Value]:
        return [Value(value) for value in values]

    figures = {
        "none": {"DeltaAPRF": seeds(0.2, 0.22), "|DeltaAPRF|": seeds(0.2, 0.22), "RR": seeds(0.4, 0.4)},
        "TS best": {"|DeltaAPRF|": seeds(0.1, 0.1), "RR": seeds(0.39, 0.40)},
        "blind": {"RR": seeds(0.35, 0.36)},
    }
    bias, removed, kept = ibbr.claims(figures, 0.1)
    assert removed.reached is False
    assert "52% removed" in removed.detail
    assert kept.reached is True
    assert bias.reached is True


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
def published_files(tmp_path: Path, ibbr_run: tuple[Page, Path]) -> Source:
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


# --- sampling --------------------------------------------------------------------------------------------------------


def test_sampling_tables_are_laid_out_as_published(sampling_run: tuple[Page, Path]) -> None:
    page, _ = sampling_run
    first, second, third = (table(page, f"Table {number}") for number in (1, 2, 3))
    assert labels(first)[:3] == [("BERT-base",), ("DistilRoBERTa-base",), ("ELECTRA-base",)]
    assert first.rows[0].published == {"original_mrr_10": 0.3688, "bias_aware_mrr_10": 0.3583, "change_percent": -2.84}
    assert set(first.rows[0].measured) == set(first.columns)
    assert labels(second)[1] == ("QS1", "BERT-base", "bias-aware")
    assert set(second.rows[1].measured) == {"mrr_10", "nfairr_10", "arab_tf_10", "arab_bool_10"}
    assert labels(third)[:3] == [("BERT-Tiny", "original"), ("BERT-Tiny", "AdvBert"), ("BERT-Tiny", "bias-aware")]
    assert third.rows[1].measured["nfairr_10"].n == 10
    drawn = [drawing.name for drawing in page.drawings]
    assert [name for name in drawn if name.startswith("Figure")] == [
        "Figure 1 (dev)", "Figure 1 (QS2)", "Figure 2 (BERT-Tiny)", "Figure 3 (BERT-Tiny)"
    ]  # fmt: skip
    assert any(name.startswith("Plane QS1") for name in drawn)


def test_every_number_can_be_reached(
    browser: Any, ibbr_run: tuple[Page, Path], sampling_run: tuple[Page, Path]
) -> None:
    for _, folder in (ibbr_run, sampling_run):
        page = browser.new_page()
        page.goto((folder / "report.html").as_uri())
        assert unreachable(page) == []
        page.close()


def test_sampling_claims(sampling_run: tuple[Page, Path]) -> None:
    page, folder = sampling_run
    assert [claim.text.split("@")[0] for claim in page.claims] == ["NFaiRR", "|ARaB tf", "|ARaB bool", "MRR"]
    manifest = json.loads((folder / "seed-0" / "negatives-0.6.parquet.manifest.json").read_text(encoding="utf-8"))
    assert manifest["biased"] == 3 * manifest["queries"]


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenrank.cli import app

    page = Page("ibbr", "t", "s", (), (), (made_table(),), (), ())
    monkeypatch.setattr(ibbr, "run", lambda settings, folder, say, jobs: page)
    done = CliRunner().invoke(app, ["experiment", "ibbr", "--seeds", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "published" in done.output
    assert {file.name for file in tmp_path.iterdir()} == {"results.json", "table_1.csv", "report.html"}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [("x", {}, "expected one of"), ("ibbr", {"scale": "big"}, "`scale`"), ("ibbr", {"seeds": 0}, "`seeds`")],
)
def test_mistakes_are_told(name: str, settings: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=message):
        run_experiment(name, folder=tmp_path, **settings)  # type: ignore[arg-type]


def test_what_the_figures_of_a_row_are_over() -> None:
    seeds, queries = Value(0.5, 5, "seeds"), Value(0.5, 117, "queries")
    assert Row(("a",), {"x": seeds, "y": queries, "z": Value(None)}).n == "5 seeds, 117 queries"
    assert Row(("a",), {"x": queries, "y": Value(0.5, 12, "queries")}).n == "12–117 queries"
    assert Row(("a",), {"x": Value(0.5, 1, "queries")}).n == "1 query"
    assert Row(("a",), {"x": Value(None)}).n == "–"
