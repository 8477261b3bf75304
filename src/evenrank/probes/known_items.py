"""Known-item queries: sentences of passages, for which search should bring that passage back.

They need no judgements. Azzopardi & de Rijke (2006) and many since make them of a document's words. Here each is of one
sentence, so that it says which part of the passage search can find, and it is asked twice: as it stands, to count
answers, and by its rarest words, which the passage has in no other place, to see who fills the lists.

[AR06] Azzopardi & de Rijke (2006). Automatic construction of known-item finding test beds. SIGIR 2006.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import polars as pl

from evenrank.files import EvenrankError
from evenrank.files.sentences import sentence_spans
from evenrank.files.tokens import word_spans
from evenrank.files.types import Array
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.search.analysis import Analyzer

SENTENCES = 3
"""Sentences of a passage that are asked for: the first, the last, and one between."""
WORDS = 5
"""Rare words of a query; a sentence with fewer than ``LEAST_WORDS`` words has no query, and with fewer than that of
rare words of its own none of these."""
LEAST_WORDS = 3
LONG_SENTENCE = 60
"""With more words, a passage that is a single sentence most likely has no marks of sentences."""
NEIGHBOURS = 2
"""So many neighbouring words may be copied as they stand: three would be a quotation."""
RARE = 0.1
"""The share of the passages in which a rare word stands at most."""
BY_WORDS = "+words"
"""The end of the id of a query of rare words."""
_BEGINNING = 100
_SPACE, _PLACE = re.compile(r"\s"), re.compile(r"\S+")
_SCHEMA = {
    "query_id": pl.String,
    "text": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "place": pl.Float64,
    "word": pl.Int64,
    "whole": pl.Boolean,
}


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Queries, each with the passage that it should bring back.

    ``queries``: ``query_id`` (``DOC@START-END``, the sentence's characters, of rare words with ``+words`` behind; white
    space in ids as ``%20``), ``text``, ``doc_id``, ``start``, ``end``, ``place`` (where the sentence stands: 0 first, 1
    last; null for the only one), ``word`` (how many words precede it) and ``whole`` (whether the sentence is asked for
    as it stands). ``passages``: how many were drawn; ``sentences``: how many they have, of which ``without`` have no
    query.
    """

    queries: pl.DataFrame
    passages: int
    sentences: int
    without: int


def known_items(
    texts: pl.DataFrame, analyzer: Analyzer, frequency: Array, documents: int, *, seed: int = 0
) -> KnownItems:
    """The queries of ``texts`` (``doc_id``, ``text``): of each, up to three sentences, the first and the last among
    them, and one between that is drawn with ``seed`` and the passage's id.

    Each is asked as it stands, and by its five rarest words in their order, as they are written: words that stand in no
    other place of the passage and in at most a tenth of all passages, and never three neighbours. ``frequency``
    [terms]: in how many of the ``documents`` each of the analyzer's terms stands. A sentence of fewer than three words
    is not asked for, and one with fewer than three such words only as it stands.

    Raises EvenrankError if no sentence has a query.
    """
    mixed = mixed_seed(seed)
    rows: list[tuple[object, ...]] = []
    total = without = 0
    places_of = [word_spans(text) for text in texts["text"]]
    words_of = [
        [text[start:end].lower() for start, end in spans] for text, spans in zip(texts["text"], places_of, strict=True)
    ]
    numbers = _terms(set(chain.from_iterable(words_of)), analyzer)
    most = max(1, int(RARE * documents))
    for doc_id, text, spans, words in zip(texts["doc_id"], texts["text"], places_of, words_of, strict=True):
        sentences, short = _sentences(text, spans)
        total, without = total + len(sentences) + short, without + short
        terms = [numbers[word] for word in words]
        times = Counter(terms)
        places = [match.start() for match in _PLACE.finditer(text)]
        for start, end, first, last in _chosen(sentences, doc_id, mixed):
            where = (doc_id, start, end, *_place(places, start, end))
            name = f"{_one_word(doc_id)}@{start}-{end}"
            rows.append((name, " ".join(text[start:end].split()), *where, True))
            own = [
                (int(frequency[terms[at]]), at)
                for at in range(first, last)
                if terms[at] >= 0 and times[terms[at]] == 1 and frequency[terms[at]] <= most
            ]
            rare = _rarest(own)
            if len(rare) >= LEAST_WORDS:
                query = " ".join(text[slice(*spans[at])] for at in rare)
                rows.append((name + BY_WORDS, query, *where, False))
    if not rows:
        raise EvenrankError(f"no sentence of {texts.height} passages has {LEAST_WORDS} words")
    return KnownItems(pl.DataFrame(rows, _SCHEMA, orient="row"), texts.height, total, without)


def _one_word(doc_id: str) -> str:
    """An id without white space, which ids of a TREC run cannot have."""
    if not _SPACE.search(doc_id):
        return doc_id
    return _SPACE.sub(lambda found: f"%{ord(found.group()):02X}", doc_id.replace("%", "%25"))


def _terms(words: Iterable[str], analyzer: Analyzer) -> dict[str, int]:
    """The number of the term of each of these words, below 0 for one that has none."""
    listed = sorted(words)
    table = analyzer.terms(pl.Series(listed, dtype=pl.String), grow=False).group_by("text").agg("term")
    numbers = {row: terms[0] for row, terms in table.iter_rows() if len(terms) == 1}
    return {word: numbers.get(row, -1) for row, word in enumerate(listed)}


def has_query(text: str) -> bool:
    """Whether any sentence of a passage can be asked for: most often one at its beginning."""
    return any(_sentences(part, word_spans(part))[0] for part in (text[:_BEGINNING], text))


_Sentence = tuple[int, int, int, int]
"""Its characters, and the numbers of its first word and of the one behind its last."""


def _sentences(text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[_Sentence], int]:
    """The sentences of a passage that can be asked for, and how many are too short; ``spans``: of its words."""
    sentences: list[_Sentence] = []
    first = short = 0
    for start, end in sentence_spans(text):
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        if last - first >= LEAST_WORDS:
            sentences.append((start, end, first, last))
        else:
            short += 1
        first = last
    return sentences, short


def _chosen(found: Sequence[_Sentence], doc_id: str, seed: int) -> Iterator[_Sentence]:
    """The first and the last of the sentences, and one between."""
    if len(found) <= SENTENCES:
        yield from found
        return
    yield found[0]
    yield found[1 + draw(doc_id, len(found) - 2, seed)]
    yield found[-1]


def _place(places: Sequence[int], start: int, end: int) -> tuple[float | None, int]:
    """Where a sentence stands, and how many words precede it, from where words begin.

    0 for the first sentence and 1 for the last: the words before it as a share of all that are not its own.
    """
    word, after = bisect_left(places, start), bisect_left(places, end)
    others = len(places) - (after - word)
    return word / others if others else None, word


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
