"""The search along a beam of :mod:`._balancing`; compiled, without the interpreter lock."""

# The compiler infers the types; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import numpy as np

from evenrank._jit import compiled
from evenrank.engines.compiled_hashing import mixed
from evenrank.engines.hashing import GOLDEN

# Sums of relevance closer than this are equal: what is left is rounding. So are excesses within n² units of magnitude,
# of which each of n² magnitudes in them is off by half at most.
SAME = 1e-12
_LARGEST = np.iinfo(np.int64).max
_NONE = np.int64(2**62)
"""More than any excess, twice, that fits."""
_GOLDEN = np.uint64(GOLDEN)


@compiled(nogil=True)
def _less(excess, loss, other_excess, other_loss, near):
    return excess < other_excess - near or (excess <= other_excess + near and loss < other_loss - SAME)


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def _tail_excess(by_size, magnitudes, own, placed, left, over, tops, sums, owns, taken, found, used):
    """The least excess at the end of a list, for each document of the rest that may be taken next.

    The sum of the whole list exceeds the limit by ``over``. ``magnitudes`` [n]: towards the side of that sum;
    ``by_size`` [n]: documents by falling magnitude; ``left``: how many come after the one that is taken. The last
    prefixes exceed by at least ``over``, ``over`` less the largest that is left, less the largest two, and so on. Fills
    ``taken`` with the R documents that matter, ``found`` with the sum if the r-th of them is taken next, and last with
    that if another document is, and ``used`` with the sum of ``own`` [n] of those then at the end (the largest number,
    if that is the whole rest). Returns R. ``tops``, ``sums`` and ``owns`` [n + 1]: room to work in.
    """
    count = 0
    tops[0] = sums[0] = owns[0] = 0
    for i in by_size:
        if magnitudes[i] <= 0 or (count > 0 and tops[count] >= over + magnitudes[taken[0]]):
            break
        if not placed[i]:
            taken[count] = i
            count += 1
            tops[count] = tops[count - 1] + magnitudes[i]
            sums[count] = sums[count - 1] + tops[count]
            owns[count] = owns[count - 1] + own[i]
    # Σ over j of (over − tops[j])⁺: tops rises, so all up to some place count.
    reach, most = 0, min(count, left - 1)
    while reach < most and tops[reach + 1] < over:
        reach += 1
    base = np.int64(0)
    if left > 0:
        base = (reach + 1) * over - sums[reach] + max(0, left - 1 - count) * max(np.int64(0), over - tops[count])
    last, before = min(count, left), np.int64(0)
    for r in range(count):
        # Without the r-th, what comes after it is one place nearer, and less by it.
        level, last = over + magnitudes[taken[r]], max(last, r)
        while last > r and tops[last] >= level:
            last -= 1
        used[r] = owns[min(last + 1, count)] - own[taken[r]] if tops[r] < over else owns[reach + 1]
        if r >= left or (count <= left and tops[count] < level):
            used[r] = _LARGEST
        if r >= left:
            found[r] = before
        else:
            found[r] = before + (last - r) * level - (sums[last] - sums[r])
            found[r] += max(0, left - count) * max(np.int64(0), level - tops[count])
            before += max(np.int64(0), over - tops[r])
    found[count] = base
    used[count] = owns[reach + 1] if reach < most else _LARGEST
    return count


Listed = namedtuple("Listed", "scores whole magnitudes by_size value_of own discount limit over near")
"""A list [n] as the beam sees it: ``magnitudes`` are towards the side of its sum, which exceeds the limit by ``over``;
``own``: what a document exceeds by, wherever it stands; ``near``: how far equal excesses are apart."""

_BOUND, _EXCESS, _SUM, _REST, _KEY, _PARENT, _DOCUMENT = range(7)
"""What is known of a beginning of a list: twice the least excess of the whole list, excess and sum so far, the ``own``
of the rest, a hash of the documents, and which beginning of one rank less is continued by which document. Beside these
stands its loss, with the rest in the run's order."""


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def along_a_beam(scores, whole, falling, value_of, kinds, limit, discount, width):
    """A good order, and whether it is known to be the best.

    Rank by rank, the ``width`` beginnings are kept that have the least excess, then the least loss, each together with
    what the rest adds at least: the excess at the end of the list, and the loss with the rest in the run's order. If
    nothing that was dropped had a smaller bound than what was found in the end, that is the best.
    """
    size = len(scores)
    given = _listed(scores, whole, falling, value_of, limit, discount)
    beam, following = np.zeros((width, 7), np.int64), np.zeros((width, 7), np.int64)
    loss, loss_next = np.zeros(width), np.zeros(width)
    beam[0, _REST] = given.own.sum()
    placed, placed_next = np.zeros((width, size), np.bool_), np.zeros((width, size), np.bool_)
    parents, chosen = np.zeros((size, width), np.int64), np.zeros((size, width), np.int64)
    room = np.zeros((6, size + 1), np.int64)
    tail, used = np.zeros(size, np.int64), np.zeros(size, np.int64)
    seen = np.zeros(kinds, np.bool_)
    kept, gone, gone_loss = 1, _NONE, 0.0
    for rank in range(size):
        count = np.int64(0)
        for b in range(kept):
            if given.over > 0:
                _spread_tail(given, placed[b], size - rank - 1, room, tail, used)
            count, gone, gone_loss = _continued(
                given,
                beam[b],
                loss[b],
                b,
                placed[b],
                rank,
                tail,
                used,
                seen,
                following,
                loss_next,
                count,
                gone,
                gone_loss,
            )
        for c in range(count):
            parents[rank, c], chosen[rank, c] = following[c, _PARENT], following[c, _DOCUMENT]
            placed_next[c] = placed[following[c, _PARENT]]
            placed_next[c, following[c, _DOCUMENT]] = True
        beam, following = following, beam
        loss, loss_next = loss_next, loss
        placed, placed_next = placed_next, placed
        kept = count
    order, b = np.empty(size, np.int64), 0
    for rank in range(size - 1, -1, -1):
        order[rank] = chosen[rank, b]
        b = parents[rank, b]
    return order, not _less(gone, gone_loss, beam[0, _BOUND], loss[0], given.near)


@compiled(nogil=True)
def _listed(scores, whole, falling, value_of, limit, discount):
    side = 1 if whole.sum() >= 0 else -1
    by_size = falling if side > 0 else falling[::-1].copy()
    own = np.maximum(0, np.abs(whole) - 2 * limit)
    over = abs(whole.sum()) - limit
    return Listed(scores, whole, side * whole, by_size, value_of, own, discount, limit, over, len(scores) ** 2)


@compiled(nogil=True)
def _spread_tail(given, placed, left, room, tail, used):
    """:func:`_tail_excess` of a beginning, by document: fills ``tail`` and ``used`` [n]; ``room`` [6, n + 1]."""
    tops, sums, owns, taken, found, own_used = room
    known = _tail_excess(
        given.by_size, given.magnitudes, given.own, placed, left, given.over, tops, sums, owns, taken, found, own_used
    )
    tail[:], used[:] = found[known], own_used[known]
    for r in range(known):
        tail[taken[r]], used[taken[r]] = found[r], own_used[r]


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def _continued(given, before, loss, b, placed, rank, tail, used, seen, following, losses, count, gone, gone_loss):
    """Puts what continues beginning ``b``, of ``before`` [7] and ``loss``, among the ``count`` best of ``following``.

    Returns their number, and the least bound and loss of all that was dropped; ``gone``, ``gone_loss``: before.
    ``placed`` [n]: the documents of the beginning; ``seen``: room for the magnitudes.
    """
    scores, whole, _, _, value_of, own, discount, limit, _, near = given
    size, last = len(placed), len(losses) - 1
    left, position, lost = size - rank - 1, rank, loss
    least, excess_before, sum_before, rest_before = before[_BOUND], before[_EXCESS], before[_SUM], before[_REST]
    worst, worst_loss, discounted = following[last, _BOUND], losses[last], discount[rank]
    seen[:] = False
    for i in range(size):
        if placed[i]:
            continue
        # What comes before it in the run is one rank later: the loss rises from document to document.
        own_loss = lost - scores[i] * (discounted - discount[position])
        if count > last and not _less(least, own_loss, worst, worst_loss, near):
            if _less(least, own_loss, gone, gone_loss, near):
                gone, gone_loss = least, own_loss
            break
        # Of each magnitude, the first.
        if not seen[value_of[i]]:
            seen[value_of[i]] = True
            total, rest = sum_before + whole[i], rest_before - own[i]
            over = max(np.int64(0), abs(total) - limit)
            excess = excess_before + over
            out, out_loss = 2 * (excess + tail[i]), own_loss
            if left > 0 and rest - over > used[i]:
                out += rest - over - used[i]
            out = max(out, least)
            if count <= last or _less(out, own_loss, worst, worst_loss, near):
                # A bit less than it could have: it stands among signed numbers.
                key = before[_KEY] ^ np.int64(mixed((np.uint64(i) + np.uint64(1)) * _GOLDEN) >> np.uint64(1))
                entry = (out, excess, total, rest, key, b, i)
                count, out, out_loss = _inserted(following, losses, count, entry, own_loss, near)
                worst, worst_loss = following[last, _BOUND], losses[last]
            if _less(out, out_loss, gone, gone_loss, near):
                gone, gone_loss = out, out_loss
        lost += scores[i] * (discount[position] - discount[min(position + 1, size - 1)])
        position += 1
    return count, gone, gone_loss


@compiled(nogil=True)
def _inserted(beam, losses, count, entry, loss, near):
    """Puts a beginning in its place among the ``count`` best, of which the same documents in another order are one.

    If there is no room, it is better than the last. Returns their number, and the bound and loss of what is dropped,
    ``_NONE`` if nothing is.
    """
    bound, place, out, out_loss = entry[_BOUND], 0, _NONE, 0.0
    while place < count and beam[place, _KEY] != entry[_KEY]:
        place += 1
    if place < count:
        if not _less(bound, loss, beam[place, _BOUND], losses[place], near):
            return count, out, out_loss
    elif count == len(losses):
        place -= 1
        out, out_loss = beam[place, _BOUND], losses[place]
    else:
        count += 1
    while place > 0 and _less(bound, loss, beam[place - 1, _BOUND], losses[place - 1], near):
        for k in range(7):
            beam[place, k] = beam[place - 1, k]
        losses[place] = losses[place - 1]
        place -= 1
    for k in range(7):
        beam[place, k] = entry[k]
    losses[place] = loss
    return count, out, out_loss
