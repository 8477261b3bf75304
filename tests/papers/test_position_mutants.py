"""Mistakes that the position experiment must not survive: each check holds, and fails once the mistake is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.papers import position_paper
from evenrank.papers.paper_page import Row, Value
from evenrank.papers.position_paper import SHORT, Found, effectiveness_table, significance_table
from evenrank.papers.position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, VERSIONS

pytest.importorskip("torch", reason="PyTorch is not installed")

from evenrank.files import read_queries, read_texts
from evenrank.models.load import load_ranker
from evenrank.papers.position_setup import Experiment
from micro_position import micro_position, small_encoder


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("mutants")
    settings = micro_position(small_encoder(folder / "small"))
    return Experiment(replace(settings, seeds=(0,)), folder)


# --- the rotated test is ranked on rotated texts ---


def reads_its_version(experiment: Experiment, form: type[Experiment], version: str) -> bool:
    """Whether the scores of a kept run are those of the model on this version of the texts."""
    trained = experiment.ranker(0, "TK", BIASED, ORIGINAL)
    (trained.folder / f"test-biased-{version}.run").unlink(missing_ok=True)
    run = form.ranked(experiment, trained, 0, BIASED, version).table.filter(run_depth(trained.result["depth"]))
    data = experiment.of(0, BIASED)
    texts = dict(read_texts(data.texts[version], run["doc_id"].unique()).iter_rows())
    asked = dict(read_queries(data.parts["test"].queries).select("query_id", "text").iter_rows())
    ranker = load_ranker(trained.model, device="cpu")
    queries = [asked[query] for query in run["query_id"]]
    scores = ranker.score(queries, [texts[document] for document in run["doc_id"]], 8)
    (trained.folder / f"test-biased-{version}.run").unlink()
    return np.allclose(np.asarray(scores), run["score"].to_numpy(), atol=1e-5)


def run_depth(depth: int) -> Any:
    import polars as pl

    return pl.col("rank") <= depth


class RanksOriginals(Experiment):
    def work(self, seed: int, name: str, version: str) -> Any:
        return super().work(seed, name, ORIGINAL)

    def ranked(self, trained: Any, seed: int, name: str, version: str) -> Any:
        part = self.of(seed, name).parts["test"]
        work = Experiment.work(self, seed, name, ORIGINAL)
        return work.rank(trained, f"test-biased-{version}", part, depth=int(trained.result["depth"]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_test_is_ranked_on_its_own_texts(experiment: Experiment, version: str) -> None:
    assert reads_its_version(experiment, Experiment, version)


def test_mutant_the_rotated_test_is_ranked_on_original_texts(experiment: Experiment) -> None:
    assert not reads_its_version(experiment, RanksOriginals, DEBIASED)


# --- transfer starts from the right version ---


def starts(experiment: Experiment, ranker: str, version: str, transferred: Callable[..., Any]) -> str:
    """The training that a transferred one continues from, by its own recipe."""
    import tomllib

    trained = transferred(experiment, 0, ranker, version)
    recipe = tomllib.loads((trained.folder / "recipe.toml").read_text(encoding="utf-8"))
    assert Path(recipe["data"]["collection"]).parent.name == "other-0"
    return Path(recipe["ranker"]["model"]).parent.name


def from_the_other(experiment: Experiment, seed: int, ranker: str, version: str) -> Any:
    wrong = DEBIASED if version == ORIGINAL else ORIGINAL
    return Experiment.transferred(experiment, seed, ranker, wrong)


@pytest.mark.parametrize(("ranker", "version"), [("TK", ORIGINAL), ("TK", DEBIASED), ("BERT_DOT", DEBIASED)])
def test_transfer_starts_from_its_version(experiment: Experiment, ranker: str, version: str) -> None:
    assert starts(experiment, ranker, version, Experiment.transferred) == f"{ranker}-biased-{version}"


def test_mutant_transfer_starts_from_the_wrong_version(experiment: Experiment) -> None:
    assert starts(experiment, "TK", DEBIASED, from_the_other) != f"TK-biased-{DEBIASED}"


# --- signs and columns ---

FIGURES = {(ORIGINAL, ORIGINAL): 0.4, (ORIGINAL, DEBIASED): 0.3, (DEBIASED, ORIGINAL): 0.36, (DEBIASED, DEBIASED): 0.37}


def hand_made() -> Found:
    """TK's figures, the same for all measures; BM25 at .2."""
    found = Found()
    noise = np.random.default_rng(0).normal(scale=0.01, size=50)
    for (training, test), mean in FIGURES.items():
        values = mean + noise - noise.mean() + (0.001 * np.arange(50) - 0.0245 if test == DEBIASED else 0)
        found.values[BIASED, "TK", training, test] = [dict.fromkeys(("ndcg", "mrr", "recall"), values)]
    for test in VERSIONS:
        found.values[BIASED, "BM25", "", test] = [dict.fromkeys(("ndcg", "mrr", "recall"), np.full(50, 0.2))]
    return found


def signs_hold() -> bool:
    """Whether every Δ, measured and published, has the sign of debiased − original."""
    table = effectiveness_table(hand_made(), "Table 3", BIASED, "position_table3")
    held = []
    for row in table.rows:
        sources: list[dict[str, float]] = [dict(row.published)]
        if row.labels[0] == "TK":
            sources.append({key: value.mean for key, value in row.measured.items() if value.mean is not None})
        for figures in sources:
            for measure in ("ndcg", "mrr", "recall") if figures else ():
                step = figures[f"{measure}_deb"] - figures[f"{measure}_orig"]
                held.append(np.sign(figures[f"{measure}_change"]) == np.sign(step))
                if measure == "ndcg" and "change_of_original" in figures:
                    held.append(np.sign(figures["change_of_original"]) == np.sign(step))
    for row in significance_table(hand_made(), (BIASED,)).rows:
        step = FIGURES[row.labels[2], DEBIASED] - FIGURES[row.labels[2], ORIGINAL]
        held.append(row.measured["difference"].mean == pytest.approx(step, abs=1e-9))
    assert len(held) > 20
    return all(held)


def test_every_change_has_its_sign() -> None:
    assert signs_hold()


@pytest.mark.parametrize("column", ["ndcg", "mrr", "recall", "of_original"])
def test_mutant_a_measured_change_has_its_sign_flipped(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Found.change

    def flipped(self: Found, key: Any, measure: str, *, of_original: bool = False) -> Value:
        value = original(self, key, measure, of_original=of_original)
        mine = of_original if column == "of_original" else measure == column and not of_original
        return replace(value, mean=-(value.mean or 0.0)) if mine else value

    monkeypatch.setattr(Found, "change", flipped)
    assert not signs_hold()


def test_mutant_all_changes_have_their_sign_flipped(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = position_paper._changes
    monkeypatch.setattr(position_paper, "_changes", lambda *given: -changes(*given))
    assert not signs_hold()


@pytest.mark.parametrize("measure", ["ndcg", "mrr", "recall"])
def test_mutant_a_published_change_has_its_sign_flipped(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = position_paper.published_changes

    def flipped(line: dict[str, str]) -> dict[str, float]:
        found = changes(line)
        return found | {f"{measure}_change": -found[f"{measure}_change"]}

    monkeypatch.setattr(position_paper, "published_changes", flipped)
    assert not signs_hold()


def test_mutant_the_tested_difference_has_its_sign_flipped(monkeypatch: pytest.MonkeyPatch) -> None:
    difference = Found.difference
    monkeypatch.setattr(Found, "difference", lambda self, key, base, *rest: difference(self, base, key, *rest))
    assert not signs_hold()


def columns_hold() -> bool:
    """Whether measured figures are ours and published ones the paper's, in the terminal's text too."""
    table = effectiveness_table(hand_made(), "Table 3", BIASED, "position_table3")
    lines = table.text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("TK") and "original" in line)
    shown = "measured" in lines[place] and "0.400" in lines[place] and "0.371" in lines[place + 2]
    row = next(row for row in table.rows if row.labels == ("TK", ORIGINAL))
    measured = row.measured.get("ndcg_orig", Value(None))
    ours = measured.mean is not None and abs(measured.mean - 0.4) < 1e-9
    return shown and ours and row.published.get("ndcg_orig") == 0.371


def test_measured_and_published_stand_where_they_belong() -> None:
    assert columns_hold()


def test_mutant_published_and_measured_are_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(labels: tuple[str, ...], measured: Any = None, published: Any = None, **rest: Any) -> Row:
        first = {key: Value(figure) for key, figure in (published or {}).items()}
        second = {key: value.mean for key, value in (measured or {}).items() if value.mean is not None}
        return Row(labels, first, second, **rest)

    monkeypatch.setattr(position_paper, "Row", swapped)
    assert not columns_hold()


def test_the_short_names_are_the_published_columns() -> None:
    assert SHORT == {ORIGINAL: "orig", DEBIASED: "deb"}
    assert OTHER != BIASED
