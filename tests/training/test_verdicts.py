"""A ranker that lost its effectiveness is named, first of all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from evenrank.training.card import ruined, summary_of, training_summary
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe
from training_runs import fair

# transformers and accelerate warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.mark.parametrize(
    ("value", "first_stage", "base", "said"),
    [
        (0.963, 0.41, None, ""),
        (0.535, 0.41, 0.963, "This ranker has lost 44% of its base's RR on these queries (0.9630 to 0.5350)."),
        (0.30, 0.41, None, "This ranker ranks worse than no ranker: RR 0.3000, below the first stage (0.4100)."),
        (
            0.30,
            0.41,
            0.963,
            "This ranker has lost 69% of its base's RR on these queries (0.9630 to 0.3000), and ranks worse than no"
            " ranker (below the first stage, 0.4100).",
        ),
        # Exactly the first stage, exactly 80%, and more than both.
        (0.41, 0.41, None, ""),
        (0.4, None, 0.5, ""),
        (0.6, 0.41, 0.0, ""),
        (0.3, math.nan, math.nan, ""),
    ],
)
def test_what_is_said(value: float, first_stage: float | None, base: float | None, said: str) -> None:
    assert ruined(value, first_stage, base, measure="RR") == said


def test_the_loss_by_an_adversary_of_a_huge_factor_is_named(gendered: Path, tmp_path: Path) -> None:
    base = fair(gendered, tmp_path / "base", "fairness=", "training.max_steps=40", "training.evaluate_every=20")
    before = json.loads((base / "result.json").read_text(encoding="utf-8"))
    assert "base" not in before
    against = [
        f'ranker.model="{base / "model"}"', "fairness=", "adversary.attack=false", "training.max_steps=30",
        "training.evaluate_every=30", "training.warmup=0", "training.schedule=constant", "validation.depths=",
    ]  # fmt: skip
    found = {}
    for factor, rate in (("1", "0.0003"), ("1000", "0.01")):
        settings = [f"adversary.factor={factor}", f"training.learning_rate={rate}"]
        folder = fair(gendered, tmp_path / factor, *against, *settings)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        assert result["base"] == pytest.approx(before["value"], abs=0.05)
        card = (folder / "model" / "README.md").read_text(encoding="utf-8").partition("# tiny\n\n")[2]
        found[factor] = result, card.splitlines()[0], training_summary(folder)
    result, first, lines = found["1000"]
    assert result["value"] < 0.8 * result["base"]
    assert first == f"**{lines[0]}**"
    assert lines[0].startswith("This ranker has lost ")
    assert f"of its base's nDCG@10 on these queries ({result['base']:.4f} to {result['value']:.4f})" in lines[0]
    assert not any("lost" in line for line in lines[1:])
    result, first, lines = found["1"]
    assert result["value"] >= 0.8 * result["base"]
    assert first.startswith("A `dot` ranker trained with evenrank")
    assert not any("has lost" in line for line in lines)
    assert f"nDCG@10 of its base, the ranker that this training continued from: {result['base']:.4f}" in lines


def test_the_base_is_measured_where_a_term_trains_further(gendered: Path, tmp_path: Path) -> None:
    base = fair(gendered, tmp_path / "base", "fairness=", "training.max_steps=12", "training.evaluate_every=12")
    value = json.loads((base / "result.json").read_text(encoding="utf-8"))["value"]
    further = [f'ranker.model="{base / "model"}"', "training.max_steps=1", "training.learning_rate=1e-12"]
    recipe = load_recipe(gendered, [f'out="{tmp_path / "t"}"', *further])
    result = json.loads((train_recipe(recipe) / "result.json").read_text(encoding="utf-8"))
    assert result["base"] == pytest.approx(value, abs=1e-12)
    plain = fair(gendered, tmp_path / "p", "fairness=", *further)
    assert "base" not in json.loads((plain / "result.json").read_text(encoding="utf-8"))
    figures = {"measure": "RR", "value": 0.3, "first_stage": 0.4, "depth": 5, "base": 0.9}
    assert summary_of(figures)[0].startswith(
        "This ranker has lost 67% of its base's RR on these queries (0.9000 to 0.3000)."
    )
