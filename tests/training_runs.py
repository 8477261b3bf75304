"""What tests of training runs share: recipes with settings over them, and what a run wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from safetensors.torch import load_file

from evenrank.training.recipes import Recipe, load_recipe
from evenrank.training.run import train_recipe as train


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


_WORLD = """
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
train(load_recipe(sys.argv[1], [f'out="{sys.argv[2]}"', "training.batch=3", *sys.argv[3:]]))
"""


def two_processes(recipe: Path, folder: Path, *settings: str) -> Path:
    """The run of a recipe by two processes, with batches of 3 each."""
    (folder / "world.py").write_text(_WORLD, encoding="utf-8")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
        "--rdzv_endpoint", "127.0.0.1:0", str(folder / "world.py"), str(recipe), str(folder / "two"), *settings,
    ]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    return folder / "two"


def fair(recipe: Path, out: Path, *settings: str) -> Path:
    return train(load_recipe(recipe, [f'out="{out}"', *settings]))


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def card_of(folder: Path) -> str:
    return (folder / "model" / "README.md").read_text(encoding="utf-8")
