"""``evenrank position``: where answers appear, and what that does to a ranker."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _models, _output
from ._signatures import From, Values

HELP = "Measure where answers appear, and what that does to a ranker."
EXAMPLES = {
    "answers": r"""
# Where are the answers of a SQuAD file?
evenrank position answers squad.json
# As a page.
evenrank position answers squad.json --report answers.html
# In passages of your own.
evenrank position answers answers.json --collection docs.tsv
""",
    "similarity": r"""
# Do a model's vectors depend on a word's position?
evenrank position similarity models/tk --collection docs.tsv
# On more passages, with a page.
evenrank position similarity models/tk --collection docs.tsv \
    --passages 10000 --report similarity.html
# A model of the hub.
evenrank position similarity sentence-transformers/all-MiniLM-L6-v2 \
    --collection docs.tsv
""",
    "sensitivity": r"""
# Does a passage rank lower if its answer comes late?
evenrank position sensitivity models/bert --squad squad.json
# On 200 queries, with a page.
evenrank position sensitivity models/bert --squad squad.json --sample 200 \
    --report sensitivity.html
# With a collection and candidates of your own.
evenrank position sensitivity models/bert --collection docs.tsv \
    --queries queries.tsv --qrels qrels.txt --answers answers.json \
    --run bm25.run
""",
}


def answers(
    *,
    given: Annotated[Values, From("probes.answers", "position_answers")],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
) -> None:
    from evenrank import position_answers

    _output.check(report=report, streams=(json,), inputs=given.read)
    _output.emit(position_answers(**given), json, report, full=full)


def similarity(
    *,
    given: Annotated[Values, From("probes.similarity", "position_similarity")],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
    quiet: opt.Quiet = False,
) -> None:
    from evenrank import position_similarity
    from evenrank.files.errors import require_neural

    require_neural("position similarity")
    _output.check(report=report, streams=(json,), inputs=given.read)
    result = position_similarity(**given, quiet=quiet)
    _output.emit(result, json, report, full=full)


def sensitivity(
    model: Annotated[
        str | None,
        opt.Option("A model as for evenrank rerank (its name at --endpoint).", metavar="MODEL", unless=("url",)),
    ] = None,
    *,
    given: Annotated[Values, From("probes.sensitivity", "position_sensitivity")],
    endpoint: Annotated[Values, From("cli._models", "EndpointOptions", without=("answers",))],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
    quiet: opt.Quiet = False,
) -> None:
    from evenrank import position_sensitivity
    from evenrank.files.errors import require_neural

    if model is not None and endpoint["url"] is None:
        require_neural("position sensitivity")
    beside = json if json != _output.STANDARD and json else report
    chosen = _models.chosen(model, endpoint, beside=beside)
    assert chosen is not None
    _output.check(
        _models.answers_of(chosen),
        report=report,
        streams=(json,),
        inputs=(model if endpoint["url"] is None else None, *given.read),
    )
    _output.emit(position_sensitivity(chosen, **given, quiet=quiet), json, report, full=full)
