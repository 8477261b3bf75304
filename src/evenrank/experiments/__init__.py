"""The experiments of the papers: every table and figure, measured beside published."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenrank.io import EvenrankError, Provenance
from evenrank.io.errors import shown
from evenrank.io.ranges import check_ranges

if TYPE_CHECKING:
    from .page import Page

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
) -> Page:
    """Runs an experiment in ``folder`` and writes ``results.json``, a CSV for each table and ``report.html`` there.

    ``seeds``: how many, from 0; None: as many as the scale has. ``jobs``: trainings at a time, each a process of one
    thread; None: at ``tiny`` one for each core (8 at most), else 1. What is finished in ``folder`` is not done again.
    Raises EvenrankError for an unknown name or scale, and for a folder that was begun with other settings.
    """
    if name not in NAMES:
        raise EvenrankError(f"experiment: expected one of {', '.join(NAMES)}, found {shown(name)}")
    if scale not in SCALES:
        raise EvenrankError(f"`scale`: expected one of {', '.join(SCALES)}, found {shown(scale)}")
    check_ranges(seeds=seeds, jobs=jobs)
    from dataclasses import replace

    from . import expansion, expansion_setup, ibbr, ibbr_setup, position, position_setup, sampling, sampling_setup

    chosen: Any = {"ibbr": (ibbr, ibbr_setup), "sampling": (sampling, sampling_setup)}
    chosen |= {"position": (position, position_setup), "expansion": (expansion, expansion_setup)}
    experiment, setup = chosen[name]
    settings = setup.tiny() if scale == "tiny" else setup.full()
    if seeds is not None:
        settings = replace(settings, seeds=tuple(range(seeds)))
    if jobs is None:
        jobs = min(os.cpu_count() or 1, 8) if scale == "tiny" else 1
    # expansion trains no ranker.
    made = Provenance("evenrank.experiments.run_experiment")
    page: Page = experiment.run(settings, folder, say, *(() if name == "expansion" else (jobs,)))
    page = replace(page, provenance=_sources(made, folder, settings.planted is None, name))
    page.write(folder)
    return page


def _sources(made: Provenance, folder: Path, published: bool, name: str) -> Provenance:
    """What an experiment was made from: its settings, public data by name, and the files of its folder that were read.

    Noted at the end, as the steps write most of these files themselves.
    """
    made.add("settings", folder / "settings.json")
    if published:
        made.name("public data", *_PUBLIC[name])
    kept = {file for pattern in _READ for file in folder.rglob(pattern) if file.is_file()}
    return made.add_files("collections, queries, judgements and runs", str(folder), sorted(kept))
