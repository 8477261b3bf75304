"""The attributes that a fairness term balances: for each, the two poles of a lexicon, or of labels, as sides."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.files import EvenrankError
from evenrank.files.errors import quoted
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import GroupTable, LexiconLike, Scoring, load_lexicon, sides, sides_of_texts

if TYPE_CHECKING:
    from typing_extensions import TypeIs

OneLexicon = LexiconLike | Scoring
OneAttribute = OneLexicon | GroupTable
Attributes = OneAttribute | Mapping[str, OneAttribute]
"""One lexicon in any form, a Scoring, or labels (:func:`evenrank.as_labels`); or one of these for each of several named
attributes."""
Attribute = Scoring | GroupTable
"""How passages get their sides: from their words, or from labels by document."""


def several(given: object) -> TypeIs[Mapping[str, OneAttribute]]:
    """Whether these are attributes by name, rather than a single one, such as ``{group: words}``."""
    words = isinstance(given, Mapping) and all(isinstance(v, list | tuple | AbstractSet) for v in given.values())
    return isinstance(given, Mapping) and not (words and given)


def attributes_of(given: Attributes) -> dict[str, Attribute]:
    """How the passages of each attribute get their sides, by its name; a single attribute has the empty name.

    Raises EvenrankError for a lexicon that cannot be read, for one, or labels, without poles, and for no attribute.
    """
    named = given if several(given) else {"": given}
    attributes = {name: _attribute(attribute) for name, attribute in named.items()}
    if not attributes:
        raise EvenrankError("lexicon: expected at least one attribute")
    return attributes


def scorings_of(given: Attributes) -> dict[str, Scoring]:
    """As :func:`attributes_of`, where passages are known by their texts alone. Raises EvenrankError for labels."""
    scorings = {}
    for name, scoring in attributes_of(given).items():
        if isinstance(scoring, GroupTable):
            labels = f"the labels {scoring.settings['labels']} are by document"
            raise EvenrankError(f"{labels}, and these passages have no ids: give their sides (+1, -1 or 0) instead")
        scorings[name] = scoring
    return scorings


def described(attribute: Attribute) -> str:
    """An attribute without a name of its own in words: its lexicon's name, or that of its labels."""
    return str(attribute.settings["labels"]) if isinstance(attribute, GroupTable) else attribute.lexicon.name


def _attribute(one: OneAttribute) -> Attribute:
    if isinstance(one, GroupTable):
        if not one.labelled:
            raise EvenrankError("lexicon: expected a lexicon or labels, found a group table of counted words")
        if one.poles is None:
            groups, which = ", ".join(one.groups), "as_labels(…, poles='a,b') chooses the two to balance"
            raise EvenrankError(f"the labels {one.settings['labels']} have the groups {groups}: {which}")
        return one
    if not isinstance(one, Scoring):
        one = Scoring(load_lexicon(one), magnitudes=("tf_words",))
    if one.lexicon.poles is None:
        groups = ", ".join(one.lexicon.groups)
        raise EvenrankError(
            f"the lexicon {one.lexicon.name} has the groups {groups}: load_lexicon(…, poles='a,b') chooses the two"
            " to balance"
        )
    return replace(one, magnitudes=("tf_words",))


def sides_by(attribute: Attribute, passages: pl.DataFrame, *, partly: bool = False) -> Array:
    """The side [N] of passages (``doc_id``, ``text``): +1, −1 or 0 [IBBR §2.2]; by labels, the sign of w_a − w_b.

    A passage without a label has side 0, as one of neither group: it enters the loss as any other passage of its list.
    Raises EvenrankError for labels that know none of the passages, unless they are a part of all (``partly``).
    """
    if isinstance(attribute, Scoring):
        return sides_of_texts(passages["text"], attribute)
    rows = rows_of(attribute, passages["doc_id"], needed=not partly)
    return np.where(rows >= 0, sides(attribute.signed_magnitude(attribute.usual_kind))[rows], 0).astype(np.int8)


def rows_of(labels: GroupTable, ids: pl.Series, what: str = "passage", *, needed: bool = True) -> Array:
    """The row [N] of each document in labels, −1 without a label.

    Raises EvenrankError if they know none of them and that is ``needed``.
    """
    rows = IdIndex([labels.table["doc_id"]]).places(ids)
    if needed and not (rows >= 0).any():
        known, unknown = (", ".join(map(quoted, some[:3])) for some in (labels.table["doc_id"], ids))
        raise EvenrankError(
            f"{labels.source} know none of {counted(len(ids), what)} ({unknown}, …): they have {known}, …"
        )
    return rows
