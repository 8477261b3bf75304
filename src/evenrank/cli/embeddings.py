"""``evenrank embeddings``: training, debiasing and evaluating word vectors."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

HELP = "Train, debias and evaluate word vectors."
EXAMPLES = {
    "debias": r"""
# Hard debiasing, for gender.
evenrank embeddings debias vectors.bin --out debiased.bin
# A bias subspace of two dimensions.
evenrank embeddings debias vectors.bin --components 2 --out debiased.bin
# Another bias, as word sets of your own.
evenrank embeddings debias vectors.bin --definitional age.json \
    --equalize pairs.json --specific ages.json --out debiased.bin
""",
    "audit": r"""
# What is left of the bias after debiasing?
evenrank embeddings audit vectors.bin --after debiased.bin --report bias.html
# Of the 100 most biased words a side.
evenrank embeddings audit vectors.bin --after debiased.bin --most 100
# An analogy: man is to doctor as woman is to what?
evenrank embeddings audit vectors.bin --analogy man:doctor::woman
""",
    "train": r"""
# Vectors of 300 dimensions.
evenrank embeddings train docs.tsv --out vectors.bin
# Fewer dimensions, for a small collection.
evenrank embeddings train docs.tsv --size 50 --min-count 2 --out vectors.bin
# As a folder, which is read faster.
evenrank embeddings train docs.tsv --out vectors
""",
}


def debias(
    *,
    given: Annotated[Values, From("search.debias_file", "debias_file")],
    specific_out: Annotated[
        str | None,
        opt.Option("Also write the words that kept their group.", metavar="F.json", panel="Output", rare=True),
    ] = None,
    full: opt.Full = False,
    json: opt.Json = None,
) -> None:
    from evenrank.files import check_apart, write_text
    from evenrank.files.json_values import json_text
    from evenrank.models.vectors import vector_files
    from evenrank.search.debias_file import debias_file

    outputs = (*vector_files(given["out"]), *(path for path in (json, specific_out) if path != _output.STANDARD))
    check_apart(outputs, given.read)
    _output.check(_vector_file(given["out"]), streams=(json, specific_out))
    result = debias_file(**given)
    with _output.target(specific_out) as words_path, _output.target(json) as values_path:
        if words_path:
            write_text(words_path, json_text(result.kept))
        if values_path:
            result.to_json(values_path)
    if _output.STANDARD not in (json, specific_out):
        _output.show(result, full=full)
    _output.say(result.message(), err=True)


def audit(
    *,
    given: Annotated[Values, From("search.embeddings_audit", "audit_file")],
    evaluation: Annotated[Values, From("search.embeddings_audit", "EvaluationSettings")],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
) -> None:
    from evenrank.search.embeddings_audit import EvaluationSettings, audit_file, parse_analogy

    _output.check(report=report, streams=(json,), inputs=given.read)
    analogies = [parse_analogy(text) for text in given["analogies"]] if given["analogies"] else None
    result = audit_file(**{**given, "analogies": analogies}, settings=EvaluationSettings(**evaluation))
    _output.emit(result, json, report, full=full)


def train(
    *,
    out: Annotated[str, opt.Option(opt.OUT_VECTORS, panel="Output")],
    given: Annotated[Values, From("models.vectors", "train_vectors")],
) -> None:
    """Train word vectors on a collection. The method is word2vec's skip-gram; words are case-folded."""
    from evenrank.files import check_apart
    from evenrank.files.wording import counted
    from evenrank.models.vectors import train_vectors, vector_files, write_vectors

    check_apart(vector_files(out), given.read)
    _output.check(_vector_file(out))
    trained = train_vectors(**given)
    write_vectors(trained, out)
    _output.say(f"{counted(len(trained.words), 'word')}, {counted(trained.dimensions, 'dimension')}: {out}", err=True)


def _vector_file(out: str) -> str | None:
    """The file that vectors are written to; None for a folder."""
    from evenrank.models.vectors import format_of

    return out if format_of(out) != "folder" or out == _output.STANDARD else None
