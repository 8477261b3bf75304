"""The allowed range of every numeric setting, by argument name, for the library and the command line."""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

from .errors import EvenrankError, shown

LARGEST = 2**31 - 1
"""The largest count: numbers of documents, words and positions are 32-bit integers in the compiled loops."""


def seed_32(seed: int) -> int:
    """The seed for libraries that accept 32 bits only."""
    return seed % 2**32


class Range(NamedTuple):
    """From ``least`` to ``most``, inclusive."""

    least: float
    most: float
    whole: bool = True


_COUNT = Range(1, LARGEST)
_FROM_0 = Range(0, LARGEST)
_SHARE = Range(0, 1, whole=False)

RANGES: dict[str, Range] = {
    # Rankings.
    "k": _COUNT,
    "depth": _COUNT,
    "background_depth": _COUNT,
    "batch_size": _COUNT,
    # Larger values exceed the precision of float32, and term frequency no longer saturates anyway.
    "k1": Range(0, 1e6, whole=False),
    "b": _SHARE,
    "fb_docs": _COUNT,
    "fb_terms": _COUNT,
    "original_weight": _SHARE,
    "language_model": _SHARE,
    "folds": Range(2, LARGEST),
    "restarts": Range(0, 10_000),
    # Fairer orders. FA*IR corrects significances from 0.001 to 0.5.
    "strength": _SHARE,
    "alpha": Range(0.001, 0.5, whole=False),
    "top": _COUNT,
    # Groups and negatives.
    "threshold": Range(0, LARGEST, whole=False),
    "missing_limit": _SHARE,
    "n": _COUNT,
    "share": _SHARE,
    # Endpoints.
    "concurrency": Range(1, 1000),
    "timeout": Range(0.001, 86_400, whole=False),
    "largest_answer": Range(1, 1 << 20),
    # Word vectors.
    "components": _COUNT,
    "most": _COUNT,
    "count": _COUNT,
    "limit": _COUNT,
    "train": _COUNT,
    "splits": _COUNT,
    "first": _COUNT,
    "permutations": Range(1, 10_000_000),
    "size": Range(1, 100_000),
    "dimensions": Range(1, 100_000),
    "window": Range(1, 10_000),
    "epochs": _COUNT,
    "min_count": _COUNT,
    # Positions.
    "passages": _COUNT,
    "max_words": _COUNT,
    "min_pairs": _COUNT,
    "min_terms": _COUNT,
    "cap": _COUNT,
    "places": Range(2, 10_000),
    "sample": _COUNT,
    "max_length": _COUNT,
    # Collections, seeds and workers.
    "validation": _FROM_0,
    "seed": Range(0, 2**64 - 1),
    "seeds": Range(1, 10_000),
    "jobs": Range(1, 10_000),
    "workers": Range(1, 100_000),
    "cpus": Range(0, 100_000, whole=False),
    "gpus": Range(0, 100_000, whole=False),
}


def check_ranges(**settings: object) -> None:
    """Raises EvenrankError, naming the argument, for a setting outside its range; None is allowed.

    >>> check_ranges(k=10, b=0.4, limit=None)
    >>> check_ranges(k=0)
    Traceback (most recent call last):
    evenrank.io.errors.EvenrankError: `k`: expected 1 or more, found 0
    """
    for name, value in settings.items():
        if value is not None:
            _check(name, value, RANGES[name])


def _check(name: str, value: object, allowed: Range) -> None:
    least, most, whole = allowed
    kind = Integral if whole else Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if fits and least <= value <= most:  # type: ignore[operator]
        return
    # The largest count is mentioned only if it was exceeded.
    open_end = most == LARGEST and not (fits and value > most)  # type: ignore[operator]
    if not (whole and fits):
        expected = f"a {'whole ' * whole}number from {least:.10g}" + ("" if open_end else f" to {most:.10g}")
    else:
        expected = f"{least} or more" if open_end else f"{least} to {most}"
    raise EvenrankError(f"`{name}`: expected {expected}, found {shown(value)}")
