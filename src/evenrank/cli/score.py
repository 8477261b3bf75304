"""``evenrank score``: how often each document of a collection mentions each group."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(  # parameters: the options
    collection: _options.CollectionArgument,
    out: Annotated[str, typer.Option("--out", help="The group table to write (Parquet; ray: a folder of parts).")],
    lexicon: _options.Lexicon = "gender-en",
    poles: _options.Poles = None,
    tokens: _options.Tokens = "word",
    magnitudes: Annotated[
        str, typer.Option("--magnitudes", help="Some of count, bool, tf, tf_words, tf_literal.")
    ] = "tf bool tf_words",
    threshold: _options.Threshold = 1,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    quiet: _options.Quiet = False,
) -> None:
    """Count each group's words in every document: magnitudes and neutrality, as a Parquet table."""
    from evenrank import EvenrankError, Scoring, load_lexicon, score_collection
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io import check_apart
    from evenrank.io.wording import counted

    if engine == "local" and workers is not None:
        raise EvenrankError("`workers` needs `engine='ray'`: locally, all cores are used")
    cluster = Cluster(parse_workers(workers), cpus)
    _output.refuse_standard(out)
    # The library sees the words of a lexicon, not its file.
    check_apart([out], [lexicon])
    chosen = tuple(magnitudes.split())
    scoring = Scoring(load_lexicon(lexicon, poles=poles), tokens, chosen, threshold)  # type: ignore[arg-type]
    rows = score_collection(collection, out, scoring, engine=engine, cluster=cluster, quiet=quiet)
    _output.say(f"{counted(rows, 'document')} scored: {out}", err=True)
