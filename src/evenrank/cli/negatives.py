"""``evenrank negatives``: training data with bias-aware negatives."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from evenrank._wording import counted

from . import _options, _output


@_options.in_range
def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The first-stage run (TREC), a query's lines together.")],
    qrels: Annotated[str, typer.Option("--qrels", help="TREC qrels or irds:NAME.")],
    out: Annotated[str, typer.Option("--out", help="What to write: .parquet or .jsonl.")],
    collection: _options.Documents = None,
    queries: Annotated[
        str | None, typer.Option("--queries", help="The queries: TSV, JSONL, Parquet or irds:NAME.")
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Negatives a query.")] = 20,
    share: Annotated[float, typer.Option("--share", help="Share of them chosen by bias; 0 is random sampling.")] = 0.6,
    beta: Annotated[
        str, typer.Option("--beta", help="What bias is: abs_tf, count or one_minus_neutrality.")
    ] = "abs_tf",
    depth: Annotated[int, typer.Option("--depth", help="How many documents of each query's list.")] = 1000,
    gendered_only: Annotated[
        bool, typer.Option("--gendered-only", help="Choose no document without bias for its bias.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random part.")] = 0,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="groups (for evenrank train), or as sentence-transformers reads: labeled-list, labeled-pair, n-tuple.",
        ),
    ] = "groups",
    scores: _options.Scores = None,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    quiet: _options.Quiet = False,
) -> None:
    """Sample negatives by their bias, beside random ones; OUT.manifest.json and .parquet count them."""
    from evenrank.mitigation.negatives import write_negatives

    _output.check(out)
    done = write_negatives(
        run,
        out,
        collection=collection,
        queries=queries,
        qrels=qrels,
        n=n,
        share=share,
        beta=cast(Any, beta),
        depth=depth,
        gendered_only=gendered_only,
        seed=seed,
        format=cast(Any, format),
        scores=scores,
        lexicon=lexicon,
        poles=poles,
        tokens=cast(Any, tokens),
        threshold=threshold,
        quiet=quiet,
    )
    said = f"{counted(done['queries'], 'query')}, {done['biased']} biased and {done['random']} random negatives: {out}"
    left, short, gendered = done["left_out"], done["short"], done["short_of_gendered"]
    notes = {
        "left out, without a judged relevant document": left["without_relevant"],
        "left out, without an unjudged document": left["without_candidate"],
        f"left out of the n-tuples, with fewer than {n} negatives": left.get("too_few_for_n_tuple", 0),
        f"with fewer than {n} unjudged documents": short["queries"],
        "with fewer biased documents than the share asks for": gendered["queries"],
    }
    for line in (said, *(f"queries {what}: {count}" for what, count in notes.items() if count)):
        _output.say(line, err=True)
