"""Reproductions of the papers: every table and figure, measured and published."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from evenrank import options as opt
from evenrank.files import FAST, Provenance, checked, require, require_neural

from .checks import Need, Options, check, described

if TYPE_CHECKING:
    from .report import ExperimentPage
    from .study import Study

_READ = ("*.tsv", "*.qrels", "qrels.txt", "clicks.txt", "*.csv", "*.run", "*-v2.0.json", "fetched/*.json", "vectors.*")
ExperimentOptions = Options
NAMES = {"ibbr": "IBBRStudy", "sampling": "SamplingStudy", "position": "PositionStudy", "expansion": "ExpansionStudy"}
"""The experiments: of each the class in the module of its name."""
Name = Literal["ibbr", "sampling", "position", "expansion"]
Scale = Literal["tiny", "real", "full"]


@checked
def run_experiment(
    name: Annotated[Name, opt.Option("ibbr, sampling, position or expansion.", metavar="NAME")],
    *,
    scale: Annotated[
        Scale,
        opt.Option(
            "On a CPU: tiny (the built-in collection), real (real text and weights). On a GPU: full (as published).",
            metavar="NAME",
        ),
    ] = "tiny",
    seeds: Annotated[int | None, opt.Option("Number of seeds for the main rows.", range=opt.Range(1, 10_000))] = None,
    out: Annotated[
        opt.File | None,
        opt.Option(
            "Folder (default: experiments/NAME-SCALE); an interrupted run resumes.", metavar="DIR", panel="Output"
        ),
    ] = None,
    only: Annotated[
        Sequence[str],
        opt.Option(
            "A piece: a table (Table 3) or a ranker; can be repeated.",
            typed=list,
            metavar="TABLE|MODEL",
        ),
    ] = (),
    jobs: Annotated[
        int | None,
        opt.Option(
            "Parallel trainings (default: one per core, up to 8; full: 1).", range=opt.Range(1, 10_000), panel="Machine"
        ),
    ] = None,
    options: ExperimentOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ExperimentPage:
    """Run a paper's experiment, in small or in full. Its claims are decided, its tables written beside the published.

    ``out``: the folder of ``results.json``, ``values.parquet`` (every value by query, from which the verdicts
    are made), a CSV per table and ``report.html``. ``seeds``: their number, from the scale's first one; None: that of
    the scale. ``jobs``: parallel trainings, each a process of one thread; None: one per core (at most 8), but 1 at
    ``full``. ``options``: the user's own data and models. ``only``: the trainings of one table, of some rankers, or of
    these for it; the page then has what these give, and a run of the whole in the same folder takes them over. An
    interrupted run resumes in the same folder.

    Raises EvenrankError for an unknown name or scale, for a folder begun with other settings, and, before any work, for
    everything that is missing, one line each.
    """
    study = study_of(name, scale, seeds, out, options, say, only)
    from .report import page_of

    needs = study.needs()
    check(needs)
    if jobs is None:
        jobs = 1 if scale == "full" else min(os.cpu_count() or 1, 8)
    provenance = _inputs(Provenance("evenrank.papers.run_experiment"), needs)
    figures = study.run(jobs)
    page = replace(page_of(study, figures), provenance=_sources(provenance, study.folder))
    page.write(study.folder)
    return page


@checked
def check_experiment(
    name: Name,
    *,
    scale: Scale = "tiny",
    seeds: Annotated[int | None, opt.Range(1, 10_000)] = None,
    out: opt.File | None = None,
    only: Sequence[str] = (),
    options: ExperimentOptions | None = None,
) -> list[str]:
    """Looks up everything that an experiment needs; returns lines: each thing with its size, and the disk and time.

    Nothing is downloaded, trained or written. Raises EvenrankError as :func:`run_experiment`.
    """
    study = study_of(name, scale, seeds, out, options, only=only)
    needs = study.needs()
    check(needs)
    return described(needs, study.trainings(), study.about["disk"], study.about["time"])


def folder_of(name: str, scale: str, out: opt.File | None) -> Path:
    """The folder of an experiment."""
    return Path(f"experiments/{name}-{scale}" if out is None else out)


def study_of(
    name: str,
    scale: str = "tiny",
    seeds: int | None = None,
    out: opt.File | None = None,
    options: ExperimentOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
    only: Sequence[str] = (),
) -> Study[Any, Any]:
    """The study of a name with the settings of a scale. Raises EvenrankError for an unknown name, scale or piece."""
    require_neural("an experiment")
    require("an experiment", "all", *FAST, "Stemmer", "altair", "vl_convert", "pydantic", "tomli_w")
    kind: type[Study[Any, Any]] = getattr(import_module(f".{name}", __name__), NAMES[name])
    settings = kind.settings_of(scale, options or ExperimentOptions())
    if seeds is not None:
        settings = replace(settings, seeds=tuple(range(settings.seeds[0], settings.seeds[0] + seeds)))
    study = kind(settings, folder_of(name, scale, out), say)
    study.narrow(only)
    return study


def _inputs(made: Provenance, needs: Sequence[Need]) -> Provenance:
    """What an experiment needs, as its provenance records it before anything is read."""
    for need in needs:
        if need.kind == "model":
            made.add_model(need.purpose, need.name)
        elif need.kind == "file":
            made.add(need.purpose, need.name)
        elif need.kind in ("irds", "public"):
            note = "ir_datasets, by name" if need.kind == "irds" else "evenrank data fetch, checked by SHA-256"
            made.name(need.purpose, need.name, note)
    return made


def _sources(made: Provenance, folder: Path) -> Provenance:
    """The provenance of an experiment: its settings and the files in its folder that were read.

    Recorded at the end, because the steps themselves write most of these files.
    """
    made.add("settings", folder / "settings.json")
    files = {file for pattern in _READ for file in folder.rglob(pattern) if file.is_file()}
    outputs = {folder / "settings.json", folder / "results.json"}
    files -= {file for file in files if file in outputs or (file.parent == folder and file.suffix == ".csv")}
    return made.add_files("collections, queries, judgements and runs", str(folder), sorted(files))
