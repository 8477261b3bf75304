"""What probes recover of the groups from an index before and after debiasing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.embeddings.group_probes import FOLDS, GroupProbe, deal_folds, draw_rows, neighbourhoods, probe_groups
from evenrank.io.types import Array
from evenrank.retrieval.erased_index import PassageNumbers
from evenrank.retrieval.erasure import UNKNOWN, Erasure, fit_leace_blocks
from evenrank.retrieval.vector_index import VectorIndex

LEAST = 10
"""Passages of a group without which it is not probed."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What probes recover.

    Attributes:
        groups: How many passages of each group were probed; empty where there was nothing to probe.
        before: From the index that was debiased; ``after``: from the debiased one. None without groups.
        unseen: Whether ``after`` is of an erasure that was fitted on all passages but those held out, which are what it
            is for passages that come later; of a method that is not fitted on passages it is as stored.
    """

    groups: dict[str, int]
    before: GroupProbe | None = None
    after: GroupProbe | None = None
    unseen: bool = False

    @property
    def chance(self) -> float:
        """The balanced accuracy of a classifier that knows nothing."""
        return 1 / max(len(self.groups), 1)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        named = {"before": self.before, "after": self.after}
        found = {name: None if one is None else one.to_dict() for name, one in named.items()}
        return {"groups": self.groups, "chance": self.chance, **found}


def probe_indexes(
    before: VectorIndex, after: VectorIndex, groups: PassageNumbers, *, sample: int = 1000, seed: int = 0
) -> Probes:
    """Probes of the passages of a group, up to ``sample`` of each at random, in five folds.

    A passage and the one whose vector is nearest to its own after debiasing are in the same fold, so that copies of a
    text with the words of another group do not decide. Groups with fewer than ten passages are left out.
    """
    numbers = groups.numbers
    enough = [number for number, name in enumerate(groups.names) if groups.counts[name] >= LEAST]
    rows = draw_rows(np.where(np.isin(numbers, enough), numbers, UNKNOWN), sample, seed)
    if len(enough) < 2:
        return Probes({})
    own, stored = numbers[rows], after.vectors[rows].astype(np.float64)
    folds = deal_folds(neighbourhoods(stored), own, seed=seed)
    if any(len(np.unique(own[folds != fold])) < len(enough) for fold in range(FOLDS)):
        # Hardly different passages: they are all in one fold.
        return Probes({})
    erased: Array | list[Array] = stored
    erasure = after.erasure
    unseen = erasure is not None and erasure.method == "leace"
    if erasure is not None and unseen:
        erased = [
            _without(before, groups, erasure, rows[folds == fold])(before.vectors[rows])
            for fold in np.unique(folds).tolist()
        ]
    counts = {groups.names[number]: int((own == number).sum()) for number in enough}
    given = before.vectors[rows].astype(np.float64)
    return Probes(
        counts, probe_groups(given, own, folds, seed=seed), probe_groups(erased, own, folds, seed=seed), unseen
    )


def _without(index: VectorIndex, groups: PassageNumbers, like: Erasure, rows: np.ndarray) -> Erasure:
    """The erasure as it is fitted on all passages but those of ``rows``."""
    numbers = groups.numbers.copy()
    numbers[rows] = UNKNOWN
    return Erasure(fit_leace_blocks(index.vectors, numbers, len(groups.names)), like.unit, like.method)
