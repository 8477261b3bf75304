"""``evenrank probe``: what a ranker does when one thing of a passage changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

from evenrank import options as opt
from evenrank._command import arg

from . import _models, _output
from ._signatures import From, Values

EXAMPLES = r"""
# Would BM25 rank otherwise, were the group words swapped?
evenrank probe bm25 --queries queries.tsv --collection docs.tsv \
    --run bm25.run --variants swap
# A neural model, on a page.
evenrank probe models/bert --queries queries.tsv --collection docs.tsv \
    --run bm25.run --variants swap --report probe.html
# Variants of your own.
evenrank probe models/bert --queries queries.tsv --collection docs.tsv \
    --qrels qrels.txt --variants formal=formal.tsv
"""


def command(
    words: Annotated[
        list[str] | None,
        opt.Option(
            "A model as for evenrank rerank (its name at --endpoint), or bm25. More variants may follow --variants.",
            metavar="MODEL",
            typed=list,
        ),
    ] = None,
    *,
    given: Annotated[Values, From("probes.probing", "probe")],
    endpoint: Annotated[Values, From("cli._models", "EndpointOptions", without=("answers",))],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
    quiet: opt.Quiet = False,
) -> None:
    import evenrank
    from evenrank.files.provenance import files_beside
    from evenrank.probes.variant_files import manifest_path

    model, named = _variants(given["variants"], words or [], endpoint["url"] is not None)
    placebos = _placebos(given["placebos"] or [], list(named))
    beside = json if json != _output.STANDARD and json else report
    chosen = _models.chosen(model, endpoint, beside=beside)
    if chosen is None:
        raise evenrank.EvenrankError(f"expected MODEL, or {arg.url}")
    read = [path for path in (*named.values(), *placebos.values()) if path is not None]
    own = (model if endpoint["url"] is None else None, *given.read, *files_beside(given["run"]))
    _output.check(
        _models.answers_of(chosen),
        report=report,
        streams=(json,),
        inputs=(*own, *read, *map(manifest_path, read)),
    )
    lexicon = None if given["lexicon"] == "none" else given["lexicon"]
    arguments = {**given, "variants": named, "placebos": placebos, "lexicon": lexicon}
    result = evenrank.probe(chosen, **arguments, keep=beside, quiet=quiet)
    _output.emit(result, json, report, full=full)


def _variants(given: Sequence[str], words: Sequence[str], served: bool) -> tuple[str | None, dict[str, str | None]]:
    """The model, and the variants by name (None: a kind to be made), of ``--variants`` and of the words that follow.

    The model is the first word that is no ``NAME=FILE`` and no kind, or without one and without an endpoint
    (``served``) the first word. Raises EvenrankError for what is neither, and for a name that is repeated.
    """
    from evenrank.files import EvenrankError
    from evenrank.files.errors import quoted
    from evenrank.probes.variants import KINDS

    def is_variant(word: str) -> bool:
        return word in KINDS or ("=" in word and not os.path.exists(word))

    others = list(words)
    place = next((i for i, word in enumerate(others) if not is_variant(word)), None)
    if place is None and others and not served:
        place = 0
    model = None if place is None else others.pop(place)
    variants: dict[str, str | None] = {}
    for word in (*given, *others):
        name, equals, path = word.partition("=")
        if not (name and path if equals else word in KINDS):
            raise EvenrankError(
                f"{arg.variants}: expected NAME=FILE or one of {', '.join(KINDS)}, found {quoted(word)}"
            )
        if name in variants:
            raise EvenrankError(f"{arg.variants}: two variants are named {quoted(name)}")
        variants[name] = path if equals else None
    return model, variants


def _placebos(given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The placebos by the variant's name. Raises EvenrankError for two of one variant, and for one without a name
    where there are several variants."""
    from evenrank.files import EvenrankError
    from evenrank.files.errors import quoted

    placebos: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or os.path.exists(word):
            if len(names) > 1:
                raise EvenrankError(
                    f"{arg.placebos}: expected NAME=FILE, as there are several variants, found {quoted(word)}"
                )
            name, path = names[0], word
        if name in placebos:
            raise EvenrankError(f"{arg.placebos}: two placebos of {quoted(name)}")
        placebos[name] = path
    return placebos
