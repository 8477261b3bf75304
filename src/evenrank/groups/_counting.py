"""The counting loop: one pass over the bytes of a batch of texts, compiled, without the interpreter lock."""

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.engines.compiled_hashing import OFFSET, PRIME
from evenrank.engines.jit import compiled

from .tokens import CLITICS

# Each of tokens.CLITICS, of one or two code points, as one number.
_CLITIC_PAIRS = np.array([(ord(text[0]) << 21) | ord((text + "\0")[1]) for text in CLITICS], dtype=np.int64)
SEPARATOR_KIND, WORD_KIND, APOSTROPHE_KIND = 0, 1, 2
BLANK, SPECIAL, FIRST = 0, 1, 2


@compiled(inline="always")
def _find(hash_value, keys, slots):
    """The slot's content for a hash, or −1. ``keys`` [2^n] uint64, ``slots`` [2^n] int32, −1 where empty."""
    mask = np.uint64(len(keys) - 1)
    place = (hash_value ^ (hash_value >> np.uint64(29))) & mask
    while slots[place] >= 0:
        if keys[place] == hash_value:
            return slots[place]
        place = (place + np.uint64(1)) & mask
    return np.int32(-1)


@compiled(inline="always")
def _is_clitic(length, first, second):
    """Whether ``length`` code points, ``first`` and perhaps ``second``, are one of tokens.CLITICS."""
    if length > 2:
        return False
    pair = (np.int64(first) << 21) | (np.int64(second) if length == 2 else np.int64(0))
    for known in _CLITIC_PAIRS:  # noqa: SIM110 - as numba compiles it
        if known == pair:
            return True
    return False


@compiled()
def _ascii_codes(kinds, folded):
    """For each byte: BLANK (a separator), SPECIAL (an apostrophe, or no ASCII), or FIRST + the folded code point."""
    codes = np.full(256, SPECIAL, dtype=np.uint16)
    for byte in range(128):
        if kinds[byte] == SEPARATOR_KIND:
            codes[byte] = BLANK
        elif kinds[byte] == WORD_KIND:
            codes[byte] = FIRST + folded[byte]
    return codes


# long, parameters: a compiled loop over bytes, whose state would be passed and returned by every part of it.
@compiled(nogil=True)
def count_entries(
    data,
    starts,
    ends,
    words,
    kinds,
    folded,
    expansions,
    keys,
    slots,
    node_keys,
    node_slots,
    node_entry,
    entry_group,
    groups,
    by_entry,
):
    """Counts the lexicon's entries in each text.

    ``data`` uint8: UTF-8 bytes; ``starts``, ``ends`` [N] int64: each text; ``words``: the ``word`` tokens
    rather than ``whitespace``; ``kinds``, ``folded``, ``expansions``: tokens.Alphabet; ``keys``, ``slots``: token hash
    → token number; ``node_keys``, ``node_slots``: (node, token) → node of the entries' trie; ``node_entry``: the entry
    that ends at a node, or −1; ``entry_group`` [E]; ``by_entry``: whether to keep the entries' own counts.

    Returns tokens [N] int32, count [N, G] int32, tf_words [N, G] and tf_literal [N, G] float64: Σ ln(1 + c_w) and
    Σ ln c_w over the entries present; with ``by_entry`` also (text, entry, count) [P, 3] int32, text by text. Entries
    are matched from left to right, the longest first, without overlap.
    """
    texts = len(starts)
    entries = len(entry_group)
    token_total = np.zeros(texts, dtype=np.int32)
    count = np.zeros((texts, groups), dtype=np.int32)
    tf_words = np.zeros((texts, groups), dtype=np.float64)
    tf_literal = np.zeros((texts, groups), dtype=np.float64)
    seen = np.zeros(entries, dtype=np.int32)
    touched = np.zeros(entries, dtype=np.int32)
    kept = np.empty((max(16, texts) if by_entry else 0, 3), dtype=np.int32)
    kept_rows = 0
    # A token takes two bytes at least, its separator included.
    longest = (np.max(ends - starts) + 1) // 2 + 1 if texts else 1
    found = np.zeros(longest, dtype=np.int32)
    found_at = np.zeros(longest, dtype=np.int32)
    size = len(kinds)
    prime, offset, one = PRIME, OFFSET, np.uint64(1)
    ascii_codes = _ascii_codes(kinds, folded)
    for text in range(texts):
        place, end = np.uint64(starts[text]), np.uint64(ends[text])
        total = 0
        hits = 0
        inside = False
        hash_value = offset
        before_clitic = np.uint64(0)
        # Folded code points since the last inner apostrophe: −1 where there was none.
        suffix = -1
        first = second = 0
        pending = False
        while True:
            # The usual case first: a run of ASCII word characters, or an ASCII separator after a word.
            known = SPECIAL
            if suffix < 0 and not pending:
                while place < end:
                    known = ascii_codes[data[place]]
                    if known <= SPECIAL:
                        break
                    hash_value = (hash_value ^ np.uint64(known - FIRST)) * prime
                    inside = True
                    place += one
            # One code point of any kind, or the end of the text as a separator.
            at_end = place >= end
            kind = SEPARATOR_KIND
            code = np.int64(0)
            if known == BLANK and not at_end:
                place += one
            elif not at_end:
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
                token = _find(hash_value, keys, slots)
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
        token_total[text] = total
        # The entries: walk the trie from each token of some entry.
        distinct = 0
        hit = 0
        while hit < hits:
            node = np.int64(0)
            best_entry, best_length = -1, 1
            step = hit
            while step < hits and found_at[step] == found_at[hit] + (step - hit):
                key = (np.uint64(node) << np.uint64(32)) | np.uint64(found[step])
                node = np.int64(_find((key ^ offset) * prime, node_keys, node_slots))
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
            longer = np.empty((2 * (kept_rows + distinct), 3), dtype=np.int32)
            longer[:kept_rows] = kept[:kept_rows]
            kept = longer
        for i in range(distinct):
            entry = touched[i]
            if by_entry:
                kept[kept_rows, 0] = text
                kept[kept_rows, 1] = entry
                kept[kept_rows, 2] = seen[entry]
                kept_rows += 1
            group = entry_group[entry]
            count[text, group] += seen[entry]
            tf_words[text, group] += np.log(1.0 + seen[entry])
            tf_literal[text, group] += np.log(np.float64(seen[entry]))
            seen[entry] = 0
    return token_total, count, tf_words, tf_literal, kept[:kept_rows].copy()
