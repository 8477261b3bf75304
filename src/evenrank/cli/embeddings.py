"""``evenrank embeddings``: word vectors trained, debiased, and what bias remains in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank._wording import counted

from . import _options, _output

if TYPE_CHECKING:
    from evenrank.io import Provenance

app = typer.Typer(help="Word vectors: train, debias, and see what bias remains.", no_args_is_help=True)

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
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Read the first words only.")]


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
        typer.Option("--groups", metavar="F.json", help="leace: a list of words for each group, to fit on."),
    ] = None,
    most: Annotated[
        int, typer.Option("--most", help="leace without --groups: fit on so many most biased neutral words a side.")
    ] = 500,
    specific_out: Annotated[
        str | None, typer.Option("--specific-out", metavar="F.json", help="Also write the words that kept their group.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    json: _options.Json = None,
) -> None:
    """Take the bias direction out of word vectors; says how equal the distances are after it."""
    from evenrank import __version__
    from evenrank.embeddings import (
        bias_subspace,
        hard_debias,
        leace,
        most_biased,
        read_sets,
        read_vectors,
        specific_words,
        write_vectors,
    )
    from evenrank.embeddings.files import vector_files
    from evenrank.io import EvenrankError, check_apart, write_text
    from evenrank.io.errors import shown
    from evenrank.io.written import json_text

    if method not in ("hard", "leace"):
        raise EvenrankError(f"--method: expected hard or leace, found {shown(method)}")
    if groups is not None and method != "leace":
        raise EvenrankError("--groups needs --method leace")
    if components != 1 and method != "hard":
        raise EvenrankError("--components needs --method hard")
    read = (vectors, definitional, equalize, specific, groups)
    outputs = (*vector_files(out), *(path for path in (json, specific_out) if path != _output.STANDARD))
    check_apart(outputs, read)
    _output.check(_vector_file(out), streams=(json, specific_out))
    made = _sources(vectors, None, definitional, equalize, specific).add("groups", groups).ahead(json is not None)
    sets = _word_sets(definitional, equalize, specific)
    given = read_vectors(vectors, limit=limit)
    words = _specific(given, sets, learn_specific, seed)
    settings: dict[str, Any] = {
        "vectors": vectors,
        "method": method,
        "definitional": definitional,
        "equalize": equalize,
    }
    settings |= {"specific": specific, "learn_specific": learn_specific, "limit": limit, "seed": seed}
    done: Any
    if method == "hard":
        settings["components"] = components
        done = hard_debias(given, sets.definitional, sets.equalize, words, components=components, in_place=True)
        text = done.text()
    else:
        neutral = ~specific_words(given.words, [*words, *(word for of in sets.equalize for word in of)])
        if groups is None:
            settings["most"] = most
            sides = most_biased(given, bias_subspace(given, sets.definitional).basis[0], neutral, most)
            chosen = [[given.words[row] for row in side] for side in sides]
            what = f"the {len(chosen[0])} most biased neutral words of each side"
        else:
            settings["groups"] = groups
            chosen, what = [list(of) for of in read_sets(groups)], "the words given"
        done = leace(given, chosen, neutral, in_place=True)
        text = done.text(what)
    write_vectors(done.vectors, out)
    names = [word for word, neutral in zip(done.vectors.words, done.neutral, strict=True) if not neutral]
    whole = {"evenrank": __version__, "settings": settings, "words": len(done.vectors.words), **done.to_dict()}
    with _output.target(specific_out) as words_file, _output.target(json) as values_file:
        if words_file:
            write_text(words_file, json_text(names))
        if values_file:
            write_text(values_file, json_text(whole | {"provenance": made.to_dict()}))
    if _output.STANDARD not in (json, specific_out):
        _output.say(text)
    _output.say(
        f"{counted(len(done.vectors.words), 'vector')}, {len(names)} of them of words that keep their group: {out}",
        err=True,
    )


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
    most: Annotated[int, typer.Option("--most", help="Most biased words of each side.")] = 500,
    train: Annotated[int, typer.Option("--train", help="Words of each side that the SVMs are trained on.")] = 200,
    splits: Annotated[int, typer.Option("--splits", help="Random draws of these.")] = 10,
    first: Annotated[int, typer.Option("--first", help="Most biased among the first so many words.")] = 50_000,
    permutations: Annotated[
        int, typer.Option("--permutations", help="Random partitions of an association test with too many for all.")
    ] = 10_000,
    words: Annotated[
        str | None, typer.Option("--words", help="Show the nearest words of these, separated by spaces.")
    ] = None,
    analogy: Annotated[
        list[str] | None, typer.Option("--analogy", metavar="A:B::C", help="A is to B as C is to? Repeatable.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """How biased word vectors are, and what of it remains after debiasing."""
    from dataclasses import replace
    from pathlib import Path

    from evenrank import __version__
    from evenrank.audit.remains import remains_page
    from evenrank.embeddings import read_vectors, remains
    from evenrank.io import EvenrankError, write_text
    from evenrank.io.errors import shown
    from evenrank.io.written import json_text

    asked = None
    if analogy:
        asked = []
        for text in analogy:
            pair, _, c = text.partition("::")
            a, _, b = pair.partition(":")
            if not (a and b and c) or ":" in b + c:
                raise EvenrankError(f"--analogy: expected A:B::C, found {shown(text)}")
            asked.append((a, b, c))
    _output.check(report, streams=(json,), inputs=(vectors, after, definitional, equalize, specific))
    made = _sources(vectors, after, definitional, equalize, specific).ahead(json is not None or report is not None)
    sets = _word_sets(definitional, equalize, specific)
    given = read_vectors(vectors, limit=limit, mmap=True)
    keep = [*_specific(given, sets, learn_specific, seed), *(w for of in sets.equalize for w in of)]
    found = remains(
        given,
        None if after is None else read_vectors(after, limit=limit, mmap=True),
        definitional=sets.definitional,
        specific=keep,
        count=most,
        train=train,
        splits=splits,
        first=first,
        permutations=permutations,
        words=None if words is None else words.split(),
        analogies=asked,
        seed=seed,
    )
    page = remains_page(found, Path(vectors).name, None if after is None else Path(after).name)
    settings: dict[str, Any] = {
        "vectors": vectors,
        "after": after,
        "definitional": definitional,
        "equalize": equalize,
    }
    settings |= {"specific": specific, "learn_specific": learn_specific, "limit": limit}
    values = found.to_dict()
    values["settings"] = settings | values["settings"]
    with _output.target(json) as path:
        if path:
            write_text(path, json_text({"evenrank": __version__, **values, "provenance": made.to_dict()}))
        if report is not None:
            replace(page, provenance=made).write(report)
    if json != _output.STANDARD:
        _output.say(page.text())
    if report is not None:
        _output.say(f"report: {report}", err=True)


@app.command("train")
@_options.in_range
def train(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="TSV, JSONL, Parquet or irds:NAME.")],
    out: Annotated[str, typer.Option("--out", help=_OUT)],
    size: Annotated[int, typer.Option("--size", help="Dimensions.")] = 300,
    window: Annotated[int, typer.Option("--window", help="Words to either side.")] = 5,
    epochs: Annotated[int, typer.Option("--epochs", help="How often the collection is read.")] = 5,
    min_count: Annotated[int, typer.Option("--min-count", help="Leave rarer words out.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Seed: the same gives the same vectors.")] = 0,
) -> None:
    """Train word vectors on a collection (word2vec, skip-gram); words are case-folded."""
    from evenrank.embeddings import train_vectors, write_vectors
    from evenrank.embeddings.files import vector_files
    from evenrank.groups.tokens import tokenize
    from evenrank.io import check_apart

    check_apart(vector_files(out), [collection])
    _output.check(_vector_file(out))
    found = train_vectors(
        collection, tokenize, dimensions=size, window=window, epochs=epochs, min_count=min_count, seed=seed
    )
    write_vectors(found, out)
    _output.say(f"{counted(len(found.words), 'word')}, {counted(found.dimensions, 'dimension')}: {out}", err=True)


def _vector_file(out: str) -> str | None:
    """The file that vectors are written to; None for a folder."""
    from evenrank.embeddings.files import check_form

    return out if check_form(out) != "folder" or out == _output.STANDARD else None


def _sources(
    vectors: str, after: str | None, definitional: str | None, equalize: str | None, specific: str | None
) -> Provenance:
    """All that these commands read, noted before they do."""
    from evenrank.io import Provenance

    made = Provenance("evenrank embeddings").add("vectors", vectors, tree=True).add("after", after, tree=True)
    made.add("definitional", definitional).add("equalize", equalize)
    return made.add("specific", specific)


def _word_sets(definitional: str | None, equalize: str | None, specific: str | None) -> Any:
    """The built-in sets, with those of files in their place."""
    from dataclasses import replace

    from evenrank.embeddings import gender_en, read_sets, read_word_list

    sets = gender_en()
    if definitional is not None:
        sets = replace(sets, definitional=read_sets(definitional))
    if equalize is not None:
        sets = replace(sets, equalize=read_sets(equalize))
    return sets if specific is None else replace(sets, specific=read_word_list(specific))


def _specific(vectors: Any, sets: Any, learn: bool, seed: int) -> Any:
    """The words that keep their group, learned ones among them where asked for."""
    from evenrank.embeddings import learn_specific

    if not learn:
        return sets.specific
    found = learn_specific(vectors, sets.specific, seed=seed)
    given = {word.lower() for word in sets.specific}
    new = [word for word in found if word.lower() not in given]
    few = "" if len(new) > len(given) / 100 else " (the vectors have hardly any such word beyond the given ones)"
    _output.say(f"{len(new)} more words learned as specific from {len(found) - len(new)}{few}", err=True)
    return [*sets.specific, *found]
