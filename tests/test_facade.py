"""The public names of the package: listed, documented for the type checker, and found where they are said to be."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
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
