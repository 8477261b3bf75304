"""The IBBR experiment: every step of both scales on small data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.decide.frontier import sweep
from evenrank.files import EvenrankError, Run, read_qrels, read_queries, read_run
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.mitigation.reorderings import METHODS
from evenrank.papers import ibbr_paper, ibbr_setup
from evenrank.papers.checks import Options
from evenrank.papers.corpora import Lists, Source, draw
from evenrank.papers.ibbr_paper import HEADINGS
from evenrank.papers.paper_page import ExperimentPage, published
from evenrank.papers.untrained import STRENGTHS
from evenrank.papers.work import Trained
from micro_experiments import check_controls, labels, micro_ibbr, no_training_after, table
from reaching import unreachable
from slow_ibbr import slow_figures


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
    assert list(first.columns) == [
        "recall_10", "mrr", "ndcg_10", "delta_aprf_abs", "delta_aprf_signed", "rab_5", "rab_10",
        "delta_aprf_clicks", "qrab_m_5", "qrab_f_5", "qrab_m_10", "qrab_f_10",
    ]  # fmt: skip
    assert first.rows[3].published["delta_aprf_abs"] == 0.001
    assert {value.n for value in first.rows[3].measured.values()} == {2}
    assert not first.rows[5].measured  # BERT-L4
    assert [row.labels[1] for row in first.rows[10:]] == [
        "TS", "base", "blind", "shift × 0.5", "shift", "random", "neutral-first"
    ]  # fmt: skip
    changes = table(page, "Changes")
    assert labels(changes)[:3] == [("BERT-L2", "base"), ("BERT-L2", "PD best"), ("BERT-L2", "PD auto")]
    assert set(changes.columns) >= {"mrr", "mrr_p", "mrr_holm", "delta_aprf_abs", "delta_aprf_abs_p"}
    second = table(page, "Table 2")
    assert [row.labels[0] for row in second.rows] == [
        "BM25", "RM3", "MP", "KNRM", "C-KNRM", "TK", "DPR-L2", "DPR-L4", "base", "blind", "shift × 0.5", "shift",
        "random", "neutral-first",
    ]  # fmt: skip
    assert second.rows[3].measured["mrr"].unit == "queries"
    assert {"delta_aprf_signed", "rab_5", "rab_10"} <= set(second.rows[3].measured)
    assert second.rows[7].published["delta_aprf_signed"] == -0.043
    third = table(page, "Table 3")
    assert [value.mean for value in third.rows[0].measured.values()] == [60, 6, 40, 106]
    assert third.rows[1].published["total"] == 1252
    auto = table(page, "Auto")
    assert labels(auto) == [("BERT-L2", "PD"), ("BERT-L2", "TS")]
    assert {"weight", "optimum", "rank_weight", "rank_optimum"} <= set(auto.rows[1].measured)
    assert {drawing.name for drawing in page.drawings} == {"Plane BERT-L2", "Curve BERT-L2"}


def test_retrieved_rows_search_the_whole_collection(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    """The first passages by the model's own vectors, found a second way, and a table of them."""
    from sentence_transformers import SentenceTransformer

    page, folder = ibbr_run
    assert labels(table(page, "Retrieval"))[:2] == [("BERT-L2", "BM25"), ("BERT-L2", "base")]
    home, trained = folder / "data-1", folder / "seed-1" / "BERT-L2-base"
    run = read_run(trained / "test.retrieved.run").table
    model = SentenceTransformer(str(trained / "model"), device="cpu")
    texts, queries = (read_queries(home / name) for name in ("collection.tsv", "test.queries.tsv"))
    scores = model.similarity(
        model.encode_query(queries["text"].to_list()), model.encode_document(texts["text"].to_list())
    )
    for row, query in enumerate(queries["query_id"]):
        found = run.filter(pl.col("query_id") == query)
        best = scores[row].sort(descending=True).values[:7]
        assert found["score"].to_list() == pytest.approx(best.tolist(), rel=2e-3)  # vectors are kept in float16
    reciprocal = []
    for seed in (0, 1):
        judged = read_qrels(folder / f"data-{seed}" / "test.qrels").filter(pl.col("relevance") > 0)
        found = read_run(folder / f"seed-{seed}" / "BERT-L2-base" / "test.retrieved.run").table
        best_rank = found.join(judged, on=["query_id", "doc_id"]).group_by("query_id").agg(pl.col("rank").min())
        reciprocal.append(float((1 / best_rank["rank"]).sum()) / judged["query_id"].n_unique())
    rows = {row.labels: row for row in table(page, "Retrieval").rows}
    assert rows["BERT-L2", "base"].measured["mrr"].mean == pytest.approx(sum(reciprocal) / 2)
    # Not BM25's candidates again.
    candidates = read_run(home / "test.run").table
    assert run.join(candidates, on=["query_id", "doc_id"], how="anti").height
    assert not (trained / "index").exists()


def test_controls_stand_in_every_table_of_rankings(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    for name in ("Table 1", "Table 2", "Grid BERT-L2"):
        check_controls(table(ibbr_run[0], name))


def test_ibbr_claims_and_scores_are_reported(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    page, folder = ibbr_run
    keys = [claim.statement.key for claim in page.claims]
    assert keys[:3] == ["gap", "removed", "kept"]
    assert {"ts_bias", "ts_pd", "pd_raises", "auto_bias", "dpr_bm25", "rm3"} <= set(keys)
    assert not {"pd_bias", "dpr_l4", "lean_l4", "tk"} & set(keys)  # nothing measured them
    assert all("2 seeds" in claim.detail for claim in page.claims[:3])
    assert labels(table(page, "Score R")) == [
        ("any", "0"), ("softmax", "0.03"), ("sigmoid", "0.1"), ("blind", "")
    ]  # fmt: skip
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in found["tables"]] == [one.name for one in page.tables]
    assert (folder / "table_1.csv").is_file()
    assert "measured" in page.table(full=True)
    assert page.findings[0].text.startswith(f"Of {len(page.claims)} claims ")


def test_reorderings_stand_beside_the_trained_rows(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    page, _ = ibbr_run
    found, first = table(page, "Rebalance"), table(page, "Table 1")
    assert labels(found)[0] == ("BERT-L2", "none", "0")
    methods = list(dict.fromkeys(row.labels[1] for row in found.rows[1:]))
    assert methods == [*METHODS]
    assert {len([one for one in found.rows if one.labels[1] == name]) for name in methods} == {len(STRENGTHS)}
    # The run itself is none of Table 1, in every column that the tables share.
    for column, value in found.rows[0].measured.items():
        assert value.mean == pytest.approx(first.rows[0].measured[column].mean), column
    assert set(found.rows[0].measured) == set(HEADINGS)
    beside = table(page, "Rebalance against trained")
    assert labels(beside)[0][:3] == ("BERT-L2", "PD best", "|ΔA-PRF|") or "PD auto" in labels(beside)[0]
    assert {"PD auto", "TS auto", "TS dev", "blind"} <= {row.labels[1] for row in beside.rows}
    assert [row.labels[1] for row in beside.rows if row.control] == ["blind"]
    (claim,) = [one for one in page.claims if one.statement.key == "rebalance"]
    assert "TS dev at its |ΔA-PRF|" in claim.detail
    chart = json.dumps(next(one for one in page.drawings if one.name == "Plane BERT-L2").specification)
    assert all(f'"method": "{name}"' in chart for name in METHODS)


def test_a_reordered_row_is_that_of_a_loop(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    """From none's kept runs: what reorders another ranking, or is learnt on the test queries, has other figures."""
    page, folder = ibbr_run
    found = {row.labels[1:]: row for row in table(page, "Rebalance").rows}
    for method in ("shift", "neutral"):
        expected = [_reordered_figures(folder, seed, method, 0.5) for seed in (0, 1)]
        row = next(one for key, one in found.items() if key[0] == method and key[1].split()[0] == "0.5")
        for place, column in enumerate(("mrr", "delta_aprf_abs")):
            assert row.measured[column].mean == pytest.approx(sum(one[place] for one in expected) / 2), (method, column)


def _reordered_figures(folder: Path, seed: int, method: str, strength: float) -> tuple[float, float]:
    home, none = folder / f"data-{seed}", folder / f"seed-{seed}" / "BERT-L2-none"
    run, learn = read_run(none / "test.run"), read_run(none / "validation.run")
    texts = read_queries(home / "collection.tsv").rename({"query_id": "doc_id"})
    scores = score_in_memory(texts, Scoring(load_lexicon("gender-en")))
    reordered = sweep(run, scores, [method], [strength], learn=learn)[method, strength]
    return _slow(home, reordered)


def _slow(home: Path, run: Run) -> tuple[float, float]:
    """A run's MRR and |ΔA-PRF|, by loops."""
    truth = pl.read_parquet(home / "truth.parquet")
    side = dict(zip(truth["doc_id"], truth["group"].replace_strict({"m": 1, "f": -1, "n": 0}), strict=True))
    relevant = set(read_qrels(home / "test.qrels").select("query_id", "doc_id").iter_rows())
    return slow_figures(run, relevant, side)


def kept_figures(folder: Path, seed: int, training: str) -> tuple[float, float]:
    """A row's MRR and |ΔA-PRF| of one seed, by loops over its kept run file."""
    return _slow(folder / f"data-{seed}", read_run(folder / f"seed-{seed}" / training / "test.run"))


@pytest.mark.parametrize(
    ("labels_of", "training"),
    [
        (("BERT-L2", "none", ""), "BERT-L2-none"),
        (("BERT-L2", "TS", "auto"), "BERT-L2-TS-softmax-auto"),
        (("BERT-L2", "blind", ""), "BERT-L2-blind"),
    ],
)
def test_mutant_published_and_measured_figures_swapped(
    labels_of: tuple[str, ...], training: str, ibbr_run: tuple[ExperimentPage, Path]
) -> None:
    """The measured figures are those of the kept run files, found a second way; the published ones the paper's."""
    page, folder = ibbr_run
    (row,) = [row for row in table(page, "Table 1").rows if row.labels == labels_of]
    each = [kept_figures(folder, seed, training) for seed in (0, 1)]
    assert row.measured["mrr"].mean == pytest.approx(sum(mrr for mrr, _ in each) / 2)
    assert row.measured["delta_aprf_abs"].mean == pytest.approx(sum(gap for _, gap in each) / 2)
    lines = {(line["model"], line["ibbr"], line["lambda"]): line for line in published("ibbr_table1")}
    if labels_of in lines:
        assert row.published == {
            key: float(value) for key, value in lines[labels_of].items() if key not in ("model", "ibbr", "lambda")
        }
        assert row.published["mrr"] != pytest.approx(row.measured["mrr"].mean)


def test_mutant_a_best_row_that_is_silently_none_is_noticed(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    """Where no weight qualifies, the row of "best" is none's: λ 0 stands in the note, and no claim of TS holds."""
    page, _ = ibbr_run
    rows = {row.labels: row for row in table(page, "Table 1").rows}
    same = rows["BERT-L2", "TS", "best"].measured == rows["BERT-L2", "none", ""].measured
    zero = any("BERT-L2 TS: no weight of the grid" in note for note in page.notes)
    assert same == zero
    if same:
        states = {claim.statement.key: claim.verdict.supported for claim in page.claims}
        assert {states[key] for key in ("ts_bias", "ts_utility", "ts_recall")} == {None}
        assert "BERT-L2 TS: 0" in table(page, "Table 1").notes[0]


def test_a_folder_of_other_settings_is_left_alone(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    folder = ibbr_run[1]
    with pytest.raises(EvenrankError, match=r"begun with other settings \(listed\); choose another `folder`, or"):
        ibbr_paper.run(replace(micro_ibbr(), listed=9), folder)


def test_a_list_holds_the_clicked_passage_and_the_first_others(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    home = ibbr_run[1] / "data-0"
    run = read_run(home / "train.run").table
    clicks = read_qrels(home / "train.qrels")
    assert clicks.join(run, on=["query_id", "doc_id"], how="semi").height == clicks.height == 60
    assert set(run.group_by("query_id").len()["len"]) == {7}
    # Test queries are judged by relevance: both passages are listed beside the first six others.
    run, relevant = read_run(home / "test.run").table, read_qrels(home / "test.qrels")
    assert relevant.join(run, on=["query_id", "doc_id"], how="semi").height == relevant.height == 80
    assert set(run.group_by("query_id").len()["len"]) == {8}


def test_a_clicked_passage_that_bm25_missed_comes_last(tmp_path: Path) -> None:
    collection = tmp_path / "c.tsv"
    collection.write_text("a\tred kettle\nb\tred red kettle\nc\tnothing alike\n", encoding="utf-8")
    queries = pl.DataFrame({"query_id": ["q"], "text": ["red kettle"]})
    clicks = pl.DataFrame({"query_id": ["q"], "doc_id": ["c"], "relevance": [1]})
    part = Lists(str(collection), tmp_path).part("x", queries, clicks, depth=10, listed=2)
    assert read_run(part.run).table["doc_id"].to_list() == ["b", "c"]


def test_only_training_clicks_are_skewed(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    home = ibbr_run[1] / "data-0"
    truth = pl.read_parquet(home / "truth.parquet").select("doc_id", "group")
    asked = {
        split: set(read_queries(home / f"queries.{split}.tsv")["query_id"]) for split in ("train", "valid", "test")
    }
    for name, split in {"dpr": "train", "train": "train", "dpr_dev": "valid", "dev": "valid", "test": "test"}.items():
        assert set(read_queries(home / f"{name}.queries.tsv")["query_id"]) <= asked[split]
    counts = {}
    for name in ("train.qrels", "test-clicks.qrels", "test.qrels"):
        rows = read_qrels(home / name).join(truth, on="doc_id")["group"]
        counts[name] = (rows == "m").sum() / len(rows)
    assert counts["train.qrels"] > 0.6
    assert counts["test.qrels"] == pytest.approx(0.5, abs=0.1)
    assert counts["test-clicks.qrels"] == pytest.approx(0.5, abs=0.2)


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
    full = ibbr_setup.settings_of("full", Options(vectors="glove.42B.300d.txt"))
    assert full.weights == (0.1, 0.5, 1.0, 5.0, 10.0)
    assert full.sizes == {"dpr": 510_586, "dpr_dev": 26_873, "train": 876, "dev": 250, "test": 126}
    counts = {line["data"]: line for line in published("ibbr_table3")}
    assert [int(counts["Fairness"][key]) for key in ("train", "dev", "test")] == [876, 250, 126]
    assert (int(counts["DPR"]["train"]), int(counts["DPR"]["dev"])) == (510_586, 26_873)
    assert (full.listed, full.data["negatives"], full.base["batch"], len(full.seeds)) == (200, 199, 150, 10)
    assert full.base_grid == {"learning_rate": (3e-6, 3e-5, 3e-4), "batch": (100, 120, 150)}
    assert (full.base["learning_rate"], full.base["schedule"], full.base["warmup"]) == (3e-5, "linear", 0.1)
    assert full.base["weight_decay"] == 0.01
    assert full.going_on["keep"] == "last"
    assert (full.ranker["pooling"], full.ranker["dimensions"], full.ranker["towers"]) == ("cls", 128, "separate")
    assert (full.ranker["query_length"], full.ranker["passage_length"]) == (100, 100)
    assert set(full.encoders) == {line["model"] for line in published("ibbr_table1")}
    assert list(full.encoders.values()) == ["google/bert_uncased_L-2_H-128_A-2", "google/bert_uncased_L-4_H-256_A-4"]
    assert set(full.baselines) == {line["model"] for line in published("ibbr_table2")} - {
        "BM25", "RM3", "DPR-L2", "DPR-L4"
    }  # fmt: skip
    assert {wanted["ranker"]["vectors"] for wanted in full.baselines.values()} == {"glove.42B.300d.txt"}
    (missing,) = [need for need in ibbr_setup.needs(full, Path("x")) if "word vectors" in need.purpose]
    assert missing.problem is not None


def test_every_scale_says_what_it_needs_and_costs() -> None:
    for scale in ("tiny", "full"):
        settings = ibbr_setup.settings_of(scale, Options())
        assert ibbr_setup.cost(settings).trainings > 40
    assert ibbr_setup.needs(ibbr_setup.tiny(), Path("x")) == []
    assert ibbr_setup.tiny().development
    assert not set(ibbr_setup.tiny().development) & set(ibbr_setup.tiny().seeds)
    assert "gender-representative" in {need.name for need in ibbr_setup.needs(ibbr_setup.full(), Path("x"))}
    real = ibbr_setup.settings_of("real", Options(encoder="no/such", squad=("no.json",), grepbiasir="none"))
    assert {need.problem is not None for need in ibbr_setup.needs(real, Path("x"))} == {True}
    assert (real.layers, real.sizes["train"] + real.sizes["dev"] + real.sizes["test"]) == (
        {"BERT-L2": 2, "BERT-L4": 4}, 117
    )  # fmt: skip
    # All of Grep-BiasIR's queries are drawn from, so nothing may have been chosen on them.
    assert real.development == ()


@pytest.mark.parametrize(
    ("scale", "given", "unread"),
    [
        ("tiny", {"squad": ("s.json",)}, ["squad"]),
        ("full", {"definitional": "d.json", "vectors": "v.txt"}, ["definitional"]),
        ("real", {"vectors": "v.txt", "encoder": "e"}, ["vectors"]),
    ],
)
def test_an_option_that_is_not_read_is_an_error(scale: str, given: dict[str, Any], unread: list[str]) -> None:
    settings = ibbr_setup.settings_of(scale, Options(**given))
    needs = ibbr_setup.needs(settings, Path("x"))
    assert [need.name for need in needs if "not used by this experiment" in str(need.problem)] == unread


def test_the_number_of_trainings_is_that_announced(ibbr_run: tuple[ExperimentPage, Path]) -> None:
    done = len(list(ibbr_run[1].glob("seed-*/*/result.json")))
    # The rows of best and of the grid share trainings, and so do best and none where no weight qualifies.
    assert done <= ibbr_setup.trainings(micro_ibbr())
    assert done >= ibbr_setup.trainings(micro_ibbr()) - 4


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
    sizes = {"dpr": 60, "dpr_dev": 6, "train": 30, "dev": 14, "test": 40}
    parts = ibbr_setup.split(published_files, replace(micro_ibbr(), sizes=sizes), tmp_path / "home", 0)
    ids = {name: set(read_queries(part.queries)["query_id"]) for name, part in parts.items()}
    assert all(int(number) % 2 for name in ("train", "dev", "test") for number in ids[name])
    assert not [(a, b) for a in ids for b in ids if a < b and ids[a] & ids[b]]
    with pytest.raises(EvenrankError, match="queries are wanted"):
        ibbr_setup.split(published_files, replace(micro_ibbr(), sizes={**sizes, "train": 60}), tmp_path, 0)


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
