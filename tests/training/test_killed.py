"""Training that is killed, kill -9, and goes on to the same weights."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from evenrank.files import EvenrankError
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train
from forked import in_forks
from training_runs import assert_same, fair, logged, recipe

# transformers and accelerate warn of what they do themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

KILLED = """
import os, signal, sys
from evenrank.training import trainer
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train

plain = trainer.RankingTrainer.training_step
steps = 0

def step(self, *arguments, **named):
    global steps
    steps += 1
    if steps == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, *arguments, **named)

trainer.RankingTrainer.training_step = step
train(load_recipe(sys.argv[1], sys.argv[2:]))
"""


def changing(weight: str) -> list[str]:
    """Settings of a weight that changes while training."""
    return [f"fairness.weight={weight}", "training.batch=8", "fairness.rate=0.1"]


@pytest.fixture(scope="module")
def killed(home: Path, gendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that were killed in step 10 of 12: one of the plain recipe, and one for each weight that changes."""
    place = tmp_path_factory.mktemp("killed")

    def program(file: Path, name: str, settings: Sequence[str] = ()) -> tuple[str, list[object]]:
        return KILLED, [file, f'out="{place / name}"', *settings]

    programs = [
        program(home / "r.toml", "plain"),
        *(program(gendered, name, changing(name)) for name in ("auto", "dual")),
    ]
    assert in_forks(["evenrank.training.run"], programs) == [-signal.SIGKILL] * 3
    return place


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_weights(home, done, killed):
    folder = killed / "plain"
    assert not (folder / "model").exists()
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-8"]
    with pytest.raises(EvenrankError, match="there is a run already"):
        train(recipe(home, folder))
    assert_same(done, train(recipe(home, folder), resume=True))


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["auto", "dual"])
def test_a_weight_that_changes_goes_on_after_a_kill(gendered, killed, tmp_path, weight):
    done = fair(gendered, tmp_path / "d", *changing(weight))
    weights = [line["fair_weight_gender"] for line in logged(done) if "fair_weight_gender" in line]
    assert len(set(weights)) > 2
    resumed = train(load_recipe(gendered, [f'out="{killed / weight}"', *changing(weight)]), resume=True)
    assert_same(done, resumed)
    last = {line["step"]: line["fair_weight_gender"] for line in logged(resumed) if "fair_weight_gender" in line}
    assert last[12] == weights[-1]
