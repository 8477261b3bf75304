"""The model card: what was trained, how well it ranks, and the bias of its validation run."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenrank._version import __version__
from evenrank.auditing import AuditResult
from evenrank.auditing.compute import audit
from evenrank.files import Provenance, Run, write_text
from evenrank.files.arguments import checked
from evenrank.files.errors import plain
from evenrank.files.wording import counted
from evenrank.models.load import downloaded_model
from evenrank.stats.estimate import SIGNIFICANT

from .choice import Validation
from .lists import label_lines

LOST = 0.2
"""The share of its base's utility beyond whose loss a card opens with a warning."""


def ruined(
    value: float, first_stage: float | None, base: float | None = None, *, measure: str = "utility", shown: bool = True
) -> str:
    """A sentence if a ranker is shown to be below the first stage, or is more than 20% below its base; otherwise empty.

    ``value``: its validation ``measure``; ``first_stage``: that of the run that it re-ranks, and ``shown``: whether
    the difference from it is; ``base``: that of the ranker which training continued from. A base of 0 cannot be fallen
    below, and None or NaN is unknown.

    >>> ruined(0.535, 0.41, 0.963, measure="RR")
    "This ranker has lost 44% of its base's RR on these queries (0.9630 to 0.5350)."
    >>> ruined(0.95, 0.41, 0.963, measure="RR"), ruined(0.40, 0.41, measure="RR", shown=False)
    ('', '')
    """
    lost = base is not None and value < (1 - LOST) * base
    below = shown and first_stage is not None and value < first_stage
    if lost:
        assert base is not None
        worse = f", and ranks worse than no ranker (below the first stage, {first_stage:.4f})" if below else ""
        share, figures = f"{1 - value / base:.0%}", f"({base:.4f} to {value:.4f})"
        return f"This ranker has lost {share} of its base's {measure} on these queries {figures}{worse}."
    if below:
        return (
            f"This ranker ranks worse than no ranker: {measure} {value:.4f}, below the first stage ({first_stage:.4f})."
        )
    return ""


def warning(result: Mapping[str, Any]) -> str:
    """:func:`ruined` from the figures of a ``result.json``."""
    p = result.get("p")
    shown = p is not None and p < SIGNIFICANT
    return ruined(result["value"], result["first_stage"], result.get("base"), measure=result["measure"], shown=shown)


def tested(result: Mapping[str, Any]) -> str:
    """What the paired test against the first stage shows, in words; empty if a ``result.json`` has none."""
    if "queries" not in result:
        return ""
    n, p = counted(result["queries"], "query"), result["p"]
    if p is None:
        return f"too few queries differ from the first stage for a test ({n})"
    if p >= SIGNIFICANT:
        verdict = "not significantly different from"
    else:
        verdict = "significantly worse than" if result["value"] < result["first_stage"] else "significantly better than"
    return f"{verdict} the first stage (p {'< 0.001' if p < 0.0005 else f'= {p:.3f}'}, {n})"


_TASKS = {"dot": "sentence-similarity", "sparse": "feature-extraction"}
"""What the Hub calls the task of a ranker's kind; of others it is text-ranking."""
_LIBRARY = {"cat": "CrossEncoder", "dot": "SentenceTransformer", "sparse": "SparseEncoder"}


@dataclass(frozen=True, slots=True)
class Origin:
    """What a card says that a model was made from: a training's name, its ranker's kind and base, and its settings."""

    name: str
    kind: str
    base: str | None
    settings: str
    """As TOML."""


def audit_validation(
    name: str, validation: Validation, run: Run, made: Provenance, folder: Path, collection: str | None = None
) -> AuditResult:
    """The audit of a validation run, ``name``, against its first stage, which is also written as ``audit.json``.

    By labels if the validation has any (the first of several), else by ``gender-en`` in the texts of ``collection``,
    else by the validation's first attribute; without any, of effectiveness alone.
    """
    labels = next((table for table in validation.tables if table.labelled), None)
    scores = labels or (None if collection else next(iter(validation.tables), None))
    audited = audit(
        {"first stage": validation.run, name: run},
        collection=None if labels else collection,
        scores=scores,
        measures=None if scores or collection else validation.measure,
        qrels=validation.judged,
        baseline="first stage",
        unknown="skip" if labels else None,
        provenance=made,
    )
    audited.to_json(folder / "audit.json")
    return audited


def write_card(
    origin: Origin,
    folder: Path,
    result: Mapping[str, Any],
    made: Provenance,
    audited: AuditResult | None = None,
    *,
    labelled: bool = False,
) -> None:
    """Writes ``model/README.md``: of a validated ranker, of one that was not, or of a distilled encoder; ``labelled``:
    whether the validation run is audited by labels."""
    what, heading = f"A `{origin.kind}` ranker trained with evenrank {__version__}.", "Training"
    on, task, metrics = "validation queries", "text-ranking", dict[str, float]()
    section = """## Bias

Neither validated nor audited: `evenrank rerank`, then `evenrank audit`.
"""
    if "teacher" in result:
        teacher = plain(result["teacher"]).replace("`", "'")
        what = f"A bi-encoder that learned the vectors of `{teacher}` with evenrank {__version__}, without labels."
        heading, on, task = "Agreement with the teacher", "texts held out", "feature-extraction"
        metrics = {result["measure"]: result["value"]}
        section = """## Bias

It takes over what its teacher prefers, and was not audited: `evenrank rerank`, then `evenrank audit`. It knows the
texts that it learned from, and ranks them better than others.
"""
    elif audited is not None:
        heading, metrics = "Effectiveness", audited[origin.name].metrics()
        by_labels = skip = ""
        if labelled:
            by_labels = ", by their labels; those without one are left out of the measures of bias"
            skip = " --unknown skip"
        section = f"""## Audit of the validation run

Over all passages of the run, including those that were not re-ranked{by_labels}. `evenrank audit` computes the same
figures from the first stage and `validation.run`, with the queries of `validation.run` and `--only-queries{skip}`.

```
{audited.table()}
```
"""
    # The form of results in the metadata of a model card on the Hub.
    figures = [{"type": metric, "name": metric, "value": value} for metric, value in metrics.items()]
    validated = {"task": {"type": task}, "dataset": {"type": "validation", "name": on}, "metrics": figures}
    index = [{"name": origin.name, "results": [validated]}]
    lines = summary_of(result)
    for name, (acted, steps) in result.get("fair_steps", {}).items():
        lines.append(f"the fairness term ({name}) acted in {acted:,} of {counted(steps, 'step')}")
    lines += [result[name] for name in ("reads", "replaced") if name in result]
    # A model that is worse than none says so first.
    first = f"**{lines.pop(0)}**\n\n" if "first_stage" in result and warning(result) else ""
    listed = "\n".join(f"- {line}" for line in lines)
    text = f"""---
library_name: {"sentence-transformers" if origin.kind in _LIBRARY else "evenrank"}
pipeline_tag: {_TASKS.get(origin.kind, "text-ranking")}
{_inherited(origin.base)}
tags: [evenrank, ranking, {origin.kind}]
model-index: {json.dumps(index)}
---

# {origin.name}

{first}{what}

```python
{_usage(origin.kind)}
```

## {heading}

{listed}
- {result["steps"]} steps

{section}
## Settings

```toml
{origin.settings}```

## Provenance

```
{_provenance(made.to_dict())}
```
"""
    write_text(folder / "model" / "README.md", text)


@checked
def training_summary(folder: str | os.PathLike[str]) -> list[str]:
    """A finished run in lines: effectiveness and bias of the validation run, before and after.

    Of a distilled encoder, which is not audited, how near it has come to its teacher.
    """
    folder = Path(folder)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    lines = summary_of(result)
    if not (folder / "audit.json").is_file():
        return lines
    runs = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["runs"]
    first, trained = list(runs.values())[:2]
    for measure in ("NFaiRR@10", "ARaB@10"):
        values = [run["measures"].get(measure, {}).get("mean") for run in (trained, first)]
        if None not in values:
            better = "higher is better" if measure.startswith("N") else "nearer 0 is better"
            lines.append(f"{measure}: {values[0]:.4f}, first stage: {values[1]:.4f} ({better})")
    return lines


def summary_of(result: Mapping[str, Any]) -> list[str]:
    """The lines of :func:`training_summary` from the figures of a ``result.json``."""
    checkpoint = [f"checkpoint: {result['checkpoint']['why']}"] if "checkpoint" in result else []
    if "teacher" in result:
        agreed = (
            f"cosine with the vectors of {result['teacher']}: {result['value']:.4f} on average over"
            f" {counted(result['held_out'], 'text')} held out, {result['before']:.4f} before training (1 is the same)"
        )
        return [agreed, *checkpoint]
    lines = []
    if "value" in result:
        measure, value, verdict = result["measure"], result["value"], tested(result)
        lines += [line for line in [warning(result)] if line]
        lines.append(
            f"{measure}: {value:.4f} after re-ranking the first {result['depth']} passages, {result['first_stage']:.4f}"
            f" before{f'; {verdict}' if verdict else ''}"
        )
    if "base" in result:
        lines.append(
            f"{result['measure']} of its base, the ranker that this training continued from: {result['base']:.4f}"
        )
    for name, bias in result.get("delta_aprf", {}).items():
        first = result["delta_aprf_first_stage"][name]
        lines.append(f"ΔA-PRF ({name}): {_figure(bias)}, first stage: {_figure(first)} (nearer 0 is better)")
    lines += label_lines(result.get("labels", {}))
    leakage = result.get("leakage", {})
    if "after" in leakage:
        first, last = (leakage[when]["balanced_accuracy"] for when in ("before", "after"))
        lines.append(
            f"balanced accuracy of an attack: {_figure(last)}, before training {_figure(first)} (0.5 is chance)"
        )
    return lines + checkpoint


def _usage(kind: str) -> str:
    """The lines of Python that load a ranker of this kind."""
    library = _LIBRARY.get(kind)
    package, loaded = "sentence_transformers", f"{library}("
    if not library:
        package, library = "evenrank.models.protocol", "ranker_class"
        loaded = f'ranker_class("{kind}").load('
    usage = f'from {package} import {library}\n\nmodel = {loaded}"PATH OF THIS FOLDER")'
    if kind in _TASKS:
        # encode() takes the same prompt and tower for both.
        usage += '\nqueries, passages = model.encode_query(["a query"]), model.encode_document(["a passage"])'
    return usage


def _figure(value: float | None) -> str:
    return "undefined" if value is None or math.isnan(value) else f"{value:.4f}"


def _inherited(model: str | None) -> str:
    """The lines ``base_model`` and ``license``, from a base's name on the Hub and its own card."""
    folder = None
    if model is not None:
        folder = Path(model) if Path(model).is_dir() else downloaded_model(model)
    card = folder / "README.md" if folder is not None else None
    text = card.read_text(encoding="utf-8", errors="replace") if card is not None and card.is_file() else ""
    metadata = text.split("\n---", 1)[0] if text.startswith("---\n") else ""
    inherited = dict(re.findall(r"^(base_model|license): *([^\s#]+) *$", metadata, re.MULTILINE))
    if model is not None and not Path(model).is_dir():
        # The path of a folder means nothing elsewhere.
        inherited["base_model"] = json.dumps(model)
    return "\n".join(f"{key}: {value}" for key, value in sorted({"license": "unknown", **inherited}.items()))


def _provenance(made: dict[str, Any]) -> str:
    """How the model was made; no value can end its line."""
    lines = [f"command: {made['command']}", f"date: {made['date']}", f"platform: {made['platform']}"]
    lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in made["versions"].items()))
    for file in made["files"]:
        digest = f"sha256 {file['sha256']}" if file.get("sha256") else file.get("note", "changed since it was read")
        lines.append(f"{file['role']}: {file['path']} ({digest})")
    return "\n".join(plain(line).replace("`", "'") for line in lines)
