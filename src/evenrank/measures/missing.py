"""Documents of a run that the group table lacks: how many, where, and when to refuse them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from evenrank.groups.table import GroupTable
from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.runs import Run
from evenrank.io.types import Array
from evenrank.io.wording import are, counted

from .ranked_lists import RankedLists, expand

Missing = Literal["error", "skip", "neutral", "bounds"]
"""What to do about documents that the group table lacks. Of labels only: "bounds"."""
MISSING_LIMIT = 0.1
"""The largest share of documents without text that an audit tolerates by default."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """The documents that the group table lacks, over the ranks where their share is largest.

    ``documents`` of the ``total`` in the first ``depth`` ranks of all queries together (None: in the whole lists) are
    missing; ``first``: their first ids, no more than six; ``queries``: how many queries have no known document at all.
    """

    documents: int
    total: int
    depth: int | None
    queries: int
    first: tuple[str, ...]

    @property
    def share(self) -> float:
        """Their share, from 0 to 1."""
        return self.documents / self.total

    @property
    def place(self) -> str:
        """Where they are, in words: ``in the first 10 ranks``."""
        if self.depth is None:
            return "in all lists"
        return f"in the first {self.depth} ranks" if self.depth > 1 else "at the first rank"


def find_lacking(doc_ids: pl.Series, lists: RankedLists, lost: Array, depths: Iterable[int]) -> Lacking | None:
    """The ``lost`` [N] ones of the documents ``doc_ids`` [N], over the ranks where their share is largest.

    Compares the first ranks down to each of ``depths`` and the whole lists: a first page without texts is no better for
    a well-known tail. Returns None if no document is lost.
    """
    if not lost.any():
        return None
    found = []
    for depth in [None, *sorted(set(depths))]:
        if depth is None:
            places = np.arange(len(lost))
        else:
            places, _ = expand(lists.offsets[:-1], np.minimum(lists.lengths, depth))
        found.append((int(lost[places].sum()), len(places), depth, places))
    count, total, depth, places = max(found, key=lambda one: one[0] / one[1])
    known = np.add.reduceat(~lost, lists.offsets[:-1], dtype=np.int64)
    first = doc_ids.gather(places[lost[places]]).unique(maintain_order=True)[:6]
    return Lacking(count, total, depth, int((known == 0).sum()), tuple(first))


def refuse_all(run: Run, lost: Array, source: str) -> EvenrankError:
    """The error for documents of a run, ``lost`` [N], that ``source`` lacks although none may be missing."""
    absent = run.table["doc_id"].filter(pl.Series(lost)).unique(maintain_order=True)
    total = run.table["doc_id"].n_unique()
    lost_of = f"{len(absent)} of its {total} documents are not in"
    if len(absent) == total:
        lost_of = f"none of its {total} documents is in" if total > 1 else "its only document is not in"
    return EvenrankError(
        f"{run.described}: {lost_of} {source}: {_first_of(absent)} (`missing='skip'` or `missing='neutral'` continues)"
    )


def refuse_unlabelled(run: Run, labels: GroupTable) -> EvenrankError:
    """The error for labels that know none of a run's documents, with the first ids of each side."""
    own, theirs = run.table["doc_id"].unique(maintain_order=True), labels.table["doc_id"]
    return EvenrankError(
        f"{run.described}: none of its {counted(len(own), 'document')} is in {labels.source}: the run has"
        f" {_first_of(own)}; the labels have {_first_of(theirs)}"
    )


def refuse_share(run: Run, lacking: Lacking, source: str, missing: Missing, limit: float) -> EvenrankError:
    """The error for a share of missing documents above ``limit``."""
    lost = f"{lacking.documents:,} of {counted(lacking.total, 'document')} {lacking.place}"
    return EvenrankError(
        f"{run.described}: {lost} ({_percent(lacking.share)}) {are(lacking.documents)} not in"
        f" {source}: {_first_of(lacking.first)} (`missing='{missing}'` tolerates {_percent(limit)};"
        " `missing_limit` sets that share)"
    )


def _first_of(ids: Sequence[str] | pl.Series) -> str:
    return f"{', '.join(map(quoted, ids[:5]))}{', …' if len(ids) > 5 else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
