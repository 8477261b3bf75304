"""Debiasing of a file of word vectors: the call behind ``evenrank embeddings debias``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from evenrank import options as opt
from evenrank.files import Provenance, check_apart
from evenrank.files.arguments import checked
from evenrank.files.json_values import INLINE
from evenrank.files.wording import counted
from evenrank.models.vectors import read_vectors, vector_files, write_vectors
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page
from evenrank.results.result import Result

from .debias import Debiased, hard_debias
from .word_sets import load_word_sets

Path = str | os.PathLike[str]
_PHRASES = phrases("embeddings")
_SOURCE = "Hard debiasing: Bolukbasi et al., NeurIPS 2016."


@dataclass(frozen=True, slots=True, repr=False)
class DebiasResult(Result):
    """The result of :func:`debias_file`: ``debiased`` vectors, written to ``out``."""

    debiased: Debiased = field(metadata=INLINE)
    out: Path
    settings: dict[str, object]

    def __repr__(self) -> str:
        return f"DebiasResult({os.fspath(self.out)!r})\n{self.table()}"

    @property
    def kept(self) -> list[str]:
        """The words that were not neutralised: they keep their group."""
        done = self.debiased
        return [word for word, neutral in zip(done.vectors.words, done.neutral, strict=True) if not neutral]

    def page(self) -> Page:
        """The debiasing as a page."""
        facts = (
            ("words", f"{len(self.debiased.vectors.words):,}"),
            ("words that keep their group", f"{len(self.kept):,}"),
        )
        title = f"Debiased word vectors: {os.fspath(self.out)}"
        return Page(
            "embeddings debias",
            title,
            tuple(_findings(self.debiased)),
            facts=facts,
            source=_SOURCE,
            notes=tuple(self.debiased.text().split("\n")),
            provenance=self.provenance,
        )

    def message(self) -> str:
        """What was written, in a line."""
        size = counted(len(self.debiased.vectors.words), "vector")
        return f"{size}, {len(self.kept)} of them of words that keep their group: {os.fspath(self.out)}"

    def _beside(self) -> Mapping[str, object]:
        return {"words": len(self.debiased.vectors.words)}


@checked
def debias_file(
    vectors: Annotated[Path, opt.Option(opt.VECTORS, metavar="IN", reads=True)],
    *,
    out: Annotated[Path, opt.Option(opt.OUT_VECTORS, panel="Output")],
    definitional: opt.Definitional = None,
    equalize: opt.Equalize = None,
    specific: opt.Specific = None,
    components: Annotated[int, opt.Option("Dimensions of the bias subspace.", range=opt.COUNT, rare=True)] = 1,
    limit: opt.Limit = None,
) -> DebiasResult:
    """Remove the bias direction from word vectors. The table shows how equal the distances are afterwards.

    ``vectors``: see :func:`evenrank.search.read_vectors`; ``limit``: only its first words. ``out``: see
    :func:`evenrank.search.write_vectors`. ``definitional``, ``equalize``, ``specific``: JSON files that
    replace the built-in sets. ``components``: see
    :func:`evenrank.search.debias.hard_debias`.

    Raises EvenrankError as these functions do; InputError for a file that cannot be read or written.
    """
    check_apart(vector_files(out), (vectors, definitional, equalize, specific))
    provenance, files = noted_inputs(vectors=vectors, definitional=definitional, equalize=equalize, specific=specific)
    settings = {**files, "limit": limit, "components": components}
    sets = load_word_sets(definitional, equalize, specific)
    space = read_vectors(vectors, limit=limit)
    debiased = hard_debias(space, sets.definitional, sets.equalize, sets.specific, components=components, in_place=True)
    write_vectors(debiased.vectors, out)
    return DebiasResult(debiased, out, settings, provenance=provenance)


def noted_inputs(**files: Path | None) -> tuple[Provenance, dict[str, object]]:
    """The record of what a result is made from, and the paths as settings; vectors may be folders."""
    provenance = Provenance("evenrank embeddings")
    for role, path in files.items():
        provenance.add(role, path, tree=role in ("vectors", "after"))
    return provenance.ahead(), {role: None if path is None else os.fspath(path) for role, path in files.items()}


def _findings(done: Debiased) -> Iterator[Finding]:
    """What was done, whether it holds, and whether the bias subspace rests on too little."""
    words = counted(int(done.neutral.sum()), "neutral word")
    sets = counted(len(done.equalized), "set")
    yield _PHRASES.finding("hard", place="answer", words=words, sets=sets)
    check = done.check
    if check is not None and check.pairs and check.words:
        key = "equal" if check.holds() else "unequal"
        yield _PHRASES.finding(key, place="answer", distance=max(check.dot, check.distance))
    if done.subspace.few_sets:
        used, given = done.subspace.sets
        sets = counted(used, "definitional set")
        yield _PHRASES.finding("few_sets", level="cannot be told", place="warning", sets=sets, given=given)
