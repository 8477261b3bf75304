"""``evenrank experiment``: a paper's tables and figures, measured and published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options, _output
from .embeddings import Definitional, Equalize, Specific


@_options.in_range
def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="ibbr, sampling, position or expansion.")],
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="tiny: the built-in collection, on a CPU; real: real text and a small pre-trained encoder, on a CPU;"
            " full: the published data and settings.",
        ),
    ] = "tiny",
    check: Annotated[
        bool, typer.Option("--check", help="Only look up what the experiment needs, with sizes, disk and time.")
    ] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of seeds for the main rows.")] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", help="Folder (default: experiments/NAME-SCALE); an interrupted run resumes."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Parallel trainings (default: one per core, up to 8; full: 1).")
    ] = None,
    squad: Annotated[list[str] | None, typer.Option("--squad", help="A SQuAD 2.0 file; can be repeated.")] = None,
    grepbiasir: Annotated[
        str | None, typer.Option("--grepbiasir", help="Folder with Grep-BiasIR (default: fetched).")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="The small pre-trained encoder, a folder or a name on the hub.")
    ] = None,
    vectors: Annotated[str | None, typer.Option("--vectors", help="A file of word vectors.")] = None,
    debiased_vectors: Annotated[
        str | None, typer.Option("--debiased-vectors", help="expansion: the same vectors, debiased.")
    ] = None,
    definitional: Definitional = None,
    equalize: Equalize = None,
    specific: Specific = None,
    quiet: _options.Quiet = False,
) -> None:
    """Run a paper's experiment: print its tables, and write JSON, CSV and a report."""
    from evenrank import ExperimentOptions, check_experiment, run_experiment

    folder = Path(out or f"experiments/{name}-{scale}")
    options = ExperimentOptions(
        squad=tuple(squad or ()),
        grepbiasir=grepbiasir,
        encoder=encoder,
        vectors=vectors,
        debiased_vectors=debiased_vectors,
        definitional=definitional,
        equalize=equalize,
        specific=specific,
    )
    if check:
        for line in check_experiment(name, scale=scale, seeds=seeds, folder=folder, options=options):
            _output.say(line)
        return
    say = (lambda _: None) if quiet else (lambda text: _output.say(text, err=True))
    page = run_experiment(name, scale=scale, seeds=seeds, folder=folder, jobs=jobs, options=options, say=say)
    _output.say(page.table())
    _output.say(str(folder / "report.html"))
