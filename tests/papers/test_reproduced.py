"""The documentation's page of claims: nothing is left out, and every verdict is that of a run."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from evenrank.papers.claims import Decided, Effect, State, Verdict, claims_of
from evenrank.stats.estimate import Estimate

ROOT = Path(__file__).parents[2]
made = runpy.run_path(str(ROOT / "docs" / "reproduced.py"))
FIRST = next(claim for claim in claims_of("sampling") if claim.where)


def result(state: State, needs: str = "") -> dict[str, Any]:
    effect = Effect("MRR, a | x − b", Estimate(0.1, (-0.1, 0.3), 5, "seeds"))
    claim = json.loads(json.dumps(Decided(FIRST, Verdict(state, needs), (effect, effect)).to_dict()))
    return {
        "evenrank": "1",
        "experiment": "sampling",
        "scale": "real",
        "seeds": [0, 1],
        "models": {"BERT-base": "MiniLM"},
        "warnings": ["AdvBert †: ranks below BM25."],
        "claims": [claim],
        "notes": ["Seeds 0, 1."],
        "provenance": {"date": "2026-11-21T10:00:00+00:00"},
    }


def test_every_claim_of_every_paper_is_on_the_page() -> None:
    text = made["PAGE"].read_text(encoding="utf-8")
    assert text == made["page"](made["runs"]()), "python docs/reproduced.py makes it anew"
    for paper in made["TITLES"]:
        for claim in claims_of(paper):
            assert made["_cell"](claim.text) in text


def test_the_kept_verdicts_are_of_todays_claims() -> None:
    for run in made["runs"]():
        for claim in run["claims"]:
            today = next(one for one in claims_of(claim["paper"]) if one.key == claim["key"])
            assert (claim["claim"], claim["where"]) == (today.text, today.where), (run["experiment"], claim)


@pytest.mark.parametrize(
    ("state", "mark"),
    [("supported", "●"), ("not supported", "○"), ("not decidable", "·"), ("not put to this data", "–")],
)
def test_a_run_is_kept_and_shown(state: State, mark: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(result(state, "about 20 seeds")), encoding="utf-8")
    file = made["keep"](tmp_path, tmp_path / "kept")
    assert file.name == "sampling-real.json"
    text = made["page"](made["runs"](tmp_path / "kept"))
    needs = "; about 20 seeds would decide" if state == "not decidable" else ""
    effect = f"MRR, a &#124; x − b: +.100 [−.100, +.300], 5 seeds, and 1 more{needs}"
    row = next(line for line in text.splitlines() if line.startswith(f"| {FIRST.text}"))
    assert row.split(" | ")[1:5] == ["", "not run", mark, effect]
    known = [one for one in claims_of("sampling") if one.where]
    counts = [str(int(one == mark)) for one in made["MARKS"].values()]
    assert f"|  | real | {len(known)} | {' | '.join(counts)} |" in text
    assert '??? note "`evenrank experiment sampling --scale real`, 2026-11-21"' in text
    assert "    - AdvBert †: ranks below BM25." in text


def test_the_power_of_a_development_run_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    found = result("supported")
    found["claims"][0]["power"] = 0.8125
    (tmp_path / "results.json").write_text(json.dumps(found), encoding="utf-8")
    file = tmp_path / "power.csv"
    file.write_text(
        "scale,paper,key,n,power\nreal,sampling,weak,1 query,0.5\nreal,ibbr,gap,2 queries,0.9\n"
        + f"real,sampling,{FIRST.key},1 query,0.1\n"
    )
    made["keep_power"]([tmp_path], file)
    rows = ["real,sampling,weak,1 query,0.5", "real,ibbr,gap,2 queries,0.9", f"real,sampling,{FIRST.key},5 seeds,0.812"]
    assert file.read_text(encoding="utf-8").splitlines()[1:] == rows
