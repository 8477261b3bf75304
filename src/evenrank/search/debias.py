"""Hard debiasing of word vectors [Bolukbasi et al. 2016], on whole matrices.

When it misleads: it makes the direct bias 0 by construction, but most of the bias remains in the relations between
words: words of a side still cluster and can be told apart (Gonen & Goldberg 2019). The zero is no evidence: see
``evenrank embeddings audit``. Everything depends on the word lists, and words in ``specific`` keep their group.

Worked example: "he" and "she" differ along the first axis only. "nurse" (−3/5, 4/5) loses its component along it and is
scaled to length 1 again.

>>> import numpy as np
>>> from evenrank.search import Vectors, hard_debias
>>> given = Vectors(("he", "she", "nurse"), np.array([[0.6, 0.8], [-0.6, 0.8], [-0.6, 0.8]], np.float32))
>>> hard_debias(given, [("he", "she")], [("he", "she")], ["he", "she"]).vectors.matrix.round(4).tolist()[2]
[0.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from evenrank import options as opt
from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg
from evenrank.files.json_values import fields_of
from evenrank.models.vectors import (
    Doubles,
    Flags,
    Floats,
    Rows,
    Sets,
    Vectors,
    first_words,
    one_blas_thread,
    row_numbers,
    unit_rows,
    words_of,
)

FEW = 3
"""A subspace of fewer definitional sets gets a warning."""


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """A bias subspace: ``basis`` [k, D] float64, orthonormal, and ``explained`` [k], the share of the variance within
    the definitional sets that each component explains. ``missing``: words of the sets without a vector; ``requested``:
    the number of components requested. ``sets``: the number of definitional sets used, and of those given.

    The first component points from the later words of a set to its first.
    """

    basis: Doubles
    explained: Doubles
    missing: tuple[str, ...]
    requested: int = 1
    sets: tuple[int, int] = (0, 0)

    @property
    def few_sets(self) -> bool:
        """Whether fewer than three definitional sets were used: one alone explains all of its variance."""
        return 0 < self.sets[0] < FEW


@checked
def bias_subspace(vectors: Vectors, definitional: Sets, components: Annotated[int, opt.COUNT] = 1) -> Subspace:
    """The first ``components`` principal components of the definitional sets, each centred on its own mean.

    The first rows of the SVD of C = Σᵢ Σ_{w ∈ Dᵢ} (w − μᵢ)ᵀ(w − μᵢ) / |Dᵢ| over unit vectors (Bolukbasi et al. 2016,
    section 5, step 1). Sets can have any size; sets with fewer than two words with a vector are left out. If the sets
    span fewer dimensions, there are fewer components.

    Raises EvenrankError if no set is left, if the words of every set have the same vector, and if ``components`` is not
    from 1 to D − 1.
    """
    if not 1 <= components < vectors.dimensions:
        raise EvenrankError(
            f"{arg.components}: expected 1 to {vectors.dimensions - 1} (vectors of {vectors.dimensions} dimensions), "
            f"found {components}"
        )
    row_of = row_numbers(vectors.words, (word for of in definitional for word in of))
    centred, towards_first = [], np.zeros(vectors.dimensions)
    for of in definitional:
        known = [row_of[word] for word in of if word in row_of]
        if len(known) < 2:
            continue
        rows = unit_rows(vectors.matrix[known])
        rows = rows - rows.mean(axis=0)
        centred.append(rows / np.sqrt(len(known)))
        towards_first += rows[0] if of[0] in row_of else 0
    if not centred:
        raise EvenrankError(
            f"definitional sets: none has two words with a vector ({first_words(words_of(definitional))})"
        )
    with one_blas_thread():
        _, values, basis = np.linalg.svd(np.concatenate(centred), full_matrices=False)
    if values[0] < 1e-6:
        raise EvenrankError("definitional sets: the words of each set have the same vector")
    rank = int((values > 1e-6 * values[0]).sum())
    basis = basis[: min(components, rank)]
    # The sign of a component is arbitrary: fixed here, so that it is the same on every machine.
    sign = np.sign(basis @ towards_first)
    basis = basis * np.where(sign == 0, 1, sign)[:, None]
    explained = (values**2 / (values**2).sum())[: len(basis)]
    missing = tuple(word for word in words_of(definitional) if word not in row_of)
    sets = len(centred), len(definitional)
    return Subspace(np.ascontiguousarray(basis), explained, missing, components, sets)


def specific_words(words: Sequence[str], specific: Collection[str]) -> Flags:
    """Flags [V] of the ``words`` that are in ``specific``, ignoring case."""
    lower = frozenset(word.lower() for word in specific)
    return np.fromiter((word.lower() in lower for word in words), np.bool_, len(words))


_WORDS = 2048
"""Words per block."""


@dataclass(frozen=True, slots=True)
class EqualityCheck:
    """The largest |w·a − w·b| (``dot``) and |‖w − a‖ − ‖w − b‖| (``distance``) over ``words`` neutral words and
    ``pairs`` of equalised words."""

    dot: float
    distance: float
    words: int
    pairs: int

    def holds(self) -> bool:
        """Whether both are below 1e-6."""
        return max(self.dot, self.distance) < 1e-6


def check_equality(vectors: Vectors, neutral: Flags, sets: Iterable[Rows]) -> EqualityCheck:
    """The largest |w·a − w·b| and |‖w − a‖ − ‖w − b‖| over every neutral word w and every two words a, b of a set.

    ``neutral`` [V]; ``sets``: the rows of each set. Computed in blocks of words, in float64.
    """
    pairs = np.array([pair for of in sets for pair in combinations(of, 2)], dtype=np.int64).reshape(-1, 2)
    rows = np.flatnonzero(neutral)
    if not len(pairs) or not len(rows):
        return EqualityCheck(0.0, 0.0, len(rows), len(pairs))
    a, b = (vectors.matrix[pairs[:, side]].astype(np.float64) for side in (0, 1))
    of_a, of_b, between = (a * a).sum(axis=1), (b * b).sum(axis=1), np.linalg.norm(a - b, axis=1)
    dot = distance = 0.0
    for start in range(0, len(rows), _WORDS):
        words = vectors.matrix[rows[start : start + _WORDS]].astype(np.float64)
        gap, square = words @ (a - b).T, (words * words).sum(axis=1)[:, None]
        dot = max(dot, float(np.abs(gap).max()))
        # ‖w − a‖ − ‖w − b‖ is (‖a‖² − ‖b‖² − 2 w·(a − b)) / (‖w − a‖ + ‖w − b‖): so no digits cancel. The sum of the
        # two is at least ‖a − b‖, whatever rounding makes of it.
        apart = [np.sqrt(np.maximum(square + of - 2 * words @ to.T, 0.0)) for of, to in ((of_a, a), (of_b, b))]
        difference = np.abs(of_a - of_b - 2 * gap) / np.maximum(np.maximum(apart[0] + apart[1], between), 1e-300)
        distance = max(distance, float(difference.max()))
    return EqualityCheck(dot, distance, len(rows), len(pairs))


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
            check = {**fields_of(self.check), "holds_to_1e-6": self.check.holds()}
        return {
            "neutral": int(self.neutral.sum()),
            "equalized": [[self.vectors.words[row] for row in of] for of in self.equalized],
            "components": len(self.subspace.explained),
            "explained": self.subspace.explained,
            "check": check,
            "zero": self.zeroed,
            "missing": self.missing,
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


@checked
def hard_debias(
    vectors: Vectors,
    definitional: Sets,
    equalize: Sets,
    specific: Collection[str],
    *,
    components: Annotated[int, opt.COUNT] = 1,
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
    debiased = Vectors(vectors.words, matrix)
    present = frozenset(row_of)
    lower = {vectors.words[row].lower() for row in np.flatnonzero(~neutral)}
    missing = {
        "definitional": subspace.missing,
        "equalize": tuple(
            word for word in words_of(equalize) if present.isdisjoint((word, word.lower(), word.title(), word.upper()))
        ),
        "specific": tuple(word for word in dict.fromkeys(specific) if word.lower() not in lower),
    }
    checked = check_equality(debiased, neutral, sets) if check else None
    return Debiased(debiased, subspace, neutral, tuple(sets), missing, zeroed, checked)


def _sets(forms: Sequence[tuple[str, ...]], row_of: Mapping[str, int]) -> list[Rows]:
    """The rows of each set with two or more; the same words in another order are the same set."""
    sets: list[Rows] = []
    home: dict[str, frozenset[str]] = {}
    for form in forms:
        word_set = frozenset(form)
        others = {home.setdefault(word, word_set) for word in form}
        if others == {word_set}:
            sets.append(tuple(row_of[word] for word in form if word in row_of))
            continue
        other = next(iter(sorted(map(sorted, others - {word_set}))))
        word = next(word for word in form if home[word] != word_set)
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
    equalized: Doubles = nu + np.sqrt(max(0.0, 1 - float(nu @ nu))) * towards
    return equalized


_ROWS = 1 << 10
_NOTHING_LEFT = 1e-12
"""Below this share of a row's squared length, the rest is rounding of float32."""


def neutralise(source: Floats, target: Floats, basis: Doubles, neutral: Flags) -> int:
    """Writes rows [V, D] of ``source`` into ``target`` (may be the same), scaled to length 1; those flagged in
    ``neutral`` [V] without their component in the span of ``basis`` [k, D], orthonormal. Computed in float64. Zero rows
    stay zero; rows within the span become zero. Returns the number of the latter."""
    gone = 0
    for start in range(0, len(source), _ROWS):
        own = slice(start, start + _ROWS)
        rows = source[own].astype(np.float64)
        before = np.einsum("vd,vd->v", rows, rows)
        # Twice: where much is removed, rounding is large relative to the rest.
        for _ in range(2):
            rows -= ((rows @ basis.T) * neutral[own, None]) @ basis
        square = np.einsum("vd,vd->v", rows, rows)
        within = neutral[own] & (before > 0) & (square <= _NOTHING_LEFT * before)
        rows[within] = 0
        gone += int(within.sum())
        target[own] = rows / np.where(within | (square == 0), 1.0, np.sqrt(square))[:, None]
    return gone
