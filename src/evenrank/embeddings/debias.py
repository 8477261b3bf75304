"""Hard debiasing of word vectors [Bolukbasi et al. 2016], on whole matrices.

When it misleads: it makes the direct bias 0 by construction, but most of the bias remains in the relations between
words: words of a side still cluster and can be told apart (Gonen & Goldberg 2019). The zero is no evidence: see
``evenrank embeddings audit``. Everything depends on the word lists, and words in ``specific`` keep their group.

Worked example: "he" and "she" differ along the first axis only. "nurse" (−3/5, 4/5) loses its component along it and is
scaled to length 1 again.

>>> import numpy as np
>>> from evenrank.embeddings import Vectors, hard_debias
>>> given = Vectors(("he", "she", "nurse"), np.array([[0.6, 0.8], [-0.6, 0.8], [-0.6, 0.8]], np.float32))
>>> hard_debias(given, [("he", "she")], [("he", "she")], ["he", "she"]).vectors.matrix.round(4).tolist()[2]
[0.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from evenrank.io import EvenrankError

from ._rows import Doubles, Flags, Floats, Rows, cores, first_words, row_numbers, unit_rows, words_of
from .equality import EqualityCheck, check_equality
from .specific import specific_words
from .subspace import Subspace, bias_subspace
from .vectors import Vectors
from .word_sets import Sets


@dataclass(frozen=True, slots=True, eq=False)
class Debiased:
    """Vectors after debiasing, all of length 1.

    ``neutral`` [V]: the words made orthogonal to ``subspace``; ``equalized``: the rows of each equalised set.
    ``missing``: the words without a vector by list (definitional, equalize, specific). ``zeroed``: the number of
    neutral words within the subspace, whose vectors are now 0. ``check``: the two equal-distance properties, measured
    on these vectors; None without ``check``.
    """

    vectors: Vectors
    subspace: Subspace
    neutral: Flags
    equalized: tuple[Rows, ...]
    missing: Mapping[str, tuple[str, ...]]
    zeroed: int
    check: EqualityCheck | None

    def __repr__(self) -> str:
        return f"Debiased({self.vectors!r})\n{self.text()}"

    def text(self) -> str:
        """A summary in lines."""
        explained = self.subspace.explained
        lines = [
            f"bias subspace: {len(explained)} of {self.subspace.requested} components, {explained.sum():.1%} of the"
            " variance within the definitional sets",
            *([] if (warning := self.subspace.warning()) is None else [warning]),
            f"neutral words: {int(self.neutral.sum())}, equalised sets: {len(self.equalized)}",
        ]
        check = self.check
        if check is not None and check.pairs and check.words:
            lines += [
                f"largest |w·a − w·b| over {check.words} neutral words and {check.pairs} pairs: {check.dot:.1e}",
                f"largest |‖w − a‖ − ‖w − b‖|: {check.distance:.1e}",
                "equal distances: " + ("hold to 1e-6" if check.holds() else "DO NOT hold to 1e-6"),
            ]
        elif check is not None:
            lines.append("equal distances: nothing to check, as no set was equalised or no word is neutral")
        if self.zeroed:
            lines.append(f"neutral words within the subspace, now 0: {self.zeroed}")
        for what, missing in self.missing.items():
            if missing:
                lines.append(f"{what} words without a vector: {len(missing)}: {first_words(missing, 20)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        check = None
        if self.check is not None:
            check = {**asdict(self.check), "holds_to_1e-6": self.check.holds()}
        return {
            "neutral": int(self.neutral.sum()),
            "equalized": [[self.vectors.words[row] for row in of] for of in self.equalized],
            "components": len(self.subspace.explained),
            "explained": self.subspace.explained.tolist(),
            "check": check,
            "zero": self.zeroed,
            "missing": {what: list(missing) for what, missing in self.missing.items()},
        }


def case_forms(words: Sequence[str], known: Container[str] = ()) -> list[tuple[str, ...]]:
    """A set in lower, Title and UPPER case, without duplicates and without forms in which two words are the same.

    If two of the words are ``known`` as written, that form comes first, and forms that share a word with it are left
    out: if "Catholic_priest" and "nun" are a pair, "nun" is in no other.
    """
    forms = [tuple(form(word) for word in words) for form in (str.lower, str.title, str.upper)]
    written = tuple(words)
    if sum(word in known for word in written) > 1:
        forms = [written, *(form for form in forms if form != written and set(form).isdisjoint(written))]
    return [form for form in dict.fromkeys(forms) if len(set(form)) == len(form)]


def hard_debias(
    vectors: Vectors,
    definitional: Sets,
    equalize: Sets,
    specific: Collection[str],
    *,
    components: int = 1,
    in_place: bool = False,
    check: bool = True,
) -> Debiased:
    """Hard debiasing (Bolukbasi et al. 2016, section 5): neutralise and equalise, for any number of groups.

    Every vector is scaled to length 1. Neutralise: words outside ``specific`` lose their component in the bias subspace
    B (:func:`bias_subspace`) and are scaled to length 1 again, w ← (w − w_B) / ‖w − w_B‖. Equalise: the words of each
    set of ``equalize``, as written and in lower, Title and UPPER case (:func:`case_forms`), become
    ν + √(1 − ‖ν‖²) (w_B − μ_B) / ‖w_B − μ_B‖, where μ is their mean and ν = μ − μ_B; for a pair and k = 1, ν ± z g.
    Case variants of ``specific`` words are specific too; equalised words are not neutralised. Words without a vector
    are skipped, and so are sets with fewer than two words left.

    ``in_place``: overwrite the matrix of ``vectors`` instead of allocating a second one. ``check``: measure the two
    equal-distance properties afterwards (:attr:`Debiased.check`), which takes longer than the rest. Computed in
    float64, stored in float32.

    Raises EvenrankError as :func:`bias_subspace` does, for a word in two different sets of ``equalize``, and for
    ``in_place`` with a read-only matrix.
    """
    if in_place and not vectors.matrix.flags.writeable:
        raise EvenrankError("vectors: a read-only matrix cannot be debiased in place")
    subspace = bias_subspace(vectors, definitional, components)
    written = [word for of in equalize for word in of]
    row_of = row_numbers(
        vectors.words, (form(word) for word in written for form in (str, str.lower, str.title, str.upper))
    )
    forms = dict.fromkeys(form for of in equalize for form in case_forms(of, row_of))
    sets = _sets([form for form in forms if sum(word in row_of for word in form) > 1], row_of)
    neutral = ~specific_words(vectors.words, specific)
    neutral[list({row for of in sets for row in of})] = False
    # Before the matrix changes.
    equalized = [_equalised(unit_rows(vectors.matrix[list(of)]), subspace.basis) for of in sets]
    matrix = vectors.matrix if in_place else np.empty_like(vectors.matrix, order="C")
    zeroed = neutralise(vectors.matrix, matrix, subspace.basis, neutral)
    for of, rows in zip(sets, equalized, strict=True):
        matrix[list(of)] = rows
    found = Vectors(vectors.words, matrix)
    present = frozenset(row_of)
    lower = {vectors.words[row].lower() for row in np.flatnonzero(~neutral)}
    missing = {
        "definitional": subspace.missing,
        "equalize": tuple(
            word for word in words_of(equalize) if present.isdisjoint((word, word.lower(), word.title(), word.upper()))
        ),
        "specific": tuple(word for word in dict.fromkeys(specific) if word.lower() not in lower),
    }
    checked = check_equality(found, neutral, sets) if check else None
    return Debiased(found, subspace, neutral, tuple(sets), missing, zeroed, checked)


def _sets(forms: Sequence[tuple[str, ...]], row_of: Mapping[str, int]) -> list[Rows]:
    """The rows of each set with two or more; the same words in another order are the same set."""
    sets: list[Rows] = []
    home: dict[str, frozenset[str]] = {}
    for form in forms:
        whole = frozenset(form)
        others = {home.setdefault(word, whole) for word in form}
        if others == {whole}:
            sets.append(tuple(row_of[word] for word in form if word in row_of))
            continue
        other = next(iter(sorted(map(sorted, others - {whole}))))
        word = next(word for word in form if home[word] != whole)
        raise EvenrankError(
            f"equalize: {word} is in two sets, {' / '.join(other)} and {' / '.join(form)}: "
            "a word can be in one set only"
        )
    return [of for of in dict.fromkeys(sets, None) if len(of) > 1]


def _equalised(rows: Doubles, basis: Doubles) -> Doubles:
    """A set of unit rows [N, D] after equalising (Bolukbasi et al. 2016, section 5, step 2a)."""
    mean = rows.mean(axis=0)
    nu = mean - (mean @ basis.T) @ basis
    apart = ((rows - mean) @ basis.T) @ basis
    length = np.linalg.norm(apart, axis=1, keepdims=True)
    # Words that do not differ within the subspace move to alternating sides of its first direction.
    side = np.where(np.arange(len(rows)) % 2, -1.0, 1.0)[:, None] * basis[0]
    towards = np.where(length > 1e-12, apart / np.where(length > 1e-12, length, 1), side)
    found: Doubles = nu + np.sqrt(max(0.0, 1 - float(nu @ nu))) * towards
    return found


def neutralise(source: Floats, target: Floats, basis: Doubles, neutral: Flags) -> int:
    """Neutralises rows on all cores; rows are independent, so the number of cores changes no value."""
    from . import _dots

    threads = cores()
    bounds = np.linspace(0, len(source), threads + 1).astype(int)
    parts = [slice(first, last) for first, last in pairwise(bounds) if last > first]
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda part: _dots.neutralise(source[part], target[part], basis, neutral[part]), parts)
        return sum(done)
