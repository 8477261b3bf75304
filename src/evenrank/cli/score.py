"""``evenrank score``: which groups each document of a collection is about, from its words or from labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(
    out: Annotated[str, typer.Option("--out", help="The group table to write (Parquet; ray: a folder of parts).")],
    collection: _options.MaybeCollectionArgument = None,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    magnitudes: Annotated[
        str | None,
        typer.Option("--magnitudes", help="Some of count, bool, tf, tf_words, tf_literal. Default: tf bool tf_words."),
    ] = None,
    threshold: _options.OwnThreshold = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    quiet: _options.Quiet = False,
) -> None:
    """Count each group's words in every document, or take its labels: magnitudes and neutrality, as a Parquet table."""
    from evenrank import EvenrankError, Scoring, load_lexicon, score_collection, score_labels
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io import check_apart
    from evenrank.io.wording import counted

    if engine == "local" and workers is not None:
        raise EvenrankError("`workers` needs `engine='ray'`: locally, all cores are used")
    _output.refuse_standard(out)
    if labels is not None or neutral or group_column is not None:
        if engine != "local":
            raise EvenrankError(f"`labels` and `engine='{engine}'`: labels are read by this machine alone")
        known, of = score_labels(
            labels,
            out,
            collection=collection,
            neutral=neutral or (),
            group_column=group_column,
            poles=poles,
            words={"lexicon": lexicon, "tokens": tokens, "magnitudes": magnitudes, "threshold": threshold},
        )
        kept = f" of {of:,} have a label" if collection is not None else " labelled"
        _output.say(f"{counted(known, 'document')}{kept}: {out}", err=True)
        return
    if collection is None:
        raise EvenrankError("expected `collection` or `labels`, found neither")
    cluster = Cluster(parse_workers(workers), cpus)
    # The library sees the words of a lexicon, not its file.
    check_apart([out], [lexicon])
    by_words = Scoring(
        load_lexicon(lexicon or "gender-en", poles=poles),
        tokens or "word",
        threshold=1 if threshold is None else threshold,
    )
    if magnitudes is not None:
        by_words = replace(by_words, magnitudes=tuple(magnitudes.split()))  # type: ignore[arg-type]
    rows = score_collection(collection, out, by_words, engine=engine, cluster=cluster, quiet=quiet)
    _output.say(f"{counted(rows, 'document')} scored: {out}", err=True)
