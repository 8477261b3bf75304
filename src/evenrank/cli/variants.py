"""``evenrank variants``: the same passages with one thing changed."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import _options, _output


@_options.in_range
def command(
    collection: _options.CollectionArgument,
    kind: Annotated[
        str,
        typer.Option(
            help="swap, neutral, rotate, padded, brief, early, late, foil, repeated, or placebo (of one of them)."
        ),
    ],
    out: Annotated[
        str,
        typer.Option("--out", help="The variant to write: .jsonl, .parquet, or TSV if it does not depend on queries."),
    ],
    of: Annotated[
        str | None,
        typer.Option(help="placebo: of swap, neutral, early, late, foil or repeated (default: swap).", metavar="KIND"),
    ] = None,
    form: Annotated[
        Literal["synonym", "name", "spacing", "any"] | None,
        typer.Option(parser=_options.text, help="placebo of swap or neutral: what it changes instead (default: any)."),
    ] = None,
    lexicon: _options.Lexicon = "gender-en",
    answers: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="brief, early, late, foil: answers in these documents.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="repeated: the queries: TSV, JSONL, Parquet or irds:NAME.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="repeated: the run whose passages are changed.")] = None,
    qrels: Annotated[str | None, typer.Option(help="repeated: judgements, instead of a run.")] = None,
    depth: Annotated[int, typer.Option(help="Ranks of the run.")] = 100,
    mode: Annotated[
        Literal["word", "sentence"] | None,
        typer.Option(
            parser=_options.text, help="rotate: cut before any word, or only where a sentence begins (the default)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="What is drawn depends only on the seed and the ids.")] = 0,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    quiet: _options.Quiet = False,
) -> None:
    """Make a variant of a collection: the same passages with one thing changed, to see what a ranker makes of it."""
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io import EvenrankError
    from evenrank.probes.variants import variants

    cluster = Cluster(parse_workers(workers), cpus)
    if engine == "local" and isinstance(cluster.workers, tuple):
        raise EvenrankError(f"`workers`: two numbers need `engine='ray'`, found {workers}")
    _output.refuse_standard(out)
    done = variants(
        collection,
        kind,
        out,
        of=of,
        form=form,
        lexicon=lexicon,
        answers=answers,
        queries=queries,
        run=run,
        qrels=qrels,
        depth=depth,
        mode=mode,
        seed=seed,
        workers=None if isinstance(cluster.workers, tuple) else cluster.workers,
        engine=engine,
        cluster=cluster,
        quiet=quiet,
    )
    _output.say(f"{done.summary()}: {out}", err=True)
    for note in done.notes:
        _output.say(note, err=True)
