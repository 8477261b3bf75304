"""The attributes that a fairness term balances: for each, a lexicon whose two poles are the sides of a passage."""

from __future__ import annotations

import os
from collections.abc import Mapping

from evenrank.groups import Lexicon, Scoring, load_lexicon
from evenrank.io import EvenrankError

OneLexicon = str | os.PathLike[str] | Lexicon | Scoring
Attributes = OneLexicon | Mapping[str, OneLexicon]
"""One lexicon (a built-in name, a file, a Lexicon or a Scoring), or one for each of several named attributes."""


def scorings_of(lexicon: Attributes) -> dict[str, Scoring]:
    """How the texts of each attribute are labelled, by its name; a single lexicon has the empty name.

    Raises EvenrankError for a lexicon that cannot be read or has no poles, and for no attribute at all.
    """
    named = lexicon if isinstance(lexicon, Mapping) else {"": lexicon}
    found = {}
    for name, one in named.items():
        if not isinstance(one, Scoring):
            one = Scoring(one if isinstance(one, Lexicon) else load_lexicon(one), magnitudes=("tf_words",))
        if one.lexicon.poles is None:
            groups = ", ".join(one.lexicon.groups)
            raise EvenrankError(
                f"the lexicon {one.lexicon.name} has the groups {groups}: load_lexicon(…, poles='a,b') chooses the two"
                " to balance"
            )
        found[name] = Scoring(one.lexicon, one.tokens, ("tf_words",), one.threshold)
    if not found:
        raise EvenrankError("lexicon: expected at least one attribute")
    return found
