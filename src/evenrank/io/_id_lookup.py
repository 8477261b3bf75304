"""A hash table of the positions of ids, in compiled loops."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

_FREE = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled(nogil=True)
def fill(table, hashes, bits):
    """Fills a table of free places (all bits set) with the first bits of a hash, then its row in the last ``bits``.

    A row is at the place of the last bits of its hash or, if that is taken, behind it: one look into memory finds
    a hash and its row. Of equal ``hashes`` [M] (uint64), the first is kept. The table's size is a power of two.
    """
    mask, row_mask = np.uint64(len(table) - 1), np.uint64((1 << bits) - 1)
    for row in range(len(hashes)):
        place = hashes[row] & mask
        while table[place] != _FREE and (table[place] ^ hashes[row]) & ~row_mask != np.uint64(0):
            place = (place + np.uint64(1)) & mask
        if table[place] == _FREE:
            table[place] = (hashes[row] & ~row_mask) | np.uint64(row)


@compiled(nogil=True)
def places(wanted, table, bits, found):
    """Fills ``found`` [N] (int32) with the rows of the ``wanted`` hashes [N] (uint64) in a table, −1 for none."""
    mask, row_mask = np.uint64(len(table) - 1), np.uint64((1 << bits) - 1)
    for number in range(len(wanted)):
        place = wanted[number] & mask
        while table[place] != _FREE and (table[place] ^ wanted[number]) & ~row_mask != np.uint64(0):
            place = (place + np.uint64(1)) & mask
        found[number] = -1 if table[place] == _FREE else np.int32(table[place] & row_mask)
