"""The counting loop: one pass over the bytes of a batch of texts, compiled, without the interpreter lock."""

from __future__ import annotations

import math

import numpy as np

from evenrank.files.compiled import compiled, unwritable
from evenrank.files.hashing import FNV_OFFSET, FNV_PRIME
from evenrank.files.tokens import APOSTROPHE, CLITICS, SEPARATOR, WORD, Alphabet
from evenrank.files.types import Array

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors


_OFFSET, _PRIME, _ONE = np.uint64(FNV_OFFSET), np.uint64(FNV_PRIME), np.uint64(1)
# Each of tokens.CLITICS, of one or two code points, as one number.
_CLITIC_PAIRS = np.array([(ord(text[0]) << 21) | ord((text + "\0")[1]) for text in CLITICS], dtype=np.int64)
_LOGS = 64


@compiled(nogil=True)
def _find(hash_value, keys, slots):
    """The slot's content for a hash, or −1. ``keys`` [2^n] uint64, ``slots`` [2^n] int32, −1 where empty."""
    mask = np.uint64(len(keys) - 1)
    place = (hash_value ^ (hash_value >> np.uint64(29))) & mask
    while slots[place] >= 0:
        if keys[place] == hash_value:
            return slots[place]
        place = (place + _ONE) & mask
    return np.int32(-1)


@compiled(nogil=True)
def _is_clitic(length, first, second):
    """Whether ``length`` code points, ``first`` and perhaps ``second``, are one of tokens.CLITICS."""
    if length > 2:
        return False
    pair = (np.int64(first) << 21) | (np.int64(second) if length == 2 else np.int64(0))
    for known in _CLITIC_PAIRS:  # noqa: SIM110 - as numba compiles it
        if known == pair:
            return True
    return False


@compiled(nogil=True)
def _character(data, place, end):
    """The code point at ``place``, and where the next begins. One that is cut off, as in no text of UTF-8, is U+0000,
    and the last."""
    byte = np.int64(data[place])
    width = np.uint64(1 + (byte >= 128) + (byte >= 224) + (byte >= 240))
    if place + width > end:
        return np.int64(0), end
    code = byte & (255 if byte < 128 else 31 if byte < 224 else 15 if byte < 240 else 7)
    for at in range(place + _ONE, place + width):
        code = (code << 6) | np.int64(data[at] & 63)
    return code, place + width


@compiled(nogil=True)
def _find_tokens(data, place, end, words, plain, kinds, folded, expansions, keys, slots, found, found_at):
    """Notes the lexicon's tokens in ``data[place:end]``: each in ``found``, its place among all tokens in ``found_at``.

    ``plain`` [256]: what a byte is in a token, case folded, 0 for those that need a second look. Returns how many
    tokens are noted, and how many there are in all.
    """
    hits = total = np.int64(0)
    hash_value = before_clitic = _OFFSET
    inside = pending = False
    # Folded code points since the last inner apostrophe: −1 where there was none.
    suffix = -1
    first = second = 0
    while True:
        if suffix < 0 and not pending:
            # Nearly all of a text.
            while place < end and plain[data[place]] != 0:
                hash_value = (hash_value ^ np.uint64(plain[data[place]])) * _PRIME
                place += _ONE
                inside = True
        at_end = place >= end
        kind = SEPARATOR
        if not at_end:
            code, place = _character(data, place, end)
            if code < len(kinds):
                kind = kinds[code]
            elif not words or (0xE0100 <= code < 0xE01F0):
                kind = WORD
        if kind == WORD:
            if pending:
                # An apostrophe between two word characters joins them.
                before_clitic = hash_value
                hash_value = (hash_value ^ np.uint64(39)) * _PRIME
                suffix = 0
                pending = False
            inside = True
            fold = folded[code] if code < len(kinds) else code
            if fold >= 0:
                hash_value = (hash_value ^ np.uint64(fold)) * _PRIME
                if suffix == 0:
                    first = fold
                elif suffix == 1:
                    second = fold
                suffix += suffix >= 0
            else:
                row = -1 - fold
                for i in range(expansions[row, 0]):
                    hash_value = (hash_value ^ np.uint64(expansions[row, 1 + i])) * _PRIME
                if suffix >= 0:
                    suffix += 3
        elif kind == APOSTROPHE and inside and not pending:
            pending = True
        else:
            if inside:
                if suffix > 0 and _is_clitic(suffix, first, second):
                    hash_value = before_clitic
                token = _find(hash_value, keys, slots)
                if token >= 0:
                    found[hits] = token
                    found_at[hits] = total
                    hits += 1
                total += 1
            inside = pending = False
            hash_value = _OFFSET
            suffix = -1
            if at_end:
                return hits, total


# arrays takes longer than the rest.
@compiled(nogil=True)
def _count_texts(
    first, data, starts, ends, words, plain, kinds, folded, expansions, keys, slots, root, node_keys, node_slots,
    node_entry, entry_group, token_total, count, tf_words, tf_literal, kept, kept_rows, by_entry, seen, touched,
    found, found_at, ln,
):  # fmt: skip
    """As :func:`count_entries`, from the text ``first``, into its results, from the row ``kept_rows`` of ``kept``.

    ``kinds``, ``folded``, ``expansions``: tokens.Alphabet; ``keys``, ``slots``: token hash → token number; ``root``:
    token → node of the entries' trie, or −1; ``node_keys``, ``node_slots``: (node, token) → node; ``node_entry``: the
    entry that ends at a node, or −1; ``entry_group`` [E]. To work with: ``seen`` (zeros), ``touched`` [E], ``found``,
    ``found_at`` (a token each). ``ln``: logarithms of whole numbers.

    Returns the text that it stopped at for want of rows in ``kept``, or N, and the rows that are taken.
    """
    for text in range(first, len(starts)):
        hits, token_total[text] = _find_tokens(
            data, np.uint64(starts[text]), np.uint64(ends[text]), words, plain, kinds, folded, expansions, keys, slots,
            found, found_at,
        )  # fmt: skip
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
                node = np.int64(_find((key ^ _OFFSET) * _PRIME, node_keys, node_slots))
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
    ascii_word = (alphabet.kinds[:128] == WORD) & (alphabet.folded[:128] > 0)
    plain = np.zeros(256, dtype=np.uint8)
    plain[:128] = np.where(ascii_word, alphabet.folded[:128], 0)
    triples = np.zeros((max(texts, entries) if by_entry else 0, 3), dtype=np.int32)
    text = rows = 0
    while True:
        text, rows = _count_texts(
            text, data, starts, ends, words, plain, *alphabet, *matcher, *results, triples, rows, by_entry, *working, ln
        )
        if text == texts:
            return *results, triples[:rows].copy()
        triples = np.concatenate([triples, np.zeros_like(triples)])
