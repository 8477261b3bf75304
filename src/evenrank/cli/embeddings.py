"""``evenrank embeddings``: training, debiasing and evaluating word vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output

app = typer.Typer(help="Train, debias and evaluate word vectors.", no_args_is_help=True)

_IN = "word2vec, GloVe or fastText file, saved vectors, or a transformer's folder."
_OUT = "What to write: .bin or .txt (word2vec), else a folder (safetensors)."
Definitional = Annotated[
    str | None,
    typer.Option("--definitional", metavar="F.json", help="Sets that define the bias, as JSON. Default: gender-en."),
]
Equalize = Annotated[
    str | None, typer.Option("--equalize", metavar="F.json", help="Sets to equalise, as JSON. Default: gender-en.")
]
Specific = Annotated[
    str | None,
    typer.Option("--specific", metavar="F.json", help="Words that keep their group, as JSON. Default: gender-en."),
]
Learn = Annotated[bool, typer.Option("--learn-specific", help="Learn more such words from these with a linear SVM.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Read only this number of words.")]


@app.command("debias")
@_options.in_range
def debias(
    vectors: Annotated[str, typer.Argument(metavar="IN", help=_IN)],
    out: Annotated[str, typer.Option("--out", help=_OUT)],
    definitional: Definitional = None,
    equalize: Equalize = None,
    specific: Specific = None,
    learn_specific: Learn = False,
    method: Annotated[str, typer.Option("--method", help="hard (Bolukbasi et al.), or leace.")] = "hard",
    components: Annotated[int, typer.Option("--components", help="hard: dimensions of the bias subspace.")] = 1,
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="F.json", help="leace: a list of words per group to fit on, as JSON."),
    ] = None,
    most: Annotated[
        int,
        typer.Option("--most", help="leace without --groups: most biased neutral words per side to fit on."),
    ] = 500,
    specific_out: Annotated[
        str | None, typer.Option("--specific-out", metavar="F.json", help="Also write the words that kept their group.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    json: _options.Json = None,
) -> None:
    """Remove the bias direction from word vectors, and report how equal the distances are afterwards."""
    from evenrank.embeddings import debias_file
    from evenrank.embeddings.vectors import vector_files
    from evenrank.io import check_apart, write_text
    from evenrank.io.json_values import json_text

    outputs = (*vector_files(out), *(path for path in (json, specific_out) if path != _output.STANDARD))
    check_apart(outputs, (vectors, definitional, equalize, specific, groups))
    _output.check(_vector_file(out), streams=(json, specific_out))
    _output.will_write(json)
    result = debias_file(
        vectors,
        out,
        definitional=definitional,
        equalize=equalize,
        specific=specific,
        learn_specific=learn_specific,
        method=method,
        components=components,
        groups=groups,
        most=most,
        limit=limit,
        seed=seed,
    )
    with _output.target(specific_out) as words_path, _output.target(json) as values_path:
        if words_path:
            write_text(words_path, json_text(result.kept))
        if values_path:
            result.to_json(values_path)
    if _output.STANDARD not in (json, specific_out):
        _output.say(result.table())
    _output.say(result.message(), err=True)


@app.command("audit")
@_options.in_range
def audit(
    vectors: Annotated[str, typer.Argument(metavar="IN", help=_IN)],
    after: Annotated[
        str | None, typer.Option("--after", metavar="OUT", help="The same vectors after debiasing.")
    ] = None,
    definitional: Definitional = None,
    equalize: Equalize = None,
    specific: Specific = None,
    learn_specific: Learn = False,
    most: Annotated[int, typer.Option("--most", help="Number of most biased words per side.")] = 500,
    train: Annotated[int, typer.Option("--train", help="Words per side to train the SVMs on.")] = 200,
    splits: Annotated[int, typer.Option("--splits", help="Random draws of the training words.")] = 10,
    first: Annotated[int, typer.Option("--first", help="First words to choose the most biased from.")] = 50_000,
    permutations: Annotated[
        int,
        typer.Option("--permutations", help="Random partitions of an association test with too many to try all."),
    ] = 10_000,
    words: Annotated[
        str | None, typer.Option("--words", help="Words whose nearest words to show, separated by spaces.")
    ] = None,
    analogy: Annotated[
        list[str] | None, typer.Option("--analogy", metavar="A:B::C", help="A is to B as C is to? Repeatable.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """Evaluate the bias of word vectors, and what is left of it after debiasing."""
    from evenrank.embeddings import EvaluationSettings, audit_file, parse_analogy

    _output.check(report, streams=(json,), inputs=(vectors, after, definitional, equalize, specific))
    _output.will_write(json, report)
    result = audit_file(
        vectors,
        after,
        definitional=definitional,
        equalize=equalize,
        specific=specific,
        learn_specific=learn_specific,
        words=None if words is None else words.split(),
        analogies=[parse_analogy(text) for text in analogy] if analogy else None,
        limit=limit,
        settings=EvaluationSettings(most, train, splits, first, permutations, seed),
    )
    learned = result.specific.message()
    if learned is not None:
        _output.say(learned, err=True)
    _output.emit(result, json, report)


@app.command("train")
@_options.in_range
def train(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="TSV, JSONL, Parquet or irds:NAME.")],
    out: Annotated[str, typer.Option("--out", help=_OUT)],
    size: Annotated[int, typer.Option("--size", help="Dimensions.")] = 300,
    window: Annotated[int, typer.Option("--window", help="Context words on either side.")] = 5,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the collection.")] = 5,
    min_count: Annotated[int, typer.Option("--min-count", help="Ignore words that occur less often.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Seed: the same gives the same vectors.")] = 0,
) -> None:
    """Train word vectors on a collection (word2vec, skip-gram); words are case-folded."""
    from evenrank import tokenize
    from evenrank.embeddings import train_vectors, write_vectors
    from evenrank.embeddings.vectors import vector_files
    from evenrank.io import check_apart
    from evenrank.io.wording import counted

    check_apart(vector_files(out), [collection])
    _output.check(_vector_file(out))
    trained = train_vectors(
        collection, tokenize, dimensions=size, window=window, epochs=epochs, min_count=min_count, seed=seed
    )
    write_vectors(trained, out)
    _output.say(f"{counted(len(trained.words), 'word')}, {counted(trained.dimensions, 'dimension')}: {out}", err=True)


def _vector_file(out: str) -> str | None:
    """The file that vectors are written to; None for a folder."""
    from evenrank.embeddings.vectors import format_of

    return out if format_of(out) != "folder" or out == _output.STANDARD else None
