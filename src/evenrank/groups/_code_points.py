"""Counting one code point at a time: what is not ASCII, and apostrophes."""

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled
from evenrank.engines.compiled_hashing import OFFSET, PRIME

from .tokens import CLITICS

# Each of tokens.CLITICS, of one or two code points, as one number.
_CLITIC_PAIRS = np.array([(ord(text[0]) << 21) | ord((text + "\0")[1]) for text in CLITICS], dtype=np.int64)
SEPARATOR_KIND, WORD_KIND, APOSTROPHE_KIND = 0, 1, 2


@compiled(forceinline=True, _nrt=False)
def find(hash_value, keys, slots):
    """The slot's content for a hash, or −1. ``keys`` [2^n] uint64, ``slots`` [2^n] int32, −1 where empty."""
    mask = np.uint64(len(keys) - 1)
    place = (hash_value ^ (hash_value >> np.uint64(29))) & mask
    while slots[place] >= 0:
        if keys[place] == hash_value:
            return slots[place]
        place = (place + np.uint64(1)) & mask
    return np.int32(-1)


@compiled(forceinline=True, _nrt=False)
def _is_clitic(length, first, second):
    """Whether ``length`` code points, ``first`` and perhaps ``second``, are one of tokens.CLITICS."""
    if length > 2:
        return False
    pair = (np.int64(first) << 21) | (np.int64(second) if length == 2 else np.int64(0))
    for known in _CLITIC_PAIRS:  # noqa: SIM110 - as numba compiles it
        if known == pair:
            return True
    return False


# long, parameters: the state of a compiled loop.
@compiled(nogil=True, _nrt=False)
def count_run(data, place, end, words, kinds, folded, expansions, keys, slots, found, found_at, hits, total):
    """Counts the tokens of ``data[place:end]``, whatever it has, after ``total`` others; notes those of the lexicon.

    Returns how many tokens are noted in ``found`` and ``found_at``, and how many there are in all.
    """
    size = len(kinds)
    prime, offset, one = PRIME, OFFSET, np.uint64(1)
    inside = False
    hash_value = offset
    before_clitic = np.uint64(0)
    # Folded code points since the last inner apostrophe: −1 where there was none.
    suffix = -1
    first = second = 0
    pending = False
    while True:
        # A code point, or the end as a separator.
        at_end = place >= end
        kind = SEPARATOR_KIND
        code = np.int64(0)
        if not at_end:
            byte = data[place]
            width = np.uint64(1 + (byte >= 128) + (byte >= 224) + (byte >= 240))
            if place + width > end:
                # Cut off in a character, as no text of UTF-8 is: as if it were U+0000.
                place = end
            elif byte < 128:
                code = np.int64(byte)
                place += one
            elif byte < 224:
                code = (np.int64(byte & 31) << 6) | np.int64(data[place + one] & 63)
                place += np.uint64(2)
            elif byte < 240:
                code = (
                    (np.int64(byte & 15) << 12)
                    | (np.int64(data[place + one] & 63) << 6)
                    | np.int64(data[place + np.uint64(2)] & 63)
                )
                place += np.uint64(3)
            else:
                code = (
                    (np.int64(byte & 7) << 18)
                    | (np.int64(data[place + one] & 63) << 12)
                    | (np.int64(data[place + np.uint64(2)] & 63) << 6)
                    | np.int64(data[place + np.uint64(3)] & 63)
                )
                place += np.uint64(4)
            if code < size:
                kind = kinds[code]
            elif not words or (0xE0100 <= code < 0xE01F0):
                kind = WORD_KIND
        if kind == WORD_KIND:
            if pending:
                # An apostrophe between two word characters joins them.
                before_clitic = hash_value
                hash_value = (hash_value ^ np.uint64(39)) * prime
                suffix = 0
                pending = False
            inside = True
            fold = folded[code] if code < size else code
            if fold >= 0:
                hash_value = (hash_value ^ np.uint64(fold)) * prime
                if suffix >= 0:
                    if suffix == 0:
                        first = fold
                    elif suffix == 1:
                        second = fold
                    suffix += 1
            else:
                row = -1 - fold
                for i in range(expansions[row, 0]):
                    hash_value = (hash_value ^ np.uint64(expansions[row, 1 + i])) * prime
                if suffix >= 0:
                    suffix += 3
            continue
        if kind == APOSTROPHE_KIND and inside and not pending:
            pending = True
            continue
        if inside:
            if suffix > 0 and _is_clitic(suffix, first, second):
                hash_value = before_clitic
            token = find(hash_value, keys, slots)
            if token >= 0:
                found[hits] = token
                found_at[hits] = total
                hits += 1
            total += 1
            inside = False
            hash_value = offset
        pending = False
        suffix = -1
        if at_end:
            break
    return hits, total
