"""``evenrank experiment``: a paper's tables and figures, measured and published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="ibbr, sampling, position or expansion.")],
    scale: Annotated[
        str, typer.Option("--scale", help="tiny: the built-in collection, on a CPU; full: the published data.")
    ] = "tiny",
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of seeds for the main rows.")] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", help="Folder (default: experiments/NAME-SCALE); an interrupted run resumes."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Parallel trainings (tiny: one per core, up to 8; full: 1).")
    ] = None,
    quiet: _options.Quiet = False,
) -> None:
    """Run a paper's experiment: print its tables, and write JSON, CSV and a report."""
    from evenrank import run_experiment

    folder = Path(out or f"experiments/{name}-{scale}")
    say = (lambda _: None) if quiet else (lambda text: _output.say(text, err=True))
    page = run_experiment(name, scale=scale, seeds=seeds, folder=folder, jobs=jobs, say=say)
    _output.say(page.text())
    _output.say(str(folder / "report.html"))
