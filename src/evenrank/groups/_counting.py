"""The counting loop: one pass over the bytes of a batch of texts, compiled, without the interpreter lock.

A text is read 64 bytes at a time. What separates in ASCII cuts it into runs; almost every run is one token of ASCII
characters, of which eight bytes and the length say whether it can be in the lexicon: a few in a hundred are looked up.
Runs with other characters, and with apostrophes between word characters, are read one code point at a time.
"""

from __future__ import annotations

import math

import numpy as np

from evenrank.files.compiled import compiled, unwritable
from evenrank.files.compiled_bytes import OFFSET, PRIME, WIDTH, eight_bytes, equal_mask, lowest_bit, within_mask
from evenrank.files.tokens import CLITICS, Alphabet
from evenrank.files.types import Array

from .lexicon import LOWER, OF_KEY, OF_LENGTH, SIEVE_BITS

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors


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


# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors


_LOWER = np.uint64(LOWER)
_OF_LENGTH, _OF_KEY = np.uint64(OF_LENGTH), np.uint64(OF_KEY)
_LOGS = 64


@compiled(forceinline=True, _nrt=False)
def _may_be_known(data, start, end, sieve):
    """Whether a token of ASCII characters can be one of those that ``sieve`` was made from (see :mod:`.lexicon`)."""
    length = end - start
    # Without a branch, which could not be foreseen.
    key = (eight_bytes(data, start) | _LOWER) & (
        ~np.uint64(0) >> ((np.uint64(8) - min(length, np.uint64(8))) * np.uint64(8))
    )
    place = ((key ^ (length * _OF_LENGTH)) * _OF_KEY) >> np.uint64(64 - SIEVE_BITS)
    return (sieve[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)


@compiled(forceinline=True, _nrt=False)
def _runs(data, base, left, words, before):
    """What the 64 bytes from ``base``, ``left`` of them of the text, are.

    ``before``: 1 if the byte before them is of a run, else 0. Returns the bytes of runs, and those of them that are no
    word characters of ASCII, as bits.
    """
    one = np.uint64(1)
    within = ~np.uint64(0) if left >= WIDTH else (one << np.uint64(left)) - one
    wide = within_mask(data, base, 0, 128, 128) & within
    if not words:
        return ~equal_mask(data, base, 32) & within, wide
    run = ((within_mask(data, base, 32, 97, 26) | within_mask(data, base, 0, 48, 10)) & within) | wide
    apostrophes = equal_mask(data, base, 39) & within
    if apostrophes:
        # One between two of a run joins them.
        after = run >> one
        if left > WIDTH:
            byte = data[base + np.uint64(WIDTH)]
            letter = np.uint8((byte | 32) - 97) < 26
            if letter or byte >= 128 or 48 <= byte < 58:
                after |= one << np.uint64(63)
        joined = apostrophes & ((run << one) | before) & after
        run |= joined
        wide |= joined
    return run, wide


@compiled(forceinline=True, _nrt=False)
def _look_up(data, start, end, folded, keys, slots, found, found_at, hits, total):
    """Notes the token ``data[start:end]`` of ASCII word characters if it is in the lexicon; returns how many are."""
    value = OFFSET
    while start < end:
        value = (value ^ np.uint64(folded[data[start]])) * PRIME
        start += np.uint64(1)
    token = find(value, keys, slots)
    if token >= 0:
        found[hits] = token
        found_at[hits] = total
        hits += 1
    return hits


@compiled(forceinline=True, _nrt=False)
def _count_text(data, place, end, words, kinds, folded, expansions, keys, slots, sieve, found, found_at):
    """Counts the tokens of ``data[place:end]``, which 72 bytes at least follow; as :func:`count_run`."""
    one, full = np.uint64(1), np.uint64(WIDTH)
    inside = odd_before = np.uint64(0)
    start = place
    total = hits = np.int64(0)
    while place < end:
        left = end - place
        run, odd = _runs(data, place, left, words, inside)
        before = (run << one) | inside
        starts, ends = run & ~before, before & ~run
        if not inside:
            start = place + lowest_bit(starts)
            starts &= starts - one
        inside = run >> np.uint64(63)
        if odd | odd_before:
            while ends:
                bit = lowest_bit(ends)
                ends &= ends - one
                below = (one << bit) - one
                stop = place + bit
                if odd_before or odd & below:
                    hits, total = count_run(
                        data, start, stop, words, kinds, folded, expansions, keys, slots, found, found_at, hits, total
                    )
                else:
                    if _may_be_known(data, start, stop, sieve):
                        hits = _look_up(data, start, stop, folded, keys, slots, found, found_at, hits, total)
                    total += 1
                odd_before = np.uint64(0)
                odd &= ~below
                start = place + lowest_bit(starts)
                starts &= starts - one
            odd_before |= odd
        else:
            while ends:
                stop = place + lowest_bit(ends)
                ends &= ends - one
                if _may_be_known(data, start, stop, sieve):
                    hits = _look_up(data, start, stop, folded, keys, slots, found, found_at, hits, total)
                total += 1
                start = place + lowest_bit(starts)
                starts &= starts - one
        place += full
    if inside:
        hits, total = count_run(
            data, start, end, words, kinds, folded, expansions, keys, slots, found, found_at, hits, total
        )
    return hits, total


# arrays takes longer than the rest.
@compiled(nogil=True, _nrt=False)
def _count_texts(
    first, data, starts, ends, words, kinds, folded, expansions, keys, slots, sieve, root, node_keys, node_slots,
    node_entry, entry_group, token_total, count, tf_words, tf_literal, kept, kept_rows, by_entry, seen, touched,
    found, found_at, ln,
):  # fmt: skip
    """As :func:`count_entries`, from the text ``first``, into its results, from the row ``kept_rows`` of ``kept``.

    ``kinds``, ``folded``, ``expansions``: tokens.Alphabet; ``keys``, ``slots``: token hash → token number; ``sieve``:
    what tokens of ASCII there can be; ``root``: token → node of the entries' trie, or −1; ``node_keys``,
    ``node_slots``: (node, token) → node; ``node_entry``: the entry that ends at a node, or −1; ``entry_group`` [E]. To
    work with: ``seen`` (zeros), ``touched`` [E], ``found``, ``found_at`` (a token each). ``ln``: logarithms of whole
    numbers.

    Returns the text that it stopped at for want of rows in ``kept``, or N, and the rows that are taken.
    """
    # Of a type: for a plain 0 the compiler would make a version of what it calls.
    none = np.int64(0)
    for text in range(first, len(starts)):
        place, end = np.uint64(starts[text]), np.uint64(ends[text])
        # Bytes are loaded 64 and a few at a time: no text is read so that has fewer behind it.
        if end + np.uint64(WIDTH + 8) <= len(data):
            hits, total = _count_text(
                data, place, end, words, kinds, folded, expansions, keys, slots, sieve, found, found_at
            )
        else:
            hits, total = count_run(
                data, place, end, words, kinds, folded, expansions, keys, slots, found, found_at, none, none
            )
        token_total[text] = total
        # The entries: walk the trie from each token of some entry.
        distinct = 0
        hit = 0
        while hit < hits:
            node = np.int64(root[found[hit]])
            best_entry, best_length = -1, 1
            step = hit
            if node >= 0:
                step += 1
                best_entry = node_entry[node]
            while node >= 0 and step < hits and found_at[step] == found_at[hit] + (step - hit):
                key = (np.uint64(node) << np.uint64(32)) | np.uint64(found[step])
                node = np.int64(find((key ^ OFFSET) * PRIME, node_keys, node_slots))
                if node < 0:
                    break
                step += 1
                if node_entry[node] >= 0:
                    best_entry, best_length = node_entry[node], step - hit
            if best_entry >= 0:
                if seen[best_entry] == 0:
                    touched[distinct] = best_entry
                    distinct += 1
                seen[best_entry] += 1
            hit += best_length
        if by_entry and kept_rows + distinct > len(kept):
            for i in range(distinct):
                seen[touched[i]] = 0
            return text, kept_rows
        for i in range(distinct):
            entry = touched[i]
            if by_entry:
                kept[kept_rows, 0] = text
                kept[kept_rows, 1] = entry
                kept[kept_rows, 2] = seen[entry]
                kept_rows += 1
            group = entry_group[entry]
            count[text, group] += seen[entry]
            times = seen[entry]
            tf_words[text, group] += ln[times + 1] if times + 1 < _LOGS else np.log(1.0 + times)
            tf_literal[text, group] += ln[times] if times < _LOGS else np.log(np.float64(times))
            seen[entry] = 0
    return len(starts), kept_rows


def count_entries(
    data: Array,
    starts: Array,
    ends: Array,
    words: bool,
    alphabet: Alphabet,
    matcher: tuple[Array, ...],
    groups: int,
    by_entry: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """Counts the lexicon's entries in each text.

    ``data`` uint8: UTF-8 bytes; ``starts``, ``ends`` [N] int64: each text; ``words``: the ``word`` tokens rather than
    ``whitespace``; ``matcher``: of :func:`.lexicon.matcher_of`; ``groups``: how many; ``by_entry``: whether to keep the
    entries' own counts.

    Returns tokens [N] int32, count [N, G] int32, tf_words [N, G] and tf_literal [N, G] float64: Σ ln(1 + c_w) and
    Σ ln c_w over the entries present; with ``by_entry`` also (text, entry, count) [P, 3] int32, text by text. Entries
    are matched from left to right, the longest first, without overlap.
    """
    data, starts, ends = unwritable(data, starts, ends)
    texts = len(starts)
    results = (
        np.zeros(texts, dtype=np.int32),
        np.zeros((texts, groups), dtype=np.int32),
        np.zeros((texts, groups), dtype=np.float64),
        np.zeros((texts, groups), dtype=np.float64),
    )
    # A token takes two bytes at least, its separator included.
    longest = (int((ends - starts).max()) + 1) // 2 + 1 if texts else 1
    entries = len(matcher[-1])
    working = [np.zeros(size, dtype=np.int32) for size in (entries, entries, longest, longest)]
    ln = np.array([-math.inf, *map(math.log, range(1, _LOGS))])
    kept = np.zeros((max(texts, entries) if by_entry else 0, 3), dtype=np.int32)
    text = rows = 0
    while True:
        text, rows = _count_texts(
            text, data, starts, ends, words, *alphabet, *matcher, *results, kept, rows, by_entry, *working, ln
        )
        if text == texts:
            return *results, kept[:rows].copy()
        kept = np.concatenate([kept, np.zeros_like(kept)])
