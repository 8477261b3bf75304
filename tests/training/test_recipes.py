"""Recipes: the shipped ones, settings over them, and what is wrong with a recipe."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest

from evenrank.files import EvenrankError
from evenrank.training.recipes import TrainingRecipe, TrainingSettings, load_recipe, shipped_recipes, to_toml


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_are_valid_and_survive_writing(name, tmp_path):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.source is not None
    (tmp_path / "r.toml").write_text(to_toml(recipe), encoding="utf-8")
    assert load_recipe(tmp_path / "r.toml") == recipe


def test_the_published_settings():
    tk, cat, dot = (load_recipe(name) for name in ("position-tk", "position-cat", "position-dot"))
    assert (tk.loss.name, tk.training.batch, tk.training.optimizer) == ("hinge", 32, "adam")
    assert tk.ranker.settings == {"kernels": "even"}
    assert tk.training.learning_rates == {"embeddings": 1e-4, "contextualisation": 1e-4, "kernels": 1e-3}
    assert cat.training.learning_rate == dot.training.learning_rate == 7e-6
    ibbr = load_recipe("ibbr-dot")
    assert (ibbr.ranker.model, ibbr.ranker.dimensions) == ("google/bert_uncased_L-2_H-128_A-2", None)
    assert (ibbr.training.batch, ibbr.data.negatives) == (150, 199)
    assert (ibbr.training.learning_rate, ibbr.training.weight_decay) == (3e-5, 0.01)
    assert load_recipe("sampling-cat").data.negatives == 20


def test_the_settings_of_train_are_the_keys_of_a_recipe():
    fields = {name: field.annotation for name, field in TrainingRecipe.model_fields.items()}
    assert get_type_hints(TrainingSettings) == fields
    assert not TrainingSettings.__required_keys__


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.batchsize=3", "unknown key training.batchsize (allowed: epochs, max_steps, batch,"),
        ("colour=1", "unknown key colour (allowed: name, out, source, ranker, data,"),
        ("training.batch=0", "training.batch: expected 1 or more, found 0"),
        ("loss.name=rank", "loss.name: expected nll, hinge, bce, ranknet or margin-mse, found 'rank'"),
        ("ranker.kind=bert", "ranker.kind: expected cat, dot, sparse, tk, knrm, conv-knrm or match-pyramid"),
        ("training.warmup=1.5", "training.warmup: expected 1 or less, found 1.5"),
        ("data.rotate=line", "data.rotate: expected word or sentence, found 'line'"),
        ("training.batch=2.5", "training.batch: expected a whole number, found 2.5"),
        ("data.groups=g.parquet", "data: either groups, or run and qrels (a setting data.run= removes a key)"),
        ("training", "`settings`: expected key=value, found 'training'"),
        ("name.x=1", "`settings`: 'name.x': name is not a table"),
        ("name=", "the key name is missing"),
    ],
)
def test_a_wrong_setting_names_the_key_and_what_is_allowed(setting, message):
    with pytest.raises(EvenrankError, match=re.escape(message)) as error:
        load_recipe("position-cat", [setting])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"\n[ranker]\nkind = "cat"\n', r"r\.toml: ranker: model: a cat ranker needs one"),
        ('name = "x"\n[ranker]\nkind = "tk"\n', "the key data is missing"),
        ("name = ", "not valid TOML"),
        (None, r"nowhere: no such recipe \(shipped: distil, ibbr-dot, "),
    ],
)
def test_what_is_missing_or_no_toml(tmp_path, text, message):
    if text is not None:
        (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    with pytest.raises(EvenrankError, match=message):
        load_recipe("nowhere" if text is None else tmp_path / "r.toml")


def test_a_recipe_survives_its_own_round_trip_whatever_its_texts_hold(tmp_path):
    odd = "a\x7fb\x00c\td\"e'f\\g\u2028h\x1b[31m=i#j"
    recipe = load_recipe("ibbr-dot").model_copy(update={"name": odd, "out": f"runs/{odd}"})
    text = to_toml(recipe)
    assert "\x7f" not in text
    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    assert load_recipe(tmp_path / "r.toml") == recipe


def test_advbert_as_published():
    """Rekabsaz et al. 2021, §4, and their program: pairs a batch, rate, ε, epochs, last checkpoint."""
    recipe = load_recipe("sampling-advbert")
    training, adversary = recipe.training, recipe.adversary
    # A relevant passage and another one a list.
    assert training.batch * training.accumulation * (1 + recipe.data.negatives) == 64
    assert (training.optimizer, training.learning_rate, training.epsilon) == ("adam", 3e-5, 1e-5)
    assert (training.schedule, training.warmup, training.weight_decay, training.clip) == ("constant", 0.0, 0.0, 1.0)
    assert training.learning_rates == {}
    assert (training.epochs, training.max_steps, training.keep) == (2, -1, "last")
    assert adversary is not None
    assert (adversary.label, adversary.factor, adversary.weight) == ("neutrality", 1.0, 1.0)
    assert (recipe.ranker.kind, recipe.ranker.model) == ("cat", "runs/sampling-cat/model")
