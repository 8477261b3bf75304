"""Which checkpoint becomes the model: by hand, against a slow version that sees everything, and in whole trainings."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from evenrank.files import EvenrankError, InputError
from evenrank.models.encoders import DotRanker
from evenrank.training.choice import CheckpointChooser, Rule, Validated, chosen, largest_gap, needed, rule_of, stale
from evenrank.training.recipes import Recipe, load_recipe
from evenrank.training.run import load_validation, train_recipe
from training_runs import card_of, everything, logged, result_of

# --- the rules alone --------------------------------------------------------------------------------------------------

BY_HAND = [
    # utility, bias; chosen, kept on disk, validations without improvement
    (0.50, 0.10, 1, {1}, 0),
    (0.60, 0.08, 2, {2}, 0),  # asks for .57
    (0.58, 0.05, 3, {2, 3}, 0),
    (0.575, 0.03, 4, {2, 3, 4}, 0),
    (0.56, 0.001, 4, {2, 3, 4}, 1),  # the fairest, below .57
    (0.605, 0.09, 4, {2, 3, 4, 6}, 0),  # asks for .57475, which step 4 has
    (0.62, 0.20, 2, {2, 6, 7}, 0),  # asks for .589: back to step 2
    (0.60, 0.08, 2, {2, 6, 7}, 1),  # as good as step 2, and later
    (0.61, 0.08, 9, {7, 9}, 2),  # as fair and more useful, but neither the most useful nor fairer
]


def test_the_joint_rule_by_hand() -> None:
    seen: list[Validated] = []
    for step, (utility, bias, expected, kept, without) in enumerate(BY_HAND, 1):
        seen.append(Validated(step, utility, bias))
        now = chosen(seen, "joint")
        assert now is not None
        assert (now.step, needed(seen, "joint"), stale(seen, "joint")) == (expected, kept, without), step
    assert [chosen(seen, rule) for rule in ("utility", "last")] == [seen[6], None]
    assert needed(seen, "utility") == {7}
    assert needed(seen, "last") == set()
    assert stale(seen, "utility") == 2


HISTORIES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=14).map(
    lambda rows: [Validated(step, u / 40, b / 100) for step, (u, b) in enumerate(rows, 1)]
)


def obvious(seen: list[Validated]) -> Validated | None:
    """The joint rule as one would say it."""
    found = None
    for one in seen:
        if one.utility < 0.95 * max(other.utility for other in seen):
            continue
        if found is None or one.bias < found.bias or (one.bias == found.bias and one.utility > found.utility):
            found = one
    return found


@given(HISTORIES)
def test_what_is_kept_is_what_the_whole_history_would_choose(seen: list[Validated]) -> None:
    disk: set[int] = set()
    for count in range(1, len(seen) + 1):
        part = seen[:count]
        now = obvious(part)
        assert chosen(part, "joint") == now
        assert now is not None
        # The checkpoint of this step is written, and those that are not needed are removed.
        disk = (disk | {count}) & (needed(part, "joint") | {count})
        assert now.step in disk
        assert needed(part, "joint") <= disk


@given(HISTORIES)
def test_nothing_is_kept_that_could_not_be_chosen(seen: list[Validated]) -> None:
    for step in needed(seen, "joint"):
        # A further validation, very biased, which asks for the utility of this one.
        utility = max(max(one.utility for one in seen), seen[step - 1].utility / 0.95 - 1e-9)
        found = obvious([*seen, Validated(len(seen) + 1, utility, 1.0)])
        assert found is not None
        assert found.step == step


@given(HISTORIES)
def test_patience_counts_what_improves_neither(seen: list[Validated]) -> None:
    since = 0
    for count, new in enumerate(seen):
        before = seen[:count]
        best = max((one.utility for one in before), default=-1.0)
        enough = [one for one in before if one.utility >= 0.95 * best]
        fairer = new.utility >= 0.95 * best and all(new.bias < one.bias for one in enough)
        since = 0 if new.utility > best or fairer else since + 1
    assert stale(seen, "joint") == since


def chooser(rule: Rule, why: str, *seen: tuple[float, float]) -> CheckpointChooser:
    made = CheckpointChooser(rule, why, "RR", 5)
    for step, figures in enumerate(seen, 1):
        made.note(step, *figures)
    return made


def test_patience_ends_a_training_whatever_rule_chooses() -> None:
    for rule, over in (("utility", True), ("joint", True), ("last", False)):
        assert chooser(rule, "", *[(0.5, 0.1)] * 6).is_over == over  # type: ignore[arg-type]
        assert not chooser(rule, "", *[(0.5, 0.1)] * 5).is_over  # type: ignore[arg-type]


def test_figures_that_are_no_numbers_are_never_chosen() -> None:
    seen = chooser("joint", "", (math.nan, 0.1), (0.5, math.nan), (0.4, 0.0)).seen
    assert chosen(seen[:2], "joint") is None
    assert chosen(seen, "utility") == seen[1]
    assert chosen(seen[:1], "utility") is None
    assert largest_gap({"a": -0.2, "b": 0.1}) == 0.2
    assert all(math.isnan(largest_gap(gaps)) for gaps in ({}, {"a": 0.1, "b": None}))
    # A measure below 0 has a best one, too.
    assert chosen([Validated(1, -0.5, 0.2), Validated(2, -0.4, 0.3)], "joint") == Validated(2, -0.4, 0.3)


# --- what a recipe asks for -------------------------------------------------------------------------------------------


def test_what_keep_stands_for(gendered: Path, tmp_path: Path) -> None:
    # Relevant passages 16, 19, 22 are female, 18, 21 male, the others neither.
    (tmp_path / "qrels").write_text("".join(f"{i} 0 {i} 1\n" for i in (16, 17, 19, 20, 22, 23)), encoding="utf-8")
    whole, bare, women = (
        load_validation(load_recipe(gendered, settings))
        for settings in ([], ["fairness="], [f'validation.qrels="{tmp_path / "qrels"}"'])
    )
    before = "the last, as utility alone would choose one from before"
    for keep, validation, trains, *expected in (
        ("best", whole, "term", "joint", ""),
        ("fair", whole, "term", "joint", ""),
        ("last", whole, "term", "last", "the last, as asked"),
        ("best", whole, "", "utility", ""),
        ("fair", whole, "", "joint", ""),
        ("last", whole, "", "last", "the last, as asked"),
        ("best", whole, "adversary", "last", f"{before} the adversary acts"),
        ("best", None, "term", "last", "the last, as there is no validation"),
        ("best", bare, "term", "last", f"{before} the term acts, and the validation has no attributes"),
    ):
        assert rule_of(keep, validation, term=trains == "term", adversary=trains == "adversary") == (*expected,)
    assert "no clicked passages of both groups of gender" in rule_of("best", women, term=True, adversary=False)[1]
    for lacking, message in ((None, "there is no validation"), (bare, "the validation has no attributes")):
        with pytest.raises(EvenrankError, match=rf'^`keep`: "fair" needs \|ΔA-PRF\|, but {message}$'):
            rule_of("fair", lacking, term=True, adversary=False)
    with pytest.raises(InputError, match=r"training\.keep: fair needs \[fairness\]"):
        load_recipe(gendered, ["fairness=", "training.keep=fair"])


# --- whole trainings --------------------------------------------------------------------------------------------------

SCRIPT = {2: (0.60, 0.08), 4: (0.58, 0.05), 6: (0.575, 0.03), 8: (0.62, 0.2)}
"""By step: utility and bias. Step 8 takes what was chosen at 4 and 6 out of the running again."""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, snapshots: Path) -> Path:
    """Validations as in the script; copies of the run's folder after each checkpoint."""
    note = CheckpointChooser.note

    def scripted(self: CheckpointChooser, step: int, *_: float) -> None:
        note(self, step, *SCRIPT.get(step, (0.5, 0.0)))

    monkeypatch.setattr(CheckpointChooser, "note", scripted)
    return snapshots


def the_recipe(gendered: Path, out: Path, *settings: str) -> Recipe:
    common = ["training.patience=3", "training.evaluate_every=2", "training.max_steps=30"]
    return load_recipe(gendered, [f'out="{out}"', *common, *settings])


def test_a_checkpoint_that_comes_back_is_still_there(gendered, tmp_path, scripted):
    recipe = the_recipe(gendered, tmp_path / "r", "fairness.weight=dual")
    folder = train_recipe(recipe)

    def files() -> dict[str, bytes]:
        return {name: content for name, (content, _) in everything(folder).items() if "checkpoint" not in name}

    whole, result = files(), result_of(folder)
    # Patience ends it at step 14: nothing after step 8 is more useful, or fair and useful enough.
    assert (result["steps"], result["best_checkpoint"]) == (14, "checkpoint-2")
    why = (
        "step 2 of 14, |ΔA-PRF| 0.0800, the least of 2 of 7 validations with at least 95% of the best nDCG@10:"
        " it has 0.6000, the best was 0.6200 after step 8"
    )
    figures = {"value": 0.60, "abs_delta_aprf": 0.08, "best_value": 0.62, "validations": 7}
    assert result["checkpoint"] == {"step": 2, "rule": "joint", **figures, "why": why}
    last = logged(folder)[-1]
    assert (last["step"], last["kept_step"], last["rule"], last["why"]) == (14, 2, "joint", why)
    assert f"- checkpoint: {why}" in card_of(folder)
    best = load_file(folder / "checkpoints" / "checkpoint-2" / "model.safetensors")
    model = DotRanker.load(folder / "model").state_dict()
    assert all(bool((value == best[name]).all()) for name, value in model.items())
    # On the way: the newest as a whole, of the others the weights.
    on_disk = {2: {2}, 4: {2, 4}, 6: {2, 4, 6}, 8: {2, 8}, 10: {2, 8, 10}, 12: {2, 8, 12}, 14: {2, 8, 14}}
    for stop, steps in on_disk.items():
        checkpoints = (scripted / str(stop) / "checkpoints").iterdir()
        kept = {int(path.name.rpartition("-")[2]): {file.name for file in path.iterdir()} for path in checkpoints}
        assert kept.keys() == steps
        assert "optimizer.pt" in kept.pop(stop)
        assert all(names == {"model.safetensors"} for names in kept.values())
    shutil.rmtree(folder)
    shutil.copytree(scripted / "6", folder)
    train_recipe(recipe, resume=True)
    assert files() == whole
    # What may be chosen yet must be there.
    shutil.rmtree(folder)
    shutil.copytree(scripted / "6", folder)
    shutil.rmtree(folder / "checkpoints" / "checkpoint-2")
    with pytest.raises(InputError, match=r"checkpoint-2/model.safetensors: a checkpoint that may yet be chosen is"):
        train_recipe(recipe, resume=True)


def test_a_grid_compares_with_the_best_without_the_term(gendered, tmp_path, scripted):
    said: list[str] = []
    settings = ["fairness.weight=[0.1, 5]", "training.keep=fair", "training.max_steps=8"]
    folder = train_recipe(the_recipe(gendered, tmp_path / "grid", *settings), say=said.append)
    kept = [result_of(folder / name)["checkpoint"] for name in ("without", "weight-0.1", "weight-5")]
    assert [(one["rule"], one["step"]) for one in kept] == [("utility", 8), ("joint", 2), ("joint", 2)]
    assert any(line.startswith("weight-5: kept the checkpoint of step 2 of 8, |ΔA-PRF| ") for line in said)
