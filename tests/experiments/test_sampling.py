"""The sampling experiment: every step of both scales on small data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenrank.experiments import sampling_paper, sampling_setup
from evenrank.experiments.paper_page import ExperimentPage
from micro_experiments import check_controls, labels, micro_sampling, no_training_after, table
from reaching import unreachable


@pytest.fixture(scope="module")
def sampling_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("sampling")
    with no_training_after(sampling_setup.Experiment, micro_sampling(), folder):
        page = sampling_paper.run(micro_sampling(), folder)
    page.write(folder)
    return page, folder


def test_sampling_tables_are_laid_out_as_published(sampling_run: tuple[ExperimentPage, Path]) -> None:
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


def test_sampling_claims(sampling_run: tuple[ExperimentPage, Path]) -> None:
    page, folder = sampling_run
    assert [claim.text.split("@")[0] for claim in page.claims] == ["NFaiRR", "|ARaB tf", "|ARaB bool", "MRR"]
    manifest = json.loads((folder / "seed-0" / "negatives-0.6.parquet.manifest.json").read_text(encoding="utf-8"))
    assert manifest["biased"] == 3 * manifest["queries"]


def test_controls_stand_in_every_table_of_rankings(sampling_run: tuple[ExperimentPage, Path]) -> None:
    for name in ("Table 1", "Table 2", "Table 3"):
        check_controls(table(sampling_run[0], name))


def test_every_number_can_be_reached(browser: Any, sampling_run: tuple[ExperimentPage, Path]) -> None:
    page = browser.new_page()
    page.goto((sampling_run[1] / "report.html").as_uri())
    assert unreachable(page) == []
    page.close()
