"""How far a passage would move in its list if its variant stood in for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .effects import Floats, Ints


class RankShifts(NamedTuple):
    """What would happen to each of N passages in its query's list; NaN for those without a variant.

    ``shifts`` [N]: places up (+) or down (−). ``enters``, ``leaves`` [N]: the chance that it comes among the first k,
    or drops out of them; 0 or 1 without ties.
    """

    shifts: Floats
    enters: Floats
    leaves: Floats


def rank_shifts(scores: Floats, query: Ints, replaced: Floats, k: int = 10) -> RankShifts:
    """The places that each passage would rise or fall with the score ``replaced`` [N] in place of ``scores`` [N].

    All other passages of its query (``query`` [N], any numbers) keep their scores. Tied passages are in random order:
    each of the others counts as half a place, and who is tied at the cut is among the first k with the chance that a
    place there is its own; a passage enters with the growth of that chance, or leaves with its loss.

    Worked example: four passages of one query score 4, 3, 2 and 1. With 3.5 the last would be second: two places up,
    and into the first two. With 3 the third would be tied with the second, half a place up; a place among the first
    two would be its own in one order of two.

    >>> import numpy as np
    >>> found = rank_shifts(np.array([4.0, 3.0, 2.0, 1.0]), np.zeros(4, int), np.array([np.nan, 0.5, 3.0, 3.5]), k=2)
    >>> found.shifts.tolist(), found.enters.tolist(), found.leaves.tolist()
    ([nan, -2.0, 0.5, 2.0], [nan, 0.0, 0.5, 1.0], [nan, 1.0, 0.0, 0.0])
    """
    compared = ~np.isnan(replaced)
    after = np.where(compared, replaced, scores)
    numbers = np.unique(query, return_inverse=True)[1]
    levels, level = np.unique(np.concatenate([scores, after]), return_inverse=True)
    # By query and score, as one number each.
    keys, new = (numbers * len(levels) + part for part in np.split(level, 2))
    order = np.sort(keys)
    ends = np.cumsum(np.bincount(numbers))[numbers]
    above, tied = _others(order, ends, keys, keys)
    new_above, new_tied = _others(order, ends, new, keys)
    shifts = above + tied / 2 - new_above - new_tied / 2
    growth = _chance(new_above, new_tied, k) - _chance(above, tied, k)
    return RankShifts(
        *(np.where(compared, value, np.nan) for value in (shifts, np.maximum(growth, 0.0), np.maximum(-growth, 0.0)))
    )


def _others(order: Ints, ends: Ints, keys: Ints, own: Ints) -> tuple[Ints, Ints]:
    """How many others of a list are above each of ``keys`` [N] and tied with it; ``own`` [N] is not another."""
    left, right = (np.searchsorted(order, keys, side=side) for side in ("left", "right"))
    return ends - right - (own > keys), right - left - (own == keys)


def _chance(above: Ints, tied: Ints, k: int) -> Floats:
    """The chance to be among the first k."""
    found: Floats = np.clip((k - above) / (tied + 1), 0.0, 1.0)
    return found
