"""``evenrank negatives``: training data with bias-aware negatives."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import _options, _output

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The first-stage run (TREC), with each query's lines together.")
]
Beta = Annotated[
    Literal["abs_tf", "count", "one_minus_neutrality"],
    typer.Option("--beta", parser=_options.text, help="How bias is measured."),
]
GenderedOnly = Annotated[
    bool, typer.Option("--gendered-only", help="Choose no document without bias as a biased negative.")
]
Format = Annotated[
    Literal["groups", "labeled-list", "labeled-pair", "n-tuple"],
    typer.Option(
        "--format",
        parser=_options.text,
        help="groups: for evenrank train; the others: for sentence-transformers.",
    ),
]


@_options.in_range
def command(
    run: RunArgument,
    qrels: Annotated[str, typer.Option("--qrels", help="TREC qrels or irds:NAME.")],
    out: Annotated[str, typer.Option("--out", help="The file to write: .parquet or .jsonl.")],
    collection: _options.MaybeCollection = None,
    queries: _options.MaybeQueries = None,
    n: Annotated[int, typer.Option("--n", help="Negatives per query.")] = 20,
    share: Annotated[float, typer.Option("--share", help="Share of them chosen by bias; 0: all at random.")] = 0.6,
    beta: Beta = "abs_tf",
    depth: Annotated[int, typer.Option("--depth", help="Documents of each query to sample from.")] = 1000,
    gendered_only: GenderedOnly = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random negatives.")] = 0,
    format: Format = "groups",
    scores: _options.GroupTable = None,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    quiet: _options.Quiet = False,
) -> None:
    """Sample negatives by their bias and at random; OUT.manifest.json and .parquet count them."""
    from evenrank import write_negatives
    from evenrank.io.wording import counted

    _output.refuse_standard(out)
    done = write_negatives(
        run,
        out,
        collection=collection,
        queries=queries,
        qrels=qrels,
        n=n,
        share=share,
        beta=beta,
        depth=depth,
        gendered_only=gendered_only,
        seed=seed,
        format=format,
        scores=scores,
        lexicon=lexicon,
        poles=poles,
        tokens=tokens,
        threshold=threshold,
        labels=labels,
        neutral=neutral,
        group_column=group_column,
        quiet=quiet,
    )
    written = f"{done['biased']} biased and {done['random']} random negatives: {out}"
    _output.say(f"{counted(done['queries'], 'query')}, {written}", err=True)
    left, short, gendered = done["left_out"], done["short"], done["short_of_gendered"]
    notes = {
        "left out, without a judged relevant document": left["without_relevant"],
        "left out, without an unjudged document": left["without_candidate"],
        f"left out of the n-tuples, with fewer than {n} negatives": left.get("too_few_for_n_tuple", 0),
        f"with fewer than {n} unjudged documents": short["queries"],
        "with fewer biased documents than the share asks for": gendered["queries"],
    }
    for what, count in notes.items():
        if count:
            _output.say(f"queries {what}: {count}", err=True)
    unknown = done.get("unknown", {"candidates": 0})
    if unknown["candidates"]:
        of = f"{unknown['candidates']:,} of {done['candidates']:,} ({counted(unknown['queries'], 'query')})"
        drawn = f"never chosen for their bias, {unknown['negatives']:,} drawn at random"
        _output.say(f"candidates without a label: {of}; {drawn}", err=True)
