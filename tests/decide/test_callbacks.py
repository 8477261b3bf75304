"""Figures for trackers of experiments and for model cards: stand-in modules record what they are given."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, SyntheticConfig, callbacks, generate
from evenrank.auditing import AuditResult
from gate_audits import OLD, audit, rule

MADE = generate(SyntheticConfig(passages=300))
RUN = MADE.qrels.with_columns(score=pl.lit(1.0)).select("query_id", "doc_id", "score")
OF_MLFLOW = re.compile(r"[/\w.\- ]+")
"""What MLflow takes as a metric's name."""


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    runs = {"old": RUN, "new": RUN}
    return evenrank.audit(
        runs, collection=MADE.collection, qrels=MADE.qrels, measures="nDCG@10 ARaB(magnitude='bool')@10"
    )


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, float], int | None]]:
    """What MLflow and Weights & Biases were told."""
    told: list[tuple[dict[str, float], int | None]] = []

    def record(values: dict[str, float], step: int | None = None) -> None:
        told.append((values, step))

    for name, function in (("mlflow", "log_metrics"), ("wandb", "log")):
        module = ModuleType(name)
        setattr(module, function, record)
        monkeypatch.setitem(sys.modules, name, module)
    return told


def test_figures_of_an_audit(audited: AuditResult) -> None:
    found = callbacks.figures(audited, "new")
    figure = audited["new", "ARaB(magnitude='bool')@10"]
    name = "ARaB(magnitude='bool')@10"
    assert figure.ci95 is not None
    assert [found[f"{name}{end}"] for end in ("", "/low", "/high")] == [figure.mean, *figure.ci95]
    # Every value of nDCG is 1: an interval without width is none.
    assert sorted(found) == sorted(["nDCG@10", name, f"{name}/low", f"{name}/high"])
    every = callbacks.figures(audited)
    assert set(every) == {f"{run}/{name}" for run in ("old", "new") for name in found}
    assert every[f"new/{name}"] == figure.mean


def test_figures_of_a_gate() -> None:
    values = {"nDCG@10": OLD}
    result = evenrank.gate(audit({"nDCG@10": OLD - 0.2}, values), budget=rule(against="baseline", at_least="-2%"))
    (ruling,) = result.rulings
    assert ruling.limits is not None
    low, high = ruling.limits
    expected = {"nDCG@10 vs old": ruling.value, "nDCG@10 vs old/low": low, "nDCG@10 vs old/high": high, "status": 1.0}
    assert callbacks.figures(result) == callbacks.figures(result, "new") == expected
    with pytest.raises(EvenrankError, match="`run`: the gate was of new"):
        callbacks.figures(result, "old")


def test_trackers_get_them(audited: AuditResult, told: list[tuple[dict[str, float], int | None]]) -> None:
    callbacks.log_wandb(audited, step=3)
    callbacks.log_mlflow(audited, "new")
    found = callbacks.figures(audited, "new")
    (of_wandb, step), (of_mlflow, none) = told
    assert (of_wandb, step, none) == (callbacks.figures(audited), 3, None)
    assert list(of_mlflow.values()) == list(found.values())
    assert of_mlflow["nDCG_at_10"] == 1
    assert "ARaB_magnitude__bool___at_10/low" in of_mlflow
    assert all(map(OF_MLFLOW.fullmatch, of_mlflow))


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tracker_that_is_missing(audited: AuditResult, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EvenrankError, match=f"^log_{name} needs {name}, which is not installed: pip install {name}$"):
        getattr(callbacks, f"log_{name}")(audited)


def test_forms_of_the_hub(audited: AuditResult) -> None:
    hub: Any = pytest.importorskip("huggingface_hub", reason="needs the extra [neural]")
    cards: Any = pytest.importorskip("huggingface_hub.repocard_data")
    figure = audited["new", "ARaB(magnitude='bool')@10"]
    index = callbacks.model_index(audited, "new", model="m", dataset="org/texts", dataset_name="Texts")
    name, results = cards.model_index_to_eval_results(index)
    assert name == "m"
    assert [(one.dataset_type, one.dataset_name, one.task_type) for one in results] == [
        ("org/texts", "Texts", "text-ranking")
    ] * 4
    assert {one.metric_type: one.metric_value for one in results} == callbacks.figures(audited, "new")
    tasks = {"ARaB(magnitude='bool')@10": "arab", "nDCG@10": "ndcg"}
    listed = callbacks.eval_results(audited, "new", dataset="org/bench", tasks=tasks)
    entries = hub.parse_eval_result_entries(listed)
    assert [(one.dataset_id, one.task_id, one.value) for one in entries] == [
        ("org/bench", "arab", figure.mean),
        ("org/bench", "ndcg", 1.0),
    ]
    assert figure.ci95 is not None
    low, high = figure.ci95
    assert entries[0].notes == f"95% interval [{low:.4f}, {high:.4f}], {figure.n} queries"
    assert hub.eval_result_entries_to_yaml(entries) == listed
    with pytest.raises(EvenrankError, match="`run`: expected one of old, new"):
        callbacks.model_index(audited, model="m", dataset="d")


def test_what_is_undefined_is_left_out() -> None:
    run = RUN.with_columns(query_id=pl.lit("one"))[:2]
    found = callbacks.figures(evenrank.audit({"r": run}, collection=MADE.collection, measures="ARaB@10"))
    assert list(found) == ["ARaB@10"]
    assert np.isfinite(found["ARaB@10"])
