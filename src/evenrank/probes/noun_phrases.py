"""Whether *her* or *his* stands before a noun phrase: told by the words around it, without a parser.

*her* is the possessive of a noun phrase ("her old house") or an object ("told her that"); *his* is the possessive of a
noun phrase, or stands alone ("a friend of his"). A possessive is assumed, unless what follows cannot begin the rest of
a noun phrase: the end, punctuation, a function word, or, after *her*, an adverb, a complement ("made her happy", "let
her go") or a second object ("gave her flowers").
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION = _words(
    """
    a an the this that these those some any every each another both either neither no
    i you he she it we they me him her us them my your his its our their mine yours hers theirs himself herself itself
    themselves myself yourself who whom whose which what when where why how while whether if unless because since
    although though than as and or nor but yet so
    of in on at by for with without from to into onto upon about above across after against along among around before
    behind below beneath beside besides between beyond despite down during except inside near off out outside over
    past through throughout toward towards under until till up via within amid per
    is are was were be been am has have had do does did will would can could shall should may might must cannot
    isn't aren't wasn't weren't don't doesn't didn't won't wouldn't can't couldn't shouldn't hasn't haven't hadn't
    not never
    """
) | {""}
"""Words that a noun phrase without its determiner does not begin with, and the end."""
_AFTER_OBJECT = _words(
    """
    afterwards again ago ahead alone already also altogether always anymore anyway apart aside away become
    beforehand being believe directly either else enough entirely even ever everything everywhere feel forever
    forward further get got here immediately indefinitely indoors instead know later like maybe nothing nowadays
    often once otherwise outdoors overnight perhaps please quite rather realize really seem something somewhere soon
    that's there thereafter thereby therefore thus today together tomorrow tonight too twice understand upstairs
    whenever wherever worse yesterday
    """
)
"""Adverbs, and verbs that are no nouns: what follows an object and no possessive."""
_EITHER = _words(
    """
    all best better daily first home just last less more most much now only right still straight then well
    """
)
"""What follows an object, or begins a noun phrase that then goes on."""
_BEFORE_POSSESSIVE = _words(
    """
    about across after against around as at be been before behind beneath beside between beyond by during for from
    in into is near of off on onto out over past than through throughout to toward towards under until upon was with
    within without
    """
)
"""Before a possessive rather than before an object with something after it."""
_MAKING = _words(
    """
    feel feels felt had have having hear heard hearing hears help helped helping helps let lets letting made make
    makes making saw see seeing seen sees watch watched watches watching
    """
)
_BARE_VERBS = _words(
    """
    act appear arrive ask be become begin believe belong breathe bring buy choose come commit cook cry decide do
    drink eat enjoy enter escape fall feel find fit forget gain get give go grow happen have hear join jump keep
    kiss know laugh learn leave live look lose love make marry miss move open pass pay perform play pursue put quit
    reach read realize relax remain remember respect run save say see seem sell send sing sit sleep smile speak
    spend stand start stay stop succeed suffer survive take talk teach tell think throw travel try turn understand
    use wait walk want watch wear win wonder work write
    """
)
_ADJECTIVES = _words(
    """
    able afraid alive angry anxious attractive available awake aware bad beautiful big blind busy calm close cold
    comfortable common confident crazy dead deaf difficult drunk dry easy fat feminine fit free furious good great
    guilty happy hard healthy high hot hungry ill important impossible insecure jealous lonely long loose lovely mad
    masculine naked nervous new old open perfect poor popular possible pregnant pretty proud quiet ready responsible
    rich sad safe satisfied scared sexy short shy sick silent single small smart sorry strong stupid sure tall tired
    tough true ugly unable uncomfortable unconscious unhappy upset warm weak wet wild worthy wrong young
    """
)
_ADJECTIVE_ENDINGS = ("ful", "ous", "able", "ible", "less")
_GIVING = _words(
    """
    award awarded awarding awards bought bring bringing brings brought buy buying buys cost costs earn earned gave
    give given gives giving grant granted granting grants offer offered offering offers paid pay paying pays send
    sending sends sent wish wished wishes wishing
    """
)
_GIFTS = _words(
    """
    advice attention birth chocolate compliments credit flowers food gifts jewelry money permission presents space
    """
)
_SENSING = _words(
    """
    catch catches catching caught depict depicted depicting depicts find finding finds found hear heard hearing
    hears imagine keep keeping keeps kept leave leaves leaving left notice noticed notices picture saw see seeing
    seen sees show showed showing shows watch watched watches watching
    """
)
_BRINGING = _words(
    """
    attract bring brings brought call called calling calls get gets getting got hit hits invite invited like liked
    likes love loved loves send sends sent take taken takes taking text texted texting texts took want wanted wants
    welcome welcomed win winning wins won
    """
)
_HURTING = _words(
    """
    arched breaks broke hurt hurts injured rub rubbed scratch scratched strained turn turned turns washed
    """
)
_NAMING = _words(
    """
    call called calling calls christen christened crown crowned dub dubbed name named names naming nickname nicknamed
    rename renamed
    """
)
_DONE = _words(
    """
    arrived asked became began came died disagreed gave goes got happened knew knows lived ran said says seemed seems
    sent tells thinks told took wants went wrote
    """
)
"""Verbs that follow "a friend of his" rather than begin a noun phrase."""
_NOUNS_IN_ED = _words("bed breed creed deed feed greed need seed shed speed")
_NOUNS_IN_LY = _words("ally anomaly assembly belly bully butterfly family lily monopoly rally reply supply tally")

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
    if word in _DONE and _ONE_OF.search(text, max(0, start - 60), start):
        return False
    return word not in _FUNCTION


def her_is_possessive(text: str, start: int, end: int) -> bool:
    """Whether the *her* from ``start`` to ``end`` is the possessive of a noun phrase, or else an object.

    >>> her_is_possessive("her old house", 0, 3), her_is_possessive("tell her that", 5, 8)
    (True, False)
    """
    beyond = _coordinated(text, end, ("or",))
    word, after = _word_after(text, beyond)
    if word in _FUNCTION or word in _AFTER_OBJECT:
        return False
    if beyond != end or "-" in word:
        return True
    goes_on = _word_after(text, after + (text[after : after + 1] in _CLOSING))[0] not in _FUNCTION
    before = _LAST.search(text, max(0, start - 40), start)
    verb = before[1].casefold() if before else ""
    if verb in _NAMING and text[start].islower() and text[after - len(word) : after][:1].isupper():
        return False
    if word == "back":
        return (goes_on and verb not in _BRINGING) or verb in _BEFORE_POSSESSIVE or verb in _HURTING
    if word in _EITHER:
        return goes_on or verb in _BEFORE_POSSESSIVE
    if verb in _MAKING and word in _BARE_VERBS:
        return False
    return verb in _BEFORE_POSSESSIVE or not (_is_complement(verb, word, goes_on) or _is_second_object(verb, word))


def _is_complement(verb: str, word: str, goes_on: bool) -> bool:
    """Of an object: "keep her safe", "saw her walking", "told her quietly"."""
    if word.endswith("ing"):
        return verb in _SENSING
    if goes_on:
        return False
    if word.endswith("ly"):
        return word not in _NOUNS_IN_LY
    if word.endswith("ed"):
        return verb in _MAKING and word not in _NOUNS_IN_ED
    return word in _ADJECTIVES or word.endswith(_ADJECTIVE_ENDINGS)


def _is_second_object(verb: str, word: str) -> bool:
    """As in "gave her flowers"."""
    return verb in _GIVING and (word in _GIFTS or word.isdigit())


def _word_after(text: str, end: int) -> tuple[str, int]:
    """The next word of the same phrase, hyphens included, and its end; no word after the end or punctuation.

    Words in brackets are passed over, if others follow: "her (late) husband".
    """
    aside = _ASIDE.match(text, end)
    found = _NEXT.match(text, aside.end() if aside else end)
    return (found[1].casefold().replace("’", "'"), found.end()) if found else ("", end)


def _coordinated(text: str, end: int, joined_by: tuple[str, ...]) -> int:
    """Where "his or her" ends, if that is what stands here."""
    found = _OTHER_POSSESSIVE.match(text, end)
    return found.end() if found and (found[1] or "or").casefold() in joined_by else end
