"""What training lists keep of their passages' groups: sides for a fairness term, the target of an adversary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from evenrank.groups import GroupTable
from evenrank.mitigation.attributes import Attribute, rows_of, sides_by

ADVERSARY = "adversary"
"""The name of an adversary's labels among those of the attributes."""


@dataclass(frozen=True, slots=True)
class PassageGroups:
    """The ``attributes`` for which passages get a side, and the labels of an adversary's ``target``, if it has any.

    ``label``: what makes a passage gendered, that it is not ``neutrality`` 1, or ``any`` weight of a group.
    """

    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    target: GroupTable | None = None
    label: Literal["neutrality", "any"] = "neutrality"

    @property
    def labels(self) -> dict[str, GroupTable]:
        """The labels, by the name of their attribute."""
        found = {name: one for name, one in self.attributes.items() if isinstance(one, GroupTable)}
        return found if self.target is None else {**found, ADVERSARY: self.target}

    def columns(self, texts: pl.DataFrame) -> list[pl.Series]:
        """``signs``: the sides of each text, one for each attribute [IBBR §2.2]; ``gendered``: 1, 0, or −1 (unknown).

        Raises EvenrankError for labels that know none of the passages.
        """
        found = []
        if self.attributes:
            sides = [sides_by(attribute, texts) for attribute in self.attributes.values()]
            found.append(pl.Series("signs", np.stack(sides, axis=1)).cast(pl.List(pl.Int8)))
        if self.target is not None:
            from evenrank.mitigation.adversarial import gendered_by_label

            found.append(pl.Series("gendered", gendered_by_label(texts["doc_id"], self.target, self.label)))
        return found

    def counts(self, passages: pl.Series, relevant: pl.Series) -> dict[str, int]:
        """How many of the passages and of the ``relevant`` ones there are, and how many each of the labels knows."""
        if not self.labels:
            return {}
        counts = {"passages": len(passages), "relevant": relevant.n_unique()}
        for name, labels in self.labels.items():
            known = passages.filter(pl.Series(rows_of(labels, passages) >= 0))
            counts[f"known_{name}"] = len(known)
            counts[f"known_relevant_{name}"] = int(relevant.unique().is_in(known.implode()).sum())
        return counts


def label_lines(labels: Mapping[str, Mapping[str, int]]) -> list[str]:
    """How much the labels of each attribute know, in words."""
    return [
        f"labels ({name}): {n['known']:,} of {n['passages']:,} training passages have one ({n['known_relevant']:,} of"
        f" {n['relevant']:,} relevant ones), {n['known_validated']:,} of {n['validated']:,} validated ones; the others"
        f" are unknown and {'left out' if name == ADVERSARY else 'on no side'}"
        for name, n in labels.items()
    ]
