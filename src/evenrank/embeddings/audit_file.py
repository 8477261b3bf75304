"""Evaluation of a file of word vectors: the call behind ``evenrank embeddings audit``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenrank.io import EvenrankError, Provenance
from evenrank.io.errors import quoted
from evenrank.reports.page import Page
from evenrank.reports.result import Result

from .evaluation import BiasEvaluation, EvaluationSettings, evaluate_bias
from .evaluation_page import evaluation_page
from .specific import SpecificWords, choose_specific
from .vectors import read_vectors
from .word_sets import load_word_sets


@dataclass(frozen=True, slots=True, repr=False)
class BiasAudit(Result):
    """The result of :func:`audit_file`; ``name`` and ``after``: the names of the files.

    ``specific``: the words that keep their group, as given and as learned.
    """

    name: str
    after: str | None
    evaluation: BiasEvaluation
    specific: SpecificWords
    settings: dict[str, object]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {**self.evaluation.to_dict(), "settings": self.settings | self.evaluation.settings}

    def page(self) -> Page:
        """The figures and charts as a page."""
        return evaluation_page(self.evaluation, self.name, self.after)


# parameters: the options of `evenrank embeddings audit`
def audit_file(
    vectors: str | os.PathLike[str],
    after: str | os.PathLike[str] | None = None,
    *,
    definitional: str | os.PathLike[str] | None = None,
    equalize: str | os.PathLike[str] | None = None,
    specific: str | os.PathLike[str] | None = None,
    learn_specific: bool = False,
    words: Sequence[str] | None = None,
    analogies: Sequence[tuple[str, str, str]] | None = None,
    limit: int | None = None,
    settings: EvaluationSettings | None = None,
) -> BiasAudit:
    """Evaluates the bias of a file of word vectors, and what is left of it in the file ``after`` debiasing.

    ``vectors``, ``after``: see :func:`evenrank.embeddings.read_vectors`; ``limit``: only their first words.
    ``definitional``, ``equalize``, ``specific``: JSON files that replace the built-in sets; ``learn_specific``: also
    learn specific words from them. ``words``, ``analogies``, ``settings`` and the errors: see
    :func:`evenrank.embeddings.evaluate_bias`; also raises InputError for a file that cannot be read.
    """
    settings = EvaluationSettings() if settings is None else settings
    made = Provenance("evenrank embeddings").add("vectors", vectors, tree=True).add("after", after, tree=True)
    made.add("definitional", definitional).add("equalize", equalize).add("specific", specific).ahead()
    sets = load_word_sets(definitional, equalize, specific)
    given = read_vectors(vectors, limit=limit, mmap=True)
    kept = choose_specific(given, sets, learn=learn_specific, seed=settings.seed)
    evaluation = evaluate_bias(
        given,
        None if after is None else read_vectors(after, limit=limit, mmap=True),
        replace(sets, specific=kept.all),
        words=words,
        analogies=analogies,
        settings=settings,
    )
    files = {
        "vectors": vectors,
        "after": after,
        "definitional": definitional,
        "equalize": equalize,
        "specific": specific,
    }
    asked: dict[str, object] = {name: None if path is None else os.fspath(path) for name, path in files.items()}
    asked |= {"learn_specific": learn_specific, "limit": limit}
    after_name = None if after is None else Path(after).name
    return BiasAudit(Path(vectors).name, after_name, evaluation, kept, asked, made)


def parse_analogy(text: str) -> tuple[str, str, str]:
    """``A:B::C`` as (A, B, C). Raises EvenrankError for anything else."""
    pair, _, c = text.partition("::")
    a, _, b = pair.partition(":")
    if not (a and b and c) or ":" in b + c:
        raise EvenrankError(f"`analogy`: expected A:B::C, found {quoted(text)}")
    return a, b, c
