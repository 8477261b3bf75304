"""The documentation's page of claims: nothing is left out, and every verdict is that of a run."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from evenrank.papers.paper_page import PAPERS, Claim, Verdict, statements

ROOT = Path(__file__).parents[2]
made = runpy.run_path(str(ROOT / "docs" / "reproduced.py"))


def result(*claims: Claim, scale: str = "tiny") -> dict[str, Any]:
    return {
        "evenrank": "1",
        "experiment": "sampling",
        "facts": {"scale": scale, "seeds": "0–4"},
        "warnings": ["† AdvBert: ranks below BM25"],
        "claims": [claim.to_dict() for claim in claims],
        "provenance": {"date": "2026-11-21T10:00:00+00:00"},
    }


def test_every_claim_of_every_paper_is_on_the_page() -> None:
    text = made["PAGE"].read_text(encoding="utf-8")
    assert text == made["page"](made["runs"]()), "python docs/reproduced.py makes it anew"
    for paper in PAPERS:
        for statement in statements(paper).values():
            assert made["_cell"](statement.text) in text


def test_the_kept_verdicts_are_of_todays_claims() -> None:
    for run in made["runs"]():
        for claim in run["claims"]:
            statement = statements(claim["paper"])[claim["key"]]
            assert (claim["claim"], claim["where"]) == (statement.text, statement.where), (run["experiment"], claim)


def test_a_run_is_kept_and_shown(tmp_path: Path) -> None:
    first, *_ = [one for one in statements("sampling").values() if one.where]
    claim = Claim(first, Verdict(None, "about 20 seeds"), "+0.1 [-0.1, 0.3], 5 seeds | x")
    (tmp_path / "results.json").write_text(json.dumps(result(claim)), encoding="utf-8")
    file = made["keep"](tmp_path, tmp_path / "kept")
    assert file.name == "sampling-tiny.json"
    text = made["page"](made["runs"](tmp_path / "kept"))
    row = next(line for line in text.splitlines() if "5 seeds &#124; x; about 20 seeds would decide" in line)
    assert "| tiny | **not decidable** |" in row
    assert "`evenrank experiment sampling --scale tiny`, 2026-11-21: seeds 0–4" in text
    assert "† AdvBert: ranks below BM25" in text
    others = list(statements("ibbr").values())
    assert text.count("| | not run | |") >= len(others)
    known = [one for one in statements("sampling").values() if one.where]
    assert f"| Bias-aware negative sampling | tiny | {len(known)} | 0 | 0 | 1 | {len(known) - 1} |" in text


@pytest.mark.parametrize("verdict", [True, False])
def test_mutant_a_verdict_turned_round_is_seen(verdict: bool, tmp_path: Path) -> None:
    statement = next(iter(statements("sampling").values()))
    (tmp_path / "results.json").write_text(
        json.dumps(result(Claim(statement, Verdict(verdict), "figure"))), encoding="utf-8"
    )
    made["keep"](tmp_path, tmp_path / "kept")
    state = "supported" if verdict else "not supported"
    assert f"| **{state}** | figure |" in made["page"](made["runs"](tmp_path / "kept"))
