"""``evenrank rerank``: re-rank a run with a neural model."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _models, _output
from ._signatures import From, Values

EXAMPLES = r"""
# With a ranker that evenrank train made.
evenrank rerank bm25.run --model runs/fair/model --collection docs.tsv \
    --queries queries.tsv --out fair.run
# With a cross-encoder of the hub, the first hundred documents.
evenrank rerank bm25.run --model cross-encoder/ms-marco-MiniLM-L6-v2 \
    --collection docs.tsv --queries queries.tsv --depth 100 --out ce.run
# With a server.
evenrank rerank bm25.run --endpoint http://localhost:8080 --api tei \
    --collection docs.tsv --queries queries.tsv --out tei.run
"""


def command(
    *,
    out: Annotated[
        str, opt.Option("The run to write. After an interruption, the same command resumes.", panel="Output")
    ],
    model: Annotated[
        str | None,
        opt.Option(
            "A trained ranker's folder, or a model that sentence-transformers loads; with --endpoint: its name there.",
            unless=("url",),
            metavar="MODEL",
            panel="Model",
        ),
    ] = None,
    given: Annotated[Values, From("models.rerank", "rerank")],
    lexicon: Annotated[
        str | None,
        opt.Option("Mask a lexicon's words in queries and passages.", flag="--blind", metavar="LEXICON"),
    ] = None,
    endpoint: Annotated[Values, From("cli._models", "EndpointOptions", without=("endpoint_answers",))],
    quiet: opt.Quiet = False,
) -> None:
    from functools import partial

    import evenrank
    from evenrank.files import check_apart
    from evenrank.files.wording import counted

    chosen = _models.chosen(model, endpoint)
    assert chosen is not None
    _output.refuse_standard(out)
    # The library sees the words of a lexicon, not its file.
    check_apart([out, f"{out}.card.json"], [lexicon])
    transform = None
    if lexicon is not None:
        transform = partial(evenrank.mask_texts, scoring=evenrank.Scoring(evenrank.load_lexicon(lexicon)))
    result = evenrank.rerank(**given, model=chosen, transform=transform, out=out, quiet=quiet)
    for note in result.notes:
        _output.say(note, err=True)
    _output.say(f"{counted(result.queries.len(), 'query')} re-ranked: {out}", err=True)
