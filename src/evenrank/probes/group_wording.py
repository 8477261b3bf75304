"""A text in another wording: group words become their counterparts of the other pole, or words that name no group.

The words and their counterparts are the lexicon's own (``[pairs]``, ``[neutral]`` of its TOML), found as counting
finds them. Kept are the case (she, She, SHE), what joins the words of a phrase (ex-wife, ex wife), and endings after
an apostrophe (she's, woman's); all else is untouched byte for byte. A word without a counterpart is left and counted.

What *her* and *his* become is told by the words around them, without a parser: *her* is the possessive of a noun
phrase ("her old house") or an object ("told her that"); *his* is the possessive of a noun phrase, or stands alone ("a
friend of his"). A possessive is assumed, unless what follows cannot begin the rest of a noun phrase: the end,
punctuation, a function word, or, after *her*, an adverb, a complement ("made her happy", "let her go") or a second
object ("gave her flowers").

When it misleads: names, and words that the lexicon does not know, keep the group that they suggest. English *her* and
*his* are read by the words around them, which is not always right. After *they* verbs stay in the singular, after a
neutral word so do articles (*an uncle*, *an relative*): a ranker that reacts to grammar reacts to ``neutral``. That a
swap changes words at all is what its placebo is for.

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
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files import EvenrankError, arg
from evenrank.files.tokens import APOSTROPHES, tokenize
from evenrank.groups import Lexicon, Scoring, gendered_spans
from evenrank.groups.lexicon import Replacements
from evenrank.groups.table import REST
from evenrank.mitigation.blind import with_entries
from evenrank.search.analysis import NLTK, stop_list


def _word_lists() -> dict[str, frozenset[str]]:
    """The lists of ``possessives.toml`` by name."""
    text = resources.files(__package__).joinpath("possessives.toml").read_text(encoding="utf-8")
    return {name: frozenset(words.split()) for name, words in tomllib.loads(text).items()}


_LISTS = _word_lists()
_FUNCTION = _LISTS["function"] | {""}
"""Words that a noun phrase without its determiner does not begin with, and the end."""
_ADJECTIVE_ENDINGS = ("ful", "ous", "able", "ible", "less")

_NEXT = re.compile(r"\s+[\"“‘'\[*_]*([^\W_]+(?:['’\-‐‑][^\W_]+)*)")
_ASIDE = re.compile(r"\s+[(\[][^()\[\]]{1,40}[)\]](?=\s)")
_ONE_OF = re.compile(
    r"\b(?:a|an|another|any|many|no|one|several|some|that|these|this|those|three|two)\s+(?:[\w’'-]+\s+){1,3}of\s+$",
    re.IGNORECASE,
)
_CLOSING = tuple("\"”’'*_]")
_OTHER_POSSESSIVE = re.compile(r"(?:\s*/\s*|\s+(or|and)\s+)(his|her|their|my|your|its|our)\b(?!['’-])", re.IGNORECASE)
_LAST = re.compile(r"([^\W_]+)[\s\"“‘']+$")


def his_is_possessive(text: str, start: int, end: int) -> bool:
    """Whether a noun phrase follows the *his* from ``start`` to ``end``.

    >>> his_is_possessive("his old house", 0, 3), his_is_possessive("a friend of his.", 12, 15)
    (True, False)
    """
    word, _ = _word_after(text, _coordinated(text, end, ("or", "and")))
    if word in _LISTS["done"] and _ONE_OF.search(text, max(0, start - 60), start):
        return False
    return word not in _FUNCTION


def her_is_possessive(text: str, start: int, end: int) -> bool:
    """Whether the *her* from ``start`` to ``end`` is the possessive of a noun phrase, or else an object.

    >>> her_is_possessive("her old house", 0, 3), her_is_possessive("tell her that", 5, 8)
    (True, False)
    """
    beyond = _coordinated(text, end, ("or",))
    word, after = _word_after(text, beyond)
    if word in _FUNCTION or word in _LISTS["after_object"]:
        return False
    if beyond != end or "-" in word:
        return True
    goes_on = _word_after(text, after + (text[after : after + 1] in _CLOSING))[0] not in _FUNCTION
    before = _LAST.search(text, max(0, start - 40), start)
    verb = before[1].casefold() if before else ""
    if verb in _LISTS["naming"] and text[start].islower() and text[after - len(word) : after][:1].isupper():
        return False
    likely = verb in _LISTS["before_possessive"]
    if word == "back":
        return (goes_on and verb not in _LISTS["bringing"]) or likely or verb in _LISTS["hurting"]
    if word in _LISTS["either"]:
        return goes_on or likely
    if verb in _LISTS["making"] and word in _LISTS["bare_verbs"]:
        return False
    # As in "gave her flowers".
    second_object = verb in _LISTS["giving"] and (word in _LISTS["gifts"] or word.isdigit())
    return likely or not (_is_complement(verb, word, goes_on) or second_object)


def _is_complement(verb: str, word: str, goes_on: bool) -> bool:
    """Of an object: "keep her safe", "saw her walking", "told her quietly"."""
    if word.endswith("ing"):
        return verb in _LISTS["sensing"]
    if goes_on:
        return False
    if word.endswith("ly"):
        return word not in _LISTS["nouns_in_ly"]
    if word.endswith("ed"):
        return verb in _LISTS["making"] and word not in _LISTS["nouns_in_ed"]
    return word in _LISTS["adjectives"] or word.endswith(_ADJECTIVE_ENDINGS)


def _word_after(text: str, end: int) -> tuple[str, int]:
    """The next word of the same phrase, hyphens included, and its end; no word after the end or punctuation.

    Words in brackets are passed over, if others follow: "her (late) husband".
    """
    aside = _ASIDE.match(text, end)
    match = _NEXT.match(text, aside.end() if aside else end)
    return (match[1].casefold().replace("’", "'"), match.end()) if match else ("", end)


def _coordinated(text: str, end: int, joined_by: tuple[str, ...]) -> int:
    """Where "his or her" ends, if that is what stands here."""
    match = _OTHER_POSSESSIVE.match(text, end)
    return match.end() if match and (match[1] or "or").casefold() in joined_by else end


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
    a verb, which was left as it is; ``short``: texts of a placebo with fewer edits than were asked for.
    """

    texts: pl.Series
    edits: NDArray[np.int64]
    left: Counter[str] = field(default_factory=Counter)
    verbs: int = 0
    short: int = 0


def swapped(texts: pl.Series, lexicon: Lexicon) -> Edited:
    """The texts [N] with each word of one pole in the wording of the other, by the lexicon's ``pairs``.

    Words of other groups are left. Raises EvenrankError for a lexicon without pairs or without poles.
    """
    if not lexicon.pairs:
        raise EvenrankError(f"{arg.lexicon}: {lexicon.name} has no [pairs], the counterparts of its words")
    if lexicon.poles is None:
        raise EvenrankError(f"{arg.lexicon}: {lexicon.name} names no poles, between which words are swapped")
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
        raise EvenrankError(f"{arg.lexicon}: {lexicon.name} has no [neutral], the neutral counterparts of its words")
    return _edited(texts, lexicon, _by_tokens(lexicon.neutral))


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
    rows = with_entries(texts, Scoring(lexicon))
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


_DOCUMENTS, _CHARACTERS = 1000, 2000
"""So many are read, and so many of each."""
_FEWEST_WORDS = 200
"""Fewer say nothing."""
_LEAST_SHARE = 0.1
"""Of stop words. On XQuAD they are 40 % of the words in English, 3 % in German and 5 % in Spanish."""


def language_notes(batches: Iterable[pl.DataFrame], lexicon: Lexicon) -> tuple[str, ...]:
    """A note if the first documents (``text``) are hardly English, though the lexicon is; none for other lexicons."""
    if lexicon.language != "en":
        return ()
    stops, documents, words, matches = stop_list(NLTK), 0, 0, 0
    for batch in batches:
        for text in batch["text"].head(_DOCUMENTS - documents).str.slice(0, _CHARACTERS):
            tokens = tokenize(text)
            words += len(tokens)
            matches += sum(token in stops for token in tokens)
        documents = min(documents + batch.height, _DOCUMENTS)
        if documents == _DOCUMENTS:
            break
    if words < _FEWEST_WORDS or matches >= _LEAST_SHARE * words:
        return ()
    share = f"{matches / words:.0%} of the words of the first documents are English stop words"
    other = f"but the lexicon {lexicon.name} is: its words may mean other things here"
    return (f"The texts hardly look English ({share}), {other}.",)
