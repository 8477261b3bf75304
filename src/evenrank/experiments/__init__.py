"""Reproductions of the papers: every table and figure, measured and published."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from evenrank.io import EvenrankError, Provenance
from evenrank.io.errors import quoted, require_neural
from evenrank.io.ranges import check_ranges

if TYPE_CHECKING:
    from .paper_page import ExperimentPage

_READ = ("*.tsv", "*.qrels", "qrels.txt", "clicks.txt", "annotated.csv", "*.run", "*-v2.0.json", "vectors.*")
_MSMARCO = ("irds:msmarco-passage", "ir_datasets, by name")
_PUBLIC = {
    "ibbr": _MSMARCO,
    "sampling": _MSMARCO,
    "position": _MSMARCO,
    "expansion": ("irds:disks45/nocr/trec-robust-2004", "ir_datasets, by name"),
}
NAMES = ("ibbr", "sampling", "position", "expansion")
SCALES = ("tiny", "full")


def run_experiment(
    name: str,
    *,
    scale: str = "tiny",
    seeds: int | None = None,
    folder: Path,
    jobs: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ExperimentPage:
    """Runs an experiment in ``folder``, and writes ``results.json``, a CSV per table and ``report.html`` to it.

    ``seeds``: their number, from seed 0; None: that of the scale. ``jobs``: parallel trainings, each a process of one
    thread; None: at ``tiny`` one per core (at most 8), otherwise 1. An interrupted run resumes in the same ``folder``.
    Raises EvenrankError for an unknown name or scale, and for a folder begun with other settings.
    """
    require_neural("an experiment")
    if name not in NAMES:
        raise EvenrankError(f"experiment: expected one of {', '.join(NAMES)}, found {quoted(name)}")
    if scale not in SCALES:
        raise EvenrankError(f"`scale`: expected one of {', '.join(SCALES)}, found {quoted(scale)}")
    check_ranges(seeds=seeds, jobs=jobs)
    from dataclasses import replace

    # By name: each pair of modules has functions for settings of its own type.
    experiment = import_module(f".{name}_paper", __name__)
    setup = import_module(f".{name}_setup", __name__)
    settings = setup.tiny() if scale == "tiny" else setup.full()
    if seeds is not None:
        settings = replace(settings, seeds=tuple(range(seeds)))
    if jobs is None:
        jobs = min(os.cpu_count() or 1, 8) if scale == "tiny" else 1
    # expansion does not train rankers.
    made = Provenance("evenrank.experiments.run_experiment")
    page: ExperimentPage = experiment.run(settings, folder, say, *(() if name == "expansion" else (jobs,)))
    page = replace(page, provenance=_sources(made, folder, settings.planted is None, name))
    page.write(folder)
    return page


def _sources(made: Provenance, folder: Path, published: bool, name: str) -> Provenance:
    """The provenance of an experiment: its settings, public data by name, and the files in its folder that were read.

    Recorded at the end, because the steps themselves write most of these files.
    """
    made.add("settings", folder / "settings.json")
    if published:
        made.name("public data", *_PUBLIC[name])
    kept = {file for pattern in _READ for file in folder.rglob(pattern) if file.is_file()}
    return made.add_files("collections, queries, judgements and runs", str(folder), sorted(kept))
