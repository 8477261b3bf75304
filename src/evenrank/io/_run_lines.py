"""The lines of a long TREC run, parsed, checked and ranked in compiled loops without the interpreter lock."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

UNKNOWN = -(1 << 62)
"""The rank of a row whose rank column holds no whole number."""
_NEWLINE, _RETURN, _TAB, _BLANK, _MINUS, _POINT, _ZERO = 10, 13, 9, 32, 45, 46, 48
_TENS = 10.0 ** np.arange(23)
_EXACT = 1 << 53
_MIX = np.uint64(0x9E3779B97F4A7C15)
_INLINE = 12
"""The longest id that a view holds itself."""


@compiled(nogil=True)
def counted(data):
    """The number of line ends in ``data``, whether all bytes are ASCII, and the number of carriage returns."""
    lines, returns, all_bits = 0, 0, np.uint8(0)
    for byte in data:
        lines += byte == _NEWLINE
        returns += byte == _RETURN
        all_bits |= byte
    return lines, all_bits < 128, returns


@compiled(nogil=True)
def last_query(data):
    """Where the lines of the last query in ``data`` begin; 0 if there is no other. Blank lines belong to any query.

    ``data`` [B] starts with a line; a last line without an end is left to what follows.
    """
    end = len(data)
    while end > 0 and data[end - 1] != _NEWLINE:
        end -= 1
    begin, tail, name, stop = end, end, 0, 0
    while begin > 0:
        end = begin - 1
        begin = end
        blank = True
        while begin > 0 and data[begin - 1] != _NEWLINE:
            begin -= 1
            # Without a graphic ASCII character, a line of numbers is none: it may be blanks of Unicode.
            blank = blank and (data[begin] <= _BLANK or data[begin] >= 128)
        first = begin
        while first < end and (data[first] == _BLANK or data[first] == _TAB):
            first += 1
        last = first
        while last < end and data[last] != _BLANK and data[last] != _TAB:
            last += 1
        if not blank:
            if stop == 0:
                name, stop = first, last
            else:
                same = last - first == stop - name
                place = 0
                while same and place < last - first:
                    same = data[first + place] == data[name + place]
                    place += 1
                if not same:
                    return tail
        tail = begin
    return 0


@compiled(inline="always")
def _set_view(views, row, data, begin, end, text, used):
    """Writes the Arrow view of ``data[begin:end]``: length and bytes, or length, four bytes and a place in ``text``."""
    length = end - begin
    low, high = np.uint64(length), np.uint64(0)
    for place in range(min(length, 4)):
        low |= np.uint64(data[begin + place]) << np.uint64(32 + 8 * place)
    if length <= _INLINE:
        for place in range(4, length):
            high |= np.uint64(data[begin + place]) << np.uint64(8 * (place - 4))
    else:
        high = np.uint64(used) << np.uint64(32)
        for place in range(length):
            text[used + place] = data[begin + place]
        used += length
    views[row, 0], views[row, 1] = low, high
    return used


@compiled(nogil=True)
def token_views(data, tokens):
    """The Arrow views [T, 2] of tokens (row, begin, end) [T, 3] of ``data``, which holds the long ones itself."""
    views = np.empty((len(tokens), 2), dtype=np.uint64)
    for row in range(len(tokens)):
        begin, end = tokens[row, 1], tokens[row, 2]
        low, high = np.uint64(end - begin), np.uint64(begin) << np.uint64(32)
        for place in range(min(end - begin, 4)):
            low |= np.uint64(data[begin + place]) << np.uint64(32 + 8 * place)
        if end - begin <= _INLINE:
            high = np.uint64(0)
            for place in range(4, end - begin):
                high |= np.uint64(data[begin + place]) << np.uint64(8 * (place - 4))
        views[row, 0], views[row, 1] = low, high
    return views


@compiled(inline="always")
def _decimal(data, begin, end):
    """Whether ``data[begin:end]`` is a plain decimal of few digits, and its value, to the last bit.

    A whole number below 2^53 divided by a power of ten up to 10^22 is one correctly rounded operation.
    """
    first = begin + 1 if data[begin] == _MINUS else begin
    value, digits, point = np.int64(0), 0, -1
    for place in range(first, end):
        digit = np.int64(data[place]) - _ZERO
        if 0 <= digit <= 9:
            value = value * 10 + digit
            digits += 1
        elif data[place] == _POINT and point < 0 and digits > 0:
            point = digits
        else:
            return False, 0.0
    if digits == 0 or digits > 18 or value >= _EXACT or point == digits or (value == 0 and first > begin):
        return False, 0.0
    found = np.float64(value)
    if point >= 0:
        found /= _TENS[digits - point]
    return True, -found if first > begin else found


@compiled(inline="always")
def _whole(data, begin, end):
    """Whether ``data[begin:end]`` is a whole number of up to nine digits, and its value."""
    first = begin + 1 if data[begin] == _MINUS else begin
    value = np.int64(0)
    if first == end or end - first > 9:
        return False, value
    for place in range(first, end):
        digit = np.int64(data[place]) - _ZERO
        if digit < 0 or digit > 9:
            return False, value
        value = value * 10 + digit
    return True, -value if first > begin else value


@compiled(nogil=True)
def parse(
    data, queries, docs, scores, ranks, text, odd_scores, odd_ranks, starts
):  # long, parameters: one pass, in place
    """Fills the columns [N] from lines of six fields between blanks; the number of queries, −1 if a line is another.

    ``queries``, ``docs`` [N, 2]: Arrow views, with long ids in ``text``. ``starts`` [N]: each query's first row.
    ``odd_scores``, ``odd_ranks`` [N, 3]: row, begin and end of numbers that are left to a general parser. Returns the
    number of queries, of bytes of text, of odd scores and of odd ranks.
    """
    place, used, count, score_count, rank_count = 0, 0, 0, 0, 0
    begins, ends = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
    name, name_end = 0, 0
    for row in range(len(scores)):
        for number in range(6):
            while data[place] == _BLANK or data[place] == _TAB:
                place += 1
            begins[number] = place
            while data[place] != _BLANK and data[place] != _TAB and data[place] != _NEWLINE:
                place += 1
            ends[number] = place
            if begins[number] == place:
                return -1, 0, 0, 0
        while data[place] == _BLANK or data[place] == _TAB:
            place += 1
        if data[place] != _NEWLINE:
            return -1, 0, 0, 0
        place += 1
        begin, end = begins[0], ends[0]
        same = row > 0 and end - begin == name_end - name
        if same:
            for step in range(end - begin):
                if data[begin + step] != data[name + step]:
                    same = False
                    break
        if same:
            queries[row, 0], queries[row, 1] = queries[row - 1, 0], queries[row - 1, 1]
        else:
            used = _set_view(queries, row, data, begin, end, text, used)
            name, name_end = begin, end
            starts[count] = row
            count += 1
        used = _set_view(docs, row, data, begins[2], ends[2], text, used)
        plain, rank = _whole(data, begins[3], ends[3])
        ranks[row] = rank
        if not plain:
            odd_ranks[rank_count, 0], odd_ranks[rank_count, 1], odd_ranks[rank_count, 2] = row, begins[3], ends[3]
            rank_count += 1
        plain, score = _decimal(data, begins[4], ends[4])
        scores[row] = score
        if not plain:
            odd_scores[score_count, 0], odd_scores[score_count, 1], odd_scores[score_count, 2] = row, begins[4], ends[4]
            score_count += 1
    return count, used, score_count, rank_count


@compiled(nogil=True)
def contradictions(starts, scores, ranks):
    """Number of rows whose rank and score, compared with the row above of the query, contradict each other."""
    wrong = 0
    for query in range(len(starts) - 1):
        for row in range(starts[query] + 1, starts[query + 1]):
            if ranks[row] == UNKNOWN or ranks[row - 1] == UNKNOWN:
                continue
            if (ranks[row] > ranks[row - 1] and scores[row] > scores[row - 1]) or (
                ranks[row] < ranks[row - 1] and scores[row] < scores[row - 1]
            ):
                wrong += 1
    return wrong


@compiled(inline="always")
def _byte(views, row, place, text):
    """Byte ``place`` of an id."""
    low, high = views[row, 0], views[row, 1]
    length = np.int64(low & np.uint64(0xFFFFFFFF))
    if length > _INLINE:
        return np.int64(text[np.int64(high >> np.uint64(32)) + place])
    if place < 4:
        return np.int64((low >> np.uint64(32 + 8 * place)) & np.uint64(0xFF))
    return np.int64((high >> np.uint64(8 * (place - 4))) & np.uint64(0xFF))


@compiled()
def _compared(views, one, other, text):
    """Below, at or above 0 as the id of row ``one`` is before, at or after that of ``other`` in the order of bytes."""
    first = np.int64(views[one, 0] & np.uint64(0xFFFFFFFF))
    second = np.int64(views[other, 0] & np.uint64(0xFFFFFFFF))
    for place in range(min(first, second)):
        step = _byte(views, one, place, text) - _byte(views, other, place, text)
        if step != 0:
            return step
    return first - second


@compiled(nogil=True)
def repeats(starts, docs, text):
    """Whether a document appears twice for a query."""
    longest = 1
    for query in range(len(starts) - 1):
        longest = max(longest, starts[query + 1] - starts[query])
    size = 4
    while size < 2 * longest:
        size *= 2
    slots = np.empty(size, dtype=np.int32)
    for query in range(len(starts) - 1):
        start, end = starts[query], starts[query + 1]
        bits = 2
        while (1 << bits) < 2 * (end - start):
            bits += 1
        slots[: 1 << bits] = -1
        for row in range(start, end):
            low, high = docs[row, 0], docs[row, 1]
            length = np.int64(low & np.uint64(0xFFFFFFFF))
            if length > _INLINE:
                first = np.int64(high >> np.uint64(32))
                high = np.uint64(0)
                for place in range(first, first + length):
                    high = (high ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
            mixed = (low ^ (high * _MIX)) * _MIX
            mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIX
            slot = np.int64(mixed >> np.uint64(64 - bits))
            while slots[slot] >= 0:
                other = slots[slot]
                if docs[other, 0] == docs[row, 0] and (
                    docs[other, 1] == docs[row, 1] or (length > _INLINE and _compared(docs, other, row, text) == 0)
                ):
                    return True
                slot = (slot + 1) & ((1 << bits) - 1)
            slots[slot] = row
    return False


@compiled(inline="always")
def _after(order, one, other, docs, scores, text):
    """Whether the row at place ``one`` of an order is ranked after that at ``other``: by score, ties by falling id."""
    first, second = order[one], order[other]
    if scores[first] != scores[second]:
        return scores[first] < scores[second]
    return _compared(docs, first, second, text) < 0


@compiled()
def _sort(order, docs, scores, text):
    """Sorts rows in place into rank order, by heap."""
    end, start = len(order), len(order) // 2
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[0], order[end] = order[end], order[0]
        parent = start
        child = 2 * parent + 1
        while child < end:
            if child + 1 < end and _after(order, child + 1, child, docs, scores, text):
                child += 1
            if not _after(order, child, parent, docs, scores, text):
                break
            order[parent], order[child] = order[child], order[parent]
            parent, child = child, 2 * child + 1


@compiled(nogil=True)
def rank(starts, docs, scores, text):
    """Puts each query's rows in order, in place: by falling score, ties by falling id."""
    for query in range(len(starts) - 1):
        start, end = starts[query], starts[query + 1]
        falling = True
        for row in range(start + 1, end):
            if scores[row] > scores[row - 1]:
                falling = False
                break
        first = start
        while first < end:
            # A stretch to sort: the rows with the same score, or all if they do not fall.
            last, ordered = first + 1, True
            while last < end and (not falling or scores[last] == scores[first]):
                ordered = ordered and falling and _compared(docs, last - 1, last, text) > 0
                last += 1
            if not ordered:
                order = np.arange(first, last)
                _sort(order, docs, scores, text)
                moved, values = docs[first:last].copy(), scores[first:last].copy()
                for place in range(last - first):
                    docs[first + place, 0] = moved[order[place] - first, 0]
                    docs[first + place, 1] = moved[order[place] - first, 1]
                    scores[first + place] = values[order[place] - first]
            first = last
