"""Edits of a passage's whole sentences: the answer's moved, kept alone or removed, others added.

Sentences are cut as for rotation (:func:`evenrank.files.sentences.sentence_starts`). Edits return sentences joined
by single spaces, or the text itself where nothing changes. An answer in several sentences moves them together.
``start`` and ``end`` are the answer's characters in the text, end excluded.

>>> from evenrank.probes.sentences import moved, only, without
>>> text = "Tea is old. It came from China. We like it."
>>> moved(text, 25, 30, 0)
'It came from China. Tea is old. We like it.'
>>> only(text, 25, 30), without(text, 25, 30)
('It came from China.', 'Tea is old. We like it.')
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from evenrank.files import EvenrankError
from evenrank.files.errors import quoted
from evenrank.files.hashing import FNV_OFFSET, GOLDEN, MASK, fnv_array, mix, mix_array
from evenrank.files.sentences import Span, sentence_spans
from evenrank.files.squad import AnswerAlignment
from evenrank.files.tables import text_bytes
from evenrank.files.tokens import tokenize
from evenrank.files.wording import are, counted
from evenrank.mitigation.rotation import mixed_seed
from evenrank.search.analysis import NLTK, stop_list

_PAIRED = 50
"""In longer texts one sentence is removed: among so many, some are about as long as any other."""


def holding(spans: Sequence[Span], start: int, end: int) -> tuple[int, int]:
    """The first and the last sentence that the answer touches. Raises ValueError if it touches none."""
    touched = [number for number, (begin, stop) in enumerate(spans) if begin < end and stop > start]
    if not touched:
        raise ValueError("the answer is in no sentence")
    return touched[0], touched[-1]


def places(text: str, start: int, end: int) -> tuple[int, int]:
    """How many sentences precede the answer's, and how many others there are (m): its places are 0 … m."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    return first, len(spans) - (last - first + 1)


def moved(text: str, start: int, end: int, place: int) -> str:
    """The answer's sentences at ``place`` (0 … m) among the others; the text itself if they are there already."""
    units, first = _units(text, start, end)
    return _at(text, units, first, place)


def control_moved(text: str, start: int, end: int, place: int, draw: int) -> str | None:
    """The seam control of :func:`moved`: another sentence at ``place``, the answer's in order among the rest.

    It is the one nearest in words to the answer's that is not there already; ``draw`` (a whole number from 0) chooses
    among several. None without one.
    """
    units, first = _units(text, start, end)
    length = len(units[first].split())
    far = {number: abs(len(unit.split()) - length) for number, unit in enumerate(units) if number not in (first, place)}
    nearest = [number for number, distance in far.items() if distance == min(far.values())]
    return _at(text, units, nearest[draw % len(nearest)], place) if nearest else None


def only(text: str, start: int, end: int) -> str:
    """The answer's sentences alone; the text itself if there are no others."""
    units, first = _units(text, start, end)
    return units[first] if len(units) > 1 else text


def without(text: str, start: int, end: int) -> str:
    """The other sentences; the text itself if there are none."""
    units, first = _units(text, start, end)
    return " ".join(units[:first] + units[first + 1 :]) if len(units) > 1 else text


def control_without(text: str, start: int, end: int, draw: int) -> str | None:
    """The control of :func:`without`: another sentence removed, or two, so that as many words go on average.

    Of one or two others, those with as many words as the answer's; else the next shorter or the next longer ones, by
    ``draw`` and with the chances that make the mean equal. (The nearest ones are shorter on average, as sentences with
    answers are long: by 3 of 29 words on XQuAD, which a ranker that looks at lengths alone would react to.) None if
    all others are longer, or all shorter.
    """
    units, first = _units(text, start, end)
    wanted = len(units[first].split())
    words = {number: len(unit.split()) for number, unit in enumerate(units) if number != first}
    choices: dict[int, list[tuple[int, ...]]] = {}
    sizes = (1, 2) if len(words) <= _PAIRED else (1,)
    for gone in (gone for size in sizes for gone in combinations(words, size)):
        choices.setdefault(sum(words[number] for number in gone), []).append(gone)
    shorter, longer = (
        max((n for n in choices if n <= wanted), default=0),
        min((n for n in choices if n >= wanted), default=0),
    )
    if not shorter or not longer:
        return None
    apart = max(longer - shorter, 1)
    fitting = choices[longer if draw % apart < wanted - shorter else shorter]
    gone = fitting[draw // apart % len(fitting)]
    return " ".join(unit for number, unit in enumerate(units) if number not in gone)


def inserted(text: str, sentence: str, place: int) -> str:
    """The sentence after the first ``place`` sentences of the text (0 … n)."""
    units = sentences_of(text)
    return " ".join([*units[:place], sentence, *units[place:]])


def padded(text: str, choose: Callable[[int], str | None]) -> tuple[str, int]:
    """Other sentences after each of the text's, so that the length so far stays about double; and their number.

    ``choose``: from the number of words that are lacking (1 or more) to a sentence of about as many, or None if there
    is none left. A sentence is added only if the length comes nearer to the double.
    """
    parts: list[str] = []
    own = total = added = 0
    for sentence in sentences_of(text):
        parts.append(sentence)
        words = len(sentence.split())
        own, total = own + words, total + words
        while total < 2 * own:
            other = choose(2 * own - total)
            if other is None or len(other.split()) >= 2 * (2 * own - total):
                break
            parts.append(other)
            added += 1
            total += len(other.split())
    return (" ".join(parts) if added else text), added


def sentences_of(text: str) -> list[str]:
    """The sentences of a text as they stand."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _units(text: str, start: int, end: int) -> tuple[list[str], int]:
    """The sentences, those of the answer as one; and the number of that one."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    found = [text[begin:stop] for begin, stop in spans]
    return [*found[:first], " ".join(found[first : last + 1]), *found[last + 1 :]], first


def _at(text: str, units: list[str], number: int, place: int) -> str:
    if number == place:
        return text
    others = units[:number] + units[number + 1 :]
    return " ".join([*others[:place], units[number], *others[place:]])


def content_words(text: str) -> list[str]:
    """The distinct words of a text, in lower case and in order, without English stop words (NLTK's list).

    >>> content_words("What is the capital of the capital?")
    ['capital']
    """
    stops = stop_list(NLTK)
    return [word for word in dict.fromkeys(tokenize(text)) if word not in stops]


SIZE = 5000
_NEAR = 8
"""A sentence is drawn among this many of about the length that is wanted."""


@dataclass(frozen=True, slots=True)
class SentencePool:
    """Distinct ``sentences`` with their ``documents`` and numbers of ``words``, from the shortest to the longest."""

    sentences: tuple[str, ...]
    documents: tuple[str, ...]
    words: tuple[int, ...]

    @classmethod
    def sampled(cls, batches: Iterable[pl.DataFrame], seed: int, size: int = SIZE) -> SentencePool:
        """Up to ``size`` sentences of up to ``size`` passages of batches with ``doc_id`` and ``text``.

        The passages have the smallest hashes of seed and id, and the sentences those of seed, id and number: they do
        not depend on the order of the passages.
        """
        found = [
            (mix((key + number * GOLDEN) & MASK), doc_id, number, sentence)
            for key, doc_id, text in _smallest(batches, seed, size).iter_rows()
            for number, sentence in enumerate(sentences_of(text), 1)
        ]
        distinct: dict[str, tuple[int, str, int]] = {}
        for key, doc_id, number, sentence in sorted(found):
            if len(distinct) < size:
                distinct.setdefault(sentence, (key, doc_id, number))
        rows = sorted((len(sentence.split()), key, doc_id, sentence) for sentence, (key, doc_id, _) in distinct.items())
        return cls(tuple(row[3] for row in rows), tuple(row[2] for row in rows), tuple(row[0] for row in rows))

    def chooser(self, doc_id: str, text: str, key: int) -> Callable[[int], str | None]:
        """A function from a number of words to a sentence of about as many, a different one on each call.

        Never one of the passage ``doc_id`` or of its ``text``; None if there is none left. ``key`` (64 bits) decides.
        """
        used = set(sentences_of(text))
        calls = 0

        def choose(words: int) -> str | None:
            nonlocal calls
            calls += 1
            draw = mix((key + calls * GOLDEN) & MASK)
            nearest = []
            for place in self._outwards(words, draw):
                if self.documents[place] != doc_id and self.sentences[place] not in used:
                    nearest.append(place)
                    if len(nearest) == _NEAR:
                        break
            if not nearest:
                return None
            close = [place for place in nearest if abs(self.words[place] - words) <= words // 4] or nearest[:1]
            chosen = self.sentences[close[(draw >> 32) % len(close)]]
            used.add(chosen)
            return chosen

        return choose

    def other_words(self, count: int, doc_id: str, text: str, query: str, key: int) -> list[str] | None:
        """``count`` content words of another passage's sentence (or of several, if one has too few), none of them the
        query's; None if there are not as many. ``key`` decides."""
        avoided = set(content_words(query))
        own = set(sentences_of(text))
        found: dict[str, None] = {}
        for step in range(len(self.sentences)):
            place = (key + step) % len(self.sentences)
            if self.documents[place] == doc_id or self.sentences[place] in own:
                continue
            found |= dict.fromkeys(word for word in content_words(self.sentences[place]) if word not in avoided)
            if len(found) >= count:
                return list(found)[:count]
        return None

    def _outwards(self, words: int, draw: int) -> Iterator[int]:
        """The places of all sentences, those whose length is nearest to ``words`` first."""
        first, after = bisect_left(self.words, words), bisect_right(self.words, words)
        high = first + draw % (after - first) if after > first else first
        low = high - 1
        while low >= 0 or high < len(self.words):
            if low < 0 or (high < len(self.words) and self.words[high] - words <= words - self.words[low]):
                yield high
                high += 1
            else:
                yield low
                low -= 1


def _smallest(batches: Iterable[pl.DataFrame], seed: int, size: int) -> pl.DataFrame:
    """The ``size`` passages with the smallest keys: ``key``, ``doc_id``, ``text``."""
    start = FNV_OFFSET ^ mixed_seed(seed)
    schema = {"key": pl.UInt64, "doc_id": pl.String, "text": pl.String}
    kept = pl.DataFrame(schema=schema)
    for batch in batches:
        keys = mix_array(fnv_array(*text_bytes(batch["doc_id"]), start))
        if kept.height == size:
            batch, keys = batch.filter(pl.Series(keys <= np.uint64(kept["key"][-1]))), keys[keys <= kept["key"][-1]]
        keyed = batch.select(pl.Series("key", keys, pl.UInt64), "doc_id", "text")
        kept = pl.concat([kept, keyed]).sort("key", "doc_id").head(size)
    return kept


_COLUMNS = ("query_id", "doc_id", "text", "answer_start", "answer_end")


def first_answers(spans: pl.DataFrame, by: Sequence[str] = ("query_id", "doc_id")) -> pl.DataFrame:
    """The first answer of each query and passage, or of each query (``by``).

    ``spans``: ``query_id``, ``doc_id``, ``answer_start``, ``answer_end`` and perhaps ``answer``, which else becomes
    null. First is the lowest passage id, then the lowest start. Rows in the order in which ``spans`` first has them.
    """
    order = spans.select(by).unique(maintain_order=True)
    found = spans.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    found = order.join(found.unique(by, keep="first", maintain_order=True), on=list(by), maintain_order="left")
    names = ["query_id", "doc_id", "answer_start", "answer_end"]
    answer = pl.col("answer") if "answer" in found.columns else pl.lit(None, pl.String).alias("answer")
    return found.select(*names, answer)


def locate(spans: pl.DataFrame, texts: pl.DataFrame, where: str) -> tuple[pl.DataFrame, AnswerAlignment]:
    """Where answers are in their passages, and how they were aligned.

    ``spans``: as :func:`first_answers` returns them; ``texts``: ``doc_id``, ``text``; ``where``: the collection, for
    messages. One row per answer, in order: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``
    (characters, without white space at the ends). Answers that are not in their passage's text are left out. Raises
    EvenrankError if no answer is left or a passage is missing.
    """
    table = spans.join(texts.select("doc_id", "text"), on="doc_id", how="left", maintain_order="left")
    _check_present(table, where)
    rows, alignment = [], AnswerAlignment()
    for query, doc, start, end, wanted, text in table.iter_rows():
        if wanted is not None and (start < 0 or text[start:end].split() != wanted.split()):
            span = alignment.align(query, doc, text, wanted, start)
            if span is None:
                continue
            start, end = span
        else:
            alignment.read += 1
        answer = text[start:end] if start >= 0 else ""
        if not answer.strip() or (wanted is None and end > len(text)):
            raise EvenrankError(f"query {quoted(query)}: the answer's span is not in the passage {quoted(doc)}")
        start, end = start + len(answer) - len(answer.lstrip()), start + len(answer.rstrip())
        rows.append((query, doc, text, start, end))
    if not rows:
        raise EvenrankError(f"no answer was found in its passage ({table.height} searched)")
    return pl.DataFrame(rows, list(_COLUMNS), orient="row"), alignment


def _check_present(table: pl.DataFrame, where: str) -> None:
    absent = table.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        listed = ", ".join(map(quoted, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(
            f"{counted(len(absent), 'passage')} with answers {are(len(absent))} not in {where}: {listed}"
        )
