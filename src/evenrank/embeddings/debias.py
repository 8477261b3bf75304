"""Hard debiasing of word vectors [Bolukbasi et al. 2016], on whole matrices.

When it misleads: it makes the direct bias 0 by construction, and most of the bias remains in how words stand to each
other: words of a side still cluster and can be told apart (Gonen & Goldberg 2019). The zero is no evidence: look at
``evenrank embeddings audit``. All depends on the word lists, and words in ``specific`` keep their group.

Worked example: "he" and "she" differ along the first axis alone. "nurse" (−3/5, 4/5) loses its part along it and is
brought to length 1 again.

>>> import numpy as np
>>> from evenrank.embeddings import Vectors, hard_debias
>>> given = Vectors(("he", "she", "nurse"), np.array([[0.6, 0.8], [-0.6, 0.8], [-0.6, 0.8]], np.float32))
>>> hard_debias(given, [("he", "she")], [("he", "she")], ["he", "she"]).vectors.matrix.round(4).tolist()[2]
[0.0, 1.0]
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from evenrank.io import EvenrankError, MissingExtraError
from evenrank.io.ranges import check_ranges, seed_32

from .vectors import Vectors
from .word_sets import Sets

Floats = np.ndarray[Any, np.dtype[np.float32]]
Doubles = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Rows = tuple[int, ...]

_BLOCK = 4096
# Of the check: words at once, candidates at once, directions up to which the product is split.
_CHECKED, _SOME, _DIRECTIONS = 2048, 64, 32


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """The bias subspace: ``basis`` [k, D] float64, orthonormal, ``explained`` [k] the share of the variance within the
    definitional sets that each component holds. ``missing``: words of sets that have no vector; ``asked``: how many
    components were asked for.

    The first component points from a set's later words to its first.
    """

    basis: Doubles
    explained: Doubles
    missing: tuple[str, ...]
    asked: int = 1


@dataclass(frozen=True, slots=True)
class EqualityCheck:
    """The largest |w·a − w·b| and |‖w − a‖ − ‖w − b‖| over ``words`` neutral words and ``pairs`` equalised pairs."""

    dot: float
    distance: float
    words: int
    pairs: int

    def holds(self) -> bool:
        """Whether both are below 1e-6."""
        return max(self.dot, self.distance) < 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Debiased:
    """Vectors after debiasing, all of length 1.

    ``neutral`` [V]: the words made orthogonal to ``subspace``; ``equalized``: the rows of each set that was equalised.
    ``missing``: by list (definitional, equalize, specific), the words without a vector. ``gone``: neutral words that
    lay within the subspace and are 0 now. ``check``: the two equal-distance properties, measured on these vectors, or
    None where that was not asked for.
    """

    vectors: Vectors
    subspace: Subspace
    neutral: Flags
    equalized: tuple[Rows, ...]
    missing: Mapping[str, tuple[str, ...]]
    gone: int
    check: EqualityCheck | None

    def __repr__(self) -> str:
        return f"Debiased({self.vectors!r})\n{self.text()}"

    def text(self) -> str:
        """What was done, in lines."""
        held = self.subspace.explained
        lines = [
            f"bias subspace: {len(held)} of {self.subspace.asked} components, {held.sum():.1%} of the variance within"
            " the definitional sets",
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
            lines.append("equal distances: nothing to check, no set was equalised or no word is neutral")
        if self.gone:
            lines.append(f"neutral words that lay within the subspace and are 0 now: {self.gone}")
        for what, missing in self.missing.items():
            if missing:
                lines.append(f"{what} words without a vector: {len(missing)}: {some(missing, 20)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
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
            "zero": self.gone,
            "missing": {what: list(missing) for what, missing in self.missing.items()},
        }


def unit(rows: np.ndarray[Any, Any]) -> Doubles:
    """Rows [N, D] of length 1, in float64; a row of 0 stays."""
    found = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    length[length == 0] = 1
    divided: Doubles = found / length
    return divided


def rows_of(words: Sequence[str], wanted: Iterable[str]) -> dict[str, int]:
    """The row of each of the ``wanted`` words that stands in ``words``."""
    asked = frozenset(wanted)
    return {word: row for row, word in enumerate(words) if word in asked}


def case_forms(words: Sequence[str], known: Container[str] = ()) -> list[tuple[str, ...]]:
    """A set in lower, Title and UPPER case, each form once; a form in which two words are one is left out.

    Where two of the words are ``known`` as they are written, that form comes first, and a form that shares a word with
    it is left out: "Catholic_priest" and "nun" are a pair, and "nun" then is in no other.
    """
    forms = [tuple(form(word) for word in words) for form in (str.lower, str.title, str.upper)]
    written = tuple(words)
    if sum(word in known for word in written) > 1:
        forms = [written, *(form for form in forms if form != written and set(form).isdisjoint(written))]
    return [form for form in dict.fromkeys(forms) if len(set(form)) == len(form)]


def specific_words(words: Sequence[str], specific: Collection[str]) -> Flags:
    """Which of ``words`` [V] are in ``specific`` or differ from one of these in case only."""
    lower = frozenset(word.lower() for word in specific)
    return np.fromiter((word.lower() in lower for word in words), np.bool_, len(words))


def bias_subspace(vectors: Vectors, definitional: Sets, components: int = 1) -> Subspace:
    """The first ``components`` principal components of the definitional sets, each centred on its own mean.

    The first rows of the SVD of C = Σᵢ Σ_{w ∈ Dᵢ} (w − μᵢ)ᵀ(w − μᵢ) / |Dᵢ| over unit vectors (Bolukbasi et al. 2016,
    section 5, step 1). Sets of any size; one with fewer than two words that have a vector is left out. Fewer components
    where the sets have fewer.

    Raises EvenrankError where no set is left, where the words of every set have the same vector, and for a number of
    components that is no number from 1 to D − 1.
    """
    if not 1 <= components < vectors.dimensions:
        raise EvenrankError(
            f"`components`: expected 1 to {vectors.dimensions - 1} (vectors of {vectors.dimensions} dimensions), "
            f"found {components}"
        )
    row_of = rows_of(vectors.words, (word for of in definitional for word in of))
    centred, towards_first = [], np.zeros(vectors.dimensions)
    for of in definitional:
        known = [row_of[word] for word in of if word in row_of]
        if len(known) < 2:
            continue
        rows = unit(vectors.matrix[known])
        rows = rows - rows.mean(axis=0)
        centred.append(rows / np.sqrt(len(known)))
        towards_first += rows[0] if of[0] in row_of else 0
    if not centred:
        raise EvenrankError(f"definitional sets: none has two words with a vector ({some(_named(definitional))})")
    with _one_blas_thread():
        _, values, basis = np.linalg.svd(np.concatenate(centred), full_matrices=False)
    if values[0] < 1e-6:
        raise EvenrankError("definitional sets: the words of each set have the same vector")
    rank = int((values > 1e-6 * values[0]).sum())
    basis = basis[: min(components, rank)]
    # The sign of a component is free: this one is the same on every machine.
    sign = np.sign(basis @ towards_first)
    basis = basis * np.where(sign == 0, 1, sign)[:, None]
    explained = (values**2 / (values**2).sum())[: len(basis)]
    missing = tuple(word for word in _named(definitional) if word not in row_of)
    return Subspace(np.ascontiguousarray(basis), explained, missing, components)


def _named(sets: Sets) -> list[str]:
    return list(dict.fromkeys(word for of in sets for word in of))


def some(words: Sequence[str], count: int = 5) -> str:
    """The first words, for a message."""
    return ", ".join(words[:count]) + (", …" if len(words) > count else "")


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

    Every vector is brought to length 1. Neutralise: a word outside ``specific`` loses its part in the bias subspace B
    (:func:`bias_subspace`) and is brought to length 1 again, w ← (w − w_B) / ‖w − w_B‖. Equalise: the words of each
    set of ``equalize``, as written and in lower, Title and UPPER case (:func:`case_forms`), become
    ν + √(1 − ‖ν‖²) (w_B − μ_B) / ‖w_B − μ_B‖ with μ their mean and ν = μ − μ_B; for a pair and k = 1 that is ν ± z g.
    Case variants of ``specific`` words are specific too, and what is equalised is not neutralised. A set is equalised
    as far as its words have vectors, where two have.

    ``in_place``: the matrix of ``vectors`` itself is changed and no second one made; without ``check``, nothing is
    measured (which takes longer than the rest). Computed in float64, kept in
    float32; :attr:`Debiased.check` measures what rounding leaves of the two equal-distance properties.

    Raises EvenrankError as :func:`bias_subspace` does, for a word that stands in two different sets of ``equalize``,
    and where ``in_place`` is asked of a matrix that cannot be written.
    """
    if in_place and not vectors.matrix.flags.writeable:
        raise EvenrankError("vectors: this matrix cannot be written, so it cannot be debiased in place")
    subspace = bias_subspace(vectors, definitional, components)
    written = [word for of in equalize for word in of]
    row_of = rows_of(vectors.words, (form(word) for word in written for form in (str, str.lower, str.title, str.upper)))
    forms = dict.fromkeys(form for of in equalize for form in case_forms(of, row_of))
    sets = _sets([form for form in forms if sum(word in row_of for word in form) > 1], row_of)
    neutral = ~specific_words(vectors.words, specific)
    neutral[list({row for of in sets for row in of})] = False
    # Before the rows change under it.
    equalized = [_equalised(unit(vectors.matrix[list(of)]), subspace.basis) for of in sets]
    matrix = vectors.matrix if in_place else np.empty_like(vectors.matrix, order="C")
    gone = neutralise(vectors.matrix, matrix, subspace.basis, neutral)
    for of, rows in zip(sets, equalized, strict=True):
        matrix[list(of)] = rows
    found = Vectors(vectors.words, matrix)
    present = frozenset(row_of)
    lower = {vectors.words[row].lower() for row in np.flatnonzero(~neutral)}
    missing = {
        "definitional": subspace.missing,
        "equalize": tuple(
            word for word in _named(equalize) if present.isdisjoint((word, word.lower(), word.title(), word.upper()))
        ),
        "specific": tuple(word for word in dict.fromkeys(specific) if word.lower() not in lower),
    }
    checked = check_equality(found, neutral, sets) if check else None
    return Debiased(found, subspace, neutral, tuple(sets), missing, gone, checked)


def _sets(forms: Sequence[tuple[str, ...]], row_of: Mapping[str, int]) -> list[Rows]:
    """The rows of each set that has two or more; the same set in another order is not another set."""
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
            f"equalize: {word} stands in two sets, {' / '.join(other)} and {' / '.join(form)}: "
            "a word can be equalised with one set only"
        )
    return [of for of in dict.fromkeys(sets, None) if len(of) > 1]


def _equalised(rows: Doubles, basis: Doubles) -> Doubles:
    """A set of unit rows [N, D] after equalising (Bolukbasi et al. 2016, section 5, step 2a)."""
    mean = rows.mean(axis=0)
    nu = mean - (mean @ basis.T) @ basis
    apart = ((rows - mean) @ basis.T) @ basis
    length = np.linalg.norm(apart, axis=1, keepdims=True)
    # Words that do not differ within the subspace go to its first direction, one side each.
    side = np.where(np.arange(len(rows)) % 2, -1.0, 1.0)[:, None] * basis[0]
    towards = np.where(length > 1e-12, apart / np.where(length > 1e-12, length, 1), side)
    found: Doubles = nu + np.sqrt(max(0.0, 1 - float(nu @ nu))) * towards
    return found


def neutralise(source: Floats, target: Floats, basis: Doubles, neutral: Flags) -> int:
    """``_kernel.neutralise`` on all cores; each row is computed alone, so their number changes no value."""
    from . import _kernel

    threads = _cores()
    bounds = np.linspace(0, len(source), threads + 1).astype(int)
    parts = [slice(first, last) for first, last in pairwise(bounds) if last > first]
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda part: _kernel.neutralise(source[part], target[part], basis, neutral[part]), parts)
        return sum(done)


def check_equality(vectors: Vectors, neutral: Flags, sets: Iterable[Rows]) -> EqualityCheck:
    """The largest |w·a − w·b| and |‖w − a‖ − ‖w − b‖| over every neutral word w and every two words a, b of a set.

    In blocks of words, as exact as in float64.
    """
    pairs = np.array([pair for of in sets for pair in combinations(of, 2)], dtype=np.int64).reshape(-1, 2)
    rows = np.flatnonzero(neutral)
    if not len(pairs) or not len(rows):
        return EqualityCheck(0.0, 0.0, len(rows), len(pairs))
    a, b = (vectors.matrix[pairs[:, side]].astype(np.float64) for side in (0, 1))
    squares = (a * a).sum(axis=1) - (b * b).sum(axis=1)
    between = np.maximum(np.linalg.norm(a - b, axis=1), 1e-300)
    with _one_blas_thread():
        directions, differences = _split(a - b)
    found = [0.0]

    def gaps(start: int) -> tuple[float, float]:
        words = vectors.matrix[rows[start : start + _CHECKED]]
        along = words.astype(np.float64) @ directions if directions.size else np.empty((len(words), 0))
        gap = np.concatenate([words, along], axis=1, dtype=differences.dtype) @ differences
        # ‖w − a‖ − ‖w − b‖ is (‖a‖² − ‖b‖² − 2 w·(a − b)) / (‖w − a‖ + ‖w − b‖), and that sum is at least ‖a − b‖:
        # where this says that it cannot be as large as what was found, it need not be computed.
        least = (1 - 1e-5) * found[0]
        above, below = ((squares + sign * least * between) / 2 for sign in (1, -1))
        beyond = gap > above.astype(gap.dtype)
        beyond |= gap < below.astype(gap.dtype)
        word, pair = np.divmod(np.flatnonzero(beyond), len(pairs))
        bound = np.abs(squares[pair] - 2 * gap[word, pair]) / between[pair]
        order = np.argsort(-bound)
        distance = 0.0
        for part in range(0, len(order), _SOME):
            some = order[part : part + _SOME]
            if bound[some[0]] < (1 - 1e-5) * distance:
                break
            w, p = words[word[some]].astype(np.float64), pair[some]
            to_a, to_b = np.linalg.norm(w - a[p], axis=1), np.linalg.norm(w - b[p], axis=1)
            distance = max(distance, float(np.abs(to_a - to_b).max()))
        found[0] = max(found[0], distance)
        return max(float(gap.max()), -float(gap.min())), distance

    # Threads of our own, one a core: those of the library wait for one another at every block.
    with _one_blas_thread(), ThreadPoolExecutor(_cores()) as pool:
        dots, distances = zip(*pool.map(gaps, range(0, len(rows), _CHECKED)), strict=True)
    return EqualityCheck(max(dots), max(distances), len(rows), len(pairs))


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Keeps matrix products on the thread that asks for them, where threadpoolctl (of scikit-learn) is there."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _split(apart: Doubles) -> tuple[Doubles, np.ndarray[Any, Any]]:
    """Directions [D, k] and a table [D + k, P] with words·apartᵀ = [words, words·directions] · table.

    Differences [P, D] of equalised words lie in the bias subspace, but for rounding. With the parts along its
    directions taken apart (in float64), the rest is so small that a product in float32, twice as fast, is as exact as
    one in float64. Where that is not so, k = 0 and the table is float64.
    """
    _, values, axes = np.linalg.svd(apart, full_matrices=False)
    count = int((values > 1e-5 * values[0]).sum()) if values[0] > 0 else 0
    axes = axes[:count]
    along = apart @ axes.T
    rest = apart - along @ axes
    if count > _DIRECTIONS or np.abs(rest).max(initial=0) > 1e-5:
        return np.empty((apart.shape[1], 0)), np.ascontiguousarray(apart.T)
    return axes.T, np.concatenate([rest, along], axis=1).T.astype(np.float32)


def learn_specific(
    vectors: Vectors, seed_words: Collection[str], *, first: int = 50_000, seed: int = 0
) -> tuple[str, ...]:
    """Gender-specific words learned from a few: a linear SVM on the unit vectors (Bolukbasi et al. 2016, section 5).

    Trained on the ``first`` words (the most frequent, usually), those of ``seed_words`` and their case variants against
    the others, and on the seed words behind them; specific is what it takes for such a word, and the seed words. In the
    order of ``vectors``.

    Raises EvenrankError where fewer than two words are seeds, or all are; MissingExtraError without scikit-learn.
    """
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError:
        raise MissingExtraError("learning gender-specific words", "embeddings") from None

    check_ranges(first=first, seed=seed)
    given = specific_words(vectors.words, seed_words)
    exact = frozenset(seed_words)
    behind = [row for row in np.flatnonzero(given[first:]) + first if vectors.words[row] in exact]
    rows = np.concatenate([np.arange(min(first, len(given))), np.array(behind, dtype=np.int64)])
    labels = given[rows]
    if not 2 <= labels.sum() < len(labels):
        raise EvenrankError(
            f"learning specific words: expected 2 seed words or more among the vectors and other words, found "
            f"{int(labels.sum())} of {len(labels)}"
        )
    machine = LinearSVC(C=1.0, tol=1e-4, random_state=seed_32(seed), max_iter=10_000).fit(
        unit(vectors.matrix[rows]), labels
    )
    specific = given.copy()
    for start in range(0, len(given), _BLOCK):
        part = slice(start, start + _BLOCK)
        specific[part] |= machine.decision_function(unit(vectors.matrix[part])) > 0
    return tuple(vectors.words[row] for row in np.flatnonzero(specific))
