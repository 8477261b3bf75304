"""What the README shows is what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenrank.groups import load_lexicon
from evenrank.measures import parse_measures

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
TOML = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)


def test_the_lexicon(tmp_path):
    (tmp_path / "age.toml").write_text(next(block for block in TOML if "[words]" in block), encoding="utf-8")
    lexicon = load_lexicon(tmp_path / "age.toml")
    assert lexicon.groups == ("young", "old")
    assert lexicon.poles == ("young", "old")


def test_the_recipe(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.recipes import load_recipe

    (tmp_path / "recipe.toml").write_text(next(block for block in TOML if "[ranker]" in block), encoding="utf-8")
    recipe = load_recipe(tmp_path / "recipe.toml", ["training.batch=16"])
    assert (recipe.ranker.kind, recipe.ranker.layers, str(recipe.folder)) == ("dot", 2, "runs/my-dot")


def test_the_fair_term(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.recipes import load_recipe

    parts = [next(block for block in TOML if mark in block) for mark in ("[ranker]", "[fairness]")]
    (tmp_path / "recipe.toml").write_text("\n".join(parts), encoding="utf-8")
    fairness = load_recipe(tmp_path / "recipe.toml").fairness
    assert (fairness.name, fairness.weight, fairness.attributes[0].lexicon) == ("ibbr-ts", 0.1, "gender-en")


def test_the_shipped_recipes_are_named():
    from evenrank.training.recipes import shipped_recipes

    assert shipped_recipes()
    for name in shipped_recipes():
        assert f"`{name}`" in README


def test_the_measures():
    quoted = re.findall(r'--measures "([^"]+)"', README)
    assert len(quoted) >= 3
    for text in quoted:
        assert parse_measures(text)


def test_every_command_is_named():
    from evenrank.cli import app

    names = [command.name for command in app.registered_commands] + [group.name for group in app.registered_groups]
    for name in names:
        assert f"`evenrank {name}" in README, name


def test_nothing_is_left_to_fill_in():
    assert not re.search(r"\b(BENCH|TODO|FIXME|TBD)\b", README)
