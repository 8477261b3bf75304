"""Every model that a recipe or an experiment names is found, downloaded and loaded from a stand-in of the hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from evenrank.papers import NAMES, checks, study_of
from evenrank.training.recipes import load_recipe, shipped_recipes
from stand_in_hub import stand_in_hub
from tiny_models import tiny_bert

pytest.importorskip("torch", reason="PyTorch is not installed")


def models_of_all() -> list[str]:
    """The names on the hub that a shipped recipe or an experiment at any scale looks up."""
    found = {load_recipe(name).ranker.model for name in shipped_recipes()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "model_bytes", lambda name: found.add(name) or 1)
        for name, scale in product(NAMES, ("tiny", "real", "full")):
            study_of(name, scale, out=Path("nowhere")).needs()
    # A path under runs/ is another recipe's result.
    own = ("runs/", "real-data/")
    return sorted(name for name in found if name and not name.startswith(own) and not Path(name).is_dir())


def asked(script: str, names: Sequence[str], address: str, home: Path) -> list[Any]:
    """What a script prints as JSON, in a process whose hub is the stand-in; ``names`` are its ``names``."""
    environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home)}
    program = f"import json, sys\nnames, home = json.loads(sys.argv[1]), sys.argv[2]\n{script}"
    command = [sys.executable, "-c", program, json.dumps(names), str(home)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


LOOK_UP = """
from pathlib import Path
from evenrank.papers.checks import need_model
for name in names:
    need = need_model(name, "an encoder")
    print(json.dumps([need.size, need.problem]))
print(json.dumps([str(path) for path in Path(home).rglob("*.safetensors")]))
"""
LOAD = """
from evenrank.models.encoders import start_encoder
from evenrank.models.load import find_folder
for name in names[:2]:
    start_encoder(name, "feature-extraction", None, 16)
    print(json.dumps(sorted(file.name for file in find_folder(name).iterdir())))
"""


def test_every_model_of_every_recipe_and_experiment_is_found_and_loads(tmp_path: Path) -> None:
    """Each is looked up without its weights; two are loaded."""
    model, pickled = tiny_bert(tmp_path / "tiny"), tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_bytes((model / "config.json").read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"never read")
    names = models_of_all()
    assert {*names} >= PUBLISHED
    # One of them as many on the hub are: pickled weights, and safe ones that the hub's converter offers.
    models = dict.fromkeys(names, model) | {names[0]: pickled, "older/model": pickled}
    with stand_in_hub(models, {names[0]: model}) as address:
        found = asked(LOOK_UP + LOAD, [*names, "older/model", "owner/none"], address, tmp_path / "home")
    size = sum(file.stat().st_size for file in model.iterdir() if file.suffix in (".json", ".txt", ".safetensors"))
    assert found[: len(names)] == [[size, None]] * len(names)
    older, none, downloaded, *loaded = found[len(names) :]
    another = "(`model`: an encoder=FOLDER names another)"
    unsafe = "the hub has no weights of it as model.safetensors, and pickled ones are not loaded"
    assert older[1] == f"older/model: {unsafe} {another}"
    assert none[1] == f"owner/none: no such folder, and the hub has no public model of this name {another}"
    assert downloaded == []
    assert len(loaded) == 2
    assert all("model.safetensors" in files for files in loaded)
    assert not list((tmp_path / "home").rglob("*.bin"))


PUBLISHED = {
    "bert-base-uncased",
    "distilroberta-base",
    "google/electra-base-discriminator",
    "google/bert_uncased_L-2_H-128_A-2",
    "google/bert_uncased_L-4_H-256_A-4",
    "distilbert-base-uncased",
}
"""The encoders of the papers."""
