"""Rotation of a passage's words at a random place, so that the position of its answer carries no information.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], eq. 7:
n words (white-space separated), r uniform in 1 … n, the result words[r−1:] + words[:r−1], joined by single spaces.

When it misleads: a sentence that is cut in two reads badly, and a ranker trained on rotated text has learned from text
that it will not see in use (``mode="sentence"`` cuts between sentences; its places are not quite uniform). An answer
that the cut splits is left out. Rotation does not help if the answer is lost because the ranker reads too few words;
and if answers do come early in the texts that people ask about, a ranker without the preference may be less effective.

Worked example: five words, cut before the third (r = 3, two words move to the end).

>>> from evenrank.mitigation.rotation import moved_span, rotated
>>> rotated("we drank tea there today", 2)
'tea there today we drank'
>>> moved_span("we drank tea there today", 9, 12, 2)
(0, 3)
"""

from .rotated_answers import Rotated
from .rotation_collection import rotate_collection, rotate_texts
from .rotation_cut import ABBREVIATIONS, MODES, Mode, cut_of, draw, mixed_seed, moved_span, rotated, sentence_starts

__all__ = [
    "ABBREVIATIONS",
    "MODES",
    "Mode",
    "Rotated",
    "cut_of",
    "draw",
    "mixed_seed",
    "moved_span",
    "rotate_collection",
    "rotate_texts",
    "rotated",
    "sentence_starts",
]
