"""``evenrank rotate``: position debiasing of a collection."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import _options, _output


@_options.in_range
def command(
    collection: _options.CollectionArgument,
    out: Annotated[
        str, typer.Option("--out", help="The collection to write: TSV, .jsonl or .parquet (ray: a folder).")
    ],
    answers: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Answers in these documents; their spans move along.")
    ] = None,
    answers_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where to write the moved answers (default: OUT.answers.json).")
    ] = None,
    mode: Annotated[
        Literal["word", "sentence"],
        typer.Option(parser=_options.text, help="Cut before any word, or only where a sentence begins."),
    ] = "word",
    seed: Annotated[int, typer.Option(help="A document's cut depends only on the seed and its id.")] = 0,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    quiet: _options.Quiet = False,
) -> None:
    """Rotate each document's words at a random position, so that an answer's position carries no information."""
    from evenrank import EvenrankError, rotate_collection
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io.wording import counted

    cluster = Cluster(parse_workers(workers), cpus)
    if engine == "local" and isinstance(cluster.workers, tuple):
        raise EvenrankError(f"`workers`: two numbers need `engine='ray'`, found {workers}")
    if answers_out is not None and answers is None:
        raise EvenrankError("`answers_out` needs `answers`")
    if answers is not None and answers_out is None:
        answers_out = f"{out}.answers.json"
    _output.refuse_standard(out, answers_out)
    done = rotate_collection(
        collection,
        out,
        answers=answers,
        answers_out=answers_out,
        mode=mode,
        seed=seed,
        workers=None if isinstance(cluster.workers, tuple) else cluster.workers,
        engine=engine,
        cluster=cluster,
        quiet=quiet,
    )
    _output.say(f"{counted(done.documents, 'document')} rotated ({done.unmoved} unchanged): {out}", err=True)
    if done.answers is not None:
        _output.say(
            f"{counted(done.answers, 'answer')} moved along, {done.split} split and left out: {answers_out}", err=True
        )
    for note in done.notes:
        _output.say(note, err=True)
