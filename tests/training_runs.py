"""What tests of training runs share: recipes with settings over them, and what a run wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from safetensors.torch import load_file

from evenrank.training.recipes import Recipe, load_recipe
from evenrank.training.run import train_recipe as train

# transformers and accelerate warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def recipe(home: Path, out: Path, *settings: str) -> Recipe:
    return load_recipe(home / "r.toml", [f'out="{out}"', *settings])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's content and when it was written."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def assert_same(first: Path, second: Path, tolerance: float = 0.0) -> None:
    a, b = weights(first), weights(second)
    assert a.keys() == b.keys()
    for name in a:
        if tolerance and name.endswith("key.bias"):
            # No score depends on it, so its gradient is rounding, which Adam makes as large as any other.
            continue
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=tolerance, msg=name)


WORLD = """
import sys
import torch.distributed
from evenrank.training import trainer
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train

plain = trainer.RankingTrainer.training_step

def step(self, *arguments, **named):
    assert torch.distributed.get_world_size() == 2
    assert self.accelerator.num_processes == 2
    return plain(self, *arguments, **named)

trainer.RankingTrainer.training_step = step
train(load_recipe(sys.argv[1], [f'out="{sys.argv[2]}"', "training.batch=3"]))
"""


def fair(recipe: Path, out: Path, *settings: str) -> Path:
    return train(load_recipe(recipe, [f'out="{out}"', *settings]))


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
