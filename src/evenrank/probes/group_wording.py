"""A text in another wording: group words become their counterparts of the other pole, or words that name no group.

The words and their counterparts are the lexicon's own (``[pairs]``, ``[neutral]`` of its TOML), found as counting finds
them. Kept are the case (she, She, SHE), what joins the words of a phrase (ex-wife, ex wife), and endings after an
apostrophe (she's, woman's); all else is untouched byte for byte. A word without a counterpart is left and counted.

When it misleads: names, and words that the lexicon does not know, keep the group that they suggest. English *her* and
*his* are read by the words around them (:mod:`evenrank.probes.noun_phrases`), which is not always right. After *they*
verbs stay in the singular, after a neutral word so do articles (*an uncle*, *an relative*): a ranker that reacts to
grammar reacts to ``neutral``. That a swap changes words at all is what its placebo is for.

Worked example:

>>> import polars as pl
>>> from evenrank.groups import load_lexicon
>>> from evenrank.probes.group_wording import neutralised, swapped
>>> texts = pl.Series(["Her mother's boss told HER that she’d win.", "A friend of his is a midwife."])
>>> swapped(texts, load_lexicon("gender-en")).texts.to_list()
["His father's boss told HIM that he’d win.", 'A friend of hers is a midwife.']
>>> neutralised(texts, load_lexicon("gender-en")).texts.to_list()
["Their parent's boss told THEM that they’d win.", 'A friend of theirs is a midwife.']
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.groups import Lexicon, Scoring, gendered_spans, score_texts
from evenrank.groups.counterparts import Replacements
from evenrank.groups.table import REST
from evenrank.groups.tokens import APOSTROPHES, tokenize
from evenrank.io import EvenrankError

from .noun_phrases import her_is_possessive, his_is_possessive

POSSESSIVE = {
    ("her", "him"): "his",
    ("her", "them"): "their",
    ("his", "hers"): "her",
    ("his", "theirs"): "their",
}
"""What (word, its counterpart) becomes instead before a noun phrase."""
TITLES = ("miss",)
"""Forms of address that are other words too: replaced only where they and the next word have a capital."""
COUPLES = {"bride": "groom", "brides": "grooms"}
"""Words that are left beside another that is no group word (*groom*), which their counterpart would repeat."""
_NAME = re.compile(r"\.?\s+[^\W\d_]")
_SUBJECTS = ("she", "he")
_GOES_ON = re.compile(r"[ \t\r\n\u00a0]+\w|['’]s\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_JOINED = r"\s+(?:and|or|&)\s+(?:(?:the|a|his|her|their)\s+)?"
_OF_MANY = re.compile(rf"[{APOSTROPHES}](?=\s+\w)")
_QUOTED = re.compile(rf"(?<!\w)[‘{APOSTROPHES}](?=\w)")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edited:
    """Texts after a change of wording.

    ``texts`` [N]; ``edits`` [N]: how many places were changed; ``left``: the group words without a counterpart, folded,
    with how often each was left; ``verbs``: subjects (she, he) that became *they* and are followed by a word, as a rule
    a verb, which was left as it is.
    """

    texts: pl.Series
    edits: NDArray[np.int64]
    left: Counter[str]
    verbs: int = 0


def swapped(texts: pl.Series, lexicon: Lexicon) -> Edited:
    """The texts [N] with each word of one pole in the wording of the other, by the lexicon's ``pairs``.

    Words of other groups are left. Raises EvenrankError for a lexicon without pairs or without poles.
    """
    if not lexicon.pairs:
        raise EvenrankError(f"`lexicon`: {lexicon.name} has no [pairs], the counterparts of its words")
    if lexicon.poles is None:
        raise EvenrankError(f"`lexicon`: {lexicon.name} names no poles, between which words are swapped")
    first, second = lexicon.poles
    groups = lexicon.entries("word")
    sides = {group: 1 if group == first else -1 if second in (group, REST) else 0 for group in lexicon.groups}
    crossing = {
        key: other
        for key, other in _by_tokens(lexicon.pairs).items()
        if sides[groups[key]] * sides[groups[tuple(tokenize(other))]] < 0
    }
    return _edited(texts, lexicon, crossing)


def neutralised(texts: pl.Series, lexicon: Lexicon) -> Edited:
    """The texts [N] with each word of any group in its neutral wording, by the lexicon's ``neutral``.

    Raises EvenrankError for a lexicon without neutral words.
    """
    if not lexicon.neutral:
        raise EvenrankError(f"`lexicon`: {lexicon.name} has no [neutral], the neutral counterparts of its words")
    return _edited(texts, lexicon, _by_tokens(lexicon.neutral))


def with_entries(texts: pl.Series, lexicon: Lexicon) -> NDArray[np.int64]:
    """The numbers of the texts in which counting finds an entry: the others need not be read word by word."""
    table = pl.DataFrame({"doc_id": pl.int_range(len(texts), eager=True).cast(pl.String), "text": texts})
    scores = score_texts(table, Scoring(lexicon))
    found = scores.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in lexicon.groups)).to_series()
    return np.flatnonzero(found.to_numpy() > 0)


def in_case_of(word: str, other: str) -> str:
    """Another word in the case of a word: all capitals, a first capital (of each word of a phrase), or neither.

    >>> in_case_of("WIFE", "husband"), in_case_of("Wife", "husband"), in_case_of("wife", "husband")
    ('HUSBAND', 'Husband', 'husband')
    >>> in_case_of("Call Girl", "sex worker"), in_case_of("Policeman", "police officer")
    ('Sex Worker', 'Police officer')
    """
    if word.isupper() and len(word) > 1:
        return other.upper()
    capitals = [part[0].isupper() for part in _WORD.findall(word)]
    if len(capitals) > 1 and all(capitals):
        return _WORD.sub(lambda part: part[0][0].upper() + part[0][1:], other)
    return other[0].upper() + other[1:] if capitals and capitals[0] else other


def _by_tokens(replacements: Replacements) -> dict[Key, str]:
    return {tuple(tokenize(word)): other for word, other in replacements}


def _edited(texts: pl.Series, lexicon: Lexicon, counterparts: dict[Key, str]) -> Edited:
    edits = np.zeros(len(texts), dtype=np.int64)
    left: Counter[str] = Counter()
    rows = with_entries(texts, lexicon)
    if not len(rows):
        return Edited(texts, edits, left)
    changed, verbs = [], 0
    for row, text in zip(rows.tolist(), texts.gather(rows).to_list(), strict=True):
        parts, done = [], 0
        for start, end, _ in gendered_spans(text, lexicon):
            key = tuple(tokenize(text[start:end]))
            other = _replacement(text, start, end, key, counterparts)
            if other is None:
                left[" ".join(key)] += 1
                continue
            verbs += other == "they" and key[0] in _SUBJECTS and _GOES_ON.match(text, end) is not None
            parts += [text[done:start], _written(text[start:end], other)]
            done = end
            if text[end - 1] in "sS" and other[-1] != "s" and _is_of_many(text, start, end):
                parts.append(text[end] + ("S" if text[start:end].isupper() else "s"))
                done += 1
            edits[row] += 1
        changed.append("".join([*parts, text[done:]]))
    return Edited(texts.clone().scatter(rows, pl.Series(changed, dtype=pl.String)), edits, left, verbs)


def _replacement(text: str, start: int, end: int, key: Key, counterparts: dict[Key, str]) -> str | None:
    """What stands in for the words of a span, as the lexicon writes it; None: nothing."""
    other = counterparts.get(key)
    if other is None:
        return None
    word = key[0]
    if word in TITLES and len(key) == 1:
        name = _NAME.match(text, end)
        return other if text[start].isupper() and name and name[0][-1].isupper() else None
    if word in COUPLES and len(key) == 1 and _is_beside(text, start, end, COUPLES[word]):
        return None
    possessive = POSSESSIVE.get((word, other)) if len(key) == 1 else None
    if possessive is None:
        return other
    before_noun = her_is_possessive(text, start, end) if word == "her" else his_is_possessive(text, start, end)
    return possessive if before_noun else other


def _is_beside(text: str, start: int, end: int, other: str) -> bool:
    """Whether the words of a span are joined to ``other`` by *and* or *or*."""
    before = re.compile(rf"\b{other}{_JOINED}$", re.IGNORECASE).search(text, max(0, start - 40), start)
    return before is not None or re.compile(rf"{_JOINED}{other}\b", re.IGNORECASE).match(text, end) is not None


def _is_of_many(text: str, start: int, end: int) -> bool:
    """Whether the apostrophe after a word in *s* is its possessive ("ladies' shoes"), not the end of a quotation."""
    return _OF_MANY.match(text, end) is not None and not _QUOTED.search(text, max(0, start - 80), start + 1)


def _written(words: str, other: str) -> str:
    """The counterpart in the case of the words; what joins the words of a phrase is kept if it has as many."""
    old, new = list(_WORD.finditer(words)), list(_WORD.finditer(other))
    if len(old) != len(new) or len(old) == 1:
        return in_case_of(words, other)
    parts, done = [], 0
    for part, word in zip(old, new, strict=True):
        parts += [words[done : part.start()], in_case_of(part[0], word[0])]
        done = part.end()
    return "".join([*parts, words[done:]])
