"""For mteb: what ``prediction_folder`` keeps of a task, with intervals and comparisons, and what mteb reports of it.

>>> run = read_predictions("predictions/NFCorpus_predictions.json")  # doctest: +SKIP
>>> audit({"old": "old/NFCorpus_predictions.json", "new": run}, task, baseline="old")  # doctest: +SKIP

Values of each query equal mteb's own, which trec_eval computes: scores in float32, ties by descending id; a query
without any prediction is left out. (mteb ranks for its MRR by scores in float64.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.auditing import AuditResult
from evenrank.auditing import audit as audit_runs
from evenrank.files import EvenrankError, InputError, Run, RunLike, as_qrels, as_run
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path, runs_by_name

__all__ = ["audit", "measure_named", "read_predictions", "read_results"]

_MEASURES = {"ndcg": "nDCG", "map": "AP", "recall": "R", "precision": "P", "mrr": "RR", "hit_rate": "Success"}
"""The names of mteb's scores, before ``_at_K``, and of the measures that they are."""


def measure_named(score: str) -> str | None:
    """The measure of a score of mteb, ``nDCG@10`` of ``ndcg_at_10``; None of a score that is no such measure."""
    name, _, cutoff = score.partition("_at_")
    return f"{_MEASURES[name]}@{cutoff}" if name in _MEASURES and cutoff.isdecimal() else None


@checked
def read_predictions(
    path: str | os.PathLike[str], *, subset: str | None = None, split: str | None = None, name: str | None = None
) -> Run:
    """The run of a file ``TASK_predictions.json``, named after the model.

    Args:
        path: The file that mteb wrote to its ``prediction_folder``.
        subset: The subset of the task; needed where there are several.
        split: The split; needed where there are several.
        name: Another name of the run.

    Raises:
        InputError: For a file that is none of predictions, and for a subset or split that it lacks.
    """
    content = _object(path)
    model = content.get("mteb_model_meta")
    if not isinstance(model, dict):
        raise InputError(path, "expected predictions of mteb, found no mteb_model_meta")
    parts = _part(path, {key: value for key, value in content.items() if key != "mteb_model_meta"}, "subset", subset)
    predictions = _part(path, parts, "split", split)
    return as_run(predictions, name or str(model.get("model_name", "run")), what=os.fspath(path))


@checked
def read_results(
    path: str | os.PathLike[str], *, subset: str | None = None, split: str | None = None
) -> dict[str, float]:
    """What mteb reports of a task, by measure: ``{"nDCG@10": 0.31, …}``, from a results file ``TASK.json``.

    Args:
        path: The file in mteb's folder of results.
        subset: The subset of the task; needed where there are several.
        split: The split; needed where there are several.

    Raises:
        InputError: For a file that is none of results, and for a subset or split that it lacks.
    """
    scores = _object(path).get("scores")
    if not isinstance(scores, dict):
        raise InputError(path, "expected results of mteb, found no scores")
    entries = _part(path, scores, "split", split)
    by_subset = {entry["hf_subset"]: entry for entry in entries}
    reported = _part(path, by_subset, "subset", subset)
    names = {score: measure_named(score) for score in reported}
    return {name: float(reported[score]) for score, name in names.items() if name is not None}


def audit(
    predictions: RunLike | Mapping[str, RunLike],
    relevant: Any,
    *,
    measures: str = "nDCG@10",
    baseline: str | None = None,
    subset: str | None = None,
    split: str | None = None,
    **settings: Any,
) -> AuditResult:
    """The scores of one or several models on a task of mteb, with intervals and comparisons.

    Args:
        predictions: A file of predictions, or several by name; runs too.
        relevant: The task of mteb, loaded, or its judgements in any form of ``qrels``.
        measures: See :func:`evenrank.audit`; mteb's names are read by :func:`measure_named`.
        baseline: The name of the model to compare the others with.
        subset: The subset of the task; needed where there are several.
        split: The split; needed where there are several.
        **settings: Further arguments of :func:`evenrank.audit`, such as ``collection`` for bias beside effectiveness.

    Returns:
        The audit; a query that no model has a prediction for is not in it.

    Raises:
        EvenrankError: For a task without the subset or the split, and as :func:`evenrank.audit`.
    """
    named = predictions if runs_by_name(predictions) else {"run": predictions}
    runs = {}
    for name, given in named.items():
        run = read_predictions(given, subset=subset, split=split) if is_path(given) else as_run(given)
        scores = pl.col("score").cast(pl.Float32).cast(pl.Float64)
        runs[name] = Run.from_table(run.table.with_columns(scores), name)
    judged = relevant
    if hasattr(relevant, "dataset"):
        if not relevant.dataset:
            raise EvenrankError("`relevant`: the task is not loaded: task.load_data()")
        judged = _part("`relevant`", _part("`relevant`", relevant.dataset, "subset", subset), "split", split)
        judged = judged["relevant_docs"]
    qrels = as_qrels(judged, "`relevant`")
    predicted = pl.concat([run.queries for run in runs.values()]).unique()
    qrels = qrels.filter(pl.col("query_id").is_in(predicted.implode()))
    return audit_runs(runs, qrels=qrels, measures=measures, baseline=baseline, **settings)


def _object(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, str(error.strerror)) from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(path, "expected a JSON object of mteb")
    return content


def _part(source: str | os.PathLike[str], parts: Mapping[str, Any], kind: str, wanted: str | None) -> Any:
    """The part that is wanted, or the only one. Raises InputError that says which are there."""
    if wanted is None and len(parts) == 1:
        return next(iter(parts.values()))
    if wanted is None or wanted not in parts:
        raise InputError(source, f"expected a {kind} of {', '.join(parts) or 'none'}, found {wanted}")
    return parts[wanted]
