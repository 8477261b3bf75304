"""The documentation's page of claims: nothing is left out, and every verdict is that of a run."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files.json_values import json_values
from evenrank.papers.claims import claims_of, decided_claims
from evenrank.papers.figures import Figures

ROOT = Path(__file__).parents[2]
made = runpy.run_path(str(ROOT / "docs" / "reproduced.py"))


def finished(folder: Path, gap: float) -> Path:
    """The folder of an experiment in which NFaiRR@10 rose by ``gap``, and MRR@10 is above BM25's."""
    found, ids = Figures(True), [f"q{one}" for one in range(40)]
    spread = np.resize([-0.1, 0.1], 40)
    for system, mean, fair in (("BM25", 0.3, 0.5), ("M random", 0.5, 0.5), ("M bias-aware", 0.5, 0.5 + gap)):
        found.add("MRR@10 on QS1", system, 0, ids, mean + 0.1 * spread)
        found.add("NFaiRR@10 on QS1", system, 0, ids, fair + spread * ("aware" in system))
        found.add("of no claim", system, 0, ids, spread)
    found.write(folder / "values.parquet")
    decided = decided_claims("sampling", found, {"M": "MiniLM"}, "real", {})
    result = {
        "evenrank": "1", "experiment": "sampling", "scale": "real", "seeds": [0], "models": {"M": "MiniLM"},
        "stand_ins": {}, "warnings": ["AdvBert †: ranks below BM25."], "notes": ["Seeds 0, 1."],
        "claims": [json_values(one) for one in decided],
        "provenance": {"date": "2026-11-21T10:00:00+00:00"},
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps(result), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs() -> list[Mapping[str, Any]]:
    return made["runs"]()


@pytest.fixture(scope="module")
def pages(runs: list[Mapping[str, Any]]) -> dict[Path, str]:
    return made["pages"](runs)


def test_every_claim_of_every_paper_is_on_the_page(pages: dict[Path, str]) -> None:
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, "python docs/reproduced.py makes it anew"
    for paper in made["TITLES"]:
        for claim in claims_of(paper):
            assert made["_cell"](claim.text) in pages[made["FOLDER"] / f"{paper}.md"]


def test_changing_one_value_changes_a_verdict_of_the_page(tmp_path: Path) -> None:
    file = made["keep"](finished(tmp_path, 0.1), tmp_path / "kept").with_suffix(".parquet")
    one = (pl.col("system") == "M bias-aware") & (pl.col("figure") == "NFaiRR@10 on QS1") & (pl.col("id") == "q7")
    table = pl.read_parquet(file).with_columns(pl.when(one).then(-9.0).otherwise("value").alias("value"))

    def verdict() -> str:
        (run,) = made["runs"](file.parent)
        return next(claim["verdict"] for claim in run["claims"] if claim["key"] == "nfairr_qs1")

    assert verdict() == "supported"
    table.write_parquet(file, metadata={"same_queries": "True"})
    assert verdict() == "undecided"


def test_the_kept_verdicts_are_of_todays_claims(runs: list[Mapping[str, Any]]) -> None:
    for run in runs:
        for claim in run["claims"]:
            today = next(one for one in claims_of(claim["paper"]) if one.key == claim["key"])
            assert (claim["claim"], claim["where"]) == (today.text, today.where), (run["experiment"], claim)
