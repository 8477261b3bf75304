"""The public names of the package: listed, documented for the type checker, and found where they are said to be."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenrank

SOURCE = Path(evenrank.__file__)


def for_the_type_checker() -> dict[str, str]:
    """Each name that the package imports for the type checker alone → the module that it is imported from."""
    block = next(node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: str(line.module).removeprefix("evenrank.")
        for line in block.body
        if isinstance(line, ast.ImportFrom) and line.module != "evenrank"
        for alias in line.names
    }


LAZY = ("evenrank", *(f"evenrank.{name}" for name in ("files", "mitigation", "models", "results", "search", "stats")))


def test_public_names_are_listed_and_there() -> None:
    homes = for_the_type_checker()
    assert set(homes) == set(evenrank.__all__) - {"__version__"}
    for package in map(importlib.import_module, LAZY):
        assert set(package.__all__) <= set(dir(package))
        assert len(set(package.__all__)) == len(package.__all__)
    pytest.importorskip("torch", reason="needs the extra [neural]")
    for package in map(importlib.import_module, (*LAZY, "evenrank.probes", "evenrank.training")):
        assert [name for name in package.__all__ if getattr(package, name) is None] == []
    for name, home in homes.items():
        value = getattr(evenrank, name)
        assert value is getattr(importlib.import_module(f"evenrank.{home}"), name)
        assert value.__doc__, name


def test_signatures_show_names_types_and_defaults() -> None:
    assert str(inspect.signature(evenrank.retrieve)).startswith(
        "(collection: object, queries: TextsLike, *, k: int = 1000, passages: PassagesLike | None = None, k1: float"
    )
    for name in evenrank.__all__:
        if name[0].islower() and not name.startswith("_"):
            assert not re.search(r"Annotated|Option\(|opt\.", str(inspect.signature(getattr(evenrank, name)))), name


def test_one_word_an_idea() -> None:
    """An output is `out`, measures are plural, and quiet and depth mean the same wherever they are."""
    pytest.importorskip("torch", reason="needs the extra [neural]")
    functions = {name: getattr(evenrank, name) for name in evenrank.__all__ if name[0].islower()}
    found = {
        name: {one.name: one.default for one in inspect.signature(function).parameters.values()}
        for name, function in functions.items()
    }
    with_a = {word: {name for name, own in found.items() if word in own} for word in ("folder", "path", "measure")}
    assert with_a["folder"] == {"beir", "training_summary"}
    assert all(name.startswith("read_") or name in ("open_index", "run_name") for name in with_a["path"])
    # It tunes by one.
    assert with_a["measure"] == {"tune"}
    words = {word for own in found.values() for word in own}
    assert not words & {"output", "destination", "to", "file", "verbose", "progress"}
    assert {own["quiet"] for own in found.values() if "quiet" in own} == {True}
    depth = {name: own["depth"] for name, own in found.items() if "depth" in own}
    assert depth == {
        **dict.fromkeys(("rerank", "training_lists", "write_negatives"), 1000),
        **dict.fromkeys(("probe", "position_sensitivity", "rebalance"), 100),
        "sample_labels": None,
    }


USER = """
import evenrank
from evenrank import IBBR, AuditResult, MetricValue, Run

def lean(run: Run, texts: dict[str, str]) -> float | None:
    result: AuditResult = evenrank.audit({"mine": run}, collection=texts, measures="ARaB@10")
    value: MetricValue = result["mine"]["ARaB@10"]
    figures: dict[str, float] = result.metrics()
    print(result, figures, result.to_polars().height)
    return value.mean

def lost(texts: dict[str, str]) -> list[int]:
    return [loss.count for loss in evenrank.scan(texts, model="bm25", k=10).losses]

def trained() -> evenrank.TrainingResult:
    lists = [{"query": "tea", "passages": ["he pours tea", "rain"], "relevance": [1, 0]}]
    ranker = evenrank.RankerRecipe(kind="dot", model="folder")
    return evenrank.train(ranker, lists, fairness=IBBR("ibbr-pd", weight=0.5), in_batch=True, batch=8, epochs=2)

run = evenrank.read_run("a.run", columns={"query": "q"})
reveal_type(lean(run, {"d1": "she"}))
evenrank.measures.provider
evenrank.audit({"mine": run}, missing="never")
evenrank.no_such_name
evenrank.train("folder", [], batches=8)
evenrank.train("folder", [], batch="8")
IBBR("ibbr-ts", weight="much")
"""
WRONG = [number for number, line in enumerate(USER.splitlines(), 1) if re.search('never|no_such|batches|"8|much', line)]


@pytest.mark.slow
def test_a_users_project_is_typed(tmp_path: Path) -> None:
    """As mypy sees it: what is right passes, an unknown value and an unknown name are errors."""
    (tmp_path / "user.py").write_text(USER)
    root = SOURCE.parents[2]
    kept = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *kept, "--no-error-summary", "user.py"]
    environment = {**os.environ, "MYPYPATH": str(SOURCE.parents[1])}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    errors = [line for line in said.splitlines() if line.startswith("user.py") and ": error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == WRONG, said
    assert 'Revealed type is "float | None"' in said


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("basedpyright") is None, reason="basedpyright is not installed")
def test_a_users_editor_sees_the_same(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    settings = {"include": ["user.py"], "extraPaths": [str(SOURCE.parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["basedpyright", "--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    found = json.loads(said)["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    assert [one["range"]["start"]["line"] + 1 for one in errors] == WRONG, errors
    assert any('is "float | None"' in one["message"] for one in found)


def test_a_name_without_its_extra_names_the_extra() -> None:
    program = """
import sys
import evenrank
# Folders need no import of their own.
print("polars" in sys.modules, callable(evenrank.measures.provider))
sys.modules["torch"] = sys.modules["accelerate"] = None
import importlib.util
found = importlib.util.find_spec
import evenrank.files.errors
evenrank.files.errors.find_spec = lambda name: None if name == "torch" else found(name)
try:
    evenrank.train
except evenrank.EvenrankError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    said = 'False True\nevenrank.train needs the extra [neural]: pip install "evenrank[neural]"\n'
    assert ended.stdout == said, ended.stderr
