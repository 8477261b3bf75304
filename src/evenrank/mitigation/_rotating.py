"""The rotating loop: one pass over the bytes of a batch of texts, compiled, without the interpreter lock."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.engines.compiled_hashing import OFFSET, PRIME, hashed, mixed
from evenrank.engines.jit import compiled


@compiled(inline="always")
def _space(data, place, end):
    """How many bytes the white-space character (of ``str.split``) at ``place`` has; 0 if there is none."""
    byte = data[place]
    if byte < 128:
        return 1 if byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31 else 0
    if byte == 0xC2:
        return 2 if place + 1 < end and (data[place + 1] == 0x85 or data[place + 1] == 0xA0) else 0
    if place + 2 >= end:
        return 0
    if byte == 0xE2:
        second, third = data[place + 1], data[place + 2]
        if second == 0x80 and (0x80 <= third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF):
            return 3
        return 3 if second == 0x81 and third == 0x9F else 0
    if byte == 0xE1:
        return 3 if data[place + 1] == 0x9A and data[place + 2] == 0x80 else 0
    if byte == 0xE3:
        return 3 if data[place + 1] == 0x80 and data[place + 2] == 0x80 else 0
    return 0


@compiled(inline="always")
def _closer(data, place):
    """Whether the byte ends a closing quote or bracket: " ' ) ] ” ’ »."""
    byte = data[place]
    if byte == 34 or byte == 39 or byte == 41 or byte == 93:
        return 1
    if byte == 0x9D or byte == 0x99:
        return 3 if data[place - 1] == 0x80 and data[place - 2] == 0xE2 else 0
    return 2 if byte == 0xBB and data[place - 1] == 0xC2 else 0


@compiled(inline="always")
def _ends_sentence(data, start, end, abbreviations):
    """Whether a word ends with . ! ? (quotes and brackets may follow) and is no abbreviation."""
    while end - start > 3:
        size = _closer(data, end - 1)
        if size == 0:
            break
        end -= size
    if end <= start:
        return False
    last = data[end - 1]
    if last == 33 or last == 63:
        return True
    if last != 46:
        return False
    value = OFFSET
    letters = 0
    for place in range(start, end - 1):
        byte = data[place]
        if letters == 0 and (byte == 34 or byte == 39 or byte == 40 or byte == 91):
            continue
        if 65 <= byte <= 90:
            byte += 32
        value = (value ^ np.uint64(byte)) * PRIME
        letters += 1
    if letters <= 1:
        # An initial, or a lone full stop.
        return False
    for known in abbreviations:  # noqa: SIM110 - numba compiles this
        if known == value:
            return False
    return True


@compiled(inline="always")
def _can_begin(data, start):
    """Whether a word can begin a sentence: it does not begin with a lower-case ASCII letter."""
    return not 97 <= data[start] <= 122


@compiled(inline="always")
def _single_spaces(data, start, end):
    """The number of words of a text whose only white space is single spaces between words; 0 for any other text."""
    if start == end or data[start] == 32 or data[end - 1] == 32:
        return 0
    spaces = doubled = control = wide = 0
    before = np.uint8(0)
    # Sums without a branch: the compiler vectorises them.
    for place in range(start, end):
        byte = data[place]
        spaces += byte == 32
        doubled += (byte == 32) & (before == 32)
        control += byte < 32
        wide += (byte == 0xC2) | ((byte >= 0xE1) & (byte <= 0xE3))
        before = byte
    if doubled or control:
        return 0
    if wide:
        for place in range(start, end):
            if data[place] >= 0xC2 and _space(data, place, end):
                return 0
    return spaces + 1


@compiled(inline="always")
def _draw(ids, start, end, seed, choices):
    """A number below ``choices`` from an id's bytes and a mixed seed alone."""
    value = mixed(hashed(ids, start, end, OFFSET ^ seed))
    # ⌊value · choices / 2^64⌋, in two halves: no choice is favoured by more than 2^-32 of its probability.
    many = np.uint64(choices)
    low = ((value & np.uint64(0xFFFFFFFF)) * many) >> np.uint64(32)
    return np.int64(((value >> np.uint64(32)) * many + low) >> np.uint64(32))


# long: one compiled loop over the texts.
@compiled(nogil=True)
def rotate_bytes(ids, id_starts, data, starts, seed, sentences, abbreviations):
    """Rotates texts.

    ``ids``, ``data`` uint8: UTF-8 bytes; ``id_starts``, ``starts`` [N + 1] int64; ``seed`` uint64, mixed already;
    ``sentences``: cut only where a sentence begins; ``abbreviations`` uint64: FNV-1a of words whose full stop does
    not end one.

    Returns the bytes, their starts [N + 1] int64, the words moved to the end [N] int32 and the words [N] int32.
    """
    texts = len(starts) - 1
    out = np.empty(starts[texts] - starts[0], dtype=np.uint8)
    out_starts = np.zeros(texts + 1, dtype=np.int64)
    moved = np.zeros(texts, dtype=np.int32)
    counts = np.zeros(texts, dtype=np.int32)
    longest = 1
    for text in range(texts):
        longest = max(longest, starts[text + 1] - starts[text])
    # A word takes at least two bytes, its space included.
    word_start = np.empty(longest // 2 + 1, dtype=np.int64)
    word_end = np.empty(longest // 2 + 1, dtype=np.int64)
    sentence = np.empty(longest // 2 + 1, dtype=np.int32)
    at = 0
    for text in range(texts):
        place, end = starts[text], starts[text + 1]
        words = 0 if sentences else _single_spaces(data, place, end)
        if words:
            # The usual text: its two parts are swapped.
            cut = _draw(ids, id_starts[text], id_starts[text + 1], seed, words)
            counts[text], moved[text] = words, cut
            met = np.int64(0)
            while met < cut:
                met += data[place] == 32
                place += 1
            second = end - place
            out[at : at + second] = data[place:end]
            at += second
            if cut:
                out[at] = 32
                first = place - 1 - starts[text]
                out[at + 1 : at + 1 + first] = data[starts[text] : place - 1]
                at += 1 + first
            out_starts[text + 1] = at
            continue
        inside = False
        while place < end:
            size = _space(data, place, end)
            if size == 0:
                if not inside:
                    word_start[words] = place
                    inside = True
                place += 1
            else:
                if inside:
                    word_end[words] = place
                    words += 1
                    inside = False
                place += size
        if inside:
            word_end[words] = end
            words += 1
        counts[text] = words
        if words == 0:
            for place in range(starts[text], end):
                out[at] = data[place]
                at += 1
            out_starts[text + 1] = at
            continue
        choices = words
        if sentences:
            choices = 1
            sentence[0] = 0
            for word in range(1, words):
                if _can_begin(data, word_start[word]) and _ends_sentence(
                    data, word_start[word - 1], word_end[word - 1], abbreviations
                ):
                    sentence[choices] = word
                    choices += 1
        cut = _draw(ids, id_starts[text], id_starts[text + 1], seed, choices)
        if sentences:
            cut = np.int64(sentence[cut])
        moved[text] = cut
        for number in range(words):
            word = cut + number
            if word >= words:
                word -= words
            if number:
                out[at] = 32
                at += 1
            for place in range(word_start[word], word_end[word]):
                out[at] = data[place]
                at += 1
        out_starts[text + 1] = at
    return out[:at], out_starts, moved, counts
