"""The rotating loop: one pass over the bytes of a batch of texts, compiled, without the interpreter lock."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.files.compiled import compiled, unwritable
from evenrank.files.compiled_bytes import (
    OFFSET,
    PRIME,
    WIDTH,
    copy_bytes,
    count_bits,
    equal_mask,
    hashed,
    lowest_bit,
    mixed,
    within_mask,
)
from evenrank.files.types import Array


@compiled(forceinline=True, _nrt=False)
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


@compiled(forceinline=True, _nrt=False)
def _closer(data, place):
    """Whether the byte ends a closing quote or bracket: " ' ) ] ” ’ »."""
    byte = data[place]
    if byte == 34 or byte == 39 or byte == 41 or byte == 93:
        return 1
    if byte == 0x9D or byte == 0x99:
        return 3 if data[place - 1] == 0x80 and data[place - 2] == 0xE2 else 0
    return 2 if byte == 0xBB and data[place - 1] == 0xC2 else 0


@compiled(forceinline=True, _nrt=False)
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


@compiled(forceinline=True, _nrt=False)
def _can_begin(data, start):
    """Whether a word can begin a sentence: it does not begin with a lower-case ASCII letter."""
    return not 97 <= data[start] <= 122


@compiled(forceinline=True, _nrt=False)
def _single_spaces(data, start, end, spaces):
    """The number of words of a text whose only white space is single spaces between words; 0 for any other text.

    ``spaces`` uint64: filled with where they are, a bit for each byte. 64 bytes follow the text.
    """
    one = np.uint64(1)
    if start == end or data[start] == 32 or data[end - one] == 32:
        return 0
    words = 1
    other = wide = before = np.uint64(0)
    place = start
    part = 0
    while place < end:
        left = end - place
        inside = ~np.uint64(0) if left >= WIDTH else (one << left) - one
        here = equal_mask(data, place, 32) & inside
        other |= (within_mask(data, place, 0, 0, 32) & inside) | (here & ((here << one) | before))
        wide |= (equal_mask(data, place, 0xC2) | within_mask(data, place, 0, 0xE1, 3)) & inside
        before = here >> np.uint64(63)
        spaces[part] = here
        words += np.int64(count_bits(here))
        part += 1
        place += np.uint64(WIDTH)
    if other:
        return 0
    if wide:
        for at in range(np.int64(start), np.int64(end)):
            if data[at] >= 0xC2 and _space(data, at, np.int64(end)):
                return 0
    return words


@compiled(forceinline=True, _nrt=False)
def _word_start(spaces, number):
    """Where the word ``number`` from 1 of a text begins, after its ``number``-th single space."""
    part = 0
    count = np.int64(count_bits(spaces[0]))
    while number > count:
        number -= count
        part += 1
        count = np.int64(count_bits(spaces[part]))
    here = spaces[part]
    for _ in range(number - 1):
        here &= here - np.uint64(1)
    return np.uint64(part * WIDTH + 1) + lowest_bit(here)


@compiled(forceinline=True, _nrt=False)
def _draw(ids, start, end, seed, choices):
    """A number below ``choices`` from an id's bytes and a mixed seed alone."""
    value = mixed(hashed(ids, start, end, OFFSET ^ seed))
    # ⌊value · choices / 2^64⌋, in two halves: no choice is favoured by more than 2^-32 of its probability.
    many = np.uint64(choices)
    low = ((value & np.uint64(0xFFFFFFFF)) * many) >> np.uint64(32)
    return np.int64(((value >> np.uint64(32)) * many + low) >> np.uint64(32))


@compiled(forceinline=True, _nrt=False)
def _split(data, place, end, word_start, word_end):
    """Finds the words of a text; returns how many they are."""
    words = 0
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
    return words


@compiled(forceinline=True, _nrt=False)
def _join(data, start, end, word_start, word_end, words, cut, lines, out, at):
    """Writes a text's words from ``cut`` on and then the others; one of white space alone as it is, or in a line's
    field with spaces for what ends one. Returns where that ends."""
    if words == 0:
        for place in range(start, end):
            byte = data[place]
            out[at] = 32 if lines and (byte == 9 or byte == 10 or byte == 13) else byte
            at += 1
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
    return at


# arrays takes longer than the rest.
@compiled(nogil=True, _nrt=False)
def _rotate(
    ids, id_starts, data, starts, ends, seed, sentences, abbreviations, lines, out, out_starts, moved, counts,
    word_start, word_end, sentence, spaces,
):  # fmt: skip
    """As :func:`rotate_bytes`, into its results. The last four: to work with."""
    at = 0
    for text in range(len(starts)):
        place, end = starts[text], ends[text]
        if lines:
            size = id_starts[text + 1] - id_starts[text]
            copy_bytes(out, np.uint64(at), ids, np.uint64(id_starts[text]), np.uint64(size))
            at += size
            out[at] = 9
            at += 1
        words = 0
        if not sentences and end + WIDTH <= len(data):
            words = _single_spaces(data, np.uint64(place), np.uint64(end), spaces)
        if words:
            # The usual text: its two parts are swapped.
            cut = _draw(ids, id_starts[text], id_starts[text + 1], seed, words)
            counts[text], moved[text] = words, cut
            first = np.int64(_word_start(spaces, cut)) if cut else 0
            second = end - place - first
            copy_bytes(out, np.uint64(at), data, np.uint64(place + first), np.uint64(second))
            at += second
            if cut:
                out[at] = 32
                copy_bytes(out, np.uint64(at + 1), data, np.uint64(place), np.uint64(first - 1))
                at += first
        else:
            words = _split(data, place, end, word_start, word_end)
            counts[text] = words
            choices = words
            if sentences and words:
                choices = 1
                sentence[0] = 0
                for word in range(1, words):
                    if _can_begin(data, word_start[word]) and _ends_sentence(
                        data, word_start[word - 1], word_end[word - 1], abbreviations
                    ):
                        sentence[choices] = word
                        choices += 1
            cut = _draw(ids, id_starts[text], id_starts[text + 1], seed, choices) if words else 0
            if sentences and words:
                cut = np.int64(sentence[cut])
            moved[text] = cut
            at = _join(data, place, end, word_start, word_end, words, cut, lines, out, at)
        if lines:
            out[at] = 10
            at += 1
        out_starts[text + 1] = at


def rotate_bytes(
    ids: Array,
    id_starts: Array,
    data: Array,
    starts: Array,
    ends: Array,
    seed: np.uint64,
    sentences: bool,
    abbreviations: Array,
    lines: bool,
) -> tuple[Array, Array, Array, Array]:
    """Rotates texts.

    ``ids``, ``data`` uint8: UTF-8 bytes; ``id_starts`` [N + 1], ``starts``, ``ends`` [N] int64; ``seed`` uint64, mixed
    already; ``sentences``: cut only where a sentence begins; ``abbreviations`` uint64: FNV-1a of words whose full stop
    does not end one; ``lines``: write lines, each an id, a tab and a text.

    Returns the bytes, their starts [N + 1] int64, the words moved to the end [N] int32 and the words [N] int32.
    """
    ids, id_starts, data, starts, ends = unwritable(ids, id_starts, data, starts, ends)
    lengths = ends - starts
    texts, longest = len(starts), int(lengths.max(initial=0))
    size = int(lengths.sum()) + (int(id_starts[texts] - id_starts[0]) + 2 * texts if lines else 0)
    out, out_starts = np.empty(size, dtype=np.uint8), np.zeros(texts + 1, dtype=np.int64)
    moved, counts = np.zeros(texts, dtype=np.int32), np.zeros(texts, dtype=np.int32)
    # A word takes at least two bytes, its space included.
    most = longest // 2 + 1
    working = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32)
    spaces = np.empty(longest // WIDTH + 1, dtype=np.uint64)
    _rotate(
        ids, id_starts, data, starts, ends, seed, sentences, abbreviations, lines, out, out_starts, moved, counts,
        *working, spaces,
    )  # fmt: skip
    return out[: out_starts[texts]], out_starts, moved, counts
