"""``evenrank position``: where answers stand, and what that does to a ranker."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import _options, _output, _words

app = typer.Typer(help="Position bias: where answers stand, and what that does to a ranker.", no_args_is_help=True)


@app.callback()
def _position() -> None:
    # Named, so that one command alone still is a command of its own.
    pass


@app.command("answers")
def answers(
    squad: Annotated[
        str, typer.Argument(metavar="SQUAD.json", help="Answers in SQuAD's form, or irds:NAME (irds:msmarco-qna/dev).")
    ],
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", help="Look the passages up here instead: TSV, JSONL, Parquet or irds:NAME."),
    ] = None,
    annotated: Annotated[
        bool, typer.Option("--annotated", help="Count the annotated place alone, not every match of the answer.")
    ] = False,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """Where in their passages the answers stand: mean, first third, distance to uniform."""
    _output.check(report, streams=(json,), inputs=(squad, *(collection or ())))
    _output.will_write(json, report)
    from evenrank.audit.answers import position_answers

    _output.give(position_answers(squad, collection or (), annotated=annotated), json, report)


@app.command("similarity")
@_options.in_range
def similarity(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A trained tk, or any transformer: a folder or a hub name.")
    ],
    collection: Annotated[str, typer.Option(help="TSV, JSONL, Parquet or irds:NAME.")],
    passages: Annotated[int, typer.Option(help="Passages to look at, drawn by --seed.")] = 2000,
    max_words: Annotated[int, typer.Option(help="Words of a passage to look at.")] = 200,
    min_pairs: Annotated[int, typer.Option(help="A term counts at a distance where it has so many pairs.")] = 5,
    min_terms: Annotated[int, typer.Option(help="A distance counts where so many terms do.")] = 100,
    cap: Annotated[int, typer.Option(help="Places of a term that are compared at most, drawn by --seed.")] = 1000,
    batch_size: Annotated[int, typer.Option(help="Passages encoded at once.")] = 32,
    device: _options.Device = None,
    seed: Annotated[int, typer.Option(help="Decides which passages and places.")] = 0,
    json: _options.Json = None,
    report: _options.Report = None,
    quiet: _options.Quiet = False,
) -> None:
    """How much of a word's vector is its place: average term similarity by distance, and MATS."""
    from evenrank.rankers.models import require_extra

    require_extra()
    _output.check(report, streams=(json,), inputs=(model, collection))
    _output.will_write(json, report)
    from evenrank.audit.similarity import position_similarity

    found = position_similarity(
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
    _output.give(found, json, report, shown=_words.said(found.table()))


@app.command("sensitivity")
@_options.in_range
def sensitivity(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="A model as evenrank rerank takes it; without, --run as it is."),
    ] = None,
    squad: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Passages, questions and answers from one SQuAD file.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="TSV, JSONL, Parquet or irds:NAME.")] = None,
    queries: Annotated[str | None, typer.Option(help="TSV, JSONL, Parquet or irds:NAME.")] = None,
    qrels: Annotated[str | None, typer.Option(help="Judgements.")] = None,
    answers: Annotated[
        str | None, typer.Option(metavar="SQUAD.json", help="Answers, with the ids of queries and documents.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Candidates (default: BM25).")] = None,
    depth: Annotated[int, typer.Option(help="Candidates of a query.")] = 100,
    places: Annotated[int, typer.Option(help="Places that the answer is moved to.")] = 10,
    sample: Annotated[int | None, typer.Option(help="Look at so many queries only, drawn by --seed.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs scored at once.")] = 32,
    kind: Annotated[
        Literal["cross", "bi"] | None, typer.Option(help="cross or bi, where the model's files do not say it.")
    ] = None,
    device: _options.Device = None,
    seed: Annotated[int, typer.Option(help="Decides intervals, shuffles and the sample.")] = 0,
    json: _options.Json = None,
    report: _options.Report = None,
    quiet: _options.Quiet = False,
) -> None:
    """Effectiveness by where answers stand, and the score of the same passage with its answer at other places."""
    if model is not None:
        from evenrank.rankers.models import require_extra

        require_extra()
    _output.check(report, streams=(json,), inputs=(model, squad, collection, queries, qrels, answers, run))
    _output.will_write(json, report)
    from evenrank.audit.sensitivity import position_sensitivity

    found = position_sensitivity(
        model,
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
        device=device,
        seed=seed,
        quiet=quiet,
    )
    _output.give(found, json, report)
