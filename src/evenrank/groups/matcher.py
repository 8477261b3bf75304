"""A lexicon as the counting kernel reads it."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from evenrank.engines.hashing import GOLDEN, MASK, fnv
from evenrank.io.types import Array

from .lexicon import Lexicon
from .tokens import Tokens

LOWER = 0x2020202020202020
"""The bits that lower-case letters have, and capitals have not."""
OF_LENGTH, OF_KEY = GOLDEN, 0x94D049BB133111EB
SIEVE_BITS = 16


@functools.lru_cache(maxsize=8)
def matcher_of(lexicon: Lexicon, tokens: Tokens) -> tuple[Array, ...]:
    """A lexicon as the arrays that the kernel reads: token table and sieve, trie of entries, group of each."""
    entries = lexicon.entries(tokens)
    token_ids: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    node_entry = [-1]
    entry_group = []
    for number, (key, group) in enumerate(entries.items()):
        node = 0
        for token in key:
            edge = (node, token_ids.setdefault(token, len(token_ids)))
            if edge not in nodes:
                nodes[edge] = len(node_entry)
                node_entry.append(-1)
            node = nodes[edge]
        node_entry[node] = number
        entry_group.append(lexicon.groups.index(group))
    # 64 bits stand for the token: of a few thousand tokens two have the same hash with a chance of about 1e-16.
    token_hashes = {fnv(map(ord, token)): number for token, number in token_ids.items()}
    edge_hashes = {fnv([(node << 32) | token]): child for (node, token), child in nodes.items()}
    return (
        *_hash_table(token_hashes),
        _sieve(token_ids),
        np.array([nodes.get((0, token), -1) for token in range(len(token_ids))], dtype=np.int32),
        *_hash_table(edge_hashes),
        np.array(node_entry, dtype=np.int32),
        np.array(entry_group, dtype=np.int32),
    )


def _hash_table(items: dict[int, int]) -> tuple[Array, Array]:
    """Open addressing at a quarter full at most: keys [2^n] uint64 and values [2^n] int32, −1 where empty."""
    size = 1 << max(4, (4 * len(items)).bit_length())
    keys = np.zeros(size, dtype=np.uint64)
    slots = np.full(size, -1, dtype=np.int32)
    for key, value in items.items():
        place = (key ^ (key >> 29)) & (size - 1)
        while slots[place] >= 0:
            place = (place + 1) & (size - 1)
        keys[place], slots[place] = key, value
    return keys, slots


def _sieve(tokens: Iterable[str]) -> Array:
    """A bit for the first eight bytes and the length of each ASCII token: [2^SIEVE_BITS / 64] uint64."""
    sieve = np.zeros(1 << (SIEVE_BITS - 6), dtype=np.uint64)
    for token in filter(str.isascii, tokens):
        data = token.encode()
        key = sum((byte | 0x20) << (8 * place) for place, byte in enumerate(data[:8]))
        place = (((key ^ (len(data) * OF_LENGTH)) * OF_KEY) & MASK) >> (64 - SIEVE_BITS)
        sieve[place >> 6] |= np.uint64(1 << (place & 63))
    return sieve
