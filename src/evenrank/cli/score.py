"""``evenrank score``: what every document of a collection says of each group."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from evenrank._wording import counted

from . import _options, _output


@_options.in_range
def command(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="TSV (id, tab, text), JSONL, Parquet or irds:NAME.")
    ],
    out: Annotated[str, typer.Option("--out", help="The score table to write (Parquet; ray: a folder of parts).")],
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
    from evenrank.groups import Scoring, load_lexicon, score_collection
    from evenrank.io import EvenrankError, check_apart
    from evenrank.io.ray_engine import Cluster, parse_workers

    if engine == "local":
        if workers is not None:
            raise EvenrankError("--workers needs --engine ray: locally all cores are used")
        _output.check(out)
    check_apart([out], [collection, lexicon])
    cluster = Cluster(parse_workers(workers), cpus)
    scoring = Scoring(
        load_lexicon(lexicon, poles=poles), cast(Any, tokens), cast(Any, tuple(magnitudes.split())), threshold
    )
    rows = score_collection(collection, out, scoring, engine=cast(Any, engine), cluster=cluster, quiet=quiet)
    _output.say(f"{counted(rows, 'document')} scored: {out}", err=True)
