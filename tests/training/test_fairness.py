"""Training with the fair term, with weights that change, and blind."""

from __future__ import annotations

import json

import pytest
import torch

from evenrank.files import EvenrankError
from evenrank.training.fairness import FairTerm, acted_steps
from evenrank.training.lists import TrainingLists
from evenrank.training.recipes import FairnessRecipe, load_recipe
from evenrank.training.run import train_recipe as train
from training_runs import assert_same, card_of, everything, fair, logged, result_of, two_processes


def test_the_fair_term_does_not_depend_on_how_the_batch_is_split(gendered, tmp_path):
    common = ["training.max_steps=4", "validation.depths="]
    split = ["training.batch=4", "training.accumulation=2", "training.cached=5"]
    runs = [
        fair(gendered, tmp_path / str(number), *common, *way)
        for number, way in enumerate((["training.batch=8"], split, ["training.batch=8", "fairness.weight=0"]))
    ]
    assert_same(*runs[:2], tolerance=2e-5)
    with pytest.raises(AssertionError):
        assert_same(runs[0], runs[2], tolerance=2e-5)
    first, pieces = (logged(run)[0] for run in runs[:2])
    assert first["loss"] == pytest.approx(first["rank_loss"] + 0.5 * first["fair_loss_gender"], abs=1e-4)
    for key in ("loss", "rank_loss", "fair_loss_gender", "delta_aprf_gender", "lacking_a_group_gender"):
        assert first[key] == pytest.approx(pieces[key], abs=2e-4), key


def test_dropout_is_drawn_again_for_accumulated_pieces(home, gendered, tmp_path):
    # The same numbers in the pass that finds the term's gradient and in the one that learns: the loss is the sum.
    settings = [f'ranker.model="{home / "model"}"', "training.batch=4", "training.accumulation=2"]
    found = logged(fair(gendered, tmp_path / "d", "training.max_steps=2", "validation.depths=", *settings))[0]
    assert found["loss"] == pytest.approx(found["rank_loss"] + 0.5 * found["fair_loss_gender"], abs=1e-4)


def test_a_batch_that_lacks_a_group_is_counted(gendered, tmp_path):
    done = fair(gendered, tmp_path / "l", "training.batch=1", "training.max_steps=3")
    found = logged(done)
    assert sum(line.get("lacking_a_group_gender", 0) for line in found) == 3
    assert not any("fair_loss_gender" in line for line in found)
    assert "- the fairness term (gender) acted in 0 of 3 steps\n" in card_of(done)
    lines = [{"step": 2, "lacking_a_group_a": 1.0}, {"step": 2, "eval": 1.0}, {"step": 4, "lacking_a_group_a": 0.0}]
    assert acted_steps(lines, ["a", "b"]) == {"a": (3, 4), "b": (0, 0)}


def test_the_mean_of_the_term_is_over_the_batches_that_have_one():
    """Counted as 0, a batch that lacks a group would halve the loss that the trained weight is compared with."""
    term = FairTerm.of_recipe(FairnessRecipe.model_validate({"weight": 1.0}))
    scores = torch.tensor([[2.0, 0.0], [3.0, 1.0], [0.0, 1.0], [0.5, 1.0]])
    given = {"relevance": torch.tensor([[1.0, 0.0]] * 4), "counted": torch.ones(4, 2, dtype=torch.bool)}
    alone = []
    for sides in ([[1, -1], [1, 1], [-1, 1], [-1, -1]], [[1, -1]] * 4):
        term.total(torch.tensor(1.0), scores, {**given, "sides": torch.tensor([sides])})
        alone.append(term.batch.figures.terms[0])
    found = term.report()
    assert found["lacking_a_group_gender"] == 1
    assert found["fair_loss_gender"] == pytest.approx(alone[0])
    assert alone[0] > 0
    assert found["rank_loss"] == 1
    assert "with_fair_loss_gender" not in found


def test_several_attributes_are_summed(gendered, tmp_path):
    words = 'groups = ["a", "b", "c"]\n[words]\na = ["he", "his"]\nb = ["she", "her"]\nc = ["it"]\n'
    (tmp_path / "number.toml").write_text(words, encoding="utf-8")
    second = f'fairness.attributes=[{{}}, {{name = "other", lexicon = "{tmp_path / "number.toml"}", poles = "a,b"}}]'
    settings = ["training.batch=8", "training.max_steps=2", "validation.depths="]
    one = fair(gendered, tmp_path / "1", *settings, "fairness.weight=1")
    both = fair(gendered, tmp_path / "2", *settings, second)
    line = logged(both)[0]
    assert line["fair_loss_gender"] == line["fair_loss_other"] > 0
    # The same groups twice at half the weight are once at the whole.
    assert_same(one, both, tolerance=2e-5)
    assert set(result_of(both)["delta_aprf"]) == {"gender", "other"}
    with pytest.raises(EvenrankError, match="number has the groups a, b, c: poles chooses the two to balance"):
        fair(gendered, tmp_path / "3", f'fairness.attributes=[{{lexicon = "{tmp_path / "number.toml"}"}}]')


def test_the_best_weight_of_a_grid_becomes_the_model(gendered, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    settings = ["fairness.weight=[0.1, 5]", "training.batch=8", "training.max_steps=4"]
    folder = fair(gendered, tmp_path / "grid", *settings)
    grid = json.loads((folder / "grid.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in grid["weights"]] == ["without", "weight-0.1", "weight-5"]
    allowed = [row for row in grid["weights"][1:] if row["value"] >= 0.95 * grid["weights"][0]["value"]]
    expected = min(allowed, key=lambda row: row["abs_delta_aprf"])["name"] if allowed else "without"
    assert grid["best"] == result_of(folder)["best"] == expected
    assert_same(folder, folder / expected)
    # Resuming does nothing again; a grid that was stopped within its last training goes on to the same end.
    before = everything(folder)
    recipe = load_recipe(gendered, [f'out="{folder}"', *settings])
    train(recipe, resume=True)
    assert everything(folder) == before
    for path in (folder / "result.json", folder / "grid.json", folder / "weight-5" / "result.json"):
        path.unlink()
    train(recipe, resume=True)
    first, second = ({path: content for path, (content, _) in of.items()} for of in (everything(folder), before))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("cached", ["", "4"])
def test_two_processes_train_to_the_weights_of_one_with_the_doubled_batch(gendered, tmp_path, cached):
    two = two_processes(gendered, tmp_path, f"training.cached={cached}")
    # 16 queries: the last batch of an epoch has 4, and those that fill it up for the second process do not count.
    one = fair(gendered, tmp_path / "one", "training.batch=6")
    assert_same(one, two, tolerance=2e-5)
    for first, second in zip(logged(one), logged(two), strict=True):
        assert first.get("loss", 0) == pytest.approx(second.get("loss", 0), rel=1e-5)


def test_blind_training_sees_no_group_word(gendered, tmp_path):
    made = fair(gendered, tmp_path / "b", "data.blind=gender-en", "training.max_steps=2")
    lists = TrainingLists(made / "groups", negatives=3)
    items = [lists[i] for i in range(len(lists))]
    shown = [text for item in items for text in (item.query, *item.passages)]
    assert any("[MASK]" in text for text in shown)
    assert not {"he", "his", "she", "her"} & {word for text in shown for word in text.split()}
    # The labels are those of the texts as they were.
    assert {sign for item in items for row in item.sides for sign in row} == {-1, 0, 1}
    # So is the audit of the card.
    audit = json.loads((made / "audit.json").read_text(encoding="utf-8"))
    assert audit["runs"]["tiny"]["measures"]["NFaiRR@10"]["mean"] < 1
