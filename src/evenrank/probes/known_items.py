"""Known-item queries: words of one sentence of a passage, for which search should bring that passage back.

They need no judgements. Azzopardi & de Rijke (2006) and many since make them of a document's words; here each is of
one sentence, so that it says which part of the passage search can find, and of words that the passage has in no other
place.

[AR06] Azzopardi & de Rijke (2006). Automatic construction of known-item finding test beds. SIGIR 2006.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, arg
from evenrank.files.sentences import sentence_spans
from evenrank.files.tokens import word_spans
from evenrank.files.types import Array
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.search.analysis import Analyzer

WORDS = 5
"""Words of a query; a sentence with fewer than ``LEAST_WORDS`` rare ones of its own has no query."""
LEAST_WORDS = 3
NEIGHBOURS = 2
"""So many neighbouring words may be copied as they stand: three would be a quotation."""
RARE = 0.1
"""The share of the passages in which a rare word stands at most."""
_SPACE, _PLACE = re.compile(r"\s"), re.compile(r"\S+")
_SCHEMA = {
    "query_id": pl.String,
    "text": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "place": pl.Float64,
    "word": pl.Int64,
    "words": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Queries, each with the passage that it should bring back.

    ``queries``: ``query_id`` (``DOC@START-END``, the sentence's characters; white space in ids as ``%20``), ``text``,
    ``doc_id``, ``start``, ``end``, ``place`` (where the sentence stands: 0 first, 1 last; null for the only one),
    ``word`` (how many words precede it) and ``words`` (of the passage). ``passages``: how many were drawn;
    ``left_out``: how many of their ``sentences`` have no query; of real questions, how many
    have no passage here.
    """

    queries: pl.DataFrame
    passages: int
    left_out: int = 0
    sentences: int = 0


def known_items(
    texts: pl.DataFrame, analyzer: Analyzer, frequency: Array, documents: int, *, sentences: int = 5, seed: int = 0
) -> KnownItems:
    """The queries of ``texts`` (``doc_id``, ``text``): of each, up to ``sentences`` sentences spread over it.

    A query is the five rarest words of its sentence in their order, as they are written: words that stand in no other
    place of the passage and in at most a tenth of all passages, and never three neighbours. ``frequency`` [terms]: in
    how many of the ``documents`` each of the analyzer's terms stands. A sentence with fewer than three such words is
    left out. The first and the last of the others are taken, and between them one of each of as many equal parts as
    are wanted, drawn with ``seed`` and the passage's id.

    Raises EvenrankError if no sentence has a query.
    """
    mixed = mixed_seed(seed)
    rows: list[tuple[object, ...]] = []
    wordless = total = 0
    distinct: set[str] = set()
    for text in texts["text"]:
        distinct.update(text[start:end].lower() for start, end in word_spans(text))
    numbers = _terms(distinct, analyzer)
    most = max(1, int(RARE * documents))
    for doc_id, text in texts.select("doc_id", "text").iter_rows():
        own = word_spans(text)
        terms = [numbers[text[start:end].lower()] for start, end in own]
        found, without = _passage(text, own, terms, frequency, most)
        wordless += without
        total += len(found) + without
        for start, end, query, place, word, size in _spread(found, sentences, doc_id, mixed):
            rows.append((f"{_one_word(doc_id)}@{start}-{end}", query, doc_id, start, end, place, word, size))
    if not rows:
        raise EvenrankError(
            "no sentence has three words that stand nowhere else in its passage and in at most a tenth of the passages:"
            f" ask real questions instead ({arg.questions}, {arg.qrels})"
        )
    return KnownItems(pl.DataFrame(rows, _SCHEMA, orient="row"), texts.height, wordless, total)


_Sentence = tuple[int, int, str, float | None, int, int]


def _one_word(doc_id: str) -> str:
    """An id without white space, which ids of a TREC run cannot have."""
    if not _SPACE.search(doc_id):
        return doc_id
    return _SPACE.sub(lambda found: f"%{ord(found.group()):02X}", doc_id.replace("%", "%25"))


def _terms(words: Iterable[str], analyzer: Analyzer) -> dict[str, int]:
    """The number of the term of each of these words, below 0 for one that has none."""
    listed = sorted(words)
    found = analyzer.terms(pl.Series(listed, dtype=pl.String), grow=False).group_by("text").agg("term")
    numbers = {row: terms[0] for row, terms in found.iter_rows() if len(terms) == 1}
    return {word: numbers.get(row, -1) for row, word in enumerate(listed)}


def _passage(
    text: str, spans: Sequence[tuple[int, int]], numbers: Sequence[int], frequency: Array, most: int
) -> tuple[list[_Sentence], int]:
    """The sentences of a passage that make a query, and how many do not; ``numbers``: the terms of its words."""
    times = Counter(numbers)
    places = [one.start() for one in _PLACE.finditer(text)]
    first = 0
    found: list[_Sentence] = []
    without = 0
    for start, end in sentence_spans(text):
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        own = [
            (int(frequency[numbers[at]]), at)
            for at in range(first, last)
            if numbers[at] >= 0 and times[numbers[at]] == 1 and frequency[numbers[at]] <= most
        ]
        chosen = _rarest(own)
        if len(chosen) >= LEAST_WORDS:
            found.append((start, end, " ".join(text[slice(*spans[at])] for at in chosen), *_place(places, start, end)))
        else:
            without += 1
        first = last
    return found, without


def _place(places: Sequence[int], start: int, end: int) -> tuple[float | None, int, int]:
    """Where a sentence stands, how many words precede it, and how many there are, from where they begin.

    0 for the first sentence and 1 for the last: the words before it as a share of all that are not its own.
    """
    word, after = bisect_left(places, start), bisect_left(places, end)
    others = len(places) - (after - word)
    return word / others if others else None, word, len(places)


def _rarest(own: Sequence[tuple[int, int]]) -> list[int]:
    """The places of the rarest words, of pairs (frequency, place), in order, with no more than two neighbours."""
    chosen: set[int] = set()
    for _, at in sorted(own):
        left = right = at
        while left - 1 in chosen:
            left -= 1
        while right + 1 in chosen:
            right += 1
        if right - left < NEIGHBOURS:
            chosen.add(at)
        if len(chosen) == WORDS:
            break
    return sorted(chosen)


def _spread(found: Sequence[_Sentence], sentences: int, doc_id: str, seed: int) -> Iterator[_Sentence]:
    """The first and the last of the sentences, and between them one of each of equal parts."""
    if len(found) <= sentences:
        yield from found
        return
    if sentences == 1:
        yield found[draw(doc_id, len(found), seed)]
        return
    edges = np.linspace(1, len(found) - 1, sentences - 1).round().astype(int).tolist()
    yield found[0]
    for part, (low, high) in enumerate(pairwise(edges)):
        yield found[low + draw(doc_id, high - low, mixed_seed(seed, part + 1))]
    yield found[-1]


def placed(answers: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Real questions in the columns of :class:`KnownItems`: ``query_id``, ``text``, ``doc_id``, ``start`` and ``end``
    of the answer (null: unknown), whose sentence gives the place. ``texts``: ``doc_id``, ``text`` of their passages."""
    sentences = {}
    for doc_id, text in texts.select("doc_id", "text").iter_rows():
        sentences[doc_id] = sentence_spans(text), [one.start() for one in _PLACE.finditer(text)]
    rows: list[tuple[object, ...]] = []
    for query_id, query, doc_id, start, end in answers.select("query_id", "text", "doc_id", "start", "end").iter_rows():
        spans, places = sentences[doc_id]
        own = [span for span in spans if start is not None and span[0] <= start < span[1]]
        begin, stop = own[0] if own else (start or 0, end or 0)
        place, word, words = _place(places, begin, stop)
        rows.append((query_id, query, doc_id, begin, stop, place if own else None, word, words))
    return pl.DataFrame(rows, _SCHEMA, orient="row")
