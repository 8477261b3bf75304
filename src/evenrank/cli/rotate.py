"""``evenrank rotate``: position debiasing of a collection."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from evenrank._wording import counted

from . import _options, _output


@_options.in_range
def command(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="TSV, JSONL, Parquet or irds:NAME.")],
    out: Annotated[
        str, typer.Option("--out", help="The collection to write: TSV, .jsonl or .parquet (ray: a folder).")
    ],
    answers: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Answers in these documents: their spans move along.")
    ] = None,
    answers_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the moved answers go (OUT.answers.json).")
    ] = None,
    mode: Annotated[str, typer.Option(help="Cut at any word, or where a sentence begins: word or sentence.")] = "word",
    seed: Annotated[int, typer.Option(help="A document's cut depends on it and on the id alone.")] = 0,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    quiet: _options.Quiet = False,
) -> None:
    """Turn every document's words round at a random place, so that where an answer stands says nothing."""
    from evenrank.io import EvenrankError
    from evenrank.io.ray_engine import Cluster, parse_workers
    from evenrank.mitigation.rotation import rotate_collection

    cluster = Cluster(parse_workers(workers), cpus)
    if engine == "local" and isinstance(cluster.workers, tuple):
        raise EvenrankError(f"--workers: two numbers need --engine ray, found {workers}")
    if answers_out is not None and answers is None:
        raise EvenrankError("--answers-out needs --answers")
    if answers is not None and answers_out is None:
        answers_out = f"{out}.answers.json"
    _output.check(out if engine == "local" else None, answers_out, f"{out}.manifest.json")
    found = rotate_collection(
        collection,
        out,
        answers=answers,
        answers_out=answers_out,
        mode=cast(Any, mode),
        seed=seed,
        workers=None if isinstance(cluster.workers, tuple) else cluster.workers,
        engine=cast(Any, engine),
        cluster=cluster,
        quiet=quiet,
    )
    _output.say(f"{counted(found.documents, 'document')} rotated ({found.unmoved} left as written): {out}", err=True)
    if found.answers is not None:
        _output.say(
            f"{counted(found.answers, 'answer')} moved along, {found.split} split and left out: {answers_out}", err=True
        )
    for note in found.notes:
        _output.say(note, err=True)
