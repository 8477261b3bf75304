"""``evenrank probe``: what a ranker does when one thing of a passage changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from . import _models, _options, _output, _words

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        help="A model as for evenrank rerank (its name at --endpoint), or bm25. More variants may follow --variants.",
    ),
]
Variants = Annotated[
    list[str],
    typer.Option(
        "--variants",
        metavar="NAME=FILE…",
        help="Variants of the collection: files by name, or kinds (swap, early, …) that are made in memory with their"
        " placebos.",
    ),
]
Run = Annotated[str | None, typer.Option("--run", help="The run whose passages are probed.")]
Qrels = Annotated[
    str | None, typer.Option("--qrels", help="TREC qrels or irds:NAME; without --run, the judged passages are probed.")
]
Depth = Annotated[int, typer.Option("--depth", help="Passages of each query of --run.")]
Sample = Annotated[int | None, typer.Option("--sample", help="Number of queries of the list, drawn with --seed.")]
Placebo = Annotated[
    list[str] | None,
    typer.Option(
        "--placebo",
        metavar="[NAME=]FILE",
        help="The placebo of the variant NAME (default: the one whose manifest says so); repeatable.",
    ),
]
Answers = Annotated[
    str | None, typer.Option("--answers", metavar="SQUAD.json", help="Answers, for kinds that need them.")
]
Lexicon = Annotated[str, typer.Option("--lexicon", help=f"{_options.LEXICON} Its poles orient swap; none: no groups.")]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option("--precision", help="auto: bfloat16 on a GPU that supports it, else float32."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of variants made in memory and samples.")]


@_options.in_range
def command(
    queries: _options.Queries,
    collection: _options.Collection,
    variants: Variants,
    words: Words = None,
    run: Run = None,
    qrels: Qrels = None,
    depth: Depth = 100,
    sample: Sample = None,
    placebo: Placebo = None,
    answers: Answers = None,
    lexicon: Lexicon = "gender-en",
    batch_size: _options.BatchSize = 32,
    kind: _options.Kind = None,
    query_prompt: _options.QueryPrompt = None,
    document_prompt: _options.DocumentPrompt = None,
    precision: Precision = "auto",
    device: _options.Device = None,
    endpoint: _models.Endpoint = None,
    api: _models.Api = None,
    key_env: _models.KeyEnv = None,
    concurrency: _models.Concurrency = None,
    timeout: _models.Timeout = None,
    endpoint_answers: _models.EndpointAnswers = None,
    seed: Seed = 0,
    json: _options.Json = None,
    report: _options.Report = None,
    quiet: _options.Quiet = False,
) -> None:
    """Probe a ranker: its scores of passages and of their variants, beside a placebo."""
    import evenrank
    from evenrank.io.run_cards import files_beside
    from evenrank.probes.variant_files import manifest_path

    model, named = _variants(variants, words or [], endpoint is not None)
    placebos = _placebos(placebo or [], list(named))
    beside = json if json != _output.STANDARD and json else report
    chosen = _models.chosen(
        model,
        endpoint,
        api=api,
        key_env=key_env,
        concurrency=concurrency,
        timeout=timeout,
        endpoint_answers=endpoint_answers,
        beside=beside,
    )
    if chosen is None:
        raise evenrank.EvenrankError("expected MODEL, or `endpoint`")
    read = [path for path in (*named.values(), *placebos.values()) if path is not None]
    _output.check(
        *filter(None, (report, _models.answers_of(chosen))),
        streams=(json,),
        inputs=(
            model if endpoint is None else None,
            *(queries, collection, run, qrels, answers, lexicon),
            *files_beside(run),
            *read,
            *map(manifest_path, read),
        ),
    )
    _output.will_write(json, report)
    result = evenrank.probe(
        chosen,
        named,
        collection=collection,
        queries=queries,
        run=run,
        qrels=qrels,
        depth=depth,
        sample=sample,
        placebos=placebos,
        answers=answers,
        lexicon=None if lexicon == "none" else lexicon,
        kind=kind,
        batch_size=batch_size,
        device=device,
        precision=precision,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        seed=seed,
        keep=beside,
        quiet=quiet,
    )
    _output.emit(result, json, report, text=_words.said(result.table()))


def _variants(given: Sequence[str], words: Sequence[str], served: bool) -> tuple[str | None, dict[str, str | None]]:
    """The model, and the variants by name (None: a kind to be made), of ``--variants`` and of the words that follow.

    The model is the first word that is no ``NAME=FILE`` and no kind, or without one and without an endpoint
    (``served``) the first word. Raises EvenrankError for what is neither, and for a name that is repeated.
    """
    from evenrank.io import EvenrankError
    from evenrank.io.errors import quoted
    from evenrank.probes.variants import KINDS

    def is_variant(word: str) -> bool:
        return word in KINDS or ("=" in word and not os.path.exists(word))

    others = list(words)
    place = next((i for i, word in enumerate(others) if not is_variant(word)), None)
    if place is None and others and not served:
        place = 0
    model = None if place is None else others.pop(place)
    found: dict[str, str | None] = {}
    for word in (*given, *others):
        name, equals, path = word.partition("=")
        if not (name and path if equals else word in KINDS):
            raise EvenrankError(f"`variants`: expected NAME=FILE or one of {', '.join(KINDS)}, found {quoted(word)}")
        if name in found:
            raise EvenrankError(f"`variants`: two variants are named {quoted(name)}")
        found[name] = path if equals else None
    return model, found


def _placebos(given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The placebos by the variant's name. Raises EvenrankError for two of one variant, and for one without a name
    where there are several variants."""
    from evenrank.io import EvenrankError
    from evenrank.io.errors import quoted

    found: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or os.path.exists(word):
            if len(names) > 1:
                raise EvenrankError(
                    f"`placebos`: expected NAME=FILE, as there are several variants, found {quoted(word)}"
                )
            name, path = names[0], word
        if name in found:
            raise EvenrankError(f"`placebos`: two placebos of {quoted(name)}")
        found[name] = path
    return found
