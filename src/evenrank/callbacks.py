"""Figures with their intervals for what keeps experiments: MLflow, Weights & Biases, and model cards on the Hub.

>>> result = evenrank.audit({"new": run}, collection=texts, qrels=qrels)  # doctest: +SKIP
>>> evenrank.callbacks.log_mlflow(result)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from evenrank.auditing import AuditResult
from evenrank.auditing.published import eval_results, model_index, named_figure, run_figures
from evenrank.decide.gate import GateResult
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError

__all__ = ["eval_results", "figures", "log_mlflow", "log_wandb", "model_index"]


@checked
def figures(result: AuditResult | GateResult, run: str | None = None) -> dict[str, float]:
    """The figures of an audit or of a gate by name: ``ARaB@10``, ``ARaB@10/low`` and ``ARaB@10/high``.

    Of an audit: of one ``run``, or of all, with the run's name before each figure's if there are several
    (``BM25/ARaB@10``); the interval is the 95% one. Of a gate: each rule's value with its one-sided limits, and
    ``status``: 0 holds, 1 broken, 3 not shown. What is undefined is left out.
    """
    if isinstance(result, GateResult):
        if run not in (None, result.run):
            raise EvenrankError(f"`run`: the gate was of {result.run}")
        found = dict(pair for one in result.rulings for pair in named_figure(one.name, one.value, one.limits))
        return found | {"status": float(result.status())}
    runs = result.given if run is None else [result[run]]
    if len(runs) == 1:
        return run_figures(runs[0])
    return {f"{of.name.replace('/', '_')}/{name}": value for of in runs for name, value in run_figures(of).items()}


@checked
def log_mlflow(result: AuditResult | GateResult, run: str | None = None, *, step: int | None = None) -> None:
    """Log :func:`figures` to MLflow's active run, or to a new one.

    MLflow's names have no ``@`` and few other signs: ``ARaB@10/low`` becomes ``ARaB_at_10/low``, and any other sign
    an underscore.
    """
    names = {
        re.sub(r"[^\w.\- /]", "_", name.replace("@", "_at_")): value for name, value in figures(result, run).items()
    }
    _imported("mlflow").log_metrics(names, step=step)


@checked
def log_wandb(result: AuditResult | GateResult, run: str | None = None, *, step: int | None = None) -> None:
    """Log :func:`figures` to the active run of Weights & Biases, which ``wandb.init`` starts."""
    _imported("wandb").log(figures(result, run), step=step)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise EvenrankError(f"log_{name} needs {name}, which is not installed: pip install {name}") from None
