"""A run's figures with their intervals as other tools keep them: flat names, and the forms of the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError
from evenrank.files.wording import counted
from evenrank.results.table import Interval

from .audit_result import AuditResult
from .data import RunAudit


def named_figure(name: str, value: float | None, ends: Interval | None) -> Iterator[tuple[str, float]]:
    """A figure as ``NAME``, ``NAME/low`` and ``NAME/high``: what is undefined is left out."""
    if value is not None:
        yield name, value
    if value is not None and ends is not None:
        yield f"{name}/low", ends[0]
        yield f"{name}/high", ends[1]


def run_figures(run: RunAudit) -> dict[str, float]:
    """All figures of a run."""
    return dict(pair for name, one in run.figures.items() for pair in named_figure(name, one.mean, one.ci95))


@checked
def model_index(
    audited: AuditResult, run: str | None = None, *, model: str, dataset: str, dataset_name: str | None = None
) -> list[dict[str, object]]:
    """A run's figures as ``model-index``, the form of results in the metadata of a model card on the Hub.

    Args:
        run: Which run; by default the only one.
        model: The model's name; ``dataset``: the id of the data on the Hub, or another name; ``dataset_name``: what
            is shown for it.

    >>> huggingface_hub.metadata_update(repo, {"model-index": model_index(...)})  # doctest: +SKIP
    """
    metrics = [{"type": name, "name": name, "value": value} for name, value in run_figures(_run(audited, run)).items()]
    data = {"type": dataset, "name": dataset_name or dataset}
    return [{"name": model, "results": [{"task": {"type": "text-ranking"}, "dataset": data, "metrics": metrics}]}]


@checked
def eval_results(
    audited: AuditResult, run: str | None = None, *, dataset: str, tasks: Mapping[str, str]
) -> list[dict[str, object]]:
    """A run's figures as the Hub reads them from ``.eval_results/NAME.yaml``, for a benchmark's leaderboard.

    Args:
        run: Which run; by default the only one.
        dataset: The benchmark's id on the Hub; ``tasks``: the id of its task for each measure to report. An interval
            stands in the notes, as the form has no other place for it.

    >>> path.write_text(json.dumps(eval_results(...)))  # JSON is YAML  # doctest: +SKIP
    """
    entries: list[dict[str, object]] = []
    for measure, task in tasks.items():
        figure = _run(audited, run)[measure]
        if figure.mean is None:
            raise EvenrankError(f"{measure} has no value")
        ends = "" if figure.ci95 is None else f"95% interval [{figure.ci95[0]:.4f}, {figure.ci95[1]:.4f}], "
        notes = f"{ends}{counted(figure.n, 'query')}"
        entries.append({"dataset": {"id": dataset, "task_id": task}, "value": figure.mean, "notes": notes})
    return entries


def _run(audited: AuditResult, run: str | None) -> RunAudit:
    if run is not None:
        return audited[run]
    if len(audited.given) > 1:
        raise EvenrankError(f"`run`: expected one of {', '.join(one.name for one in audited.given)}")
    return audited.given[0]
