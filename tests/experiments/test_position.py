"""The position experiment: every step of both scales on small data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.experiments import position_paper, position_setup
from evenrank.experiments.paper_page import ExperimentPage
from evenrank.experiments.paper_tables import Table
from evenrank.experiments.position_setup import BIASED, DEBIASED, ORIGINAL, OTHER
from evenrank.experiments.position_tables import Found, transfer_table
from evenrank.io import EvenrankError, read_queries, scan_collection
from evenrank.position.term_similarity import TermSimilarity
from reaching import unreachable

pytest.importorskip("torch", reason="PyTorch is not installed")

from micro_experiments import no_training_after

COMMON = {"passages": 400, "queries": 60, "sentences": 4, "relevant": 1, "gender_rate": 0.2}
TRAINING = {"batch": 10, "max_steps": 2, "learning_rate": 1e-3, "evaluate_every": 100}


def micro() -> position_setup.Settings:
    tiny = position_setup.tiny()
    sizes = {"train": 30, "valid": 10, "test": 20}
    small = {"kind": "tk", "vector_size": 8, "passage_length": 40, "settings": {"heads": 2, "head_size": 4}}
    return replace(
        tiny,
        scale="micro",
        seeds=(0, 1),
        planted={
            BIASED: SyntheticConfig(**COMMON, relevance_answer_position="early"),
            OTHER: SyntheticConfig(**COMMON),
        },
        sizes={BIASED: sizes, OTHER: sizes},
        depth=10,
        rankers={
            "BERT_DOT": {**tiny.rankers["BERT_DOT"], "training": TRAINING},
            "TK": {"ranker": small, "loss": "nll", "training": TRAINING},
        },
        similarity={"passages": 60, "min_terms": 5, "min_pairs": 2},
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("position")
    with no_training_after(position_setup.Experiment, micro(), folder):
        page = position_paper.run(micro(), folder)
    page.write(folder)
    return page, folder


def table(page: ExperimentPage, name: str) -> Table:
    return next(one for one in page.tables if one.name == name)


def test_tables_are_laid_out_as_published(done: tuple[ExperimentPage, Path]) -> None:
    page, folder = done
    first = table(page, "Table 1")
    assert [value.mean for value in first.rows[0].measured.values()] == [400, 30, 10, 20]
    assert first.rows[1].published["documents"] == 20239
    second = table(page, "Table 2")
    assert [row.labels[0] for row in second.rows[:2]] == [ORIGINAL, DEBIASED]
    assert second.rows[0].published == {
        "msmarco_mats": 0.176,
        "msmarco_sd": 0.046,
        "squad_mats": 0.056,
        "squad_sd": 0.014,
    }
    third = table(page, "Table 3")
    assert [row.labels for row in third.rows] == [
        (model, training) for model in ("BERT_CAT", "BERT_DOT", "TK") for training in (ORIGINAL, DEBIASED)
    ] + [("BM25", ""), ("random", "")]
    assert not third.rows[0].measured
    assert third.rows[2].measured["ndcg_orig"].unit == "queries"
    assert third.rows[4].measured["ndcg_orig"].n == 2
    # BM25 does not see the order of words.
    assert third.rows[6].measured["change"].mean == 0
    assert table(page, "Table 4").rows[4].published["ndcg_orig"] == 0.846
    fifth = table(page, "Table 5")
    assert [row.labels[2] for row in fifth.rows] == list("abc") * 3
    assert set(fifth.rows[-1].measured) == {"ndcg", "mrr", "recall"}
    assert [drawing.name for drawing in page.drawings][-2:] == ["Figure 2", "Plane"]
    assert f"Figure 1 ({BIASED}, {DEBIASED})" in [drawing.name for drawing in page.drawings]
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["experiment"] == "position"
    assert len(page.claims) == 3


def test_a_rotated_collection_has_the_same_words(done: tuple[ExperimentPage, Path]) -> None:
    _, folder = done
    texts = [
        [sorted(text.split()) for batch in scan_collection(folder / "biased-0" / name) for text in batch["text"]]
        for name in ("collection.tsv", "rotated.tsv")
    ]
    assert texts[0] == texts[1]


def test_a_finished_experiment_trains_nothing(
    done: tuple[ExperimentPage, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, folder = done
    monkeypatch.setattr("evenrank.experiments.work.train_recipe", lambda *_, **__: pytest.fail("trained again"))
    assert position_paper.run(micro(), folder).text() == page.text()


def similarity(mats: float) -> TermSimilarity:
    ats = np.array([1.0, 1.0 - mats / 2, 1.0 - mats / 2])
    ones = np.ones(3, dtype=np.int64)
    return TermSimilarity(ats, np.zeros(3), ones, ones, 2, ats, 1)


def test_claims() -> None:
    found = Found()
    for training, pairs in {ORIGINAL: [(0.5, 0.40), (0.5, 0.42)], DEBIASED: [(0.48, 0.48), (0.48, 0.481)]}.items():
        for test, place in ((ORIGINAL, 0), (DEBIASED, 1)):
            found.values[BIASED, "TK", training, test] = [{"ndcg": np.array([pair[place]])} for pair in pairs]
    found.similarity = {
        (BIASED, ORIGINAL): [similarity(0.2), similarity(0.2)],
        (BIASED, DEBIASED): [similarity(0.1), similarity(0.1)],
    }
    drop, equivalent, mats = position_paper.claims(found)
    assert drop.reached is False  # −.09 on average, but its interval over two seeds holds 0
    assert drop.detail.startswith("-0.0900")
    assert equivalent.reached is True
    assert mats.reached is False
    assert "0.2000 against 0.1000: 2.0 ×" in mats.detail


def test_letters_are_wilcoxons() -> None:
    rng = np.random.default_rng(0)
    low = rng.random(60)
    found = Found()
    for training, shift in (("original", 0.0), ("MS(original)", 0.1), ("MS(debiased)", 0.1)):
        values = low + shift + rng.normal(scale=0.02, size=60)
        found.values[OTHER, "TK", training, ORIGINAL] = [dict.fromkeys(("ndcg", "mrr", "recall"), values)]
    rows = [row for row in transfer_table(found).rows if row.labels[0] == "TK"]
    assert rows[0].labels[3] == "–"
    assert rows[1].labels[3].startswith("nDCG@10 > a*")
    assert "ab" in rows[2].labels[4]  # published


# --- full: the same steps on files of the published form -------------------------------------------------------------


def test_full_settings_are_the_published_ones() -> None:
    full = position_setup.full()
    assert full.sizes[BIASED] == {"train": 0, "valid": 6_980, "test": 48_598}
    assert full.rankers["TK"]["loss"] == "hinge"
    assert full.rankers["BERT_CAT"]["ranker"]["model"] == "distilbert-base-uncased"
    assert full.depth == 1000


def squad(articles: int, questions: int, start: int) -> dict[str, object]:
    data = []
    for article in range(articles):
        context = f"Article {start + article} says that the colour is blue."
        answer = {"text": "blue", "answer_start": context.index("blue")}
        asked = [
            {
                "id": f"{start + article}-{i}",
                "question": f"Which colour {i}?",
                "answers": [answer],
                "is_impossible": False,
            }
            for i in range(questions)
        ]
        data.append({"title": f"t{start + article}", "paragraphs": [{"context": context, "qas": asked}]})
    return {"version": "v2.0", "data": data}


def test_squads_files_are_asked_for_and_read(tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=r"put SQuAD 2\.0 there first \(train-v2\.0\.json and dev-v2\.0\.json"):
        position_setup.squad_source(tmp_path, tmp_path / "other")
    for name, content in zip(position_setup.SQUAD_FILES, (squad(5, 1300, 0), squad(2, 3, 10)), strict=True):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    source, answers, tables = position_setup.squad_source(tmp_path, tmp_path / "other")
    assert tables["test"].height == 6
    assert tables["valid"].height == 5_000
    texts, moved = position_setup.rotated(source.collection, tmp_path / "other", answers)
    assert Path(texts[DEBIASED]).is_file()
    assert Path(moved[DEBIASED]).is_file()


def test_ms_marcos_test_queries_do_not_validate(done: tuple[ExperimentPage, Path]) -> None:
    home = done[1] / "biased-0"
    every = read_queries(home / "queries.tsv")
    tables = {"train": every.head(20), "valid": every[30:40], "test": every[20:60]}
    names = {"train": "a", "valid": "b", "test": "c"}
    source, _, parts = position_setup.msmarco_parts(names, tables)
    assert parts["test"].height == 30
    assert not set(parts["test"]["query_id"]) & set(parts["valid"]["query_id"])
    assert source.queries == ("a", "c")


def test_every_number_can_be_reached(browser: Any, done: tuple[ExperimentPage, Path]) -> None:
    page = browser.new_page()
    page.goto((done[1] / "report.html").as_uri())
    assert unreachable(page) == []
    page.close()
