"""Debiasing of a file of word vectors: the call behind ``evenrank embeddings debias``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, check_apart
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.json_values import INLINE, LEFT_OUT
from evenrank.files.wording import counted
from evenrank.models.vectors import Vectors, read_vectors, vector_files, write_vectors
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page
from evenrank.results.result import Result

from .debias import Debiased, SpecificWords, Subspace, bias_subspace, choose_specific, hard_debias, specific_words
from .embeddings_audit import most_biased
from .leace import Erased, leace
from .word_sets import WordSets, load_word_sets, read_sets

Path = str | os.PathLike[str]
_SAYS = phrases("embeddings")
_SOURCE = "Hard debiasing: Bolukbasi et al., NeurIPS 2016. LEACE: Belrose et al., NeurIPS 2023."


@dataclass(frozen=True, slots=True, repr=False)
class DebiasResult(Result):
    """The result of :func:`debias_file`: ``debiased`` vectors, written to ``out``, and a ``summary`` in lines.

    ``specific``: the words that kept their group, as given and as learned. ``subspace``: that of the definitional sets,
    if it was asked for.
    """

    debiased: Debiased | Erased = field(metadata=INLINE)
    out: Path
    summary: str = field(metadata=LEFT_OUT)
    specific: SpecificWords = field(metadata=LEFT_OUT)
    settings: dict[str, object]
    subspace: Subspace | None = field(default=None, kw_only=True, metadata=LEFT_OUT)

    def __repr__(self) -> str:
        return f"DebiasResult({os.fspath(self.out)!r})\n{self.table()}"

    @property
    def kept(self) -> list[str]:
        """The words that were not neutralised: they keep their group."""
        done = self.debiased
        return [word for word, neutral in zip(done.vectors.words, done.neutral, strict=True) if not neutral]

    def page(self) -> Page:
        """The summary as a page."""
        facts = (
            ("words", f"{len(self.debiased.vectors.words):,}"),
            ("words that keep their group", f"{len(self.kept):,}"),
        )
        title = f"Debiased word vectors: {os.fspath(self.out)}"
        return Page(
            "embeddings debias",
            title,
            tuple(_findings(self.debiased, self.subspace)),
            facts=facts,
            source=_SOURCE,
            notes=tuple(self.summary.split("\n")),
            provenance=self.provenance,
        )

    def message(self) -> str:
        """What was written, in a line, after a line on learned words if there are any."""
        size = counted(len(self.debiased.vectors.words), "vector")
        line = f"{size}, {len(self.kept)} of them of words that keep their group: {os.fspath(self.out)}"
        learned = self.specific.message()
        return line if learned is None else f"{learned}\n{line}"

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
    learn_specific: opt.LearnSpecific = False,
    method: Annotated[str, opt.Option("hard (Bolukbasi et al.), or leace.")] = "hard",
    components: Annotated[int, opt.Option("hard: dimensions of the bias subspace.", rare=True)] = 1,
    groups: Annotated[
        Path | None,
        opt.Option(
            "leace: a list of words per group to fit on, as JSON.",
            metavar="F.json",
            reads=True,
            panel="Groups",
            rare=True,
        ),
    ] = None,
    most: Annotated[
        int, opt.Option("leace without --groups: most biased neutral words per side to fit on.", rare=True)
    ] = 500,
    limit: opt.Limit = None,
    seed: Annotated[int, opt.Option("Random seed.", rare=True)] = 0,
) -> DebiasResult:
    """Remove the bias direction from word vectors. The table shows how equal the distances are afterwards.

    ``vectors``: see :func:`evenrank.search.embeddings.read_vectors`; ``limit``: only its first words. ``out``: see
    :func:`evenrank.search.embeddings.write_vectors`. ``definitional``, ``equalize``, ``specific``: JSON files that
    replace the built-in sets; ``learn_specific``: also learn specific words from them. ``method``: ``hard``
    (:func:`evenrank.search.debias.hard_debias`, with ``components``) or ``leace`` (:mod:`evenrank.search.leace`),
    fitted on the words of ``groups`` (a JSON file), else on the ``most`` most biased neutral words of each side.

    Raises EvenrankError for settings that do not fit together, and as these functions do; InputError for a file that
    cannot be read or written.
    """
    if method not in ("hard", "leace"):
        raise EvenrankError(f"`method`: expected hard or leace, found {quoted(method)}")
    if groups is not None and method != "leace":
        raise EvenrankError("`groups` needs `method='leace'`")
    if components != 1 and method != "hard":
        raise EvenrankError("`components` needs `method='hard'`")
    check_apart(vector_files(out), (vectors, definitional, equalize, specific, groups))
    made = Provenance("evenrank embeddings").add("vectors", vectors, tree=True).add("definitional", definitional)
    made.add("equalize", equalize).add("specific", specific).add("groups", groups).ahead()
    sets = load_word_sets(definitional, equalize, specific)
    given = read_vectors(vectors, limit=limit)
    words = choose_specific(given, sets, learn=learn_specific, seed=seed)
    files = {"vectors": vectors, "definitional": definitional, "equalize": equalize, "specific": specific}
    settings: dict[str, object] = {name: None if path is None else os.fspath(path) for name, path in files.items()}
    settings = {"vectors": settings.pop("vectors"), "method": method, **settings}
    settings |= {"learn_specific": learn_specific, "limit": limit, "seed": seed}
    debiased: Debiased | Erased
    if method == "hard":
        settings["components"] = components
        debiased = hard_debias(given, sets.definitional, sets.equalize, words.all, components=components, in_place=True)
        subspace: Subspace | None = debiased.subspace
        summary = debiased.text()
    else:
        settings |= {"most": most} if groups is None else {"groups": os.fspath(groups)}
        debiased, subspace, summary = _erased(given, sets, words.all, groups, most)
    write_vectors(debiased.vectors, out)
    return DebiasResult(debiased, out, summary, words, settings, subspace=subspace, provenance=made)


def _findings(done: Debiased | Erased, subspace: Subspace | None) -> Iterator[Finding]:
    """What was done, whether it holds, and whether the bias subspace rests on too little."""
    words = counted(int(done.neutral.sum()), "neutral word")
    if isinstance(done, Debiased):
        sets = counted(len(done.equalized), "set")
        yield _SAYS.find("hard", place="answer", words=words, sets=sets)
        check = done.check
        if check is not None and check.pairs and check.words:
            key = "equal" if check.holds() else "unequal"
            yield _SAYS.find(key, place="answer", distance=max(check.dot, check.distance))
    else:
        directions = counted(done.eraser.left.shape[1], "direction")
        before, after = done.gap
        yield _SAYS.find("leace", place="answer", directions=directions, before=before, after=after)
    if subspace is not None and subspace.warning() is not None:
        used, given = subspace.sets
        sets = counted(used, "definitional set")
        yield _SAYS.find("few_sets", level="cannot be told", place="warning", sets=sets, given=given)


def _erased(
    vectors: Vectors, sets: WordSets, specific: tuple[str, ...], groups: Path | None, most: int
) -> tuple[Erased, Subspace | None, str]:
    """LEACE fitted on the words of the file ``groups``, else on the ``most`` biased of a subspace; and a summary."""
    neutral = ~specific_words(vectors.words, [*specific, *(word for of in sets.equalize for word in of)])
    if groups is not None:
        erased = leace(vectors, [list(of) for of in read_sets(groups)], neutral, in_place=True)
        return erased, None, erased.text("the words given")
    subspace = bias_subspace(vectors, sets.definitional)
    sides = most_biased(vectors, subspace.basis[0], neutral, most)
    chosen = [[vectors.words[row] for row in side] for side in sides]
    erased = leace(vectors, chosen, neutral, in_place=True)
    return erased, subspace, erased.text(f"the {len(chosen[0])} most biased neutral words of each side")
