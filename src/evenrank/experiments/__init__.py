"""The experiments of the papers: every table and figure, measured beside published."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenrank.io import EvenrankError
from evenrank.io.errors import shown

if TYPE_CHECKING:
    from .page import Page

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
        raise EvenrankError(f"--scale: expected one of {', '.join(SCALES)}, found {shown(scale)}")
    if seeds is not None and seeds < 1:
        raise EvenrankError(f"--seeds: expected 1 or more, found {seeds}")
    if jobs is not None and jobs < 1:
        raise EvenrankError(f"--jobs: expected 1 or more, found {jobs}")
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
    page: Page = experiment.run(settings, folder, say, *(() if name == "expansion" else (jobs,)))
    page.write(folder)
    return page
