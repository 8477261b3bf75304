"""``evenrank position``: where answers appear, and what that does to a ranker."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _models, _options, _output, _words

app = typer.Typer(help="Position bias: where answers appear, and what that does to a ranker.", no_args_is_help=True)


@app.command("answers")
def answers(
    squad: Annotated[
        str,
        typer.Argument(metavar="SQUAD.json", help="Answers in SQuAD's format, or irds:NAME (irds:msmarco-qna/dev)."),
    ],
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", help="Take the passages from here: TSV, JSONL, Parquet or irds:NAME."),
    ] = None,
    annotated: Annotated[
        bool, typer.Option("--annotated", help="Count only the annotated position, not every match of the answer.")
    ] = False,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """Measure where answers appear in their passages: mean, first third, distance to uniform."""
    from evenrank import position_answers

    _output.check(report, streams=(json,), inputs=(squad, *(collection or ())))
    _output.will_write(json, report)
    _output.emit(position_answers(squad, collection or (), annotated=annotated), json, report)


@app.command("similarity")
@_options.in_range
def similarity(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A trained tk, or any transformer: a folder or a hub name.")
    ],
    collection: _options.Collection,
    passages: Annotated[int, typer.Option(help="Number of passages, sampled with --seed.")] = 2000,
    max_words: Annotated[int, typer.Option(help="Words of each passage to use.")] = 200,
    min_pairs: Annotated[int, typer.Option(help="Fewest pairs of a term to count at a distance.")] = 5,
    min_terms: Annotated[int, typer.Option(help="Fewest terms for a distance to count.")] = 100,
    cap: Annotated[int, typer.Option(help="Most occurrences of a term to compare, sampled with --seed.")] = 1000,
    batch_size: _options.BatchSize = 32,
    device: _options.Device = None,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    json: _options.Json = None,
    report: _options.Report = None,
    quiet: _options.Quiet = False,
) -> None:
    """Measure how much of a word's vector is its position: average term similarity by distance, and MATS."""
    from evenrank import position_similarity
    from evenrank.io.errors import require_neural

    require_neural("position similarity")
    _output.check(report, streams=(json,), inputs=(model, collection))
    _output.will_write(json, report)
    result = position_similarity(
        model,
        collection,
        passages=passages,
        max_words=max_words,
        min_pairs=min_pairs,
        min_terms=min_terms,
        cap=cap,
        batch_size=batch_size,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    _output.emit(result, json, report, text=_words.said(result.table()))


@app.command("sensitivity")
@_options.in_range
def sensitivity(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A model as for evenrank rerank (its name at --endpoint).",
        ),
    ] = None,
    squad: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Passages, questions and answers from one SQuAD file.")
    ] = None,
    collection: _options.MaybeCollection = None,
    queries: _options.MaybeQueries = None,
    qrels: Annotated[str | None, typer.Option(help="Relevance judgements.")] = None,
    answers: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Answers, with the ids of queries and documents.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Candidates (default: BM25).")] = None,
    depth: Annotated[int, typer.Option(help="Candidates per query.")] = 100,
    places: Annotated[int, typer.Option(help="Places to move the answer's sentence to (first, last, between).")] = 5,
    sample: Annotated[int | None, typer.Option(help="Number of queries, sampled with --seed.")] = None,
    batch_size: _options.BatchSize = 32,
    kind: _options.Kind = None,
    query_prompt: _options.QueryPrompt = None,
    document_prompt: _options.DocumentPrompt = None,
    device: _options.Device = None,
    endpoint: _models.Endpoint = None,
    api: _models.Api = None,
    key_env: _models.KeyEnv = None,
    concurrency: _models.Concurrency = None,
    timeout: _models.Timeout = None,
    endpoint_answers: _models.EndpointAnswers = None,
    seed: Annotated[int, typer.Option(help="Seed of intervals and the sample.")] = 0,
    json: _options.Json = None,
    report: _options.Report = None,
    quiet: _options.Quiet = False,
) -> None:
    """Measure a passage's score as its answer's sentence moves."""
    from evenrank import EvenrankError, position_sensitivity
    from evenrank.io.errors import require_neural

    if model is not None and endpoint is None:
        require_neural("position sensitivity")
    chosen = _models.chosen(
        model,
        endpoint,
        api=api,
        key_env=key_env,
        concurrency=concurrency,
        timeout=timeout,
        endpoint_answers=endpoint_answers,
        beside=json if json != _output.STANDARD and json else report,
    )
    if chosen is None:
        raise EvenrankError("expected MODEL, or `endpoint`")
    _output.check(
        *filter(None, (report, _models.answers_of(chosen))),
        streams=(json,),
        inputs=(model if endpoint is None else None, squad, collection, queries, qrels, answers, run),
    )
    _output.will_write(json, report)
    result = position_sensitivity(
        chosen,
        squad=squad,
        collection=collection,
        queries=queries,
        qrels=qrels,
        answers=answers,
        run=run,
        depth=depth,
        places=places,
        sample=sample,
        batch_size=batch_size,
        kind=kind,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    _output.emit(result, json, report)
